"""What an operation did with tensors like these, again: which kernels it called, on which views of its
arguments and of new tensors. Such a call costs little more than its kernels; C runs it.

The first call is watched by a mode of PyTorch. An operation that does more than allocate, view and
call kernels has no plan, and runs each time; so does every call where PyTorch is without DLPack's C
functions."""

import functools
import operator

import torch
import torch.autograd.forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from . import _pipec, _shapes, _table

MOST = 4096  # plans; before another one is kept, all are forgotten

_EMPTY = {torch.ops.aten.new_empty.default, torch.ops.aten.empty.memory_format}
_plans = {}  # key -> plan, or None

# What sees an operation besides autograd, as (function, arguments, the result if it is not there). If
# a version of PyTorch lacks a function, all calls are seen
_always = (lambda: None)
_CONDITIONS = (
    (getattr(torch._C, "_len_torch_dispatch_stack", _always), (), 0),
    (getattr(torch._C, "_are_functorch_transforms_active", _always), (), False),
    (operator.attrgetter("_current_level"), (torch.autograd.forward_ad,), -1),
)
_AUTOCAST = (torch.is_autocast_enabled, ("cuda",), False)

# Of Inductor: without the parser of torch.empty
_make_on_current = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)


def unseen():
    """True if nothing sees that an operation is one: no mode, transform or tangent"""
    return all(function(*arguments) == wanted for function, arguments, wanted in _CONDITIONS)


def named(name, known=_plans, conditions=_CONDITIONS):
    """The plans of an operation"""
    return _pipec.plans(name, known, conditions)


# The plans of an operation, and the same for calls that autocast may have to see first
of = functools.cache(named)
before_autocast = functools.cache(lambda name: named(name, conditions=(*_CONDITIONS, _AUTOCAST)))


def run(operation, args, out=None):
    """The results of the operation, below autograd. What it decides depends on nothing but the facts
    in the key."""
    made = of(operation.name).run(*args, out)
    return made if type(made) is tuple else first(operation, made, args, out)


def first(operation, key, args, out):
    """The same, without a plan; `key`: by which one is to be known, if it is one"""
    if type(key) is not bytes:
        return operation.run(*map(_detached, args), out=out)
    watched = _Watch([*args, out])
    *inputs, output = watched.args
    with watched, _table.calls_by(watched.call):
        results = operation.run(*inputs, out=output)
    keep(key, watched.plan(results))
    return results if out is None else (out, *results[1:])


def of_changes(operation, tensors, scalars):
    """Runs an operation in place on the tensors of several calls; the plan of that, or None"""
    count = len(operation.arguments) - operation.scalars
    watched = _Watch(tensors, list(operation.arguments)[count:])
    with watched, _table.calls_by(watched.call):
        for at in range(0, len(tensors), count):
            operation.run(*watched.args[at:at + count], *scalars)
    return watched.plan(())


def keep(key, plan):
    if len(_plans) >= MOST:
        _plans.clear()
    _plans[key] = plan


def _detached(x):
    """DLPack refuses tensors with gradients"""
    return x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x


def _make(x):
    """How a new tensor like this one is made: where its device is the current one, and elsewhere"""
    shape, steps = tuple(x.shape), tuple(x.stride())
    elsewhere = torch.empty_strided, (shape, steps), {"dtype": x.dtype, "device": x.device}
    if _make_on_current is None or x.device.type != "cuda":
        return functools.partial(torch.empty_strided, **elsewhere[2]), elsewhere[1], *elsewhere
    return _make_on_current, (shape, steps, x.dtype), *elsewhere


class _Watch(TorchDispatchMode):
    """Knows of each tensor which argument or new tensor it is a view of. `scalars`: the names of
    numbers that are given to each run of the plan"""

    def __init__(self, args, scalars=()):
        super().__init__()
        self.scalars = scalars
        # Other objects than the caller's: an argument may be given twice
        self.args = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        self.tensors, self.origins, self.kept = list(self.args), {}, []
        self.steps, self.is_simple = [], True
        for at, x in enumerate(self.args):
            if isinstance(x, torch.Tensor):
                self.origins[id(x)] = at

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.kept.append(made)  # no other tensor gets its id
        if function in _EMPTY:
            self.origins[id(made)] = len(self.tensors)
            self.tensors.append(made)
        elif getattr(function, "is_view", False) and id(args[0]) in self.origins:
            self.origins[id(made)] = self.origins[id(args[0])]
        else:
            self.is_simple = False
        return made

    def call(self, kernel, args, named):
        inputs = [p.name for p in kernel.parameters if p.mode != "out"]
        named = {**dict(zip(inputs, args)), **named}
        result, launched = kernel._record(**named)
        self.is_simple &= launched is not None
        tensors = [self._source(n, x) for n, x in named.items()
                   if isinstance(x, torch.Tensor) and not _shapes.is_none(x)]
        scalars = [(n, at) for at, n in enumerate(self.scalars) if n in named]
        self.steps.append((launched, tuple(tensors), tuple(scalars)))
        return result

    def _origin(self, x):
        """The position of the tensor that it is a view of, and the offset in elements"""
        at = self.origins.get(id(x))
        if at is None or x.dtype != self.tensors[at].dtype:  # a view of the bytes
            self.is_simple = False
            return None, 0
        return at, x.storage_offset() - self.tensors[at].storage_offset()

    def _source(self, name, x):
        at, offset = self._origin(x)
        return None if at is None else (name, at, offset * x.element_size())

    def _result(self, x):
        at, offset = self._origin(x)
        if at is None:
            return None
        base = self.tensors[at]
        if offset == 0 and x.shape == base.shape and x.stride() == base.stride():
            return at, None
        self.is_simple &= at >= len(self.args)  # its storage begins where it does
        return at, (tuple(x.shape), tuple(x.stride()), offset)

    def plan(self, results):
        """None if there is none"""
        results = tuple(map(self._result, results))
        new = tuple(map(_make, self.tensors[len(self.args):]))
        if not self.is_simple or len(new) > _pipec.plan_new_most:
            return None
        return _pipec.plan(len(self.args), new, tuple(self.steps), results)
