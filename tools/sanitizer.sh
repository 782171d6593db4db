#!/bin/sh
# sanitizer.sh [NAME..]: runs all examples, or those named, under the tools of compute-sanitizer:
# memcheck, initcheck, synccheck, racecheck. Needs a GPU; without one, or without compute-sanitizer,
# it skips all four. Each example runs with the largest extents of its `//> run` lines that end with
# results, up to 2^24 as a product. The last line has the numbers. PIPEC names another
# build/release/pipec, COMPUTE_SANITIZER another compute-sanitizer than that in PATH.
#
# racecheck's false reports (docs/emulator.md, compute-sanitizer) pass for the kernels of `known`,
# if the report has their form, and the emulator finds no race in the same run.
set -u
cd "$(dirname "$0")/.." || exit 2
pipec=${PIPEC:-build/release/pipec}
known="axpy_pipes chain stencil"
tools="memcheck initcheck synccheck racecheck"
limit=300 # seconds of one run
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "SKIPPED: $1"
    echo "0 passed, 0 failed, 4 skipped"
    exit 0
}

sanitizer=$(command -v "${COMPUTE_SANITIZER:-compute-sanitizer}") ||
    skip "compute-sanitizer is not installed"
"$pipec" run examples/axpy.pipe N=0 --on gpu >"$scratch/out" 2>&1
case $? in
0) ;;
2) skip "no GPU: $(head -n 1 "$scratch/out")" ;;
*)
    cat "$scratch/out"
    echo "$pipec does not run examples/axpy.pipe"
    exit 1
    ;;
esac

# arguments FILE: of its largest run
arguments() {
    awk '
    function keep() {
        if (words != "" && size > best) { best = size; chosen = words }
        words = ""
    }
    /^\/\/> run / {
        keep()
        words = substr($0, 9)
        size = 1
        count = split(words, word, " ")
        for (i = 1; i <= count; i++)
            if (word[i] ~ /^[A-Z][A-Za-z]*=[0-9]+$/) { sub(/.*=/, "", word[i]); size *= word[i] }
        if (size > 16777216 || words ~ /--(schedule|least-aligned|strided)/) words = ""
    }
    /^\/\/> (exit|unchecked)/ { words = "" }
    END { keep(); print chosen }' "$1"
}

# of_known_form NAME FILE ARGUMENT..: the report has only races between a write and a read (which of
# them racecheck names first varies), and the emulator finds none
of_known_form() {
    case " $known " in *" $1 "*) ;; *) return 1 ;; esac
    shift
    awk '
    /RACECHECK SUMMARY/ { next }
    /Error: Race reported between (Read|Write) access/ {
        if (first != "") bad = 1
        first = $6
        next
    }
    /^=+ +and (Read|Write) access/ {
        if (first == "" || first == $3) bad = 1
        first = ""
        races++
        next
    }
    /^=+ .*(Error|Warning|hazard)/ { bad = 1 }
    END { exit bad || first != "" || !races }' "$scratch/out" || return 1
    "$pipec" run "$@" --on emulator --races on -D warnings >"$scratch/emulator" 2>&1
}

# run TOOL NAME
run() {
    file=examples/$2.pipe
    # shellcheck disable=SC2046
    set -- "$1" "$2" "$file" $(arguments "$file")
    tool=$1 name=$2
    shift 2
    timeout $limit "$sanitizer" --tool "$tool" --error-exitcode 9 "$pipec" run "$@" --on gpu \
        --watchdog 0 >"$scratch/out" 2>&1
    code=$?
    if [ $code -eq 0 ] && grep -q 'SUMMARY: 0 ' "$scratch/out"; then
        passed=$((passed + 1))
    elif [ $code -eq 9 ] && [ "$tool" = racecheck ] && of_known_form "$name" "$@"; then
        passed=$((passed + 1))
        echo "known  $tool $*: a write before an elected arrival, and its read"
    else
        failed=$((failed + 1))
        echo "FAIL   $tool $*: exit code $code"
        grep -E '^=+ .' "$scratch/out" | head -n 20
    fi
}

if [ $# -eq 0 ]; then
    for file in examples/*.pipe; do
        name=${file##*/}
        set -- "$@" "${name%.pipe}"
    done
fi
for tool in $tools; do
    for name; do run "$tool" "$name"; done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
