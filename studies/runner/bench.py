"""Bench: programs, data and results of one run of a study at one scale."""

import csv
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from typing import Optional

from bench.comparisons import trainer_runs
from bench.lib import launch
from studies.runner import data, machine
from studies.runner.study import Wrong

SCALES = ("small", "published", "tiny")


@dataclasses.dataclass
class Run:
    """A program that has ended successfully."""
    name: str
    command: str     # as a shell command in the output directory
    seconds: float
    output: str      # standard output; `errors` is standard error
    errors: str
    report: Optional[dict]  # the content of {report}
    others: float    # number of cores that other programs used meanwhile

    def speed(self, items=None, warmup=0):
        """Returns the report's items per second: the median of its intervals after `warmup`."""
        field = next(value for key, value in self.report.items()
                     if key == f"{items}_per_second" or items is None and key.endswith("_per_second"))
        return statistics.median(field["intervals"][warmup:]) if field.get("intervals") else field["median"]


class Bench:
    """Runs programs in `directory`. Each run has its own directory for its output. Programs of the build
    are found by name. All commands are printed and all output is kept."""

    def __init__(self, study, scale, build, directory, data_directory=None, resume=False, say=print):
        self.study, self.scale, self.resume, self.say = study, scale, resume, say
        self.build = pathlib.Path(build).resolve()
        self.directory = pathlib.Path(directory).resolve()
        self.data_directory = data_directory and pathlib.Path(data_directory).resolve()
        self.cores, self.numa_nodes = machine.cores(), machine.numa_nodes()
        # Variables that OpenBLAS needs to use this processor; hvdliterun sets them itself.
        self.openblas = launch.openblas_core()
        self.runs, self.sweeps, self.sets = [], [], []
        self.directory.mkdir(parents=True, exist_ok=True)
        self._scratch = launch.scratch_directory()  # for MPI, which needs short paths

    def pick(self, small, published, tiny=None):
        """Returns the number for this scale. Without `tiny`, `small` is used for tiny, too."""
        if self.scale == "published":
            return published
        return tiny if self.scale == "tiny" and tiny is not None else small

    def has(self, *commands):
        """Whether these programs exist in the build or on the machine."""
        return all(shutil.which(command, path=self._path()) for command in commands)

    def knows(self, program, flag):
        """Whether a program of the build has this flag."""
        helped = subprocess.run([program, "--help"], env=self._environment({}), capture_output=True, text=True)
        return flag in helped.stdout

    def has_library(self, name):
        """Whether the loader finds lib<name>, for example "jemalloc"."""
        return trainer_runs.allocator(name) is not None

    # ---- Programs.

    def run(self, name, words, environment=None, timeout=None, accepted=(0,)):
        """Runs a command to its end. Raises launch.Failed unless its exit code is one of `accepted`.
        `name` is the name of its directory ("2 ranks"). {report}, {trace} and {directory} in the
        arguments are paths there. An empty value in the environment unsets a variable."""
        directory = self._directory_of(name)
        places = {"{report}": f"{directory}/report.json", "{trace}": f"{directory}/trace.json",
                  "{directory}": directory}
        words = [_filled(word, places) for word in map(str, words)]
        changed = {key: _filled(str(value), places) for key, value in (environment or {}).items()}
        command = " ".join([f"{key}={shlex.quote(value)}" for key, value in changed.items()]
                           + [shlex.quote(word) for word in words])
        self.say(f"  {command}")
        kept = self._json(f"{directory}/run.json")
        if self.resume and kept and kept["command"] == command:
            self.runs.append(Run(name, command, kept["seconds"], self._text(directory, "stdout"),
                                 self._text(directory, "stderr"), self._json(places["{report}"]), kept["others"]))
            return self.runs[-1]
        self._write(directory, "run.json", "")
        for earlier in (self.directory / directory).glob("*.json"):  # its programs replace no file
            if earlier.name != "run.json":
                earlier.unlink()
        start, before = time.monotonic(), machine.busy_seconds()
        try:
            done = subprocess.run(words, cwd=self.directory, env=self._environment(changed),
                                  capture_output=True, text=True, errors="replace", timeout=timeout)
        except FileNotFoundError:
            raise launch.Failed(f"program '{words[0]}' not found; " + self.how_to_build()) from None
        seconds, after = time.monotonic() - start, machine.busy_seconds()
        self._write(directory, "stdout", done.stdout)
        self._write(directory, "stderr", done.stderr)
        if done.returncode not in accepted:
            raise launch.Failed(f"{command}\nfailed with status {done.returncode}, in {self.directory}:\n"
                                + (done.stdout + done.stderr)[-3000:])
        others = ((after[0] - before[0]) - (after[1] - before[1])) / seconds
        run = Run(name, command, seconds, done.stdout, done.stderr,
                  self._json(places["{report}"]), max(0.0, others))
        self._write(directory, "run.json", json.dumps(
            {"command": command, "seconds": seconds, "others": run.others}) + "\n")
        self.runs.append(run)
        return run

    def launch(self, name, flags, words, environment=None, timeout=None):
        """Like run(), under hvdliterun with its `flags`."""
        return self.run(name, ["hvdliterun", *flags, *words], environment, timeout)

    def mpirun(self, name, ranks, words, environment=None, timeout=None):
        """Like run(), under mpirun itself. Ranks are bound to one core each if there are enough."""
        return self.run(name, [*launch.mpirun(ranks), *words], environment, timeout)

    def sweep(self, name, spec, timeout=None):
        """Runs scaling_sweep with a spec file's text. Returns the rows of its table.csv. Numbers are
        converted; an empty cell is None."""
        directory = self._directory_of(name)
        spec_file, output = self.directory / directory / "spec.txt", self.directory / directory / "sweep"
        if not (self.resume and spec_file.exists() and spec_file.read_text(encoding="utf-8") == spec):
            shutil.rmtree(output, ignore_errors=True)
        self._write(directory, "spec.txt", spec)
        self.run(name, ["scaling_sweep", f"{directory}/spec.txt", "--output", f"{directory}/sweep"],
                 timeout=timeout, accepted=(0, 1))  # 1: all runs of some rows failed
        with open(output / "table.csv", encoding="utf-8", newline="") as file:
            rows = [{key: _value(value) for key, value in row.items()} for row in csv.DictReader(file)]
        self.sweeps.append({"name": name, "spec": spec, "rows": rows})
        return rows

    # ---- Data.

    def data(self, name, files, generate, real=True):
        """Returns a directory ("data/NAME" in commands) with `files`: the real ones from --data or
        its directory NAME, otherwise those that the command `generate` makes in {directory}. The name
        of a directory stands for all its files. The same command generates data only once.
        Without `real`, files of --data are never used."""
        found = data.provide(name, files, generate, real, self)
        self.sets.append(found)
        return found

    # ---- The end.

    def facts(self):
        """Returns facts about the machine, the software and other programs, by name."""
        # The trainers use LibTorch; the fakes of tests do not.
        torch = shutil.which("train_mnist", path=self._path()) or sys.executable
        found = machine.facts(torch)
        reports = [run.report for run in self.runs if run.report]
        reports += [self._json(file.relative_to(self.directory))
                    for file in sorted(self.directory.glob("*/*/runs/**/*report*.json"))[:1]]
        told = next((report["machine"] for report in reports if report and report.get("machine")), {})
        for key in ("LibTorch", "oneDNN", "MPI", "UCX", "hvdlite"):
            if key in told:
                found[key] = told[key]
        long_runs = [run.others for run in self.runs if run.seconds > 1]
        if long_runs:
            found["other programs"] = "%.2f cores on average over the runs, %.2f at most" % (
                statistics.fmean(long_runs), max(long_runs))
        return found

    def disturbed(self):
        """Returns a warning if other programs used a tenth of the cores, otherwise ""."""
        share = max((run.others for run in self.runs if run.seconds > 1), default=0) / self.cores
        return "" if share < 0.1 else f"Disturbed: in one of the runs other programs used {share:.0%} of the cores."

    def how_to_build(self):
        """Returns the command that builds this study's programs."""
        directory = os.path.relpath(self.build)
        targets = " ".join(dict.fromkeys(("hvdliterun", "scaling_sweep", *self.study.programs)))
        return f"build them: cmake --preset release && cmake --build {directory} --target {targets}"

    def require_programs(self):
        missing = [name for name in self.study.programs if not self.has(name)]
        if missing:
            raise Wrong(f"{', '.join(missing)} not in {self.build}/bin; {self.how_to_build()}")

    def close(self):
        self._scratch.cleanup()

    def _directory_of(self, name):
        directory = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
        (self.directory / directory).mkdir(exist_ok=True)
        return directory

    def _write(self, directory, file, text):
        (self.directory / directory / file).write_text(text, encoding="utf-8")

    def _text(self, directory, file):
        return (self.directory / directory / file).read_text(encoding="utf-8", errors="replace")

    def _json(self, path):
        try:
            return json.loads((self.directory / path).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _path(self):
        return os.pathsep.join([str(self.build / "bin"), os.environ.get("PATH", "")])

    def _environment(self, changed):
        found = launch.environment(self._scratch.name, {"PATH": self._path(), **changed})
        return {key: value for key, value in found.items() if value or key not in changed}


def _filled(word, places):
    for place, path in places.items():
        word = word.replace(place, path)
    return word


def _value(cell):
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell
