"""Kernels as PyTorch operators, for torch.compile, fake tensors and autograd."""

import re

import torch

_libraries = {}  # an operator lives as long as its library

_TYPES = {
    "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "i8": torch.int8, "u8": torch.uint8,
    "i32": torch.int32, "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64,
}


def operator(name, kernel, backward=None, setup_context=None):
    """Registers a kernel as the operator `name` ("my::gemm") and returns it: op(A, B). The
    arguments are the tensors that are read or updated, and the scalars, in the order of the
    parameters; the result is a new tensor, a tuple of several, or None.

    torch.compile(fullgraph=True) takes it as one call. On a CPU it runs on the emulator.

    `backward(ctx, *gradients)` returns a gradient or None for each argument; ctx.saved_tensors are
    the tensors among the arguments, unless `setup_context(ctx, inputs, output)` saves others (both
    as in torch.library.register_autograd). Without it, arguments that require a gradient are an
    exception while grad mode is on.
    """
    namespace, _, short = name.partition("::")
    if not short.isidentifier() or not namespace.isidentifier():
        raise ValueError(f'an operator is named like "my::gemm", not "{name}"')
    if name in _libraries:
        raise ValueError(f"the operator {name} exists already")
    if backward is not None and any(p.mode == "inout" for p in kernel.parameters):
        raise ValueError(f"{name}: autograd needs a kernel that updates no tensor in place")
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(short + schema(kernel))
    _libraries[name] = library
    library.impl(short, kernel, "CUDA")
    library.impl(short, kernel, "CPU")
    torch.library.register_fake(name, _fake(kernel), lib=library)
    if backward is not None:
        torch.library.register_autograd(
            name, backward, setup_context=setup_context or _saver(kernel), lib=library)
    return getattr(getattr(torch.ops, namespace), short).default


def schema(kernel):
    """The operator's type: "(Tensor A, Tensor B, float eps) -> Tensor" """
    words, letters = [], iter("abcdefghijklmnopqrstuvwxyz")
    for p in kernel.parameters:
        if p.mode == "out":
            continue
        kind = "float" if p.type == "f32" else "int"
        if p.is_tensor:
            kind = f"Tensor({next(letters)}!)" if p.mode == "inout" else "Tensor"
        words.append(f"{kind} {p.name}")
    results = ["Tensor" for p in kernel.parameters if p.mode == "out"]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(words)}) -> {result}"


def _saver(kernel):
    tensors = [p.is_tensor for p in kernel.parameters if p.mode != "out"]

    def save(ctx, inputs, output):
        ctx.save_for_backward(*(x for x, is_tensor in zip(inputs, tensors) if is_tensor))

    return save


# ---- shapes without data: extents may be symbols of torch.compile ---------------------------------


def _for(kernel, given):
    """The kernel for the extents and types of these tensors, by the number of their parameter:
    torch.compile compiles anew for others"""
    statics = {}
    for name, parameter, axis in kernel._places:
        x = given.get(parameter)
        if x is None or x.dim() != len(kernel.parameters[parameter].extents):
            continue
        value = int(x.shape[axis]) if axis >= 0 else _name(x.dtype, kernel.parameters[parameter].type)
        if value is not None:
            statics.setdefault(name, value)
    changed = {n: v for n, v in statics.items() if v != kernel.statics.get(n)}
    return kernel.using(**changed) if changed else kernel


def _name(dtype, own):
    if _TYPES[own] == dtype:
        return own
    return next((name for name, t in _TYPES.items() if t == dtype), None)


def _fake(kernel):
    numbers = [i for i, p in enumerate(kernel.parameters) if p.mode != "out"]

    def fake(*args):
        decided = kernel
        if kernel._places:
            decided = _for(kernel, {i: x for i, x in zip(numbers, args)
                                    if kernel.parameters[i].is_tensor})
        inputs = [decided.parameters[i] for i in numbers]
        outputs = [p for p in decided.parameters if p.mode == "out"]
        names, sizes = {}, []
        for p, x in zip(inputs, args):
            if not p.is_tensor:
                names.setdefault(p.name, x)
                continue
            torch._check(x.dim() == len(p.extents), lambda: f"{p.name} must have {p.extents}")
            sizes += zip(p.extents, x.shape)
        _solve(sizes, names)
        like = next(x for p, x in zip(inputs, args) if p.is_tensor)
        made = [
            like.new_empty([_evaluate(e, names) for e in p.extents], dtype=_TYPES[p.type])
            for p in outputs
        ]
        return made[0] if len(made) == 1 else tuple(made) or None

    return fake


def _solve(sizes, names):
    """Adds the extents that follow from `sizes`, (formula, value): those that stand alone, then B of
    `B + 1`, and of `2*B*D` once D is known"""
    for formula, size in sizes:
        if formula.isidentifier():
            names.setdefault(formula, size)
    found = True
    while found:
        found = False
        for formula, size in sizes:
            unknown = [n for n in re.findall(r"[^\W\d]\w*", formula)
                       if n not in names and n not in _FUNCTIONS]
            if len(unknown) != 1 or re.search(r"[^\w\s()*+-]", formula):
                continue
            rest, one = (_evaluate(formula, {**names, unknown[0]: value}) for value in (0, 1))
            if isinstance(one - rest, int) and one == rest:
                continue
            names[unknown[0]] = (size - rest) // (one - rest)
            found = True


_FUNCTIONS = {"ceil": lambda a, b: -(-a // b), "min": min, "max": max}


def _evaluate(formula, names):
    """A formula of docs/manifest.md over extents, which are not negative: `/` rounds down."""
    if formula.isidentifier():
        return names[formula]
    if formula.isdigit():
        return int(formula)
    if re.search(r"[?!&|<>=]", formula):
        raise NotImplementedError(f"the extent {formula} of a fake tensor")
    return eval(formula.replace("/", "//"), {"__builtins__": {}}, {**_FUNCTIONS, **names})
