"""Calls that are repeated: plans of pipec.kernels in threads, on streams, in modes, in compiled code;
and the optimizer that launches all its steps by one call."""

import copy
import threading

import pytest
import torch
import torch.nn.functional as F

import pipec
import pipec.kernels as k
from pipec import _plans

BF16, F32 = torch.bfloat16, torch.float32


def randn(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def near(x, wanted, bound=1.6e-2):
    error = (x.double() - wanted.double()).abs() / (1 + wanted.double().abs())
    assert x.shape == wanted.shape and error.isfinite().all()
    assert x.numel() == 0 or error.max() <= bound, error.max()


@pytest.fixture
def plans():
    _plans._plans.clear()
    return _plans._plans


# ---- AdamW over many tensors -----------------------------------------------------------------------


def weights(count, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    shapes = [(131, 257), (7,), (64, 64), (1,), (0, 4), (2049,)]
    return [torch.randn(shapes[i % len(shapes)], device="cuda", generator=generator)
            for i in range(count)]


def test_adamw_as_torch(plans):
    """Two groups of many weights, of which some have no gradient at times, or one with gaps"""
    ours = [p.requires_grad_() for p in weights(60, 1)]
    theirs = [p.detach().double().requires_grad_() for p in ours]
    groups = [{"lr": 0.01, "weight_decay": 0.1}, {"lr": 0.003, "betas": (0.7, 0.95)}]
    made = [cls([{"params": of[:40], **groups[0]}, {"params": of[40:], **groups[1]}])
            for cls, of in ((k.AdamW, ours), (torch.optim.AdamW, theirs))]
    for step in range(6):
        for i, (p, q) in enumerate(zip(ours, theirs)):
            grad = torch.randn_like(p)
            if step == 3 and i == 2:
                grad = torch.randn_like(p).T
            p.grad = None if step == 1 and i % 7 == 3 else grad
            q.grad = None if p.grad is None else grad.double()
        versions = [p._version for p in ours]
        for optimizer in made:
            optimizer.step()
        assert all((p._version > v) == (p.grad is not None) for p, v in zip(ours, versions))
    for p, q in zip(ours, theirs):
        near(p.detach(), q.detach(), 1e-5)
        for name in ("exp_avg", "exp_avg_sq"):
            near(made[0].state[p][name], made[1].state[q][name], 1e-5)


def test_adamw_keeps_what_it_found(plans):
    """One plan for a set of tensors, whatever the step, the rate and the place of gradients"""
    ours = [p.requires_grad_() for p in weights(200, 2)]
    optimizer = k.AdamW(ours)
    for step in range(5):
        for p in ours:
            p.grad = torch.randn_like(p)
        optimizer.param_groups[0]["lr"] = 0.01 / (1 + step)
        optimizer.step()
        if step == 0:
            known = len(plans)
    assert len(plans) == known and len(optimizer._known[0].plans_by_key) == 1
    before = [p.detach().clone() for p in ours]
    again = copy.deepcopy(optimizer)
    again.step()
    assert all(torch.equal(p, b) for p, b in zip(ours, before))  # the copy has weights of its own
    with torch.no_grad():
        ours[0].data = ours[0].data.clone()  # at another place
    optimizer.step()
    assert not torch.equal(ours[0], before[0])


def test_adamw_of_changing_sets():
    """Plans are kept for few sets of weights; none is made for one that does not come again"""
    ours = [p.requires_grad_() for p in weights(60, 4)]
    theirs = [p.detach().double().requires_grad_() for p in ours]
    made = k.AdamW(ours), torch.optim.AdamW(theirs)
    for step in range(30):
        for i, (p, q) in enumerate(zip(ours, theirs)):
            p.grad = torch.randn_like(p) if step < 3 or (i * 7 + step) % 5 else None
            q.grad = None if p.grad is None else p.grad.double()
        for optimizer in made:
            optimizer.step()
        assert len(made[0]._known[0].plans_by_key) <= 8
    for p, q in zip(ours, theirs):
        near(p.detach(), q.detach(), 1e-5)


def test_adamw_of_moments_that_were_replaced():
    ours = [p.requires_grad_() for p in weights(12, 3)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    for p, q in zip(ours, theirs):
        p.grad = torch.randn_like(p)
        q.grad = p.grad.clone()
    made = k.AdamW(ours), torch.optim.AdamW(theirs)
    for step in range(3):
        for optimizer in made:
            optimizer.step()
        state = made[0].state[ours[0]]
        state["exp_avg"] = state["exp_avg"].cpu().cuda()
    for p, q in zip(ours, theirs):
        near(p.detach(), q.detach(), 1e-5)


# ---- plans ----------------------------------------------------------------------------------------


def test_threads_and_streams(plans):
    """Eight threads on four streams, each with shapes of its own and shared ones"""
    streams = [torch.cuda.Stream() for _ in range(4)]
    weight, errors = randn(256, 512) / 512**0.5, []
    torch.cuda.synchronize()

    def work(number):
        try:
            with torch.cuda.stream(streams[number % 4]), torch.no_grad():
                for i in range(100):
                    x = randn(16 * (1 + (i + number) % 5), 512)
                    near(k.linear(x, weight), x.double() @ weight.double().T)
                    near(k.softmax(x), x.double().softmax(-1))
                    near(k.rms_norm(x, 512, eps=1e-6), F.rms_norm(x.double(), (512,), eps=1e-6))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert plans and all(plans.values())


def test_threads_with_gradients():
    weights_, errors = [randn(64, 64).requires_grad_() for _ in range(8)], []

    def work(number):
        try:
            weight = weights_[number]
            for rows in list(range(1, 40)) * 2:
                x = randn(rows, 64)
                (got,) = torch.autograd.grad(k.linear(x, weight).float().sum(), weight)
                near(got, torch.ones(64, rows, device="cuda").double() @ x.double(), 5e-2)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_modes_that_change():
    """The same plan in and outside of inference mode, with and without gradients"""
    x, weight = randn(40, 64), randn(48, 64).requires_grad_()
    exact = x.double() @ weight.detach().double().T
    for _ in range(3):
        with torch.inference_mode():
            y = k.linear(x, weight)
            assert y.is_inference() and not y.requires_grad
            near(y, exact)
        with torch.no_grad():
            y = k.linear(x, weight)
            assert not y.is_inference() and not y.requires_grad
            near(y, exact)
        y = k.linear(x, weight)
        assert y.requires_grad and not y.is_inference()
        (got,) = torch.autograd.grad(y.float().sum(), weight)
        near(got, torch.ones(48, 40, device="cuda").double() @ x.double(), 5e-2)
    with torch.inference_mode():
        inside = randn(40, 64)
    with torch.no_grad():
        near(k.linear(inside, weight), inside.double() @ weight.detach().double().T)


def test_autocast_has_plans(plans):
    x, weight = randn(40, 64, dtype=F32), randn(48, 64, dtype=F32)
    for _ in range(3):
        with torch.autocast("cuda", BF16):
            y = k.linear(x, weight)
            assert y.dtype == BF16
            near(y, x.to(BF16).double() @ weight.to(BF16).double().T)
        with pytest.raises(TypeError, match="not float32"):
            k.linear(x, weight)
    assert len([plan for plan in plans.values() if plan]) == 1


def test_new_tensors_are_of_the_allocator(plans):
    x = randn(512, 512)
    k.softmax(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    y = k.softmax(x)
    assert torch.cuda.memory_allocated() - before == 512 * 512 * 2
    side = torch.cuda.Stream()
    y.record_stream(side)
    y.untyped_storage().resize_(2 * y.untyped_storage().nbytes())
    del y
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def test_freed_memory_is_refused():
    x = randn(8, 64)
    k.softmax(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="has no memory"):
        k.softmax(x)


def test_wrong_calls_after_right_ones():
    """What the first call refuses, a call with other facts refuses too"""
    x, out = randn(8, 64), torch.empty(8, 64, device="cuda", dtype=BF16)
    for _ in range(2):
        assert k.softmax(x, out=out) is out
        with pytest.raises((ValueError, pipec.Unusable)):
            k.softmax(x, out=x)
        with pytest.raises(ValueError, match="shape"):
            k.softmax(x, out=out[:4])
        with pytest.raises(TypeError):
            k.softmax(x.double())
        with pytest.raises(ValueError, match="adjacent"):
            k.softmax(x.T)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_other_device_than_the_current_one(plans):
    x = torch.randn(64, 64, device="cuda:1", dtype=BF16)
    for device in (0, 1, 0):
        with torch.cuda.device(device):
            y = k.softmax(x)
            assert y.device == x.device
            torch.cuda.synchronize(1)
            near(y, x.double().softmax(-1))


def test_early_starts_on_two_streams():
    """One kernel, each launch of which starts before the one ahead of it in its stream has ended, on
    two streams at once"""
    twice = pipec.compile("""kernel twice(X: f32[N], out Y: f32[N]) for sm_90a {
        grid (t: ceil(N, 1024));
        role r: 4 warps { for t in grid { Y[t*1024 + i] = 2 * X[t*1024 + i] for i in 0 .. 1024; } }
    }""").on(programmatic=True)
    streams = [torch.cuda.Stream() for _ in range(2)]
    x = [randn(1 << 20, dtype=F32) for _ in range(2)]
    made = [[torch.empty_like(x[0]) for _ in range(9)] for _ in range(2)]
    torch.cuda.synchronize()
    for _ in range(20):
        for step in range(9):
            for n, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    twice(x[n] if step == 0 else made[n][step - 1], Y=made[n][step])
    torch.cuda.synchronize()
    for n in range(2):
        assert torch.equal(made[n][8], 512 * x[n])


def test_short_kernels_in_turn_on_two_streams(plans):
    """Plans of short kernels start early; each reads what the one before has written"""
    streams = [torch.cuda.Stream() for _ in range(2)]
    weight = torch.eye(256, device="cuda", dtype=BF16)
    x = [randn(64, 256) for _ in streams]
    torch.cuda.synchronize()
    for n, stream in enumerate(streams):
        with torch.cuda.stream(stream), torch.no_grad():
            y = x[n]
            for _ in range(200):
                y = k.linear(y, weight)
            x.append(y)
    torch.cuda.synchronize()
    assert torch.equal(x[0], x[2]) and torch.equal(x[1], x[3])


# ---- compiled code --------------------------------------------------------------------------------


def test_compiled_code_calls_plans():
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    x, weight, scale = randn(40, 64), randn(64, 64), randn(64)

    def model(x):
        return k.rms_norm(k.linear(x, weight), 64, scale, 1e-6, residual=x)[0]

    with torch.no_grad(), torch._inductor.config.patch(fx_graph_cache=False):
        got, code = run_and_get_code(torch.compile(model, fullgraph=True), x)
    near(got, model(x))
    assert "pipec_calls.linear(" in code[0] and "pipec_calls.rms_norm_residual(" in code[0]
    assert "torch.ops.pipec.linear.default(" not in code[0]  # other lines name the operator
    assert "torch.ops.pipec.rms_norm_residual.default(" not in code[0]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_training(dynamic):
    torch._dynamo.reset()
    weight = (randn(64, 64) / 8).requires_grad_()

    def model(x):
        return k.softmax(k.linear(k.rms_norm(x, 64, eps=1e-6), weight)).float().square().sum()

    run = torch.compile(model, fullgraph=True, dynamic=dynamic)
    for rows in (40, 40, 72, 9):
        x = randn(rows, 64)
        (got,), (wanted,) = (torch.autograd.grad(f(x), weight) for f in (run, model))
        assert (got - wanted).float().norm() <= 2e-2 * wanted.float().norm()
