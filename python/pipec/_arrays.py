"""Arrays of other libraries: what the extension asks about a type when it first sees it, and new
arrays where the library has no C functions for them."""

import sys

# Types that NumPy lacks: their name in Pipe, in ml_dtypes, and the integer with their bits
_BITS = {
    "bf16": ("bfloat16", "uint16"),
    "e4m3": ("float8_e4m3fn", "uint8"),
    "e5m2": ("float8_e5m2", "uint8"),
}
_NUMPY = {
    "f32": "float32", "tf32": "float32", "f16": "float16", "i8": "int8", "u8": "uint8",
    "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64",
}


def _library(kind):
    return kind.__module__.partition(".")[0]


def _is_buffer(x):
    try:
        memoryview(x)
    except TypeError:
        return False  # the type has no buffers
    except Exception:
        pass  # it has, but not of these elements
    return True


def _refuse_tracer(kind, kernel, parameter):
    """JAX passes tracers to a function while it traces it"""
    if any(base.__name__ == "Tracer" and _library(base) == "jax" for base in kind.__mro__):
        raise TypeError(
            f"{kernel}: `{parameter}` is a tracer of JAX ({kind.__qualname__}), which has no "
            "elements yet: call the kernel outside of jax.jit, grad and vmap, with the arrays that "
            "such functions take and return")


def refuse_scalar(x, kernel, parameter, wanted):
    """Raises a TypeError: a scalar must be `wanted`."""
    _refuse_tracer(type(x), kernel, parameter)
    raise TypeError(f"{kernel}: `{parameter}` must be {wanted}, not {type(x)!r}")


def describe(x, kernel, parameter):
    """(capsule of DLPack's C functions or None, is it a buffer, PyTorch's method for the negative
    bit and its attribute for gradients or None, is it immutable, may it be on a GPU and then no
    buffer) for the type of `x`."""
    kind = type(x)
    torch = sys.modules.get("torch")
    is_negative = requires_grad = None
    if torch is not None and isinstance(x, torch.Tensor):
        if kind not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(
                f"{kernel}: `{parameter}` is a {kind.__module__}.{kind.__qualname__}, a subclass "
                "of torch.Tensor whose memory need not hold its elements: pass a plain tensor, or "
                "make an operator of the kernel with pipec.torch.operator()")
        is_negative, requires_grad = torch.Tensor.is_neg, torch.Tensor.requires_grad
    _refuse_tracer(kind, kernel, parameter)
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(x, ma.MaskedArray):
        raise TypeError(
            f"{kernel}: `{parameter}` has a mask, which a kernel does not see: pass x.filled(..)")
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)
    buffer = _is_buffer(x)
    if buffer and is_negative is None:
        exchange = None  # tells whether an array is read-only
    if exchange is None and not buffer and not hasattr(kind, "__dlpack__"):
        raise TypeError(
            f"{kernel}: `{parameter}` must be an array or a tensor, not {kind.__qualname__}: "
            "anything with the buffer protocol (NumPy) or DLPack (PyTorch, CuPy, JAX)")
    immutable = _library(kind) in ("jax", "jaxlib")
    anywhere = _library(kind) != "numpy" and hasattr(kind, "__dlpack_device__")
    return exchange, buffer, is_negative, requires_grad, immutable, anywhere


def as_bits(x):
    """An array of ml_dtypes as (integers with its bits, type in Pipe); otherwise None."""
    name = getattr(getattr(x, "dtype", None), "name", None)
    for pipe, (theirs, bits) in _BITS.items():
        if name == theirs and hasattr(x, "view"):
            return x.view(bits), pipe
    return None


def _numpy_type(numpy, name, bits):
    if name in _NUMPY:
        return numpy.dtype(_NUMPY[name])
    theirs, integer = _BITS[name]
    if not bits:
        try:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, theirs))
        except ImportError:
            pass
    return numpy.dtype(integer)


def bf16(x):
    """The nearest bf16 numbers (ties to even) to those of an array, first as f32: a NumPy array of
    ml_dtypes.bfloat16 if that is installed, otherwise their bits as uint16."""
    import numpy

    bits = numpy.asarray(x, numpy.float32).view(numpy.uint32)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    nearest = (bits + (0x7FFF + (bits >> 16 & 1)).astype(numpy.uint32)) >> 16
    bits = numpy.where(is_nan, bits >> 16 | 0x40, nearest).astype(numpy.uint16)
    return bits.view(_numpy_type(numpy, "bf16", False))


def f32(x):
    """An array of f32 with the numbers of an array of bf16: ml_dtypes.bfloat16, or bits as
    uint16."""
    import numpy

    x = numpy.asarray(x)
    if x.dtype.name not in ("bfloat16", "uint16"):
        raise TypeError(f"f32() takes bf16 numbers, or their bits as uint16, not {x.dtype.name}: "
                        'for others write x.astype("float32")')
    bits = x.view(numpy.uint16).astype(numpy.uint32) << 16
    return numpy.asarray(bits, numpy.uint32).view(numpy.float32)


def of_bytes(shape, name, data):
    """A NumPy array that owns a bytearray."""
    import numpy

    return numpy.frombuffer(data, _numpy_type(numpy, name, False)).reshape(shape)


def empty(shape, name, bits, like):
    """A new array: of NumPy, or of the library and on the device of `like`."""
    if like is None:
        try:
            import numpy
        except ImportError:
            raise ImportError(
                "outputs that are not given are NumPy arrays: install NumPy, or give them by "
                "name, like C=out") from None
        return numpy.empty(shape, _numpy_type(numpy, name, bits))
    library = sys.modules[_library(type(like))]
    if library.__name__ == "torch":
        return library.empty(shape, dtype=_torch_type(library, name), device=like.device)
    if library.__name__ == "jaxlib":
        library = sys.modules["jax"]
    numpy = getattr(library, "numpy", library)  # jax.numpy; CuPy is like NumPy itself
    theirs = _NUMPY.get(name) or _BITS[name][0]
    try:
        dtype = numpy.dtype(theirs)
    except TypeError:
        dtype = numpy.dtype(_BITS[name][1])
    return numpy.empty(shape, dtype=dtype)


def _torch_type(torch, name):
    return getattr(torch, _NUMPY.get(name) or _BITS[name][0])


def current_stream(x):
    """The stream on which the library of `x` works now, as an address; 0: the default stream."""
    library = sys.modules.get(_library(type(x)))
    name = library.__name__ if library else None
    if name == "torch":
        return library.cuda.current_stream(x.device).cuda_stream
    return library.cuda.get_current_stream().ptr if name == "cupy" else 0
