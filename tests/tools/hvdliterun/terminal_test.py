#!/usr/bin/env python3
"""Tests that rank 0 overwrites its progress line only if its launcher's output is a terminal.

usage: terminal_test.py HVDLITERUN PROGRESS_PROGRAM
"""

import os
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testing"))
import launchers  # noqa: E402
TESTBED = os.path.join(HERE, "..", "..", "..", "dev", "testbed")
HVDLITERUN, PROGRAM = None, None  # set by the command line

MPIRUN = ["mpirun", "-np", "2"]
if launchers.kind() == "Open MPI":
    MPIRUN += ["--oversubscribe", "--bind-to", "none"]
ERASE = "\r\033[K"
MOVING = "".join(ERASE + "step %d/3, %d%%, 1 steps/s, ETA %d s" % line
                 for line in ((1, 33, 2), (2, 66, 1), (3, 100, 0))) + ERASE + "done\n"
STAYING = "step 1/3, 33%, 1 steps/s, ETA 2 s\ndone\n"


class TerminalTest(unittest.TestCase):
    def setUp(self):
        # The path is short, because mpirun limits the names of its sockets. Each job has its own directory,
        # because jobs run at the same time.
        self.directory = tempfile.mkdtemp(prefix="hvdl", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.hvdliterun = [HVDLITERUN, "-np", "2", "--oversubscribe"]

    def run_job(self, words, output):
        job = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output,
                             stderr=subprocess.PIPE, text=True,
                             env=launchers.environment(TMPDIR=self.directory))
        self.assertEqual(job.returncode, 0, job.stderr)

    def on_terminal(self, *words):
        """The text on a terminal that is the job's standard output."""
        outer, inner = pty.openpty()
        try:
            self.run_job(list(words), inner)
        finally:
            os.close(inner)
        text = b""
        try:
            while part := os.read(outer, 4096):
                text += part
        except OSError:  # all text has been read, and no process has it open
            pass
        os.close(outer)
        return text.decode().replace("\r\n", "\n")

    def in_file(self, *words):
        path = os.path.join(self.directory, "log")
        with open(path, "w", encoding="utf-8") as log:
            self.run_job(list(words), log)
        with open(path, encoding="utf-8") as log:
            return log.read()

    def test_without_a_launcher(self):
        self.assertEqual(self.on_terminal(PROGRAM), MOVING)
        self.assertEqual(self.in_file(PROGRAM), STAYING)

    def test_under_mpirun(self):
        self.assertEqual(self.on_terminal(*MPIRUN, PROGRAM), MOVING)
        self.assertEqual(self.in_file(*MPIRUN, PROGRAM), STAYING)

    def test_under_mpirun_in_a_script(self):
        words = ("sh", "-c", '"$@"; exit $?', "sh", PROGRAM)  # no exec
        self.assertEqual(self.on_terminal(*words[:3], "sh", *MPIRUN, *words), MOVING)

    def test_under_hvdliterun(self):
        self.assertEqual(self.on_terminal(*self.hvdliterun, PROGRAM), MOVING)
        self.assertEqual(self.in_file(*self.hvdliterun, PROGRAM), STAYING)

    def test_not_if_the_rank_writes_elsewhere(self):
        for launcher in (MPIRUN, self.hvdliterun):
            for words in ('"$0" | cat', 'exec "$0" >&2'):
                with self.subTest(launcher=launcher[0], words=words):
                    self.assertNotIn(ERASE, self.on_terminal(*launcher, "sh", "-c", words, PROGRAM))

    def test_not_if_ranks_have_logs(self):
        logs = os.path.join(self.directory, "logs")
        self.assertEqual(self.on_terminal(*self.hvdliterun, "--output-dir", logs, PROGRAM), STAYING)
        with open(os.path.join(logs, "rank.0.log"), encoding="utf-8") as log:
            self.assertEqual(log.read(), STAYING)

    def test_under_hvdliterun_from_another_host(self):
        if subprocess.run([TESTBED, "1", "--", "true"], capture_output=True).returncode == 77:
            self.skipTest("no namespaces")
        words = (TESTBED, "2", "--head", "--", HVDLITERUN, "-np", "2", "-H", "host0:1,host1:1",
                 PROGRAM)
        self.assertEqual(self.on_terminal(*words), MOVING)
        self.assertEqual(self.in_file(*words), STAYING)


if __name__ == "__main__":
    HVDLITERUN, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
