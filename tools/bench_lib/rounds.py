"""Arithmetic on samples, as tools/support/statistics.h, and on what the rounds of bench_allreduce
and bench_peers measured."""

import math
import statistics

STUDENT_T975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def student_t975(degrees):
    """The 0.975 quantile of Student's t with `degrees` >= 1 degrees of freedom.

    Beyond the table: the expansion in 1 / degrees (Abramowitz and Stegun,
    "Handbook of Mathematical Functions", 26.7.5).
    """
    if degrees <= len(STUDENT_T975):
        return STUDENT_T975[degrees - 1]
    x, n = 1.959964, degrees
    return (x + (x**3 + x) / (4 * n) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * n**2)
            + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * n**3))


def summarise(samples):
    """Median, minimum, maximum, mean and the mean's 95 % confidence interval (infinite
    for a single sample, which tells nothing about its spread)."""
    mean = statistics.fmean(samples)
    half = math.inf
    if len(samples) > 1:
        half = student_t975(len(samples) - 1) * statistics.stdev(samples) / math.sqrt(len(samples))
    return {"samples": len(samples), "median": statistics.median(samples), "min": min(samples),
            "max": max(samples), "mean": mean, "low": mean - half, "high": mean + half}


def format_summary(summary):
    return "%.3f [%.3f, %.3f]  median %.3f  min %.3f  max %.3f  (%d rounds)" % tuple(
        summary[key] for key in ("mean", "low", "high", "median", "min", "max", "samples"))


def common_distance(distances):
    """How far apart the cores were, if all looks agree ("near", "far", "unknown"); else
    "moved"."""
    distances = set(distances)
    return distances.pop() if len(distances) == 1 else "moved"


def bus_factor(ranks):
    """What an allreduce at least sends per byte of its buffer."""
    return 2 * (ranks - 1) / ranks


# ---- bench_allreduce: sweeps of hvdlite_bench that ran with different settings of MPI.

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
    return {size: {"distance": common_distance(found["distances"]), "us": found["us"]}
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


# ---- bench_peers: hvdlite_bench and ddp_worker.py, compared round by round.

def operation_us(ranks):
    """Times in us of operations that all ranks took part in, each from the last rank's start
    to the last rank's end. `ranks`: for each, pairs of start and end in seconds."""
    return [1e6 * (max(end for _, end in times) - max(start for start, _ in times))
            for times in zip(*ranks)]


def ddp_us(results):
    """Median times in us, by what was measured, of one run; `results` of all ranks."""
    def median_of(pick):
        return statistics.median(operation_us([pick(result) for result in results]))

    found = {name: {"all_reduce": median_of(lambda r, name=name: r[name])}
             for name in ("together", "after_pause")}
    for workload, ways in results[0]["steps"].items():
        found["step " + workload] = {
            way: median_of(lambda r, w=workload, v=way: r["steps"][w][v]["step"])
            - median_of(lambda r, w=workload, v=way: r["steps"][w][v]["local"])
            for way in ways}
        found["one by one " + workload] = {
            "all_reduce": median_of(lambda r, w=workload: r["one_by_one"][w])}
    return found


def hvdlite_us(gradients, latency):
    """The same of hvdlite_bench's results; one contender each for what it submits one by one,
    several for steps."""
    def medians(case):
        return {contender["name"]: statistics.median(contender["samples"])
                for contender in case["contenders"] if contender["samples"]}

    found = {case["name"]: {"hvdlite": medians(case)["hvdlite"]}
             for case in latency["cases"] if case["name"] in ("together", "after_pause")}
    for case in gradients["cases"]:
        times = medians(case)
        if case["name"].endswith("_step"):
            found["step " + case["name"][:-len("_step")]] = {
                name: us - times["local"] for name, us in times.items()
                if name.startswith("hvdlite")}
        else:
            found["one by one " + case["name"]] = {"hvdlite_async": times["hvdlite_async"]}
    return found


def by_setting(results):
    """What several runs of one side measured, each under a setting of its own, as one: its ways
    are named WAY/SETTING."""
    merged = {}
    for setting, found in results.items():
        for measurement, ways in found.items():
            for way, us in ways.items():
                merged.setdefault(measurement, {})["%s/%s" % (way, setting)] = us
    return merged


def ratios(rounds, measurement, distance):
    """The best of hvdlite divided by the best of DDP, of the rounds with `distance`. Rounds in
    which a difference of two times is not positive tell nothing and are left out. `rounds`:
    dicts of distance, hvdlite and ddp."""
    found = []
    for a_round in rounds:
        ours = min(a_round["hvdlite"][measurement].values())
        theirs = min(a_round["ddp"][measurement].values())
        if a_round["distance"] == distance and ours > 0 and theirs > 0:
            found.append(ours / theirs)
    return found
