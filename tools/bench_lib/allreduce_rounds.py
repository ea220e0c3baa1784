"""Merges sweeps of hvdlite_bench that ran with different settings of MPI."""

import statistics

from bench_lib import samples


def merge_round(results):
    """`results`: what `hvdlite_bench sweep` wrote with each setting, one right after the
    other. Returns, by size, how far apart the cores were (if they stayed so through all of
    them) and the median time in us of every contender with every setting."""
    merged = {}
    for setting, result in results.items():
        for case in result["cases"]:
            size = merged.setdefault(int(case["name"]), {"distances": [], "us": {}})
            size["distances"] += case["distance"]
            for contender in case["contenders"]:
                if contender["samples"]:
                    size["us"][setting, contender["role"], contender["name"]] = \
                        statistics.median(contender["samples"])
    return {size: {"distance": samples.common_distance(found["distances"]), "us": found["us"]}
            for size, found in merged.items()}


def count_wrong(results):
    return sum(contender["wrong"] for result in results.values() for case in result["cases"]
               for contender in case["contenders"])


def compare(rounds, size, distance, ours, setting):
    """`ours`, run with `setting`, and the best MPI of all settings in each of the merged
    `rounds` that have `distance`: lists of equal length of their times in us, and of
    "setting contender" for who was best."""
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
