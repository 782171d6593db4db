"""The kernels that are shipped, by the names and arguments of PyTorch:

    import pipec.kernels as k
    y = k.linear(x, weight, bias, activation="silu")

With tensors of PyTorch the functions are operators, with gradients and for torch.compile; arrays of
CuPy run on their stream, those of NumPy on the emulator. Nothing is compiled or imported before the
first call that needs it. docs/kernels.md has the types, sizes and strides, and what is fused.
"""

import sys

from . import _shapes
from ._table import OPERATIONS

__all__ = ["AdamW", "adamw", "amax", "axpy", "cast", "cross_entropy", "geglu", "int_mm",
           "layer_norm", "linear", "matmul", "rms_norm", "rope", "scaled_mm", "softmax", "sum",
           "swiglu", "transpose"]


def __getattr__(name):
    if name != "AdamW":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._optimizer import AdamW  # needs PyTorch

    return AdamW


def _apply(name, *args, out=None):
    """The results of an operation"""
    if not _shapes.is_torch(args[0]):
        return OPERATIONS[name].run(*args, out=out)
    if not sys.modules["torch"].compiler.is_compiling():
        return _run(name, args, out)
    from . import _operators

    return _operators.dispatched(name, args, out)


def _run(name, args, out):
    """_operators.run, once that is imported"""
    global _run
    from ._operators import run as _run

    return _run(name, args, out)


def matmul(a, b, *, precision=None, out=None):
    """a @ b. The leading axes of `a` and `b` are those of a batch; of a matrix `b` all of `a` use
    the same. One of the last two axes of each is adjacent in memory: `w.T` is no copy. Elements of
    f32 need precision="tf32", by which 10 bits of their mantissa are read."""
    return _apply("matmul", a, b, precision, out=out)[0]


def linear(x, weight, bias=None, activation=None, residual=None, *, precision=None, out=None):
    """activation(x @ weight.T + bias) + residual, in one kernel. `activation` is "relu", "silu",
    "gelu" (by tanh) or None. With gradients, an activation and what follows are PyTorch's. Elements
    of f32 need precision="tf32", by which 10 bits of their mantissa are read."""
    if activation is not None and _shapes.is_torch(x):
        from . import _operators

        if _operators.needs_gradient(x, weight, bias, residual):
            made = linear(x, weight, bias, precision=precision)
            return _operators.activated(made, activation, residual, out)
    return _apply("linear", x, weight, bias, activation, residual, precision, out=out)[0]


def scaled_mm(a, b, scale_a=1.0, scale_b=1.0, bias=None, out_dtype=None, use_fast_accum=False, *,
              out=None):
    """scale_a * scale_b * a @ b + bias of float8_e4m3fn, float8_e5m2 or int8, in `out_dtype`: bf16,
    f16 or f32, by default bf16. `b` is adjacent along its first axis, as `weight.T`. Scales are
    numbers or f32 tensors of one element, for which the host does not wait. Sums of fp8 keep 14
    bits with `use_fast_accum`, otherwise those of 128 products are added up in f32."""
    scales, scale = [], 1.0
    for x in (scale_a, scale_b):
        if isinstance(x, (int, float)):
            scale *= x
        scales.append(None if isinstance(x, (int, float)) else x)
    dtype = _shapes.named(out_dtype) if out_dtype is not None else (
        "bf16" if out is None else _shapes.element(out))
    return _apply("scaled_mm", a, b, float(scale), *scales, bias, str(dtype), bool(use_fast_accum),
                  out=out)[0]


def int_mm(a, b, *, out=None):
    """a @ b of int8, as int32. `b` is adjacent along its first axis, as `weight.T`."""
    return _apply("int_mm", a, b, out=out)[0]


def softmax(x, dim=-1, *, causal=False, mask=None, out=None):
    """The softmax along the last axis. `causal`: of scores [.., S, D] of the last S of D positions,
    each of which sees those up to itself. `mask`: bools of the shape of `x`, or one that broadcasts
    to it; only elements where it is true count, and the others are 0."""
    if dim not in (-1, x.ndim - 1):
        raise ValueError(f"softmax: `dim` must be the last axis, not {dim}: pass "
                         f"x.movedim({dim}, -1).contiguous()")
    if causal and mask is not None:
        raise ValueError("softmax: `causal` and `mask`: give one mask, mask & causal.tril()")
    if mask is not None:
        return _apply("softmax_masked", x, _shapes.as_bytes(mask), out=out)[0]
    if causal and (x.ndim < 2 or x.shape[-2] > x.shape[-1]):
        raise ValueError("softmax: `x` must be [.., S, D] with S <= D if it is causal, not "
                         f"{list(x.shape)}")
    return _apply("softmax_causal" if causal else "softmax", x, out=out)[0]


def _norm(name, x, normalized_shape, weights, eps, residual, out):
    several = isinstance(normalized_shape, (tuple, list))
    shape, sizes = tuple(normalized_shape) if several else (normalized_shape,), x.shape
    if len(shape) != 1 or not sizes or shape[0] != sizes[-1]:
        raise ValueError(f"{name}: `normalized_shape` must be the last axis of `x`, "
                         f"{list(sizes[-1:])}, not {list(shape)}")
    if residual is None:
        return _apply(name, x, *weights, float(eps), out=out)[0]
    return tuple(_apply(f"{name}_residual", x, residual, *weights, float(eps), out=out))


def rms_norm(x, normalized_shape, weight=None, eps=None, *, residual=None, out=None):
    """x * rsqrt(mean(x * x) + eps) * weight along the last axis; `eps` is by default that of the
    element type. With a residual: the norm of x + residual, and this sum."""
    eps = _shapes.epsilon(x) if eps is None else eps
    return _norm("rms_norm", x, normalized_shape, (weight,), eps, residual, out)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, *, residual=None, out=None):
    """(x - mean(x)) * rsqrt(variance(x) + eps) * weight + bias along the last axis. With a
    residual: the norm of x + residual, and this sum."""
    return _norm("layer_norm", x, normalized_shape, (weight, bias), eps, residual, out)


def swiglu(gate, up, *, out=None):
    """silu(gate) * up."""
    return _apply("swiglu", gate, up, out=out)[0]


def geglu(gate, up, *, out=None):
    """gelu(gate) * up, with gelu by tanh."""
    return _apply("geglu", gate, up, out=out)[0]


def rope(x, cos, sin, *, interleaved=False, out=None):
    """Rotary position embedding of x[.., S, H, D] with cos[S, D / 2] and sin[S, D / 2]: the
    elements d and d + D / 2 of a head are a pair; `interleaved`: the elements 2 * d and 2 * d + 1."""
    return _apply("rope", x, cos, sin, bool(interleaved), 1.0, out=out)[0]


def _reduce(name, x, dim, keepdim, out):
    shape = list(x.shape)
    if keepdim:
        out = out if out is None else out.squeeze(dim)
    y = _apply(name, x, dim, out=out)[0]
    if not keepdim:
        return y
    shape[dim] = 1
    return y.reshape(shape)


def sum(x, dim=-1, keepdim=False, *, out=None):
    """The sum over an axis, added in f32."""
    return _reduce("sum", x, dim, keepdim, out)


def amax(x, dim=-1, keepdim=False, *, out=None):
    """The maximum over an axis. The gradient is shared by equal maxima."""
    return _reduce("amax", x, dim, keepdim, out)


def axpy(a, x, y, *, out=None):
    """a * x + y, for a number `a`."""
    return _apply("axpy", x, y, float(a), out=out)[0]


def cast(x, dtype, *, out=None):
    """The elements as another type, rounded to nearest: a type of the library of `x`, or a name."""
    return _apply("cast", x, _shapes.named(dtype) or str(dtype), out=out)[0]


def transpose(x, *, out=None):
    """The last two axes in the other order, copied."""
    return _apply("transpose", x, out=out)[0]


def adamw(p, grad, exp_avg, exp_avg_sq, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
          weight_decay=1e-2):
    """A step of AdamW, the first is 1, in place: of weights `p` with a gradient of the same type,
    and of both moments, which may have another type. AdamW is the optimizer."""
    scalars = OPERATIONS["adamw"].scalars_of(step, lr, betas, eps, weight_decay)
    _apply("adamw", p, grad, exp_avg, exp_avg_sq, *scalars)


def cross_entropy(x, labels, ignore_index=-100, reduction="mean"):
    """The cross entropy of logits x[.., V] and the indices of their classes, as f32: the mean over
    the rows whose label is not `ignore_index`, the sum of all, or the loss of each row, "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'cross_entropy: `reduction` must be "mean", "sum" or "none", not '
                         f"{reduction!r}")
    loss = _apply("cross_entropy", x, labels, ignore_index)[0]
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else total / (labels != ignore_index).sum()
