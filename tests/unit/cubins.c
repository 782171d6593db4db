/* The cache of cubins, attacked: with a ptxas that is a script, and whose cubins end with the PTX
 * that they were made of, so that a wrong kernel is seen. Also, with the true ptxas where it is
 * found: the registers of a kernel at its entry are those that the manifest predicts. */
#define PIPEC_OWN_MEMORY
#include "lib/cubins.h"
#include "lib/private.h"
#include "lib/ptxas.h"

#include "tests/unit/cubin.h"
#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/pipec-cubins-XXXXXX";
static const char one[] = "// one\n.entry axpy()", two[] = "// two\n.entry axpy()";

/* ---- a cubin --------------------------------------------------------------------------------- */

/* Damaged in any byte, or cut off anywhere: a number or none, and no access beyond the end */
static void images(void) {
    Image image = image_of(168);
    EXPECT(cubin_registers(&image, sizeof image, "axpy") == 168);
    EXPECT(cubin_registers(&image, sizeof image, "axp") == -1);
    EXPECT(cubin_registers("", 0, "axpy") == -1);
    for (size_t length = 0; length < sizeof image; length++) {
        unsigned char *cut = memcpy(calloc(1, length + 1), &image, length);
        EXPECT(cubin_registers(cut, length, "axpy") == -1);
        free(cut);
    }
    for (size_t at = 0; at < sizeof image; at++)
        for (int change = 1; change < 256; change = change * 2 + 1) {
            unsigned char *copy = memcpy(malloc(sizeof image), &image, sizeof image);
            copy[at] ^= (unsigned char)change;
            EXPECT(cubin_registers(copy, sizeof image, "axpy") < 256);
            free(copy);
        }
}

/* ---- a ptxas --------------------------------------------------------------------------------- */

static void put(const char *name, const void *bytes, size_t length) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!EXPECT(out != NULL)) return;
    fwrite(bytes, 1, length, out);
    fclose(out);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

static void put_image(int registers) {
    Image image = image_of(registers);
    put("image", &image, sizeof image);
}

/* A ptxas of the version; `body` runs with `$out` and `$in` set. */
static void put_ptxas(const char *version, const char *body) {
    char text[2048];
    snprintf(
        text, sizeof text,
        "#!/bin/sh\ncd %s\n"
        "[ \"$1\" = --version ] && { echo version >>runs; echo 'tools, release 1, V%s'; exit; }\n"
        "echo run >>runs; out=$4 in=$5\n%s\n",
        folder, version, body);
    put_text("bin/ptxas", text);
    char path[256];
    snprintf(path, sizeof path, "%s/bin/ptxas", folder);
    chmod(path, 0755);
}

#define MAKES_IMAGE "cat image \"$in\" >\"$out\"; echo 'ptxas info    : Used 168 registers'"

/* Number of runs since the last call, those for the version included */
static int runs(void) {
    char path[256], line[64];
    int count = 0;
    snprintf(path, sizeof path, "%s/runs", folder);
    FILE *in = fopen(path, "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) count++;
    if (in != NULL) fclose(in);
    unlink(path);
    return count;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

static Manifest *manifest_with(Scratch *scratch, int registers) {
    Manifest *manifest = sample_manifest(scratch->arena);
    manifest->registers = registers;
    return manifest;
}

static bool ends_with(const Cubin *cubin, const char *ptx) {
    size_t length = strlen(ptx);
    return cubin->image != NULL && cubin->length == sizeof(Image) + length &&
           memcmp((const char *)cubin->image + sizeof(Image), ptx, length) == 0;
}

static Cubin look(Scratch *scratch, const char *ptx) {
    return cubin_of(scratch->arena, manifest_with(scratch, 168), ptx, strlen(ptx), scratch->diags);
}

/* The right cubin, by `by` */
static bool right(Scratch *scratch, const char *ptx, const char *by) {
    Cubin cubin = look(scratch, ptx);
    bool fine = ends_with(&cubin, ptx) && strncmp(cubin.by, by, strlen(by)) == 0;
    if (!fine)
        fprintf(stderr, "by %s, why %s\n", cubin.by != NULL ? cubin.by : "none",
                cubin.why != NULL ? cubin.why : "none");
    return fine;
}

static bool without(Scratch *scratch, const char *why) {
    Cubin cubin = look(scratch, one);
    bool fine = cubin.image == NULL && strstr(cubin.why, why) != NULL;
    if (!fine) fprintf(stderr, "%s, not %s\n", cubin.why != NULL ? cubin.why : "found", why);
    return fine;
}

/* The entries with cubins, to be freed by globfree */
static size_t entries(glob_t *files) {
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/cache/cubins/*", folder);
    glob(pattern, 0, NULL, files);
    return files->gl_pathc;
}

static void fresh(void) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s/cache", folder);
    EXPECT(system(command) == 0);
    put_image(168);
    put_ptxas("1.0", MAKES_IMAGE);
    runs();
}

static const char *file_of(Scratch *scratch, const char *ptx) {
    const char *by = look(scratch, ptx).by;
    EXPECT(by != NULL && strncmp(by, "ptxas, cached in ", 17) == 0);
    return by + 17;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void keeps(Scratch *scratch) {
    fresh();
    EXPECT(right(scratch, one, "ptxas, cached in /tmp/") && runs() == 2);
    EXPECT(right(scratch, one, "ptxas, cached in /tmp/") && runs() == 0);
    EXPECT(right(scratch, two, "ptxas, cached") && runs() == 1);
    EXPECT(right(scratch, two, "ptxas, cached") && right(scratch, one, "ptxas") && runs() == 0);
    Manifest *other = manifest_with(scratch, 168);
    other->target = "sm_90";
    Cubin cubin = cubin_of(scratch->arena, other, one, strlen(one), scratch->diags);
    EXPECT(ends_with(&cubin, one) && runs() == 1);
    cubin = cubin_cached(scratch->arena, other, "// three", 8);
    EXPECT(cubin.image == NULL && cubin.why == NULL && runs() == 0);
    put_ptxas("1.1", MAKES_IMAGE);
    EXPECT(right(scratch, one, "ptxas") && runs() == 2 && right(scratch, one, "ptxas"));
    EXPECT(runs() == 0);
    put_ptxas("1.0", MAKES_IMAGE); /* the first version again, another file: found */
    EXPECT(right(scratch, one, "ptxas") && runs() == 1);
    EXPECT_CLEAN(scratch);
}

static void versions_differ(Scratch *scratch) {
    fresh();
    put_ptxas("1.0", "cat image \"$in\" >\"$out\"");
    EXPECT(right(scratch, one, "ptxas"));
    /* the cubin of the other version is not that of the first */
    put_image(160);
    put_ptxas("2.0", MAKES_IMAGE);
    EXPECT(without(scratch, "starts with 160 registers instead of 168"));
    EXPECT_ERROR(scratch, P0921, "the driver loads the PTX instead");
    runs();
    EXPECT(without(scratch, "ignores setmaxnreg") && runs() == 0);
    EXPECT_ERROR(scratch, P0921, "is not used");
    Manifest *free = manifest_with(scratch, 0);
    Cubin cubin = cubin_of(scratch->arena, free, one, strlen(one), scratch->diags);
    EXPECT(ends_with(&cubin, one) && runs() == 0);
    EXPECT_CLEAN(scratch);
}

static void damage(const char *file, size_t at, bool cut) {
    if (cut) {
        EXPECT(truncate(file, (off_t)at) == 0);
        return;
    }
    int to = open(file, O_RDWR);
    char byte;
    EXPECT(pread(to, &byte, 1, (off_t)at) == 1);
    byte = (char)(byte ^ 0x10);
    EXPECT(pwrite(to, &byte, 1, (off_t)at) == 1);
    close(to);
}

/* An entry that is cut off or changed anywhere is replaced. */
static void damaged(Scratch *scratch) {
    struct stat about;
    fresh();
    const char *file = file_of(scratch, one);
    EXPECT(stat(file, &about) == 0);
    for (size_t at = 0; at < (size_t)about.st_size; at += 61)
        for (int cut = 0; cut < 2; cut++) {
            Scratch now = scratch_new();
            damage(file, at, cut);
            runs();
            EXPECT(right(&now, one, "ptxas, cached") && runs() == 1);
            EXPECT(right(&now, one, "ptxas, cached") && runs() == 0);
            scratch_free(&now);
        }
    put("cache/cubins/note.txt", "mine", 4);
    unlink(file);
    EXPECT(mkdir(file, 0700) == 0); /* something else has its name */
    EXPECT(right(scratch, one, "ptxas") && rmdir(file) == 0);
    EXPECT(symlink("/dev/zero", file) == 0 && right(scratch, one, "ptxas, cached"));
    EXPECT(access(arena_printf(scratch->arena, "%s/cache/cubins/note.txt", folder), F_OK) == 0);
    EXPECT_CLEAN(scratch);
}

/* An entry of another text under this name: as if their hashes were the same */
static void swapped(Scratch *scratch) {
    fresh();
    const char *first = file_of(scratch, one), *second = file_of(scratch, two),
               *aside = arena_printf(scratch->arena, "%s/aside", folder);
    EXPECT(rename(first, aside) == 0 && rename(second, first) == 0 && rename(aside, second) == 0);
    runs();
    EXPECT(right(scratch, one, "ptxas, cached") && runs() == 1);
    EXPECT(right(scratch, two, "ptxas, cached") && runs() == 1);
    EXPECT(right(scratch, one, "ptxas") && right(scratch, two, "ptxas") && runs() == 0);
    EXPECT_CLEAN(scratch);
}

static void faulty_ptxas(Scratch *scratch) {
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"echo 'ptxas fatal   : Unsupported .version 9.9' >&2; exit 255", "Unsupported .version"},
        {"cat image >\"$out\"; exit 1", "rejects the PTX"},
        {"kill -9 $$", "rejects the PTX"},
        {"true", "did not make a cubin"},
        {"echo code >\"$out\"", "did not make a cubin"},
        {"rm \"$out\"", "did not make a cubin"},
        {"head -c 300 image >\"$out\"", "did not make a cubin"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        glob_t files;
        fresh();
        put_ptxas("1.0", rows[i].body);
        EXPECT(without(scratch, rows[i].why) && runs() == 2);
        EXPECT(entries(&files) == 1); /* its version; no temporary file */
        globfree(&files);
    }
    put_text("bin/ptxas", "not a program");
    EXPECT(without(scratch, "cannot be run"));
    setenv("PIPEC_PTXAS", "", 1);
    EXPECT(without(scratch, "PIPEC_PTXAS is empty"));
    setenv("PIPEC_PTXAS", "/nonexistent", 1);
    EXPECT(without(scratch, "names no program"));
    unsetenv("PIPEC_PTXAS");
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    EXPECT(without(scratch, "CUDA_FORCE_PTX_JIT is 1"));
    unsetenv("CUDA_FORCE_PTX_JIT");
    EXPECT_CLEAN(scratch);
}

/* What ptxas says is reported each time, also when it does not run. */
static void reports(Scratch *scratch) {
    fresh();
    put_ptxas("1.0", "cat image \"$in\" >\"$out\"\n"
                     "echo '    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads'");
    for (int i = 0; i < 2; i++) {
        EXPECT(right(scratch, one, "ptxas"));
        EXPECT_ERROR(scratch, P0812, "8 bytes of spill stores");
    }
    EXPECT(runs() == 2);
}

/* The body runs in a child that may change its limits and its user. */
static void in_child(void (*body)(Scratch *scratch), Scratch *scratch) {
    int state;
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        body(scratch);
        _exit(failed_expectations > 0);
    }
    EXPECT(waitpid(child, &state, 0) == child && state == 0);
}

static void without_space(Scratch *scratch) {
    struct rlimit limit = {8, 8};
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    EXPECT(right(scratch, one, "ptxas, cached")); /* it was kept before */
    Cubin cubin = look(scratch, two);
    EXPECT(cubin.image == NULL && strstr(cubin.why, strerror(EFBIG)) != NULL);
}

static void as_other_user(Scratch *scratch) {
    if (geteuid() == 0) EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    EXPECT(right(scratch, one, "ptxas, cached")); /* it can be read */
    Cubin cubin = look(scratch, two);
    EXPECT(cubin.image == NULL && strstr(cubin.why, strerror(EACCES)) != NULL);
}

static void unwritable(Scratch *scratch) {
    fresh();
    EXPECT(right(scratch, one, "ptxas"));
    in_child(without_space, scratch);
    char command[512];
    snprintf(command, sizeof command,
             "chmod 755 %s %s/cache; chmod 644 %s/cache/cubins/*; "
             "chmod 555 %s/cache/cubins",
             folder, folder, folder, folder);
    EXPECT(system(command) == 0);
    in_child(as_other_user, scratch);
    snprintf(command, sizeof command, "chmod 755 %s/cache/cubins", folder);
    EXPECT(system(command) == 0);
    put_text("file", "");
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/file", folder), 1);
    EXPECT(without(scratch, strerror(ENOTDIR)));
    setenv("PIPEC_CACHE", "", 1);
    EXPECT(without(scratch, "PIPEC_CACHE is empty"));
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/cache", folder), 1);
    EXPECT_CLEAN(scratch);
}

/* ---- other users ----------------------------------------------------------------------------- */

static void shell(const char *format, ...) PRINTF_LIKE(1, 2);
static void shell(const char *format, ...) {
    char command[512];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    EXPECT(system(command) == 0);
}

/* The cubin is in the cache, but `change`, a command in the folder of the test, lets another user
 * write it: it is not used, ptxas does not run, and the reason has the path, owner and mode. */
static void not_trusted(Scratch *scratch, const char *change, const char *why) {
    fresh();
    const char *file = file_of(scratch, one);
    shell("cd %s; f=%s; %s", folder, file, change);
    runs();
    if (!EXPECT(without(scratch, why)) || !EXPECT(runs() == 0)) fprintf(stderr, "%s\n", change);
    Manifest *manifest = manifest_with(scratch, 168);
    Cubin cubin = cubin_cached(scratch->arena, manifest, one, strlen(one));
    EXPECT(cubin.image == NULL && strstr(cubin.why, why) != NULL);
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/cache", folder), 1);
    EXPECT_CLEAN(scratch);
}

static void written_by_others(Scratch *scratch) {
    static const char *const rows[][2] = {
        {"chmod 775 cache/cubins", "/cache/cubins can be written by other users (owner "},
        {"chmod 770 cache/cubins", "mode 0770)"},
        {"chmod 702 cache/cubins", "mode 0702)"},
        {"chmod 1777 cache/cubins", "/cache/cubins can be written by other users"},
        {"chmod 777 cache", "/cache can be written by other users"},
        {"chmod 777 .", "can be written by other users"},
        {"chmod 660 $f", ".entry can be written by other users"},
        {"chmod 602 $f", "mode 0602)"},
        {"mkdir open; mv cache/cubins open; chmod 777 open; ln -s ../open/cubins cache/cubins",
         "/open can be written by other users"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        not_trusted(scratch, rows[i][0], rows[i][1]);
        shell("cd %s; chmod 755 .; rm -rf open", folder);
    }
}

/* Needs root, to give files away */
static void owned_by_others(Scratch *scratch) {
    static const char *const rows[][2] = {
        {"chown 65534 $f", ".entry belongs to another user (owner 65534, mode 0600)"},
        {"chown 65534 cache/cubins", "/cache/cubins belongs to another user (owner 65534, "},
        {"chown 65534 cache", "/cache belongs to another user (owner 65534, mode 0700)"},
        {"chown 65534 .", "belongs to another user (owner 65534, mode 0755)"},
        {"mv cache/cubins real; ln -s ../real cache/cubins; chown -h 65534 cache/cubins",
         "/cache/cubins belongs to another user"}};
    if (geteuid() != 0) {
        printf("skip: only root can give files to another user\n");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        not_trusted(scratch, rows[i][0], rows[i][1]);
        shell("cd %s; chown 0 .; rm -rf real", folder);
    }
}

/* A folder that all can write, with the sticky bit, may be above the cache: others cannot replace
 * what is in it. They can be first, and make the cache's folder themselves. */
static void below_a_sticky_folder(Scratch *scratch) {
    fresh();
    shell("cd %s; mkdir -m 1777 all", folder);
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/all/cache", folder), 1);
    EXPECT(right(scratch, one, "ptxas, cached") && right(scratch, one, "ptxas, cached"));
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/all", folder), 1);
    EXPECT(right(scratch, one, "ptxas, cached") && right(scratch, one, "ptxas, cached"));
    if (geteuid() == 0) {
        shell("cd %s/all; chown -R 65534 cache cubins", folder);
        EXPECT(without(scratch, "/all/cubins belongs to another user"));
        setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/all/cache", folder), 1);
        EXPECT(without(scratch, "/all/cache belongs to another user"));
        shell("cd %s/all; rm -r cubins cache; ln -s ../cache cache; chown -h 65534 cache", folder);
        EXPECT(without(scratch, "/all/cache belongs to another user (owner 65534"));
    }
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/cache", folder), 1);
    shell("rm -r %s/all", folder);
    EXPECT_CLEAN(scratch);
}

/* Links of the user are followed: to a folder, above it, relative and absolute. */
static void through_links(Scratch *scratch) {
    static const char *const rows[][2] = {
        {"mkdir real; ln -s ../real cache/cubins", "cache"},
        {"mkdir real; ln -s $PWD/real/ link", "link"},
        {"mkdir real; ln -s real/../real/. link", "/link/./../link//"},
        {"mkdir -p real/b; ln -s b/c real/a; ln -s ../../far real/b/c; mkdir far", "real/a"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fresh();
        shell("cd %s; mkdir cache; %s", folder, rows[i][0]);
        setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/%s", folder, rows[i][1]), 1);
        EXPECT(right(scratch, one, "ptxas, cached") && right(scratch, one, "ptxas, cached"));
        shell("cd %s; rm -rf real link far", folder);
    }
    shell("cd %s; ln -s loop loop", folder);
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/loop", folder), 1);
    EXPECT(without(scratch, strerror(ELOOP)));
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/cache", folder), 1);
    EXPECT_CLEAN(scratch);
}

/* What is made has the modes 0700 and 0600 under each umask, and is used again. */
static void umasks(Scratch *scratch) {
    static const mode_t masks[] = {0, 002, 022, 077, 0277};
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        struct stat about;
        glob_t files;
        fresh();
        mode_t before = umask(masks[i]);
        EXPECT(right(scratch, one, "ptxas, cached") && right(scratch, one, "ptxas, cached"));
        umask(before);
        EXPECT(runs() == 2);
        EXPECT(stat(arena_printf(scratch->arena, "%s/cache", folder), &about) == 0);
        EXPECT((about.st_mode & 07777) == 0700);
        EXPECT(stat(arena_printf(scratch->arena, "%s/cache/cubins", folder), &about) == 0);
        EXPECT((about.st_mode & 07777) == 0700);
        EXPECT(entries(&files) == 2);
        for (size_t e = 0; e < files.gl_pathc; e++)
            EXPECT(stat(files.gl_pathv[e], &about) == 0 && (about.st_mode & 07777) == 0600);
        globfree(&files);
    }
    EXPECT_CLEAN(scratch);
}

/* Above the limit, the entry that was not used for longest leaves. */
static void limits(Scratch *scratch) {
    struct stat about;
    fresh();
    const char *file = file_of(scratch, one), *other = file_of(scratch, two);
    EXPECT(stat(file, &about) == 0);
    struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    EXPECT(utimensat(AT_FDCWD, other, past, 0) == 0);
    EXPECT(utimensat(AT_FDCWD, file, past, 0) == 0 && right(scratch, one, "ptxas, cached"));
    setenv("PIPEC_CACHE_MAXSIZE",
           arena_printf(scratch->arena, "%ld", (long)(2 * about.st_size + 600)), 1);
    EXPECT(right(scratch, "// new\n.entry axpy()", "ptxas, cached"));
    EXPECT(access(other, F_OK) != 0 && access(file, F_OK) == 0);
    setenv("PIPEC_CACHE_MAXSIZE", "100", 1);
    EXPECT(right(scratch, "// newer\n.entry axpy()", "ptxas")); /* too large to be kept */
    setenv("PIPEC_CACHE_MAXSIZE", "0", 1);
    EXPECT(without(scratch, "PIPEC_CACHE_MAXSIZE is 0"));
    static const char *const odd[] = {"", "x", "1T", "1KB", "-1", " 1", "99999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        setenv("PIPEC_CACHE_MAXSIZE", odd[i], 1);
        EXPECT(without(scratch, "is not a number of bytes"));
    }
    setenv("PIPEC_CACHE_MAXSIZE", "1G", 1);
    EXPECT(right(scratch, one, "ptxas, cached"));
    unsetenv("PIPEC_CACHE_MAXSIZE");
    EXPECT_CLEAN(scratch);
}

/* Processes that add, read, damage and evict at once: each sees only right cubins. */
static void crowd(Scratch *scratch) {
    enum { PROCESSES = 4, EACH = 12 };
    pid_t children[PROCESSES];
    fresh();
    setenv("PIPEC_CACHE_MAXSIZE", "8K", 1);
    for (int child = 0; child < PROCESSES; child++) {
        children[child] = fork();
        if (children[child] != 0) continue;
        for (int i = 0; i < EACH; i++) {
            const char *ptx = arena_printf(scratch->arena, "// %d\n.entry axpy()", (i + child) % 5);
            Cubin cubin = look(scratch, ptx);
            EXPECT(ends_with(&cubin, ptx));
            bool cached = strncmp(cubin.by, "ptxas, cached in ", 17) == 0;
            if (cached && i % 4 == child) (void)!truncate(cubin.by + 17, 100 + i);
        }
        _exit(failed_expectations > 0);
    }
    for (int child = 0; child < PROCESSES; child++) {
        int state;
        EXPECT(waitpid(children[child], &state, 0) == children[child] && state == 0);
    }
    unsetenv("PIPEC_CACHE_MAXSIZE");
}

static void lists(Scratch *scratch) {
    Store store;
    CubinEntry entry;
    size_t removed, cubins = 0;
    uint64_t bytes;
    const char *why;
    fresh();
    EXPECT(right(scratch, one, "ptxas") && right(scratch, two, "ptxas"));
    EXPECT(store_open(scratch->arena, &store, &why));
    StoreEntries all = store_list(scratch->arena, &store);
    for (size_t i = 0; i < all.count; i++)
        if (cubin_entry(scratch->arena, &all.items[i], &entry)) {
            cubins++;
            EXPECT(strcmp(entry.kernel, "axpy") == 0 && strcmp(entry.version, "1.0") == 0);
        }
    EXPECT(all.count == 3 && cubins == 2);
    EXPECT(store_clear(scratch->arena, &store, &removed, &bytes) == 0 && removed == 3);
    EXPECT(store_list(scratch->arena, &store).count == 0);
    EXPECT(store_clear(scratch->arena, &store, &removed, &bytes) == 0 && removed == 0);
    EXPECT_CLEAN(scratch);
}

/* With the ptxas of the machine: the prediction holds, and its cubins are read. */
static void predicted(Scratch *scratch, const char *file) {
    PipecProgram *program = pipec_compile_file(file, NULL);
    const Manifest *manifest = program->manifest;
    Cubin cubin =
        cubin_of(scratch->arena, manifest, program->ptx.text, program->ptx.length, scratch->diags);
    int registers =
        cubin.image != NULL ? cubin_registers(cubin.image, cubin.length, manifest->kernel) : -1;
    bool uses = strstr(program->ptx.text, "setmaxnreg") != NULL;
    if (!EXPECT(registers > 0 && uses == (manifest->registers > 0)) || !EXPECT_CLEAN(scratch))
        fprintf(stderr, "%s: %d, predicted %d: %s\n", file, registers, manifest->registers,
                cubin.why != NULL ? cubin.why : "");
    pipec_program_free(program);
}

static void with_true_ptxas(Scratch *scratch, const char *path) {
    static const char *const files[] = {"axpy", "gemm", "softmax", "gemm_small_m"};
    if (path == NULL) {
        printf("skip: there is no ptxas\n");
        return;
    }
    fresh();
    setenv("PIPEC_PTXAS", path, 1);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        predicted(scratch, arena_printf(scratch->arena, "examples/%s.pipe", files[i]));
    unsetenv("PIPEC_PTXAS");
}

int main(void) {
    Scratch scratch = scratch_new();
    const char *why, *path = ptxas_find(scratch.arena, &why);
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    EXPECT(mkdir(arena_printf(scratch.arena, "%s/bin", folder), 0755) == 0);
    setenv("PATH", arena_printf(scratch.arena, "%s/bin:%s", folder, getenv("PATH")), 1);
    setenv("PIPEC_CACHE", arena_printf(scratch.arena, "%s/cache", folder), 1);
    images();
    keeps(&scratch);
    versions_differ(&scratch);
    damaged(&scratch);
    swapped(&scratch);
    faulty_ptxas(&scratch);
    reports(&scratch);
    unwritable(&scratch);
    written_by_others(&scratch);
    owned_by_others(&scratch);
    below_a_sticky_folder(&scratch);
    through_links(&scratch);
    umasks(&scratch);
    limits(&scratch);
    crowd(&scratch);
    lists(&scratch);
    with_true_ptxas(&scratch, path);
    if (system(arena_printf(scratch.arena, "rm -r %s", folder)) != 0) perror(folder);
    scratch_free(&scratch);
    return expect_failures();
}
