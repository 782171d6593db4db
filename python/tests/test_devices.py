"""Arrays of a device, by each of DLPack's ways, on the stand-in for the driver."""

import os
import pickle
import subprocess
import sys
import types
import unittest.mock

import fakes
import numpy as np
import pytest
from fakes import Later, Owning, WithCapsule, WithExchange, WithOldCapsule, log

import pipec

KINDS = [WithExchange, Owning, Later, WithCapsule, WithOldCapsule]
BF16 = 4  # DLPack's code
DOUBLE = """kernel double(X: f32[N], out Y: f32[N]) for sm_90a {
    grid (t: ceil(N, 128));
    role r: 4 warps { for t in grid { Y[t*128 + i] = 2 * X[t*128 + i] for i in 0 .. 128; } }
}"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    log.streams_given, log.allocation_fails, log.capsules = [], False, []
    log.released = log.allocated = 0
    yield
    assert not fakes._alive, "a tensor was not given back"


def vectors(kind, count=1000, device=0):
    return (kind(np.arange(count, dtype=np.float32), device),
            kind(np.ones(count, np.float32), device))


def matrices(kind, M=64, N=80, K=72):
    return tuple(kind(np.zeros(shape, np.uint16), 0, BF16) for shape in ((M, K), (N, K)))


def refused(error, *words):
    return pytest.raises(error, match="(?s)" + ".*".join(words))


# ---- launches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_in_place(example, kind):
    X, Y = vectors(kind)
    with fakes.executing(fakes.axpy):
        assert example("axpy")(X, Y, 2.5) is None
    assert np.array_equal(Y.of, 2.5 * X.of + 1)


@pytest.mark.parametrize("kind", [WithExchange, Owning, Later])
def test_outputs_of_the_library(example, kind):
    A, B = matrices(kind)
    C = example("gemm")(A, B)
    assert log.allocated == 1 and C.of.shape == (64, 80) and C.code == BF16


SOLVED = """kernel shifted(X: f32[N + 1], out Y: f32[N]) for sm_90a {
    example N = 3;
    grid (t: ceil(N, 128));
    role r: 4 warps { for t in grid { Y[t*128 + i] = X[t*128 + i] for i in 0 .. 128; } }
}"""


@pytest.mark.parametrize("kind", [WithExchange, Owning, Later])
def test_solved_extents(kind):
    shifted = pipec.compile(SOLVED)
    for count in (1, 7):
        X, Y = kind(np.zeros(count, np.float32)), kind(np.zeros(count - 1, np.float32))
        assert shifted(X).of.shape == (count - 1,)
        assert shifted(X, Y=Y) is Y and shifted(X, Y=Y, N=count - 1) is Y
        for more in ({}, {"Y": Y}):
            with refused(pipec.Unusable, "P0604"):
                shifted(X, N=count, **more)
        with refused(pipec.Unusable, "P0604"):
            shifted(X, Y=X)


def test_named_extents_are_compared():
    X, Y = vectors(WithExchange)
    double = pipec.compile(DOUBLE)
    assert double(X, Y=Y, N=1000) is Y
    with refused(pipec.Unusable, "P0604", "`N` = 999"):
        double(X, Y=Y, N=999)


class Shape:
    """A tensor of torch.compile without data"""

    def __init__(self, shape, dtype=None):
        self.shape, self.dtype = tuple(shape), dtype

    def dim(self):
        return len(self.shape)

    def new_empty(self, shape, dtype):
        return Shape(shape, dtype)


def test_solved_extents_of_fake_tensors(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", unittest.mock.MagicMock())
    from pipec import torch

    text = """kernel k(X: f32[2*B*D], C: i32[B + 1], out Y: f32[B, D]) for sm_90a {
    grid (b: B); role r: 1 warp { for b in grid { Y[b, d] = X[b] for d in 0 .. D; } } }"""
    fake = torch._fake(pipec.compile(text.replace("for d in 0 .. D", "for d in 0 .. 64")))
    assert fake(Shape([24]), Shape([4])).shape == (3, 4)
    assert torch._fake(pipec.compile(SOLVED))(Shape([9])).shape == (8,)
    monkeypatch.delattr(pipec, "torch")
    monkeypatch.delitem(sys.modules, "pipec.torch")


DECIDED = """kernel twice(X: T[M, D], out Y: T[M, D]) for sm_90a {
    static T = f32 in {f32, bf16}, D = 64;
    requires D % 2 == 0;
    grid (m: M);
    role r: 4 warps {
        for m in grid {
            for p in 0 .. ceil(D, 128) { Y[m, p*128 + i] = X[m, p*128 + i] for i in 0 .. 128; }
        }
    }
}"""


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_decide_extents_and_types(kind):
    twice = pipec.compile(DECIDED)
    launches = fakes.standin().launches
    for D in (64, 128, 100, 64):
        for type, code in ((np.float32, None), (np.uint16, BF16)):
            X = kind(np.zeros((7, D), type), 0, code)
            Y = kind(np.zeros((7, D), type), 0, code)
            assert twice(X, Y=Y) is Y
            launches += 1
            assert fakes.standin().launches == launches
    with refused(pipec.Unusable, "cannot run with D=65"):
        twice(kind(np.zeros((7, 65), np.float32)), Y=kind(np.zeros((7, 65), np.float32)))
    with refused(TypeError, "`X` cannot have elements of f16: it may have elements of f32, bf16"):
        twice(kind(np.zeros((7, 64), np.float16)), Y=kind(np.zeros((7, 64), np.float16)))


def test_outputs_have_the_types_that_tensors_decide():
    Y = pipec.compile(DECIDED)(WithExchange(np.zeros((7, 100), np.uint16), 0, BF16))
    assert Y.of.shape == (7, 100) and Y.code == BF16


def test_outputs_that_are_given(example):
    A, B = matrices(WithExchange)
    C = WithExchange(np.zeros((64, 80), np.uint16), 0, BF16)
    launches = fakes.standin().launches
    assert example("gemm")(A, B, C=C) is C
    assert log.allocated == 0 and fakes.standin().launches == launches + 1


def test_streams(example):
    X, Y = vectors(WithExchange)
    example("axpy")(X, Y, 1)
    assert fakes.standin().stream == log.stream and log.streams_given == [(fakes.CUDA, 0)]
    example("axpy").on(0x7000)(X, Y, 1)
    assert fakes.standin().stream == 0x7000
    stream = types.SimpleNamespace(cuda_stream=0x7100)
    example("axpy").on(stream)(X, Y, 1)
    assert fakes.standin().stream == 0x7100
    stream = types.SimpleNamespace(__cuda_stream__=lambda: (0, 0x7200))
    example("axpy").on(stream)(X, Y, 1)
    assert fakes.standin().stream == 0x7200


@pytest.mark.parametrize("kind", [WithCapsule, WithOldCapsule])
def test_producers_learn_the_stream(example, kind):
    """1 is the legacy default stream; the kernel runs on the stream that was passed"""
    X, Y = vectors(kind)
    example("axpy")(X, Y, 1)
    assert log.streams_given == [1, 1] and not fakes.standin().stream
    example("axpy").on(0x7000)(X, Y, 1)
    assert log.streams_given[2:] == [0x7000, 0x7000] and fakes.standin().stream == 0x7000
    assert {fakes.capsule_name(c).split("_")[0] for c in log.capsules} == {"used"}
    assert log.released == 4


def test_host_tensors_of_dlpack(example):
    """They run on the emulator, and there is no stream."""
    for kind in KINDS:
        X, Y = (kind(x.of, None) for x in vectors(kind, 10))
        example("axpy")(X, Y, 2)
        assert np.array_equal(Y.of, 2 * X.of + 1)
    assert set(log.streams_given) == {None}
    A, B = (WithExchange(x.of, None, BF16) for x in matrices(WithExchange))
    assert example("gemm")(A, B).device == (fakes.CPU, 0)


def test_launch_options(example):
    A, B = matrices(WithExchange, M=4096, N=4096)
    gemm = example("gemm")
    gemm(A, B)
    assert fakes.standin().grid == 4  # multiprocessors of the stand-in
    gemm.on(multiprocessors=2)(A, B)
    assert fakes.standin().grid == 2
    assert not fakes.standin().programmatic
    gemm.on(programmatic=True)(A, B)
    assert fakes.standin().programmatic
    gemm.on(0x7300, multiprocessors=3).using(BN=128)(A, B)
    assert fakes.standin().grid == 3 and fakes.standin().stream == 0x7300
    with refused(ValueError, "P0"):
        X, Y = vectors(WithExchange)
        example("axpy").on(multiprocessors=1)(X, Y, 1)  # its grid is not persistent


def test_no_elements(example):
    X, Y = vectors(WithExchange, 0)
    example("axpy")(X, Y, 1)
    A, B = matrices(WithExchange, M=0)
    assert example("gemm")(A, B).of.shape == (0, 80)


def test_prepare():
    text = "kernel f(inout X: f32[N]) for sm_90a { grid (t: ceil(N, 128)); " \
        "role r: 4 warps { for t in grid { X[t*128 + i] = X[t*128 + i] + 1 for i in 0 .. 128; } } }"
    modules = fakes.standin().modules
    kernel = pipec.compile(text)
    facts = kernel.prepare(device=0)
    assert facts["device"] == "Stand-in" and facts["loaded_by"]
    assert fakes.standin().modules == modules + 1
    kernel.prepare()
    assert fakes.standin().modules == modules + 1
    other = kernel.on(0x10)
    del kernel
    assert fakes.standin().modules == modules + 1
    waits = fakes.standin().waits
    del other  # a wait for the device would end captures of streams
    assert fakes.standin().modules == modules and fakes.standin().waits == waits
    with refused(ValueError, "device|ordinal"):
        pipec.compile(text).prepare(device=7)
    with refused(ValueError, "there is no device -1"):
        pipec.compile(text).prepare(device=-1)


def test_cycles_of_load_and_launch():
    """Nothing stays behind."""
    before = fakes.standin().modules, fakes.standin().allocations
    text = (fakes.root() / "examples" / "axpy.pipe").read_text()
    for _ in range(10):
        X, Y = vectors(WithExchange)
        pipec.compile(text)(X, Y, 1)
    assert (fakes.standin().modules, fakes.standin().allocations) == before


def test_image(tmp_path, example):
    """What `pipec build` writes, without the source"""
    pipe = fakes.root() / "examples" / "axpy.pipe"
    command = os.environ["PIPEC_BUILD"] + "/pipec"
    if not os.path.exists(command):
        pytest.skip("the command is not built")
    subprocess.run([command, "build", str(pipe)], cwd=tmp_path, check=True, capture_output=True)
    axpy = pipec.load_image(tmp_path / "axpy.json", tmp_path / "axpy.ptx")
    assert axpy.signature == example("axpy").signature and ".entry axpy" in axpy.ptx
    X, Y = vectors(WithExchange)
    with fakes.executing(fakes.axpy):
        axpy(X, Y, 2)
    assert np.array_equal(Y.of, 2 * X.of + 1)
    axpy(X.of, Y.of, 3)
    assert np.array_equal(Y.of, 5 * X.of + 1)
    for call in (axpy.report, axpy.using, lambda: axpy.tuned(X, Y, 2), lambda: pickle.dumps(axpy)):
        with refused(ValueError, "source"):
            call()
    (tmp_path / "axpy.ptx").write_text("nothing")
    with pytest.raises(pipec.Error):
        pipec.load_image(tmp_path / "axpy.json", tmp_path / "axpy.ptx")


def test_saved_choices(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = pipec.compile(DOUBLE.replace("grid (t", "static T = 128 in {128, 256}; grid (t"))
    X = WithExchange(np.ones(1000, np.float32))
    assert kernel.tuned(X) is kernel
    with fakes.executing(lambda parameters: None):
        try:
            kernel.tune(X)
        except pipec.Refused as error:  # the stand-in computes nothing
            assert "P0" in str(error)


SAME = """kernel same(inout Y: f32[N]) for sm_90a {
    ensures Y[i] == old Y[i];
    variant tiles { static T = 256 in {128, 256}; grid (t: ceil(N, T));
        role r: 4 warps { for t in grid { Y[t*T + i] = Y[t*T + i] for i in 0 .. T; } } }
    variant rows { requires N <= 500; grid (t: ceil(N, 64));
        role r: 2 warps { for t in grid { Y[t*64 + i] = Y[t*64 + i] for i in 0 .. 64; } } }
}"""


def test_tune_takes_variants(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPEC_CACHE", str(tmp_path))
    kernel, Y = pipec.compile(SAME), WithExchange(np.ones(400, np.float32))
    tuning = kernel.tune(Y, rounds=2)
    assert {t.variant for t in tuning.trials} == {"tiles", "rows"} and len(tuning.trials) == 3
    assert tuning.trials[0].end == "measured" and tuning.variant == tuning.trials[0].variant
    assert tuning.kernel.statics == tuning.best and " us" in repr(tuning)
    saved = pipec.compile(SAME)
    assert saved.choose(Y).tuned and saved.choose(Y).variant == tuning.variant
    assert saved.tuned(Y).statics == tuning.best
    longer = WithExchange(np.ones(420, np.float32))
    assert not saved.choose(longer).tuned and saved.tuned(longer) is saved
    one = kernel.tune(longer, candidates=1, near=True)
    assert [t.end for t in one.trials].count("left") == 2 and "2 not measured" in repr(one)
    assert pipec.compile(SAME).choose(WithExchange(np.ones(440, np.float32))).tuned
    assert len(kernel.tune(WithExchange(np.ones(4000, np.float32)), candidates=None).trials) == 3
    with refused(ValueError, "candidates is 0"):
        kernel.tune(Y, candidates=0)


BY_DATA = """kernel put(X: f32[N], To: i32[N], inout Y: f32[N]) for sm_90a {
    static BY = 0 in {0, 1}, T = 128 in {128, 256};
    grid (t: ceil(N, T));
    role r: 4 warps { shared x: f32[T]; for t in grid {
        x[i] = X[t*T + i];
        if BY == 1 { Y[To[t*T + i]] = x[i] where t*T + i < N; } else { Y[t*T + i] = x[i]; } } }
}"""


def test_tune_names_what_is_not_proved(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPEC_CACHE", str(tmp_path))
    X, To = WithExchange(np.ones(400, np.float32)), WithExchange(np.arange(400, dtype=np.int32))
    Y = WithExchange(np.ones(400, np.float32))
    tuning = pipec.compile(BY_DATA).tune(X, To, Y, rounds=1, progress=False)
    unproved = [t for t in tuning.trials if t.end == "unproved"]
    assert [t.statics["BY"] for t in unproved] == [1, 1] and len(tuning.trials) == 4
    assert all(t.remark.startswith("P0237: ") for t in unproved)
    assert "2 not measured: they do not fit or are not proved" in repr(tuning)
    with pytest.raises(pipec.Incomplete):
        pipec.compile(BY_DATA, BY=1)
    with pytest.warns(pipec.CompileWarning, match="P0237"):
        accepted = pipec.compile(BY_DATA, BY=1, accept=["P0237"]).tune(X, To, Y, rounds=1)
    assert [t.end for t in accepted.trials] == ["measured"] * 2


def test_tune_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PIPEC_CACHE", str(tmp_path))
    kernel, Y, steps = pipec.compile(SAME), WithExchange(np.ones(400, np.float32)), []
    whole = kernel.tune(Y, rounds=3, progress=lambda *step: steps.append(step))
    assert steps[0] == ("checking", 0, len(whole.trials)) and steps[-1] == ("measuring", 2, 3)
    begun = kernel.tune(Y, rounds=3, seconds=1e-9, progress=False)  # the first one is measured
    assert sorted(t.end for t in begun.trials) == ["left", "left", "measured"]
    assert "tuning ended before" in [t.remark for t in begun.trials]

    def stop(what, done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel.tune(Y, progress=stop)
    with refused(ValueError, "seconds is -1"):
        kernel.tune(Y, seconds=-1)
    from pipec import _progress

    monkeypatch.setattr(_progress, "_is_terminal", lambda: True)
    kernel.tune(Y, rounds=3)
    text = capsys.readouterr().err
    assert "same: measuring, 2 of 3" in text and text.endswith("\r\x1b[K")


# ---- what is refused -----------------------------------------------------------------------------


class Shaped(WithExchange):
    shape = property(lambda self: self.of.shape)


def test_bench(example):
    """Rates follow from the time, the limit from the clocks of the stand-in"""
    gemm = example("gemm")
    A, B = matrices(Shaped, 256, 512, 64)
    C = Shaped(np.zeros((256, 512), np.uint16), 0, BF16)
    moved, flops = 2 * (256 * 64 + 512 * 64 + 256 * 512), 2 * 256 * 512 * 64
    launches, calls = fakes.standin().launches, []
    result = pipec.bench(gemm, A, B, C=C, seconds=0.05, flops=flops,
                         beside={"other": lambda: calls.append(1)})
    ours, other = result
    assert (ours.name, other.name) == ("gemm", "other") and len(calls) > 9
    assert fakes.standin().launches > launches + 9
    assert ours.bytes_per_second == pytest.approx(moved / ours.seconds)
    assert ours.flops_per_second == pytest.approx(flops / ours.seconds)
    memory, arithmetic = moved / 3352.32e9, flops / (4 * 4096 * 1.98e9)
    assert ours.limit == ("memory" if memory > arithmetic else "arithmetic")
    assert ours.share == pytest.approx(max(memory, arithmetic) / ours.seconds)
    assert ours.is_host_bound and ours.spread >= 0 and other.seconds < ours.seconds
    text = repr(result)
    assert "GB/s" in text and "TFLOP/s" in text and f"% of the {ours.limit}" in text
    X, Y = vectors(Shaped)  # `inout` is read and written
    row = pipec.bench(example("axpy"), X, Y, 1, seconds=0.02, beside=dict)[0]
    assert row.bytes_per_second == pytest.approx(12000 / row.seconds)
    assert row.flops_per_second is None and row.limit == "memory"
    with refused(ValueError, "measures calls on a GPU", "pass tensors of a GPU"):
        pipec.bench(gemm, np.zeros((8, 8), np.uint16), np.zeros((8, 8), np.uint16))


def test_devices_do_not_mix(example):
    X, Y = vectors(WithExchange)
    axpy = example("axpy")
    with refused(ValueError, "`Y` is on the host, but `X` is on GPU 0"):
        axpy(X, Y.of, 1)
    with refused(ValueError, "`Y` is on GPU 1, but `X` is on GPU 0"):
        axpy(X, WithExchange(Y.of, 1), 1)
    with refused(ValueError, "device|ordinal"):
        axpy(*vectors(WithExchange, device=5), 1)
    with refused(ValueError, "there is no device 100"):
        axpy(*vectors(WithExchange, device=100), 1)
    X.device = (10, 0)
    with refused(ValueError, "neither on the host nor on a CUDA device", "10"):
        axpy(X, Y, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_types(example, kind):
    X, Y = vectors(kind)
    with refused(TypeError, "`X` must have elements of f32", "float64"):
        example("axpy")(kind(X.of.astype(np.float64)), Y, 1)
    with refused(TypeError, "`A` must have elements of bf16", "float16"):
        example("gemm")(kind(np.zeros((64, 64), np.float16)), kind(np.zeros((64, 64), np.float16)))
    with refused(TypeError, "complex64|complex"):
        example("axpy")(kind(X.of.astype(np.complex64)), Y, 1)


def test_fp8_and_bits(example):
    gemm = example("gemm_fp8")
    A, B = (WithExchange(np.zeros((64, 64), np.uint8), 0, code) for code in (10, 10))
    others = [WithExchange(np.ones([1] * len(p.extents), np.float32)) if p.is_tensor else 1.0
              for p in gemm.parameters[2:] if p.mode != "out"]
    assert gemm(A, B, *others).code == BF16
    A.code = 1  # uint8: the bits
    gemm(A, B, *others)
    A.code = 12
    with refused(TypeError, "e4m3", "float8_e5m2"):
        gemm(A, B, *others)
    A.code = 99
    with refused(TypeError, "e4m3", "DLPack's code 99"):
        gemm(A, B, *others)


def test_no_memory(example):
    X, Y = vectors(WithExchange)
    X.data = 0
    with refused(ValueError, "`X` has no memory"):
        example("axpy")(X, Y, 1)
    log.allocation_fails = True
    with refused(RuntimeError, "OutOfMemoryError: device 0 is full"):
        example("gemm")(*matrices(WithExchange))


def test_strides(example):
    X, Y = vectors(WithExchange)
    with refused(ValueError, "`X` must be contiguous along its last axis", r"x.contiguous\(\)"):
        example("axpy")(WithExchange(np.zeros(2000, np.float32)[::2]), Y, 1)


def test_shared_memory(example):
    A, B = matrices(WithExchange, 64, 64, 64)
    X, Y = vectors(WithExchange)
    with refused(ValueError, "`C` is written, but shares memory with `A`", "inout"):
        example("gemm")(A, B, C=A)
    with refused(ValueError, "`Y` is written, but shares memory with `X`"):
        example("axpy")(X, WithExchange(X.of), 1)
    whole = np.zeros(1500, np.float32)
    with refused(ValueError, "`Y` is written, but shares memory with `X`"):
        example("axpy")(WithExchange(whole[:1000]), WithExchange(whole[500:]), 1)
    example("axpy")(WithExchange(whole[:500]), WithExchange(whole[500:1000]), 1)
    both = np.zeros((64, 192), np.uint16)  # columns of one matrix
    A, C = (WithExchange(both[:, i:i + 64], 0, BF16) for i in (0, 64))
    example("gemm")(A, B, C=C)
    with refused(ValueError, "`C` is written, but shares memory with `A`"):
        example("gemm")(A, B, C=A)
    example("gemm")(B, B)  # what is only read may be shared


def test_rows_with_gaps(example):
    """The maps of the copy engine have the strides; an odd stride is refused"""
    A, B = matrices(WithExchange)
    wide = WithExchange(np.zeros((64, 100), np.uint16)[:, :72], 0, BF16)
    with refused(ValueError, "P0621", "`A`", "100|200"):
        example("gemm")(wide, B)
    wide = WithExchange(np.zeros((64, 104), np.uint16)[:, :72], 0, BF16)
    C = example("gemm")(wide, B, C=WithExchange(np.zeros((64, 160), np.uint16)[:, :80], 0, BF16))
    assert fakes.standin().map.strides[0] == 320 and fakes.standin().map.address == C.address


def test_read_only(example):
    X, Y = vectors(WithCapsule)
    Y.flags = 1
    example("axpy")(Y, X, 1)
    with refused(ValueError, "`Y` is written, but the array is read-only"):
        example("axpy")(X, Y, 1)


def test_versions(example):
    X, Y = vectors(WithCapsule)
    X.major = 2
    with refused(BufferError, "version 2 of DLPack"):
        example("axpy")(X, Y, 1)


def test_errors_of_the_producer(example):
    class Failing(WithCapsule):
        def __dlpack__(self, **named):
            raise BufferError("is on fire")

    class Strange(WithCapsule):
        def __dlpack__(self, **named):
            return 5

    X, Y = vectors(WithCapsule)
    with refused(BufferError, "is on fire"):
        example("axpy")(Failing(X.of), Y, 1)
    with refused(BufferError, "no capsule"):
        example("axpy")(Strange(X.of), Y, 1)


def test_many_types(example):
    """More types than the extension remembers"""
    for i in range(20):
        X, Y = vectors(type(f"Kind{i}", (WithExchange,), {}))
        with fakes.executing(fakes.axpy):
            example("axpy")(X, Y, 1)
        assert np.array_equal(Y.of, X.of + 1)


# ---- PyTorch and JAX, by their names -------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    """A module with the parts of PyTorch that the package asks for"""
    module = types.ModuleType("torch")

    class Tensor(WithExchange):
        def is_neg(self):
            return self.negative

        @property
        def requires_grad(self):
            return self.gradient

    class Parameter(Tensor):
        pass

    class FakeTensor(Tensor):
        pass

    Tensor.__module__ = Parameter.__module__ = "torch"
    FakeTensor.__module__ = "torch._subclasses.fake_tensor"
    FakeTensor.__qualname__ = "FakeTensor"
    module.Tensor, module.FakeTensor = Tensor, FakeTensor
    module.nn = types.SimpleNamespace(Parameter=Parameter)
    module.grad_mode = True
    module.is_grad_enabled = lambda: module.grad_mode
    sys.modules["torch"] = module
    yield module
    del sys.modules["torch"]


def test_gradients(example, torch):
    X, Y = vectors(torch.Tensor)
    example("axpy")(X, Y, 1)
    X.gradient = True
    with refused(ValueError, "`X` requires a gradient", "detach", "pipec.torch.operator"):
        example("axpy")(X, Y, 1)
    torch.grad_mode = False
    example("axpy")(X, Y, 1)
    torch.grad_mode = True
    X, Y = vectors(torch.nn.Parameter)
    example("axpy")(X, Y, 1)


def test_negative_bit(example, torch):
    X, Y = vectors(torch.Tensor)
    X.negative = True
    with refused(ValueError, "`X` has the negative bit set", "resolve_neg"):
        example("axpy")(X, Y, 1)


def test_subclasses(example, torch):
    X, Y = vectors(torch.FakeTensor)
    for _ in range(2):
        with refused(TypeError, "`X` is a torch._subclasses.fake_tensor.FakeTensor, a subclass"):
            example("axpy")(X, Y, 1)


@pytest.fixture
def jax(monkeypatch):
    """A module with the parts of JAX that the package asks for"""
    module, numpy = types.ModuleType("jax"), types.ModuleType("jax.numpy")

    class ArrayImpl(WithCapsule):
        pass

    ArrayImpl.__module__ = "jaxlib._jax"
    module.ArrayImpl, module.numpy = ArrayImpl, numpy
    numpy.dtype = np.dtype
    numpy.empty = lambda shape, dtype: ArrayImpl(np.zeros(shape, dtype))
    for name, it in (("jax", module), ("jax.numpy", numpy), ("jaxlib", types.ModuleType("jaxlib"))):
        monkeypatch.setitem(sys.modules, name, it)
    return module


def test_arrays_that_are_no_buffers(jax):
    """JAX's arrays of a GPU have a buffer protocol that fails (here for a type that it lacks), and
    views of them fail alike"""
    class ArrayImpl(np.ndarray):
        dtype = types.SimpleNamespace(name="bfloat16")
        kind, where = WithCapsule, 0

        def view(self, _):
            return self

        def __dlpack_device__(self):
            return (fakes.CUDA, 0) if self.where is not None else (fakes.CPU, 0)

        def __dlpack__(self, **named):
            self.named = named
            return self.exported.__dlpack__(**named)

    ArrayImpl.__module__ = "jaxlib._jax"
    jax.numpy.empty = lambda shape, dtype: jax.ArrayImpl(np.zeros(shape, np.uint16), 0, BF16)
    X = np.zeros(10, "datetime64[s]").view(ArrayImpl)
    X.exported = WithCapsule(np.zeros(10, np.uint16), 0, BF16)
    with pytest.raises(ValueError):
        memoryview(X)
    double = pipec.compile(DOUBLE.replace("f32", "bf16").replace("2 * X", "X"))
    assert double(X).of.shape == (10,)
    assert X.named["stream"] == 1


def test_tracers(example, jax):
    """Abstract values: with the methods of arrays, but without elements"""
    def nothing(self, *args, **named):
        raise RuntimeError("ConcretizationTypeError")

    Tracer = type("Tracer", (), {"__module__": "jax._src.core", "__dlpack__": nothing,
                                 "__dlpack_device__": nothing, "__array__": nothing})
    kind = type("DynamicJaxprTracer", (Tracer,),
                {"__module__": "jax._src.interpreters.partial_eval"})
    Y = jax.ArrayImpl(np.zeros(10, np.float32))
    for tracer in Tracer(), kind():
        with refused(TypeError, "axpy: `X` is a tracer of JAX", "outside of jax.jit"):
            example("axpy")(tracer, Y, 1)
    with refused(TypeError, "outside of jax.jit"):
        example("axpy")(Y, Y, kind())


def test_jax(example, jax):
    double = pipec.compile(DOUBLE)
    X, waits = jax.ArrayImpl(np.ones(10, np.float32)), fakes.standin().waits
    Y = double(X)
    assert fakes.standin().waits == waits + 1
    assert isinstance(Y, jax.ArrayImpl) and Y.of.shape == (10,)
    with refused(ValueError, "`Y` is written, but arrays of JAX do not change", "returns"):
        double(X, Y=Y)
    with refused(ValueError, "`Y` is written, but arrays of JAX do not change", "`out`"):
        example("axpy")(X, Y, 1)
