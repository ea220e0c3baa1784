#!/usr/bin/env python3
"""scaling_sweep across hosts that are namespaces (tools/testbed), by the real hvdliterun.

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
TESTBED = os.path.join(HERE, "..", "..", "..", "tools", "testbed")
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
        self.folder = tempfile.TemporaryDirectory(prefix="sweep")
        self.addCleanup(self.folder.cleanup)
        with open(self.path("spec.txt"), "w", encoding="utf-8") as file:
            file.write(SPEC % TRAINER)

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def samples(self):
        with open(self.path("out", "results.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines()[1:]]

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(
            ("OMP_", "HVDLITE_", "SLURM_", "PBS_", "PE_", "PJM_"))}
        return subprocess.Popen(
            [TESTBED, "2", "--head", "--", SWEEP, self.path("spec.txt"), "--output",
             self.path("out"), "--launcher-program", LAUNCHER], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sweep(self):
        with self.start() as child:
            text = child.stdout.read()
        self.assertEqual(child.returncode, 0, text)
        return text

    def test_worlds_of_one_and_two_nodes_run_on_their_hosts(self):
        text = self.sweep()
        samples = self.samples()
        self.assertEqual([sample["nodes"] for sample in samples], [1, 2, 2, 1])
        for sample in samples:
            with open(self.path("out", sample["report"]), encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual(report["hosts"], ["host0", "host1"][:sample["nodes"]])
            self.assertEqual(len(set(report["networks"])), sample["nodes"])
            self.assertIn("-H", sample["command"])
        # What this host's launcher plans says nothing about those.
        files = [name for _, _, names in os.walk(self.path("out", "runs")) for name in names]
        self.assertIn("report.json", files)
        self.assertNotIn("launch_plan.txt", files)
        self.assertIn("strong: T1/(N*TN), N = nodes", text)
        with open(self.path("out", "table.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["nodes"], row["ranks"], row["n"], row["speed_up"], row["efficiency"])
                          for row in rows], [("1", "1", "1", "1", "1"),
                                             ("2", "2", "2", "1.9", "0.95")])

    def test_a_sweep_whose_machine_went_down_goes_on_where_it_was(self):
        os.mkfifo(self.path("pipe"))
        with self.start() as child:
            with open(self.path("pipe"), encoding="utf-8") as pipe:
                self.assertEqual(pipe.readline(), "here\n")  # both hosts run
            child.terminate()  # all that is on the hosts, too, without a word
            child.stdout.read()
        first = self.samples()
        self.assertEqual([sample["nodes"] for sample in first], [1])
        os.remove(self.path("pipe"))
        text = self.sweep()
        self.assertNotIn("[1/4]", text)
        self.assertIn("[2/4]", text)
        self.assertEqual(self.samples()[:1], first)
        self.assertEqual([(sample["nodes"], sample["repeat"]) for sample in self.samples()],
                         [(1, 0), (2, 0), (2, 1), (1, 1)])
        self.assertEqual(self.samples()[1]["items_per_second"], 190)


if __name__ == "__main__":
    SWEEP, LAUNCHER, TRAINER = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    check = subprocess.run([TESTBED, "2", "--check"], capture_output=True, text=True, check=False)
    if check.returncode == 77:
        print(check.stderr)
        sys.exit(77)
    unittest.main()
