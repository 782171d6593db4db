#!/bin/sh
# run.sh BUILD_DIR: the tests of the Python package as `make python` has built it, with Debian's own
# python3 unless PYTHON names another. They need NumPy and pytest; without these, or without
# Python's headers, they are skipped. The last line is "N passed, N failed[, N skipped]".
set -u
B=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-/usr/bin/python3}

skip() {
    echo "python: SKIPPED, $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
[ -f "$B/python/pipec/_pipec.abi3.so" ] || skip "the headers of Python are missing (python3-dev)"
"$python" -c 'import numpy, pytest' 2>/dev/null ||
    skip "$python has no NumPy or no pytest (python3-numpy, python3-pytest)"

# the runtime of the sanitizers comes before all others
case $B in
*/asan) LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 ;;
*) LD_PRELOAD= ASAN_OPTIONS= ;;
esac
PYTHONPATH=$B/python
PIPEC_LIBCUDA=$B/standin/libcuda.so.1
PIPEC_PTXAS= # nothing is kept in the user's cache
PIPEC_BUILD=$B
PYTHONDONTWRITEBYTECODE=1
export LD_PRELOAD ASAN_OPTIONS PYTHONPATH PIPEC_LIBCUDA PIPEC_PTXAS PIPEC_BUILD \
    PYTHONDONTWRITEBYTECODE
exec "$python" -m pytest -q --capture=sys -p no:cacheprovider python/tests
