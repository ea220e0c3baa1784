#!/usr/bin/env python3
"""Tests what docs/configuration.md says about exit codes, for every program and script: a wrong flag exits with 2
and is named; --help exits with 0 and fits a terminal. Usage: exit_codes_test.py DIRECTORY_OF_PROGRAMS"""

import os
import re
import unittest

from output_flags_test import ROOT, commands_of, help_of, path_of, programs, run

COLUMNS = 80
# Programs that are not for users.
NONE = {"scaling_sweep_mpi_trainer"}


def users_programs():
    return [name for name in programs() if name not in NONE and not name.startswith("tests/")]


class ExitCodesTest(unittest.TestCase):
    def test_a_wrong_flag_ends_with_2(self):
        for program in users_programs():
            with self.subTest(program=program):
                done = run([path_of(program), "--no-such-flag"])
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertIn("--no-such-flag", done.stderr)

    def test_help_fits_a_terminal(self):
        for program in users_programs():
            if "/" in program:  # argparse uses the width of the terminal
                continue
            text = help_of(program, "")
            for command in ["", *commands_of(text)]:
                with self.subTest(program=program, command=command):
                    lines = help_of(program, command).splitlines()
                    self.assertGreater(len(lines), 3)
                    # Long words may exceed the width, because they do not fit beside the names of flags.
                    wide = [line for line in lines
                            if len(line) > COLUMNS and max(map(len, line.split())) < COLUMNS - 30]
                    self.assertEqual(wide, [])

    def test_every_code_of_the_sources_is_in_the_table(self):
        with open(os.path.join(ROOT, "docs", "configuration.md"), encoding="utf-8") as file:
            section = file.read().split("\n## Exit codes\n")[1]
        told = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
        found = {}
        for directory in ("negotiation", "support", "tools", "torch_plugin", "trainers", "bench", "studies"):
            for where, _, names in os.walk(os.path.join(ROOT, directory)):
                for name in names:
                    if not name.endswith((".cc", ".h")):
                        continue
                    with open(os.path.join(where, name), encoding="utf-8") as file:
                        for code in re.findall(r"k\w*ExitCode = (\d+);", file.read()):
                            found[int(code)] = name
        self.assertEqual({code: name for code, name in found.items() if code not in told | {130}}, {})
        self.assertIn(3, found)


if __name__ == "__main__":
    unittest.main()
