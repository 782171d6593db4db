/* lib: a table from launches to the kernels that were chosen for them. The key is what a choice
 * depends on: extents, strides, alignments, integers and limits, not addresses or other data. */
#include "lib/serve.h"

#include "lib/machine.h"
#include "lib/tune.h"

#include <string.h>

#define ENTRIES       4096 /* a power of two; a full table is emptied, choices do not change */
#define ALIGNED_MOST  256  /* no kernel needs more */
#define SMALL_ENTRIES 64

typedef struct Entry {
    PipecKernel *kernel; /* NULL: free */
    uint64_t hash;
} Entry;

struct Server {
    PipecProgram *program;
    PipecKernel *own;
    const ServerLoader *loader;
    ServerDevice device;
    MachineRow machine;
    Arena *arena;         /* of the server */
    Choices choices;      /* of tuning, as they were at the load */
    Kept kept;            /* those of this text; needs `slow` */
    pthread_mutex_t lock; /* of the table */
    pthread_mutex_t slow; /* one thread chooses, compiles and loads */
    size_t words;         /* of a key */
    Entry *table;
    int64_t *keys;
    size_t capacity, used;
    const Family *family;  /* needs `slow` */
    PipecKernel **kernels; /* by candidate; NULL: never chosen */
    PipecProgram **programs;
};

/* ---- keys ------------------------------------------------------------------------------------ */

static size_t key_words(const Manifest *manifest) {
    size_t words = 1;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        words += parameter->kind == PARAMETER_SCALAR ? 1 : 1 + 2 * (size_t)parameter->rank;
    }
    return words;
}

/* Alignment of the address, and whether strides are given */
static int64_t place_word(const DeviceArgument *argument) {
    uint64_t low = argument->pointer & (0 - argument->pointer);
    if (low == 0 || low > ALIGNED_MOST) low = ALIGNED_MOST;
    return (int64_t)(low << 1 | argument->strided);
}

static void make_key(const Manifest *manifest, const DeviceArgument *arguments, int multiprocessors,
                     int64_t *key) {
    *key++ = multiprocessors;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        const DeviceArgument *argument = &arguments[i];
        if (parameter->kind == PARAMETER_SCALAR) {
            bool matters =
                parameter->symbol >= 0 &&
                (element_rows[parameter->type].kind != ELEMENT_FLOAT || parameter->compared);
            *key++ = matters ? scalar_symbol(parameter->type, &argument->scalar) : 0;
            continue;
        }
        *key++ = place_word(argument);
        for (int axis = 0; axis < parameter->rank; axis++) {
            *key++ = argument->extents[axis];
            *key++ = argument->strided ? argument->strides[axis] : 0;
        }
    }
}

static uint64_t hash_key(const int64_t *key, size_t words) {
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < words; i++) {
        hash = (hash ^ (uint64_t)key[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return hash;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The entry of the key, or the free one where it belongs */
static size_t find_place(const Server *server, const int64_t *key, uint64_t hash) {
    size_t at = (size_t)hash & (server->capacity - 1);
    while (server->table[at].kernel != NULL &&
           (server->table[at].hash != hash ||
            memcmp(&server->keys[at * server->words], key, server->words * sizeof *key) != 0))
        at = (at + 1) & (server->capacity - 1);
    return at;
}

static PipecKernel *recall(Server *server, const int64_t *key, uint64_t hash) {
    pthread_mutex_lock(&server->lock);
    PipecKernel *kernel = server->table[find_place(server, key, hash)].kernel;
    pthread_mutex_unlock(&server->lock);
    return kernel;
}

static void new_table(Server *server, size_t capacity) {
    server->table = NEW_ARRAY(server->arena, Entry, capacity);
    server->keys = NEW_ARRAY(server->arena, int64_t, capacity * server->words);
    server->capacity = capacity;
    server->used = 0;
}

static void put(Server *server, const int64_t *key, uint64_t hash, PipecKernel *kernel) {
    size_t at = find_place(server, key, hash);
    server->used += server->table[at].kernel == NULL;
    server->table[at] = (Entry){kernel, hash};
    memcpy(&server->keys[at * server->words], key, server->words * sizeof *key);
}

/* A table of four times the size */
static void grow(void *data) {
    Server *server = data, grown = *server;
    new_table(&grown, 4 * server->capacity);
    for (size_t i = 0; i < server->capacity; i++)
        if (server->table[i].kernel != NULL)
            put(&grown, &server->keys[i * server->words], server->table[i].hash,
                server->table[i].kernel);
    server->table = grown.table, server->keys = grown.keys;
    server->capacity = grown.capacity, server->used = grown.used;
}

/* Needs `slow` */
static void remember(Server *server, const int64_t *key, uint64_t hash, PipecKernel *kernel) {
    pthread_mutex_lock(&server->lock);
    bool full = 2 * server->used >= server->capacity;
    if (full && (server->capacity >= ENTRIES || !attempt(server->arena, grow, server))) {
        memset(server->table, 0, server->capacity * sizeof *server->table);
        server->used = 0;
    }
    put(server, key, hash, kernel);
    pthread_mutex_unlock(&server->lock);
}

/* ---- a new launch ---------------------------------------------------------------------------- */

typedef struct Serving {
    Server *server;
    const DeviceArgument *arguments;
    int multiprocessors;
    Arena *words;
    const Candidate *candidate; /* NULL: none can run */
} Serving;

static void choose(void *data) {
    Serving *it = data;
    Server *server = it->server;
    it->words = arena_scratch(server->arena);
    MachineRow machine = server->machine;
    if (it->multiprocessors > 0 && it->multiprocessors < machine.multiprocessors)
        machine.multiprocessors = it->multiprocessors;
    Wish wish = {.arguments = it->arguments,
                 .machine = &machine,
                 .kept = &server->kept,
                 .multiprocessors = it->multiprocessors};
    it->candidate = family_choose(server->family, &wish, it->words).candidate;
}

static void open_family(void *data) {
    Server *server = data;
    const Family *family = family_of(server->program);
    if (family == NULL) arena_fail(server->arena);
    server->kernels = NEW_ARRAY(server->arena, PipecKernel *, family->count);
    server->programs = NEW_ARRAY(server->arena, PipecProgram *, family->count);
    server->family = family;
    server->kept =
        kept_of(server->arena, &server->choices, &family->key, server->device.facts.name);
}

/* Loads the candidate, if it was never chosen before; NULL: an error */
static PipecKernel *load(Server *server, const Candidate *candidate, PipecStatus *status,
                         PipecDiagnostics **diagnostics) {
    size_t index = (size_t)(candidate - server->family->items);
    PipecKernel *kernel = server->kernels[index];
    if (kernel != NULL) return kernel;
    PipecProgram *program = family_program(server->family, candidate);
    if (program == NULL) *diagnostics = (PipecDiagnostics *)&no_memory;
    if (program == NULL) return NULL;
    *status = server->loader->load(program, server->device.ordinal, &kernel, diagnostics);
    if (kernel == NULL) {
        pipec_program_free(program);
        return NULL;
    }
    server->kernels[index] = kernel;
    server->programs[index] = program;
    return kernel;
}

/* Needs `slow` */
static PipecKernel *find_new(Serving *it, PipecStatus *status, PipecDiagnostics **diagnostics) {
    Server *server = it->server;
    bool opened = server->family != NULL || attempt(server->arena, open_family, server);
    bool chosen = opened && attempt(server->arena, choose, it);
    if (it->words != NULL) arena_free(it->words);
    if (!chosen) *diagnostics = (PipecDiagnostics *)&no_memory;
    if (!chosen) return NULL;
    /* none can run: the program's own kernel reports why */
    if (it->candidate == NULL || it->candidate == server->family->items) return server->own;
    return load(server, it->candidate, status, diagnostics);
}

PipecKernel *server_find(Server *server, const DeviceArgument *arguments, int multiprocessors,
                         PipecStatus *status, PipecDiagnostics **diagnostics) {
    int64_t key[server->words];
    make_key(server->program->manifest, arguments, multiprocessors, key);
    uint64_t hash = hash_key(key, server->words);
    PipecKernel *kernel = recall(server, key, hash);
    if (kernel != NULL) return kernel;
    Serving it = {.server = server, .arguments = arguments, .multiprocessors = multiprocessors};
    PipecDiagnostics *said = NULL;
    *status = PIPEC_UNUSABLE;
    pthread_mutex_lock(&server->slow);
    kernel = recall(server, key, hash); /* another thread was faster */
    if (kernel == NULL && (kernel = find_new(&it, status, &said)) != NULL && it.candidate != NULL)
        remember(server, key, hash, kernel);
    pthread_mutex_unlock(&server->slow);
    if (diagnostics != NULL)
        *diagnostics = said;
    else
        pipec_diagnostics_free(said);
    return kernel;
}

/* ---- the server ------------------------------------------------------------------------------ */

typedef struct Start {
    Server *server;
    Diags *diags;
} Start;

static void start(void *data) {
    Start *it = data;
    Server *server = NEW(it->server->arena, Server);
    *server = *it->server;
    it->server = server;
    pthread_mutex_init(&server->lock, NULL); /* cannot fail: no attributes */
    pthread_mutex_init(&server->slow, NULL);
    new_table(server, SMALL_ENTRIES);
    server->machine = machine_for(server->arena, &server->device.facts, it->diags);
    const char *why, *file = cache_file(server->arena, &why);
    if (file != NULL && cache_is_there(file))
        server->choices = cache_read(server->arena, file, it->diags);
}

Server *server_new(PipecProgram *program, PipecKernel *own, const ServerLoader *loader,
                   const ServerDevice *device, Diags *diags) {
    Server server = {.program = program,
                     .own = own,
                     .loader = loader,
                     .device = *device,
                     .arena = arena_new(),
                     .words = key_words(program->manifest)};
    Start it = {&server, diags};
    if (server.arena != NULL && attempt(server.arena, start, &it)) return it.server;
    arena_free(server.arena);
    return NULL;
}

void server_free(Server *server) {
    if (server == NULL) return;
    for (size_t i = 0; server->kernels != NULL && i < server->family->count; i++) {
        server->loader->free(server->kernels[i]);
        pipec_program_free(server->programs[i]);
    }
    pthread_mutex_destroy(&server->lock);
    pthread_mutex_destroy(&server->slow);
    arena_free(server->arena);
}
