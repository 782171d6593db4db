/* PTX instructions as data, local reuse of pure ones, and printing. */
#include "codegen/ptx.h"

#include <string.h>

/* An operand as an instruction keeps it: a function may have many */
typedef struct Kept {
    uint8_t kind, class; /* OperandKind; RegClass of `id` */
    uint16_t count;
    uint32_t id;
    int64_t value;
    union {
        const char *text; /* TEXT, MEMORY */
        const Reg *items; /* VECTOR, TENSOR */
    };
} Kept;

typedef enum InsKind { INS_PLAIN, INS_LABEL, INS_COMMENT, INS_MARK, INS_VERBATIM } InsKind;

typedef struct Ins {
    InsKind kind;
    bool guard_not;
    uint16_t count;
    Reg guard; /* REG_NONE: always */
    union {
        const char *op; /* PLAIN: opcode with modifiers; COMMENT, VERBATIM: the text */
        int label;
        /* place of the following instructions; the printer sets its line */
        const ManifestMark *mark;
    };
    Kept operands[];
} Ins;

/* Pure instructions of the current straight-line code, by hash of opcode and operands. */
typedef struct Pure {
    uint64_t hash;
    const Ins *ins; /* operands[0] is the result */
    struct Pure *next;
} Pure;

#define PURE_BUCKETS 256u
#define LINE_BYTES   48 /* of most instructions in the text */

struct Ptx {
    Arena *arena;
    VEC(Ins *) body;
    uint32_t registers[REG_CLASSES];
    int labels;
    Pure *pure[PURE_BUCKETS];
    uint64_t pure_line[PURE_BUCKETS]; /* the straight-line code of the bucket's entries */
    uint64_t line;
};

Ptx *ptx_new(Arena *arena) {
    Ptx *ptx = NEW(arena, Ptx);
    ptx->arena = arena;
    ptx->line = 1;
    return ptx;
}

Reg ptx_new_reg(Ptx *ptx, RegClass class) { return (Reg){class, ptx->registers[class]++}; }
int ptx_new_label(Ptx *ptx) { return ptx->labels++; }

Operand ptx_reg(Reg reg) { return (Operand){.kind = OPERAND_REG, .reg = reg}; }
Operand ptx_int(int64_t value) { return (Operand){.kind = OPERAND_INTEGER, .value = value}; }
Operand ptx_text(const char *text) { return (Operand){.kind = OPERAND_TEXT, .text = text}; }
Operand ptx_label(int label) { return (Operand){.kind = OPERAND_LABEL, .value = label}; }
Operand ptx_at(Reg base, int64_t offset) {
    return (Operand){.kind = OPERAND_MEMORY, .reg = base, .value = offset};
}

Operand ptx_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (Operand){.kind = OPERAND_F32, .value = bits};
}

Operand ptx_at_text(const char *symbol, int64_t offset) {
    return (Operand){.kind = OPERAND_MEMORY, .text = symbol, .value = offset};
}

Operand ptx_vector(const Reg *items, int count) {
    Operand operand = {.kind = OPERAND_VECTOR, .count = count};
    if (count > MAX_RANK)
        operand.many = items;
    else
        memcpy(operand.items, items, (size_t)count * sizeof *items);
    return operand;
}

Operand ptx_tensor(Reg map, const Reg *coordinates, int count) {
    Operand operand = ptx_vector(coordinates, count);
    operand.kind = OPERAND_TENSOR;
    operand.reg = map;
    return operand;
}

static bool has_items(OperandKind kind) { return kind == OPERAND_VECTOR || kind == OPERAND_TENSOR; }

/* Valid as long as the operand */
static Kept kept_of(const Operand *operand) {
    Kept kept = {.kind = (uint8_t)operand->kind,
                 .class = (uint8_t)operand->reg.class,
                 .count = (uint16_t)operand->count,
                 .id = operand->reg.id,
                 .value = operand->value,
                 .text = operand->text};
    if (has_items(operand->kind)) kept.items = operand->many ? operand->many : operand->items;
    return kept;
}

static Kept keep(Ptx *ptx, const Operand *operand) {
    Kept kept = kept_of(operand);
    if (!has_items(operand->kind) || operand->many) return kept;
    Reg *items = NEW_ARRAY(ptx->arena, Reg, operand->count);
    memcpy(items, operand->items, (size_t)operand->count * sizeof *items);
    kept.items = items;
    return kept;
}

static Ins *append(Ptx *ptx, InsKind kind, int count) {
    Ins *ins = arena_alloc(ptx->arena, sizeof(Ins) + (size_t)count * sizeof(Kept));
    ins->kind = kind;
    ins->count = (uint16_t)count;
    vec_push(ptx->arena, &ptx->body, ins);
    return ins;
}

void ptx_ins(Ptx *ptx, Reg guard, bool guard_not, const char *op, const Operand *operands,
             int count) {
    Ins *ins = append(ptx, INS_PLAIN, count);
    ins->op = op;
    ins->guard = guard;
    ins->guard_not = guard_not;
    for (int i = 0; i < count; i++) ins->operands[i] = keep(ptx, &operands[i]);
}

static uint64_t hash_step(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3u; }

static uint64_t hash_operands(const char *op, const Operand *operands, int count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = op; *c != '\0'; c++) hash = hash_step(hash, (unsigned char)*c);
    for (int i = 0; i < count; i++) {
        const Operand *o = &operands[i];
        hash = hash_step(hash, (uint64_t)o->kind << 40 ^ (uint64_t)o->reg.class << 32 ^ o->reg.id);
        hash = hash_step(hash, (uint64_t)o->value);
        if (o->text != NULL) hash = hash_step(hash, (uint64_t)strlen(o->text));
    }
    return hash;
}

static bool same_reg(Reg a, Reg b) { return a.class == b.class && a.id == b.id; }

static bool same_operand(const Kept *a, const Operand *other) {
    Kept b = kept_of(other);
    if (a->kind != b.kind || a->class != b.class || a->id != b.id || a->value != b.value ||
        a->count != b.count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (!same_reg(a->items[i], b.items[i])) return false;
    if (has_items(other->kind)) return true;
    return (a->text == NULL) == (b.text == NULL) &&
           (a->text == NULL || strcmp(a->text, b.text) == 0);
}

static bool same_pure(const Ins *ins, const char *op, const Operand *operands, int count,
                      RegClass class) {
    if (ins->count != count + 1 || ins->operands[0].class != class || strcmp(ins->op, op) != 0)
        return false;
    for (int i = 0; i < count; i++)
        if (!same_operand(&ins->operands[i + 1], &operands[i])) return false;
    return true;
}

Reg ptx_pure(Ptx *ptx, RegClass class, const char *op, const Operand *operands, int count) {
    uint64_t hash = hash_operands(op, operands, count);
    size_t bucket = (size_t)(hash >> 17) % PURE_BUCKETS;
    if (ptx->pure_line[bucket] != ptx->line) {
        ptx->pure_line[bucket] = ptx->line;
        ptx->pure[bucket] = NULL;
    }
    for (const Pure *p = ptx->pure[bucket]; p != NULL; p = p->next)
        if (p->hash == hash && same_pure(p->ins, op, operands, count, class))
            return (Reg){class, p->ins->operands[0].id};
    Operand result = ptx_reg(ptx_new_reg(ptx, class));
    Ins *ins = append(ptx, INS_PLAIN, count + 1);
    ins->op = op;
    ins->operands[0] = keep(ptx, &result);
    for (int i = 0; i < count; i++) ins->operands[i + 1] = keep(ptx, &operands[i]);
    Pure *pure = NEW(ptx->arena, Pure);
    *pure = (Pure){hash, ins, ptx->pure[bucket]};
    ptx->pure[bucket] = pure;
    return result.reg;
}

static Reg combine(Ptx *ptx, const char *op, Reg a, Reg b) {
    if (a.class == REG_NONE) return b;
    return b.class == REG_NONE ? a : PURE(ptx, REG_PRED, op, ptx_reg(a), ptx_reg(b));
}

Reg ptx_both(Ptx *ptx, Reg a, Reg b) { return combine(ptx, "and.pred", a, b); }

Reg ptx_either(Ptx *ptx, Reg a, Reg b) { return combine(ptx, "or.pred", a, b); }

void ptx_forget(Ptx *ptx) { ptx->line++; }

void ptx_place_label(Ptx *ptx, int label) {
    append(ptx, INS_LABEL, 0)->label = label;
    ptx_forget(ptx);
}

void ptx_comment(Ptx *ptx, const char *format, ...) {
    va_list args;
    va_start(args, format);
    append(ptx, INS_COMMENT, 0)->op = arena_vprintf(ptx->arena, format, args);
    va_end(args);
}

void ptx_verbatim(Ptx *ptx, const char *text) { append(ptx, INS_VERBATIM, 0)->op = text; }

void ptx_mark(Ptx *ptx, Span span, int role, const char *pipe, const char *what) {
    ManifestMark *mark = NEW(ptx->arena, ManifestMark);
    *mark = (ManifestMark){.span = span, .role = role, .pipe = pipe, .what = what};
    append(ptx, INS_MARK, 0)->mark = mark;
}

/* ---- printing -------------------------------------------------------------------------------- */

static const char *const class_names[REG_CLASSES] = {
    [REG_PRED] = "%p", [REG_16] = "%h", [REG_32] = "%r", [REG_64] = "%d"};
static const char *const class_types[REG_CLASSES] = {
    [REG_PRED] = ".pred", [REG_16] = ".b16", [REG_32] = ".b32", [REG_64] = ".b64"};

static void print_reg(Reg reg, Str *out) {
    str_add(out, class_names[reg.class]);
    str_integer(out, reg.id);
}

static void print_list(const Kept *operand, Str *out) {
    str_char(out, '{');
    for (int i = 0; i < operand->count; i++) {
        if (i > 0) str_add(out, ", ");
        print_reg(operand->items[i], out);
    }
    str_char(out, '}');
}

static void print_label(int label, Str *out) {
    str_char(out, 'L');
    str_integer(out, label);
}

static void print_operand(const Kept *operand, Str *out) {
    Reg reg = {(RegClass)operand->class, operand->id};
    switch ((OperandKind)operand->kind) {
    case OPERAND_REG: print_reg(reg, out); return;
    case OPERAND_INTEGER: str_integer(out, operand->value); return;
    case OPERAND_F32: str_printf(out, "0f%08X", (uint32_t)operand->value); return;
    case OPERAND_TEXT: str_add(out, operand->text); return;
    case OPERAND_LABEL: print_label((int)operand->value, out); return;
    case OPERAND_VECTOR: print_list(operand, out); return;
    case OPERAND_TENSOR:
        str_char(out, '[');
        print_reg(reg, out);
        str_add(out, ", ");
        print_list(operand, out);
        str_char(out, ']');
        return;
    case OPERAND_MEMORY:
        str_char(out, '[');
        if (reg.class != REG_NONE)
            print_reg(reg, out);
        else
            str_add(out, operand->text);
        if (operand->value != 0) { /* negative as `+-4`: PTX has no minus there */
            str_char(out, '+');
            str_integer(out, operand->value);
        }
        str_char(out, ']');
        return;
    }
}

void ptx_operand(const Operand *operand, Str *out) {
    Kept kept = kept_of(operand);
    print_operand(&kept, out);
}

static void print_plain(const Ins *ins, Str *out) {
    str_add(out, "    ");
    if (ins->guard.class != REG_NONE) {
        str_add(out, ins->guard_not ? "@!" : "@");
        print_reg(ins->guard, out);
        str_char(out, ' ');
    }
    str_add(out, ins->op);
    for (int i = 0; i < ins->count; i++) {
        str_add(out, i == 0 ? " " : ", ");
        print_operand(&ins->operands[i], out);
    }
    str_add(out, ";\n");
}

static void print_verbatim(const Ins *ins, Manifest *manifest, uint32_t *line, Str *out) {
    uint32_t first = *line;
    for (const char *at = ins->op; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        str_printf(out, "    %.*s\n", (int)length, at);
        (*line)++;
        at += length + (at[length] == '\n');
    }
    if (*line == first) return;
    Span span = manifest->marks.items[manifest->marks.count - 1].span; /* of the statement */
    vec_push(out->arena, &manifest->inline_ptx, (ManifestInline){first, *line - 1, span});
}

/* A mark starts at the next instruction, so that its line is that instruction's. */
static void print_mark(const ManifestMark *mark, const Source *source, Manifest *manifest,
                       uint32_t *line, Str *out) {
    ManifestMark placed = *mark;
    if (source != NULL && mark->span.hi > mark->span.lo) {
        uint32_t source_line, column;
        source_place(source, mark->span.lo, &source_line, &column);
        str_printf(out, "    .loc %u %u %u\n",
                   (unsigned)(source_file(source, mark->span.lo) - source->files) + 1, source_line,
                   column);
        (*line)++;
    }
    placed.line = *line;
    vec_push(out->arena, &manifest->marks, placed);
}

void ptx_files(const Ptx *ptx, const Source *source, bool *used) {
    for (size_t i = 0; i < ptx->body.count; i++) {
        const Ins *ins = ptx->body.items[i];
        if (ins->kind == INS_MARK && ins->mark->span.hi > ins->mark->span.lo)
            used[source_file(source, ins->mark->span.lo) - source->files] = true;
    }
}

void ptx_print(const Ptx *ptx, const Source *source, Manifest *manifest, uint32_t *line, Str *out) {
    for (RegClass class = REG_PRED; class < REG_CLASSES; class ++) {
        if (ptx->registers[class] == 0) continue;
        str_printf(out, "    .reg %s %s<%u>;\n", class_types[class], class_names[class],
                   ptx->registers[class]);
        (*line)++;
    }
    str_reserve(out, ptx->body.count * LINE_BYTES);
    for (size_t i = 0; i < ptx->body.count; i++) {
        const Ins *ins = ptx->body.items[i];
        switch (ins->kind) {
        case INS_MARK: print_mark(ins->mark, source, manifest, line, out); continue;
        case INS_LABEL: print_label(ins->label, out), str_add(out, ":\n"); break;
        case INS_COMMENT: str_printf(out, "    // %s\n", ins->op); break;
        case INS_VERBATIM: print_verbatim(ins, manifest, line, out); continue;
        case INS_PLAIN: print_plain(ins, out); break;
        }
        (*line)++;
    }
}
