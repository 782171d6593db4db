#!/bin/sh
# run.sh BUILD_DIR: the benchmarks on the stand-ins for the driver, cuBLASLt and NVML: their output,
# refusals and exit codes. The measured times mean nothing. One line per case, then "N passed, N
# failed".
set -u
B=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PIPEC_LIBCUDA=$B/standin/libcuda.so.1
LD_LIBRARY_PATH=$B/standin
ASAN_OPTIONS=detect_leaks=0
export PIPEC_LIBCUDA LD_LIBRARY_PATH ASAN_OPTIONS
passed=0 failed=0

# check NAME CODE WORDS_FOR_THE_STANDIN PATTERN COMMAND..: checks the exit code and a line of the
# output
check() {
    name=$1 code=$2 words=$3 pattern=$4
    shift 4
    PIPEC_STANDIN=$words "$@" >"$scratch/out" 2>&1 </dev/null
    got=$?
    if [ $got -eq "$code" ] && grep -q -- "$pattern" "$scratch/out"; then
        echo "pass  $name"
        passed=$((passed + 1))
    else
        echo "FAIL  $name: exit code $got, wanted $code and \"$pattern\""
        sed 's/^/      | /' "$scratch/out" | head -n 30
        failed=$((failed + 1))
    fi
}

# expect NAME CODE WORDS_FOR_THE_STANDIN PATTERN OPTIONS..: of bench/gemm
expect() {
    name=$1 code=$2 words=$3 pattern=$4
    shift 4
    check "$name" "$code" "$words" "$pattern" "$B/bench/gemm" "$@"
}

# memory NAME CODE WORDS_FOR_THE_STANDIN PATTERN OPTIONS..: of bench/memory
memory() {
    name=$1 code=$2 words=$3 pattern=$4
    shift 4
    check "memory: $name" "$code" "$words" "$pattern" "$B/bench/memory" "$@"
}

expect "variants side by side, in bursts, two runs" 0 , \
    '^| 72x136x64, examples/gemm.pipe:BN=128,STAGES=5 |.*held |$' --quick --runs 2 \
    --shape 72x136x64 --try examples/gemm.pipe --try examples/gemm.pipe:BN=128,STAGES=5
expect "clock and power are read" 0 , '^| 64x64x64 | examples/gemm.pipe |.*| 1500 | 600 | ' \
    --quick --shape 64x64x64
expect "e4m3 with scales, sustained, plotted" 0 e4m3 '^| 64x72x128 e4m3 sustained |.*held |$' \
    --quick \
    --shape 64x72x128 --type e4m3 --sustained --plot "$scratch/plot.svg"
grep -q '^</svg>$' "$scratch/plot.svg" && grep -q '64x72x128' "$scratch/plot.svg" || {
    echo "FAIL  the plot"
    failed=$((failed + 1))
}
expect "what computes nothing is wrong" 1 idle 'examples/gemm.pipe is WRONG: C\[0, 0\] is -*nan' \
    --quick --shape 64x64x64
expect "a variant that does not compile leaves the others" 2 , \
    '^| 64x64x64, examples/gemm.pipe |.*held |$' --quick \
    --shape 64x64x64 --try nowhere.pipe --try examples/gemm.pipe
expect "other parameters" 2 , 'has parameters other than' --quick --shape 64x64x64 \
    --try examples/gemm_bias_gelu.pipe
expect "a fault names who ran" 2 fault=700 'CUDA_ERROR_ILLEGAL_ADDRESS (700)' --quick \
    --shape 64x64x64
expect "PTX that the driver rejects" 3 jit 'examples/gemm.pipe: ' --quick --shape 64x64x64
expect "no GPU" 2 init=100 'bench: needs a GPU: ' --row 8192
expect "no memory" 2 memory=1000 'CUDA_ERROR_OUT_OF_MEMORY' --row 8192
expect "the rows" 0 , '^fp8 .*e4m3' --list
expect "no such row" 2 , 'there is no row nix' --row nix
expect "a shape that is none" 2 , 'takes MxNxK' --shape 12x
expect "a kernel for no row" 2 , '--try needs' --try examples/gemm.pipe

number='[0-9][0-9.]*'
memory "a limit" 1 , "^| cast-28 | limit_cast, blocks of 256 | $number | $number | 1.000 | .* %" \
    --quick --row cast-28
memory "a limit in graphs" 1 , "^| axpy-20 | limit_axpy, blocks of 128 | $number | $number | " \
    --quick --row axpy-20
memory "what computes nothing is wrong" 1 , 'softmax.pipe:W=8 is WRONG: Y.0, 0. is -*nan' --quick \
    --row softmax-8192
memory "a kernel that does not compile" 2 , '^| softmax-512 | nowhere.pipe | failed |' --quick \
    --row softmax-512 --try nowhere.pipe
memory "kernels side by side" 1 , '^| colsum-8192 | nowhere.pipe | failed |' --quick \
    --row colsum-8192 --try bench/rows/colsum.pipe:W=4 --try nowhere.pipe
grep -q '^| colsum-8192 | bench/rows/colsum.pipe:W=4 | failed |' "$scratch/out" || {
    echo "FAIL  memory: the first of two kernels"
    failed=$((failed + 1))
}
memory "a loss" 1 , \
    'cross_entropy.pipe is WRONG: Y.0, 0. is -*nan, not 1[0-9]' --quick --row cross-entropy
memory "other parameters" 2 , 'other than X, Y, G, B, L, a and eps' --quick --row cast-28 \
    --try examples/gemm.pipe
memory "a limit that does not load" 2 jit 'bench: bench/limits.ptx: CUDA_ERROR_INVALID_PTX' --quick
memory "no GPU" 2 init=100 'bench: needs a GPU: ' --row cast-28
memory "no memory" 2 memory=1000 'CUDA_ERROR_OUT_OF_MEMORY' --row cast-28
memory "the rows" 0 , '^rowsum-8192 .*rowsum.pipe$' --list
memory "no such row" 2 , 'there is no row nix' --row nix
memory "a kernel for no row" 2 , '--try needs --row' --try bench/rows/cast.pipe
memory "rounds out of range" 2 , 'from 1 to 99, not 100' --rounds 100
memory "an unknown option" 2 , 'unknown option or missing value: --nix' --nix
cat >"$scratch/rows.md" <<END
| row | kernel | us | GB/s | of limit | spread |
|---|---|---|---|---|---|
| axpy-28 | bench/rows/axpy.pipe | failed | | | |
| cast-28 | bench/rows/cast.pipe | 4.00 | 400 | 0.970 | 1.0 % |
| cast-28 | limit_cast, blocks of 256 | 3.88 | 412 | 1.000 | 1.0 % |
END
cat >"$scratch/peers.md" <<END
| cast-28 | torch copy_ | 5.00 | 323 | | 1.0 % |
| cast-28 | torch.compile copy_ | 4.10 | 391 | | 1.0 % |
| axpy-28 | Triton, 1 x 4 warps | failed | | | |
END
check "the plot of the tables" 0 , '^plot: ' "$B/bench/memory_plot" "$scratch/rows.svg" \
    "$scratch/rows.md" "$scratch/peers.md"
grep -q '>391<' "$scratch/rows.svg" && ! grep -q '>323<' "$scratch/rows.svg" || {
    echo "FAIL  the plot of the tables has the fastest of each"
    failed=$((failed + 1))
}
check "a plot of no rows" 2 , 'has no rows' "$B/bench/memory_plot" "$scratch/none.svg" /dev/null
check "a plot of no table" 2 , 'cannot be read' \
    "$B/bench/memory_plot" "$scratch/none.svg" nowhere.md
if python3 -c '' 2>/dev/null; then
    check "peers: the same rows" 0 , '^rmsnorm-512 RMSNORM 262144 512 1$' \
        python3 bench/rows_peers.py --list
    check "peers: our ratio" 0 , '^| cast-28 | 400 | 320, torch copy_ | 1.250 | 0.970 |$' \
        python3 -c 'import sys; sys.path.insert(0, "bench")
sys.dont_write_bytecode = True
import rows_peers; rows_peers.compare(sys.argv[1], {"cast-28": ("torch copy_", 320)})' \
        "$scratch/rows.md"
    # the model chooses as docs/choice.md says
    check "the model's choice for measured sizes" 0 , '^all: regret median' \
        python3 bench/regret.py "$B/pipec" --limits=1.03,1.25,0.12
    every=5
    case $B in *asan) every=50 ;; esac
    check "and for those of kernels/" 0 , '^all: regret median' \
        python3 bench/regret.py "$B/pipec" --file bench/linear.jsonl --every $every \
        --limits=1.02,1.35,0.12
    check "and for rows, of any alignment" 0 , '^all: regret median' \
        python3 bench/regret.py "$B/pipec" --file bench/rows.jsonl --limits=1.03,1.35,0.10
    # what the correction is fitted to
    check "facts of a candidate" 0 '' '^0.large: BN=128 CM=1 CN=1.[0-9.]*\(.[0-9.e+-]*\)\{26\}$' \
        sh -c 'echo M=512 N=1024 K=768 | "$1/bench/facts" kernels/linear.pipe h200' sh "$B"
    check "facts: words that are no extents" 2 '' 'no extents of it' \
        sh -c 'echo five | "$1/bench/facts" kernels/linear.pipe h200' sh "$B"
    check "facts: no such machine" 2 '' 'h200|h100' "$B/bench/facts" kernels/linear.pipe h300
    check "facts: no such file" 2 '' 'no variant of it' "$B/bench/facts" none.pipe h200
    check "times: what is written is what is read" 0 '' '^True$' python3 -c '
import io, sys; sys.path.insert(0, "bench"); sys.dont_write_bytecode = True
import times
rows = times.read("bench/linear.jsonl")[:40]
with open(sys.argv[1], "w", encoding="utf-8") as out: times.write(rows, out)
print(all(a["times"] == b["times"] for a, b in zip(rows, times.read(sys.argv[1]))))' \
        "$scratch/times.jsonl"
    check "a limit of the model that is not met" 1 , '^all: regret median' \
        python3 bench/regret.py "$B/pipec" --limits=1.00,1.00,0.01
    check "peers: no such row" 2 , 'there is no row nix' python3 bench/rows_peers.py --row nix
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
