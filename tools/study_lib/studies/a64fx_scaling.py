"""ResNet50 on 1 to 128 nodes of A64FX: the published sweep, in small here, and the model of its epochs."""

import csv
import json
import os
import pathlib
import shutil

from study_lib.study import Machine, Study

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPEC = "tools/scaling_sweep/specs/a64fx_scaling.txt"
TABLE = "tools/scale_sim/tables/a64fx_resnet50_cifar10.json"
FILES = [f"data_batch_{index}.bin" for index in range(1, 6)] + ["test_batch.bin"]
# Printed with the tables of epochs, for Fujitsu's compiler.
PUBLISHED_PER_NODE = {"Fujitsu/1": 30.75, "Fujitsu/4": 67.14}


def run(bench, page):
    published = json.loads((ROOT / TABLE).read_text(encoding="utf-8"))
    show_commands(bench, page)
    measure(bench, page, published)
    recompute(page, published)
    model(bench, page)
    predict(bench, page)


def path(bench, file):
    return os.path.relpath(ROOT / file, bench.folder)


# ---- The sweep.

def show_commands(bench, page):
    text = bench.run("dry run", ["scaling_sweep", path(bench, SPEC), "--dry-run", "--output", "/results"]).output
    lines = text.splitlines()
    commands = [line for line in lines if not line.startswith("#")]
    half = len(commands) // 2
    shown = [commands[0], commands[1], commands[half], commands[half + 1]]
    page.text(f"`scaling_sweep {SPEC} --dry-run` prints {len(commands)} commands, which are the published tables; "
              "those of one node and of two, for either mapping:\n\n```sh\n" + "\n".join(shown) + "\n```\n\n"
              "Each rank gets the cores that Open MPI gives it for these words of `--map-by` "
              "(`tests/tools/scaling_sweep/published_a64fx_test.py`, all worlds).", "The published commands")


def hosts():
    """Of a SLURM job; else this one."""
    names = os.environ.get("SLURM_JOB_NODELIST") and os.popen("scontrol show hostnames").read().split()
    return ",".join(names or ["localhost"])


def measure(bench, page, published):
    output = bench.folder / "sweep" / "results"
    if not bench.resume:
        shutil.rmtree(output, ignore_errors=True)
    words = ["scaling_sweep", path(bench, SPEC), "--output", "{folder}/results"]
    if bench.scale == "published":
        bench.data("cifar10", FILES, ["generate_cifar10", "--output", "{folder}", "--train-images", "50000",
                                      "--test-images", "10000"])
        words += ["--hosts", hosts()]
    else:
        words += ["--small", "--repeats", bench.pick(small=5, published=3, tiny=1)]
    bench.run("sweep", words)
    with open(output / "table.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["items_per_second_median"]]
    page.table("Epochs of the two mappings, here",
               ["mapping", "nodes", "ranks", "threads", "images/s", "epoch s", "images per node, % of one"],
               [[row["setting"], int(row["nodes"]), int(row["ranks"]), int(row["threads"]),
                 float(row["items_per_second_median"]), float(row["epoch_seconds"]),
                 100 * float(row["efficiency"]) if row["efficiency"] else None] for row in rows],
               "Of `50000` images each, as the speed says it; the first epoch of each run does not count.")
    one, parts = (max(float(row["items_per_second_median"]) for row in rows
                      if row["setting"] == setting and row["nodes"] == "1")
                  for setting in ("1 process per node", "1 process per NUMA domain"))
    epochs = {column["name"]: column["epoch_seconds"] for column in published["columns"]}
    page.compare("one node: a process on all its cores, by one on each part", epochs["Fujitsu/4"][0]
                 / epochs["Fujitsu/1"][0], one / parts, "times as fast",
                 "" if bench.scale == "published" else "two cores, a core each; ResNet18", headline=True)
    largest = max(int(row["nodes"]) for row in rows)
    if largest < published["nodes"][-1]:
        page.missing("the other worlds", f"they take up to {published['nodes'][-1]} nodes of A64FX; here there "
                     f"was {largest}",
                     f'scaling_sweep {SPEC} --hosts "$(scontrol show hostnames | paste -sd,)"')


# ---- What the published tables say.

def recompute(page, published):
    nodes = published["nodes"]
    curves = {}
    for column in published["columns"]:
        seconds = column["epoch_seconds"]
        shares = [100 * seconds[0] / (count * time) for count, time in zip(nodes, seconds)]
        curves[column["name"]] = list(zip(nodes, shares))
        if column["name"] in PUBLISHED_PER_NODE:
            page.compare(f"images processed at {nodes[-1]} nodes per node, {column['name']}",
                         PUBLISHED_PER_NODE[column["name"]], shares[-1], "%",
                         "computed again from the printed epochs, T1/(N TN)")
    page.lines("Images processed per node, as a share of one node's", "nodes", "%", curves, log_x=True,
               note="From the published epochs; the number is a process's count on a node.")


# ---- The model.

def model(bench, page):
    bench.run("fit", ["scale_sim", "fit", path(bench, TABLE), "--subsets", "--json", "{folder}/fit.json"])
    fit = json.loads((bench.folder / "fit" / "fit.json").read_text(encoding="utf-8"))
    rows, worst = [], 0
    for column in fit["columns"]:
        every = column["all_choices_of_rows"]
        worst = max(worst, column["held_out_max_error"])
        rows.append([column["name"]] + [column["parameters"][name]["value"] for name in (
            "image-ms", "starved-share", "software-ns-per-byte")]
            + [100 * value for value in (column["held_out_median_error"], column["held_out_max_error"],
                                         every["median_of_median_errors"], every["worst_median_error"])])
    fitted = ", ".join(map(str, fit["fit_nodes"]))
    page.table("The model of scale_sim, fitted to every other row",
               ["column", "image-ms", "starved-share", "software-ns-per-byte", "other rows: median error %",
                "maximum %", "all choices of as many rows: median of medians %", "worst %"], rows,
               f"Fitted to {fitted} nodes; [docs/scale_sim.md](../scale_sim.md) says what the parameters are.")
    beyond = {}
    for column in fit["columns"]:
        for far in column["beyond"]:
            beyond.setdefault(far["times_as_many_nodes"], {})[column["name"]] = 100 * far["max_error"]
    names = [column["name"] for column in fit["columns"]]
    page.table("Its largest errors (%) on more nodes than it was fitted to", ["times as many nodes"] + names,
               [[f"{factor:g}"] + [errors.get(name) for name in names] for factor, errors in sorted(beyond.items())],
               "Of fits to the first three rows, the first four, and so on.")
    for per_node in (1, 4):
        curves, dashed = {}, []
        for column in fit["columns"]:
            if column["ranks_per_node"] != per_node:
                continue
            for kind, key in ((column["name"], "measured_seconds"), (column["name"] + ", model", "predicted_seconds")):
                curves[kind] = [(point["nodes"], point[key]) for point in column["points"]]
            dashed.append(column["name"] + ", model")
        page.lines(f"Epochs with {per_node} {'process' if per_node == 1 else 'processes'} a node", "nodes",
                   "s per epoch", curves, dashed, log_x=True, log_y=True)
    cells = sum(not point["fitted"] for column in fit["columns"] for point in column["points"])
    page.compare("the model's largest error on rows that it was not fitted to", None, 100 * worst, "%",
                 f"of {cells} epochs in six columns", headline=True)


def predict(bench, page):
    nodes = [8, 128, 1024]
    bench.run("predict", ["scale_sim", "predict", path(bench, TABLE), "--columns", "GNU/1", "--nodes",
                          ",".join(map(str, nodes)), "--max-simulated-ranks",
                          bench.pick(small=1024, published=1024, tiny=16), "--json", "{folder}/predict.json"])
    found = json.loads((bench.folder / "predict" / "predict.json").read_text(encoding="utf-8"))
    rows = [[str(one["nodes"]), one["system"], one["strong_scaling"]["epoch_seconds"],
             one["strong_scaling"]["times_as_fast_as_horovod"], 1e3 * one["weak_scaling"]["step_seconds"],
             one["weak_scaling"]["times_as_fast_as_horovod"], one["times_beyond_fitted"],
             None if one["largest_error_measured_so_far_away"] is None
             else 100 * one["largest_error_measured_so_far_away"]]
            for one in found["columns"][0]["predictions"]]
    page.table("What hvdlite would reach, as the model has it (GNU's build, one process a node)",
               ["nodes", "system", "epoch s", "x Horovod", "step ms, weak scaling", "x Horovod",
                "times beyond the fit", "error measured so far away, at most %"], rows,
               "No such run has been made. Each line has what those above it have; the first of hvdlite's has the "
               "settings of Horovod. A core of its own would help Horovod's thread, too.")


STUDY = Study(
    name="a64fx_scaling",
    title="ResNet50 on CIFAR-10 on 128 nodes of A64FX",
    citation="S. Chheda, \"Machine Learning with PyTorch\", Ookami User Group Meeting, Stony Brook University, "
             "10 February 2022 (slides): distributed training with Horovod.",
    machine=Machine(cores=48, numa_nodes=4, processor="A64FX, 1 to 128 nodes"),
    experiment="Horovod trains ResNet50 on CIFAR-10, 512 images a process and step, on 1 to 128 nodes; an epoch is "
               "timed. PyTorch 1.10 was built with Fujitsu's, ARM's and GNU's compilers. Two mappings: one process a "
               "node with 48 threads (`--map-by ppr:1:node:pe=48`, `XOS_MMM_L_HPAGE_TYPE=none`), and one for each "
               "NUMA domain with 12 (`--map-by ppr:1:numa:pe=12`, `XOS_MMM_L_PAGING_POLICY=demand:demand`). An epoch "
               "of N processes has ceil(50000 / (512 N)) steps: 98 on one, a single one from 98 on, in which "
               "each then has fewer than 512 images.",
    run=run,
    programs=("train_resnet50", "scaling_sweep", "hvdliterun", "scale_sim", "generate_cifar10"),
    differs=("two cores instead of 48 a node: two processes of a thread for four of 12, and one of two threads for "
             "one of 48",
             "one host: no world of several nodes",
             "ResNet18 on one random batch of CIFAR-10's size, 16 images a process and step, for ResNet50 and 512"),
    notes="With GNU's build a rank spends 18 times as long in `NEGOTIATE_ALLREDUCE` as with ARM's on two nodes, which the "
          "study leaves open: [what we think of it](../a64fx_negotiation.md).",
    data="CIFAR-10's binary files (`data_batch_1.bin`, ..., `test_batch.bin`), as its authors distribute them.")
