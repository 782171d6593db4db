/* runtime: the counters of a dynamic grid. A launch draws its tiles from a counter, which must be 0
 * at its first draw and is 0 again after its last one (codegen/dynamic.c). So launches may share a
 * counter if each begins to draw after the one before has ended. The counters of a kernel:
 *
 *   - One for each stream, by its number, which no other stream of the process ever has. Launches
 *     of one stream are in order; one that is allowed to start early waits for the end of the one
 *     before it (griddepcontrol.wait) before it draws.
 *   - One for each launch that is captured into a graph, because the graph runs on any stream. An
 *     executable graph does not overlap itself: the driver orders its launches. Two executable
 *     graphs of one capture do overlap, and share the counter: pipec.h forbids to run both at
 *     once.
 *
 * The counter of a destroyed stream is not given to another one: nothing tells that its last launch
 * has ended. So a kernel holds COUNTER_BYTES for each stream that has ever launched it.
 *
 * Counters are allocated in chunks of zeros, and freed with the kernel, unless a graph may refer to
 * them. A chunk may be needed while a stream is captured. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>

#define CHUNK_COUNTERS 512

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    DevicePointer base;
    int used;
};

typedef struct StreamCounter {
    unsigned long long stream; /* its number */
    DevicePointer counter;     /* 0: a free place */
} StreamCounter;

struct Counters {
    Chunk *chunks; /* the last one first */
    /* a hash table of `places`, a power of two or 0, of which at most half are used */
    StreamCounter *streams;
    size_t count, places;
};

static DriverError add_chunk(const Driver *driver, Counters *counters) {
    Chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) return DRIVER_ERROR_OUT_OF_MEMORY;
    unsigned before;
    const char *call;
    DriverError error = capture_relax(driver, &before);
    if (error == DRIVER_SUCCESS) {
        error = zeros_new(driver, (size_t)CHUNK_COUNTERS * COUNTER_BYTES, &chunk->base, &call);
        DriverError back = capture_restore(driver, before);
        if (error == DRIVER_SUCCESS) error = back;
    }
    if (error != DRIVER_SUCCESS) {
        if (chunk->base != 0) driver->memory_free(chunk->base);
        free(chunk);
        return error;
    }
    chunk->next = counters->chunks;
    counters->chunks = chunk;
    return DRIVER_SUCCESS;
}

static DriverError new_counter(const Driver *driver, Counters *counters, DevicePointer *counter) {
    if (counters->chunks == NULL || counters->chunks->used == CHUNK_COUNTERS) {
        DriverError error = add_chunk(driver, counters);
        if (error != DRIVER_SUCCESS) return error;
    }
    Chunk *chunk = counters->chunks;
    *counter = chunk->base + (DevicePointer)chunk->used++ * COUNTER_BYTES;
    return DRIVER_SUCCESS;
}

/* Where the stream is, or a free place for it */
static StreamCounter *find_place(StreamCounter *streams, size_t places, unsigned long long stream) {
    size_t at = (size_t)(stream * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    while (streams[at % places].counter != 0 && streams[at % places].stream != stream) at++;
    return &streams[at % places];
}

/* Makes room for one more stream. */
static bool grow(Counters *counters) {
    if (2 * (counters->count + 1) <= counters->places) return true;
    size_t places = counters->places > 0 ? 2 * counters->places : 16;
    StreamCounter *streams = calloc(places, sizeof *streams);
    if (streams == NULL) return false;
    for (size_t i = 0; i < counters->places; i++)
        if (counters->streams[i].counter != 0)
            *find_place(streams, places, counters->streams[i].stream) = counters->streams[i];
    free(counters->streams);
    counters->streams = streams, counters->places = places;
    return true;
}

static DriverError counter_of_stream(const Driver *driver, Counters *counters, DriverStream stream,
                                     DevicePointer *counter) {
    unsigned long long number;
    DriverError error = driver->stream_number(stream, &number);
    if (error != DRIVER_SUCCESS) return error;
    if (!grow(counters)) return DRIVER_ERROR_OUT_OF_MEMORY;
    StreamCounter *place = find_place(counters->streams, counters->places, number);
    if (place->counter == 0) {
        error = new_counter(driver, counters, &place->counter);
        if (error != DRIVER_SUCCESS) return error;
        place->stream = number;
        counters->count++;
    }
    *counter = place->counter;
    return DRIVER_SUCCESS;
}

bool counters_open(RuntimeKernel *kernel) {
    if (!kernel->manifest->dynamic) return true;
    kernel->counters = calloc(1, sizeof *kernel->counters);
    return kernel->counters != NULL;
}

void counters_close(RuntimeKernel *kernel) {
    Counters *counters = kernel->counters;
    if (counters == NULL) return;
    for (Chunk *chunk = counters->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (!kernel->captured) kernel->runtime->driver.memory_free(chunk->base);
        free(chunk);
    }
    free(counters->streams);
    free(counters);
}

DriverError counters_find(RuntimeKernel *kernel, DriverStream stream, bool captured,
                          DevicePointer *counter, const char **call) {
    const Driver *driver = &kernel->runtime->driver;
    *counter = 0;
    if (kernel->counters == NULL) return DRIVER_SUCCESS;
    *call = "the counter of tiles";
    pthread_mutex_lock(&kernel->lock);
    DriverError error = captured ? new_counter(driver, kernel->counters, counter)
                                 : counter_of_stream(driver, kernel->counters, stream, counter);
    pthread_mutex_unlock(&kernel->lock);
    return error;
}
