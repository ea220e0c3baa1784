#!/usr/bin/env python3
"""Tests scale_sim from the command line.

usage: scale_sim_command_test.py PROGRAM [--update]

--update writes the program's output to the golden files.
"""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
GOLDEN = {
    "table.golden": ["--ranks", "2", "64", "--arity", "2", "8", "--workload", "one"],
}

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")

program = None


def texts_and_numbers(text):
    """Returns the texts between the numbers of a text, and the numbers."""
    return NUMBER.split(text), [float(number) for number in NUMBER.findall(text)]


def run(arguments):
    return subprocess.run([program] + arguments, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


class ScaleSimCommandTest(unittest.TestCase):
    def succeed(self, arguments):
        done = run(arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refuse(self, arguments, *parts):
        done = run(arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr + done.stdout)

    def test_progress_is_shown_on_a_terminal(self):
        # This takes longer than a quarter of a second, after which progress is shown.
        ours, its = pty.openpty()
        text = b""
        with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
                [program, "--ranks", "512", "--steps", "2"], cwd=ROOT, stdout=output, stderr=its) as child:
            os.close(its)
            with contextlib.suppress(OSError):  # the program has closed the terminal
                while part := os.read(ours, 65536):
                    text += part
            child.wait()
            output.seek(0)
            table = output.read()
        os.close(ours)
        self.assertEqual(child.returncode, 0, text)
        self.assertNotIn("ETA", table)
        self.assertRegex(text.decode(), r"[a-z' ]*gradient \d+/\d+, \d+%, .* ETA ")
        self.assertTrue(text.endswith(b"\r\033[K"), text)  # cleared

    def test_output_equals_the_golden_files(self):
        self.maxDiff = None
        for name, arguments in GOLDEN.items():
            with self.subTest(name), open(os.path.join(HERE, name), encoding="utf-8") as file:
                expected_texts, expected = texts_and_numbers(file.read())
                texts, numbers = texts_and_numbers(self.succeed(arguments))
                self.assertEqual(texts, expected_texts)
                # The last digit can differ if the compiler fuses multiplications and additions.
                for number, wanted in zip(numbers, expected):
                    self.assertAlmostEqual(number, wanted, delta=max(0.11, 2e-3 * abs(wanted)))

    def test_same_flags_and_seed_give_the_same_json(self):
        arguments = ["--ranks", "4", "--compute-jitter", "0.05", "--overwrite"]
        texts = []
        with tempfile.TemporaryDirectory() as directory:
            for seed in ("1", "1", "2"):
                path = os.path.join(directory, "out.json")
                self.succeed(arguments + ["--seed", seed, "--json", path])
                with open(path, encoding="utf-8") as file:
                    texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_flags_set_the_gradients_and_costs_of_a_step(self):
        with tempfile.TemporaryDirectory() as directory:
            gradients, path = os.path.join(directory, "gradients.txt"), os.path.join(directory, "out.json")
            with open(gradients, "w", encoding="utf-8") as file:
                file.write("1000000 3\n1000000 1\n")
            # The second flag by its former spelling.
            done = run(["--ranks", "8", "--gradients", gradients, "--bucket-us", "500", "--batch-ns-per-byte", "1",
                        "--chunk-bytes", "1000000", "--min-batch-bytes", "1", "--json", path])
            self.assertEqual((done.returncode, done.stderr), (
                0, "warning: --batch-ns-per-byte is an old spelling; use --bucket-ns-per-byte\n"))
            with open(path, encoding="utf-8") as file:
                world, = json.load(file)["worlds"]
        # Two buckets of 4 MB, with four pieces each. The first ends before backward ends.
        self.assertAlmostEqual(world["buckets_ms"], 2 * (4 * 0.5 + 4))
        self.assertAlmostEqual(world["computation_ms"], 150)
        self.assertAlmostEqual(world["step_ms"], 150 + 4 * 0.5 + 4, delta=0.1)
        self.assertEqual(world["steady"]["decisions"], 2)

    def test_user_errors_exit_with_2_and_name_the_cause(self):
        self.refuse(["--ranks", "1"], "--ranks")
        self.refuse(["--gradients", "/nonexistent"], "/nonexistent: cannot be read")
        self.refuse(["--ranks", "2", "--json", "/nonexistent/out.json"], "/nonexistent/out.json")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "gradients.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("many\n")
            self.refuse(["--gradients", path], path + ": line 1")
            self.refuse(["--gradients", path, "--json", path], path, "name another file")
            self.refuse(["--gradients", path, "--workload", "one"], "--gradients", "--workload")

    def test_page_has_a_curve_per_arity(self):
        with tempfile.TemporaryDirectory() as directory:
            page = os.path.join(directory, "page.html")
            self.succeed(["--ranks", "2", "64", "--arity", "2", "8", "--workload", "one", "--html", page])
            with open(page, encoding="utf-8") as file:
                text = file.read()
        self.assertEqual(text.count("<polyline"), 2)
        self.assertNotIn("http", text)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    if sys.argv[2:] == ["--update"]:
        for golden, command in GOLDEN.items():
            with open(os.path.join(HERE, golden), "w", encoding="utf-8") as output_file:
                output_file.write(run(command).stdout)
        sys.exit()
    unittest.main(argv=sys.argv[:1])
