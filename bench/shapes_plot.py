"""The ratios of shapes.py or of rows_any.py as a plot.

    python3 bench/shapes_plot.py MEASURED.jsonl PLOT.svg

Reads what `--out` of either has written. One dot for each shape: the time of the peer / ours, above
1 where ours is faster; both axes are logarithmic. Products are over their operations, and those of
few tiles with long sums have another colour; rows are over their length, and each kernel has its
colour.
"""
import json
import math
import re
import sys
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 56, 16, 44, 48
LOW, HIGH = 0.4, 2.0
TICKS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
INK, FAINT, COLOURS = "#333333", "#dddddd", ("#2b6cb0", "#d9822b", "#2f855a", "#97266d")


class Point(NamedTuple):
    power: float  # of two, along the first axis
    ratio: float
    group: str
    shape: str


def wants_split(m, n, k):
    """Few tiles and a long sum, which cuBLAS divides among blocks"""
    return -(-m // 128) * -(-n // 128) < 132 / 2 and k > 2048


def product(row):
    m, n, k = map(int, re.findall(r"=(\d+)", row["sizes"]))
    group = "few tiles with long sums" if wants_split(m, n, k) else "others"
    return Point(math.log2(2 * m * n * k), row["times"]["cuBLAS"] / row["times"]["chosen"], group,
                 f"{m}x{n}x{k}")


def rows(row):
    return Point(math.log2(row["d"]), row["ratio"], row["kernel"], f"{row['m']}x{row['d']}")


def read(path):
    """The points, the words of the first axis and of the ratio, the GPU"""
    with open(path, encoding="utf-8") as lines:
        measured = [json.loads(line) for line in lines]
    of_rows = "kernel" in measured[0]
    words = (("length of a row", "fastest of PyTorch, torch.compile, Triton / ours") if of_rows
             else ("operations of the product", "cuBLAS / ours"))
    return [(rows if of_rows else product)(row) for row in measured], *words, measured[0]["device"]


def text(x, y, words, anchor="middle"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-family="sans-serif" '
            f'font-size="12" fill="{INK}">{words}</text>')


def legend(groups):
    x = WIDTH - RIGHT
    for group, colour in reversed(groups.items()):
        x -= 7 * len(group) + 24
        yield f'<circle cx="{x}" cy="32" r="4" fill="{colour}"/>' + text(x + 10, 36, group, "start")


def plot(points, axis, ratio, device):
    first = math.floor(min(point.power for point in points))
    last = math.ceil(max(point.power for point in points))
    groups = dict(zip(sorted({point.group for point in points}, reverse=True), COLOURS))

    def across(power):
        return LEFT + (power - first) / max(1, last - first) * (WIDTH - LEFT - RIGHT)

    def up(ratio):
        part = math.log(min(HIGH, max(LOW, ratio)) / LOW) / math.log(HIGH / LOW)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}">')
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for tick in TICKS:
        colour = INK if tick == 1 else FAINT
        yield (f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" '
               f'stroke="{colour}"/>')
        yield text(LEFT - 8, up(tick) + 4, f"{tick:g}", "end")
    for power in range(first, last + 1, 4 if last - first > 20 else 2):
        yield text(across(power), HEIGHT - BOTTOM + 20, f"2^{power}")
    yield text(WIDTH / 2, HEIGHT - 8, axis)
    yield text(LEFT, 16, f"{ratio}, {len(points)} shapes, {device}", "start")
    yield from legend(groups)
    for point in points:
        yield (f'<circle cx="{across(point.power):.1f}" cy="{up(point.ratio):.1f}" r="3.5" '
               f'fill-opacity="0.7" fill="{groups[point.group]}"><title>'
               f'{point.shape}: {point.ratio:.3f}</title></circle>')
    yield "</svg>"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as to:
        print("\n".join(plot(*read(sys.argv[1]))), file=to)
