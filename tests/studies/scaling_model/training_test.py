#!/usr/bin/env python3
"""Tests the parts of the model of training against values computed by hand."""

import os
import unittest
from dataclasses import replace

import model  # noqa: F401
from studies.scaling_model.training import (Epoch, Gradients, Link, Model, Step, Wrong, epoch_of, gradients_named,
                                            harmonic, horovod_step, parse_gradients, resnet50, steps_of_epoch)


class GradientsTest(unittest.TestCase):
    def test_resnet50_for_cifar10_has_ten_classes(self):
        gradients = resnet50(10)
        self.assertEqual(len(gradients.elements), 161)
        self.assertEqual(gradients.bytes, 4 * 23528522)
        self.assertEqual(gradients.elements[:2], (10, 2048 * 10))
        self.assertEqual(resnet50(1000).bytes, 4 * 25557032)

    def test_backward_spends_its_time_where_the_multiply_adds_are(self):
        self.assertAlmostEqual(sum(resnet50(1000).work), 4.1e9, delta=0.05e9)
        ready = resnet50(10).ready
        self.assertLess(ready[1], 1e-4)  # the classifier's weight
        self.assertEqual((ready[-1], sorted(ready)), (1, ready))
        # The last three blocks have half of the bytes, but a fifth of the work.
        self.assertAlmostEqual(ready[2 + 3 * 10 - 1], 0.2, delta=0.03)

    def test_a_file_has_elements_and_work_per_line(self):
        gradients = parse_gradients("# a comment\n10 1\n\n20 3 # another\n", "f")
        self.assertEqual((gradients.sums, gradients.ready), ([0, 40, 120], [0.25, 1]))
        self.assertEqual(parse_gradients("5\n5\n", "f").ready, [0.5, 1])

    def test_a_bad_line_is_an_error_that_names_it(self):
        for text in ("10\nx\n", "10\n0\n", "10\n5 -1\n", "10\n5 1 2\n", "10\n1.5\n", "10\n5 nan\n", "10\n5 inf\n",
                     "10\n5 1e-999\n", "999999999999\n2\n"):
            with self.assertRaisesRegex(Wrong, "line 2"):
                parse_gradients(text, "f")
        with self.assertRaisesRegex(Wrong, "no gradients"):
            parse_gradients("# nothing\n", "f")
        for name in ("/nonexistent/resnet51", os.sep):
            with self.assertRaisesRegex(Wrong, name + ": no such set .* resnet50-cifar10"):
                gradients_named(name)


class AllreduceTest(unittest.TestCase):
    """An exchange of n bytes takes 12 us + 3 ns n."""

    def microseconds(self, size, ranks, **changes):
        return 1e6 * replace(Model(
            between_nodes=Link(10, 1, 0, 1), within_node=Link(1, 0.5, 0, 0.1), software_ns_per_byte=2),
            **changes).allreduce_seconds(size, ranks)

    def test_one_rank_needs_no_allreduce(self):
        self.assertEqual(self.microseconds(1000, 1), 0)
        self.assertEqual(self.microseconds(0, 8), 0)

    def test_recursive_doubling_exchanges_all_bytes_log2_times(self):
        self.assertAlmostEqual(self.microseconds(1000, 2), 15)
        self.assertAlmostEqual(self.microseconds(1000, 8), 3 * 15)
        # One rank of five folds its buffer into another's before and after.
        self.assertAlmostEqual(self.microseconds(1000, 5), (2 + 2) * 15)

    def test_a_ring_exchanges_parts_twice_per_neighbour(self):
        self.assertAlmostEqual(self.microseconds(4000, 4, algorithm="ring"), 2 * 3 * (12 + 3))

    def test_rabenseifner_exchanges_halves_and_quarters(self):
        self.assertAlmostEqual(self.microseconds(4000, 4, algorithm="rabenseifner"), 2 * (12 + 6) + 2 * (12 + 3))

    def test_the_fastest_depends_on_the_size(self):
        for size, algorithm in ((8, "recursive-doubling"), (1 << 24, "rabenseifner")):
            self.assertEqual(self.microseconds(size, 64, algorithm="fastest"),
                             self.microseconds(size, 64, algorithm=algorithm))

    def test_ranks_of_a_node_share_its_port(self):
        own = {"software_ns_per_byte": 0, "ranks_per_node": 2}
        # One exchange in the node, then one with two ranks at the port.
        self.assertAlmostEqual(self.microseconds(1000, 4, **own), (2 + 0.1) + (12 + 2))
        self.assertAlmostEqual(self.microseconds(1000, 2, **own), 2 + 0.1)

    def test_two_levels_reduce_in_the_node_and_then_parts_among_nodes(self):
        own = {"software_ns_per_byte": 0, "ranks_per_node": 2, "hierarchical": True, "shared_memory_ns_per_byte": 0.5}
        within_node = 2 * (1 + 2 * 0.5) + 0.5e-3 * 2 * 1000
        self.assertAlmostEqual(self.microseconds(2000, 2, **own), within_node)
        self.assertAlmostEqual(self.microseconds(2000, 4, **own), within_node + 12 + 2)
        self.assertAlmostEqual(self.microseconds(2000, 4, **{**own, "ranks_per_node": 1}), 2 * (12 + 2))

    def test_large_buffers_are_reduced_in_pieces(self):
        self.assertAlmostEqual(self.microseconds(1000, 2, chunk_bytes=400), 2 * (12 + 1.2) + (12 + 0.6))
        self.assertAlmostEqual(self.microseconds(300, 2, chunk_bytes=400), 12 + 0.9)


class HorovodStepTest(unittest.TestCase):
    """Two gradients of 1000 and 3000 bytes, which take 1 and 3 ms to reduce. With two images they are ready after 40
    and 60 ms."""

    def step(self, ranks=2, **changes):
        return horovod_step(replace(Model(Gradients("two", (250, 750), (1, 1)), image_ms=30, cycle_ms=0,
                                          software_ns_per_byte=1000), **changes), 2, ranks)

    def milliseconds(self, **changes):
        # Subtract the time of negotiation: one byte each way.
        return 1e3 * self.step(**{"between_nodes": Link(0, 0, 0, 0), **changes}).step

    def test_one_rank_only_computes(self):
        self.assertEqual(self.step(1, starved_share=0.5), Step(0.060, 0.060))

    def test_computation_waits_while_an_allreduce_runs(self):
        step = self.step(between_nodes=Link(0, 0, 0, 0))
        self.assertAlmostEqual(step.step, 0.064)
        self.assertAlmostEqual(step.computation, 0.060)
        self.assertAlmostEqual(step.communication, 0.004)
        self.assertAlmostEqual(step.exposed, 0.004)
        self.assertEqual(step.buckets, 2)

    def test_overlap_hides_all_but_the_last_allreduce(self):
        self.assertAlmostEqual(self.milliseconds(overlap=1), 63)
        self.assertAlmostEqual(self.milliseconds(overlap=0.5), 63.5)

    def test_starved_threads_slow_all_computation(self):
        self.assertAlmostEqual(self.milliseconds(starved_share=0.5), 2 * 60 + 4)

    def test_tensors_wait_for_the_next_cycle(self):
        # The first tensor starts at 42 ms, the other one three cycles after 43 ms.
        self.assertAlmostEqual(self.milliseconds(cycle_ms=7), 64 + 3)

    def test_the_slowest_rank_decides(self):
        self.assertAlmostEqual(self.milliseconds(jitter=0.1), 60 * 1.15 + 4)

    def test_tensors_that_are_ready_together_are_fused_up_to_the_threshold(self):
        together = Gradients("two", (250, 750), (1, 1e-30))
        self.assertEqual(self.step(gradients=together).buckets, 1)
        self.assertEqual(self.step(gradients=together, fusion_bytes=3999).buckets, 2)

    def test_the_root_hears_from_every_rank_before_a_batch(self):
        step = self.step(9, gradients=Gradients("one", (1,), (1,)), software_ns_per_byte=0,
                         between_nodes=Link(0, 100, 0, 0))
        # 8 other ranks send reports and get answers, and there is one exchange per doubling.
        self.assertAlmostEqual(1e6 * step.exposed, (8 + 8 + 2) * 100 + (3 + 2) * 200)


class EpochTest(unittest.TestCase):
    def test_number_of_steps_is_images_by_global_batch_rounded_up(self):
        self.assertEqual(sum(count for count, _ in steps_of_epoch(50000, 512, 2, "partial")), 49)  # of the trace
        for ranks in (1, 3, 40, 97, 98, 128, 8192):
            self.assertEqual(sum(count for count, _ in steps_of_epoch(50000, 512, ranks, "partial")),
                             -(-50000 // (512 * ranks)), ranks)

    def test_the_last_step_takes_the_remaining_images_or_a_full_batch(self):
        self.assertEqual(steps_of_epoch(50000, 512, 8, "partial"), [(12, 512), (1, 6250 - 12 * 512)])
        self.assertEqual(steps_of_epoch(50000, 512, 8, "full"), [(13, 512)])
        self.assertEqual(steps_of_epoch(50000, 512, 128, "full"), [(1, 512)])
        self.assertEqual(steps_of_epoch(1024, 512, 2, "partial"), [(1, 512)])

    def test_epoch_takes_the_sum_of_its_steps_and_the_cost_of_the_first_batch(self):
        epoch = epoch_of(Model(image_ms=40, first_batch_share=0.25), steps_of_epoch(1000, 100, 3, "partial"),
                         lambda images: Step(images, images - 0.25))
        self.assertEqual(epoch, Epoch(4, 3 * 100 + 34 + 0.25 * 100 * 0.040, 4 * 0.25))

    def test_the_expected_maximum_is_the_harmonic_number(self):
        self.assertAlmostEqual(harmonic(1), 1)
        self.assertAlmostEqual(harmonic(4), 25 / 12)


if __name__ == "__main__":
    unittest.main()
