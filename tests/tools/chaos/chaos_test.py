#!/usr/bin/env python3
"""Tests of what needs no job in tools/chaos."""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

TOOL = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..",
                                    "tools", "chaos"))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("chaos", TOOL)
spec = importlib.util.spec_from_loader("chaos", loader)
chaos = importlib.util.module_from_spec(spec)
loader.exec_module(chaos)

SAID = "noise about rank 0\nhvdliterun: rank 1 on vm failed first, by signal 9 (Killed)\n"


def trial_of(fault, rank=1):
    trial = chaos.Trial(1, fault)
    trial.rank = rank
    return trial


class ChaosTest(unittest.TestCase):
    def test_a_trial_is_a_function_of_its_seed(self):
        trials = [chaos.Trial(seed) for seed in range(200)]
        self.assertEqual([str(one) for one in trials],
                         [str(chaos.Trial(seed)) for seed in range(200)])
        self.assertEqual({one.fault for one in trials}, set(chaos.FAULTS))
        self.assertEqual({one.moment for one in trials}, set(chaos.MOMENTS))

    def test_one_fault_alone_keeps_the_rest_of_the_trial(self):
        self.assertEqual(chaos.Trial(7, "kill").part, chaos.Trial(7, "abort").part)

    def test_only_the_last_message_of_the_launcher_names_the_rank(self):
        self.assertTrue(chaos.names_rank(SAID, 1))
        self.assertFalse(chaos.names_rank(SAID, 0))
        self.assertFalse(chaos.names_rank(SAID.replace("rank 1", "rank 11"), 1))
        self.assertFalse(chaos.names_rank("", 1))

    def test_a_killed_rank_must_be_named(self):
        self.assertEqual(chaos.verdict(trial_of("kill"), 137, SAID, False), "")
        self.assertIn("rank 0", chaos.verdict(trial_of("kill", 0), 137, SAID, False))

    def test_a_job_that_does_not_end_has_failed_its_trial(self):
        self.assertIn("did not end", chaos.verdict(trial_of("kill"), None, SAID, False))

    def test_what_goes_on_must_end_with_the_same_parameters(self):
        self.assertEqual(chaos.verdict(trial_of("pause"), 0, "", True), "")
        self.assertIn("parameters", chaos.verdict(trial_of("pause"), 0, "", False))
        self.assertIn("failed", chaos.verdict(trial_of("pause"), 1, SAID, False))

    def test_either_end_of_a_cut_link_may_be_named(self):
        for rank in range(chaos.RANKS):
            self.assertEqual(chaos.verdict(trial_of("link cut", rank), 1, SAID, False), "")

    def test_a_full_disk_must_be_told_of(self):
        self.assertIn("disk", chaos.verdict(trial_of("disk full", 0), 1, SAID, False))
        self.assertEqual(
            chaos.verdict(trial_of("disk full", 0), 1, "No space left on device", False), "")

    def test_the_table_has_a_row_for_each_fault_that_was_tried(self):
        results = [
            {"seed": 1, "fault": "kill", "status": 137, "seconds_to_the_end": 2.0, "wrong": []},
            {"seed": 2, "fault": "kill", "status": 0, "seconds_to_the_end": None, "wrong": ["x"]},
            {"seed": 3, "fault": "pause", "status": 0, "seconds_to_the_end": 1.0, "wrong": []}]
        kill, pause = chaos.summary(results)
        self.assertEqual((kill["trials"], kill["passed"], kill["failed_as_it_must"]), (2, 1, 1))
        self.assertEqual((kill["median_s"], kill["seeds"]), (2.0, [1, 2]))
        self.assertEqual((pause["fault"], pause["failed_as_it_must"]), ("pause", 0))
        self.assertEqual(len(chaos.table([kill, pause]).splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
