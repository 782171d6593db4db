/* Expressions and the objects that contain them, as words of a key. key_prog.c: the kernel. */
#include "prog/key.h"

#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

/* Appends `count` words, which the caller sets. */
static uint32_t *more(Key *key, size_t count) {
    size_t before = key->words.count;
    if (count > key->words.capacity - before)
        vec_reserve(key->arena, (void **)&key->words.items, &key->words.capacity, before + count,
                    sizeof *key->words.items);
    key->words.count += count;
    return &key->words.items[before];
}

void key_word(Key *key, uint32_t word) { *more(key, 1) = word; }

void key_wide(Key *key, int64_t value) { memcpy(more(key, 2), &value, sizeof value); }

void key_number(Key *key, double value) { memcpy(more(key, 2), &value, sizeof value); }

void key_span(Key *key, Span span) {
    uint32_t *words = more(key, 2);
    words[0] = span.lo, words[1] = span.hi;
}

void key_ints(Key *key, size_t count, const int *ints) {
    if (count > 0) memcpy(more(key, count), ints, count * sizeof *ints);
}

/* Equal texts usually have the same address. */
void key_text(Key *key, const char *text) {
    if (key_has(key, text)) return;
    size_t length = strlen(text), words = (length + 3) / 4;
    key_word(key, (uint32_t)length);
    if (words == 0) return;
    uint32_t *into = more(key, words);
    into[words - 1] = 0;
    memcpy(into, text, length);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* The slot of the object, or the empty slot for it */
static size_t slot_of(const Key *key, const void *object) {
    size_t mask = key->capacity - 1;
    size_t at = (size_t)(((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & mask;
    while (key->slots[at] != NULL && key->slots[at] != object) at = (at + 1) & mask;
    return at;
}

static void enlarge(Key *key) {
    Key old = *key;
    key->capacity = old.capacity > 0 ? 4 * old.capacity : 512;
    key->slots = NEW_ARRAY(key->arena, const void *, key->capacity);
    key->numbers = NEW_ARRAY(key->arena, uint32_t, key->capacity);
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i] == NULL) continue;
        size_t at = slot_of(key, old.slots[i]);
        key->slots[at] = old.slots[i], key->numbers[at] = old.numbers[i];
    }
}

bool key_has(Key *key, const void *object) {
    if (object == NULL) {
        key_word(key, 0);
        return true;
    }
    if (2 * key->objects >= key->capacity) enlarge(key);
    size_t at = slot_of(key, object);
    bool known = key->slots[at] != NULL;
    if (!known) key->slots[at] = object, key->numbers[at] = ++key->objects;
    key_word(key, key->numbers[at]);
    return known;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void write_access(Key *key, const Access *access) {
    KEY_INTS(key, (int)access->space, access->object, access->field, access->old, access->kept,
             (int)access->type, access->rank);
    key_span(key, access->span);
    key_expr(key, access->element);
    for (int i = 0; i < access->rank; i++) key_expr(key, access->subs[i]);
}

void key_access(Key *key, const Access *access) {
    if (!key_has(key, access)) write_access(key, access);
}

static void write_call(Key *key, const Expr *x) {
    KEY_INTS(key, (int)x->call.which, (int)x->call.accuracy, x->call.count);
    for (int i = 0; i < x->call.count; i++) key_expr(key, x->call.args[i]);
}

static void write_operands(Key *key, const Expr *x) {
    switch (x->kind) {
    case X_POISON:
    case X_RANK: break;
    case X_CONST:
        key_wide(key, x->constant.integer);
        key_number(key, x->constant.number);
        break;
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_INDEX: key_word(key, (uint32_t)x->index); break;
    case X_READ: key_access(key, x->read); break;
    case X_UNARY:
        key_word(key, x->unary.op);
        key_expr(key, x->unary.operand);
        break;
    case X_BINARY:
        KEY_INTS(key, (int)x->binary.op, (int)x->binary.accuracy);
        key_expr(key, x->binary.left), key_expr(key, x->binary.right);
        break;
    case X_SELECT:
        key_expr(key, x->select.condition);
        key_expr(key, x->select.then), key_expr(key, x->select.otherwise);
        break;
    case X_CAST: key_expr(key, x->cast); break;
    case X_CALL: write_call(key, x); break;
    case X_REDUCE:
        KEY_INTS(key, (int)x->reduce.op, x->reduce.first, x->reduce.count);
        key_expr(key, x->reduce.body);
        break;
    case X_SCAN:
        KEY_INTS(key, (int)x->scan.op, (int)x->scan.relation, x->scan.along);
        key_expr(key, x->scan.body);
        break;
    }
}

void key_expr(Key *key, const Expr *expr) {
    if (key_has(key, expr)) return;
    KEY_INTS(key, (int)expr->kind, (int)expr->type, (int)expr->uniformity, (int)expr->along,
             (int)expr->indexes);
    key_span(key, expr->span);
    write_operands(key, expr);
}

/* ---- operands of rows ------------------------------------------------------------------------ */

static void write_space(Key *key, const IndexSpace *space) {
    KEY_INTS(key, space->count, space->bound, space->overflows);
    for (int i = 0; i < space->count && i < PROG_MAX_INDEXES; i++) {
        const Index *index = &space->items[i];
        key_text(key, index->name);
        key_span(key, index->span);
        key_span(key, index->range);
        key_wide(key, index->extent);
        key_expr(key, index->dynamic);
    }
}

void key_space(Key *key, const IndexSpace *space) {
    if (!key_has(key, space)) write_space(key, space);
}

void key_tile(Key *key, const Tile *tile) {
    if (key_has(key, tile)) return;
    key_space(key, &tile->space);
    key_access(key, &tile->target);
    KEY_INTS(key, (int)tile->op, tile->by_lanes, tile->multicast_required, tile->prefetch);
    key_expr(key, tile->value), key_expr(key, tile->where);
    key_span(key, tile->lanes_span);
}

static void write_operand(Key *key, const PtxOperand *operand) {
    key_span(key, operand->span);
    key_expr(key, operand->value);
    KEY_INTS(key, operand->local, (int)operand->type);
}

void key_unsafe(Key *key, const Unsafe *unsafe) {
    if (key_has(key, unsafe)) return;
    KEY_INTS(key, (int)unsafe->kind, (int)unsafe->value, unsafe->local, unsafe->handle,
             unsafe->pipe, (int)unsafe->end, unsafe->full, unsafe->own);
    key_expr(key, unsafe->stage), key_expr(key, unsafe->at), key_expr(key, unsafe->amount);
    key_access(key, unsafe->tile);
    key_text(key, unsafe->text);
    key_word(key, (uint32_t)unsafe->operands.count);
    for (size_t i = 0; i < unsafe->operands.count; i++)
        write_operand(key, &unsafe->operands.items[i]);
}
