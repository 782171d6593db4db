#!/bin/sh
# arms.sh [FILE | FILE:LINE | FILE:LINE:NAME]..: mutation test of the path rules. Makes one build in
# which the environment removes one piece of a rule: of all files of flow/ and check/ except those
# that make, print or validate rows. tools/arms.awk finds the pieces in the sources:
#   - an arm of a step: in a function named step, follow, visit or asks, possibly with more words,
#     a label of `case` whose group has an effect (the switch is left instead), or a comparison with
#     a row kind (`kind == ROW_X` is never true);
#   - a row of a table at the top of a file: it is empty;
#   - a handler of a rule, by effect, and each effect of each row of flow/rows.def;
#   - a statement, of one line or several, of a join: of a function named join, meet, merge, both,
#     either, wider;
#   - a hook that a rule may leave empty: enters, second, follows, trips, meets.
# ALL=1: the arms of all other functions too, and each condition of an `if` on one line, which is
# never true then. Removes each piece, or the given ones, and runs tests until one fails, in JOBS
# (2) processes. Prints the pieces that no test misses, and whether a program reaches them. The last
# line has the number of removed pieces. Takes minutes on an idle machine; not part of `make test`.
set -u
JOBS=${JOBS:-2}
tree=${BUILD:-build}/arms
units="held solve uniform slice widths deadlock counts elements outside"
mkdir -p "$tree"
for name in *; do
    case $name in build | flow | check) continue ;; esac
    [ -e "$tree/$name" ] || ln -s "$PWD/$name" "$tree/$name"
done

# keep FILE: replaces FILE by FILE.new if they differ; an unchanged file is not compiled again
keep() {
    if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

sites=$tree/sites
: >"$sites"
mkdir -p "$tree/flow" "$tree/check"
for made in $(cd "$tree" && find flow check -type f); do
    [ -e "$made" ] || rm -f "$tree/$made"
done
for source in $(find flow check -type f | LC_ALL=C sort); do
    mkdir -p "$tree/${source%/*}"
    first=$(wc -l <"$sites")
    case $source in
    flow/lower.c | flow/print*.c | flow/valid.c | *.h | *.def)
        cat "$source"
        ;;
    *)
        awk -v all="${ALL:-}" -v first="$first" -v sites="$sites" -f tools/arms.awk "$source"
        ;;
    esac | sed 's/^\(extern \)*const RowEffects row_effects/\1RowEffects row_effects/' \
        >"$tree/$source.new"
    keep "$tree/$source"
done
cat >"$tree/flow/arms.c.new" <<END
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
bool arm_lost(int site) { /* is it left out? Notes which items of the driver come here */
    static bool begun, reached[$(wc -l <"$sites") + 1];
    static char item[1000] = "start";
    static int wanted = -1;
    static FILE *log;
    if (!begun) {
        const char *without = getenv("PIPEC_ARM"), *file = getenv("PIPEC_REACHED");
        begun = true, wanted = without ? atoi(without) : -1, log = file ? fopen(file, "a") : NULL;
    }
    if (log) {
        const char *now = getenv("PIPEC_ITEM");
        bool next = now && strcmp(now, item);
        if (next) snprintf(item, sizeof item, "%s", now), memset(reached, 0, sizeof reached);
        if (!reached[site]) fprintf(log, "%d %s\n", site, item), fflush(log);
        reached[site] = true;
    }
    return site == wanted;
}
END
keep "$tree/flow/arms.c"

driver=build/release/tests-driver
targets="$driver build/release/adversary-test build/release/graphs-test"
for unit in $units; do targets="$targets build/release/unit/$unit"; done
cd "$tree" || exit 2
make -j"$JOBS" CC="${CC:-cc}" CFLAGS="-O1 -w -DPIPEC_WITHOUT" $targets >make.log 2>&1 ||
    { cat make.log; echo "arms: it does not build"; exit 2; }

quiet() {
    timeout 300 "$@" >/dev/null 2>&1
}

# suites NUMBER SUITE..: true if they pass without this piece. Runs only the items that reach it if
# they are few; all items otherwise, or if the piece is removed at the start of the program
suites() {
    number=$1
    shift
    reaching=$(awk -v site="$number" '$1 == site { print $2 }' "reached.$1")
    if [ "$reaching" = start ] || [ "$(echo "$reaching" | wc -l)" -gt 20 ]; then
        quiet "$driver" --jobs 1 --first "$@"
        return
    fi
    for item in $reaching; do
        quiet "$driver" --jobs 1 --filter "$item" "$@" || return 1
    done
}

# run NUMBER: true if the tests pass without this piece. The quick ones first
run() {
    suites "$1" check || return 1
    for unit in $units; do quiet build/release/unit/$unit || return 1; done
    suites "$1" known corpus ptx run && quiet build/release/adversary-test &&
        quiet build/release/adversary-test --theme each && quiet build/release/graphs-test
}

# index SUITE..: records which items of the suites reach which pieces
index() {
    rm -f reached
    PIPEC_REACHED=$PWD/reached "$driver" --jobs 1 "$@" >/dev/null ||
        { echo "arms: the tests fail with all pieces in place"; exit 2; }
    sort -u reached >"reached.$1"
    rm -f reached
}

rm -f left.*
index check
index known corpus ptx run
[ $# -gt 0 ] || set -- ""
for wanted; do
    grep "^[0-9]* $wanted" sites
done | sort -un >chosen
# without NUMBER NAME: prints a line if no test misses the piece
without() {
    (export PIPEC_ARM="$1" && run "$1") || return
    cut -d" " -f1 reached.check reached.known | grep -qx "$1" && comes= ||
        comes=", which no program reaches"
    echo "arms: nothing fails without $2$comes"
}

# Removes pieces in parallel; each process takes every JOBS-th one
for job in $(seq "$JOBS"); do
    awk -v jobs="$JOBS" -v job="$job" 'NR % jobs == job % jobs' chosen |
        while read -r number name; do without "$number" "$name"; done >"left.$job" &
done
wait
cat left.*
left=$(wc -l <chosen) noticed=$(($(wc -l <chosen) - $(cat left.* | wc -l)))
echo "$left left out, $noticed noticed"
[ "$left" -eq "$noticed" ]
