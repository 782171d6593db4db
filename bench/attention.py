#!/usr/bin/env python3
"""Measures our attention kernels and cuDNN's, by PyTorch, in one process on the same data. From the
root of the repository:

  bench/attention.py [--row NAME].. [--try KERNEL].. [--rounds N] [--quick] [--list]
                     [--package FOLDER]

Rows are shapes of Q, K and V: random normal numbers in bf16, with the batches and heads before the
rows in memory. KERNEL is FILE.pipe, FILE.pipe:NAME=VALUE,.. or FILE.json, the manifest that `pipec
build` wrote next to FILE.ptx: with --try they are measured instead of those of the rows, in the
rows named or in all. --package: where the Python package is, by default that of `make python`.

Each contender first writes to an output full of NaNs, of which some heads are compared with a
result in f64. A wrong one is not measured. Then bursts of 10 launches between two events, each
after a pause of 50 ms, in rotating order; times are medians. Sets of buffers rotate: at least two,
together at least three times the size of L2. TFLOP/s count 4 operations for each element of Q K^T
and column; causal ones half of that.

Exits with 0 if all was measured; 1: a kernel of ours is refused, wrong or hangs; 2: machine.
"""
import argparse
import collections
import math
import os
import statistics
import sys
import time

BURST, PAUSE, PATIENCE, HEADS = 10, 0.05, 20, 2
Row = collections.namedtuple("Row", "name batches heads length columns causal kernels")
FULL = ("whole.pipe", "peeled.pipe", "scaled.pipe")
CAUSAL = ("causal_if.pipe", "causal_peeled.pipe", "causal_pieces.pipe")
ROWS = (Row("4096", 4, 16, 4096, 128, False, FULL), Row("8192", 2, 16, 8192, 128, False, FULL),
        Row("4096-causal", 4, 16, 4096, 128, True, CAUSAL),
        Row("8192-causal", 2, 16, 8192, 128, True, CAUSAL))


class Data:
    """The buffers of one row, and the expected results of some heads"""

    def __init__(self, row):
        shape = row.batches, row.heads, row.length, row.columns
        least = 3 * torch.cuda.get_device_properties(0).L2_cache_size
        count = max(2, -(-least // (8 * math.prod(shape))))
        generator = torch.Generator(device="cuda").manual_seed(20240607)
        self.row, self.scale = row, 1 / math.sqrt(row.columns)
        self.sets = [[torch.randn(shape, device="cuda", generator=generator).bfloat16()
                      for _ in range(3)] + [torch.empty(shape, device="cuda", dtype=torch.bfloat16)]
                     for _ in range(count)]
        products = 4.0 * math.prod(shape) * row.length
        self.work = products / 2 if row.causal else products
        self.places = [(row.batches - 1) * i // (HEADS - 1) for i in range(HEADS)]
        self.expected = [self.expect(b, (row.heads - 1) * b // max(1, row.batches - 1))
                         for b in self.places]

    def expect(self, batch, head):
        q, k, v = (tensor[batch, head].double() for tensor in self.sets[0][:3])
        scores = q @ k.T * self.scale
        if self.row.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), -math.inf)
        return batch, head, torch.softmax(scores, -1) @ v


def compiled(name):
    """The kernel and how it is loaded"""
    path, _, values = name.partition(":")
    if path.endswith(".json"):
        kernel = pipec.load_image(path, path[:-len("json")] + "ptx")
    else:
        pairs = (value.split("=") for value in values.split(",") if value)
        kernel = pipec.load(path, **{name: int(value) for name, value in pairs})
    print(f"# {name}: by {kernel.prepare()['loaded_by']}", flush=True)
    return kernel.on(programmatic=True)


def ours(name, data):
    """The function of a set's index that launches the kernel. It takes [heads, rows, columns], or
    [batches, rows, heads, columns]."""
    kernel = compiled(name)
    flat = len(kernel.parameters[0].extents) == 3
    sets = [[tensor.flatten(0, 1) if flat else tensor.transpose(1, 2) for tensor in tensors]
            for tensors in data.sets]

    def launch(i):
        q, k, v, o = sets[i]
        kernel(q, k, v, data.scale, O=o)
        return data.sets[i][3]

    return launch


def cudnn(data):
    def launch(i):
        q, k, v, _ = data.sets[i]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=data.row.causal)

    return launch


class Contender:
    def __init__(self, name, launch, peer):
        self.name, self.launch, self.peer, self.next, self.seconds = name, launch, peer, 0, []

    def wait(self, event):
        """A kernel that never ends must not block the machine."""
        start = time.monotonic()
        while not event.query():
            if time.monotonic() - start > PATIENCE:
                print(f"attention: {self.name} does not end within {PATIENCE} s", file=sys.stderr,
                      flush=True)
                os._exit(2 if self.peer else 1)
            time.sleep(2e-5)

    def verify(self, data):
        """None, or what is wrong"""
        data.sets[0][3].fill_(math.nan)
        got = self.launch(0)
        done = torch.cuda.Event()
        done.record()
        self.wait(done)
        for batch, head, want in data.expected:
            error = (got[batch, head].double() - want).abs() - 2e-2 * want.abs()
            worst = error.nan_to_num(nan=math.inf).argmax().item()
            if not error.flatten()[worst].item() <= 4e-3:
                at = batch, head, worst // want.shape[1], worst % want.shape[1]
                return f"O{list(at)} is {got[at].item()}, not {want.flatten()[worst].item()}"
        return None

    def burst(self, data, pause):
        """Seconds of one launch"""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        time.sleep(pause)
        start.record()
        for _ in range(BURST):
            self.launch(self.next % len(data.sets))
            self.next += 1
        end.record()
        self.wait(end)
        return start.elapsed_time(end) * 1e-3 / BURST


def prepared(data, names):
    """The contenders that are right, and the number of ours that are not"""
    fit, failed = [], 0
    for name in [None, *names]:
        try:
            launch = ours(name, data) if name else cudnn(data)
            contender = Contender(name or "cuDNN", launch, not name)
            wrong = contender.verify(data)
        except Exception as error:  # one that does not run must not hide the others
            wrong = str(error)
        if wrong:
            print(f"| {data.row.name} | {name or 'cuDNN'} | failed | | | |", flush=True)
            print(f"attention: {data.row.name}: {name or 'cuDNN'}: {wrong}", file=sys.stderr)
            failed += name is not None
        else:
            fit.append(contender)
    return fit, failed


def measure(row, names, options):
    """Prints the row; the number of our kernels that failed"""
    data = Data(row)
    contenders, failed = prepared(data, names)
    for r in range(-1, options.rounds):  # the first round warms up
        for i in range(len(contenders)):
            contender = contenders[(i + r + 1) % len(contenders)]
            took = contender.burst(data, 0.001 if options.quick else PAUSE)
            if r >= 0:
                contender.seconds.append(took)
    peer = None
    for contender in contenders:
        middle = statistics.median(contender.seconds)
        peer = middle if contender.peer else peer
        spread = 100 * (max(contender.seconds) - min(contender.seconds)) / middle
        ratio = f"{peer / middle:.3f}" if peer else ""
        print(f"| {row.name} | {contender.name} | {middle * 1e6:.1f} |"
              f" {data.work / middle * 1e-12:.1f} | {ratio} | {spread:.1f} % |", flush=True)
    return failed


def options_of(parser):
    parser.add_argument("--row", action="append", help="this row; can be repeated")
    parser.add_argument("--try", action="append", dest="kernels", metavar="KERNEL")
    parser.add_argument("--rounds", type=int, choices=range(1, 100), metavar="N")
    parser.add_argument("--quick", action="store_true", help="short rows and few bursts")
    parser.add_argument("--list", action="store_true", help="prints the rows; needs no GPU")
    parser.add_argument("--package", default="build/release/python")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 15)
    for name in options.row or []:
        if name not in [row.name for row in ROWS]:
            parser.error(f"there is no row {name}")
    return options


def main():
    global F, pipec, SDPBackend, sdpa_kernel, torch
    options = options_of(argparse.ArgumentParser(description=__doc__.split(". ")[0]))
    rows = [row for row in ROWS if not options.row or row.name in options.row]
    if options.list:
        for row in rows:
            print(*row[:-2], "causal:" if row.causal else "full:", *row.kernels)
        return 0
    sys.path.insert(0, options.package)
    try:
        import torch
        import torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel

        import pipec
    except ImportError as error:
        print(f"attention: needs PyTorch and the package of `make python`: {error}",
              file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("attention: needs a GPU", file=sys.stderr)
        return 2
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__},"
          f" cuDNN {torch.backends.cudnn.version()}. Medians over {options.rounds} bursts of"
          f" {BURST} launches.\n\n"
          "| row | kernel | us | TFLOP/s | ours / cuDNN | spread |\n|---|---|---|---|---|---|")
    failed = 0
    for row in rows:
        names = options.kernels or [os.path.join("bench/attention", name) for name in row.kernels]
        if options.quick:
            row = row._replace(length=row.length // 8)
        failed += measure(row, names, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
