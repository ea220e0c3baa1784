"""Draws docs/allreduce.svg from the tables of 2026-11-benchmarks.md: the time of hvdlite relative to that of
the fastest way to use MPI, by size. Run it after a table has changed: python3 docs/results/plot_allreduce.py"""

import math
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent / "allreduce.svg"
UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 20, 50
SIZES = (4, 256 << 20)
# Heading of the table, column of the ratio, name, colour.
SERIES = (("Allreduce of one array against MPI_Allreduce", 3, "2 ranks, 2 cores", "#1f5fa8"),
          ("More ranks on 16 cores", 5, "8 ranks, 16 cores", "#b5482a"))


def ratios(text, heading, column):
    """The (bytes, ratio) of each row of the table below a heading."""
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        size = re.fullmatch(r"(\d+) (B|KB|MB)", cells[0])
        if size:
            rows.append((int(size[1]) * UNITS[size[2]], float(cells[column].split()[0])))
    return rows


def x_of(size):
    low, high = (math.log2(end) for end in SIZES)
    return LEFT + (math.log2(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def y_of(ratio):
    return HEIGHT - BOTTOM - ratio / 1.25 * (HEIGHT - TOP - BOTTOM)


def text_at(x, y, text, anchor="middle", colour="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def svg(text):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for ratio in (0, 0.25, 0.5, 0.75, 1, 1.25):
        y = y_of(ratio)
        colour, width = ("#333", 1.5) if ratio == 1 else ("#ddd", 1)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{colour}" stroke-width="{width}"/>')
        lines.append(text_at(LEFT - 6, y + 4, f"{ratio:g}", "end"))
    lines.append(text_at(WIDTH - RIGHT + 8, y_of(1) + 4, "1: as fast as MPI", "start"))
    for label, size in (("4 B", 4), ("64 B", 64), ("1 KB", 1 << 10), ("16 KB", 16 << 10), ("256 KB", 256 << 10),
                        ("4 MB", 4 << 20), ("64 MB", 64 << 20)):
        lines.append(text_at(x_of(size), HEIGHT - BOTTOM + 18, label))
    lines.append(text_at((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "size of the array"))
    lines.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)" '
                 'text-anchor="middle" fill="#333">time / fastest MPI</text>')
    for number, (heading, column, name, colour) in enumerate(SERIES):
        points = [(x_of(size), y_of(ratio)) for size, ratio in ratios(text, heading, column)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        lines.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        lines.append(text_at(WIDTH - RIGHT + 8, HEIGHT - BOTTOM - 40 + 18 * number, name, "start", colour))
    return "\n".join(lines + ["</svg>", ""])


if __name__ == "__main__":
    CHART.write_text(svg((HERE / "2026-11-benchmarks.md").read_text()))
