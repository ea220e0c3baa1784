#!/usr/bin/env python3
"""Checks horovod_parity.md, the table of the tests that cover each of Horovod's test cases."""

import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TABLE = os.path.join(ROOT, "tests", "horovod_parity.md")
NUM_CASES = 115

ROW = re.compile(r"^\| `(test_\w+)` \| ([^|]*) \| ([^|]*) \|$")
# In the last cell: "`directory/file_test.cc`: `Suite.First`, `Suite.Second`".
FILE_OR_TEST = re.compile(r"`([^`]*)`")
FILE = re.compile(r"[\w/]+\.cc")
TEST = re.compile(r"\w+\.\w+")
REASON = re.compile(r"^Not applicable: .{15,}")
DEFINITION = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


def rows_of(text):
    """Returns (line, case, what, where) of each row of the table."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| `"):
            continue
        match = ROW.match(line)
        if not match:
            raise ValueError(f"line {number} is not a valid row: {line}")
        rows.append((number, *match.groups()))
    return rows


def tests_in(source):
    """Returns the tests {"Suite.Name"} that a C++ file defines."""
    return {f"{suite}.{name}" for suite, name in DEFINITION.findall(source)}


def unknown_tests(where, tests_of_file):
    """Returns (number of tests named in a cell, [errors])."""
    count, wrong, file = 0, [], None
    for word in FILE_OR_TEST.findall(where):
        if FILE.fullmatch(word):
            file = word
            if tests_of_file(file) is None:
                wrong.append(f"there is no tests/{file}")
        elif TEST.fullmatch(word):
            count += 1
            if file is None:
                wrong.append(f"{word} comes before its file")
            elif word not in (tests_of_file(file) or ()):
                wrong.append(f"tests/{file} has no {word}")
    return count, wrong


def tests_of_tree(file):
    path = os.path.join(ROOT, "tests", file)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as source:
        return tests_in(source.read())


class HorovodParityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(TABLE, encoding="utf-8") as table:
            cls.text = table.read()
        cls.rows = rows_of(cls.text)

    def test_every_case_has_one_row(self):
        cases = [case for _, case, _, _ in self.rows]
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(len(cases), NUM_CASES)

    def test_every_row_describes_what_the_case_checks(self):
        for number, case, what, _ in self.rows:
            with self.subTest(line=number, case=case):
                self.assertGreater(len(what.split()), 2)

    def test_every_row_names_existing_tests_or_a_reason(self):
        for number, case, _, where in self.rows:
            with self.subTest(line=number, case=case):
                count, wrong = unknown_tests(where, tests_of_tree)
                self.assertEqual(wrong, [])
                if count == 0:
                    self.assertRegex(where, REASON)

    def test_no_row_is_unfinished(self):
        self.assertNotRegex(self.text, re.compile(r"not (yet )?done|\btodo\b|\btbd\b", re.IGNORECASE))

    def test_tests_are_found_in_sources(self):
        source = "TEST(Suite, First) {}\n  TEST_P(\n    Other,\n    Second) {\n// TEST(Not, There)\n"
        self.assertEqual(tests_in(source), {"Suite.First", "Other.Second"})

    def test_unknown_tests_and_files_are_named(self):
        files = {"a_test.cc": {"Suite.First"}}
        self.assertEqual(unknown_tests("`a_test.cc`: `Suite.First`. Or `wait()`.", files.get), (1, []))
        self.assertEqual(
            unknown_tests("`a_test.cc`: `Suite.Gone`; `b_test.cc`: `Suite.First`", files.get),
            (2, [
                "tests/a_test.cc has no Suite.Gone",
                "there is no tests/b_test.cc",
                "tests/b_test.cc has no Suite.First",
            ]),
        )
        self.assertEqual(unknown_tests("`Suite.First`", files.get), (1, ["Suite.First comes before its file"]))


if __name__ == "__main__":
    unittest.main()
