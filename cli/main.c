/* cli: the commands, one row each. Exit codes: 0 right, 1 refused or wrong, 2 usage, file, data
 * or machine, 3 a bug in pipec, 4 incomplete. */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

#define DENY                                                                                       \
    "  -D WHAT              make an error of what is none: a code, or `incomplete`,\n"             \
    "                       `warnings` or `notes`; may stand several times\n"
#define FORMAT "  --format=text|json   how diagnostics are printed on standard error\n"
#define RESULTS                                                                                    \
    "  --format=text|json   json: diagnostics on standard error and results on standard\n"         \
    "                       output, an object a line\n"
#define FILLS                                                                                      \
    "  --fill NAME=HOW      what goes into a tensor: normal (the default), uniform, iota,\n"       \
    "                       zeros or a number\n"                                                   \
    "  --seed N             of random fills and samples, default 1\n"
#define DEVICE                                                                                     \
    "  --device N           which GPU, counted from 0; default: the first that can run it\n"

static const Command commands[] = {
    {"check", command_check,
     "check FILE... [NAME=VALUE ..] [-D WHAT] [--name FILE] [--format=text|json|sarif]\n"
     "             [--times]",
     "say what is wrong with programs",
     "Checks every kernel of the files with every combination of the sets of its statics, and\n"
     "refuses all that `pipec build` would refuse; `-` is standard input. Nothing is printed\n"
     "when all is right. NAME=VALUE sets a `static`, and the others still vary. A combination\n"
     "that only does not fit the machine is counted in a note.\n"
     "\n" DENY "  --name FILE          what messages call standard input\n"
     "  --format=FORMAT      text on standard error; json on standard output, one line a\n"
     "                       file; or sarif on standard output, one SARIF 2.1.0 log of all\n"
     "  --times              print on standard error what each part of the check took: how\n"
     "                       often it ran, time of the processor, steps of the meter\n"},
    {"build", command_build,
     "build FILE [KERNEL] [NAME=VALUE ..] [-o OUT.ptx|OUT.cubin|-] [--emit=WHAT] [--report]\n"
     "                   [--watchdog] [-D WHAT] [--format=text|json]",
     "compile a kernel to PTX",
     "Writes STEM.ptx and its manifest STEM.json into the current folder. NAME=VALUE sets a\n"
     "`static`.\n"
     "\n"
     "  -o OUT               OUT.ptx, or OUT.cubin where ptxas is found; the manifest stands\n"
     "                       beside it as OUT.json. `-` prints the PTX, and a device such as\n"
     "                       /dev/null gets the PTX alone\n"
     "  --emit=WHAT          print one step of the compilation instead: tokens, ast, prog, ..\n"
     "                       ptx; `list` lists them\n"
     "  --report             print what was derived: barriers, counts, bytes, layouts,\n"
     "                       registers, shared memory\n"
     "  --watchdog           compile the watchdog of the waits in\n" DENY FORMAT},
    {"run", command_run,
     "run FILE [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..] [--save NAME=FILE.npy]\n"
     "                 [--fill NAME=HOW] [--seed N] [--on gpu|emulator|both] [--schedules N]\n"
     "                 [--schedule SEED] [--device N] [--bench] [--untuned]\n"
     "                 [--watchdog SECONDS] [-D WHAT] [--format=text|json]",
     "run a kernel and compare the result with its `ensures`",
     "Values are for statics, extents and scalars, .npy files for tensors; what is missing comes\n"
     "from `example`. Without --on the kernel runs on the GPU where there is one that can run\n"
     "it, else on the emulator.\n"
     "\n"
     "  --save NAME=FILE.npy write a tensor after the run; may stand several times\n" FILLS
     "  --on WHERE           gpu, emulator, or both, which must agree\n"
     "  --schedules N        run on N schedules of the emulator, which must have no finding\n"
     "                       and the same result\n"
     "  --schedule SEED      the first of them; default 0, the plain one\n" DEVICE
     "  --bench              time 20 launches on the GPU and print the median; leaves the\n"
     "                       watchdog out\n"
     "  --untuned            leave statics as the file has them, whatever `pipec tune` has\n"
     "                       chosen for these extents\n"
     "  --watchdog SECONDS   patience of a wait, default 10; 0 leaves the watchdog out\n" DENY
         RESULTS},
    {"tune", command_tune,
     "tune FILE [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..] [--fill NAME=HOW] [--seed N]\n"
     "                  [--device N] [--rounds N] [--forget] [--format=text|json]",
     "find the fastest values of statics that have sets",
     "Compiles every combination of the choices of `static NAME = VALUE in {..}`, runs those\n"
     "that fit on the GPU, compares their results with `ensures`, times the right ones in turn\n"
     "and prints a table. The fastest is kept, and `pipec run` takes it for extents of the same\n"
     "class on the same device. Statics that are given stay as they are; values, files and\n"
     "fills are as for `pipec run`.\n"
     "\n" FILLS DEVICE "  --rounds N           each of them is timed once a round, default 7\n"
     "  --forget             do not keep the choice\n" RESULTS},
    {"explain", command_explain, "explain [CODE..]", "explain an error code",
     "Prints the page of each code: a wrong program, why it is wrong, the right one. Without a\n"
     "code: all codes.\n"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int help(FILE *to) {
    fprintf(to, "pipec %s: a language for warp-specialised GPU kernels, compiled to PTX\n\n",
            pipec_version());
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  pipec %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n`pipec COMMAND --help` says more. `pipec --version` prints the version.\n");
    return to == stderr ? PIPEC_UNUSABLE : PIPEC_FINE;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int unknown(const char *word) {
    say_error("`%s` is no command of pipec", word);
    if (ends_with(word, ".pipe")) {
        say_help("`pipec run %s` runs it, `pipec check %s` only checks it", word, word);
        return PIPEC_UNUSABLE;
    }
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    const char *near = pipec_near(word, names, COMMANDS);
    if (near != NULL)
        say_help("did you mean `%s`? `pipec --help` lists the commands", near);
    else
        say_help("`pipec --help` lists the commands");
    return PIPEC_UNUSABLE;
}

int main(int argc, char **argv) {
    output_begin();
    /* a closed reader makes a write fail, with an exit code */
    signal(SIGPIPE, SIG_IGN);
    /* so does a file that reaches a limit: the partial file is removed */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) return help(stderr);
    const char *word = argv[1];
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0)
            return output_end(commands[i].run(&commands[i], argc - 2, argv + 2));
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return output_end(help(stdout));
    if (strcmp(word, "--version") == 0) {
        printf("pipec %s\n", pipec_version());
        return output_end(PIPEC_FINE);
    }
    return unknown(word);
}
