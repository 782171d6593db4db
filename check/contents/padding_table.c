/* The table of contents: equal ones are the same object, so that they are compared by address, and
 * an operation on the same ones is computed once. */
#include "check/padding/padding.h"

#include <string.h>

/* ---- contents -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t hash_number(uint64_t hash, double number) {
    uint64_t word;
    number += 0.0; /* -0 is equal to 0 */
    memcpy(&word, &number, sizeof word);
    return mix(hash, word);
}

static uint64_t hash_value(uint64_t hash, const Value *value) {
    if (!pad_exists(*value)) return mix(hash, 1);
    hash = hash_number(hash_number(hash, value->lo), value->hi);
    unsigned flags =
        (unsigned)value->nan | (unsigned)value->nonzero << 1 | (unsigned)value->two << 2;
    return mix(hash, flags | (unsigned)value->marks << 3 | (uint64_t)(unsigned)value->self << 20);
}

static uint64_t hash_poly(uint64_t hash, const Poly *poly) {
    for (int t = 0; poly && t < poly->count; t++) {
        hash = mix(hash, (uint64_t)poly->terms[t].coef);
        for (int k = 0; k < poly->terms[t].count; k++)
            hash = mix(hash, (uint64_t)poly->terms[t].atoms[k]);
    }
    return mix(hash, poly != NULL);
}

/* All that is_made compares: many edges differ only in their places in the text */
static uint64_t hash_edge(uint64_t hash, const Edge *edge) {
    hash = hash_poly(hash_poly(hash, edge->sub), edge->past);
    hash = mix(hash, (uint64_t)edge->from.lo << 32 | edge->from.hi);
    hash = mix(hash, (uint64_t)edge->text.lo << 32 | edge->text.hi);
    return mix(hash, (uint64_t)edge->direct | (uint64_t)edge->above << 1 |
                         (uint64_t)edge->below << 2 | (uint64_t)edge->earlier << 3 |
                         (uint64_t)edge->starts << 4);
}

static uint64_t hash_draft(const Draft *draft) {
    uint64_t hash = mix((uint64_t)draft->count, draft->more);
    for (int i = 0; i < draft->count; i++) hash = hash_edge(hash, &draft->edges[i]);
    for (unsigned s = 0; s < 1u << draft->count; s++)
        hash = hash_value(hash_value(hash, &draft->at[s].element), &draft->at[s].padding);
    return hash;
}

static bool same_poly(const Poly *a, const Poly *b) {
    return a == b || (a && b && poly_equal(a, b));
}

static bool same_span(Span a, Span b) { return a.lo == b.lo && a.hi == b.hi; }

static bool is_made(const Fill *fill, const Draft *draft) {
    if (fill->count != draft->count || fill->more != draft->more) return false;
    for (unsigned s = 0; s < 1u << fill->count; s++)
        if (!pad_same(fill->at[s].element, draft->at[s].element) ||
            !pad_same(fill->at[s].padding, draft->at[s].padding))
            return false;
    for (int i = 0; i < fill->count; i++) {
        const Edge *a = &fill->edges[i], *b = &draft->edges[i];
        if (!same_poly(a->sub, b->sub) || !same_poly(a->past, b->past) ||
            !same_span(a->from, b->from) || !same_span(a->text, b->text) ||
            a->direct != b->direct || a->above != b->above || a->below != b->below ||
            a->earlier != b->earlier || a->starts != b->starts)
            return false;
    }
    return true;
}

static const Fill *copied(Fills *fills, const Draft *draft, uint64_t hash) {
    size_t cells = sizeof(Cell) << draft->count;
    Fill *fill = arena_alloc(fills->arena, sizeof *fill + cells);
    *fill = (Fill){.count = draft->count, .more = draft->more, .hash = hash};
    if (draft->count > 0) {
        Edge *edges = NEW_ARRAY(fills->arena, Edge, (size_t)draft->count);
        memcpy(edges, draft->edges, (size_t)draft->count * sizeof *edges);
        fill->edges = edges;
    }
    memcpy(fill->at, draft->at, cells);
    Value all = pad_none;
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        all = pad_join(pad_join(all, fill->at[s].element), fill->at[s].padding);
        fill->padded |= pad_exists(fill->at[s].padding);
        fill->earlier |= (fill->at[s].element.marks | fill->at[s].padding.marks) & MARKS_EARLIER;
    }
    fill->zero = pad_exists(all) && pad_has_zero(all);
    fill->infinite = pad_exists(all) && !pad_finite(all);
    return fill;
}

static void make_room(Fills *fills) {
    size_t room = fills->room ? 4 * fills->room : 64;
    const Fill **made = NEW_ARRAY(fills->arena, const Fill *, room);
    for (size_t i = 0; i < fills->room; i++) {
        if (!fills->made[i]) continue;
        size_t at = fills->made[i]->hash & (room - 1);
        while (made[at]) at = (at + 1) & (room - 1);
        made[at] = fills->made[i];
    }
    fills->made = made, fills->room = room;
}

const Fill *fill_made(Fills *fills, Draft *draft) {
    arena_count(fills->arena, UINT64_C(12) << draft->count);
    for (unsigned s = 0; s < 1u << draft->count; s++) {
        if (!pad_exists(draft->at[s].element)) draft->at[s].element = pad_none;
        if (!pad_exists(draft->at[s].padding)) draft->at[s].padding = pad_none;
    }
    if (2 * fills->count >= fills->room) make_room(fills);
    uint64_t hash = hash_draft(draft);
    size_t at = hash & (fills->room - 1);
    for (; fills->made[at]; at = (at + 1) & (fills->room - 1))
        if (fills->made[at]->hash == hash && is_made(fills->made[at], draft))
            return fills->made[at];
    fills->count++;
    return fills->made[at] = copied(fills, draft, hash);
}

const Fill *fill_of(Fills *fills, Value element) {
    Draft draft;
    draft.count = 0, draft.more = false;
    draft.at[0] = (Cell){.element = element, .padding = pad_none};
    return fill_made(fills, &draft);
}

void fill_draft(const Fill *fill, Draft *out) {
    out->count = fill->count, out->more = fill->more;
    if (fill->count > 0) memcpy(out->edges, fill->edges, (size_t)fill->count * sizeof(Edge));
    memcpy(out->at, fill->at, sizeof(Cell) << fill->count);
}

/* ---- earlier results ------------------------------------------------------------------------- */

static size_t hash_key(const FillKey *key) {
    uint64_t hash = mix(key->op, key->more);
    for (int i = 0; i < 3; i++) hash = mix(hash, (uint64_t)(uintptr_t)key->of[i]);
    return (size_t)hash;
}

static bool same_key(const FillKey *a, const FillKey *b) {
    return a->op == b->op && a->more == b->more && a->of[0] == b->of[0] && a->of[1] == b->of[1] &&
           a->of[2] == b->of[2];
}

/* The place of the key, or a free one */
static FillResult *find_result(FillResult *results, size_t room, const FillKey *key) {
    size_t at = hash_key(key) & (room - 1);
    while (results[at].out && !same_key(&results[at].key, key)) at = (at + 1) & (room - 1);
    return &results[at];
}

const Fill *fill_recall(const Fills *fills, const FillKey *key) {
    arena_count(fills->arena, 1);
    return fills->result_room ? find_result(fills->results, fills->result_room, key)->out : NULL;
}

const Fill *fill_remember(Fills *fills, const FillKey *key, const Fill *out) {
    if (2 * fills->result_count >= fills->result_room) {
        size_t room = fills->result_room ? 4 * fills->result_room : 64;
        FillResult *results = NEW_ARRAY(fills->arena, FillResult, room);
        for (size_t i = 0; i < fills->result_room; i++)
            if (fills->results[i].out)
                *find_result(results, room, &fills->results[i].key) = fills->results[i];
        fills->results = results, fills->result_room = room;
    }
    *find_result(fills->results, fills->result_room, key) = (FillResult){*key, out};
    fills->result_count++;
    return out;
}
