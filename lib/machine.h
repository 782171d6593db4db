/* lib, private: the machines that times are predicted for, of launch/machines.def and of the user.
 */
#ifndef PIPEC_LIB_MACHINE_H
#define PIPEC_LIB_MACHINE_H

#include "launch/launch.h"

/* What `pipec calibrate` measured of a device, and which one it was */
typedef struct Measured {
    DeviceFacts device;
    MachineRow row;
    int barrier, block; /* ns of a hand-over between two roles, and of a block's start on an SM */
} Measured;

/* The file of the user's machines: machines.json in the folder of the cache; NULL: *why */
const char *machine_file(Arena *arena, const char **why);
/* The row of the device: of the user's file, if one has the same name, SMs, L2 and memory;
 * otherwise of the table. A file that cannot be read is a warning. */
MachineRow machine_for(Arena *arena, const DeviceFacts *device, Diags *diags);
/* The row of this name: of the table ("h200"), or of the user's file ("NVIDIA H200"); NULL: none,
 * which is reported */
const MachineRow *machine_named(Arena *arena, const char *name, Diags *diags);
/* Writes the row, replacing that of the same device. False: an error was reported. */
bool machine_store(Arena *arena, const char *file, const Measured *measured, Diags *diags);

#endif
