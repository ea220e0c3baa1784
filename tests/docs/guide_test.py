#!/usr/bin/env python3
"""The C++ blocks of the documentation are the delimited regions of the examples, which other tests run."""

import os
import re
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENTS = ("README.md", "docs/getting_started.md", "docs/user_guide.md", "docs/migrating_from_horovod.md",
             "docs/migrating_from_ddp.md", "docs/reliability.md")
EXAMPLES = ("guide_points.h", "guide_collectives.cc", "guide_optimizer.cc", "guide_training.cc",
            "guide_programs.cc")


def blocks_of(guide):
    """Returns the ```cpp blocks of a Markdown text."""
    return [match.group(1) for match in re.finditer(r"^```cpp\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)]


def regions_of(source):
    """Returns the delimited regions of a C++ text without their common indentation."""
    return [textwrap.dedent(region)
            for region in re.findall(r"^ *// \[guide\]\n(.*?)^ *// \[end\]$", source, re.MULTILINE | re.DOTALL)]


def headings_of(guide):
    """Returns the anchors of the headings of a Markdown text."""
    code = re.sub(r"^```.*?^```$", "", guide, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class GuideTest(unittest.TestCase):
    def setUp(self):
        self.documents = {name: read(ROOT, name) for name in DOCUMENTS}
        self.blocks = [block for text in self.documents.values() for block in blocks_of(text)]
        self.examples = {name: read(HERE, name) for name in EXAMPLES}
        self.regions = [region for text in self.examples.values() for region in regions_of(text)]

    def test_there_are_examples(self):
        self.assertGreater(len(self.blocks), 20)
        for name, text in self.documents.items():
            self.assertEqual(text.count("```cpp"), len(blocks_of(text)), name)
        for name, text in self.examples.items():
            for delimiter in ("// [guide]\n", "// [end]\n"):  # in pairs
                self.assertEqual(text.count(delimiter), len(regions_of(text)), name)

    def test_every_block_is_an_example_that_runs(self):
        for block in self.blocks:
            self.assertTrue(block in self.regions, block)

    def test_every_example_is_shown_once(self):
        for region in self.regions:
            self.assertEqual(self.blocks.count(region), 1, region)


class ParsingTest(unittest.TestCase):
    def test_regions_lose_only_their_common_indentation(self):
        source = "x\n  // [guide]\n  a {\n    b\n\n  }\n  // [end]\ny\n// [guide]\nc\n// [end]\n"
        self.assertEqual(regions_of(source), ["a {\n  b\n\n}\n", "c\n"])

    def test_blocks_of_other_languages_are_ignored(self):
        self.assertEqual(blocks_of("```sh\nls\n```\n```cpp\na\n\nb\n```\ntext\n```cpp\nc\n```\n"), ["a\n\nb\n", "c\n"])


if __name__ == "__main__":
    unittest.main()
