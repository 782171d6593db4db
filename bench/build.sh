#!/bin/bash
# build.sh [BUILD_DIR] [MOST]: time of `pipec build FILE -o -` for each example, in ms: CPU time
# including the start of the process, the mean of 10 runs, the shortest of 5 such means, because
# other processes disturb the others. Fails if an example takes more than MOST (5) ms. Needs no GPU.
# This is no test, because the time depends on the machine.
set -eu
cd "$(dirname "$0")/.."
pipec=${1:-build/release}/pipec
most=${2:-5}
[ -x "$pipec" ] || { echo "build: $pipec is not built: make" >&2; exit 2; }
TIMEFORMAT='%3U %3S'
for file in examples/*.pipe; do
    "$pipec" build "$file" -o - >/dev/null || exit 1
    for mean in 1 2 3 4 5; do
        { time for run in 1 2 3 4 5 6 7 8 9 10; do
            "$pipec" build "$file" -o - >/dev/null 2>&1
        done; } 2>&1
    done | awk -v file="$file" '{ took = ($1 + $2) * 100; if (NR == 1 || took < best) best = took }
        END { printf "%-34s %6.1f ms\n", file, best }'
done | awk -v most="$most" '
    { print; if ($2 > longest) longest = $2; over += $2 > most }
    END { printf "%d examples, the longest %.1f ms, %d over %g ms\n", NR, longest, over, most
          exit over > 0 }'
