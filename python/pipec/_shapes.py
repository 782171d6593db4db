"""What the functions of pipec.kernels ask of an array, whatever its library: element type, strides,
and views that fit the axes of a kernel. A view is never a copy: what needs one is refused, with the
words to write instead."""

import math
import sys

# Types that NumPy lacks: host arrays hold their bits
_BITS = {"uint16": "bf16", "uint8": "e4m3"}
# Names of libraries -> types in Pipe
_TYPES = {
    "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2", "int8": "i8", "int32": "i32", "int64": "i64",
}
NAMES = {pipe: name for name, pipe in _TYPES.items()}


EXTENT_MOST = 2**31 - 2**20  # of an axis
EPSILON = {"bf16": 2.0**-7, "f16": 2.0**-10, "f32": 2.0**-23}


def named(dtype):
    """A type of elements as a library has it, or its name, as the type in Pipe; else None"""
    name = dtype.__name__ if isinstance(dtype, type) else str(dtype).removeprefix("torch.")
    return name if name in NAMES else _TYPES.get(name) or _BITS.get(name)


def is_torch(x):
    return hasattr(x, "requires_grad")


def type_name(x):
    """Of its elements, as its library calls them"""
    return str(x.dtype).removeprefix("torch.")


_elements = {}  # by the type of the elements, as each library has it


def element(x):
    """The type of its elements in Pipe; None: there is none"""
    try:
        return _elements[x.dtype]
    except KeyError:
        name = type_name(x)
        found = _TYPES.get(name) or (None if is_torch(x) else _BITS.get(name))
        return _elements.setdefault(x.dtype, found)


def epsilon(x):
    """From 1 to the next number of its type"""
    return EPSILON.get(element(x), 0)


def _bits(kind):
    """What holds the bits of a type that NumPy lacks; else None"""
    return next((bits for bits, of in _BITS.items() if of == kind), None)


def cast(x, name, kind):
    """What converts it, as its library writes it"""
    if is_torch(x):
        return f"{name}.to(torch.{NAMES[kind]})"
    bits = _bits(kind)
    return f'{name}.astype("{NAMES[kind]}")' if bits is None else (
        f"{name}.astype(ml_dtypes.{NAMES[kind]}), or its bits as {bits}")


def check_type(function, name, x, kinds, otherwise=""):
    """`otherwise`: what else the caller can do"""
    if element(x) not in kinds:
        among = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        raise TypeError(f"{function}: `{name}` must have elements of {among}, not {type_name(x)}: "
                        f"convert it, {cast(x, name, kinds[0])}{otherwise}")


def strides(x):
    """In elements"""
    if is_torch(x):
        return x.stride()
    if not hasattr(x, "strides"):  # JAX: C order
        return tuple(math.prod(x.shape[i + 1:]) for i in range(len(x.shape)))
    return tuple(s // x.dtype.itemsize for s in x.strides)


def strided(function, name, why):
    return ValueError(f"{function}: {why}: pass {name}.contiguous() "
                      f"(NumPy: numpy.ascontiguousarray({name}))")


def merges(shape, steps):
    """True if these axes are one axis of the memory"""
    axes = [(n, s) for n, s in zip(shape, steps) if n != 1]
    return 0 in shape or all(s == t * n for (_, s), (n, t) in zip(axes, axes[1:]))


def rows(function, name, x):
    """[.., D] as [M, D], and the leading axes"""
    shape, steps = tuple(x.shape), strides(x)
    if len(shape) == 2 and steps[1] == 1:
        return x, shape[:1]
    if not shape:
        raise ValueError(f"{function}: `{name}` has no axes")
    if shape[-1] > 1 and steps[-1] != 1 and 0 not in shape:
        raise strided(function, name, f"the last axis of `{name}` must be adjacent in memory")
    if not merges(shape[:-1], steps[:-1]):
        raise strided(function, name, f"the leading axes of `{name}` are not one axis in memory")
    return x.reshape((math.prod(shape[:-1]), shape[-1])), shape[:-1]


def around(function, name, x, dim):
    """With the axes before `dim` as one, and those after it"""
    shape, steps = tuple(x.shape), strides(x)
    if 0 not in shape and steps[-1] != 1 and shape[-1] > 1:
        raise strided(function, name, f"the last axis of `{name}` must be adjacent in memory")
    if not merges(shape[:dim], steps[:dim]) or not merges(shape[dim + 1:], steps[dim + 1:]):
        raise strided(function, name, f"the axes of `{name}` before or after `dim` are not one "
                                      "axis in memory")
    return x.reshape((math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1:])))


def alike(function, *tensors):
    """Each (name, tensor) as [B, S, D], where B and S are the same for all; None stays None"""
    given = [(n, x) for n, x in tensors if x is not None]
    shape = tuple(given[0][1].shape)
    for name, x in given:
        if strides(x)[-1] != 1 and shape[-1] > 1 and 0 not in shape:
            raise strided(function, name, f"the last axis of `{name}` must be adjacent in memory")
    rows = len(shape) - 1
    for outer in range(rows):
        if all(merges(shape[:outer], strides(x)[:outer]) and
               merges(shape[outer:rows], strides(x)[outer:rows]) for _, x in given):
            break
    else:
        if rows > 0:
            raise strided(function, given[1][0], f"the leading axes of `{given[1][0]}` are not two "
                                                 "axes in memory")
        outer = 0
    view = math.prod(shape[:outer]), math.prod(shape[outer:rows]), shape[-1]
    return [x if x is None else x.reshape(view) for _, x in tensors]


def broadcast(x, shape):
    return x.expand(shape) if is_torch(x) else _library(x).broadcast_to(x, shape)


def as_bytes(mask):
    """A mask of bools as the same bytes"""
    if type_name(mask) != "bool":
        return mask
    if not is_torch(mask):
        return mask.view("uint8")
    torch = sys.modules["torch"]
    # Inductor cannot view what it computes as bool
    return mask.to(torch.uint8) if torch.compiler.is_compiling() else mask.view(torch.uint8)


def is_whole(x):
    """True if its elements are adjacent, in C order"""
    if is_torch(x):
        return x.is_contiguous()
    shape, steps = tuple(x.shape), strides(x)
    return merges((*shape, 1), (*steps, 1))


def inner(function, name, x, count):
    """With all axes but the last `count` as one, as [.., S, D] as [B, S, D]; rows are adjacent"""
    shape, steps = tuple(x.shape), strides(x)
    if len(shape) < count:
        raise ValueError(f"{function}: `{name}` must have {count} axes or more, not {len(shape)}")
    if shape[-1] > 1 and steps[-1] != 1 and 0 not in shape:
        raise strided(function, name, f"the last axis of `{name}` must be adjacent in memory")
    outer = len(shape) - count
    if not merges(shape[:outer], steps[:outer]):
        raise strided(function, name, f"the leading axes of `{name}` are not one axis in memory")
    return x.reshape((math.prod(shape[:outer]), *shape[outer:]))


def flat(function, name, x):
    """[..] as [M]"""
    if not merges(x.shape, strides(x)):
        raise strided(function, name, f"the axes of `{name}` are not one axis in memory")
    return x.reshape((math.prod(x.shape),))


def _adjacent(shape, steps, outer, inner):
    """The elements along `inner` are adjacent, and rows do not overlap"""
    return (shape[inner] <= 1 or steps[inner] == 1) and (
        shape[outer] <= 1 or steps[outer] >= shape[inner])


def is_batch(x):
    """True if it is a batch of matrices as matmul takes them"""
    shape, steps = x.shape, strides(x)
    return 0 in shape or merges(shape[:-2], steps[:-2]) and any(
        _adjacent(shape, steps, o, i) for o, i in ((-2, -1), (-1, -2)))


def matrix(function, name, x):
    """(view with the last axis adjacent, was it transposed)"""
    shape, steps = x.shape, strides(x)
    if 0 in shape or _adjacent(shape, steps, -2, -1):
        return x, False
    if _adjacent(shape, steps, -1, -2):
        return x.swapaxes(-1, -2), True
    raise strided(function, name, f"one of the last two axes of `{name}` must be adjacent in memory")


def along_last(function, name, x):
    """With the last axis adjacent in memory: a copy, if it is the one before"""
    if 0 in x.shape or _adjacent(x.shape, strides(x), -2, -1):
        return x
    matrix(function, name, x)  # refuses other strides
    return x.contiguous() if is_torch(x) else _library(x).ascontiguousarray(x)


def batch(function, name, x):
    """[.., M, K] as [G, M, K]; the matrices have any strides"""
    shape, steps = tuple(x.shape), strides(x)
    if not merges(shape[:-2], steps[:-2]):
        raise strided(function, name, f"the leading axes of `{name}` are not one axis in memory")
    return x.reshape((math.prod(shape[:-2]), *shape[-2:]))


def has_even_rows(x):
    """A matrix with rows of 16 bytes, from addresses of 16 bytes: those that TMA copies"""
    (rows, columns), (pitch, step), per = x.shape, strides(x), 16 // x.dtype.itemsize
    if columns % per != 0 or step != 1 or (rows > 1 and (pitch % per != 0 or pitch < columns)):
        return False
    return not is_torch(x) or x.data_ptr() % 16 == 0


def even_rows_for(x):
    """A new tensor of PyTorch for the elements of matrices [G, M, K], with rows that are as long or a
    few elements longer, which TMA copies; None if it copies those of `x`"""
    per = 16 // x.dtype.itemsize
    if not is_torch(x) or x.data_ptr() % 16 == 0 and all(
            n == 1 or step % per == 0 for n, step in zip(x.shape[:-1], strides(x)[:-1])):
        return None
    return x.new_empty((*x.shape[:-1], -(-x.shape[-1] // per) * per))


def _library(x):
    name = type(x).__module__.partition(".")[0]
    return sys.modules["jax"].numpy if name in ("jax", "jaxlib") else sys.modules[name]


def empty(like, shape, kind):
    """A new tensor of PyTorch; None: the kernel makes one, of the library of its first argument"""
    if not is_torch(like):
        return None
    return like.new_empty(shape, dtype=getattr(sys.modules["torch"], NAMES[kind]))


def nothing(like, kind):
    """A vector without elements, on the device of `like`"""
    if is_torch(like):
        return empty(like, (0,), kind)
    return _library(like).empty((0,), dtype=_bits(kind) or NAMES[kind])


_none = {}


def none(like, shape):
    """A tensor without elements, for what is left out"""
    if not is_torch(like):
        return like[:0].reshape(shape)
    key = like.device, like.dtype, shape
    if key not in _none:
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            made = like.new_empty(shape)
        return _none.setdefault(key, made)  # the one of the first thread
    return _none[key]


def is_none(x):
    return any(x is y for y in _none.values())


def check_out(function, out, shape):
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"{function}: `out` must have the shape {tuple(shape)}, "
                         f"not {tuple(out.shape)}")
