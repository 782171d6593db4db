/* lib, private: launches of a kernel whose variant or statics are open. */
#ifndef PIPEC_LIB_SERVE_H
#define PIPEC_LIB_SERVE_H

#include "lib/family.h"
#include "lib/pool.h"

/* The kernels that were chosen for launches on one device */
typedef struct Server Server;

typedef struct ServerDevice {
    DeviceFacts facts; /* the name outlives the server */
    int ordinal;
} ServerDevice;

/* `own` is the program's own kernel, and outlives the server. Choices of tuning that cannot be read
 * are a warning. NULL: memory ran out. */
Server *server_new(PipecProgram *program, PipecKernel *own, const Loader *loader,
                   const ServerDevice *device, Diags *diags);
/* For a sibling of its program; they share what was read, and the number of loaded kernels. NULL:
 * memory ran out */
Server *server_of_sibling(const Server *server, PipecProgram *program);
/* Unloads all but `own`, also those of siblings, whose servers must be freed after it. NULL is
 * allowed. */
void server_unload(Server *server);
void server_free(Server *server); /* NULL is allowed */
/* Kernels that are loaded, and those of them that were captured into graphs; and the most of the
 * others */
void server_count(Server *server, size_t *loaded, size_t *captured, size_t *most);

typedef struct Served {
    PipecKernel *kernel; /* NULL: an error */
    Slot *slot;          /* that holds it until server_release; NULL: none does */
    bool is_short;       /* starts_early of a launch */
} Served;

/* Is an early start expected to gain, which is a part of a microsecond? Longer launches lose as
 * often. Those whose blocks leave some SMs free lose earlier, since blocks of the next one begin
 * there. By the prediction alone, so that `tune` measures what a launch does. */
bool starts_early(const Prediction *launch, int multiprocessors);

/* The kernel for these arguments, one per parameter, on so many multiprocessors (0: all). The same
 * arguments always give the same one, unless the caller has limited its patience. The first time it
 * chooses, and compiles and loads what is not loaded; what is said of that is handed to the caller,
 * as that of a launch. The kernel stays loaded until server_release. Several threads may call it.
 */
Served server_find(Server *server, const DeviceArgument *arguments, int multiprocessors,
                   PipecStatus *status, PipecDiagnostics **diagnostics);
void server_release(const Served *served);

#endif
