"""The operations of pipec.kernels as operators of PyTorch, `torch.ops.pipec`: for torch.compile, fake
tensors and autograd. Imported by the first call with a tensor of PyTorch."""

import torch
import torch.autograd.forward_ad
from torch.autograd.function import once_differentiable

from . import _inductor, _plans, _shapes
from ._table import OPERATIONS

_library = torch.library.Library("pipec", "FRAGMENT")
_operators = {}  # name -> (results are returned, the first is written to `out`, others returned)
_functions = {}  # name -> its torch.autograd.Function, if it has gradients


_AUTOCAST = ("matmul", "linear")


def apply(name, args, out=None):
    if torch.compiler.is_compiling():
        return dispatched(name, args, out)
    return run(name, args, out)


def run(name, args, out=None):
    """Where nothing is compiled"""
    if OPERATIONS[name].scalars:
        return _change(name, args)
    plans = _plans.before_autocast if name in _AUTOCAST else _plans.of
    made = plans(name).run(*args, out)
    return made if type(made) is tuple else _new(name, made, args, out)


def _new(name, key, args, out):
    """Without a plan; `key`: what there is instead"""
    if type(key) is bytes:
        return _plans.first(OPERATIONS[name], key, args, out)
    if key is True and out is None and name in _functions:
        return _tuple(_functions[name].apply(*args))
    args = _as_autocast(name, args)
    if not _is_plain_call(args, out):
        return dispatched(name, args, out)
    if not needs_gradient(*args, out):
        return _plans.run(OPERATIONS[name], args, out)
    _refuse_out(name, out)
    if name in _functions:
        return _tuple(_functions[name].apply(*args))
    return dispatched(name, args, out)


def dispatched(name, args, out=None):
    """As an operator of PyTorch"""
    args = _as_autocast(name, args)
    if needs_gradient(*args, out):
        _refuse_out(name, out)
        if OPERATIONS[name].scalars:
            _refuse_change(name)
    returning, writing = _operators[name]
    if out is None:
        return _tuple(returning(*args))
    return (out, *_tuple(writing(*args, out)))


def _refuse_out(name, out):
    if out is not None:
        raise RuntimeError(f"{name}: `out` has no gradient: give none, or call it under "
                           "torch.no_grad()")


def _refuse_change(name):
    raise RuntimeError(f"{name}: it changes tensors in place, which has no gradient: call it under "
                       "torch.no_grad()")


def _change(name, args):
    """An operation in place, whose last arguments are numbers that are new in each call"""
    operation = OPERATIONS[name]
    count = len(args) - operation.scalars
    tensors, scalars = list(args[:count]), args[count:]
    made = _plans.of(name).run_with(scalars, tensors)
    if type(made) is bytes:
        _plans.keep(made, _plans.of_changes(operation, tensors, scalars))
    elif type(made) is not tuple:
        if needs_gradient(*tensors):
            _refuse_change(name)
        if not _is_plain_call(tensors, None):
            return dispatched(name, args)
        operation.run(*map(_plain, tensors), *scalars)
    changed(operation, tensors)
    return ()


def changed(operation, tensors):
    """Autograd learns which tensors of some calls were changed in place"""
    kinds = [kind for kind in operation.arguments.values() if "Tensor" in kind]
    written = [x for i, kind in enumerate(kinds) if "!" in kind for x in tensors[i::len(kinds)]]
    try:
        torch.autograd.graph.increment_version(written)
    except RuntimeError:  # some are of inference mode, which have no version
        for x in written:
            if not x.is_inference():
                torch.autograd.graph.increment_version(x)


def _tuple(result):
    """Of what an operator returns: nothing, a tensor, or several"""
    return result if isinstance(result, tuple) else () if result is None else (result,)


def _result(results):
    return results if len(results) > 1 else results[0] if results else None


def _is_plain_call(args, out):
    """True if nothing sees that it is an operator: no mode, transform, tangent or subclass. The
    dispatcher and its Python functions take longer than the rest of a call"""
    return _plans.unseen() and all(
        type(x) in (torch.Tensor, torch.nn.Parameter) or not isinstance(x, torch.Tensor)
        for x in (*args, out))


def needs_gradient(*args):
    if torch.is_grad_enabled():
        for x in args:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return True
    return False


def activated(y, activation, residual, out):
    """The rest of linear() by operators that have gradients"""
    if out is not None:
        raise RuntimeError("linear: `out` has no gradient: give none, or call it under "
                           "torch.no_grad()")
    nn = torch.nn.functional
    y = (nn.gelu(y, approximate="tanh") if activation == "gelu" else
         nn.silu(y) if activation == "silu" else nn.relu(y))
    return y if residual is None else y + residual


def _as_autocast(name, args):
    kind = args[0].device.type
    if name not in _AUTOCAST or not torch.is_autocast_enabled(kind):
        return args
    dtype = torch.get_autocast_dtype(kind)
    return tuple(x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                 for x in args)


# ---- registration ---------------------------------------------------------------------------------


# Compiled code passes tensors with the strides that were traced: they decide what is refused
_TAGS = (getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order),)


def _dtype(kind):
    return getattr(torch, _shapes.NAMES[kind])


def _plain(x):
    """Autograd has seen the call already"""
    return x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x


def _register(operation):
    name, kinds = operation.name, operation.arguments.items()
    arguments = ", ".join(f"{kind} {argument}" for argument, kind in kinds)
    results = ["Tensor" for _ in operation.results]

    def returning(*args):
        if not results:
            return _result(operation.run(*map(_plain, args)))
        return _result(_plans.run(operation, tuple(map(_plain, args))))

    def writing(*args):
        *args, out = map(_plain, args)
        return _result(_plans.run(operation, args, out)[1:])

    def fakes(args):
        _inductor.ready()
        return tuple(args[0].new_empty(shape, dtype=_dtype(kind))
                     for shape, kind in operation.shapes(*args))

    def fake(*args):
        return _result(fakes(args))

    def fake_out(*args):
        return _result(fakes(args[:-1])[1:])

    _library.define(f"{name}({arguments}) -> ({', '.join(results)})", tags=_TAGS)
    for device in ("CUDA", "CPU"):
        _library.impl(name, returning, device)
    torch.library.register_fake(f"pipec::{name}", fake, lib=_library)
    if not results:
        _operators[name] = getattr(torch.ops.pipec, name).default, None
        return
    _library.define(f"{name}_out({arguments}, Tensor(a!) out) -> ({', '.join(results[1:])})",
                    tags=_TAGS)
    for device in ("CUDA", "CPU"):
        _library.impl(f"{name}_out", writing, device)
    torch.library.register_fake(f"pipec::{name}_out", fake_out, lib=_library)
    _operators[name] = tuple(getattr(torch.ops.pipec, n).default for n in (name, f"{name}_out"))
    _inductor.add(_operators[name][0], name, _call_of(operation))


def _call_of(operation):
    """For compiled code, which no mode and no gradient sees"""
    has_one = len(operation.results) == 1

    def call(*args):
        made = _plans.run(operation, args)
        return made[0] if has_one else made

    return call


# ---- gradients ------------------------------------------------------------------------------------


def _adjacent(x):
    """A gradient may have any strides: that of a sum has one element"""
    return x if x.is_contiguous() or _shapes.is_batch(x) else x.contiguous()


def _rows(x):
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


def _multiply(a, b, precision):
    return apply("matmul", (a, b, precision))[0]


def _matmul_setup(ctx, inputs, output):
    a, b, ctx.precision = inputs
    ctx.save_for_backward(a, b)


def _matmul_backward(ctx, dy):
    a, b = ctx.saved_tensors
    dy = _adjacent(dy)
    for_a, for_b = ctx.needs_input_grad[:2]
    da = _multiply(dy, b.mT, ctx.precision) if for_a else None
    if for_b and b.ndim == 2:  # the leading axes are summed
        a, dy = _rows(a), _rows(dy)
    return da, _multiply(a.mT, dy, ctx.precision) if for_b else None, None


def _linear_setup(ctx, inputs, output):
    x, weight, _, activation, _, ctx.precision = inputs
    if activation is not None:
        raise RuntimeError("pipec::linear has no gradient with an activation: call "
                           "pipec.kernels.linear()")
    ctx.save_for_backward(x, weight)


def _linear_backward(ctx, dy):
    x, weight = ctx.saved_tensors
    needs = ctx.needs_input_grad
    rows, x = _adjacent(_rows(dy)), _rows(x)
    dx = dweight = None
    if needs[0]:
        dx = _multiply(rows, weight, ctx.precision).reshape(*dy.shape[:-1], x.shape[-1])
    if needs[1]:
        dweight = _multiply(rows.mT, x, ctx.precision)
    dbias = rows.sum(0) if needs[2] else None
    return dx, dweight, dbias, None, dy if needs[4] else None, None


def _rope_setup(ctx, inputs, output):
    x, *ctx.known = inputs


def _rope_backward(ctx, dy):
    cos, sin, interleaved, sign = ctx.known
    if any(ctx.needs_input_grad[1:3]):
        raise RuntimeError("rope: `cos` and `sin` have no gradients: pass cos.detach()")
    return apply("rope", [dy.contiguous(), cos, sin, interleaved, -sign])[0], None, None, None, None


def _axpy_setup(ctx, inputs, output):
    ctx.factor = inputs[2]


def _axpy_backward(ctx, dy):
    return dy * ctx.factor if ctx.needs_input_grad[0] else None, dy, None


def _cast_setup(ctx, inputs, output):
    ctx.kind = _shapes.element(inputs[0])


def _cast_backward(ctx, dy):
    return apply("cast", [dy.contiguous(), ctx.kind])[0], None


def _transpose_setup(ctx, inputs, output):
    pass


def _transpose_backward(ctx, dy):
    return apply("transpose", [dy.contiguous()])[0]


def _sum_setup(ctx, inputs, output):
    ctx.shape, ctx.dim = inputs[0].shape, inputs[1]


def _sum_backward(ctx, dy):
    return dy.unsqueeze(ctx.dim).expand(ctx.shape), None


def _amax_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], output)
    ctx.dim = inputs[1]


def _amax_backward(ctx, dy):
    x, y = ctx.saved_tensors
    equal = x == y.unsqueeze(ctx.dim)
    return dy.unsqueeze(ctx.dim) * equal / equal.sum(ctx.dim, keepdim=True), None


def _rows_gradients(forward, backward):
    """The gradients of an operation whose backward is an operation too: the latter takes arguments
    of the former, its results, and the gradients of its results, by name"""
    results = {f"d{result}": i for i, result in enumerate(forward.results)}
    saved = [n for n, kind in backward.arguments.items() if n not in results and "Tensor" in kind]

    def setup(ctx, inputs, output):
        output = output if isinstance(output, tuple) else (output,)
        known = {**dict(zip(forward.arguments, inputs)), **dict(zip(forward.results, output))}
        ctx.save_for_backward(*(known[name] for name in saved))
        ctx.known = {name: known[name] for name in backward.arguments
                     if name not in results and name not in saved}

    def gradients(ctx, *dys):
        known = {**ctx.known, **dict(zip(saved, ctx.saved_tensors))}
        known.update((name, dys[i].contiguous()) for name, i in results.items()
                     if name in backward.arguments)
        made = apply(backward.name, [known[name] for name in backward.arguments])
        made = dict(zip(backward.results, made))
        if "residual" in forward.arguments:  # x + residual
            made["dresidual"] = made["dx"]
        return tuple(made.get(f"d{argument}") if needed else None
                     for argument, needed in zip(forward.arguments, ctx.needs_input_grad))

    return gradients, setup


def _differentiate(name, backward, setup):
    below = _operators[name][0]

    def run(args):
        made = _plans.of(name).run(*args, None)
        if type(made) is tuple:
            return _result(made)
        if type(made) is bytes or _is_plain_call(args, None):
            return _result(_plans.first(OPERATIONS[name], made, args, None))
        with torch._C._AutoDispatchBelowAutograd():
            return below(*args)

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            made = run(args)
            setup(ctx, args, made)
            return made

        @staticmethod
        @once_differentiable
        def backward(ctx, *gradients):
            return backward(ctx, *gradients)

    def operator(*args):
        if any(map(_has_tangent, args)):
            raise RuntimeError(f"{name}: it has no derivative in forward mode: use backward()")
        return Gradient.apply(*args) if needs_gradient(*args) else run(args)

    Gradient.__name__ = f"pipec_{name}"
    _functions[name] = Gradient
    _library.impl(name, operator, "Autograd")


def _has_tangent(x):
    forward = torch.autograd.forward_ad
    return forward._current_level >= 0 and isinstance(x, torch.Tensor) and (
        forward.unpack_dual(x).tangent is not None)


for _operation in OPERATIONS.values():
    _register(_operation)
    _backward = OPERATIONS.get(f"{_operation.name}_backward")
    if _backward is not None:
        _differentiate(_operation.name, *_rows_gradients(_operation, _backward))
_differentiate("matmul", _matmul_backward, _matmul_setup)
_differentiate("linear", _linear_backward, _linear_setup)
_differentiate("rope", _rope_backward, _rope_setup)
_differentiate("axpy", _axpy_backward, _axpy_setup)
_differentiate("cast", _cast_backward, _cast_setup)
_differentiate("transpose", _transpose_backward, _transpose_setup)
_differentiate("sum", _sum_backward, _sum_setup)
_differentiate("amax", _amax_backward, _amax_setup)
for _name in ("softmax_causal", "softmax_masked"):
    _differentiate(_name, *_rows_gradients(OPERATIONS[_name], OPERATIONS["softmax_backward"]))
