/* The public functions for any PTX: reads kernels, places regions, runs launches. */
#include "emulator/order/order.h"
#include "emulator/races/race.h"

#include <time.h>

enum { DEFAULT_RESIDENT = 4 };

double emulator_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- kernels --------------------------------------------------------------------------------- */

void kernel_describe(Arena *arena, const Program *program, EmulatorKernel *out) {
    size_t count = program->parameters.count;
    EmulatorParameter *parameters = NEW_ARRAY(arena, EmulatorParameter, count + 1);
    for (size_t i = 0; i < count; i++) {
        const Parameter *from = &program->parameters.items[i];
        parameters[i] =
            (EmulatorParameter){.name = from->name,
                                .type = arena_printf(arena, ".%s", type_rows[from->type].spelling),
                                .offset = from->offset,
                                .bytes = from->bytes,
                                .alignment = from->alignment};
    }
    *out = (EmulatorKernel){.name = program->entry,
                            .parameters = parameters,
                            .parameter_count = count,
                            .parameter_bytes = program->parameter_bytes,
                            .most_threads = program->most_threads,
                            .shared_bytes = program->shared_bytes,
                            .program = program};
    memcpy(out->required_block, program->required_block, sizeof out->required_block);
    memcpy(out->cluster, program->cluster, sizeof out->cluster);
}

const char *read_fault_text(Arena *arena, const ReadFault *fault) {
    return fault->line ? arena_printf(arena, "PTX line %u: %s", fault->line, fault->why)
                       : fault->why;
}

void read_fault_more(Diags *diags, Diag *diag, const ReadFault *fault) {
    for (size_t i = 0; i < fault->more_count; i++) diag_note(diags, diag, "%s", fault->more[i]);
}

static RunStatus read_failed(Arena *arena, ReadStatus status, const ReadFault *fault,
                             Diags *diags) {
    read_fault_more(diags, diag_plain(diags, fault->code, "%s", read_fault_text(arena, fault)),
                    fault);
    return status == READ_INCOMPLETE ? RUN_INCOMPLETE : RUN_REJECTED;
}

RunStatus emulator_read(Arena *arena, const char *ptx, size_t length, const char *entry,
                        EmulatorKernel *out, Diags *diags) {
    Program *program;
    ReadFault fault;
    ReadStatus status = program_read(arena, ptx, length, entry, false, &program, &fault);
    if (status != READ_FINE) return read_failed(arena, status, &fault, diags);
    kernel_describe(arena, program, out);
    return RUN_DONE;
}

RunStatus emulator_list(Arena *arena, const char *ptx, size_t length, EmulatorKernel **out,
                        size_t *count, Diags *diags) {
    Programs programs = {0};
    ReadFault fault;
    ReadStatus status = program_list(arena, ptx, length, &programs, &fault);
    if (status != READ_FINE) return read_failed(arena, status, &fault, diags);
    EmulatorKernel *kernels = NEW_ARRAY(arena, EmulatorKernel, programs.count + 1);
    for (size_t i = 0; i < programs.count; i++) {
        kernel_describe(arena, programs.items[i], &kernels[i]);
        kernels[i].program = NULL;
    }
    *out = kernels;
    *count = programs.count;
    return RUN_DONE;
}

bool emulator_accepts(Arena *arena, const char *ptx, size_t length, Diags *diags) {
    Program *program;
    ReadFault fault;
    ReadStatus status = program_read(arena, ptx, length, NULL, true, &program, &fault);
    return status == READ_FINE || read_failed(arena, status, &fault, diags) == RUN_DONE;
}

/* ---- launches -------------------------------------------------------------------------------- */

void emulator_place(EmulatorRegion *regions, size_t count) {
    uint64_t base = GLOBAL_BASE;
    for (size_t i = 0; i < count; i++) {
        regions[i].base = base + regions[i].shift;
        base = (regions[i].base + regions[i].bytes + 2 * GLOBAL_GAP - 1) & ~(GLOBAL_GAP - 1);
    }
}

uint32_t emulator_resident(const EmulatorOptions *options) {
    return options->resident > 0 ? (uint32_t)options->resident : DEFAULT_RESIDENT;
}

static Machine *new_machine(Arena *arena, const EmulatorWork *work, const EmulatorOptions *options,
                            Diags *diags) {
    static const Manifest no_names = {0};
    Machine *machine = NEW(arena, Machine);
    machine->arena = arena;
    machine->diags = diags;
    machine->manifest = work->names ? work->names : &no_names;
    machine->seed = options->seed;
    machine->limit = options->limit;
    machine->options = options;
    machine->races = options->races != RACES_OFF;
    machine->resident = emulator_resident(options);
    machine->next_progress =
        options->progress != NULL || options->seconds > 0 ? PROGRESS_INTERVAL : UINT64_MAX;
    machine->deadline = emulator_clock() + options->seconds;
    machine->launch_count = work->launch_count;
    machine->regions = work->regions;
    machine->region_count = (uint32_t)work->region_count;
    for (size_t i = 0; i < work->region_count; i++)
        if (!work->regions[i].read_only) machine->results += work->regions[i].bytes;
    order_begin(machine);
    return machine;
}

RunStatus emulator_run_work(Arena *arena, const EmulatorWork *work, const EmulatorOptions *options,
                            RunResult *result, Diags *diags) {
    Machine *machine = new_machine(arena, work, options, diags);
    *result = (RunResult){.device = "emulator", .resident = (int)machine->resident, .timed = 1};
    double start = emulator_clock();
    bool fine = true;
    for (size_t i = 0; fine && i < work->launch_count; i++) {
        machine->launch_index = i;
        fine = launch_begin(machine, &work->launches[i]);
        if (!fine) break;
        result->blocks += (int64_t)machine->blocks;
        fine = grid_run(machine) && race_finish(machine);
    }
    report_hidden(machine);
    result->seconds = emulator_clock() - start;
    result->instructions = machine->instructions;
    result->copied_in = machine->copied_in, result->copied_out = machine->copied_out;
    result->matrices = machine->matrices / 4;
    result->status = fine ? RUN_DONE : machine->status;
    return result->status;
}
