#!/bin/sh
# run.sh BUILD_DIR: tools/same.sh and sums.sh notice each fault that a compiler may have, and accept
# its twin, a compiler without it. One line per case, then "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
case $B in *asan*)
    echo "skipped: what it tests are scripts, which the release build runs"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
    ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
refused=tests/check/P03xx/acquired-and-released-under-one-condition.pipe
faulty=$scratch/faulty
passed=0 failed=0

mkdir "$faulty" "$scratch/base"
cp "$B/faults/same-test" "$B/pipec" "$faulty/"
cp "$B/same-test" "$B/pipec" "$scratch/base/"
printf '%s\n' examples/axpy.pipe examples/bias.pipe "$refused" >"$scratch/programs"
: >"$scratch/no.causes"

# verdict NAME CODE TEXT GOT: of the command that has written the log
verdict() {
    name=$1 code=$2 text=$3 got=$4
    if [ "$got" -eq "$code" ] && grep -qF -- "$text" "$scratch/log"; then
        passed=$((passed + 1))
        echo "pass  $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name: exit code $got, not $code, or it does not print \"$text\""
        sed 's/^/      | /' "$scratch/log" | head -n 60
    fi
}

# expect NAME CODE TEXT FAULT [OPTION..]: compares with a compiler that has a fault, or none
expect() {
    named=$1 wanted=$2 says=$3 fault=$4
    shift 4
    BUILD=$scratch SAME_FAULT=$fault sh tools/same.sh --with "$scratch/base" --present "$faulty" \
        --count 0 --files "$scratch/programs" --causes "$scratch/no.causes" --jobs 1 \
        --seconds 1 "$@" >"$scratch/log" 2>&1
    verdict "$named" "$wanted" "$says" $?
}

# sums NAME CODE TEXT FAULT: the same for the hashes
sums() {
    SAME_FAULT=$4 sh tests/same/sums.sh "$faulty" >"$scratch/log" 2>&1
    verdict "$1" "$2" "$3" $?
}

# causes ROW..: the option for a file of these rows
causes() {
    printf '%s\n' "$@" >"$scratch/some.causes"
    echo "--causes $scratch/some.causes"
}

same="same: 3 equal, 0 differ by a listed cause, 0 differ otherwise"
expect "no fault" 0 "$same" none
expect "one character of a message" 1 "+error[P0300]: stage \`w\` is releases in" message
expect "one word of JSON" 1 '+"labels":[{"row":25,' json
expect "an exit code" 1 "+exit 4" status
expect "one word of Code" 1 "+   1  loops 1" code
expect "two instructions in the other order" 1 "+    mov.u32 %r2, %tid.x;" instructions
expect "a field of the manifest" 1 '"threads": 1256' manifest
expect "the outputs that differ are counted" 1 "same: 2 of them in the output manifest" manifest
expect "a crash" 1 "+crash, signal 6" crash
expect "an endless loop" 1 "+takes more than 1 s" endless
expect "a nondeterministic output" 1 "differs from itself" random
expect "the same of both compilers" 1 "differs from itself" random --with "$faulty"
expect "an output that depends on earlier programs, of both compilers" 1 \
    "equal when it is compiled again" order --with "$faulty"
expect "no fault of both compilers" 0 "$same" none --with "$faulty"

# The command line has the exit codes
sed 's/^X//' >"$faulty/pipec" <<END
X#!/bin/sh
X"$PWD/$B/pipec" "\$@" || exit \$((\$? + \${SAME_MORE:-0}))
END
expect "the same command line" 0 "$same" none --share 1
SAME_MORE=2 expect "an exit code of the command line" 1 "+exit 3" none --share 1

# Causes
wait='ptx | ^-    griddepcontrol\.wait;$ | a wait less'
instructions='instructions | ^~$ | registers have other numbers'
# shellcheck disable=SC2046
{
    expect "a listed cause" 0 "2 by: $wait" wait $(causes "$wait")
    expect "a listed cause explains nothing else" 1 "2 differ otherwise" registers \
        $(causes "$wait")
    expect "no difference has a listed cause" 1 "no difference has this cause: ptx" none \
        $(causes "$wait")
    expect "other registers" 0 "2 by: $instructions" registers $(causes "$instructions")
    expect "other registers are no other instructions" 1 "2 differ otherwise" instructions \
        $(causes "$instructions")
    expect "a row that is no cause" 2 "not OUTPUTS | PATTERN | REASON" none \
        $(causes "ptx: a wait less")
    cp "$scratch/some.causes" "$scratch/base/same.causes"
    causes "$wait" >"$scratch/log"
    cp "$scratch/some.causes" "$scratch/base/same.causes"
    expect "an older cause is none" 1 "2 differ otherwise" wait $(causes "$wait")
    expect "an older cause needs no difference" 0 "$same" none $(causes "$wait")
}

# The hashes
for kind in generate matrix graphs adversary mutants; do
    ln -s "$PWD/$B/$kind-test" "$faulty/"
done
sums "no fault has other hashes" 0 ", 0 failed" none
sums "the outputs that differ are named" 1 "examples/axpy.pipe: ptx" wait
sums "a crash has no hashes" 1 "examples/axpy.pipe: it has no hashes" crash
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
