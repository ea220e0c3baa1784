#!/usr/bin/env python3
"""Sizes, rows and tune-table of hvdlite_bench under mpirun; usage: ... HVDLITE_BENCH"""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MPIRUN = os.path.join(ROOT, "tests", "testing", "mpirun")
TESTBED = os.path.join(ROOT, "dev", "testbed")
SHORT = ["--rounds", "2", "--warmup", "0"]
BENCH = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tests", "testing"))
import parallel_tests  # noqa: E402


def bench(ranks, *words):
    return subprocess.run([MPIRUN, str(ranks), BENCH, *words], capture_output=True, text=True)


def rows(text):
    """The lines that are not comments, split."""
    return [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]


class SweepTest(unittest.TestCase):
    def test_prints_a_row_per_size(self):
        result = bench(2, "sweep", *SHORT, "--min-bytes", "1k", "--max-bytes", "4KiB")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row[0] for row in rows(result.stdout)], ["1024", "2048", "4096"])
        self.assertIn("hvdlite is hvdlite_shm here", result.stdout)

    def test_wrong_sizes_are_named(self):
        for words, message in ((["--min-bytes", "6"], "multiple of 4"),
                               (["--max-bytes", "1X"], "'1X' is not a size"),
                               (["--min-bytes", "1M", "--max-bytes", "64K"],
                                "--min-bytes is 1048576, which is above --max-bytes, 65536")):
            with self.subTest(words=words):
                result = subprocess.run([BENCH, "sweep", *words], capture_output=True, text=True)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(message, result.stderr)


class TuneTableTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.table = os.path.join(directory.name, "table.txt")

    def tune(self, run, *words):
        result = run("tune-table", *SHORT, "--max-bytes", "2K", "-o", self.table, *words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        table = result.stdout[result.stdout.index("# bytes"):]
        self.assertLess(max(len(line) for line in table.splitlines()), 110, table)
        with open(self.table, encoding="utf-8") as file:
            return file.read()

    def worlds(self, text):
        return {(row[0], row[1]) for row in rows(text)}

    def test_rows_of_several_worlds_form_one_valid_table(self):
        for ranks, known, again in ((2, {"2"}, []), (3, {"2", "3"}, []), (2, {"2", "3"}, ["--overwrite"])):
            text = self.tune(lambda *words: bench(ranks, *words, *again))  # noqa: B023
            self.assertEqual(self.worlds(text), {("1", count) for count in known})
        self.assertEqual(text.count("1 node of 2 ranks: hvdlite_bench tune-table"), 1)
        result = bench(2, "sweep", *SHORT, "--min-bytes", "1K", "--max-bytes", "1K",
                       "--table", self.table)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# algorithms from " + self.table, result.stdout)

    def test_sweep_uses_the_table_of_the_environment(self):
        sweep = [BENCH, "sweep", *SHORT, "--min-bytes", "1K", "--max-bytes", "1K"]
        with open(self.table, "w", encoding="utf-8") as file:
            file.write("1 2- inf two-shot 512K cached\n")
        for table, status in ((self.table, 0), (self.table + ".missing", 1)):
            with self.subTest(table=table):
                result = subprocess.run(sweep, capture_output=True, text=True,
                                        env={**os.environ, "HVDLITE_ALLREDUCE_TABLE": table})
                self.assertEqual(min(result.returncode, 1), status, result.stderr)
                self.assertIn(table, result.stdout + result.stderr)

    def test_more_ranks_than_cores_are_reported(self):
        cpu = str(min(os.sched_getaffinity(0)))
        self.assertIn(", 1 core, oversubscribed", self.tune(lambda *words: subprocess.run(
            ["taskset", "-c", cpu, MPIRUN, "2", BENCH, *words], capture_output=True, text=True)))

    def test_two_hosts_have_their_own_rows(self):
        if subprocess.run([TESTBED, "2", "--check"], capture_output=True).returncode:
            self.skipTest("no testbed here")
        text = self.tune(lambda *words: subprocess.run(
            [TESTBED, "2", "--slots", "2", "--", BENCH, *words], capture_output=True, text=True))
        self.assertEqual(self.worlds(text), {("2", "2")})
        self.assertIn("2 hosts (host0, host1) on 1 machine", text)

    def test_invalid_table_file_is_not_changed(self):
        with open(self.table, "w", encoding="utf-8") as file:
            file.write("hello\n")
        result = bench(2, "tune-table", *SHORT, "--max-bytes", "2K", "-o", self.table)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("table.txt is not a table of algorithms: line 1 'hello'", result.stderr)
        with open(self.table, encoding="utf-8") as file:
            self.assertEqual(file.read(), "hello\n")

    def test_single_rank_is_an_error(self):
        result = bench(1, "tune-table", "-o", self.table)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("start two ranks per host", result.stderr)


if __name__ == "__main__":
    parallel_tests.main(at_once=2)
