#!/usr/bin/env python3
"""Tests bench_suite with programs that only write the reports that it reads."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOBS = ROOT / "studies/bench_jobs"
PUBLISHED = [
    "toy_reg", "toy_lstm", "vae", "loader", "reso", "translator", "wlm", "wlmfp16", "cart", "atari", "ssd",
    "fast_style", "dcgan", "convnet", "convnet_fp16", "recom", "convnet_distributed",
    "convnet_distributed_fp16", "dcgan_all"]

# Writes a report for each instance; the first --fail ones report a failure. The speed is --lr plus the index.
TRAIN = '''#!{python}
import json, pathlib, sys
words = sys.argv[1:]
def value(flag, default):
    return words[words.index(flag) + 1] if flag in words else default
instances, failing = int(value("--instances", "1")), int(value("--fail", "0"))
report = pathlib.Path(value("--report", ""))
for index in range(instances):
    file = report if instances == 1 else report.with_name(f"{{report.stem}}_{{index}}.json")
    reports = json.loads(file.read_text()) if file.exists() else []
    reports.append({{"name": value("--name", ""), "completed": index >= failing, "seed": value("--seed", ""),
                     "unique_id": "1", "version": "1",
                     "train_item": {{"avg": float(value("--lr", "1")) + index}}}})
    file.write_text(json.dumps(reports))
sys.exit(int(value("--status", "1" if failing else "0")))
'''
LAUNCH = '#!/bin/sh\necho "launched $2"\nshift 2\nexec "$@"\n'
GENERATE = '#!/bin/sh\necho generate "$@" >>"$(dirname "$0")/generated"\nfor last; do :; done\nmkdir "$last"\n'


class BenchSuiteTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.bin = self.directory / "bin"
        self.bin.mkdir()
        for name, text in (("train_synthetic", TRAIN.format(python=sys.executable)), ("hvdliterun", LAUNCH),
                           ("generate_pacs", GENERATE)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.output = self.directory / "out"

    def suite(self, jobs, *flags):
        file = self.directory / "jobs.json"
        file.write_text(json.dumps(jobs))
        return subprocess.run(
            [ROOT / "studies/bench_suite", "--jobs", file, "--bin", self.bin, "--output", self.output,
             "--data", self.directory / "data", *map(str, flags)], capture_output=True, text=True)

    def reports(self, run, instance):
        return json.loads((self.output / f"run{run}/reports/reports_{instance}.json").read_text())

    JOBS = [{"name": "vae", "instances": "devices", "args": {"--model": "vae", "--lr": 3, "--number": 1, "--bf16": ""}},
            {"name": "all", "ranks": 2, "args": {"--model": "dcgan", "--lr": 5}}]

    def test_each_job_has_a_line_in_the_published_form(self):
        done = self.suite(self.JOBS)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = (self.output / "run1/summary.txt").read_text()
        self.assertRegex(
            summary,
            r"^\[ 1/ 2\]\[  /  \] PASSED \|     0\.\d\d MIN \| vae \(vae, 2 instances\)\n"
            r"\[ 2/ 2\]\[  /  \] PASSED \|     0\.\d\d MIN \| all \(dcgan, 2 ranks\)\n"
            r"Total Time +\d+\.\d\d s\n$")
        self.assertIn(summary, done.stdout)
        self.assertIn("no verdict", done.stdout)

    def test_instances_and_ranks_are_started_with_their_flags_and_reports(self):
        self.suite(self.JOBS, "--devices", 3, "--share-memory")
        self.assertIn(" --number 1 --bf16 --name vae --seed 1000 --report ", (self.output / "run1/vae.log").read_text())
        self.assertIn(" --instances 3 --share-memory\n", (self.output / "run1/vae.log").read_text())
        self.assertIn("launched 2\n", (self.output / "run1/all.log").read_text())
        self.assertEqual([report["name"] for report in self.reports(1, 0)], ["vae", "all"])
        self.assertEqual([report["name"] for report in self.reports(1, 2)], ["vae"])

    def test_one_device_has_one_numbered_report_and_no_instances(self):
        self.suite(self.JOBS[:1], "--devices", 1)
        self.assertNotIn("--instances", (self.output / "run1/vae.log").read_text())
        self.assertEqual([report["name"] for report in self.reports(1, 0)], ["vae"])

    def test_failures_are_counted_and_the_other_jobs_run(self):
        jobs = [{"name": "bad", "instances": 3, "args": {"--fail": 2}},
                {"name": "worse", "ranks": 2, "args": {"--fail": 1}}, *self.JOBS,
                {"name": "late", "instances": 1, "args": {"--status": 3}}]
        done = self.suite(jobs)
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^\[ 1/ 5\]\[ 2/ 3\] FAILED \|")
        self.assertRegex(lines[1], r"^\[ 2/ 5\]\[  /  \] FAILED \|")
        self.assertRegex(lines[3], r"^\[ 4/ 5\]\[  /  \] PASSED \|")
        self.assertRegex(lines[4], r"^\[ 5/ 5\]\[ 1/ 1\] FAILED \|")
        self.assertIn("bad.log", done.stderr)

    def test_runs_have_directories_and_seeds_and_are_judged_together(self):
        wanted = self.directory / "wanted.json"
        wanted.write_text('{"vae": 7, "all": 10}')
        done = self.suite(self.JOBS, "--runs", 4, "--target", wanted)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([self.reports(run, 0)[0]["seed"] for run in (1, 4)], ["1000", "4000"])
        verdict = (self.output / "verdict.txt").read_text()
        self.assertTrue(done.stdout.endswith(verdict), done.stdout)
        self.assertIn("Performance              |    -0.5000 | FAIL\n", verdict)
        self.assertEqual(json.loads((self.output / "verdict.json").read_text())["missing"], [])

    def test_the_first_run_can_be_the_target_of_the_others(self):
        done = self.suite(self.JOBS, "--runs", 5, "--target", "first")
        self.assertEqual(json.loads((self.output / "targets.json").read_text()), {"vae": 3.5, "all": 5})
        self.assertIn("Performance              |    +0.0000 | pass\n", done.stdout)

    def test_a_job_that_failed_in_the_first_run_gets_the_next_as_its_target(self):
        self.suite(self.JOBS, "--runs", 2)
        failed = self.output / "run1/reports/reports_0.json"
        failed.write_text(json.dumps([{**report, "completed": report["name"] != "all"}
                                      for report in json.loads(failed.read_text())]))
        later = self.output / "run2/reports/reports_0.json"
        later.write_text(later.read_text().replace("5.0", "7.0").replace("3.0", "9.0"))
        self.suite(self.JOBS, "--runs", 2, "--resume", "--target", "first")
        self.assertEqual(json.loads((self.output / "targets.json").read_text()), {"vae": 3.5, "all": 7})

    def test_runs_are_kept_only_if_complete_and_resumed(self):
        self.suite(self.JOBS, "--runs", 2)
        kept, broken = (self.output / f"run{run}/summary.txt" for run in (1, 2))
        kept.write_text("kept\nTotal Time\n")
        broken.write_text("broken\n")
        done = self.suite(self.JOBS, "--runs", 2, "--resume")
        self.assertIn("kept", done.stdout)
        self.assertNotIn("broken", broken.read_text())
        done = self.suite(self.JOBS)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--overwrite", done.stderr)
        self.assertIn("kept", kept.read_text())
        self.suite(self.JOBS, "--overwrite")
        self.assertNotIn("kept", kept.read_text())
        self.assertEqual(len(self.reports(1, 0)), 2)

    def test_data_are_generated_once_for_the_jobs_that_read_them(self):
        jobs = [{"name": "loader", "instances": 1, "args": {"--data-dir": "{data}/pictures"},
                 "data": {"directory": "pictures", "generate": ["generate_pacs", "--size", 40]}}]
        for _ in range(2):
            self.assertEqual(self.suite(jobs, "--overwrite").returncode, 0)
        self.assertEqual((self.bin / "generated").read_text().count("generate --size 40 --output"), 1)
        self.assertIn(f"--data-dir {self.directory}/data/pictures ", (self.output / "run1/loader.log").read_text())

    def test_jobs_can_be_chosen(self):
        def names(*flags):
            text = self.suite(self.JOBS, "--dry-run", *flags).stdout
            return [line.split("--name ")[1].split()[0] for line in text.splitlines()]
        self.assertEqual(names(), ["vae", "all"])
        self.assertEqual(names("--name", "all"), ["all"])
        self.assertEqual(names("--exclude", "all"), ["vae"])
        self.assertFalse(self.output.exists())

    def test_wrong_input_is_named(self):
        def message(jobs, *flags):
            done = self.suite(jobs, *flags)
            self.assertEqual(done.returncode, 2, done.stdout)
            return done.stderr
        self.assertIn("job 1 of", message([{"name": "a", "args": {}}]))
        self.assertIn("needs either instances or ranks", message([{"name": "a", "args": {}}]))
        self.assertIn("has cgroup", message([{"name": "a", "args": {}, "ranks": 1, "cgroup": "all"}]))
        self.assertIn("has 'two'", message([{"name": "a", "args": {}, "ranks": "two"}]))
        self.assertIn("vae more than once", message(self.JOBS + self.JOBS[:1]))
        self.assertIn("has no resnet; it has vae, all", message(self.JOBS, "--name", "resnet"))
        self.assertIn("not a list of jobs", message({}))
        os.unlink(self.bin / "hvdliterun")
        self.assertIn("does not exist", message(self.JOBS))


class JobFilesTest(unittest.TestCase):
    def read(self, name):
        return json.loads((JOBS / f"{name}.json").read_text())

    def test_all_published_benches_are_there_in_their_order(self):
        for name in ("published", "fast", "small"):
            self.assertEqual([job["name"] for job in self.read(name)], PUBLISHED)
        self.assertEqual(set(self.read("targets")), set(PUBLISHED))

    def test_small_jobs_are_the_published_ones_with_smaller_numbers(self):
        sizes = {"--batch-size-per-rank", "--repeat", "--number", "--skip", "--image-size", "--hidden",
                 "--classes", "--sequence-length", "--workers"}
        for name in ("published", "fast"):
            for published, small in zip(self.read(name), self.read("small")):
                def rest(job):
                    return {key: value for key, value in job["args"].items() if key not in sizes}
                self.assertEqual(rest(small), rest(published), small["name"])
                self.assertEqual("ranks" in small, "ranks" in published, small["name"])
                for size in ("--batch-size-per-rank", "--repeat", "--number"):
                    self.assertLessEqual(small["args"][size], published["args"][size], small["name"])


if __name__ == "__main__":
    unittest.main()
