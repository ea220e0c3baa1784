#!/usr/bin/env python3
"""Tests that each time in README.md was measured: it is in a dated row of docs/results/."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"\b\d+m\d\ds?\b|\b\d+(?:\.\d+)? (?:CPU )?(?:seconds|minutes|hours)\b")
DATED_ROW = re.compile(r"^\|.*\b20\d\d-\d\d-\d\d\b.*$", re.MULTILINE)


def times_without_row(readme, benchmarks):
    rows = "\n".join(DATED_ROW.findall(benchmarks))
    return [time for time in TIME.findall(readme) if not re.search(r"(?<![\d.])" + re.escape(time), rows)]


def main():
    row = "| quickstart | 5m40 | 9.5 CPU minutes | 2026-11-28 |\n"
    # Check the checker itself.
    assert times_without_row("took 5m40 and 9.5 CPU minutes", row) == []
    assert times_without_row("took 5m41, later 15m40 and 5 CPU minutes", row) == ["5m41", "15m40", "5 CPU minutes"]
    assert times_without_row("took 5m40", "| quickstart | 5m40 |\n") == ["5m40"]

    readme = (ROOT / "README.md").read_text()
    results = "\n".join(page.read_text() for page in sorted((ROOT / "docs/results").glob("*.md")))
    missing = times_without_row(readme, results)
    for time in missing:
        print(f"README.md says '{time}', but no dated row of a table in docs/results/ contains it. Measure it and "
              "add it to 'From a clone' there, or remove it.")
    if not TIME.search(readme):
        print("README.md contains no time. Add how long its two commands take.")
        return 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
