"""The operations of pipec.kernels: which kernel computes each, from which arguments, and with which
gradients. Nothing is compiled before it is called."""

import contextlib
import contextvars
import functools
import math

from . import _kernel, _shapes


def kernel(name, *types):
    """A kernel that is shipped, with the types of its statics, as ("E", "bf16")"""
    made, call = _kernel_of(name, *types), _caller.get()
    return made if call is None else _Watched(made, call)


@functools.cache
def _kernel_of(name, *types):
    return _kernel.load(f"kernels:{name}").using(**dict(types))


_caller = contextvars.ContextVar("caller", default=None)


@contextlib.contextmanager
def calls_by(call):
    """Meanwhile kernels are called by call(kernel, args, named)"""
    before = _caller.set(call)
    try:
        yield
    finally:
        _caller.reset(before)


class _Watched:
    """A kernel that is called by another function"""

    def __init__(self, kernel, call):
        self._kernel, self._call = kernel, call

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def __call__(self, *args, **named):
        return self._call(self._kernel, args, named)


def _parameters(made):
    return {p.name: p for p in made.parameters}


class Operation:
    """`arguments`: the public names with their kinds, as in an operator of PyTorch; `results`: the
    public names of what run() returns. The gradient of the argument `x` is the result `dx` of
    gradients(); it depends on arguments, results, and gradients `dy` of results. The last `scalars`
    arguments are numbers that are new in each call."""

    scalars = 0

    def __init__(self, name, arguments, results):
        self.name, self.arguments, self.results = name, arguments, results

    def run(self, *args, out=None):
        """A tuple of the results, of which the first is `out` if it is given"""
        raise NotImplementedError

    def shapes(self, *args):
        """(shape, type) of each result"""
        raise NotImplementedError


# ---- rows: kernels of tensors [M, D], whose first axis stands for all leading axes -----------------


class Rows(Operation):
    """`names`: the kernel's own name of each argument and result; NAME+ holds parts of a sum, which
    sum_parts adds. `types`: for each static of the kernel that is a type, the argument whose type
    it is. `given`: for each static that is 1 or 0, the argument that is there or None. `kernel` is
    the name of the kernel, if it is another one, and `statics` are values that it has here."""

    _KINDS = {"eps": "float", "ignore_index": "int", "a": "float", "kind": "str"}

    def __init__(self, name, arguments, results, types, given=None, kernel=None, statics=()):
        given = given or {}
        kinds = {**dict.fromkeys(arguments, "Tensor"), **dict.fromkeys(given.values(), "Tensor?")}
        super().__init__(name, {a: self._KINDS.get(a, kind) for a, kind in kinds.items()},
                         tuple(results))
        self._arguments, self._results, self._types = arguments, results, types
        self._optional, self.kernel, self._statics = given, kernel or name, tuple(statics)

    def _kernel(self, given):
        """For the types of these arguments, which are checked, and for those that are there"""
        base, statics = kernel(self.kernel), self._chosen(given)
        for static, argument in self._types.items():
            x = given[argument]
            _shapes.check_type(self.name, argument, x, base.choices[static])
            statics.append((static, _shapes.element(x)))
        statics.extend((static, int(given[argument] is not None))
                       for static, argument in self._optional.items())
        return kernel(self.kernel, *statics)

    def _chosen(self, given):
        """The values of other statics"""
        return list(self._statics)

    def _given(self, args):
        """The arguments by their public names, the kernel for their types, and its parameters"""
        given = dict(zip(self._arguments, args))
        made = self._kernel(given)
        facts = _parameters(made)
        first = tuple(args[0].shape)
        for argument, parameter in self._arguments.items():
            x = given[argument]
            if parameter is None or x is None or not facts[parameter].is_tensor:
                continue
            fact = facts[parameter]
            _shapes.check_type(self.name, argument, x, (fact.type,))
            wanted = self._shape(fact.extents, first)
            if tuple(x.shape) != wanted:
                raise ValueError(f"{self.name}: `{argument}` must have the shape {wanted}, not "
                                 f"{tuple(x.shape)}")
        return given, made, facts

    def _shape(self, extents, first):
        """Of a tensor of the kernel, from the shape of the first argument"""
        axes = {"M": first[:-1], "B": first[:-2], "S": first[-2:-1]}
        return tuple(n for e in extents for n in axes.get(e) or (
            () if e in axes else (int(e),) if e.isdigit() else
            (0,) if e.startswith("0 *") else first[-1:]))

    def _view(self, argument, x, extents):
        """A tensor as the kernel takes it"""
        if len(extents) == 2:
            return _shapes.rows(self.name, argument, x)[0]
        if len(extents) == 3:
            return _shapes.inner(self.name, argument, x, 2)
        return _shapes.flat(self.name, argument, x) if extents == ("M",) else x

    def _view_of(self, tensors):
        """_view, or what suits these better"""
        return self._view

    def _outputs(self, facts, x):
        """(parameter, shape, type) of each result, where a sum of parts has one axis less"""
        for name in self._results.values():
            fact = facts[name.removesuffix("+")]
            summed = name.endswith("+")
            yield (fact, self._shape(fact.extents[summed:], tuple(x.shape)),
                   _shapes.element(x) if summed else fact.type)

    def shapes(self, *args):
        _, _, facts = self._given(args)
        return [(shape, kind) for _, shape, kind in self._outputs(facts, args[0])]

    def run(self, *args, out=None):
        given, made, facts = self._given(args)
        view = self._view_of([*args, out])
        call = {}
        for argument, parameter in self._arguments.items():
            x = given[argument]
            if parameter is None or x is None:
                continue
            fact = facts[parameter]
            call[parameter] = view(argument, x, fact.extents) if fact.is_tensor else x
        outputs, results = list(self._outputs(facts, args[0])), []
        for fact, shape, _ in outputs:
            if out is not None and not results:
                _shapes.check_type(self.name, "out", out, (fact.type,))
                _shapes.check_out(self.name, out, shape)
                results.append(out)
            else:
                full = self._shape(fact.extents, tuple(args[0].shape))
                results.append(_shapes.empty(args[0], full, fact.type))
            y = results[-1]
            call[fact.name] = y if y is None else view("out", y, fact.extents)
        for name, fact in facts.items():  # those that are left out have no elements
            if name not in call:
                call[name] = _shapes.none(args[0], self._shape(fact.extents, ()))
        return self._finish(outputs, results, facts, made(**call))

    def _finish(self, outputs, results, facts, made):
        """Of what the kernel has written, or made: sums, and the axes of the caller"""
        if any(y is None for y in results):
            made = made if isinstance(made, tuple) else (made,)
            made = dict(zip((n for n, fact in facts.items() if fact.mode == "out"), made))
        for i, (fact, shape, kind) in enumerate(outputs):
            y = results[i] if results[i] is not None else made[fact.name]
            if self._results[self.results[i]].endswith("+"):
                y = kernel("sum_parts", ("E", kind))(y, Y=_shapes.empty(y, shape, kind))
            results[i] = y if tuple(y.shape) == shape else y.reshape(shape)
        return tuple(results)


class Elements(Rows):
    """Of elements: tensors without gaps are one row for the kernel, so that axes do not count"""

    def _view_of(self, tensors):
        x, *others = (t for t in tensors if hasattr(t, "shape"))
        count = math.prod(x.shape)
        if count > _shapes.EXTENT_MOST or not all(map(_shapes.is_whole, (x, *others))):
            return self._view
        return lambda name, x, extents: x.reshape((1, count))


class Cast(Elements):
    """To the type of the name `kind`"""

    def __init__(self):
        super().__init__("cast", {"x": "X", "kind": None}, {"y": "Y"}, {"E": "x"})

    def _kernel(self, given):
        kinds = kernel("cast").choices["F"]
        if given["kind"] not in kinds:
            known, kind = ", ".join(map(_shapes.NAMES.get, kinds)), given["kind"]
            raise TypeError(f"cast: `dtype` must be one of {known}, not "
                            f"{_shapes.NAMES.get(kind, kind)}")
        return super()._kernel(given)

    def _chosen(self, given):
        return [("F", given["kind"])]


# ---- products -------------------------------------------------------------------------------------

_PRODUCTS = ("bf16", "f16")
ACTIVATIONS = (None, "relu", "silu", "gelu")  # ACT of kernels is the position


def _same_types(function, kinds, first, otherwise="", **others):
    """All have the type of the first one, which is returned; None is no tensor"""
    name, x = first
    _shapes.check_type(function, name, x, kinds, otherwise)
    kind = _shapes.element(x)
    for other, y in others.items():
        if y is not None:
            _shapes.check_type(function, other, y, (kind,))
    return kind


def _product_types(function, precision, first, **others):
    """Of a product without scales: f32 is one only if the caller agrees with tf32"""
    if precision not in (None, "tf32"):
        raise ValueError(f"{function}: `precision` must be None or 'tf32', not {precision!r}")
    if precision:
        return _same_types(function, (*_PRODUCTS, "f32"), first, **others)
    f32 = ', or pass precision="tf32", which reads 10 bits of the mantissa of f32'
    return _same_types(function, _PRODUCTS, first, f32, **others)


def _is_plain(x, weight, c):
    """True if linear.pipe takes them; c: None or the result"""
    return (_shapes.has_even_rows(x) and _shapes.has_even_rows(weight) and
            (weight.shape[0] % 8 == 0 if c is None else _shapes.has_even_rows(c)))


COPIED = 2**22  # multiplications, from which on a product is faster than copies of its operands


def _by_even_rows(multiply, kind, columns, a, b, c):
    """multiply(a, b, c) of matrices [G, .., ..], whose rows are first copied to where TMA takes them
    if the product is large; c: None or the result, with this number of columns. Threads write rows
    of a result that are no whole vectors."""
    if math.prod(a.shape) * columns < COPIED:
        return multiply(a, b, c)

    def copy(x, y):
        return kernel("copy_rows", ("T", kind))(x, Y=y)

    def even(x):
        y = _shapes.even_rows_for(x)
        return x if y is None else copy(x, y)[..., :x.shape[-1]]

    a, b = even(a), even(b)
    made = None if c is None or columns % 8 != 0 else _shapes.even_rows_for(c)
    if made is None:
        return multiply(a, b, c)
    multiply(a, b, made)
    return copy(made, c)


def _multiply(function, a, b, kind, c):
    """[G, M, K] times [G, K, N], of any order of operands; each argument is (name, tensor)"""
    if kind == "f32":
        a = _shapes.along_last(function, *a)
        b = _shapes.along_last(function, b[0], b[1].swapaxes(-1, -2))
        return _multiply_tf32(a, b, None, None, None, c)
    columns = b[1].shape[-1]
    (a, a_flipped), (b, b_flipped) = (_shapes.matrix(function, *x) for x in (a, b))
    order = ("t" if a_flipped else "n") + ("t" if b_flipped else "n")

    def multiply(a, b, c):
        if order == "nt" and a.shape[0] == 1:
            one = None if c is None else c[0]
            if _is_plain(a[0], b[0], one):
                return kernel("linear", ("T", kind))(a[0], b[0], C=one)
        return kernel(f"matmul_{order}", ("T", kind))(a, b, C=c)

    return _by_even_rows(multiply, kind, columns, a, b, c)


def _multiply_tf32(a, b, bias, activation, residual, c):
    """[G, M, K] times [G, N, K], both adjacent along K"""
    none = _shapes.nothing(a, "f32")
    fused = kernel("linear_tf32", *_finish_of(bias, activation), ("RES", int(residual is not None)))
    return fused(a, b, none if bias is None else bias,
                 none.reshape((0, 0, 0)) if residual is None else residual, C=c)


def _finish_of(bias, activation):
    """The statics of what is fused"""
    return ("BIAS", int(bias is not None)), ("ACT", ACTIVATIONS.index(activation))


class Matmul(Operation):
    """[.., M, K] times [K, N], where the leading axes join M; or [.., M, K] times [.., K, N]"""

    def __init__(self):
        super().__init__("matmul", {"a": "Tensor", "b": "Tensor", "precision": "str?"}, ("y",))

    def shapes(self, a, b, precision=None):
        kind = _product_types("matmul", precision, ("a", a), b=b)
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f"matmul: `a` and `b` must have two axes or more, not {a.ndim} and "
                             f"{b.ndim}: a vector is a matrix with one row, a[None]")
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"matmul: `a` has rows of {a.shape[-1]}, but `b` columns of "
                             f"{b.shape[-2]}")
        if b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
            raise ValueError(f"matmul: the leading axes of `a` and `b` must be the same, not "
                             f"{tuple(a.shape[:-2])} and {tuple(b.shape[:-2])}: pass "
                             "x.expand(..).contiguous()")
        return [((*a.shape[:-1], b.shape[-1]), kind)]

    def run(self, a, b, precision=None, out=None):
        ((shape, kind),) = self.shapes(a, b, precision)
        if out is not None:
            _shapes.check_type("matmul", "out", out, (kind,))
            _shapes.check_out("matmul", out, shape)
        y = _shapes.empty(a, shape, kind) if out is None else out
        if b.ndim == 2:
            a = a[None] if a.ndim == 2 else _shapes.rows("matmul", "a", a)[0][None]
            b = b[None]
            c = y if y is None else _shapes.rows("matmul", "out", y)[0][None]
        else:
            a, b = _shapes.batch("matmul", "a", a), _shapes.batch("matmul", "b", b)
            c = y if y is None else _shapes.batch("matmul", "out", y)
        done = _multiply("matmul", ("a", a), ("b", b), kind, c)
        return (done.reshape(shape) if y is None else y,)


class Linear(Operation):
    """x times the transpose of the weight, and what is done to it before it is written"""

    def __init__(self):
        super().__init__("linear", {"x": "Tensor", "weight": "Tensor", "bias": "Tensor?",
                                    "activation": "str?", "residual": "Tensor?",
                                    "precision": "str?"}, ("y",))

    def shapes(self, x, weight, bias=None, activation=None, residual=None, precision=None):
        kind = _product_types("linear", precision, ("x", x), weight=weight, bias=bias,
                              residual=residual)
        if activation not in ACTIVATIONS:
            known = ", ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"linear: `activation` must be one of {known}, not {activation!r}")
        if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
            raise ValueError(f"linear: `x` must be [.., K] and `weight` [N, K], not "
                             f"{list(x.shape)} and {list(weight.shape)}")
        shape = (*x.shape[:-1], weight.shape[0])
        for name, y, wanted in (("bias", bias, shape[-1:]), ("residual", residual, shape)):
            if y is not None and tuple(y.shape) != tuple(wanted):
                raise ValueError(f"linear: `{name}` must have the shape {tuple(wanted)}, not "
                                 f"{tuple(y.shape)}")
        return [(shape, kind)]

    def run(self, x, weight, bias=None, activation=None, residual=None, precision=None, out=None):
        ((shape, kind),) = self.shapes(x, weight, bias, activation, residual, precision)
        if out is not None:
            _shapes.check_type("linear", "out", out, (kind,))
            _shapes.check_out("linear", out, shape)
        y = _shapes.empty(x, shape, kind) if out is None else out
        c = y if y is None else _shapes.rows("linear", "out", y)[0]
        x = x if x.ndim == 2 else _shapes.rows("linear", "x", x)[0]
        if bias is not None or activation is not None or residual is not None:
            done = self._fused(x, weight, bias, activation, residual, kind, c)
        elif _is_plain(x, weight, c) and kind != "f32":
            done = kernel("linear", ("T", kind))(x, weight, C=c)
        else:
            done = _multiply("linear", ("x", x[None]), ("weight", weight.T[None]), kind,
                             None if c is None else c[None])
        return (done.reshape(shape) if y is None else y,)

    def _fused(self, x, weight, bias, activation, residual, kind, c):
        for name, y in (("x", x), ("weight", weight)):
            _shapes.rows("linear", name, y)
        if residual is not None:
            residual = _shapes.rows("linear", "residual", residual)[0]
        if kind == "f32":
            done = _multiply_tf32(x[None], weight[None], bias, activation,
                                  None if residual is None else residual[None],
                                  None if c is None else c[None])
            return done[0]
        bias, statics = x[:0].reshape((0,)) if bias is None else bias, _finish_of(bias, activation)
        rest = (bias,) if residual is None else (bias, residual)
        fused = kernel("linear_fused" if residual is None else "linear_residual", ("T", kind),
                       *statics)

        def multiply(a, b, c):
            return fused(a[0], b[0], *rest, C=None if c is None else c[0])

        return _by_even_rows(multiply, kind, weight.shape[0], x[None], weight[None],
                             None if c is None else c[None])


class Bytes(Operation):
    """[.., M, K] times [K, N] of 8 bits, of which the second is adjacent along K"""

    def _shape(self, a, b):
        if a.ndim < 1 or b.ndim != 2 or a.shape[-1] != b.shape[0]:
            raise ValueError(f"{self.name}: `a` must be [.., K] and `b` [K, N], not "
                             f"{list(a.shape)} and {list(b.shape)}")
        return (*a.shape[:-1], b.shape[1])

    def _rows(self, a, b):
        """As [M, K] and [N, K]"""
        flipped, steps = b.swapaxes(0, 1), _shapes.strides(b)
        if 0 not in b.shape and b.shape[0] > 1 and steps[0] != 1:
            raise ValueError(f"{self.name}: the first axis of `b` must be adjacent in memory, as of "
                             "weight.T: pass b.T.contiguous().T (NumPy: "
                             "numpy.asfortranarray(b))")
        return _shapes.rows(self.name, "a", a)[0], _shapes.rows(self.name, "b", flipped)[0]

    def _call(self, kernel, a, b, scales, bias, scale, shape, kind, out):
        if out is not None:
            _shapes.check_type(self.name, "out", out, (kind,))
            _shapes.check_out(self.name, out, shape)
        y = _shapes.empty(a, shape, kind) if out is None else out
        a, b = self._rows(a, b)
        scales = (_shapes.nothing(a, "f32") if x is None else x.reshape((1,)) for x in scales)
        done = kernel(a, b, *scales, _shapes.nothing(a, kind) if bias is None else bias,
                      C=y if y is None else _shapes.rows(self.name, "out", y)[0], scale=scale)
        return (done.reshape(shape) if y is None else y,)


class ScaledMm(Bytes):
    """With a factor for all elements, the product of a number and of tensors of one element"""

    def __init__(self):
        super().__init__("scaled_mm", {
            "a": "Tensor", "b": "Tensor", "scale": "float", "scale_a": "Tensor?",
            "scale_b": "Tensor?", "bias": "Tensor?", "dtype": "str", "fast": "bool"}, ("y",))

    def shapes(self, a, b, scale, scale_a, scale_b, bias, dtype, fast):
        _same_types("scaled_mm", ("e4m3", "e5m2", "i8"), ("a", a), b=b)
        shape = self._shape(a, b)
        for name, x in (("scale_a", scale_a), ("scale_b", scale_b)):
            if x is not None:
                _shapes.check_type("scaled_mm", name, x, ("f32",))
                if math.prod(x.shape) != 1:
                    raise ValueError(f"scaled_mm: `{name}` must be a number or have one element, "
                                     f"not the shape {tuple(x.shape)}")
        if dtype not in ("bf16", "f16", "f32"):
            raise ValueError("scaled_mm: `out_dtype` must be bf16, f16 or f32")
        if bias is not None:
            _shapes.check_type("scaled_mm", "bias", bias, (dtype,))
            if tuple(bias.shape) != shape[-1:]:
                raise ValueError(f"scaled_mm: `bias` must have the shape {shape[-1:]}, not "
                                 f"{tuple(bias.shape)}")
        return [(shape, dtype)]

    def run(self, a, b, scale, scale_a, scale_b, bias, dtype, fast, out=None):
        ((shape, _),) = self.shapes(a, b, scale, scale_a, scale_b, bias, dtype, fast)
        statics = ("U", dtype), ("BIAS", int(bias is not None))
        kind = _shapes.element(a)
        made = (kernel("int_mm", ("SCALED", 1), *statics) if kind == "i8" else
                kernel("scaled_mm", ("T", kind), ("FAST", int(fast)), *statics))
        return self._call(made, a, b, (scale_a, scale_b), bias, scale, shape, dtype, out)


class IntMm(Bytes):
    """The exact sums"""

    def __init__(self):
        super().__init__("int_mm", {"a": "Tensor", "b": "Tensor"}, ("y",))

    def shapes(self, a, b):
        _same_types("int_mm", ("i8",), ("a", a), b=b)
        return [(self._shape(a, b), "i32")]

    def run(self, a, b, out=None):
        ((shape, _),) = self.shapes(a, b)
        made = kernel("int_mm", ("U", "i32"), ("SCALED", 0), ("BIAS", 0))
        return self._call(made, a, b, (None, None), None, 1.0, shape, "i32", out)


# ---- others --------------------------------------------------------------------------------------


class Rope(Operation):
    """The elements of heads, [.., S, H, D], turned by the angles of their positions; `sign` is -1
    for the other way"""

    def __init__(self):
        super().__init__("rope", {"x": "Tensor", "cos": "Tensor", "sin": "Tensor",
                                  "interleaved": "bool", "sign": "float"}, ("y",))

    def shapes(self, x, cos, sin, interleaved, sign):
        base = kernel("rope")
        _shapes.check_type("rope", "x", x, base.choices["E"])
        _shapes.check_type("rope", "cos", cos, base.choices["F"])
        _shapes.check_type("rope", "sin", sin, (_shapes.element(cos),))
        shape = tuple(x.shape)
        if len(shape) < 3 or shape[-1] % 2:
            raise ValueError("rope: `x` must be [.., S, H, D], where D is even, not "
                             f"{list(shape)}")
        wanted = shape[-3], shape[-1] // 2
        for name, table in (("cos", cos), ("sin", sin)):
            if tuple(table.shape) != wanted:
                raise ValueError(f"rope: `{name}` must have the shape {wanted}, [S, D / 2], not "
                                 f"{tuple(table.shape)}")
        return [(shape, _shapes.element(x))]

    def run(self, x, cos, sin, interleaved, sign, out=None):
        ((shape, kind),) = self.shapes(x, cos, sin, interleaved, sign)
        if out is not None:
            _shapes.check_type("rope", "out", out, (kind,))
            _shapes.check_out("rope", out, shape)
        y = _shapes.empty(x, shape, kind) if out is None else out
        cos, sin = (_shapes.rows("rope", n, t)[0] for n, t in (("cos", cos), ("sin", sin)))
        made = kernel("rope_interleaved" if interleaved else "rope", ("E", kind),
                      ("F", _shapes.element(cos)))
        done = made(self._heads("x", x, interleaved), cos, sin, sign,
                    Y=y if y is None else self._heads("out", y, interleaved))
        return (done.reshape(shape) if y is None else y,)

    def _heads(self, name, x, interleaved):
        """[B, S, H, D], or the halves [B, S, H, 2, D / 2]"""
        *_, S, H, D = x.shape
        x = _shapes.inner("rope", name, x, 3)
        return x if interleaved else x.reshape((x.shape[0], S, H, 2, D // 2))


class SoftmaxMasked(Operation):
    """Of the elements whose mask is true; the mask has the shape of x, or one that becomes it"""

    def __init__(self):
        super().__init__("softmax_masked", {"x": "Tensor", "mask": "Tensor"}, ("y",))

    def shapes(self, x, mask):
        _shapes.check_type("softmax", "x", x, kernel("softmax_masked").choices["E"])
        if _shapes.type_name(mask) not in ("bool", "uint8"):
            raise TypeError("softmax: `mask` must have elements of bool or u8, not "
                            f"{_shapes.type_name(mask)}: pass mask != 0")
        shape, wanted = tuple(mask.shape), tuple(x.shape)
        if len(shape) > len(wanted) or any(
                n not in (1, w) for n, w in zip(shape[::-1], wanted[::-1])):
            raise ValueError(f"softmax: `mask` must have the shape {wanted}, or one that "
                             f"broadcasts to it, not {shape}")
        return [(wanted, _shapes.element(x))]

    def run(self, x, mask, out=None):
        ((shape, kind),) = self.shapes(x, mask)
        if out is not None:
            _shapes.check_type("softmax", "out", out, (kind,))
            _shapes.check_out("softmax", out, shape)
        y = _shapes.empty(x, shape, kind) if out is None else out
        mask = _shapes.broadcast(_shapes.as_bytes(mask), shape)
        x, mask, c = _shapes.alike("softmax", ("x", x), ("mask", mask), ("out", y))
        done = kernel("softmax_masked", ("E", kind))(x, mask, Y=c)
        return (done.reshape(shape) if y is None else y,)


class Reduce(Operation):
    """Over one axis"""

    PARTS, BLOCKS = 64, 528  # where there are fewer blocks, each takes a part of the rows

    def __init__(self, name, op):
        super().__init__(name, {"x": "Tensor", "dim": "int"}, ("y",))
        self._op = ("OP", op)

    def shapes(self, x, dim):
        _shapes.check_type(self.name, "x", x, kernel("reduce_rows").choices["E"])
        shape = tuple(x.shape)
        if not -len(shape) <= dim < len(shape):
            raise ValueError(f"{self.name}: `dim` is {dim}, but `x` has {len(shape)} axes")
        dim %= len(shape)
        if self.name == "amax" and shape[dim] == 0:
            raise ValueError("amax: an axis without elements has no maximum")
        return [((*shape[:dim], *shape[dim + 1:]), _shapes.element(x))]

    def run(self, x, dim, out=None):
        ((shape, kind),) = self.shapes(x, dim)
        if out is not None:
            _shapes.check_type(self.name, "out", out, (kind,))
            _shapes.check_out(self.name, out, shape)
        y = _shapes.empty(x, shape, kind) if out is None else out
        dim %= x.ndim
        if math.prod(x.shape[dim + 1:]) == 1:
            x = _shapes.rows(self.name, "x", x.reshape(x.shape[:dim + 1]))[0]
            done = kernel("reduce_rows", ("E", kind), self._op)(
                x, Y=y if y is None else _shapes.flat(self.name, "out", y))
        else:
            done = self._columns(_shapes.around(self.name, "x", x, dim), kind, y)
        return (done.reshape(shape) if y is None else y,)

    def _columns(self, x, kind, y):
        B, M, N = x.shape
        y = y if y is None else _shapes.flat(self.name, "out", y)
        blocks = B * -(-N * x.dtype.itemsize // 256)
        if M <= 512 or blocks >= self.BLOCKS:
            return kernel("reduce_columns", ("E", kind), ("F", kind), self._op)(
                x, Y=y if y is None else y.reshape((1, B, N)))
        parts = kernel("reduce_columns", ("E", kind), ("F", "f32"), self._op, ("P", self.PARTS))(
            x, Y=_shapes.empty(x, (self.PARTS, B, N), "f32"))
        return kernel("sum_parts", ("E", kind), self._op)(parts.reshape((self.PARTS, B * N)), Y=y)


class AdamW(Operation):
    """A step of AdamW in place, with the scalars of kernels/adamw.pipe"""

    _SCALARS = ("new1", "beta2", "new2", "eps", "decay", "size", "root")
    scalars = len(_SCALARS)

    def __init__(self):
        super().__init__("adamw", {
            "p": "Tensor(a!)", "grad": "Tensor", "exp_avg": "Tensor(b!)",
            "exp_avg_sq": "Tensor(c!)", **dict.fromkeys(self._SCALARS, "float")}, ())

    @staticmethod
    def scalars_of(step, lr, betas, eps, weight_decay):
        """The last arguments, of the step of this number"""
        beta1, beta2 = betas
        if step < 1:
            raise ValueError(f"adamw: `step` is {step}, but the first step is 1")
        return tuple(map(float, (
            1 - beta1, beta2, 1 - beta2, eps, 1 - lr * weight_decay, lr / (1 - beta1**step),
            1 / (1 - beta2**step)**0.5)))

    def shapes(self, p, grad, exp_avg, exp_avg_sq, *scalars):
        base = kernel("adamw")
        _shapes.check_type("adamw", "p", p, base.choices["E"])
        _shapes.check_type("adamw", "grad", grad, (_shapes.element(p),))
        _shapes.check_type("adamw", "exp_avg", exp_avg, base.choices["F"])
        _shapes.check_type("adamw", "exp_avg_sq", exp_avg_sq, (_shapes.element(exp_avg),))
        for name, x in (("p", p), ("grad", grad), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
            if tuple(x.shape) != tuple(p.shape):
                raise ValueError(f"adamw: `{name}` must have the shape {tuple(p.shape)}, not "
                                 f"{tuple(x.shape)}")
            if not _shapes.is_whole(x):
                raise _shapes.strided("adamw", name, f"`{name}` has not its elements in C order")
        return []

    def run(self, p, grad, exp_avg, exp_avg_sq, *scalars, out=None):
        self.shapes(p, grad, exp_avg, exp_avg_sq)
        count = (math.prod(p.shape),)
        kernel("adamw", ("E", _shapes.element(p)), ("F", _shapes.element(exp_avg)))(
            *(x.reshape(count) for x in (grad, p, exp_avg, exp_avg_sq)), *scalars)
        return ()


OPERATIONS = {operation.name: operation for operation in (
    Matmul(),
    Linear(),
    ScaledMm(),
    IntMm(),


    Rope(),
    Cast(),
    Elements("axpy", {"x": "X", "y": "Y", "a": "a"}, {"z": "Z"}, {"E": "x"}),
    Rows("transpose", {"x": "X"}, {"y": "Y"}, {"E": "x"}),
    Reduce("sum", 0),
    Reduce("amax", 1),
    AdamW(),
    Rows("softmax", {"x": "X"}, {"y": "Y"}, {"E": "x"}),
    Rows("softmax_causal", {"x": "X"}, {"y": "Y"}, {"E": "x"}),
    SoftmaxMasked(),
    Rows("softmax_backward", {"y": "Y", "dy": "dY"}, {"dx": "dX"}, {"E": "y"}),
    Rows("rms_norm", {"x": "X", "weight": "W", "eps": "eps"}, {"y": "Y"}, {"E": "x"},
         {"WEIGHT": "weight"}),
    Rows("rms_norm_backward", {"x": "X", "weight": "W", "dy": "dY", "eps": "eps"},
         {"dx": "dX", "dweight": "dW+"}, {"E": "x"}, {"WEIGHT": "weight"}),
    Rows("rms_norm_residual", {"x": "X", "residual": "Res", "weight": "W", "eps": "eps"},
         {"y": "Y", "sum": "Sum"}, {"E": "x"}, {"WEIGHT": "weight"}, "rms_norm", [("RES", 1)]),
    Rows("rms_norm_residual_backward",
         {"sum": "X", "weight": "W", "dy": "dY", "dsum": "dSum", "eps": "eps"},
         {"dx": "dX", "dweight": "dW+"}, {"E": "sum"}, {"WEIGHT": "weight"}, "rms_norm_backward",
         [("RES", 1)]),
    Rows("layer_norm", {"x": "X", "weight": "W", "bias": "B", "eps": "eps"}, {"y": "Y"},
         {"E": "x"}, {"WEIGHT": "weight", "BIAS": "bias"}),
    Rows("layer_norm_backward",
         {"x": "X", "weight": "W", "bias": None, "dy": "dY", "eps": "eps"},
         {"dx": "dX", "dweight": "dW+", "dbias": "dB+"}, {"E": "x"},
         {"WEIGHT": "weight", "BIAS": "bias"}),
    Rows("layer_norm_residual",
         {"x": "X", "residual": "Res", "weight": "W", "bias": "B", "eps": "eps"},
         {"y": "Y", "sum": "Sum"}, {"E": "x"}, {"WEIGHT": "weight", "BIAS": "bias"}, "layer_norm",
         [("RES", 1)]),
    Rows("layer_norm_residual_backward",
         {"sum": "X", "weight": "W", "bias": None, "dy": "dY", "dsum": "dSum", "eps": "eps"},
         {"dx": "dX", "dweight": "dW+", "dbias": "dB+"}, {"E": "sum"},
         {"WEIGHT": "weight", "BIAS": "bias"}, "layer_norm_backward", [("RES", 1)]),
    *(operation for act, name in enumerate(("swiglu", "geglu")) for operation in (
        Elements(name, {"gate": "Gate", "up": "Up"}, {"y": "Y"}, {"E": "gate"}, None, "glu",
                 [("ACT", act)]),
        Elements(f"{name}_backward", {"gate": "Gate", "up": "Up", "dy": "dY"},
                 {"dgate": "dGate", "dup": "dUp"}, {"E": "gate"}, None, "glu_backward",
                 [("ACT", act)]))),
    Rows("cross_entropy", {"x": "X", "labels": "L", "ignore_index": "ignore"},
         {"loss": "Loss", "lse": "Lse"}, {"E": "x", "I": "labels"}),
    Rows("cross_entropy_backward",
         {"x": "X", "lse": "Lse", "labels": "L", "dloss": "G", "ignore_index": "ignore"},
         {"dx": "dX"}, {"E": "x", "I": "labels"}),
)}
