"""Arrays of a device that does not exist: their memory is that of NumPy arrays. Three kinds: with
DLPack's C functions, and with `__dlpack__` of both kinds of capsules. Written with ctypes, which
repeats the layout of the structures on purpose."""

import contextlib
import ctypes
import os
import pathlib
import re
import types

import numpy as np

CPU, CUDA = 1, 2
CODES = {"f": 2, "i": 0, "u": 1, "b": 6, "c": 5}


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", Device), ("rank", ctypes.c_int32), ("type", Type),
        ("extents", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


class Versioned(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("release", RELEASE)]
Versioned._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
    ("release", RELEASE), ("flags", ctypes.c_uint64), ("tensor", Tensor),
]
FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, FAIL)
MANAGED_OF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
OBJECT_OF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
TENSOR_OF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM_OF = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    pass


Exchange._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.POINTER(Exchange)),
    ("allocate", ALLOCATE), ("managed_of", MANAGED_OF), ("object_of", OBJECT_OF),
    ("tensor_of", TENSOR_OF), ("current_stream", STREAM_OF),
]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_increment = ctypes.pythonapi.Py_IncRef
_increment.argtypes = [ctypes.py_object]


def root():
    return pathlib.Path(__file__).resolve().parents[2]


def capsule_name(capsule):
    return _name_of(capsule).decode()


class Array:
    """Elements of `of`, said to be on a device. `code` is DLPack's, for types that NumPy lacks."""

    def __init__(self, of, device=0, code=None, data=None):
        self.of = of
        self.device = (CUDA, device) if device is not None else (CPU, 0)
        self.code = CODES[of.dtype.kind] if code is None else code
        self.data = data
        self.gradient = False
        self.negative = False
        self._shape = (ctypes.c_int64 * max(of.ndim, 1))(*of.shape)
        self._strides = (ctypes.c_int64 * max(of.ndim, 1))(
            *(s // of.itemsize for s in of.strides))

    @property
    def address(self):
        return self.of.ctypes.data if self.data is None else self.data

    def fill(self, out):
        out.data = self.address or None
        out.device = Device(*self.device)
        out.rank = self.of.ndim
        out.type = Type(self.code, 8 * self.of.itemsize, 1)
        out.extents = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        out.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        out.offset = 0


log = types.SimpleNamespace(
    stream=0x5000, streams_given=[], released=0, allocated=0, allocation_fails=False, capsules=[])
_alive = {}  # what C holds, by address


@RELEASE
def _release(address):
    log.released += 1
    del _alive[address]


def _managed(array, kind):
    it = kind()
    array.fill(it.tensor)
    it.release = _release
    _alive[ctypes.addressof(it)] = it, array
    return it


@ALLOCATE
def _allocate(like, out, error, fail):
    if log.allocation_fails:
        fail(error, b"OutOfMemoryError", b"device 0 is full")
        return -1
    like = like.contents
    shape = [like.extents[i] for i in range(like.rank)]
    kinds = {2: f"f{like.type.bits // 8}", 0: f"i{like.type.bits // 8}"}
    of = np.zeros(shape, kinds.get(like.type.code, f"u{like.type.bits // 8}"))
    device = None if like.device.type == CPU else like.device.id
    made = _managed(WithExchange(of, device, like.type.code), Versioned)
    made.major, made.minor = 1, 3
    log.allocated += 1
    out[0] = ctypes.addressof(made)
    return 0


@OBJECT_OF
def _object_of(address, out):
    array = _alive.pop(address)[1]
    _increment(array)
    out[0] = array
    return 0


@TENSOR_OF
def _tensor_of(array, out):
    array.fill(out.contents)
    return 0


@STREAM_OF
def _stream_of(kind, device, out):
    log.streams_given.append((kind, device))
    out[0] = log.stream
    return 0


@MANAGED_OF
def _managed_of(array, out):
    it = _managed(array, Versioned)
    it.major, it.minor = 1, 3
    out[0] = ctypes.addressof(it)
    return 0


_exchange = Exchange(1, 3, None, _allocate, _managed_of, _object_of, _tensor_of, _stream_of)
_owning = Exchange(1, 3, None, _allocate, _managed_of, _object_of, TENSOR_OF(), _stream_of)
# of a later major version, which refers to the one that we know
_later = Exchange(2, 0, ctypes.pointer(_exchange), ALLOCATE(), MANAGED_OF(), OBJECT_OF(),
                  TENSOR_OF(), STREAM_OF())


def exchange_capsule(struct):
    return _new_capsule(ctypes.addressof(struct), b"dlpack_exchange_api", None)


class WithExchange(Array):
    __dlpack_c_exchange_api__ = exchange_capsule(_exchange)


class Owning(Array):
    """Its C functions cannot lend a tensor"""

    __dlpack_c_exchange_api__ = exchange_capsule(_owning)


class Later(Array):
    __dlpack_c_exchange_api__ = exchange_capsule(_later)


class WithCapsule(Array):
    """`__dlpack__` of DLPack 1"""

    flags = 0
    major = 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        log.streams_given.append(stream)
        assert max_version == (1, 3)
        it = _managed(self, Versioned)
        it.major, it.minor, it.flags = self.major, 0, self.flags
        capsule = _new_capsule(ctypes.addressof(it), b"dltensor_versioned", None)
        log.capsules.append(capsule)
        return capsule


class WithOldCapsule(Array):
    """`__dlpack__` of DLPack 0.x"""

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        log.streams_given.append(stream)
        it = _managed(self, Managed)
        capsule = _new_capsule(ctypes.addressof(it), b"dltensor", None)
        log.capsules.append(capsule)
        return capsule


# ---- the stand-in for the driver (tests/standin/standin.h) ---------------------------------------


class Map(ctypes.Structure):
    _fields_ = [
        ("fields", ctypes.c_uint * 5), ("rank", ctypes.c_uint32), ("box", ctypes.c_uint32 * 5),
        ("element_strides", ctypes.c_uint32 * 5), ("address", ctypes.c_uint64),
        ("extents", ctypes.c_uint64 * 5), ("strides", ctypes.c_uint64 * 5),
    ]


KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)


_TYPES = {"bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint, "StandinMap": Map,
          "void *": ctypes.c_void_p, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
          "float": ctypes.c_float, "char": ctypes.c_char}


def _members():
    """Those of `Standin`, as the header declares them"""
    text = (root() / "tests" / "standin" / "standin.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    body = re.search(r"typedef struct Standin \{(.*?)\} Standin;", text, re.S)[1]
    for line in filter(None, map(str.strip, body.split(";"))):
        if "(*" in line:
            yield re.search(r"\(\*(\w+)\)", line)[1], KERNEL
            continue
        kind, names = re.fullmatch(r"(void \*|\w+ )(.*)", line, re.S).groups()
        for name in names.split(","):
            name, _, length = name.strip().rstrip("]").partition("[")
            kind_of = _TYPES[kind.strip()]
            yield name, kind_of * int(length) if length else kind_of


class Standin(ctypes.Structure):
    _fields_ = list(_members())


def standin():
    return Standin.in_dll(ctypes.CDLL(os.environ["PIPEC_LIBCUDA"]), "standin")


@contextlib.contextmanager
def executing(work):
    """Launches call work(pointers to the parameters of the entry)."""
    where = standin()
    call = KERNEL(lambda parameters, blocks: work(parameters))
    where.kernel = call
    try:
        yield
    finally:
        where.kernel = KERNEL()


def axpy(parameters):
    """The kernel of examples/axpy.pipe, whose entry has the parameters X, Y, N and a"""
    x, y = (ctypes.cast(parameters[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in (0, 1))
    count = ctypes.cast(parameters[2], ctypes.POINTER(ctypes.c_uint32))[0]
    a = ctypes.cast(parameters[3], ctypes.POINTER(ctypes.c_float))[0]
    if count == 0:
        return
    X, Y = (
        np.ctypeslib.as_array(ctypes.cast(p, ctypes.POINTER(ctypes.c_float)), (count,))
        for p in (x, y))
    Y += np.float32(a) * X
