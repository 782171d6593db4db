"""Replays the choice of the model from measured times, without a GPU.

    python3 bench/regret.py [PIPEC] [--file FILE] [--every N] [--limits MEDIAN,WORST,ERROR]

Reads a file of times (bench/times.py; bench/choices.jsonl, bench/linear.jsonl, or what bench/shapes.py
--all wrote). --every reads every Nth line: those of bench/linear.jsonl at 5 were held out when
bench/fit.py made launch/trees.def. Prints the regret (time of the choice / time of the best) of each
kernel, the same over all kernels that compute the same product, and the error of the predicted
times. With --limits, ends with 1 if the median regret, the worst one, or the median error over all
is above its limit. The choice is among the combinations that were measured (`names`).
"""
import argparse
import collections
import json
import statistics
import subprocess
import sys

import times


def predicted(pipec, row):
    words = row["sizes"].split()
    machine = "h100" if "H100" in row.get("device", "") else "h200"
    out = subprocess.run([pipec, "choose", row["file"], *words, "--machine", machine,
                          "--format=json"], capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)["candidates"]
    return {candidate_name(one): one["predicted"] * 1e6 for one in found}


def candidate_name(candidate):
    """"BM=64", or "VARIANT: BM=64", as bench/shapes.py writes it"""
    variant = candidate["kernel"].partition(":")[2]
    return f"{variant}: {candidate['values']}" if variant else candidate["values"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pipec", nargs="?", default="build/release/pipec")
    parser.add_argument("--file", default="bench/choices.jsonl")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--limits")
    given = parser.parse_args()
    pipec = given.pipec
    regrets, errors = collections.defaultdict(list), collections.defaultdict(list)
    shapes = collections.defaultdict(dict)
    for row in times.read(given.file)[::given.every]:
        model = predicted(pipec, row)
        if "names" in row:
            model = {one: time for one, time in model.items() if one in row["names"]}
        measured = times.measured(row)
        known = {one: time for one, time in measured.items() if one in model}
        if len(known) != len(measured):
            sys.exit(f"{row['file']} {row['sizes']}: the combinations have changed; measure again")
        # what was dropped took more than twice the least, or three times
        dropped = 3 * min(known.values())
        chosen = min(model, key=model.get)
        regrets[row["file"]].append((known.get(chosen, dropped) / min(known.values()),
                                     row["sizes"], chosen))
        errors[row["file"]] += [abs(model[values] / time - 1) for values, time in known.items()]
        for values in model:
            time = known.get(values, dropped)
            shapes[row["sizes"], row["device"]][row["file"], values] = (time, model[values])
    for (sizes, _), all_of in shapes.items():
        chosen = min(all_of, key=lambda one: all_of[one][1])
        best = min(time for time, _ in all_of.values())
        regrets["all of them"].append((all_of[chosen][0] / best, sizes, " ".join(chosen)))
    for name, list_of in regrets.items():
        worst = max(list_of)
        error = f", error of the time {statistics.median(errors[name]):.3f}" if name in errors else ""
        print(f"{name}: {len(list_of)} sizes, regret median "
              f"{statistics.median(one[0] for one in list_of):.3f}, worst {worst[0]:.3f} "
              f"({worst[1]}: {worst[2]}){error}")
    median = statistics.median(one[0] for one in regrets["all of them"])
    ordered = sorted(one[0] for one in regrets["all of them"])
    worst = ordered[-1]
    error = statistics.median([one for list_of in errors.values() for one in list_of])
    print(f"all: regret median {median:.3f}, 95 % {ordered[int(0.95 * (len(ordered) - 1))]:.3f}, "
          f"worst {worst:.3f}, error {error:.3f}")
    if given.limits:
        most = [float(number) for number in given.limits.split(",")]
        sys.exit(any(is_now > at_most for is_now, at_most in zip((median, worst, error), most)))


if __name__ == "__main__":
    main()
