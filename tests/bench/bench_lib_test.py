#!/usr/bin/env python3
"""The arithmetic of the benchmark scripts, with invented measurements."""

import math
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, ROOT)
from bench.comparisons import allreduce, peers  # noqa: E402
from bench.lib import launch, rounds  # noqa: E402


class SamplesTest(unittest.TestCase):
    def test_student_t_agrees_with_published_tables(self):
        for degrees, quantile in ((1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (120, 1.980)):
            self.assertAlmostEqual(rounds.student_t975(degrees), quantile, delta=1e-3)

    def test_interval_uses_student_t(self):
        summary = rounds.summarise([1, 2, 3])
        self.assertEqual(summary["mean"], 2)
        self.assertAlmostEqual(summary["high"], 2 + 4.303 / math.sqrt(3), delta=1e-3)
        self.assertAlmostEqual(summary["low"], 2 - 4.303 / math.sqrt(3), delta=1e-3)

    def test_interval_of_one_sample_is_infinite(self):
        summary = rounds.summarise([5])
        self.assertEqual((summary["median"], summary["low"], summary["high"]),
                         (5, -math.inf, math.inf))

    def test_different_distances_give_moved(self):
        self.assertEqual(rounds.common_distance(["near", "near"]), "near")
        self.assertEqual(rounds.common_distance(["near", "far"]), "moved")

    def test_bus_factor_is_twice_the_share_of_the_other_ranks(self):
        self.assertEqual(allreduce.bus_factor(2), 1)
        self.assertEqual(allreduce.bus_factor(4), 1.5)


def sweep(distance, times):
    """The output of hvdlite_bench: one case of 64 bytes with times by implementation."""
    return {"cases": [{"name": "64", "distance": distance, "implementations": [
        {"name": name, "role": "hvdlite" if name.startswith("hvdlite") else "mpi",
         "samples": samples_of} for name, samples_of in times.items()]}]}


class AllreduceRoundsTest(unittest.TestCase):
    def merged(self, second=("near", "near")):
        return allreduce.merge_round({
            "ob1": sweep(["near", "near"], {"hvdlite_x": [6, 10], "mpi_flat": [5, 5]}),
            "ucx": sweep(list(second), {"hvdlite_x": [1, 1], "mpi_flat": [4, 4], "mpi_1_mb": []})})

    def test_best_mpi_is_the_best_of_all_settings(self):
        own, best, names = allreduce.compare(
            [self.merged()], 64, "near", "hvdlite_x", "ob1")
        self.assertEqual((own, best, names), ([8], [4], ["ucx mpi_flat"]))

    def test_own_time_is_that_of_the_chosen_setting(self):
        own, _, _ = allreduce.compare([self.merged()], 64, "near", "hvdlite_x", "ucx")
        self.assertEqual(own, [1])

    def test_round_with_different_distances_is_dropped(self):
        moved = self.merged(second=("near", "far"))
        self.assertEqual(moved[64]["distance"], "moved")
        measured = [moved, self.merged()]
        self.assertEqual(len(allreduce.compare(measured, 64, "near", "hvdlite_x", "ob1")[0]), 1)
        self.assertEqual(allreduce.compare(measured, 64, "far", "hvdlite_x", "ob1"), ([], [], []))

    def test_missing_size_is_skipped(self):
        self.assertEqual(allreduce.compare(
            [self.merged()], 128, "near", "hvdlite_x", "ob1"), ([], [], []))


def case(name, **times):
    return {"name": name, "implementations": [
        {"name": implementation, "samples": values} for implementation, values in times.items()]}


class PeerRoundsTest(unittest.TestCase):
    def test_operation_lasts_from_the_last_start_to_the_last_end(self):
        ranks = [[[0.0, 5.0], [10.0, 12.0]], [[2.0, 3.0], [9.0, 14.0]]]
        self.assertEqual(peers.operation_us(ranks), [3e6, 4e6])

    def test_step_time_is_that_of_synchronisation(self):
        rank = {"together": [[0, 1]], "after_pause": [[0, 2]],
                "steps": {"w": {"ddp": {"step": [[0, 9], [0, 7]], "local": [[0, 3]]}}},
                "one_by_one": {"w": [[0, 4]]}}
        found = peers.ddp_us([rank, rank])
        self.assertEqual(found, {"together": {"all_reduce": 1e6}, "after_pause": {"all_reduce": 2e6},
                                 "step w": {"ddp": 5e6}, "one by one w": {"all_reduce": 4e6}})

    def test_times_of_hvdlite_are_comparable(self):
        gradients = {"cases": [
            case("w", hvdlite_async=[3, 5], hvdlite_grouped=[1], mpi_flat=[1]),
            case("w_step", hvdlite_views=[], hvdlite_optimizer=[9], mpi_flat=[7], local=[2])]}
        latency = {"cases": [case("together", hvdlite=[4], mpi=[1]),
                             case("together_p99", hvdlite=[9], mpi=[1])]}
        self.assertEqual(peers.hvdlite_us(gradients, latency), {
            "together": {"hvdlite": 4}, "one by one w": {"hvdlite_async": 4},
            "step w": {"hvdlite_optimizer": 7}})

    def test_settings_become_parts_of_names(self):
        self.assertEqual(
            peers.by_setting({"a": {"m": {"x": 1, "y": 2}}, "b": {"m": {"x": 3}}}),
            {"m": {"x/a": 1, "y/a": 2, "x/b": 3}})

    def test_ratios_compare_the_best_of_rounds_with_one_distance(self):
        def a_round(distance, ours, theirs):
            return {"distance": distance, "hvdlite": {"m": ours}, "ddp": {"m": theirs}}

        measured = [a_round("near", {"a": 2, "b": 3}, {"c": 4, "d": 8}), a_round("far", {"a": 1}, {"c": 1}),
                  a_round("moved", {"a": 1}, {"c": 1}), a_round("near", {"a": -1}, {"c": 1})]
        self.assertEqual(peers.ratios(measured, "m", "near"), [0.5])
        self.assertEqual(peers.ratios(measured, "m", "far"), [1])


class LaunchTest(unittest.TestCase):
    def test_failure_has_command_status_and_output(self):
        with self.assertRaisesRegex(launch.Failed, "(?s)false-program.*status 3.*what went wrong"):
            launch.run(["sh", "-c", "echo what went wrong >&2; exit 3", "false-program"], os.environ)

    def test_more_ranks_than_cores_are_not_bound(self):
        self.assertEqual(launch.mpirun(10**6)[-2:], ["--bind-to", "none"])
        self.assertEqual(launch.mpirun(1)[-2:], ["--bind-to", "core"])


class BenchPeersTest(unittest.TestCase):
    def test_skipped_without_pytorch_with_a_remedy(self):
        with tempfile.TemporaryDirectory() as directory:
            python = os.path.join(directory, "python")
            with open(python, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 1\n")
            os.chmod(python, 0o755)
            done = subprocess.run([sys.executable, os.path.join(ROOT, "bench/compare"), "peers", "--python", python],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 77)
        self.assertIn("apt-get install python3-torch", done.stdout)


if __name__ == "__main__":
    unittest.main()
