#!/usr/bin/env python3
"""The C++ blocks of the documentation are the delimited regions of the examples, which other tests run; and all
links between pages lead somewhere."""

import glob
import os
import re
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENTS = ("README.md", "docs/getting_started.md", "docs/user_guide.md", "docs/migrating_from_horovod.md",
             "docs/migrating_from_ddp.md")
EXAMPLES = ("guide_points.h", "guide_collectives.cc", "guide_optimizer.cc", "guide_training.cc",
            "guide_programs.cc")
BEGIN = "// [guide]"
END = "// [end]"


def blocks_of(guide):
    """The ```cpp blocks of a Markdown text."""
    return [match.group(1) for match in re.finditer(r"^```cpp\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)]


def regions_of(source):
    """What stands between the delimiters of a C++ text, without its common indentation."""
    regions = []
    region = None
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        mark = line.strip()
        if mark == BEGIN:
            if region is not None:
                raise ValueError(f"line {number}: a region begins inside another one")
            region = []
        elif mark == END:
            if region is None:
                raise ValueError(f"line {number}: no region ends here")
            regions.append(textwrap.dedent("".join(region)))
            region = None
        elif region is not None:
            region.append(line)
    if region is not None:
        raise ValueError("the last region does not end")
    return regions


def headings_of(guide):
    """The anchors that the headings of a Markdown text have on its page."""
    code = re.sub(r"^```.*?^```$", "", guide, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links_of(text):
    """The targets of the links of a Markdown text but for those to other sites."""
    code = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", code) if "://" not in target]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class GuideTest(unittest.TestCase):
    def setUp(self):
        self.documents = {name: read(ROOT, name) for name in DOCUMENTS}
        self.blocks = [block for text in self.documents.values() for block in blocks_of(text)]
        self.regions = [region for name in EXAMPLES for region in regions_of(read(HERE, name))]

    def test_there_are_examples(self):
        self.assertGreater(len(self.blocks), 20)
        for name, text in self.documents.items():
            self.assertEqual(text.count("```cpp"), len(blocks_of(text)), name)

    def test_every_block_is_an_example_that_runs(self):
        for block in self.blocks:
            self.assertIn(block, self.regions)

    def test_every_example_is_shown_once(self):
        for region in self.regions:
            self.assertEqual(self.blocks.count(region), 1, region)

    def test_links_lead_somewhere(self):
        pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/horovod_parity.md",
                 *glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True)]
        self.assertGreater(len(pages), 15)
        for page in pages:
            for target in links_of(read(ROOT, page)):
                path, _, anchor = target.partition("#")
                file = os.path.join(ROOT, os.path.dirname(page), path) if path else os.path.join(ROOT, page)
                with self.subTest(page=page, target=target):
                    self.assertTrue(os.path.exists(file))
                    if anchor:
                        self.assertIn(anchor, headings_of(read(file)))

    def test_code_names_pages_that_exist(self):
        for path in glob.glob("**/*", root_dir=ROOT, recursive=True):
            if path.startswith("build/") or not path.endswith((".cc", ".h", ".py", ".sh", ".cmake", ".txt", ".proto")):
                continue
            for page in re.findall(r"\bdocs/[\w/]+\.md\b", read(ROOT, path)):
                with self.subTest(file=path):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, page)), page)


class ParsingTest(unittest.TestCase):
    def test_regions_lose_their_common_indentation_only(self):
        source = "x\n  // [guide]\n  a {\n    b\n\n  }\n  // [end]\ny\n// [guide]\nc\n// [end]\n"
        self.assertEqual(regions_of(source), ["a {\n  b\n\n}\n", "c\n"])

    def test_delimiters_come_in_pairs(self):
        for source in ("// [guide]\n", "// [end]\n", "// [guide]\n// [guide]\n// [end]\n"):
            with self.assertRaises(ValueError):
                regions_of(source)

    def test_links_in_code_are_none(self):
        text = "[a](b.md#c) `x[0](y)` [d](https://e)\n```sh\n[f](g)\n```\n[`h`](i)\n"
        self.assertEqual(links_of(text), ["b.md#c", "i"])

    def test_blocks_of_other_languages_are_left_alone(self):
        self.assertEqual(blocks_of("```sh\nls\n```\n```cpp\na\n\nb\n```\ntext\n```cpp\nc\n```\n"), ["a\n\nb\n", "c\n"])


if __name__ == "__main__":
    unittest.main()
