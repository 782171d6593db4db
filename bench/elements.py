"""Kernels of elements, heads and sums: pipec.kernels beside PyTorch, eager and compiled, on a GPU.

    python3 bench/elements.py [--only NAME].. [--rounds N] [--no-compile]

In bf16: bursts of graphs of 10 launches, in turns, over as many sets of buffers as hold three times
the L2; medians, in GB/s of the tensors that are read and written. A ratio above 1: ours is faster.
Each result is first compared with that of PyTorch in f32. AdamW also with moments of f32.
"""
import argparse
import sys

import torch
import torch.nn.functional as F

import pipec.kernels as k
from contenders import LAUNCHES, in_turns

BF16, F32 = torch.bfloat16, torch.float32


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def turned_pairs(x, cos, sin):
    cos, sin = cos[:, None], sin[:, None]
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def later(x):
    return torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)


def normalised(x, r, w):
    total = x + r
    return F.rms_norm(total, x.shape[-1:], w, 1e-6), total


def backward(run, gate, up, dy):
    """Forward and backward"""
    with torch.enable_grad():
        gate, up = gate.detach().requires_grad_(), up.detach().requires_grad_()
        return torch.autograd.grad(run(gate, up), (gate, up), dy)


ROWS, HEADS = (16384, 4096), (4, 4096, 32, 128)
# name: (ours, theirs, shapes of the arguments)
CASES = {
    "swiglu": (k.swiglu, lambda g, u: F.silu(g) * u, (ROWS, ROWS)),
    "swiglu odd": (k.swiglu, lambda g, u: F.silu(g) * u, ((16383, 4097), (16383, 4097))),
    "swiglu halves": (lambda x: k.swiglu(*x.chunk(2, -1)),
                      lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], ((16384, 8192),)),
    "geglu": (k.geglu, lambda g, u: F.gelu(g, approximate="tanh") * u, (ROWS, ROWS)),
    "swiglu with gradients": (lambda g, u, dy: backward(k.swiglu, g, u, dy),
                        lambda g, u, dy: backward(lambda a, b: F.silu(a) * b, g, u, dy),
                        (ROWS, ROWS, ROWS)),
    "rope": (k.rope, turned, (HEADS, (4096, 64), (4096, 64))),
    "rope of few heads": (k.rope, turned, ((4, 4096, 8, 128), (4096, 64), (4096, 64))),
    "rope interleaved": (lambda x, c, s: k.rope(x, c, s, interleaved=True), turned_pairs,
                         (HEADS, (4096, 64), (4096, 64))),
    "rms_norm of a sum": (lambda x, r, w: k.rms_norm(x, x.shape[-1], w, 1e-6, residual=r),
                          normalised, (ROWS, ROWS, ROWS[1:])),
    "rms_norm of a sum, 8192": (lambda x, r, w: k.rms_norm(x, x.shape[-1], w, 1e-6, residual=r),
                                normalised, ((8192, 8192), (8192, 8192), (8192,))),
    "axpy": (lambda x, y: k.axpy(2.5, x, y), lambda x, y: 2.5 * x + y, ((2**27,), (2**27,))),
    "cast": (lambda x: k.cast(x, F32), lambda x: x.float(), ((2**27,),)),
    "transpose": (k.transpose, lambda x: x.mT.contiguous(), ((16384, 8192),)),
    "transpose odd": (k.transpose, lambda x: x.mT.contiguous(), ((16383, 8191),)),
    "sum of rows": (k.sum, lambda x: x.sum(-1), ((32768, 8192),)),
    "sum of columns": (lambda x: k.sum(x, 0), lambda x: x.sum(0), ((32768, 8192),)),
    "sum of few columns": (lambda x: k.sum(x, 0), lambda x: x.sum(0), ((262144, 512),)),
    "maximum of rows": (k.amax, lambda x: x.amax(-1), ((32768, 8192),)),
    "maximum of columns": (lambda x: k.amax(x, 0), lambda x: x.amax(0), ((32768, 8192),)),
    "causal softmax": (lambda x: k.softmax(x, causal=True),
                       lambda x: torch.softmax(x.masked_fill(later(x), -torch.inf), -1),
                       ((32, 4096, 4096),)),
}


def tensors(results):
    return results if isinstance(results, tuple) else (results,)


def sets_of(shapes, size):
    least = 3 * torch.cuda.get_device_properties(0).L2_cache_size
    count = min(LAUNCHES, max(2, -(-least // size)))
    return [[torch.randn(s, device="cuda", dtype=BF16) for s in shapes] for _ in range(count)]


def measure(name, options):
    ours, theirs, shapes = CASES[name]
    first = [torch.randn(s, device="cuda", dtype=BF16) for s in shapes]
    got, wanted = tensors(ours(*first)), tensors(theirs(*(x.float() for x in first)))
    for g, w in zip(got, wanted):
        near = 1e-2 * w.square().mean().sqrt().item()
        if not torch.allclose(g.float(), w, rtol=2e-2, atol=near):
            raise SystemExit(f"{name}: the result is WRONG")
    size = sum(x.numel() * x.element_size() for x in (*first, *got))
    del first, got, wanted
    data = sets_of(shapes, size)
    contenders = [("ours", lambda i: ours(*data[i])), ("eager", lambda i: theirs(*data[i]))]
    if not options.no_compile:
        torch._dynamo.reset()
        compiled = torch.compile(theirs, dynamic=False)
        contenders.append(("compiled", lambda i: compiled(*data[i])))
    with torch.no_grad():
        report(name, size, in_turns(contenders, len(data), options.rounds))


def report(name, size, times):
    best = min((n for n in times if n != "ours"), key=times.get)
    print(f"{name}: {times['ours'] * 1e6:.2f} us, {size / times['ours'] * 1e-9:.0f} GB/s, "
          f"{times[best] / times['ours']:.3f} of {best} {times[best] * 1e6:.2f}", flush=True)


def adamw(options, kind, moments, count=2**26):
    """Beside the fused one of PyTorch, which takes moments of the type of the weights only"""
    new = lambda dtype: torch.rand(count, device="cuda", dtype=dtype)
    p, g, m, v = new(kind), new(kind), new(moments), new(moments)
    size = count * (3 * p.element_size() + 4 * m.element_size())
    contenders = [("ours", lambda i: k.adamw(p, g, m, v, 10))]
    if kind == moments:
        q = p.clone().requires_grad_()
        q.grad = g
        peer = torch.optim.AdamW([q], fused=True, capturable=True)
        peer.step()
        contenders.append(("eager", lambda i: peer.step()))
    with torch.no_grad():
        times = in_turns(contenders, 1, options.rounds)
    name = f"AdamW of {kind}, moments of {moments}".replace("torch.", "")
    if len(times) > 1:
        report(name, size, times)
    else:
        print(f"{name}: {times['ours'] * 1e6:.2f} us, {size / times['ours'] * 1e-9:.0f} GB/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=[*CASES, "AdamW"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name in options.only or [*CASES, "AdamW"]:
        if name != "AdamW":
            measure(name, options)
            torch.cuda.empty_cache()
            continue
        for kind, moments in ((F32, F32), (BF16, BF16), (BF16, F32)):
            adamw(options, kind, moments)


if __name__ == "__main__":
    sys.exit(main())
