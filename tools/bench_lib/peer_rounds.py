"""Compares what hvdlite_bench and ddp_worker.py measured in one round."""

import statistics


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
