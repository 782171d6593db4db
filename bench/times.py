"""Files of measured times. Each line is JSON: one kernel with one set of sizes, and the time in
microseconds of every variant and combination of its statics.

    {"file": .., "device": .., "sizes": "M=1 ..", "times": {"large: BN=128 ..": 20.3, ..}}

A line {"names": [..], "file": ..} before others gives the names once; `times` is then a list in
their order, 0 for what took more than twice the least, or was predicted to take longer than the
least by far and left out. A combination without a name was not measured.
python3 bench/times.py FILE.. > OUT writes files so: each file's lines after names of their own.
"""
import itertools
import json
import sys

PEERS = ("cuBLAS", "chosen")


def read(path):
    """The lines of a file, each with a dictionary of times"""
    rows, head = [], {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "names" in row:
                head = row
                continue
            if isinstance(row["times"], list):
                row["times"] = {name: time for name, time in zip(head["names"], row["times"])
                                if time}
                row.update(file=head["file"], names=head["names"])
            rows.append(row)
    return rows


def measured(row):
    """Times of candidates, without those of peers"""
    return {name: time for name, time in row["times"].items() if name not in PEERS}


def kept(row, name):
    time = row["times"].get(name)
    slow = time is None or (name not in PEERS and time > 2 * min(measured(row).values()))
    return 0 if slow else float(f"{time:.4g}")


def write(rows, out):
    names = sorted({name for row in rows for name in row["times"]})
    print(json.dumps({"file": rows[0]["file"], "names": names}), file=out)
    for row in rows:
        times = [kept(row, name) for name in names]
        print(json.dumps({"device": row["device"], "sizes": row["sizes"], "times": times},
                         separators=(",", ":")), file=out)


def parts(rows):
    """The rows in their order, those with the same names together"""
    for _, part in itertools.groupby(rows, lambda row: row.get("names")):
        yield list(part)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for part in parts(read(path)):
            write(part, sys.stdout)
