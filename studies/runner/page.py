"""The results of a study: comparisons with the published figures, tables, charts, and missing parts."""


class Page:
    """Collects results in the order of the calls. A number is None if it was not published or not
    measured. Texts are Markdown."""

    def __init__(self):
        self.comparisons, self.blocks, self.missed = [], [], []

    def compare(self, what, published, here, unit="", differs="", headline=False):
        """Adds one figure of the study and that of this machine. Headlines are also shown in README.md
        of the results; two or three per study are enough."""
        self.comparisons.append({"what": what, "published": published, "here": here, "unit": unit,
                                 "differs": differs, "headline": headline})

    def text(self, markdown, heading=None):
        self.blocks.append({"kind": "text", "heading": heading, "text": markdown})

    def table(self, title, columns, rows, note=""):
        """Adds a table. `rows` are lists as long as `columns`; the first column is text."""
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"table '{title}': {row} has not {len(columns)} cells")
        self.blocks.append({"kind": "table", "title": title, "columns": list(columns),
                            "rows": [list(row) for row in rows], "note": note})

    def bars(self, title, unit, groups, series, note=""):
        """Adds a bar for each of `groups` (names) in each of `series` ({name: values}). None: no bar."""
        for name, values in series.items():
            if len(values) != len(groups):
                raise ValueError(f"chart '{title}': {name} has not {len(groups)} values")
        self.blocks.append({"kind": "bars", "title": title, "unit": unit, "groups": list(groups),
                            "series": {name: list(values) for name, values in series.items()},
                            "note": note})

    def lines(self, title, x_label, y_label, curves, dashed=(), log_x=False, log_y=False, note=""):
        """Adds `curves`: {name: [(x, y), ...]}. Labels contain the units. Curves named in `dashed` are
        ideal or published ones. Axes that are not logarithmic begin at 0."""
        self.blocks.append({"kind": "lines", "title": title, "x_label": x_label, "y_label": y_label,
                            "curves": {name: [list(point) for point in points]
                                       for name, points in curves.items()},
                            "dashed": list(dashed), "log_x": log_x, "log_y": log_y, "note": note})

    def missing(self, what, why, command):
        """Adds a part of the study that cannot run here, with the command for machines that can."""
        self.missed.append({"what": what, "why": why, "command": command})


def number(value):
    """Formats a number with four digits, as on a page. Text stays as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return "%.0f" % value if abs(value) >= 1000 else "%.4g" % value
