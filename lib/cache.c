/* lib: the file of tuned choices. JSON, one choice per line:
 *
 *   {"pipec tune": 1, "choices": [
 *   {"kernel": "gemm", "source": "..", "given": "", "device": "NVIDIA H200",
 *    "extents": "M=4096", "values": "BM=128", "seconds": 1e-4, "near": false}
 *   ]}
 *
 * Versions that tuned classes of extents wrote "M=3073..4096", which no launch has. The file
 * belongs to the user and may be old, truncated or something else: a file of another form counts as
 * unreadable and is never overwritten. */
#include "lib/cache.h"

#include "util/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT       "pipec tune"
#define FILE_MOST    (16 << 20) /* bytes */
#define CHOICES_MOST 40000      /* above that the oldest are dropped */

#define LOCK_PAUSE 5000 /* microseconds between tries to lock a folder */
#define LOCK_TRIES 2000

static const struct {
    const char *name;
    size_t offset;
} fields[] = {{"kernel", offsetof(Choice, kernel)},   {"source", offsetof(Choice, source)},
              {"given", offsetof(Choice, given)},     {"device", offsetof(Choice, device)},
              {"extents", offsetof(Choice, extents)}, {"values", offsetof(Choice, values)}};

static const char **field_of(Choice *choice, size_t index) {
    return (const char **)(void *)((char *)choice + fields[index].offset);
}

static const char *text_of(const Choice *choice, size_t index) {
    Choice copy = *choice;
    return *field_of(&copy, index);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A choice needs all fields; unknown ones are ignored. */
static bool read_choice(const JsonValue *row, Choice *choice) {
    const JsonValue *seconds = json_field(row, "seconds");
    *choice = (Choice){0};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const JsonValue *field = json_field(row, fields[i].name);
        if (field == NULL || field->kind != JSON_TEXT) return false;
        *field_of(choice, i) = field->text;
    }
    const JsonValue *near = json_field(row, "near");
    choice->near = near != NULL && near->truth;
    choice->seconds = seconds != NULL ? seconds->number : 0;
    return seconds != NULL && seconds->kind == JSON_NUMBER;
}

static bool read_choices(Arena *arena, const char *text, size_t length, const char *name,
                         Choices *out, const char **hash) {
    const char *why;
    const JsonValue *root = json_read(arena, text, length, &why);
    const JsonValue *format = json_field(root, name), *list = json_field(root, "choices"),
                    *sum = json_field(root, "hash");
    if (format == NULL || format->number != 1 || list == NULL || list->kind != JSON_LIST)
        return false;
    *hash = sum != NULL && sum->kind == JSON_TEXT ? sum->text : NULL;
    for (const JsonValue *row = list->first; row != NULL; row = row->next) {
        Choice choice;
        if (!read_choice(row, &choice)) return false;
        vec_push(arena, out, choice);
    }
    return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

uint64_t choices_hash(const char *text, size_t length) { return fnv1a(FNV_START, text, length); }

Found choices_load(Arena *arena, const char *file, const char *name, Choices *out,
                   ChoicesHash *hash, const char **why) {
    int from = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat about;
    if (from < 0 && (errno == ENOENT || errno == ENOTDIR)) return FOUND_NOTHING;
    *why = NULL;
    if (from < 0)
        *why = strerror(errno);
    else if (fstat(from, &about) != 0 || !S_ISREG(about.st_mode))
        *why = "it is not a file";
    else if (about.st_size > FILE_MOST)
        *why = "it is too large";
    if (*why != NULL) {
        if (from >= 0) close(from);
        return FOUND_UNREADABLE;
    }
    size_t size = (size_t)about.st_size, used = 0;
    char *text = arena_alloc(arena, size + 1);
    while (used < size) {
        ssize_t got = read(from, text + used, size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    close(from);
    *why = "it does not have the format of this version of pipec";
    const char *rest = memchr(text, '\n', used);
    hash->actual = rest != NULL ? choices_hash(rest + 1, used - (size_t)(rest + 1 - text)) : 0;
    if (used == size && read_choices(arena, text, size, name, out, &hash->said))
        return FOUND_CHOICES;
    out->count = 0;
    return FOUND_UNREADABLE;
}

static Found load(Arena *arena, const char *file, Choices *out, const char **why) {
    ChoicesHash hash;
    return choices_load(arena, file, FORMAT, out, &hash, why);
}

const char *cache_folder(Arena *arena, const char **why) {
    const char *own = getenv("PIPEC_CACHE"), *caches = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    *why = NULL;
    if (own != NULL && own[0] == 0) {
        *why = "PIPEC_CACHE is empty";
        return NULL;
    }
    if (own != NULL) return arena_copy(arena, own, strlen(own));
    if (caches != NULL && caches[0] == '/') return arena_printf(arena, "%s/pipec", caches);
    if (home != NULL && home[0] != 0) return arena_printf(arena, "%s/.cache/pipec", home);
    *why = "neither HOME nor PIPEC_CACHE is set";
    return NULL;
}

const char *cache_file(Arena *arena, const char **why) {
    const char *folder = cache_folder(arena, why);
    return folder != NULL ? arena_printf(arena, "%s/tune.json", folder) : NULL;
}

bool cache_is_there(const char *file) { return access(file, F_OK) == 0; }

static bool same_key(const Choice *a, const Choice *b) {
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (strcmp(text_of(a, i), text_of(b, i)) != 0) return false;
    return true;
}

Choices cache_read(Arena *arena, const char *file, Diags *diags) {
    Choices choices = {0};
    const char *why;
    if (load(arena, file, &choices, &why) != FOUND_UNREADABLE) return choices;
    Diag *diag = diag_plain(diags, P0911, "cannot read the tuned choices in `%s`: %s", file, why);
    diag_note(diags, diag, "nothing that was tuned is used");
    return choices;
}

static int by_extents(const void *a, const void *b) {
    return strcmp(((const Choice *)a)->extents, ((const Choice *)b)->extents);
}

Kept kept_of(Arena *arena, const Choices *choices, const Choice *like, const char *device) {
    Kept kept = {0};
    for (size_t i = 0; i < choices->count; i++) {
        const Choice *choice = &choices->items[i];
        if (strcmp(choice->source, like->source) == 0 && strcmp(choice->given, like->given) == 0 &&
            (device == NULL || strcmp(choice->device, device) == 0))
            vec_push(arena, &kept, *choice);
    }
    if (kept.count > 0) qsort(kept.items, kept.count, sizeof *kept.items, by_extents);
    return kept;
}

const Choice *kept_find(const Kept *kept, const char *extents, size_t *count) {
    size_t low = 0, high = kept->count;
    *count = 0;
    if (kept->count == 0) return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(kept->items[middle].extents, extents) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low + *count < kept->count; ++*count)
        if (strcmp(kept->items[low + *count].extents, extents) != 0) break;
    return &kept->items[low];
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool not_kept(const char *file, int error, Diags *diags) {
    Diag *diag = diag_plain(diags, P0912, "cannot save the tuned choices in `%s`: %s", file,
                            strerror(error));
    diag_help(diags, diag,
              "set PIPEC_CACHE to a writable folder, or to an empty value to save nothing");
    return false;
}

/* Creates the missing folders of the file's path: they also hold code, so only the user may write
 * them, whatever the umask. Returns 0 or an error number. */
static int make_folders(Arena *arena, const char *file) {
    char *path = arena_copy(arena, file, strlen(file));
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = 0;
        if (mkdir(path, S_IRWXU) == 0) {
            if (chmod(path, S_IRWXU) != 0) return errno; /* the umask took bits */
        } else if (errno != EEXIST && errno != EISDIR) {
            return errno;
        }
        *at = '/';
    }
    return 0;
}

/* Renames it to `file.broken`, or .broken.2 if that exists */
static bool move_aside(Arena *arena, const char *file, const char *why, Diags *diags) {
    for (int number = 1; number < 1000; number++) {
        const char *aside = number == 1 ? arena_printf(arena, "%s.broken", file)
                                        : arena_printf(arena, "%s.broken.%d", file, number);
        if (access(aside, F_OK) == 0) continue;
        if (rename(file, aside) != 0) break;
        Diag *diag =
            diag_plain(diags, P0911, "cannot read the tuned choices in `%s`: %s", file, why);
        diag_note(diags, diag, "the file was renamed to `%s`", aside);
        return true;
    }
    return not_kept(file, EEXIST, diags);
}

void choices_print(const Choices *choices, Str *out) {
    size_t first = choices->count > CHOICES_MOST ? choices->count - CHOICES_MOST : 0;
    for (size_t c = first; c < choices->count; c++) {
        str_add(out, "{");
        for (size_t i = 0; i < COUNT_OF(fields); i++) {
            str_printf(out, "\"%s\": ", fields[i].name);
            str_json(out, text_of(&choices->items[c], i));
            str_add(out, ", ");
        }
        str_printf(out, "\"seconds\": %.6g, \"near\": %s}%s\n", choices->items[c].seconds,
                   choices->items[c].near ? "true" : "false", c + 1 < choices->count ? "," : "");
    }
}

int cache_replace(Arena *arena, const char *file, const Str *text) {
    char *temporary = arena_printf(arena, "%s.XXXXXX", file);
    int error = make_folders(arena, file), to = error == 0 ? mkstemp(temporary) : -1;
    if (to < 0) return error != 0 ? error : errno;
    for (size_t used = 0; used < text->length && error == 0;) {
        ssize_t put = write(to, text->text + used, text->length - used);
        if (put > 0)
            used += (size_t)put;
        else if (put == 0 || errno != EINTR)
            error = put == 0 ? ENOSPC : errno;
    }
    if (close(to) != 0 && error == 0) error = errno;
    if (error == 0 && rename(temporary, file) != 0) error = errno;
    if (error != 0) unlink(temporary);
    return error;
}

int file_replace(Arena *arena, const char *file, const Str *text) {
    int error = cache_replace(arena, file, text);
    if (error == 0 && chmod(file, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) != 0) error = errno;
    return error;
}

const char *file_resolved(Arena *arena, const char *file) {
    char real[PATH_MAX];
    return realpath(file, real) != NULL ? arena_copy(arena, real, strlen(real)) : file;
}

int folder_lock(Arena *arena, const char *file) {
    const char *slash = strrchr(file, '/');
    const char *folder = slash != NULL ? arena_copy(arena, file, (size_t)(slash - file) + 1) : "./";
    if (make_folders(arena, file) != 0) return -1; /* to write the file will fail */
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        bool waits = (errno == EWOULDBLOCK || errno == EINTR) && tries < LOCK_TRIES;
        if (waits) {
            usleep(LOCK_PAUSE);
            continue;
        }
        close(lock);
        lock = -1;
    }
    return lock;
}

/* Those of `from` that have no new row, or all rows that are not removed */
static void merge(Arena *arena, const Choices *from, const Choices *without, Choices *out) {
    for (size_t i = 0; i < from->count; i++) {
        bool dropped = without == NULL && !(from->items[i].seconds > 0);
        for (size_t k = 0; without != NULL && k < without->count && !dropped; k++)
            dropped = same_key(&from->items[i], &without->items[k]);
        if (!dropped) vec_push(arena, out, from->items[i]);
    }
}

/* Called while the lock is held */
static bool replace(Arena *arena, const char *file, const Choices *choices, Diags *diags) {
    Choices old = {0}, all = {0};
    const char *why;
    if (load(arena, file, &old, &why) == FOUND_UNREADABLE && !move_aside(arena, file, why, diags))
        return false;
    merge(arena, &old, choices, &all);
    merge(arena, choices, NULL, &all);
    Str text = str_new(arena);
    str_add(&text, "{\"" FORMAT "\": 1, \"choices\": [\n");
    choices_print(&all, &text);
    str_add(&text, "]}\n");
    int error = cache_replace(arena, file, &text);
    return error == 0 || not_kept(file, error, diags);
}

bool cache_store(Arena *arena, const char *file, const Choices *choices, Diags *diags) {
    int error = make_folders(arena, file);
    if (error != 0) return not_kept(file, error, diags);
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
    int lock = open(arena_printf(arena, "%s.lock", file), flags, S_IRUSR | S_IWUSR);
    if (lock < 0) return not_kept(file, errno, diags);
    while (flock(lock, LOCK_EX) != 0)
        if (errno != EINTR) {
            error = errno;
            close(lock);
            return not_kept(file, error, diags);
        }
    bool kept = replace(arena, file, choices, diags);
    close(lock);
    return kept;
}
