#!/usr/bin/env python3
"""Tests predictions with scale_sim. Usage: prediction_test.py SCALE_SIM [unittest's arguments]"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict, replace

import model
from studies.scaling_model import prediction
from studies.scaling_model.prediction import ADDITIONS, Hvdlite, Simulator, Variant, predict, starved_share, variants
from studies.scaling_model.training import NETWORKS, SHARED_MEMORY, Model, Wrong, harmonic, parse_gradients

FULL = Hvdlite(ranks_per_node=4, core="own", max_simulated_ranks=16)
PROGRAM = SIMULATOR = None  # from the command line
RESNET50 = Model(image_ms=2, between_nodes=NETWORKS["tofu"], software_ns_per_byte=0.5, chunk_bytes=4 << 20)


def systems(full=FULL, additions=ADDITIONS, column=0):
    return variants(model.published(), model.published_fit((1, 2, 8), column), full, additions)


class SetupTest(unittest.TestCase):
    def test_a_shared_core_costs_half_while_the_other_thread_runs(self):
        self.assertEqual(starved_share("shared", 48, 1), 0.5)
        self.assertEqual(starved_share("shared", 48, 0.2), 0.1)

    def test_an_own_core_costs_a_thread_of_the_team(self):
        self.assertAlmostEqual(starved_share("own", 12, 1), 1 / 12)
        self.assertEqual(starved_share("own", 1, 1), 0.5)
        self.assertEqual(starved_share("spare", 12, 1), 0)

    def test_equal_settings_are_those_of_the_fit(self):
        fit = model.published_fit((1, 2, 8), 2)
        setup = systems(column=2)[0].setup
        its = setup.model(model.published(), fit)
        self.assertEqual((its.image_ms, its.starved_share), (fit.model.image_ms, fit.model.starved_share))
        self.assertGreater(its.starved_share, 0.2)
        self.assertEqual((its.ranks_per_node, its.hierarchical, setup.overlap), (1, False, False))
        horovod = replace(fit.model, overlap=1, fusion_bytes=77)
        setup = prediction.equal_settings(horovod, FULL)
        self.assertEqual((setup.overlap, setup.fusion_bytes), (True, 77))

    def test_each_addition_changes_one_thing_on_top_of_those_before(self):
        found = systems()
        self.assertEqual([one.name for one in found], [
            "hvdlite, equal settings", "+ core of its own", "+ overlap", "+ 4 ranks per node", "+ shared memory"])
        changed = [{key for key, value in asdict(one.setup).items() if value != asdict(before.setup)[key]}
                   for before, one in zip(found, found[1:])]
        self.assertEqual(changed, [{"core"}, {"overlap"}, {"ranks_per_node"}, {"hierarchical"}])
        found = systems(replace(FULL, algorithm="ring", software_ns_per_byte=0.25), [])
        self.assertEqual([one.name for one in found[1:]], ["+ algorithm", "+ 0.25 ns per byte"])
        self.assertEqual(found[2].setup, replace(found[0].setup, algorithm="ring", software_ns_per_byte=0.25))

    def test_the_setup_changes_the_model(self):
        table, fit = model.published(), model.published_fit((1, 2, 8), 1)
        its = systems(column=1)[-1].setup.model(table, fit)
        self.assertAlmostEqual(its.image_ms, 4 * fit.model.image_ms)
        self.assertAlmostEqual(its.starved_share, 1 / 12)
        self.assertTrue(its.hierarchical)
        its = replace(FULL, ranks_per_node=1, core="shared", busy_share=0.1, algorithm="ring").model(table, fit)
        self.assertEqual((its.starved_share, its.algorithm), (0.05, "ring"))


class StepTest(unittest.TestCase):
    def step(self, ranks, setup=Hvdlite(), own=RESNET50):
        return SIMULATOR.step(setup, own, 100, ranks)

    def test_one_rank_only_computes(self):
        self.assertAlmostEqual(self.step(1).step, 0.2)

    def test_communication_is_hidden_behind_backward(self):
        step = self.step(8, Hvdlite(overlap=True), replace(RESNET50, image_ms=5))
        self.assertAlmostEqual(step.computation, 0.5, delta=1e-6)
        # 94 MB are sent three times.
        self.assertAlmostEqual(step.communication, 3 * 94.1e6 * 0.65e-9, delta=0.01)
        self.assertGreater(step.buckets, 5)
        self.assertLess(step.exposed, 0.25 * step.communication)

    def test_without_overlap_all_communication_is_exposed(self):
        step = self.step(8)
        self.assertGreaterEqual(step.exposed, step.communication)
        self.assertEqual(step.buckets, 2)  # one of 64 MiB and one with the rest
        own = replace(RESNET50, chunk_bytes=4 << 20, gradients=parse_gradients("1000000 1\n1000000 1\n", ""))
        self.assertAlmostEqual(self.step(8, own=own).communication, own.allreduce_seconds(8000000, 8), delta=1e-8)

    def test_starved_threads_slow_computation(self):
        self.assertAlmostEqual(self.step(8, own=replace(RESNET50, starved_share=0.2)).computation, 0.25, delta=1e-6)

    def test_fewer_simulated_ranks_give_nearly_the_same_step(self):
        every, few = (self.step(128, Hvdlite(overlap=True, max_simulated_ranks=ranks)).step for ranks in (128, 16))
        self.assertAlmostEqual(few, every, delta=1e-3 * every)
        self.assertNotEqual(few, every)

    def test_fewer_simulated_ranks_have_the_stragglers_of_all(self):
        setup, own = Hvdlite(steps=40, max_simulated_ranks=8), replace(RESNET50, jitter=0.05)
        for ranks in (4, 256):
            self.assertAlmostEqual(self.step(ranks, setup, own).computation, 0.2 * (1 + 0.05 * harmonic(ranks)),
                                   delta=0.008)
        self.assertEqual(self.step(4, setup, own), self.step(4, setup, own))
        self.assertNotEqual(self.step(4, setup, own), self.step(4, replace(setup, seed=2), own))

    def test_links_are_those_of_scale_sim(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, link in NETWORKS.items():
                path = os.path.join(directory, name)
                subprocess.run([PROGRAM, "--ranks", "2", "--workload", "one", "--network", name, "--json", path],
                               check=True, stdout=subprocess.DEVNULL)
                with open(path, encoding="utf-8") as file:
                    found = json.load(file)
                self.assertEqual((found["between_nodes"], found["within_node"]), (asdict(link), asdict(SHARED_MEMORY)))

    def test_a_missing_or_failing_program_is_named(self):
        with self.assertRaisesRegex(Wrong, "cannot run /nonexistent: .* --scale-sim"):
            Simulator("/nonexistent").step(Hvdlite(), RESNET50, 1, 2)
        with self.assertRaisesRegex(Wrong, "failed: .*--arity"):
            self.step(2, Hvdlite(arity=0))


class PredictTest(unittest.TestCase):
    def test_efficiencies_refer_to_one_node_of_the_same_system(self):
        fit = model.published_fit((1, 2, 8), 0)
        found = predict(model.published(), fit, systems(), [1, 16], SIMULATOR)
        self.assertEqual(len(found), 12)
        for index, (one, many) in enumerate(zip(found[:6], found[6:])):
            self.assertEqual((one.nodes, many.nodes, one.system), (1, 16, many.system))
            self.assertEqual((one.efficiency, one.weak_efficiency), (1, 1))
            self.assertEqual(many.ranks, 16 if index < 4 else 64)
            self.assertEqual(many.speedup, one.epoch.seconds / many.epoch.seconds)
            self.assertEqual(many.efficiency, many.speedup / 16)
            self.assertEqual(many.weak_efficiency, one.full_step.step / many.full_step.step)
            self.assertEqual(many.epoch_gain, found[6].epoch.seconds / many.epoch.seconds)
            self.assertEqual(many.epoch.steps, 7)
        # Horovod's times are those of the fit. With equal settings hvdlite's negotiation saves little.
        self.assertEqual((found[6].system, found[6].epoch.seconds), ("horovod", fit.points[4].predicted))
        self.assertAlmostEqual(found[7].epoch_gain, 1, delta=0.05)

    def test_unsupported_tables_are_rejected(self):
        with self.assertRaisesRegex(Wrong, "'Fujitsu/4' has several ranks per node"):
            predict(model.published(), model.published_fit((1, 2, 8), 3), systems(), [2], SIMULATOR)
        with self.assertRaisesRegex(Wrong, "divide 48 cores"):
            predict(model.published(), model.published_fit((1, 2, 8), 0), [Variant("five", Hvdlite(5))], [2], SIMULATOR)
        with self.assertRaisesRegex(Wrong, "ranks of one node"):
            predict(replace(model.published(), ranks_stand_for_nodes=True), model.published_fit((1, 2, 8), 0), [], [2],
                    SIMULATOR)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    SIMULATOR = Simulator(PROGRAM)
    unittest.main()
