"""Rows of any length: kernels/*.pipe beside the fastest of PyTorch, torch.compile and Triton, on a GPU.

    python3 bench/rows_any.py [--only NAME].. [--seed N] [--count N] [--rounds N] [--no-compile]
        [--lengths N,..] [--candidates FOLDER] [--out FILE]

For each of softmax, rms_norm, layer_norm and cross_entropy, in bf16: shapes from the seed, with at
least 132 rows, lengths log-uniform 7 .. 262144, half of them no multiples of 8, and 2^20 to 2^28
elements. A call of the library chooses the variant; nothing is tuned. Bursts of graphs of 10
launches, in turns, over as many sets of buffers as hold three times the L2; medians. Each result is
first compared with f64, on an output full of NaN. `rms_norm_backward`: three shapes, with the
gradient of the weights (sum_parts.pipe), in GB/s of x, dy and dx. A ratio above 1: ours is faster;
above 2 it counts as 2. --lengths takes these lengths, of 2^23 elements, instead of drawn shapes;
--candidates also times each variant and combination of FOLDER/NAME.pipe that can run; --out appends
the ratios as JSON lines, for shapes_plot.py.
"""
import argparse
import json
import math
import os
import random
import statistics
import sys

import torch
import torch.nn.functional as F

import pipec

from contenders import LAUNCHES, in_turns, kernels_of

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

EPSILON, IGNORE = 1e-5, -100
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels")
BACKWARD = [(16384, 4096), (8192, 8192), (4096, 16384)]

if triton:

    @triton.jit
    def softmax_rows(X, Y, M, D, R: tl.constexpr, C: tl.constexpr):
        m = (tl.program_id(0) * R + tl.arange(0, R))[:, None].to(tl.int64)
        k = tl.arange(0, C)[None, :]
        inside = (m < M) & (k < D)
        x = tl.load(X + m * D + k, mask=inside, other=-float("inf")).to(tl.float32)
        x = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(Y + m * D + k, (x / tl.sum(x, 1)[:, None]).to(tl.bfloat16), mask=inside)

    @triton.jit
    def softmax_parts(X, Y, M, D, R: tl.constexpr, C: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * D
        top, total = -float("inf"), 0.0
        for p in tl.range(0, D, C, num_stages=3):
            k = p + tl.arange(0, C)
            x = tl.load(X + row + k, mask=k < D, other=-float("inf")).to(tl.float32)
            new = tl.maximum(top, tl.max(x, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
            top = new
        for p in tl.range(0, D, C, num_stages=3):
            k = p + tl.arange(0, C)
            x = tl.load(X + row + k, mask=k < D, other=-float("inf")).to(tl.float32)
            tl.store(Y + row + k, (tl.exp(x - top) / total).to(tl.bfloat16), mask=k < D)

    @triton.jit
    def norm_rows(X, W, B, Y, M, D, LAYER: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
        m = (tl.program_id(0) * R + tl.arange(0, R))[:, None].to(tl.int64)
        k = tl.arange(0, C)[None, :]
        inside = (m < M) & (k < D)
        x = tl.load(X + m * D + k, mask=inside, other=0).to(tl.float32)
        if LAYER:
            x = tl.where(k < D, x - (tl.sum(x, 1) / D)[:, None], 0)
        scale = 1 / tl.sqrt(tl.sum(x * x, 1) / D + 1e-5)
        y = x * scale[:, None] * tl.load(W + k, mask=k < D, other=0).to(tl.float32)
        if LAYER:
            y += tl.load(B + k, mask=k < D, other=0).to(tl.float32)
        tl.store(Y + m * D + k, y.to(tl.bfloat16), mask=inside)

    @triton.jit
    def norm_parts(X, W, B, Y, M, D, LAYER: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * D
        total = tl.zeros((C,), tl.float32)
        squares = tl.zeros((C,), tl.float32)
        first = tl.load(X + row).to(tl.float32) if LAYER else 0.0
        for p in tl.range(0, D, C, num_stages=3):
            k = p + tl.arange(0, C)
            x = tl.load(X + row + k, mask=k < D, other=0).to(tl.float32)
            x = tl.where(k < D, x - first, 0)
            total += x
            squares += x * x
        mean = tl.sum(total, 0) / D if LAYER else 0.0
        scale = 1 / tl.sqrt(tl.sum(squares, 0) / D - mean * mean + 1e-5)
        for p in tl.range(0, D, C, num_stages=3):
            k = p + tl.arange(0, C)
            x = tl.load(X + row + k, mask=k < D, other=0).to(tl.float32) - first - mean
            y = x * scale * tl.load(W + k, mask=k < D, other=0).to(tl.float32)
            if LAYER:
                y += tl.load(B + k, mask=k < D, other=0).to(tl.float32)
            tl.store(Y + row + k, y.to(tl.bfloat16), mask=k < D)

    @triton.jit
    def loss_rows(X, L, Y, M, D, R: tl.constexpr, C: tl.constexpr):
        m = tl.program_id(0) * R + tl.arange(0, R)
        rows = m[:, None].to(tl.int64) * D
        k = tl.arange(0, C)[None, :]
        inside = (m[:, None] < M) & (k < D)
        x = tl.load(X + rows + k, mask=inside, other=-float("inf")).to(tl.float32)
        top = tl.max(x, 1)
        lse = top + tl.log(tl.sum(tl.exp(x - top[:, None]), 1))
        label = tl.load(L + m, mask=m < M, other=0)
        chosen = tl.load(X + m.to(tl.int64) * D + label, mask=m < M, other=0).to(tl.float32)
        tl.store(Y + m, lse - chosen, mask=m < M)

    @triton.jit
    def loss_parts(X, L, Y, M, D, R: tl.constexpr, C: tl.constexpr):
        row = X + tl.program_id(0).to(tl.int64) * D
        top, total = -float("inf"), 0.0
        for p in tl.range(0, D, C, num_stages=3):
            k = p + tl.arange(0, C)
            x = tl.load(row + k, mask=k < D, other=-float("inf")).to(tl.float32)
            new = tl.maximum(top, tl.max(x, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
            top = new
        label = tl.load(row + tl.load(L + tl.program_id(0))).to(tl.float32)
        tl.store(Y + tl.program_id(0), top + tl.log(total) - label)


def shapes_of(seed, name, count):
    """(rows, length): lengths are in turns multiples of 8 and not"""
    draw = random.Random(f"{seed} {name}")

    def log(low, high):
        return int(round(math.exp(draw.uniform(math.log(low), math.log(high)))))

    shapes = []
    while len(shapes) < count:
        d = log(7, 262144)
        d = max(8, d // 8 * 8) if len(shapes) % 2 == 0 else d + (d % 8 == 0)
        least, most = max(132, -(-2**20 // d)), 2**28 // d
        if least <= most:
            shapes.append((log(least, most), d))
    return shapes


class Data:
    """Sets of x and y for one shape, weights, labels; `y` begins as NaN"""

    def __init__(self, name, m, d):
        loss = name == "cross_entropy"
        one = 2 * m * d * (1 if loss else 2)
        least = 3 * torch.cuda.get_device_properties(0).L2_cache_size
        self.m, self.d, self.bytes = m, d, one
        self.count = min(LAUNCHES, max(2, -(-least // one)))
        self.x = [torch.randn(m, d, device="cuda", dtype=torch.bfloat16) for _ in range(self.count)]
        shape, kind = ((m,), torch.float32) if loss else ((m, d), torch.bfloat16)
        self.y = [torch.full(shape, math.nan, device="cuda", dtype=kind) for _ in range(self.count)]
        self.w, self.b = (torch.randn(d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.labels = torch.randint(0, d, (m,), device="cuda")
        self.safe = self.labels.clone()
        self.labels[::7] = IGNORE
        # for a residual that is left out, and its sum
        self.none, self.no_sum = (torch.empty(0, 0, device="cuda", dtype=torch.bfloat16)
                                  for _ in range(2))
        self.lse = torch.full((m,), math.nan, device="cuda")


def torch_function(name, data):
    d, w, b, labels = [data.d], data.w, data.b, data.labels
    return {"softmax": lambda x: torch.softmax(x, -1),
            "rms_norm": lambda x: F.rms_norm(x, d, w, EPSILON),
            "layer_norm": lambda x: F.layer_norm(x, d, w, b, EPSILON),
            "cross_entropy": lambda x: F.cross_entropy(x.float(), labels, reduction="none",
                                                       ignore_index=IGNORE)}[name]


def ours(name, kernel, data):
    x, y = data.x, data.y
    return {"softmax": lambda i: kernel(x[i], Y=y[i]),
            "rms_norm": lambda i: kernel(x[i], data.none, data.w, EPSILON, Y=y[i],
                                         Sum=data.no_sum),
            "layer_norm": lambda i: kernel(x[i], data.none, data.w, data.b, EPSILON, Y=y[i],
                                           Sum=data.no_sum),
            "cross_entropy": lambda i: kernel(x[i], data.labels, IGNORE, Loss=y[i],
                                              Lse=data.lse)}[name]


def of_candidate(name, kernel, data):
    """A kernel with the parameters that the shape needs"""
    x, y = data.x, data.y
    return {"softmax": lambda i: kernel(x[i], Y=y[i]),
            "rms_norm": lambda i: kernel(x[i], data.w, EPSILON, Y=y[i]),
            "layer_norm": lambda i: kernel(x[i], data.w, data.b, EPSILON, Y=y[i]),
            "cross_entropy": lambda i: kernel(x[i], data.labels, IGNORE, Loss=y[i],
                                              Lse=data.lse)}[name]


def arguments(name, data):
    """The inputs alone, for `choose`"""
    return {"softmax": (data.x[0],), "rms_norm": (data.x[0], data.none, data.w, EPSILON),
            "layer_norm": (data.x[0], data.none, data.w, data.b, EPSILON),
            "cross_entropy": (data.x[0], data.labels, IGNORE)}[name]


def triton_peers(name, data):
    """(name, launch): rows at once in registers, and by parts if they are long"""
    if not triton:
        return []
    m, d, whole = data.m, data.d, triton.next_power_of_2(data.d)
    forms = [(1, whole, w) for w in (4, 8, 16, 32) if 4 * w * 32 <= whole <= 64 * w * 32]
    if whole <= 2048:
        forms = [(max(1, 2048 // whole), whole, 4), (max(1, 512 // whole), whole, 1)]
    forms = forms[:2] if whole <= 65536 else []
    parts = [(0, 4096, 8), (0, 8192, 16)] if whole >= 16384 else []

    def peer(rows, columns, warps):
        grid, size = (-(-m // rows) if rows else m,), {"R": max(1, rows), "C": columns}

        def launch(i):
            x, y = data.x[i], data.y[i]
            if name == "softmax":
                (softmax_rows if rows else softmax_parts)[grid](x, y, m, d, **size, num_warps=warps)
            elif name == "cross_entropy":
                (loss_rows if rows else loss_parts)[grid](x, data.safe, y, m, d,
                                                          **size, num_warps=warps)
            else:
                (norm_rows if rows else norm_parts)[grid](
                    x, data.w, data.b, y, m, d, LAYER=name == "layer_norm", **size, num_warps=warps)
            return y
        return launch
    return [(f"Triton {r} x {c}, {w} warps", peer(r, c, w)) for r, c, w in forms + parts]


def some_rows(m):
    rows = torch.cat([torch.arange(min(m, 48)), torch.arange(max(0, m - 48), m),
                      torch.randint(0, m, (32,))])
    return rows.unique().cuda()


def check(name, data):
    """Refuses a wrong result of set 0: some rows beside f64, and no NaN left"""
    rows = some_rows(data.m)
    wide = Data.__new__(Data)
    wide.d, wide.w, wide.b, wide.labels = data.d, data.w.double(), data.b.double(), data.labels[rows]
    x = data.x[0][rows].double()
    if name == "cross_entropy":
        wanted = F.cross_entropy(x, wide.labels, reduction="none", ignore_index=IGNORE)
    else:
        wanted = torch_function(name, wide)(x)
    got = data.y[0]
    scale = wanted.square().mean().sqrt().item()
    loose = 1e-4 if name == "cross_entropy" else 8e-3
    close = torch.allclose(got[rows].double(), wanted, rtol=loose, atol=loose * scale)
    if not close or bool(torch.isnan(got).any()):
        raise SystemExit(f"{name} {data.m}x{data.d}: the result is WRONG")


def words(choice):
    if choice is None:
        return "the first"
    return " ".join([f"{choice.variant}:"] * bool(choice.variant) +
                    [f"{name}={value}" for name, value in choice.statics.items()])


def measure(name, kernel, m, d, options, kernels=()):
    """Prints a line, and one for each candidate; (ratio to the fastest peer, error of the
    prediction)"""
    data = Data(name, m, d)
    run = ours(name, kernel, data)
    run(0)
    torch.cuda.synchronize()
    check(name, data)
    function = torch_function(name, data)
    peers = [("eager", lambda i: function(data.x[i]))] + triton_peers(name, data)
    if not options.no_compile:
        torch._dynamo.reset()
        compiled = torch.compile(function, dynamic=False)
        peers.append(("compiled", lambda i: compiled(data.x[i])))
    times = in_turns([("ours", run)] + peers, data.count, options.rounds)
    best = min((name for name in times if name != "ours"), key=times.get)
    choice = kernel.choose(*arguments(name, data))
    predicted = choice.predicted if choice else 0
    ratio = times[best] / times["ours"]
    print(f"{name} {m}x{d}: {times['ours'] * 1e6:.2f} us, {data.bytes / times['ours'] * 1e-9:.0f} GB/s, "
          f"{ratio:.3f} of {best} {times[best] * 1e6:.2f}, eager {times.get('eager', 0) * 1e6:.2f}, "
          f"predicted {predicted * 1e6:.2f}, {words(choice)}", flush=True)
    if options.out:
        with open(options.out, "a", encoding="utf-8") as out:
            device = torch.cuda.get_device_name()
            print(json.dumps({"kernel": name, "device": device, "m": m, "d": d,
                              "ratio": round(ratio, 3), "peer": best}), file=out)
    candidates(name, kernels, data, options)
    return ratio, abs(predicted / times["ours"] - 1)


def candidates(name, kernels, data, options):
    """Prints the fastest combinations of a file for the shape"""
    contenders = []
    for words_of, kernel in kernels:
        run = of_candidate(name, kernel, data)
        data.y[0].fill_(math.nan)
        try:
            run(0)
        except pipec.Error:  # its domain does not have the shape
            continue
        torch.cuda.synchronize()
        check(name, data)
        contenders.append((words_of, run))
    times = in_turns(contenders, data.count, options.rounds)
    for words_of in sorted(times, key=times.get)[:options.best]:
        print(f"  {words_of}: {times[words_of] * 1e6:.2f} us, "
              f"{data.bytes / times[words_of] * 1e-9:.0f} GB/s", flush=True)


def backward(options):
    kernel, add = (pipec.load(os.path.join(FOLDER, name + ".pipe"))
                   for name in ("rms_norm_backward", "sum_parts"))
    for m, d in BACKWARD:
        x, dy, dx = ([torch.randn(m, d, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
                     for _ in range(3))
        w, dw = (torch.randn(d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        parts = torch.full((132, d), math.nan, device="cuda")
        dx[0].fill_(math.nan)
        none = torch.empty(0, 0, device="cuda", dtype=torch.bfloat16)

        def run(i):
            kernel(x[i], w, dy[i], none, EPSILON, dX=dx[i], dW=parts)
            add(parts, Y=dw)

        run(0)
        wide, weights = x[0].double().requires_grad_(), w.double().requires_grad_()
        F.rms_norm(wide, [d], weights, EPSILON).backward(dy[0].double())
        for got, wanted in ((dx[0], wide.grad), (dw, weights.grad)):
            near = 8e-3 * wanted.square().mean().sqrt().item()
            if not torch.allclose(got.double(), wanted, rtol=8e-3, atol=near):
                raise SystemExit(f"rms_norm_backward {m}x{d}: the result is WRONG")
        del wide, weights
        times = in_turns([("both", run),
                          ("main", lambda i: kernel(x[i], w, dy[i], none, EPSILON, dX=dx[i],
                                                  dW=parts))],
                         3, options.rounds)
        print(f"rms_norm_backward {m}x{d}: {times['both'] * 1e6:.2f} us, "
              f"{6 * m * d / times['both'] * 1e-9:.0f} GB/s; without sum_parts "
              f"{times['main'] * 1e6:.2f} us, "
              f"{words(kernel.choose(x[0], w, dy[0], none, EPSILON))}", flush=True)


def main():
    names = ["softmax", "rms_norm", "layer_norm", "cross_entropy", "rms_norm_backward"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--lengths", type=lambda text: [int(d) for d in text.split(",")])
    parser.add_argument("--candidates", metavar="FOLDER")
    parser.add_argument("--out", metavar="FILE")
    parser.add_argument("--best", type=int, default=6, help="so many candidates are printed")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton "
          f"{triton.__version__ if triton else 'not found'}, seed {options.seed}")
    for name in options.only or names:
        if name == "rms_norm_backward":
            backward(options)
            continue
        kernel = pipec.load(os.path.join(FOLDER, name + ".pipe"))
        results, kernels, shapes = [], [], shapes_of(options.seed, name, options.count)
        if options.lengths:
            shapes = [(2**23 // d, d) for d in options.lengths]
        if options.candidates:
            file = os.path.join(options.candidates, name + ".pipe")
            kernels = kernels_of(file)[1] if os.path.exists(file) else []
        for m, d in shapes:
            ratio, error = measure(name, kernel, m, d, options, kernels)
            results.append((ratio, error, m, d))
            torch.cuda.empty_cache()
        mean = math.exp(statistics.fmean(math.log(min(2.0, one[0])) for one in results))
        ratio, _, m, d = min(results)
        print(f"{name}: {len(results)} shapes, geometric mean of the fastest peer / ours {mean:.3f}, "
              f"worst {ratio:.3f} at {m}x{d}, under 0.85: {sum(one[0] < 0.85 for one in results)}; "
              f"error of the prediction, median {statistics.median(one[1] for one in results):.3f}",
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
