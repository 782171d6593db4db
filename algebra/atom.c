/* Atoms, of which polynomials consist, each interned once by a key that identifies it. Takes
 * kinds and operands; returns ids. Also operations on all atoms in a polynomial: contains,
 * replace, import. */
#include "algebra/private.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void poly_add_key(Str *key, const Poly *poly) {
    str_char(key, '(');
    for (int i = 0; i < poly->count; i++) {
        if (poly->terms[i].coef >= 0) str_char(key, '+');
        str_integer(key, poly->terms[i].coef);
        for (int k = 0; k < poly->terms[i].count; k++) {
            str_char(key, '.');
            str_integer(key, poly->terms[i].atoms[k]);
        }
    }
    str_char(key, ')');
}

bool poly_changes(const Algebra *algebra, const Poly *poly) {
    if (!poly) return true;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (algebra->atoms.items[poly->terms[i].atoms[k]].changes) return true;
    return false;
}

bool poly_wraps(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; poly && i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (algebra->atoms.items[poly->terms[i].atoms[k]].wraps) return true;
    return false;
}

bool poly_is_cut(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; poly && i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (algebra->atoms.items[poly->terms[i].atoms[k]].cut) return true;
    return !poly;
}

const Poly *poly_cut(Algebra *algebra, const Poly *poly) {
    for (int i = 0; poly && i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            algebra->atoms.items[poly->terms[i].atoms[k]].cut = true;
    return poly;
}

#define CACHED 64 /* most cached results of one search: formulas share many atoms */

static bool poly_may_hold(const Algebra *algebra, const Poly *poly, int inner) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = poly->terms[i].atoms[k];
            if (atom_may_hold(&algebra->atoms.items[id], id, inner)) return true;
        }
    return false;
}

/* A search for one atom in others */
typedef struct Search {
    const Algebra *algebra;
    int atom;
    int without[CACHED]; /* 1 + id of an atom that does not contain it */
} Search;

static bool is_in(Search *search, const Poly *poly);

static bool is_in_atom(Search *search, int id) {
    const Atom *atom = &search->algebra->atoms.items[id];
    int *without = &search->without[id % CACHED];
    arena_count(search->algebra->arena, 1);
    if (id == search->atom) return true;
    if (!atom_may_hold(atom, id, search->atom) || *without == id + 1) return false;
    for (int a = 0; a < 3; a++)
        if (atom->args[a] && is_in(search, atom->args[a])) return true;
    *without = id + 1;
    return false;
}

static bool is_in(Search *search, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (is_in_atom(search, poly->terms[i].atoms[k])) return true;
    return false;
}

bool poly_mentions(const Algebra *algebra, const Poly *poly, int atom) {
    if (!poly) return true;
    if (!poly_may_hold(algebra, poly, atom)) return false;
    Search search = {.algebra = algebra, .atom = atom};
    return is_in(&search, poly);
}

static size_t bucket_of(const Algebra *algebra, const char *key) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (const char *at = key; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
    size_t slot = (size_t)hash & (algebra->bucket_count - 1);
    while (algebra->buckets[slot] &&
           strcmp(algebra->atoms.items[algebra->buckets[slot] - 1].key, key) != 0)
        slot = (slot + 1) & (algebra->bucket_count - 1);
    return slot;
}

/* Precomputes facts about all atoms in an atom */
static void summarise(const Algebra *algebra, Atom *atom, int id) {
    atom->within = UINT64_C(1) << id % 64;
    atom->bounds = atom->kind == ATOM_BOUND ? atom->index : 0;
    atom->wraps = atom->kind == ATOM_WRAP;
    atom->indexed = atom->kind == ATOM_INDEX;
    atom->of_symbols = atom->kind == ATOM_SYMBOL || atom->args[0];
    atom->foreign = atom->changes && !atom->args[0] && atom->kind != ATOM_LOCAL;
    atom->bound = atom->kind == ATOM_BOUND ? id : -1;
    atom->question = atom->quotient = -1;
    for (int a = 0; a < 3 && atom->args[a]; a++)
        for (int t = 0; t < atom->args[a]->count; t++)
            for (int k = 0; k < atom->args[a]->terms[t].count; k++) {
                const Atom *inner = &algebra->atoms.items[atom->args[a]->terms[t].atoms[k]];
                atom->within |= inner->within;
                atom->wraps |= inner->wraps;
                atom->cut |= inner->cut;
                atom->indexed |= inner->indexed;
                atom->of_symbols &= inner->of_symbols;
                atom->foreign |= inner->foreign;
                if (inner->bounds > atom->bounds)
                    atom->bounds = inner->bounds, atom->bound = inner->bound;
                if (atom->question < 0) atom->question = inner->question;
                if (atom->quotient < 0) atom->quotient = inner->quotient;
            }
    /* A question about the variable of a sum has several answers */
    bool asks = atom->type == E_BOOL || atom->kind == ATOM_MIN || atom->kind == ATOM_MAX;
    int64_t by;
    if (atom->question < 0 && asks && !atom->bounds) atom->question = id;
    if (atom->quotient < 0 && atom->kind == ATOM_FLOOR && poly_is_constant(atom->args[1], &by))
        atom->quotient = id;
}

/* Copies the key. */
static int intern(Algebra *algebra, Atom atom) {
    if ((algebra->atoms.count + 1) * 2 > algebra->bucket_count) {
        algebra->bucket_count = algebra->bucket_count ? algebra->bucket_count * 2 : 32;
        algebra->buckets = NEW_ARRAY(algebra->arena, int, algebra->bucket_count);
        for (size_t i = 0; i < algebra->atoms.count; i++)
            algebra->buckets[bucket_of(algebra, algebra->atoms.items[i].key)] = (int)i + 1;
    }
    size_t slot = bucket_of(algebra, atom.key);
    if (!algebra->buckets[slot]) {
        atom.key = arena_copy(algebra->arena, atom.key, strlen(atom.key));
        atom.self = NULL; /* belongs to another algebra */
        summarise(algebra, &atom, (int)algebra->atoms.count);
        vec_push(algebra->arena, &algebra->atoms, atom);
        algebra->buckets[slot] = (int)algebra->atoms.count;
    }
    return algebra->buckets[slot] - 1;
}

/* Writes digits from the end: printf would take most of the time. */
static char *write_number(char *at, uint64_t value, unsigned base) {
    do *--at = "0123456789abcdef"[value % base];
    while (value /= base);
    return at;
}

static char *write_signed(char *at, int value) {
    at = write_number(at, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
    if (value < 0) *--at = '-';
    return at;
}

typedef struct KeyRoom {
    char text[80];
} KeyRoom;

static char *end_of(KeyRoom *room) {
    char *end = room->text + sizeof room->text - 1;
    *end = 0;
    return end;
}

/* "%c%x.%x" */
static const char *simple_key(KeyRoom *room, char tag, uint64_t index, uint64_t role) {
    char *at = write_number(end_of(room), role, 16);
    *--at = '.';
    at = write_number(at, index, 16);
    *--at = tag;
    return at;
}

/* "%s%d@%d;%x" */
static const char *version_key(KeyRoom *room, const char *tag, int local, int row, uint64_t role) {
    char *at = write_number(end_of(room), role, 16);
    size_t length = strlen(tag);
    assert(length < 16);
    *--at = ';';
    at = write_signed(at, row);
    *--at = '@';
    at = write_signed(at, local);
    at -= length;
    memcpy(at, tag, length);
    return at;
}

/* Levels order the atoms so that bounds lead to lower levels: symbols, formulas of them, axes,
 * ranks, loops from outer to inner, indexes. The level of an operation is just above its
 * operands'. */
static int intern_simple(Algebra *algebra, AtomKind kind, int index, const Role *role,
                         Element type) {
    Atom atom = {.kind = kind, .index = index, .role = role, .type = type};
    char tag = 'S';
    switch (kind) {
    case ATOM_SYMBOL: break;
    case ATOM_AXIS: tag = 'A', atom.level = 1000; break;
    case ATOM_RANK: tag = 'K', atom.level = 1500; break;
    case ATOM_LOCAL:
        tag = 'L';
        atom.level = 2000 + 20 * index;
        atom.changes = role->locals.items[index].kind == LOCAL_VAR;
        break;
    case ATOM_INDEX: tag = 'I', atom.level = 1 << 28; break;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL:
    case ATOM_MIN:
    case ATOM_MAX:
    case ATOM_SELECT:
    case ATOM_TRUTH:
    case ATOM_WRAP:
    case ATOM_FLOOR:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST:
    case ATOM_OPAQUE: break;
    }
    KeyRoom room;
    atom.key = simple_key(&room, tag, (uint64_t)index, (uintptr_t)role);
    return intern(algebra, atom);
}

int atom_simple(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type) {
    SimpleAtom *last = &algebra->simple[((unsigned)index * 5 + kind) % SIMPLE_CACHED];
    if (!last->id || last->kind != kind || last->index != index || last->role != role)
        *last =
            (SimpleAtom){kind, index, role, 1 + intern_simple(algebra, kind, index, role, type)};
    return last->id - 1;
}

int algebra_atom_rank(Algebra *algebra, const Role *role) {
    return atom_simple(algebra, ATOM_RANK, 0, role, E_I32);
}
int algebra_atom_axis(Algebra *algebra, int axis) {
    return atom_simple(algebra, ATOM_AXIS, axis, NULL, E_I32);
}
int algebra_atom_index(Algebra *algebra, int index) {
    return atom_simple(algebra, ATOM_INDEX, index, NULL, E_I32);
}

int algebra_atom_local(Algebra *algebra, const Role *role, int local) {
    const Local *what = &role->locals.items[local];
    if (what->kind == LOCAL_AXIS)
        return atom_simple(algebra, ATOM_AXIS, what->axis, NULL, what->type);
    return atom_simple(algebra, ATOM_LOCAL, local, role, what->type);
}

const Local *atom_limited(const Atom *atom) {
    if (atom->kind != ATOM_LOCAL) return NULL;
    const Local *local = &atom->role->locals.items[atom->index];
    return local->lo && local->hi ? local : NULL;
}

/* An operation of up to three operands; `tag` identifies the operation in the key. NULL if an
 * operand is unknown. */
const Poly *algebra_operation(Algebra *algebra, AtomKind kind, const char *tag, Element type,
                              const Poly *const *args, int count) {
    Str *key = &algebra->key;
    Atom atom = {.kind = kind, .type = type};
    if (!key->arena) *key = str_new(algebra->arena);
    key->length = 0;
    str_add(key, tag);
    for (int i = 0; i < count; i++) {
        if (!args[i]) return NULL;
        atom.args[i] = args[i];
        atom.changes |= poly_changes(algebra, args[i]);
        poly_add_key(key, args[i]);
        for (int t = 0; t < args[i]->count; t++)
            for (int k = 0; k < args[i]->terms[t].count; k++) {
                const Atom *inner = &algebra->atoms.items[args[i]->terms[t].atoms[k]];
                if (inner->level + 1 > atom.level) atom.level = inner->level + 1;
            }
    }
    atom.key = key->text;
    return poly_atom(algebra, intern(algebra, atom));
}

int algebra_part(Algebra *algebra, int64_t limit) {
    Atom atom = {.kind = limit ? ATOM_REST : ATOM_WHOLE,
                 .index = ++algebra->parts,
                 .type = E_I64,
                 .level = 1};
    if (limit) atom.args[0] = poly_constant(algebra, limit);
    atom.key = arena_printf(algebra->arena, "part%d", atom.index);
    return intern(algebra, atom);
}

int poly_bounds(const Algebra *algebra, const Poly *poly) {
    int most = 0;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[i].atoms[k]];
            if (atom->bounds > most) most = atom->bounds;
        }
    return most;
}

int algebra_bound(Algebra *algebra, const Poly *body) {
    Atom atom = {
        .kind = ATOM_BOUND, .index = 1 + poly_bounds(algebra, body), .type = E_I64, .level = 1};
    atom.key = arena_printf(algebra->arena, "bound%d", atom.index);
    return intern(algebra, atom);
}

/* Without structure: equal only to itself */
const Poly *atom_by_place(Algebra *algebra, const Expr *expr, Element type, bool changes) {
    Atom atom = {.kind = ATOM_OPAQUE, .type = type, .level = (1 << 28) + 1, .changes = changes};
    atom.key = arena_printf(algebra->arena, "@%p", (const void *)expr);
    return poly_atom(algebra, intern(algebra, atom));
}

/* ---- import, and replacement of atoms -------------------------------------------------------- */

static const char *tag_of(Algebra *algebra, const Atom *operation) {
    return arena_copy(algebra->arena, operation->key, strcspn(operation->key, "("));
}

/* The operation of `old` on other operands; commutative operations get one order */
static const Poly *operation_again(Algebra *algebra, const Atom *old, const Poly *const *args,
                                   int count) {
    const Poly *made;
    switch (old->kind) {
    case ATOM_DIV: return form_div(algebra, args[0], args[1], old->type);
    case ATOM_MOD: return form_mod(algebra, args[0], args[1], old->type);
    case ATOM_CEIL: return form_ceil(algebra, args[0], args[1], old->type);
    case ATOM_MIN:
    case ATOM_MAX: return form_extreme(algebra, old->kind == ATOM_MAX, args[0], args[1], old->type);
    case ATOM_TRUTH: return poly_truth(algebra, args[0]);
    case ATOM_WRAP: return algebra_value(algebra, args[0], old->type);
    case ATOM_FLOOR: return poly_floor(algebra, args[0], args[1]);
    case ATOM_SUM: return poly_sums(algebra, args[0], args[1]);
    case ATOM_SELECT: return poly_select(algebra, args[0], args[1], args[2], old->type);
    case ATOM_FIRST:
        return algebra_operation(algebra, old->kind, tag_of(algebra, old), old->type, args, count);
    case ATOM_OPAQUE:
        made = form_opaque(algebra, tag_of(algebra, old), old->type, args, count);
        return old->cut ? poly_cut(algebra, made) : made;
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_LOCAL:
    case ATOM_RANK:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_INDEX: break;
    }
    return NULL;
}

static const Poly *import_atom(Algebra *algebra, Algebra *from, int id) {
    (void)range_of_atom(from, id);     /* its role's algebra knows the range of a loop variable */
    Atom atom = from->atoms.items[id]; /* the key is the same in every algebra */
    const Poly *args[3] = {NULL, NULL, NULL};
    int count = 0;
    for (; count < 3 && atom.args[count]; count++)
        if (!(args[count] = algebra_import(algebra, from, atom.args[count]))) return NULL;
    if (atom.kind == ATOM_WHOLE || atom.kind == ATOM_REST || atom.kind == ATOM_BOUND) return NULL;
    return count > 0 ? operation_again(algebra, &atom, args, count)
                     : poly_atom(algebra, intern(algebra, atom));
}

const Poly *algebra_import(Algebra *algebra, Algebra *from, const Poly *poly) {
    const Poly *sum = poly_constant(algebra, 0);
    if (algebra == from || !poly) return poly;
    for (int t = 0; t < poly->count && sum; t++) {
        const Poly *product = poly_constant(algebra, poly->terms[t].coef);
        for (int k = 0; k < poly->terms[t].count; k++)
            product =
                poly_product(algebra, product, import_atom(algebra, from, poly->terms[t].atoms[k]));
        sum = poly_sum(algebra, sum, product, 1);
    }
    return sum;
}

size_t poly_size(const Algebra *algebra, const Poly *poly) {
    size_t size = 0;
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++)
            size += strlen(algebra->atoms.items[poly->terms[t].atoms[k]].key);
    return size;
}

const Poly *algebra_version(Algebra *algebra, const Role *role, int local, int row, const char *tag,
                            Element type) {
    Atom atom = {
        .kind = ATOM_OPAQUE, .index = row, .role = role, .type = type, .level = (1 << 28) + 1};
    KeyRoom room;
    atom.key = version_key(&room, tag, local, row, (uintptr_t)role);
    return poly_atom(algebra, intern(algebra, atom));
}

const Poly *algebra_filled(Algebra *algebra, int version, const Role *role, int row) {
    Atom old = algebra->atoms.items[version];
    Atom atom = {.kind = ATOM_OPAQUE, .index = row, .role = role, .type = old.type};
    atom.level = old.level;
    atom.key =
        arena_printf(algebra->arena, "filled.%s@%d;%" PRIxPTR, old.key, row, (uintptr_t)role);
    return poly_atom(algebra, intern(algebra, atom));
}

bool atom_is_filled(const Atom *atom) { return strncmp(atom->key, "filled.", 7) == 0; }

static int find_version(const Algebra *algebra, const Poly *poly, AtomTest *test, const void *data,
                        Visited *visited) {
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            int id = poly->terms[t].atoms[k], found = -1;
            const Atom *atom = &algebra->atoms.items[id];
            if (visit_again(algebra, visited, id)) continue;
            if (atom->kind == ATOM_OPAQUE && atom->role && test(atom, data)) return id;
            for (int a = 0; a < 3 && atom->args[a] && found < 0; a++)
                found = find_version(algebra, atom->args[a], test, data, visited);
            if (found >= 0) return found;
        }
    return -1;
}

int poly_find_version(const Algebra *algebra, const Poly *poly, AtomTest *test, const void *data) {
    Visited visited = {{0}};
    return find_version(algebra, poly, test, data, &visited);
}

typedef struct Setters {
    const Role *role;
    int first, last;
} Setters;

static bool is_set_by(const Atom *atom, const void *data) {
    const Setters *setters = data;
    return atom->role == setters->role && atom->index >= setters->first &&
           atom->index <= setters->last;
}

bool poly_has_version(const Algebra *algebra, const Poly *poly, const Role *role, int first,
                      int last) {
    Setters setters = {role, first, last};
    return poly_find_version(algebra, poly, is_set_by, &setters) >= 0;
}

/* Replacement of an atom by a formula */
typedef struct Replacing {
    Algebra *algebra;
    const Poly *by;
    Search search;
    int ids[CACHED]; /* 1 + id of an atom that contains it, and the result for that atom */
    const Poly *made[CACHED];
} Replacing;

static const Poly *replace(Replacing *r, const Poly *poly);

/* `old` with the formula substituted in its operands */
static const Poly *operation_with(Replacing *r, Atom old) {
    const Poly *args[3] = {NULL, NULL, NULL};
    int count = 0;
    for (; count < 3 && old.args[count]; count++) args[count] = replace(r, old.args[count]);
    return operation_again(r->algebra, &old, args, count);
}

static const Poly *replace_in_atom(Replacing *r, int id) {
    if (id == r->search.atom) return r->by;
    if (!is_in_atom(&r->search, id)) return poly_atom(r->algebra, id);
    if (r->ids[id % CACHED] == id + 1) return r->made[id % CACHED];
    const Poly *made = operation_with(r, r->algebra->atoms.items[id]);
    r->ids[id % CACHED] = id + 1;
    r->made[id % CACHED] = made;
    return made;
}

static const Poly *replace(Replacing *r, const Poly *poly) {
    Algebra *algebra = r->algebra;
    if (!is_in(&r->search, poly)) return poly;
    Poly *same = poly_new(algebra, poly->count); /* unchanged terms */
    const Poly *result = poly_constant(algebra, 0);
    for (int i = 0; i < poly->count && result; i++) {
        const Term *term = &poly->terms[i];
        bool mentions = false;
        for (int k = 0; k < term->count && !mentions; k++)
            mentions = is_in_atom(&r->search, term->atoms[k]);
        if (!mentions) {
            same->terms[same->count++] = *term;
            continue;
        }
        const Poly *product = replace_in_atom(r, term->atoms[0]);
        for (int k = 1; k < term->count; k++)
            product = poly_product(algebra, product, replace_in_atom(r, term->atoms[k]));
        result = poly_sum(algebra, result, product, term->coef);
    }
    return poly_sum(algebra, same, result, 1);
}

const Poly *poly_replace(Algebra *algebra, const Poly *poly, int atom, const Poly *by) {
    if (!poly || !by) return NULL;
    if (!poly_may_hold(algebra, poly, atom)) return poly;
    Replacing r = {.algebra = algebra, .by = by, .search = {.algebra = algebra, .atom = atom}};
    return replace(&r, poly);
}
