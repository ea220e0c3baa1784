#!/usr/bin/env python3
"""Tests Ctrl-C for every program and script: the exit code is 130, a message explains the consequences, and no
incomplete file remains. Usage: interrupt_test.py DIRECTORY_OF_PROGRAMS [unittest's arguments]"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = os.path.abspath(sys.argv.pop(1))
WAIT = 120  # seconds; normally it takes far less

SPEC = "command: ['./trainer', '--report', '{report}'] ranks: 1 repeats: 1 scaling: STRONG"
AGAIN = "run the same command again"
RESNET = ["train_resnet50", "--synthetic", "--arch", "resnet18", "--image-size", "32", "--global-batch-size", "2",
          "--epochs", "1000"]
UNSAVED = "nothing is saved without --checkpoint"

# By program (and case): arguments for a long run, a text that the program prints when it works (empty: wait until it
# has a signal handler), and the expected message.
LONG = {
    "generate_cifar10": (["--output", "out", "--train-images", "100000"], "", "nothing is written"),
    "generate_mnist": (["--output", "out", "--train-images", "100000"], "", "nothing is written"),
    "generate_pacs": (["--output", "out", "--images-per-class", "999"], "", "nothing is written"),
    "generate_pssp": (["--output", "out", "--proteins", "3000"], "", "nothing is written"),
    "train_mnist": (["--data-dir", "mnist", "--epochs", "1000000"], "Epoch 2 ", UNSAVED),
    "train_resnet50": (RESNET[1:], "step 1/", UNSAVED),
    "train_resnet50 with a checkpoint": ([*RESNET[1:], "--checkpoint", "run.pt"], "step 1/",
                                         "--resume auto continues from there"),
    "train_transformer": (["--task", "lm", "--text", "text", "--layers", "1", "--epochs", "1000000"], "step 1/",
                          UNSAVED),
    "train_synthetic": (["--model", "mlp", "--num-batches", "100000000"], "1\timages/sec",
                        "the report has the observations of this start"),
    "hvdliterun": (["-np", "1", "--allow-run-as-root", "sh", "-c", "echo here; exec sleep 1000"], "here",
                   "hvdliterun: ended by a signal (Interrupt); the program has not reported"),
    "hvdliterun of a trainer": (["-np", "2", "--allow-run-as-root", "--oversubscribe",
                                 os.path.join(BIN, RESNET[0]), *RESNET[1:]], "step 1/", "can be resumed"),
    "scaling_sweep": (["spec", "--output", "sweep", "--launcher-program", "./launcher"], "first a run",
                      "run the command again to continue"),
    "scale_sim": (["--ranks", "16384", "--steps", "1000"], "", AGAIN),
    "hvdlite_bench": (["sweep", "--rounds", "1000000"], "", "the same command starts from scratch"),
    "hvdlite_doctor": (["--watch", "1000"], "", AGAIN),
    "timeline_viewer": (["/dev/stdin"], "", AGAIN),
}
# Programs that are not for users.
NONE = {"cause_trainer", "scaling_sweep_mpi_trainer"}

# Scripts that do not use launch.end_with(), and why.
OWN = {"tools/openblas_core": "takes no time",
       "dev/testbed": "testbed_test"}


def catches(pid):
    """Whether a process has a handler for SIGINT."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1


class InterruptTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="interrupt")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def start(self, words, **more):
        child = subprocess.Popen(
            words, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            # A shell may start background jobs with SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**os.environ, "OMP_NUM_THREADS": "1"}, **more)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.stdout.close)
        return child

    def wait_for(self, child, sign):
        """Waits for the sign, and returns the output until then."""
        text = b""
        for _ in range(100 * WAIT):
            if select.select([child.stdout], [], [], 0.01)[0]:
                part = os.read(child.stdout.fileno(), 65536)
                self.assertTrue(part, "it ended: " + text.decode())
                text += part
            if sign.encode() in text if sign else catches(child.pid):
                return text
        child.kill()
        self.fail("%r was not printed: %s" % (sign, text.decode()))

    def interrupt(self, child, sign, number=signal.SIGINT):
        """Interrupts the child; returns its exit code as in a shell, and its output."""
        text = self.wait_for(child, sign)
        child.send_signal(number)
        text += child.communicate(timeout=WAIT)[0]
        code = child.returncode
        return 128 - code if code < 0 else code, text.decode()

    def test_programs_exit_with_130_and_a_message(self):
        self.write("spec", SPEC)
        self.write("launcher", "#!/bin/sh\nexec sleep 1000\n")
        self.write("trainer", "#!/bin/sh\n")
        os.mkdir(os.path.join(self.directory, "runs"))
        os.mkfifo(os.path.join(self.directory, "runs", "mlp.json"))  # no process writes into it
        self.write("text", "the quick brown fox\n" * 500)
        if os.path.exists(os.path.join(BIN, "generate_mnist")):
            subprocess.run([os.path.join(BIN, "generate_mnist"), "--output", os.path.join(self.directory, "mnist"),
                            "--train-images", "256", "--test-images", "16"], check=True)
        for name, (words, sign, said) in LONG.items():
            program = os.path.join(BIN, name.split()[0])
            if not os.path.exists(program):
                continue
            with self.subTest(name):
                code, text = self.interrupt(self.start([program, *words]), sign)
                self.assertEqual(code, 130, text)
                self.assertIn(said, text)
                left = [os.path.join(where, file) for where, _, files in os.walk(os.path.join(self.directory, "out"))
                        for file in files]
                self.assertEqual(left, [])

    def test_every_program_is_tested(self):
        there = {name for name in os.listdir(BIN) if os.access(os.path.join(BIN, name), os.X_OK)}
        self.assertEqual(there - {name.split()[0] for name in LONG} - NONE, set())

    def test_sigterm_keeps_its_exit_codes(self):
        for name, expected in (("scale_sim", 143), ("train_mnist", 85)):
            if name == "train_mnist":
                subprocess.run([os.path.join(BIN, "generate_mnist"), "--output", os.path.join(self.directory, "mnist"),
                                "--train-images", "256", "--test-images", "16"], check=True)
            words, sign, _ = LONG[name]
            child = self.start([os.path.join(BIN, name), *words])
            self.assertEqual(self.interrupt(child, sign, signal.SIGTERM)[0], expected)

    def test_scripts_exit_with_130_and_a_message(self):
        script = "import sys; sys.path.insert(0, %r); from bench.lib import launch; " % ROOT
        child = self.start([sys.executable, "-B", "-c", script +
                            "launch.end_with('name', lambda: (print('here', flush=True), sys.stdin.read()))"])
        code, text = self.interrupt(child, "here")
        self.assertEqual(code, 130, text)
        self.assertIn("name: interrupted: unwritten results are lost; the same command starts from scratch\n", text)
        self.assertNotIn("Traceback", text)
        child = self.start(["bash", "-c", "set -euo pipefail; source %s; stage here; logged log sleep 1000" %
                            os.path.join(ROOT, "tools", "shell", "stages.sh")])
        code, text = self.interrupt(child, "here")
        self.assertEqual(code, 130, text)
        self.assertIn("interrupted. Finished parts of the build are kept; run the command again to continue", text)

    def test_every_script_in_python_uses_end_with(self):
        for directory in ("tools", "bench", "dev", "studies", "tests/causes", "tests/chaos"):
            for name in sorted(os.listdir(os.path.join(ROOT, directory))):
                path = os.path.join(ROOT, directory, name)
                if (not os.path.isfile(path) or not os.access(path, os.X_OK) or "." in name
                        or directory + "/" + name in OWN):
                    continue
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                if "python3" in text.splitlines()[0]:
                    self.assertIn("launch.end_with(", text, name)


if __name__ == "__main__":
    unittest.main()
