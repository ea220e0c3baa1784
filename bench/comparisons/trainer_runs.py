"""Runs of the trainers and of their models in Python, for `bench/compare trainers`."""

import ctypes.util
import glob
import json
import os
import re
import statistics

from bench.lib import launch

PSSP_BATCH = 20  # sequences
WARMUP_STEPS = 2
WORKER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "python_worker.py")


def reference_blas():
    """Variables that load the reference BLAS, or None if it is not installed."""
    directories = [os.path.dirname(file) for file in sorted(glob.glob("/usr/lib/*/blas/libblas.so.3"))]
    return {"LD_LIBRARY_PATH": directories[0]} if directories else None


def allocator(library):
    """Variables that load an allocator, or None if it is not installed."""
    file = ctypes.util.find_library(library)
    return {"LD_PRELOAD": file} if file else None


def generate_proteins(binaries, directory, length):
    """Generates proteins for epochs of two steps; 5600 / 6133 of them are for training."""
    proteins = 2 * PSSP_BATCH * 6133 // 5600 + 10
    launch.run([os.path.join(binaries, "generate_pssp"), "--output", directory,
                "--proteins", str(proteins), "--test-proteins", "1", "--plain",
                "--min-length", str(length), "--max-length", str(length)], os.environ)


COORDINATING = re.compile(r"coordinating took ([0-9.]+) s of CPU time in ([0-9.]+) s")


class Runs:
    """Each method trains once and returns the median of items/s over the steps after the
    warm-up. `environment` is in addition to OpenBLAS's core; an empty value unsets a variable.

    `options` has bin, python, steps, length, image_size and batch_size, as in
    `bench/compare trainers`.
    """

    def __init__(self, options, scratch, proteins):
        self.options, self.scratch, self.proteins = options, scratch, proteins
        self.openblas = launch.openblas_core()
        self.coordinating_share = 0  # share of a core in the last run, mean over its ranks

    def pssp(self, ranks=1, threads=1, flags=(), environment=None):
        # An epoch has two steps and is one interval.
        epochs = (WARMUP_STEPS + self.options.steps + 1) // 2
        return self._train(ranks, threads, WARMUP_STEPS // 2, [
            self._binary("train_transformer"), "--data-dir", self.proteins,
            "--global-batch-size", str(PSSP_BATCH), "--epochs", str(epochs), *flags], environment)

    def resnet50(self, ranks=1, threads=1, flags=(), environment=None):
        images = ranks * (WARMUP_STEPS + self.options.steps) * self.options.batch_size
        return self._train(ranks, threads, WARMUP_STEPS, [
            self._binary("train_resnet50"), "--synthetic", "--log-interval", "1",
            "--image-size", str(self.options.image_size),
            "--batch-size-per-rank", str(self.options.batch_size),
            "--synthetic-images", str(images), *flags], environment)

    def in_python(self, model, environment=None):
        batch_size, length = {"pssp": (PSSP_BATCH, self.options.length),
                              "resnet50": (self.options.batch_size, self.options.image_size)}[model]
        done = launch.run(
            self._on_cores(1) + [self.options.python, "-B", WORKER, model, str(batch_size),
                                 str(length), str(self.options.steps), str(WARMUP_STEPS)],
            self._environment(1, environment))
        return batch_size / statistics.median(json.loads(done.stdout))

    def _binary(self, name):
        return os.path.join(self.options.bin, name)

    @staticmethod
    def _on_cores(threads):
        cores = ",".join(str(core) for core in launch.allowed_cores()[:threads])
        return ["taskset", "-c", cores]

    def _environment(self, threads, extra):
        variables = launch.environment(self.scratch, {
            "OMP_NUM_THREADS": str(threads), **self.openblas, **(extra or {})})
        return {name: value for name, value in variables.items() if value}

    def _train(self, ranks, threads, warmup_intervals, command, environment):
        report = os.path.join(self.scratch, "report.json")
        launcher = self._on_cores(threads)
        if ranks > 1:
            launcher = launch.mpirun(ranks, bind=threads == 1)
        done = launch.run(launcher + command + ["--report", report, "--overwrite", "--threads", str(threads)],
                          self._environment(threads, {"HVDLITE_LOG_LEVEL": "info", **(environment or {})}))
        shares = [float(cpu) / float(wall) for cpu, wall in COORDINATING.findall(done.stderr)]
        self.coordinating_share = statistics.fmean(shares) if shares else 0
        with open(report, encoding="utf-8") as file:
            found = json.load(file)
        speeds = next(value for key, value in found.items() if key.endswith("_per_second"))
        return statistics.median(speeds["intervals"][warmup_intervals:])
