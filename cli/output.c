/* cli: output to the terminal, and files that are written under a temporary name and renamed. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_terminal(void) { return isatty(STDERR_FILENO) == 1; }

bool output_colours(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return (no == NULL || no[0] == 0) && term != NULL && strcmp(term, "dumb") != 0 &&
           output_terminal();
}

static void say(const char *word, const char *colour, const char *format, va_list args) {
    bool colours = output_colours();
    fprintf(stderr, "%s%s%s: ", colours ? colour : "", word, colours ? "\033[0m" : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void say_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("error", "\033[1;31m", format, args);
    va_end(args);
}

void say_help(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("help", "\033[1m", format, args);
    va_end(args);
}

int usage_error(const Command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("error", "\033[1;31m", format, args);
    va_end(args);
    say_help("`pipec %s --help` lists its arguments", command->name);
    return PIPEC_UNUSABLE;
}

int out_of_memory(void) {
    say_error("not enough memory");
    return PIPEC_UNUSABLE;
}

void say_diagnostics(const PipecDiagnostics *diagnostics, Format format) {
    if (format == FORMAT_JSON)
        fputs(pipec_diagnostics_json(diagnostics), stderr);
    else
        fputs(output_colours() ? pipec_diagnostics_coloured(diagnostics)
                               : pipec_diagnostics_text(diagnostics),
              stderr);
}

int output_sarif(PipecSarif *sarif, int status) {
    const char *text = pipec_sarif_text(sarif);
    if (text == NULL) return (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
    fputs(text, stdout);
    return status;
}

/* Opened in the opposite direction, so that reading and writing still fail. */
void output_begin(void) {
    for (int handle = STDIN_FILENO; handle <= STDERR_FILENO; handle++)
        if (fcntl(handle, F_GETFD) < 0 &&
            open("/dev/null", handle == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

static bool is_closed(void) {
    int mode = fcntl(STDOUT_FILENO, F_GETFL);
    return mode < 0 || (mode & O_ACCMODE) == O_RDONLY;
}

int output_end(int status) {
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) != 0) failed = true;
    if (!failed) return status;
    /* The number of an earlier error is lost. A pipe without a reader is not reported: the
     * reader ended early. */
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    bool no_reader = errno == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0);
    if (!no_reader)
        say_error("cannot write standard output: %s",
                  is_closed()  ? "it is closed"
                  : errno != 0 ? strerror(errno)
                               : "no space is left, or the device fails");
    return (int)pipec_worse((PipecStatus)status, PIPEC_UNUSABLE);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool look_up(const char *path, struct stat *found) {
    return (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, found) : stat(path, found)) == 0;
}

bool is_device(const char *path) {
    struct stat found;
    return look_up(path, &found) && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* Finds the folder that holds the file; *name: the last component. */
static bool look_up_folder(const char *path, struct stat *found, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash != NULL ? slash + 1 : path;
    if (slash == NULL) return stat(".", found) == 0;
    char *folder = strndup(path, (size_t)(slash - path) + 1);
    bool there = folder != NULL && stat(folder, found) == 0;
    free(folder);
    return there;
}

bool same_file(const char *a, const char *b) {
    struct stat x, y;
    const char *x_name, *y_name;
    bool x_there = look_up(a, &x), y_there = look_up(b, &y);
    if (x_there != y_there || (x_there && !S_ISREG(x.st_mode))) return false;
    if (x_there) return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    return look_up_folder(a, &x, &x_name) && look_up_folder(b, &y, &y_name) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino && strcmp(x_name, y_name) == 0;
}

static bool cannot_write(OutputFile *file, int why) {
    say_error("cannot write `%s`: %s", file->path, strerror(why));
    output_file_discard(file);
    return false;
}

bool output_file_write(OutputFile *file, const char *path, const char *text, size_t length) {
    static const char ending[] = ".XXXXXX";
    *file = (OutputFile){path, malloc(strlen(path) + sizeof ending)};
    if (file->temporary == NULL) return out_of_memory(), false;
    memcpy(file->temporary, path, strlen(path));
    memcpy(file->temporary + strlen(path), ending, sizeof ending);
    int handle = mkstemp(file->temporary);
    if (handle < 0) {
        int why = errno;
        free(file->temporary);
        file->temporary = NULL;
        return cannot_write(file, why);
    }
    mode_t mask = umask(0); /* mkstemp makes files that only their owner can read */
    umask(mask);
    fchmod(handle, 0666 & ~mask);
    FILE *stream = fdopen(handle, "w");
    if (stream == NULL) {
        close(handle);
        return cannot_write(file, ENOMEM);
    }
    errno = 0;
    bool fine = fwrite(text, 1, length, stream) == length;
    int why = errno;
    if (fclose(stream) != 0) fine = false, why = errno;
    return fine || cannot_write(file, why);
}

bool output_file_commit(OutputFile *file) {
    if (rename(file->temporary, file->path) != 0) return cannot_write(file, errno);
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

void output_file_discard(OutputFile *file) {
    if (file->temporary == NULL) return;
    unlink(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
}
