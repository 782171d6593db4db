"""Tensors of DLPack whose producer is wrong, field by field, by each of DLPack's ways: an exception,
never a crash, and each tensor is given back."""

import ctypes

import fakes
import numpy as np
import pytest
from fakes import Device, Owning, Type, WithCapsule, WithExchange, WithOldCapsule, log

KINDS = [WithExchange, Owning, WithCapsule, WithOldCapsule]
NONE = ctypes.POINTER(ctypes.c_int64)()


@pytest.fixture(autouse=True)
def fresh():
    log.released = 0
    yield
    assert not fakes._alive, "a tensor was not given back"


def numbers(*values):
    array = (ctypes.c_int64 * len(values))(*values)
    numbers.alive.append(array)
    return ctypes.cast(array, ctypes.POINTER(ctypes.c_int64))


numbers.alive = []


def lying(kind, of, fields):
    """An array on the host whose structure has other values in some fields"""

    class Liar(kind):
        def fill(self, out):
            super().fill(out)
            for name, value in fields.items():
                setattr(out, name, value)

        def __dlpack_device__(self):
            return fakes.CPU, 0

    return Liar(of, None)


def calls(example, kind, fields):
    """The calls with the array as the tensor that is read, and as the one that is written"""
    for written in (False, True):
        arrays = [lying(kind, np.arange(5, dtype=np.float32), fields), np.ones(5, np.float32)]
        yield lambda: example("axpy")(*(arrays[::-1] if written else arrays), 2.0)


LIES = {
    "shape is null": ({"extents": NONE}, BufferError, "with 1 axes, but without their extents"),
    "shape and strides are null":
        ({"extents": NONE, "strides": NONE}, BufferError, "without their extents"),
    "data is null": ({"data": None}, ValueError, "has no memory"),
    "data is null, with an offset": ({"data": None, "offset": 64}, ValueError, "has no memory"),
    "extent is negative":
        ({"extents": numbers(-5)}, BufferError, "with -5 elements along axis 0"),
    "extent is the least":
        ({"extents": numbers(-2**63)}, BufferError, "elements along axis 0"),
    "extent is huge":
        ({"extents": numbers(2**62)}, BufferError, "more elements than memory can hold"),
    "extent is beyond 32 bits": ({"extents": numbers(2**33)}, ValueError, "P06|shares memory"),
    "no axes": ({"rank": 0}, ValueError, "the tensor has 0"),
    "no axes, nothing else":
        ({"rank": 0, "extents": NONE, "strides": NONE}, ValueError, "the tensor has 0"),
    "rank is negative": ({"rank": -1}, ValueError, "the tensor has -1"),
    "rank is the least": ({"rank": -2**31}, ValueError, "the tensor has -"),
    "rank is huge": ({"rank": 2**31 - 1}, ValueError, "the tensor has 2147483647"),
    "rank is one more": ({"rank": 2, "extents": numbers(5, 1)}, ValueError, "the tensor has 2"),
    "stride is negative": ({"strides": numbers(-1)}, ValueError, "whose stride is -1"),
    "stride is zero": ({"strides": numbers(0)}, ValueError, "whose stride is 0"),
    "stride is huge": ({"strides": numbers(2**62)}, ValueError, "contiguous along its last"),
    "offset wraps around": ({"offset": 2**64 - 4}, BufferError, "an offset beyond all memory"),
    "type has lanes": ({"type": Type(2, 32, 4)}, TypeError, "vectors of 4 elements"),
    "type has no lanes": ({"type": Type(2, 32, 0)}, TypeError, "vectors of 0 elements"),
    "type has no bits": ({"type": Type(2, 0, 1)}, TypeError, "not float0"),
    "type has other bits": ({"type": Type(2, 64, 1)}, TypeError, "not float64"),
    "type has another code": ({"type": Type(0, 32, 1)}, TypeError, "not int32"),
    "type is unknown": ({"type": Type(255, 255, 65535)}, TypeError, "must have elements of f32"),
    "device is unknown": ({"device": Device(9, 0)}, ValueError, "device type 9"),
    "device is zero": ({"device": Device(0, 0)}, ValueError, "device type 0"),
    "GPU is negative": ({"device": Device(2, -1)}, ValueError, "is on GPU -1"),
    "GPU is another than that of the rest":
        ({"device": Device(2, 3)}, ValueError, "all tensors of a call are on one device"),
    "managed memory is of a GPU": ({"device": Device(13, 0)}, ValueError, "is on|on GPU 0"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lie", LIES)
def test_lies(example, kind, lie):
    fields, error, text = LIES[lie]
    for call in calls(example, kind, fields):
        with pytest.raises(error, match=f"(?s){text}"):
            call()


RIGHT = {
    "strides are null": {"strides": NONE},
    "stride of one element": {"extents": numbers(1), "strides": numbers(-7)},
    "id of the host": {"device": Device(fakes.CPU, -7)},
    "pinned memory": {"device": Device(3, 0)},
    "empty without memory": {"extents": numbers(0), "data": None, "offset": 2**64 - 1},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", RIGHT)
def test_right_forms(example, kind, form):
    fields = RIGHT[form]
    count = fields["extents"][0] if "extents" in fields else 5
    Y = np.ones(count, np.float32)
    example("axpy")(lying(kind, np.arange(5, dtype=np.float32), fields), Y, 2.0)
    assert np.array_equal(Y, 2 * np.arange(count, dtype=np.float32) + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_that_reach_beyond_memory(example, kind):
    A = np.zeros((4, 72), np.uint16)
    for fields, text in (
            ({"extents": numbers(2**33, 2**33)}, "more elements than memory"),
            ({"extents": numbers(2**62, 0)}, "more elements than memory"),
            ({"strides": numbers(2**62, 1)}, "beyond all memory"),
            ({"strides": numbers(2**61, 1)}, "beyond all memory"),
            ({"strides": numbers(-2**63, 1)}, "stride of -9223372036854775808")):
        made = lying(kind, A, {"type": Type(4, 16, 1), **fields})
        with pytest.raises((ValueError, BufferError), match=text):
            example("gemm")(made, np.zeros((8, 72), np.uint16))


def test_offset_in_bytes(example):
    of, Y = np.arange(8, dtype=np.float32), np.zeros(5, np.float32)
    example("axpy")(lying(WithCapsule, of, {"offset": 12, "extents": numbers(5)}), Y, 1.0)
    assert np.array_equal(Y, np.arange(3, 8))


@pytest.mark.parametrize("kind", [WithCapsule, WithOldCapsule])
def test_no_release(example, kind):
    """A producer may leave out the function that takes a tensor back."""
    alive = []

    class Kept(kind):
        def __dlpack__(self, **given):
            capsule = super().__dlpack__(**given)
            it = fakes._alive.pop(next(iter(fakes._alive)))
            it[0].release = fakes.RELEASE()
            alive.append(it)
            return capsule

    Y = np.ones(5, np.float32)
    example("axpy")(Kept(np.arange(5, dtype=np.float32), None), Y, 2.0)
    assert np.array_equal(Y, [1, 3, 5, 7, 9]) and len(alive) == 1


@pytest.mark.parametrize("major", [0, 2, 2**32 - 1])
def test_other_versions(example, major):
    X = WithCapsule(np.arange(5, dtype=np.float32), None)
    X.major = major
    with pytest.raises(BufferError, match=f"version {major} of DLPack"):
        example("axpy")(X, np.ones(5, np.float32), 2.0)
    assert log.released == 1


class Answers:
    """What `__dlpack__` and `__dlpack_device__` return"""

    def __init__(self, capsule, device=(fakes.CPU, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **given):
        return self.capsule


def capsule(name):
    it = fakes.Managed()
    capsule.alive.append((it, name))
    return fakes._new_capsule(ctypes.addressof(it), name, None)


capsule.alive = []


@pytest.mark.parametrize("name", [
    None, b"", b"x", b"used_dltensor", b"used_dltensor_versioned", b"dltensor ", b"DLTENSOR"])
def test_names_of_capsules(example, name):
    with pytest.raises(BufferError, match="`X` is exported by __dlpack__ as no capsule"):
        example("axpy")(Answers(capsule(name)), np.ones(5, np.float32), 2.0)


@pytest.mark.parametrize("other", [None, 7, "dltensor", object()])
def test_no_capsule(example, other):
    with pytest.raises(BufferError, match="`X` is exported by __dlpack__ as no capsule"):
        example("axpy")(Answers(other), np.ones(5, np.float32), 2.0)


def test_a_capsule_twice(example):
    X = WithCapsule(np.arange(5, dtype=np.float32), None)
    again = Answers(X.__dlpack__(max_version=(1, 3)))
    example("axpy")(again, np.ones(5, np.float32), 2.0)
    with pytest.raises(BufferError, match="`X` is exported by __dlpack__ as no capsule"):
        example("axpy")(again, np.ones(5, np.float32), 2.0)
    assert log.released == 1


@pytest.mark.parametrize("device", [
    None, "cpu", 1, (1,), (1, 0, 0), (None, None), (1 << 70, 0), [1, 0], ("1", "0")])
def test_devices_that_are_none(example, device):
    with pytest.raises(BufferError, match="`X` has no device: __dlpack_device__ returned"):
        example("axpy")(Answers(None, device), np.ones(5, np.float32), 2.0)
