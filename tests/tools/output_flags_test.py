#!/usr/bin/env python3
"""Every flag that names a file to write, of every program and script: a file that exists is refused, before
any work, and named with the ways out, and the trace of an earlier run stays; usage: ... FOLDER_OF_PROGRAMS"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = sys.argv.pop(1)

# Names of flags that name what is written, where they take a value.
NAMES = {"output", "output-dir", "output-filename", "json", "html", "csv", "report", "report-html", "checkpoint",
         "log", "table"}

# By program, command and flag: the rest of the command line. {file} exists, {folder} holds what the program
# would write there, {trace} is a trace.
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
# What these flags name is not replaced, for another reason.
OTHERS = {
    ("train_synthetic", "", "--report"): "a report is appended to those that are there",
    ("scaling_sweep", "run", "--output"): "goes on with what is there, and refuses other results",
    ("scaling_sweep", "tune", "--output"): "goes on with what is there, and refuses other results",
    ("hvdlite_bench", "tune-table", "--output"): "refuses rows of this world (tune_table_test)",
    ("hvdlite_bench", "sweep", "--table"): "is read",
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
    """Of the build, and the scripts in Python."""
    for name in sorted(os.listdir(BIN)):
        if os.access(os.path.join(BIN, name), os.X_OK) and os.path.isfile(os.path.join(BIN, name)):
            yield name
    for folder in ("tools", "bench", "dev", "studies", "tests/causes", "tests/chaos"):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            path = os.path.join(ROOT, folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK) and "." not in name:
                with open(path, encoding="utf-8") as file:
                    if "python3" in file.readline():
                        yield folder + "/" + name


def help_of(program, command):
    return run([path_of(program), *([command] if command else []), "--help"]).stdout


def commands_of(text):
    """The subcommands that --help tells of."""
    below = re.split(r"^(?:SUBCOMMANDS|Subcommands):\n", text, flags=re.MULTILINE)
    return re.findall(r"^  ([a-z][a-z-]*)", below[1].split("\n\n")[0], re.MULTILINE) if len(below) > 1 else []


def flags_of(text):
    """Flags of NAMES that take a value."""
    for line in text.splitlines():
        told = re.match(r"\s+(?:-\w(?: \w+)?, ?)?((?:--[a-z0-9-]+,?)+)(?: ([A-Z(|:\[=\]a-z-]+))?", line)
        if told is None or not told.group(2):
            continue
        for flag in told.group(1).split(","):
            if flag.strip("-") in NAMES and re.match(r"[A-Z]{2,}", told.group(2)):
                yield flag


class OutputFlagsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_files_that_exist_are_refused(self):
        trace = os.path.join(self.folder, "trace.json")
        with open(trace, "w", encoding="utf-8") as file:
            file.write('[{"ph":"X","name":"a","ts":1,"dur":1,"pid":0,"tid":1}]')
        recorded = os.path.join(self.folder, "recorded.json")
        there = list(programs())
        for (program, command), flags in REFUSED.items():
            if program not in there:
                continue
            for flag, rest in flags.items():
                with self.subTest(program=program, command=command, flag=flag):
                    output = os.path.join(self.folder, "output")
                    earlier = output
                    if flag == "--output" and command == "":
                        output, (inside, *rest) = os.path.join(self.folder, program.replace("/", "_")), rest
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

    def test_no_flag_is_left_out(self):
        known = {(program, command, flag) for (program, command), flags in REFUSED.items() for flag in flags}
        found = set()
        for program in programs():
            text = help_of(program, "")
            for command in ["", *commands_of(text)]:
                found |= {(program, command, flag)
                          for flag in flags_of(help_of(program, command) if command else text)}
        self.assertEqual(found - known - set(OTHERS), set())
        missed = {row for row in known if os.path.exists(path_of(row[0]))} - found
        self.assertEqual(missed, set(), "--help is not read right")


if __name__ == "__main__":
    unittest.main()
