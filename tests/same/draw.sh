#!/bin/sh
# draw.sh BUILD_DIR FOLDER COUNT SEED..: writes COUNT drawn programs for same-test into files of
# FOLDER, of each kind a share, from each seed the same number.
set -u
B=$1 folder=$2 count=$3
shift 3
numbers=$# seeds=$*

# draw NAME PERCENT COMMAND..
draw() {
    pack=$folder/$1.pack each=$(((count * $2 / 100 + numbers - 1) / numbers))
    command=$B/$3
    shift 3
    for seed in $seeds; do
        "$command" "$@" --draw --seed "$((seed * 1000000))" --count "$each" || exit 2
    done >"$pack"
}

draw generate 15 generate-test
draw reductions 5 generate-test --reductions
draw matrix 15 matrix-test
draw graphs 20 graphs-test
draw pieces 5 graphs-test --pieces
draw adversary 20 adversary-test
draw themes 15 adversary-test --theme each
draw mutants 5 mutants-test
