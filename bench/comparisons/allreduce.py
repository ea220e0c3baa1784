"""Allreduce by size: compares hvdlite's data plane with the best of MPI.

Runs `hvdlite_bench sweep` with each setting of MPI in turn, for several rounds. Each
round begins with another setting. The point-to-point layer is ob1 or ucx, and malloc
returns memory to the system or keeps it, which avoids page faults of MPI's temporary
buffers. A ratio is hvdlite's time with --ours-setting, divided by MPI's shortest time
in that round with any setting, flat or in chunks of 1 MB; below 1 hvdlite is faster.
Rounds with near and with far cores of ranks 0 and 1 (by the time of a ping-pong) have
separate tables; rounds in which this distance changed are dropped.
"""

import os
import statistics

from bench.lib import launch, output, rounds as arithmetic

KEEP_MEMORY = launch.MALLOC["kept"]
OB1 = {"OMPI_MCA_pml": "ob1"}
UCX = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
SETTINGS = {
    "ob1": OB1,
    "ob1_keep": {**OB1, **KEEP_MEMORY},
    "ucx": UCX,
    "ucx_keep": {**UCX, **KEEP_MEMORY},
}


def parse_arguments(argv):
    parser = launch.parser("bench/compare allreduce", __doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--inner-rounds", type=int, default=3,
                        help="measured rounds per run; their median counts")
    parser.add_argument("--warmup", type=int, default=1, help="warm-up rounds per run")
    parser.add_argument("--min-bytes", default="4", help="smallest size, such as 64K or 1M")
    parser.add_argument("--max-bytes", default="256M")
    parser.add_argument("--chunk-bytes", help="bytes that hvdlite reduces at a time")
    parser.add_argument("--pack", action="store_true", help="copy through a buffer, as for tensors")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--ours-setting", choices=SETTINGS, default="ob1",
                        help="setting of the runs whose time counts as hvdlite's")
    parser.add_argument("--commit", default=launch.commit(),
                        help="version of the source; default: the output of git describe")
    arguments = launch.parse(parser, "file for all measurements",
                             ["--rounds", "--inner-rounds"], argv)
    if arguments.ours_setting not in arguments.settings:
        parser.error("--ours-setting must be among --settings")
    return arguments


def usable_settings(arguments, binary, scratch):
    """Returns the settings that this MPI supports; prints the others."""
    usable = []
    for setting in arguments.settings:
        try:
            launch.hvdlite_bench(binary, arguments.ranks, ["probe", "--rounds", "1"], scratch,
                                 SETTINGS[setting])
            usable.append(setting)
        except launch.Failed as failure:
            if setting == arguments.ours_setting:
                raise
            print("skipped %s: %s" % (setting, str(failure).splitlines()[0]))
    return usable


def sweep_arguments(arguments):
    argv = ["sweep", "--rounds", str(arguments.inner_rounds), "--warmup", str(arguments.warmup),
             "--min-bytes", arguments.min_bytes, "--max-bytes", arguments.max_bytes,
             "--commit", arguments.commit]
    if arguments.chunk_bytes:
        argv += ["--chunk-bytes", arguments.chunk_bytes]
    return argv + (["--pack"] if arguments.pack else [])


def bus_factor(ranks):
    """The minimum of bytes that an allreduce sends per byte of its buffer."""
    return 2 * (ranks - 1) / ranks


def merge_round(results):
    """Merges `results`, the output of `hvdlite_bench sweep` with each setting in turn.
    Returns for each size the distance of the cores ("moved" if it changed) and the median
    time in us of every implementation with every setting."""
    merged = {}
    for setting, result in results.items():
        for case in result["cases"]:
            size = merged.setdefault(int(case["name"]), {"distances": [], "us": {}})
            size["distances"] += case["distance"]
            for implementation in case["implementations"]:
                if implementation["samples"]:
                    size["us"][setting, implementation["role"], implementation["name"]] = \
                        statistics.median(implementation["samples"])
    return {size: {"distance": arithmetic.common_distance(found["distances"]), "us": found["us"]}
            for size, found in merged.items()}


def compare(rounds, size, distance, ours, setting):
    """Compares `ours`, run with `setting`, with the best MPI of all settings in the merged
    `rounds` that have `distance`. Returns lists of equal length: the times in us of both,
    and "setting implementation" of the best MPI."""
    own_us, best_us, best = [], [], []
    for found in (merged[size] for merged in rounds if size in merged):
        own = found["us"].get((setting, "hvdlite", ours))
        peers = [(us, key) for key, us in found["us"].items() if key[1] == "mpi"]
        if found["distance"] != distance or own is None or not peers:
            continue
        us, key = min(peers)
        own_us.append(own)
        best_us.append(us)
        best.append("%s %s" % (key[0], key[2]))
    return own_us, best_us, best


def print_comparison(ours, distance, rounds, arguments):
    header = "\n%s, cores %s: time / best MPI, mean [95 %% interval]; busbw in GB/s\n%12s %11s %11s %7s %7s" % (
        ours, distance, "bytes", "us", "MPI us", "busbw", "MPI")
    factor = bus_factor(arguments.ranks)
    for size in sorted(rounds[0]):
        own, best, names = compare(
            rounds, size, distance, ours, arguments.ours_setting)
        if not own:
            continue
        if header:
            print(header)
            header = None
        own_us, best_us = statistics.median(own), statistics.median(best)
        print("%12d %11.2f %11.2f %7.2f %7.2f  %s  %s" % (
            size, own_us, best_us, size * factor / own_us / 1000, size * factor / best_us / 1000,
            arithmetic.format_summary(arithmetic.summarise([a / b for a, b in zip(own, best)])),
            statistics.mode(names)))


def print_tables(rounds, arguments):
    implementations = sorted({key[2] for merged in rounds for found in merged.values()
                         for key in found["us"] if key[1] == "hvdlite"})
    for ours in implementations:
        for distance in ("near", "far", "unknown"):
            print_comparison(ours, distance, rounds, arguments)
    moved = sum(found["distance"] == "moved" for merged in rounds for found in merged.values())
    if moved:
        print("\n%d of %d pairs of a round and a size dropped: the cores' distance changed" % (
            moved, sum(len(merged) for merged in rounds)))


def main(argv):
    arguments = parse_arguments(argv)
    binary = os.path.join(arguments.bin, "hvdlite_bench")
    raw, rounds = [], []
    with launch.scratch_directory() as scratch:
        settings = usable_settings(arguments, binary, scratch)
        for index in launch.numbered_rounds(arguments.rounds):
            turn = index % len(settings)
            results = {setting: launch.hvdlite_bench(
                binary, arguments.ranks, sweep_arguments(arguments), scratch, SETTINGS[setting])
                for setting in settings[turn:] + settings[:turn]}
            raw.append(results)
            rounds.append(merge_round(results))
    first = next(iter(raw[0].values()))
    print("%s, %s, commit %s; %d ranks, %s" % (
        first["machine"]["processor"], first["machine"]["mpi"], first["machine"]["commit"],
        first["ranks"], first["machine"]["ranks"]))
    print_tables(rounds, arguments)
    output.write_json(arguments.json, {"program": "bench/compare allreduce", "arguments": vars(arguments),
                                       "settings": SETTINGS, "rounds": raw})
    return 0
