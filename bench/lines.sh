#!/bin/bash
# lines.sh [BUILD_DIR] [RUNS]: time of `pipec check` for long files: CPU time including the start of
# the process, the shortest of RUNS (7) runs, because other processes disturb the others.
#   many kernels   those of examples/, tests/run and the accepted ones of tests/check that do not
#                  depend on the rest of their file, repeated under new names
#   one kernel     five roles with long bodies: copies, loops, conditions, stages held and moved,
#                  calls, register tiles
# Needs no GPU. This is no test, because the time depends on the machine.
set -eu
cd "$(dirname "$0")/.."
pipec=${1:-build/release}/pipec
runs=${2:-7}
[ -x "$pipec" ] || { echo "lines: $pipec is not built: make" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Kernels of other files; many N: at least N lines
collect() {
    for file in examples/*.pipe tests/run/*.pipe tests/check/*/*-ok.pipe; do
        grep -qE '^(const|static|fn) |^//> (check|build)|sm_(80|89|90|100a|120a) ' "$file" ||
            echo "$file"
    done >"$scratch/names"
    while read -r file; do
        "$pipec" check "$file" 2>/dev/null && cat "$file"
    done <"$scratch/names" | grep -v '^//' >"$scratch/corpus"
}
many() {
    awk -v most="$1" '
        { line[NR] = $0 }
        END {
            while (n < most)
                for (i = 1; i <= NR && (n < most || depth > 0); i++) {
                    text = line[i]
                    if (depth == 0) sub(/^kernel [A-Za-z0-9_]+/, "&_" n, text)
                    print text
                    n++
                    depth += gsub(/{/, "{", text) - gsub(/}/, "}", text)
                }
        }' "$scratch/corpus"
}

# one N: a kernel of N lines
one() {
    awk -v most="$1" 'BEGIN {
        print "fn soft(x: f32) -> f32 { return x > 0 ? x : 0.1 * x; }"
        print "fn add(borrow s: stage rows, inout y: f32[C]) { y[i] += s.x[i]; }"
        print "kernel one(X: f32[M, N], S: f32[M], out Y: f32[M, N], a: f32) for sm_90a {"
        print "    const T = 128;\n    grid persistent (m: M);\n    range kt = 0 .. ceil(N, T);"
        print "    pipe rows[4] load -> work { x: f32[T]; }"
        print "    pipe pairs[3] load -> twice { x: f32[2, T]; }"
        print "    pipe out1[2] work -> store { y: f32[T]; }"
        print "    pipe out2[2] twice -> drain { y: f32[T]; }"
        pieces = int((most - 30) / 27)
        print "    role load: 1 warp { for m in grid {"
        for (i = 0; i < pieces; i++) {
            print "        for k in kt {"
            print "            produce <rows> as s { s.x[i] = X[m, k*T + i]; }"
            print "        }"
            print "        produce <rows> as s {"
            print "            s.x[i] = X[m, " i "*T + i];"
            print "        }"
            print "        produce <pairs> as s {"
            print "            s.x[r, i] = X[m + r, " i "*T + i];"
            print "        }"
        }
        print "    } }"
        print "    role work: 4 warps { for m in grid {"
        print "        var y: f32[T] = 0;"
        print "        let scale = S[m] * a;"
        for (i = 0; i < pieces; i++) {
            print "        for k in kt {"
            print "            consume <rows> as s { y[i] = soft(s.x[i] + " i "); }"
            print "        }"
            if (i % 3 == 0) {
                print "        let s" i " = consume <rows>;"
                print "        add(s" i ", y);"
                print "        release s" i ";"
            }
            if (i % 3 == 1) {
                print "        consume <rows> as s {"
                print "            y[i] += scale * s.x[i];"
                print "        }"
            }
            if (i % 3 == 2) {
                print "        var v" i " = consume <rows>;"
                print "        if m > " i " { y[i] += v" i ".x[i]; } else { y[i] = v" i ".x[i]; }"
                print "        release v" i ";"
            }
            print "        produce <out1> as o {\n            o.y[i] = y[i];\n        }"
        }
        print "    } }\n    role twice: 2 warps { for m in grid {\n        var z: f32[T] = 0;"
        for (i = 0; i < pieces; i++) {
            print "        consume <pairs> as s {"
            print "            z[i] += s.x[0, i] * s.x[1, i];"
            print "        }"
            print "        produce <out2> as o {\n            o.y[i] = z[i];\n        }"
        }
        print "    } }\n    role store: 1 warp { for m in grid {"
        for (i = 0; i < pieces; i++) {
            print "        consume <out1> as o {"
            print "            Y[m, " 2 * i "*T + i] = o.y[i];"
            print "        }"
        }
        print "    } }\n    role drain: 1 warp { for m in grid {"
        for (i = 0; i < pieces; i++) {
            print "        consume <out2> as o {"
            print "            Y[m, " 2 * i + 1 "*T + i] = o.y[i];"
            print "        }"
        }
        print "    } }\n}"
    }'
}

# time WHAT FILE: prints a row of the table
time_check() {
    local code=0 note=
    "$pipec" check "$2" >"$scratch/messages" 2>&1 || code=$?
    if [ $code -ne 0 ] && [ $code -ne 4 ]; then
        head -n 12 "$scratch/messages" >&2
        echo "lines: $1 is refused" >&2
        exit 1
    fi
    [ $code -eq 0 ] || note="  incomplete: $(grep -c '^incomplete' "$scratch/messages") places"
    TIMEFORMAT='%3U %3S'
    best=$(for run in $(seq "$runs"); do
        { time "$pipec" check "$2" >/dev/null 2>&1; } 2>&1
    done | awk '{ took = $1 + $2; if (NR == 1 || took < best) best = took } END { print best }')
    lines=$(wc -l <"$2")
    echo "$1 $lines $best" | awk -v note="$note" '{
        printf "%-14s %8d lines %8.0f ms %6.2f us per line%s\n",
            $1 " " $2, $3, $4 * 1000, $4 * 1e6 / $3, note }'
}

collect
for lines in 1000 3000 10000 30000 100000; do
    many $lines >"$scratch/many.pipe"
    time_check "many kernels" "$scratch/many.pipe"
done
for lines in 1000 3000 10000 30000 100000; do
    one $lines >"$scratch/one.pipe"
    time_check "one kernel" "$scratch/one.pipe"
done
