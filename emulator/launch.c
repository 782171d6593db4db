/* Fits a launch to its kernel: checks the extents of grid, block and cluster and the size of shared
 * memory, as the driver does, and sets them in the machine. */
#include "emulator/machine.h"

const char *extents_text(Arena *arena, const uint32_t *extents) {
    if (extents[1] == 1 && extents[2] == 1) return arena_printf(arena, "%u", extents[0]);
    return arena_printf(arena, "%u x %u x %u", extents[0], extents[1], extents[2]);
}

static uint64_t product(const uint32_t *extents) {
    return (uint64_t)extents[0] * extents[1] * extents[2];
}

static bool reject(Machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);
static bool reject(Machine *machine, const char *format, ...) {
    Str why = str_new(machine->arena);
    va_list args;
    va_start(args, format);
    str_vprintf(&why, format, args);
    va_end(args);
    diag_plain(machine->diags, P0702, "%s", why.text);
    machine->status = RUN_REJECTED;
    return false;
}

/* Extents are from 1 to those of the hardware. */
static bool check_extents(Machine *machine, const char *what, const uint32_t *extents,
                          const uint32_t *most) {
    for (int i = 0; i < 3; i++)
        if (extents[i] == 0 || extents[i] > most[i])
            return reject(machine, "the %s has %u along %c, but must have 1 to %u", what,
                          extents[i], "xyz"[i], most[i]);
    return true;
}

/* The extents of a cluster can be given in the text, by the launch, or in both. */
static bool size_cluster(Machine *machine, const EmulatorLaunch *launch) {
    const Program *program = machine->program;
    for (int i = 0; i < 3; i++) {
        uint32_t asked = launch->cluster[i] > 1 ? launch->cluster[i] : 1,
                 required = program->cluster[i] ? program->cluster[i] : asked;
        machine->cluster[i] = required;
        if (asked > MAX_CLUSTER || (asked > 1 && asked != required))
            return reject(machine,
                          "the launch has clusters of %u blocks, but the kernel requires %u", asked,
                          required);
    }
    if (product(machine->cluster) > MAX_CLUSTER)
        return reject(machine, "the launch has clusters of %s blocks, but the most is %d",
                      extents_text(machine->arena, machine->cluster), MAX_CLUSTER);
    machine->cluster_size = (uint32_t)product(machine->cluster);
    machine->explicit_cluster = program->explicit_cluster || machine->cluster_size > 1;
    return true;
}

static bool size_grid(Machine *machine, const EmulatorLaunch *launch) {
    static const uint32_t most[] = {INT32_MAX, 65535, 65535};
    if (!check_extents(machine, "grid", launch->grid, most)) return false;
    for (int i = 0; i < 3; i++) {
        machine->grid[i] = launch->grid[i];
        machine->clusters[i] = launch->grid[i] / machine->cluster[i];
        if (launch->grid[i] % machine->cluster[i])
            return reject(machine, "the grid of %s blocks is not a multiple of clusters of %s",
                          extents_text(machine->arena, launch->grid),
                          extents_text(machine->arena, machine->cluster));
    }
    machine->blocks = product(launch->grid);
    if (launch->workspace && machine->blocks > EMULATOR_COOPERATIVE_MOST)
        return reject(machine, "a cooperative launch has %llu blocks, but the most is %d",
                      (unsigned long long)machine->blocks, EMULATOR_COOPERATIVE_MOST);
    return true;
}

static bool size_block(Machine *machine, const EmulatorLaunch *launch) {
    static const uint32_t most[] = {1024, 1024, 64};
    const Program *program = machine->program;
    const uint32_t *required = program->required_block;
    memcpy(machine->block, launch->block, sizeof machine->block);
    bool other = required[0] != 0 && memcmp(required, launch->block, sizeof launch->block) != 0;
    uint32_t limit =
        program->most_threads && program->most_threads < 1024 ? program->most_threads : 1024;
    if (other || product(launch->block) > limit)
        return reject(machine, "the launch has blocks of %s threads, but the kernel %s %s",
                      extents_text(machine->arena, launch->block),
                      required[0] ? "requires" : "has at most",
                      required[0] ? extents_text(machine->arena, required)
                                  : arena_printf(machine->arena, "%u", limit));
    machine->threads = (uint32_t)product(launch->block);
    return check_extents(machine, "block", launch->block, most);
}

static bool size_shared(Machine *machine, const EmulatorLaunch *launch) {
    const Program *program = machine->program;
    uint32_t mask = program->shared_alignment - 1;
    machine->dynamic_bytes = launch->shared_bytes;
    machine->dynamic_base = (SHARED_BASE + program->shared_bytes + mask) & ~mask;
    if (machine->dynamic_base + (uint64_t)machine->dynamic_bytes - SHARED_BASE > MAX_SHARED)
        return reject(machine, "a block needs more shared memory than the limit of %d bytes",
                      MAX_SHARED);
    return true;
}

static bool fit(Machine *machine, const EmulatorLaunch *launch) {
    machine->launch = launch;
    machine->program = launch->kernel->program;
    return size_cluster(machine, launch) && size_block(machine, launch) &&
           size_grid(machine, launch) && size_shared(machine, launch);
}

bool emulator_check(const EmulatorLaunch *launch, Diags *diags) {
    Machine machine = {.arena = diags->arena, .diags = diags};
    return fit(&machine, launch);
}

bool launch_begin(Machine *machine, const EmulatorLaunch *launch) {
    if (!fit(machine, launch)) return false;
    machine->done = 0;
    machine->settled.first = machine->instructions;
    machine->settled.before = machine->begun;
    variables_map(machine);
    machine->parameters = arena_alloc(machine->arena, machine->program->parameter_bytes + 1u);
    memcpy(machine->parameters, launch->parameters, machine->program->parameter_bytes);
    return true;
}
