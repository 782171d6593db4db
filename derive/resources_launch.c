/* Bytes of a kernel's launch parameters, in the order of codegen/manifest.c: tensor maps,
 * pointers, extents, scalars, and the watchdog's area, which runs compile in. */
#include "derive/resources.h"

#define MAP_BYTES     128
#define POINTER_BYTES 8
#define EXTENT_BYTES  4

typedef struct Parameters {
    int maps, pointers, extents;
    int scalars, scalar_bytes; /* padded, after the extents */
} Parameters;

static int up_to(int bytes, int size) { return (bytes + size - 1) / size * size; }

static int bytes_before_scalars(const Parameters *all) {
    return all->maps * MAP_BYTES + all->pointers * POINTER_BYTES + all->extents * EXTENT_BYTES;
}

static Parameters count(const Prog *prog) {
    Parameters all = {.maps = (int)prog->maps.count};
    for (size_t i = 0; i < prog->params.count; i++)
        all.pointers += prog->params.items[i].is_tensor && prog->params.items[i].by_pointer;
    for (size_t i = 0; i < prog->symbols.count; i++) all.extents += prog->symbols.items[i].is_extent;
    int start = bytes_before_scalars(&all), end = start;
    for (size_t i = 0; i < prog->params.count; i++) {
        const Param *param = &prog->params.items[i];
        if (param->is_tensor) continue;
        int bytes = element_rows[param->type].bytes;
        end = up_to(end, bytes) + bytes;
        all.scalars++;
    }
    all.scalar_bytes = end - start;
    return all;
}

static const char *plural(int count) { return count == 1 ? "" : "s"; }

void resources_launch(Resources *res) {
    const Prog *prog = res->prog;
    Parameters all = count(prog);
    int bytes = up_to(bytes_before_scalars(&all) + all.scalar_bytes, POINTER_BYTES) + POINTER_BYTES;
    if (!prog->target || bytes <= prog->target->parameter_limit) return;
    Diag *diag =
        diag_at(res->diags, P0508, prog->span,
                "kernel `%s` takes %d bytes of parameters, but a launch on %s takes at most %d",
                prog->name, bytes, prog->target->name, prog->target->parameter_limit);
    if (all.maps)
        diag_note(res->diags, diag, "%d tensor map%s: %d = %d x %d", all.maps, plural(all.maps), all.maps * MAP_BYTES, all.maps,
                  MAP_BYTES);
    if (all.pointers)
        diag_note(res->diags, diag, "%d tensor%s by pointer: %d", all.pointers, plural(all.pointers), all.pointers * POINTER_BYTES);
    if (all.extents) diag_note(res->diags, diag, "%d extent%s: %d", all.extents, plural(all.extents), all.extents * EXTENT_BYTES);
    if (all.scalars) diag_note(res->diags, diag, "%d scalar%s: %d", all.scalars, plural(all.scalars), all.scalar_bytes);
    diag_note(res->diags, diag, "watchdog of `run`: %d", POINTER_BYTES);
    diag_help(res->diags, diag, "%s",
              all.maps ? "join tensors, or copy some `by lanes`: each box shape of each tensor "
                         "takes a tensor map"
                       : "join tensors and scalars, or declare constants as `const` or `static`");
}
