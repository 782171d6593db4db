/* lib: a table from launches to the candidates that were chosen for them. The key is what a choice
 * depends on: extents, strides, alignments, integers and limits, not addresses or other data. The
 * kernel of a candidate may be unloaded meanwhile; then it is loaded again, and the choice stays.
 */
#include "lib/serve.h"

#include "lib/bundle.h"
#include "lib/fixed.h"
#include "lib/invariant.h"
#include "lib/machine.h"
#include "lib/tune.h"

#include <string.h>

#define ENTRIES       4096 /* a power of two; a full table is emptied, choices do not change */
#define ALIGNED_MOST  256  /* no kernel needs more */
#define SMALL_ENTRIES 64

typedef struct Entry {
    Slot *slot; /* NULL: free */
    uint64_t hash;
    bool is_short; /* as of Served */
} Entry;

struct Server {
    PipecProgram *program;
    ServerDevice device;
    MachineRow machine;
    Arena *arena;           /* of the server */
    const Choices *choices; /* of tuning, as they were at the load */
    Kept kept, fixed;       /* those of this text, and the caller's; need `slow` */
    Pool *pool;             /* its lock is also that of the table */
    Pool own_pool;          /* of the caller's kernel, which servers of its siblings use too */
    double patience;        /* as of PipecOptions */
    pthread_mutex_t slow;   /* one thread chooses */
    bool warned;            /* of sizes that the bundle lacks; needs `slow` */
    size_t words;           /* of a key */
    Entry *table;
    int64_t *keys;
    size_t capacity, used;
    const Family *family; /* needs `slow` */
    Slot own, *slots;     /* of the first candidate, the program itself; of the others by index */
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
    while (server->table[at].slot != NULL &&
           (server->table[at].hash != hash ||
            memcmp(&server->keys[at * server->words], key, server->words * sizeof *key) != 0))
        at = (at + 1) & (server->capacity - 1);
    return at;
}

/* What was chosen for the key; slot NULL: nothing */
static Entry recall(Server *server, const int64_t *key, uint64_t hash, Served *served) {
    pthread_mutex_lock(&server->pool->lock);
    Entry entry = server->table[find_place(server, key, hash)];
    if (entry.slot != NULL && pool_use(server->pool, entry.slot))
        *served = (Served){entry.slot->kernel, entry.slot, entry.is_short};
    pthread_mutex_unlock(&server->pool->lock);
    return entry;
}

static void new_table(Server *server, size_t capacity) {
    Entry *table = NEW_ARRAY(server->arena, Entry, capacity);
    server->keys = NEW_ARRAY(server->arena, int64_t, capacity * server->words);
    server->table = table;
    server->capacity = capacity;
    server->used = 0;
}

static void put(Server *server, const int64_t *key, const Entry *entry) {
    size_t at = find_place(server, key, entry->hash);
    server->used += server->table[at].slot == NULL;
    server->table[at] = *entry;
    memcpy(&server->keys[at * server->words], key, server->words * sizeof *key);
}

/* A table of four times the size; the old one stays if memory runs out */
static void grow(void *data) {
    Server *server = data;
    const Entry *table = server->table;
    const int64_t *keys = server->keys;
    size_t capacity = server->capacity;
    new_table(server, 4 * capacity);
    for (size_t i = 0; i < capacity; i++)
        if (table[i].slot != NULL) put(server, &keys[i * server->words], &table[i]);
}

/* Needs `slow` */
static void remember(Server *server, const int64_t *key, const Entry *entry) {
    pthread_mutex_lock(&server->pool->lock);
    bool full = 2 * server->used >= server->capacity;
    if (full && (server->capacity >= ENTRIES || !attempt(server->arena, grow, server))) {
        memset(server->table, 0, server->capacity * sizeof *server->table);
        server->used = 0;
    }
    put(server, key, entry);
    pthread_mutex_unlock(&server->pool->lock);
}

/* ---- the choice ------------------------------------------------------------------------------ */

typedef struct Serving {
    Server *server;
    const DeviceArgument *arguments;
    int multiprocessors;
    bool among_loaded; /* choose what is loaded only */
    Arena *words;
    const Candidate *candidate; /* NULL: none can run */
    bool early;                 /* starts_early */
    bool lacks;                 /* the bundle was not made for these extents */
    PipecDiagnostics *refused;  /* what the caller wants cannot run; NULL: it can */
} Serving;

static Slot *slot_of(Server *server, const Candidate *candidate) {
    size_t index = candidate != NULL ? (size_t)(candidate - server->family->items) : 0;
    return index == 0 ? &server->own : &server->slots[index];
}

static void leave_loaded(Server *server, Chosen *all) {
    pthread_mutex_lock(&server->pool->lock);
    for (size_t i = 0; i < server->family->count; i++)
        if (slot_of(server, all[i].candidate)->kernel == NULL) all[i].why = "it is not loaded";
    pthread_mutex_unlock(&server->pool->lock);
}

static void refuse(Serving *it, const Limits *limits) {
    Arena *arena = arena_new();
    if (arena == NULL) arena_fail(it->words);
    Diags *diags = diags_new(arena, it->server->program->source);
    limits_report(it->server->program, limits, diags);
    it->refused = diagnostics_publish(diags);
    it->refused->arena = arena;
}

static void find_lack(Serving *it, const Chosen *chosen) {
    const Manifest *manifest = chosen->candidate->manifest;
    int64_t tiles, *symbols = NEW_ARRAY(it->words, int64_t, manifest->symbols.count + 1);
    (void)launch_bind(manifest, it->arguments, symbols, &tiles, diags_new(it->words, NULL));
    it->lacks = bundle_lacks(it->server->program->bundle, manifest, symbols);
}

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
                 .fixed = &server->fixed,
                 .invariant = server->program->invariant,
                 .multiprocessors = it->multiprocessors,
                 .only_best = !it->among_loaded};
    Chosen *all = NEW_ARRAY(it->words, Chosen, server->family->count + 1);
    Limits limits = family_rate(server->family, &wish, it->words, all);
    if (limits.why != NULL) refuse(it, &limits);
    if (it->among_loaded) leave_loaded(server, all);
    Chosen chosen = family_best(server->family, all);
    if (server->program->bundle != NULL && chosen.candidate != NULL) find_lack(it, &chosen);
    it->candidate = chosen.candidate;
    it->early = starts_early(&chosen.predicted, machine.multiprocessors);
}

static void open_family(void *data) {
    Server *server = data;
    const Family *family = family_of(server->program);
    if (family == NULL) arena_fail(server->arena);
    server->slots = NEW_ARRAY(server->arena, Slot, family->count);
    for (size_t i = 0; i < family->count; i++) server->slots[i].server = server;
    server->family = family;
    server->kept = kept_of(server->arena, server->choices, &family->key, server->device.facts.name);
    server->fixed = fixed_of(server->arena, server->program, &family->key);
}

/* Needs `slow`. False: memory ran out */
static bool choose_slowly(Serving *it) {
    Server *server = it->server;
    bool opened = server->family != NULL || attempt(server->arena, open_family, server);
    bool chosen = opened && attempt(server->arena, choose, it);
    if (it->words != NULL) arena_free(it->words);
    it->words = NULL;
    return chosen;
}

bool starts_early(const Prediction *launch, int multiprocessors) {
    bool some_free =
        2 * launch->blocks > multiprocessors && 6 * launch->blocks < 5 * (int64_t)multiprocessors;
    return launch->seconds > 0 && launch->seconds < (some_free ? 7e-6 : 15e-6);
}

/* A new key, unless another thread was faster. If no candidate can run, the program's own kernel
 * reports why. *entry: slot NULL: memory ran out */
static void choose_new(Serving *it, const int64_t *key, Entry *entry) {
    Server *server = it->server;
    Served none = {0};
    pthread_mutex_lock(&server->slow);
    *entry = recall(server, key, hash_key(key, server->words), &none);
    if (none.slot != NULL) pool_release(none.slot);
    if (entry->slot == NULL && choose_slowly(it) && it->refused == NULL) {
        *entry = (Entry){.slot = slot_of(server, it->candidate),
                         .hash = hash_key(key, server->words),
                         .is_short = it->early && server->family->count > 1};
        if (it->candidate != NULL) remember(server, key, entry);
    }
    pthread_mutex_unlock(&server->slow);
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct Said {
    PipecStatus *status;
    PipecDiagnostics **diagnostics; /* of the last attempt */
} Said;

static void hear(Said said, PipecStatus status, PipecDiagnostics *diagnostics) {
    *said.status = status;
    pipec_diagnostics_free(*said.diagnostics);
    *said.diagnostics = diagnostics;
}

/* The slot is being loaded by this thread, and is used for a launch if that succeeds. */
static bool load(Slot *slot, Said said) {
    Server *server = slot->server;
    Pool *pool = server->pool;
    PipecStatus status = PIPEC_UNUSABLE;
    PipecDiagnostics *diagnostics = (PipecDiagnostics *)&no_memory;
    PipecKernel *kernel = NULL;
    bool is_own = slot == &server->own;
    PipecProgram *program =
        is_own ? server->program
               : family_program(server->family, &server->family->items[slot - server->slots]);
    if (program != NULL)
        status = pool->loader->load(program, server->device.ordinal, &kernel, &diagnostics);
    hear(said, status, diagnostics);
    if (kernel == NULL && !is_own) pipec_program_free(program);
    pthread_mutex_lock(&pool->lock);
    slot->loading = false;
    if (kernel != NULL) pool_add(pool, slot, kernel, is_own ? NULL : program);
    (void)pool_use(pool, slot);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    pool_trim(pool);
    return kernel != NULL;
}

static void *load_behind(void *data) {
    Slot *slot = data;
    Pool *pool = ((Server *)slot->server)->pool;
    PipecStatus status;
    PipecDiagnostics *diagnostics = NULL;
    /* a launch that needs it reports an error */
    if (load(slot, (Said){&status, &diagnostics})) pool_release(slot);
    pipec_diagnostics_free(diagnostics);
    pthread_mutex_lock(&pool->lock);
    pool->threads--;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Begins to load the slot. Needs the lock of the pool */
static void begin(Slot *slot) {
    slot->loading = true;
    slot->begun = pool_now();
}

/* Needs the lock of the pool. False: there is no thread */
static bool begin_behind(Pool *pool, Slot *slot) {
    pthread_t thread;
    begin(slot);
    slot->loading = pthread_create(&thread, NULL, load_behind, slot) == 0;
    if (!slot->loading) return false;
    pthread_detach(thread);
    pool->threads++;
    return true;
}

/* The slot for a launch, loaded by this thread unless another one does. False: an error */
static bool obtain(Slot *slot, Said said) {
    Pool *pool = ((Server *)slot->server)->pool;
    pthread_mutex_lock(&pool->lock);
    while (slot->loading) pool_wait(pool, 0);
    bool used = pool_use(pool, slot);
    if (!used) begin(slot);
    pthread_mutex_unlock(&pool->lock);
    return used || load(slot, said);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The best of the loaded candidates; NULL: none can run, or it was unloaded meanwhile */
static Slot *use_loaded(Serving *it) {
    Server *server = it->server;
    it->among_loaded = true;
    pthread_mutex_lock(&server->slow);
    bool found = choose_slowly(it) && it->candidate != NULL;
    pthread_mutex_unlock(&server->slow);
    if (!found) return NULL;
    Slot *slot = slot_of(server, it->candidate);
    pthread_mutex_lock(&server->pool->lock);
    bool used = pool_use(server->pool, slot);
    pthread_mutex_unlock(&server->pool->lock);
    return used ? slot : NULL;
}

/* Another slot that is loaded and can run, if this one is not loaded in time; it goes on loading.
 * NULL: this one was loaded in time, or must be waited for. */
static Slot *obtain_other(Serving *it, Slot *slot) {
    Pool *pool = it->server->pool;
    Slot *other = it->server->patience > 0 ? use_loaded(it) : NULL;
    if (other == NULL) return NULL;
    pthread_mutex_lock(&pool->lock);
    bool waits = slot->kernel == NULL && (slot->loading || begin_behind(pool, slot)),
         in_time = true;
    while (waits && slot->loading && in_time)
        in_time = pool_wait(pool, slot->begun + it->server->patience);
    bool gives_up = waits && slot->loading;
    pthread_mutex_unlock(&pool->lock);
    if (gives_up) return other;
    pool_release(other);
    return NULL;
}

static void publish_lack(void *data) {
    Serving *it = data;
    const PipecProgram *program = it->server->program;
    Diags *diags = diags_new(it->words, program->source);
    Diag *diag = diag_plain(diags, P0937, "the bundle `%s` was not made for the sizes of a launch",
                            program->bundle->folder);
    diag_note(diags, diag, "the best of what is in it runs; later launches do not repeat this");
    it->refused = diagnostics_publish(diags);
    it->refused->arena = it->words;
}

/* Once for a kernel; NULL: no warning */
static PipecDiagnostics *warn_of_lack(Serving *it) {
    Server *server = it->server;
    pthread_mutex_lock(&server->slow);
    bool first = it->lacks && !server->warned;
    server->warned = server->warned || first;
    pthread_mutex_unlock(&server->slow);
    it->words = first ? arena_new() : NULL;
    if (it->words != NULL && attempt(it->words, publish_lack, it)) return it->refused;
    arena_free(it->words);
    return NULL;
}

Served server_find(Server *server, const DeviceArgument *arguments, int multiprocessors,
                   PipecStatus *status, PipecDiagnostics **diagnostics) {
    int64_t key[server->words];
    make_key(server->program->manifest, arguments, multiprocessors, key);
    Served served = {0};
    Entry entry = recall(server, key, hash_key(key, server->words), &served);
    if (served.kernel != NULL) return served;
    Serving it = {.server = server, .arguments = arguments, .multiprocessors = multiprocessors};
    PipecDiagnostics *said = NULL;
    *status = PIPEC_UNUSABLE;
    if (entry.slot == NULL) choose_new(&it, key, &entry);
    if (entry.slot == NULL) said = it.refused != NULL ? it.refused : (PipecDiagnostics *)&no_memory;
    Slot *other = entry.slot != NULL ? obtain_other(&it, entry.slot) : NULL;
    if (other != NULL)
        served = (Served){.kernel = other->kernel, .slot = other};
    else if (entry.slot != NULL && obtain(entry.slot, (Said){status, &said}))
        served = (Served){entry.slot->kernel, entry.slot, entry.is_short};
    if (said == NULL && served.kernel != NULL) said = warn_of_lack(&it);
    if (diagnostics != NULL)
        *diagnostics = said;
    else
        pipec_diagnostics_free(said);
    return served;
}

void server_release(const Served *served) {
    if (served->slot != NULL) pool_release(served->slot);
}

/* ---- the server ------------------------------------------------------------------------------ */

typedef struct Start {
    Server *server;
    Diags *diags; /* NULL: it is that of a sibling */
} Start;

/* What was read at the load: the machine, and choices of tuning */
static void read_files(Server *server, Diags *diags) {
    Choices *choices = NEW(server->arena, Choices);
    server->machine = machine_for(server->arena, &server->device.facts, diags);
    const char *why, *file = cache_file(server->arena, &why);
    if (file != NULL && cache_is_there(file)) *choices = cache_read(server->arena, file, diags);
    server->choices = choices;
}

static void start(void *data) {
    Start *it = data;
    Server *server = NEW(it->server->arena, Server);
    *server = *it->server;
    it->server = server;
    server->own.server = server;
    server->words = key_words(server->program->manifest);
    new_table(server, SMALL_ENTRIES);
    if (it->diags != NULL) read_files(server, it->diags);
    pthread_mutex_init(&server->slow, NULL); /* cannot fail: no attributes */
}

static Server *server_start(const Server *from, Diags *diags) {
    Server server = *from;
    server.arena = arena_new();
    Start it = {&server, diags};
    if (server.arena != NULL && attempt(server.arena, start, &it)) return it.server;
    arena_free(server.arena);
    return NULL;
}

Server *server_new(PipecProgram *program, PipecKernel *own, const Loader *loader,
                   const ServerDevice *device, Diags *diags) {
    Server *server = server_start(
        &(Server){.program = program, .device = *device, .patience = program->patience}, diags);
    if (server == NULL) return NULL;
    server->pool = &server->own_pool;
    pool_open(server->pool, loader, program->loaded_most);
    server->own.stays = true;
    pool_add(server->pool, &server->own, own, NULL);
    return server;
}

Server *server_of_sibling(const Server *server, PipecProgram *program) {
    return server_start(&(Server){.program = program,
                                  .device = server->device,
                                  .machine = server->machine,
                                  .choices = server->choices,
                                  .pool = server->pool,
                                  .patience = server->patience},
                        NULL);
}

void server_count(Server *server, size_t *loaded, size_t *captured, size_t *most) {
    pool_count(server->pool, loaded, captured);
    *most = server->pool->most;
}

void server_free(Server *server) {
    if (server == NULL) return;
    pthread_mutex_destroy(&server->slow);
    arena_free(server->arena);
}

void server_unload(Server *server) {
    if (server == NULL) return;
    pool_settle(server->pool);
    pool_close(server->pool);
}
