/* hang-test [--gpu]: kernels that are made to hang, and the diagnostics.
 *
 * The PTX of an example, with the watchdog compiled in, loses one arrival or expects too many
 * bytes. The emulator must find the deadlock, and with a GPU the watchdog must end the kernel
 * after its limit of a second; both name the roles that wait, the end and pipe, and the line. A
 * kernel that trapped destroys its context: each GPU run is a separate process, and only the
 * child opens the device. */
#include "emulator/emulator.h"
#include "lib/private.h"
#include "reference/reference.h"
#include "runtime/runtime.h"
#include "tests/hang/wounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_GPU 77 /* exit code of the child that found none */

typedef struct Case {
    const char *what, *file;
    /* NAME=value: enough tiles for each block of a whole GPU to use its rings several times;
     * NULL: any */
    const char *size;
    const char *after; /* the change is searched for after this text */
    /* the text to replace, after `skip` other occurrences */
    const char *find;
    int skip;
    const char *with; /* NULL: removes the whole instruction */
    /* required texts of the emulator: which role waits for what, with the stage */
    const char *emulator[3];
    /* of the watchdog; none: the result on a GPU may differ */
    const char *gpu[3];
} Case;

static const Case cases[] = {
    {"a consumer never releases",
     "examples/axpy_pipes.pipe",
     "N=4000003",
     "---- role add",
     "mbarrier.arrive.shared::cta",
     1,
     NULL,
     {"role `load`", "waits for an empty stage of `loaded`, stage 0", "axpy_pipes.pipe:"},
     {"role `load`", "waits for an empty stage of `loaded`: stage 0", "axpy_pipes.pipe:"}},
    {"a producer never signals that a stage is full",
     "examples/axpy_pipes.pipe",
     "N=4000003",
     "---- role add",
     "mbarrier.arrive.shared::cta",
     0,
     NULL,
     {"role `store`", "waits for a full stage of `summed`, stage 0", "axpy_pipes.pipe:"},
     {"role `store`", "waits for a full stage of `summed`: stage 0", "axpy_pipes.pipe:"}},
    {"more bytes are expected than arrive",
     "examples/axpy_pipes.pipe",
     "N=4000003",
     "---- role load",
     ", 32768;",
     0,
     ", 65536;",
     {"role `add`", "waits for a full stage of `loaded`, stage 0", "axpy_pipes.pipe:"},
     {"role `add`", "waits for a full stage of `loaded`: stage 0", "axpy_pipes.pipe:"}},
    {"fewer bytes are expected than arrive",
     "examples/axpy_pipes.pipe",
     "N=4000003",
     "---- role load",
     ", 32768;",
     0,
     ", 16384;",
     {"`loaded`"},
     {NULL}},
    {"a token is never passed on",
     "examples/chain.pipe",
     NULL,
     "produce <written>",
     "mbarrier.arrive.shared::cta",
     0,
     NULL,
     {"role `mark`", "waits for a full stage of `written`, stage 0", "chain.pipe:"},
     {"role `mark`", "waits for a full stage of `written`: stage 0", "chain.pipe:"}},
    {"the source stage of a store is never released",
     "tests/run/bias-pipes.pipe",
     "M=12800",
     "---- role store",
     "mbarrier.arrive.shared::cta",
     -1,
     NULL,
     {"waits for an empty stage of", "stage 0", "bias-pipes.pipe:"},
     {"an empty stage of", "bias-pipes.pipe:"}},
    {"a release does not reach the other blocks of its cluster",
     "tests/run/cluster-vector.pipe",
     "N=40000",
     "---- role add",
     "mbarrier.arrive.shared::cluster",
     0,
     NULL,
     {"role `load`", "waits for an empty stage of `p`, stage 0", "cluster-vector.pipe:"},
     {"role `load`", "waits for an empty stage of `p`: stage 0", "cluster-vector.pipe:"}},
    {"blocks of a cluster do not load for each other",
     "tests/run/cluster-vector.pipe",
     "N=40000",
     "---- role load",
     "complete_tx::bytes.multicast::cluster",
     0,
     NULL,
     {"role `add`", "waits for a full stage of `p`, stage 0", "cluster-vector.pipe:"},
     {"role `add`", "waits for a full stage of `p`: stage 0", "cluster-vector.pipe:"}},
};

static int passed, failed, skipped;

static bool expect(bool fine, const Case *c, const char *on, const char *wanted, const char *text) {
    if (fine)
        passed++;
    else
        printf("%s, on %s: expected %s in\n%s\n", c->what, on, wanted, text), failed++;
    return fine;
}

/* ---- the change ------------------------------------------------------------------------------ */

/* The text with one place changed (skip -1: all places from there to the end of the role); NULL:
 * there is none. Line numbers do not change, because the manifest's marks refer to them. */
static const char *wounded(Arena *arena, const char *ptx, const Case *c) {
    char *text = arena_copy(arena, ptx, strlen(ptx)), *at = strstr(text, c->after);
    if (at == NULL) return NULL;
    for (int skip = c->skip; skip > 0 && at != NULL; skip--) at = strstr(at + 1, c->find);
    if (at != NULL) at = strstr(at + 1, c->find);
    if (at == NULL) return NULL;
    if (c->with != NULL) {
        Str out = str_new(arena);
        str_add_bytes(&out, text, (size_t)(at - text));
        str_add(&out, c->with);
        str_add(&out, at + strlen(c->find));
        return out.text;
    }
    char *end = strstr(at, "\n    ret;");
    for (; at != NULL && (end == NULL || at < end);
         at = c->skip < 0 ? strstr(at + 1, c->find) : NULL) {
        char *line = at;
        while (line > text && line[-1] != '\n') line--;
        for (; *line != '\n'; line++) *line = ' ';
    }
    return text;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static Launch *prepare(Arena *arena, const PipecProgram *program, const char *ptx, const Case *c,
                       Diags *diags) {
    LaunchOptions options = {.seed = 1, .watchdog_ns = 1000000000};
    Argument size, *all;
    size_t count;
    if (c->size != NULL && !argument_parse(arena, c->size, &size, diags)) return NULL;
    if (!reference_arguments(arena, program->prog, program->manifest, &size,
                             c->size != NULL ? 1 : 0, &all, &count, diags))
        return NULL;
    return launch_prepare(arena, program->manifest, ptx, strlen(ptx), all, count, &options, diags);
}

static const char *rendered(Arena *arena, const Diags *diags) {
    Str text = str_new(arena);
    str_add(&text, "");
    diags_render(diags, false, &text);
    return text.text;
}

static void on_emulator(Arena *arena, const PipecProgram *program, const char *ptx, const Case *c) {
    Diags *diags = diags_new(arena, program->source);
    Launch *launch = prepare(arena, program, ptx, c, diags);
    RunResult result = {0};
    EmulatorOptions options = {0};
    RunStatus status =
        launch == NULL ? RUN_UNAVAILABLE : emulator_run(arena, launch, &options, &result, diags);
    const char *text = rendered(arena, diags);
    expect(status == RUN_FINDING, c, "the emulator", "a finding", text);
    for (size_t i = 0; i < COUNT_OF(c->emulator) && c->emulator[i] != NULL; i++)
        expect(strstr(text, c->emulator[i]) != NULL, c, "the emulator", c->emulator[i], text);
    launch_free(launch);
}

/* The child: writes the finding to the pipe, and exits with the run's status. */
static void child_run(Arena *arena, const PipecProgram *program, const char *ptx, const Case *c,
                      int out) {
    Diags *diags = diags_new(arena, program->source);
    RuntimeLack lack;
    RuntimeOptions options = {0};
    RunResult result = {0};
    const char *why = "";
    Runtime *runtime = runtime_open(arena, -1, "sm_90a", 8, 0, &lack, &why);
    if (runtime == NULL) {
        bool told = write(out, why, strlen(why)) >= 0;
        _exit(told ? NO_GPU : 1);
    }
    Launch *launch = prepare(arena, program, ptx, c, diags);
    /* the limit for a kernel that its watchdog does not end */
    alarm(60);
    RunStatus status = launch == NULL
                           ? RUN_UNAVAILABLE
                           : runtime_run(arena, runtime, launch, &options, &result, diags);
    const char *text = rendered(arena, diags);
    bool told = write(out, text, strlen(text)) >= 0;
    _exit(told ? (int)status : 1);
}

/* False: there is no GPU. */
static bool on_gpu(Arena *arena, const PipecProgram *program, const char *ptx, const Case *c,
                   bool demanded) {
    int ends[2], status = 0;
    char buffer[16384];
    size_t length = 0;
    fflush(stdout);
    if (pipe(ends) != 0) return false;
    pid_t child = fork();
    if (child == 0) child_run(arena, program, ptx, c, ends[1]);
    close(ends[1]);
    for (ssize_t got; length < sizeof buffer - 1 &&
                      (got = read(ends[0], buffer + length, sizeof buffer - 1 - length)) > 0;)
        length += (size_t)got;
    buffer[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_GPU) {
        printf("gpu: %s, hangs are looked for on the emulator only: %s\n",
               demanded ? "FAILED" : "SKIPPED", buffer);
        *(demanded ? &failed : &skipped) += 1;
        return false;
    }
    expect(WIFEXITED(status) && WEXITSTATUS(status) == RUN_FINDING, c, "the GPU", "a finding",
           buffer);
    for (size_t i = 0; i < COUNT_OF(c->gpu) && c->gpu[i] != NULL; i++)
        expect(strstr(buffer, c->gpu[i]) != NULL, c, "the GPU", c->gpu[i], buffer);
    return true;
}

int main(int argc, char **argv) {
    bool demanded = argc > 1 && strcmp(argv[1], "--gpu") == 0, gpu = true;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const Case *c = &cases[i];
        Arena *arena = arena_new();
        PipecOptions options = {.size = sizeof options, .watchdog = true};
        PipecProgram *program = pipec_compile_file(c->file, &options);
        const char *ptx = program->ptx.text != NULL ? wounded(arena, program->ptx.text, c) : NULL;
        if (expect(ptx != NULL, c, "no machine", "the place to be changed", c->find)) {
            on_emulator(arena, program, ptx, c);
            if (gpu && c->gpu[0] != NULL) gpu = on_gpu(arena, program, ptx, c, demanded);
        }
        pipec_program_free(program);
        arena_free(arena);
    }
    passed += wounds_run(&failed);
    printf("%d passed, %d failed", passed, failed);
    if (skipped > 0) printf(", %d skipped", skipped);
    printf("\n");
    return failed > 0;
}
