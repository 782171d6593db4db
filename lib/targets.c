/* lib: the targets of a kernel: which ones a text names, which one a variant is compiled for, and
 * one list of the diagnostics of all. The programs for them are made in targets_on.c. */
#include "lib/targets.h"

#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

bool targets_has(const Targets *targets, const Target *target) {
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i] == target) return true;
    return false;
}

void targets_add_names(Arena *arena, const AstNames *names, Targets *to) {
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i].text;
        const Target *target = name != NULL ? target_by_name(name) : NULL;
        if (target != NULL && !targets_has(to, target)) vec_push(arena, to, target);
    }
}

void targets_add(Arena *arena, const Ast *ast, const char *kernel, Targets *to) {
    targets_add_names(arena, check_targets(ast, kernel), to);
}

static bool names_it(const Ast *ast, const char *kernel, const Target *target) {
    const AstNames *names = check_targets(ast, kernel);
    for (size_t i = 0; i < names->count; i++)
        if (names->items[i].text != NULL && strcmp(names->items[i].text, target->name) == 0)
            return true;
    return false;
}

static bool same_kernel(const char *a, const char *b) {
    size_t length = strcspn(a, ":");
    return length == strcspn(b, ":") && memcmp(a, b, length) == 0;
}

bool targets_wanted(const PipecProgram *program, const char *kernel) {
    if (program->target == NULL || names_it(program->ast, kernel, program->target)) return true;
    for (size_t i = 0; i < program->kernel_count; i++) {
        const char *other = program->kernels[i];
        bool wanted = program->wanted == NULL || check_is_named(other, program->wanted);
        if (wanted && same_kernel(other, kernel) && names_it(program->ast, other, program->target))
            return false;
    }
    return true;
}

const char *targets_for(const PipecProgram *program, const char *kernel) {
    const Target *own = program->prog != NULL ? program->prog->target : NULL;
    const Target *target = program->target != NULL ? program->target : own;
    if (target == NULL) return NULL;
    if (names_it(program->ast, kernel, target)) return target->name;
    return program->target != NULL && targets_wanted(program, kernel) ? target->name : NULL;
}

static void reopen(void *data) {
    PipecProgram *program = data;
    Targets all = {0};
    targets_add(program->arena, program->ast, program->kernel, &all);
    program->target = NULL;
    if (all.count > 1) program->targets = all;
}

bool targets_reopen(PipecProgram *program) {
    return program->manifest == NULL || attempt(program->arena, reopen, program);
}

bool targets_matter(const PipecProgram *program) {
    const AstNames *names = check_targets(program->ast, program->kernel);
    return program->prog != NULL &&
           (names->count != 1 || !names_it(program->ast, program->kernel, program->prog->target));
}

/* ---- diagnostics of several targets ---------------------------------------------------------- */

typedef struct Merged {
    Diag *diag;
    uint64_t of; /* bit t: target t has it */
} Merged;
typedef VEC(Merged) MergedList;

static bool is_same(const Diag *a, const Diag *b) {
    if (a->code != b->code || a->has_place != b->has_place || strcmp(a->message, b->message) != 0)
        return false;
    return !a->has_place || (a->labels[0].span.lo == b->labels[0].span.lo &&
                             a->labels[0].span.hi == b->labels[0].span.hi);
}

static void merge_one(Arena *arena, MergedList *all, Diag *diag, uint64_t bit) {
    for (size_t i = 0; i < all->count; i++) {
        Merged *old = &all->items[i];
        if ((old->of & bit) != 0 || !is_same(old->diag, diag)) continue;
        old->of |= bit;
        return;
    }
    vec_push(arena, all, ((Merged){diag, bit}));
}

static const char *names_text(Arena *arena, const Targets *targets, uint64_t of) {
    Str text = str_new(arena);
    size_t left = (size_t)__builtin_popcountll(of);
    for (size_t t = 0; t < targets->count; t++) {
        if (!(of >> t & 1)) continue;
        left--;
        const char *between = text.length == 0 ? "" : left == 0 ? " and " : ", ";
        str_printf(&text, "%s`%s`", between, targets->items[t]->name);
    }
    return text.text;
}

void targets_merge(Diags *into, Diags *const *parts, const Targets *targets, const Levels *levels) {
    MergedList all = {0};
    uint64_t every = (UINT64_C(1) << targets->count) - 1;
    for (size_t t = 0; t < targets->count; t++) {
        const Diags *part = parts[t];
        for (size_t i = 0; i < part->items.count; i++)
            merge_one(into->arena, &all, part->items.items[i], UINT64_C(1) << t);
        for (size_t i = 0; i < levels->allows.count; i++)
            into->used[i] = into->used[i] || part->used[i];
        into->made += part->made;
        into->errors_dropped += part->errors_dropped;
        into->errors += part->errors_dropped;
    }
    for (size_t i = 0; i < all.count; i++) {
        Diag *diag = all.items[i].diag;
        if (all.items[i].of != every)
            diag_note(into, diag, "for %s", names_text(into->arena, targets, all.items[i].of));
        vec_push(into->arena, &into->items, diag);
        into->errors += diag->severity == SEVERITY_ERROR;
    }
}
