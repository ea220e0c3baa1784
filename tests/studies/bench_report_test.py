#!/usr/bin/env python3
"""Tests the verdict of studies/bench_report over runs of benchmarks."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT))
from studies.runner import verdict  # noqa: E402

# The table in the README of milabench/report, with the suite's verdict: deviation quantile 1.1458 %,
# performance 0.2129, passed. (It prints the performance, a share, with a percent sign.)
PUBLISHED = """
atari 5.41 7.424253 0.055735
cart 2000.00 2195.248475 6.457116
convnet 178.76 175.973774 0.191682
convnet_distributed 276.10 756.841070 60.333975
convnet_distributed_fp16 330.41 785.470579 43.330802
convnet_fp16 262.56 329.347550 0.770485
dcgan_all 139.29 274.608760 1.361280
dcgan 115.52 147.794385 0.632454
fast_style 156.75 146.285007 0.218744
loader 1200.00 1188.224303 62.070805
recom 20650.19 20802.705368 103.476919
reso 138.34 178.694817 0.920870
ssd 59.96 49.263719 0.203476
toy_lstm 2.65 1.254635 0.007228
toy_reg 368820.18 215482.487073 3745.776792
translator 223.47 212.040509 0.443492
vae 7972.69 5931.232565 26.450238
wlm 1440.87 1365.497700 2.910483
wlmfp16 3793.37 4649.460342 18.698980
"""


def row(name, target, result, sd):
    return {"name": name, "target": target, "result": result, "sd": sd, "sd_percent": 100 * sd / result,
            "diff": result / target - 1 if target else None}


def report(name="a", speed=1.0, **others):
    return {"name": name, "unique_id": "id", "version": "1", "train_item": {"avg": speed}, **others}


def runs_of(*speeds):
    """Returns a run of benchmark a for each value, like read_run()."""
    return [[{"name": "a", "unique_id": "id", "version": "1", "failure": "", "speed": speed, "file": "run/a.json"}]
            for speed in speeds]


def other(run, **changes):
    run.append({**run[0], **changes})


class VerdictTest(unittest.TestCase):
    def test_the_published_table_has_its_published_verdict(self):
        rows = [row(name, *map(float, values)) for name, *values in map(str.split, PUBLISHED.strip().splitlines())]
        found = verdict.judge(rows, [])
        self.assertAlmostEqual(rows[0]["sd_percent"], 0.7507, delta=5e-5)
        self.assertAlmostEqual(rows[0]["diff"], 0.372320, delta=5e-7)
        self.assertAlmostEqual(found["deviation_quantile_percent"], 1.1458, delta=5e-5)
        self.assertAlmostEqual(found["performance"], 0.2129, delta=5e-5)
        self.assertTrue(found["passes"])
        self.assertIn("\nDeviation quantile (80%) |  +1.1458 % | pass\n", verdict.text_of(found))

    def test_best_and_worst_run_count_only_in_the_deviation(self):
        # 90 and 110 remain. The squared distances from the mean 100 are 1600 100 100 1600; their sum is divided by 3.
        found = verdict.row_of("a", [60, 90, 110, 140], 80)
        self.assertEqual((found["result"], found["diff"]), (100, 0.25))
        self.assertAlmostEqual(found["sd"], math.sqrt(3400 / 3))

    def test_several_reports_of_a_run_count_by_their_mean(self):
        runs = runs_of(10, 20, 30, 40)
        other(runs[1], speed=60)  # 40 on the mean
        self.assertEqual(verdict.compare(runs)["benchmarks"][0]["result"], 35)

    def test_fewer_than_four_runs_are_refused(self):
        with self.assertRaisesRegex(verdict.Wrong, "3 runs given; expected at least 4"):
            verdict.compare(runs_of(1, 1, 1))

    def test_missing_results_are_named_and_do_not_pass(self):
        runs = runs_of(10, 10, 10, 10, 1000)
        runs[4][0]["failure"] = "a loss is not finite"
        for index in (0, 1, 2):
            other(runs[index], name="b")
        found = verdict.compare(runs, {"a": 1, "b": 1, "c": 1})
        self.assertEqual(found["missing"], [
            "a failed in run 5: a loss is not finite", "b is missing in run 4", "b is missing in run 5",
            "b has no result: 3 of its runs succeeded, but 4 are needed", "c has a target, but no run has it"])
        self.assertEqual([(one["name"], one["result"], one["sd"]) for one in found["benchmarks"]], [("a", 10, 0)])
        self.assertFalse(found["passes"])

    def test_a_run_with_a_failed_and_a_good_report_does_not_count(self):
        runs = runs_of(10, 10, 10, 10, 1000)
        other(runs[4], failure="it did not complete")
        self.assertEqual(verdict.compare(runs)["benchmarks"][0]["sd"], 0)

    def test_runs_without_any_result_do_not_pass(self):
        runs = runs_of(1, 1, 1, 1)
        for run in runs:
            run[0]["failure"] = "a loss is not finite"
        found = verdict.compare(runs)
        self.assertIsNone(found["deviation_quantile_percent"])
        self.assertFalse(found["passes"])
        self.assertIn("Deviation quantile (80%) |       none | FAIL\n", verdict.text_of(found))

    def test_runs_of_different_programs_or_without_a_target_are_refused(self):
        for key, value in (("unique_id", "other"), ("version", "2")):
            runs = runs_of(1, 1, 1, 1)
            runs[2][0][key] = value
            with self.assertRaisesRegex(verdict.Wrong, f"run/a.json' has {key} {value}; expected"):
                verdict.compare(runs)
        with self.assertRaisesRegex(verdict.Wrong, "no target for a"):
            verdict.compare(runs_of(1, 1, 1, 1), {"b": 1})

    def test_limits_of_the_verdict(self):
        rows = [row("a", None, 100, sd) for sd in (1, 1, 1, 1, 4.99, 90)]
        self.assertTrue(verdict.judge(rows, [])["passes"])
        rows[4] = row("a", None, 100, 5)
        self.assertFalse(verdict.judge(rows, [])["passes"])
        self.assertTrue(verdict.judge([row("a", 100, 150, 0), row("b", 100, 50, 0)], [])["passes"])
        self.assertFalse(verdict.judge([row("a", 100, 150, 0), row("b", 100, 49, 0)], [])["passes"])

    def test_the_text_has_a_line_per_benchmark_and_the_verdict(self):
        found = verdict.judge([row("resnet50", 10, 12.5, 1), row("a", 2000, 1000, 2)], ["b is missing in run 4"])
        self.assertEqual(verdict.text_of(found), (
            "bench           target          result            sd       sd%       diff\n"
            "resnet50         10.00       12.500000      1.000000    8.0000   0.250000\n"
            "a              2000.00     1000.000000      2.000000    0.2000  -0.500000\n\n"
            "Missing: b is missing in run 4\n\n"
            "Statistic                |      Value | Verdict\n"
            "Benchmarks in all runs   |            | FAIL\n"
            "Deviation quantile (80%) |  +6.4400 % | FAIL\n"
            "Performance              |    -0.1250 | FAIL\n"
            "All                      |            | FAIL\n"))
        self.assertTrue(verdict.text_of(verdict.judge([row("a", None, 1000, 2)], [])).startswith(
            "bench          result            sd       sd%\na         1000.000000      2.000000    0.2000\n\n"))


class CommandTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def run_of(self, name, text):
        directory = self.directory / name / "instance0"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "a.json").write_text(text if isinstance(text, str) else json.dumps(text))
        (directory / "summary.txt").write_text("PASSED\n")
        return self.directory / name

    def bench_report(self, *words):
        return subprocess.run([ROOT / "studies/bench_report", *map(str, words)], capture_output=True, text=True)

    def test_exit_status_text_and_json(self):
        runs = [self.run_of(f"run{index}", [report(speed=16)]) for index in range(4)]
        done = self.bench_report(*runs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("target", done.stdout)
        target = self.directory / "targets.json"
        target.write_text('{"a": 32}')
        file = self.directory / "verdict.json"
        self.assertEqual(self.bench_report("--target", target, "--json", file, *runs).returncode, 1)
        found = json.loads(file.read_text())
        self.assertEqual((found["performance"], found["benchmarks"][0]["diff"]), (-0.5, -0.5))
        self.assertIn("--overwrite", self.bench_report("--json", file, *runs).stderr)
        self.assertEqual(self.bench_report("--json", file, "--overwrite", *runs).returncode, 0)
        done = self.bench_report("--json", target, "--target", target, "--overwrite", *runs)
        self.assertEqual(done.returncode, 2)
        self.assertIn("it is read, too", done.stderr)
        self.assertEqual(json.loads(target.read_text()), {"a": 32})

    def test_a_file_that_cannot_be_written_is_no_verdict(self):
        runs = [self.run_of(f"run{index}", [report(speed=16)]) for index in range(4)]
        done = self.bench_report("--json", "/dev/full", *runs)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("No space left", done.stderr)

    def test_a_run_without_benchmarks_does_not_pass(self):
        runs = [self.run_of(f"run{index}", [report(speed=16)] if index < 4 else []) for index in range(5)]
        done = self.bench_report(*runs)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Missing: a is missing in run 5", done.stdout)

    def test_bad_input_is_named_with_what_was_expected(self):
        for text, *expected in (
                ('[{"name": "a"}', "not JSON", "a list of benchmark reports"), ("{}", "a list of benchmark reports"),
                ("[5]", "report 0 of", "expected an object"), ([{}], "has no name"), ([{"name": 5}], "expected a text"),
                ([{"name": "a"}], "has no unique_id"), ([{"name": "a", "unique_id": "1"}], "has no version"),
                ([report(speed=0)], "has 0 as train_item.avg"), ([report(train_item=5)], "train_item.avg"),
                ([report(speed=None)], "has null as train_item.avg"), ([report(completed="yes")], "true or false"),
                ([report(batch_loss=5)], "has batch_loss = 5"), ([report(completed=False, failure=5)], "failure = 5"),
                ("[NaN]", "NaN is not a number in JSON")):
            with self.subTest(text=text):
                with self.assertRaises(verdict.Wrong) as raised:
                    verdict.read_run(self.run_of("bad", text))
                for part in (str(self.directory), *expected):
                    self.assertIn(part, str(raised.exception))
        for text in ("[]", '{"a": 0}', '{"a": "1"}', "{"):
            (self.directory / "targets.json").write_text(text)
            with self.assertRaises(verdict.Wrong):
                verdict.read_targets(self.directory / "targets.json")
        done = self.bench_report(self.directory / "nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere", done.stderr)

    def test_failures_in_reports(self):
        run = self.run_of("run", [report(batch_loss=[0.5, None]), report(batch_loss=None), report(completed=False),
                                  report(completed=False, failure="the loss of batch 3 is not finite")])
        self.assertEqual([one["failure"] for one in verdict.read_run(run)], [
            "a loss is not finite", "", "it did not complete", "the loss of batch 3 is not finite"])


if __name__ == "__main__":
    unittest.main()
