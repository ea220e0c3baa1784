#!/usr/bin/env python3
"""Tests scaling_sweep on simulated hosts (dev/testbed), with the real hvdliterun.

usage: scaling_sweep_testbed_test.py SCALING_SWEEP HVDLITERUN MPI_TRAINER
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTBED = os.path.join(HERE, "..", "..", "..", "dev", "testbed")
HOSTS = "4"  # of the testbed: host0 to host3
SWEEP = LAUNCHER = TRAINER = None  # of the command line

SPEC = """
name: "hosts"
command: ["%s", "{report}", "{spec_dir}/pipe"]
world { nodes: 1 ranks_per_node: 1 }
world { nodes: 2 ranks_per_node: 1 }
host: ["host0", "host1"]
threads: 1
repeats: 2
scaling: STRONG
traces: NONE
"""


class TestbedSweepTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="sweep")
        self.addCleanup(self.directory.cleanup)
        with open(self.path("spec.txt"), "w", encoding="utf-8") as file:
            file.write(SPEC % TRAINER)

    def path(self, *names):
        return os.path.join(self.directory.name, *names)

    def samples(self):
        with open(self.path("out", "results.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines()[1:]]

    def report(self, sample):
        with open(self.path("out", sample["report"]), encoding="utf-8") as file:
            return json.load(file)

    def table(self):
        with open(self.path("out", "table.csv"), encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def start(self, *flags):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(
            ("OMP_", "HVDLITE_", "SLURM_", "PBS_", "PE_", "PJM_"))}
        return subprocess.Popen(
            [TESTBED, HOSTS, "--head", "--", SWEEP, self.path("spec.txt"), "--output",
             self.path("out"), "--launcher-program", LAUNCHER, *flags], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sweep(self, *flags):
        with self.start(*flags) as child:
            text = child.stdout.read()
        self.assertEqual(child.returncode, 0, text)
        return text

    def test_worlds_of_one_and_two_nodes_run_on_their_hosts(self):
        text = self.sweep()
        samples = self.samples()
        self.assertEqual([sample["nodes"] for sample in samples], [1, 2, 2, 1])
        for sample in samples:
            report = self.report(sample)
            self.assertEqual(report["hosts"], ["host0", "host1"][:sample["nodes"]])
            self.assertEqual(len(set(report["networks"])), sample["nodes"])
            self.assertIn("-H", sample["command"])
        # The plan of this host's launcher is not valid for the other hosts.
        files = [name for _, _, names in os.walk(self.path("out", "runs")) for name in names]
        self.assertIn("report.json", files)
        self.assertNotIn("launch_plan.txt", files)
        self.assertIn("strong: T1/(N*TN), N = nodes", text)
        self.assertEqual([(row["nodes"], row["ranks"], row["n"], row["speed_up"], row["efficiency"])
                          for row in self.table()], [("1", "1", "1", "1", "1"),
                                                     ("2", "2", "2", "1.9", "0.95")])

    def test_a_sweep_continues_on_other_hosts_after_a_crash(self):
        os.mkfifo(self.path("pipe"))
        with self.start() as child:
            with open(self.path("pipe"), encoding="utf-8") as pipe:
                self.assertEqual(pipe.readline(), "here\n")  # both hosts run
            child.terminate()  # all that is on the hosts, too, without a word
            child.stdout.read()
        first, = self.samples()
        self.assertEqual(self.report(first)["hosts"], ["host0"])
        written = os.stat(self.path("out", first["report"])).st_mtime_ns
        os.remove(self.path("pipe"))
        text = self.sweep("--hosts", "host2,host3")
        self.assertNotIn("[1/4]", text)
        self.assertIn("[2/4]", text)
        samples = self.samples()
        # Earlier results are unchanged, and their runs are not repeated.
        self.assertEqual(samples[0], first)
        self.assertEqual(os.stat(self.path("out", first["report"])).st_mtime_ns, written)
        self.assertEqual([(sample["nodes"], sample["repeat"]) for sample in samples],
                         [(1, 0), (2, 0), (2, 1), (1, 1)])
        self.assertEqual([self.report(sample)["hosts"] for sample in samples],
                         [["host0"], ["host2", "host3"], ["host2", "host3"], ["host2"]])
        self.assertEqual([(row["nodes"], row["items_per_second_median"], row["runs"],
                           row["failed"]) for row in self.table()],
                         [("1", "100", "2", "0"), ("2", "190", "2", "0")])


if __name__ == "__main__":
    SWEEP, LAUNCHER, TRAINER = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    check = subprocess.run([TESTBED, HOSTS, "--check"], capture_output=True, text=True, check=False)
    if check.returncode == 77:
        print(check.stderr)
        sys.exit(77)
    unittest.main()
