#!/usr/bin/env python3
"""Checks that the remaining ranks continue in place when one rank is killed, if MPI supports it.

Usage: elastic_in_place_test.py HVDLITERUN ELASTIC_PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HVDLITERUN, PROGRAM = sys.argv[1:3]
VERSION = subprocess.run(["mpirun", "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout
MAJOR = re.search(r"\(Open MPI\) (\d+)", VERSION)


class ElasticInPlaceTest(unittest.TestCase):
    def run_ranks(self, *words, minimum=1, **environment):
        with tempfile.TemporaryDirectory(prefix="hvd", dir="/tmp") as directory:
            return subprocess.run(
                [HVDLITERUN, "-np", "3", "--threads", "1", "--oversubscribe", "--allow-run-as-root", "--in-place",
                 "--min-np", str(minimum), PROGRAM, *words], text=True,
                env={**os.environ, "TMPDIR": directory, **environment},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)

    def test_any_rank_can_be_lost(self):
        weights = set()
        for rank in "012":
            with self.subTest(rank=rank):
                result = self.run_ranks("", "4", rank)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("continuing in place with 2 of 3 ranks", result.stderr)
                self.assertRegex(result.stderr, "going on from commit [45], made by 3 ranks")
                self.assertIn("done without 1 of 3 ranks", result.stderr)
                self.assertIn("samples counted 3 to 3 times\n", result.stdout)
                weights.add(re.search(r"^weights (.*)$", result.stdout, re.MULTILINE).group(1))
        self.assertEqual(len(weights), 1, weights)

    def test_ranks_continue_without_a_rank_that_throws(self):
        # It waits for the others in shutdown() and learns that they continue.
        result = self.run_ranks("", "4", "1", "throws", HVDLITE_HEARTBEAT_SECONDS="0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"rank 1 pid \d+ hvdlite error\] no disk\n")
        self.assertIn("continuing in place with 2 of 3 ranks", result.stderr)
        self.assertIn("samples counted 3 to 3 times\n", result.stdout)

    def test_generations_of_the_file_differ(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "run.pt")
            result = self.run_ranks(path, "4", "0")
            self.assertEqual(result.returncode, 0, result.stderr)
            names = sorted(os.listdir(directory))
            self.assertEqual(len(names), 2, names)
            generations = [pathlib.Path(directory, name).read_bytes() for name in names]
            self.assertNotEqual(*generations)

    def test_too_few_ranks_are_a_failure(self):
        result = self.run_ranks("", "4", minimum=3)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("the number of remaining ranks is 2, but at least 3 are needed", result.stderr)


if __name__ == "__main__":
    if not MAJOR or int(MAJOR.group(1)) < 5:
        print("needs Open MPI 5, and mpirun is: " + VERSION.partition("\n")[0])
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
