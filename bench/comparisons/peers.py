"""Compares hvdlite with PyTorch's DistributedDataParallel (DDP) over Gloo.

In every round hvdlite_bench and a run of PyTorch take turns, in alternating order.
Both have one process per core and one thread each, and use only loopback or memory of
this host. Both run twice: malloc returns memory to the system, or keeps it. A ratio
divides the best of hvdlite's times by the best of DDP's:

  step NAME        the time that synchronisation of gradients adds to a step: with
                   DistributedOptimizer minus without hvdlite; with DDP minus the
                   same model without DDP. With and without gradients as views.
  one by one NAME  every tensor is submitted separately; the wait begins with the last
  together         one 4-byte tensor, all ranks wait
  after_pause      the same, each after 1 ms of sleep

Needs PyTorch for Python (Debian: apt-get install python3-torch); exits with 77 without
it. Horovod is not part of the comparison.
"""

import json
import os
import statistics
import subprocess
import sys

from bench.lib import launch, output, rounds as arithmetic

WORKER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ddp_worker.py")
WORKLOADS = ["resnet50", "transformer", "1000_of_1_kb", "one_4_bytes"]
SKIPPED = 77
WITH_GLOO = "import sys, torch.distributed as d; sys.exit(0 if d.is_available() else 1)"


def parse_arguments(argv):
    parser = launch.parser("bench/compare peers", __doc__)
    parser.add_argument("--python", help="interpreter with PyTorch; default: the first one found")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--inner-rounds", type=int, default=7,
                        help="measured samples per run; their median counts")
    parser.add_argument("--warmup", type=int, default=3, help="warm-up samples per run")
    parser.add_argument("--operations", type=int, default=500, help="4-byte tensors per run")
    parser.add_argument("--workload", action="append", dest="workloads", metavar="NAME",
                        help="workload to run; may be repeated; `hvdlite_bench workloads` lists them")
    parser.add_argument("--commit", default=launch.commit(),
                        help="version of the source; default: the output of git describe")
    arguments = launch.parse(parser, "file for all measurements",
                             ["--rounds", "--inner-rounds"], argv)
    arguments.workloads = arguments.workloads or WORKLOADS
    return arguments


def run_hvdlite(arguments, scratch, malloc):
    binary = os.path.join(arguments.bin, "hvdlite_bench")
    common = ["--rounds", str(arguments.inner_rounds), "--warmup", str(arguments.warmup),
              "--commit", arguments.commit]
    workloads = [word for name in arguments.workloads for word in ("--workload", name)]
    gradients = launch.hvdlite_bench(
        binary, arguments.ranks, ["gradients"] + workloads + common, scratch, malloc)
    latency = launch.hvdlite_bench(
        binary, arguments.ranks,
        ["latency", "--operations", str(arguments.operations)] + common, scratch, malloc)
    return {"gradients": gradients, "latency": latency}


def run_ddp(arguments, plan_file, malloc):
    """Runs the ranks, each on its own core, and returns their results."""
    with launch.scratch_directory() as scratch:
        cores = launch.allowed_cores()
        processes = []
        for rank in range(arguments.ranks):
            command = [arguments.python, "-B", WORKER, str(rank), str(arguments.ranks), scratch, plan_file]
            if len(cores) >= arguments.ranks:
                command = ["taskset", "-c", str(cores[rank])] + command
            processes.append(subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=launch.environment(scratch, {
                    "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                    "OPENBLAS_NUM_THREADS": "1", **malloc})))
        failures = []
        try:
            for process in processes:
                output, _ = process.communicate()
                if process.returncode != 0:
                    failures.append(output)
                    break  # the others would wait for this process
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if failures:
            raise launch.Failed("ddp_worker.py failed:\n%s" % failures[0][-4000:])
        results = []
        for rank in range(arguments.ranks):
            with open(os.path.join(scratch, "rank%d.json" % rank), encoding="utf-8") as file:
                results.append(json.load(file))
        return results


def operation_us(ranks):
    """Times in us of operations of all ranks, each from the last rank's start to the last
    rank's end. `ranks` holds pairs of start and end in seconds for each rank."""
    return [1e6 * (max(end for _, end in times) - max(start for start, _ in times))
            for times in zip(*ranks)]


def ddp_us(results):
    """Median times in us of one run, by measurement. `results` are those of all ranks."""
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
    """The same for hvdlite_bench's results. A measurement "one by one" has one
    implementation, a step has several."""
    def medians(case):
        return {implementation["name"]: statistics.median(implementation["samples"])
                for implementation in case["implementations"] if implementation["samples"]}

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
    """Merges the measurements of one side with several settings; its ways get the names
    WAY/SETTING."""
    merged = {}
    for setting, found in results.items():
        for measurement, ways in found.items():
            for way, us in ways.items():
                merged.setdefault(measurement, {})["%s/%s" % (way, setting)] = us
    return merged


def ratios(rounds, measurement, distance):
    """The best of hvdlite divided by the best of DDP, for the rounds with `distance`. Skips
    rounds in which a difference of two times is not positive. `rounds` are dicts with
    distance, hvdlite and ddp."""
    found = []
    for a_round in rounds:
        ours = min(a_round["hvdlite"][measurement].values())
        theirs = min(a_round["ddp"][measurement].values())
        if a_round["distance"] == distance and ours > 0 and theirs > 0:
            found.append(ours / theirs)
    return found


def probe(arguments, scratch):
    """Measures the present distance between the cores."""
    result = launch.hvdlite_bench(os.path.join(arguments.bin, "hvdlite_bench"), arguments.ranks,
                                  ["probe", "--rounds", "3", "--warmup", "1"], scratch)
    return arithmetic.common_distance(result["cases"][0]["distance"])


def run_round(index, arguments, plan_file, scratch):
    runs = [(side, setting) for setting in launch.MALLOC for side in ("hvdlite", "ddp")]
    distances = [probe(arguments, scratch)]
    raw = {"hvdlite": {}, "ddp": {}}
    for side, setting in launch.in_turn(runs, index):
        malloc = launch.MALLOC[setting]
        raw[side][setting] = (run_hvdlite(arguments, scratch, malloc) if side == "hvdlite"
                              else run_ddp(arguments, plan_file, malloc))
        distances.append(probe(arguments, scratch))
    return {"distance": arithmetic.common_distance(distances), "raw": raw,
            "hvdlite": by_setting({
                setting: hvdlite_us(**found)
                for setting, found in raw["hvdlite"].items()}),
            "ddp": by_setting({
                setting: ddp_us(found) for setting, found in raw["ddp"].items()})}


def print_measurement(measurement, distance, rounds):
    found = ratios(rounds, measurement, distance)
    chosen = [a_round for a_round in rounds if a_round["distance"] == distance]
    if not chosen:
        return
    print("\n%s" % measurement)
    for side in ("hvdlite", "ddp"):
        for name in chosen[0][side][measurement]:
            print("  %-28s %12.1f us (median)" % (name, statistics.median(
                a_round[side][measurement][name] for a_round in chosen)))
    if found:
        print("  hvdlite / DDP                %s" % arithmetic.format_summary(arithmetic.summarise(found)))
    if len(found) < len(chosen):
        print("  %d rounds skipped: a difference of two times was not positive" % (
            len(chosen) - len(found)))


def main(argv):
    arguments = parse_arguments(argv)
    arguments.python = launch.with_torch(arguments.python, WITH_GLOO)
    if arguments.python is None:
        print("skipped: found no Python interpreter with torch.distributed. Remedy: "
              "apt-get install python3-torch (as root), or --python INTERPRETER")
        return SKIPPED
    listed = launch.run([os.path.join(arguments.bin, "hvdlite_bench"), "workloads"], os.environ)
    workloads = json.loads(listed.stdout)
    unknown = [name for name in arguments.workloads if name not in workloads]
    if unknown:
        sys.exit("bench/compare peers: unknown workload %s; known workloads: %s" % (
            unknown[0], " ".join(workloads)))
    rounds = []
    with launch.scratch_directory() as scratch:
        plan_file = os.path.join(scratch, "plan.json")
        with open(plan_file, "w", encoding="utf-8") as file:
            json.dump({"workloads": {name: workloads[name] for name in arguments.workloads},
                       "rounds": arguments.inner_rounds, "warmup": arguments.warmup,
                       "operations": arguments.operations}, file)
        for index in launch.numbered_rounds(
                arguments.rounds, lambda: ", cores " + rounds[-1]["distance"]):
            rounds.append(run_round(index, arguments, plan_file, scratch))
    hvdlite, ddp = (next(iter(rounds[0]["raw"][side].values())) for side in ("hvdlite", "ddp"))
    machine = hvdlite["gradients"]["machine"]
    print("%s, %s, PyTorch %s, commit %s; %d ranks, %s" % (
        machine["processor"], machine["mpi"], ddp[0]["torch"],
        machine["commit"], arguments.ranks, machine["ranks"]))
    for distance in ("near", "far", "unknown"):
        count = sum(a_round["distance"] == distance for a_round in rounds)
        if count:
            print("\ncores %s, %d rounds" % (distance, count))
        for measurement in rounds[0]["ddp"]:
            print_measurement(measurement, distance, rounds)
    moved = sum(a_round["distance"] == "moved" for a_round in rounds)
    if moved:
        print("\n%d rounds dropped: the cores' distance changed" % moved)
    output.write_json(arguments.json, {"program": "bench/compare peers", "arguments": vars(arguments),
                                       "rounds": rounds})
    return 0
