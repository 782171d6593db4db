/* One launch: its kernel, its extents, and the bytes of its parameters from the values of its
 * arguments. */
#include "emulator/workload/private.h"

#include <stdlib.h>

static bool failed(Workload *it, RunStatus status) {
    it->status = status;
    return false;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static const Text *text_of(Workload *it, const char *name) {
    const char *path = workload_path(it, name);
    for (size_t i = 0; i < it->texts.count; i++)
        if (strcmp(it->texts.items[i].path, path) == 0) return &it->texts.items[i];
    Text text = {.path = path};
    text.ptx = file_text(it->arena, path, &text.length, it->diags);
    if (text.ptx == NULL) {
        it->status = RUN_UNAVAILABLE;
        return NULL;
    }
    vec_push(it->arena, &it->texts, text);
    return &it->texts.items[it->texts.count - 1];
}

/* The only entry of the text; NULL: there are several, or none */
static const char *only_entry(Workload *it, const Text *text) {
    EmulatorKernel *kernels;
    size_t count;
    RunStatus status =
        emulator_list(it->arena, text->ptx, text->length, &kernels, &count, it->diags);
    if (status != RUN_DONE) return failed(it, status), NULL;
    if (count == 1) return kernels[0].name;
    if (count == 0) {
        workload_wrong(it, "`%s` has no entry", text->path);
        return NULL;
    }
    Str names = str_new(it->arena);
    for (size_t i = 0; i < count && i < 8; i++)
        str_printf(&names, "%s`%s`", i ? ", " : "", kernels[i].name);
    workload_wrong(it, "`%s` has %zu entries, so one must be named: %s%s", text->path, count,
                   names.text, count > 8 ? ", .." : "");
    return NULL;
}

/* Kernels that are launched several times are read once. */
static const EmulatorKernel *read_kernel(Workload *it, const char *ptx, const char *entry) {
    const Text *text = text_of(it, ptx);
    if (text == NULL) return NULL;
    if (entry == NULL) entry = only_entry(it, text);
    if (entry == NULL) return NULL;
    for (size_t i = 0; i < it->kernels.count; i++) {
        const KnownKernel *known = &it->kernels.items[i];
        if (known->ptx == text->ptx && strcmp(known->kernel->name, entry) == 0)
            return known->kernel;
    }
    EmulatorKernel *kernel = NEW(it->arena, EmulatorKernel);
    it->status = emulator_read(it->arena, text->ptx, text->length, entry, kernel, it->diags);
    if (it->status != RUN_DONE) return NULL;
    vec_push(it->arena, &it->kernels, ((KnownKernel){text->ptx, kernel}));
    return kernel;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Types such as .b32 take all kinds. */
static bool kind_fits(const EmulatorParameter *parameter, ValueKind kind) {
    if (kind == VALUE_BYTES || parameter->type[1] == 'b') return true;
    return (parameter->type[1] == 'f') == (kind == VALUE_FLOAT);
}

static bool fill_parameter(Workload *it, const EmulatorParameter *parameter, size_t index,
                           unsigned char *bytes) {
    const Value *value = &it->values.items[index];
    if (value->size != parameter->bytes)
        diag_plain(it->diags, P0702, "argument %zu has %u bytes, but parameter `%s` (%s) has %u",
                   index, value->size, parameter->name, parameter->type, parameter->bytes);
    else if (!kind_fits(parameter, value->kind))
        diag_plain(it->diags, P0702, "argument %zu is %s, but parameter `%s` has type %s", index,
                   value->kind == VALUE_FLOAT     ? "a floating-point number"
                   : value->kind == VALUE_POINTER ? "an address"
                                                  : "an integer",
                   parameter->name, parameter->type);
    else if (value->kind == VALUE_MAP && parameter->alignment < EMULATOR_MAP_ALIGNMENT)
        diag_plain(it->diags, P0702,
                   "argument %zu is a tensor map, but parameter `%s` is aligned to %u bytes "
                   "instead of %d",
                   index, parameter->name, parameter->alignment, EMULATOR_MAP_ALIGNMENT);
    else {
        memcpy(bytes + parameter->offset, value->bytes, value->size);
        return true;
    }
    return failed(it, RUN_REJECTED);
}

static bool fill_parameters(Workload *it, const EmulatorKernel *kernel, unsigned char *bytes) {
    if (it->values.count != kernel->parameter_count) {
        diag_plain(it->diags, P0702, "kernel `%s` has %zu parameters, but the launch gives %zu",
                   kernel->name, kernel->parameter_count, it->values.count);
        return failed(it, RUN_REJECTED);
    }
    for (size_t i = 0; i < kernel->parameter_count; i++)
        if (!fill_parameter(it, &kernel->parameters[i], i, bytes)) return false;
    return true;
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool add_workspace(Workload *it, EmulatorLaunch *launch) {
    size_t array;
    const char *word = arena_printf(it->arena, "zeros:u8[%d]", EMULATOR_WORKSPACE_BYTES);
    if (!array_word(it, word, "the workspace of the grid", &array)) return false;
    launch->workspace = it->regions.items[array].base;
    return true;
}

bool add_launch(Workload *it, const char *ptx, const char *entry, bool cooperative,
                EmulatorLaunch launch) {
    const EmulatorKernel *kernel = read_kernel(it, ptx, entry);
    if (kernel == NULL) return false;
    unsigned char *bytes = NEW_ARRAY(it->arena, unsigned char, kernel->parameter_bytes + 1);
    if (!fill_parameters(it, kernel, bytes)) return false;
    launch.kernel = kernel;
    launch.parameters = bytes;
    if ((launch.block[0] | launch.block[1] | launch.block[2]) == 0)
        memcpy(launch.block, kernel->required_block, sizeof launch.block);
    if ((launch.block[0] | launch.block[1] | launch.block[2]) == 0)
        return workload_wrong(it, "the threads of a block are missing: kernel `%s` requires none",
                              kernel->name);
    if (cooperative && !add_workspace(it, &launch)) return false;
    if (!emulator_check(&launch, it->diags)) return failed(it, RUN_REJECTED);
    vec_push(it->arena, &it->launches, launch);
    it->values.count = 0;
    return true;
}
