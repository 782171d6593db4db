/* The distribution of register tiles over the threads of a role, for the files that derive it.
 *   spread_classes.c     axes and indexes that must be in the same threads form classes
 *   spread_patterns.c    the spread of one class: of accumulators, and blocked
 *   spread_vectors.c     adjacent elements of a thread
 *   spread_components.c  classes that occur together share the threads of the role
 *   tiles_registers.c    layouts of tiles and statements from the spreads of their classes */
#ifndef PIPEC_SPREAD_H
#define PIPEC_SPREAD_H

#include "derive/tiles.h"

/* A class of axes and indexes (union-find); its facts are those of its first node */
typedef struct Node {
    size_t same; /* link to the first node of the class */
    /* link to the first class of those that occur together in tiles and statements */
    size_t together;
    bool used;    /* an axis, or an index that subscripts a register tile */
    bool reduced; /* an index of some reduction or scan */
    bool marked;  /* determined as `kind`, at `where` */
    bool joined;  /* has several nodes */
    SpreadKind kind;
    Span where;
    int64_t unit;   /* divides all extents, and all bases of subscripts */
    int64_t extent; /* of the first; with `parts`, others are parts of it */
    bool parts;
    /* the pattern, to which each axis adds its own last digit; NULL: not settled yet */
    const Spread *spread;
} Node;

/* Accesses to tiles in memory and tensors whose last subscript is one class */
typedef struct Along {
    bool any;
    Traffic traffic;
    int64_t aligned; /* divides the positions at which their vectors begin */
    /* Of a tensor whose rows are at no launch multiples of 16 bytes, what divides them; 0: none */
    int64_t crooked;
} Along;

/* Nodes that need distinct threads: the axes of a tile, or the indexes of a statement */
typedef struct Group {
    size_t first;
    int count;
    const RoleTile *tile; /* NULL: a statement, `site` */
    Site *site;
} Group;

typedef struct Registers {
    Arena *arena; /* scratch */
    Tiles *tiles;
    Role *role;
    int threads;
    size_t count;
    Node *nodes;
    Along *along;      /* by first node of a class */
    VEC(Group) groups; /* of tiles, then of statements so far */
} Registers;

/* ---- spread_classes.c ------------------------------------------------------------------------ */

/* The first node of the class of a node; its facts are those of the class */
size_t spread_first(const Registers *r, size_t node);
/* The first class of those that occur together with the class of a node */
size_t spread_component(const Registers *r, size_t node);
/* The node of axis d of the accessed register tile */
size_t spread_axis_node(const Access *access, int d);
/* What the elements along a class are, for messages */
const char *spread_words(SpreadKind kind);

/* An elementwise statement or reduction of the role without an error */
bool spread_is_map(const Registers *r, const Site *site);
/* The target for k = 0, then the reads; NULL: not in registers */
Access *spread_access(const Site *site, size_t k);
bool spread_names_registers(const Site *site);
/* The index that subscripts axis d, perhaps with a base; -1: none, or not one */
int spread_lone_index(const Access *access, int d);
/* The greatest constant that divides the base of subscript d; 0: the base is 0 */
int64_t spread_base_unit(const Site *site, const Access *access, int d);

/* Opens the nodes of the role, with groups of its register tiles. `indexes`: of all statements
 * over register tiles */
void spread_open(Registers *r, size_t indexes);
/* Joins nodes into classes and determines the spread of some; reports P0205 where one tile would
 * need two layouts. */
void spread_statements(Registers *r);

/* ---- spread_patterns.c ----------------------------------------------------------------------- */

/* `place`: of the innermost thread, or of the register among those of its thread */
Digit spread_in_thread(int place, int64_t extent, int64_t stride);
Digit spread_in_register(int place, int64_t extent, int64_t stride);
/* All digits of the kind, except the last one */
Spread spread_pattern(SpreadKind kind);
/* The pattern for a whole axis, with its number of granules */
Spread spread_whole(const Spread *pattern, int axis, int64_t extent);
/* Vectors, which divide the unit, then as many threads of `room` as divide the remaining extent;
 * takes them from `room` */
Spread spread_blocked(int64_t unit, int64_t vector, Digit *room);

/* ---- spread_vectors.c ------------------------------------------------------------------------ */

/* Finds the accesses to memory along each class; needs the classes. */
void spread_memory(Registers *r);
/* Elements of a vector along a class, which divide its unit. Longer ones than usual need aligned
 * accesses, and `total` elements for all threads. */
int64_t spread_vector(const Registers *r, size_t class, int64_t unit, int64_t total);

/* ---- spread_components.c --------------------------------------------------------------------- */

/* Links classes that occur together in a tile or statement: they share the threads. */
void spread_components(Registers *r);
/* Sets the spread of each class. */
void spread_settle(Registers *r);

#endif
