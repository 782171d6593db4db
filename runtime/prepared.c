/* runtime: what launches have computed from their tensors and integers, kept for the next launches
 * with the same ones. A program that trains launches one kernel with some hundred sets of tensors
 * in turn, so the table grows. It has places in groups; the addresses of the tensors decide the
 * group, and a launch without a place takes that of the one that was used longest ago. The kernel's
 * lock protects the table. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>

#define GROUP       8   /* places */
#define GROUPS      4   /* at first */
#define GROUPS_MOST 256 /* a power of four times GROUPS */
#define TAKEN       512 /* launches whose place was taken, that are known by their hash */
#define BACK        8   /* that came back, before the table grows */

typedef struct Prepared {
    DeviceArgument *arguments; /* the key: one per parameter */
    Bound bound;
    uint64_t hash; /* of the addresses */
    uint64_t used; /* number of the launch that used it last; 0: empty */
} Prepared;

struct PreparedTable {
    size_t groups, back; /* launches that came back */
    uint64_t launches;
    uint64_t taken[TAKEN]; /* hashes */
    Prepared items[];      /* GROUP * groups; then the arrays that they point to */
};

/* ---- tables ---------------------------------------------------------------------------------- */

/* NULL: no memory */
static PreparedTable *table_new(const Manifest *manifest, size_t groups) {
    size_t maps = manifest->maps.count * TENSOR_MAP_BYTES,
           arguments = manifest->parameters.count * sizeof(DeviceArgument),
           symbols = manifest->symbols.count * sizeof(int64_t), places = groups * GROUP;
    PreparedTable *table =
        calloc(1, sizeof *table + places * (sizeof *table->items + maps + arguments + symbols));
    if (table == NULL) return NULL;
    table->groups = groups;
    unsigned char *at = (unsigned char *)&table->items[places];
    for (size_t i = 0; i < places; i++) {
        Prepared *prepared = &table->items[i];
        prepared->arguments = (DeviceArgument *)(void *)at;
        prepared->bound.symbols = (int64_t *)(void *)(at + arguments);
        prepared->bound.maps = at + arguments + symbols;
        at += arguments + symbols + maps;
    }
    return table;
}

bool prepared_open(RuntimeKernel *kernel) {
    kernel->prepared = table_new(kernel->manifest, GROUPS);
    return kernel->prepared != NULL;
}

void prepared_close(RuntimeKernel *kernel) { free(kernel->prepared); }

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const Manifest *manifest, const DeviceArgument *arguments) {
    uint64_t hash = 0;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        if (manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        hash = (hash ^ arguments[i].pointer) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool is_same_tensor(int rank, const DeviceArgument *a, const DeviceArgument *b) {
    if (a->pointer != b->pointer || a->strided != b->strided) return false;
    for (int axis = 0; axis < rank; axis++)
        if (a->extents[axis] != b->extents[axis] ||
            (a->strided && a->strides[axis] != b->strides[axis]))
            return false;
    return true;
}

/* A floating-point scalar that no precondition names changes nothing but itself. */
static bool is_same_scalar(const ManifestParameter *parameter, const Scalar *a, const Scalar *b) {
    if (element_rows[parameter->type].kind == ELEMENT_FLOAT && !parameter->compared) return true;
    return parameter->symbol < 0 ||
           scalar_symbol(parameter->type, a) == scalar_symbol(parameter->type, b);
}

static bool is_prepared(const Manifest *manifest, const Prepared *prepared,
                        const DeviceArgument *arguments, uint64_t hash) {
    if (prepared->used == 0 || prepared->hash != hash) return false;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        const DeviceArgument *a = &prepared->arguments[i], *b = &arguments[i];
        bool same = parameter->kind == PARAMETER_TENSOR
                        ? is_same_tensor(parameter->rank, a, b)
                        : is_same_scalar(parameter, &a->scalar, &b->scalar);
        if (!same) return false;
    }
    return true;
}

/* *oldest: the one to replace, if none is found */
static Prepared *find(PreparedTable *table, const Manifest *manifest,
                      const DeviceArgument *arguments, uint64_t hash, Prepared **oldest) {
    Prepared *group = &table->items[(hash & (table->groups - 1)) * GROUP];
    *oldest = group;
    for (Prepared *it = group; it < group + GROUP; it++) {
        if (is_prepared(manifest, it, arguments, hash)) return it;
        if (it->used < (*oldest)->used) *oldest = it;
    }
    return NULL;
}

static void copy_bound(const Manifest *manifest, const Bound *from, Bound *to) {
    to->tiles = from->tiles;
    memcpy(to->symbols, from->symbols, manifest->symbols.count * sizeof *to->symbols);
    memcpy(to->maps, from->maps, manifest->maps.count * TENSOR_MAP_BYTES);
}

static void put(PreparedTable *table, const Manifest *manifest, const Prepared *from) {
    Prepared *place;
    if (find(table, manifest, from->arguments, from->hash, &place) != NULL)
        return; /* by another thread meanwhile */
    if (place->used > 0) table->taken[place->hash % TAKEN] = place->hash;
    memcpy(place->arguments, from->arguments,
           manifest->parameters.count * sizeof *place->arguments);
    copy_bound(manifest, &from->bound, &place->bound);
    place->hash = from->hash;
    place->used = from->used;
}

/* The old table stays if there is no memory. */
static void grow(RuntimeKernel *kernel) {
    PreparedTable *old = kernel->prepared, *table = table_new(kernel->manifest, 4 * old->groups);
    if (table == NULL) return;
    table->launches = old->launches;
    for (size_t i = 0; i < GROUP * old->groups; i++)
        if (old->items[i].used > 0) put(table, kernel->manifest, &old->items[i]);
    kernel->prepared = table;
    free(old);
}

/* ---- launches -------------------------------------------------------------------------------- */

bool prepared_recall(RuntimeKernel *kernel, const DeviceArgument *arguments, Bound *bound) {
    uint64_t hash = hash_of(kernel->manifest, arguments);
    Prepared *oldest;
    pthread_mutex_lock(&kernel->lock);
    Prepared *found = find(kernel->prepared, kernel->manifest, arguments, hash, &oldest);
    if (found != NULL) {
        found->used = ++kernel->prepared->launches;
        copy_bound(kernel->manifest, &found->bound, bound);
    }
    pthread_mutex_unlock(&kernel->lock);
    return found != NULL;
}

void prepared_remember(RuntimeKernel *kernel, const DeviceArgument *arguments, const Bound *bound) {
    Prepared made = {(DeviceArgument *)(uintptr_t)arguments, *bound,
                     hash_of(kernel->manifest, arguments), 0};
    pthread_mutex_lock(&kernel->lock);
    PreparedTable *table = kernel->prepared;
    made.used = ++table->launches;
    table->back += table->taken[made.hash % TAKEN] == made.hash;
    if (table->back == BACK && table->groups < GROUPS_MOST) grow(kernel);
    put(kernel->prepared, kernel->manifest, &made);
    pthread_mutex_unlock(&kernel->lock);
}
