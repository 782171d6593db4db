"""pipec.kernels on NumPy arrays, which run on the emulator, and with tensors of a device, whose
launches go to the stand-in. python/gpu/test_kernels.py has the tests with PyTorch."""

import itertools
import os
import subprocess
import sys

import fakes
import numpy as np
import pytest

import pipec
import pipec.kernels as k
from pipec import _table

DRAW = np.random.default_rng(0)
ORDERS = list(itertools.product((False, True), (False, True)))


def to_bf16(x):
    """The bits of the nearest bf16 numbers"""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_f32(x):
    x = np.ascontiguousarray(x)
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else (
        x.astype(np.float32))


def draw(*shape, kind="bf16"):
    x = DRAW.standard_normal(shape)
    return to_bf16(x) if kind == "bf16" else x.astype({"f16": np.float16, "f32": np.float32}[kind])


def near(x, wanted, bound=1e-2):
    assert x.shape == wanted.shape
    error = np.abs(to_f32(x) - wanted)
    assert (error <= bound * (1 + np.abs(wanted))).all(), error.max()


def refused(error, *words):
    return pytest.raises(error, match="(?s)" + ".*".join(words))


def in_order(x, flipped):
    """The same elements, adjacent along the first of the last two axes"""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if flipped else x


def test_import(tmp_path):
    """Nothing is compiled, and no other library is imported"""
    code = ("import sys, time; t = time.process_time(); import pipec.kernels; "
            "print(time.process_time() - t, sorted({'torch', 'numpy'} & set(sys.modules)))")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    del environment["PYTHONDONTWRITEBYTECODE"]
    runs = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                           text=True, check=True).stdout.split(maxsplit=1) for _ in range(5)]
    assert "asan" in os.environ["PIPEC_BUILD"] or min(float(s) for s, _ in runs) < 0.02
    assert {modules.strip() for _, modules in runs} == {"[]"}


# ---- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("flips", ORDERS)
def test_matmul(flips, batch):
    """Each order of operands; sizes of whole rows of 16 bytes, others, and none"""
    for M, N, K in ((24, 40, 16), (5, 7, 3), (1, 1, 1), (0, 8, 8), (8, 0, 8), (8, 8, 0)):
        a, b = (in_order(draw(*batch, *shape), flip)
                for shape, flip in zip(((M, K), (K, N)), flips))
        near(k.matmul(a, b), to_f32(a) @ to_f32(b))


@pytest.mark.parametrize("flip", [False, True])
def test_matmul_of_leading_axes(flip):
    a, b = draw(2, 3, 5, 16), in_order(draw(16, 24), flip)
    near(k.matmul(a, b), to_f32(a) @ to_f32(b))


def test_f16():
    a, b, bias = draw(9, 16, kind="f16"), draw(16, 24, kind="f16"), draw(24, kind="f16")
    y = k.matmul(a, b)
    assert y.dtype == np.float16
    near(y, to_f32(a) @ to_f32(b))
    near(k.linear(a, b.T.copy(), bias), to_f32(a) @ to_f32(b) + to_f32(bias))


def finished(total, bias, activation, residual):
    total = total if bias is None else total + to_f32(bias)
    done = {None: lambda x: x, "relu": lambda x: np.maximum(x, 0),
            "silu": lambda x: x / (1 + np.exp(-x)),
            "gelu": lambda x: x / 2 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))}
    total = done[activation](total)
    return total if residual is None else total + to_f32(residual)


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu"])
@pytest.mark.parametrize("shape", [(2, 3, 64, 40), (7, 5, 3, 9)])
def test_linear(activation, shape):
    *lead, K, N = shape
    x, weight, residual = draw(*lead, K), draw(N, K), draw(*lead, N)
    total = to_f32(x) @ to_f32(weight).T
    for bias, rest in itertools.product((None, draw(N)), (None, residual)):
        near(k.linear(x, weight, bias, activation, rest), finished(total, bias, activation, rest))


def test_linear_of_transposed_views():
    x, weight = in_order(draw(24, 16), True), in_order(draw(40, 16), True)
    near(k.linear(x, weight), to_f32(x) @ to_f32(weight).T)
    with refused(ValueError, "linear", "`weight`", "adjacent", r"weight\.contiguous\(\)"):
        k.linear(x.copy(), weight, draw(40))


def test_rows_with_gaps():
    x, weight = draw(8, 80)[:, :64], draw(40, 67)[:, :64]
    near(k.linear(x, weight), to_f32(x) @ to_f32(weight).T)
    near(k.matmul(x.T, draw(8, 24)[:, :16]).T[:, :0], np.zeros((16, 0), np.float32))


@pytest.mark.parametrize("sizes", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (3, 5, 0)])
def test_linear_of_nothing(sizes):
    M, N, K = sizes
    x, weight, bias = draw(M, K), draw(N, K), draw(N)
    near(k.linear(x, weight, bias), to_f32(x) @ to_f32(weight).T + to_f32(bias))
    near(k.linear(x, weight), np.zeros((M, N), np.float32))


def test_out():
    x, weight, bias = draw(2, 9, 16), draw(24, 16), draw(24)
    out = np.empty((2, 9, 24), np.uint16)
    assert k.linear(x, weight, bias, out=out) is out
    near(out, to_f32(x) @ to_f32(weight).T + to_f32(bias))
    out.fill(0)
    assert k.matmul(x, weight.T, out=out) is out
    near(out, to_f32(x) @ to_f32(weight).T)
    with refused(ValueError, r"`out` must have the shape \(2, 9, 24\), not \(18, 24\)"):
        k.matmul(x, weight.T, out=out.reshape(18, 24))
    with refused(TypeError, "`out` must have elements of bf16, not float32"):
        k.matmul(x, weight.T, out=out.astype(np.float32))


def test_wrong_products():
    x, weight = draw(9, 16), draw(24, 16)
    with refused(TypeError, "linear: `x` must have elements of bf16 or f16, not float32", "astype"):
        k.linear(x.astype(np.float32), weight)
    with refused(TypeError, "linear: `weight` must have elements of bf16, not float16"):
        k.linear(x, weight.astype(np.float16))
    with refused(ValueError, r"linear: `x` must be \[.., K\] and `weight` \[N, K\]"):
        k.linear(x, weight[:, :8])
    with refused(ValueError, "`bias` must have the shape", "24", "9"):
        k.linear(x, weight, draw(9))
    with refused(ValueError, "`activation` must be one of", "'gelu'", "not 'tanh'"):
        k.linear(x, weight, activation="tanh")
    with refused(ValueError, "matmul: `a` has rows of 16, but `b` columns of 24"):
        k.matmul(x, weight)
    with refused(ValueError, "matmul", "two axes or more", r"a\[None\]"):
        k.matmul(x[0], weight.T)
    with refused(ValueError, "leading axes", r"expand\(..\)\.contiguous"):
        k.matmul(draw(2, 9, 16), draw(3, 16, 8))
    with refused(ValueError, "one of the last two axes of `b`", r"b\.contiguous\(\)"):
        k.matmul(x, draw(32, 48)[::2, ::2])
    with refused(ValueError, "last axis of `x`", r"x\.contiguous\(\)"):
        k.linear(draw(2, 9, 32)[:, :, ::2], weight)
    with refused(ValueError, "leading axes of `x` are not one axis", r"x\.contiguous\(\)"):
        k.linear(draw(2, 18, 16)[:, ::2][:, ::4].swapaxes(0, 1), weight)


# ---- products of f32 as tf32 ---------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("flips", ORDERS)
def test_matmul_of_tf32(flips, batch):
    """The matrix unit takes one order: others are copied"""
    for M, N, K in ((24, 40, 16), (5, 7, 3), (1, 1, 1), (0, 8, 8), (8, 0, 8), (8, 8, 0)):
        a, b = (in_order(draw(*batch, *shape, kind="f32"), flip)
                for shape, flip in zip(((M, K), (K, N)), flips))
        y = k.matmul(a, b, precision="tf32")
        assert y.dtype == np.float32
        near(y, a @ b)


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu"])
@pytest.mark.parametrize("shape", [(2, 3, 64, 40), (7, 5, 3, 9)])
def test_linear_of_tf32(activation, shape):
    *lead, K, N = shape
    x, weight, residual = (draw(*s, kind="f32") for s in ((*lead, K), (N, K), (*lead, N)))
    for bias, rest in itertools.product((None, draw(N, kind="f32")), (None, residual)):
        y = k.linear(x, weight, bias, activation, rest, precision="tf32")
        near(y, finished(x @ weight.T, bias, activation, rest))


def test_tf32_of_views():
    x, weight = draw(8, 67, kind="f32")[:, :64], draw(40, 80, kind="f32")[:, :64]
    near(k.linear(x, weight, precision="tf32"), x @ weight.T)
    out = np.empty((8, 43), np.float32)[:, :40]
    assert k.linear(x, weight, precision="tf32", out=out) is out
    near(out, x @ weight.T)
    near(k.linear(in_order(x, True), in_order(weight, True), precision="tf32"), x @ weight.T)
    with refused(ValueError, "one of the last two axes of `b`", r"b\.contiguous\(\)"):
        k.matmul(x, draw(128, 48, kind="f32")[::2, ::2], precision="tf32")


def test_precision():
    """What is no f32 is multiplied as always"""
    x, weight = draw(9, 16), draw(24, 16)
    assert (k.linear(x, weight, precision="tf32") == k.linear(x, weight)).all()
    with refused(TypeError, "linear: `x` must have elements of bf16 or f16, not float32",
                 'pass precision="tf32"'):
        k.linear(to_f32(x), to_f32(weight))
    with refused(TypeError, "matmul: `b` must have elements of f32, not uint16", "astype"):
        k.matmul(to_f32(x), weight.T, precision="tf32")
    with refused(ValueError, "`precision` must be None or 'tf32', not 'high'"):
        k.matmul(x, weight.T, precision="high")


class OfPyTorch(np.ndarray):
    """What is asked of a tensor before its rows are copied"""

    requires_grad = False

    def stride(self):
        return tuple(s // self.itemsize for s in self.strides)

    def data_ptr(self):
        return self.ctypes.data

    def new_empty(self, shape):
        return np.full(shape, 77, self.dtype).view(OfPyTorch)


@pytest.mark.parametrize("sizes", [(24, 40, 16), (5, 7, 3), (16, 7, 24), (33, 8, 131)])
@pytest.mark.parametrize("flips", ORDERS)
def test_rows_that_are_copied(flips, sizes, monkeypatch):
    """Those that TMA does not copy, of a large product"""
    M, N, K = sizes
    a, b = (in_order(draw(2, *shape, kind="f16"), flip).view(OfPyTorch)
            for shape, flip in zip(((M, K), (K, N)), flips))
    c = np.empty((2, M, N), np.float16).view(OfPyTorch)
    called, kernel = [], _table.kernel
    monkeypatch.setattr(_table, "COPIED", 1)
    monkeypatch.setattr(_table, "kernel", lambda name, *types: (
        called.append(name) or kernel(name, *types)))
    assert _table._multiply("matmul", ("a", a), ("b", b), "f16", c) is c
    near(c, to_f32(a) @ to_f32(b))
    odd = [x.swapaxes(-1, -2) if flip else x for x, flip in zip((a, b), flips)]
    assert called.count("copy_rows") == sum(x.shape[-1] % 8 != 0 for x in odd)


def test_rows_of_a_result_that_are_copied(monkeypatch):
    """Whole vectors, in rows that TMA does not store"""
    monkeypatch.setattr(_table, "COPIED", 1)
    a, b = (draw(1, *shape, kind="f16").view(OfPyTorch) for shape in ((9, 16), (16, 24)))
    wide = np.full((1, 9, 27), 5, np.float16).view(OfPyTorch)
    c = wide[..., 1:25]
    assert _table._multiply("matmul", ("a", a), ("b", b), "f16", c) is c
    near(c, to_f32(a) @ to_f32(b))
    assert (np.asarray(wide)[..., [0, 25, 26]] == 5).all()


# ---- products of 8 bits --------------------------------------------------------------------------


def e4m3(bits):
    sign, exponent, mantissa = bits >> 7, bits >> 3 & 15, bits & 7
    value = np.where(exponent == 0, mantissa / 512, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where(sign == 1, -value, value)


def draw_e4m3(*shape):
    """Bits of numbers from -15 to 15"""
    return (DRAW.integers(0, 0x58, shape) + 128 * DRAW.integers(0, 2, shape)).astype(np.uint8)


def draw_i8(*shape):
    return DRAW.integers(-128, 128, shape).astype(np.int8)


BYTES = [((2, 3), 64, 40), ((7,), 5, 9), ((1,), 1, 1), ((0,), 8, 8), ((8,), 8, 0), ((8,), 0, 8),
         ((130,), 272, 24)]


@pytest.mark.parametrize("shape", BYTES)
@pytest.mark.parametrize("fast", [False, True])
def test_scaled_mm(shape, fast):
    lead, K, N = shape
    a, b = draw_e4m3(*lead, K), draw_e4m3(N, K)
    wanted = e4m3(a) @ e4m3(b).T
    near(k.scaled_mm(a, b.T, 0.5, 0.25, use_fast_accum=fast), 0.125 * wanted)
    for scales in ((np.float32([0.5]), np.array(0.25, np.float32)), (0.5, np.float32([[0.25]]))):
        for dtype, kind in (("f16", "f16"), (np.float32, "f32")):
            bias = draw(N, kind=kind)
            y = k.scaled_mm(a, b.T, *scales, bias, dtype, fast)
            assert y.dtype == np.dtype({"f16": np.float16, "f32": np.float32}[kind])
            near(y, 0.125 * wanted + to_f32(bias))


@pytest.mark.parametrize("shape", BYTES)
def test_int_mm(shape):
    lead, K, N = shape
    a, b = draw_i8(*lead, K), draw_i8(N, K)
    wanted = a.astype(np.int64) @ b.T.astype(np.int64)
    y = k.int_mm(a, b.T)
    assert y.dtype == np.int32 and (y == wanted).all()
    bias = draw(N)
    near(k.scaled_mm(a, b.T, 1e-3, np.float32([0.5]), bias), 5e-4 * wanted + to_f32(bias))


def test_bytes_of_views():
    a, b = draw_i8(8, 80)[:, 3:67], draw_i8(40, 80)[:, :64]
    wanted = a.astype(np.int32) @ b.T.astype(np.int32)
    for gap in (3, 4):
        out = np.zeros((8, 40 + gap), np.int32)[:, :40]
        assert k.int_mm(a, b.T, out=out) is out
        assert (out == wanted).all()
    out = np.empty((8, 40), np.float16)
    assert k.scaled_mm(a, b.T, 0.01, out=out) is out
    near(out, 0.01 * wanted)


def test_wrong_bytes():
    a, b = draw_e4m3(9, 16), draw_e4m3(24, 16)
    with refused(ValueError, "scaled_mm: the first axis of `b`", r"b\.T\.contiguous\(\)\.T"):
        k.scaled_mm(a, b.T.copy())
    with refused(ValueError, r"`a` must be \[.., K\] and `b` \[K, N\]"):
        k.scaled_mm(a, b)
    with refused(ValueError, "`scale_b` must be a number or have one element", r"\(24,\)"):
        k.scaled_mm(a, b.T, 1, np.ones(24, np.float32))
    with refused(TypeError, "`scale_a` must have elements of f32, not float64"):
        k.scaled_mm(a, b.T, np.ones(1))
    with refused(ValueError, "`out_dtype` must be bf16, f16 or f32"):
        k.scaled_mm(a, b.T, out_dtype=np.int32)
    with refused(TypeError, "`bias` must have elements of bf16, not float32"):
        k.scaled_mm(a, b.T, bias=np.ones(24, np.float32))
    with refused(TypeError, "`a` must have elements of e4m3, e5m2 or i8, not uint16",
                 "float8_e4m3fn.*uint8"):
        k.scaled_mm(draw(9, 16), b.T)
    with refused(TypeError, "int_mm: `b` must have elements of i8, not uint8", "astype"):
        k.int_mm(draw_i8(9, 16), b.T)


# ---- rows ----------------------------------------------------------------------------------------


def exact(x):
    return to_f32(x).astype(np.float64)


def rounded(x, like):
    """The sum with a residual, as it is stored"""
    return exact(to_bf16(x) if like.dtype == np.uint16 else np.asarray(x, like.dtype))


def normalised(name, x, weight, bias, eps):
    shift = x.mean(-1, keepdims=True) if name == "layer_norm" else 0
    y = (x - shift) / np.sqrt(((x - shift)**2).mean(-1, keepdims=True) + eps)
    y = y if weight is None else y * exact(weight)
    return y if bias is None else y + exact(bias)


NORMS = [("rms_norm", {}), ("rms_norm", {"weight": 1}), ("layer_norm", {}),
         ("layer_norm", {"weight": 1}), ("layer_norm", {"bias": 1}),
         ("layer_norm", {"weight": 1, "bias": 1})]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name,weights", NORMS)
def test_norms(name, weights, kind, residual):
    """With and without weights, and a residual; whole rows of 16 bytes, others, and none"""
    for shape in ((3, 2, 64), (5, 7), (2, 1000), (0, 8), (3, 17003)):
        x, given = draw(*shape, kind=kind), {w: draw(shape[-1], kind=kind) for w in weights}
        out = np.zeros_like(x)
        rest = {"residual": draw(*shape, kind=kind)} if residual else {}
        y = getattr(k, name)(x, shape[-1], **given, eps=1e-5, **rest, out=out)
        total = exact(x)
        if residual:
            y, added = y
            total = rounded(total + exact(rest["residual"]), x)
            np.testing.assert_array_equal(exact(added), total)
            assert added.dtype == x.dtype
        assert y is out
        near(y, normalised(name, total, given.get("weight"), given.get("bias"), 1e-5), 3e-2)


GATES = {"swiglu": lambda x: x / (1 + np.exp(-x)),
         "geglu": lambda x: x / 2 * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))}
SHAPES = ((3, 2, 64), (5, 7), (2, 1000), (0, 8), (8, 0), (2049,), (1,))


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", GATES)
def test_gates(name, kind):
    for shape in SHAPES:
        gate, up = draw(*shape, kind=kind), draw(*shape, kind=kind)
        wanted = GATES[name](exact(gate)) * exact(up)
        out = np.zeros_like(gate)
        assert getattr(k, name)(gate, up, out=out) is out
        near(out, wanted, {"bf16": 1e-2, "f16": 2e-3, "f32": 2e-5}[kind])
        np.testing.assert_array_equal(getattr(k, name)(gate, up), out)
    for width in (64, 257, 1000):  # the halves of one product
        both = draw(5, 2 * width, kind=kind)
        y = getattr(k, name)(both[:, :width], both[:, width:])
        near(y, GATES[name](exact(both[:, :width])) * exact(both[:, width:]), 1e-2)


@pytest.mark.parametrize("name", GATES)
def test_gradients_of_gates(name):
    """By differences of the exact function"""
    gate, up, dy = (draw(5, 40, kind="f32") for _ in range(3))
    dgate, dup = _table.OPERATIONS[f"{name}_backward"].run(gate, up, dy)
    step, act = 1e-5, GATES[name]
    slope = (act(exact(gate) + step) - act(exact(gate) - step)) / (2 * step)
    near(dgate, exact(dy) * exact(up) * slope, 1e-4)
    near(dup, exact(dy) * act(exact(gate)), 1e-4)


def turned(x, cos, sin, interleaved):
    """Pairs as complex numbers"""
    x = exact(x)
    S, H, D = x.shape[-3:]
    pairs = x.reshape(*x.shape[:-1], D // 2, 2) if interleaved else (
        x.reshape(*x.shape[:-1], 2, D // 2).swapaxes(-1, -2))
    y = (pairs[..., 0] + 1j * pairs[..., 1]) * (exact(cos) + 1j * exact(sin))[:, None]
    y = np.stack((y.real, y.imag), -1)
    return (y if interleaved else y.swapaxes(-1, -2)).reshape(x.shape)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
def test_rope(kind, interleaved):
    for shape in ((2, 5, 3, 64), (7, 1, 128), (2, 3, 4, 2, 10), (1, 3, 2, 600), (0, 2, 8),
                  (2, 3, 0, 8), (2, 3, 4, 0)):
        x, (S, _, D) = draw(*shape, kind=kind), shape[-3:]
        angles = DRAW.standard_normal((S, D // 2))
        for f in {kind, "f32"}:
            plain = {"f16": np.float16}.get(f, np.float32)
            cos, sin = (to_bf16(t) if f == "bf16" else t.astype(plain)
                        for t in (np.cos(angles), np.sin(angles)))
            y = k.rope(x, cos, sin, interleaved=interleaved)
            assert y.dtype == x.dtype
            near(y, turned(x, cos, sin, interleaved), 2e-2)
    # q and k of one product, and [B, H, S, D] as its tables want it
    qkv = draw(2, 5, 3, 4, 64, kind=kind)
    cos, sin = (draw(5, 32, kind="f32") for _ in range(2))
    for x in (qkv[:, :, 0], qkv[:, :, 1], draw(2, 3, 5, 64, kind=kind).swapaxes(1, 2)):
        out = np.zeros(x.shape, x.dtype)
        assert k.rope(x, cos, sin, interleaved=interleaved, out=out) is out
        near(out, turned(x, cos, sin, interleaved), 2e-2)
    back = _table.OPERATIONS["rope"].run(x, cos, sin, interleaved, -1.0)[0]
    near(back, turned(x, cos, -exact(sin), interleaved), 2e-2)


def test_wrong_rope():
    x, table = draw(5, 3, 64), draw(5, 32, kind="f32")
    with refused(ValueError, r"`cos` must have the shape \(5, 32\)", r"not \(5, 64\)"):
        k.rope(x, draw(5, 64, kind="f32"), table)
    with refused(ValueError, r"`x` must be \[.., S, H, D\]", r"\[5, 3, 63\]"):
        k.rope(x[..., :63], table, table)
    with refused(TypeError, "`sin` must have elements of f32, not float16"):
        k.rope(x, table, table.astype(np.float16))


KINDS = {"bf16": 1e-2, "f16": 2e-3, "f32": 2e-5}


def visible(x, mask):
    """The softmax of the elements that are seen"""
    x = np.where(mask, exact(x), -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_causal_softmax(kind):
    for shape in ((2, 3, 5, 5), (7, 40), (2, 1, 33), (3, 0, 8)):
        x, (S, D) = draw(*shape, kind=kind), shape[-2:]
        out = np.zeros_like(x)
        assert k.softmax(x, causal=True, out=out) is out
        near(out, visible(x, np.arange(D) <= np.arange(S)[:, None] + D - S))
    with refused(ValueError, "S <= D"):
        k.softmax(draw(8, 5), causal=True)


@pytest.mark.parametrize("kind", KINDS)
def test_masked_softmax(kind):
    """Masks of the whole shape, of the last axes, of one row for all, and as bytes"""
    x = draw(2, 3, 5, 40, kind=kind)
    for shape in ((2, 3, 5, 40), (5, 40), (40,), (2, 1, 1, 40), (1, 1, 5, 40), (1, 3, 5, 40)):
        mask = DRAW.random(shape) < 0.7
        mask[..., 0] = True
        for m in (mask, mask.astype(np.uint8) * 3):
            out = np.zeros_like(x)
            assert k.softmax(x, mask=m, out=out) is out
            near(out, visible(x, mask))
    with refused(ValueError, "leading axes of `mask`", r"mask\.contiguous"):
        k.softmax(x, mask=DRAW.random((2, 1, 5, 40)) < 0.5)
    with refused(ValueError, "`mask` must have the shape", "broadcasts", "4, 40"):
        k.softmax(x, mask=DRAW.random((4, 40)) < 0.5)
    with refused(TypeError, "`mask` must have elements of bool or u8, not float32", "mask != 0"):
        k.softmax(x, mask=draw(5, 40, kind="f32"))
    with refused(ValueError, "give one mask"):
        k.softmax(x, causal=True, mask=mask)


@pytest.mark.parametrize("kind", KINDS)
def test_casts(kind):
    types = {"bf16": "bf16", "f16": np.float16, "f32": np.dtype("f4")}
    for shape in SHAPES:
        x = draw(*shape, kind=kind)
        for wanted, dtype in types.items():
            y = k.cast(x, dtype)
            given = exact(x).astype(np.float32)
            want = to_bf16(given) if wanted == "bf16" else given.astype(dtype)
            assert y.dtype == want.dtype
            np.testing.assert_array_equal(y, want)
    wide = draw(5, 77, kind=kind)[:, :70]
    near(k.cast(wide, "float32"), exact(wide), 1e-9)
    with refused(TypeError, "cast: `dtype` must be one of bfloat16, float16, float32, not int32"):
        k.cast(wide, "int32")


@pytest.mark.parametrize("kind", KINDS)
def test_axpy(kind):
    for shape in SHAPES:
        x, y = draw(*shape, kind=kind), draw(*shape, kind=kind)
        out = np.zeros_like(x)
        assert k.axpy(-1.5, x, y, out=out) is out
        near(out, -1.5 * exact(x) + exact(y), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_transpose(kind):
    for shape in ((64, 72), (2, 3, 7, 130), (3, 65, 1), (0, 5), (2, 5, 0)):
        x = draw(*shape, kind=kind)
        y = k.transpose(x)
        assert y.flags.c_contiguous
        np.testing.assert_array_equal(y, x.swapaxes(-1, -2))
    wide = draw(9, 80, kind=kind)[:, 3:70]
    np.testing.assert_array_equal(k.transpose(wide), wide.T)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["sum", "amax"])
def test_reductions(name, kind):
    """Over each axis; of few rows, many, long and none"""
    for shape in ((2, 3, 64), (5, 7), (2, 16385), (600, 9), (2, 520, 5), (1, 4, 1), (6,), (0, 8)):
        x = draw(*shape, kind=kind)
        for dim in range(-1, len(shape) - 1):
            if name == "amax" and shape[dim] == 0:
                continue
            wanted = getattr(exact(x), name.removeprefix("a"))(dim)
            y = getattr(k, name)(x, dim)
            bound = KINDS[kind] * (1 if name == "amax" else 10)
            assert y.dtype == x.dtype
            near(y, wanted, bound)
            kept = getattr(k, name)(x, dim, keepdim=True)
            np.testing.assert_array_equal(kept, np.expand_dims(y, dim))
            out = np.zeros_like(kept)
            getattr(k, name)(x, dim, True, out=out)
            np.testing.assert_array_equal(out, kept)
    with refused(ValueError, "`dim` is 2, but `x` has 2 axes"):
        k.sum(draw(3, 5), 2)
    with refused(ValueError, "no maximum"):
        k.amax(draw(0, 5), 0)


@pytest.mark.parametrize("kind,moments", [("f32", "f32"), ("bf16", "f32"), ("bf16", "bf16"),
                                          ("f16", "f32")])
def test_adamw(kind, moments):
    """Some steps, beside those of f64"""
    for shape in ((5, 7), (2049,), (0,)):
        p, m, v = draw(*shape, kind=kind), *(draw(*shape, kind=moments) * 0 for _ in range(2))
        exactly = [exact(x) for x in (p, m, v)]
        for step in range(1, 4):
            grad = draw(*shape, kind=kind)
            k.adamw(p, grad, m, v, step, lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1)
            ep, em, ev = exactly
            em += 0.2 * (exact(grad) - em)
            ev *= 0.99
            ev += 0.01 * exact(grad)**2
            ep *= 1 - 0.01 * 0.1
            ep -= 0.01 / (1 - 0.8**step) * em / (np.sqrt(ev) / (1 - 0.99**step)**0.5 + 1e-6)
        for x, wanted in zip((p, m, v), exactly):
            near(x, wanted, 3 * KINDS[kind if x is p else moments])


def test_wrong_adamw():
    p, other = draw(5, 8, kind="f32"), draw(5, 8, kind="f32")
    with refused(ValueError, "`exp_avg` must have the shape"):
        k.adamw(p, p, other[:4], other, 1)
    with refused(TypeError, "`grad` must have elements of f32, not float16"):
        k.adamw(p, other.astype(np.float16), other, other, 1)
    with refused(ValueError, "`step` is 0, but the first step is 1"):
        k.adamw(p, p, other, other, 0)
    with refused(ValueError, "`p` has not its elements in C order"):
        k.adamw(p.T.copy().T, p, other, other, 1)


def test_wrong_norms():
    x = draw(5, 64)
    with refused(ValueError, "rms_norm_residual: `residual` must have the shape", "5, 64", "64"):
        k.rms_norm(x, 64, residual=draw(64))
    with refused(TypeError, "`residual` must have elements of bf16, not float16"):
        k.layer_norm(x, 64, residual=draw(5, 64, kind="f16"))


# ---- tensors of a device --------------------------------------------------------------------------


class Tensor(fakes.WithExchange):
    """With what an array library has as well"""

    def __init__(self, of):
        super().__init__(of, 0, 4)

    shape = property(lambda self: self.of.shape)
    ndim = property(lambda self: self.of.ndim)
    dtype = property(lambda self: self.of.dtype)
    strides = property(lambda self: self.of.strides)
    T = property(lambda self: Tensor(self.of.T))

    def __getitem__(self, key):
        return Tensor(self.of[key])

    def reshape(self, shape):
        return Tensor(self.of.reshape(shape))

    def swapaxes(self, a, b):
        return Tensor(self.of.swapaxes(a, b))


class WithoutStrides(Tensor):
    strides = property()

    def __getattribute__(self, name):
        if name == "strides":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_arrays_without_strides():
    """As those of JAX: in C order"""
    x, weight = (WithoutStrides(np.zeros(s, np.uint16)) for s in ((32, 64), (40, 64)))
    before = fakes.standin().launches
    k.linear(x, weight, out=Tensor(np.zeros((32, 40), np.uint16)))
    assert fakes.standin().launches == before + 1


def test_launches():
    """One for each call, and no copy: the maps are those of the views"""
    x, weight, out = (Tensor(np.zeros(s, np.uint16)) for s in ((4, 32, 64), (40, 64), (4, 32, 40)))
    before = fakes.standin().launches
    k.linear(x, weight, out=out)
    k.matmul(x, weight.T, out=out)
    k.matmul(weight, x[0].T, out=Tensor(np.zeros((40, 32), np.uint16)))
    assert fakes.standin().launches == before + 3
    assert k.linear(x, weight, Tensor(np.zeros(40, np.uint16)), "silu", out=out) is out
    for gap in (3, 8):
        k.linear(x, weight, out=Tensor(np.zeros((4, 32, 40 + gap), np.uint16)[..., :40]))
        k.linear(x[0][:, gap:], Tensor(np.zeros((40, 64), np.uint16))[:, gap:],
                 out=Tensor(np.zeros((32, 40), np.uint16)))
    assert fakes.standin().launches == before + 8


# ---- the table ------------------------------------------------------------------------------------


def test_each_kernel_is_shipped():
    """Each row names parameters and types of its kernel, and a gradient for what it is of"""
    shipped = pipec._kernel._pipec.shipped()
    for name, row in _table.OPERATIONS.items():
        if not isinstance(row, _table.Rows):
            continue
        assert row.kernel in shipped
        made = pipec.load(f"kernels:{row.kernel}")
        chosen = {**dict(row._statics), **dict.fromkeys(row._optional, 1)}
        names = [p.name for p in made.using(**chosen).parameters if "0 *" not in str(p.extents)]
        used = [*row._arguments.values(), *(n.removesuffix("+") for n in row._results.values())]
        assert sorted(filter(None, used)) == sorted(names)
        types = {**row._types, **({"F": "kind"} if name == "cast" else {})}
        assert [*types] == [n for n, v in made.statics.items() if isinstance(v, str)]


def test_lazy():
    import pipec

    assert pipec.kernels is k


def test_all():
    assert sorted(k.__all__) == k.__all__
    for name in k.__all__:
        assert name == "AdamW" or getattr(k, name).__doc__  # which imports PyTorch
    with pytest.raises(AttributeError, match="no attribute 'adam'"):
        k.adam


@pytest.mark.parametrize("D", [7, 100, 1000, 1024, 4001, 8000, 20000, 40001, 70000, 120000])
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm"])
def test_invariant_rows_have_one_choice(name, D):
    """Also between the numbers of rows at which the fastest candidate is another one"""
    kernel = pipec.load(f"kernels:{name}", invariant=True)
    ones, none = np.ones(D, np.float16), np.zeros((0, 0), np.float16)
    norm = {"Res": none, "W": ones, "eps": 1e-6}
    arguments = {"softmax": {}, "rms_norm": norm, "layer_norm": {**norm, "B": ones}}[name]
    chosen = {(choice.variant, *sorted(choice.statics.items()))
              for choice in (kernel.choose(np.zeros((M, D), np.float16), **arguments)
                             for M in (1, 2, 100, 132, 133, 200, 264, 265, 300, 1000))}
    assert len(chosen) == 1
