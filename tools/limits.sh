#!/bin/sh
# limits.sh [NAME..]: tests that a reached limit is never taken as a proof. In a copy of the sources
# each limit of an analysis, or each given one, is set to 1; then no program of the tests that is
# refused or undecided may be accepted. JOBS (2) processes have a copy each. The last line has the
# number of limits, and of those that hold. Takes ten minutes and more; not part of `make test`.
set -u
JOBS=${JOBS:-2}
tree=${BUILD:-build}/limits
rm -f "$tree"/*.wrong

build() { # COPY
    make -s -C "$1" -j2 CFLAGS=-O1 BUILD=build build/release/pipec >"$1/build.log" 2>&1
}
refused() { # COPY FILE..: those that are refused or undecided
    copy=$1
    shift
    for file; do "$copy/build/release/pipec" check "$file" >/dev/null 2>&1 || echo "$file"; done
}

# set_to_one COPY NAME: prints the files that define it
set_to_one() {
    for file in $(grep -lE "^#define $2[ \t]" check/*.[ch] flow/*.[ch] derive/*.[ch] \
        algebra/*.[ch]); do
        sed -E "s/^(#define $2)[ \t]+[0-9]+/\1 1/" "$file" >"$1/$file"
        echo "$file"
    done
}

# try COPY NAME: prints a line unless the limit holds
try() {
    changed=$(set_to_one "$1" "$2") wrong=
    if build "$1"; then
        while read -r file; do
            "$1/build/release/pipec" check "$file" >/dev/null 2>&1 && wrong="$wrong $file"
        done <"$tree/refused"
        [ -z "$wrong" ] || echo "limits: $2 is taken for a proof:$wrong"
    else
        echo "limits: it does not build with $2 as 1"
    fi
    for file in $changed; do cp "$file" "$1/$file"; done
}

for job in $(seq "$JOBS"); do
    mkdir -p "$tree/$job"
    tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$tree/$job" || exit 2
done
build "$tree/1" || { cat "$tree/1/build.log"; echo "limits: it does not build"; exit 2; }
refused "$tree/1" tests/check/*/*.pipe tests/known/*.pipe >"$tree/refused"
if [ $# -eq 0 ]; then
    # ROW_STEPS and WORDS_A_STEP are costs, ELEMENT_MOST is a number of the language. OUTSIDE_STEPS
    # limits what is found of accesses that are certainly outside: without it, they read zeros
    set -- $(sed -nE 's/^#define ([A-Z_]+_(MOST|STEPS|WORK)|MAX_TRIPS)[ \t]+[0-9].*/\1/p' \
        check/*.[ch] flow/*.[ch] derive/*.[ch] algebra/*.[ch] |
        grep -v -x -e ROW_STEPS -e ELEMENT_MOST -e OUTSIDE_STEPS | sort -u)
fi
for job in $(seq "$JOBS"); do
    number=0
    for name; do
        [ $((number % JOBS + 1)) -ne "$job" ] || try "$tree/$job" "$name"
        number=$((number + 1))
    done >"$tree/$job.wrong" &
done
wait
cat "$tree"/*.wrong
hold=$(($# - $(cat "$tree"/*.wrong | wc -l)))
echo "$# limits, $hold hold"
[ "$#" -eq "$hold" ]
