/* cli: progress of the emulator and of `ensures` on standard error, and times as text. */
#include "cli/cli.h"

#include <time.h>

void print_time(double seconds) {
    if (seconds < 1e-3)
        printf("%.2f us", seconds * 1e6);
    else if (seconds < 1)
        printf("%.3f ms", seconds * 1e3);
    else
        printf("%.3f s", seconds);
}

#define FIRST_LINE 1.0 /* seconds until the first line */
#define LAST_PAUSE 300.0

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

Progress progress_begin(const char *what) {
    double now = seconds();
    return (Progress){
        .what = what, .begun = now, .next = now + FIRST_LINE, .terminal = output_terminal()};
}

/* "95 s", "12 min", "3 h" */
static void say_seconds(double amount) {
    if (amount < 120)
        fprintf(stderr, "%.0f s", amount);
    else if (amount < 7200)
        fprintf(stderr, "%.0f min", amount / 60);
    else
        fprintf(stderr, "%.0f h", amount / 3600);
}

bool progress_show(void *data, const PipecProgress *now) {
    Progress *progress = data;
    double time = seconds(), elapsed = time - progress->begun;
    if (time < progress->next) return true;
    double pause = elapsed < LAST_PAUSE ? elapsed : LAST_PAUSE;
    progress->next = time + (progress->terminal ? 0.2 : pause);
    fprintf(stderr, "%s%s: ", progress->terminal ? "\r" : "", progress->what);
    if (now->schedules > 1) fprintf(stderr, "schedule %d of %d, ", now->schedule, now->schedules);
    fprintf(stderr, "%.0f %% in ", now->part * 100);
    say_seconds(elapsed);
    if (now->part > 0.01) {
        fprintf(stderr, ", about ");
        say_seconds(elapsed * (1 - now->part) / now->part);
        fprintf(stderr, " left");
    }
    fprintf(stderr, "%s", progress->terminal ? "\033[K" : "\n");
    fflush(stderr);
    progress->shown = progress->terminal;
    return true;
}

void progress_end(const Progress *progress) {
    if (progress->shown) fprintf(stderr, "\r\033[K");
}
