#!/usr/bin/env python3
"""Measures PyTorch and Triton on the rows of bench/memory.def, by the method of bench/memory
(bench/traffic.h), and prints the same table.

  bench/rows_peers.py [--row NAME].. [--rounds N] [--quick] [--list] [--ours FILE]

`bench/run rows` calls it after our kernels, with the same options and --ours, their table: then
a second table compares them with the fastest peer. --try is ignored.
"""
import argparse
import math
import os
import re
import statistics
import sys
import time

BURST, PAUSE, QUICK_PART, MOST_SETS = 10, 0.05, 256, 64
FACTOR, EPSILON = 2.5, 1e-5
ROW = re.compile(r'^MEMORY_ROW\("([^"]+)",\s*(\w+),\s*(\d+),\s*(\d+),\s*(\d+),', re.M)
OURS = re.compile(r"^\| (\S+) \| (?!limit_)(.+?) \| [0-9.]+ \| (\d+) \| ([0-9.]+) \|", re.M)
DEFINITION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory.def")

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton:

    @triton.jit
    def softmax_rows(X, Y, G, B, D: tl.constexpr, R: tl.constexpr):
        at = (tl.program_id(0) * R + tl.arange(0, R))[:, None] * D + tl.arange(0, D)[None, :]
        x = tl.load(X + at).to(tl.float32)
        x = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(Y + at, (x / tl.sum(x, 1)[:, None]).to(tl.bfloat16))

    @triton.jit
    def rmsnorm_rows(X, Y, G, B, D: tl.constexpr, R: tl.constexpr):
        k = tl.arange(0, D)[None, :]
        at = (tl.program_id(0) * R + tl.arange(0, R))[:, None] * D + k
        x = tl.load(X + at).to(tl.float32)
        scale = 1 / tl.sqrt(tl.sum(x * x, 1) / D + 1e-5)
        tl.store(Y + at, (x * scale[:, None] * tl.load(G + k).to(tl.float32)).to(tl.bfloat16))

    @triton.jit
    def layernorm_rows(X, Y, G, B, D: tl.constexpr, R: tl.constexpr):
        k = tl.arange(0, D)[None, :]
        at = (tl.program_id(0) * R + tl.arange(0, R))[:, None] * D + k
        x = tl.load(X + at).to(tl.float32)
        x = x - (tl.sum(x, 1) / D)[:, None]
        scale = 1 / tl.sqrt(tl.sum(x * x, 1) / D + 1e-5)
        y = x * scale[:, None] * tl.load(G + k).to(tl.float32) + tl.load(B + k).to(tl.float32)
        tl.store(Y + at, y.to(tl.bfloat16))

    @triton.jit
    def rowsum_rows(X, Y, G, B, D: tl.constexpr, R: tl.constexpr):
        rows = tl.program_id(0) * R + tl.arange(0, R)
        x = tl.load(X + rows[:, None] * D + tl.arange(0, D)[None, :]).to(tl.float32)
        tl.store(Y + rows, tl.sum(x, 1))

    @triton.jit
    def colsum_columns(X, Y, M, D: tl.constexpr, C: tl.constexpr, R: tl.constexpr):
        """One program adds all rows of its columns, or one of several parts of the rows"""
        j = tl.program_id(0) * C + tl.arange(0, C)
        first = tl.program_id(1) * M
        total = tl.zeros((R, C), tl.float32)
        for m in tl.range(first, first + M, R, num_stages=4):
            rows = m + tl.arange(0, R)
            inside = rows[:, None] < first + M
            at = rows[:, None] * D + j[None, :]
            total += tl.load(X + at, mask=inside, other=0).to(tl.float32)
        tl.store(Y + tl.program_id(1) * D + j, tl.sum(total, 0))

    @triton.jit
    def cross_entropy_rows(X, L, Y, D: tl.constexpr, C: tl.constexpr):
        row = X + tl.program_id(0).to(tl.int64) * D
        top, total = -float("inf"), 0.0
        for v in tl.range(0, D, C, num_stages=3):
            k = v + tl.arange(0, C)
            x = tl.load(row + k, mask=k < D, other=-float("inf")).to(tl.float32)
            new = tl.maximum(top, tl.max(x, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
            top = new
        label = tl.load(row + tl.load(L + tl.program_id(0))).to(tl.float32)
        tl.store(Y + tl.program_id(0), top + tl.log(total) - label)

    @triton.jit
    def transpose_tiles(X, Y, M, D, A: tl.constexpr, B: tl.constexpr):
        i = tl.program_id(1) * A + tl.arange(0, A)
        j = tl.program_id(0) * B + tl.arange(0, B)
        x = tl.load(X + i[:, None] * D + j[None, :])
        tl.store(Y + j[:, None] * M + i[None, :], tl.trans(x))

    KERNELS = {"SOFTMAX": softmax_rows, "RMSNORM": rmsnorm_rows,
               "LAYERNORM": layernorm_rows, "ROWSUM": rowsum_rows}

# What the Triton kernels are measured with. Of rows: rows per program and warps; of columns:
# columns, rows at once, parts of the rows and warps; of losses: elements at once and warps; of
# transposes: the tile and warps.
SHAPES = {8192: [(1, 4), (1, 8), (1, 16)], 512: [(1, 1), (4, 4), (8, 4), (16, 8)],
          32768: [(1, 8), (1, 16), (1, 32)]}
COLUMNS = [(64, 64, 1, 8), (64, 128, 1, 8), (32, 128, 1, 8), (128, 32, 32, 4), (256, 16, 64, 4)]
LOSSES = [(4096, 4), (8192, 8), (16384, 8), (16384, 16), (32768, 16)]
TILES = [(32, 32, 4), (64, 32, 4), (32, 64, 4), (64, 64, 4), (64, 64, 8), (128, 64, 8)]


class Data:
    """The buffers of one row: sets that are together at least three times the size of L2."""

    def __init__(self, operation, m, d):
        wide = torch.float32 if operation in ("AXPY", "CAST", "TRANSPOSE") else torch.bfloat16
        x_shape = (m * d,) if operation in ("AXPY", "CAST") else (m, d)
        y_shape = {"ROWSUM": (m,), "CROSS_ENTROPY": (m,), "COLSUM": (d,),
                   "TRANSPOSE": (d, m)}.get(operation, x_shape)
        sums = operation in ("AXPY", "ROWSUM", "COLSUM", "CROSS_ENTROPY", "TRANSPOSE")
        y_type = torch.float32 if sums else torch.bfloat16
        least = 3 * torch.cuda.get_device_properties(0).L2_cache_size
        x_bytes, y_bytes = (math.prod(shape) * kind.itemsize
                            for shape, kind in ((x_shape, wide), (y_shape, y_type)))
        sets = min(MOST_SETS, max(2, -(-least // (x_bytes + y_bytes))))
        self.m, self.d = m, d
        self.bytes = x_bytes + y_bytes * (2 if operation == "AXPY" else 1)
        self.x = [torch.randn(x_shape, device="cuda", dtype=wide) for _ in range(sets)]
        self.y = [torch.randn(y_shape, device="cuda").to(y_type) for _ in range(sets)]
        self.g = torch.randn(d, device="cuda", dtype=torch.bfloat16)
        self.b = torch.randn(d, device="cuda", dtype=torch.bfloat16)
        self.labels = torch.arange(m, device="cuda") * 4001 % d


def torch_peers(operation, data):
    """Name and function of a set's index: PyTorch, and what torch.compile makes of it"""
    x, y, g, b, d, labels = data.x, data.y, data.g, data.b, [data.d], data.labels
    if operation == "AXPY":
        return [("torch add_", lambda i: y[i].add_(x[i], alpha=FACTOR))]
    if operation == "CAST":
        return [("torch copy_", lambda i: y[i].copy_(x[i]))]
    if operation == "ROWSUM":
        return [("torch sum", lambda i: torch.sum(x[i], -1, dtype=torch.float32, out=y[i]))]
    name, function = {
        "SOFTMAX": ("softmax", lambda x: torch.softmax(x, -1)),
        "RMSNORM": ("rms_norm", lambda x: F.rms_norm(x, d, g, EPSILON)),
        "LAYERNORM": ("layer_norm", lambda x: F.layer_norm(x, d, g, b, EPSILON)),
        "COLSUM": ("sum", lambda x: torch.sum(x, 0, dtype=torch.float32)),
        "CROSS_ENTROPY": ("cross_entropy",
                          lambda x: F.cross_entropy(x.float(), labels, reduction="none")),
        "TRANSPOSE": ("transpose", lambda x: x.t().contiguous()),
    }[operation]
    compiled = torch.compile(function, dynamic=False)
    return [("torch " + name, lambda i: function(x[i])),
            ("torch.compile " + name, lambda i: compiled(x[i]))]


def column_peer(data, columns, rows, parts, warps):
    def launch(i):
        sums = torch.empty((parts, data.d), device="cuda") if parts > 1 else data.y[i]
        colsum_columns[(data.d // columns, parts)](data.x[i], sums, data.m // parts, data.d,
                                                   columns, rows, num_warps=warps)
        if parts > 1:
            colsum_columns[(data.d // 32, 1)](sums, data.y[i], parts, data.d, 32, 32, num_warps=1)
        return data.y[i]

    return (f"Triton, {columns} columns x {rows} rows, {parts} parts, {warps} warps", launch)


def loss_peer(data, columns, warps):
    def launch(i):
        cross_entropy_rows[(data.m,)](data.x[i], data.labels, data.y[i], data.d, columns,
                                      num_warps=warps)
        return data.y[i]

    return (f"Triton, {columns} x {warps} warps", launch)


def tile_peer(data, rows, columns, warps):
    def launch(i):
        transpose_tiles[(data.d // columns, data.m // rows)](data.x[i], data.y[i], data.m, data.d,
                                                             rows, columns, num_warps=warps)
        return data.y[i]

    return (f"Triton, {rows} x {columns}, {warps} warps", launch)


def row_peer(data, kernel, rows, warps):
    def launch(i):
        kernel[(data.m // rows,)](data.x[i], data.y[i], data.g, data.b, data.d, rows,
                                  num_warps=warps)
        return data.y[i]

    return (f"Triton, {rows} x {warps} warps", launch)


def triton_peers(operation, data):
    if not triton:
        return []
    if operation == "COLSUM":
        return [column_peer(data, *shape) for shape in COLUMNS if data.m % shape[2] == 0]
    if operation == "CROSS_ENTROPY":
        return [loss_peer(data, *shape) for shape in LOSSES]
    if operation == "TRANSPOSE":
        return [tile_peer(data, *shape) for shape in TILES if data.m % shape[0] == 0]
    if operation not in KERNELS:
        return []
    return [row_peer(data, KERNELS[operation], *shape)
            for shape in SHAPES[data.d] if data.m % shape[0] == 0]


class Peer:
    def __init__(self, name, launch):
        self.name, self.launch, self.next, self.seconds = name, launch, 0, []

    def prepare(self, data, launches, want):
        """Warms up, compares the result of the first set with `want`, and captures the graph."""
        got = self.launch(0)
        if want is not None:
            close = 1e-2 * want.abs().mean().item()
            if not torch.allclose(got.float(), want, rtol=2e-2, atol=close):
                raise RuntimeError("the result is wrong")
        for i in range(3):
            self.launch(i % len(data.x))
        torch.cuda.synchronize()
        self.sets, self.launches, self.graph = len(data.x), launches, None
        if launches > 1:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                for i in range(launches):
                    self.launch(i % self.sets)

    def burst(self, pause):
        """Seconds of one launch"""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        time.sleep(pause)
        start.record()
        for _ in range(BURST):
            if self.graph:
                self.graph.replay()
            else:
                self.launch(self.next % self.sets)
                self.next += 1
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / (BURST * self.launches)


def prepared(row, peers, data, launches):
    """The peers that run; the first one of PyTorch is what the others are compared with"""
    want, fit = None, []
    for name, launch in peers:
        peer = Peer(name, launch)
        try:
            peer.prepare(data, launches, want)
        except Exception as error:  # a peer that does not run must not hide the others
            print(f"| {row} | {name} | failed | | | |")
            print(f"rows_peers: {row}: {name}: {error}", file=sys.stderr)
            continue
        if want is None and len(peers) > 1:
            want = launch(0).float().clone()
        fit.append(peer)
    return fit


def compare(path, best):
    """`best`: name and GB/s of the fastest peer of each row"""
    print("\n| row | ours, GB/s | best peer, GB/s | ours / peer | of limit |")
    print("|---|---|---|---|---|")
    with open(path) as file:
        for row, _, rate, limit in OURS.findall(file.read()):
            if row in best:
                name, peer = best[row]
                print(f"| {row} | {rate} | {peer:.0f}, {name} | {int(rate) / peer:.3f} | {limit} |")


def measure(row, operation, m, d, launches, options):
    """Prints the row; name and GB/s of the fastest peer, None without one"""
    data = Data(operation, m, d)
    peers = prepared(row, torch_peers(operation, data) + triton_peers(operation, data), data,
                     launches)
    pause = 0.001 if options.quick else PAUSE
    for r in range(-1, options.rounds):  # the first round warms up
        for i in range(len(peers)):
            peer = peers[(i + r + 1) % len(peers)]
            took = peer.burst(pause)
            if r >= 0:
                peer.seconds.append(took)
    for peer in peers:
        middle = statistics.median(peer.seconds)
        spread = 100 * (max(peer.seconds) - min(peer.seconds)) / middle
        print(f"| {row} | {peer.name} | {middle * 1e6:.2f} | {data.bytes / middle * 1e-9:.0f} |"
              f" | {spread:.1f} % |", flush=True)
    rates = [(data.bytes / statistics.median(peer.seconds) * 1e-9, peer.name) for peer in peers]
    return max(rates)[::-1] if rates else None


def table():
    with open(DEFINITION) as file:
        return [(name, operation, int(m), int(d), int(graph))
                for name, operation, m, d, graph in ROW.findall(file.read())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--row", action="append", help="this row; can be repeated")
    parser.add_argument("--rounds", type=int, choices=range(1, 100), metavar="N")
    parser.add_argument("--quick", action="store_true", help="1/256 of each row")
    parser.add_argument("--list", action="store_true", help="prints the rows; needs no GPU")
    parser.add_argument("--ours", metavar="FILE", help="the table of bench/memory")
    parser.add_argument("--try", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 15)
    rows = table()
    for name in options.row or []:
        if name not in [row[0] for row in rows]:
            parser.error(f"there is no row {name}")
    rows = [row for row in rows if not options.row or row[0] in options.row]
    if options.list:
        for row in rows:
            print(*row)
        return 0
    if not torch or not torch.cuda.is_available():
        print("rows_peers: needs PyTorch and a GPU", file=sys.stderr)
        return 2
    found = triton.__version__ if triton else "not found"
    print(f"PyTorch {torch.__version__}, Triton {found}\n\n"
          "| row | kernel | us | GB/s | of limit | spread |\n|---|---|---|---|---|---|")
    best = {}
    for name, operation, m, d, launches in rows:
        part = QUICK_PART if options.quick else 1
        best[name] = measure(name, operation, max(1, m // part), d, launches, options)
    if options.ours:
        compare(options.ours, {name: peer for name, peer in best.items() if peer})
    return 0


if __name__ == "__main__":
    sys.exit(main())
