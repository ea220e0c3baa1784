#!/usr/bin/env python3
"""hvdlite/config.h describes the configuration variables; help texts and pages must agree with it.

The comment of a field of Config, "HVDLITE_NAME. Meaning. More.", and its default are the
source. The first sentence is the short help in the table of option_table.cc, without
backticks; all of it is the row of the table in docs/configuration.md. `--update` rewrites
that table.
"""

import glob
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONFIG = os.path.join(ROOT, "base", "config", "include", "hvdlite", "config.h")
LOADER = os.path.join(ROOT, "base", "config", "option_table.cc")
PAGE = os.path.join(ROOT, "docs", "configuration.md")

HEADER = "| variable | default | means |\n|---|---|---|\n"
# Text in config.h, and the section of the guide about it.
LINKS = {"Chrome trace": "user_guide.md#timeline", "join()": "user_guide.md#uneven-data"}


def fields_of(config):
    """Returns [(name, default, [sentence, ...])] of the fields of Config that are variables."""
    fields = []
    pattern = re.compile(r"((?:^  //.*\n)+)^  ([\w:]+) (\w+)(?: = ([^;]*))?;$", re.MULTILINE)
    for comment, kind, name, default in pattern.findall(config):
        text = " ".join(line.strip()[2:].strip() for line in comment.splitlines())
        match = re.match(r"HVDLITE_(\w+)\. (.*)$", text)
        if not match:
            continue
        if match[1] != name.upper():
            raise ValueError(f"the comment of {name} begins with HVDLITE_{match[1]}")
        sentences = re.findall(r"(?:[^.]|\.(?! |$))+\.", match[2])
        if "".join(sentences).replace(" ", "") != match[2].replace(" ", ""):
            raise ValueError(f"the comment of {name} does not end with a full stop")
        fields.append((name, default_text(kind, default), [s.strip() for s in sentences]))
    return fields


def default_text(kind, default):
    """Returns a default as a user writes it."""
    shift = re.fullmatch(r"int64_t\{(\d+)\} << (\d+)", default)
    if shift:
        return shift[1] + {"10": "K", "20": "M", "30": "G"}[shift[2]]
    if kind == "bool":
        return "1" if default == "true" else "0"
    if kind == "std::string":
        return f"`{default[1:-1]}`" if default else "none"
    return default


def options_of(loader):
    """Returns {name: (help, same on all ranks)} of the table in option_table.cc."""
    options = {}
    for entry in re.findall(r'\{(\.name = .*?)\},\n', loader, re.DOTALL):
        name = re.search(r'\.name = "(\w+)"', entry)[1]
        text = "".join(re.findall(r'"([^"]*)"', entry[entry.index(".help"):]))
        options[name] = (text, ".same_on_all_ranks = false" not in entry)
    return options


def beginning_small(text):
    """Returns the text with a small first letter, except for abbreviations."""
    return text if re.match("[A-Z]{2}", text) else text[0].lower() + text[1:]


def help_of(sentences):
    return beginning_small(sentences[0].replace("`", "").rstrip("."))


def row_of(name, default, sentences):
    text = beginning_small(" ".join(sentences).rstrip("."))
    for words, target in LINKS.items():
        text = text.replace(words, f"[{words}]({target})", 1)
    return f"| `{name.upper()}` | {default} | {text} |\n"


def table_of(fields):
    return HEADER + "".join(row_of(*field) for field in fields)


def table_in(page):
    """Returns the table of the page."""
    start = page.index(HEADER)
    return page[start:page.index("\n\n", start) + 1]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class ConfigTableTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.fields = fields_of(read(CONFIG))
        self.options = options_of(read(LOADER))

    def test_all_fields_are_options_in_the_same_order(self):
        self.assertGreater(len(self.fields), 20)
        self.assertEqual([name for name, _, _ in self.fields], list(self.options))

    def test_the_help_of_an_option_is_the_first_sentence_of_its_field(self):
        for name, _, sentences in self.fields:
            self.assertEqual(self.options[name][0], help_of(sentences), name)

    def test_fields_document_whether_they_may_differ_by_rank(self):
        for name, _, sentences in self.fields:
            self.assertEqual("May differ by rank." not in sentences, self.options[name][1], name)

    def test_the_table_of_the_page_agrees_with_the_fields(self):
        self.assertEqual(table_in(read(PAGE)), table_of(self.fields),
                         f"run {os.path.relpath(__file__, ROOT)} --update")

    def test_no_other_page_has_a_row_of_the_table(self):
        names = "|".join(name.upper() for name, _, _ in self.fields)
        for path in sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)):
            text = read(path).replace(table_in(read(PAGE)), "")
            self.assertNotRegex(text, rf"(?m)^\| `(HVDLITE_)?({names})` \| [^|]* \| [^|]* \|$", path)


class ParsingTest(unittest.TestCase):
    def test_a_field_is_read_with_its_default_and_all_sentences(self):
        config = ("  // HVDLITE_SIZE_BYTES. How much;\n  // 0.5: half. Also `this`.\n"
                  "  int64_t size_bytes = int64_t{4} << 20;\n"
                  "  // Something else.\n  int other = 3;\n"
                  "  // HVDLITE_ON. MPI is used.\n  bool on = true;\n"
                  "  // HVDLITE_FILE. A file.\n  std::string file;\n")
        self.assertEqual(fields_of(config),
                         [("size_bytes", "4M", ["How much; 0.5: half.", "Also `this`."]),
                          ("on", "1", ["MPI is used."]), ("file", "none", ["A file."])])

    def test_a_comment_that_names_another_variable_is_an_error(self):
        with self.assertRaises(ValueError):
            fields_of("  // HVDLITE_OTHER. Text.\n  bool on = true;\n")

    def test_a_comment_without_a_full_stop_is_an_error(self):
        with self.assertRaises(ValueError):
            fields_of("  // HVDLITE_ON. Text\n  bool on = true;\n")

    def test_an_option_is_read_with_its_help(self):
        loader = '      {.name = "a",\n       .same_on_all_ranks = false,\n' \
                 '       .help = "one "\n               "two"},\n      {.name = "b",\n       .help = "x"},\n'
        self.assertEqual(options_of(loader), {"a": ("one two", False), "b": ("x", True)})

    def test_rows_begin_with_a_small_letter_except_for_abbreviations(self):
        self.assertEqual(row_of("a", "1", ["The file.", "More."]), "| `A` | 1 | the file. More |\n")
        self.assertEqual(row_of("a", "1", ["MPI alone."]), "| `A` | 1 | MPI alone |\n")
        self.assertEqual(help_of(["A file, or `none`."]), "a file, or none")


def update():
    page = read(PAGE)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page.replace(table_in(page), table_of(fields_of(read(CONFIG)))))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
