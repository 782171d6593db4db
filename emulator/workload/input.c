/* Shared by the readers of descriptions: errors, paths, fields of objects. */
#include "emulator/workload/private.h"

bool workload_wrong(Workload *it, const char *format, ...) {
    Str text = str_new(it->arena);
    va_list args;
    if (it->where != NULL) str_printf(&text, "%s: ", it->where);
    va_start(args, format);
    str_vprintf(&text, format, args);
    va_end(args);
    diag_plain(it->diags, P0767, "%s", text.text);
    it->status = RUN_UNAVAILABLE;
    return false;
}

const char *workload_path(const Workload *it, const char *name) {
    bool own = name[0] == '/' || strcmp(name, "-") == 0 || it->folder[0] == 0;
    return own ? name : arena_printf(it->arena, "%s%s", it->folder, name);
}

bool known_fields(Workload *it, const JsonValue *object, const char *const *names, size_t count) {
    for (const JsonValue *at = object->first; at != NULL; at = at->next) {
        bool known = false;
        for (size_t i = 0; i < count; i++) known |= strcmp(names[i], at->name) == 0;
        if (!known) return workload_wrong(it, "there is no field `%s` here", at->name);
    }
    return true;
}
