"""Operators: torch.compile, CUDA graphs, fake tensors and autograd."""

import pathlib
import threading

import pytest
import torch

import pipec
import pipec.torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
D = 1024


@pytest.fixture(scope="session")
def rmsnorm():
    return pipec.torch.operator("tests::rmsnorm", pipec.load(EXAMPLES / "rmsnorm.pipe"))


@pytest.fixture(scope="session")
def linear():
    """C = A B^T with gradients, by the same kernel and its siblings"""
    nt = pipec.load(EXAMPLES / "gemm.pipe")
    nn = pipec.torch.operator("tests::nn", pipec.load(EXAMPLES / "gemm_nn.pipe"))
    tn = pipec.torch.operator("tests::tn", pipec.load(EXAMPLES / "gemm_tn.pipe"))

    def backward(ctx, grad):
        A, B = ctx.saved_tensors
        grad = grad.contiguous()
        return nn(grad, B), tn(grad, A)

    return pipec.torch.operator("tests::linear", nt, backward=backward)


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def model(rmsnorm, linear):
    def run(x, w, weight):
        return torch.relu(linear(rmsnorm(x, w, 1e-6), weight)) + 1

    return run


def reference(x, w, weight):
    x = x.float()
    x = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w.float()
    return torch.relu(x @ weight.float().T) + 1


def near(x, y):
    torch.testing.assert_close(x.float(), y.float(), rtol=3e-2, atol=0.5)


def test_eager(rmsnorm, linear):
    x, w, weight = randn(300, D), randn(D), randn(512, D)
    near(model(rmsnorm, linear)(x, w, weight), reference(x, w, weight))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compile(rmsnorm, linear, mode):
    """Without graph breaks; with CUDA graphs in the second mode"""
    torch._dynamo.reset()
    run = torch.compile(model(rmsnorm, linear), fullgraph=True, mode=mode)
    for M in (300, 300, 300):
        x, w, weight = randn(M, D), randn(D), randn(512, D)
        with torch.no_grad():
            near(run(x, w, weight), reference(x, w, weight))
    explained = torch._dynamo.explain(model(rmsnorm, linear))(x, w, weight)
    assert explained.graph_break_count == 0


def test_tensors_decide_statics(rmsnorm):
    """The length of rows is a static of the text: each one is compiled when it comes first"""
    torch._dynamo.reset()
    run = torch.compile(lambda x, w: rmsnorm(x, w, 1e-6) + 1, fullgraph=True)
    for length in (D, 256, 2048, 256):
        x, w = randn(100, length), randn(length)
        with torch.no_grad():
            y = run(x, w)
        x, w = x.float(), w.float()
        near(y, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w + 1)


def test_dynamic_shapes(rmsnorm, linear):
    torch._dynamo.reset()
    run = torch.compile(model(rmsnorm, linear), fullgraph=True, dynamic=True)
    w, weight = randn(D), randn(512, D)
    for M in (64, 200, 333):
        x = randn(M, D)
        near(run(x, w, weight), reference(x, w, weight))


def test_graph_of_a_model(rmsnorm, linear):
    x, w, weight = randn(300, D), randn(D), randn(512, D)
    run = model(rmsnorm, linear)
    run(x, w, weight)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run(x, w, weight)
    x.normal_()
    graph.replay()
    torch.cuda.synchronize()
    near(y, reference(x, w, weight))


def test_opcheck(rmsnorm, linear):
    torch.library.opcheck(rmsnorm, (randn(40, D), randn(D), 1e-6))
    torch.library.opcheck(linear, (randn(40, 64), randn(48, 64)),
                          test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("compiled", [False, True])
def test_autograd(linear, compiled):
    if compiled:
        torch._dynamo.reset()
        linear = torch.compile(linear, fullgraph=True)
    A, B = randn(64, 128).requires_grad_(), randn(96, 128).requires_grad_()
    linear(A, B).backward(torch.ones(64, 96, device="cuda", dtype=torch.bfloat16))
    got = A.grad.clone(), B.grad.clone()
    A.grad = B.grad = None
    (A @ B.T).backward(torch.ones(64, 96, device="cuda", dtype=torch.bfloat16))
    near(got[0], A.grad)
    near(got[1], B.grad)


def test_autograd_in_threads(linear):
    wrong = []

    def work():
        A, B = randn(64, 128).requires_grad_(), randn(96, 128)
        for _ in range(20):
            A.grad = None
            linear(A, B).sum().backward()
        if not torch.allclose(A.grad.float(), B.float().sum(0).expand(64, 128), rtol=.1, atol=1):
            wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_backward(rmsnorm):
    x = randn(8, D).requires_grad_()
    with pytest.raises(ValueError, match="`X` requires a gradient"):
        rmsnorm(x, randn(D), 1e-6)


def test_in_place():
    axpy = pipec.torch.operator("tests::axpy", pipec.load(EXAMPLES / "axpy.pipe"))
    X, Y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    expected = 2 * X + Y

    @torch.compile(fullgraph=True)
    def run(X, Y):
        axpy(X, Y, 2.0)
        return Y + 1

    torch.testing.assert_close(run(X, Y), expected + 1)
    torch.testing.assert_close(Y, expected)


def test_names(rmsnorm):
    kernel = pipec.load(EXAMPLES / "rmsnorm.pipe")
    with pytest.raises(ValueError, match="exists already"):
        pipec.torch.operator("tests::rmsnorm", kernel)
    with pytest.raises(ValueError, match='like "my::gemm"'):
        pipec.torch.operator("rmsnorm", kernel)


def test_direct_calls_break_the_graph():
    """As documented: only operators are taken into a graph"""
    gemm = pipec.load(EXAMPLES / "gemm.pipe")
    torch._dynamo.reset()
    A, B = randn(64, 64), randn(64, 64)
    near(torch.compile(lambda a, b: gemm(a, b) + 1)(A, B), A @ B.T + 1)
