/* launch: numbers, texts and manifests as bytes. Numbers have a sign bit at the end and seven bits
 * in each byte, because most are small. */
#include "launch/pack.h"

#include <string.h>

#define BITS 7
#define MORE 0x80 /* another byte follows */

static void write_number(Pack *pack, uint64_t value) {
    char bytes[10];
    size_t count = 0;
    for (; value >= MORE; value >>= BITS) bytes[count++] = (char)(value | MORE);
    bytes[count++] = (char)value;
    str_add_bytes(pack->out, bytes, count);
}

static uint64_t read_number(Pack *pack) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && pack->at < pack->end; shift += BITS) {
        unsigned char byte = (unsigned char)*pack->at++;
        value |= (uint64_t)(byte & (MORE - 1)) << shift;
        if (byte < MORE) return value;
    }
    pack->damaged = true;
    pack->at = pack->end;
    return 0;
}

int64_t pack_number(Pack *pack, int64_t value) {
    if (pack->out != NULL) {
        write_number(pack, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
        return value;
    }
    uint64_t read = read_number(pack);
    return (int64_t)(read >> 1 ^ (read & 1 ? UINT64_MAX : 0));
}

size_t pack_rows(Pack *pack, size_t count) {
    if (pack->out != NULL) {
        write_number(pack, count);
        return count;
    }
    uint64_t read = read_number(pack);
    if (read <= (uint64_t)(pack->end - pack->at)) return (size_t)read;
    pack->damaged = true;
    pack->at = pack->end;
    return 0;
}

/* Its length and 1, the text, and a NUL, so that it need not be copied when it is read */
const char *pack_text(Pack *pack, const char *text) {
    size_t length = pack_rows(pack, text != NULL ? strlen(text) + 1 : 0);
    if (pack->out != NULL) {
        if (length > 0) str_add_bytes(pack->out, text, length);
        return text;
    }
    const char *read = pack->at;
    if (length == 0) return NULL;
    pack->at += length;
    if (read[length - 1] == 0) return read;
    pack->damaged = true;
    return "";
}

/* ---- manifests ------------------------------------------------------------------------------- */

static void pack_formula(Pack *pack, Formula *formula) {
    size_t count = pack_rows(pack, (size_t)formula->count);
    FormulaStep *read = NULL;
    if (pack->out == NULL && count > 0) {
        read = NEW_ARRAY(pack->arena, FormulaStep, count);
        *formula = (Formula){read, (int)count};
    }
    for (size_t i = 0; i < count; i++) {
        FormulaStep step = formula->steps[i];
        PACK(pack, step.op);
        PACK(pack, step.value);
        if (read != NULL) read[i] = step;
    }
}

static void pack_symbol(Pack *pack, ManifestSymbol *row) {
    PACK_TEXT(pack, row->name);
    PACK(pack, row->is_extent);
    PACK(pack, row->is_stride);
    PACK(pack, row->parameter);
    PACK(pack, row->axis);
    PACK(pack, row->times);
    PACK(pack, row->plus);
    PACK(pack, row->is_float);
    PACK(pack, row->is_row);
}

/* False: the rank is none, and nothing is read by it */
static bool fits_rank(Pack *pack, int *rank) {
    if (*rank >= 0 && *rank <= MAX_RANK) return true;
    pack->damaged = true;
    *rank = 0;
    return false;
}

static void pack_parameter(Pack *pack, ManifestParameter *row) {
    PACK_TEXT(pack, row->name);
    PACK(pack, row->kind);
    PACK(pack, row->mode);
    PACK(pack, row->type);
    PACK(pack, row->rank);
    if (!fits_rank(pack, &row->rank)) return;
    for (int axis = 0; axis < row->rank; axis++) pack_formula(pack, &row->extents[axis]);
    PACK(pack, row->symbol);
    PACK(pack, row->compared);
    PACK(pack, row->alignment);
    PACK(pack, row->stride_alignment);
    PACK(pack, row->joined);
    PACK(pack, row->moves_in);
    PACK(pack, row->moves_out);
    PACK(pack, row->vector);
}

static void pack_map(Pack *pack, ManifestMap *row) {
    PACK(pack, row->parameter);
    PACK(pack, row->type);
    PACK(pack, row->rank);
    if (!fits_rank(pack, &row->rank)) return;
    for (int axis = 0; axis < row->rank; axis++) {
        pack_formula(pack, &row->extents[axis]);
        pack_formula(pack, &row->strides[axis]);
        PACK(pack, row->box[axis]);
    }
    PACK(pack, row->swizzle);
    PACK(pack, row->promotion);
    PACK(pack, row->stored);
}

static void pack_precondition(Pack *pack, ManifestPrecondition *row) {
    pack_formula(pack, &row->condition);
    PACK_TEXT(pack, row->text);
    PACK_TEXT(pack, row->reason);
    PACK_TEXT(pack, row->help);
}

static void pack_shared(Pack *pack, ManifestShared *row) {
    PACK(pack, row->kind);
    PACK_TEXT(pack, row->pipe);
    PACK_TEXT(pack, row->field);
    PACK(pack, row->offset);
    PACK(pack, row->bytes);
    PACK(pack, row->stages);
    PACK(pack, row->stride);
    PACK(pack, row->count);
}

static void pack_role(Pack *pack, ManifestRole *row) {
    PACK_TEXT(pack, row->name);
    PACK(pack, row->first_warp);
    PACK(pack, row->warps);
    PACK(pack, row->instances);
    PACK(pack, row->registers);
    PACK(pack, row->held);
    PACK(pack, row->in_turn);
}

static void pack_axis(Pack *pack, ManifestAxis *row) {
    PACK_TEXT(pack, row->name);
    pack_formula(pack, &row->extent);
}

static void pack_work(Pack *pack, ManifestWork *row) {
    PACK(pack, row->kind);
    PACK(pack, row->role);
    PACK(pack, row->parent);
    PACK(pack, row->of);
    PACK(pack, row->variable);
    pack_formula(pack, &row->lo);
    pack_formula(pack, &row->hi);
    pack_formula(pack, &row->times);
    PACK(pack, row->parameter);
    PACK_TEXT(pack, row->pipe);
    PACK(pack, row->amount);
    PACK(pack, row->own);
    PACK(pack, row->pieces);
    PACK(pack, row->bound);
    PACK(pack, row->varies);
    PACK(pack, row->beside);
    PACK(pack, row->end);
}

static void pack_sum(Pack *pack, ManifestSum *row) {
    PACK_TEXT(pack, row->text);
    PACK_TEXT(pack, row->why);
    PACK(pack, row->threads);
}

static void pack_name(Pack *pack, const char **name) { PACK_TEXT(pack, *name); }

void pack_manifest(Pack *pack, Manifest *manifest) {
    PACK_TEXT(pack, manifest->kernel);
    PACK_TEXT(pack, manifest->target);
    PACK(pack, manifest->ptx_major);
    PACK(pack, manifest->ptx_minor);
    PACK(pack, manifest->ptx_hash);
    PACK_ROWS(pack, &manifest->symbols, pack_symbol);
    PACK_ROWS(pack, &manifest->parameters, pack_parameter);
    PACK_ROWS(pack, &manifest->maps, pack_map);
    PACK_ROWS(pack, &manifest->preconditions, pack_precondition);
    pack_formula(pack, &manifest->tiles);
    PACK(pack, manifest->persistent);
    PACK(pack, manifest->dynamic);
    PACK(pack, manifest->ordered);
    PACK(pack, manifest->threads);
    PACK(pack, manifest->shared_bytes);
    PACK(pack, manifest->staged_bytes);
    for (int axis = 0; axis < 3; axis++) PACK(pack, manifest->cluster[axis]);
    PACK(pack, manifest->registers);
    PACK(pack, manifest->watchdog);
    PACK_ROWS(pack, &manifest->shared, pack_shared);
    PACK_ROWS(pack, &manifest->roles, pack_role);
    PACK_ROWS(pack, &manifest->axes, pack_axis);
    PACK_ROWS(pack, &manifest->work, pack_work);
    PACK_ROWS(pack, &manifest->variables, pack_name);
    PACK_ROWS(pack, &manifest->sums, pack_sum);
}

const Manifest *manifest_packed(Arena *arena, const Manifest *manifest) {
    Str bytes = str_new(arena);
    Manifest from = *manifest, *copy = NEW(arena, Manifest);
    Pack to = {.arena = arena, .out = &bytes};
    pack_manifest(&to, &from);
    Pack back = {.arena = arena, .at = bytes.text, .end = bytes.text + bytes.length};
    pack_manifest(&back, copy);
    return copy;
}
