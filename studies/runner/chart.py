"""Bar and line charts as small SVG images, readable on light and dark backgrounds."""

import colorsys
import math
import re
import textwrap
from html import escape

from studies.runner.page import number

WIDTH, LEFT, RIGHT, TOP = 720, 70, 20, 30
CHARACTER = 7  # largest average width of a character
MOST_CHARACTERS = 40  # in a line beside a bar
# Colour-blind people can distinguish these (Okabe and Ito, 2008).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def colour_of(index):
    """Returns a different colour for each series. After COLOURS, hues are a golden angle apart."""
    if index < len(COLOURS):
        return COLOURS[index]
    rgb = colorsys.hls_to_rgb(index * 137.508 % 360 / 360, 0.45 if index % 2 == 0 else 0.3, 0.65)
    return "#%02x%02x%02x" % tuple(round(255 * part) for part in rgb)


STYLE = (
    "<style>svg.chart{background:#fff}.chart text{font:12px sans-serif;fill:#222}"
    ".chart .title{font-weight:bold;font-size:13px}.chart .grid{stroke:#ddd}.chart .axis{stroke:#888}"
    ".chart .curve{fill:none;stroke-width:2}"
    "@media (prefers-color-scheme:dark){svg.chart{background:#16181c}.chart text{fill:#e4e4e4}"
    ".chart .grid{stroke:#3a3d42}.chart .axis{stroke:#888}}</style>")


def svg(block):
    """Returns the image of a page's block of the kind "bars" or "lines"."""
    return _bars(block) if block["kind"] == "bars" else _lines(block)


def stacked(blocks):
    """Returns one image with the charts one below the other."""
    parts, height = [], 0
    for image in map(svg, blocks):
        parts.append(f'<g transform="translate(0 {height})">\n{image}</g>')
        height += int(re.search(r' height="(\d+)"', image)[1])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}">\n' + "\n".join(parts) + "\n</svg>\n")


def _text(x, y, text, anchor="start", kind=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (
        x, y, anchor, f' class="{kind}"' if kind else "", escape(text))


def _image(title, height, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{escape(title)}">',
        STYLE, _text(12, 18, title, kind="title"), *parts, "</svg>\n"])


def _legend(names, dashed=()):
    """Returns (parts, y below it): samples with names above the plot. A single name has none."""
    parts, x, y = [], 12.0, TOP + 8
    if len(names) < 2:
        return parts, TOP
    for index, name in enumerate(names):
        width = 26 + CHARACTER * len(name) + 18
        if x > 12 and x + width > WIDTH - RIGHT:
            x, y = 12.0, y + 18
        dash = ' stroke-dasharray="5 4"' if name in dashed else ""
        parts.append(f'<line x1="{x:.1f}" x2="{x + 20:.1f}" y1="{y - 4}" y2="{y - 4}" '
                     f'stroke="{colour_of(index)}" stroke-width="4"{dash}/>')
        parts.append(_text(x + 26, y, name))
        x += width
    return parts, y + 10


def ticks(low, high, most=7):
    """Returns round numbers from at most `low` to at least `high`."""
    if high <= low:
        high = low + 1
    step = 10 ** math.floor(math.log10((high - low) / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20)
                if math.ceil(high / (step * factor) - 1e-9) - math.floor(low / (step * factor) + 1e-9) < most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _log_ticks(low, high):
    powers = range(math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9) + 1)
    fine = [digit * 10.0 ** power for power in powers for digit in (1, 2, 5)]
    inner = [tick for tick in fine if low / 2.5 < tick < high * 2.5]
    return inner if len(inner) <= 9 else [10.0 ** power for power in powers]


def _label(value):
    return "%gk" % (value / 1e3) if abs(value) >= 1e4 else "%.5g" % value


def _bars(block):
    """Draws horizontal bars, so that long names fit."""
    names, groups = list(block["series"]), block["groups"]
    parts, top = _legend(names)
    most = max([value or 0 for values in block["series"].values() for value in values] + [1e-12])
    labels = [textwrap.wrap(group, MOST_CHARACTERS) for group in groups]
    left = 20 + CHARACTER * max(len(line) for lines in labels for line in lines)
    scale = (WIDTH - left - 90) / most
    y = top + 10
    bar = 16 if len(names) > 1 else 20
    for index, lines in enumerate(labels):
        begin = y
        for row, name in enumerate(names):
            value = block["series"][name][index]
            if value is not None:
                colour = colour_of(row)
                parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(1, value * scale):.1f}" '
                             f'height="{bar - 3}" fill="{colour}"/>')
                parts.append(_text(left + value * scale + 5, y + bar - 6, number(float(value))))
            y += bar
        y = max(y, begin + 14 * len(lines))
        for line, text in enumerate(lines):
            parts.append(_text(left - 8, (begin + y) / 2 + 3 + 14 * (line - (len(lines) - 1) / 2), text, "end"))
        y += 8
    parts.append(f'<line class="axis" x1="{left:.1f}" x2="{left:.1f}" y1="{top + 4:.1f}" y2="{y:.1f}"/>')
    parts.append(_text(left, y + 16, block["unit"]))
    return _image(block["title"], y + 28, parts)


def _axis(values, log, length):
    """Returns (ticks, function from a value to pixels along the axis)."""
    marks = _log_ticks(min(values), max(values)) if log else ticks(min(0, *values), max(values))
    place = math.log10 if log else float
    low = place(min(marks[0], min(values)))
    high = place(max(marks[-1], max(values)))
    return marks, lambda value: (place(value) - low) / (high - low or 1) * length


def _lines(block):
    height = 300
    curves = {name: [point for point in points if point[1] is not None]
              for name, points in block["curves"].items()}
    every = [point for points in curves.values() for point in points]
    parts, top = _legend(list(curves), block["dashed"])
    top += 22  # the label of the y axis
    parts.append(_text(12, top - 10, block["y_label"]))
    if not every:
        return _image(block["title"], top + 20, parts + [_text(12, top + 10, "no figures")])
    x_marks, x_of = _axis([x for x, _ in every], block["log_x"], WIDTH - LEFT - RIGHT)
    y_marks, y_of = _axis([y for _, y in every], block["log_y"], height)
    bottom = top + height
    for mark in y_marks:
        y = bottom - y_of(mark)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, _label(mark), "end"))
    for mark in x_marks:
        x = LEFT + x_of(mark)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, _label(mark), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, block["x_label"], "middle"))
    for index, (name, points) in enumerate(curves.items()):
        colour = colour_of(index)
        places = [(LEFT + x_of(x), bottom - y_of(y)) for x, y in sorted(map(tuple, points))]
        dash = ' stroke-dasharray="5 4"' if name in block["dashed"] else ""
        parts.append('<polyline class="curve" stroke="%s"%s points="%s"/>' % (
            colour, dash, " ".join("%.1f,%.1f" % place for place in places)))
        if not dash:
            parts += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*place, colour) for place in places]
    return _image(block["title"], bottom + 46, parts)
