"""What the measurements of kernels on a GPU share: bursts, and the combinations of a file."""
import itertools
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

import pipec

LAUNCHES = 10


class Burst:
    """A graph of launches; time() replays it once and gives the seconds of one launch"""

    def __init__(self, launch, count):
        """`launch(i)` uses set i of `count` sets of buffers"""
        launch(0)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(LAUNCHES):
                launch(i % count)
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.times = []
        self.time()

    def time(self):
        self.begin.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        self.times.append(self.begin.elapsed_time(self.end) * 1e-3 / LAUNCHES)
        return self.times[-1]

    def median(self):
        return statistics.median(self.times[1:])


def in_turns(contenders, count, rounds):
    """{name: seconds} of (name, launch); one that fails is left out, and printed"""
    bursts = {}
    for name, launch in contenders:
        try:
            bursts[name] = Burst(launch, count)
        except Exception as error:  # a peer that does not run must not hide the others
            said = str(error).strip().splitlines()
            print(f"  {name}: {said[0] if said else type(error)}", file=sys.stderr)
    for _ in range(rounds):
        for burst in bursts.values():
            burst.time()
    return {name: burst.median() for name, burst in bursts.items()}


def kernels_of(file):
    """(name, kernel) of every variant and combination that can be built, loaded in parallel"""
    open_kernel = pipec.load(file)
    with open(file, encoding="utf-8") as text:
        variants = [line.split()[1] for line in text if line.strip().startswith("variant ")]
    wanted = []
    for variant in variants or [None]:
        one = open_kernel.using(variant=variant) if variant else open_kernel
        # the type of the elements is the tensors'
        choices = {n: v for n, v in one.choices.items() if not isinstance(v[0], str)}
        for values in itertools.product(*choices.values()):
            wanted.append((variant, dict(zip(choices, values))))

    def build(item):
        variant, statics = item
        try:
            kernel = pipec.load(file, variant=variant, **statics)
            kernel.prepare()
        except pipec.Error:
            return None
        words = " ".join(f"{name}={value}" for name, value in statics.items())
        return f"{variant}: {words}" if variant else words, kernel

    with ThreadPoolExecutor(16) as pool:
        return open_kernel, [one for one in pool.map(build, wanted) if one]
