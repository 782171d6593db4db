/* One table row per line of bench/rows.def. */
#include "bench/rows.h"

#include <string.h>

const Row rows[] = {
#define ROW(name, m, n, k, type, regime, lt, cutlass, deepgemm, target, kernel)                    \
    {name, {m, n, k, TYPE_##type, REGIME_##regime}, lt, cutlass, deepgemm, target, kernel},
#include "bench/rows.def"
#undef ROW
};
const int row_count = (int)(sizeof rows / sizeof *rows);

const Row *row_named(const char *name) {
    for (int i = 0; i < row_count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

double row_factor(const Row *row, const char **peer) {
    double best = row->lt;
    *peer = "";
    if (row->cutlass > best) best = row->cutlass, *peer = "CUTLASS";
    if (row->deepgemm > best) best = row->deepgemm, *peer = "DeepGEMM";
    return row->lt > 0 ? best / row->lt : 1;
}
