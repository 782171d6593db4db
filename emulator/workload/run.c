/* Runs a workload on one schedule or several, each from the same data, and compares the results. */
#include "emulator/workload/private.h"

typedef struct Copies { /* of the arrays that kernels may write, by index */
    Array *initial, *first;
} Copies;

/* False: no memory (P0610) */
static bool keep(const Workload *it, Array *to, Diags *diags) {
    for (size_t i = 0; i < it->arrays.count; i++) {
        if (it->regions.items[i].read_only || array_copy(&to[i], &it->arrays.items[i].storage))
            continue;
        diag_plain(diags, P0610, "not enough host memory for a copy of `%s`",
                   it->arrays.items[i].label);
        return false;
    }
    return true;
}

static void restore(const Workload *it, const Array *from) {
    for (size_t i = 0; i < it->arrays.count; i++)
        if (from[i].data != NULL)
            memcpy(it->arrays.items[i].data.data, from[i].data, from[i].bytes);
}

static void drop(const Workload *it, Array *copies) {
    for (size_t i = 0; i < it->arrays.count; i++) array_free(&copies[i]);
}

/* Sums of several threads may round differently in another order. */
static bool depends_on_order(const Workload *it) {
    for (size_t i = 0; i < it->texts.count; i++) {
        const char *ptx = it->texts.items[i].ptx;
        if (strstr(ptx, "red.") || strstr(ptx, "atom.") || strstr(ptx, "cp.reduce.async"))
            return true;
    }
    return false;
}

static bool as_first(const Workload *it, const Array *first, uint64_t seed, uint64_t of_first,
                     Diags *diags) {
    bool same = true;
    for (size_t i = 0; i < it->arrays.count; i++) {
        const NpyData *data = &it->arrays.items[i].data;
        size_t at = 0;
        if (first[i].data == NULL || !memcmp(first[i].data, data->data, data->bytes)) continue;
        while (first[i].data[at] == data->data[at]) at++;
        Diag *diag = diag_plain(diags, P0852, "the result in `%s` depends on the schedule",
                                it->arrays.items[i].label);
        diag_note(diags, diag,
                  "the first difference is in element %zu, in C order, between the schedules of "
                  "seed %llu and seed %llu",
                  at / data->element_bytes, (unsigned long long)of_first, (unsigned long long)seed);
        same = false;
    }
    return same;
}

static RunStatus run_once(const Workload *it, const EmulatorOptions *options, RunResult *result,
                          Diags *diags) {
    EmulatorWork work = {.regions = it->regions.items,
                         .region_count = it->regions.count,
                         .launches = it->launches.items,
                         .launch_count = it->launches.count};
    Arena *scratch = arena_scratch(it->arena);
    RunStatus status = emulator_run_work(scratch, &work, options, result, diags);
    arena_free(scratch);
    return status;
}

static RunStatus run_others(const Workload *it, const WorkloadOptions *options,
                            const Copies *copies, Diags *diags) {
    EmulatorOptions emulator = options->emulator;
    bool compare = !depends_on_order(it);
    RunStatus status = RUN_DONE;
    for (int i = 1; i < options->schedules && status == RUN_DONE; i++) {
        RunResult other;
        restore(it, copies->initial);
        emulator.seed++;
        status = run_once(it, &emulator, &other, diags);
        if (status == RUN_DONE && compare &&
            !as_first(it, copies->first, emulator.seed, options->emulator.seed, diags))
            status = RUN_FINDING;
    }
    return status;
}

RunStatus workload_run(Workload *it, const WorkloadOptions *options, RunResult *result,
                       Diags *diags) {
    Copies copies = {NEW_ARRAY(it->arena, Array, it->arrays.count + 1),
                     NEW_ARRAY(it->arena, Array, it->arrays.count + 1)};
    bool several = options->schedules > 1;
    *result = (RunResult){.device = "emulator"};
    RunStatus status = !several || keep(it, copies.initial, diags) ? RUN_DONE : RUN_UNAVAILABLE;
    if (status == RUN_DONE) status = run_once(it, &options->emulator, result, diags);
    if (status == RUN_DONE && several && !keep(it, copies.first, diags)) status = RUN_UNAVAILABLE;
    if (status == RUN_DONE && several) {
        status = run_others(it, options, &copies, diags);
        restore(it, copies.first);
    }
    drop(it, copies.initial);
    drop(it, copies.first);
    result->status = status;
    return status;
}
