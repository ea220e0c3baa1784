"""Mila's training benchmarks: nineteen benches, run several times and judged together."""

import json
import os
import pathlib

from study_lib.study import Machine, Study

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent

# By bench, of the example in the suite's description: target and result (items a second), standard
# deviation of the runs as a share of the result; and the minutes of its summary, of another machine.
PUBLISHED = {
    "toy_reg": (368820.18, 215482.487073, 0.017383, 0.27),
    "toy_lstm": (2.65, 1.254635, 0.005761, 0.93),
    "vae": (7972.69, 5931.232565, 0.004459, 0.78),
    "loader": (1200.00, 1188.224303, 0.052238, 2.50),
    "reso": (138.34, 178.694817, 0.005153, 1.26),
    "translator": (223.47, 212.040509, 0.002092, 3.20),
    "wlm": (1440.87, 1365.497700, 0.002131, 1.25),
    "wlmfp16": (3793.37, 4649.460342, 0.004022, 0.95),
    "cart": (2000.00, 2195.248475, 0.002941, 0.91),
    "atari": (5.41, 7.424253, 0.007507, 2.98),
    "ssd": (59.96, 49.263719, 0.004130, 3.95),
    "fast_style": (156.75, 146.285007, 0.001495, 2.13),
    "dcgan": (115.52, 147.794385, 0.004279, 2.08),
    "convnet": (178.76, 175.973774, 0.001089, 0.85),
    "convnet_fp16": (262.56, 329.347550, 0.002339, 0.91),
    "recom": (20650.19, 20802.705368, 0.004974, 9.34),
    "convnet_distributed": (276.10, 756.841070, 0.079718, 1.79),
    "convnet_distributed_fp16": (330.41, 785.470579, 0.055165, 2.42),
    "dcgan_all": (139.29, 274.608760, 0.004957, 8.48),
}
PUBLISHED_DEVIATION, PUBLISHED_PERFORMANCE, PUBLISHED_SECONDS = 1.1458, 0.2129, 2817.82
SEQUENCES = 97  # of toy_lstm's batch, which is one item there

DIFFERS = {
    "toy_lstm": "sequences, not batches of 97",
    "loader": "generated pictures, threads",
    "translator": "random tokens, 50 in each sentence",
    "wlmfp16": "bfloat16", "convnet_fp16": "bfloat16", "convnet_distributed_fp16": "bfloat16",
    "cart": "", "toy_reg": "",
    "atari": "no emulator: a ball game",
    "ssd": "random images and boxes",
    "fast_style": "random images, VGG-16 not trained",
    "recom": "random pairs",
}


def read(bench, file):
    return json.loads((bench.folder / file).read_text(encoding="utf-8"))


def minutes(text):
    """By bench, of the lines of a summary: "[ k/19][  /  ] PASSED |     0.27 MIN | NAME (...)"."""
    lines = [line.split("|") for line in text.splitlines() if " MIN " in line]
    return {line[2].split()[0]: float(line[1].split()[0]) for line in lines}


def run(bench, page):
    jobs = TOOLS / "bench_jobs" / bench.pick(small="small.json", published="published.json")
    runs = bench.pick(small=5, published=11)
    chosen = bench.pick(small=",".join(PUBLISHED), published=",".join(PUBLISHED),
                        tiny="toy_reg,cart,dcgan_all").split(",")
    devices = max(2, bench.numa_nodes)
    loader = next(job for job in json.loads(jobs.read_text(encoding="utf-8")) if job.get("data"))
    # As ImageNet's folders are called.
    pictures = bench.data("pictures", ["train", "val"], ["sh", "-c", " ".join([
        *map(str, loader["data"]["generate"]), "--output {folder} && mv {folder}/photo {folder}/train && "
        "mv {folder}/sketch {folder}/val"])])

    def here(path):
        return os.path.relpath(path, bench.folder)
    bench.run("suite", [
        here(TOOLS / "bench_suite"), "--jobs", here(jobs), "--runs", runs, "--target", "first",
        "--devices", min(devices, bench.cores), "--name", ",".join(chosen), "--bin", here(bench.build / "bin"),
        "--output", "runs", "--data", "data", *(["--resume"] if bench.resume else [])])

    verdict = read(bench, "runs/verdict.json")
    rows = {row["name"]: row for row in verdict["benchmarks"]}
    last = (bench.folder / f"runs/run{runs}/summary.txt").read_text(encoding="utf-8")
    took = minutes(last)
    page.compare("benches that passed in all runs", len(PUBLISHED), sum(name in rows for name in chosen),
                 f"of {len(chosen)}", headline=True)
    page.compare("deviation of the runs, 80 % quantile (below 5 passes)", PUBLISHED_DEVIATION,
                 verdict["deviation_quantile_percent"], "%",
                 f"{runs - 1} runs of the jobs in {jobs.name}; other programs on the machine count", headline=True)
    page.compare("performance (mean difference to the targets; from 0 on passes)", PUBLISHED_PERFORMANCE,
                 verdict["performance"], "", "there to targets of a GPU of the GeForce RTX series, here to the first "
                 "run on this machine", headline=True)
    page.compare("all benches once", PUBLISHED_SECONDS, float(last.split("Total Time")[1].split()[0]), "s")

    page.table(
        "Items a second of a device",
        ["bench", "target there", "result there", "sd %", "first run here", "result here", "sd %", "difference",
         "not as there"],
        [[name, target * (SEQUENCES if name == "toy_lstm" else 1), result * (SEQUENCES if name == "toy_lstm" else 1),
          100 * sd, row.get("target"), row.get("result"), row.get("sd_percent"), row.get("diff"),
          DIFFERS.get(name, "random input")]
         for name, (target, result, sd, _) in PUBLISHED.items() for row in [rows.get(name, {})]],
        note="The targets there are GPUs': they say nothing of this machine. The result is the mean of the runs less "
             "the best and the worst; of several instances at once, their mean. `convnet_distributed` and `dcgan_all` "
             "use all devices together.")
    for sentence in verdict["missing"]:
        page.text(f"Missing: {sentence}")
    page.bars("Deviation of the runs", "% of the result", list(PUBLISHED), {
        "published": [100 * sd for _, _, sd, _ in PUBLISHED.values()],
        "here": [rows.get(name, {}).get("sd_percent") for name in PUBLISHED]})
    page.bars("Minutes of a bench", "minutes", list(PUBLISHED), {
        "published": [row[3] for row in PUBLISHED.values()], "here": [took.get(name) for name in PUBLISHED]},
        note="There of a run on another machine than the table's." + (
            "" if bench.scale == "published" else " Here in small: other sizes, fewer batches."))
    page.text("```\n" + last + "```", heading="Summary of the last run")
    page.text("```\n" + (bench.folder / "runs/verdict.txt").read_text(encoding="utf-8") + "```", heading="Verdict")

    reports = read(bench, "runs/run1/reports/reports_0.json")
    page.table("A report", ["field", "value"], [
        [name, f"{len(value)} values" if isinstance(value, list) else json.dumps(value)]
        for name, value in sorted(reports[0].items()) if name != "hostname"],
        note="One list of these for each instance; `hostname` is left out of this page.")

    page.missing("GPUs", "hvdlite trains on CPUs; the published targets and results are GPUs'",
                 "tools/bench_suite --runs 10 --target tools/bench_jobs/targets.json")
    page.missing("Pong", "there is no Atari emulator in Debian, and its games are licensed: the policy plays a game "
                 "of catching a ball", "train_synthetic --model ball_game --repeat 30 --number 10")
    page.missing("trained weights and data sets", "ImageNet (but for the loader), COCO, WMT16, WikiText-2, MovieLens "
                 "and BSDS500 are random numbers of their shapes; SSD's and VGG-16's weights begin at random",
                 "tools/study mila --data FOLDER")
    if not pictures.real:
        page.missing("ImageNet for the loader", "its pictures are not free to pass on",
                     "tools/study mila --data FOLDER   # FOLDER/pictures/{train,val}/CLASS/*.JPEG")


STUDY = Study(
    name="mila", title="Mila's training benchmarks",
    citation="Mila, Training Benchmarks (github.com/mila-iqia/training), 2019: its description, the jobs of profile "
             "`baselines`, and the example of `mlbench-report`.",
    machine=Machine(cores=32, numa_nodes=1, processor="several GPUs of the GeForce RTX series beside 32 CPU cores"),
    experiment="""\
Nineteen benches, from a polynomial to GNMT, SSD300 and ResNet-101, each by its model, batch, optimizer, `repeat` and
`number` of the published jobs (`tools/bench_jobs/published.json`): `repeat` observations of the time of `number`
batches, the first ten left out, items a second of the mean. Benches of one device run once on each device at the
same time, each alone on its share of the cores; `convnet_distributed` and `dcgan_all` use all
devices. Here a device is a NUMA node, or half of the cores where there is one. All of it is run
eleven times (ten are judged; they are compared with the first), as `run_10.sh` and `mlbench-report` do: mean of the
runs less the best and the worst; passed are all benches in all runs, an 80 % quantile of the
deviations below 5 %, a mean difference to the targets from 0 on. [What each bench computes](../trainers.md#a-suite-of-benchmarks),
and what of it is not the original's.""",
    run=run, programs=("train_synthetic", "bench_report", "generate_pacs"),
    differs=(
        "`tools/bench_jobs/small.json`: the same models and optimizers with smaller batches, vocabularies and images "
        "(ResNet-101 on 64x64), 4 to 6 observations of few batches after two that are left out.",
        "Five runs instead of eleven.",
    ),
    notes="""\
From the rows of the published table `bench_report` reproduces its verdict: deviation quantile 1.1458 %, performance
+0.2129 (`tests/trainers/benchmark/run_comparison_test.cc`).

Memory: the original's cgroups give each instance RAM / N, too; `tools/bench_suite --share-memory` limits what an
instance may allocate.""",
    data="`pictures/train` and `pictures/val`: ImageNet's folders of classes, of which the loader reads the first.")
