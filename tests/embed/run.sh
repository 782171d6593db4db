#!/bin/sh
# run.sh BUILD_DIR: the library as others use it: `make install`, pkg-config, CMake and make, the
# programs of examples/embed, every block of docs/embedding.md, and the binary interface. One line
# per case, then "N passed, N failed[, N skipped]".
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
B=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
STANDIN=$B/standin/libcuda.so.1
PIPEC_LIBCUDA=/nonexistent/libcuda.so.1
PIPEC_CACHE=$scratch/cache
PKG_CONFIG_PATH=$scratch/prefix/lib/pkgconfig
PIPEC_PTXAS= # none: the stand-in driver loads the PTX
export PIPEC_LIBCUDA PIPEC_CACHE PKG_CONFIG_PATH PIPEC_PTXAS
passed=0 failed=0 skipped=0
mode=release sanitizers=
case $B in *asan*) mode=asan sanitizers=-fsanitize=address,undefined ;; esac
CC="${CC:-cc} $sanitizers" CXX="${CXX:-c++} $sanitizers"
CFLAGS=$sanitizers LDFLAGS=$sanitizers # for make
export CC CFLAGS LDFLAGS
# what the programs of the document allocate is freed with the process
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS

# expect NAME TEXT COMMAND..: it ends with 0, and prints the text, unless that is empty
expect() {
    name=$1 text=$2
    shift 2
    if "$@" >out 2>&1 </dev/null && { [ -z "$text" ] || grep -qF -- "$text" out; }; then
        echo "pass  $name"
        passed=$((passed + 1))
    else
        echo "FAIL  $name${text:+: not \`$text\`}"
        sed 's/^/      | /' out | tail -n 20
        failed=$((failed + 1))
    fi
}
skip() {
    echo "SKIP  $1"
    skipped=$((skipped + 1))
}
has() { command -v "$1" >/dev/null 2>&1; }
# typed FILE: the command in the head of an example, as a reader types it
typed() {
    sed -n "s/^[ /*]*\(cc\|c++\) \(.*pkg-config.*\)/\1 \2/p" "$1" | sed "s/^c++/$CXX/; s/^cc/$CC/"
}
# blocks WORD: the blocks of docs/embedding.md that begin with ```WORD
blocks() { awk -v word="$1" '/^```/ { on = $0 == "```" word; next } on' "$root/docs/embedding.md"; }

# ---- installed

expect "make install" "" env MAKEFLAGS= make -s -C "$root" install MODE=$mode CFLAGS= LDFLAGS= \
    CC=cc BUILD="$(dirname "$B")" PREFIX="$scratch/prefix"
for file in bin/pipec lib/libpipec.so lib/libpipec.so.1 lib/libpipec.a include/pipec.h \
    lib/pkgconfig/pipec.pc lib/cmake/pipec/pipec-config.cmake share/man/man1/pipec.1 \
    share/pipec/kernels/linear.pipe share/pipec/kernels/common.pipe; do
    expect "installed: $file" "" test -s "prefix/$file"
done
expect "a shipped kernel" right prefix/bin/pipec run kernels:linear M=3 N=8 K=8
expect "a shipped kernel that includes another file" right \
    prefix/bin/pipec run kernels:softmax M=3 D=64
expect "the file of a shipped kernel" right \
    prefix/bin/pipec run prefix/share/pipec/kernels/softmax.pipe M=3 D=64
mkdir -p examples/embed
cp "$root"/examples/embed/* examples/embed
cp "$root"/examples/axpy.pipe examples
expect "the installed command" right prefix/bin/pipec run examples/axpy.pipe N=5

# ---- examples

right="axpy on the emulator: 0 of 100000 elements wrong"
if has pkg-config; then
    expect "the command in the head of embed.c" "$right" \
        sh -c "cd examples/embed && $(typed examples/embed/embed.c)"
else
    skip "the command in the head of embed.c: pkg-config is not installed"
fi
if has pkg-config && has "${CXX%% *}"; then
    expect "the command in the head of embed.cpp" right \
        sh -c "cd examples/embed && $(typed examples/embed/embed.cpp)"
    expect "embed.cpp on a device" launched \
        sh -c "cd examples/embed && PIPEC_LIBCUDA=$STANDIN ./embed ../axpy.pipe"
    expect "pipec.h in C++11" "" sh -c "echo '#include <pipec.h>' |
        $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iprefix/include -fsyntax-only -xc++ -"
else
    skip "embed.cpp: pkg-config or a C++ compiler is not installed"
fi
# shellcheck disable=SC2086
expect "embed.c and libpipec.a" "" $CC -Wall -Wextra -Werror -Iprefix/include -o embed \
    examples/embed/embed.c prefix/lib/libpipec.a -lm -ldl -lpthread
expect "embed.c is short" "" test "$(wc -l <examples/embed/embed.c)" -le 80
expect "embed.cpp is short" "" test "$(wc -l <examples/embed/embed.cpp)" -le 60

# ---- docs/embedding.md: the blocks in C are one program, whose functions main.c calls

blocks c >embedding.c
blocks pipe >scale.pipe
blocks make >Makefile
blocks cmake >CMakeLists.txt
cp "$here/main.c" scale.c
CFLAGS="$CFLAGS -Wall -Wextra -Werror"
runs() {
    expect "$1: on the emulator" right "./$2" scale.pipe
    expect "$1: on a device" right env PIPEC_LIBCUDA="$STANDIN" "./$2" scale.pipe device
}
if has pkg-config; then
    expect "embedding.md: make" "" env MAKEFLAGS= make CC="${CC%% *}" scale
    runs "embedding.md: make" scale
    expect "the static's choices" "static T = 128, 2 choices" ./scale scale.pipe
    expect "the claim" "ensures Y[i, j] ~ a * X[i, j] within 1e-6" ./scale scale.pipe
else
    skip "embedding.md: pkg-config is not installed"
fi
if has cmake; then
    expect "embedding.md: cmake" "" cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$scratch/prefix"
    expect "embedding.md: cmake builds" "" cmake --build cmake
    runs "embedding.md: cmake" cmake/scale
else
    skip "embedding.md: cmake is not installed"
fi

# ---- binary interface: a change needs a new soname, an addition a new line in its list

soname=$(readelf -d "$B/libpipec.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
CC=cc sh "$root/tests/abi/list.sh" >list
expect "the interface is that of tests/abi/$soname.txt" "" diff "$root/tests/abi/$soname.txt" list
grep -o 'pipec_[a-z_]*(' list | tr -d '(' | sort >declared
nm -D --defined-only "$B/libpipec.so" | sed 's/.* //' | sort >exported
[ -n "$sanitizers" ] || expect "it exports what pipec.h declares" "" diff declared exported

line="$passed passed, $failed failed"
[ $skipped -gt 0 ] && line="$line, $skipped skipped"
echo "$line"
[ $failed -eq 0 ]
