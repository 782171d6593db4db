/* launch: reads a file of text. Returns its bytes, or a diagnostic: missing, unreadable, a folder,
 * too large. Never reads more than PIPEC_TEXT_MAX bytes. */
#include "launch/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)64 << 10)

static void too_large(const char *path, Diags *diags) {
    Diag *diag =
        diag_plain(diags, P0901, "`%s` is larger than %u MiB, the most that a source may have",
                   path, SOURCE_MAX_BYTES >> 20);
    diag_note(diags, diag, "check the file name: the source of a kernel is much shorter");
}

const char *file_bytes(Arena *arena, int file, size_t likely, size_t *length) {
    /* one more byte ends the text, one shows that the file has no more */
    size_t used = 0, room = likely + 2;
    char *text = arena_alloc(arena, room);
    for (;;) {
        if (room - used < 2) {
            size_t wanted = room < PIECE ? 2 * PIECE : 2 * room;
            text = arena_regrow(arena, text, room, wanted);
            room = wanted;
        }
        ssize_t got = read(file, text + used, room - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return NULL;
        used += (size_t)got;
        if (used > SOURCE_MAX_BYTES) return errno = EFBIG, NULL;
        if (got == 0) break;
    }
    *length = used;
    return text;
}

static const char *read_all(Arena *arena, int file, const char *path, size_t likely, size_t *length,
                            Diags *diags) {
    const char *text = file_bytes(arena, file, likely, length);
    if (text == NULL && errno == EFBIG)
        too_large(path, diags);
    else if (text == NULL)
        diag_plain(diags, P0900, "cannot read `%s`: %s", path, strerror(errno));
    return text;
}

/* Refuses a folder, or a file that is known to be too large, before reading */
static bool can_read(int file, const char *path, size_t *likely, Diags *diags) {
    struct stat about;
    if (fstat(file, &about) != 0) return true;
    if (S_ISDIR(about.st_mode)) {
        Diag *diag = diag_plain(diags, P0900, "`%s` is a folder", path);
        diag_help(diags, diag, "pass the files in it: `%s/*.pipe`", path);
        return false;
    }
    if (S_ISREG(about.st_mode) && about.st_size > (off_t)SOURCE_MAX_BYTES) {
        too_large(path, diags);
        return false;
    }
    if (S_ISREG(about.st_mode)) *likely = (size_t)about.st_size;
    return true;
}

const char *file_text(Arena *arena, const char *path, size_t *length, Diags *diags) {
    if (strcmp(path, "-") == 0) return read_all(arena, STDIN_FILENO, "<stdin>", 0, length, diags);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) {
        diag_plain(diags, P0900, "cannot open `%s`: %s", path, strerror(errno));
        return NULL;
    }
    size_t likely = 0;
    const char *text = can_read(file, path, &likely, diags)
                           ? read_all(arena, file, path, likely, length, diags)
                           : NULL;
    close(file);
    return text;
}
