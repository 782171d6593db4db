/* The printed form of a checked program: --emit=prog. Stable, a surface of tests. */
#include "check/prog.h"

void prog_print(const Prog *prog, Arena *arena, Str *out) { (void)prog; (void)arena; (void)out; }
