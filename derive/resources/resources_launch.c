/* The parameters of a kernel, in their order: tensor maps, pointers, strides, extents,
 * scalars, the counter of a dynamic grid, and after them the watchdog's area, which runs compile
 * in; and whether a launch takes so many bytes. */
#include "derive/resources/resources.h"

#define MAP_BYTES     128
#define POINTER_BYTES 8
#define PITCH_BYTES   4 /* the stride of the axis before the last */
#define STRIDE_BYTES  8
#define EXTENT_BYTES  4

static int up_to(int bytes, int size) { return (bytes + size - 1) / size * size; }

static void add_argument(Arena *arena, PassedList *all, PassedKind kind, size_t index, int bytes) {
    vec_push(arena, all, ((Passed){.kind = kind, .index = (int)index, .bytes = bytes}));
}

static void add_strides(Arena *arena, const Prog *prog, PassedList *all) {
    for (size_t i = 0; i < prog->params.count; i++)
        for (int axis = 0, last = prog->params.items[i].rank - 1; axis < last; axis++)
            if (prog->params.items[i].by_pointer)
                vec_push(arena, all,
                         ((Passed){PASSED_STRIDE, (int)i,
                                   axis + 1 < last ? STRIDE_BYTES : PITCH_BYTES, axis}));
}

PassedList resources_arguments(Arena *arena, const Prog *prog) {
    PassedList all = {0};
    for (size_t i = 0; i < prog->plan->maps.count; i++)
        add_argument(arena, &all, PASSED_MAP, i, MAP_BYTES);
    for (size_t i = 0; i < prog->params.count; i++)
        if (prog->params.items[i].is_tensor && prog->params.items[i].by_pointer)
            add_argument(arena, &all, PASSED_POINTER, i, POINTER_BYTES);
    add_strides(arena, prog, &all);
    for (size_t i = 0; i < prog->symbols.count; i++)
        if (prog->symbols.items[i].is_extent)
            add_argument(arena, &all, PASSED_EXTENT, i, EXTENT_BYTES);
    for (size_t i = 0; i < prog->params.count; i++) {
        const Param *param = &prog->params.items[i];
        if (!param->is_tensor)
            add_argument(arena, &all, PASSED_SCALAR, i, (int)element_rows[param->type].bytes);
    }
    if (prog->draws.role >= 0) add_argument(arena, &all, PASSED_COUNTER, 0, POINTER_BYTES);
    return all;
}

typedef struct Sum {
    int count, bytes; /* padding before each included */
} Sum;

/* By kind; returns the end of all. */
static int add_up(const PassedList *all, Sum *sums) {
    int end = 0;
    for (size_t i = 0; i < all->count; i++) {
        const Passed *argument = &all->items[i];
        int start = end, size = argument->bytes;
        end = up_to(end, size > POINTER_BYTES ? POINTER_BYTES : size) + size;
        sums[argument->kind].count++;
        sums[argument->kind].bytes += end - start;
    }
    return end;
}

static const char *plural(int count) { return count == 1 ? "" : "s"; }

static void note_sum(const Resources *res, Diag *diag, const Sum *sum, const char *what) {
    if (sum->count > 0) diag_note(res->diags, diag, "%d %s: %d", sum->count, what, sum->bytes);
}

void resources_launch(Resources *res) {
    const Prog *prog = res->prog;
    const PassedList all = resources_arguments(res->arena, prog);
    Sum sums[PASSED_KINDS] = {{0, 0}};
    int bytes = up_to(add_up(&all, sums), POINTER_BYTES) + POINTER_BYTES;
    if (!prog->target || bytes <= prog->target->parameter_limit) return;
    Diag *diag =
        diag_at(res->diags, P0508, prog->span,
                "kernel `%s` takes %d bytes of parameters, but a launch on %s takes at most %d",
                prog->name, bytes, prog->target->name, prog->target->parameter_limit);
    const Sum *maps = &sums[PASSED_MAP], *pointers = &sums[PASSED_POINTER],
              *strides = &sums[PASSED_STRIDE], *extents = &sums[PASSED_EXTENT],
              *scalars = &sums[PASSED_SCALAR];
    if (maps->count)
        diag_note(res->diags, diag, "%d tensor map%s: %d = %d x %d", maps->count,
                  plural(maps->count), maps->bytes, maps->count, MAP_BYTES);
    if (pointers->count)
        diag_note(res->diags, diag, "%d tensor%s by pointer: %d", pointers->count,
                  plural(pointers->count), pointers->bytes);
    note_sum(res, diag, strides, strides->count == 1 ? "stride" : "strides");
    note_sum(res, diag, extents, extents->count == 1 ? "extent" : "extents");
    note_sum(res, diag, scalars, scalars->count == 1 ? "scalar" : "scalars");
    note_sum(res, diag, &sums[PASSED_COUNTER], "counter of tiles");
    diag_note(res->diags, diag, "watchdog of `run`: %d", POINTER_BYTES);
    diag_help(res->diags, diag, "%s",
              maps->count
                  ? "join tensors, or copy some `by lanes`: each box shape of each tensor "
                    "takes a tensor map"
                  : "join tensors and scalars, or declare constants as `const` or `static`");
}
