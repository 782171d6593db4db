#!/bin/sh
# fuzz.sh BUILD_DIR SECONDS: runs libFuzzer on every tests/fuzz/*.c, two at a time, with a total of
# SECONDS. Keeps crashing inputs in BUILD_DIR/NAME-*. Skipped, with a message, if clang or its
# fuzzing library is missing.
set -u
B=$1
seconds=$2
cc=clang
skip() {
    echo "fuzz: skipped, $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v $cc >/dev/null 2>&1 || skip "clang is not installed (apt-get install clang)"
mkdir -p "$B"
printf '%s\n' '#include <stddef.h>' 'int LLVMFuzzerTestOneInput(const unsigned char *, size_t);' \
    'int LLVMFuzzerTestOneInput(const unsigned char *d, size_t n)' \
    '{ return (int)(n && d[0] > 255); }' \
    >"$B/probe.c"
$cc -fsanitize=fuzzer,address -o "$B/probe" "$B/probe.c" 2>/dev/null ||
    skip "clang has no fuzzing library (apt-get install libclang-rt-14-dev)"
rm -f "$B/probe" "$B/probe.c"
jobs=$(nproc 2>/dev/null || echo 1)
MAKEFLAGS='' ${MAKE:-make} -j"$jobs" -s MODE=fuzz CC=$cc BUILD="${B%/fuzz}" fuzz-build || exit 1

set -- tests/fuzz/*.c
each=$((seconds * 2 / $#))
[ $each -ge 1 ] || each=1
passed=0 failed=0

# fuzz NAME: the corpus grows in BUILD_DIR; the seeds are files of the tests
fuzz() {
    seeds=
    case $1 in
    ptx) places="tests/ptx tests/emulator" ;;
    npy | manifest | workload | demangle) places="tests/fuzz/seeds/$1" ;;
    *)
        places="tests/fuzz/seeds/$1 tests/parse examples"
        # to read them alone takes a minute
        [ "$each" -lt 30 ] || places="$places tests/check tests/run"
        ;;
    esac
    for place in $places; do [ -d "$place" ] && seeds="$seeds $place"; done
    dictionary= words=$1
    [ "$1" = compile ] && words=front
    [ -f "tests/fuzz/$words.dict" ] && dictionary="-dict=tests/fuzz/$words.dict"
    mkdir -p "$B/corpus-$1"
    # shellcheck disable=SC2086
    "$B/fuzz/$1" -max_total_time=$each -timeout=10 -rss_limit_mb=1024 -max_len=16384 $dictionary \
        -print_final_stats=1 \
        -artifact_prefix="$B/$1-" "$B/corpus-$1" $seeds >"$B/$1.log" 2>&1
}

verdict() {
    if wait "$2"; then
        inputs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$B/$1.log")
        echo "fuzz $1: clean, $inputs inputs in $each s"
        passed=$((passed + 1))
    else
        tail -n 40 "$B/$1.log"
        echo "fuzz $1: failed, the input is next to $B/$1.log"
        failed=$((failed + 1))
    fi
}

while [ $# -gt 0 ]; do
    a=$(basename "$1" .c)
    shift
    fuzz "$a" &
    first=$!
    b=
    if [ $# -gt 0 ]; then
        b=$(basename "$1" .c)
        shift
        fuzz "$b" &
        second=$!
    fi
    verdict "$a" $first
    [ -n "$b" ] && verdict "$b" $second
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
