#!/usr/bin/env python3
"""Tests every flag that names an output file, of every program and script: an existing file is refused before any
work, the message names it and --overwrite, and the trace of an earlier run stays.
Usage: output_flags_test.py DIRECTORY_OF_PROGRAMS"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = sys.argv.pop(1)

# Names of flags that name an output file or directory, if they have a value.
NAMES = {"output", "output-dir", "output-filename", "json", "html", "csv", "report", "report-html", "checkpoint",
         "log", "table"}

# By program, command and flag: the rest of the command line. {trace} is a trace. For the flag --output without a
# command, the first word is a file that already exists in the output directory.
TRAINER = {flag: ["--data-dir", "/nowhere"] for flag in ("--checkpoint", "--report", "--report-html")}
REFUSED = {
    ("train_mnist", ""): TRAINER,
    ("train_resnet50", ""): {flag: ["--synthetic"] for flag in TRAINER},
    ("train_transformer", ""): TRAINER,
    ("generate_cifar10", ""): {"--output": ["data_batch_1.bin"]},
    ("generate_mnist", ""): {"--output": ["train-images-idx3-ubyte.gz"]},
    ("generate_pacs", ""): {"--output": ["photo/dog/pic_001.jpg"]},
    ("generate_pssp", ""): {"--output": ["cullpdb+profile_6133.npy.gz"]},
    ("timeline_viewer", "html"): {"--output": ["{trace}"]},
    ("timeline_viewer", "repair"): {"--output": ["{trace}"]},
    ("timeline_viewer", "merge"): {"--output": ["{trace}"]},
    ("timeline_viewer", "slice"): {"--output": ["{trace}"]},
    ("hvdlite_doctor", ""): {"--json": ["--no-mpi", "--check", "smt"]},
    ("scale_sim", ""): {"--json": [], "--html": []},
    ("studies/bench_report", ""): {"--json": ["{trace}"]},
    ("hvdlite_bench", ""): {"--json": ["sweep"]},
    ("bench/compare", "allreduce"): {"--json": []},
    ("bench/compare", "peers"): {"--json": []},
    ("bench/compare", "trainers"): {"--json": []},
    ("studies/bench_suite", ""): {"--output": ["run1/summary.txt"]},
    ("tests/causes/causes", ""): {"--json": []},
    ("tests/chaos/chaos", ""): {"--json": ["--real", "1"]},
}
# Flags that are not tested here, and why.
OTHERS = {
    ("train_synthetic", "", "--report"): "the report is added to the existing ones",
    ("scaling_sweep", "run", "--output"): "continues its own results, and refuses others",
    ("scaling_sweep", "tune", "--output"): "continues its own results, and refuses others",
    ("hvdlite_bench", "tune-table", "--output"): "refuses rows of this world (tune_table_test)",
    ("hvdlite_bench", "sweep", "--table"): "is an input",
    ("hvdliterun", "", "--output-dir"): "refuses logs of an earlier job (hvdliterun_test)",
    ("hvdliterun", "", "--output-filename"): "is --output-dir",
    ("studies/study", "", "--output"): "raw output below build/, replaced by the study's next run",
}


def run(command, **variables):
    return subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                               **variables})


def path_of(program):
    return os.path.join(ROOT if "/" in program else BIN, program)


def programs():
    """Yields the programs of the build and the scripts in Python."""
    for name in sorted(os.listdir(BIN)):
        if os.access(os.path.join(BIN, name), os.X_OK) and os.path.isfile(os.path.join(BIN, name)):
            yield name
    for directory in ("tools", "bench", "dev", "studies", "tests/causes", "tests/chaos"):
        for name in sorted(os.listdir(os.path.join(ROOT, directory))):
            path = os.path.join(ROOT, directory, name)
            if os.path.isfile(path) and os.access(path, os.X_OK) and "." not in name:
                with open(path, encoding="utf-8") as file:
                    if "python3" in file.readline():
                        yield directory + "/" + name


def help_of(program, command):
    return run([path_of(program), *([command] if command else []), "--help"]).stdout


def commands_of(text):
    """Returns the subcommands that --help lists."""
    below = re.split(r"^(?:SUBCOMMANDS|Subcommands):\n", text, flags=re.MULTILINE)
    return re.findall(r"^  ([a-z][a-z-]*)", below[1].split("\n\n")[0], re.MULTILINE) if len(below) > 1 else []


def flags_of(text):
    """Yields the flags of NAMES that have a value."""
    for line in text.splitlines():
        told = re.match(r"\s+(?:-\w(?: \w+)?, ?)?((?:--[a-z0-9-]+,?)+)(?: ([A-Z(|:\[=\]a-z-]+))?", line)
        if told is None or not told.group(2):
            continue
        for flag in told.group(1).split(","):
            if flag.strip("-") in NAMES and re.match(r"[A-Z]{2,}", told.group(2)):
                yield flag


class OutputFlagsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_existing_files_are_refused(self):
        trace = os.path.join(self.directory, "trace.json")
        with open(trace, "w", encoding="utf-8") as file:
            file.write('[{"ph":"X","name":"a","ts":1,"dur":1,"pid":0,"tid":1}]')
        recorded = os.path.join(self.directory, "recorded.json")
        there = list(programs())
        for (program, command), flags in REFUSED.items():
            if program not in there:
                continue
            for flag, rest in flags.items():
                with self.subTest(program=program, command=command, flag=flag):
                    output = os.path.join(self.directory, "output")
                    earlier = output
                    if flag == "--output" and command == "":
                        output, (inside, *rest) = os.path.join(self.directory, program.replace("/", "_")), rest
                        earlier = os.path.join(output, inside)
                        os.makedirs(os.path.dirname(earlier), exist_ok=True)
                    for path in (earlier, recorded):
                        with open(path, "w", encoding="utf-8") as file:
                            file.write("earlier")
                    words = [flag, output, *rest]
                    if program != "hvdlite_bench":
                        words = ([command] if command else []) + words
                    done = run([path_of(program), *(word.replace("{trace}", trace) for word in words)],
                               HVDLITE_TIMELINE=recorded)
                    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                    self.assertIn("--overwrite", done.stderr)
                    self.assertIn(output, done.stderr)
                    for path in (earlier, recorded):
                        with open(path, encoding="utf-8") as file:
                            self.assertEqual(file.read(), "earlier")

    def test_every_output_flag_is_tested(self):
        known = {(program, command, flag) for (program, command), flags in REFUSED.items() for flag in flags}
        found = set()
        for program in programs():
            text = help_of(program, "")
            for command in ["", *commands_of(text)]:
                found |= {(program, command, flag)
                          for flag in flags_of(help_of(program, command) if command else text)}
        self.assertEqual(found - known - set(OTHERS), set())
        missed = {row for row in known if os.path.exists(path_of(row[0]))} - found
        self.assertEqual(missed, set(), "--help lacks these flags, or flags_of() misses them")


if __name__ == "__main__":
    unittest.main()
