#!/bin/sh
# test.sh BUILD_DIR: every test that needs no GPU (on a GPU machine the driver uses it too). Each part prints its failures and a
# last line "N passed, N failed[, N skipped]"; the last line here is their sum, and the exit code says whether all passed.
set -u
B=$1
log=$B/test.log
passed=0 failed=0 skipped=0

# MODE=asan: pointers into frames of functions that have returned are found as well
ASAN_OPTIONS="detect_stack_use_after_return=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export ASAN_OPTIONS

# count NAME COMMAND..: runs a part and adds its last line up; a part without such a line counts as one test
count() {
    name=$1
    shift
    "$@" >"$log" 2>&1
    code=$?
    line=$(tail -n 1 "$log")
    case $line in
    *[0-9]" passed, "[0-9]*" failed"*)
        sed -e '$d' -e "/^pass /d" "$log"
        echo "$name: $line"
        set -- $(echo "$line" | sed 's/[^0-9]/ /g') 0
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
        # an exit code that the counts do not explain
        if [ $code -ne 0 ] && [ "$2" -eq 0 ]; then
            echo "$name: exit code $code"
            failed=$((failed + 1))
        fi
        ;;
    *)
        if [ $code -eq 0 ]; then
            passed=$((passed + 1))
        else
            cat "$log"
            echo "$name: failed, exit code $code"
            failed=$((failed + 1))
        fi
        ;;
    esac
}

count floors sh tools/floors.sh
for source in tests/unit/*.c; do
    unit=${source##*/}
    count "unit ${unit%.c}" "$B/unit/${unit%.c}"
done
count driver "$B/tests-driver" all
count generate "$B/generate-test"
count matrix "$B/matrix-test"
count graphs "$B/graphs-test"
count adversary "$B/adversary-test"
count mutants "$B/mutants-test"
count hang "$B/hang-test"
[ -f tests/cli/run.sh ] && count cli sh tests/cli/run.sh "$B"
count bench sh tests/bench/run.sh "$B"

rm -f "$log"
line="$passed passed, $failed failed"
[ $skipped -gt 0 ] && line="$line, $skipped skipped"
echo "$line"
[ $failed -eq 0 ]
