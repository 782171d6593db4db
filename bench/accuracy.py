"""Largest errors of a built-in function, over every K-th f32 of a range, against f64 in NumPy.

    python3 bench/accuracy.py sigmoid [--step 64] [--on gpu] [--jobs 8] [--worst]
    python3 bench/accuracy.py pow [--pairs 1000000] [--on gpu] [--jobs 8]

It builds a kernel of the function, runs it by `build/release/pipec` on the emulator or a GPU, and
prints for each range the largest error in units in the last place and absolutely, with its
argument. Arguments of `pow` are random pairs: of any bases, and of bases near 1, with exponents for
which the result is an f32 or just none; of any bits. `--worst`: the same operations in NumPy, with
errors of `ex2` and `rcp` at both ends of their bounds in the PTX manual (2 ulp and 1 ulp), which no
emulator and no GPU need to have.
"""
import argparse
import concurrent.futures
import math
import os
import subprocess
import tempfile

import numpy as np

PIPEC = "build/release/pipec"
KERNEL = """
kernel values({inputs}, out Y: f32[N]) for sm_90a {{
    grid persistent (t: ceil(N, 1024));
    role work: 8 warps {{
        for t in grid {{ Y[t*1024 + i] = {call} for i in 0 .. 1024; }}
    }}
}}
"""
LEAST_NORMAL = 2.0**-126
NEGATIVE = 1 << 31
PART = 1 << 23


def bits(value):
    return int(np.array([value], dtype=np.float32).view(np.uint32)[0])


erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def two(x):
    return 2 + 0 * x


# The value in f64, and ranges with the bound of each: ulp of the result for x
FUNCTIONS = {
    "expm1": (np.expm1, [(0.0, 88.7, two), (-0.0, -200.0, two)]),
    "log1p": (np.log1p, [(0.0, 3.4e38, lambda x: 1), (-0.0, -0.99999994, lambda x: 1)]),
    "erf": (erf, [(0.0, 10.0, two), (-0.0, -10.0, two)]),
    "sigmoid": (sigmoid, [(0.0, 200.0, lambda x: 4 + 0 * x),
                          (-0.0, -87.0, lambda x: 9 + np.floor(np.abs(1.173 * x)))]),
    "exact(sin)": (np.sin, [(0.0, np.inf, two), (-0.0, -np.inf, two)]),
    "exact(cos)": (np.cos, [(0.0, np.inf, two), (-0.0, -np.inf, two)]),
    "pow": (np.power, [("any base", "any", two), ("bases near 1", "near", two),
                       ("any bits", "bits", two)]),
}
PAIRS = ["pow"]


def arguments(first, last, step):
    """Parts of the range: their first and last bits"""
    sign = NEGATIVE if np.signbit(first) else 0
    low, high = bits(abs(first)), bits(abs(last))
    for start in range(low, high, step * PART):
        yield sign | start, sign | min(high, start + step * PART), step


def numbers(start, end, step):
    return [np.arange(start, end, step, dtype=np.uint64).astype(np.uint32).view(np.float32)]


def pairs(which, seed):
    draw = np.random.default_rng([seed, len(which)])
    any_bits = lambda: draw.integers(0, 1 << 32, PART, dtype=np.uint32).view(np.float32)
    if which == "bits":
        return [any_bits(), any_bits()]
    if which == "near":
        x = np.float32(1) + (draw.uniform(-1, 1, PART) * 2.0 ** draw.uniform(-24, 0, PART)).astype(np.float32)
    else:
        x = (any_bits().view(np.uint32) & np.uint32(0x7FFFFFFF)).view(np.float32)
    power = draw.uniform(-151, 129, PART) / np.log2(x.astype(np.float64))
    return [x, power.astype(np.float32)]


def run(name, inputs, on):
    names = ["X", "Z"][:len(inputs)]
    call = ", ".join("%s[t*1024 + i]" % one for one in names)
    call = name[:-1] + "(" + call + "))" if name.startswith("exact(") else name + "(" + call + ")"
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        with open(path("values.pipe"), "w") as file:
            file.write(KERNEL.format(inputs=", ".join(one + ": f32[N]" for one in names), call=call))
        for one, array in zip(names, inputs):
            np.save(path(one + ".npy"), array)
        subprocess.run([PIPEC, "run", path("values.pipe"), "N=%d" % len(inputs[0])] +
                       ["%s=%s" % (one, path(one + ".npy")) for one in names] +
                       ["--save", "Y=" + path("Y.npy"), "--on", on, "--races", "off", "--no-check"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return np.load(path("Y.npy"))


def moved(value, ulp):
    """The exact value, plus an error, as f32"""
    return (value + ulp * np.spacing(value.astype(np.float32)).astype(np.float64)).astype(np.float32)


def ends_of_sigmoid(x):
    for power_error in (-2, 2):
        for error in (-1, 1):
            power = np.exp2((x * np.float32(-1.4426950408889634)).astype(np.float64))
            total = np.float32(1) + moved(power, power_error)
            yield moved(1 / total.astype(np.float64), error)


WORST = {"sigmoid": ends_of_sigmoid}


def units_of(result, exact):
    """Errors in ulp; overflow counts as the next number after the greatest; NaN for NaN has none"""
    ulp = np.spacing(np.clip(np.abs(exact), LEAST_NORMAL, 3e38).astype(np.float32)).astype(np.float64)
    limit = 2.0**128
    near = np.clip(result.astype(np.float64), -limit, limit)
    units = np.abs(near - np.clip(exact, -limit, limit)) / ulp
    return np.where(np.isnan(exact), np.where(np.isnan(result), 0, np.inf),
                    np.where(np.isnan(result), np.inf, units)), ulp


def part(function, where, on, worst, bound_at):
    """The number of inputs; the largest error, its arguments, the largest absolute one, and that
    above the bound"""
    np.seterr(all="ignore")
    value, ranges = FUNCTIONS[function]
    inputs = pairs(*where) if function in PAIRS else numbers(*where)
    exact = value(*(x.astype(np.float64) for x in inputs))
    most, absolute, over, at = 0.0, 0.0, -np.inf, [x[0] for x in inputs]
    for result in WORST[function](*inputs) if worst else [run(function, inputs, on)]:
        units, ulp = units_of(result, exact)
        if units.max() > most:
            most, at = units.max(), [x[units.argmax()] for x in inputs]
        absolute = max(absolute, np.nanmax(units * ulp))
        over = max(over, (units - ranges[bound_at][2](inputs[0].astype(np.float64))).max())
    return len(inputs[0]), most, at, absolute, over


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("function", choices=sorted(FUNCTIONS))
    parser.add_argument("--step", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=1000000)
    parser.add_argument("--on", default="emulator")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--worst", action="store_true")
    given = parser.parse_args()
    if given.worst and given.function not in WORST:
        parser.error("--worst is only for " + ", ".join(WORST))
    above = False
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        for i, (first, last, _) in enumerate(FUNCTIONS[given.function][1]):
            if given.function in PAIRS:
                wheres = [(last, seed) for seed in range(math.ceil(given.pairs / 3 / PART))]
                name = "%s of %s" % (given.function, first)
            else:
                wheres = list(arguments(first, last, given.step))
                name = "%s on [%g, %g]" % (given.function, first, last)
            parts = [pool.submit(part, given.function, where, given.on, given.worst, i)
                     for where in wheres]
            parts = [one.result() for one in parts]
            count, most, absolute = sum(p[0] for p in parts), max(p[1] for p in parts), max(p[3] for p in parts)
            at = next(p[2] for p in parts if p[1] == most)
            over = max(p[4] for p in parts)
            above |= over > 0
            print("%s, %d inputs: %.2f ulp at %s, 2^%.2f absolutely%s" % (
                name, count, most, ", ".join("%.9g" % x for x in at), np.log2(absolute),
                ", %.2f ulp ABOVE THE BOUND" % over if over > 0 else ", within the bound"))
    return int(above)


if __name__ == "__main__":
    raise SystemExit(main())
