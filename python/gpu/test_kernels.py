"""pipec.kernels with tensors of PyTorch: results against f64, gradients, torch.compile, graphs."""

import itertools
import random

import pytest
import torch
import torch.nn.functional as F

import pipec
import pipec.kernels as k

DEVICE = "cuda"
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
NAN = float("nan")


def randn(*shape, dtype=BF16):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def poisoned(*shape, dtype=BF16):
    return torch.full(shape, NAN, device=DEVICE, dtype=dtype)


def near(x, wanted, bound=None):
    """Elements of `x` against exact ones, in units of what the sums are made of"""
    assert x.shape == wanted.shape
    bound = bound or {BF16: 1.6e-2, F16: 4e-3, F32: 1e-4}[x.dtype]
    wanted = wanted.double()
    error = (x.double() - wanted).abs() / (1 + wanted.abs())
    assert error.isfinite().all() and (x.numel() == 0 or error.max() <= bound), error.max()


def refused(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(words))


def in_order(x, flipped):
    return x.mT.contiguous().mT if flipped else x


def shapes(seed, count, most=700):
    """Sizes of rows of 16 bytes, any others, and few"""
    draw = random.Random(seed)
    for i in range(count):
        size = lambda: draw.choice((draw.randint(1, most), 8 * draw.randint(1, most // 8),
                                    draw.randint(1, 9)))
        yield size(), size(), size()


# ---- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [BF16, F16])
@pytest.mark.parametrize("flips", itertools.product((False, True), (False, True)))
def test_matmul(flips, dtype):
    for M, N, K in shapes(sum(flips), 12):
        for batch in ((), (3,)):
            a, b = (in_order(randn(*batch, *shape, dtype=dtype) / s**0.25, flip)
                    for shape, s, flip in (((M, K), K, flips[0]), ((K, N), K, flips[1])))
            out = poisoned(*batch, M, N, dtype=dtype)
            assert k.matmul(a, b, out=out) is out
            near(out, a.double() @ b.double())
            assert torch.equal(k.matmul(a, b), out)


def finished(total, bias, activation, residual):
    total = total if bias is None else total + bias.double()
    done = {None: lambda x: x, "relu": F.relu, "silu": F.silu,
            "gelu": lambda x: F.gelu(x, approximate="tanh")}[activation](total)
    return done if residual is None else done + residual.double()


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu"])
@pytest.mark.parametrize("dtype", [BF16, F16])
def test_linear(activation, dtype):
    for M, N, K in shapes(7, 8):
        x, weight = randn(2, M, K, dtype=dtype), randn(N, K, dtype=dtype) / K**0.5
        total = x.double() @ weight.double().T
        for bias, residual in ((None, None), (randn(N, dtype=dtype), None),
                               (None, randn(2, M, N, dtype=dtype)),
                               (randn(N, dtype=dtype), randn(2, M, N, dtype=dtype))):
            out = poisoned(2, M, N, dtype=dtype)
            k.linear(x, weight, bias, activation, residual, out=out)
            near(out, finished(total, bias, activation, residual))


LARGE = ((1, 4096, 4096), (16, 11008, 4096), (64, 4096, 11008), (300, 4096, 4096),
         (4096, 4096, 4096), (4096, 64, 4096), (8192, 8192, 64))


def test_linear_of_large_shapes():
    """Each of the variants that shapes of a transformer take"""
    for M, N, K in LARGE:
        x, weight = randn(M, K), randn(N, K) / K**0.5
        near(k.linear(x, weight), x.double() @ weight.double().T)
        near(k.linear(x.half(), weight.half()), x.double() @ weight.double().T)
        bias = randn(N)
        near(k.linear(x, weight, bias, "silu"),
             F.silu(x.double() @ weight.double().T + bias.double()))


def test_transposed_and_gaps():
    x, weight = randn(300, 264), randn(520, 264) / 16
    wanted = x.double() @ weight.double().T
    near(k.linear(in_order(x, True), weight), wanted)
    near(k.linear(x, in_order(weight, True)), wanted)
    near(k.linear(in_order(x, True), in_order(weight, True)), wanted)
    for gap in (8, 3, 1):
        wide = randn(300, 264 + gap)
        near(k.linear(wide[:, :264], weight), wide[:, :264].double() @ weight.double().T)
        near(k.linear(wide[:, gap:], weight), wide[:, gap:].double() @ weight.double().T)
        out = poisoned(300, 520 + gap)[:, :520]
        k.linear(x, weight, out=out)
        near(out, wanted)


# ---- f32 as tf32 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("flips", itertools.product((False, True), (False, True)))
def test_matmul_of_tf32(flips):
    for M, N, K in (*shapes(sum(flips), 10), (512, 4096, 1024)):
        for batch in ((), (3,)):
            a, b = (in_order(randn(*batch, *shape, dtype=F32) / s**0.25, flip)
                    for shape, s, flip in (((M, K), K, flips[0]), ((K, N), K, flips[1])))
            out = poisoned(*batch, M, N, dtype=F32)
            assert k.matmul(a, b, precision="tf32", out=out) is out
            near(out, a.double() @ b.double(), 1e-2)
            assert torch.equal(k.matmul(a, b, precision="tf32"), out)


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu"])
def test_linear_of_tf32(activation):
    for M, N, K in (*shapes(7, 6), *LARGE[:5]):
        x, weight = randn(2, M, K, dtype=F32), randn(N, K, dtype=F32) / K**0.5
        total = x.double() @ weight.double().T
        bias, residual = randn(N, dtype=F32), randn(2, M, N, dtype=F32)
        for b, r in ((None, None), (bias, None), (None, residual), (bias, residual)):
            out = poisoned(2, M, N, dtype=F32)
            k.linear(x, weight, b, activation, r, precision="tf32", out=out)
            near(out, finished(total, b, activation, r), 1e-2)


def test_precision():
    x, weight = randn(64, 128, dtype=F32), randn(96, 128, dtype=F32)
    with refused(TypeError, 'pass precision="tf32"'):
        k.matmul(x, weight.T)
    with torch.autocast(DEVICE, dtype=BF16):
        assert k.linear(x, weight, precision="tf32").dtype == BF16


# ---- 8 bits ---------------------------------------------------------------------------------------

E4M3, E5M2, I8, I32 = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.int32


def byte_shapes(seed):
    """Rows of 16 bytes and others"""
    sixteen = [(m, n, -(-size // 16) * 16) for m, n, size in shapes(seed, 6)]
    return (*shapes(seed, 6), *sixteen, *LARGE[:5], (4096, 4096, 4095))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("kind", [E4M3, E5M2])
def test_scaled_mm(kind, dtype, fast):
    for M, N, K in byte_shapes(3):
        a, b = randn(M, K, dtype=F32).to(kind), (randn(N, K, dtype=F32) / K**0.5).to(kind)
        bias = randn(N, dtype=dtype)
        scale_a, scale_b = torch.tensor(0.5, device=DEVICE), torch.full((1,), 3.0, device=DEVICE)
        total = a.double() @ b.double().T
        out = poisoned(M, N, dtype=dtype)
        k.scaled_mm(a, b.T, scale_a, scale_b, bias, dtype, fast, out=out)
        # a sum of fp8 keeps 14 bits, and loses some at each step of the matrix unit
        bound = 2e-2 if not fast else 2e-2 + 2e-3 * K**0.5
        near(out, 1.5 * total + bias.double(), bound)
        near(k.scaled_mm(a, b.T, scale_a, 3.0, None, dtype, fast), 1.5 * total, bound)


def test_scaled_mm_as_torch():
    a, b = randn(300, 512, dtype=F32).to(E4M3), randn(256, 512, dtype=F32).to(E4M3)
    scales = torch.tensor(0.1, device=DEVICE), torch.tensor(0.2, device=DEVICE)
    wanted = torch._scaled_mm(a, b.T, *scales, out_dtype=BF16)
    near(k.scaled_mm(a, b.T, *scales, out_dtype=BF16), wanted)
    near(k.scaled_mm(a.reshape(3, 100, 512), b.T, *scales), wanted.reshape(3, 100, 256))


def random_i8(*shape):
    return torch.randint(-128, 128, shape, device=DEVICE, dtype=I8)


def test_int_mm():
    for M, N, K in byte_shapes(5):
        a, b = random_i8(M, K), random_i8(N, K)
        total = a.double() @ b.double().T
        out = torch.full((M, N), -1, device=DEVICE, dtype=I32)
        assert k.int_mm(a, b.T, out=out) is out
        assert torch.equal(out.double(), total)
        scale = torch.full((1,), 1e-4, device=DEVICE)
        for dtype in (BF16, F16, F32):
            bias = randn(N, dtype=dtype)
            y = k.scaled_mm(a, b.T, scale, 0.5, bias, dtype)
            near(y, 5e-5 * total + bias.double(), 2e-2)


def test_bytes_compiled():
    """As operators, and in a graph: a scale that changes is read by the next replay"""
    def ours(a, b, scale, bias):
        y = k.scaled_mm(a.to(E4M3), b.to(E4M3).T, scale, 2.0, bias, BF16)
        return y, k.int_mm(a.to(I8), b.to(I8).T)

    a, b, bias = (randn(64, 128, dtype=F32) * 4, randn(96, 128, dtype=F32) * 4, randn(96))
    scale = torch.full((1,), 0.25, device=DEVICE)
    wanted = ours(a, b, scale, bias)
    torch._dynamo.reset()
    for x, y in zip(torch.compile(ours, fullgraph=True)(a, b, scale, bias), wanted):
        near(x, y) if x.dtype == BF16 else None
        assert x.dtype != I32 or torch.equal(x, y)
    if DEVICE == "cpu":
        return
    a, b = a.to(E4M3), b.to(E4M3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = k.scaled_mm(a, b.T, scale)
    for value in (0.25, 3.0):
        scale.fill_(value)
        graph.replay()
        x, w = a.double(), b.double()
        wanted, most = x @ w.T, x.abs() @ w.abs().T
        # a sum of fp8 keeps 14 bits of its largest part
        bound = value * (2**-8 * wanted.abs() + 2**-12 * most)
        assert ((y.double() - value * wanted).abs() <= bound).all()


def test_wrong_bytes():
    a, b = random_i8(9, 16), random_i8(24, 16)
    with refused(ValueError, r"b\.T\.contiguous\(\)\.T"):
        k.int_mm(a, b.T.contiguous())
    with refused(ValueError, "`scale_a` must be a number or have one element"):
        k.scaled_mm(a, b.T, torch.ones(9, 1, device=DEVICE))
    with refused(TypeError, "`b` must have elements of e4m3, not float8_e5m2"):
        k.scaled_mm(a.to(E4M3), b.to(E5M2).T)


# ---- sizes and strides ----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (3, 5, 0)])
def test_nothing(sizes):
    M, N, K = sizes
    x, weight, bias = randn(M, K), randn(N, K), randn(N)
    near(k.matmul(x, weight.T), x.double() @ weight.double().T)
    near(k.linear(x, weight, bias), (x.double() @ weight.double().T) + bias.double())


def test_wrong_calls():
    x, weight = randn(9, 16), randn(24, 16)
    with refused(TypeError, "linear: `x` must have elements of bf16 or f16, not float32",
                 r"x\.to\(torch\.bfloat16\)"):
        k.linear(x.float(), weight)
    with refused(TypeError, "`weight` must have elements of bf16, not float16",
                 r"weight\.to\(torch\.bfloat16\)"):
        k.linear(x, weight.half())
    with refused(ValueError, r"b\.contiguous\(\)"):
        k.matmul(x, randn(32, 48)[::2, ::2])
    with refused(ValueError, r"x\.contiguous\(\)"):
        k.linear(randn(2, 9, 32)[:, :, ::2], weight)
    with refused(ValueError, "last axis"):
        k.softmax(x, 0)
    with refused(RuntimeError, "`cos` and `sin` have no gradients"):
        k.rope(randn(5, 2, 8), *(t.requires_grad_() for t in tables(5, 8))).sum().backward()
    with refused(RuntimeError, "`out` has no gradient"):
        k.linear(x.requires_grad_(), weight, out=randn(9, 24))


def test_autocast():
    x, weight = randn(64, 128, dtype=F32), randn(96, 128, dtype=F32)
    for dtype in (BF16, F16):
        with torch.autocast(DEVICE, dtype=dtype):
            y = k.linear(x, weight)
        assert y.dtype == dtype
        near(y, x.to(dtype).double() @ weight.to(dtype).double().T)


# ---- rows -----------------------------------------------------------------------------------------

LENGTHS = (1, 7, 8, 31, 33, 127, 1000, 1024, 4099, 20000)


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("D", LENGTHS)
def test_rows(D, dtype):
    for lead in ((131,), (2, 3), (0,)):
        x, w, b = (randn(*s, D, dtype=dtype) for s in (lead, (), ()))
        out = poisoned(*lead, D, dtype=dtype)
        near(k.softmax(x, out=out), torch.softmax(x.double(), -1))
        assert torch.equal(k.softmax(x), out)
        near(k.rms_norm(x, D, w, 1e-6, out=out),
             F.rms_norm(x.double(), (D,), w.double(), 1e-6), 3e-2)
        near(k.layer_norm(x, (D,), w, b, out=out),
             F.layer_norm(x.double(), (D,), w.double(), b.double()), 3e-2)
        near(k.layer_norm(x, (D,)), F.layer_norm(x.double(), (D,)), 3e-2)
        near(k.rms_norm(x, (D,), eps=1e-6), F.rms_norm(x.double(), (D,), None, 1e-6), 3e-2)
        near(k.layer_norm(x, (D,), None, b), F.layer_norm(x.double(), (D,), None, b.double()), 3e-2)


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("D", LENGTHS)
def test_norms_of_sums(D, dtype):
    """With a residual: the sum is the rounded one, and its norm the norm of what is stored"""
    for lead in ((131,), (2, 3), (0,)):
        x, r, w, b = (randn(*s, D, dtype=dtype) for s in (lead, lead, (), ()))
        out = poisoned(*lead, D, dtype=dtype)
        y, total = k.rms_norm(x, D, w, 1e-6, residual=r, out=out)
        assert y is out and torch.equal(total, x + r)
        near(y, F.rms_norm(total.double(), (D,), w.double(), 1e-6), 3e-2)
        assert torch.equal(k.rms_norm(x, D, w, 1e-6, residual=r)[0], y)
        y, total = k.layer_norm(x, D, w, b, residual=r)
        assert torch.equal(total, x + r)
        near(y, F.layer_norm(total.double(), (D,), w.double(), b.double()), 3e-2)
        near(k.layer_norm(x, D, residual=r)[0], F.layer_norm(total.double(), (D,)), 3e-2)


GATES = {"swiglu": F.silu, "geglu": lambda x: F.gelu(x, approximate="tanh")}
SHAPES = ((1,), (7,), (8, 5), (131, 257), (64, 1024), (3, 5, 4099), (0, 8))


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("name", GATES)
def test_gates(name, dtype):
    run, act = getattr(k, name), GATES[name]
    for shape in SHAPES:
        gate, up = (randn(*shape, dtype=dtype) for _ in range(2))
        out = poisoned(*shape, dtype=dtype)
        assert run(gate, up, out=out) is out
        near(out, act(gate.double()) * up.double())
        assert torch.equal(run(gate, up), out)
    for width in (1, 64, 257, 1000):
        gate, up = randn(2, 31, 2 * width, dtype=dtype).chunk(2, -1)
        near(run(gate, up), act(gate.double()) * up.double())


def visible(x, mask):
    return torch.softmax(x.masked_fill(~mask, -torch.inf), -1)


def below(x):
    """What positions see of those up to themselves"""
    S, D = x.shape[-2:]
    return torch.ones(S, D, dtype=torch.bool, device=x.device).tril(D - S)


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("D", (1, 7, 64, 1000, 20000))
def test_masks(D, dtype):
    for lead in ((2, 3, min(D, 37)), (1,), (3, 0)):
        x, out = randn(*lead, D, dtype=dtype), poisoned(*lead, D, dtype=dtype)
        if len(lead) > 1:
            assert k.softmax(x, causal=True, out=out) is out
            near(out, visible(x.double(), below(x)))
        for shape in {(*lead, D), (*lead[-1:], D), (D,), (*lead[:1], *(1 for _ in lead[1:]), D)}:
            mask = torch.rand(shape, device=DEVICE) < 0.7
            mask[..., 0] = True
            near(k.softmax(x, mask=mask), visible(x.double(), mask))


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
def test_elements(dtype):
    """cast, axpy, transpose"""
    for shape in SHAPES:
        x, y = (randn(*shape, dtype=dtype) for _ in range(2))
        for kind in (BF16, F16, F32):
            assert torch.equal(k.cast(x, kind), x.to(kind).clone())
        out = poisoned(*shape, dtype=dtype)
        assert k.axpy(-1.5, x, y, out=out) is out
        near(out, -1.5 * x.double() + y.double())
        if x.ndim > 1:
            turned_ = k.transpose(x)
            assert turned_.is_contiguous() and torch.equal(turned_, x.mT)
    wide = randn(31, 264, dtype=dtype)
    for view in (wide[:, :256], wide[:, 3:70]):
        assert torch.equal(k.cast(view, F32), view.float())
        assert torch.equal(k.transpose(view), view.T)
        near(k.axpy(2, view, view), 3 * view.double())


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("name", ["sum", "amax"])
def test_reductions(name, dtype):
    """Over each axis; errors of sums are those of their terms"""
    for shape in ((131, 257), (3, 1000, 72), (5000, 8), (4, 17001), (2, 3, 5, 7), (1, 70000), (9,)):
        x = randn(*shape, dtype=dtype)
        for dim in range(-1, len(shape) - 1):
            ours, theirs = getattr(k, name), getattr(torch, name)
            bound = {BF16: 1e-2, F16: 2e-3, F32: 1e-5}[dtype]
            terms = shape[dim] if name == "sum" else 1
            near(ours(x, dim), theirs(x.double(), dim), bound * (1 + terms**0.5))
            out = poisoned(*theirs(x, dim, keepdim=True).shape, dtype=dtype)
            ours(x, dim, True, out=out)
            assert torch.equal(out, ours(x, dim, keepdim=True))


@pytest.mark.parametrize("dtype,moments", [(F32, F32), (BF16, F32), (BF16, BF16), (F16, F32)])
def test_adamw(dtype, moments):
    """The optimizer beside PyTorch's, in f64, from the same gradients"""
    shapes_ = ((131, 257), (7,), (1024, 64), (1,))
    ours = [randn(*shape, dtype=dtype).requires_grad_() for shape in shapes_]
    theirs = [p.detach().double().requires_grad_() for p in ours]
    given = {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1}
    ours_by = k.AdamW(ours, moments=moments, **given)
    theirs_by = torch.optim.AdamW(theirs, **given)
    for _ in range(4):
        for p, q in zip(ours, theirs):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.double()
        version = ours[0]._version
        ours_by.step()
        theirs_by.step()
        assert ours[0]._version > version
    for p, q in zip(ours, theirs):
        near(p.detach(), q.detach())
        assert ours_by.state[p]["exp_avg"].dtype == moments
        near(ours_by.state[p]["exp_avg"], theirs_by.state[q]["exp_avg"])
    again = k.AdamW(ours, moments=moments, **given)
    again.load_state_dict(ours_by.state_dict())
    again.step()
    with refused(RuntimeError, "adamw: it changes tensors in place", "no_grad"):
        k.adamw(ours[0], ours[0].grad, *(torch.zeros_like(ours[0]) for _ in range(2)), 1)


def test_adamw_of_inference():
    with torch.inference_mode():
        p, grad, m, v = (randn(96, 64, dtype=F32) for _ in range(4))
        before = p.clone()
        k.adamw(p, grad, m, v.abs_(), 1)
        assert not torch.equal(p, before)


def test_compiled_adamw():
    p, grad, m, v = (randn(96, 64, dtype=F32) for _ in range(4))
    v = v.abs()
    exact = [x.clone() for x in (p, m, v)]
    k.adamw(exact[0], grad, *exact[1:], 3)

    def step(p, grad, m, v):
        k.adamw(p, grad, m, v, 3)
        return p * 2

    torch._dynamo.reset()
    doubled = torch.compile(step, fullgraph=True)(p, grad, m, v)
    for x, y in zip((p, m, v), exact):
        assert torch.equal(x, y)
    assert torch.equal(doubled, 2 * p)


def turned(x, cos, sin, interleaved=False):
    """As models write it"""
    cos, sin = cos[:, None], sin[:, None]
    if interleaved:
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def tables(S, D, dtype=F32):
    angles = torch.arange(S, device=DEVICE)[:, None] / 100 ** (
        torch.arange(D // 2, device=DEVICE) / max(1, D // 2))
    return angles.cos().to(dtype), angles.sin().to(dtype)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", [BF16, F16, F32])
def test_rope(dtype, interleaved):
    for shape in ((2, 37, 8, 128), (300, 4, 64), (2, 3, 5, 1, 10), (9, 6, 80), (3, 2, 600),
                  (0, 2, 8), (1, 40, 32, 256)):
        x, out = randn(*shape, dtype=dtype), poisoned(*shape, dtype=dtype)
        for kind in {dtype, F32}:
            cos, sin = tables(shape[-3], shape[-1], kind)
            assert k.rope(x, cos, sin, interleaved=interleaved, out=out) is out
            near(out, turned(x.double(), cos.double(), sin.double(), interleaved))
    q, key, _ = randn(2, 37, 3, 8, 64, dtype=dtype).unbind(2)
    cos, sin = tables(37, 64)
    for x in (q, key, q.transpose(1, 2).contiguous().transpose(1, 2)):
        near(k.rope(x, cos, sin, interleaved=interleaved),
             turned(x.double(), cos.double(), sin.double(), interleaved))


@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("V", LENGTHS)
def test_cross_entropy(V, dtype):
    x = randn(131, V, dtype=dtype)
    labels = torch.randint(0, V, (131,), device=DEVICE)
    labels[::5] = -100
    for reduction, kind in itertools.product(("mean", "sum", "none"), (torch.int64, torch.int32)):
        loss = k.cross_entropy(x, labels.to(kind), reduction=reduction)
        near(loss, F.cross_entropy(x.double(), labels, reduction=reduction), 1e-3)
    shifted = torch.where(labels == -100, 0, labels)
    near(k.cross_entropy(x, shifted, ignore_index=0, reduction="sum"),
         F.cross_entropy(x.double(), shifted, ignore_index=0, reduction="sum"), 1e-3)


# ---- gradients ------------------------------------------------------------------------------------


def gradients(function, *args, dtype=None):
    args = [x.detach().to(dtype or x.dtype).requires_grad_() for x in args]
    y = function(*args)
    wave = (torch.arange(y.numel(), device=DEVICE) * 37 % 31).reshape(y.shape) / 16 - 0.75
    return torch.autograd.grad((y * wave.to(y.dtype)).sum(), args)


def labels_of(rows, classes):
    labels = torch.arange(rows, device=DEVICE) * 7919 % classes
    labels[::4] = -100
    return labels


def both(y, total):
    """A norm of a sum and the sum, of which later layers use both"""
    return torch.cat((y, 0.5 * total), -1)


# name, with pipec, with PyTorch, shapes of the arguments
CASES = [
    ("matmul", k.matmul, torch.matmul, ((96, 64), (64, 80))),
    ("matmul-odd", k.matmul, torch.matmul, ((33, 7), (7, 5))),
    ("matmul-batch", k.matmul, torch.matmul, ((3, 96, 64), (3, 64, 80))),
    ("matmul-leading", k.matmul, torch.matmul, ((3, 96, 64), (64, 80))),
    ("matmul-heads", lambda a, b: k.matmul(a, b).transpose(1, 2).flatten(2),
     lambda a, b: torch.matmul(a, b).transpose(1, 2).flatten(2), ((2, 3, 40, 64), (2, 3, 64, 48))),
    ("linear", k.linear, F.linear, ((2, 96, 64), (80, 64), (80,))),
    ("linear-odd", k.linear, F.linear, ((2, 3, 7), (5, 7), (5,))),
    ("linear-silu", lambda x, w, b, r: k.linear(x, w, b, "silu", r),
     lambda x, w, b, r: F.silu(F.linear(x, w, b)) + r, ((96, 64), (80, 64), (80,), (96, 80))),
    ("linear-residual", lambda x, w, r: k.linear(x, w, residual=r),
     lambda x, w, r: F.linear(x, w) + r, ((96, 64), (80, 64), (96, 80))),
    ("softmax", k.softmax, lambda x: torch.softmax(x, -1), ((2, 96, 1000),)),
    ("rms_norm", lambda x, w: k.rms_norm(x, x.shape[-1], w, 1e-6),
     lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6), ((300, 1000), (1000,))),
    ("layer_norm", lambda x, w, b: k.layer_norm(x, x.shape[-1], w, b),
     lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), ((300, 1000), (1000,), (1000,))),
    ("rms_norm-plain", lambda x: k.rms_norm(x, x.shape[-1], eps=1e-6),
     lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-6), ((300, 1000),)),
    ("layer_norm-plain", lambda x: k.layer_norm(x, x.shape[-1]),
     lambda x: F.layer_norm(x, x.shape[-1:]), ((300, 1001),)),
    ("layer_norm-weight", lambda x, w: k.layer_norm(x, x.shape[-1], w),
     lambda x, w: F.layer_norm(x, x.shape[-1:], w), ((300, 1000), (1000,))),
    ("rms_norm-residual", lambda x, r, w: both(*k.rms_norm(x, x.shape[-1], w, 1e-6, residual=r)),
     lambda x, r, w: both(F.rms_norm(x + r, x.shape[-1:], w, 1e-6), x + r),
     ((300, 1000), (300, 1000), (1000,))),
    ("layer_norm-residual",
     lambda x, r, w, b: both(*k.layer_norm(x, x.shape[-1], w, b, residual=r)),
     lambda x, r, w, b: both(F.layer_norm(x + r, x.shape[-1:], w, b), x + r),
     ((2, 150, 1001), (2, 150, 1001), (1001,), (1001,))),
    ("rms_norm-residual-alone", lambda x, r: k.rms_norm(x, x.shape[-1], eps=1e-6, residual=r)[0],
     lambda x, r: F.rms_norm(x + r, x.shape[-1:], None, 1e-6), ((300, 520), (300, 520))),
    ("softmax-causal", lambda x: k.softmax(x, causal=True), lambda x: visible(x, below(x)),
     ((2, 96, 1000),)),
    ("softmax-mask", lambda x: k.softmax(x, mask=below(x)), lambda x: visible(x, below(x)),
     ((2, 96, 1000),)),
    ("cast", lambda x: k.cast(x, F32), lambda x: x * 1.0, ((33, 257),)),
    ("axpy", lambda x, y: k.axpy(-2.5, x, y), lambda x, y: -2.5 * x + y, ((33, 257), (33, 257))),
    ("transpose", k.transpose, lambda x: x.mT, ((2, 33, 257),)),
    ("sum", lambda x: k.sum(x, 1), lambda x: x.sum(1), ((33, 257, 8),)),
    ("sum-kept", lambda x: k.sum(x, keepdim=True) * x, lambda x: x.sum(-1, True) * x, ((33, 257),)),
    ("amax", lambda x: k.amax(x.round(), 0), lambda x: x.round().amax(0) + 0 * x.sum(),
     ((257, 33),)),
    ("swiglu", k.swiglu, lambda g, u: F.silu(g) * u, ((33, 257), (33, 257))),
    ("swiglu-halves", lambda x: k.swiglu(*x.chunk(2, -1)),
     lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], ((2, 33, 512),)),
    ("geglu", k.geglu, lambda g, u: F.gelu(g, approximate="tanh") * u, ((64, 1024), (64, 1024))),
    ("rope", lambda x: k.rope(x, *tables(*x.shape[1::2])),
     lambda x: turned(x, *tables(*x.shape[1::2])), ((2, 37, 8, 64),)),
    ("rope-interleaved", lambda x: k.rope(x, *tables(*x.shape[1::2]), interleaved=True),
     lambda x: turned(x, *tables(*x.shape[1::2]), True), ((2, 37, 8, 64),)),
    ("cross_entropy", lambda x: k.cross_entropy(x, labels_of(*x.shape)),
     lambda x: F.cross_entropy(x, labels_of(*x.shape)), ((300, 1000),)),
    ("cross_entropy-none", lambda x: k.cross_entropy(x, labels_of(*x.shape), reduction="none"),
     lambda x: F.cross_entropy(x, labels_of(*x.shape), reduction="none"), ((300, 1001),)),
]


def similar(got, wanted):
    for g, w in zip(got, wanted):
        assert g.shape == w.shape and g.isfinite().all()
        assert (g.double() - w).norm() <= 2e-2 * w.norm() + 1e-9


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients(case, compiled):
    """Against PyTorch's in f64"""
    _, ours, theirs, sizes = case
    torch.manual_seed(1)
    args = [randn(*size) for size in sizes]
    if compiled:
        torch._dynamo.reset()
        ours = torch.compile(ours, fullgraph=True)
    similar(gradients(ours, *args), gradients(theirs, *args, dtype=torch.float64))


def test_gradients_of_tf32():
    for name, sizes in (("matmul", ((96, 64), (64, 80))), ("linear", ((2, 33, 64), (80, 64), (80,)))):
        args = [randn(*size, dtype=F32) for size in sizes]
        ours, theirs = getattr(k, name), torch.matmul if name == "matmul" else F.linear
        similar(gradients(lambda *xs: ours(*xs, precision="tf32"), *args),
                gradients(theirs, *args, dtype=torch.float64))


def test_expanded_gradients():
    """Of a plain sum, whose gradient has one element"""
    x, weight = randn(96, 64).requires_grad_(), randn(80, 64).requires_grad_()
    for function in (k.linear, lambda x, w: k.matmul(x, w.T),
                     lambda x, w: k.softmax(k.linear(x, w))):
        x.grad = weight.grad = None
        function(x, weight).sum().backward()
        assert x.grad.isfinite().all() and weight.grad.isfinite().all()


# ---- torch.compile and graphs ---------------------------------------------------------------------


def model(x, norm, first, bias, second, head, labels):
    h = k.rms_norm(x, x.shape[-1], norm, 1e-6)
    h = k.linear(k.linear(h, first, bias, "gelu"), second, residual=x)
    return k.cross_entropy(k.matmul(h, head.T), labels)


def reference(x, norm, first, bias, second, head, labels):
    h = F.rms_norm(x, x.shape[-1:], norm, 1e-6)
    h = F.linear(F.gelu(F.linear(h, first, bias), approximate="tanh"), second) + x
    return F.cross_entropy(h @ head.T, labels)


def parameters(rows=300, D=256, hidden=520, V=1000):
    torch.manual_seed(2)
    return [randn(rows, D), randn(D), randn(hidden, D) / D**0.5, randn(hidden),
            randn(D, hidden) / hidden**0.5, randn(V, D) / D**0.5, labels_of(rows, V)]


def doubles(args):
    return [x.double() if x.is_floating_point() else x for x in args]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compile(mode):
    torch._dynamo.reset()
    run = torch.compile(model, fullgraph=True, mode=mode)
    for _ in range(3):
        args = parameters()
        with torch.no_grad():
            near(run(*args), reference(*doubles(args)), 1e-2)
    assert torch._dynamo.explain(model)(*args).graph_break_count == 0


def test_dynamic_shapes():
    torch._dynamo.reset()
    run = torch.compile(model, fullgraph=True, dynamic=True)
    for rows in (64, 200, 333):
        args = parameters(rows)
        near(run(*args), reference(*doubles(args)), 1e-2)


@pytest.mark.skipif(DEVICE == "cpu", reason="no graphs")
def test_graph():
    """Captured at its first call, with a shape that no other test has"""
    args = parameters(rows=177, D=264)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        loss = model(*args)
    args[0].normal_()
    graph.replay()
    torch.cuda.synchronize()
    near(loss, reference(*doubles(args)), 1e-2)


@pytest.mark.skipif(DEVICE == "cpu", reason="no graphs")
def test_graph_of_gradients():
    args = parameters()
    floats = [x.requires_grad_() for x in args if x.is_floating_point()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.autograd.grad(model(*args), floats)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = torch.autograd.grad(model(*args), floats)
    with torch.no_grad():
        args[0].normal_()
    graph.replay()
    torch.cuda.synchronize()
    exact = [x.detach().double().requires_grad_() if x.is_floating_point() else x for x in args]
    wanted = torch.autograd.grad(reference(*exact), [x for x in exact if x.is_floating_point()])
    for g, w in zip(got, wanted):
        assert (g.double() - w).norm() <= 3e-2 * w.norm()


def test_opcheck():
    x, weight, bias = (randn(*s).requires_grad_() for s in ((40, 64), (48, 64), (48,)))
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.pipec.linear.default, (x, weight, bias, None, None, None),
                          test_utils=tests)
    torch.library.opcheck(torch.ops.pipec.matmul.default, (x, randn(64, 48), None),
                          test_utils=tests)
    torch.library.opcheck(torch.ops.pipec.softmax.default, (x,), test_utils=tests)
    for weight in (None, randn(64).requires_grad_()):
        torch.library.opcheck(torch.ops.pipec.rms_norm_residual.default,
                              (x, randn(40, 64), weight, 1e-6), test_utils=tests)


def test_streams():
    x, weight = randn(4096, 4096), randn(4096, 4096) / 64
    wanted = F.linear(x, weight).double()
    if DEVICE == "cpu":
        return
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        late = torch.zeros_like(x)
        torch.cuda._sleep(20_000_000)
        late.copy_(x)
        y = k.linear(late, weight)
    side.synchronize()
    near(y, wanted)


def test_tracing():
    """What sees operators sees these: fake tensors, make_fx, torch.export"""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x, weight = randn(40, 64), randn(48, 64)
    for mode in ("real", "fake", "symbolic"):
        traced = make_fx(lambda x, w: k.linear(x, w) + 1, tracing_mode=mode)(x, weight)
        assert "pipec.linear" in traced.code
    with FakeTensorMode() as mode:
        assert k.linear(mode.from_tensor(x), mode.from_tensor(weight)).shape == (40, 48)
    module = type("Module", (torch.nn.Module,), {"forward": lambda self, x, w: k.linear(x, w)})()
    assert "pipec.linear" in str(torch.export.export(module, (x, weight)).graph)


# ---- calls that are repeated -----------------------------------------------------------------------


@pytest.fixture
def plans():
    from pipec import _plans

    _plans._plans.clear()
    return _plans._plans


def test_repeated_calls(plans):
    """Other data at other places, where the first call has the same tensor twice, views of one
    tensor, or a batch that is merged"""
    first = randn(6, 64, 64)
    sets = [(first[0], first[0]), (first[1], first[2]), (first[5], first[3]),
            (randn(64, 64), randn(64, 64))]
    for a, b in sets:
        near(k.matmul(a, b), a.double() @ b.double())
        near(k.linear(a, b), a.double() @ b.double().T)
    wide = randn(64, 3 * 64)
    for at in (0, 64, 128):
        q, r = wide[:, at:at + 64], wide[:, 128 - at:192 - at]
        near(k.matmul(q, r.T), q.double() @ r.double().T)
    assert len(plans) == 3 and all(plans.values())
    for _ in range(3):
        x, weight, bias = randn(2, 3, 24), randn(40, 24), randn(40)
        out = poisoned(2, 3, 40)
        assert k.linear(x, weight, bias, "relu", out=out) is out
        near(out, (x.double() @ weight.double().T + bias.double()).relu())
        y = k.rms_norm(x, 24, eps=1e-6)
        near(y, F.rms_norm(x.double(), (24,), eps=1e-6))
        y += 1  # is no view that autograd forbids to change
    assert all(plans.values())


def test_repeated_calls_of_other_places(plans):
    """Addresses decide whether rows are copied by TMA"""
    memory, weight = randn(64 * 64 + 8), randn(64, 64) / 8
    for at in (0, 1, 8, 2, 0):
        x = memory[at:at + 64 * 64].view(64, 64)
        near(k.linear(x, weight), x.double() @ weight.double().T)


def test_plans_are_bounded(plans, monkeypatch):
    from pipec import _plans

    monkeypatch.setattr(_plans, "MOST", 4)
    for rows in range(1, 12):
        x = randn(rows, 16)
        near(k.softmax(x), x.double().softmax(-1))
        assert len(plans) <= 4


def test_operations_without_a_plan(plans):
    """What an operation does besides its kernels is done each time"""
    from pipec import _plans, _table

    class Shifted(_table.Operation):
        def run(self, x, out=None):
            (y,) = _table.OPERATIONS["softmax"].run(x)
            return (y + 1,)

    operation = Shifted("shifted", {"x": "Tensor"}, ("y",))
    for _ in range(2):
        x = randn(4, 16)
        near(_plans.run(operation, (x,))[0], x.double().softmax(-1) + 1)
    assert list(plans.values()) == [None]


def test_views_of_another_type_have_no_plan(plans):
    from pipec import _plans, _table

    class Bytes(_table.Operation):
        def run(self, x, out=None):
            return (x.view(torch.uint8),)

    for _ in range(2):
        x = randn(4, 16) > 0
        assert torch.equal(_plans.run(Bytes("bytes", {"x": "Tensor"}, ("y",)), (x,))[0], x.byte())
    assert list(plans.values()) == [None]


def test_second_gradients_are_refused():
    x = randn(4, 16).requires_grad_()
    (dx,) = torch.autograd.grad(k.softmax(x).square().sum(), x, create_graph=True)
    with refused(RuntimeError, "used in the graph"):
        torch.autograd.grad(dx.sum(), x)


def test_forward_mode_is_refused():
    x, t = randn(4, 16), randn(4, 16)
    for function in (k.softmax, lambda x: k.matmul(x, x.T)):
        with refused(RuntimeError, "forward"):
            torch.func.jvp(function, (x,), (t,))
        with refused(RuntimeError, "forward"), torch.autograd.forward_ad.dual_level():
            function(torch.autograd.forward_ad.make_dual(x, t))


# ---- serving --------------------------------------------------------------------------------------


def bits(x):
    return x.view(torch.int32 if x.element_size() == 4 else torch.int16)


@pytest.mark.parametrize("N, K", [(512, 1024), (264, 72), (4096, 4096)])
@pytest.mark.parametrize("dtype", [BF16, F16])
def test_products_of_any_number_of_rows_have_the_same_bits(N, K, dtype):
    linear = pipec.load("kernels:linear", T="bf16" if dtype == BF16 else "f16", invariant=True)
    x, weight = randn(300, K, dtype=dtype), randn(N, K, dtype=dtype) / K**0.5
    alone = torch.cat([linear(x[i : i + 1], weight) for i in range(300)])
    near(alone, x.double() @ weight.double().mT)
    for M in range(1, 301):
        assert torch.equal(bits(linear(x[:M], weight)), bits(alone[:M])), M


@pytest.mark.parametrize("D", [7, 100, 1000, 1024, 4001, 8000, 20000, 40001, 120000])
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm"])
def test_any_number_of_rows_has_the_same_bits(name, D):
    kernel = pipec.load(f"kernels:{name}", invariant=True)
    x, ones = randn(300, D), randn(D)
    norm = {"Res": randn(0, 0), "W": ones, "eps": 1e-6}  # without a residual
    arguments = {"softmax": {}, "rms_norm": norm, "layer_norm": {**norm, "B": ones}}[name]
    run = lambda rows: kernel(rows, **arguments)
    first = lambda y: y[0] if isinstance(y, tuple) else y
    alone = torch.cat([first(run(x[i : i + 1])) for i in range(300)])
    for M in range(1, 301):
        assert torch.equal(bits(first(run(x[:M]))), bits(alone[:M])), M


def test_gradients_of_weights_are_not_invariant():
    for name in ("rms_norm_backward", "layer_norm_backward"):
        with refused(pipec.Refused, "P0934", name):
            pipec.load(f"kernels:{name}", invariant=True)


def test_launches_end_before_their_variant_is_unloaded():
    """At most two variants stay loaded, while launches of others wait on side streams"""
    linear = pipec.load("kernels:linear", T="bf16", loaded_most=2)
    weight = randn(4096, 4096) / 64
    long = [randn(16384, 4096) for _ in range(3)]
    want = [x @ weight.mT for x in long]
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    for round in range(4):
        results = []
        for stream, x in zip(streams, long):
            with torch.cuda.stream(stream):
                for _ in range(8):
                    results.append(linear(x, weight))
        for M in (1, 9, 40, 100, 300, 1000, 3000):
            x = randn(M, 4096)
            near(linear(x, weight), x.double() @ weight.double().mT)
        torch.cuda.synchronize()
        for i, y in enumerate(results):
            near(y, want[i // 8])
    info = linear.info()
    assert info["variants_loaded"] - info["variants_captured"] <= 2


def test_captured_variants_stay():
    linear = pipec.load("kernels:linear", T="bf16", loaded_most=1)
    weight, x = randn(512, 256) / 16, randn(64, 256)
    out = torch.empty(64, 512, device=DEVICE, dtype=BF16)
    graph = torch.cuda.CUDAGraph()
    linear(x, weight, C=out)
    with torch.cuda.graph(graph):
        linear(x, weight, C=out)
    for M in (1, 300, 1000, 4000, 8000):
        linear(randn(M, 256), weight)
    out.zero_()
    graph.replay()
    near(out, x.double() @ weight.double().mT)
    assert linear.info()["variants_captured"] >= 1


def test_prepared_shapes_do_not_load():
    linear = pipec.load("kernels:linear", T="bf16")
    shapes = [{"M": M, "N": 768, "K": 512} for M in (1, 16, 100, 1000, 5000)]
    before = linear.prepare(shapes=shapes)["variants_loaded"]
    weight = randn(768, 512)
    for shape in shapes:
        linear(randn(shape["M"], 512), weight)
    assert linear.info()["variants_loaded"] == before
