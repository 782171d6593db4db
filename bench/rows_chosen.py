"""The rows of rows.def with nothing given: what a call of pipec.kernels' products chooses, beside the
kernel and the statics that a person chose for the row, on a GPU.

    python3 bench/rows_chosen.py [--row NAME].. [--rounds N]

Bursts of graphs of 10 launches in turns, over at least three sets of buffers that hold three times
the L2; medians. Sustained rows: both run for two seconds, in turns, twice; the second one counts.
Random normal data; the first result of each is compared with a product in f32. Prints TFLOP/s and
chosen / by hand: above 1 the choice is faster.
"""
import argparse
import math
import os
import re
import statistics
import time

import torch

import pipec

from contenders import Burst, in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
L2, SUSTAINED = 3 * 50 * 2**20, 2.0
ROW = re.compile(r'ROW\("(\w+)",\s*(\d+),\s*(\d+),\s*(\d+), (\w+), (\w+),[^"]*"([^"]+)"\)')


def rows():
    with open(os.path.join(HERE, "rows.def"), encoding="utf-8") as text:
        for name, m, n, k, kind, regime, kernel in ROW.findall(text.read()):
            yield name, int(m), int(n), int(k), kind, regime, kernel


def buffers(m, n, k, kind):
    """Sets of A, B and C; fp8 operands are scaled so that their largest value is 448"""
    size = 1 if kind == "E4M3" else 2
    count = max(3, -(-L2 // (size * (m * k + n * k) + 2 * m * n)))

    def normal(*extents):
        drawn = torch.randn(*extents, device="cuda")
        if kind == "E4M3":
            return (drawn * (448 / drawn.abs().max())).to(torch.float8_e4m3fn)
        return drawn.bfloat16()

    return [(normal(m, k), normal(n, k), torch.full((m, n), math.nan, device="cuda",
                                                    dtype=torch.bfloat16)) for _ in range(count)]


def by_hand(kernel, sets, scale):
    """Launches of FILE.pipe or FILE.pipe:NAME=VALUE,.."""
    path, _, values = kernel.partition(":")
    statics = {n: int(v) for n, v in (one.split("=") for one in values.split(",") if one)}
    loaded = pipec.load(os.path.join(HERE, "..", path), **statics, untuned=True)
    scales = (scale, scale) if sets[0][0].element_size() == 1 else ()

    def launch(i):
        a, b, c = sets[i]
        loaded(a, b, *scales, C=c)
    return launch


def chosen(sets, scale):
    if sets[0][0].element_size() > 1:
        linear = pipec.load("kernels:linear")

        def launch(i):
            a, b, c = sets[i]
            linear(a, b, C=c)
        return launch
    one = torch.full((), scale, device="cuda")

    def launch_bytes(i):
        a, b, c = sets[i]
        pipec.kernels.scaled_mm(a, b.T, one, one, None, torch.bfloat16, True, out=c)
    return launch_bytes


def check(name, launch, sets, scale):
    a, b, c = sets[0]
    c.fill_(math.nan)
    launch(0)
    wanted = (a.float() @ b.float().t()) * scale**2
    bound = 2e-2 * math.sqrt(a.shape[1]) * (1 if a.element_size() > 1 else (448 * scale / 4)**2)
    if not torch.allclose(c.float(), wanted, rtol=2e-2, atol=bound):
        error = (c.float() - wanted).abs().max().item()
        raise SystemExit(f"{name} is WRONG by {error:.3g}, of values up to {wanted.abs().max():.3g}")


def sustained(contenders, count):
    """{name: seconds of a launch} under load"""
    bursts = {name: Burst(launch, count) for name, launch in contenders}
    found = {}
    for name, burst in list(bursts.items()) * 2:
        end, times = time.monotonic() + SUSTAINED, []
        while time.monotonic() < end:
            times.append(burst.time())
        found[name] = statistics.median(times)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--row", action="append")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}: TFLOP/s")
    ratios = []
    for name, m, n, k, kind, regime, kernel in rows():
        if given.row and name not in given.row:
            continue
        torch.manual_seed(m * n + k)
        sets, scale = buffers(m, n, k, kind), 0.01 if kind == "E4M3" else 1.0
        contenders = [("chosen", chosen(sets, scale)), ("by hand", by_hand(kernel, sets, scale))]
        for contender in contenders:
            check(*contender, sets, scale)
        times = (sustained(contenders, len(sets)) if regime == "SUSTAINED"
                 else in_turns(contenders, len(sets), given.rounds))
        ratios.append(times["by hand"] / times["chosen"])
        work = 2e-12 * m * n * k
        print(f"{name}: chosen {work / times['chosen']:.1f}, by hand {work / times['by hand']:.1f}, "
              f"{ratios[-1]:.3f}  ({kernel})", flush=True)
        del sets, contenders
    print(f"least {min(ratios):.3f}, under 0.98: {sum(ratio < 0.98 for ratio in ratios)}")


if __name__ == "__main__":
    main()
