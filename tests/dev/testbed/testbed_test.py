#!/usr/bin/env python3
"""Tests of dev/testbed: arguments, exit status, and that nothing remains of a run."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import unittest
import uuid

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "dev", "testbed")
SKIPPED = 77


def testbed(*words, **options):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, **options)


def processes(marker):
    """Returns the processes on this machine whose command line contains `marker`."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/cmdline" % entry, "rb") as file:
            if marker.encode() in file.read():
                found.append(int(entry))
    return found


def wait_for_the_end_of(pids):
    """Blocks until the processes are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            select.select([descriptor], [], [])
            os.close(descriptor)


class ArgumentsTest(unittest.TestCase):
    def test_wrong_arguments_are_named(self):
        for words, reason in [
                (["0", "--", "true"], "1 to 250"), ([], "number of hosts"), (["2"], "no program"),
                (["2", "--slots", "1,2,3", "--", "true"], "a list of 3 for 2 hosts"),
                (["2", "--slots", "0", "--", "true"], "--slots 0"),
                (["2", "--no-such-flag", "--", "true"], "--no-such-flag"),
                (["--exec", "1", "host0"], "needs a command")]:
            with self.subTest(words=words):
                result = testbed(*words)
                self.assertEqual(result.returncode, 2)
                self.assertIn(reason, result.stderr)

    def test_a_missing_tool_is_named_and_the_test_is_skipped(self):
        result = subprocess.run([sys.executable, "-B", "-c", PROGRAM_WITHOUT_TC, TOOL],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, SKIPPED, result.stderr)
        self.assertIn("not installed: tc", result.stderr)

    def test_exec_in_another_process_than_a_run_is_an_error(self):
        result = testbed("--exec", str(os.getpid()), "host0", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a run of testbed", result.stderr)


# Runs the tool with a shutil.which that does not find tc.
PROGRAM_WITHOUT_TC = """
import runpy, shutil, sys
which = shutil.which
shutil.which = lambda tool, **options: None if tool == "tc" else which(tool, **options)
sys.argv = [sys.argv[1], "2", "--check"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class RunTest(unittest.TestCase):
    def test_ranks_get_the_environment_and_all_output_arrives(self):
        result = testbed("3", "--slots", "1,2,1", "--", "sh", "-c", "echo $(hostname):$PROBE",
                         env=dict(os.environ, PROBE="here"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.split()),
                         ["host0:here", "host1:here", "host1:here", "host2:here"])

    def test_exit_status_is_that_of_the_program(self):
        self.assertEqual(testbed("2", "--", "sh", "-c", "exit 5").returncode, 5)

    def test_bandwidth_limits_both_ends_of_a_hosts_link(self):
        result = testbed("1", "--bandwidth", "80mbit", "--", "tc", "qdisc", "show", "dev", "eth0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rate 80Mbit", result.stdout)
        result = testbed("1", "--bandwidth", "much", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--bandwidth much", result.stderr)

    def test_simultaneous_runs_do_not_affect_each_other(self):
        runs = [subprocess.Popen([TOOL, "2", "--", "hostname"], stdout=subprocess.PIPE, text=True)
                for _ in range(3)]
        for run in runs:
            self.assertEqual(sorted(run.communicate()[0].split()), ["host0", "host1"])
            self.assertEqual(run.returncode, 0)


class EndTest(unittest.TestCase):
    """Nothing remains of a run, although its ranks and their children sleep for ever."""

    def start(self):
        """Starts a run with a daemon and a rank on each host; returns it and their marker."""
        marker = uuid.uuid4().hex
        sleep = "exec -a 'sleeper %s' sleep infinity" % marker
        script = "(setsid bash -c \"%s\" >/dev/null 2>&1 &) ; echo there; %s" % (sleep, sleep)
        run = subprocess.Popen([TOOL, "2", "--", "bash", "-c", script],
                               stdout=subprocess.PIPE, text=True)
        for clean_up in (run.stdout.close, run.wait, run.kill):
            self.addCleanup(clean_up)  # called in reverse order
        for _ in range(2):
            self.assertEqual(run.stdout.readline(), "there\n")
        return run, marker

    def check_nothing_is_left(self, run, marker, number):
        left = processes(marker)
        self.assertGreaterEqual(len(left), 1)
        run.send_signal(number)
        run.wait()
        wait_for_the_end_of(left)
        self.assertEqual(processes(marker), [])
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        self.assertNotIn("to_host0", links)
        with open("/proc/self/mountinfo") as file:
            self.assertNotIn("/run/tmp", file.read())

    def test_interrupt_ends_everything(self):
        run, marker = self.start()
        self.check_nothing_is_left(run, marker, signal.SIGINT)
        self.assertEqual(run.returncode, 128 + signal.SIGINT)

    def test_termination_ends_everything(self):
        run, marker = self.start()
        self.check_nothing_is_left(run, marker, signal.SIGTERM)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)

    def test_kill_ends_everything(self):
        run, marker = self.start()
        self.check_nothing_is_left(run, marker, signal.SIGKILL)

    def test_daemons_end_with_the_program(self):
        marker = uuid.uuid4().hex
        # Ranks inherit Hydra's pipes, and Hydra waits until all processes have closed them.
        daemon = "for fd in {3..99}; do eval exec $fd'>&-'; done; exec -a %s sleep infinity" % marker
        result = testbed("2", "--", "bash", "-c",
                         '(setsid bash -c "$0" >/dev/null 2>&1 &)', daemon)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(processes(marker), [])

    def test_exec_runs_a_command_in_a_host(self):
        run, _ = self.start()
        host1 = ["--exec", str(run.pid), "host1", "--"]
        result = testbed(*host1, "sh", "-c", "hostname; echo '$x'")
        self.assertEqual(result.stdout, "host1\n$x\n", result.stderr)
        result = testbed(*host1, "ip", "link", "set", "eth0", "down")
        self.assertEqual(result.returncode, 0, result.stderr)
        links = testbed(*host1, "ip", "-o", "link", "show", "eth0")
        self.assertIn("state DOWN", links.stdout)


if __name__ == "__main__":
    check = testbed("2", "--check")
    if check.returncode == SKIPPED:
        print(check.stderr)
        sys.exit(SKIPPED)
    unittest.main()
