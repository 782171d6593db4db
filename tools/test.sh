#!/bin/sh
# test.sh BUILD_DIR: every test that needs no GPU (on a GPU machine the driver uses it too). The
# parts run at the same time, one for each core; each writes a log, whose last line is "N passed,
# N failed[, N skipped]". What they print follows in the order of the list; the last line is the
# sum, and the exit code says whether all passed.
set -u

# MODE=asan: pointers into frames of functions that have returned are found as well
ASAN_OPTIONS="detect_stack_use_after_return=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export ASAN_OPTIONS

if [ "$1" = --part ]; then
    shift
    log=$1
    shift
    "$@" >"$log" 2>&1
    echo $? >"$log.code"
    times >"$log.times"
    exit 0
fi

B=$1
logs=$B/test-logs
rm -rf "$logs"
mkdir -p "$logs"
taken=$(dirname "$B")/taken # texts that ptxas has taken, of builds of all modes
mkdir -p "$taken"
jobs=$(nproc 2>/dev/null || echo 1)

# NAME COMMAND.. : the longest parts first, so that the last ones to end are short
parts() {
    echo "assemble $B/tests-driver --jobs 1 --taken $taken assemble"
    echo "graphs $B/graphs-test"
    for suite in run examples; do echo "$suite $B/tests-driver --jobs 1 $suite"; done
    echo "matrix $B/matrix-test"
    echo "sweep $B/sweep-test"
    echo "adversary-themes $B/adversary-test --theme each"
    echo "mutants $B/mutants-test"
    echo "ptxmutants $B/ptxmutants-test"
    echo "generate $B/generate-test"
    echo "generate-reductions $B/generate-test --reductions --count 100"
    [ -f tests/cli/run.sh ] && echo "cli sh tests/cli/run.sh $B"
    echo "embed sh tests/embed/run.sh $B"
    for source in tests/unit/*.c; do
        unit=${source##*/}
        echo "unit-${unit%.c} $B/unit/${unit%.c}"
    done
    for suite in corpus known check codes docs habits parse ptx; do
        echo "$suite $B/tests-driver --jobs 1 $suite"
    done
    echo "adversary $B/adversary-test"
    echo "hang $B/hang-test"
    echo "heavy $B/heavy-test"
    echo "overlap $B/overlap-test"
    echo "bench sh tests/bench/run.sh $B"
    echo "python sh python/tests/run.sh $B"
    echo "ptx-page sh tools/ptx.sh --check"
    echo "floors sh tools/floors.sh"
}

parts >"$logs/list"
sed "s|^\([^ ]*\) |$logs/\1 |" "$logs/list" | xargs -P "$jobs" -L 1 sh "$0" --part

# seconds NAME: processor time of a part and its processes; `times` writes 0m1.234s
# 0m0.100s for them in its second line
seconds() {
    sed -n '2s/[ms]/ /gp' "$logs/$1.times" 2>/dev/null |
        awk '{ printf "%.1f s", 60 * $1 + $2 + 60 * $3 + $4 }'
}

# count NAME: adds the last line of a part's log; a part without such a line counts as one test
passed=0 failed=0 skipped=0
count() {
    name=$1
    log=$logs/$name
    code=$(cat "$log.code" 2>/dev/null || echo "none: it did not end")
    line=$(tail -n 1 "$log")
    case $line in
    *[0-9]" passed, "[0-9]*" failed"*)
        sed -e '$d' -e "/^pass /d" "$log"
        echo "$name: $line ($(seconds "$name"))"
        set -- $(echo "$line" | sed 's/[^0-9]/ /g') 0
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
        # an exit code that the counts do not explain
        if [ "$code" != 0 ] && [ "$2" -eq 0 ]; then
            echo "$name: exit code $code"
            failed=$((failed + 1))
        fi
        ;;
    *)
        if [ "$code" = 0 ]; then
            passed=$((passed + 1))
        else
            cat "$log"
            echo "$name: failed, exit code $code"
            failed=$((failed + 1))
        fi
        ;;
    esac
}
while read -r name command; do
    count "$name"
done <"$logs/list"

rm -rf "$logs"
line="$passed passed, $failed failed"
[ $skipped -gt 0 ] && line="$line, $skipped skipped"
echo "$line"
[ $failed -eq 0 ]
