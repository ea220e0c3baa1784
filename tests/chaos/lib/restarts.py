"""Measures the time from a killed rank to the next step, and the lost steps."""

import os
import random
import re
import signal
import statistics
import subprocess
import time

from tests.chaos.lib.job import Run, calm_trial, kill_marked, program_of_rank

# Messages of rank 0 or hvdliterun at the end of each part; some patterns match the second one.
WAY = {
    "old job ended": r"hvdliterun: rank \d+ .*failed",
    "MPI, init(), data": r"(?ms)^data: .*^data: ",
    "model, commit loaded": r"(?m)^resumed: ",
    "first step": r"(?ms)^resumed: .*^epoch \S+ step ",
}


def steps_lost(text):
    """Returns the number of steps that had to be repeated."""
    before, _, after = text.partition("\nresumed: ")
    return int(re.findall(r"\nepoch \S+ step (\d+)/", before)[-1]) - int(after.split()[0])


def restart(place, seed):
    """Runs one restart. Returns the seconds of each part and in all, and the lost steps."""
    dice = random.Random(seed)
    run = Run(place, calm_trial(), "restart_%d" % seed)
    rank, step, part = dice.randrange(run.trial.ranks), dice.randrange(8, 16), dice.random()
    try:
        job = run.launch(
            ["--max-restarts", "1", "--commit-memory", place.program("train_resnet50"),
             "--data-dir", place.cifar10, "--batch-size-per-rank", "8", "--log-interval",
             "1", "--max-steps", "24"], {})
        began = [run.await_line(r"(?m)^epoch \S+ step %d/" % n, job) for n in (step - 1, step)]
        time.sleep(part * (began[1] - began[0]))
        os.kill(program_of_rank(run.mark, rank), signal.SIGKILL)
        times = [time.monotonic()]
        times += [run.await_line(pattern, job) for pattern in WAY.values()]
        if run.end(job) != 0:
            raise RuntimeError("the restarted job failed:\n" + run.text())
        parts = dict(zip(WAY, (b - a for a, b in zip(times, times[1:]))))
        return {"seed": seed, **parts, "in all": times[-1] - times[0],
                "steps lost": steps_lost(run.text())}
    finally:
        kill_marked(run.mark)
        run.remove()


def time_restarts(place, seeds):
    place.cifar10 = os.path.join(place.directory, "cifar10")
    subprocess.run([place.program("generate_cifar10"), "--output", place.cifar10],
                   check=True, stdout=subprocess.DEVNULL)
    trials = [restart(place, seed) for seed in seeds]
    for name in [*WAY, "in all", "steps lost"]:
        values = [one[name] for one in trials]
        print("%-20s median %.2f longest %.2f" % (name, statistics.median(values), max(values)))
    return trials
