"""ResNet50 on 1 to 128 nodes of A64FX: the published sweep (a small one here), and the model of its epochs."""

import csv
import json
import os
import pathlib
import shutil

from studies.runner import specs
from studies.runner.study import Machine, Study

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = "tools/scaling_sweep/specs/a64fx_scaling.txt"
MODEL = "studies/scaling_model/scaling_model"
TABLE = "studies/scaling_model/a64fx_resnet50_cifar10.json"
NODE, NUMA = "1 process per node", "1 process per NUMA domain"  # settings of the spec file
FILES = [f"data_batch_{index}.bin" for index in range(1, 6)] + ["test_batch.bin"]
# Printed below the tables of epochs. The slides do not name the build; the values follow from Fujitsu's epochs.
PUBLISHED_PER_NODE = {"Fujitsu/1": 30.75, "Fujitsu/4": 67.14}


def run(bench, page):
    published = json.loads((ROOT / TABLE).read_text(encoding="utf-8"))
    epochs = {column["name"]: column["epoch_seconds"] for column in published["columns"]}
    show_commands(bench, page)
    here = measure(bench, page, published["nodes"], epochs)
    show_epochs(bench, page, published["nodes"], epochs, here)
    conclusions(page, published["nodes"], epochs, here)
    recompute(page, published)
    if bench.knows(str(ROOT / MODEL), "predict"):
        model(bench, page)
        predict(bench, page)
    else:
        page.missing("the model of the epochs", "it needs SciPy, which is not installed",
                     "tools/setup --studies")


def path(bench, file):
    return os.path.relpath(ROOT / file, bench.directory)


# ---- The sweep.

def show_commands(bench, page):
    text = bench.run("dry run", ["scaling_sweep", path(bench, SPEC), "--dry-run", "--output", "/results"]).output
    lines = text.splitlines()
    commands = [line for line in lines if not line.startswith("#")]
    half = len(commands) // 2
    shown = [commands[0], commands[1], commands[half], commands[half + 1]]
    page.text(f"`scaling_sweep {SPEC} --dry-run` prints {len(commands)} commands, one for each world of the published "
              "tables; the sweep is run once for each build (three were published). The commands for one node and for "
              "two nodes, for each mapping:\n\n```sh\n" + "\n".join(shown) + "\n```\n\n"
              "Each rank gets the cores that Open MPI assigns for these values of `--map-by` "
              "(`tests/tools/scaling_sweep/published_a64fx_test.py`, all worlds).", "The published commands")


def hosts():
    """Returns the hosts of a SLURM job, otherwise this host."""
    names = os.environ.get("SLURM_JOB_NODELIST") and os.popen("scontrol show hostnames").read().split()
    return ",".join(names or ["localhost"])


def measure(bench, page, nodes, epochs):
    """Runs the sweep and returns its rows."""
    directory = bench.directory / "sweep"
    spec = specs.changed(bench.pick(small="a64fx_scaling_small.txt", published=pathlib.Path(SPEC).name), {
        "threads: [1, 2]": "threads: 2", "ranks: [1, 2]": "ranks: 2"} if bench.scale == "tiny" else {})
    file = directory / "spec.txt"
    if not (bench.resume and file.exists() and file.read_text(encoding="utf-8") == spec):
        shutil.rmtree(directory / "results", ignore_errors=True)
    directory.mkdir(exist_ok=True)
    file.write_text(spec, encoding="utf-8")
    words = ["scaling_sweep", "{directory}/spec.txt", "--output", "{directory}/results"]
    bench.data(bench.pick(small="cifar10_small", published="cifar10"), FILES, [
        "generate_cifar10", "--output", "{directory}", "--train-images", bench.pick(small=256, published=50000, tiny=64),
        "--test-images", bench.pick(small=10, published=10000)], real=bench.scale == "published")
    if bench.scale == "published":
        words += ["--hosts", hosts()]
    else:
        words += ["--repeats", bench.pick(small=5, published=3, tiny=1)]
    bench.run("sweep", words)
    with open(directory / "results" / "table.csv", encoding="utf-8", newline="") as file:
        rows = [{"setting": row["setting"], **{key: int(row[key]) for key in ("nodes", "ranks", "threads")},
                 "speed": float(row["items_per_second_median"]), "epoch": float(row["epoch_seconds"]),
                 "efficiency": float(row["efficiency"]) if row["efficiency"] else None}
                for row in csv.DictReader(file) if row["items_per_second_median"]]
    bench.sweeps.append({"name": "sweep", "spec": spec, "rows": rows})
    page.table("Epochs of the two mappings, here",
               ["mapping", "nodes", "ranks", "threads", "images/s", "epoch s",
                "images per node, % of one" if bench.scale == "published" else "a process's share of one's, %"],
               [[row["setting"], row["nodes"], row["ranks"], row["threads"], row["speed"], row["epoch"],
                 None if row["efficiency"] is None else 100 * row["efficiency"]] for row in rows],
               "An epoch of `50000` images, computed from the speed. The first epoch of each run does not count.")
    here = {}  # by setting and nodes: the row that uses the most cores
    for row in sorted(rows, key=lambda row: row["ranks"] * row["threads"]):
        here[row["setting"], row["nodes"]] = row
    # The number of cores of one process on 48 cores that are as fast as one of four ranks with 12 threads.
    cores = [12 * epochs[name + "/1"][0] / epochs[name + "/4"][0] for name in ("Fujitsu", "ARM", "GNU")]
    arm, gnu = (epochs[name + "/4"][0] / epochs[name + "/1"][0] for name in ("ARM", "GNU"))
    page.compare("one node: one process on all cores, compared with one on each part", epochs["Fujitsu/4"][0]
                 / epochs["Fujitsu/1"][0], here[NODE, 1]["speed"] / here[NUMA, 1]["speed"], "times as fast",
                 ("" if bench.scale == "published" else "two cores, one each; 64 images per process and step; ")
                 + f"published: Fujitsu's build (ARM's {arm:.2f}, GNU's {gnu:.2f}); "
                 f"published ranks of 12 threads were as fast as {min(cores):.1f} to "
                 f"{max(cores):.1f} cores, for unknown reasons (binding or memory format)",
                 headline=True)
    largest = max(row["nodes"] for row in rows)
    if largest < nodes[-1]:
        page.missing("the other worlds", f"they need up to {nodes[-1]} nodes of A64FX; here there was {largest}",
                     f'scaling_sweep {SPEC} --hosts "$(scontrol show hostnames | paste -sd,)"')
    traces = " ".join(build + "/runs/2x1x48-*/1/trace.json" for build in ("ARM", "GNU"))
    page.missing("the two published traces",
                 "they are from two builds, ARM's and GNU's, on two nodes with one process on each; "
                 "a sweep traces the first of its repeats",
                 f"scaling_sweep {SPEC} --hosts node1,node2 --output ARM\n"
                 "# The same with GNU's build, --output GNU.\n"
                 f"timeline_viewer diff {traces}")
    return here


# ---- The published tables.

def show_epochs(bench, page, nodes, epochs, here):
    """Shows the two published tables with all cells."""
    names = list(epochs)
    page.table("Published epochs, s", ["nodes"] + names + ["here/1", "here/4"],
               [[str(count)] + [f"{epochs[name][at]:g}" for name in names]
                + [here[setting, count]["epoch"] if (setting, count) in here else None for setting in (NODE, NUMA)]
                for at, count in enumerate(nodes)],
               "`Fujitsu/1` is the build of Fujitsu's compiler with one process per node, `Fujitsu/4` with one per "
               "NUMA domain (four per node). The others are named in the same way."
               + ("" if bench.scale == "published"
                  else " Here: 64 images per process and step, and two processes instead of four."))


def conclusions(page, nodes, epochs, here):
    """Compares the conclusions of the slides with their tables and with this run."""
    def share(name, at=-1):
        return 100 * epochs[name][0] / (nodes[at] * epochs[name][at])

    def faster(one, other):
        return f"{other / one:.3g} times as fast on one node" if one <= other else (
            f"no: it takes {one / other:.3g} times as long on one node")

    most = {setting: max(count for name, count in here if name == setting) for setting in (NODE, NUMA)}
    shares = {setting: 100 * here[setting, 1]["epoch"] / (most[setting] * here[setting, most[setting]]["epoch"])
              for setting in most}
    one_build, one_node = "cannot show here: one build", "cannot show here: one node"
    page.table("The conclusions of the slides", ["conclusion", "published epochs", "here"], [
        ["GNU's build is faster than Fujitsu's with oneDNN",
         "for PACS on one node: a chart without figures", one_build],
        ["SSL2 is best with LibTorch's own operators (ATen)", "a chart without figures", "cannot show here: no SSL2"],
        ["one process per node is faster, with oneDNN's blocks and fused operators",
         "at every size with every build" if all(
            one < four for build in ("Fujitsu", "ARM", "GNU")
            for one, four in zip(epochs[build + "/1"], epochs[build + "/4"])) else "not everywhere",
         faster(here[NODE, 1]["epoch"], here[NUMA, 1]["epoch"])],
        ["one process per NUMA domain scales better", f"at {nodes[-1]} nodes " + ", ".join(
            f"{build} {share(build + '/4'):.1f} instead of {share(build + '/1'):.1f} %"
            for build in ("Fujitsu", "ARM", "GNU")),
         one_node if min(most.values()) == 1 else ", ".join(
             f"{setting}: {shares[setting]:.1f} % at {most[setting]} nodes" for setting in most)],
        ["Fujitsu's build scales best (by the epochs: with one process per node)", f"at {nodes[-1]} nodes " + ", ".join(
            f"{name} {share(name):.1f} %" for name in epochs), one_build],
        ["GNU's build is not faster on two nodes, with one process on each",
         f"{epochs['GNU/1'][0]:g} s, {epochs['GNU/1'][1]:g} s",
         f"{here[NODE, 1]['epoch']:.4g} s, {here[NODE, 2]['epoch']:.4g} s" if (NODE, 2) in here else one_node]])


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
                         "computed again from the printed epochs, T1/(N TN); the slides do not name the build; these "
                         "values are Fujitsu's")
    page.lines("Images processed per node, as a share of one node's", "nodes", "%", curves, log_x=True,
               note="From the published epochs; /1 and /4 are processes per node.")


# ---- The model.

def model(bench, page):
    subsets = [] if bench.scale == "tiny" else ["--subsets"]
    bench.run("fit", [path(bench, MODEL), "fit", path(bench, TABLE), *subsets, "--json", "{directory}/fit.json"])
    fit = json.loads((bench.directory / "fit" / "fit.json").read_text(encoding="utf-8"))
    rows, worst = [], 0
    for column in fit["columns"]:
        every = column.get("all_choices_of_rows", {}).get("that_tell_all_parameters")
        worst = max(worst, column["held_out_max_error"])
        rows.append([column["name"]] + [column["parameters"][name]["value"] for name in (
            "image-ms", "starved-share", "software-ns-per-byte")]
            + [100 * column["held_out_median_error"], 100 * column["held_out_max_error"]]
            + [every and 100 * every[name] for name in ("median_of_median_errors", "worst_maximum_error")])
    fitted = ", ".join(map(str, fit["fit_nodes"]))
    page.table("The model, fitted to every other row",
               ["column", "image-ms", "starved-share", "software-ns-per-byte", "other rows: median error %",
                "maximum error %", f"all choices of {len(fit['fit_nodes'])} rows that determine all parameters: median "
                "of medians %", "worst maximum %"], rows,
               f"Fitted to {fitted} nodes. image-ms: computation of an image in a process; starved-share: the share of "
               "its speed that a process loses to Horovod's thread on its cores; software-ns-per-byte: the cost of an "
               "allreduce in addition to the network's ([more](../scaling_model/README.md#how-right-it-is)).")
    beyond, farthest = {}, max(
        (far["times_as_many_nodes"] for column in fit["columns"] for far in column["beyond"]), default=None)
    for column in fit["columns"]:
        for far in column["beyond"]:
            beyond.setdefault(far["times_as_many_nodes"], {})[column["name"]] = 100 * far["max_error"]
    names = [column["name"] for column in fit["columns"]]
    page.table("The model's largest errors (%) on more nodes than the fitted ones", ["times as many nodes"] + names,
               [[f"{factor:g}"] + [errors.get(name) for name in names] for factor, errors in sorted(beyond.items())],
               "Fits to the first three rows, the first four, and so on.")
    for per_node in (1, 4):
        curves, dashed = {}, []
        for column in fit["columns"]:
            if column["ranks_per_node"] != per_node:
                continue
            for kind, key in ((column["name"], "measured_seconds"), (column["name"] + ", model", "predicted_seconds")):
                curves[kind] = [(point["nodes"], point[key]) for point in column["points"]]
            dashed.append(column["name"] + ", model")
        page.lines(f"Epochs with {per_node} {'process' if per_node == 1 else 'processes'} per node", "nodes",
                   "s per epoch", curves, dashed, log_x=True, log_y=True)
    cells = sum(not point["fitted"] for column in fit["columns"] for point in column["points"])
    others = [column["all_choices_of_rows"]["that_tell_all_parameters"]["worst_maximum_error"]
              for column in fit["columns"] if subsets]
    page.compare(f"the model's largest error on other rows, fitted to {fitted} nodes", None,
                 100 * worst, "%", f"over {cells} epochs in six columns; " + (
                     f"{100 * max(others):.3g} % for the worst choice of equally many rows, " if others else "")
                 + (f"{max(beyond[farthest].values()):.3g} % on {farthest:g} times as many nodes" if farthest else ""),
                 headline=True)


def predict(bench, page):
    nodes = [8, 128, 1024]
    bench.run("predict", [path(bench, MODEL), "predict", path(bench, TABLE), "--columns", "GNU/1", "--nodes",
                          ",".join(map(str, nodes)), "--scale-sim", "scale_sim", "--max-simulated-ranks",
                          bench.pick(small=1024, published=1024, tiny=16), "--json", "{directory}/predict.json"])
    found = json.loads((bench.directory / "predict" / "predict.json").read_text(encoding="utf-8"))
    rows = [[str(one["nodes"]), one["system"].replace("horovod", "Horovod"), one["strong_scaling"]["epoch_seconds"],
             one["strong_scaling"]["times_as_fast_as_horovod"], 1e3 * one["weak_scaling"]["step_seconds"],
             one["weak_scaling"]["times_as_fast_as_horovod"], one["times_beyond_fitted"],
             100 * one["largest_error_measured_so_far_away"] if one["system"] == "horovod"
             and one["largest_error_measured_so_far_away"] is not None else None]
            for one in found["columns"][0]["predictions"]]
    page.table("Predictions of the model for hvdlite (GNU's build, one process per node)",
               ["nodes", "system", "epoch s", "x Horovod", "step ms, weak scaling", "x Horovod",
                "times beyond the fit", "error measured so far away, at most %"], rows,
               "These runs were not made, and hvdlite was not measured: the errors are those of the model of Horovod. "
               "Times beyond the fit: the nodes, divided by the most nodes that the model was fitted to. Each line "
               "adds one feature to the previous one; the first line of hvdlite has the settings of Horovod. A core "
               "of its own would help Horovod's thread, too.")


STUDY = Study(
    name="a64fx_scaling",
    title="ResNet50 on CIFAR-10 on 128 nodes of A64FX",
    citation="S. Chheda, \"Machine Learning with PyTorch\", Ookami User Group Meeting, Stony Brook University, "
             "10 February 2022 (slides).",
    machine=Machine(cores=48, numa_nodes=4, architecture="aarch64",
                    processor="A64FX, 1 to 128 nodes of 48 cores on 4 NUMA nodes"),
    experiment="Horovod trains ResNet50 on CIFAR-10, with 512 images per step (and process, see below), on 1 to 128 "
               "nodes; an epoch is timed. PyTorch 1.10.0 was built with Fujitsu's compiler and SSL2, and with ARM's "
               "and GNU's compilers and ARM's Performance Libraries. Two mappings: one process per node with 48 "
               "threads (`--map-by ppr:1:node:pe=48`, `XOS_MMM_L_HPAGE_TYPE=none`), and one per NUMA domain with 12 "
               "(`--map-by ppr:1:numa:pe=12`, `XOS_MMM_L_PAGING_POLICY=demand:demand`). An epoch of N processes has "
               "ceil(50000 / (512 N)) steps: 98 steps with one process, and one step with 98 or more processes, which "
               "then have fewer than 512 images each.",
    run=run,
    programs=("train_resnet50", "scaling_sweep", "hvdliterun", "scale_sim", "generate_cifar10"),
    differs=("hvdlite, in C++, for Horovod; a later LibTorch than PyTorch 1.10.0; another MPI, BLAS and oneDNN; one "
             "build instead of three.",
             "We conclude that 512 is the number of images per process from the 49 steps in the published trace of two "
             "nodes.",
             "The steps of an epoch have nearly equal sizes: 64 processes take two steps of at most 391 images, not "
             "512 and 270.",
             "Memory format (published only for one process per node: oneDNN's blocks), augmentation, allocator, "
             "learning rate, loader threads, the network's stem and the number of epochs are not published. Here: "
             "oneDNN's blocks for both mappings, crops and flips, the trainer's rate, no loader threads, torchvision's "
             "stem (see docs/trainers.md), the last two of three epochs.",
             "The study does not say whether an epoch's time includes an evaluation; here there is none.",
             "The summary of the slides mentions block format and fused operators only with one process per node. So "
             "the factor of 8.5 to 10.9 between the mappings may come from another format.",
             "hvdliterun binds threads (`OMP_PROC_BIND`, `OMP_PLACES`) and keeps memory that glibc's malloc frees."),
    differs_small=("Two cores instead of 48 per node: two processes with one thread and core each "
                   "(`ppr:1:core:pe=1`) instead of four with 12 threads on a NUMA domain each, and one process with "
                   "two threads instead of 48; medians of five repeats.",
                   "One host: no world of several nodes.",
                   "64 images per process and step instead of 512, from 256 generated ones; real files are read only "
                   "at the published scale."),
    notes="On two nodes, a rank spends 18 times as long in `NEGOTIATE_ALLREDUCE` with GNU's build as with ARM's. The "
          "study does not explain this: [our explanation](../../docs/results/2026-11-a64fx-negotiation.md).",
    data="CIFAR-10's binary files (`data_batch_1.bin`, ..., `test_batch.bin`), as its authors distribute them.")
