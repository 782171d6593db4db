"""What an operation did with tensors like these, again: which kernels it called, on which views of its
arguments and of new tensors. Such a call costs little more than its kernels.

The first call is watched by a mode of PyTorch. An operation that does more than allocate, view and
call kernels has no plan, and runs each time."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import _pipec, _shapes, _table

MOST = 4096  # plans; before another one is kept, all are forgotten

_EMPTY = {torch.ops.aten.new_empty.default, torch.ops.aten.empty.memory_format}
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_plans = {}


def run(operation, args, out=None):
    """The results of the operation. What it decides depends on nothing but the facts in the key."""
    key = _pipec.key(operation.name, *args, out) or (operation.name, *map(_facts, (*args, out)))
    plan = _plans.get(key)
    if plan is not None:
        return plan.run([*args, out])
    if key in _plans or _modes() > 0:
        return operation.run(*map(_detached, args), out=out)
    if len(_plans) >= MOST:
        _plans.clear()
    watched = _Watch([*args, out])
    results = watched.run(operation)
    _plans[key] = watched.plan(results)
    return results if out is None else (out, *results[1:])


def _detached(x):
    """DLPack refuses tensors with gradients"""
    return x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x


def _facts(x):
    """As the key, for tensors of which it knows no type yet"""
    if isinstance(x, torch.Tensor):
        return x.dtype, x.shape, x.stride(), x.data_ptr() % 16, x.get_device()
    return type(x), x


class _Plan:
    """`new`: (shape, type) of each new tensor; `calls`: (kernel, scalars, [(parameter, source)]);
    `results`: their sources. A source is the position of a tensor, the arguments and `out` first,
    and None, or the shape, strides and offset of a view of it."""

    __slots__ = ("new", "calls", "results")

    def __init__(self, new, calls, results):
        self.new, self.calls, self.results = new, calls, results

    def run(self, tensors):
        for shape, dtype in self.new:
            tensors.append(tensors[0].new_empty(shape, dtype=dtype))
        for kernel, scalars, sources in self.calls:
            named = dict(scalars)
            for parameter, (at, view) in sources:
                named[parameter] = tensors[at] if view is None else _view(tensors[at], *view)
            kernel(**named)
        return tuple(tensors[at] if view is None else _view(tensors[at], *view)
                     for at, view in self.results)


def _view(x, shape, strides, offset):
    return x.as_strided(shape, strides, x.storage_offset() + offset)


class _Watch(TorchDispatchMode):
    """Knows of each tensor which argument or new tensor it is a view of"""

    def __init__(self, args):
        super().__init__()
        # Other objects than the caller's: an argument may be given twice
        self.args = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        self.tensors, self.origins, self.kept = list(self.args), {}, []
        self.new, self.calls, self.is_simple = [], [], True
        for at, x in enumerate(self.args):
            if isinstance(x, torch.Tensor):
                self.origins[id(x)] = at

    def run(self, operation):
        *args, out = self.args
        with self, _table.calls_by(self._call):
            return operation.run(*args, out=out)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.kept.append(made)  # no other tensor gets its id
        if function in _EMPTY:
            self.origins[id(made)] = len(self.tensors)
            self.tensors.append(made)
            self.new.append((tuple(made.shape), made.dtype))
        elif getattr(function, "is_view", False) and id(args[0]) in self.origins:
            self.origins[id(made)] = self.origins[id(args[0])]
        else:
            self.is_simple = False
        return made

    def _call(self, kernel, args, named):
        inputs = [p.name for p in kernel.parameters if p.mode != "out"]
        named = {**dict(zip(inputs, args)), **named}
        tensors = {n: x for n, x in named.items()
                   if isinstance(x, torch.Tensor) and not _shapes.is_none(x)}
        scalars = {n: x for n, x in named.items() if n not in tensors}
        self.calls.append((kernel, scalars, [(n, self._source(x)) for n, x in tensors.items()]))
        return kernel(**named)

    def _source(self, x):
        at = self.origins.get(id(x))
        if at is None or x.dtype != self.tensors[at].dtype:
            self.is_simple = False
            return None
        base = self.tensors[at]
        if x.dtype != base.dtype:  # a view of the bytes
            self.is_simple = False
            return None
        offset = x.storage_offset() - base.storage_offset()
        if offset == 0 and x.shape == base.shape and x.stride() == base.stride():
            return at, None
        return at, (tuple(x.shape), x.stride(), offset)

    def plan(self, results):
        """None if there is none"""
        results = [self._source(x) for x in results]
        return _Plan(self.new, self.calls, results) if self.is_simple else None
