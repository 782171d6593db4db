"""Host arrays: they run on the emulator."""

import array
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import pipec

ROWS = """kernel rows(X: f32[M, N], out Y: f32[M, N]) for sm_90a {
    grid persistent (m: M);
    role work: 4 warps {
        for m in grid {
            for n in 0 .. ceil(N, 128) {
                Y[m, n*128 + j] = 2 * X[m, n*128 + j] for j in 0 .. 128;
            }
        }
    }
}"""


def bf16(x):
    """The bits of the nearest bf16 numbers"""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def matrices(M=70, N=80, K=72):
    draw = np.random.default_rng(1)
    return draw.standard_normal((M, K)), draw.standard_normal((N, K))


def test_outputs_are_allocated(example):
    A, B = matrices()
    C = example("gemm")(bf16(A), bf16(B))
    assert isinstance(C, np.ndarray) and C.shape == (70, 80) and C.dtype == np.uint16
    np.testing.assert_allclose(f32(C), f32(bf16(A)) @ f32(bf16(B)).T, atol=0.1, rtol=0.01)


def test_outputs_are_given(example):
    A, B = matrices()
    out = np.zeros((70, 80), np.uint16)
    assert example("gemm")(bf16(A), B=bf16(B), C=out) is out
    assert np.array_equal(out, example("gemm")(bf16(A), bf16(B)))


def test_in_place(example):
    X, Y = np.arange(3000, dtype=np.float32), np.ones(3000, np.float32)
    assert example("axpy")(X, Y, 2.5) is None
    assert np.array_equal(Y, 2.5 * X + 1)
    example("axpy")(X, a=np.float32(-2.5), Y=Y)
    assert np.array_equal(Y, np.ones(3000))


def test_scalars_by_position(example):
    X = np.random.default_rng(2).standard_normal((3, 64))
    W = np.ones(64)
    Y = example("rmsnorm", D=64)(bf16(X), bf16(W), 1e-6)
    expected = X / np.sqrt((X * X).mean(1, keepdims=True))
    np.testing.assert_allclose(f32(Y), expected, atol=0.03, rtol=0.02)


def test_ml_dtypes(example):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    A, B = (x.astype(ml_dtypes.bfloat16) for x in matrices())
    C = example("gemm")(A, B)
    assert C.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(C.astype(np.float32), A.astype(np.float32) @ B.T.astype(np.float32),
                               atol=0.1, rtol=0.01)


class OfMlDtypes(np.ndarray):
    """As an array of ml_dtypes: the buffer protocol refuses it, `view` gives its bits"""

    class dtype:  # noqa: N801
        name = "bfloat16"

    def view(self, kind):
        return np.asarray(np.ndarray.view(self, np.ndarray))

    def __array_finalize__(self, other):
        pass


def test_bf16_of_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # it is not installed
    numbers = [0.0, -0.0, 1.0, -2.5, 3.4e38, np.inf, -np.inf, 1e-45, 1.00390625, 1.01171875]
    bits = pipec.bf16(np.array(numbers))
    assert bits.dtype == np.uint16
    assert bits[:7].tolist() == [0, 0x8000, 0x3F80, 0xC020, 0x7F80, 0x7F80, 0xFF80]
    assert bits[7:].tolist() == [0, 0x3F80, 0x3F82]  # ties to even
    every = np.arange(65536, dtype=np.uint16)
    again = pipec.bf16(pipec.f32(every))
    nan = (every & 0x7FFF) > 0x7F80
    assert (again[~nan] == every[~nan]).all() and np.isnan(pipec.f32(again[nan])).all()
    assert pipec.f32(pipec.bf16(1.5)) == 1.5 and pipec.bf16([[1, 2]]).shape == (1, 2)
    draw = np.random.default_rng(3).standard_normal(10000).astype(np.float32)
    assert np.array_equal(pipec.bf16(draw), bf16(draw))
    with refused(TypeError, "not float64", r"astype\(\"float32\"\)"):
        pipec.f32(np.ones(3))


def test_any_buffer(example):
    X, Y = array.array("f", range(10)), array.array("f", [1] * 10)
    example("axpy")(X, memoryview(Y), 2)
    assert list(Y) == [2 * i + 1 for i in range(10)]


def test_fp8(example):
    one = np.full((16, 32), 0x38, np.uint8)  # 1 in e4m3
    kernel = example("gemm_fp8")
    names = [p.name for p in kernel.parameters if p.mode != "out"]
    arguments = {n: one for n in names[:2]}
    for p in kernel.parameters[2:]:
        if p.mode == "out":
            continue
        shape = [1] * len(p.extents)
        arguments[p.name] = np.ones(shape, np.float32) if p.is_tensor else 1.0
    result = kernel(**arguments)
    assert (f32(result) == 32).all()


E5M2 = """
kernel copies(X: e5m2[N], out Y: e5m2[N], out Z: f32[N], out W: e5m2[N]) for sm_90a {
    ensures { Y[i] == X[i]; Z[i] == X[i]; W[i] == e5m2(X[i] * 2); }
    grid (t: ceil(N, 128));
    role work: 2 warps {
        for t in grid {
            var x: e5m2[128];
            x[i] = X[t*128 + i];
            Y[t*128 + i] = t % 2 == 0 ? x[i] : X[t*128 + i];
            Z[t*128 + i] = x[i];
            W[t*128 + i] = e5m2(x[i] * 2);
        }
    }
}
"""


def test_bits_of_e5m2(tmp_path):
    path = tmp_path / "copies.pipe"
    path.write_text(E5M2)
    bits = np.arange(256, dtype=np.uint8)
    Y, Z, W = pipec.load(path)(bits)
    numbers = (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    nan = np.isnan(numbers)
    assert np.array_equal(Z, numbers, equal_nan=True)
    assert (Y[~nan] == bits[~nan]).all() and (Y[nan] & 0x7F > 0x7C).all()  # infinities stay
    assert W[[0, 1, 2, 0x84, 0x77, 0x78]].tolist() == [0, 2, 4, 0x88, 0x7B, 0x7B]
    assert W[[0x7C, 0xFC]].tolist() == [0x7B, 0xFB] and (W[nan] & 0x7F > 0x7C).all()  # saturate


@pytest.mark.parametrize("M", [0, 1, 5])
def test_no_rows(example, M):
    A, B = matrices(M=M)
    assert example("gemm")(bf16(A), bf16(B)).shape == (M, 80)


def test_no_terms(example):
    C = example("gemm")(np.zeros((4, 0), np.uint16), np.zeros((8, 0), np.uint16))
    assert C.shape == (4, 8) and not C.any()


def test_statics(example):
    A, B = matrices()
    C = example("gemm").using(BN=128, STAGES=4)(bf16(A), bf16(B))
    assert np.array_equal(C, example("gemm")(bf16(A), bf16(B)))


def test_rows_with_gaps(example):
    wide = np.zeros((70, 104), np.uint16)
    A, B = matrices()
    wide[:, :72] = bf16(A)
    assert np.array_equal(example("gemm")(wide[:, :72], bf16(B)), example("gemm")(bf16(A), bf16(B)))


def test_strides_are_those_of_a_gpu(example):
    """What a launch refuses, the emulator refuses too, though it copies the rows."""
    gemm = example("gemm")
    A, B = np.zeros((64, 79), np.uint16), np.zeros((32, 72), np.uint16)
    with refused(ValueError, "P0621", "`A`", "158 bytes, but must be a multiple", "contiguous"):
        gemm(A[:, :72], B)
    assert gemm(np.zeros((64, 80), np.uint16)[:, :72], B).shape == (64, 32)
    with refused(ValueError, "P0621", "`A`", "cannot repeat axis 0: its stride is 0"):
        gemm(np.broadcast_to(B[:1], (64, 72)), B)
    with refused(ValueError, "P0621"):
        gemm.verify(A[:, :72], B)
    assert gemm(A[:1, :72], B).shape == (1, 32)  # one row has no stride
    rows = pipec.compile(ROWS)  # without the copy engine
    wide = np.arange(60, dtype=np.float32).reshape(4, 15)[:, :10]
    assert (rows(wide) == 2 * wide).all()
    same = np.broadcast_to(wide[:1], (4, 10))
    assert (rows(same) == 2 * same).all()


def test_strides_choose_a_variant():
    scale = pipec.load("tests/run/variants.pipe")
    whole = np.ones((5000, 30), np.float32)
    wide = whole[:, :12]  # rows of 120 bytes, which the copy engine does not take
    assert (scale(wide, 3) == 3).all()
    with refused(ValueError, "P0621"):
        scale.using(variant="copied")(wide, 3)


def padded(m, k, pitch):
    x = np.full((1, m, pitch), np.nan, np.float16)
    x[:, :, :k] = np.random.default_rng(m).integers(-3, 4, (1, m, k))
    return x[:, :, :k]


def test_rows_of_any_extent_with_gaps():
    """TMA loads rows of 29 elements, if they are multiples of 16 bytes apart."""
    product = pipec.load("kernels:matmul_nt")
    large = product.using(variant="large")
    for m, n in ((5, 16), (1, 8), (70, 136)):
        a, b = padded(m, 29, 32), padded(n, 29, 40)
        wanted = a.astype(np.float32) @ b.astype(np.float32).swapaxes(1, 2)
        for kernel in (product, large):
            assert np.array_equal(kernel(a, b), wanted.astype(np.float16))
    dense = np.ascontiguousarray(a)
    with refused(ValueError, "P0608", r"K \* 2 % 16 == 0", "rows of `A`", "pad the rows"):
        large(dense, b)
    with refused(ValueError, "P0621", "`A`", "62 bytes, but must be a multiple"):
        large(padded(70, 29, 31), b)
    assert np.array_equal(product(dense, b), wanted.astype(np.float16))
    with refused(ValueError, "P0608", r"N \* 2 % 16 == 0"):  # a store would write to the gap
        large(a, b[:, :29], C=np.zeros((1, 70, 32), np.float16)[:, :, :29])


def test_gaps_decide_the_choice():
    product = pipec.load("kernels:matmul_nt")
    a, b = padded(2048, 1021, 1024), padded(2048, 1021, 1024)
    assert product.choose(a, b).variant != "any"
    assert product.choose(a, np.ascontiguousarray(b)).variant == "any"
    assert product.choose(a, padded(2048, 1021, 1022)).variant == "any"


def test_verify(example):
    A, B = matrices()
    assert example("gemm").verify(bf16(A), bf16(B)).startswith("right (all 5600 elements checked")


def test_example_of_the_file(example):
    axpy = example("axpy")
    assert axpy.verify().startswith("right (all 1000003 elements checked")
    assert axpy.verify(N=10, a=3).startswith("right (all 10 elements checked")
    run = axpy.run(N=4, fills={"X": "iota", "Y": 1})
    assert run.arguments == "X: f32[4], Y: f32[4], a = 2.5" and run.device == "emulator"
    assert run.arrays["Y"].tolist() == [1, 3.5, 6, 8.5] and run.seconds > 0
    run.arrays["Y"][0] = 7  # it is the caller's
    first, same, other = (axpy.run(N=4, seed=seed).arrays["X"] for seed in (1, 1, 2))
    assert (first == same).all() and (first != other).any()
    assert example("gemm").run(M=16, N=32, K=64).arrays["C"].shape == (16, 32)
    with refused(TypeError, "the argument `Y` is missing"):
        axpy.verify(X=np.ones(4, np.float32))


def test_examples_that_do_not_fit(example):
    with refused(ValueError, "P0601", "`Q`"):
        example("axpy").run(Q=4)
    with refused(ValueError, "P0600", "`foo` is not a fill"):
        example("axpy").run(fills={"X": "foo"})
    with refused(TypeError, "`BN` is a static", r"gemm.using\(BN=..\).run"):
        example("gemm").run(BN=128)
    with refused(ValueError, "P0603"):
        pipec.compile(ROWS).run()
    wrong = pipec.compile(ROWS.replace("grid", "ensures Y[i, j] == 3 * X[i, j]; grid", 1))
    with refused(pipec.Refused, "P0850"):
        wrong.run(M=3, N=5)


def test_verify_too_costly():
    """A claim of which no element can be checked is no success; the call itself is one."""
    kernel, X = pipec.load("tests/run/too-costly.pipe"), np.ones(30000, np.float32)
    with pytest.raises(pipec.Incomplete) as error:
        kernel.verify(X)
    assert error.value.diagnostics[0].code == "P0853"
    assert np.array_equal(kernel(X)[0], X)
    assert kernel.verify(X[:20]).startswith("right (all 40 elements checked")


def test_wrong_result():
    text = """kernel twice(X: f32[N], out Y: f32[N]) for sm_90a {
    ensures Y[i] == 2 * X[i];
    grid (t: ceil(N, 1024));
    role work: 4 warps { for t in grid { Y[t*1024 + i] = 3 * X[t*1024 + i] for i in 0 .. 1024; } }
}"""
    with pytest.raises(pipec.Refused, match="P0"):
        pipec.compile(text).verify(np.ones(5, np.float32))


def test_threads(example):
    """Several threads use one kernel object."""
    A, B = bf16(matrices()[0]), bf16(matrices()[1])
    expected, wrong = example("gemm")(A, B), []

    def work():
        for _ in range(3):
            if not np.array_equal(example("gemm")(A, B), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- what is refused -----------------------------------------------------------------------------


def refused(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(words))


def test_calls_that_do_not_fit(example):
    gemm, axpy = example("gemm"), example("axpy")
    A, B = bf16(matrices()[0]), bf16(matrices()[1])
    X = np.ones(4, np.float32)
    with refused(TypeError, "gemm", "`B` is missing", "bf16"):
        gemm(A)
    with refused(TypeError, r"2 arguments by position \(A, B\), but 3", "by name"):
        gemm(A, B, A)
    with refused(TypeError, "no parameter `D`", "A, B, C"):
        gemm(A, B, D=A)
    with refused(TypeError, "`BM` is a static", r"gemm.using\(BM="):
        gemm(A, B, BM=256)
    with refused(TypeError, "`A` is given twice"):
        gemm(A, B, A=A)
    with refused(TypeError, "axpy: `a` must be a number", "str"):
        axpy(X, X.copy(), "2")
    with refused(TypeError, "`X` must be an array", "list", "NumPy"):
        axpy([1, 2], X, 2)


def test_types(example):
    gemm = example("gemm")
    A, B = matrices()
    with refused(TypeError, "`A` must have elements of bf16, not float64", "ml_dtypes.bfloat16"):
        gemm(A, B)
    with refused(TypeError, "`X` must have elements of f32, not int32", r'astype\("float32"\)'):
        example("axpy")(np.ones(4, np.int32), np.ones(4, np.float32), 1)
    with refused(TypeError, "`X`", ">f"):
        example("axpy")(np.ones(4, ">f4"), np.ones(4, np.float32), 1)


def test_shapes(example):
    gemm, axpy = example("gemm"), example("axpy")
    A, B = bf16(matrices()[0]), bf16(matrices()[1])
    with refused(ValueError, "`A` must have 2 axes", r"\[M, K\]", "has 1"):
        gemm(A[0], B)
    with refused(ValueError, "K"):
        gemm(A, B[:, :64])
    with refused(ValueError, "C"):
        gemm(A, B, C=np.zeros((70, 88), np.uint16))
    with refused(ValueError, "`A`", "contiguous along its last axis", "72", "ascontiguousarray"):
        gemm(A[:, :70].T, B)
    with refused(ValueError, "`A`", "last axis", "2 elements"):
        gemm(A[:, ::2], B[:, :36])
    with refused(ValueError, "`C`", "last axis", "pass an array in C order"):
        gemm(A, B, C=np.zeros((70, 80), np.uint16, order="F"))
    with refused(ValueError, "`A` has a stride of -72 elements along axis 0"):
        gemm(A[::-1], B)
    with refused(ValueError, "P0608"):
        gemm(A[:, :4].copy(), B[:, :4])
    with refused(ValueError, "N"):
        axpy(np.ones(4, np.float32), np.ones(5, np.float32), 1)


def test_floats_are_compared():
    """`requires` of a floating-point parameter, at each call"""
    scale = pipec.compile("""kernel scale(X: f32[N], out Y: f32[N], a: f32) for sm_90a {
        requires a > 0 && a <= 0.1;
        grid (t: ceil(N, 512));
        role work: 4 warps { for t in grid { Y[t*512 + i] = a * X[t*512 + i] for i in 0 .. 512; } }
    }""")
    assert scale.manifest["format"] == 2
    X = np.ones(5, np.float32)
    assert np.array_equal(scale(X, 0.1), np.float32(0.1) * X)
    for wrong in (0, -0.0, -1, 0.1001, float("nan"), float("inf")):
        with refused(ValueError, "P0608", "`a"):
            scale(X, wrong)


def test_read_only(example):
    X, Y = np.ones(4, np.float32), np.ones(4, np.float32)
    Y.flags.writeable = False
    example("axpy")(Y, X, 1)
    with refused(ValueError, "`Y` is written, but the array is read-only"):
        example("axpy")(X, Y, 1)
    with refused(ValueError, "stride of 0 elements"):
        out = np.lib.stride_tricks.as_strided(np.zeros(80, np.uint16), (70, 80), (0, 2))
        example("gemm")(bf16(matrices()[0]), bf16(matrices()[1]), C=out)


def test_tune_needs_a_gpu(example):
    A, B = matrices()
    with refused(ValueError, "on a GPU"):
        example("gemm").tune(bf16(A), bf16(B))


def test_the_whole_range_of_integers():
    limits = pipec.compile("""kernel limits(out U: u64[N], out I: i64[N], out W: u32[N], u: u64, i: i64,
        w: u32) for sm_90a {
    grid (t: ceil(N, 128));
    role work: 4 warps { for t in grid {
        U[t*128 + k] = u + u64(t*128 + k) for k in 0 .. 128;
        I[t*128 + k] = i for k in 0 .. 128;
        W[t*128 + k] = w for k in 0 .. 128;
    } }
}""")
    for u, i, w in ((2**64 - 1, 2**63 - 1, 2**32 - 1), (2**63, -2**63, 0), (2**63 - 1, 0, 2**31)):
        for _ in range(2):
            wide, signed, narrow = limits(u=u, i=i, w=w, N=3)
            assert [int(x) for x in wide] == [(u + k) % 2**64 for k in range(3)]
            assert all(int(x) == i for x in signed) and all(int(x) == w for x in narrow)
    for wrong in ({"u": 2**64}, {"u": -1}, {"i": 2**63}, {"i": -2**63 - 1}, {"w": 2**32}, {"w": -1}):
        with refused(OverflowError, "is out of the range of"):
            limits(**{"u": 0, "i": 0, "w": 0, "N": 3, **wrong})


def test_extents_by_name():
    count = pipec.compile("""kernel count(out Y: i32[N], n: i32) for sm_90a {
    grid (t: ceil(N, 128));
    role work: 4 warps { for t in grid { Y[t*128 + i] = i32(t*128 + i) + n for i in 0 .. 128; } }
}""")
    assert np.array_equal(count(n=5, N=300), np.arange(5, 305))
    with refused(ValueError, "N"):
        count(5)
    with refused(OverflowError, "`n`", "i32"):
        count(n=1 << 31, N=3)
    with refused(OverflowError, "`n`", "i32"):
        count(n=10**5000, N=3)
    with refused(TypeError, "`n` must be an integer"):
        count(n=1.5, N=3)
    with refused(TypeError, "count: the extent `N` must be an integer"):
        count(n=1, N=1.5)
    with refused(OverflowError, "count: the extent `N`"):
        count(n=1, N=1 << 70)


# ---- memory --------------------------------------------------------------------------------------


def test_shared_memory(example):
    gemm, axpy = example("gemm"), example("axpy")
    A, B = bf16(matrices()[0]), bf16(matrices()[1])
    X = np.zeros(100, np.float32)
    with refused(ValueError, "axpy: `Y` is written, but shares memory with `X`", "inout"):
        axpy(X, X, 1)
    with refused(ValueError, "`Y`", "`X`"):
        axpy(X[1:], X[:-1], 1)
    axpy(X[:50], X[50:], 1)
    square = bf16(np.zeros((72, 72)))
    with refused(ValueError, "`C` is written, but shares memory with `B`"):
        gemm(square.copy(), square, C=square)
    with refused(ValueError, "`C` is written, but its rows overlap each other"):
        gemm(A, B, C=np.lib.stride_tricks.as_strided(np.zeros(9000, np.uint16), (70, 80), (2, 2)))
    gemm(B, B)  # what is only read may be shared


def test_tensors_side_by_side(example):
    """Halves of a matrix and its even and odd rows share no memory."""
    A, B = bf16(matrices()[0]), bf16(matrices()[1])
    expected = example("gemm")(A, B)
    wide = np.zeros((140, 160), np.uint16)
    wide[:70, :72] = A
    example("gemm")(wide[:70, :72], B, C=wide[:70, 72:152])
    assert np.array_equal(wide[:70, 72:152], expected)
    wide[1::2, :72] = A
    example("gemm")(wide[1::2, :72], B, C=wide[::2, :80])
    assert np.array_equal(wide[::2, :80], expected)
    with refused(ValueError, "shares memory"):
        example("gemm")(wide[:70, :72], B, C=wide[:70, 71:151])


def test_masked(example):
    X = np.ma.array(np.ones(4, np.float32), mask=[1, 0, 0, 0])
    with refused(TypeError, "axpy: `X` has a mask", "filled"):
        example("axpy")(X, np.ones(4, np.float32), 1)


def test_no_type_of_dlpack(example):
    with refused(BufferError, "axpy: `X`"):
        example("axpy")(np.zeros(2, "M8[s]"), np.ones(2, np.float32), 1)


# ---- signals -------------------------------------------------------------------------------------


FOREVER = """kernel forever(out Y: i32[N], n: i32) for sm_90a {
    grid (t: ceil(N, 128));
    role work: 4 warps {
        for t in grid {
            var x: i32 = 0;
            for k in 0 .. n { x = x + k % 7; }
            Y[t*128 + i] = x for i in 0 .. 128;
        }
    }
}"""


def test_time_limit():
    forever = pipec.compile(FOREVER)
    Y = np.zeros(300, np.int32)
    limited = forever.emulated(seconds=0.3)
    for call in limited, limited.verify:
        with refused(TimeoutError, "forever: the emulated call takes longer than 0.3 s"):
            call(1 << 30, Y=Y)
    with refused(TimeoutError, "longer than 0.2 s"):
        forever.emulated(seconds=0.2).run(N=300, n=1 << 30)
    assert not Y.any()
    assert (forever.emulated(seconds=100)(0, N=3) == 0).all()


def test_progress(capsys, monkeypatch):
    seen = []

    class Enough(Exception):
        pass

    def progress(part, seconds):
        seen.append((part, seconds))
        if len(seen) == 3:
            raise Enough

    forever = pipec.compile(FOREVER)
    with pytest.raises(Enough):
        forever.emulated(progress=progress)(1 << 30, N=300)
    assert all(0 <= part <= 1 for part, _ in seen) and seen[0][1] < seen[2][1]
    from pipec import _progress

    for first, is_terminal, shown in (0, True, True), (0, False, False), (9, True, False):
        monkeypatch.setattr(_progress, "_FIRST", first)
        monkeypatch.setattr(_progress, "_is_terminal", lambda: is_terminal)
        with refused(TimeoutError):
            forever.emulated(seconds=0.3)(1 << 30, N=300)
        text = capsys.readouterr().err
        assert ("forever: emulating, 0 % in 0 s" in text) == shown == text.endswith("\r\x1b[K")


def test_interrupt():
    """A handler that raises ends a run on the emulator."""
    import signal
    import time

    forever = pipec.compile(FOREVER)

    # emulated in no time, compared with `ensures` in seconds
    pairs = pipec.compile("""kernel pairs(X: f32[N], out Y: f32[N]) for sm_90a {
    ensures Y[i] ~ X[i] + 0 * sum[a] X[a] * (sum[b] X[b] * X[a] * X[i]) within 1e-3;
    grid (t: ceil(N, 1024));
    role all: 1 warp { for t in grid { Y[t*1024 + i] = X[t*1024 + i] for i in 0 .. 1024; } }
}""")

    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    last = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        start = time.monotonic()
        with pytest.raises(Stop):
            forever(2000000000, N=100000)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Stop):
            pairs.verify(np.ones(3000, np.float32))
        assert time.monotonic() - start < 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, last)
    assert forever(3, N=2).tolist() == [3, 3]


SEGMENTS = """
kernel segments(X: f32[L, D], First: i32[E + 1], out Y: f32[E + 1, D]) for sm_90a {
    ensures Y[e, d] ~ sum[l] (e < E && l >= First[e] && l < First[e + 1] ? X[l, d] : 0) within 1e-5
        for e in 0 .. E + 1;
    example L = 40, E = 4, D = 100, First[e] = min(10 * e, L);
    static T = 128 in {64, 128};
    grid (e: E + 1, d: ceil(D, T));
    role work: 4 warps {
        for (e, d) in grid {
            var sums: f32[T] = 0;
            if e < E { for l in First[e] .. First[e + 1] { sums[k] += X[l, d*T + k]; } }
            Y[e, d*T + k] = sums[k];
        }
    }
}
"""


def test_extents_that_are_solved():
    segments = pipec.compile(SEGMENTS)
    assert segments.parameters[1].extents == ("E + 1",)
    X = np.arange(20, dtype=np.float32).reshape(10, 2)
    Y = segments(X, np.array([0, 3, 10], np.int32))
    assert Y.shape == (3, 2) and np.array_equal(Y[:2], [X[:3].sum(0), X[3:].sum(0)])
    assert segments(X, np.zeros(1, np.int32)).shape == (1, 2)
    with refused(pipec.Unusable, "axis 0 of `First` has 0 elements, but its extent is `E . 1`"):
        segments(X, np.zeros(0, np.int32))
    with refused(pipec.Unusable, "P0604"):
        segments(X, np.zeros(3, np.int32), Y=np.zeros((4, 2), np.float32))
    assert segments.verify(X, np.array([0, 4], np.int32)).startswith("right")
    assert segments.run(E=3).verdict.startswith("right")
    assert segments.choose(X, np.zeros(4, np.int32)) is not None


# What is solved differs from what `example` says.
SOLVED = """kernel solved(X: f32[L], C: i32[FIRST], out Y: f32[L], out Z: f32[SECOND]) for sm_90a {
    EXAMPLE
    grid (b: 1);
    role w: 2 warps {
        for b in grid {
            for t in 0 .. ceil(L, 64) { Y[t*64 + i] = X[t*64 + i] + f32(B) for i in 0 .. 64; }
            for t in 0 .. ceil(SECOND, 64) { Z[t*64 + i] = 1.0 for i in 0 .. 64; }
        }
    }
}"""
FORMULAS = {"alone": ("B + 1", "2"), "beside a plain one": ("B + 1", "B"), "twice": ("B + 1", "2*B"),
            "odd": ("2*B + 1", "2"), "odd beside a plain one": ("2*B + 1", "B")}


def solved_kernel(example, first, second):
    return pipec.compile(SOLVED.replace("EXAMPLE", example).replace("FIRST", first)
                         .replace("SECOND", second))


@pytest.mark.parametrize("example", ["", "example L = 64, B = 3;"])
@pytest.mark.parametrize("formulas", FORMULAS)
def test_solved_extents_are_those_of_the_arrays(formulas, example):
    first, second = FORMULAS[formulas]
    solved = solved_kernel(example, first, second)
    for elements in range(9):
        X, C = np.zeros(4, np.float32), np.zeros(elements, np.int32)
        B, rest = divmod(elements - 1, 2 if first == "2*B + 1" else 1)
        if B < 0 or rest != 0:
            with refused(pipec.Unusable, "P060[45]"):
                solved(X, C)
            continue
        Y, Z = solved(X, C)
        assert (Y == B).all() and len(Z) == {"2": 2, "B": B, "2*B": 2 * B}[second]
        assert (solved(X, C, B=B)[0] == B).all()
        out = np.zeros(4, np.float32), np.zeros(len(Z), np.float32)
        assert (solved(X, C, B=B, Y=out[0], Z=out[1])[0] == B).all()
        assert solved.choose(X, C) is None and solved._values(X, C)[0] == {"B": B, "L": 4}
        with refused(pipec.Unusable, "P0604"):
            solved(X, C, B=B + 1)
        if second != "2":
            with refused(pipec.Unusable, "P0604"):
                solved(X, C, Z=np.zeros(len(Z) + 1, np.float32))
    with refused(TypeError, "there is no parameter `D`"):
        solved(X, C, D=1)


def test_solved_extents_of_an_image(tmp_path):
    (tmp_path / "solved.pipe").write_text(SOLVED.replace("EXAMPLE", "example L = 64, B = 3;")
                                          .replace("FIRST", "B + 1").replace("SECOND", "B"))
    command = os.path.join(os.environ["PIPEC_BUILD"], "pipec")
    subprocess.run([command, "build", "solved.pipe"], cwd=tmp_path, check=True, capture_output=True)
    solved = pipec.load_image(tmp_path / "solved.json", tmp_path / "solved.ptx")
    for elements in (1, 3, 9):
        X, C = np.zeros(4, np.float32), np.zeros(elements, np.int32)
        assert (solved(X, C)[0] == elements - 1).all()
        assert (solved(X, C, B=elements - 1)[0] == elements - 1).all()


def test_solved_extents_of_verify():
    solved = solved_kernel("ensures Y[i] == X[i] + B; example L = 64, B = 3;", "B + 1", "B")
    for elements in (1, 2, 9):
        X, C = np.ones(70, np.float32), np.zeros(elements, np.int32)
        assert solved.verify(X, C).startswith("right (all 70 elements checked")


def test_more_extents_than_names():
    """All extents are those of the arrays, also if there are more than a call can name."""
    axes = [[f"E{5 * i + k} + 1" for k in range(5)] for i in range(4)]
    text = "kernel many({}, out Y: i32[1]) for sm_90a {{ example {}; grid (t: 1); {} }}".format(
        ", ".join(f"A{i}: i32[{', '.join(a)}]" for i, a in enumerate(axes)),
        ", ".join(f"E{i} = 3" for i in range(20)),
        "role w: 1 warp { for t in grid { Y[0] = %s; } }" % " + ".join(
            f"{i + 1}*E{i}" for i in range(20)))
    arrays = [np.zeros((1 + i % 2,) * 5, np.int32) for i in range(4)]
    wanted = sum(n + 1 for n in range(20) if n // 5 % 2 == 1)
    assert pipec.compile(text)(*arrays)[0] == wanted
