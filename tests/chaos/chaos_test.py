#!/usr/bin/env python3
"""Tests the parts of tests/chaos/chaos that need no job."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
from tests.chaos.lib import job, restarts, soak, trial as trials  # noqa: E402

SAID = "noise about rank 0\nhvdliterun: rank 1 on vm failed first, by signal 9 (Killed)\n"


def trial_of(fault, rank=1):
    trial = trials.Trial(1, fault)
    trial.rank = rank
    trial.launch_flags = []
    trial.moment = "steps"
    return trial


class ChaosTest(unittest.TestCase):
    def test_trial_is_a_function_of_its_seed(self):
        some = [trials.Trial(seed) for seed in range(200)]
        self.assertEqual([str(one) for one in some],
                         [str(trials.Trial(seed)) for seed in range(200)])
        self.assertEqual({one.fault for one in some}, set(trials.FAULTS))
        self.assertEqual({one.moment for one in some}, set(trials.POINTS))

    def test_trials_have_two_to_four_ranks_and_hosts_have_equally_many(self):
        some = [trials.Trial(seed) for seed in range(200)]
        self.assertEqual({one.ranks for one in some if not one.on_hosts}, {2, 3, 4})
        self.assertEqual({one.ranks for one in some if one.on_hosts}, {2, 4})
        self.assertEqual({one.rank for one in some if one.ranks == 4}, {0, 1, 2, 3})

    def test_commits_and_checkpoints_are_watched_on_rank_0(self):
        trial = trial_of("kill")
        for moment, watched in (("evaluation", "1 0"), ("commit", "0 0"), ("checkpoint", "0 0")):
            trial.moment = moment
            self.assertEqual(trial.watch().split(" ", 2)[2], watched)

    def test_next_start_is_watched_if_the_launcher_restarts(self):
        trial = trial_of("kill")
        trial.moment = "restart"
        self.assertEqual(trial.watch().split()[3], "0")
        trial.launch_flags = ["--max-restarts", "3"]
        self.assertEqual(trial.watch().split()[3], "1")

    def test_each_start_must_name_its_own_rank(self):
        trial = trial_of("kill", 0)
        trial.moment, trial.first_rank = "restart", 1
        trial.launch_flags = ["--max-restarts", "3"]
        first, second = SAID, SAID.replace("rank 1", "rank 0")
        again = ("[2026-11-25 02:31:54.123 vm pid 7 hvdliterun warning] "
                 "starting again (%d of 3 restarts after failures): 2 ranks\n")
        both = first + again % 1 + second + again % 2
        self.assertEqual(trials.verdict(trial, 0, both, True), "")
        self.assertIn("first message", trials.verdict(trial, 0, second + again % 1, True))
        self.assertIn("rank 0", trials.verdict(trial, 0, first + again % 1 + first, True))
        trial.launch_flags = []
        by_user = first + trials.BY_USER + "\n" + second
        self.assertEqual(trials.verdict(trial, 137, by_user, False), "")

    def test_message_must_name_the_cause_of_a_rank_s_end(self):
        self.assertIn("signal 6", trials.verdict(trial_of("abort"), 134, SAID, False))
        told = "hvdliterun: rank 1 (vm) has left the world: x; then rank 0 on vm failed, by ...\n"
        self.assertEqual(trials.verdict(trial_of("abort"), 134, told, False), "")

    def test_any_rank_of_a_killed_host_may_be_named(self):
        trial = trial_of("host killed", 3)
        trial.ranks = 4
        self.assertEqual(trial.struck_ranks(), [2, 3])
        said = SAID.replace("rank 1", "rank 2")
        self.assertEqual(trials.verdict(trial, 137, said, False), "")
        self.assertIn("rank 3", trials.verdict(trial, 137, SAID, False))

    def test_given_fault_keeps_the_rest_of_the_trial(self):
        self.assertEqual(trials.Trial(7, "kill").part, trials.Trial(7, "abort").part)

    def test_job_that_may_restart_must_succeed(self):
        trial = trial_of("kill")
        trial.launch_flags = ["--max-restarts", "3"]
        self.assertEqual(trials.verdict(trial, 0, SAID, True), "")
        self.assertIn("started again", trials.verdict(trial, 137, SAID, False))
        self.assertIn("rank 1", trials.verdict(trial, 0, SAID.replace("rank 1", "rank 0"), True))

    def test_growth_is_measured_after_the_start(self):
        start = [(0, 100, 10), (50, 500, 10)]
        first = [(60 + i, 1000, 20) for i in range(10)]
        busy = [(80, 3000, 25)]
        last = [(120 + i, 1010, 20) for i in range(10)]
        self.assertAlmostEqual(soak.growth(start + first + busy + last, 60), 0.01)
        last[-1] = (129, 5000, 29)  # for a moment
        self.assertAlmostEqual(soak.growth(start + first + busy + last, 60), 0.01)
        last = [(time, 1000, 22) for time, _, _ in last]
        self.assertAlmostEqual(soak.growth(start + first + busy + last, 60), 0.1)
        self.assertIsNone(soak.growth(first + last, 100))

    def test_processes_that_outlive_the_restart_are_measured_after_it(self):
        start = [(2 * i, 1000, 20) for i in range(60)]
        after = [(120 + 2 * i, 1100, 22) for i in range(60)]
        more = [(240 + 2 * i, 1122, 22) for i in range(20)]
        self.assertAlmostEqual(soak.growth_of(start + after, None), 0.1)
        self.assertAlmostEqual(soak.growth_of(start + after, 119), 0)
        self.assertAlmostEqual(soak.growth_of(start + after + more, 119), 0.02)
        # The process ended with the first start, or began with a later one.
        self.assertAlmostEqual(soak.growth_of(start, 119), 0)
        self.assertAlmostEqual(soak.growth_of(start + after, -5), 0.1)

    def test_only_the_launcher_is_asked_to_stop(self):
        with tempfile.TemporaryDirectory() as directory:
            launcher = os.path.join(directory, "hvdliterun")
            os.symlink(shutil.which("sleep"), launcher)
            mark = "%d.ask" % os.getpid()
            running = [subprocess.Popen([program, "60"], env={job.MARK: mark, **variables})
                    for program, variables in (
                        (launcher, {}), (launcher, {"OMPI_COMM_WORLD_RANK": "0"}),
                        (shutil.which("sleep"), {}))]
            try:
                soak.ask_to_stop(mark)
                self.assertEqual(running[0].wait(), -signal.SIGTERM)
                self.assertEqual([one.poll() for one in running[1:]], [None, None])
            finally:
                for one in running:
                    one.kill()
                    one.wait()

    def test_steps_after_the_last_commit_are_lost(self):
        log = ("data: x\nepoch 1/1 step 9/24 loss 1\nepoch 1/1 step 10/24 loss 1\n"
               "hvdliterun: rank 0 on vm failed first\ndata: x\nresumed: %d of 24 steps are done\n"
               "epoch 1/1 step 11/24 loss 1\n")
        self.assertEqual(restarts.steps_lost(log % 9), 1)
        self.assertEqual(restarts.steps_lost(log % 10), 0)

    def test_only_failure_messages_of_the_launcher_name_the_rank(self):
        self.assertTrue(trials.names_rank(SAID, 1))
        self.assertFalse(trials.names_rank(SAID, 0))
        self.assertFalse(trials.names_rank(SAID.replace("rank 1", "rank 11"), 1))
        self.assertFalse(trials.names_rank("", 1))

    def test_killed_rank_must_be_named(self):
        self.assertEqual(trials.verdict(trial_of("kill"), 137, SAID, False), "")
        self.assertIn("rank 0", trials.verdict(trial_of("kill", 0), 137, SAID, False))

    def test_job_that_does_not_end_fails_its_trial(self):
        self.assertIn("did not end", trials.verdict(trial_of("kill"), None, SAID, False))

    def test_job_that_continues_must_end_with_the_same_parameters(self):
        self.assertEqual(trials.verdict(trial_of("pause"), 0, "", True), "")
        self.assertIn("parameters", trials.verdict(trial_of("pause"), 0, "", False))
        self.assertIn("failed", trials.verdict(trial_of("pause"), 1, SAID, False))

    def test_either_end_of_a_cut_link_may_be_named(self):
        for rank in range(trial_of("link cut").ranks):
            self.assertEqual(trials.verdict(trial_of("link cut", rank), 1, SAID, False), "")

    def test_cut_link_is_between_two_hosts(self):
        trial = trial_of("link cut", 3)
        trial.ranks = 4
        said = ("hvdliterun: rank 2 (host1) has given no sign of life to rank 0 (%s) for 5s; see x;"
                " then rank 0 on host0 failed, with exit code 1\n")
        self.assertEqual(trials.verdict(trial, 1, said % "host0", False), "")
        self.assertIn("one host", trials.verdict(trial, 1, said % "host1", False))
        said = said.replace("see x", "or waits for a rank of another host")
        self.assertEqual(trials.verdict(trial, 1, said % "host1", False), "")
        trial.moment = "shutdown"
        lost = "  Remote daemon: [[1,0],2] on node host1\nhvdliterun: mpirun ended with x\n"
        self.assertEqual(trials.verdict(trial, 205, lost, True), "")

    def test_missing_rank_is_unknown_at_the_start(self):
        trial = trial_of("stop", 0)
        waits = "rank 1 (vm) has been in hvdlite::init() for 15s\n" + SAID
        for moment, wrong in (("start", ""), ("steps", "the message does not name rank 0")):
            trial.moment = moment
            self.assertEqual(trials.verdict(trial, 75, waits, False), wrong)

    def test_full_disk_must_be_reported(self):
        self.assertIn("disk", trials.verdict(trial_of("disk full", 0), 1, SAID, False))
        self.assertEqual(
            trials.verdict(trial_of("disk full", 0), 1, "No space left on device", False), "")

    def test_table_has_a_row_for_each_injected_fault(self):
        results = [
            {"seed": 1, "fault": "kill", "status": 137, "seconds_to_the_end": 2.0,
             "seconds_to_a_checkpoint": 1.5, "wrong": []},
            {"seed": 2, "fault": "kill", "status": 0, "seconds_to_the_end": None,
             "seconds_to_a_checkpoint": None, "wrong": ["x"]},
            {"seed": 3, "fault": "pause", "status": 0, "seconds_to_the_end": 1.0,
             "seconds_to_a_checkpoint": None, "wrong": []}]
        kill, pause = trials.summary(results)
        self.assertEqual((kill["trials"], kill["passed"], kill["failed_as_it_must"]), (2, 1, 1))
        self.assertEqual((kill["median_s"], kill["seeds"]), (2.0, [1, 2]))
        self.assertEqual((kill["started_again"], kill["median_to_a_checkpoint_s"]), (1, 1.5))
        self.assertEqual((pause["fault"], pause["failed_as_it_must"]), ("pause", 0))
        self.assertEqual(len(trials.table([kill, pause]).splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
