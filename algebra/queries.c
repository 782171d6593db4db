/* Cache of the prover: claim, formula, and all facts known at the place. The same queries recur:
 * in each rule, and in each round of a loop. */
#include "algebra/private.h"

#define ROOM_FIRST 64 /* a power of two, as all later sizes */

static uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t with_poly(uint64_t hash, const Poly *poly) {
    hash = mixed(hash, (uint64_t)poly->count);
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        hash = mixed(hash, (uint64_t)term->coef);
        for (int k = 0; k < term->count; k++) hash = mixed(hash, (uint64_t)term->atoms[k]);
    }
    return hash;
}

static uint64_t with_choice(uint64_t hash, const Choice *choice) {
    for (int side = 0; side < 2; side++) {
        hash = mixed(hash, choice->counts[side]);
        for (size_t i = 0; i < choice->counts[side]; i++)
            hash = with_poly(hash, choice->facts[side][i]);
    }
    return hash;
}

static uint64_t hash_of(const Algebra *algebra, PolyClaim claim, const Poly *poly) {
    uint64_t hash = mixed((uint64_t)claim, (uintptr_t)algebra->space);
    hash = with_poly(mixed(hash, algebra->stated.count), poly);
    for (size_t i = 0; i < algebra->facts.count; i++)
        hash = with_poly(hash, algebra->facts.items[i]);
    for (size_t i = 0; i < algebra->choices.count; i++)
        hash = with_choice(hash, &algebra->choices.items[i]);
    for (size_t i = 0; i < algebra->divides.count; i++)
        hash = mixed(with_poly(hash, algebra->divides.items[i].poly),
                     (uint64_t)algebra->divides.items[i].by);
    return hash;
}

static bool same(const Poly *a, const Poly *b) { return a == b || poly_equal(a, b); }

static bool same_choice(const Choice *a, const Choice *b) {
    for (int side = 0; side < 2; side++) {
        if (a->counts[side] != b->counts[side]) return false;
        for (size_t i = 0; i < a->counts[side]; i++)
            if (!same(a->facts[side][i], b->facts[side][i])) return false;
    }
    return true;
}

static bool is_path(const Algebra *algebra, const Query *query) {
    if (query->facts.count != algebra->facts.count ||
        query->choices.count != algebra->choices.count ||
        query->divides.count != algebra->divides.count)
        return false;
    for (size_t i = 0; i < query->facts.count; i++)
        if (!same(query->facts.items[i], algebra->facts.items[i])) return false;
    for (size_t i = 0; i < query->choices.count; i++)
        if (!same_choice(&query->choices.items[i], &algebra->choices.items[i])) return false;
    for (size_t i = 0; i < query->divides.count; i++) {
        const Divides *a = &query->divides.items[i], *b = &algebra->divides.items[i];
        if (a->by != b->by || !same(a->poly, b->poly)) return false;
    }
    return true;
}

static bool is_query(const Algebra *algebra, const Query *query, PolyClaim claim,
                     const Poly *poly) {
    return query->claim == claim && query->space == algebra->space &&
           query->stated == algebra->stated.count && same(query->poly, poly) &&
           is_path(algebra, query);
}

/* The slot of the query, or the free slot for it */
static Query **place_of(Algebra *algebra, uint64_t hash, PolyClaim claim, const Poly *poly) {
    QueryTable *all = &algebra->queries;
    for (size_t at = hash & (all->room - 1);; at = (at + 1) & (all->room - 1)) {
        Query **place = &all->items[at];
        if (!*place || ((*place)->hash == hash && is_query(algebra, *place, claim, poly)))
            return place;
    }
}

static void make_room(Algebra *algebra) {
    QueryTable old = algebra->queries, *all = &algebra->queries;
    if (2 * old.count < old.room) return;
    all->room = old.room ? 2 * old.room : ROOM_FIRST;
    all->items = NEW_ARRAY(algebra->arena, Query *, all->room);
    for (size_t i = 0; i < old.room; i++) {
        if (!old.items[i]) continue;
        size_t at = old.items[i]->hash & (all->room - 1);
        while (all->items[at]) at = (at + 1) & (all->room - 1);
        all->items[at] = old.items[i];
    }
}

/* The caller may free the lists of a choice, but no formula. */
static Choice copied(Arena *arena, const Choice *choice) {
    Choice copy = *choice;
    for (int side = 0; side < 2; side++) {
        const Poly **facts = NEW_ARRAY(arena, const Poly *, choice->counts[side]);
        for (size_t i = 0; i < choice->counts[side]; i++) facts[i] = choice->facts[side][i];
        copy.facts[side] = facts;
    }
    return copy;
}

static Query *make(const Algebra *algebra, uint64_t hash, PolyClaim claim, const Poly *poly) {
    Query *query = NEW(algebra->arena, Query);
    *query = (Query){.hash = hash,
                     .claim = claim,
                     .poly = poly,
                     .space = algebra->space,
                     .stated = algebra->stated.count};
    for (size_t i = 0; i < algebra->facts.count; i++)
        vec_push(algebra->arena, &query->facts, algebra->facts.items[i]);
    for (size_t i = 0; i < algebra->choices.count; i++)
        vec_push(algebra->arena, &query->choices,
                 copied(algebra->arena, &algebra->choices.items[i]));
    for (size_t i = 0; i < algebra->divides.count; i++)
        vec_push(algebra->arena, &query->divides, algebra->divides.items[i]);
    return query;
}

Query *prover_query(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    make_room(algebra);
    uint64_t hash = hash_of(algebra, claim, poly);
    arena_count(algebra->arena,
                algebra->facts.count + algebra->choices.count + algebra->divides.count + 1);
    Query **place = place_of(algebra, hash, claim, poly);
    if (!*place) *place = make(algebra, hash, claim, poly), algebra->queries.count++;
    return *place;
}
