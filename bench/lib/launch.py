"""The common parts of the benchmark scripts: flags, alternating rounds, the file of measurements, and
the start of programs."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bench.lib import output


# Settings of malloc. It returns memory to the system by default, or keeps it, which avoids page
# faults of large temporary buffers.
MALLOC = {
    "given_back": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)},
}


class Failed(Exception):
    """A program ended with an error; str() names it and contains its output."""


def allowed_cores():
    """Returns one processor of each core that this process may use, without hyperthreads, as
    Open MPI counts slots."""
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


# For Open MPI 4 and 5, which refuse to start more ranks than cores; other MPIs ignore them.
OVERSUBSCRIBE = ["OMPI_MCA_rmaps_base_oversubscribe=1",
                 "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"]


def mpirun(ranks, bind=True):
    """The beginning of a command line: one rank per core, if there are enough. All MPI
    launchers understand these arguments in the same way."""
    command = ["mpirun", "-np", str(ranks), "--bind-to"]
    if len(allowed_cores()) < ranks:
        return ["env", *OVERSUBSCRIBE, *command, "none"]
    return command + ["core" if bind else "none"]


def environment(scratch, extra=None):
    """The present environment with additions for MPI. Simultaneous jobs need different
    `scratch` directories."""
    variables = dict(os.environ, TMPDIR=scratch)
    if os.getuid() == 0:
        variables.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    variables.update(extra or {})
    return variables


def run(command, variables):
    """Runs a command to its end and returns its stdout and stderr. Raises Failed."""
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed("%s failed with status %d:\n%s" % (
            " ".join(command), done.returncode, (done.stdout + done.stderr)[-4000:]))
    return done


def hvdlite_bench(binary, ranks, arguments, scratch, extra=None):
    """Runs hvdlite_bench under mpirun and returns its results."""
    file = os.path.join(scratch, "hvdlite_bench.json")
    run(mpirun(ranks) + [binary] + arguments + ["--json", file, "--overwrite"],
        environment(scratch, {"OMP_NUM_THREADS": "1", **(extra or {})}))
    with open(file, encoding="utf-8") as results:
        return json.load(results)


def commit():
    """Returns the source's version from git, with "-dirty" after changes outside studies/results."""
    def git(*argv):
        directory = os.path.dirname(os.path.abspath(__file__))
        return subprocess.run(["git", "-C", directory, *argv], capture_output=True, text=True)
    done = git("describe", "--always", "--abbrev=12")
    if done.returncode != 0:
        return "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)studies/results")
    return done.stdout.strip() + ("-dirty" if changed.stdout or changed.returncode else "")


def openblas_core():
    """Returns the variable that makes OpenBLAS use this processor, if it needs one."""
    tool = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "tools", "openblas_core")
    setting = subprocess.run([tool], capture_output=True, text=True, check=True).stdout.strip()
    return dict([setting.split("=", 1)]) if setting else {}


def with_torch(wanted, program="import torch"):
    """Returns an interpreter that can run `program`, which needs PyTorch, or None. If `wanted`
    is given, tries only that one."""
    for python in [wanted] if wanted else [sys.executable, "/usr/bin/python3"]:
        if shutil.which(python) and subprocess.run(
                [python, "-c", program], capture_output=True).returncode == 0:
            return python
    return None


# ---- Parts of the scripts.

def parser(name, description):
    """Returns a parser with --bin; the script adds its own flags."""
    made = argparse.ArgumentParser(
        prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--bin", default="build/release/bin", help="directory of the programs")
    return made


def parse(made, json_help, at_least_one, argv=None):
    """Adds --json and parses `argv`, or the command line. Flags in `at_least_one` must be at least 1."""
    made.add_argument("--json", help=json_help)
    output.add_overwrite(made)
    arguments = made.parse_args(argv)
    output.require_new(made, "--json", arguments.json, arguments.overwrite)
    if any(getattr(arguments, flag.strip("-").replace("-", "_")) < 1 for flag in at_least_one):
        made.error("%s must be at least 1" % " and ".join(at_least_one))
    return arguments


def scratch_directory():
    return tempfile.TemporaryDirectory(prefix="hvd", dir="/tmp")


def numbered_rounds(count, describe=str):
    """Yields 0, 1, ...; prints a line at the end of each round, with the text of `describe()`."""
    start = time.monotonic()
    for index in range(count):
        yield index
        print("[%4d s] round %d of %d%s" % (
            time.monotonic() - start, index + 1, count, describe()), flush=True)


def in_turn(implementations, index):
    """Returns `implementations`, in reverse order in odd rounds."""
    return list(implementations) if index % 2 == 0 else list(reversed(implementations))


def end_with(name, main):
    """Ends the process with the result of main(). After Failed, prints its message."""
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit("%s: %s" % (name, failure))
    except KeyboardInterrupt:
        end_interrupted(name)


def end_interrupted(name):
    """Ends the process by SIGINT (exit code 130 in a shell), with a message instead of a traceback."""
    print("%s: interrupted: unwritten results are lost; the same command starts from scratch" % name,
          file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
