/* The edits of operators.def, and the mutants that they make. A temporary register lives in a
 * scope of its own, on the line of its instruction. */
#include "tests/ptxmutants/ptxmutants.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const Line *here(const Site *site) { return &site->lines->items[site->at]; }

static bool replace(const Site *site, size_t line, const char *text) {
    vec_push(site->arena, &site->mutant->edits, (Edit){line, text});
    return true;
}

/* The instruction in the place of its line, with its guard */
static bool becomes(Site *site, const char *instruction) {
    return replace(
        site, site->at,
        arena_printf(site->arena, "    %s%s;", line_guard(site->arena, here(site)), instruction));
}

/* ---- instructions that go, or come twice ----------------------------------------------------- */

bool edit_drop(Site *site) { return replace(site, site->at, ""); }

bool edit_drop_next(Site *site) { return replace(site, line_next(site->lines, site->at), ""); }

bool edit_drop_both(Site *site) { return edit_drop(site) && edit_drop_next(site); }

/* Drops what follows of the same kind: arrivals at the barrier of the cluster, and their waits */
bool edit_drop_later(Site *site) {
    size_t first = line_next(site->lines, site->at);
    for (size_t i = first + 1; i < site->lines->count; i++)
        if (line_is(&site->lines->items[i], "barrier.cluster")) replace(site, i, "");
    return site->mutant->edits.count > 0;
}

/* The waits for bulk groups of the role that are in no loop: `text` of each */
static bool change_drain(Site *site, const char *(*text)(const Site *site, const Line *line)) {
    for (size_t i = 0; i <= site->at; i++) {
        const Line *line = &site->lines->items[i];
        if (!line->looped && strcmp(line->role, here(site)->role) == 0 &&
            line_is(line, "cp.async.bulk.wait_group"))
            replace(site, i, text(site, line));
    }
    return true;
}

static const char *nothing(const Site *site, const Line *line) {
    (void)site, (void)line;
    return "";
}

static const char *weaker(const Site *site, const Line *line) {
    int64_t groups = strtoll(line->operands[0], NULL, 10) + site->row->amount;
    return arena_printf(site->arena, "    %s%s %" PRId64 ";", line_guard(site->arena, line),
                        line->opcode, groups);
}

bool edit_drop_drain(Site *site) { return change_drain(site, nothing); }

bool edit_weaken_drain(Site *site) { return change_drain(site, weaker); }

bool edit_twice(Site *site) {
    return replace(site, site->at,
                   arena_printf(site->arena, "%s %s", here(site)->text, here(site)->text));
}

bool edit_unguard(Site *site) {
    return replace(
        site, site->at,
        arena_printf(site->arena, "    %s;", line_with(site->arena, here(site), -1, "")));
}

/* ---- operands -------------------------------------------------------------------------------- */

static int operand_index(const Site *site) {
    int index = site->row->operand;
    return index >= 0 ? index : (int)here(site)->operand_count - 1;
}

static bool is_number(const char *operand) {
    return operand[strspn(operand, "-0123456789")] == '\0';
}

/* The instruction with `operation` applied to a register operand: "add.s32", "xor.b16" */
static bool through_register(Site *site, int index, const char *type, const char *operation,
                             const char *source, const char *list) {
    const Line *line = here(site);
    return replace(site, site->at,
                   arena_printf(site->arena,
                                "    { .reg .%s %%mutated; %s %%mutated, %s, %" PRId64 "; %s%s; }",
                                type, operation, source, site->row->amount,
                                line_guard(site->arena, line),
                                line_with(site->arena, line, index, list)));
}

/* Adds the amount to a number, a register or the constant of an address */
bool edit_add(Site *site) {
    int index = operand_index(site);
    if (index < 0 || index >= (int)here(site)->operand_count) return false;
    const char *operand = here(site)->operands[index];
    int64_t amount = site->row->amount;
    if (operand[0] == '%')
        return through_register(site, index, "b32", "add.s32", operand, "%mutated");
    if (is_number(operand))
        operand =
            arena_printf(site->arena, "%" PRId64, (int64_t)strtoll(operand, NULL, 10) + amount);
    else if (operand[0] == '[')
        operand = arena_printf(site->arena, "%.*s+%" PRId64 "]", (int)strcspn(operand, "+]"),
                               operand, address_constant(operand) + amount);
    else
        return false;
    return becomes(site, line_with(site->arena, here(site), index, operand));
}

/* Exclusive or with the amount */
bool edit_flip(Site *site) {
    int index = operand_index(site);
    const char *operand = here(site)->operands[index];
    const char *type = strncmp(operand, "%h", 2) == 0 ? "b16" : "b32";
    if (operand[0] == '%')
        return through_register(site, index, type, arena_printf(site->arena, "xor.%s", type),
                                operand, "%mutated");
    int64_t flipped = strtoll(operand, NULL, 10) ^ site->row->amount;
    return becomes(site, line_with(site->arena, here(site), index,
                                   arena_printf(site->arena, "%" PRId64, flipped)));
}

bool edit_zero(Site *site) {
    return becomes(site, line_with(site->arena, here(site), operand_index(site), "0"));
}

/* The count of a named barrier, or of all threads, less 32 */
bool edit_less_warp(Site *site) {
    const Line *line = here(site);
    long count = 0;
    for (size_t i = 0; i < site->lines->count && count == 0; i++) {
        const char *mark = strstr(site->lines->items[i].text, ".reqntid ");
        if (mark != NULL) count = strtol(mark + strlen(".reqntid "), NULL, 10);
    }
    if (line->operand_count > 1) count = strtol(line->operands[1], NULL, 10);
    return count >= 64 && becomes(site, arena_printf(site->arena, "%s %s, %ld", line->opcode,
                                                     line->operands[0], count - 32));
}

/* The operand with the coordinates of a tensor copy; -1: there is none */
static int coordinates(const Line *line) {
    for (size_t i = 0; i < line->operand_count; i++)
        if (strchr(line->operands[i], '{') != NULL) return (int)i;
    return -1;
}

bool edit_swap_coordinates(Site *site) {
    int index = coordinates(here(site));
    const char *operand = here(site)->operands[index], *list = strchr(operand, '{') + 1;
    const char *second = strchr(list, ',') + 2, *rest = second + strcspn(second, ",}");
    operand = arena_printf(site->arena, "%.*s%.*s, %.*s%s", (int)(list - operand), operand,
                           (int)(rest - second), second, (int)(second - 2 - list), list, rest);
    return becomes(site, line_with(site->arena, here(site), index, operand));
}

bool edit_add_coordinate(Site *site) {
    int index = coordinates(here(site));
    if (index < 0) return false;
    const char *operand = here(site)->operands[index], *list = strchr(operand, '{') + 1;
    size_t length = strcspn(list, ",}");
    return through_register(site, index, "b32", "add.s32", arena_copy(site->arena, list, length),
                            arena_printf(site->arena, "%.*s%%mutated%s", (int)(list - operand),
                                         operand, list + length));
}

/* ---- modifiers ------------------------------------------------------------------------------- */

/* `.relaxed` with a scope behind the words of the pattern */
bool edit_relax(Site *site) {
    const Line *line = here(site);
    size_t length = strcspn(site->row->instruction, " ");
    const char *scope = line_is(line, "mbarrier +shared::cluster") ? "cluster" : "cta";
    Line relaxed = *line;
    relaxed.opcode = arena_printf(site->arena, "%.*s.relaxed.%s%s", (int)length, line->opcode,
                                  scope, line->opcode + length);
    return becomes(site, line_with(site->arena, &relaxed, -1, ""));
}

/* Without `.noinc` */
bool edit_cut(Site *site) {
    const char *word = strstr(here(site)->opcode, ".noinc");
    if (word == NULL) return false;
    Line shorter = *here(site);
    shorter.opcode = arena_printf(site->arena, "%.*s%s", (int)(word - shorter.opcode),
                                  shorter.opcode, word + strlen(".noinc"));
    return becomes(site, line_with(site->arena, &shorter, -1, ""));
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The last access before the arrival that stands in the same block; `lines->count`: none */
static size_t last_access(const Site *site) {
    for (size_t i = site->at; i-- > 0;) {
        const Line *line = &site->lines->items[i];
        if (line->label != NULL || line_is(line, "bra") || line_is(line, "mbarrier.try_wait"))
            break;
        if (line_accesses(line) || line_is(line, "cp.async.bulk.tensor.#.global")) return i;
    }
    return site->lines->count;
}

static bool uses(const Line *line, const char *name, size_t from) {
    for (size_t i = from; i < line->operand_count; i++)
        if (operand_uses(line->operands[i], name)) return true;
    return line->guard != NULL && operand_uses(line->guard, name);
}

/* The instruction computes a register for one of the lines that move */
static bool is_needed(const Lines *lines, size_t at, const bool *moves, size_t end) {
    const Line *line = &lines->items[at];
    if (line->opcode == NULL || line->operand_count == 0) return false;
    for (size_t i = at + 1; i <= end; i++)
        if (moves[i] && uses(&lines->items[i], line->operands[0], i == end ? 0 : 1)) return true;
    return false;
}

/* Moves the arrival, and the computation of its address, above the last access of its block */
bool edit_above_access(Site *site) {
    const Lines *lines = site->lines;
    size_t to = last_access(site);
    if (to >= lines->count) return false;
    bool *moves = arena_alloc(site->arena, lines->count);
    Str text = str_new(site->arena);
    moves[site->at] = true;
    for (size_t i = site->at; i-- > to;) moves[i] = is_needed(lines, i, moves, site->at);
    if (moves[to]) return false;
    str_add(&text, "");
    for (size_t i = to + 1; i <= site->at; i++) {
        if (!moves[i]) continue;
        str_printf(&text, "    %s", lines->items[i].text);
        replace(site, i, "");
    }
    return replace(site, to, arena_printf(site->arena, "%s%s", text.text, lines->items[to].text));
}

/* Moves the last wait for a group before the arrival behind it */
bool edit_above_wait(Site *site) {
    size_t wait = site->at;
    do
        if (wait-- == 0) return false;
    while (!line_is(&site->lines->items[wait], "wgmma.wait_group") &&
           !line_is(&site->lines->items[wait], "cp.async.bulk.wait_group"));
    replace(site, wait, "");
    return replace(
        site, site->at,
        arena_printf(site->arena, "%s%s", here(site)->text, site->lines->items[wait].text));
}

/* Stages 0 and 1 of a ring change places */
bool edit_swap_stages(Site *site) {
    const char *stage = here(site)->operands[0], *cursor = here(site)->operands[1];
    return replace(site, site->at,
                   arena_printf(site->arena,
                                "    { .reg .pred %%low; setp.lt.u32 %%low, %s, 2; mov.b32 %s, %s; "
                                "@%%low xor.b32 %s, %s, 1; }",
                                cursor, stage, cursor, stage, cursor));
}

/* atom.inc by a load and a store */
bool edit_plain_increment(Site *site) {
    const Line *line = here(site);
    if (line->operand_count != 3) return false;
    const char *old = line->operands[0], *at = line->operands[1], *most = line->operands[2];
    const char *guard = line_guard(site->arena, line);
    return replace(site, site->at,
                   arena_printf(site->arena,
                                "    { .reg .pred %%last; .reg .b32 %%more; %sld.global.b32 %s, "
                                "%s; %ssetp.ge.u32 %%last, %s, %s; %sadd.s32 %%more, %s, 1; "
                                "%sselp.b32 %%more, 0, %%more, %%last; %sst.global.b32 %s, "
                                "%%more; }",
                                guard, old, at, guard, old, most, guard, old, guard, guard, at));
}

/* ---- mutants --------------------------------------------------------------------------------- */

static const Operator operators[] = {
#define OPERATOR(name, instruction, place, edit, operand, amount, why)                             \
    {name, instruction, site_##place, edit_##edit, operand, amount, why},
#include "tests/ptxmutants/operators.def"
#undef OPERATOR
};

size_t operator_count(void) { return COUNT_OF(operators); }

const Operator *operator_row(size_t index) { return &operators[index]; }

/* The mutants of one operator */
static void apply(Arena *arena, const Lines *lines, const Operator *row, Mutants *out) {
    const char *role = NULL;
    int number = 0;
    for (size_t at = 0; at < lines->count; at++) {
        const Line *line = &lines->items[at];
        Mutant mutant = {.row = row, .line = at};
        Site site = {arena, lines, at, row, &mutant};
        if (!line_is(line, row->instruction) || !row->place(&site) || !row->apply(&site)) continue;
        if (role == NULL || strcmp(role, line->role) != 0) number = 0;
        role = line->role;
        mutant.place = arena_printf(arena, "%s %d", *role ? role : "kernel", ++number);
        vec_push(arena, out, mutant);
    }
}

void mutants_of(Arena *arena, const Lines *lines, Mutants *out) {
    for (size_t i = 0; i < COUNT_OF(operators); i++) apply(arena, lines, &operators[i], out);
}

const char *mutant_text(Arena *arena, const Lines *lines, const Mutant *mutant) {
    Str text = str_new(arena);
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i].text;
        for (size_t e = 0; e < mutant->edits.count; e++)
            if (mutant->edits.items[e].line == i) line = mutant->edits.items[e].text;
        str_add(&text, line);
        str_char(&text, '\n');
    }
    return text.text;
}
