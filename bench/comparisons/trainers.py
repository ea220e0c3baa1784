"""Measures the cost of synchronisation, the speed of the trainers, and the effect of settings.

  one         ResNet50, one process with hvdlite, compared with --no-sync, which is plain
              LibTorch
  two         two processes with hvdlite, compared with --no-sync
  barrier     two processes with hvdlite, compared with two that only wait for each other
              in every step: the difference is the cost of averaging
  speedup     PSSP transformer, 20 sequences per step: 2 ranks with 1 thread each, and 1 rank
              with 2 threads, compared with 1 rank with 1 thread
  reference   the same with the reference BLAS
  pssp        the same model in C++, compared with PyTorch in Python; one process, 1 thread;
              'recommended': with the settings of docs/results/2026-11-benchmarks.md
  resnet50    the same for ResNet50, synthetic images
  settings-pssp, settings-resnet50
              BLAS, allocators, memory formats and bfloat16, compared with the default;
              1 thread
  settings-omp
              placement and waiting of 2 OpenMP threads, PSSP, compared with the default

In every round all implementations run once, in alternating order, each rank on its own
core. A ratio divides items/s by items/s of the same round; above 1 the first is faster. For
hvdlite, the share of a core that the coordinator uses is printed too. Warm-up steps do not
count. The generated proteins have one length, so that every step takes the same work. All
implementations get the variable that tools/openblas_core prints, unless stated otherwise.

pssp and resnet50 need PyTorch for Python (Debian: apt-get install python3-torch); jemalloc
and tcmalloc need their libraries (libjemalloc2, libtcmalloc-minimal4). Comparisons without
their packages are skipped with a message.
"""

import os
import statistics

from bench.comparisons import trainer_runs
from bench.lib import launch, output, rounds as arithmetic

KEPT = launch.MALLOC["kept"]
NAMES = ["one", "two", "barrier", "speedup", "reference", "pssp", "resnet50", "settings-pssp", "settings-resnet50",
         "settings-omp"]


def parse_arguments(argv):
    parser = launch.parser("bench/compare trainers", __doc__)
    parser.add_argument("--only", action="append", choices=NAMES,
                        help="comparison to run; may be repeated; default: all")
    parser.add_argument("--python", help="interpreter with PyTorch; default: the first one found")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=8, help="measured steps per run")
    parser.add_argument("--length", type=int, default=200, help="residues per protein")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=8, help="images per step and rank")
    parser.add_argument("--arch", default="resnet50", help="network of one, two and barrier")
    return launch.parse(parser, "file for all samples", ["--rounds", "--steps"], argv)


def environments():
    """Environment variables of settings, by name."""
    return {
        "reference BLAS": trainer_runs.reference_blas(),
        "OpenBLAS's own choice": {"OPENBLAS_CORETYPE": ""} if launch.openblas_core() else None,
        "malloc keeps memory": KEPT,
        "jemalloc": trainer_runs.allocator("jemalloc"),
        "tcmalloc": trainer_runs.allocator("tcmalloc_minimal"),
    }


def synchronisation(runs, ranks, other, environment=None):
    """Training with hvdlite, and the same with the flag `other` instead of averaging."""
    arch = ["--arch", runs.options.arch]
    return {"hvdlite": lambda: runs.resnet50(ranks, flags=arch),
            other: lambda: runs.resnet50(ranks, flags=[*arch, other], environment=environment)}


def speedups(runs, environment):
    def pssp(ranks, threads):
        return lambda: runs.pssp(ranks, threads, environment=environment)
    return {"2 ranks x 1 thread": pssp(2, 1), "1 rank x 2 threads": pssp(1, 2),
            "1 rank x 1 thread": pssp(1, 1)}


def against_python(runs, model, recommended_flags):
    """Returns None if Python has no PyTorch."""
    if runs.options.python is None:
        return None
    in_cpp = getattr(runs, model)
    return {"recommended": lambda: in_cpp(flags=recommended_flags, environment=KEPT),
            "C++": in_cpp,
            "Python": lambda: runs.in_python(model)}


def settings(train, flags):
    """Every setting alone, and the default at the end."""
    found = {name: None if variables is None else
             (lambda variables=variables: train(environment=variables))
             for name, variables in environments().items()}
    for name, argv in flags.items():
        found[name] = lambda argv=argv: train(flags=argv)
    missing = [name for name, implementation in found.items() if implementation is None]
    if missing:
        print("skipped, not installed or not needed: " + ", ".join(missing))
    return {**{name: implementation for name, implementation in found.items() if implementation},
            "default": train}


def openmp_settings(runs):
    def pssp(variables):
        return lambda: runs.pssp(threads=2, environment=variables)
    return {"OMP_PROC_BIND=close": pssp({"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}),
            "OMP_WAIT_POLICY=active": pssp({"OMP_WAIT_POLICY": "active"}),
            "OMP_WAIT_POLICY=passive": pssp({"OMP_WAIT_POLICY": "passive"}),
            "default": pssp({})}


def comparisons(runs):
    """Implementations by comparison; each is compared with the last. Skips what is missing."""
    reference = trainer_runs.reference_blas()
    made = {
        # A single process without synchronisation needs no MPI, like plain LibTorch.
        "one": lambda: synchronisation(runs, 1, "--no-sync", {"HVDLITE_BACKEND": "single"}),
        "two": lambda: synchronisation(runs, 2, "--no-sync"),
        "barrier": lambda: synchronisation(runs, 2, "--barrier-only"),
        "speedup": lambda: speedups(runs, {}),
        "reference": lambda: speedups(runs, reference) if reference else None,
        "pssp": lambda: against_python(runs, "pssp", []),
        "resnet50": lambda: against_python(runs, "resnet50", ["--memory-format", "onednn"]),
        "settings-pssp": lambda: settings(runs.pssp, {"bf16": ["--bf16"]}),
        "settings-resnet50": lambda: settings(runs.resnet50, {
            "nhwc": ["--memory-format", "nhwc"], "onednn": ["--memory-format", "onednn"],
            "bf16": ["--bf16"], "bf16, nhwc": ["--bf16", "--memory-format", "nhwc"]}),
        "settings-omp": lambda: openmp_settings(runs),
    }
    found = {name: made[name]() for name in runs.options.only or NAMES}
    for name in [name for name, implementations in found.items() if implementations is None]:
        print("skipped %s: %s is not installed" % (
            name, "the reference BLAS" if name == "reference" else "PyTorch for Python"))
        del found[name]
    return found


def report(name, implementations, rounds, shares):
    """Prints every implementation's speed and its ratio to the last one's."""
    print("\n%s" % name)
    names = list(implementations)
    for implementation in names:
        print("  %-24s %8.2f items/s (median)" % (
            implementation, statistics.median(a_round[implementation] for a_round in rounds)))
    if name in shares:
        print("  coordinating             %8.2f %% of a core (median)" % (100 * statistics.median(shares[name])))
    for implementation in names[:-1]:
        ratios = [a_round[implementation] / a_round[names[-1]] for a_round in rounds]
        print("  %s / %s: %s" % (implementation, names[-1],
                                 arithmetic.format_summary(arithmetic.summarise(ratios))))


def main(argv):
    arguments = parse_arguments(argv)
    arguments.python = launch.with_torch(arguments.python)
    with launch.scratch_directory() as scratch:
        proteins = os.path.join(scratch, "proteins")
        trainer_runs.generate_proteins(arguments.bin, proteins, arguments.length)
        runs = trainer_runs.Runs(arguments, scratch, proteins)
        chosen = comparisons(runs)
        measured = {name: [] for name in chosen}
        shares = {}
        for index in launch.numbered_rounds(arguments.rounds):
            for name, implementations in chosen.items():
                speeds = {}
                for implementation in launch.in_turn(implementations, index):
                    speeds[implementation] = implementations[implementation]()
                    if implementation == "hvdlite":
                        shares.setdefault(name, []).append(runs.coordinating_share)
                measured[name].append(speeds)
    for name, implementations in chosen.items():
        report(name, implementations, measured[name], shares)
    output.write_json(arguments.json, {"program": "bench/compare trainers", "commit": launch.commit(),
                                       "arguments": vars(arguments), "rounds": measured,
                                       "coordinating_share": shares})
    return 0
