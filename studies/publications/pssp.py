"""The transformer for proteins: one process on all cores against two ranks."""

import gzip
import re

from studies.runner.study import Machine, Study

TRAIN = "cullpdb+profile_6133_filtered.npy.gz"
TEST = "cb513+profile_split1.npy.gz"
PROTEINS = (5534, 514)  # of TRAIN and TEST
SEQUENCES = 20   # a step, of each process
# What the study's script sets for jemalloc.
MALLOC_CONF = ("oversize_threshold:1,background_thread:true,metadata_thp:auto,"
               "dirty_decay_ms:9000000000,muzzy_decay_ms:9000000000")
# KMP_AFFINITY=granularity=fine,compact,1,0 as other OpenMP runtimes know it, too.
BOUND = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
ALONE, TOGETHER = "one process", "two ranks"
PUBLISHED = {
    ALONE: {"seconds": 235.6, "train loss": 1.491, "test loss": 1.068, "train accuracy": 0.525,
            "test accuracy": 0.685},
    TOGETHER: {"seconds": 137.9, "train loss": 1.911, "test loss": 1.166, "train accuracy": 0.384,
               "test accuracy": 0.667},
}


def run(bench, page):
    shortest, longest = 30, bench.pick(400, 700, tiny=40)
    proteins = bench.data("pssp", [TRAIN, TEST], [
        "generate_pssp", "--output", "{folder}", "--filtered", "--proteins",
        bench.pick(320, PROTEINS[0], tiny=40), "--test-proteins",
        bench.pick(10, PROTEINS[1], tiny=4), "--min-length", shortest, "--max-length", longest])
    generated = "" if proteins.real else generated_of(shortest, longest)
    compare_speed(bench, page, proteins, generated)
    folder = bench.folder / proteins.folder
    if proteins.real and any(is_rebuilt(folder / file) for file in (TRAIN, TEST)):
        proteins.remark = ("not Princeton's, but rebuilt without terminals, solvent accessibility "
                           "and profile, which `train_transformer` does not read")
    compare_losses(bench, page, proteins, generated)
    profile(bench, page, proteins)
    if bench.numa_nodes == 1:
        page.missing(
            "Two NUMA domains", "here both ranks use the same memory. On two sockets the threads of one process read "
            "and write pages of both, half of them through the link between the sockets; a rank on each has its own "
            "(`--mem bind`). That part of the published gain cannot show here; how much of the 1.71 times it is, the "
            "study does not tell",
            "studies/study pssp --data FOLDER    # on a machine with two NUMA nodes and 40 cores")


def count(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")


def threads_of_two(bench):
    return max(1, bench.cores // 2)


def generated_of(shortest, longest):
    return f"generated proteins of {shortest} to {longest} residues"


def listed(*differences):
    return "; ".join(filter(None, differences))


def other_size(proteins, output):
    """What to say where the real files have other numbers of proteins than the study's; `output` is
    that of train_transformer."""
    found = tuple(map(int, re.search(r": (\d+) sequences to train with, (\d+) to test", output).groups()))
    if found == PROTEINS or not proteins.real:
        return ""
    return "%d and %d proteins instead of %d and %d" % (found + PROTEINS)


def is_rebuilt(file):
    """Whether the first protein has only zeros in columns 31 to 55: terminals, solvent
    accessibility and profile."""
    with gzip.open(file) as array:
        header = array.read(int.from_bytes(array.read(10)[8:], "little"))
        size = int(re.search(rb"'descr': '.f(\d)'", header)[1])
        row = array.read(700 * 57 * size)
    return not any(any(row[(57 * at + 31) * size:(57 * at + 56) * size]) for at in range(700))


# ---- Speed.

def some_sequences(bench):
    """How many speeds are measured with; None: a whole epoch. In 320 two ranks wait as long for
    each other's longest proteins as in an epoch, in fewer longer."""
    return bench.pick(320, None, tiny=40)


def sweep_spec(bench, proteins, jemalloc):
    """The two published set-ups, and between them one change at a time."""
    threads, sequences = threads_of_two(bench), some_sequences(bench)

    def setting(name, ranks, threads, flags, batch="--batch-size-per-rank", environment=None):
        step = SEQUENCES * (ranks if batch == "--batch-size-per-rank" else 1)
        words = [batch, str(SEQUENCES), "--deal", "random"]
        words += ["--no-test", "--max-steps", str(sequences // step)] if sequences else []
        lines = [f'name: "{name}" ranks: {ranks} threads: {threads}']
        # The cores of the node are dealt evenly: a socket to each of two ranks.
        lines += ["alone: true"] if flags is None else ['mapping: "node"']
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
                 setting(TOGETHER + ", malloc keeps memory", 2, threads, local)]
    if jemalloc:
        settings += [setting(TOGETHER + ", jemalloc", 2, threads, local + with_jemalloc),
                     setting(TOGETHER + ", jemalloc, 20 sequences in all", 2, threads, local + with_jemalloc,
                             batch="--global-batch-size")]
    return "\n".join([
        'name: "pssp"',
        f'command: ["train_transformer", "--data-dir", "{proteins.folder}", "--epochs", "1", '
        '"--threads", "{threads}", "--report", "{report}"]',
        "scaling: STRONG", 'items: "sequences"', f"items_per_epoch: {PROTEINS[0]}",
        f"repeats: {bench.pick(1, 2)}", f"time_limit_seconds: {bench.pick(1200, 3600)}",
        "traces: NONE"] + settings) + "\n"


def compare_speed(bench, page, proteins, generated):
    threads, jemalloc = threads_of_two(bench), bench.has_library("jemalloc")
    rows = bench.sweep("speed", sweep_spec(bench, proteins, jemalloc))
    log = next((bench.folder / "speed/sweep").rglob("output.log"))
    generated = generated or other_size(proteins, log.read_text(encoding="utf-8"))
    seconds = {row["setting"]: row["epoch_seconds"] for row in rows}
    together = TOGETHER + (", jemalloc" if jemalloc else ", malloc keeps memory")
    published = bench.study.machine
    cores = "" if bench.cores == published.cores else f"{bench.cores} cores instead of {published.cores}"
    nodes = "" if bench.numa_nodes == published.numa_nodes else count(bench.numa_nodes, "NUMA node")
    sequences = some_sequences(bench)
    epoch = f"an epoch (from {sequences} sequences)" if sequences else "an epoch"
    steps = (f"{count(sequences // SEQUENCES, 'step')} of one process, "
             f"{sequences // SEQUENCES // 2} of two ranks" if sequences else "")
    page.compare(f"{epoch}, one process on all cores", PUBLISHED[ALONE]["seconds"], seconds[ALONE], "s",
                 listed(cores and f"{cores}, a thread on each", generated))
    page.compare(f"{epoch}, two ranks", PUBLISHED[TOGETHER]["seconds"], seconds[together], "s",
                 listed(cores and "2 ranks of " + count(threads, "thread"), nodes, "" if jemalloc else "no jemalloc",
                        generated))

    def ratio(first, second):
        return seconds[first] / seconds[second] if seconds.get(first) and seconds.get(second) else None
    page.compare("speed-up of two ranks over one process",
                 PUBLISHED[ALONE]["seconds"] / PUBLISHED[TOGETHER]["seconds"], ratio(ALONE, together), "times",
                 listed("published: derived, 235.6/137.9", cores, nodes, steps, generated),
                 headline=True)
    page.table(
        "From one process to two ranks",
        ["set-up", "ranks", "threads", "sequences/s", "95 % interval", f"an epoch of {PROTEINS[0]}, s",
         "times as fast as the first"],
        [[row["setting"], row["ranks"], row["threads"], row["items_per_second_median"],
          "–" if row["interval_low"] is None else "%.2f to %.2f" % (row["interval_low"], row["interval_high"]),
          row["epoch_seconds"], ratio(ALONE, row["setting"])] for row in rows],
        f"The first is the study's one process, the last{' but one' if jemalloc else ''} its two ranks: they differ in "
        "the ranks, in the allocator and in the sequences of a step, which are 20 for each process. All use all cores. "
        "What ranks gain because operators of one process do not gain from its threads (below; batched matrix products "
        "above all where LibTorch is built without MKL) need not be part of the published gain.")
    page.bars("Speed", "sequences/s", [row["setting"] for row in rows],
              {"here": [row["items_per_second_median"] for row in rows]})
    if not jemalloc:
        page.missing("jemalloc", "it is not installed here; Debian and Ubuntu have it", "apt-get install libjemalloc2")


# ---- Losses.

LINE = re.compile(r"train_loss +([\d.]+) test_loss: +([\d.]+) train_acc ([\d.]+) test_acc ([\d.]+) time ([\d.]+)")


def compare_losses(bench, page, proteins, generated):
    """The first epoch, whole; where that would take hours, of generated short proteins, which tell
    what a step of 20 sequences for each rank changes."""
    folder, real = proteins.folder, proteins.real and bench.scale == "published"
    if bench.scale != "published":
        folder = bench.data("pssp_short", [TRAIN, TEST], [
            "generate_pssp", "--output", "{folder}", "--filtered", "--proteins", bench.pick(400, None, tiny=80),
            "--test-proteins", bench.pick(40, None, tiny=4), "--min-length", 20, "--max-length", 40],
            real=False).folder
        generated = f"{bench.pick(400, None, tiny=80)} " + generated_of(20, 40)
    words = ["train_transformer", "--data-dir", folder, "--epochs", 1, "--deal", "random"]
    if not real:
        words += ["--warmup-steps", 100]
    alone = ["-np", 1, "--threads", bench.cores, "--comm-core", "none"]
    together = ["-np", 2, "--threads", threads_of_two(bench), "--comm-core", "none"]
    each, in_all = ["--batch-size-per-rank", SEQUENCES], ["--global-batch-size", SEQUENCES]
    runs = {ALONE: bench.launch("epoch of one process", alone, words + each),
            TOGETHER: bench.launch("epoch of ranks", together, words + each),
            TOGETHER + ", 20 sequences in all": bench.launch("epoch of ranks, 20 in all", together, words + in_all)}
    names = ["train loss", "test loss", "train accuracy", "test accuracy"]
    found = {name: dict(zip(names, map(float, LINE.search(done.output).groups()))) for name, done in runs.items()}
    differs = (listed("seed, LibTorch", other_size(proteins, runs[ALONE].output)) if real
               else generated + ", warm-up of 100 steps instead of 4000")

    def beside_one(loss, of_one):
        return f"{abs(loss - of_one):.3f} {'above' if loss >= of_one else 'below'}"
    losses = {name: values["train loss"] for name, values in found.items()}
    page.table(
        "The first epoch", ["set-up", *names], [[name, *values.values()] for name, values in found.items()],
        "With 20 sequences for each rank an epoch has fewer steps, and its mean loss is "
        f"{beside_one(losses[TOGETHER], losses[ALONE])} that of one process (published: "
        f"{beside_one(*(PUBLISHED[name]['train loss'] for name in (TOGETHER, ALONE)))} it). With 20 in all it is "
        f"{beside_one(losses[TOGETHER + ', 20 sequences in all'], losses[ALONE])} it: ranks then compute what one "
        "process does.")
    for name, published in PUBLISHED.items():
        for what in names:
            page.compare(f"{what} of epoch 1, {name}", published[what], found[name][what], "", differs,
                         headline=real and what == "test loss")


# ---- Operators.

def operators(output):
    """Self and total seconds of the table that --profile prints, by name."""
    return {match[1]: float(match[2]) for match in
            re.finditer(r"^(\S+) +\d+ +([\d.]+) +[\d.]+$", output, re.MULTILINE)}


def profile(bench, page, proteins):
    """The study's --profile: which operators take the time, and whether they use all threads."""
    steps = bench.pick(2, 40, tiny=1)
    found = {threads: operators(bench.run("profile of " + count(threads, "thread"), [
        "train_transformer", "--data-dir", proteins.folder, "--batch-size-per-rank", SEQUENCES,
        "--max-steps", steps, "--no-test", "--threads", threads, "--profile"], {**BOUND, **bench.openblas}).output)
        for threads in (1, bench.cores)}
    one, many = found[1], found[bench.cores]
    hottest = sorted(one, key=one.get, reverse=True)[:12]
    layer_norm = [name for name in one if "layer_norm" in name and name not in hottest]
    page.table(
        f"Operators, one process, {count(steps, 'step')} of {SEQUENCES} sequences",
        ["operator", "1 thread, s", f"{count(bench.cores, 'thread')}, s", "times as fast"],
        [[f"`{name}`", one[name], many.get(name), one[name] / many[name] if many.get(name) else None]
         for name in hottest + layer_norm],
        "Time in the operator itself, without those that it calls, by `train_transformer --profile`; the study "
        "profiles all of its run, by PyTorch's autograd; here it is a few steps, since one thread takes them, too. "
        "An operator that gains nothing from more threads runs on one, or they wait for each other, or for cores that "
        "other programs take.")
    backward = "aten::native_layer_norm_backward"
    if one.get(backward) and many.get(backward):
        page.compare("`LayerNorm` backward, all threads over one", None, one[backward] / many[backward], "times",
                     "public PyTorch ran it on one thread; the study's had the author's patch (#35750)")
    else:
        page.missing("`LayerNorm` backward", f"`{backward}` took less than the profile's millisecond, or has another "
                     "name in this LibTorch; the names are printed by",
                     "train_transformer --data-dir FOLDER --batch-size-per-rank 20 --max-steps 4 --no-test --profile")


STUDY = Study(
    name="pssp",
    title="Protein secondary structure with a transformer",
    citation=("Ma Mingfei, *Benchmarking CPU Training for PSSP-Transformer*, and its scripts, "
              "<https://github.com/mingfeima/pssp> (2020). Data: Zhou and Troyanskaya, *Deep Supervised and "
              "Convolutional Generative Stochastic Network for Protein Secondary Structure Prediction*, ICML 2014."),
    machine=Machine(cores=40, numa_nodes=2, processor="two Xeon Gold 6248, 20 cores each, 2 NUMA nodes"),
    experiment=(
        "A post-norm transformer (2 layers, d_model 256, 8 heads, dropout 0.5) translates amino acids into the "
        "eight structures of DSSP: trained with all 5534 proteins of the filtered CullPDB, tested on the 514 of "
        "CB513, by Adam with a warm-up of 4000 steps. Timed is the training of an epoch, without the test. "
        "On two Xeon Gold 6248 (20 cores each) an epoch took 235.6 s with one process and 137.9 s "
        "with two (printed on the line of epoch 1 of 100), 1.71 times as fast (derived). Its PyTorch "
        "was built with the author's patch (#35750), by which the backward pass of `LayerNorm` uses all threads; "
        "that of LibTorch 1.13 does.\n\n"
        "One process computes with a thread on each core of the node and the C library's malloc. Against it, two "
        "processes, each bound to the cores and the memory of one NUMA domain with a thread on each core of it, "
        "with jemalloc that keeps freed memory. The scripts tell that both have 20 sequences a step *for each "
        "process* (`-batch_size` is that of a rank's loader, and the sampler deals out the set): two ranks take "
        "139 steps of 40 an epoch where one takes 277 of 20. The published losses agree: with half the steps, and "
        "a rate that grows with them, the first epoch of two ranks ends at a higher loss. Here "
        "`train_transformer --batch-size-per-rank 20` is that step; `--global-batch-size 20` (its default) is "
        "the same step whatever the ranks, which the study did not measure.\n\n"
        "The scripts set `OMP_NUM_THREADS` (here `--threads`) and `KMP_AFFINITY=granularity=fine,compact,1,0` (here "
        "`OMP_PROC_BIND=close OMP_PLACES=cores`, which GNU's OpenMP knows, too; `hvdliterun` sets the like by itself). "
        "Their counterparts, with the files of the study in D as they are (there is no `preprocess.py`):\n\n"
        "```sh\n"
        "# train_cpu.sh; with --profile, the time of each operator, too\n"
        "OMP_PROC_BIND=close OMP_PLACES=cores train_transformer --data-dir D --batch-size-per-rank 20 --threads 40\n"
        "# dist_train_cpu.sh\n"
        "hvdliterun -np 2 --map numa --threads 20 --comm-core none --mem bind --alloc jemalloc \\\n"
        f"  --set MALLOC_CONF={MALLOC_CONF} \\\n"
        "  train_transformer --data-dir D --batch-size-per-rank 20 --deal random\n"
        "# both and what is between them, on this page\n"
        "studies/study pssp --data D\n"
        "```"),
    run=run,
    programs=("train_transformer", "generate_pssp", "hvdliterun", "scaling_sweep"),
    differs=(
        "A C++ program with LibTorch, OpenBLAS and GNU's OpenMP instead of Python with the PyTorch of 2020. Where "
        "LibTorch is built without MKL, the matrix products of a batch are computed one after the other, small ones on "
        "one thread: one process is slower by this, and ranks gain more, than in the study.",
        "Gradients are added up by hvdlite in shared memory, not by Gloo.",
        "jemalloc is the distribution's, not 5.2.0.",
        "A rank's gradient is the sum over its tokens there, and the mean over ranks of these; here it is the sum "
        "over all. Adam does not see the difference but for its epsilon.",
        "Losses are means over the tokens of all ranks; the study's line is one rank's own, and each rank tests all "
        "514 proteins.",
        "By its script's order of printing the time on the line of epoch 1 is probably that of epoch 2. Timed here is "
        "the first, which allocates memory.",
        "Dropout here does not depend on the number of ranks (`SampleDropout`). One thread of each rank draws its "
        "masks, which `--profile` does not show.",
    ),
    differs_small=(
        "Speeds are of the first 320 sequences of the epoch, once, instead of a whole one "
        "(generated ones, unless real files are there; `tiny`: 40): a step of 20 real proteins "
        "takes two cores several seconds. The first step allocates memory, and is one of few.",
        "All set-ups take the same sequences, two ranks with 20 each in half as many steps. A "
        "rank pads to its longest protein, and the other waits: two ranks take as long as for 1.1 "
        "(by length) to 1.2 times (by its square) the work of one process, in these 320 of the "
        "real files as in the whole epoch.",
        "Two ranks where a machine has one NUMA domain, on a half of its cores each, so that all cores compute in "
        "both cases, as in the study.",
        "Losses are of an epoch of generated short proteins, also where real files are there, and of a warm-up of 100 "
        "steps instead of 4000: step by step the rate is 253 times as high; at the end of the epoch of one process, of "
        "20 steps instead of 277, 18 times.",
    ),
    data=(f"`{TRAIN}` and `{TEST}` of <http://www.princeton.edu/~jzthree/datasets/ICML2014/>, in FOLDER or "
          "FOLDER/pssp. They are known by their names alone; where they are rebuilt, not Princeton's, a page "
          "says so. Where a folder has the unfiltered "
          "`cullpdb+profile_6133.npy.gz`, too, the filtered pair is taken."),
)
