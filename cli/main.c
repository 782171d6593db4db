/* cli: the commands, one row each. Exit codes: 0 right, 1 refused or wrong, 2 usage, file, data
 * or machine, 3 a bug in pipec, 4 incomplete. */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

#define DENY                                                                                       \
    "  -D WHAT              report WHAT as an error: a code, or `incomplete`, `warnings`\n"        \
    "                       or `notes`; may be given several times\n"
#define ACCEPT                                                                                     \
    "  --accept WHAT        use the kernel without the proof that WHAT lacks, which becomes a\n"   \
    "                       warning: a code such as P0237, or `incomplete`\n"
#define FORMAT "  --format=text|json   format of diagnostics on standard error\n"
#define RESULTS                                                                                    \
    "  --format=text|json   json: diagnostics on standard error and results on standard\n"         \
    "                       output, one object per line\n"
#define FILLS                                                                                      \
    "  --fill NAME=HOW      values of a tensor: normal (the default), uniform, iota,\n"            \
    "                       zeros or a number\n"                                                   \
    "  --seed N             seed of random fills and samples, default 1\n"
#define TARGET                                                                                     \
    "  --target NAME        compile for this target, such as sm_100a, in the place of those of\n"  \
    "                       the kernel; of variants those that name it\n"
#define FOLDER "  --folder DIR         of standard input: what its includes are relative to\n"
#define DEVICE                                                                                     \
    "  --device N           number of the GPU, from 0; default: the first that can run it\n"

static const Command commands[] = {
    {"check", command_check,
     "check FILE[:VARIANT]... [NAME=VALUE ..] [-D WHAT] [--accept WHAT] [--name FILE]\n"
     "             [--target NAME] [--folder DIR] [--format=text|json|sarif] [--times]",
     "check programs for errors",
     "Checks every kernel of the files with every combination of the choices of its statics,\n"
     "and reports everything that `pipec build` would refuse; `-` is standard input. Prints\n"
     "nothing if there is no error. NAME=VALUE sets a `static`; the others still vary. A\n"
     "combination that only exceeds the resources of the target is counted in a note. A kernel\n"
     "with several targets is checked for each.\n"
     "\n" DENY ACCEPT TARGET "  --name FILE          name of standard input in messages\n" FOLDER
     "  --format=FORMAT      text on standard error; json on standard output, one line per\n"
     "                       file; sarif on standard output, one SARIF 2.1.0 log for all\n"
     "  --times              print on standard error for each pass of the check: number of\n"
     "                       runs, CPU time, steps counted by the meter\n"},
    {"build", command_build,
     "build FILE[:VARIANT] [KERNEL] [NAME=VALUE ..] [-o OUT.ptx|OUT.cubin|-]\n"
     "                   [--machine h200|h100] [--emit=WHAT] [--report] [--watchdog] [-D WHAT]\n"
     "                   [--target NAME] [--accept WHAT] [--folder DIR] [--format=text|json]\n"
     "       pipec build FILE[:VARIANT] [KERNEL] NAME=SIZES .. --bundle DIR [--cubins]\n"
     "                   [--target NAME] [--machine NAME,..] [--invariant] [--folder DIR]\n"
     "                   [--accept WHAT]",
     "compile a kernel to PTX",
     "Writes STEM.ptx and its manifest STEM.json into the current folder. NAME=VALUE sets a\n"
     "`static`; of extents, it chooses what `choose` predicts among the variants and statics\n"
     "that are open. A kernel with several variants needs these, or the name of one. Of several\n"
     "targets, each has its files, which name it: STEM.sm_90a.ptx and STEM.sm_90a.json.\n"
     "\n"
     "  -o OUT               OUT.ptx, or OUT.cubin if ptxas is found; the manifest is written\n"
     "                       to OUT.json. `-` prints the PTX; a device such as /dev/null\n"
     "                       gets the PTX without a manifest\n"
     "  --machine NAME       for which extents choose: h200 (the default) or h100\n"
     "  --invariant          refuse what adds in another order for other numbers of rows\n"
     "  --bundle DIR         write all that these sizes can choose (M=1..8192 K=64,128; at most\n"
     "                       10^6), for programs without the source; --cubins assembles them\n"
     "  --emit=WHAT          print the output of one pass instead: tokens, ast, prog, .. ptx;\n"
     "                       `list` lists the passes\n"
     "  --report             print the derived facts: barriers, counts, bytes, layouts,\n"
     "                       registers, shared memory\n"
     "  --watchdog           add a watchdog to every wait\n" TARGET FOLDER DENY ACCEPT FORMAT},
    {"run", command_run,
     "run FILE[:VARIANT] [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..]\n"
     "                 [--save NAME=FILE.npy] [--fill NAME=HOW] [--seed N]\n"
     "                 [--strided] [--least-aligned]\n"
     "                 [--on gpu|emulator|both] [--schedules N] [--schedule SEED]\n"
     "                 [--device N] [--bench] [--untuned] [--choices FILE] [--invariant]\n"
     "                 [--no-check] [--all] [--watchdog SECONDS] [--suppress FILE]\n"
     "                 [--races on|off] [--target NAME] [--folder DIR] [-D WHAT]\n"
     "                 [--accept WHAT] [--format=text|json|sarif]",
     "run a kernel and compare the result with its `ensures`",
     "NAME=VALUE sets a static, an extent or a scalar, NAME=FILE.npy a tensor; `example` sets\n"
     "the others. Variants and statics that are not given are those that `pipec tune` found\n"
     "to be the fastest for the sizes, otherwise those that `pipec choose` predicts to be.\n"
     "Without --on, the kernel runs on a GPU if one can run it, otherwise on the emulator. Of\n"
     "several targets the GPU runs the best that it can, the emulator the first.\n"
     "\n"
     "  --save NAME=FILE.npy write a tensor after the run; may be given several times\n" FILLS
     "  --strided            tensors with gaps between rows, as views have, where the kernel\n"
     "                       takes them\n"
     "  --least-aligned      tensors at addresses that are aligned no further than the kernel\n"
     "                       requires\n"
     "  --on WHERE           gpu, emulator, or both: then the results must agree\n"
     "  --schedules N        run N schedules on the emulator, all without an error and with\n"
     "                       the same result\n"
     "  --schedule SEED      the first schedule; default 0, the plain one\n" DEVICE
     "  --bench              time 20 launches on the GPU without the watchdog and print the\n"
     "                       median\n"
     "  --untuned            choose nothing: the values of the file for statics, and the\n"
     "                       first variant that can run\n"
     "  --choices FILE       what `pipec choose --save FILE` has fixed for these extents\n"
     "  --invariant          choose what adds in one order for any number of rows\n"
     "  --no-check           do not compare the result with `ensures`\n"
     "  --all                run each combination of variant and statics that is proved and can\n"
     "                       run on the data, one line each; the exit code is the worst, and\n"
     "                       4 if one is not proved\n"
     "  --watchdog SECONDS   limit of a wait, default 10; 0 removes the watchdog\n"
     "  --suppress FILE      findings of the emulator that are not reported\n"
     "  --races on|off       whether the emulator looks for races; default on\n" TARGET FOLDER DENY
         ACCEPT "  --format=text|json|sarif\n"
     "                       json: diagnostics on standard error and results on standard\n"
     "                       output, one object per line; sarif: the diagnostics as one\n"
     "                       SARIF 2.1.0 log on standard output\n"},
    {"emulate", command_emulate,
     "emulate FILE.ptx [--entry NAME] --grid X[,Y[,Z]] [--block X[,Y[,Z]]]\n"
     "                     [--cluster X[,Y[,Z]]] [--smem BYTES] [--cooperative]\n"
     "                     [--arg VALUE ..]\n"
     "                     [--schedules N] [--schedule SEED] [--resident N] [--blocks N]\n"
     "                     [--seconds S] [--suppress FILE] [--races on|off] [-D WHAT]\n"
     "                     [--format=text|json|sarif]\n"
     "       pipec emulate LAUNCHES.json [--schedules N] ..\n"
     "       pipec emulate FILE.ptx --list [--format=text|json]",
     "run PTX of any compiler on the emulator",
     "Runs a kernel of FILE.ptx, or the launches of a launch file one after the other, and\n"
     "reports races, hangs and faults. Results are written if there is no finding.\n"
     "\n"
     "  --list               print the entries, their parameters and required sizes\n"
     "  --entry NAME         the kernel; may be omitted if there is one\n"
     "  --grid, --block      blocks of the grid, threads of a block; without --block those\n"
     "                       that the kernel requires\n"
     "  --cluster            blocks of a cluster\n"
     "  --smem BYTES         dynamic shared memory of a block, default 0\n"
     "  --cooperative        a cooperative launch: blocks may wait for each other\n"
     "  --arg VALUE          an argument; one for each parameter, in order:\n"
     "                         i32:7  u64:0x10  f32:2.5   a number of this type\n"
     "                         in:A.npy                   the address of an array\n"
     "                         inout:A.npy[:B.npy]        the same, written back, or to B\n"
     "                         out:C.npy:f32[128,256]     a new array, written to the file\n"
     "                         zeros:f32[64]              a new array of zeros\n"
     "                         array:0[+BYTES]            the array of argument 0 again\n"
     "                         map:M.json  struct:S.json  a tensor map, a structure\n"
     "                         raw:FILE                   the bytes of a file\n"
     "  --schedules N        run N schedules, all without an error and with the same result\n"
     "  --schedule SEED      the first schedule; default 0, the plain one\n"
     "  --resident N         most blocks that wait for others at once, default 132\n"
     "  --blocks N           end after N blocks, with exit code 4\n"
     "  --seconds S          end after S seconds, with exit code 4\n"
     "  --suppress FILE      findings that are not reported\n"
     "  --races on|off       whether to look for races; default on\n" DENY
     "  --format=text|json|sarif\n"
     "                       json: diagnostics on standard error and results on standard\n"
     "                       output, one object per line; sarif: the diagnostics as one\n"
     "                       SARIF 2.1.0 log on standard output\n"},
    {"tune", command_tune,
     "tune FILE[:VARIANT] [KERNEL] [NAME=VALUE ..] [NAME=FILE.npy ..]\n"
     "                  [--fill NAME=HOW] [--seed N] [--device N] [--candidates N|all]\n"
     "                  [--rounds N] [--limit SECONDS] [--near] [--forget]\n"
     "                  [--target NAME] [--folder DIR] [--accept WHAT] [--format=text|json]",
     "measure the fastest variants and values of statics",
     "Takes the variants and combinations of `static NAME = VALUE in {..}` that `choose` expects\n"
     "to be the fastest, runs each on the GPU, compares the results with `ensures`, times the\n"
     "correct ones in turn and prints a table. It saves the times; launches with exactly these\n"
     "extents on the same device take the fastest. Statics that are given stay fixed; values,\n"
     "files and fills are as for `pipec run`.\n"
     "\n" FILLS DEVICE
     "  --candidates N       how many are measured, default 12; `all`: all that can run\n"
     "  --rounds N           number of times that each is timed, default 7; one that takes 3\n"
     "                       times the best is dropped after the first\n"
     "  --limit SECONDS      a launch that takes longer is given up, default 10\n"
     "  --near               also for extents that differ by at most 10 %, where the model\n"
     "                       expects at most 5 % more than the least time\n"
     "  --forget             save nothing\n" TARGET FOLDER ACCEPT RESULTS},
    {"choose", command_choose,
     "choose FILE[:VARIANT] [KERNEL] [NAME=VALUE ..] [--machine h200|h100]\n"
     "                    [--save FILE] [--invariant] [--target NAME] [--folder DIR]\n"
     "                    [--accept WHAT] [--format=text|json]",
     "predict the fastest variant and statics for sizes, without a GPU",
     "Takes every combination of the choices of statics, of every variant, and predicts its\n"
     "time for these extents from the work that it does and a table of machines. Prints the\n"
     "best, what takes longest in it, and the next three.\n"
     "\n"
     "  --machine NAME       h200 (the default) or h100\n"
     "  --save FILE          add the best to a file of choices, which `run --choices` and "
     "launches\n"
     "                       of programs obey\n"
     "  --invariant          among those that add in one order for any number of rows\n" TARGET
         FOLDER ACCEPT RESULTS},
    {"calibrate", command_calibrate, "calibrate [--device N] [--output FILE] [--format=text|json]",
     "measure this GPU for predicted times",
     "Measures the clock under matrix load, the rates of memory and L2, the latencies of a copy\n"
     "and of a hand-over, and the cost of a launch and of a block, in about 10 s, and saves them.\n"
     "Times on this GPU are then predicted with these numbers. No other program should use the\n"
     "GPU meanwhile.\n"
     "\n" DEVICE
     "  --output FILE        instead of machines.json in the folder of PIPEC_CACHE\n" RESULTS},
    {"cache", command_cache,
     "cache list|clear|why [FILE [KERNEL] [NAME=VALUE ..]] [--target NAME]\n"
     "             [--folder DIR] [--format=text|json]",
     "list, remove or explain the kernels that ptxas has assembled",
     "Where ptxas is found, a program that loads a kernel keeps what ptxas makes of it, and\n"
     "later processes load that. `list` prints what is kept, `clear` removes it; the choices of\n"
     "`pipec tune` stay. `why` says whether this cache or that of the driver is used, for a\n"
     "kernel of FILE or for all, and warns of what defeats it.\n"
     "\n" TARGET FOLDER "  --format=text|json   json, for `list`: one object on standard output\n"},
    {"explain", command_explain, "explain [CODE..]", "explain an error code",
     "Prints the page of each code: a wrong program, the reason, the right program. Without a\n"
     "code, lists all codes.\n"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int help(FILE *to) {
    fprintf(to, "pipec %s: a language for warp-specialised GPU kernels, compiled to PTX\n\n",
            pipec_version());
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  pipec %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(
        to,
        "\n`pipec COMMAND --help` describes a command. `pipec --version` prints the version.\n");
    return to == stderr ? PIPEC_UNUSABLE : PIPEC_FINE;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int unknown(const char *word) {
    say_error("unknown command `%s`", word);
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
