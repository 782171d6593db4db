"""The kernels that are shipped, by the names and arguments of PyTorch:

    import pipec.kernels as k
    y = k.linear(x, weight, bias, activation="silu")

With tensors of PyTorch the functions are operators, with gradients and for torch.compile; arrays of
CuPy run on their stream, those of NumPy on the emulator. Nothing is compiled or imported before the
first call that needs it. docs/kernels.md has the types, sizes and strides, and what is fused.
"""

from . import _shapes
from ._table import OPERATIONS

__all__ = ["cross_entropy", "layer_norm", "linear", "matmul", "rms_norm", "softmax"]


def _apply(name, *args, out=None):
    """The results of an operation"""
    if _shapes.is_torch(args[0]):
        from . import _operators

        return _operators.apply(name, args, out)
    return OPERATIONS[name].run(*args, out=out)


def matmul(a, b, *, out=None):
    """a @ b. The leading axes of `a` and `b` are those of a batch; of a matrix `b` all of `a` use
    the same. One of the last two axes of each is adjacent in memory: `w.T` is no copy."""
    return _apply("matmul", a, b, out=out)[0]


def linear(x, weight, bias=None, activation=None, residual=None, *, out=None):
    """activation(x @ weight.T + bias) + residual, in one kernel. `activation` is "relu", "silu",
    "gelu" (by tanh) or None. With gradients, an activation and what follows are PyTorch's."""
    if activation is not None and _shapes.is_torch(x):
        from . import _operators

        if _operators.needs_gradient(x, weight, bias, residual):
            return _operators.activated(linear(x, weight, bias), activation, residual, out)
    return _apply("linear", x, weight, bias, activation, residual, out=out)[0]


def softmax(x, dim=-1, *, out=None):
    """The softmax along the last axis."""
    if dim not in (-1, x.ndim - 1):
        raise ValueError(f"softmax: `dim` must be the last axis, not {dim}: pass "
                         f"x.movedim({dim}, -1).contiguous()")
    return _apply("softmax", x, out=out)[0]


def _norm(name, x, normalized_shape, weights, eps, out):
    several = isinstance(normalized_shape, (tuple, list))
    shape = tuple(normalized_shape) if several else (normalized_shape,)
    if shape != tuple(x.shape[-1:]):
        raise ValueError(f"{name}: `normalized_shape` must be the last axis of `x`, "
                         f"{list(x.shape[-1:])}, not {list(shape)}")
    filled = [_shapes.filled(x, x.shape[-1], value) if w is None else w for w, value in weights]
    return _apply(name, x, *filled, float(eps), out=out)[0]


def rms_norm(x, normalized_shape, weight=None, eps=None, *, out=None):
    """x * rsqrt(mean(x * x) + eps) * weight along the last axis; `eps` is by default that of the
    element type."""
    eps = _shapes.epsilon(x) if eps is None else eps
    return _norm("rms_norm", x, normalized_shape, [(weight, 1)], eps, out)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, *, out=None):
    """(x - mean(x)) * rsqrt(variance(x) + eps) * weight + bias along the last axis."""
    return _norm("layer_norm", x, normalized_shape, [(weight, 1), (bias, 0)], eps, out)


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
