"""The figures of docs/tutorial.md, measured with the programs of that page on a Hopper GPU: prints
each table as it stands in the page, after the comment that names it. Needs PyTorch; 40 seconds.

    PYTHONPATH=build/release/python python3 python/gpu/tutorial.py
"""

import pathlib
import re
import sys

import torch
import torch.nn.functional as F

import pipec
import pipec.torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

import documents  # noqa: E402

SECONDS = 0.5
MAKE = dict(device="cuda", dtype=torch.bfloat16)


def program(step, name):
    """The first program with the kernel in the step of the page"""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    text = re.search(rf"^## {step}\. .*?(?=^## )", page, re.M | re.S)[0]
    found = [b[2] for b in documents.BLOCK.finditer(text) if b[1] == "pipe"]
    return next(block for block in found if re.search(rf"^kernel {name}\(", block, re.M))


def kernel(step, name, **statics):
    return pipec.compile(program(step, name), kernel=name, **statics)


def close(ours, theirs):
    error = ((ours - theirs).float().norm() / theirs.float().norm()).item()
    assert error < 1e-2, f"differs by {error:.1e}"


def title(name, columns):
    print(f"\n<!-- figures of python/gpu/tutorial.py: {name} -->")
    print(f"\n| | us | {columns} |\n|---|---|---|" + "---|" * columns.count("|"))


def rows(bench, names, rate):
    for timing, name in zip(bench, names):
        print(f"| {name} | {1e6 * timing.seconds:.1f} | {rate(timing):.0f} "
              f"| {100 * timing.share:.0f} % |", flush=True)


def gigabytes(timing):
    return 1e-9 * timing.bytes_per_second


def gate():
    h = torch.randn(8192, 16384, **MAKE)
    g, u = h.chunk(2, -1)
    gate, compiled = kernel(16, "gate"), torch.compile(lambda g, u: F.silu(g) * u)
    close(gate(g, u), F.silu(g) * u)
    compiled(g, u)
    title("gate", "GB/s | of the memory's rate")
    rows(pipec.bench(gate, g, u, seconds=SECONDS, beside={
        "torch": lambda: F.silu(g) * u, "compiled": lambda: compiled(g, u)}),
        ["`gate(g, u)`", "`F.silu(g) * u`", "the same, `torch.compile`"], gigabytes)


def softmax():
    X = torch.randn(32768, 2048, **MAKE)
    chosen = kernel(18, "softmax")
    close(chosen(X), torch.softmax(X, -1))
    statics = [dict(T=2048, R=1, W=2), dict(T=2048, R=2, W=4), dict(T=2048, R=1, W=8),
               dict(T=4096, R=2, W=4), dict(T=4096, R=4, W=8)]
    fixed = {" ".join(f"{n}={v}" for n, v in s.items()): kernel(18, "softmax", **s)
             for s in statics}
    beside = {"torch": lambda: torch.softmax(X, -1)}
    beside.update({name: lambda k=k: k(X) for name, k in fixed.items()})
    found = " ".join(f"{n}={v}" for n, v in chosen.choose(X).statics.items() if n in "TRW")
    title("softmax", "GB/s | of the memory's rate")
    rows(pipec.bench(chosen, X, seconds=2 * SECONDS, beside=beside),
         [f"chosen: `{found}`", "`torch.softmax`", *(f"`{name}`" for name in fixed)], gigabytes)


def product():
    n = 4096
    A, B = torch.randn(n, n, **MAKE), torch.randn(n, n, **MAKE)
    first, second = kernel(13, "product"), kernel(14, "gemm")
    for k in first, second:
        close(k(A, B), A @ B.T)
    title("product", "TFLOP/s | of the arithmetic")
    rows(pipec.bench(first, A, B, flops=2 * n**3, seconds=3 * SECONDS, beside={
        "gemm": lambda: second(A, B), "torch": lambda: torch.mm(A, B.T)}),
        ["step 13", "step 14", "`torch.mm`"], lambda t: 1e-12 * t.flops_per_second)


def main():
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for part in gate, softmax, product:
        part()


if __name__ == "__main__":
    main()
