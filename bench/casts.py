"""Casts of every K-th f32 to e4m3 and e5m2: their bits beside a table of the numbers of each type.

    python3 bench/casts.py [--step 64] [--on gpu|emulator|both] [--jobs 8]

It builds a kernel, runs it by `build/release/pipec`, and finds each result again by a search in the
table: the nearest number, of two equally near ones that with the even bits, the largest one of what
is too large, NaN for NaN. `both`: on a GPU and on the emulator. Besides, `pipec run` checks
`ensures` by its own function, on a sample.
"""
import argparse
import concurrent.futures
import os
import subprocess
import tempfile

import numpy as np

PIPEC = "build/release/pipec"
KERNEL = """
kernel casts(X: f32[N], out A: e4m3[N], out B: e5m2[N]) for sm_90a {
    ensures { A[i] == e4m3(X[i]); B[i] == e5m2(X[i]); }
    grid persistent (t: ceil(N, 1024));
    role work: 8 warps {
        for t in grid {
            A[t*1024 + i] = e4m3(X[t*1024 + i]) for i in 0 .. 1024;
            B[t*1024 + i] = e5m2(X[t*1024 + i]) for i in 0 .. 1024;
        }
    }
}
"""
PART = 1 << 24
# bits of the exponent and of the fraction, bits of the largest number, NaN
TYPES = {"A": ("e4m3", 4, 3, 0x7E, 0x7F), "B": ("e5m2", 5, 2, 0x7B, 0x7F)}


def numbers(exponent, fraction, largest):
    bits = np.arange(largest + 1)
    power, rest = bits >> fraction, bits & ((1 << fraction) - 1)
    least = 2 - (1 << (exponent - 1)) - fraction
    return np.where(power == 0, rest, rest + (1 << fraction)) * 2.0 ** (np.maximum(power, 1) - 1 + least)


def expected(x, exponent, fraction, largest, nan):
    table = numbers(exponent, fraction, largest)
    middle = (table[:-1] + table[1:]) / 2
    size = np.abs(x).astype(np.float64)
    bits = np.searchsorted(middle, size, side="left")  # a tie: the lower one
    at = np.minimum(bits, len(middle) - 1)
    bits = bits + ((bits % 2 == 1) & (size == middle[at]))
    return np.where(np.isnan(x), nan, bits | np.signbit(x) * 0x80).astype(np.uint8)


def run(x, on):
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        with open(path("casts.pipe"), "w") as file:
            file.write(KERNEL)
        np.save(path("x.npy"), x)
        subprocess.run([PIPEC, "run", path("casts.pipe"), "N=%d" % len(x), "X=" + path("x.npy"),
                        "--save", "A=" + path("a.npy"), "--save", "B=" + path("b.npy"), "--on", on,
                        "--races", "off"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {name: np.load(path(name.lower() + ".npy")).view(np.uint8) for name in TYPES}


def part(start, step, places):
    """The casts, and of each type and place how many are wrong, with the first of them"""
    bits = np.arange(start, min(1 << 32, start + step * PART), step, dtype=np.uint64)
    x = bits.astype(np.uint32).view(np.float32)
    found = {}
    np.seterr(all="ignore")
    for on in places:
        for name, result in run(x, on).items():
            wanted = expected(x, *TYPES[name][1:])
            differ = result != wanted
            at = differ.argmax()
            found[TYPES[name][0], on] = int(differ.sum()), (x[at], result[at], wanted[at])
    return len(x), found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--step", type=int, default=64)
    parser.add_argument("--on", default="emulator", choices=["gpu", "emulator", "both"])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    places = ["gpu", "emulator"] if given.on == "both" else [given.on]
    starts = range(0, 1 << 32, given.step * PART)
    count, wrong, first = 0, {}, {}
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        for casts, found in pool.map(part, starts, [given.step] * len(starts), [places] * len(starts)):
            count += casts
            for key, (number, example) in found.items():
                wrong[key] = wrong.get(key, 0) + number
                if number:
                    first.setdefault(key, example)
    for (name, on), number in wrong.items():
        print("%s on %s: %d of %d casts are wrong" % (name, on, number, count))
        if number:
            print("  the first: of %.9g 0x%02X, not 0x%02X" % first[name, on])
    return any(wrong.values())


if __name__ == "__main__":
    raise SystemExit(main())
