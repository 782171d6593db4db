/* runtime: turns a driver's error into a diagnostic and a RunStatus. After a fault the driver
 * refuses every call in that context: the error is reported once, with the kernel's name and all
 * that is known. */
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>

void note_blame(const Manifest *manifest, Diags *diags, Diag *diag, const char *bug) {
    if (manifest != NULL && manifest->is_read)
        diag_note(diags, diag,
                  "the kernel was loaded from files: they were changed, or another compiler wrote "
                  "them");
    else
        diag_note(diags, diag, "%s", bug);
}

RunStatus driver_failed(const Runtime *runtime, const Manifest *manifest, DriverError error,
                        const char *call, Diags *diags) {
    Diag *diag = diag_plain(diags, P0806, "%s failed on %s: %s (%s)", call, runtime->name,
                            driver_error_name(&runtime->driver, error),
                            driver_error_text(&runtime->driver, error));
    if (error != DRIVER_ERROR_INVALID_VALUE) return RUN_UNAVAILABLE;
    note_blame(manifest, diags, diag,
               "pipec passed an invalid value to the driver: this is a bug in pipec");
    return RUN_REJECTED;
}

static bool is_fault(DriverError error) {
    static const DriverError faults[] = {DRIVER_ERROR_ILLEGAL_ADDRESS,
                                         DRIVER_ERROR_LAUNCH_TIMEOUT,
                                         DRIVER_ERROR_ASSERT,
                                         DRIVER_ERROR_HARDWARE_STACK_ERROR,
                                         DRIVER_ERROR_ILLEGAL_INSTRUCTION,
                                         DRIVER_ERROR_MISALIGNED_ADDRESS,
                                         DRIVER_ERROR_INVALID_ADDRESS_SPACE,
                                         DRIVER_ERROR_INVALID_PC,
                                         DRIVER_ERROR_LAUNCH_FAILED,
                                         DRIVER_ERROR_TENSOR_MEMORY_LEAK};
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        if (faults[i] == error) return true;
    return false;
}

static void context_is_lost(Diags *diags, Diag *diag) {
    diag_note(diags, diag,
              "the CUDA context is lost: this process cannot run anything more on the device");
}

/* The device is not the one that the target's limits are of, and may have less shared memory. */
static bool is_newer(const Runtime *runtime, const char *target) {
    return strtol(target + 3, NULL, 10) < 10 * runtime->major + runtime->minor;
}

RunStatus kernel_failed(const RuntimeKernel *kernel, DriverError error, const char *call,
                        Diags *diags) {
    const Runtime *runtime = kernel->runtime;
    const char *name = kernel->manifest->kernel;
    if (is_fault(error)) {
        if (watchdog_report(kernel, diags)) return RUN_FINDING;
        Diag *diag = diag_plain(diags, P0805, "`%s` faults on %s: %s (%s)", name, runtime->name,
                                driver_error_name(&runtime->driver, error),
                                driver_error_text(&runtime->driver, error));
        diag_help(diags, diag,
                  "run with `--on emulator` to see the instruction, its role and its place");
        context_is_lost(diags, diag);
        return RUN_FINDING;
    }
    if (error == DRIVER_ERROR_OUT_OF_MEMORY) {
        diag_plain(diags, P0803, "%s has no memory left for a launch of `%s`", runtime->name, name);
        return RUN_UNAVAILABLE;
    }
    if (error == DRIVER_ERROR_LAUNCH_OUT_OF_RESOURCES) {
        int blocks = kernel->manifest->cluster[0];
        const char *what =
            blocks > 1 ? arena_printf(diags->arena, "a cluster of %d blocks", blocks) : "a block";
        diag_plain(diags, P0808,
                   "%s of `%s`, with %d threads and %u bytes of shared memory%s, does not fit %s",
                   what, name, kernel->manifest->threads, kernel->manifest->shared_bytes,
                   blocks > 1 ? " each" : "", runtime->name);
        return is_newer(runtime, kernel->manifest->target) ? RUN_UNAVAILABLE : RUN_REJECTED;
    }
    return driver_failed(runtime, kernel->manifest, error, call, diags);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static const char *wait_text(Arena *arena, const ManifestWait *wait) {
    if (wait->pipe == NULL) return "waits at a barrier of the kernel";
    return arena_printf(arena, "waits for %s stage of `%s`", wait->full ? "a full" : "an empty",
                        wait->pipe);
}

/* True if a warp before this one has reported the same site */
static bool seen_before(const WatchdogRecord *records, int warp) {
    for (int i = 0; i < warp; i++)
        if (records[i].site == records[warp].site) return true;
    return false;
}

static void add_wait(const Manifest *manifest, const WatchdogRecord *records, int warp,
                     Diags *diags, Diag *diag) {
    const WatchdogRecord *record = &records[warp];
    const ManifestWait *wait = &manifest->waits.items[record->site - 1];
    const char *role = wait->role >= 0 ? manifest->roles.items[wait->role].name : "the prologue";
    const char *text = wait_text(diags->arena, wait);
    if (diag->has_place && diag->label_count < DIAG_MAX_LABELS && !seen_before(records, warp)) {
        if (diag->labels[0].text == NULL || diag->labels[0].text[0] == 0)
            diag_primary(diags, diag, "role `%s` %s here", role, text);
        else
            diag_label(diags, diag, wait->span, "role `%s` %s here", role, text);
    }
    diag_note(diags, diag, "block %u, warp %d: role `%s`, instance %u, %s: stage %u, parity %u",
              record->block, warp, role, record->rank, text, record->stage / 2, record->stage % 2);
}

bool watchdog_report(const RuntimeKernel *kernel, Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    if (kernel->watchdog == NULL) return false;
    WatchdogRecord records[MAX_WARPS];
    memcpy(records, kernel->watchdog->records, sizeof records);
    Diag *diag = NULL;
    for (int warp = 0; warp < MAX_WARPS; warp++) {
        if (records[warp].site == 0 || records[warp].site > manifest->waits.count) {
            records[warp].site = 0;
            continue;
        }
        const ManifestWait *wait = &manifest->waits.items[records[warp].site - 1];
        if (diag == NULL)
            diag = manifest_diag(manifest, diags, P0804, wait->span,
                                 "`%s` hangs: a wait has lasted %.3g s", manifest->kernel,
                                 (double)kernel->watchdog->limit_ns * 1e-9);
        add_wait(manifest, records, warp, diags, diag);
    }
    if (diag == NULL) return false;
    context_is_lost(diags, diag);
    return true;
}
