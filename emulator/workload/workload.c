/* The public functions: descriptions of launches by words or files; results. */
#include "emulator/workload/private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static Workload *new_workload(Arena *arena, Diags *diags) {
    Workload *it = NEW(arena, Workload);
    it->arena = arena;
    it->diags = diags;
    it->folder = "";
    return it;
}

static Workload *finish(Workload *it, bool fine, RunStatus *status) {
    *status = it->status;
    if (fine) return it;
    workload_free(it);
    return NULL;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* "X", "X,Y", "X,Y,Z"; NULL: all stay 0 */
static bool extents_of_word(Workload *it, const char *name, const char *word, uint32_t *out) {
    if (word == NULL) return true;
    const char *at = word;
    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        unsigned long long value =
            at[0] >= '0' && at[0] <= '9' ? strtoull(at, &end, 10) : ULLONG_MAX;
        if (value > UINT32_MAX || errno != 0 || (*end != ',' && *end != 0)) break;
        out[i] = (uint32_t)value;
        if (*end == 0) return true;
        at = end + 1;
    }
    return workload_wrong(it, "`%s` of the %s is not X, X,Y or X,Y,Z with whole numbers", word,
                          name);
}

static bool read_words(Workload *it, const WorkloadWords *words) {
    EmulatorLaunch launch = {.shared_bytes = words->shared_bytes};
    if (words->grid == NULL) return workload_wrong(it, "the grid is missing");
    if (!extents_of_word(it, "grid", words->grid, launch.grid) ||
        !extents_of_word(it, "block", words->block, launch.block) ||
        !extents_of_word(it, "cluster", words->cluster, launch.cluster))
        return false;
    for (size_t i = 0; i < words->argument_count; i++) {
        Value value;
        it->where = arena_printf(it->arena, "argument %zu", i);
        if (!value_of_word(it, words->arguments[i], 0, &value)) return false;
        vec_push(it->arena, &it->values, value);
    }
    it->where = NULL;
    return add_launch(it, words->ptx, words->entry, words->cooperative, launch);
}

Workload *workload_from_words(Arena *arena, const WorkloadWords *words, RunStatus *status,
                              Diags *diags) {
    Workload *it = new_workload(arena, diags);
    return finish(it, read_words(it, words), status);
}

/* ---- files ----------------------------------------------------------------------------------- */

Workload *workload_from_text(Arena *arena, const char *text, size_t length, const char *folder,
                             uint64_t memory_most, RunStatus *status, Diags *diags) {
    Workload *it = new_workload(arena, diags);
    const char *why;
    const JsonValue *json = json_read(arena, text, length, &why);
    it->folder = folder;
    it->memory_most = memory_most;
    if (json == NULL) workload_wrong(it, "the launch file is not JSON: %s", why);
    return finish(it, json != NULL && read_launches(it, json), status);
}

Workload *workload_from_file(Arena *arena, const char *path, RunStatus *status, Diags *diags) {
    Workload *it = new_workload(arena, diags);
    const JsonValue *json = json_of_file(it, path);
    return finish(it, json != NULL && read_launches(it, json), status);
}

void workload_free(Workload *it) {
    for (size_t i = 0; it != NULL && i < it->arrays.count; i++)
        array_free(&it->arrays.items[i].storage);
}

const Source *workload_source(const Workload *it) {
    if (it->texts.count != 1) return NULL;
    const Text *text = &it->texts.items[0];
    return source_new(it->arena, text->path, text->ptx, text->length);
}

size_t workload_launches(const Workload *it) { return it->launches.count; }

const NpyData *workload_array(const Workload *it, size_t index) {
    return index < it->arrays.count ? &it->arrays.items[index].data : NULL;
}

bool workload_save(const Workload *it, Diags *diags) {
    bool fine = true;
    for (size_t i = 0; i < it->arrays.count; i++) {
        const WorkloadArray *array = &it->arrays.items[i];
        if (array->save != NULL) fine &= npy_write_any(it->arena, array->save, &array->data, diags);
    }
    return fine;
}
