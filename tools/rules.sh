#!/bin/sh
# rules.sh [CODE.. | FILE:LINE..]: mutation test of the messages. Makes one build in which the
# environment can silence a row of util/errors.def, or one call that reports something. Silences
# each row of the front end (P0001 to P0599) and each call for it, or the given ones, and runs the
# tests of the suites `parse` and `check` that report it, until one fails, in JOBS (2) processes.
# Prints those that no test misses. The last line has the number of silenced ones. Takes about a
# minute; not part of `make test`.
set -u
JOBS=${JOBS:-2}
BUILD=${BUILD:-build/rules}
driver=$BUILD/release/tests-driver
reported=$BUILD/reported
make -j"$JOBS" BUILD="$BUILD" CFLAGS=-DPIPEC_WITHOUT "$driver" >/dev/null 2>&1 ||
    { echo "rules: it does not build"; exit 2; }
rm -f "$reported"
PIPEC_REPORTED=$reported "$driver" parse check >/dev/null ||
    { echo "rules: the suites fail with all rules in place"; exit 2; }
if [ $# -eq 0 ]; then
    # the functions of a flex file are one line further down in the output of flex
    set -- $(sed -n 's/^DIAG(\(0[0-5][0-9][0-9]\),.*/P\1/p' util/errors.def) \
        $(grep -nE '(diag_at|diag_plain|elab_error|lexer_report)\(' parser/*.[cy] lexer/*.l \
            $(find prog elaborate algebra flow derive check codegen -name '*.c' | LC_ALL=C sort) |
            awk -F: '{ print $1 ":" $2 + ($1 ~ /[.]l$/) }')
fi
# Items that report a code or from a place, shortest name first: usually the program for this error
sort -u "$reported" | awk '{ print $2, $1; print $3, $1 }' | sort -u |
    awk '{ print length($2), $0 }' | sort -n | cut -d' ' -f2- >"$reported.index"
# without RULE: prints a line if no test misses the rule
without() {
    reached=
    for item in $(awk -v rule="$1" '$1 == rule { print $2 }' "$reported.index"); do
        reached=yes
        PIPEC_WITHOUT=$1 "$driver" parse check --jobs 1 --filter "$item" >/dev/null 2>&1 ||
            return
    done
    echo "rules: nothing fails without $1${reached:+, though tests report it}"
}

# Silences rules in parallel; each process takes every JOBS-th one
rm -f "$reported".left.*
for job in $(seq "$JOBS"); do
    number=0
    for rule; do
        [ $((number % JOBS + 1)) -eq "$job" ] && without "$rule"
        number=$((number + 1))
    done >"$reported.left.$job" &
done
wait
cat "$reported".left.*
silenced=$# noticed=$(($# - $(cat "$reported".left.* | wc -l)))
echo "$silenced silenced, $noticed noticed"
[ "$silenced" -eq "$noticed" ]
