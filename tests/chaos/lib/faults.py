"""Injects the fault of a trial and collects the results.

A rank reports that it has reached the trial's point, and waits there
(tests/chaos/rank_in_trial.cc). The fault is injected meanwhile, or soon after the rank has
continued. It comes from outside; if a rank has to end itself, a file tells it at its next point.
"""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import time

from tests.chaos.lib import trial as trials
from tests.chaos.lib.job import (TESTBED, Run, kill_marked, program_of_rank, result_of,
                           wait_until)

SIGNALS = {"kill": signal.SIGKILL, "host killed": signal.SIGKILL, "abort": signal.SIGABRT,
           "crash": signal.SIGSEGV, "stop": signal.SIGSTOP, "pause": signal.SIGSTOP}
LINKS = {"link cut": "ip link set eth0 down",
         "link slow": "tc qdisc add dev eth0 root tbf rate 20mbit burst 256kb latency 50ms"}
DISK = "64m"  # size of a disk that is filled
MEMORY_GROUPS = "/sys/fs/cgroup/memory"  # cgroups of version 1
HELD_S = 0.3  # how long a rank is held while another one ends itself
RANK_FINDS_S = 10  # time limit for a rank to find its file


def run_trial(place, trial):
    """Runs a trial and returns its results for the JSON file."""
    run = Run(place, trial, "trial_%d" % trial.seed)
    try:
        return disturb(place, trial, run)
    finally:  # also if this program is terminated
        kill_marked(run.mark)
        for group in memory_groups(run):
            with contextlib.suppress(OSError):
                os.rmdir(group)
        run.remove()


def disturb(place, trial, run):
    expected = place.result(trial)
    options = {"disk": DISK if trial.fault == "disk full" else None,
               "launch_flags": trial.launch_flags}
    began = time.monotonic()
    by_user = trial.moment == "restart" and not trial.launch_flags
    watch = {"CHAOS_WATCH": trial.watch()}
    kill = {"CHAOS_KILL": trial.first_kill()}
    job = run.start([], **options, points=kill if by_user else {**watch, **kill})
    wrong, struck, again_s = [], None, None
    if by_user:
        status = run.end(job)
        wrong += ["left by the first run: " + thing for thing in run.left(killed=status != 0)]
        with open(run.log, "a", encoding="utf-8") as log:
            log.write(trials.BY_USER + "\n")
        job = run.start(["--resume", "auto"], **options, points=watch)
    if trial.fault == "bad input":
        struck = began
    elif wait_until(lambda: run_has(run, "reached"), job, trials.LONGEST_S):
        struck = Strike(run, job).bring_about()
    if trial.launch_flags and struck is not None:
        saved = next_checkpoint_after_restart(run, job)
        again_s = None if saved is None else saved - struck
    if trial.fault == "stop" and struck is not None:
        wake_if_over(run, job)
    status = run.end(job)
    seconds = None if struck is None else max(0.0, time.monotonic() - struck)
    wrong.append(trials.verdict(trial, status, run.text(), result_of(run.report) == expected))
    wrong += ["left: " + thing for thing in run.left(killed=status != 0)]
    if status not in (0, None):
        if os.path.exists(run.report):
            os.remove(run.report)
        again = run.end(run.start(["--resume", "auto"]))
        if again != 0 or result_of(run.report) != expected:
            wrong.append("resumed, it ended with %s and %s" % (again, result_of(run.report)))
        wrong += ["left by the resumed run: " + thing for thing in run.left(killed=False)]
    wrong = [one for one in wrong if one]
    text = run.text()
    return {"seed": trial.seed, "trial": str(trial), "fault": trial.fault, "ranks": trial.ranks,
            "moment": trial.moment, "status": status, "seconds_to_the_end": seconds,
            "seconds_to_a_checkpoint": again_s, "wrong": wrong, "messages": trials.failures(text),
            "log": text}


def run_has(run, name):
    return os.path.exists(os.path.join(run.directory, name))


def memory_groups(run):
    path = os.path.join(MEMORY_GROUPS, "chaos.%s" % run.mark)
    return [path] if os.path.isdir(path) else []


class Strike:
    """The fault of a trial, whose watched rank is at its point."""

    def __init__(self, run, job):
        self.run, self.job, self.trial = run, job, run.trial

    def bring_about(self):
        """Injects the fault and returns the time; None if the process had ended."""
        if self.trial.after_s:
            self.let_go()
            time.sleep(self.trial.after_s)
        if self.trial.fault in trials.FROM_WITHIN:
            struck = self.from_within()
        else:
            struck = self.from_outside()
        self.let_go()
        return time.monotonic() if struck else None

    def let_go(self):
        with open(os.path.join(self.run.directory, "go"), "w", encoding="ascii"):
            pass

    def from_within(self):
        """Returns whether the rank has found its file."""
        path = os.path.join(self.run.directory, "strike.%d" % self.trial.rank)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(self.trial.fault)
        os.rename(path + ".new", path)

        def found():
            return not os.path.exists(path)

        if not wait_until(found, self.job, HELD_S):
            self.let_go()
            wait_until(found, self.job, RANK_FINDS_S)
        if found():
            return True
        os.remove(path)  # too late
        return False

    def from_outside(self):
        """Returns whether there was a process to hit."""
        trial = self.trial
        ranks = trial.struck_ranks() if trial.fault == "host killed" else [trial.rank]
        pids = [program_of_rank(self.run.mark, rank) for rank in ranks]
        pids = [pid for pid in pids if pid is not None]
        if not pids:
            return False
        try:
            self.strike(pids)
        except (ProcessLookupError, FileNotFoundError):
            return False
        return True

    def strike(self, pids):
        fault = self.trial.fault
        if fault in SIGNALS:
            for pid in pids:
                os.kill(pid, SIGNALS[fault])
        if fault == "pause":
            time.sleep(0.2 + self.trial.part)
            os.kill(pids[0], signal.SIGCONT)
        elif fault == "memory":
            with open("/proc/%d/statm" % pids[0], encoding="ascii") as file:
                limit = int(file.read().split()[0]) * resource.getpagesize()
            resource.prlimit(pids[0], resource.RLIMIT_AS, (limit, limit))
        elif fault == "out of memory":
            self.take_memory(pids[0])
        elif fault == "descriptors":
            resource.prlimit(pids[0], resource.RLIMIT_NOFILE, (3, 3))
        elif fault == "disk full":
            self.fill_disk(pids[0])
        elif fault in LINKS:
            subprocess.run([TESTBED, "--exec", str(self.job.pid), "host%d" % self.trial.host,
                            "--", *LINKS[fault].split()], capture_output=True, check=True)

    def take_memory(self, pid):
        """Limits the memory: the kernel kills the process when it needs another page."""
        group = os.path.join(MEMORY_GROUPS, "chaos.%s" % self.run.mark)
        os.mkdir(group)
        for name, value in (("memory.limit_in_bytes", 1 << 20), ("cgroup.procs", pid)):
            with open(os.path.join(group, name), "w", encoding="ascii") as file:
                file.write(str(value))

    def fill_disk(self, pid):
        """Fills the disk of the checkpoints, in the rank's mount namespace."""
        directory = os.path.dirname(self.run.checkpoint)
        try:
            with open("/proc/%d/root%s/full" % (pid, directory), "wb", buffering=0) as file:
                while file.write(b"\0" * 4096):
                    pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def wake_if_over(run, job):
    """Continues a rank that was stopped after all its work. Only the launcher waits for it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(trials.LONGEST_S / 3)
        return
    pid = program_of_rank(run.mark, run.trial.rank)
    if result_of(run.report) is not None and pid is not None:
        os.kill(pid, signal.SIGCONT)


def next_checkpoint_after_restart(run, job):
    """Returns when the restarted job has saved a new checkpoint; None if it has not."""
    restarts = 2 if run.trial.moment == "restart" else 1
    if not wait_until(lambda: program_of_rank(run.mark, 0, restarts), job, trials.LONGEST_S / 2):
        return None
    before = run.saved_ns()
    changed = wait_until(lambda: run.saved_ns() != before, job, trials.LONGEST_S / 2)
    return time.monotonic() if changed else None
