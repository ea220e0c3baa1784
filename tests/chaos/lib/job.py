"""The jobs of a trial: what they are started with, their processes, and what they leave."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tests.chaos.lib import trial as trials

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", ".."))
TESTBED = os.path.join(ROOT, "dev", "testbed")
STEPS = 300
MARK = "CHAOS_TRIAL"  # in the environment of all that a trial starts
AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled"
SILENCE_S = 4  # hvdlite itself
GRACE_S = 10  # in which what is left of a job must have gone
UNDISTURBED_TRIES = 3

# Runs a job with a /dev/shm of its own, and tells what the job has left there.
PRIVATE = """
mount -t tmpfs tmpfs /dev/shm
files=$CHAOS_FOLDER/checkpoint
if [ -n "$CHAOS_DISK" ]; then
  mount -t tmpfs -o size="$CHAOS_DISK" tmpfs "$files" && cp -a "$CHAOS_FOLDER/kept/." "$files"
fi
"$@"
status=$?
sleep 0.5
if [ -n "$CHAOS_DISK" ]; then
  rm -f "$files/full"
  cp -a "$files/." "$CHAOS_FOLDER/kept" && umount "$files" && cp -a "$CHAOS_FOLDER/kept/." "$files"
fi
ls -A /dev/shm > "$CHAOS_FOLDER/left_in_shm"
exit $status
"""


def result_of(report):
    """What must be the same in every run, from train_mnist's report; None if there is none."""
    try:
        with open(report, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return {"digests": content["parameter_digests"],
            "last_step": content["first_step"] + content["steps"]}


@contextlib.contextmanager
def one_scheduling_group():
    """Where the kernel has each session's processes in a scheduling group of its own, a rank that
    waits in MPI may keep all else from its CPU for seconds (seen with Linux 6.18; see
    docs/results/2026-11-reliability.md), as ranks of two hosts that share one."""
    try:
        with open(AUTOGROUPS, encoding="ascii") as file:
            before = file.read()
        with open(AUTOGROUPS, "w", encoding="ascii") as file:
            file.write("0")
    except OSError:
        before = None
    try:
        yield
    finally:
        if before is not None:
            with open(AUTOGROUPS, "w", encoding="ascii") as file:
                file.write(before)


# ---- Processes, of this trial alone.

def marked(mark):
    """Processes that were started with the mark, zombies not counted."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                if ("%s=%s" % (MARK, mark)).encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass  # it has ended
    return found


def environment_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as file:
        words = file.read().decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def name_of(pid):
    with open("/proc/%d/comm" % pid, encoding="ascii") as file:
        return file.read().strip()


def rank_in(variables):
    """The rank that MPI's launcher has told a process, as a text; None if it has started none."""
    return variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))


def program_of_rank(mark, rank, restarts=0):
    """The trainer's process on this rank, or None if it is not there, or that of a job that was
    started again less often."""
    for pid in marked(mark):
        try:
            if not name_of(pid).startswith("train_"):
                continue
            variables = environment_of(pid)
            if (rank_in(variables) == str(rank)
                    and int(variables.get("HVDLITE_RESTARTS", "0")) >= restarts):
                return pid
        except OSError:
            pass
    return None


def kill_marked(mark):
    for pid in marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(condition, job, seconds):
    """The condition's value once it is true; None if the job or the time ends before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        if job.poll() is not None:
            return None
        time.sleep(0.002)
    return None


class Workplace:
    """Data, programs, and what an undisturbed training gives and takes."""

    def __init__(self, folder, programs, tests):
        self.folder = folder
        self.programs = programs
        self.in_rank = os.path.join(tests, "librank_in_trial.so")
        self.data = os.path.join(folder, "data")
        subprocess.run([self.program("generate_mnist"), "--output", self.data,
                        "--train-images", "1600", "--test-images", "200"],
                       check=True, stdout=subprocess.DEVNULL)
        self.undisturbed = {}

    def program(self, name):
        return os.path.join(self.programs, name)

    def result(self, trial):
        """That of an undisturbed run, which all others on as many ranks must have."""
        key = (trial.on_hosts, trial.ranks)
        if key not in self.undisturbed:
            calm = calm_trial(trial.ranks, trial.on_hosts)
            # Other programs on its cores may make it miss the trials' short limits.
            for attempt in range(UNDISTURBED_TRIES):
                run = Run(self, calm, "undisturbed_%d_%d_%d" % (*key, attempt))
                status, result, text = run.end(run.start([])), result_of(run.report), run.text()
                run.remove()
                if status == 0 and result is not None:
                    self.undisturbed[key] = result
                    break
                print("the undisturbed training failed:\n" + text, file=sys.stderr, flush=True)
            else:
                raise RuntimeError("no undisturbed training of %d succeeded" % UNDISTURBED_TRIES)
        return self.undisturbed[key]


def calm_trial(ranks=2, on_hosts=False):
    """Without a fault."""
    calm = trials.Trial(0, ranks=ranks)
    calm.on_hosts, calm.fault, calm.launch_flags = on_hosts, "none", []
    return calm


class Run:
    """The jobs of one trial, and what they leave."""

    def __init__(self, place, trial, name):
        self.place = place
        self.trial = trial
        self.mark = "%d.%s" % (os.getpid(), name)
        self.folder = os.path.join(place.folder, name)
        for part in ("checkpoint", "kept", "tmp"):
            os.makedirs(os.path.join(self.folder, part))
        self.checkpoint = os.path.join(self.folder, "checkpoint", "c.pt")
        self.report = os.path.join(self.folder, "report.json")
        self.log = os.path.join(self.folder, "log")

    def start(self, flags, disk=None, steps=STEPS, launch_flags=(), points=None):
        trial, place = self.trial, self.place
        train = [place.program("train_mnist"), "--data-dir", place.data, "--global-batch-size", "16",
                 "--max-steps", str(steps), "--epochs", "1000000", "--checkpoint", self.checkpoint,
                 "--checkpoint-every-steps", "20", "--report", self.report, *flags]
        if trial.fault == "bad input" and "--resume" not in flags:
            train = ["sh", "-c", 'if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = %d ]; then '
                     'shift 3; set -- %s --data-dir /nowhere "$@"; fi; exec "$@"' % (
                         trial.rank, train[0]), "sh", *train]
        launch_flags = ["--oversubscribe", *launch_flags]
        if trial.on_hosts:
            launch_flags += ["-H", "host0:{0},host1:{0}".format(trial.ranks_of_host)]
        if points:
            launch_flags += ["--set", "LD_PRELOAD=" + place.in_rank]
        return self.launch([*launch_flags, *train], {
            "CHAOS_DISK": disk or "", **(points or {}), "OMP_NUM_THREADS": "1",
            "OMP_PROC_BIND": "false", "HVDLITE_DETERMINISTIC": "1",
            "HVDLITE_HEARTBEAT_SECONDS": str(SILENCE_S),
            "HVDLITE_WATCHDOG_SECONDS": str(SILENCE_S + 2),
            "HVDLITE_START_TIMEOUT_SECONDS": "15", "HVDLITE_SHUTDOWN_TIMEOUT_SECONDS": "15"})

    def launch(self, words, settings):
        command = [self.place.program("hvdliterun"), "-np", str(self.trial.ranks), *words]
        if self.trial.on_hosts:
            command = [TESTBED, "2", "--head", "--", *command]
        else:
            command = ["unshare", "--mount", "sh", "-c", PRIVATE, "sh", *command]
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("OMPI_", "PMIX_", "PMI_", "HVDLITE_"))}
        variables.update({
            MARK: self.mark, "TMPDIR": os.path.join(self.folder, "tmp"),
            "CHAOS_FOLDER": self.folder, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **settings})
        with open(self.log, "ab") as log:
            return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, start_new_session=True)

    def end(self, job):
        """Its status; None if it had to be killed."""
        try:
            # Two starts, where one has been started again.
            status = job.wait(2 * trials.LONGEST_S)
        except subprocess.TimeoutExpired:
            status = None
            kill_marked(self.mark)
            job.wait()
        return status

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def left(self, killed):
        """What is there that should have gone with the job. One that was killed may leave a
        checkpoint half written, which the next one removes."""
        end = time.monotonic() + GRACE_S
        while marked(self.mark) and time.monotonic() < end:
            time.sleep(0.05)
        left = ["process %d" % pid for pid in marked(self.mark)]
        kill_marked(self.mark)
        left += ["$TMPDIR/" + name for name in os.listdir(os.path.join(self.folder, "tmp"))]
        left += [name for name in os.listdir(os.path.dirname(self.checkpoint))
                 if name not in ("c.pt", "c.pt.previous") and not (killed and ".tmp." in name)]
        try:
            with open(os.path.join(self.folder, "left_in_shm"), encoding="utf-8") as file:
                left += ["/dev/shm/" + name for name in file.read().split()]
        except OSError:
            pass  # of hosts, whose memory goes with them
        return left

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def await_line(self, pattern, job):
        """When the log has had something."""
        if not wait_until(lambda: re.search(pattern, self.text()), job, trials.LONGEST_S):
            raise RuntimeError("there is no '%s' in:\n%s" % (pattern, self.text()))
        return time.monotonic()

    def saved_ns(self):
        try:
            return os.stat(self.checkpoint).st_mtime_ns
        except OSError:
            return None
