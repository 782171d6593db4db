/* lib, private: launches of a kernel whose variant or statics are open. */
#ifndef PIPEC_LIB_SERVE_H
#define PIPEC_LIB_SERVE_H

#include "lib/family.h"

/* The kernels that were chosen for launches on one device */
typedef struct Server Server;

typedef struct ServerDevice {
    DeviceFacts facts; /* the name outlives the server */
    int ordinal;
} ServerDevice;

/* How kernels are loaded and freed: pipec_kernel_load and pipec_kernel_free */
typedef struct ServerLoader {
    PipecStatus (*load)(PipecProgram *program, int device, PipecKernel **kernel,
                        PipecDiagnostics **diagnostics);
    void (*free)(PipecKernel *kernel);
} ServerLoader;

/* `own` is the program's own kernel, and outlives the server. Choices of tuning that cannot be read
 * are a warning. NULL: memory ran out. */
Server *server_new(PipecProgram *program, PipecKernel *own, const ServerLoader *loader,
                   const ServerDevice *device, Diags *diags);
/* Unloads all but `own`. NULL is allowed. */
void server_free(Server *server);

/* The kernel for these arguments, one per parameter, on so many multiprocessors (0: all). The same
 * arguments always give the same one. The first time it chooses, and compiles and loads what was
 * never chosen before; what is said of that is handed to the caller, as that of a launch. NULL: an
 * error. Several threads may call it. */
PipecKernel *server_find(Server *server, const DeviceArgument *arguments, int multiprocessors,
                         PipecStatus *status, PipecDiagnostics **diagnostics);

#endif
