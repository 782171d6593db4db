"""Kernels on NumPy arrays, without a GPU: they run on the emulator. The elements of bf16
are unsigned integers with their bits, or of ml_dtypes if that is installed.

    python examples/torch/emulated.py
"""

import pathlib
import sys

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit("emulated.py needs NumPy: apt-get install python3-numpy, or pip install numpy")

import pipec

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]


def largest(error):
    return float(np.abs(error).max())


def main():
    draw = np.random.default_rng(0)

    # a tensor that is updated in place, and a scalar
    axpy = pipec.load(EXAMPLES / "axpy.pipe")
    X = draw.standard_normal(10007).astype(np.float32)
    Y = np.ones_like(X)
    axpy(X, Y, 2.5)
    error = Y - (2.5 * X + 1)
    print(f"axpy: largest error {largest(error):.1e}")
    assert largest(error) < 1e-5

    # an output that the call allocates: its extents are those of A and B
    gemm = pipec.load(EXAMPLES / "gemm.pipe")
    A, B = (pipec.bf16(draw.standard_normal(shape)) for shape in ((100, 72), (136, 72)))
    C = gemm(A, B)
    error = pipec.f32(C) - pipec.f32(A) @ pipec.f32(B).T
    print(f"gemm: {C.shape[0]} x {C.shape[1]}, largest error {largest(error):.1e}")
    assert largest(error) < 0.2

    # another tile, and the comparison with `ensures` that `pipec run` makes
    print(f"gemm with BN = 128: {gemm.using(BN=128).verify(A, B)}")

    # a kernel with another static: D is an extent that is compiled in
    rmsnorm = pipec.load(EXAMPLES / "rmsnorm.pipe", D=256)
    rows, weights = pipec.bf16(draw.standard_normal((33, 256))), pipec.bf16(np.ones(256))
    print(f"rmsnorm: {rmsnorm.verify(rows, weights, 1e-6)}")

    # what does not fit is an exception that names the parameter
    try:
        gemm(A, B[:, :64])
    except pipec.Unusable as error:
        print(f"refused: {error.diagnostics[0].message}")


if __name__ == "__main__":
    main()
