#!/usr/bin/env python3
"""Checks that an elastic training that is killed within an epoch continues, on any number of ranks.

Usage: elastic_restart_test.py MPIRUN ELASTIC_PROGRAM
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

MPIRUN, PROGRAM = sys.argv[1:3]


class ElasticRestartTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = os.path.join(directory.name, "c.pt")

    def start(self, ranks, deadly_step=0, file=None):
        return subprocess.run([MPIRUN, str(ranks), PROGRAM, file or self.file, str(deadly_step)], text=True,
                              env={**os.environ, "HVDLITE_DETERMINISTIC": "1"}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)

    def assert_ends(self, result):
        """Checks that every sample was trained on once per epoch. Returns the digest of the weights."""
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("samples counted 3 to 3 times\n", result.stdout)
        return re.search(r"^weights (.*)$", result.stdout, re.MULTILINE).group(1)

    def test_killed_job_continues_with_fewer_and_with_more_ranks(self):
        result = self.start(3, deadly_step=4)
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("samples counted", result.stdout)
        result = self.start(2, deadly_step=15)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "continuing from commit 3, made by 3 ranks")
        result = self.start(4)
        self.assertRegex(result.stderr, "continuing from commit 17, made by 2 ranks")
        self.assert_ends(result)

    def test_killed_job_gives_the_bits_of_one_that_was_not_killed(self):
        undisturbed = self.assert_ends(self.start(2, file=self.file + ".undisturbed"))
        self.assertNotEqual(self.start(2, deadly_step=9).returncode, 0)
        result = self.start(2)
        self.assertRegex(result.stderr, "continuing from commit 8, made by 2 ranks")
        self.assertEqual(self.assert_ends(result), undisturbed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
