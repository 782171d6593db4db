#!/bin/sh
# rules.sh [CODE.. | places | FILE:LINE..]: would a lost rule be noticed? One build in which the environment can silence a row of
# util/errors.def; for each row of the front end (P0001 to P0599), or those given, the suites `parse` and `check` run without it and
# must fail. Prints what nobody misses. `places`: not each row, but each call of the front end that reports something.
# Takes minutes, and is no part of `make test`.
set -u
BUILD=${BUILD:-build/rules}
driver=$BUILD/release/tests-driver
make -j2 BUILD="$BUILD" CFLAGS=-DPIPEC_WITHOUT "$driver" >/dev/null 2>&1 || exit 2
"$driver" parse check >/dev/null || { echo "rules: the suites fail with all rules in place"; exit 2; }
[ "${1-}" != places ] || set -- $(grep -nE 'diag_(at|plain)\(' parser/*.[cy] lexer/*.l check/*.c codegen/*.c | cut -d: -f1,2)
[ $# -gt 0 ] || set -- $(sed -n 's/^DIAG(\(0[0-5][0-9][0-9]\),.*/P\1/p' util/errors.def)
noticed=0 missed=0
for code; do
    if PIPEC_WITHOUT=$code "$driver" parse check >/dev/null 2>&1; then
        echo "rules: nothing fails without $code"
        missed=$((missed + 1))
    else
        noticed=$((noticed + 1))
    fi
done
echo "$noticed passed, $missed failed"
[ $missed -eq 0 ]
