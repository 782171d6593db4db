/* lib: the files that a text includes, and that these include: finds them, each once, refuses what
 * is not allowed, and joins all to one source.
 *
 * A path is relative to the folder of the file that has it. `..` is resolved in the text of the
 * path, so that no path leads above the folder of the first file, the root; and the file that is
 * opened, with all symbolic links resolved, must lie in the root, with its links resolved. Each
 * file is read once: what was read is what is compiled, hashed and kept. */
#include "lib/include.h"

#include "parser/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most files between an included file and the first one, itself included; and most files in all */
#define DEPTH_MOST 10
#define FILES_MOST 64

typedef struct File {
    SourceText text;
    dev_t device; /* both: what file it is, if it was read from a disk */
    ino_t inode;
    uint32_t base; /* where it begins in the source */
    bool open;     /* its includes are being read */
    size_t by;     /* the file that includes it first */
    Span at;       /* there */
    int depth;     /* 0: the first file */
} File;

typedef struct Including {
    Arena *arena;
    const SourceOrigin *from;
    const char *root; /* real path of from->folder; NULL: not known yet */
    Diags *diags;
    VEC(File) files;
} Including;

/* ---- paths ----------------------------------------------------------------------------------- */

static Diag *refuse_path(Including *it, Span at, const char *why, const char *help) {
    Diag *diag = diag_at(it->diags, P0040, at, "%s", why);
    diag_help(it->diags, diag, "%s", help);
    return diag;
}

/* "lib/" of "lib/sums.pipe" */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* The path relative to the root, without `.` and `..`; NULL: it is refused */
static const char *resolve(Including *it, const File *by, const char *path, Span at) {
    const char *relative = "write a path relative to the folder of this file: "
                           "`include \"common.pipe\";`";
    if (path[0] == '/') return refuse_path(it, at, "an absolute path in `include`", relative), NULL;
    if (strchr(path, '\\') != NULL)
        return refuse_path(it, at, "a backslash in the path of `include`",
                           "write `/` between folders"),
               NULL;
    char *out =
        arena_printf(it->arena, "%.*s%s", (int)folder_length(by->text.path), by->text.path, path);
    size_t kept = 0; /* bytes of `out` that hold the result */
    for (const char *word = out; *word != 0;) {
        size_t length = strcspn(word, "/");
        const char *next = word + length + (word[length] == '/');
        if (length == 2 && memcmp(word, "..", 2) == 0) {
            if (kept == 0)
                return refuse_path(it, at, "this path leads above the folder of the first file",
                                   "move the file into that folder, or below it"),
                       NULL;
            for (kept--; kept > 0 && out[kept - 1] != '/';) kept--;
        } else if (length > 0 && !(length == 1 && *word == '.')) {
            bool folder = word[length] == '/';
            memmove(out + kept, word, length);
            kept += length;
            if (folder) out[kept++] = '/';
        }
        word = next;
    }
    out[kept] = 0;
    if (kept == 0 || out[kept - 1] == '/')
        return refuse_path(it, at, "the path of `include` names no file", relative), NULL;
    return out;
}

/* ---- files of a disk ------------------------------------------------------------------------- */

static bool no_file(Including *it, Span at, const char *name, const char *why) {
    Diag *diag = diag_at(it->diags, P0041, at, "cannot include `%s`: %s", name, why);
    diag_help(it->diags, diag,
              "write the path of a text, relative to the folder of the file with this `include`");
    return false;
}

static bool is_in(const char *root, const char *path) {
    size_t length = strlen(root);
    if (length > 0 && root[length - 1] == '/') length--; /* the root of the file system */
    return strncmp(path, root, length) == 0 && path[length] == '/';
}

/* Reads from->folder. False: reported */
static bool find_root(Including *it, Span at) {
    char real[PATH_MAX];
    if (it->root != NULL) return true;
    if (realpath(it->from->folder, real) == NULL)
        return no_file(it, at, it->from->folder, strerror(errno));
    it->root = arena_copy(it->arena, real, strlen(real));
    return true;
}

/* Why a file cannot be included; NULL: it can */
static const char *kind_fault(const struct stat *about) {
    if (S_ISDIR(about->st_mode)) return "it is a folder";
    return S_ISREG(about->st_mode) ? NULL : "it is not a regular file";
}

/* The opened file lies in the root: a folder on its path may have become a link since the path was
 * resolved. Without /proc, what was resolved counts. */
static bool lies_in(const char *root, int opened) {
    char name[40], real[PATH_MAX];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", opened);
    ssize_t length = readlink(name, real, sizeof real - 1);
    if (length < 0) return true;
    real[length] = 0;
    return is_in(root, real);
}

/* Opens the file, which must be a regular one: others might wait. -1: reported */
static int open_file(Including *it, const File *file, Span at, struct stat *about) {
    char real[PATH_MAX];
    const char *name = file->text.name;
    const char *path = arena_printf(it->arena, "%s/%s", it->root, file->text.path);
    if (realpath(path, real) == NULL) return no_file(it, at, name, strerror(errno)), -1;
    if (!is_in(it->root, real)) {
        refuse_path(it, at,
                    "this path leads through a symbolic link out of the first file's folder",
                    "replace the link by the file, or move what it leads to into that folder");
        return -1;
    }
    struct stat before;
    if (stat(real, &before) != 0) return no_file(it, at, name, strerror(errno)), -1;
    if (kind_fault(&before) != NULL) return no_file(it, at, name, kind_fault(&before)), -1;
    int opened = open(real, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    if (opened < 0) return no_file(it, at, name, strerror(errno)), -1;
    if (fstat(opened, about) == 0 && about->st_dev == before.st_dev &&
        about->st_ino == before.st_ino && kind_fault(about) == NULL && lies_in(it->root, opened))
        return opened;
    close(opened);
    return no_file(it, at, name, "another file took its place"), -1;
}

/* ---- limits, cycles -------------------------------------------------------------------------- */

static void refuse_cycle(Including *it, size_t by, Span at, size_t again) {
    const File *files = it->files.items;
    Diag *diag = diag_at(it->diags, P0042, at, "`%s` includes itself", files[again].text.name);
    Str chain = str_new(it->arena);
    str_printf(&chain, "`%s`", files[again].text.name);
    /* The chain below has all. More labels would need the source, which is not joined yet. */
    int labels = 1;
    for (size_t i = by; i != again && labels < DIAG_MAX_LABELS; i = files[i].by, labels++)
        diag_label(it->diags, diag, files[i].at, "`%s` is included here", files[i].text.name);
    for (int depth = files[again].depth + 1; depth <= files[by].depth; depth++) {
        size_t i = by;
        while (files[i].depth != depth) i = files[i].by;
        str_printf(&chain, " -> `%s`", files[i].text.name);
    }
    diag_note(it->diags, diag, "the cycle: %s -> `%s`", chain.text, files[again].text.name);
    diag_help(it->diags, diag, "move what both need to a third file, which both include");
}

static Diag *refuse_limit(Including *it, Span at, const char *what, int most) {
    Diag *diag = diag_at(it->diags, P0045, at, what, most);
    return diag_help(it->diags, diag, "join several of the included files to one");
}

static bool fits(Including *it, const File *file, Span at) {
    if (file->depth > DEPTH_MOST) {
        refuse_limit(it, at, "includes are nested more than %d deep", DEPTH_MOST);
    } else if (it->files.count > FILES_MOST) {
        refuse_limit(it, at, "the text includes more than %d files", FILES_MOST);
    } else if ((uint64_t)file->base + file->text.length > SOURCE_MAX_BYTES) {
        Diag *diag =
            diag_at(it->diags, P0045, at, "the text and what it includes have more than %u MiB",
                    SOURCE_MAX_BYTES >> 20);
        diag_note(it->diags, diag, "check the path: the source of a kernel is much shorter");
    } else {
        return true;
    }
    return false;
}

/* ---- one include ----------------------------------------------------------------------------- */

/* False: this file is there already; it may be a cycle */
static bool is_new(Including *it, const File *file, Span at) {
    for (size_t i = 0; i < it->files.count; i++) {
        const File *old = &it->files.items[i];
        bool same = strcmp(old->text.path, file->text.path) == 0 ||
                    (file->inode != 0 && old->inode == file->inode && old->device == file->device);
        if (!same) continue;
        if (old->open) refuse_cycle(it, file->by, at, i);
        return false;
    }
    return true;
}

/* False: it was refused, or is there already */
static bool read_disk(Including *it, File *file, Span at) {
    struct stat about;
    if (!is_new(it, file, at) || !find_root(it, at)) return false; /* by its path: many are again */
    int opened = open_file(it, file, at, &about);
    if (opened < 0) return false;
    file->device = about.st_dev, file->inode = about.st_ino;
    bool reads = is_new(it, file, at);
    if (reads) {
        file->text.length = (size_t)about.st_size;
        reads = fits(it, file, at); /* before it is read */
    }
    if (reads) {
        file->text.text = file_bytes(it->arena, opened, file->text.length, &file->text.length);
        if (file->text.text == NULL) no_file(it, at, file->text.name, strerror(errno));
        reads = file->text.text != NULL && fits(it, file, at);
    }
    close(opened);
    return reads;
}

static bool read_table(Including *it, File *file, Span at) {
    const PipecFile *found = NULL;
    for (size_t i = 0; i < it->from->count && found == NULL; i++)
        if (strcmp(it->from->files[i].name, file->text.path) == 0) found = &it->from->files[i];
    if (found == NULL)
        return no_file(it, at, file->text.name, "it is not among the files that were given");
    file->text.text = found->text;
    file->text.length = found->length;
    return is_new(it, file, at) && fits(it, file, at);
}

static void refuse_any(Including *it, Span at) {
    Diag *diag = diag_at(it->diags, P0044, at, "`include` in a text that is in no folder");
    diag_note(it->diags, diag, "paths are relative to the folder of the text, which is not known");
    diag_help(it->diags, diag,
              "give the folder: `--folder=.` on the command line, `folder` in PipecOptions and in "
              "`pipec.compile`");
}

static void walk(Including *it, size_t index);

/* span: of the path, in file number `by` */
static void include(Including *it, size_t by, Span span) {
    const File *parent = &it->files.items[by], *last = &it->files.items[it->files.count - 1];
    Span at = {parent->base + span.lo - 1, parent->base + span.hi + 1}; /* with its quotes */
    const char *path = arena_copy(it->arena, parent->text.text + span.lo, span.hi - span.lo);
    if (it->from->folder == NULL && it->from->files == NULL) {
        refuse_any(it, at);
        return;
    }
    path = resolve(it, parent, path, at);
    if (path == NULL) return;
    File file = {
        .text = {.path = path, .name = arena_printf(it->arena, "%s%s", it->from->shown, path)},
        .base = last->base + (uint32_t)last->text.length + 1,
        .by = by,
        .at = at,
        .depth = parent->depth + 1};
    bool reads = it->from->files != NULL ? read_table(it, &file, at) : read_disk(it, &file, at);
    if (!reads) return;
    vec_push(it->arena, &it->files, file);
    walk(it, it->files.count - 1);
}

static void walk(Including *it, size_t index) {
    const SourceText *text = &it->files.items[index].text;
    Includes found = parser_includes(it->arena, text->text, text->length);
    it->files.items[index].open = true;
    for (size_t i = 0; i < found.count && it->diags->errors == 0; i++)
        include(it, index, found.items[i]);
    it->files.items[index].open = false;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* So that a file that includes the first one is a cycle */
static void identify(File *first, const char *path) {
    struct stat about;
    if (path == NULL || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return;
    first->device = about.st_dev, first->inode = about.st_ino;
}

Source *include_all(Arena *arena, const char *name, const char *text, size_t length,
                    const SourceOrigin *from, Diags *diags) {
    Including it = {.arena = arena, .from = from, .diags = diags};
    File first = {.text = {.name = name, .path = "", .text = text, .length = length}};
    identify(&first, from->file);
    vec_push(arena, &it.files, first);
    walk(&it, 0);
    if (it.files.count == 1) return source_of(arena, name, text, length);
    SourceText *texts = NEW_ARRAY(arena, SourceText, it.files.count);
    for (size_t i = 0; i < it.files.count; i++) texts[i] = it.files.items[i].text;
    return source_join(arena, texts, it.files.count);
}

/* ---- where files come from ------------------------------------------------------------------- */

/* What precedes the paths of included files in messages: "kernels/" of "kernels/softmax.pipe",
 * "kernels:" of "kernels:softmax" */
static const char *shown_before(Arena *arena, const char *path) {
    size_t shipped = source_is_shipped(path) ? strcspn(path, ":") + 1 : 0;
    return arena_copy(arena, path, shipped > 0 ? shipped : folder_length(path));
}

static const PipecFile *files_shipped(Arena *arena, size_t *count) {
    PipecFile *files = NEW_ARRAY(arena, PipecFile, shipped_files_count + 1);
    for (*count = 0; pipec_shipped_file(*count, &files[*count]);) ++*count;
    return files;
}

SourceOrigin include_origin(Arena *arena, const PipecOptions *options, const char *path,
                            const char *name) {
    SourceOrigin from = {.files = options->files, .count = options->file_count};
    if (path != NULL && source_is_shipped(path)) from.files = files_shipped(arena, &from.count);
    if (path != NULL && strcmp(path, "-") != 0) {
        from.file = path;
        from.shown = shown_before(arena, path);
        from.folder = *from.shown != 0 ? from.shown : ".";
    } else if (options->folder != NULL) {
        from.folder = options->folder;
        from.shown = shown_before(arena, arena_printf(arena, "%s/", options->folder));
    } else {
        from.shown = shown_before(arena, name);
    }
    return from;
}
