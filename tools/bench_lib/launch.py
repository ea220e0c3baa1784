"""Starts programs as the benchmarks need them."""

import json
import os
import subprocess


# Settings of malloc under which it gives memory back to the system as it does by default, and
# keeps it: page faults of large buffers that come and go are spared.
MALLOC = {
    "given_back": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)},
}


class Failed(Exception):
    """A program ended with an error; str() tells which and what it printed."""


def allowed_cores():
    """A processor of each core that this process may use, hyperthreads not counted, as Open
    MPI counts slots."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        topology = "/sys/devices/system/cpu/cpu%d/topology/" % cpu
        try:
            with open(topology + "physical_package_id", encoding="ascii") as package, \
                    open(topology + "core_id", encoding="ascii") as core:
                cores.setdefault((package.read(), core.read()), cpu)
        except OSError:
            cores[cpu] = cpu
    return list(cores.values())


def mpirun(ranks, bind=True):
    """The beginning of a command line: one rank to a core, where there are enough."""
    command = ["mpirun", "-np", str(ranks)]
    if len(allowed_cores()) < ranks:
        return command + ["--oversubscribe", "--bind-to", "none"]
    return command + ["--bind-to", "core" if bind else "none"]


def environment(scratch, extra=None):
    """The present environment with what MPI needs. Jobs at the same time need different
    `scratch` folders."""
    variables = dict(os.environ, TMPDIR=scratch)
    if os.getuid() == 0:
        variables.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    variables.update(extra or {})
    return variables


def run(command, variables):
    """Runs a command to its end; its stdout and stderr. Raises Failed."""
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed("%s failed with status %d:\n%s" % (
            " ".join(command), done.returncode, (done.stdout + done.stderr)[-4000:]))
    return done


def hvdlite_bench(binary, ranks, arguments, scratch, extra=None):
    """Runs hvdlite_bench under mpirun; its results."""
    file = os.path.join(scratch, "hvdlite_bench.json")
    exported = [word for name in extra or {} for word in ("-x", name)]
    run(mpirun(ranks) + exported + [binary] + arguments + ["--json", file],
        environment(scratch, {"OMP_NUM_THREADS": "1", **(extra or {})}))
    with open(file, encoding="utf-8") as results:
        return json.load(results)


def commit():
    """What git says about the source that this file belongs to."""
    folder = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12"],
                          capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
