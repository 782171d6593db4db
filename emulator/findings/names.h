/* emulator, private: names of agents and of places in memory, as findings print them.
 *
 * Both are stored by value, because a record of an access outlives the warp that made it. The
 * names come from the manifest (role, pipe, stage, field), otherwise from the PTX. */
#ifndef PIPEC_EMULATOR_NAMES_H
#define PIPEC_EMULATOR_NAMES_H

#include "emulator/machine.h"

/* Who executed an instruction: lanes of a warp, or an asynchronous operation that they issued */
typedef struct Actor {
    const Program *program; /* NULL: that of the launch that runs */
    size_t launch;          /* its index in the run, if `program` is not NULL */
    uint64_t block;         /* index in the grid */
    uint32_t rank;          /* of the block in its cluster */
    uint32_t warp;          /* index in its block */
    uint32_t lanes;         /* one bit each; 0: not to be named */
    uint32_t pc;
    bool async;
} Actor;

/* Bytes of memory. Shared and local addresses have neither rank nor window. */
typedef struct MemoryRange {
    Space space;
    uint32_t rank; /* SPACE_SHARED: the owning block's rank in its cluster */
    uint64_t address, bytes;
} MemoryRange;

/* The actor of an access; its lanes are not named. */
Actor actor_of(const Agent *agent);
/* "role `math` (warp 5, lanes 0-3) of rank 1", "a copy of warp 0" */
void name_actor(const Machine *machine, const Actor *actor, Str *out);
/* "byte 400 of `X`, which has 400 bytes", "shared address 1040 (byte 16 of ..) of rank 1" */
void name_memory(const Machine *machine, const MemoryRange *range, Str *out);
/* The same for races: "`ab.a` stage 1, byte 16 (shared address 1040)", "`X[3, 5]`" */
void name_element(const Machine *machine, const MemoryRange *range, Str *out);
/* "`X[3, 5]`", or "byte 400 of `X`": a place in global memory */
void name_word(const Machine *machine, uint64_t address, Str *out);
/* "`X[3, 5]`", and whether that is outside; coordinates innermost first */
void name_coordinates(const TensorMap *map, const int64_t *at, Str *out);
/* "fence.proxy.async", as the PTX has it */
const char *name_opcode(const Machine *machine, const Actor *actor);
/* "gemm.pipe:40, PTX line 140" */
const char *name_place(const Machine *machine, const Actor *actor);
/* "byte 16 of field `x`, stage 2 of `loaded`" by the manifest, "byte 16 of `bars`" by the variables
 * of the PTX; NULL: no name */
const char *name_shared(const Machine *machine, uint64_t address);
/* "the full barrier of stage 1 of `p`" by the manifest, otherwise "the mbarrier at shared address
 * 1040 (byte 16 of `bars`)" */
const char *name_mbarrier(const Machine *machine, uint64_t address);
/* name_mbarrier, with the rank in a cluster */
const char *name_barrier(const Machine *machine, const Block *home, uint64_t address);
/* "PTX line 12: `ld.shared ...`"; without a manifest also the function, unless it is the entry, and
 * the source line of `.loc`: "PTX line 12 of `f` (k.cu:34): .." */
const char *name_code(const Machine *machine, uint32_t pc);
/* The same for the instruction of an actor, which may be of an earlier launch */
const char *name_step(const Machine *machine, const Actor *actor);
/* "block 3 of 8", "block 0 of launch 1 (`fill`)" */
const char *name_block(const Machine *machine, const Actor *actor);
const Inst *actor_inst(const Machine *machine, const Actor *actor);

/* Of the manifest; NULL: none */
const ManifestRole *role_of_warp(const Machine *machine, uint32_t warp);
const ManifestMark *mark_of_code(const Machine *machine, uint32_t pc);
/* the range that contains this shared address; *stage and *byte: the place in it */
const ManifestShared *shared_range(const Machine *machine, uint64_t address, uint32_t *stage,
                                   uint32_t *byte);

/* The place of an instruction in the source of the diagnostics: by the marks of the manifest, or in
 * the text of the PTX. False: it has none */
bool span_of_code(const Machine *machine, const Program *program, uint32_t pc, Span *span);
/* A diagnostic at the `.pipe` place of the instruction, or without a place */
Diag *diag_of_code(Machine *machine, Code code, uint32_t pc, const char *message);
/* Adds the PTX line, the block and the seed, which all findings name. */
void note_run(Machine *machine, Diag *diag, uint64_t block, uint32_t pc);

#endif
