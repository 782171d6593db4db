#!/bin/sh
# limits.sh [NAME | FILE:NAME]..: tests that a reached limit is never taken as a proof. In a copy of
# the sources each limit of an analysis, or each given one, is set to VALUE (1), each definition of
# a name by itself; then no program of the tests that is refused or undecided may be accepted. JOBS
# (2) processes have a copy each. The last line has the number of limits, and of those that hold.
# Takes ten minutes; not part of `make test`.
set -u
VALUE=${VALUE:-1}
JOBS=${JOBS:-2}
tree=${BUILD:-build}/limits
rm -f "$tree"/*.wrong

build() { # COPY
    make -s -C "$1" -j2 CFLAGS=-O1 BUILD=build build/release/pipec >"$1.log" 2>&1
}
refused() { # COPY FILE..: those that are refused or undecided
    copy=$1
    shift
    for file; do "$copy/build/release/pipec" check "$file" >/dev/null 2>&1 || echo "$file"; done
}

# try COPY FILE:NAME: prints a line unless the limit holds
try() {
    file=${2%:*} wrong=
    sed -E "s/^(#define ${2#*:})[ \t]+[0-9]+/\1 $VALUE/" "$file" >"$1/$file"
    if build "$1"; then
        while read -r program; do
            timeout 60 "$1/build/release/pipec" check "$program" >/dev/null 2>&1 &&
                wrong="$wrong $program"
        done <"$tree/refused"
        [ -z "$wrong" ] || echo "limits: $2 is taken for a proof:$wrong"
    else
        echo "limits: it does not build with $2 as $VALUE"
    fi
    cp "$file" "$1/$file"
}

# limits [NAME | FILE:NAME]..: FILE:NAME of each definition of a limit, or of the given ones.
# ROW_STEPS and WORDS_A_STEP are costs, ELEMENT_MOST is a number of the language
limits() {
    words='MOST|STEPS|WORK|NODES|DEPTH|FOLLOWED|TERMS|LOOPS|TRIPS'
    # shellcheck disable=SC2046
    grep -HoE "^#define [A-Z_]+_($words) +[0-9]" \
        $(find check flow derive algebra -name '*.[ch]' | LC_ALL=C sort) |
        sed -E 's/:#define ([A-Z_]+).*/:\1/' |
        grep -v -E ':(ROW_STEPS|ELEMENT_MOST)$' >"$tree/names"
    [ $# -gt 0 ] || set -- ""
    for wanted; do
        case $wanted in
        "") cat "$tree/names" ;;
        *:*) echo "$wanted" ;;
        *) grep ":$wanted\$" "$tree/names" ;;
        esac
    done
}

# Files that did not change keep their times, so that they are not compiled again
for job in $(seq "$JOBS"); do
    find . \( -path ./build -o -path ./.git -o -path ./tests \) -prune -o -type f -print |
        while read -r file; do
            cmp -s "$file" "$tree/$job/$file" && continue
            mkdir -p "$tree/$job/${file%/*}"
            cp "$file" "$tree/$job/$file"
        done
    (cd "$tree/$job" && find . -path ./build -prune -o -type f -print) |
        while read -r file; do [ -e "$file" ] || rm "$tree/$job/$file"; done
done
build "$tree/1" || { cat "$tree/1.log"; echo "limits: it does not build"; exit 2; }
refused "$tree/1" tests/check/*/*.pipe tests/known/*.pipe >"$tree/refused"
limits "$@" >"$tree/chosen"
for job in $(seq "$JOBS"); do
    awk -v jobs="$JOBS" -v job="$job" 'NR % jobs == job % jobs' "$tree/chosen" |
        while read -r limit; do try "$tree/$job" "$limit"; done >"$tree/$job.wrong" &
done
wait
cat "$tree"/*.wrong
count=$(wc -l <"$tree/chosen") hold=$(($(wc -l <"$tree/chosen") - $(cat "$tree"/*.wrong | wc -l)))
echo "$count limits, $hold hold"
[ "$count" -eq "$hold" ]
