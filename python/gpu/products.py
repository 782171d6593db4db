"""Times of the products of pipec.kernels beside PyTorch's, on a GPU: odd sizes, orders of operands,
batches, what is fused, and other types.

    python products.py [--set odd|orders|fused|tf32|fp8|int8|all] [--seed 1] [--count 20]

Each is a graph of 10 calls over as many sets of buffers as hold three times the L2; bursts of both
take turns, and medians are compared. Results are first compared with f64, from poisoned outputs.
Prints the ratio of PyTorch's time to ours, its geometric mean (above 2 it counts as 2) and the worst
one; also without products of few tiles and long sums, which cuBLAS divides among blocks.
"""

import argparse
import math
import random
import re
import statistics

import torch
import torch.nn.functional as F

import pipec.kernels as k

L2, CALLS, BURSTS = 3 * 50 * 2**20, 10, 5


def log_uniform(draw, lo, hi):
    return round(math.exp(draw.uniform(math.log(lo), math.log(hi))))


def odd_shapes(draw, count):
    """K or N, or both, are odd; M * N * K is at least 2**24"""
    shapes = []
    while len(shapes) < count:
        m, n, size = (log_uniform(draw, lo, 16384) for lo in (1, 8, 8))
        which = draw.choice(("n", "k", "both"))
        n = n | 1 if which != "k" else max(8, n // 8 * 8)
        size = size | 1 if which != "n" else max(8, size // 8 * 8)
        if m * n * size >= 2**24:
            shapes.append((m, n, size))
    return shapes


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def linear_case(m, n, size, bias=False, activation=None, residual=False, dtype=torch.bfloat16):
    """(name, makes a set of buffers, ours, theirs)"""
    def make():
        return (normal(m, size, dtype=dtype), normal(n, size, dtype=dtype) / size**0.5,
                normal(n, dtype=dtype) if bias else None,
                normal(m, n, dtype=dtype) if residual else None)

    def theirs(x, weight, b, r):
        y = F.linear(x, weight, b)
        y = {None: lambda x: x, "relu": F.relu, "silu": F.silu,
             "gelu": lambda x: F.gelu(x, approximate="tanh")}[activation](y)
        return y if r is None else y + r

    words = [w for w in ("bias" * bias, activation, "residual" * residual) if w]
    name = f"linear {m} x {n} x {size} {' '.join(words)} {str(dtype)[6:]}"
    precision = "tf32" if dtype == torch.float32 else None

    def ours(x, w, b, r, out):
        k.linear(x, w, b, activation, r, precision=precision, out=out)

    return name, make, ours, theirs


def matmul_case(m, n, size, order, batch=(), dtype=torch.bfloat16):
    precision = "tf32" if dtype == torch.float32 else None

    def make():
        a, b = (normal(*batch, *shape[::-1], dtype=dtype).mT if flip == "t" else
                normal(*batch, *shape, dtype=dtype)
                for flip, shape in zip(order, ((m, size), (size, n))))
        return a / size**0.5, b

    def ours(a, b, out):
        k.matmul(a, b, precision=precision, out=out)

    name = f"matmul {order} {' x '.join(map(str, (*batch, m, n, size)))} {str(dtype)[6:]}"
    return name, make, ours, torch.matmul


def bytes_case(m, n, size, kind, fast=False):
    """fp8 with scales, or exact int8"""
    one = torch.ones((), device="cuda")

    def make():
        if kind == torch.int8:
            return tuple(torch.randint(-128, 128, s, device="cuda", dtype=kind)
                         for s in ((m, size), (n, size)))
        return (normal(m, size) / size**0.5).to(kind), normal(n, size).to(kind)

    def ours(a, b, out):
        if kind == torch.int8:
            return k.int_mm(a, b.T, out=out)
        return k.scaled_mm(a, b.T, one, one, None, torch.bfloat16, fast, out=out)

    def theirs(a, b):
        if a.dtype == torch.float64:
            return a @ b.T
        if kind == torch.int8:
            return torch._int_mm(a, b.T)
        return torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    return f"{m} x {n} x {size} {str(kind)[6:]}{' fast' * fast}", make, ours, theirs


def cases(which, seed, count):
    draw = random.Random(seed)
    if which in ("odd", "all"):
        for shape in odd_shapes(draw, count):
            yield linear_case(*shape)
    if which in ("orders", "all"):
        for shape in ((4096, 4096, 4096), (16, 4096, 4096), (8192, 1024, 8192), (300, 11008, 4096)):
            for order in ("nn", "tn", "tt"):
                if order[0] == "n" or shape[0] % 8 == 0:
                    yield matmul_case(*shape, order)
        for order in ("nt", "nn"):
            yield matmul_case(1024, 1024, 64, order, batch=(64,))
            yield matmul_case(1024, 64, 1024, order, batch=(64,))
    if which in ("fused", "all"):
        for shape in ((4096, 4096, 4096), (16, 11008, 4096), (1024, 11008, 4096)):
            yield linear_case(*shape, bias=True)
            yield linear_case(*shape, bias=True, activation="gelu")
            yield linear_case(*shape, activation="silu")
            yield linear_case(*shape, residual=True)
            yield linear_case(*shape, dtype=torch.float16)
    square = ((4096, 4096, 4096), (8192, 8192, 8192), (300, 11008, 4096), (32, 4096, 11008))
    if which in ("tf32", "all"):
        for shape in square:
            yield linear_case(*shape, dtype=torch.float32)
            yield linear_case(*shape, bias=True, activation="gelu", dtype=torch.float32)
            yield matmul_case(*shape, "nn", dtype=torch.float32)
            yield matmul_case(*shape, "tn", dtype=torch.float32)
    for shape in square:
        if which in ("fp8", "all"):
            yield bytes_case(*shape, torch.float8_e4m3fn)
            yield bytes_case(*shape, torch.float8_e4m3fn, fast=True)
        if which in ("int8", "all"):
            yield bytes_case(*shape, torch.int8)


def graph(run, sets):
    for one in sets[:2]:
        run(*one)
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        for i in range(CALLS):
            run(*sets[i % len(sets)])
    made.replay()
    return made


def has_few_tiles(name):
    """Fewer than half of the SMs have a tile, and the sum is long"""
    m, n, size = map(int, re.search(r"\d+( x \d+)+", name).group().split(" x ")[-3:])
    return -(-m // 128) * -(-n // 128) < 132 / 2 and size > 2048


def summary(what, ratios):
    if ratios:
        mean = math.exp(statistics.fmean(math.log(min(2, ratio)) for ratio in ratios))
        print(f"{what}: {len(ratios)}, geometric mean {mean:.3f}, worst {min(ratios):.3f}, "
              f"under 0.5: {sum(ratio < 0.5 for ratio in ratios)}")


def seconds(made):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    made.replay()
    made.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / (2e3 * CALLS)


def measure(make, ours, theirs):
    first = make()
    wanted = theirs(*(x if x is None else x.double() for x in first))
    out = torch.full_like(theirs(*first), -77)
    ours(*first, out)
    error = ((out.double() - wanted).abs() / (1 + wanted.abs())).max().item()
    bound = 2e-2 if first[0].element_size() > 1 else 0.3  # sums of fp8 keep 14 bits
    assert error < bound, f"wrong: {error}"
    count = sum(x.numel() * x.element_size() for x in (*first, out) if x is not None)
    sets = [first] + [make() for _ in range(min(CALLS, max(3, -(-L2 // count))) - 1)]
    outs = [torch.empty_like(out) for _ in sets]
    graphs = (graph(ours, [(*s, o) for s, o in zip(sets, outs)]), graph(theirs, sets))
    times = [[], []]
    for _ in range(BURSTS):
        for made, kept in zip(graphs, times):
            kept.append(seconds(made))
    return [statistics.median(kept) for kept in times]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", default="all",
                        choices=("odd", "orders", "fused", "tf32", "fp8", "int8", "all"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__)
    torch.backends.cuda.matmul.allow_tf32 = True  # as ours, with precision="tf32"
    ratios = []
    with torch.no_grad():
        for name, make, ours, theirs in cases(args.set, args.seed, args.count):
            torch.manual_seed(args.seed)
            mine, other = measure(make, ours, theirs)
            ratios.append((name, other / mine))
            print(f"{name:50} {1e6 * mine:9.2f} us, PyTorch {1e6 * other:9.2f} us, "
                  f"ratio {other / mine:.3f}", flush=True)
    summary("all", [ratio for _, ratio in ratios])
    for what, few in (("few tiles, long sums", True), ("others", False)):
        summary(what, [ratio for name, ratio in ratios if has_few_tiles(name) == few])


if __name__ == "__main__":
    main()
