"""The transformer for proteins: one process on all cores against a rank for each NUMA domain."""

import re

from study_lib.study import Machine, Study

TRAIN = "cullpdb+profile_6133_filtered.npy.gz"
TEST = "cb513+profile_split1.npy.gz"
PROTEINS = 5534  # of TRAIN
SEQUENCES = 20   # a step, of each process
# What the study's script sets for jemalloc.
MALLOC_CONF = ("oversize_threshold:1,background_thread:true,metadata_thp:auto,"
               "dirty_decay_ms:9000000000,muzzy_decay_ms:9000000000")
# KMP_AFFINITY=granularity=fine,compact,1,0 as other OpenMP runtimes know it, too.
BOUND = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
ALONE, TOGETHER = "one process", "a rank for each NUMA domain"
PUBLISHED = {
    ALONE: {"seconds": 235.6, "train loss": 1.491, "test loss": 1.068, "train accuracy": 0.525,
            "test accuracy": 0.685},
    TOGETHER: {"seconds": 137.9, "train loss": 1.911, "test loss": 1.166, "train accuracy": 0.384,
               "test accuracy": 0.667},
}


def layout(bench):
    """(ranks, threads of each, --map): all cores in both cases."""
    ranks = max(2, bench.numa_nodes)
    return ranks, max(1, bench.cores // ranks), "numa" if bench.numa_nodes > 1 else "core"


def run(bench, page):
    proteins = bench.data("pssp", [TRAIN, TEST], [
        "generate_pssp", "--output", "{folder}", "--filtered", "--proteins", bench.pick(80, PROTEINS, tiny=40),
        "--test-proteins", bench.pick(10, 514, tiny=4), "--min-length", 30,
        "--max-length", bench.pick(400, 700, tiny=40)])
    compare_speed(bench, page, proteins)
    compare_losses(bench, page, proteins)
    profile(bench, page, proteins)
    page.missing("Two NUMA domains", "here both ranks use the same memory. On two sockets the threads of one "
                 "process read and write pages of both, half of them through the link between the sockets; "
                 "a rank on each has its own (`--mem bind`). That part of the published gain cannot show here",
                 "tools/study pssp --data FOLDER    # on a machine with two NUMA nodes and 40 cores")


# ---- Speed.

def sweep_spec(bench, proteins, jemalloc):
    """The two published set-ups, and between them one change at a time."""
    ranks, threads, mapping = layout(bench)
    sequences = bench.pick(80, None, tiny=40)  # None: a whole epoch

    def setting(name, ranks, threads, flags, batch="--batch-size-per-rank", environment=None):
        step = SEQUENCES * (ranks if batch == "--batch-size-per-rank" else 1)
        words = [batch, str(SEQUENCES)] + (["--no-test", "--max-steps", str(max(1, sequences // step))] if sequences else [])
        lines = [f'name: "{name}" ranks: {ranks} threads: {threads}']
        lines += ["alone: true"] if flags is None else [f'mapping: "{mapping if ranks > 1 else "node"}"']
        lines += [f'launcher_flag: "{flag}"' for flag in flags or []]
        lines += [f'argument: "{word}"' for word in words]
        lines += [f'environment {{ name: "{key}" value: "{value}" }}' for key, value in (environment or {}).items()]
        return "setting {\n  " + "\n  ".join(lines) + "\n}"

    all_compute = ["--comm-core", "none"]
    local = all_compute + (["--mem", "bind"] if bench.numa_nodes > 1 else [])
    with_jemalloc = ["--alloc", "jemalloc", "--set", "MALLOC_CONF=" + MALLOC_CONF]
    settings = [setting(ALONE, 1, bench.cores, None, environment={**BOUND, **bench.openblas})]
    if jemalloc:
        settings += [setting(ALONE + ", jemalloc", 1, bench.cores, all_compute + with_jemalloc)]
    settings += [setting(ALONE + ", malloc keeps memory", 1, bench.cores, all_compute),
                 setting(TOGETHER + ", malloc keeps memory", ranks, threads, local)]
    if jemalloc:
        settings += [setting(TOGETHER + ", jemalloc", ranks, threads, local + with_jemalloc),
                     setting(TOGETHER + ", jemalloc, 20 sequences in all", ranks, threads, local + with_jemalloc,
                             batch="--global-batch-size")]
    return "\n".join([
        'name: "pssp"',
        f'command: ["train_transformer", "--data-dir", "{proteins.folder}", "--epochs", "1", '
        '"--threads", "{threads}", "--report", "{report}"]',
        "scaling: STRONG", 'items: "sequences"', f"items_per_epoch: {PROTEINS}",
        f"repeats: {bench.pick(3, 2, tiny=1)}", f"time_limit_seconds: {bench.pick(300, 3600)}",
        "traces: NONE"] + settings) + "\n"


def compare_speed(bench, page, proteins):
    ranks, threads, mapping = layout(bench)
    jemalloc = bench.has_library("jemalloc")
    rows = bench.sweep("speed", sweep_spec(bench, proteins, jemalloc))
    seconds = {row["setting"]: row["epoch_seconds"] for row in rows}
    together = TOGETHER + (", jemalloc" if jemalloc else ", malloc keeps memory")
    here = f"{bench.cores} cores"
    page.compare("an epoch, one process on all cores", PUBLISHED[ALONE]["seconds"], seconds[ALONE], "s",
                 f"{here} instead of 40; 1 process of {bench.cores} threads")
    page.compare("an epoch, a rank for each NUMA domain", PUBLISHED[TOGETHER]["seconds"], seconds[together], "s",
                 f"{ranks} ranks of {threads} threads, --map {mapping}" + ("" if jemalloc else "; no jemalloc"))

    def ratio(first, second):
        return seconds[first] / seconds[second] if seconds.get(first) and seconds.get(second) else None
    page.compare("speed-up of the ranks over one process", 1.71, ratio(ALONE, together), "times",
                 f"{here}, one NUMA node" if bench.numa_nodes == 1 else here, headline=True)
    page.table(
        "What the published speed-up is made of",
        ["set-up", "ranks", "threads", "sequences/s", "95 % interval", "an epoch of 5534, s", "times as fast as the first"],
        [[row["setting"], row["ranks"], row["threads"], row["items_per_second_median"],
          "–" if row["interval_low"] is None else "%.2f to %.2f" % (row["interval_low"], row["interval_high"]),
          row["epoch_seconds"], ratio(ALONE, row["setting"])] for row in rows],
        "The first is the study's one process, the last but one its two ranks: they differ in the ranks, in the "
        "allocator and in the sequences of a step, which are 20 for each process. All use all cores.")
    page.bars("Speed", "sequences/s", [row["setting"] for row in rows],
              {"here": [row["items_per_second_median"] for row in rows]})
    if not jemalloc:
        page.missing("jemalloc", "it is not installed here", "apt-get install libjemalloc2")


# ---- Losses.

LINE = re.compile(r"train_loss +([\d.]+) test_loss: +([\d.]+) train_acc ([\d.]+) test_acc ([\d.]+) time ([\d.]+)")


def compare_losses(bench, page, proteins):
    """The first epoch, whole; where that would take hours, of generated short proteins, which tell
    what a step of 20 sequences for each rank changes."""
    ranks, threads, mapping = layout(bench)
    differs = "seed"
    if bench.scale != "published":
        proteins = bench.data("pssp_short", [TRAIN, TEST], [
            "generate_pssp", "--output", "{folder}", "--filtered", "--proteins", bench.pick(400, None, tiny=80),
            "--test-proteins", bench.pick(40, None, tiny=4), "--min-length", 20, "--max-length", 40])
        differs = "400 generated proteins of 20 to 40 residues; rates rise 40 times as fast"
    words = ["train_transformer", "--data-dir", proteins.folder, "--epochs", 1]
    if not proteins.real:
        words += ["--warmup-steps", 100]
    alone = ["-np", 1, "--threads", bench.cores, "--comm-core", "none"]
    together = ["-np", ranks, "--map", mapping, "--threads", threads, "--comm-core", "none"]
    each, in_all = ["--batch-size-per-rank", SEQUENCES], ["--global-batch-size", SEQUENCES]
    runs = {ALONE: bench.launch("epoch of one process", alone, words + each),
            TOGETHER: bench.launch("epoch of ranks", together, words + each),
            TOGETHER + ", 20 sequences in all": bench.launch("epoch of ranks, 20 in all", together, words + in_all)}
    names = ["train loss", "test loss", "train accuracy", "test accuracy"]
    found = {name: dict(zip(names, map(float, LINE.search(done.output).groups()))) for name, done in runs.items()}
    losses = {name: values["train loss"] for name, values in found.items()}
    page.table(
        "The first epoch", ["set-up", *names], [[name, *values.values()] for name, values in found.items()],
        f"With 20 sequences for each rank an epoch has fewer steps, and its mean loss is "
        f"{losses[TOGETHER] - losses[ALONE]:+.3f} above that of one process (published: +0.420). With 20 in all it "
        f"is {losses[TOGETHER + ', 20 sequences in all'] - losses[ALONE]:+.3f}: ranks then compute what one process "
        "does.")
    for name, published in PUBLISHED.items():
        for what in names:
            page.compare(f"{what} of epoch 1, {name}", published[what], found[name][what], "", differs,
                         headline=proteins.real and what == "test loss")


# ---- Operators.

def operators(output):
    """Self and total seconds of the table that --profile prints, by name."""
    return {match[1]: float(match[2]) for match in
            re.finditer(r"^(\S+) +\d+ +([\d.]+) +[\d.]+$", output, re.MULTILINE)}


def profile(bench, page, proteins):
    """The study's --profile: which operators take the time, and whether they use all threads."""
    steps = bench.pick(2, 40, tiny=1)
    found = {threads: operators(bench.run(f"profile of {threads} threads", [
        "train_transformer", "--data-dir", proteins.folder, "--batch-size-per-rank", SEQUENCES,
        "--max-steps", steps, "--no-test", "--threads", threads, "--profile"], {**BOUND, **bench.openblas}).output)
        for threads in (1, bench.cores)}
    one, many = found[1], found[bench.cores]
    hottest = sorted(one, key=one.get, reverse=True)[:12]
    layer_norm = [name for name in one if "layer_norm" in name and name not in hottest]
    page.table(
        f"Operators, one process, {steps} steps of {SEQUENCES} sequences",
        ["operator", "1 thread, s", f"{bench.cores} threads, s", "times as fast"],
        [[f"`{name}`", one[name], many.get(name), one[name] / many[name] if many.get(name) else None]
         for name in hottest + layer_norm],
        "Time in the operator itself, without those that it calls, by `train_transformer --profile`; the study "
        "uses the profiler of PyTorch's autograd for the same. An operator that gains nothing from a second "
        "thread runs on one.")
    backward = "aten::native_layer_norm_backward"
    if one.get(backward) and many.get(backward):
        page.compare("`LayerNorm` backward, all threads over one", None, one[backward] / many[backward], "times",
                     "in the study's PyTorch it ran on one thread without its patch (#35750)")


STUDY = Study(
    name="pssp",
    title="Protein secondary structure with a transformer",
    citation=("Ma Mingfei, *Benchmarking CPU Training for PSSP-Transformer*, and its scripts, "
              "<https://github.com/mingfeima/pssp> (2020). Data: Zhou and Troyanskaya, *Deep Supervised and "
              "Convolutional Generative Stochastic Network for Protein Secondary Structure Prediction*, ICML 2014."),
    machine=Machine(cores=40, numa_nodes=2, processor="two Xeon Gold 6248, 20 cores each"),
    experiment=(
        "A post-norm transformer (2 layers, d_model 256, 8 heads, dropout 0.5) translates amino acids into the "
        "eight structures of DSSP: trained with all 5534 proteins of the filtered CullPDB, tested on the 514 of "
        "CB513, by Adam with a warm-up of 4000 steps. Timed is the training of an epoch, without the test.\n\n"
        "One process computes with a thread on each core of the node and the C library's malloc. Against it, two "
        "processes, each bound to the cores and the memory of one NUMA domain with a thread on each core of it, "
        "with jemalloc that keeps freed memory. The scripts tell that both have 20 sequences a step *for each "
        "process* (`-batch_size` is that of a rank's loader, and the sampler deals out the set): two ranks take "
        "139 steps of 40 an epoch where one takes 277 of 20. The published losses agree: with half the steps, and "
        "a rate that grows with them, the first epoch of two ranks ends at a higher loss. Here "
        "`train_transformer --batch-size-per-rank 20` is that step; `--global-batch-size 20` (its default) is "
        "the same step whatever the ranks, which the study did not measure."),
    run=run,
    programs=("train_transformer", "generate_pssp", "hvdliterun", "scaling_sweep"),
    differs=(
        "Speeds are of 80 sequences, the first of the epoch, instead of a whole one (generated ones of 30 to 400 "
        "residues, unless real files are there): a step of 20 real proteins takes two cores several seconds. Losses "
        "are of an epoch of 400 generated short ones.",
        "Two ranks where a machine has one NUMA domain, on a half of its cores each, so that all cores compute in "
        "both cases, as in the study.",
        "Gradients are added up by hvdlite in shared memory, not by Gloo.",
        "A rank's gradient is the sum over its tokens there, and the mean over ranks of these; here it is the sum "
        "over all. Adam does not see the difference but for its epsilon.",
        "Dropout here does not depend on the number of ranks (`SampleDropout`).",
    ),
    data=(f"`{TRAIN}` and `{TEST}` of <http://www.princeton.edu/~jzthree/datasets/ICML2014/>, in FOLDER or "
          "FOLDER/pssp. Where a folder has the unfiltered `cullpdb+profile_6133.npy.gz`, too, the filtered pair "
          "is taken."),
)
