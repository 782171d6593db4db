/* Vector clocks: joined, compared, and shared by references.
 *
 * Rows and tree nodes with one reference are changed in place, others are copied first. Times of
 * a row are held in two levels, so that joining the rows of warps whose lanes are in step takes
 * one comparison per warp. */
#include "emulator/order/clock.h"

#include <assert.h>
#include <string.h>

enum { CLASSES = 28, FEWEST_ROWS = 4, TREE_BITS = 4, TREE_CHILDREN = 1 << TREE_BITS };

struct Clocks {
    Arena *arena;
    Rows *spare_rows[CLASSES]; /* freed: the next one is in rows[0].each */
    uint32_t *spare_each;      /* freed: the next one is in its first bytes */
    Others *spare_others;      /* freed: the next one is in of.nodes[0] */
};

Clocks *clocks_new(Arena *arena) {
    Clocks *clocks = NEW(arena, Clocks);
    clocks->arena = arena;
    return clocks;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t *new_each(Clocks *clocks, uint32_t all) {
    uint32_t *each = clocks->spare_each;
    if (each)
        memcpy(&clocks->spare_each, each, sizeof(uint32_t *));
    else
        each = NEW_ARRAY(clocks->arena, uint32_t, ROW);
    for (int i = 0; i < ROW; i++) each[i] = all;
    return each;
}

static void free_each(Clocks *clocks, Row *row) {
    if (!row->each) return;
    memcpy(row->each, &clocks->spare_each, sizeof(uint32_t *));
    clocks->spare_each = row->each;
    row->each = NULL;
}

static Rows *new_rows(Clocks *clocks, uint32_t count) {
    uint32_t class = 0;
    while ((uint32_t)FEWEST_ROWS << class < count) class ++;
    assert(class < CLASSES);
    Rows *rows = clocks->spare_rows[class];
    size_t bytes = sizeof(Rows) + ((size_t)FEWEST_ROWS << class) * sizeof(Row);
    if (rows)
        memcpy(&clocks->spare_rows[class], &rows->rows[0].each, sizeof(Rows *));
    else
        rows = arena_alloc(clocks->arena, bytes);
    memset(rows, 0, bytes);
    rows->references = 1;
    rows->count = count;
    rows->class = class;
    return rows;
}

static void drop_rows(Clocks *clocks, Rows *rows) {
    if (!rows || --rows->references) return;
    for (uint32_t i = 0; i < rows->count; i++) free_each(clocks, &rows->rows[i]);
    memcpy(&rows->rows[0].each, &clocks->spare_rows[rows->class], sizeof(Rows *));
    clocks->spare_rows[rows->class] = rows;
}

static Rows *share_rows(Rows *rows) {
    if (rows) rows->references++;
    return rows;
}

static Rows *copy_rows(Clocks *clocks, const Rows *from, uint32_t count) {
    Rows *rows = new_rows(clocks, count);
    for (uint32_t i = 0; from && i < from->count; i++) {
        rows->rows[i].all = from->rows[i].all;
        if (!from->rows[i].each) continue;
        rows->rows[i].each = new_each(clocks, 0);
        memcpy(rows->rows[i].each, from->rows[i].each, ROW * sizeof(uint32_t));
    }
    return rows;
}

/* Rows that can be changed, at least `count` */
static Rows *own_rows(Clocks *clocks, Rows **at, uint32_t count) {
    Rows *rows = *at;
    if (rows && count < rows->count) count = rows->count;
    if (!rows || rows->references > 1 || (uint32_t)FEWEST_ROWS << rows->class < count) {
        *at = copy_rows(clocks, rows, count);
        drop_rows(clocks, rows);
        return *at;
    }
    rows->count = count; /* rows beyond the old count are zero */
    return rows;
}

/* Restores that `each` has a time above `all`, and that `all` is as great as possible. */
static void tidy(Clocks *clocks, Row *row) {
    uint32_t least = UINT32_MAX, most = 0;
    for (int i = 0; i < ROW; i++) {
        least = row->each[i] < least ? row->each[i] : least;
        most = row->each[i] > most ? row->each[i] : most;
    }
    if (least > row->all) row->all = least;
    if (most <= row->all) free_each(clocks, row);
}

static bool row_covers(const Row *row, const Row *other) {
    if (row->all < other->all) {
        if (!row->each) return false;
        for (int i = 0; i < ROW; i++)
            if (row->each[i] < other->all) return false;
    }
    if (!other->each || other->each == row->each) return true;
    uint32_t missing = 0;
    if (!row->each)
        for (int i = 0; i < ROW; i++) missing |= row->all < other->each[i];
    else
        for (int i = 0; i < ROW; i++)
            missing |= (row->all < other->each[i]) & (row->each[i] < other->each[i]);
    return !missing;
}

static bool rows_cover(const Rows *rows, const Rows *other) {
    static const Row nothing = {0};
    if (!other || rows == other) return true;
    for (uint32_t i = 0; i < other->count; i++)
        if (!row_covers(rows && i < rows->count ? &rows->rows[i] : &nothing, &other->rows[i]))
            return false;
    return true;
}

static void join_row(Clocks *clocks, Row *row, const Row *from) {
    if (row->all < from->all) row->all = from->all;
    if (from->each) {
        if (!row->each) row->each = new_each(clocks, row->all);
        for (int i = 0; i < ROW; i++)
            row->each[i] = row->each[i] > from->each[i] ? row->each[i] : from->each[i];
    }
    if (row->each) tidy(clocks, row);
}

static bool join_rows(Clocks *clocks, Rows **to, Rows *from) {
    if (rows_cover(*to, from)) return false;
    if (rows_cover(from, *to)) {
        drop_rows(clocks, *to);
        *to = share_rows(from);
        return true;
    }
    Rows *rows = own_rows(clocks, to, from->count);
    for (uint32_t i = 0; i < from->count; i++)
        if (!row_covers(&rows->rows[i], &from->rows[i]))
            join_row(clocks, &rows->rows[i], &from->rows[i]);
    return true;
}

static void intersect_row(Clocks *clocks, Row *row, const Row *other) {
    uint32_t *each = new_each(clocks, row->all);
    for (int i = 0; i < ROW; i++) {
        uint32_t own = row->each && row->each[i] > row->all ? row->each[i] : row->all,
                 its = other->each && other->each[i] > other->all ? other->each[i] : other->all;
        each[i] = own < its ? own : its;
    }
    free_each(clocks, row);
    *row = (Row){row->all < other->all ? row->all : other->all, each};
    tidy(clocks, row);
}

static void intersect_rows(Clocks *clocks, Rows **to, const Rows *other) {
    if (rows_cover(other, *to)) return;
    uint32_t common = other ? other->count : 0;
    Rows *rows = own_rows(clocks, to, 0);
    for (uint32_t i = common; i < rows->count; i++) {
        free_each(clocks, &rows->rows[i]);
        rows->rows[i].all = 0;
    }
    if (rows->count > common) rows->count = common;
    for (uint32_t i = 0; i < rows->count; i++)
        if (!row_covers(&other->rows[i], &rows->rows[i]))
            intersect_row(clocks, &rows->rows[i], &other->rows[i]);
}

static void set_rows(Clocks *clocks, Rows **to, uint32_t at, uint32_t mask, uint32_t time) {
    if (!rows_unknown(*to, at, mask, time)) return;
    Row *row = &own_rows(clocks, to, at + 1)->rows[at];
    if (mask == UINT32_MAX) {
        if (row->all < time) row->all = time;
        if (row->each) tidy(clocks, row);
        return;
    }
    if (!row->each) row->each = new_each(clocks, row->all);
    for (; mask; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(mask);
        if (row->each[i] < time) row->each[i] = time;
    }
    tidy(clocks, row);
}

uint32_t rows_unknown(const Rows *rows, uint32_t row, uint32_t mask, uint32_t time) {
    if (!rows || row >= rows->count) return mask;
    const Row *at = &rows->rows[row];
    if (at->all >= time) return 0;
    if (!at->each) return mask;
    uint32_t unknown = 0;
    for (; mask; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(mask);
        if (at->each[i] < time) unknown |= 1u << i;
    }
    return unknown;
}

/* ---- other clusters -------------------------------------------------------------------------- */

static Others *share_others(Others *node) {
    if (node) node->references++;
    return node;
}

static Others *new_others(Clocks *clocks, uint32_t level) {
    Others *node = clocks->spare_others;
    if (node)
        clocks->spare_others = node->of.nodes[0];
    else
        node = NEW(clocks->arena, Others);
    *node = (Others){.references = 1, .level = level};
    return node;
}

/* The tree has at most 16 levels, as numbers of clusters have 64 bits. */
static void drop_others(Clocks *clocks, Others *node) {
    if (!node || --node->references) return;
    for (int i = 0; i < TREE_CHILDREN; i++)
        if (node->level > 0)
            drop_others(clocks, node->of.nodes[i]);
        else
            drop_rows(clocks, node->of.rows[i]);
    node->of.nodes[0] = clocks->spare_others;
    clocks->spare_others = node;
}

/* A node that can be changed */
static Others *own_others(Clocks *clocks, Others **at) {
    Others *node = *at;
    if (node->references == 1) return node;
    Others *copy = new_others(clocks, node->level);
    for (int i = 0; i < TREE_CHILDREN; i++)
        if (node->level > 0)
            copy->of.nodes[i] = share_others(node->of.nodes[i]);
        else
            copy->of.rows[i] = share_rows(node->of.rows[i]);
    node->references--;
    *at = copy;
    return copy;
}

/* Puts nodes above the root until it has this level. */
static void raise_others(Clocks *clocks, Others **at, uint32_t level) {
    while ((*at)->level < level) {
        Others *above = new_others(clocks, (*at)->level + 1);
        above->of.nodes[0] = *at;
        *at = above;
    }
}

static bool others_cover(const Others *node, const Others *other) {
    if (!other || node == other) return true;
    if (!node) return false;
    while (node->level > other->level) {
        node = node->of.nodes[0];
        if (!node) return false;
        if (node == other) return true;
    }
    if (node->level < other->level) {
        for (int i = 1; i < TREE_CHILDREN; i++)
            if (other->of.nodes[i]) return false;
        return others_cover(node, other->of.nodes[0]);
    }
    for (int i = 0; i < TREE_CHILDREN; i++)
        if (node->level > 0 ? !others_cover(node->of.nodes[i], other->of.nodes[i])
                            : !rows_cover(node->of.rows[i], other->of.rows[i]))
            return false;
    return true;
}

static bool same_children(const Others *node, const Others *other) {
    return !memcmp(&node->of, &other->of, sizeof node->of);
}

/* Joins trees. Where `from` has all that the result has, the result shares its nodes, so that
 * trees of clusters that learn from each other stay shared. */
static bool join_others(Clocks *clocks, Others **to, Others *from) {
    if (!from || *to == from) return false;
    if (!*to) {
        *to = share_others(from);
        return true;
    }
    raise_others(clocks, to, from->level);
    if ((*to)->level > from->level) {
        if (others_cover((*to)->of.nodes[0], from)) return false;
        return join_others(clocks, &own_others(clocks, to)->of.nodes[0], from);
    }
    bool grown = false;
    for (int i = 0; i < TREE_CHILDREN; i++) {
        Others *node = *to;
        if (node->level > 0) {
            if (others_cover(node->of.nodes[i], from->of.nodes[i])) continue;
            join_others(clocks, &own_others(clocks, to)->of.nodes[i], from->of.nodes[i]);
        } else {
            if (rows_cover(node->of.rows[i], from->of.rows[i])) continue;
            join_rows(clocks, &own_others(clocks, to)->of.rows[i], from->of.rows[i]);
        }
        grown = true;
    }
    if (grown && same_children(*to, from)) {
        drop_others(clocks, *to);
        *to = share_others(from);
    }
    return grown;
}

/* Adds rows to those of one cluster. */
static void insert_rows(Clocks *clocks, Others **to, uint64_t cluster, Rows *rows) {
    if (!rows) return;
    if (!*to) *to = new_others(clocks, 0);
    while (cluster >> TREE_BITS >> TREE_BITS * (*to)->level)
        raise_others(clocks, to, (*to)->level + 1);
    for (;;) {
        Others *node = own_others(clocks, to);
        uint32_t i = cluster >> TREE_BITS * node->level & (TREE_CHILDREN - 1);
        if (node->level == 0) {
            join_rows(clocks, &node->of.rows[i], rows);
            return;
        }
        if (!node->of.nodes[i]) node->of.nodes[i] = new_others(clocks, node->level - 1);
        to = &node->of.nodes[i];
    }
}

const Rows *others_find(const Others *others, uint64_t cluster) {
    if (!others || cluster >> TREE_BITS >> TREE_BITS * others->level) return NULL;
    for (; others && others->level > 0;)
        others = others->of.nodes[cluster >> TREE_BITS * others->level & (TREE_CHILDREN - 1)];
    return others ? others->of.rows[cluster & (TREE_CHILDREN - 1)] : NULL;
}

/* ---- views ----------------------------------------------------------------------------------- */

void view_share(View *to, const View *from) {
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        assert(!to->clocks[i].rows && !to->clocks[i].others);
        to->clocks[i].rows = share_rows(from->clocks[i].rows);
        to->clocks[i].others = share_others(from->clocks[i].others);
    }
    to->below = from->below;
}

void view_clear(Clocks *clocks, View *view) {
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        drop_rows(clocks, view->clocks[i].rows);
        drop_others(clocks, view->clocks[i].others);
    }
    *view = (View){0};
}

bool view_join(Clocks *clocks, View *to, const View *from) {
    bool grown = to->below < from->below;
    if (grown) to->below = from->below;
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        grown |= join_rows(clocks, &to->clocks[i].rows, from->clocks[i].rows);
        grown |= join_others(clocks, &to->clocks[i].others, from->clocks[i].others);
    }
    return grown;
}

bool view_covers(const View *view, const View *other) {
    bool covers = view->below >= other->below;
    for (int i = 0; i < VIEW_CLOCKS && covers; i++)
        covers = rows_cover(view->clocks[i].rows, other->clocks[i].rows) &&
                 others_cover(view->clocks[i].others, other->clocks[i].others);
    return covers;
}

void view_intersect(Clocks *clocks, View *view, const View *other) {
    if (other->below < view->below) view->below = other->below;
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        if (view->clocks[i].rows)
            intersect_rows(clocks, &view->clocks[i].rows, other->clocks[i].rows);
        drop_others(clocks, view->clocks[i].others);
        view->clocks[i].others = NULL;
    }
}

void view_set(Clocks *clocks, View *view, uint32_t which, uint32_t row, uint32_t mask,
              uint32_t time) {
    for (int i = 0; i < VIEW_CLOCKS; i++)
        if (which >> i & 1) set_rows(clocks, &view->clocks[i].rows, row, mask, time);
}

void view_fence(Clocks *clocks, View *view, uint32_t which) {
    Clock *generic = &view->clocks[VIEW_GENERIC];
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        if (i == VIEW_GENERIC || !(which >> i & 1)) continue;
        Clock old = view->clocks[i];
        view->clocks[i] = (Clock){share_rows(generic->rows), share_others(generic->others)};
        drop_rows(clocks, old.rows);
        drop_others(clocks, old.others);
    }
}

void view_take_observed(Clocks *clocks, View *view) {
    Clock *generic = &view->clocks[VIEW_GENERIC], *observed = &view->clocks[VIEW_OBSERVED];
    join_rows(clocks, &generic->rows, observed->rows);
    join_others(clocks, &generic->others, observed->others);
}

void view_observe(Clocks *clocks, View *into, const View *fenced) {
    Clock *observed = &into->clocks[VIEW_OBSERVED];
    join_rows(clocks, &observed->rows, fenced->clocks[VIEW_FENCED].rows);
    join_others(clocks, &observed->others, fenced->clocks[VIEW_FENCED].others);
}

void view_publish(Clocks *clocks, View *view, uint64_t cluster) {
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        Clock *clock = &view->clocks[i];
        insert_rows(clocks, &clock->others, cluster, clock->rows);
        drop_rows(clocks, clock->rows);
        clock->rows = NULL;
    }
}

bool view_adopt(Clocks *clocks, View *to, const View *published, uint64_t cluster) {
    bool grown = view_join(clocks, to, published);
    for (int i = 0; i < VIEW_CLOCKS; i++) {
        const Rows *rows = others_find(published->clocks[i].others, cluster);
        /* the rows are shared, not changed */
        grown |= join_rows(clocks, &to->clocks[i].rows, (Rows *)(uintptr_t)rows);
    }
    return grown;
}

bool view_knows(const View *view, uint32_t clock, uint64_t own, uint64_t cluster,
                uint32_t component, uint32_t time) {
    const Clock *at = &view->clocks[clock];
    if (cluster < view->below) return true;
    const Rows *rows = cluster == own ? at->rows : others_find(at->others, cluster);
    return !rows_unknown(rows, component / ROW, 1u << component % ROW, time);
}
