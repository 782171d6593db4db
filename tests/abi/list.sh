#!/bin/sh
# list.sh [--write]: the binary interface of the library as pipec.h declares it: sizes, offsets,
# values and functions. --write: as the list of its soname, libpipec.so.N.txt. As long as the soname
# is the same, lines may be added, and structures that begin with their size, and PipecArgument, may
# grow: a new member lies behind the old size. Every other change of a line needs a new soname
# (Makefile).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ "${1:-}" = --write ]; then
    soname=$(sed -n 's/.*-soname,\(libpipec[.a-z0-9]*\).*/\1/p' "$root/Makefile")
    sh "$0" >"$scratch/list"
    mv "$scratch/list" "$here/$soname.txt"
    exit 0
fi
{
    cat <<'TEXT'
#include <stddef.h>
#include <stdio.h>
#include "include/pipec.h"
#define SIZE(type) printf("sizeof %s = %zu\n", #type, sizeof(type));
#define MEMBER(type, name)                                                                         \
    printf("%s.%s at %zu, %zu\n", #type, #name, offsetof(type, name), sizeof(((type *)0)->name));
#define VALUE(name) printf("%s = %d\n", #name, (int)(name));
int main(void) {
TEXT
    ${CC:-cc} -E -P -xc "$root/include/pipec.h" | awk -f "$here/list.awk"
    echo '}'
} >"$scratch/list.c"
# shellcheck disable=SC2086
${CC:-cc} -I"$root" -o "$scratch/list" "$scratch/list.c"
"$scratch/list"
