"""The jobs of a trial: how they start, their processes, and files that they leave."""

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
MARK = "CHAOS_TRIAL"  # environment variable of all processes of a trial
AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled"
SILENCE_S = 4  # heartbeat limit of hvdlite
GRACE_S = 10  # all processes of a job must end in this time after it
UNDISTURBED_TRIES = 3

# Runs a job with its own /dev/shm, and lists the files that the job leaves there.
PRIVATE = """
mount -t tmpfs tmpfs /dev/shm
files=$CHAOS_DIRECTORY/checkpoint
if [ -n "$CHAOS_DISK" ]; then
  mount -t tmpfs -o size="$CHAOS_DISK" tmpfs "$files" && cp -a "$CHAOS_DIRECTORY/kept/." "$files"
fi
"$@"
status=$?
sleep 0.5
if [ -n "$CHAOS_DISK" ]; then
  rm -f "$files/full"
  cp -a "$files/." "$CHAOS_DIRECTORY/kept" && umount "$files" && cp -a "$CHAOS_DIRECTORY/kept/." "$files"
fi
ls -A /dev/shm > "$CHAOS_DIRECTORY/left_in_shm"
exit $status
"""


def result_of(report):
    """Returns the results that must be the same in every run, from the report of train_mnist; None
    if there is no report."""
    try:
        with open(report, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return {"digests": content["parameter_digests"],
            "last_step": content["first_step"] + content["steps"]}


@contextlib.contextmanager
def one_scheduling_group():
    """Turns off autogroups, which put each session into its own scheduling group. A rank that waits
    in MPI could then keep all other processes from its CPU for seconds (seen with Linux 6.18; see
    docs/results/2026-11-reliability.md), for example ranks of two hosts that share a CPU."""
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


# ---- Processes of this trial.

def marked(mark):
    """Returns the processes that were started with the mark, without zombies."""
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
    """Returns the rank that MPI's launcher has set for a process, as a string; None if it did not
    start the process."""
    return variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))


def program_of_rank(mark, rank, restarts=0):
    """Returns the trainer's process of this rank; None if there is none, or if its job was
    restarted less often."""
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
    """Returns the condition's value when it is true; None if the job or the time ends before."""
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
    """Data, programs, and the results of undisturbed trainings."""

    def __init__(self, directory, programs, tests):
        self.directory = directory
        self.programs = programs
        self.in_rank = os.path.join(tests, "librank_in_trial.so")
        self.data = os.path.join(directory, "data")
        subprocess.run([self.program("generate_mnist"), "--output", self.data,
                        "--train-images", "1600", "--test-images", "200"],
                       check=True, stdout=subprocess.DEVNULL)
        self.undisturbed = {}

    def program(self, name):
        return os.path.join(self.programs, name)

    def result(self, trial):
        """Returns the result of an undisturbed run, which all runs on as many ranks must have."""
        key = (trial.on_hosts, trial.ranks)
        if key not in self.undisturbed:
            calm = calm_trial(trial.ranks, trial.on_hosts)
            # Other programs on its cores can make it exceed the short time limits of trials.
            for attempt in range(UNDISTURBED_TRIES):
                run = Run(self, calm, "undisturbed_%d_%d_%d" % (*key, attempt))
                status, result, text = run.end(run.start([])), result_of(run.report), run.text()
                run.remove()
                if status == 0 and result is not None:
                    self.undisturbed[key] = result
                    break
                print("the undisturbed training failed:\n" + text, file=sys.stderr, flush=True)
            else:
                raise RuntimeError("all %d undisturbed trainings failed" % UNDISTURBED_TRIES)
        return self.undisturbed[key]


def calm_trial(ranks=2, on_hosts=False):
    """Returns a trial without a fault."""
    calm = trials.Trial(0, ranks=ranks)
    calm.on_hosts, calm.fault, calm.launch_flags = on_hosts, "none", []
    return calm


class Run:
    """The jobs of one trial, and the files that they leave."""

    def __init__(self, place, trial, name):
        self.place = place
        self.trial = trial
        self.mark = "%d.%s" % (os.getpid(), name)
        self.directory = os.path.join(place.directory, name)
        for part in ("checkpoint", "kept", "tmp"):
            os.makedirs(os.path.join(self.directory, part))
        self.checkpoint = os.path.join(self.directory, "checkpoint", "c.pt")
        self.report = os.path.join(self.directory, "report.json")
        self.log = os.path.join(self.directory, "log")

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
            MARK: self.mark, "TMPDIR": os.path.join(self.directory, "tmp"),
            "CHAOS_DIRECTORY": self.directory, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **settings})
        with open(self.log, "ab") as log:
            return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, start_new_session=True)

    def end(self, job):
        """Waits for the job. Returns its status; None if it had to be killed."""
        try:
            # A restarted job has two starts.
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
        """Returns processes and files that should have gone with the job. A killed job may leave an
        incomplete checkpoint, which the next job removes."""
        end = time.monotonic() + GRACE_S
        while marked(self.mark) and time.monotonic() < end:
            time.sleep(0.05)
        left = ["process %d" % pid for pid in marked(self.mark)]
        kill_marked(self.mark)
        left += ["$TMPDIR/" + name for name in os.listdir(os.path.join(self.directory, "tmp"))]
        left += [name for name in os.listdir(os.path.dirname(self.checkpoint))
                 if name not in ("c.pt", "c.pt.previous") and not (killed and ".tmp." in name)]
        try:
            with open(os.path.join(self.directory, "left_in_shm"), encoding="utf-8") as file:
                left += ["/dev/shm/" + name for name in file.read().split()]
        except OSError:
            pass  # hosts of a testbed are removed with their memory
        return left

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def await_line(self, pattern, job):
        """Waits until the log contains the pattern, and returns the time."""
        if not wait_until(lambda: re.search(pattern, self.text()), job, trials.LONGEST_S):
            raise RuntimeError("'%s' is not in the log:\n%s" % (pattern, self.text()))
        return time.monotonic()

    def saved_ns(self):
        try:
            return os.stat(self.checkpoint).st_mtime_ns
        except OSError:
            return None
