/* cli: the commands, one row each. argv goes in, an exit code comes out: 0 right, 1 refused or wrong, 2 usage, file,
 * data or machine, 3 a mistake in pipec, 4 incomplete. */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

static const Command commands[] = {
    {"check", command_check, "check FILE... [-D WHAT] [--name FILE] [--format=text|json|sarif]",
     "say what is wrong with programs",
     "Checks every kernel of the files; `-` is standard input. Nothing is printed when all is right.\n"
     "\n"
     "  -D WHAT              make an error of what is none: its code, or `incomplete`, `warnings` or `notes`; may stand several times\n"
     "  --name FILE          what messages call standard input\n"
     "  --format=FORMAT      text on standard error; json on standard output, one line a file; or sarif on standard output,\n"
     "                       one SARIF 2.1.0 log of all files\n"},
    {"build", command_build,
     "build FILE [KERNEL] [NAME=VALUE ..] [-o OUT.ptx|OUT.cubin|-] [--emit=WHAT] [--report] [--watchdog] "
     "[-D WHAT] [--format=text|json]",
     "compile a kernel to PTX",
     "Writes STEM.ptx and its manifest STEM.json into the current folder. NAME=VALUE sets a `static`.\n"
     "\n"
     "  -o OUT               OUT.ptx, or OUT.cubin where ptxas is found; the manifest stands beside it as OUT.json.\n"
     "                       `-` prints the PTX\n"
     "  --emit=WHAT          print one step of the compilation instead: tokens, ast, prog, manifest or ptx\n"
     "  --report             print what was derived: barriers, counts, bytes, layouts, registers, shared memory\n"
     "  --watchdog           compile the watchdog of the waits in\n"
     "  -D WHAT              make an error of what is none: its code, or `incomplete`, `warnings` or `notes`; may stand several times\n"
     "  --format=text|json   how diagnostics are printed on standard error\n"},
    {"run", command_run,
     "run FILE [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..] [--save NAME=FILE.npy] [--fill NAME=HOW] [--seed N] "
     "[--on gpu|emulator|both] [--schedules N] [--schedule SEED] [--device N] [--bench] [--untuned] [--watchdog SECONDS] "
     "[-D WHAT] [--format=text|json]",
     "run a kernel and compare the result with its `ensures`",
     "Values are for statics, extents and scalars, .npy files for tensors; what is missing comes from `example`.\n"
     "Without --on the kernel runs on the GPU where there is one that can run it, else on the emulator.\n"
     "\n"
     "  --save NAME=FILE.npy write a tensor after the run; may stand several times\n"
     "  --fill NAME=HOW      what goes into a tensor: normal (the default), uniform, iota, zeros or a number\n"
     "  --seed N             of random fills and samples, default 1\n"
     "  --on WHERE           gpu, emulator, or both, which must agree\n"
     "  --schedules N        run on N schedules of the emulator, which must have no finding and the same result\n"
     "  --schedule SEED      the first of them; default 0, the plain one\n"
     "  --device N           which GPU, counted from 0; default: the first that can run the kernel\n"
     "  --bench              time 20 launches on the GPU and print the median; leaves the watchdog out\n"
     "  --untuned            leave statics as the file has them, whatever `pipec tune` has chosen for these extents\n"
     "  --watchdog SECONDS   patience of a wait, default 10; 0 leaves the watchdog out\n"
     "  -D WHAT              make an error of what is none: its code, or `incomplete`, `warnings` or `notes`; may stand several times\n"
     "  --format=text|json   how diagnostics are printed on standard error\n"},
    {"tune", command_tune,
     "tune FILE [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..] [--fill NAME=HOW] [--seed N] [--device N] [--rounds N] "
     "[--forget] [--format=text|json]",
     "find the fastest values of statics that have sets",
     "Compiles every combination of the choices of `static NAME = VALUE in {..}`, runs those that fit on the GPU, compares\n"
     "their results with `ensures`, times the right ones in turn and prints a table. The fastest is kept, and `pipec run`\n"
     "takes it for extents of the same class on the same device. Statics that are given stay as they are; values, files and\n"
     "fills are as for `pipec run`.\n"
     "\n"
     "  --fill NAME=HOW      what goes into a tensor: normal (the default), uniform, iota, zeros or a number\n"
     "  --seed N             of random fills and samples, default 1\n"
     "  --device N           which GPU, counted from 0; default: the first that can run the kernel\n"
     "  --rounds N           each of them is timed once a round, default 7\n"
     "  --forget             do not keep the choice\n"
     "  --format=text|json   how diagnostics are printed on standard error\n"},
    {"explain", command_explain, "explain [CODE..]", "explain an error code",
     "Prints the page of each code: a wrong program, why it is wrong, the right one. Without a code: all codes.\n"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int help(FILE *to) {
    fprintf(to, "pipec %s: a language for warp-specialised GPU kernels, compiled to PTX\n\n", pipec_version());
    for (size_t i = 0; i < COMMANDS; i++) fprintf(to, "  pipec %-8s %s\n", commands[i].name, commands[i].summary);
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
    fprintf(stderr, "\n");
    return help(stderr);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone away is a failed write, with an exit code */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that would grow beyond a limit: what was begun is removed */
    if (argc < 2) return help(stderr);
    const char *word = argv[1];
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0) return output_end(commands[i].run(&commands[i], argc - 2, argv + 2));
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return output_end(help(stdout));
    if (strcmp(word, "--version") == 0) {
        printf("pipec %s\n", pipec_version());
        return output_end(PIPEC_FINE);
    }
    return unknown(word);
}
