#!/bin/sh
# limits.sh [NAME..]: tests that a reached limit is never taken as a proof. In a copy of the sources
# each limit of an analysis, or each given one, is set to 1; then no program of the tests that is
# refused or undecided may be accepted. The last line has the number of limits, and of those that
# hold. Takes ten minutes and more; not part of `make test`.
set -u
copy=${BUILD:-build/limits}/copy
mkdir -p "$copy"
git archive HEAD | tar -x -C "$copy" || exit 2
build() {
    make -s -C "$copy" -j2 CFLAGS=-O1 BUILD=build build/release/pipec >"$copy/build.log" 2>&1
}
refused() { # FILE..: those that are refused or undecided
    for file; do "$copy/build/release/pipec" check "$file" >/dev/null 2>&1 || echo "$file"; done
}
build || { echo "limits: it does not build"; exit 2; }
base=$(refused tests/check/*/*.pipe tests/known/*.pipe)
if [ $# -eq 0 ]; then
    # ROW_STEPS and WORDS_A_STEP are costs, not limits
    set -- $(sed -nE 's/^#define ([A-Z_]+_(MOST|STEPS|WORK)|MAX_TRIPS)[ \t]+[0-9].*/\1/p' \
        check/*.[ch] flow/*.[ch] derive/*.[ch] algebra/*.[ch] |
        grep -v -x ROW_STEPS | sort -u)
fi
limits=0 hold=0
for name; do
    limits=$((limits + 1)) changed= wrong=
    for file in $(grep -lE "^#define $name[ \t]" check/*.[ch] flow/*.[ch] derive/*.[ch] \
        algebra/*.[ch]); do
        sed -E "s/^(#define $name)[ \t]+[0-9]+/\1 1/" "$file" >"$copy/$file"
        changed="$changed $file"
    done
    if build; then
        for file in $base; do
            "$copy/build/release/pipec" check "$file" >/dev/null 2>&1 && wrong="$wrong $file"
        done
        [ -z "$wrong" ] && hold=$((hold + 1)) || echo "limits: $name is taken for a proof:$wrong"
    else
        echo "limits: it does not build with $name as 1"
    fi
    for file in $changed; do cp "$file" "$copy/$file"; done
done
echo "$limits limits, $hold hold"
[ "$limits" -eq "$hold" ]
