#!/bin/sh
# run.sh WHEEL [TEST..]: the tests of the Python package that need a Hopper GPU, PyTorch and pytest,
# from a wheel (`make wheel`, also of another machine), then the host costs of a call, direct and in
# compiled code. The tests of Triton, CuPy and JAX are skipped where these are missing. PYTHON:
# another python3.
set -eu
wheel=$(realpath "$1")
shift
cd "$(dirname "$0")"
python=${PYTHON:-python3}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
"$python" -m pip install -q --no-index --no-deps --target "$site" "$wheel"
PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
"$python" -m pytest -q -p no:cacheprovider "${@:-.}"
[ $# -gt 0 ] || { "$python" costs.py && "$python" compiled.py; }
