/* lib: machines that `pipec calibrate` measured, in a file of the user. JSON, one machine per line:
 *
 *   {"pipec machines": 1, "machines": [
 *   {"device": "NVIDIA H200", "multiprocessors": 132, "l2_bytes": .., "memory_bytes": ..,
 *    "megahertz": 1700, ..}
 *   ]} */
#include "lib/machine.h"

#include "lib/cache.h"
#include "util/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Machines {
    Measured *items;
    size_t count, capacity;
} Machines;

#define IN_ROW(field) offsetof(Measured, row.field)
static const struct {
    const char *name;
    size_t offset;
} numbers[] = {{"multiprocessors", IN_ROW(multiprocessors)},
               {"megahertz", IN_ROW(megahertz)},
               {"memory_rate", IN_ROW(memory_rate)},
               {"l2_rate", IN_ROW(l2_rate)},
               {"latency", IN_ROW(latency)},
               {"launch", IN_ROW(launch)},
               {"barrier", offsetof(Measured, barrier)},
               {"block", offsetof(Measured, block)}};

static int *number_of(Measured *measured, size_t index) {
    return (int *)(void *)((char *)measured + numbers[index].offset);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_bytes(const JsonValue *row, const char *name, int64_t *to) {
    const JsonValue *field = json_field(row, name);
    if (field == NULL || !field->is_integer || field->integer < 0) return false;
    *to = field->integer;
    return true;
}

static bool read_machine(const JsonValue *row, Measured *to) {
    const JsonValue *device = json_field(row, "device");
    *to = (Measured){.row = {.calibrated = true}};
    if (device == NULL || device->kind != JSON_TEXT) return false;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        const JsonValue *field = json_field(row, numbers[i].name);
        if (field == NULL || !field->is_integer || field->integer <= 0 ||
            field->integer > INT32_MAX)
            return false;
        *number_of(to, i) = (int)field->integer;
    }
    to->device.name = to->row.name = to->row.device = device->text;
    to->device.multiprocessors = to->row.multiprocessors;
    if (!read_bytes(row, "l2_bytes", &to->device.l2_bytes) ||
        !read_bytes(row, "memory_bytes", &to->device.memory_bytes))
        return false;
    to->row.l2_size = (int)(to->device.l2_bytes >> 20);
    return true;
}

/* False: it is no such file */
static bool read_machines(Arena *arena, const char *file, Machines *out) {
    const char *why;
    size_t length;
    const char *text = file_text(arena, file, &length, diags_new(arena, NULL));
    const JsonValue *root = text != NULL ? json_read(arena, text, length, &why) : NULL;
    const JsonValue *format = json_field(root, "pipec machines"),
                    *list = json_field(root, "machines");
    if (format == NULL || format->number != 1 || list == NULL || list->kind != JSON_LIST)
        return false;
    for (const JsonValue *row = list->first; row != NULL; row = row->next) {
        Measured machine;
        if (!read_machine(row, &machine)) return false;
        vec_push(arena, out, machine);
    }
    return true;
}

const char *machine_file(Arena *arena, const char **why) {
    const char *folder = cache_folder(arena, why);
    return folder != NULL ? arena_printf(arena, "%s/machines.json", folder) : NULL;
}

/* Those of the user; a file that cannot be read has none, and is a warning */
static Machines users(Arena *arena, Diags *diags) {
    Machines machines = {0};
    const char *why, *file = machine_file(arena, &why);
    if (file == NULL || !cache_is_there(file) || read_machines(arena, file, &machines))
        return machines;
    Diag *diag = diag_plain(diags, P0926, "cannot read the measured machines in `%s`", file);
    diag_note(diags, diag, "times are predicted with the table of pipec");
    diag_help(diags, diag, "remove the file, and run `pipec calibrate` again");
    return (Machines){0};
}

static bool same_device(const DeviceFacts *a, const DeviceFacts *b) {
    return strcmp(a->name, b->name) == 0 && a->multiprocessors == b->multiprocessors &&
           a->l2_bytes == b->l2_bytes && a->memory_bytes == b->memory_bytes;
}

/* What `pipec calibrate` measures on an H100. The row of the table is fitted to times of kernels,
 * and its numbers stand for more than their names, so that a row is the fitted one times what was
 * measured over this. */
static const MachineRow reference = {.name = "h100",
                                     .megahertz = 1632,
                                     .memory_rate = 2846,
                                     .l2_rate = 84,
                                     .latency = 159,
                                     .launch = 3947};

static int scaled(int fitted, int measured, int reference_measured) {
    double value = (double)fitted * measured / reference_measured;
    return value < 1 ? 1 : value > INT32_MAX ? INT32_MAX : (int)(value + 0.5);
}

static MachineRow row_of(const Measured *machine) {
    const MachineRow *fitted = machine_by_name(reference.name);
    MachineRow row = machine->row;
    row.megahertz = scaled(fitted->megahertz, row.megahertz, reference.megahertz);
    row.memory_rate = scaled(fitted->memory_rate, row.memory_rate, reference.memory_rate);
    row.l2_rate = scaled(fitted->l2_rate, row.l2_rate, reference.l2_rate);
    row.latency = scaled(fitted->latency, row.latency, reference.latency);
    row.launch = scaled(fitted->launch, row.launch, reference.launch);
    return row;
}

MachineRow machine_for(Arena *arena, const DeviceFacts *device, Diags *diags) {
    Machines machines = users(arena, diags);
    for (size_t i = 0; i < machines.count; i++)
        if (same_device(&machines.items[i].device, device)) return row_of(&machines.items[i]);
    return machine_of_device(device);
}

const MachineRow *machine_named(Arena *arena, const char *name, Diags *diags) {
    const MachineRow *row = machine_by_name(name);
    if (row != NULL) return row;
    Machines machines = users(arena, diags);
    for (size_t i = 0; i < machines.count; i++) {
        if (strcmp(machines.items[i].device.name, name) != 0) continue;
        MachineRow *own = NEW(arena, MachineRow);
        *own = row_of(&machines.items[i]);
        return own;
    }
    machine_report_unknown(name, diags);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void print_machine(Measured *measured, Str *out) {
    str_add(out, "{\"device\": ");
    str_json(out, measured->device.name);
    str_printf(out, ", \"l2_bytes\": %" PRId64 ", \"memory_bytes\": %" PRId64,
               measured->device.l2_bytes, measured->device.memory_bytes);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        str_printf(out, ", \"%s\": %d", numbers[i].name, *number_of(measured, i));
    str_add(out, "}");
}

/* Called while the folder is locked */
static bool add_machine(Arena *arena, const char *file, const Measured *measured, Diags *diags) {
    Machines old = {0}, all = {0};
    if (cache_is_there(file) && !read_machines(arena, file, &old)) {
        diag_plain(diags, P0927, "`%s` is another file, which is not overwritten", file);
        return false;
    }
    for (size_t i = 0; i < old.count; i++)
        if (!same_device(&old.items[i].device, &measured->device))
            vec_push(arena, &all, old.items[i]);
    vec_push(arena, &all, *measured);
    Str text = str_new(arena);
    str_add(&text, "{\"pipec machines\": 1, \"machines\": [\n");
    for (size_t i = 0; i < all.count; i++) {
        print_machine(&all.items[i], &text);
        str_add(&text, i + 1 < all.count ? ",\n" : "\n");
    }
    str_add(&text, "]}\n");
    int error = cache_replace(arena, file_resolved(arena, file), &text);
    if (error != 0)
        diag_plain(diags, P0927, "cannot save the machine in `%s`: %s", file, strerror(error));
    return error == 0;
}

bool machine_store(Arena *arena, const char *file, const Measured *measured, Diags *diags) {
    int lock = folder_lock(arena, file_resolved(arena, file));
    bool stored = add_machine(arena, file, measured, diags);
    if (lock >= 0) close(lock);
    return stored;
}
