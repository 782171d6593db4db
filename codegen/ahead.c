/* Reads that the plan places before a wait (derive/plan_ahead.c): evaluated once at each point
 * where they differ, and reused at all points of the statement. */
#include "codegen/gen.h"

typedef struct Known {
    const Expr *expr;
    Point *point; /* where it was evaluated */
    Value value;
} Known;

struct Early {
    Gen *gen;
    VEC(Known) known;
};

static bool same_place(const Point *a, const Point *b, uint32_t indexes) {
    for (int i = 0; i < PROG_MAX_INDEXES; i++) {
        const Lin *x = &a->indexes[i], *y = &b->indexes[i];
        if ((indexes >> i & 1) &&
            (x->add != y->add || x->reg.class != y->reg.class || x->reg.id != y->reg.id))
            return false;
    }
    return true;
}

static bool is_known(const Early *early, const Expr *expr, const Point *point) {
    for (size_t i = 0; i < early->known.count; i++) {
        const Known *known = &early->known.items[i];
        if (known->expr == expr && same_place(known->point, point, expr->indexes)) return true;
    }
    return false;
}

const Ahead *ahead_of(const Gen *gen, int at) {
    return waits_in_flight(gen, at) ? gen->role->rows->ahead[at] : NULL;
}

Early *ahead_read(Gen *gen, const Ahead *ahead, Point **points, size_t count) {
    Early *early = NEW(gen->arena, Early);
    early->gen = gen;
    for (size_t i = 0; i < ahead->exprs.count; i++) {
        const Expr *expr = ahead->exprs.items[i];
        for (size_t p = 0; p < count; p++)
            if (!is_known(early, expr, points[p]))
                vec_push(gen->arena, &early->known,
                         (Known){expr, points[p], eval(gen, points[p], expr)});
    }
    return early;
}

void ahead_know(const Early *early, Point *point) {
    for (size_t i = 0; i < early->known.count; i++) {
        const Known *known = &early->known.items[i];
        Point *home = point_home(point, known->expr);
        Value value;
        if (same_place(known->point, point, known->expr->indexes) &&
            !point_knows(home, known->expr, &value))
            point_know(early->gen, home, known->expr, known->value);
    }
}
