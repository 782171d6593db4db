"""Fits the correction of the model's times (launch/trees.def) to measured times.

    python3 bench/fit.py [--facts PROGRAM] [--held N] [FILE..] > launch/trees.def

Reads files of times (bench/times.py; without any, bench/linear.jsonl and linear_near.jsonl, whose
shapes were measured with some of the candidates near the least only), and what the model knows of
each candidate from build/release/bench/facts. Every Nth line (5) is held out: python3 bench/regret.py
--every N then says how good the choice is for shapes that were not used. Boosted trees of scikit-learn
predict the logarithm of measured / predicted time, of candidates near the least predicted time: a
choice corrects no others. What all candidates of a shape have in common does not change the choice,
so that only a part of it is fitted. Candidates count less the more they lose, and not at all beyond
half the time of the best. Times of the newest machine count more. What it found is printed on
standard error.
"""
import argparse
import collections
import re
import subprocess
import sys

import numpy
from sklearn.ensemble import HistGradientBoostingRegressor

import times

MEASURED = ["bench/linear.jsonl", "bench/linear_near.jsonl"]
TREES, DEPTH, UNIT = 200, 5, 1e-4
# A candidate is fitted within WIDER times the limit of what a choice corrects
WIDER, IN_COMMON = 1.15, 0.3
RATE, LEAST_LEAF, LOST, LOST_MOST = 0.12, 50, 0.3, 0.5
NEWEST, NEWEST_COUNTS = "H200", 4


def limit_of_near():
    """Of which candidates a choice corrects the time: launch/launch.h has the number"""
    with open("launch/launch.h", encoding="utf-8") as header:
        return float(re.search(r"^#define MODEL_NEAR (\S+)$", header.read(), re.MULTILINE)[1])


def facts_of(program, rows):
    """{row: {candidate: (predicted, facts)}}"""
    groups = collections.defaultdict(list)
    for index, row in enumerate(rows):
        groups[row["file"], "h100" if "H100" in row["device"] else "h200"].append(index)
    found = collections.defaultdict(dict)
    for (file, machine), list_of in groups.items():
        sizes = "".join(rows[index]["sizes"] + "\n" for index in list_of)
        out = subprocess.run([program, file, machine], input=sizes, capture_output=True, text=True,
                             check=True).stdout
        for line in out.splitlines():
            number, name, predicted, *facts = line.split("\t")
            found[list_of[int(number)]][name] = (float(predicted), facts)
    return found


class Samples:
    """Candidates with a time and a prediction, those of a row together"""

    def __init__(self, program, rows):
        found = facts_of(program, rows)
        of, time, model, facts = [], [], [], []
        for index, row in enumerate(rows):
            for name, measured in times.measured(row).items():
                if name in found[index]:
                    of.append(index)
                    time.append(measured)
                    model.append(found[index][name][0])
                    facts.append(found[index][name][1])
        self.of, self.time, self.model = map(numpy.array, (of, time, model))
        self.facts = numpy.array(facts, dtype=numpy.float32)
        best = numpy.full(len(rows), numpy.inf)
        numpy.minimum.at(best, self.of, self.time)
        self.lost = numpy.log(self.time / best[self.of])
        newest = numpy.array([NEWEST in row["device"] for row in rows])[self.of]
        worth = numpy.exp(-self.lost / LOST)
        self.weight = worth * numpy.where(newest, NEWEST_COUNTS, 1)
        self.wanted = numpy.log(self.time / self.model)
        least = numpy.full(len(rows), numpy.inf)
        numpy.minimum.at(least, self.of, self.model)
        self.near = self.model <= WIDER * limit_of_near() * least[self.of]
        self.wanted -= (1 - IN_COMMON) * self.mean_of_near(worth, len(rows))

    def mean_of_near(self, worth, rows):
        """Of each candidate's shape: what those near the least have in common"""
        worth = worth * self.near
        total = numpy.bincount(self.of, worth * self.wanted, rows)
        return (total / numpy.maximum(numpy.bincount(self.of, worth, rows), 1e-9))[self.of]


def fit(samples, use):
    trees = HistGradientBoostingRegressor(max_iter=TREES, max_depth=DEPTH, max_leaf_nodes=2**DEPTH,
                                          learning_rate=RATE, min_samples_leaf=LEAST_LEAF,
                                          early_stopping=False, random_state=0)
    return trees.fit(samples.facts[use], samples.wanted[use],
                     sample_weight=samples.weight[use])


def say(what, samples, use, correction):
    """Regret and error as the choice has them: only what is near the least is corrected"""
    regrets, errors, close = [], [], limit_of_near()
    for row in numpy.unique(samples.of[use]):
        at = numpy.flatnonzero(samples.of == row)
        model = samples.model[at]
        near = at[model <= close * model.min()]
        corrected = samples.model[near] * numpy.exp(correction[near])
        regrets.append(numpy.exp(samples.lost[near[numpy.argmin(corrected)]]))
        errors += list(numpy.abs(corrected / samples.time[near] - 1))
    print(f"{what}: {len(regrets)} shapes, regret mean {numpy.mean(regrets):.3f}, median "
          f"{numpy.median(regrets):.3f}, 95 % {numpy.quantile(regrets, 0.95):.3f}, worst "
          f"{max(regrets):.3f}, error {numpy.median(errors):.3f}", file=sys.stderr)


def spread(nodes, node, at, out, start):
    """Writes the subtree as one of full depth: a leaf above it fills all leaves below"""
    facts, most, leaves = out
    row = nodes[node]
    if at >= len(facts):
        leaves[at - len(facts)] = round((row["value"] + start) / UNIT)
        return
    if not row["is_leaf"]:
        facts[at], most[at] = row["feature_idx"], row["num_threshold"]
    left, right = (node, node) if row["is_leaf"] else (row["left"], row["right"])
    spread(nodes, left, 2 * at + 1, out, start)
    spread(nodes, right, 2 * at + 2, out, start)


def tables(model):
    """Of each tree: facts, limits, leaves. scikit-learn has no public view of them."""
    start = float(numpy.ravel(model._baseline_prediction)[0])  # pylint: disable=protected-access
    for (one,) in model._predictors:  # pylint: disable=protected-access
        out = ([0] * (2**DEPTH - 1), [0.0] * (2**DEPTH - 1), [0] * 2**DEPTH)
        spread(one.nodes, 0, 0, out, start)
        start = 0
        yield out


def wrapped(words):
    """Lines of less than 100 characters"""
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 88:
            lines.append(line.rstrip())
            line = ""
        line += word + ", "
    return "\n    ".join(lines + [line.rstrip(", ")])


def print_tables(samples, model):
    print("/* Made by bench/fit.py from bench/linear*.jsonl. FORM: the depth of all trees, the unit of "
          "a leaf.\n * RANGE: least and most of a fact, in the order of facts.def. TREE: the fact of "
          "each node, the most\n * of it on the left, the leaves in units. */")
    print(f"FORM({DEPTH}, {UNIT:g})")
    for least, most in zip(samples.facts.min(axis=0), samples.facts.max(axis=0)):
        print(f"RANGE({least:.9g}, {most:.9g})")
    for facts, most, leaves in tables(model):
        print("TREE({" + wrapped(map(str, facts)) + "},\n    {"
              + wrapped(f"{number:.6g}" for number in most) + "},\n    {"
              + wrapped(map(str, leaves)) + "})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", default=MEASURED)
    parser.add_argument("--facts", default="build/release/bench/facts")
    parser.add_argument("--held", type=int, default=5)
    given = parser.parse_args()
    samples = Samples(given.facts, [row for path in given.files for row in times.read(path)])
    held = samples.of % given.held == 0
    model = fit(samples, ~held & samples.near & (samples.lost < LOST_MOST))
    correction = model.predict(samples.facts)
    say("fitted", samples, ~held, correction)
    say("held out", samples, held, correction)
    say("held out, not corrected", samples, held, 0 * correction)
    print_tables(samples, model)


if __name__ == "__main__":
    main()
