#!/usr/bin/env python3
"""Tests scaling_sweep with the real hvdliterun: it must know the launcher's plans.

usage: scaling_sweep_launch_test.py SCALING_SWEEP HVDLITERUN MPI_TRAINER
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testing"))
from launchers import AS_ROOT  # noqa: E402

SWEEP = LAUNCHER = TRAINER = None  # of the command line

# The settings "crowd ..." have more threads than any machine has cores.
SPEC = """
name: "threads"
command: ["%s", "{report}", "/none"]
ranks: 1
setting { name: "plain" }
setting { name: "one" threads: 1 }
setting { name: "crowd by variable" environment { name: "OMP_NUM_THREADS" value: "4096" } }
setting { name: "crowd by flag" launcher_flag: ["--threads", "4096"] }
setting { name: "alone" alone: true threads: 1 }
repeats: 1
scaling: STRONG
traces: NONE
"""


class LaunchTest(unittest.TestCase):
    def test_a_batch_job_of_several_hosts_needs_their_names(self):
        job = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NTASKS": "2",
               "SLURM_TASKS_PER_NODE": "1(x2)"}
        with tempfile.TemporaryDirectory(prefix="sweep") as directory:
            spec = os.path.join(directory, "spec.txt")
            with open(spec, "w", encoding="utf-8") as file:
                file.write('command: ["%s", "{report}", "/none"] ranks: 2 repeats: 1 '
                           'scaling: STRONG' % TRAINER)
            sweep = subprocess.run(
                [SWEEP, spec, "--output", os.path.join(directory, "out"), "--launcher-program",
                 LAUNCHER], env={**os.environ, **AS_ROOT, **job}, text=True, capture_output=True,
                check=False)
            self.assertEqual(sweep.returncode, 2, sweep.stdout + sweep.stderr)
            self.assertIn("on 2 hosts, not on 1", sweep.stderr)

    def test_threads_of_ranks_are_reported_and_oversubscription_is_found(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(
            ("OMP_", "HVDLITE_", "SLURM_", "PBS_", "PE_", "PJM_"))}
        environment.update(AS_ROOT)
        with tempfile.TemporaryDirectory(prefix="sweep") as directory:
            spec = os.path.join(directory, "spec.txt")
            with open(spec, "w", encoding="utf-8") as file:
                file.write(SPEC % TRAINER)
            sweep = subprocess.run(
                [SWEEP, spec, "--output", os.path.join(directory, "out"), "--launcher-program",
                 LAUNCHER], env=environment, text=True, capture_output=True, check=False)
            self.assertEqual(sweep.returncode, 0, sweep.stdout + sweep.stderr)
            with open(os.path.join(directory, "out", "results.jsonl"), encoding="utf-8") as file:
                samples = [json.loads(line) for line in file.read().splitlines()[1:]]
            self.assertEqual(len(samples), 5)
            for sample in samples:
                with self.subTest(sample["setting"]):
                    self.assertEqual(sample["failure"], "")
                    with open(os.path.join(directory, "out", sample["report"]),
                              encoding="utf-8") as file:
                        report = json.load(file)
                    self.assertEqual(str(sample["threads_used"]), report["threads"])
                    self.assertEqual(sample["oversubscribed"], "crowd" in sample["setting"])
                    self.assertEqual("--oversubscribe" in sample["command"],
                                     "crowd" in sample["setting"])


if __name__ == "__main__":
    SWEEP, LAUNCHER, TRAINER = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
