#!/usr/bin/env python3
"""Tests that links lead to files and headings, that the sources name existing pages, and that the chart
agrees with its tables."""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "docs", "results")]

import plot_comparison
from guide_test import headings_of, read

PAGE = re.compile(r"\bdocs/[\w/.-]+\.md\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def tracked_files():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in names.stdout.split("\0") if name]


def broken_links(page, text):
    """Yields the links of a page that lead nowhere."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = os.path.join(ROOT, os.path.dirname(page), path) if path else os.path.join(ROOT, page)
        if not os.path.exists(file) or anchor and anchor not in headings_of(read(file)):
            yield target


class PagesTest(unittest.TestCase):
    def setUp(self):
        self.files = [name for name in tracked_files() if os.path.isfile(os.path.join(ROOT, name))]
        if not self.files:
            self.skipTest("not a git clone: cannot list the files")

    def test_links_lead_to_files_and_headings(self):
        for page in self.files:
            if page.endswith(".md"):
                with self.subTest(page):
                    self.assertEqual(list(broken_links(page, read(ROOT, page))), [])

    def test_sources_name_existing_pages(self):
        for name in self.files:
            with open(os.path.join(ROOT, name), encoding="utf-8", errors="ignore") as file:
                pages = PAGE.findall(file.read())
            for page in pages:
                with self.subTest(name):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, page)), page)

    def test_the_chart_agrees_with_its_tables(self):
        tables = read(ROOT, "docs", "results", "2026-11-benchmarks.md")
        self.assertEqual(plot_comparison.svg(tables), read(plot_comparison.CHART),
                         "run docs/results/plot_comparison.py")


class ParsingTest(unittest.TestCase):
    def test_a_broken_link_is_found(self):
        self.assertEqual(list(broken_links("README.md", "[a](nowhere.md) [b](docs/concepts.md#nothing)")),
                         ["nowhere.md", "docs/concepts.md#nothing"])
        code = "```\n[c](no.md)\n```\n"
        self.assertEqual(list(broken_links("docs/concepts.md", "[a](../README.md) [b](https://x.org)\n" + code)), [])


if __name__ == "__main__":
    unittest.main()
