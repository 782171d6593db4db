/* Names for findings: who (role, warp, lane), where in memory (pipe, stage, field; tensor and
 * byte) and where in the text (`.pipe` place, PTX line).
 *
 * The names come from the manifest: ranges of shared memory, roles by warp, marks by PTX line.
 * Without it, findings name warps, addresses and PTX lines. */
#include "emulator/findings/names.h"

#include "emulator/findings/demangle.h"

#include <stdio.h>

/* ---- the text -------------------------------------------------------------------------------- */

static uint32_t line_of(const Machine *machine, uint32_t pc) {
    return machine->program->code[pc].line;
}

const ManifestMark *mark_of_code(const Machine *machine, uint32_t pc) {
    const ManifestMark *best = NULL;
    for (size_t i = 0; i < machine->manifest->marks.count; i++)
        if (machine->manifest->marks.items[i].line <= line_of(machine, pc))
            best = &machine->manifest->marks.items[i];
    return best;
}

/* The rest of a line, without blanks around it, and at most 110 bytes of it */
static const char *trimmed(Arena *arena, const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    size_t length = 0;
    while (at + length < end && at[length] != '\n' && length < 110) length++;
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\r')) length--;
    char *text = arena_copy(arena, at, length);
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' '; /* nvcc's, which would be shown as an invisible character */
    return text;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The name in `.file NUMBER "NAME"`; NULL: none */
static const char *file_numbered(const Machine *machine, const Program *program, uint32_t number) {
    const char *at = program->text;
    uint32_t found = 0;
    char name[256];
    while ((at = strstr(at, ".file")) != NULL) {
        at += 5;
        if (sscanf(at, " %u \"%255[^\"]\"", &found, name) != 2 || found != number) continue;
        return arena_printf(machine->arena, "%s", base_name(name));
    }
    return NULL;
}

/* "k.cu:34" by the last `.loc` of the function before this line; NULL: there is none, or the
 * manifest has better places */
static const char *source_of_line(const Machine *machine, const Program *program, uint32_t line) {
    const char *at = program->text, *end = at + program->length;
    uint32_t file = 0, source_line = 0;
    if (machine->manifest->marks.count > 0) return NULL;
    for (uint32_t n = 1; n < line && at < end; n++) {
        const char *word = at;
        while (word < end && (*word == ' ' || *word == '\t')) word++;
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        bool begins = *word == '.' && (!strncmp(word, ".func", 5) || !strncmp(word, ".entry", 6) ||
                                       !strncmp(word, ".visible", 8));
        if (begins) source_line = 0;
        if (!strncmp(word, ".loc", 4)) (void)sscanf(word, ".loc %u %u", &file, &source_line);
        at = newline ? newline + 1 : end;
    }
    const char *name = source_line ? file_numbered(machine, program, file) : NULL;
    return name ? arena_printf(machine->arena, "%s:%u", name, source_line) : NULL;
}

/* The function that a call leads to; NULL: the entry */
static const char *function_of(const Program *program, uint32_t pc) {
    for (size_t i = 1; i < program->functions.count; i++)
        if (pc >= program->functions.items[i].first && pc < program->functions.items[i].end)
            return program->functions.items[i].name;
    return NULL;
}

static const char *start_of_line(const Program *program, uint32_t line) {
    const char *at = program->text, *end = at + program->length;
    for (uint32_t n = 1; n < line && at < end; n++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    return at;
}

static const char *name_line(const Machine *machine, const Program *program, uint32_t pc) {
    uint32_t line = program->code[pc].line;
    const char *at = start_of_line(program, line), *end = program->text + program->length;
    const char *source = source_of_line(machine, program, line),
               *function = function_of(program, pc);
    Str out = str_new(machine->arena);
    str_printf(&out, "PTX line %u", line);
    if (function) str_printf(&out, " of `%s`", demangle_or_keep(machine->arena, function));
    if (source) str_printf(&out, " (%s)", source);
    str_printf(&out, ": `%s`", trimmed(machine->arena, at, end));
    return out.text;
}

const char *name_code(const Machine *machine, uint32_t pc) {
    return name_line(machine, machine->program, pc);
}

static const Program *program_of(const Machine *machine, const Actor *actor) {
    return actor->program ? actor->program : machine->program;
}

const char *name_step(const Machine *machine, const Actor *actor) {
    return name_line(machine, program_of(machine, actor), actor->pc);
}

/* The word of the line that begins as the opcode does: guards and labels may stand before it */
const char *name_opcode(const Machine *machine, const Actor *actor) {
    const Program *program = program_of(machine, actor);
    const Inst *inst = &program->code[actor->pc];
    const char *spelling = opcode_spellings[inst->opcode],
               *line = start_of_line(program, inst->line), *end = strchr(line, '\n');
    size_t root = strcspn(spelling, "."), length = end ? (size_t)(end - line) : strlen(line);
    for (size_t i = 0; i + root <= length; i++) {
        if (i > 0 && !strchr(" \t:;{}", line[i - 1])) continue;
        if (strncmp(line + i, spelling, root) != 0) continue;
        return arena_copy(machine->arena, line + i, strcspn(line + i, " \t;\r\n"));
    }
    return spelling;
}

const Inst *actor_inst(const Machine *machine, const Actor *actor) {
    return &program_of(machine, actor)->code[actor->pc];
}

const char *name_block(const Machine *machine, const Actor *actor) {
    if (actor->program && actor->launch != machine->launch_index)
        return arena_printf(machine->arena, "block %llu of launch %zu (`%s`)",
                            (unsigned long long)actor->block, actor->launch + 1,
                            demangle_or_keep(machine->arena, actor->program->entry));
    if (machine->blocks == 1) return "block 0";
    return grid_place(machine, actor->block) + strlen("in ");
}

/* Without marks, the source is the text of the PTX itself, if there is one text. */
bool span_of_code(const Machine *machine, const Program *program, uint32_t pc, Span *span) {
    const Source *source = machine->diags->source;
    const ManifestMark *mark = program == machine->program ? mark_of_code(machine, pc) : NULL;
    if (source && mark) {
        *span = mark->span;
        return true;
    }
    if (!source || machine->manifest->marks.count || source->length != program->length ||
        memcmp(source->text, program->text, program->length) != 0)
        return false;
    const char *line = start_of_line(program, program->code[pc].line);
    size_t blank = strspn(line, " \t"), length = strcspn(line + blank, "\r\n");
    span->lo = (uint32_t)(line - program->text + (ptrdiff_t)blank);
    span->hi = span->lo + (uint32_t)length;
    return true;
}

Diag *diag_of_code(Machine *machine, Code code, uint32_t pc, const char *message) {
    const ManifestMark *mark = mark_of_code(machine, pc);
    Span span;
    if (!span_of_code(machine, machine->program, pc, &span))
        return diag_plain(machine->diags, code, "%s", message);
    Diag *diag = diag_at(machine->diags, code, span, "%s", message);
    if (mark && mark->what) diag_primary(machine->diags, diag, "%s", mark->what);
    return diag;
}

void note_run(Machine *machine, Diag *diag, uint64_t block, uint32_t pc) {
    diag_note(machine->diags, diag, "%s", name_code(machine, pc));
    if (machine->launch_count > 1)
        diag_note(machine->diags, diag, "in launch %zu of %zu, kernel `%s`",
                  machine->launch_index + 1, machine->launch_count,
                  demangle_or_keep(machine->arena, machine->program->entry));
    if (machine->blocks > 1) diag_note(machine->diags, diag, "%s", grid_place(machine, block));
    if (machine->seed)
        diag_note(machine->diags, diag, "schedule of seed %llu", (unsigned long long)machine->seed);
}

/* ---- agents ---------------------------------------------------------------------------------- */

const ManifestRole *role_of_warp(const Machine *machine, uint32_t warp) {
    for (size_t i = 0; i < machine->manifest->roles.count; i++) {
        const ManifestRole *role = &machine->manifest->roles.items[i];
        if (warp >= (uint32_t)role->first_warp &&
            warp - (uint32_t)role->first_warp < (uint32_t)role->warps)
            return role;
    }
    return NULL;
}

Actor actor_of(const Agent *agent) {
    const Block *block = agent->warp->block;
    return (Actor){.block = block->index,
                   .rank = block->rank,
                   .warp = agent->warp->index,
                   .lanes = agent->alone ? 1u << agent->lane : 0,
                   .pc = agent->pc,
                   .async = agent->async != 0};
}

/* ", lane 3", ", lanes 0-7", ", lanes 0x00010003" */
static void name_lanes(uint32_t lanes, Str *out) {
    if (!lanes) return;
    uint32_t first = first_lane(lanes), count = (uint32_t)__builtin_popcount(lanes);
    uint32_t run = lanes >> first;
    if (count == 1)
        str_printf(out, ", lane %u", first);
    else if ((run & (run + 1)) == 0)
        str_printf(out, ", lanes %u-%u", first, first + count - 1);
    else
        str_printf(out, ", lanes 0x%08x", lanes);
}

void name_actor(const Machine *machine, const Actor *actor, Str *out) {
    const ManifestRole *role = role_of_warp(machine, actor->warp);
    bool matrix = actor_inst(machine, actor)->opcode == OP_WGMMA;
    if (actor->async) str_add(out, matrix ? "a wgmma of " : "a copy of ");
    if (role) {
        str_printf(out, "role `%s` (warp %u", role->name, actor->warp);
        name_lanes(actor->lanes, out);
        str_char(out, ')');
    } else {
        str_printf(out, "warp %u", actor->warp);
        name_lanes(actor->lanes, out);
    }
    if (machine->cluster_size > 1) str_printf(out, " of rank %u", actor->rank);
}

/* ---- memory ---------------------------------------------------------------------------------- */

const ManifestShared *shared_range(const Machine *machine, uint64_t address, uint32_t *stage,
                                   uint32_t *byte) {
    if (address < machine->dynamic_base) return NULL;
    uint64_t offset = address - machine->dynamic_base;
    for (size_t i = 0; i < machine->manifest->shared.count; i++) {
        const ManifestShared *range = &machine->manifest->shared.items[i];
        bool barrier = range->kind == SHARED_FULL || range->kind == SHARED_EMPTY;
        uint64_t stride = barrier ? 8 : range->stride, bytes = barrier ? 8 : range->bytes;
        for (*stage = 0; *stage < range->stages; ++*stage) {
            uint64_t first = range->offset + *stage * stride;
            if (offset < first || offset - first >= bytes) continue;
            *byte = (uint32_t)(offset - first);
            return range;
        }
    }
    return NULL;
}

/* "byte 16 of `bars`" by the variables of the PTX; NULL: none is there */
static const char *name_variable(const Machine *machine, uint64_t address) {
    const Program *program = machine->program;
    for (size_t i = 0; i < program->shared.count; i++) {
        const SharedVariable *one = &program->shared.items[i];
        uint64_t base = one->is_dynamic ? machine->dynamic_base : one->address,
                 bytes = one->is_dynamic ? machine->dynamic_bytes : one->bytes;
        if (address >= base && address - base < bytes)
            return arena_printf(machine->arena, "byte %llu of `%s`",
                                (unsigned long long)(address - base),
                                demangle_or_keep(machine->arena, one->name));
    }
    return NULL;
}

const char *name_shared(const Machine *machine, uint64_t address) {
    uint32_t stage = 0, byte = 0;
    const ManifestShared *range = shared_range(machine, address, &stage, &byte);
    if (!range) return name_variable(machine, address);
    Arena *arena = machine->arena;
    const char *pipe = range->pipe ? range->pipe : "?", *field = range->field ? range->field : "?";
    switch (range->kind) {
    case SHARED_FULL:
        return arena_printf(arena, "the full barrier of stage %u of `%s`", stage, pipe);
    case SHARED_EMPTY:
        return arena_printf(arena, "the empty barrier of stage %u of `%s`", stage, pipe);
    case SHARED_FIELD:
        return arena_printf(arena, "byte %u of field `%s`, stage %u of `%s`", byte, field, stage,
                            pipe);
    case SHARED_TILE: return arena_printf(arena, "byte %u of the tile `%s`", byte, field);
    case SHARED_SCRATCH:
        return arena_printf(arena, "byte %u of the scratch of `%s`", byte,
                            range->field ? field : pipe);
    }
    return NULL;
}

const char *name_mbarrier(const Machine *machine, uint64_t address) {
    uint32_t stage = 0, byte = 0;
    const char *name = name_shared(machine, address);
    if (shared_range(machine, address, &stage, &byte)) return name;
    return arena_printf(machine->arena, "the mbarrier at shared address %llu%s%s%s",
                        (unsigned long long)address, name ? " (" : "", name ? name : "",
                        name ? ")" : "");
}

const char *name_barrier(const Machine *machine, const Block *home, uint64_t address) {
    const char *name = name_mbarrier(machine, address);
    return machine->cluster_size > 1
               ? arena_printf(machine->arena, "%s of rank %u", name, home->rank)
               : name;
}

static void name_global(const Machine *machine, uint64_t address, Str *out) {
    const Region *region = memory_region(machine, address);
    if (region && address - region->base < region->bytes + GLOBAL_GAP / 2)
        str_printf(out, "byte %llu of `%s`, which has %llu bytes",
                   (unsigned long long)(address - region->base), region->name,
                   (unsigned long long)region->bytes);
    else if (machine->region_count > 0 && address < GLOBAL_BASE &&
             address >= GLOBAL_BASE - GLOBAL_GAP / 2)
        str_printf(out, "%llu bytes before `%s`", (unsigned long long)(GLOBAL_BASE - address),
                   machine->regions[0].name);
    else
        str_printf(out, "global address 0x%llx", (unsigned long long)address);
}

void name_memory(const Machine *machine, const MemoryRange *range, Str *out) {
    unsigned long long address = range->address;
    const char *name = range->space == SPACE_SHARED ? name_shared(machine, range->address) : NULL;
    switch (range->space) {
    case SPACE_SHARED:
        str_printf(out, "shared address %llu", address);
        if (name) str_printf(out, " (%s)", name);
        if (machine->cluster_size > 1) str_printf(out, " of rank %u", range->rank);
        break;
    case SPACE_LOCAL: str_printf(out, "local address 0x%llx", address); break;
    case SPACE_PARAM: str_printf(out, "parameter address 0x%llx", address); break;
    case SPACE_GLOBAL:
    case SPACE_CONST:
    case SPACE_GENERIC: name_global(machine, range->address, out); break;
    }
}

static void name_indices(const char *name, const int64_t *at, uint32_t rank, bool inner_first,
                         Str *out) {
    bool plain = !strpbrk(name, ":["); /* not a word such as `out:y.npy:f32[8]` */
    str_printf(out, plain ? "`%s[" : "element [", name);
    for (uint32_t i = 0; i < rank; i++)
        str_printf(out, "%s%lld", i ? ", " : "", (long long)at[inner_first ? rank - 1 - i : i]);
    str_printf(out, plain ? "]`" : "] of `%s`", name);
}

void name_coordinates(const TensorMap *map, const int64_t *at, Str *out) {
    bool inside = true;
    for (uint32_t i = 0; i < map->rank; i++)
        inside &= at[i] >= 0 && (uint64_t)at[i] < map->extents[i];
    name_indices(map->name, at, map->rank, true, out);
    if (!inside) str_add(out, ", outside of the tensor,");
}

/* False: the byte belongs to no element. */
static bool element_of(const Region *region, uint64_t byte, int64_t *at) {
    int64_t left = (int64_t)byte;
    for (uint32_t i = 0; i < region->rank; i++) {
        if (region->strides[i] <= 0) return false;
        at[i] = left / region->strides[i];
        if (at[i] >= region->extents[i]) return false;
        left -= at[i] * region->strides[i];
    }
    return region->rank > 0 && left < (int64_t)region->element_bytes;
}

/* False: it is in no element of a tensor */
static bool name_if_element(const Machine *machine, uint64_t address, Str *out) {
    const Region *region = memory_region(machine, address);
    int64_t at[MAX_RANK];
    if (!region || !element_of(region, address - region->base, at)) return false;
    name_indices(region->name, at, region->rank, false, out);
    return true;
}

void name_word(const Machine *machine, uint64_t address, Str *out) {
    const Region *region = memory_region(machine, address);
    if (name_if_element(machine, address, out)) return;
    if (region && address - region->base < region->bytes)
        str_printf(out, "byte %llu of `%s`", (unsigned long long)(address - region->base),
                   region->name);
    else
        name_global(machine, address, out);
}

void name_element(const Machine *machine, const MemoryRange *range, Str *out) {
    uint32_t stage = 0, byte = 0;
    if (range->space == SPACE_SHARED) {
        const ManifestShared *shared = shared_range(machine, range->address, &stage, &byte);
        if (shared && shared->kind == SHARED_FIELD && shared->pipe && shared->field) {
            str_printf(out, "`%s.%s` stage %u, byte %u (shared address %llu", shared->pipe,
                       shared->field, stage, byte, (unsigned long long)range->address);
            if (machine->cluster_size > 1) str_printf(out, " of rank %u", range->rank);
            str_char(out, ')');
            return;
        }
    } else if (name_if_element(machine, range->address, out)) {
        return;
    }
    name_memory(machine, range, out);
}

const char *name_place(const Machine *machine, const Actor *actor) {
    const Program *program = program_of(machine, actor);
    uint32_t line = program->code[actor->pc].line;
    const ManifestMark *mark =
        program == machine->program ? mark_of_code(machine, actor->pc) : NULL;
    const char *source = NULL;
    const Source *text = machine->diags->source;
    if (mark && text)
        source =
            arena_printf(machine->arena, "%s:%u", base_name(source_file(text, mark->span.lo)->name),
                         source_line(text, mark->span.lo));
    else
        source = source_of_line(machine, program, line);
    return source ? arena_printf(machine->arena, "%s, PTX line %u", source, line)
                  : arena_printf(machine->arena, "PTX line %u", line);
}
