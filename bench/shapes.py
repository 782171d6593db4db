"""Any shape: the chosen variant of a kernel beside cuBLAS (torch.matmul), on a GPU.

    python3 bench/shapes.py FILE.pipe [--set random|transformer] [--seed N] [--count N]
        [--shapes MxNxK,..] [--all] [--tune] [--out FILE]

Draws shapes, or takes those that are given, and times for each the kernel as a call of the library
chooses it, and cuBLAS with its own heuristic, in turns: bursts of graphs of 10 launches, over as
many sets of buffers in turn as hold three times the L2. Random normal data; the first result is
compared with a product in f32. --all also times every other variant and combination of statics, and
prints the regret: time of the choice / time of the best. A candidate whose first burst takes three
times the best so far is dropped. --tune also times what `tune` finds among its 12 candidates, and
saves it as `tune` does. Prints one line per shape and a summary, also without the shapes of few
tiles and long sums; --out appends the measured times as JSON lines.
"""
import argparse
import json
import math
import random
import statistics
import sys

import torch

import pipec

from contenders import LAUNCHES, Burst, kernels_of
from shapes_plot import wants_split

L2 = 3 * 50 * 2**20
BURSTS = 5


def random_shapes(seed, count):
    """M log-uniform 1 .. 16384, a quarter at most 64; K and N log-uniform 8 .. 16384, of each half
    rounded to 64, the others no multiples of 64"""
    draw = random.Random(seed)

    def log(lo, hi):
        return int(round(math.exp(draw.uniform(math.log(lo), math.log(hi)))))

    def rounded():
        if draw.random() < 0.5:
            return max(64, log(64, 16384) // 64 * 64)
        value = log(8, 16384) // 8 * 8
        return max(8, value if value % 64 else value - 8)

    shapes = []
    while len(shapes) < count:
        m = log(1, 64) if len(shapes) % 4 == 0 else log(1, 16384)
        n, k = rounded(), rounded()
        if m * n * k >= 2**24:
            shapes.append((m, n, k))
    return shapes


def transformer_shapes():
    """qkv, out, up, down and head of a 7B and a 70B model"""
    layers = [(12288, 4096), (4096, 4096), (22016, 4096), (4096, 11008), (32000, 4096),
              (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (32000, 8192)]
    return [(m, n, k) for m in (1, 4, 16, 64, 256, 1024, 4096, 16384) for n, k in layers]


class Buffers:
    """Sets of A, B and C for one shape"""

    def __init__(self, m, n, k, seed):
        one = 2 * (m * k + n * k + m * n)
        self.count = min(LAUNCHES, max(3, -(-L2 // one)))
        generator = torch.Generator("cuda").manual_seed(seed)

        def normal(*extents):
            return torch.randn(*extents, device="cuda", dtype=torch.bfloat16, generator=generator)

        self.sets = [(normal(m, k), normal(n, k), torch.full((m, n), math.nan, device="cuda",
                                                            dtype=torch.bfloat16))
                     for _ in range(self.count)]


def ours(kernel, sets):
    def run(i):
        a, b, c = sets[i]
        kernel(a, b, C=c)
    return run


def cublas(sets):
    def run(i):
        a, b, c = sets[i]
        torch.matmul(a, b.t(), out=c)
    return run


def is_right(a, b, c):
    wanted = a.float() @ b.float().t()
    return torch.allclose(c.float(), wanted, rtol=2e-2, atol=2e-2 * math.sqrt(a.shape[1]))


def measure(sets, open_kernel, candidates):
    """{name: seconds}; "cuBLAS" and "chosen" are always there"""
    a, b, c = sets[0]
    open_kernel(a, b, C=c)
    torch.cuda.synchronize()
    if not is_right(a, b, c):
        raise SystemExit("the chosen variant is WRONG")
    bursts = {"cuBLAS": Burst(cublas(sets), len(sets)),
              "chosen": Burst(ours(open_kernel, sets), len(sets))}
    best = bursts["chosen"].times[0]
    for name, kernel in candidates:
        try:
            bursts[name] = Burst(ours(kernel, sets), len(sets))
        except pipec.Error:
            continue
        if bursts[name].times[0] > 3 * best:
            del bursts[name]
        else:
            best = min(best, bursts[name].times[0])
    for _ in range(BURSTS):
        for burst in bursts.values():
            burst.time()
    return {name: burst.median() for name, burst in bursts.items()}


def chosen_name(open_kernel, a, b):
    choice = open_kernel.choose(a, b)
    if choice is None:
        return "", 0.0
    words = " ".join(f"{name}={value}" for name, value in choice.statics.items()
                     if not isinstance(value, str))
    return f"{choice.variant}: {words}" if choice.variant else words, choice.predicted


def summary(what, ratios):
    if ratios:
        print(f"{what}: {len(ratios)} shapes on {torch.cuda.get_device_name()}, geometric mean of "
              f"cuBLAS / ours {geometric(ratios):.3f}; under 0.75: {sum(r < 0.75 for r in ratios)}, "
              f"under 0.55: {sum(r < 0.55 for r in ratios)}, worst {min(ratios):.3f}")


def geometric(ratios):
    return math.exp(statistics.fmean(math.log(min(2.0, ratio)) for ratio in ratios))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--set", choices=["random", "transformer"], default="random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--shapes", type=lambda text: [tuple(map(int, shape.split("x")))
                                                       for shape in text.split(",")])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    open_kernel, candidates = kernels_of(given.file) if given.all else (pipec.load(given.file), [])
    shapes = given.shapes or (transformer_shapes() if given.set == "transformer"
                              else random_shapes(given.seed, given.count))
    ratios, best_ratios, regrets, errors = [], [], [], []
    for index, (m, n, k) in enumerate(shapes):
        try:
            sets = Buffers(m, n, k, index).sets
            tuned = []
            if given.tune:
                open_kernel.tune(*sets[0][:2])
                # what is loaded after it chooses what was tuned, and starts short launches early
                tuned = [("tuned", pipec.load(given.file))]
            times = measure(sets, open_kernel, candidates + tuned)
        except pipec.Error as error:
            print(f"{m}x{n}x{k}: refused, {str(error).strip().splitlines()[0]}")
            ratios.append(((m, n, k), 0.01))
            continue
        name, predicted = chosen_name(open_kernel, *sets[0][:2])
        ratio = times["cuBLAS"] / times["chosen"]
        ratios.append(((m, n, k), ratio))
        errors.append(abs(predicted / times["chosen"] - 1))
        line = (f"{m}x{n}x{k}: {times['chosen'] * 1e6:.2f} us, cuBLAS {times['cuBLAS'] * 1e6:.2f}, "
                f"{ratio:.3f}, predicted {predicted * 1e6:.2f}, {name}")
        if "tuned" in times:
            best_ratios.append(((m, n, k), times["cuBLAS"] / times["tuned"]))
            line += f"; tuned {times['tuned'] * 1e6:.2f}, {best_ratios[-1][1]:.3f}"
        others = {key: value for key, value in times.items()
                  if key not in ("cuBLAS", "chosen", "tuned")}
        if others:
            best = min(others, key=others.get)
            regrets.append(others.get(name, times["chosen"]) / others[best])
            line += f"; best {others[best] * 1e6:.2f}, {best}"
        print(line, flush=True)
        if given.out:
            with open(given.out, "a", encoding="utf-8") as out:
                print(json.dumps({"file": given.file, "device": torch.cuda.get_device_name(),
                                  "sizes": f"M={m} N={n} K={k}",
                                  "times": {name: round(value * 1e6, 3)
                                            for name, value in times.items()}}), file=out)
        del sets
    for what, found in (("", ratios), ("tuned, ", best_ratios)):
        summary(what + "all", [ratio for _, ratio in found])
        for kind, split in (("few tiles, long sums", True), ("others", False)):
            summary(what + kind, [ratio for shape, ratio in found if wants_split(*shape) == split])
    if errors:
        print(f"error of the prediction, median {statistics.median(errors):.3f}")
    for (m, n, k), ratio in sorted(ratios, key=lambda one: one[1])[:10]:
        print(f"  {ratio:.3f} {m}x{n}x{k}")
    if regrets:
        regrets.sort()
        print(f"regret: median {statistics.median(regrets):.3f}, 95 % "
              f"{regrets[int(0.95 * (len(regrets) - 1))]:.3f}, worst {regrets[-1]:.3f}, "
              f"{len(candidates)} candidates")


if __name__ == "__main__":
    sys.exit(main())
