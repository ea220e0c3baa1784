"""The soak test: checks that a long job does not grow."""

import contextlib
import os
import random
import resource
import signal
import statistics
import time

from tests.chaos.lib.job import (Run, calm_trial, environment_of, kill_marked, marked, name_of,
                           program_of_rank, rank_in)

STOPPED = 85  # exit code: stopped on request, state saved


def measure(pid):
    """Returns the resident bytes and open descriptors of a process; None if it has ended."""
    try:
        with open("/proc/%d/statm" % pid, encoding="ascii") as file:
            pages = int(file.read().split()[1])
        return pages * resource.getpagesize(), len(os.listdir("/proc/%d/fd" % pid))
    except (OSError, IndexError):
        return None


def growth(samples, settled_s):
    """Returns the growth (0.01: 1 %) from the first ten samples after `settled_s` to the last ten.
    A sample is (seconds since the start, bytes, descriptors). Medians are compared, because a
    commit opens files and a connection for a moment. None: there are fewer than twenty samples."""
    settled = [one for one in samples if one[0] >= settled_s]
    if len(settled) < 20:
        return None
    return max(statistics.median(one[i] for one in settled[-10:]) /
               statistics.median(one[i] for one in settled[:10]) - 1 for i in (1, 2))


def growth_of(samples, restarted_s):
    """The same for a process. It has settled a minute after its start; if it outlives the first
    restart, which allocates once, a minute after the restart. `restarted_s`: time of the restart
    since the first sample; None if there was none."""
    outlives = restarted_s is not None and 0 < restarted_s < samples[-1][0]
    return growth(samples, 60 + (restarted_s if outlives else 0))


def is_restarted(pid):
    return int(environment_of(pid).get("HVDLITE_RESTARTS", "0")) > 0


def ask_to_stop(mark):
    """Asks the launcher to stop. It asks the ranks, which save."""
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            if name_of(pid) == "hvdliterun" and rank_in(environment_of(pid)) is None:
                os.kill(pid, signal.SIGTERM)


def soak(place, minutes, seed):
    """Runs the soak test and returns its results for the JSON file."""
    dice = random.Random(seed)
    run = Run(place, calm_trial(), "soak")
    samples, faults, seen, restarted = {}, [], {}, None
    try:
        job = run.start([], steps=10 ** 9, launch_flags=[
            "--max-restarts", "1000000", "--commit-memory"])
        began = time.monotonic()
        next_fault = began + 60
        while time.monotonic() < began + 60 * minutes and job.poll() is None:
            for pid in marked(run.mark):
                with contextlib.suppress(OSError):
                    name = name_of(pid)
                    values = measure(pid) if name in ("train_mnist", "hvdliterun") else None
                    if values is not None:
                        now = time.monotonic()
                        samples.setdefault((name, pid), []).append(
                            (now - seen.setdefault(pid, now), *values))
                        if restarted is None and name == "train_mnist" and is_restarted(pid):
                            restarted = now
            # After the last fault there is time for a restart.
            if next_fault <= time.monotonic() < began + 60 * minutes - 30:
                next_fault += 60
                rank = dice.randrange(run.trial.ranks)
                pid = program_of_rank(run.mark, rank)
                kind = "kill" if len(faults) % 3 == 2 else "pause"
                faults.append("%s rank %d" % (kind, rank))
                if pid is not None and kind == "kill":
                    os.kill(pid, signal.SIGKILL)
                elif pid is not None:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(1)
                    os.kill(pid, signal.SIGCONT)
            time.sleep(2)
        went_on = job.poll() is None
        ask_to_stop(run.mark)
        status = run.end(job)
        text, left = run.text(), run.left(killed=False)
    finally:
        kill_marked(run.mark)
        run.remove()
    grown = [{"program": name, "samples": len(values), "first": values[0], "last": values[-1],
              "growth": growth_of(values, restarted and restarted - seen[pid])}
             for (name, pid), values in samples.items()]
    wrong = [] if went_on and status == STOPPED else ["ended with %s" % status]
    wrong += ["%s grew by %.1f %%" % (one["program"], 100 * one["growth"]) for one in grown
              if one["growth"] is not None and one["growth"] > 0.01]
    wrong += ["left: " + thing for thing in left]
    return {"minutes": minutes, "faults": faults, "processes": grown, "wrong": wrong,
            "log": text if wrong else ""}
