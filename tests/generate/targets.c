/* Lists of targets for a drawn kernel, which names one: the check of a list must say what the
 * checks of its members say, and each member that is accepted is compiled for itself. */
#include "tests/generate/targets.h"

#include "lib/private.h"

#include <string.h>

#define HEAD "for sm_90a {"

TargetList targets_draw(Arena *arena, uint64_t seed) {
    TargetList list = {.names = NEW_ARRAY(arena, const char *, target_count), .count = 0};
    Random random = {seed * 0x9e3779b97f4a7c15u + 5};
    uint32_t wanted = chance(&random, 60) ? 1 : 2 + draw(&random, 3);
    while (wanted > 1 && (uint32_t)list.count < wanted) {
        const char *name = target_rows[draw(&random, (uint32_t)target_count)].name;
        bool twice = false;
        for (int i = 0; i < list.count; i++) twice = twice || strcmp(list.names[i], name) == 0;
        if (!twice) list.names[list.count++] = name;
    }
    if (list.count == 0) list.names[list.count++] = "sm_90a";
    return list;
}

const char *targets_into(Arena *arena, const char *text, const TargetList *list) {
    const char *head = strstr(text, HEAD);
    if (head == NULL || list->count < 2) return text;
    Str out = str_new(arena);
    str_add_bytes(&out, text, (size_t)(head - text));
    for (int i = 0; i < list->count; i++)
        str_printf(&out, "%s%s", i == 0 ? "for " : ", ", list->names[i]);
    str_printf(&out, " {%s", head + strlen(HEAD));
    return out.text;
}

static PipecProgram *compiled(const char *text, const char *target, bool only_checked) {
    PipecOptions options = {.size = sizeof options,
                            .name = "random.pipe",
                            .target = target,
                            .check_only = only_checked};
    return pipec_compile(text, strlen(text), &options);
}

/* Names that are never used are looked for only if there is no error. */
static bool is_minor(const Diag *diag) {
    return diag->severity == SEVERITY_WARNING || diag->severity == SEVERITY_NOTE;
}

/* Every diagnostic of the one is among those of the other, by code, message and place. */
static const char *missing(const PipecProgram *from, const PipecProgram *in) {
    for (size_t i = 0; i < from->diags->items.count; i++) {
        const Diag *diag = from->diags->items.items[i];
        bool found = is_minor(diag) && in->diags->errors > 0;
        for (size_t k = 0; k < in->diags->items.count && !found; k++) {
            const Diag *other = in->diags->items.items[k];
            found = other->code == diag->code && strcmp(other->message, diag->message) == 0 &&
                    (!diag->has_place || (other->labels[0].span.lo == diag->labels[0].span.lo &&
                                          other->labels[0].span.hi == diag->labels[0].span.hi));
        }
        if (!found) return diag->message;
    }
    return NULL;
}

const char *targets_agree(Arena *arena, const char *text, const TargetList *list) {
    const char *what = NULL;
    PipecStatus worst = PIPEC_FINE;
    PipecProgram *all = compiled(text, NULL, true);
    size_t sum = 0;
    for (int i = 0; i < list->count && what == NULL; i++) {
        PipecProgram *one = compiled(text, list->names[i], true);
        const char *lost = missing(one, all);
        worst = pipec_worse(worst, one->status);
        sum += one->diags->items.count;
        if (lost != NULL)
            what = arena_printf(arena, "the check of %s alone says: %s", list->names[i], lost);
        pipec_program_free(one);
    }
    if (what == NULL && worst != all->status)
        what = arena_printf(arena, "the check of all ends with %d, of each with %d",
                            (int)all->status, (int)worst);
    if (what == NULL && all->diags->items.count > sum)
        what = "the check of all says more than those of each";
    pipec_program_free(all);
    return what;
}
