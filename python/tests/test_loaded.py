"""Variants that calls load, and those that are loaded before them, on the stand-in for the driver."""

import io
import os
import resource
import subprocess
import sys

import fakes
import numpy as np
import pytest
from fakes import WithExchange
from test_kernels import Tensor

import pipec
import pipec.kernels as k

# A length has one value of R in whose domain it is
RESIDUES = """kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {
    static R = 1 in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    requires N % 11 == R;
    grid (t: R + 1);
    role r: 4 warps {
        for t in grid {
            for p in 0 .. ceil(N, 128 * (R + 1)) {
                Y[(p*(R + 1) + t)*128 + i] = X[(p*(R + 1) + t)*128 + i] for i in 0 .. 128;
            }
        }
    }
}"""

ROWS = """kernel copy(X: f32[M, D], out Y: f32[M, D]) for sm_90a {
    static D = 64;
    grid (m: M, d: ceil(D, 32));
    role r: 1 warp {
        for (m, d) in grid { Y[m, d*32 + i] = X[m, d*32 + i] for i in 0 .. 32; }
    }
}"""


def resident():
    """Bytes of the memory of this process"""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def call(kernel, N):
    kernel(WithExchange(np.zeros(N, np.float32)))


def counts(kernel):
    info = kernel.info()
    return info["variants_loaded"], info["variants_captured"], info["variants_most"]


def test_at_most_so_many_stay_loaded():
    kernel = pipec.compile(RESIDUES, loaded_most=3)
    before = fakes.standin().modules
    for N in range(11, 220):
        if N % 11 != 0:
            call(kernel, N)
            assert fakes.standin().modules - before <= 3
    assert counts(kernel) == (3, 0, 3)
    assert fakes.standin().stale == 0
    with pytest.raises(ValueError, match="loaded_most is -1"):
        pipec.compile(RESIDUES, loaded_most=-1)


def test_graphs_keep_what_they_captured():
    kernel = pipec.compile(RESIDUES, loaded_most=1).on(0x7000)
    fakes.standin().captures = 1
    for N in (12, 13, 14):
        call(kernel, N)
    fakes.standin().captures = 0
    for N in range(15, 22):
        call(kernel, N)
    assert counts(kernel) == (4, 3, 1)
    assert fakes.standin().stale == 0


def test_a_thousand_lengths():
    """They use few variants of a shipped kernel, and the memory of the host does not grow."""
    before = fakes.standin().modules
    X, Y = np.zeros((4, 8192), np.uint16), np.zeros((4, 8192), np.uint16)
    sizes = []
    for i in range(1000):
        length = 7 + 8 * (i * 7919 % 1000)
        x, y = (Tensor(np.ascontiguousarray(of[:, :length])) for of in (X, Y))
        k.softmax(x, out=y)
        if i in (500, 999):  # the variants were compiled before
            sizes.append(resident())
    assert fakes.standin().modules - before <= 40
    assert fakes.standin().stale == 0
    # a sanitizer keeps what is freed for a while
    assert sizes[1] - sizes[0] < 4 << 20 or "asan" in os.environ.get("PIPEC_BUILD", "")


def test_shapes_are_loaded_before_calls():
    kernel = pipec.compile(RESIDUES)
    info = kernel.prepare(shapes=[{"N": N} for N in range(12, 22)])
    assert info["variants_loaded"] == 10
    loads = fakes.standin().loads
    for N in range(12, 22):
        call(kernel, N)
    assert fakes.standin().loads == loads


def test_lengths_that_tensors_decide():
    kernel = pipec.compile(ROWS)
    kernel.prepare(shapes=[{"M": 4, "D": 100}, {"M": 4, "D": 101}], threads=2)
    loads = fakes.standin().loads
    kernel(WithExchange(np.zeros((9, 101), np.float32)))
    assert fakes.standin().loads == loads


def test_shapes_that_are_refused():
    kernel = pipec.compile(RESIDUES)
    with pytest.raises(pipec.Unusable, match="(?s)P0608.*the shape is N=22"):
        kernel.prepare(shapes=[{"N": 12}, {"N": 22}])
    with pytest.raises(pipec.Unusable, match="P0603"):
        kernel.prepare(shapes=[{}])
    with pytest.raises(pipec.Unusable):
        kernel.prepare(shapes=[{"N": 12, "K": 3}])
    with pytest.warns(pipec.CompileWarning, match="P0930"):
        pipec.compile(RESIDUES, loaded_most=2).prepare(shapes=[{"N": N} for N in range(12, 22)])
    with pytest.raises(pipec.Refused, match="P0930"):
        pipec.compile(RESIDUES, loaded_most=2, deny=["P0930"]).prepare(
            shapes=[{"N": N} for N in range(12, 22)])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    shapes = [{"N": N} for N in range(12, 22)]
    monkeypatch.setattr(sys, "stderr", Terminal())
    pipec.compile(RESIDUES).prepare(shapes=shapes)
    assert sys.stderr.getvalue().endswith(f"\rcopy: [{'#' * 30}] 10/10\n")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    pipec.compile(RESIDUES).prepare(shapes=shapes)
    assert sys.stderr.getvalue() == ""


def test_an_exception_ends_the_preparation(monkeypatch):
    class Closed(Terminal):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    with pytest.raises(BrokenPipeError):
        pipec.compile(RESIDUES).prepare(shapes=[{"N": N} for N in range(12, 22)])


def test_patience():
    kernel = pipec.compile(RESIDUES, patience=0.2)
    for N in range(12, 22):
        call(kernel, N)
    assert counts(kernel)[0] == 10


def test_choices_of_a_file(tmp_path):
    """What `pipec choose --save` wrote; other sizes are chosen as usual"""
    command = os.path.join(os.environ["PIPEC_BUILD"], "pipec")
    file = tmp_path / "choices.json"
    subprocess.run([command, "choose", "examples/gemm.pipe", "M=32", "N=48", "K=16", "--save", file],
                   check=True, capture_output=True)
    gemm = pipec.load("examples/gemm.pipe", choices=file)
    A, B = np.zeros((32, 16), np.uint16), np.zeros((48, 16), np.uint16)
    assert gemm.choose(A, B).fixed == str(file)
    assert gemm.choose(A, B[:24]).fixed is None
    assert gemm(A, B).shape == (32, 48)
    with pytest.raises(pipec.Unusable, match="P0931"):
        pipec.load("examples/axpy.pipe", choices=file)
    with pytest.raises(pipec.Unusable, match="P0931"):
        pipec.load("examples/gemm.pipe", choices=tmp_path / "none.json")


def numbers(*shape):
    draw = np.random.default_rng(1)
    return (draw.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_products_of_any_number_of_rows_have_the_same_bits():
    linear = pipec.load("kernels:linear", invariant=True)
    A, B = numbers(70, 136), numbers(72, 136)
    alone = np.concatenate([linear(A[i:i + 1], B) for i in range(0, 70, 23)])
    for M in (1, 2, 24, 47, 65, 70):
        C = linear(A[:M], B)
        assert np.array_equal(C[::23], alone[:len(C[::23])])
        assert linear.choose(A[:M], B).statics["BN"] == 256
    assert pipec.load("kernels:linear").choose(A[:1], B).statics.get("BN") != 256


@pytest.mark.parametrize("D", [7, 100, 1000])
@pytest.mark.parametrize("name", ["softmax", "rms_norm"])
def test_any_number_of_rows_has_the_same_bits(name, D):
    kernel = pipec.load(f"kernels:{name}").using(invariant=True)
    X, more = numbers(40, D), {}
    if name == "rms_norm":  # without a residual
        more = {"Res": numbers(0, 0), "W": numbers(D), "eps": 1e-6}

    def run(rows):
        made = kernel(rows, **more)
        return made[0] if isinstance(made, tuple) else made

    alone = np.concatenate([run(X[i:i + 1]) for i in range(0, 40, 13)])
    for M in (1, 3, 14, 27, 40):
        Y = run(X[:M])
        assert np.array_equal(Y[::13], alone[:len(Y[::13])])


def test_gradients_of_weights_are_not_invariant():
    with pytest.raises(pipec.Refused, match="(?s)P0934.*rms_norm_backward.*sums"):
        pipec.load("kernels:rms_norm_backward", invariant=True)


def test_bundle(tmp_path):
    """Without the source; other sizes run the best that is in it, with one warning"""
    command = os.path.join(os.environ["PIPEC_BUILD"], "pipec")
    subprocess.run([command, "build", "kernels:linear", "--bundle", tmp_path / "linear", "M=1..40",
                    "N=64,128", "K=64"], check=True, capture_output=True)
    linear = pipec.load_bundle(tmp_path / "linear")
    x, weight = (Tensor(np.zeros(shape, np.uint16)) for shape in ((8, 64), (64, 64)))
    launches = fakes.standin().launches
    linear(x, weight, C=Tensor(np.zeros((8, 64), np.uint16)))
    wide, out = Tensor(np.zeros((72, 64), np.uint16)), Tensor(np.zeros((8, 72), np.uint16))
    with pytest.warns(pipec.CompileWarning, match="P0937"):
        linear(x, wide, C=out)
    linear(x, wide, C=out)
    assert fakes.standin().launches == launches + 3
    assert linear.info()["variants_loaded"] >= 1
    with pytest.raises(ValueError, match="needs the source"):
        linear.using(BM=64)
    with pytest.raises(pipec.Unusable, match="P0936"):
        pipec.load_bundle(tmp_path)
