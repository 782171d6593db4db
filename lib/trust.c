/* lib: who can change a file. A path is followed from the root, one name at a time, each opened
 * without following links and checked before the next: another user can then neither replace a
 * folder that was checked, nor redirect the rest of the path.
 *
 * In a sticky folder others may add names, but neither remove nor rename those of the user; what
 * they added fails by its owner. Write permission by an ACL shows in the bits of the group. */
#include "lib/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MOST     40 /* as the kernel */
#define WRITE_BY_OTHER (S_IWGRP | S_IWOTH)

const char *trust_fault(Arena *arena, const char *path, const struct stat *about) {
    bool other = about->st_uid != geteuid() && about->st_uid != 0;
    /* the mode of a link means nothing */
    bool open = !S_ISLNK(about->st_mode) && (about->st_mode & WRITE_BY_OTHER) != 0;
    if (!other && !open) return NULL;
    return arena_printf(arena, "%s %s (owner %lu, mode %04o)", path,
                        other ? "belongs to another user" : "can be written by other users",
                        (unsigned long)about->st_uid, (unsigned)about->st_mode & 07777);
}

typedef struct Walk {
    Arena *arena;
    int at; /* the folder that was reached; -1: none */
    bool make;
    const char *path; /* of `at`, without links; "" is the root */
    const char *rest; /* to be followed from there */
    int links;
    struct stat about; /* of the name that was opened last */
    const char *fault;
} Walk;

static int move(Walk *walk, int to, const char *path) {
    if (walk->at >= 0) close(walk->at);
    walk->at = to;
    walk->path = path;
    return 0;
}

/* A folder on the way: others may add names to a sticky one. */
static bool is_fine(Walk *walk, const char *path) {
    struct stat about = walk->about;
    if (S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX) != 0)
        about.st_mode &= ~(mode_t)WRITE_BY_OTHER;
    if (trust_fault(walk->arena, path, &about) == NULL) return true;
    walk->fault = trust_fault(walk->arena, path, &walk->about);
    return false;
}

static int open_root(Walk *walk) {
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &walk->about) != 0) return errno;
    move(walk, root, "");
    return is_fine(walk, "/") ? 0 : EPERM;
}

/* Continues at the target of the open link. */
static int follow(Walk *walk, int link) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(link, "", target, sizeof target - 1);
    if (length <= 0) return length < 0 ? errno : ENOENT;
    if (++walk->links > LINKS_MOST) return ELOOP;
    target[length] = 0;
    walk->rest = arena_printf(walk->arena, "%s/%s", target, walk->rest);
    return target[0] == '/' ? open_root(walk) : 0;
}

/* Opens a name in the folder that was reached, a link itself too; makes the folder if need be. */
static int open_name(const Walk *walk, const char *name) {
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, found = openat(walk->at, name, flags);
    if (found >= 0 || errno != ENOENT || !walk->make) return found;
    bool made = mkdirat(walk->at, name, S_IRWXU) == 0;
    if (!made && errno != EEXIST) return -1;
    if (made && fchmodat(walk->at, name, S_IRWXU, 0) != 0) return -1; /* the umask took bits */
    return openat(walk->at, name, flags);
}

static int enter(Walk *walk, const char *name) {
    const char *path = arena_printf(walk->arena, "%s/%s", walk->path, name);
    int found = open_name(walk, name), error = 0;
    if (found < 0 || fstat(found, &walk->about) != 0)
        error = errno;
    else if (!is_fine(walk, path))
        error = EPERM;
    else if (S_ISLNK(walk->about.st_mode))
        error = follow(walk, found);
    else if (!S_ISDIR(walk->about.st_mode))
        error = ENOTDIR;
    else
        return move(walk, found, path);
    if (found >= 0) close(found);
    return error;
}

static int follow_all(Walk *walk) {
    int error = open_root(walk);
    while (error == 0 && *(walk->rest += strspn(walk->rest, "/")) != 0) {
        size_t length = strcspn(walk->rest, "/");
        const char *name = arena_copy(walk->arena, walk->rest, length);
        walk->rest += length;
        if (strcmp(name, ".") != 0) error = enter(walk, name);
    }
    if (error != 0) return error;
    if (fstat(walk->at, &walk->about) != 0) return errno;
    walk->fault = trust_fault(walk->arena, walk->path, &walk->about); /* no sticky one either */
    return walk->fault == NULL ? 0 : EPERM;
}

int trust_open_folder(Arena *arena, const char *path, bool make, const char **fault) {
    char here[PATH_MAX] = "";
    Walk walk = {.arena = arena, .at = -1, .make = make};
    int error = path[0] != '/' && getcwd(here, sizeof here) == NULL ? errno : 0;
    walk.rest = path[0] == '/' ? path : arena_printf(arena, "%s/%s", here, path);
    if (error == 0) error = follow_all(&walk);
    *fault = walk.fault;
    if (error == 0) return walk.at;
    if (walk.at >= 0) close(walk.at);
    errno = error;
    return -1;
}
