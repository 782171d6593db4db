#!/bin/sh
# same.sh [OPTION..] COMMIT: compares the compiler of a commit with the present one. Builds the
# commit in a worktree of its own, and compiles the same programs with both: drawn ones (generate,
# matrix, graphs, adversary with each theme, mutants of the examples; from three fresh seeds), and
# all committed ones, each with every combination of statics. Exit code, diagnostics as text and as
# JSON, Code, PTX, manifest and report must be equal byte for byte, or differ by a cause that is
# listed in tools/same.causes. Prints the numbers and the first differences, and leaves the programs
# that differ, with both outputs, in build/same/differ. Exit code 1: some difference has no listed
# cause, or some cause no difference; 2: the comparison did not take place.
#   --count N         drawn programs, in all (100000)
#   --seeds "A B C"   seeds, instead of fresh ones
#   --combinations N  most combinations of a kernel; it says how many are left out (512)
#   --jobs N          processes (one for each processor)
#   --causes FILE     instead of tools/same.causes
#   --seconds N       of processor time, in which each combination must end (20)
#   --share N         one program in N is also compiled by the command line (50)
#   --files LIST      a file with the names of the programs, instead of all committed ones
#   --with FOLDER     its same-test and pipec, instead of those of COMMIT
#   --present FOLDER  the build that is compared (build/release)
set -u
count=100000 seeds='' combinations=512 jobs=$(nproc 2>/dev/null || echo 1) seconds=20 share=50
causes=tools/same.causes files='' with='' commit=''
build=${BUILD:-build} present=${BUILD:-build}/release

give_up() {
    echo "same: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --*) [ $# -gt 1 ] || give_up "$1 without a value" ;;
    esac
    case $1 in
    --count) count=$2 ;;
    --seeds) seeds=$2 ;;
    --combinations) combinations=$2 ;;
    --jobs) jobs=$2 ;;
    --causes) causes=$2 ;;
    --seconds) seconds=$2 ;;
    --share) share=$2 ;;
    --files) files=$2 ;;
    --with) with=$2 ;;
    --present) present=$2 ;;
    --*) give_up "there is no option $1" ;;
    *) commit=$1 && shift && continue ;;
    esac
    shift 2
done
[ -n "$commit$with" ] || give_up "which commit?"
[ -f "$causes" ] || give_up "$causes is not there"
out=$build/same
mkdir -p "$out"

# ---- the two compilers

# build_base: the commit in the worktree $out/tree, and same-test linked with its library
build_base() {
    id=$(git rev-parse --verify --quiet "$commit^{commit}") || give_up "$commit is no commit"
    echo "same: building $(git log -1 --format='%h %s' "$id")"
    git worktree prune
    if [ -e "$out/tree/.git" ]; then
        git -C "$out/tree" checkout --quiet --force --detach "$id"
    else
        git worktree add --quiet --force --detach "$out/tree" "$id"
    fi || give_up "no worktree of $commit"
    (unset MAKEFLAGS MAKEOVERRIDES MFLAGS MODE BUILD
        make -C "$out/tree" -j"$jobs" build/release/pipec build/release/libpipec.a) \
        >"$out/make.log" 2>&1 || give_up "$commit does not build, see $out/make.log"
    # the header of that commit, and the present files of same-test
    mkdir -p "$out/api/include" "$out/base"
    cp "$out/tree/include/pipec.h" "$out/api/include/"
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -I"$out/api" -I. -o "$out/base/same-test" \
        tests/same/*.c "$out/tree/build/release/libpipec.a" -lm -ldl -lpthread ||
        give_up "same-test needs more than include/pipec.h of $commit has"
    cp "$out/tree/build/release/pipec" "$out/base/"
    rm -f "$out/base/same.causes"
    [ ! -f "$out/tree/tools/same.causes" ] || cp "$out/tree/tools/same.causes" "$out/base/"
    base=$out/base
}

base=$with
[ -n "$with" ] || build_base
for folder in "$base" "$present"; do
    if [ ! -x "$folder/same-test" ] || [ ! -x "$folder/pipec" ]; then
        give_up "$folder has no same-test and pipec"
    fi
done

# ---- the programs

[ -n "$seeds" ] || seeds=$(od -An -N12 -tu4 /dev/urandom | tr -s ' ' ' ' | sed 's/^ //')
rm -rf "$out/drawn" "$out/docs" "$out/differ"
mkdir -p "$out/drawn" "$out/docs" "$out/differ/base" "$out/differ/present"
if [ "$count" -gt 0 ]; then
    # shellcheck disable=SC2086
    sh tests/same/draw.sh "$present" "$out/drawn" "$count" $seeds || give_up "no programs are drawn"
fi
# Blocks ```pipe of pages become $out/docs/PAGE/LINE.pipe; ```pipe,file NAME is a file beside them
blocks() {
    # shellcheck disable=SC2016
    awk -v out="$out/docs" '
        function enter(path) {
            sub(/[^\/]*$/, "", path)
            if (!(path in made)) system("mkdir -p \"" path "\"")
            made[path] = 1
        }
        /^```/ { if (file) close(file); inside = !inside; file = "" }
        /^```pipe/ && inside {
            file = out "/" FILENAME "/" FNR ".pipe"
            if (match($0, /,file [^ ]+/))
                file = out "/" FILENAME "/" substr($0, RSTART + 6, RLENGTH - 6)
            else print file
            enter(file)
            printf "" >file
            next
        }
        file { print >file }' "$@"
}
if [ -n "$files" ]; then
    cp "$files" "$out/committed.list" || give_up "$files cannot be read"
    : >"$out/docs.list"
else
    git ls-files '*.pipe' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done \
        >"$out/committed.list"
    # shellcheck disable=SC2046
    blocks $(git ls-files 'docs/*.md' README.md examples/README.md) >"$out/docs.list"
fi
set --
for file in "$out"/drawn/*.pack "$out/committed.list" "$out/docs.list"; do
    [ ! -s "$file" ] || set -- "$@" "$file"
done

# ---- what each compiler makes of them

# compile FOLDER OPTION..: the lines of same-test
compile() {
    folder=$1
    shift
    "$folder/same-test" --jobs "$jobs" --combinations "$combinations" --seconds "$seconds" \
        --pipec "$folder/pipec" --share "$share" "$@"
}

start=$(date +%s)
compile "$base" "$@" >"$out/base.lines" || give_up "the compiler of $commit$with does not run"
echo "same: $commit$with has compiled all in $(($(date +%s) - start)) s"
compile "$present" --backwards "$@" >"$out/present.lines" ||
    give_up "the present compiler does not run"
took=$(($(date +%s) - start))

# Lines of one of the two only: PROGRAM, COMBINATION
awk -F'\t' -v OFS='\t' '
    NR == FNR { base[$0]++; next }
    base[$0]-- > 0 { next }
    { print $1, $2 }
    END {
        for (line in base) {
            split(line, word, FS)
            if (base[line] > 0) print word[1], word[2]
        }
    }' \
    "$out/base.lines" "$out/present.lines" | LC_ALL=C sort -u | grep -v '^# left out' \
    >"$out/differ.lines"
cut -f1 "$out/differ.lines" | uniq >"$out/differ.names"

# ---- what differs, and why

# The rows that count: those that the commit had already are about older differences
touch "$out/older.causes"
[ ! -f "$base/same.causes" ] || cp "$base/same.causes" "$out/older.causes"
awk 'FILENAME == ARGV[1] { older[$0] = 1; next } !/^ *(#|$)/ && !($0 in older)' \
    "$out/older.causes" "$causes" >"$out/causes"
grep -v '^[a-z, ]* | .* | .' "$out/causes" &&
    give_up "these rows of $causes are not OUTPUTS | PATTERN | REASON"
rm -f "$out/older.causes"

# compile_again FOLDER INTO LINES: writes the outputs of these lines
compile_again() {
    folder=$1 into=$2 lines=$3
    shift 3
    mkdir -p "$into"
    compile "$folder" --only "$lines" --write "$into" "$@" >/dev/null
    # JSON in lines, and instructions without the numbers of registers and labels
    find "$into" -name json -exec sed -i 's/,"/,\n"/g' {} +
    find "$into" -name ptx | while read -r ptx; do
        sed -e 's/%\([a-z][a-z]*\)[0-9][0-9]*/%\1#/g' -e 's/\<L[0-9][0-9]*\>/L#/g' "$ptx" \
            >"${ptx%ptx}instructions"
    done
}

# batch LINES: classifies the programs of these lines; keeps the first that no cause explains
batch() {
    lines=$1
    shift
    rm -rf "$out/batch"
    compile_again "$base" "$out/batch/base" "$lines" "$@"
    compile_again "$present" "$out/batch/present" "$lines" "$@"
    (cd "$out/batch" && diff -rN -U0 base present) >"$out/batch.diff"
    cut -f1 "$lines" | uniq |
        awk -v used="$out/used" -v which="$out/which" -f tools/same.awk "$out/causes" - \
            "$out/batch.diff" >"$out/batch.verdicts"
    cat "$out/batch.verdicts" >>"$out/verdicts"
    sed -n 's/^unlisted //p' "$out/batch.verdicts" | head -n $((20 - $(wc -l <"$out/kept"))) |
        while read -r name; do
            flat=$(echo "$name" | tr / _)
            for side in base present; do
                [ ! -d "$out/batch/$side/$flat" ] ||
                    mv "$out/batch/$side/$flat" "$out/differ/$side/"
            done
            echo "$name" >>"$out/kept"
        done
}

rm -f "$out/verdicts" "$out/used" "$out/which" "$out/kept" "$out"/part.*
touch "$out/verdicts" "$out/used" "$out/which" "$out/kept"
# Of about 500 lines each, without cutting a program in two
awk -F'\t' -v out="$out/part." '
    $1 != last && (NR == 1 || n >= 500) { part++; n = 0 }
    { last = $1; n++; printf "%s\n", $0 >sprintf("%s%06d", out, part) }' "$out/differ.lines"
for part in "$out"/part.*; do
    [ ! -f "$part" ] || batch "$part" "$@"
done
rm -rf "$out"/part.* "$out/batch" "$out"/batch.*

# show NAME: the first lines of each difference. A crash, or a program that does not end, has no
# other outputs
show() {
    flat=$(echo "$1" | tr / _)
    echo "---- $1: $out/differ/present/$flat/program.pipe"
    if grep -hqE '^(crash|takes)' "$out"/differ/*/"$flat/exit"; then
        (cd "$out/differ" && diff -N -U0 "base/$flat/exit" "present/$flat/exit") |
            grep '^[-+][a-z]' | LC_ALL=C sort -ru
        return
    fi
    equal=yes
    for output in exit diagnostics json code ptx manifest report; do
        cmp -s "$out/differ/base/$flat/$output" "$out/differ/present/$flat/$output" && continue
        equal=
        (cd "$out/differ" && diff -N -U1 "base/$flat/$output" "present/$flat/$output") |
            cut -c1-200 | head -n 12
    done
    [ -z "$equal" ] || echo "equal when it is compiled again: what differs depends on the time," \
        "on addresses, or on what was compiled before"
    grep -F "$1	" "$out/differ.lines" >"$out/one.lines"
    shift
    compile_again "$present" "$out/again" "$out/one.lines" "$@"
    diff -rq "$out/again/$flat" "$out/differ/present/$flat" >/dev/null ||
        echo "the present compiler differs from itself when it is called twice"
    rm -rf "$out/again" "$out/one.lines"
}

if [ -s "$out/kept" ]; then
    echo "same: the first differences (all outputs: diff -r $out/differ/base $out/differ/present)"
    head -n 5 "$out/kept" | while read -r name; do show "$name" "$@"; done
fi

# ---- the numbers

programs=$(grep -v '^#' "$out/present.lines" | cut -f1 | uniq | wc -l)
all=$(grep -vc '^#' "$out/present.lines")
left=$(awk -F'\t' '/^# left out/ { n += $3 } END { printf "%.0f", n }' "$out/present.lines")
broken=$(awk -F'\t' '$3 ~ /^(crash|takes)/' "$out/present.lines" | wc -l)
listed=$(grep -c '^listed' "$out/verdicts")
unlisted=$(grep -c '^unlisted' "$out/verdicts")
unused=$(awk 'FILENAME == ARGV[1] { used[$1] = $2; next } !(FNR in used)' "$out/used" "$out/causes")
drawn=0
for pack in "$out"/drawn/*.pack; do
    [ ! -f "$pack" ] || drawn=$((drawn + $(grep -c '^= [^ ]* [0-9]*$' "$pack")))
done
echo "same: $programs programs: $drawn drawn (seeds $seeds)," \
    "$(wc -l <"$out/committed.list") committed, $(wc -l <"$out/docs.list") in pages"
echo "same: $all combinations of kernels and statics, $left more left out" \
    "(of kernels with more than $combinations); $(wc -l <"$out/differ.lines") differ"
[ "$broken" -eq 0 ] || echo "same: the present compiler crashes on, or does not end with, $broken" \
    "of them"
echo "same: $((programs - listed - unlisted)) equal, $listed differ by a listed cause," \
    "$unlisted differ otherwise; $took s, $((2 * programs / (took > 0 ? took : 1)))" \
    "compiled in a second"
sort "$out/which" | uniq -c | while read -r n output; do
    echo "same: $n of them in the output $output"
done
awk 'FILENAME == ARGV[1] { n[$1] += $2; next }
    FNR in n { print "same: " n[FNR] " by: " $0 }' "$out/used" "$out/causes"
[ -z "$unused" ] || echo "$unused" | sed 's/^/same: no difference has this cause: /'
[ "$unlisted" -eq 0 ] && [ -z "$unused" ]
