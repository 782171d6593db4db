/* Capabilities of targets: reports what a target lacks, once per kernel, with the targets that
 * have it. */
#include "prog/prog.h"

#include <string.h>

const Target target_rows[] = {
#define TARGET(spelling, ...) {.name = spelling, __VA_ARGS__},
#include "prog/targets.def"
#undef TARGET
};
const size_t target_count = COUNT_OF(target_rows);

static const char *const capability_words[CAP_COUNT] = {
#define CAPABILITY(name, what) what,
#include "prog/capabilities.def"
#undef CAPABILITY
};

const Target *target_by_name(const char *name) {
    for (size_t i = 0; i < target_count; i++)
        if (strcmp(target_rows[i].name, name) == 0) return &target_rows[i];
    return NULL;
}

const Target *target_default(void) { return target_by_name("sm_90a"); }

const char *targets_listed(Arena *arena, bool (*wanted)(const Target *, int), int what) {
    VEC(const char *) names = {0};
    Str text = str_new(arena);
    for (size_t i = 0; i < target_count; i++)
        if (wanted(&target_rows[i], what)) vec_push(arena, &names, target_rows[i].name);
    for (size_t i = 0; i < names.count; i++)
        str_printf(&text, "%s`%s`",
                   i == 0                 ? ""
                   : i + 1 == names.count ? " and "
                                          : ", ",
                   names.items[i]);
    return text.length ? text.text : "none";
}

static bool any(const Target *row, int what) {
    (void)row, (void)what;
    return true;
}

const char *targets_known(Arena *arena) { return targets_listed(arena, any, 0); }

static bool has(const Target *target, int capability) { return target->has[capability]; }

Diag *target_lacks(Arena *arena, Diags *diags, Prog *prog, Capability capability, Span span) {
    if (prog->lacks >> capability & 1) return NULL;
    prog->lacks |= 1u << capability;
    Diag *diag = diag_at(diags, P0507, span, "`%s` has no %s", prog->target->name,
                         capability_words[capability]);
    if (prog->target_span.hi > 0)
        diag_label(diags, diag, prog->target_span, "the target");
    else
        diag_note(diags, diag, "`%s` was given in the place of the kernel's targets",
                  prog->target->name);
    diag_note(diags, diag, "available on %s", targets_listed(arena, has, (int)capability));
    return diag;
}
