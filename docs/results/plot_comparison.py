"""Draws docs/comparison.svg from the tables of 2026-11-benchmarks.md: the time of hvdlite relative to that of
MPI and of PyTorch's DDP over Gloo. Run it after a table has changed: python3 docs/results/plot_comparison.py"""

import html
import math
import pathlib
import re
import statistics

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent / "comparison.svg"
WIDTH, LEFT, RIGHT, ROW = 760, 250, 620, 20
LOWEST, HIGHEST = 0.1, 4
TICKS = (0.1, 0.2, 0.5, 1, 2, 4)
# What is compared with, heading of its table, column of the ratio, rows: begin of the first cell, name.
GROUPS = (
    ("the fastest way to use MPI_Allreduce, 8 ranks", "More ranks on 16 cores", 5,
     (("1 KB", "allreduce of 1 KB"), ("64 KB", "allreduce of 64 KB"), ("1 MB", "allreduce of 1 MB"),
      ("64 MB", "allreduce of 64 MB"))),
    ("the fastest way to use MPI_Allreduce, 2 ranks", "The gradients of a step", 6,
     (("ResNet50", "ResNet50's gradients, as views"), ("transformer", "a transformer's gradients, as views"),
      ("1000 tensors", "1000 gradients of 1 KB, as views"))),
    ("PyTorch's DDP over Gloo: time that a step takes longer, 2 ranks", "Against PyTorch's DDP over Gloo", 3,
     (("ResNet50", "ResNet50"), ("transformer", "a transformer"), ("1000 x", "1000 gradients of 1 KB"))),
)


def ratio_in(cell):
    """(ratio, low, high) of a cell like '0.34 (0.33-0.35)', or of the ratios of some rounds."""
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", cell)]
    return tuple(numbers) if "(" in cell else (statistics.median(numbers), min(numbers), max(numbers))


def row_of(text, heading, column, begin):
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > column and cells[0].startswith(begin):
            return ratio_in(cells[column])
    raise ValueError(f"'{heading}' has no row '{begin}'")


def x_of(ratio):
    return LEFT + math.log(ratio / LOWEST) / math.log(HIGHEST / LOWEST) * (RIGHT - LEFT)


def text_at(x, y, text, attributes=""):
    return f'<text x="{x:.1f}" y="{y}" {attributes}>{html.escape(text, quote=False)}</text>'


def drawn_row(y, name, ratio, low, high):
    colour = "#2a7f62" if high < 1 else "#b5482a"
    return [text_at(LEFT - 10, y + 4, name, 'text-anchor="end"'),
            f'<path d="M{x_of(low):.1f} {y}H{x_of(high):.1f}" stroke="{colour}" stroke-width="3"/>',
            f'<circle cx="{x_of(ratio):.1f}" cy="{y}" r="4.5" fill="{colour}"/>',
            text_at(RIGHT + 15, y + 4, f"{ratio:.2f} ({low:.2f}-{high:.2f})", 'fill="#555"')]


def svg(text):
    lines = []
    y = 24
    for baseline, heading, column, rows in GROUPS:
        lines.append(text_at(10, y, f"against {baseline}", 'font-weight="bold"'))
        for begin, name in rows:
            y += ROW
            lines += drawn_row(y, name, *row_of(text, heading, column, begin))
        y += ROW + 12
    bottom = y - ROW
    grid = [f'<path d="M{x_of(tick):.1f} 32V{bottom}" stroke="{"#333" if tick == 1 else "#ddd"}"/>' for tick in TICKS]
    lines += [text_at(x_of(tick), bottom + 16, f"{tick:g}", 'text-anchor="middle"') for tick in TICKS]
    lines.append(text_at((LEFT + RIGHT) / 2, bottom + 34, "time of hvdlite / time of the other; below 1 hvdlite is faster",
                         'text-anchor="middle"'))
    height = bottom + 44
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            f'font-size="12" fill="#333"><rect width="{WIDTH}" height="{height}" fill="white"/>')
    return "\n".join([head, *grid, *lines, "</svg>", ""])


if __name__ == "__main__":
    CHART.write_text(svg((HERE / "2026-11-benchmarks.md").read_text()))
