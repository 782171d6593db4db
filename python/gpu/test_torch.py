"""Calls with PyTorch's tensors, on a GPU."""

import gc
import pathlib
import threading

import pytest
import torch

import pipec

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
GPU = torch.device("cuda:0")


@pytest.fixture(scope="session")
def gemm():
    return pipec.load(EXAMPLES / "gemm.pipe")


@pytest.fixture(scope="session")
def axpy():
    return pipec.load(EXAMPLES / "axpy.pipe")


@pytest.fixture(scope="session")
def rmsnorm():
    return pipec.load(EXAMPLES / "rmsnorm.pipe")


def matrices(M=500, N=520, K=264, device=GPU):
    torch.manual_seed(M)
    return (torch.randn(M, K, device=device, dtype=torch.bfloat16),
            torch.randn(N, K, device=device, dtype=torch.bfloat16))


def near(x, y):
    torch.testing.assert_close(x, y, rtol=2e-2, atol=0.2)


def refused(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(words))


def test_allocates(gemm):
    A, B = matrices()
    C = gemm(A, B)
    assert C.shape == (500, 520) and C.dtype == torch.bfloat16 and C.device == GPU
    near(C, A @ B.T)


def test_given_outputs(gemm):
    A, B = matrices()
    out = torch.empty(500, 520, device=GPU, dtype=torch.bfloat16)
    assert gemm(A, B, C=out) is out
    near(out, A @ B.T)


def test_in_place(axpy):
    X, Y = torch.randn(100003, device=GPU), torch.randn(100003, device=GPU)
    expected = 2.5 * X + Y
    assert axpy(X, Y, 2.5) is None
    torch.testing.assert_close(Y, expected)


def test_statics(gemm):
    A, B = matrices()
    near(gemm.using(BN=128, STAGES=4)(A, B), A @ B.T)


DECIDED = """
kernel scale(X: T[M, D], W: f32[D], out Y: T[M, D]) for sm_90a {
    static T = f32 in {f32, f16, bf16};
    static D = 64 in {64, 128}, WARPS = 1 in {1, 2};
    grid (m: M);
    role work: WARPS warps {
        for m in grid {
            for p in 0 .. ceil(D, 64) {
                Y[m, p*64 + j] = T(f32(X[m, p*64 + j]) * W[p*64 + j]) for j in 0 .. 64;
            }
        }
    }
}
"""


def test_tensors_decide_statics():
    scale = pipec.compile(DECIDED)
    for D in (64, 100, 1000, 64):
        for type in (torch.float32, torch.float16, torch.bfloat16):
            X = torch.randn(33, D, device=GPU, dtype=type)
            W = torch.randn(D, device=GPU)
            Y = scale(X, W)
            assert Y.dtype == type
            torch.testing.assert_close(Y, (X.float() * W).to(type))
    assert scale.choose(X, W).statics.keys() == {"WARPS"}
    with refused(TypeError, "`X` cannot have elements of float64", "f32, f16, bf16"):
        scale(X.double(), W)


def test_rows_of_other_lengths(rmsnorm):
    for D in (256, 2048, 1000):
        X = torch.randn(100, D, device=GPU, dtype=torch.bfloat16)
        W = torch.randn(D, device=GPU, dtype=torch.bfloat16)
        near(rmsnorm(X, W, 1e-6).float(), torch.nn.functional.rms_norm(
            X.float(), (D,), W.float(), 1e-6))


def test_views(gemm, axpy):
    A, B = matrices()
    whole = torch.randn(1000, 264, device=GPU, dtype=torch.bfloat16)
    near(gemm(whole[8:508], B), whole[8:508] @ B.T)
    with refused(ValueError, "`A` must be contiguous along its last axis", r"x\.contiguous\(\)"):
        gemm(A.t(), B)
    with refused(ValueError, "`X`", "2 elements"):
        axpy(torch.zeros(20, device=GPU)[::2], torch.zeros(10, device=GPU), 1)


def test_rows_with_gaps(gemm):
    """Right, or a clear exception"""
    A, B = matrices()
    wide = torch.randn(500, 400, device=GPU, dtype=torch.bfloat16)
    try:
        C = gemm(wide[:, :264], B)
    except pipec.Unusable as error:
        assert "`A`" in str(error)
    else:
        near(C, wide[:, :264] @ B.T)


def test_no_elements(gemm, axpy):
    A, B = matrices()
    assert gemm(A[:0], B).shape == (0, 520)
    empty = torch.empty(0, device=GPU)
    axpy(empty, empty.clone(), 1)
    C = gemm(A[:, :0].contiguous(), B[:, :0].contiguous())
    assert not C.any()


def test_wrong_calls(gemm, axpy):
    A, B = matrices()
    with refused(TypeError, "`A` must have elements of bf16", "float32", r"x.to\(torch.bfloat16\)"):
        gemm(A.float(), B)
    with refused(TypeError, "complex"):
        axpy(torch.zeros(4, device=GPU, dtype=torch.complex64), torch.zeros(4, device=GPU), 1)
    with refused(ValueError, "`B` is on the host, but `A` is on GPU 0"):
        gemm(A, B.cpu())
    with refused(ValueError, "K"):
        gemm(A, B[:, :64].contiguous())
    with refused(ValueError, "`A` must have 2 axes"):
        gemm(A[0], B)
    with refused(ValueError, "P0608"):
        gemm(A[:, :4].contiguous(), B[:, :4].contiguous())


def test_host_tensors_are_emulated(axpy):
    X, Y = torch.arange(100.0), torch.ones(100)
    axpy(X, Y, 2)
    assert torch.equal(Y, 2 * torch.arange(100.0) + 1)


def test_gradients(gemm):
    A, B = matrices()
    A.requires_grad_()
    with refused(ValueError, "`A` requires a gradient"):
        gemm(A, B)
    with torch.no_grad():
        gemm(A, B)
    with torch.inference_mode():
        gemm(A, B)
    gemm(A.detach(), B)
    gemm(torch.nn.Parameter(A.detach(), requires_grad=False), B)


def test_bits_and_subclasses(axpy):
    X, Y = torch.zeros(4, dtype=torch.complex64, device=GPU).conj().imag, torch.zeros(4, device=GPU)
    assert X.is_neg()
    with refused(ValueError, "negative bit"):
        axpy(X.as_strided((4,), (1,)) if X.stride() != (2,) else X, Y, 1)

    class Sub(torch.Tensor):
        pass

    with refused(TypeError, "Sub, a subclass of torch.Tensor"):
        axpy(Y.as_subclass(Sub), Y, 1)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(4, device="cuda")
    with refused(TypeError, "FakeTensor, a subclass"):
        axpy(fake, Y, 1)


def test_freed_tensors(axpy):
    X, Y = torch.zeros(100, device=GPU), torch.zeros(100, device=GPU)
    X.untyped_storage().resize_(0)
    with refused((ValueError, RuntimeError), "memory|storage"):
        axpy(X, Y, 1)


def test_fp8():
    gemm = pipec.load(EXAMPLES / "gemm_fp8.pipe")
    A, B = (torch.randn(256, 256, device=GPU).to(torch.float8_e4m3fn) for _ in range(2))
    others = [torch.ones([1] * len(p.extents), device=GPU) if p.is_tensor else 1.0
              for p in gemm.parameters[2:] if p.mode != "out"]
    near(gemm(A, B, *others).float(), A.float() @ B.float().T)
    with refused(TypeError, "e4m3", "float8_e5m2"):
        gemm(A.to(torch.float8_e5m2), B, *others)


def test_streams(gemm):
    """The current stream: a long kernel before it on the same stream is waited for"""
    A, B = matrices(4096, 4096, 4096)
    expected = A @ B.T
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        late = torch.zeros_like(A)
        torch.cuda._sleep(20_000_000)
        late.copy_(A)
        C = gemm(late, B)
    side.synchronize()
    near(C, expected)
    late.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        late.copy_(A)
    D = gemm.on(side)(late, B, C=torch.empty_like(C))
    side.synchronize()
    near(D, expected)


def test_graph(gemm, rmsnorm):
    """Captured and replayed on new data; the first load during a capture too"""
    A, B = matrices()
    fresh = pipec.load(EXAMPLES / "gemm.pipe", BN=192)
    for kernel in (gemm, fresh):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            C = kernel(A, B)
        A.normal_()
        graph.replay()
        torch.cuda.synchronize()
        near(C, A @ B.T)


def test_threads(gemm):
    wrong = []

    def work(seed):
        A, B = matrices(64 + 8 * seed, 64, 64)
        for _ in range(200):
            C = gemm(A, B)
        if not torch.allclose(C.float(), (A @ B.T).float(), rtol=2e-2, atol=0.2):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_second_device(gemm):
    A, B = matrices(device=torch.device("cuda:1"))
    C = gemm(A, B)
    assert C.device.index == 1 and torch.cuda.current_device() == 0
    near(C, A @ B.T)
    with refused(ValueError, "`B` is on GPU 0", "`A` is on GPU 1"):
        gemm(A, B.to(GPU))


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_default_stream_while_another_captures(gemm):
    """The call runs and is not captured: PyTorch's streams do not wait for the default stream"""
    A, B = matrices()
    C = gemm(A, B)
    C.zero_()
    with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="global"):
        with torch.cuda.stream(torch.cuda.default_stream()):
            gemm(A, B, C=C)
    torch.cuda.synchronize()
    near(C, A @ B.T)


def test_freed_kernels(gemm):
    """A kernel that is freed while it runs, or before it starts, and during a capture"""
    A, B = matrices(4096, 4096, 4096)
    expected = A @ B.T
    text = (EXAMPLES / "gemm.pipe").read_text()
    torch.cuda._sleep(20_000_000)
    C = pipec.compile(text)(A, B)
    near(C, expected)
    other = pipec.compile(text)
    other(A, B)
    graph = torch.cuda.CUDAGraph()
    captured = pipec.compile(text)
    empty = torch.empty(4096, 0, device=GPU, dtype=torch.bfloat16)
    with torch.cuda.graph(graph):
        D = captured(A, B)
        E = captured(empty, empty)
        del other
    del captured
    for _ in range(2):
        D.zero_(), E.fill_(1)
        graph.replay()
        near(D, expected)
        assert not E.any()


def test_cycles():
    """1,000 times load, launch and free: no growth of host or device memory"""
    import resource

    text = (EXAMPLES / "axpy.pipe").read_text()
    X, Y = torch.zeros(64, device=GPU), torch.zeros(64, device=GPU)

    def cycles(count):
        for _ in range(count):
            kernel = pipec.compile(text)
            kernel(X, Y, 1)
            torch.cuda.synchronize()
            del kernel
        gc.collect()
        return (torch.cuda.mem_get_info()[0],
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    free, used = cycles(100)
    free_after, used_after = cycles(900)
    print(f"device memory {free - free_after} B, host memory {used_after - used} KiB")
    assert free - free_after <= 4 << 20 and used_after - used < 32 << 10


def test_without_the_exchange(gemm, monkeypatch):
    """Types without DLPack's C functions, as of PyTorch before 2.10: by __dlpack__"""
    class Old:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **named):
            return self.tensor.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    A, B = matrices()
    C = torch.empty(500, 520, device=GPU, dtype=torch.bfloat16)
    torch.cuda.synchronize()
    gemm(Old(A), Old(B), C=Old(C))
    torch.cuda.synchronize()
    near(C, A @ B.T)


def test_bench():
    axpy = pipec.load(EXAMPLES / "axpy.pipe")
    X, Y = (torch.ones(1 << 27, device=GPU) for _ in range(2))
    copies, adds = pipec.bench(axpy, X, Y, 0.5, beside={"torch": lambda: Y.add_(X, alpha=0.5)})
    print(pipec.Bench((copies, adds)))
    assert copies.limit == "memory" and not copies.is_host_bound
    assert 0.6 < copies.share < 1.02 and 0.6 < adds.share < 1.02
    A, B = (torch.randn(8192, 8192, device=GPU, dtype=torch.bfloat16) for _ in range(2))
    product = pipec.load(EXAMPLES / "gemm.pipe")
    rows = pipec.bench(product, A, B, flops=2 * 8192**3, beside={"torch": lambda: A @ B.T})
    print(rows)
    assert rows[0].limit == "arithmetic" and 0.4 < rows[0].share < 1


def test_cupy(axpy):
    cupy = pytest.importorskip("cupy")
    X, Y = cupy.arange(1000, dtype="float32"), cupy.ones(1000, "float32")
    axpy(X, Y, 2)
    assert (Y == 2 * X + 1).all()
    double = pipec.compile("""kernel double(X: f32[N], out Y: f32[N]) for sm_90a {
    grid (t: ceil(N, 128));
    role r: 4 warps { for t in grid { Y[t*128 + i] = 2 * X[t*128 + i] for i in 0 .. 128; } }
}""")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert (double(X) == 2 * X).all()
    stream.synchronize()


def test_jax(axpy):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    double = pipec.compile("""kernel double(X: f32[N], out Y: f32[N]) for sm_90a {
    grid (t: ceil(N, 128));
    role r: 4 warps { for t in grid { Y[t*128 + i] = 2 * X[t*128 + i] for i in 0 .. 128; } }
}""")
    X = jax.numpy.arange(1000, dtype="float32")
    Y = double(X)
    assert isinstance(Y, jax.Array) and (Y == 2 * X).all()
    with refused(ValueError, "JAX"):
        double(X, Y=Y)
    Z = double(X)  # a result that was computed on the GPU is read again
    assert (double(Z) == 4 * X).all()
    host = jax.device_put(X, jax.devices("cpu")[0])
    assert (double(host) == 2 * jax.device_get(X)).all()  # on the emulator
    for kernel in double, axpy:
        with refused(TypeError, "tracer of JAX"):
            jax.jit(lambda x: kernel(x, *(() if kernel is double else (X, 1))))(X)
    with refused(TypeError, "tracer of JAX"):
        jax.jit(lambda a: axpy(X, X, a))(1.0)
    copied = pipec.compile("""kernel copied(X: bf16[N], out Y: bf16[N]) for sm_90a {
    grid (t: ceil(N, 128));
    role r: 4 warps { for t in grid { Y[t*128 + i] = X[t*128 + i] for i in 0 .. 128; } }
}""")
    W = X.astype("bfloat16")  # the buffer protocol has no bf16, and no memory of a GPU
    assert (copied(W) == W).all() and copied(W).dtype == W.dtype
