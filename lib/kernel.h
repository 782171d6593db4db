/* lib, private: what other files of this floor do with a loaded kernel. Its public functions are in
 * include/pipec.h. */
#ifndef PIPEC_LIB_KERNEL_H
#define PIPEC_LIB_KERNEL_H

#include "lib/serve.h"

PipecProgram *kernel_program(const PipecKernel *kernel);
/* The server of the launches whose tensors decide this program, the kernel's own or a sibling;
 * NULL: nothing is chosen for them, so that the kernel itself is launched. False: memory ran out.
 */
bool kernel_server(PipecKernel *kernel, PipecProgram *program, Server **server);

#endif
