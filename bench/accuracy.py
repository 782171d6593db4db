"""Largest errors of a built-in function, over every K-th f32 of a range, against f64 in NumPy.

    python3 bench/accuracy.py sigmoid [--step 64] [--on gpu] [--worst]

It builds a kernel of the function, runs it by `build/release/pipec` on the emulator or a GPU, and
prints for each range the largest error in units in the last place and absolutely, with its
argument. `--worst`: the same operations in NumPy, with errors of `ex2` and `rcp` at both ends of
their bounds in the PTX manual (2 ulp and 1 ulp), which no emulator and no GPU need to have.
"""
import argparse
import math
import os
import subprocess
import tempfile

import numpy as np

PIPEC = "build/release/pipec"
KERNEL = """
kernel values(X: f32[N], out Y: f32[N]) for sm_90a {{
    grid persistent (t: ceil(N, 1024));
    role work: 8 warps {{
        for t in grid {{ Y[t*1024 + i] = {0}(X[t*1024 + i]) for i in 0 .. 1024; }}
    }}
}}
"""
LEAST_NORMAL = 2.0**-126
NEGATIVE = 1 << 31




def bits(value):
    return int(np.array([value], dtype=np.float32).view(np.uint32)[0])


erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# The value in f64, and ranges with the bound of each: ulp of the result for x
FUNCTIONS = {
    "expm1": (np.expm1, [(0.0, 88.7, lambda x: 2), (-0.0, -200.0, lambda x: 2)]),
    "log1p": (np.log1p, [(0.0, 3.4e38, lambda x: 1), (-0.0, -0.99999994, lambda x: 1)]),
    "erf": (erf, [(0.0, 10.0, lambda x: 2), (-0.0, -10.0, lambda x: 2)]),
    "sigmoid": (sigmoid, [(0.0, 200.0, lambda x: 4 + 0 * x),
                          (-0.0, -87.0, lambda x: 9 + np.floor(np.abs(1.173 * x)))]),
}


def arguments(first, last, step):
    sign = NEGATIVE if np.signbit(first) else 0
    low, high = bits(abs(first)), bits(abs(last))
    for start in range(low, high, step << 22):
        every = np.arange(start, min(high, start + (step << 22)), step, dtype=np.uint32)
        yield (every | np.uint32(sign)).view(np.float32)


def run(name, x, on):
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        with open(path("values.pipe"), "w") as file:
            file.write(KERNEL.format(name))
        np.save(path("x.npy"), x)
        subprocess.run([PIPEC, "run", path("values.pipe"), "N=%d" % len(x), "X=" + path("x.npy"),
                        "--save", "Y=" + path("y.npy"), "--on", on, "--races", "off"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return np.load(path("y.npy"))


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("function", choices=sorted(FUNCTIONS))
    parser.add_argument("--step", type=int, default=64)
    parser.add_argument("--on", default="emulator")
    parser.add_argument("--worst", action="store_true")
    given = parser.parse_args()
    if given.worst and given.function not in WORST:
        parser.error("--worst is only for " + ", ".join(WORST))
    np.seterr(all="ignore")
    value, ranges = FUNCTIONS[given.function]
    for first, last, bound in ranges:
        count, most, absolute, over, at = 0, 0.0, 0.0, 0.0, first
        for x in arguments(first, last, given.step):
            exact = value(x.astype(np.float64))
            ulp = np.spacing(np.maximum(np.abs(exact), LEAST_NORMAL).astype(np.float32))
            results = WORST[given.function](x) if given.worst else [run(given.function, x, given.on)]
            for result in results:
                error = np.abs(result.astype(np.float64) - exact)
                units = error / ulp.astype(np.float64)
                if units.max() > most:
                    most, at = units.max(), x[units.argmax()]
                absolute = max(absolute, error.max())
                over = max(over, (units - bound(x.astype(np.float64))).max())
            count += len(x)
        print("%s on [%g, %g], %d inputs: %.2f ulp at %.9g, 2^%.2f absolutely%s" % (
            given.function, first, last, count, most, at, np.log2(absolute),
            ", %.2f ulp ABOVE THE BOUND" % over if over > 0 else ", within the bound"))


if __name__ == "__main__":
    main()
