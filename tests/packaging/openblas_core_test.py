#!/usr/bin/env python3
"""Tests which kernels tools/openblas_core selects."""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

TOOL = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "openblas_core")


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("openblas_core", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("openblas_core", loader))
    loader.exec_module(module)
    return module


class OpenblasCoreTest(unittest.TestCase):
    AVX512 = {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}

    def test_old_kernels_are_replaced_by_the_best_for_the_processor(self):
        better_core = load().better_core
        self.assertEqual(better_core("Prescott", self.AVX512), "SkylakeX")
        self.assertEqual(better_core("Nehalem", {"avx2", "fma"}), "Haswell")

    def test_good_choices_and_old_processors_need_no_setting(self):
        better_core = load().better_core
        self.assertIsNone(better_core("Zen", self.AVX512))
        self.assertIsNone(better_core("Haswell", self.AVX512))
        self.assertIsNone(better_core("Prescott", {"sse3"}))
        self.assertIsNone(better_core("armv8", {"asimd", "sve"}))


if __name__ == "__main__":
    unittest.main()
