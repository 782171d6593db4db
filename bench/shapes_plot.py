"""The ratios of shapes.py as a plot.

    python3 bench/shapes_plot.py SHAPES.jsonl PLOT.svg

Reads what `shapes.py --out` has written. One dot for each shape: cuBLAS / ours, above 1 where ours is
faster, over the operations of the product; both axes are logarithmic. Few tiles with long sums have
another colour.
"""
import json
import math
import re
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 56, 16, 44, 48
LOW, HIGH = 0.4, 2.0
TICKS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
INK, FAINT, OTHERS, FEW = "#333333", "#dddddd", "#2b6cb0", "#d9822b"


def wants_split(m, n, k):
    """Few tiles and a long sum, which cuBLAS divides among blocks"""
    return -(-m // 128) * -(-n // 128) < 132 / 2 and k > 2048


def read(path):
    """(m, n, k), ratio, the GPU"""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            shape = tuple(map(int, re.findall(r"=(\d+)", row["sizes"])))
            yield shape, row["times"]["cuBLAS"] / row["times"]["chosen"], row["device"]


def text(x, y, words, anchor="middle"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-family="sans-serif" '
            f'font-size="12" fill="{INK}">{words}</text>')


def plot(rows):
    powers = [math.log2(2 * m * n * k) for (m, n, k), _, _ in rows]
    first, last = math.floor(min(powers)), math.ceil(max(powers))

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
    for power in range(first, last + 1, 4):
        yield text(across(power), HEIGHT - BOTTOM + 20, f"2^{power}")
    yield text(WIDTH / 2, HEIGHT - 8, "operations of the product")
    yield text(LEFT, 20, f"cuBLAS / ours, {len(rows)} shapes, {rows[0][2]}", "start")
    for x, colour, words in ((WIDTH - 330, OTHERS, "others"),
                             (WIDTH - 250, FEW, "few tiles with long sums")):
        yield f'<circle cx="{x}" cy="16" r="4" fill="{colour}"/>' + text(x + 10, 20, words, "start")
    for (shape, ratio, _), power in zip(rows, powers):
        yield (f'<circle cx="{across(power):.1f}" cy="{up(ratio):.1f}" r="3.5" fill-opacity="0.7" '
               f'fill="{FEW if wants_split(*shape) else OTHERS}"><title>'
               f'{"x".join(map(str, shape))}: {ratio:.3f}</title></circle>')
    yield "</svg>"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as to:
        print("\n".join(plot(list(read(sys.argv[1])))), file=to)
