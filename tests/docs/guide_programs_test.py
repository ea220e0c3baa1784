#!/usr/bin/env python3
"""Tests that the example programs of the documentation do what it says.

Usage: guide_programs_test.py MPIRUN GUIDE_PROGRAMS
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

MPIRUN, PROGRAMS = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, os.path.dirname(MPIRUN))
import parallel_tests  # noqa: E402


class GuideProgramsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_program(self, name, ranks, **environment):
        """Runs a program on `ranks` ranks (0: without mpirun) in a new directory."""
        command = ([MPIRUN, str(ranks)] if ranks else []) + [PROGRAMS, name]
        return subprocess.run(command, cwd=self.directory, env={**os.environ, **environment}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)

    def assert_trains(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        losses = re.findall(r"^epoch (\d) loss (\S+)$", result.stdout, re.MULTILINE)
        self.assertEqual([epoch for epoch, _ in losses], list("01234"), "one line per epoch, by one rank")
        self.assertLess(float(losses[-1][1]), 0.1)
        self.assertEqual(os.listdir(self.directory), ["model.pt"])

    def test_plain_trainer_trains(self):
        self.assert_trains(self.run_program("plain", 0))

    def test_three_lines_make_the_ranks_average_their_gradients(self):
        result = self.run_program("three_lines", 3)  # gradients 1, 2 and 3, a rate of 0.1
        self.assertEqual(result.returncode, 0, result.stderr)
        moved = re.findall(r"^moved by (\S+)$", result.stdout, re.MULTILINE)
        self.assertEqual([round(float(by), 5) for by in moved], [0.2, 0.2, 0.2])

    def test_distributed_trainer_trains_on_any_number_of_ranks(self):
        for ranks in (0, 1, 2, 4):
            with self.subTest(ranks=ranks):
                self.assert_trains(self.run_program("distributed", ranks))

    def test_the_trainer_migrated_from_horovod_trains(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                self.assert_trains(self.run_program("from_horovod", ranks))
                os.remove(os.path.join(self.directory, "model.pt"))

    def test_distributed_trainer_trains_without_mpi(self):
        self.assert_trains(self.run_program("distributed", 0, HVDLITE_BACKEND="single"))

    def test_elastic_program_continues_where_it_was_stopped(self):
        for ranks in (1, 3):
            result = self.run_program("elastic", ranks)
            self.assertEqual(result.returncode, 0, result.stderr)
            if ranks == 1:
                self.assertEqual(len(re.findall(r"^epoch \d loss ", result.stdout, re.MULTILINE)), 5)
                self.assertNotIn("continuing from", result.stderr)
            else:  # no step is left to do
                self.assertRegex(result.stdout, r"^epoch 4 loss \S+\n$")
                self.assertIn("continuing from commit 500, made by 1 rank", result.stderr)

    def test_exception_of_one_rank_ends_the_program(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                result = self.run_program("errors", ranks)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("cannot read the images of shard 3", result.stderr)

    def test_configuration_shows_where_its_values_come_from(self):
        result = self.run_program("configured", 2, HVDLITE_CHUNK_BYTES="1M")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in (r"^stall_warning_seconds +10 +program$", r"^chunk_bytes +1048576 +HVDLITE_CHUNK_BYTES$",
                     r"^tree_arity +8 +default$"):
            self.assertEqual(len(re.findall(line, result.stdout, re.MULTILINE)), 1, result.stdout)

    def test_bad_value_is_an_error_and_unknown_name_a_warning(self):
        result = self.run_program("errors", 0, HVDLITE_CHUNK_BYTES="big")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("HVDLITE_CHUNK_BYTES=big", result.stderr)
        unknown = {"HVDLITE_CHUNK_BITES": "1M"}
        result = self.run_program("distributed", 0, **unknown)
        self.assertEqual(result.returncode, 0)
        self.assertIn("did you mean HVDLITE_CHUNK_BYTES?", result.stderr)
        self.assertNotEqual(self.run_program("errors", 0, HVDLITE_STRICT="1", **unknown).returncode, 0)

    def test_application_with_its_own_mpi_starts_several_worlds(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                result = self.run_program("owns_mpi", ranks)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(sorted(result.stdout.splitlines()),
                                 [f"rank {rank} of {ranks or 1}" for rank in range(ranks or 1)])

    def test_application_trains_on_some_of_its_processes(self):
        result = self.run_program("some_processes", 3)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()),
                         ["process 1 is rank 0 of 2", "process 2 is rank 1 of 2"])

    def test_ranks_that_stall_are_named(self):
        result = self.run_program("stalls", 2)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"'validation' has waited .* for 1 of 2 ranks to submit it: rank 1 ")


if __name__ == "__main__":
    parallel_tests.main(at_once=2)
