#!/usr/bin/env python3
"""scale_sim's subcommands as a user runs them.

usage: scale_sim_command_test.py PROGRAM [--update]

--update writes what the program prints to the files that it is compared with.
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
TABLE = "tools/scale_sim/tables/a64fx_resnet50_cifar10.json"
GOLDEN = {
    "fit.golden": ["fit", TABLE],
    "predict.golden": [
        "predict", TABLE, "--columns", "GNU/1", "--nodes", "1,2,128", "--max-simulated-ranks", "64"
    ],
    "negotiation.golden": ["--ranks", "2", "64", "--workload", "one", "--topology", "both"],
}

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")

program = None


def texts_and_numbers(text):
    """What stands between the numbers of a text, and the numbers."""
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

    def test_progress_is_told_on_a_terminal_beside_the_table(self):
        # Each takes longer than the quarter of a second after which progress is told.
        for words, told in ((["--ranks", "512", "--steps", "2"], "gradient"),
                            (["life", "--ranks", "256", "--tensors", "10"], "phase"),
                            (["fit", TABLE, "--subsets", "--columns", "GNU/1"], "fit"),
                            (["predict", TABLE, "--columns", "GNU/1", "--nodes", "1,2,128",
                              "--max-simulated-ranks", "128"], "prediction")):
            with self.subTest(words):
                ours, its = pty.openpty()
                text = b""
                with tempfile.TemporaryFile("w+") as output, \
                        subprocess.Popen([program, *words], cwd=ROOT, stdout=output, stderr=its) as child:
                    os.close(its)
                    with contextlib.suppress(OSError):  # nobody has the terminal open any more
                        while part := os.read(ours, 65536):
                            text += part
                    child.wait()
                    output.seek(0)
                    table = output.read()
                os.close(ours)
                self.assertEqual(child.returncode, 0, text)
                self.assertNotIn("ETA", table)
                self.assertRegex(text.decode(), r"[a-z' ]*%s \d+/\d+, \d+%%, .* ETA " % told)
                self.assertTrue(text.endswith(b"\r\033[K"), text)  # cleared

    def test_flags_of_the_simulation_are_refused_before_a_command(self):
        self.refuse(["--ranks-per-node", "2", "fit", TABLE], "--ranks-per-node")

    def test_output_is_that_of_the_golden_files(self):
        self.maxDiff = None
        for name, arguments in GOLDEN.items():
            with self.subTest(name), open(os.path.join(HERE, name), encoding="utf-8") as file:
                expected_texts, expected = texts_and_numbers(file.read())
                texts, numbers = texts_and_numbers(self.succeed(arguments))
                self.assertEqual(texts, expected_texts)
                # The last digit may be another one where the compiler fuses multiplications and additions.
                for number, wanted in zip(numbers, expected):
                    self.assertAlmostEqual(number, wanted, delta=max(0.11, 2e-3 * abs(wanted)))

    def test_same_flags_and_seed_give_the_same_json(self):
        arguments = ["predict", "--image-ms", "2", "--nodes", "4", "--jitter", "0.05", "--steps", "3"]
        texts = []
        with tempfile.TemporaryDirectory() as folder:
            for seed in ("1", "1", "2"):
                path = os.path.join(folder, "out.json")
                self.succeed(arguments + ["--seed", seed, "--json", path, "--overwrite"])
                with open(path, encoding="utf-8") as file:
                    texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_json_of_a_fit_has_every_choice_of_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fit.json")
            self.succeed(
                ["fit", TABLE, "--columns", "GNU/1", "--fit-nodes", "1,8", "--subsets", "--json", path])
            with open(path, encoding="utf-8") as file:
                column, = json.load(file)["columns"]
        self.assertEqual(column["all_choices_of_rows"]["choices"], 28)
        self.assertEqual([point["nodes"] for point in column["points"] if point["fitted"]], [1, 8])

    def test_gradients_come_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gradients.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("1000000\n")
            output = self.succeed([
                "predict", "--image-ms", "1", "--nodes", "2", "--gradients", path, "--overlap", "1", "--cycle-ms", "0",
                "--software-ns-per-byte", "1", "--network", "tofu"
            ])
        # 512 ms of computation, then 4 MB at 1.15 ns per byte.
        self.assertRegex(output, r"(?m)^ +2  horovod +2 +49 ")
        self.assertRegex(output, r"(?m)^ +2  horovod +2 +516\.6 ")

    def test_links_between_nodes_are_those_of_the_flags(self):
        arguments = ["predict", "--image-ms", "1", "--nodes", "2", "--cycle-ms", "0", "--net-ns-per-byte", "10"]
        # 94.1 MB at 10 ns per byte on top of 512 ms.
        self.assertRegex(self.succeed(arguments), r"(?m)^ +2  horovod +2 +1453\.\d ")

    def test_user_errors_exit_with_2_and_say_what_to_do(self):
        self.refuse(["fit"], "TABLE")
        self.refuse(["fit", "/nonexistent.json"], "/nonexistent.json", "cannot be read")
        self.refuse(["fit", TABLE, "--fit-nodes", "3"], "no row for 3 nodes", "1, 2, 4")
        self.refuse(["fit", TABLE, "--columns", "Cray"], "'Cray'", "GNU/4")
        self.refuse(["fit", TABLE, "--parameters", "speed"], "'speed'", "image-ms")
        self.refuse(["fit", TABLE, "--gradients", "/nonexistent"], "resnet50-cifar10")
        self.refuse(["predict", TABLE, "--columns", "GNU/4"], "GNU/4", "one rank per node")
        self.refuse(["predict", TABLE, "--ranks-per-node", "5"], "divide 48 cores")
        self.refuse(["predict", TABLE, "--add", "speed"], "--add", "shared-memory")
        self.refuse(["predict", TABLE, "--add", "core,core"], "'core' is named twice")
        for flag in ("--images", "--batch-per-node", "--cores-per-node"):
            self.refuse(["predict", TABLE, flag, "96"], flag, "TABLE")
        for flag in ("--batch-per-rank", "--world-batch", "--items-per-epoch"):
            for command in ("fit", "predict"):
                self.refuse([command, TABLE, flag, "96"], flag + " is for the results of a sweep", TABLE,
                            "batch_per_rank")
        self.refuse(["--ranks", "1"], "--ranks")

    def test_a_sweep_is_fitted_and_drawn(self):
        titles = "setting,mapping,nodes,ranks,threads,oversubscribed,items_per_second_median,epoch_seconds"
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "table.csv"), "w", encoding="utf-8") as file:
                file.write(titles + "\n" + "".join(
                    f",,1,{ranks},1,no,{100 * ranks ** 0.9},{10 / ranks ** 0.9}\n" for ranks in (1, 2, 4, 8)))
            page = os.path.join(folder, "fit.html")
            text = self.succeed(["fit", folder, "--batch-per-rank", "10", "--html", page])
            self.assertIn("Nodes are ranks of one node. Fitted to the rows of 1, 2, 4 nodes", " ".join(text.split()))
            # Its speeds leave the first batch out.
            self.assertRegex(text, r"\(0\) +\(0\)\n")
            self.refuse(["fit", folder], "table.csv", "--batch-per-rank")
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("<polyline"), 2)

    def test_results_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            self.succeed(["--ranks", "2", "64", "--workload", "one", "--topology", "both", "--html", page])
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("<polyline"), 2)
            self.succeed(["predict", "--image-ms", "2", "--nodes", "1,2", "--html", page, "--overwrite"])
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("<polyline"), 2 * 6)
            self.succeed(["predict", "--image-ms", "2", "--nodes", "1,2", "--add", "none", "--html", page, "--overwrite"])
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("<polyline"), 2 * 2)
            self.refuse(["fit", TABLE, "--html", page], page, "--overwrite")
            self.succeed(["fit", TABLE, "--html", page, "--overwrite"])
            with open(page, encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(text.count("<polyline"), 2 * 6)
            self.assertNotIn("http", text)

    def test_a_table_of_one_row_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"source": "s", "images": 10, "batch_per_rank": 5, "cores_per_node": 1, "nodes": [1],
                           "columns": [{"name": "c", "ranks_per_node": 1, "epoch_seconds": [3]}]}, file)
            self.refuse(["fit", path], "a single row, of 1 node;", "takes two or more")

    def test_what_hvdlite_adds_are_lines_of_their_own(self):
        arguments = ["predict", TABLE, "--columns", "GNU/1", "--nodes", "8", "--max-simulated-ranks", "8"]

        def systems(*flags):
            strong, weak = re.findall(r"nodes  system .*\n(?:.+\n)+", self.succeed(arguments + list(flags)))
            names, same = (re.findall(r"^ +8  (.+?)  +\d", table, re.MULTILINE) for table in (strong, weak))
            self.assertEqual(names, same)
            return names
        equal = ["horovod", "hvdlite, equal settings"]
        self.assertEqual(systems(), equal + [
            "+ core of its own", "+ overlap", "+ 4 ranks per node", "+ shared memory"])
        self.assertEqual(systems("--add", "none"), equal)
        self.assertEqual(systems("--add", "overlap,core", "--comm-core", "spare"), equal + ["+ overlap", "+ spare core"])
        self.assertEqual(systems("--add", "none", "--hvdlite-algorithm", "ring", "--hvdlite-software-ns-per-byte", "1"),
                         equal + ["+ algorithm", "+ 1 ns per byte"])

    def test_unwritable_json_is_an_error(self):
        done = run(["fit", TABLE, "--columns", "GNU/1", "--json", "/nonexistent/fit.json"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/fit.json", done.stderr)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    if sys.argv[2:] == ["--update"]:
        for golden, command in GOLDEN.items():
            with open(os.path.join(HERE, golden), "w", encoding="utf-8") as output_file:
                output_file.write(run(command).stdout)
        sys.exit()
    unittest.main(argv=sys.argv[:1])
