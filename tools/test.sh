#!/bin/sh
# test.sh BUILD_DIR: every test that needs no GPU (on a GPU machine the driver uses it too). The
# parts run at the same time, one for each core; each writes a log, whose last line is "N passed,
# N failed[, N skipped]". Meanwhile a line says which parts run and for how long; where the output
# is no terminal, a line follows each part that took 5 s. At the end stand the logs of parts that
# failed, a table of all parts, and why tests were skipped; the last line is the sum, and the exit
# code says whether all passed. The logs stay in BUILD_DIR/test-logs.
set -u

# MODE=asan: pointers into frames of functions that have returned are found as well
ASAN_OPTIONS="detect_stack_use_after_return=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export ASAN_OPTIONS

if [ "$1" = --part ]; then
    shift
    log=$1
    shift
    start=$(date +%s)
    echo "$start" >"$log.start"
    "$@" >"$log" 2>&1
    code=$?
    times >"$log.times"
    took=$(($(date +%s) - start))
    echo $code >"$log.code"
    if [ $took -ge 5 ] && [ ! -t 1 ]; then echo "${log##*/} took $took s"; fi
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
    echo "same sh tests/same/sums.sh $B"
    echo "same-script sh tests/same/run.sh $B"
    echo "hang $B/hang-test"
    echo "heavy $B/heavy-test"
    echo "overlap $B/overlap-test"
    echo "bench sh tests/bench/run.sh $B"
    echo "python sh python/tests/run.sh $B"
    echo "ptx-page sh tools/ptx.sh --check"
    echo "floors sh tools/floors.sh"
}

# The parts that run now, on one line of a terminal that is written again each second
show_progress() {
    all=$(wc -l <"$logs/list")
    while sleep 1; do
        now=$(date +%s) line=
        for start in "$logs"/*.start; do
            log=${start%.start}
            [ -f "$start" ] && [ ! -f "$log.code" ] || continue
            line="$line${line:+, }${log##*/} $((now - $(cat "$start"))) s"
        done
        ended=$(find "$logs" -name '*.code' | wc -l)
        printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$ended of $all parts ended; $line"
    done
}

parts >"$logs/list"
echo "$(wc -l <"$logs/list") parts, $jobs at a time"
progress=
if [ -t 1 ]; then
    show_progress &
    progress=$!
fi
sed "s|^\([^ ]*\) |$logs/\1 |" "$logs/list" | xargs -P "$jobs" -L 1 sh "$0" --part
if [ -n "$progress" ]; then
    kill "$progress" 2>/dev/null
    wait "$progress" 2>/dev/null
    printf '\r\033[K'
fi

# seconds NAME: processor time of a part and its processes; `times` writes 0m1.234s
# 0m0.100s for them in its second line
seconds() {
    sed -n '2s/[ms]/ /gp' "$logs/$1.times" 2>/dev/null |
        awk '{ printf "%.1f", 60 * $1 + $2 + 60 * $3 + $4 }'
}

# count NAME: a row of the table from the last line of a part's log; a part without such a line
# counts as one test. The log of a part that failed is printed.
count() {
    name=$1
    log=$logs/$name
    code=$(cat "$log.code" 2>/dev/null || echo "none: it did not end")
    line=$(tail -n 1 "$log")
    case $line in
    *[0-9]" passed, "[0-9]*" failed"*) set -- $(echo "$line" | sed 's/[^0-9]/ /g') 0 ;;
    *) [ "$code" = 0 ] && set -- 1 0 0 || set -- 0 1 0 ;;
    esac
    good=$1 bad=$2 left=$3
    # an exit code that the counts do not explain
    if [ "$code" != 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ "$bad" -gt 0 ]; then
        sed -e "/^pass /d" "$log" >&2
        echo "$name: failed, exit code $code" >&2
    fi
    echo "$name $good $bad $left $(seconds "$name")"
}

while read -r name command; do
    count "$name"
done <"$logs/list" >"$logs/counts"

# Unit tests are one row
awk '
    function row(name, good, bad, left, time) {
        printf "%-20s %8d passed %5d failed %5d skipped %8.1f s\n", name, good, bad, left, time
    }
    /^unit-/ { units++; good += $2; bad += $3; left += $4; time += $5; next }
    { row($1, $2, $3, $4, $5) }
    END { row("unit (" units ")", good, bad, left, time) }
' "$logs/counts"
for name in $(awk '$4 > 0 { print $1 }' "$logs/counts"); do
    grep -i "skip" "$logs/$name" | grep -v "passed" | sed "s/^/$name: /"
done
awk '{ good += $2; bad += $3; left += $4 }
     END { printf "%d passed, %d failed", good, bad
           if (left) printf ", %d skipped", left
           print ""
           exit bad > 0 }' "$logs/counts"
