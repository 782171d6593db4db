#!/bin/sh
# sums.sh BUILD_DIR [--bless]: what the compiler makes of 200 drawn programs, with a fixed seed, and
# of examples/ and kernels/ with the first values of their statics, has the hashes in sums.txt. They
# do not depend on the machine. --bless replaces them by the present ones.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
wanted=tests/same/sums.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
LC_ALL=C
export LC_ALL
sh tests/same/draw.sh "$B" "$scratch" 200 1 || exit 2
{
    echo "# Hashes of tests/same/sums.sh, renewed by \`make bless\`"
    echo "# program text diagnostics code ptx manifest report"
    "$B/same-test" --sums --combinations 1 "$scratch"/*.pack examples/*.pipe kernels/*.pipe ||
        exit 2
} >"$scratch/sums"
[ "${2:-}" != --bless ] || cp "$scratch/sums" $wanted

# Which hashes of which program differ
awk '
    FILENAME == ARGV[1] { if (!/^#/) row[$1] = $0; next }
    /^# program/ { for (i = 2; i <= NF; i++) name[i - 1] = $i }
    /^#/ { next }
    {
        seen[$1] = 1
        split(row[$1], old)
        text = ""
        for (i = 2; i <= NF; i++) if (old[i] != $i) text = text (text ? ", " : "") name[i]
        if (!($1 in row)) text = "no line in " ARGV[1]
        else if (NF != 7) text = "it has no hashes: " $0
        if (text) { failed++; print $1 ": " text } else passed++
    }
    END {
        for (program in row)
            if (!(program in seen)) { failed++; print program ": it is there no longer" }
        if (failed) {
            print "These outputs differ from those before. To see how, against the last commit:"
            print "    make same BASE=HEAD SAME=\"--count 200 --seeds 1\""
            print "If they are meant: make bless"
        }
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0
    }' $wanted "$scratch/sums"
