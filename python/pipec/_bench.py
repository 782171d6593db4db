"""Measures calls of a kernel on a GPU, beside other callables that do the same work."""

import time
from collections import namedtuple

from . import _pipec

_ROUNDS = 9  # odd, so that one of them is the median
_BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1,
          "i32": 4, "u32": 4, "i64": 8, "u64": 8}
# Floating-point operations of dense products that an SM of Hopper does in a cycle, by the type of
# an operand
_FLOPS = {"e4m3": 8192, "e5m2": 8192, "f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256}


class Timing(namedtuple("Timing", "name seconds spread host_seconds bytes_per_second "
                                  "flops_per_second share limit")):
    """A row of bench(): `seconds` of a call, the median of rounds, (slowest - fastest) / median;
    seconds that the host takes for a call; bytes of the kernel's tensors, each read or written
    once, by seconds; `flops` by seconds, or None; and which share of the GPU's limit that is: of its
    "memory" or its "arithmetic", whichever takes longer for this work."""

    __slots__ = ()

    @property
    def is_host_bound(self):
        """The GPU waits for the host: a graph of these calls would be faster."""
        return self.host_seconds > 0.9 * self.seconds

    def __str__(self):
        flops = self.flops_per_second
        words = [f"{1e6 * self.seconds:10.2f} us", f"{1e-9 * self.bytes_per_second:9.1f} GB/s",
                 f"{1e-12 * flops:9.1f} TFLOP/s" if flops is not None else "",
                 f"{100 * self.share:6.1f} % of the {self.limit}"]
        if self.is_host_bound:
            words.append("(the host is the limit)")
        return " ".join([self.name.ljust(12), *filter(None, words)])


class Bench(tuple):
    """The Timings of bench(), that of the kernel first."""

    def __repr__(self):
        return "\n".join(map(str, self))


def _tensors(kernel, args, named, result):
    """[(parameter, tensor)] of a call and its result"""
    names = {p.name for p in kernel.parameters}
    given = kernel.__signature__.bind(*args, **{n: x for n, x in named.items() if n in names})
    outputs = [p.name for p in kernel.parameters if p.mode == "out"]
    results = dict(zip(outputs, result if len(outputs) > 1 else (result,)))
    tensors = {**given.arguments, **results}
    return [(p, tensors[p.name]) for p in kernel.parameters if p.is_tensor]


def _bytes(tensors):
    total = 0
    for parameter, tensor in tensors:
        size = _BYTES[parameter.type] * (2 if parameter.mode == "inout" else 1)
        for extent in tensor.shape:
            size *= extent
        total += size
    return total


def _limit(kernel, device, moved, flops):
    """(seconds that the GPU needs at least, and for what)"""
    multiprocessors, clock, memory_clock, bus = _pipec.rates(device)
    limits = [(moved / (2e3 * memory_clock * bus / 8), "memory")]  # two transfers in a cycle
    kind = next((p.type for p in kernel.parameters if p.is_tensor and p.type in _FLOPS), None)
    if flops is not None and kind is not None:
        limits.append((flops / (1e3 * clock * multiprocessors * _FLOPS[kind]), "arithmetic"))
    return max(limits)


def _round(call, count, device):
    """(seconds of a call, seconds of the host)"""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    called = time.perf_counter()
    _pipec.wait(device)
    return (time.perf_counter() - begin) / count, (called - begin) / count


def _count(call, device, seconds):
    """How many calls take `seconds`"""
    count = 1
    while True:
        one, _ = _round(call, count, device)
        if one * count >= seconds / 4 or count >= 1 << 20:
            return max(1, min(1 << 20, round(seconds / one)))
        count *= 4


def bench(kernel, *args, beside=None, flops=None, seconds=0.5, **named):
    """Measures calls of a kernel with these arguments, tensors of a GPU, for some `seconds`, and
    beside it other callables without arguments: one, or a dict by name. They take turns. `flops` is
    the number of floating-point operations of a call, such as 2 * M * N * K. Returns a Bench, which
    prints as a table. What fits into the L2 cache stays there between calls."""
    device = kernel._values(*args, **named)[1]
    if device < 0:
        raise ValueError("bench() measures calls on a GPU, but the tensors of "
                         f"{kernel.__name__} are on the host, where the emulator runs them: pass tensors of a GPU")
    if callable(beside):
        beside = {getattr(beside, "__name__", "beside"): beside}
    calls = {kernel.__name__: lambda: kernel(*args, **named), **(beside or {})}
    result = kernel(*args, **named)
    moved = _bytes(_tensors(kernel, args, named, result))
    least, limit = _limit(kernel, device, moved, flops)
    counts = {name: _count(call, device, seconds / _ROUNDS / len(calls))
              for name, call in calls.items()}
    rounds = [{name: _round(call, counts[name], device) for name, call in calls.items()}
              for _ in range(_ROUNDS)]
    return Bench(_timing(name, [r[name] for r in rounds], moved, flops, least, limit)
                 for name in calls)


def _timing(name, rounds, moved, flops, least, limit):
    times, hosts = (sorted(column) for column in zip(*rounds))
    seconds = times[_ROUNDS // 2]
    return Timing(name, seconds, (times[-1] - times[0]) / seconds, hosts[_ROUNDS // 2],
                  moved / seconds, None if flops is None else flops / seconds, least / seconds,
                  limit)
