#!/bin/sh
# sh tests/cuda/compile.sh [NAME..]: compiles each NAME.cu three times, as it is, with -DFAULT=1 and
# with -DFAULT=2, to NAME.ptx, NAME.fault1.ptx and NAME.fault2.ptx, which are committed: the tests
# need no nvcc. Comments, paths of the machine and lines of headers are removed from the texts; the
# lines of the sources (.loc) are kept. NVCC names another nvcc than that in PATH or in
# /usr/local/cuda.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:/usr/local/cuda/bin
nvcc=${NVCC:-nvcc}
[ $# -gt 0 ] || set -- *.cu
for source; do
    name=${source%.cu}
    for fault in 0 1 2; do
        out=$name.fault$fault.ptx
        [ $fault != 0 ] || out=$name.ptx
        "$nvcc" -ptx -arch=sm_90a -O3 -std=c++17 -lineinfo --fmad=false -DFAULT=$fault \
            "$name.cu" -o - |
            sed -e '/^[[:space:]]*\/\//d' -e 's/[[:space:]]*\/\/.*//' -e '/^[[:space:]]*$/d' \
                -e '/^[[:space:]]*\.section/,/}/d' -e '/^\.global .*_INTERNAL_/d' \
                -e '/^[[:space:]]*\.\(loc\|file\)[[:space:]]*\([2-9]\|1[0-9]\)/d' \
                -e 's/^\([[:space:]]*\.file[[:space:]]*1\) .*/\1 "'"$name.cu"'"/' \
                -e 's/^\([[:space:]]*\.loc[[:space:]][^,]*\),.*/\1/' >"$out"
        ptxas -arch=sm_90a "$out" -o /dev/null
    done
done
