/* lib: runs ptxas. A process with its outputs in a pipe; nothing of the caller's process is left
 * in it except its environment and its standard streams. */
#include "lib/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 65536 /* most bytes of its output that are kept */

extern char **environ;

/* ---- where ----------------------------------------------------------------------------------- */

static bool can_run(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* `ptxas` in the folder; NULL: it is not there, or the folder is relative */
static const char *in_folder(Arena *arena, const char *folder, size_t length) {
    if (length == 0 || folder[0] != '/') return NULL;
    const char *path = arena_printf(arena, "%.*s/ptxas", (int)length, folder);
    return can_run(path) ? path : NULL;
}

const char *ptxas_find(Arena *arena, const char **why) {
    const char *own = getenv("PIPEC_PTXAS"), *home = getenv("CUDA_HOME"), *found = NULL;
    *why = "ptxas is neither on PATH nor in $CUDA_HOME/bin or /usr/local/cuda/bin";
    if (own != NULL) {
        *why = own[0] == 0 ? "PIPEC_PTXAS is empty" : "PIPEC_PTXAS names no program";
        return own[0] != 0 && can_run(own) ? arena_copy(arena, own, strlen(own)) : NULL;
    }
    const char *folder = getenv("PATH");
    for (; found == NULL && folder != NULL && *folder != 0; folder += *folder == ':') {
        size_t length = strcspn(folder, ":");
        found = in_folder(arena, folder, length);
        folder += length;
    }
    if (found == NULL && home != NULL && home[0] != 0) {
        const char *bin = arena_printf(arena, "%s/bin", home);
        found = in_folder(arena, bin, strlen(bin));
    }
    if (found != NULL) return found;
    static const char usual[] = "/usr/local/cuda/bin";
    return in_folder(arena, usual, sizeof usual - 1);
}

const char *ptxas_identity(Arena *arena, const char *path) {
    struct stat about;
    if (stat(path, &about) != 0) return path;
    return arena_printf(arena, "%s %lld %lld.%09ld %lld.%09ld %llu", path, (long long)about.st_size,
                        (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec,
                        (long long)about.st_ctim.tv_sec, about.st_ctim.tv_nsec,
                        (unsigned long long)about.st_ino);
}

/* ---- one run --------------------------------------------------------------------------------- */

static const char *read_words(Arena *arena, int from) {
    char *words = arena_alloc(arena, WORDS_MAX), spill[4096] = {0};
    size_t used = 0;
    for (;;) {
        bool room = used < WORDS_MAX - 1;
        ssize_t got =
            read(from, room ? words + used : spill, room ? WORDS_MAX - 1 - used : sizeof spill);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (room) used += (size_t)got;
    }
    arena_trim(arena, words, WORDS_MAX, used + 1);
    return words;
}

/* Starts it with no input and both outputs in a pipe. Returns 0 or an error number. */
static int start(const char *path, char *const *words, pid_t *process, int *output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    int failed = posix_spawn(process, path, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *output = ends[0];
    if (failed != 0) close(ends[0]);
    return failed;
}

static PtxasRun run(Arena *arena, const char *path, char *const *words) {
    PtxasRun out = {.words = ""};
    pid_t process, ended;
    int output = -1, state = 0;
    out.error = start(path, words, &process, &output);
    if (out.error != 0) return out;
    out.words = read_words(arena, output);
    close(output);
    do ended = waitpid(process, &state, 0);
    while (ended < 0 && errno == EINTR);
    /* a caller that ignores SIGCHLD leaves its end unknown: then it counts as a failure */
    out.fine = ended == process && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    bool missing = ended == process && WIFEXITED(state) && WEXITSTATUS(state) == 127;
    if (missing && out.words[0] == 0) out.error = ENOENT;
    return out;
}

PtxasRun ptxas_run(Arena *arena, const char *path, const char *target, const char *ptx,
                   const char *cubin) {
    const char *words[] = {
        "ptxas", arena_printf(arena, "-arch=%s", target), PTXAS_OPTIONS, "-o", cubin, ptx, NULL};
    return run(arena, path, (char *const *)words);
}

const char *ptxas_version(Arena *arena, const char *path) {
    const char *words[] = {"ptxas", "--version", NULL};
    PtxasRun out = run(arena, path, (char *const *)words);
    return out.error == 0 && out.fine && out.words[0] != 0 ? out.words : NULL;
}

const char *ptxas_version_number(Arena *arena, const char *version) {
    /* "Cuda compilation tools, release 13.0, V13.0.88" */
    const char *at = strstr(version, ", V");
    size_t length = at != NULL ? strspn(at + 3, "0123456789.") : 0;
    if (length > 0) return arena_copy(arena, at + 3, length);
    return arena_copy(arena, version, strcspn(version, "\n"));
}
