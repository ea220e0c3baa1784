"""The transformer for proteins: one process on all cores, compared with two ranks."""

import gzip
import re

from studies.runner.study import Machine, Study

TRAIN = "cullpdb+profile_6133_filtered.npy.gz"
TEST = "cb513+profile_split1.npy.gz"
PROTEINS = (5534, 514)  # of TRAIN and TEST
SEQUENCES = 20   # a step, of each process
# The jemalloc settings of the study's script.
MALLOC_CONF = ("oversize_threshold:1,background_thread:true,metadata_thp:auto,"
               "dirty_decay_ms:9000000000,muzzy_decay_ms:9000000000")
# KMP_AFFINITY=granularity=fine,compact,1,0 in variables that other OpenMP runtimes know.
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
        "generate_pssp", "--output", "{directory}", "--filtered", "--proteins",
        bench.pick(320, PROTEINS[0], tiny=40), "--test-proteins",
        bench.pick(10, PROTEINS[1], tiny=4), "--min-length", shortest, "--max-length", longest])
    generated = "" if proteins.real else generated_of(shortest, longest)
    compare_speed(bench, page, proteins, generated)
    directory = bench.directory / proteins.directory
    if proteins.real and any(is_rebuilt(directory / file) for file in (TRAIN, TEST)):
        proteins.remark = ("not Princeton's files, but rebuilt without terminals, solvent accessibility "
                           "and profile; `train_transformer` does not read these")
    compare_losses(bench, page, proteins, generated)
    profile(bench, page, proteins)
    if bench.numa_nodes == 1:
        page.missing(
            "Two NUMA domains", "here both ranks use the same memory. On two sockets the threads of one process use "
            "pages of both sockets, half of them over the link between the sockets; one rank per socket uses its own "
            "memory (`--mem bind`). This part of the published gain cannot be seen here. The study does not say how "
            "much of the factor 1.71 it is",
            "studies/study pssp --data DIRECTORY    # on a machine with two NUMA nodes and 40 cores")


def count(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")


def threads_of_two(bench):
    return max(1, bench.cores // 2)


def generated_of(shortest, longest):
    return f"generated proteins of {shortest} to {longest} residues"


def listed(*differences):
    return "; ".join(filter(None, differences))


def other_size(proteins, output):
    """Returns a remark if the real files have other numbers of proteins than the study. `output` is
    that of train_transformer."""
    found = tuple(map(int, re.search(r": (\d+) sequences to train with, (\d+) to test", output).groups()))
    if found == PROTEINS or not proteins.real:
        return ""
    return "%d and %d proteins instead of %d and %d" % (found + PROTEINS)


def is_rebuilt(file):
    """Whether the first protein has only zeros in columns 31 to 55 (terminals, solvent
    accessibility and profile)."""
    with gzip.open(file) as array:
        header = array.read(int.from_bytes(array.read(10)[8:], "little"))
        size = int(re.search(rb"'descr': '.f(\d)'", header)[1])
        row = array.read(700 * 57 * size)
    return not any(any(row[(57 * at + 31) * size:(57 * at + 56) * size]) for at in range(700))


# ---- Speed.

def some_sequences(bench):
    """Returns the number of sequences for measuring speeds; None: a whole epoch. With 320, two ranks wait
    for each other's longest proteins as long as in an epoch; with fewer they wait longer."""
    return bench.pick(320, None, tiny=40)


def sweep_spec(bench, proteins, jemalloc):
    """Measures the two published set-ups and the changes between them, one at a time."""
    threads, sequences = threads_of_two(bench), some_sequences(bench)

    def setting(name, ranks, threads, flags, batch="--batch-size-per-rank", environment=None):
        step = SEQUENCES * (ranks if batch == "--batch-size-per-rank" else 1)
        words = [batch, str(SEQUENCES), "--deal", "random"]
        words += ["--no-test", "--max-steps", str(sequences // step)] if sequences else []
        lines = [f'name: "{name}" ranks: {ranks} threads: {threads}']
        # The cores of the node are distributed evenly: one socket for each of two ranks.
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
        f'command: ["train_transformer", "--data-dir", "{proteins.directory}", "--epochs", "1", '
        '"--threads", "{threads}", "--report", "{report}"]',
        "scaling: STRONG", 'items: "sequences"', f"items_per_epoch: {PROTEINS[0]}",
        f"repeats: {bench.pick(1, 2)}", f"time_limit_seconds: {bench.pick(1200, 3600)}",
        "traces: NONE"] + settings) + "\n"


def compare_speed(bench, page, proteins, generated):
    threads, jemalloc = threads_of_two(bench), bench.has_library("jemalloc")
    rows = bench.sweep("speed", sweep_spec(bench, proteins, jemalloc))
    log = next((bench.directory / "speed/sweep").rglob("output.log"))
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
        f"The first is the study's single process, the last{' but one' if jemalloc else ''} its two ranks. They differ "
        "in the number of ranks, in the allocator and in the sequences per step, 20 per process. All use all cores. "
        "Some operators of one process do not profit from more threads (see below), mainly batched matrix products if "
        "LibTorch is built without MKL. The gain of two ranks from this need not be part of the published gain.")
    page.bars("Speed", "sequences/s", [row["setting"] for row in rows],
              {"here": [row["items_per_second_median"] for row in rows]})
    if not jemalloc:
        page.missing("jemalloc", "it is not installed here; Debian and Ubuntu have it", "apt-get install libjemalloc2")


# ---- Losses.

LINE = re.compile(r"train_loss +([\d.]+) test_loss: +([\d.]+) train_acc ([\d.]+) test_acc ([\d.]+) time ([\d.]+)")


def compare_losses(bench, page, proteins, generated):
    """Trains the whole first epoch. If this would take hours, uses generated short proteins, which show the
    effect of a step with 20 sequences per rank."""
    directory, real = proteins.directory, proteins.real and bench.scale == "published"
    if bench.scale != "published":
        directory = bench.data("pssp_short", [TRAIN, TEST], [
            "generate_pssp", "--output", "{directory}", "--filtered", "--proteins", bench.pick(400, None, tiny=80),
            "--test-proteins", bench.pick(40, None, tiny=4), "--min-length", 20, "--max-length", 40],
            real=False).directory
        generated = f"{bench.pick(400, None, tiny=80)} " + generated_of(20, 40)
    words = ["train_transformer", "--data-dir", directory, "--epochs", 1, "--deal", "random"]
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
        "With 20 sequences per rank an epoch has fewer steps, and its mean loss is "
        f"{beside_one(losses[TOGETHER], losses[ALONE])} that of one process (published: "
        f"{beside_one(*(PUBLISHED[name]['train loss'] for name in (TOGETHER, ALONE)))}). With 20 in all it is "
        f"{beside_one(losses[TOGETHER + ', 20 sequences in all'], losses[ALONE])} that of one process: the ranks then "
        "compute the same as one process.")
    for name, published in PUBLISHED.items():
        for what in names:
            page.compare(f"{what} of epoch 1, {name}", published[what], found[name][what], "", differs,
                         headline=real and what == "test loss")


# ---- Operators.

def operators(output):
    """Returns self and total seconds by name from the table that --profile prints."""
    return {match[1]: float(match[2]) for match in
            re.finditer(r"^(\S+) +\d+ +([\d.]+) +[\d.]+$", output, re.MULTILINE)}


def profile(bench, page, proteins):
    """Repeats the study's --profile: the times of operators, and whether they use all threads."""
    steps = bench.pick(2, 40, tiny=1)
    found = {threads: operators(bench.run("profile of " + count(threads, "thread"), [
        "train_transformer", "--data-dir", proteins.directory, "--batch-size-per-rank", SEQUENCES,
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
        "Time in the operator itself, without the operators that it calls, from `train_transformer --profile`. The "
        "study profiles the whole run with PyTorch's autograd; here it is a few steps, since they also run with one "
        "thread. If an operator is not faster with more threads, it uses one thread, or its threads wait for each "
        "other or for cores that other programs use.")
    backward = "aten::native_layer_norm_backward"
    if one.get(backward) and many.get(backward):
        page.compare("`LayerNorm` backward, all threads and one thread", None, one[backward] / many[backward], "times",
                     "public PyTorch ran it on one thread; the study's had the author's patch (#35750)")
    else:
        page.missing("`LayerNorm` backward", f"`{backward}` took less than the profile's limit of a millisecond, or "
                     "has another name in this LibTorch; this command prints the names",
                     "train_transformer --data-dir DIRECTORY --batch-size-per-rank 20 --max-steps 4 --no-test --profile")


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
        "CB513, with Adam and a warm-up of 4000 steps. The training of an epoch is timed, without the test. "
        "On two Xeon Gold 6248 (20 cores each) an epoch took 235.6 s with one process and 137.9 s "
        "with two (printed on the line of epoch 1 of 100), 1.71 times as fast (derived). Its PyTorch "
        "was built with the author's patch (#35750), with which the backward pass of `LayerNorm` uses all threads; "
        "that of LibTorch 1.13 also does.\n\n"
        "One process computes with one thread per core of the node and the C library's malloc. It is compared with "
        "two processes, each bound to the cores and the memory of one NUMA domain, with one thread per core and "
        "jemalloc, which keeps freed memory. According to the scripts both have 20 sequences per step and *process* "
        "(`-batch_size` is that of a rank's loader, and the sampler distributes the set): two ranks take 139 steps of "
        "40 per epoch, one process takes 277 of 20. The published losses agree with this: with half the steps, and a "
        "learning rate that grows with the steps, the first epoch of two ranks ends at a higher loss. Here "
        "`train_transformer --batch-size-per-rank 20` gives that step. `--global-batch-size 20` (its default) gives "
        "the same step for any number of ranks, which the study did not measure.\n\n"
        "The scripts set `OMP_NUM_THREADS` (here `--threads`) and `KMP_AFFINITY=granularity=fine,compact,1,0` (here "
        "`OMP_PROC_BIND=close OMP_PLACES=cores`, which GNU's OpenMP also knows; `hvdliterun` sets similar values "
        "itself). The corresponding commands, with the unchanged files of the study in D (without "
        "`preprocess.py`):\n\n"
        "```sh\n"
        "# train_cpu.sh; --profile also prints the time of each operator\n"
        "OMP_PROC_BIND=close OMP_PLACES=cores train_transformer --data-dir D --batch-size-per-rank 20 --threads 40\n"
        "# dist_train_cpu.sh\n"
        "hvdliterun -np 2 --map numa --threads 20 --comm-core none --mem bind --alloc jemalloc \\\n"
        f"  --set MALLOC_CONF={MALLOC_CONF} \\\n"
        "  train_transformer --data-dir D --batch-size-per-rank 20 --deal random\n"
        "# both, and the set-ups between them, on this page\n"
        "studies/study pssp --data D\n"
        "```"),
    run=run,
    programs=("train_transformer", "generate_pssp", "hvdliterun", "scaling_sweep"),
    differs=(
        "A C++ program with LibTorch, OpenBLAS and GNU's OpenMP instead of Python with the PyTorch of 2020. Where "
        "LibTorch is built without MKL, the matrix products of a batch are computed one after the other, small ones on "
        "one thread. This makes one process slower, and ranks gain more, than in the study.",
        "hvdlite sums the gradients in shared memory, instead of Gloo.",
        "jemalloc is the distribution's, not 5.2.0.",
        "There the gradient is the mean over the ranks of each rank's sum over its tokens; here it is the sum over all "
        "tokens. For Adam this makes no difference, except for its epsilon.",
        "Losses are means over the tokens of all ranks; the study's line is one rank's own, and each rank tests all "
        "514 proteins.",
        "According to the order in which its script prints, the time on the line of epoch 1 is probably that of epoch "
        "2. Here the first epoch is timed, which allocates memory.",
        "Dropout here does not depend on the number of ranks (`SampleDropout`). One thread of each rank draws the "
        "masks; `--profile` does not show this.",
    ),
    differs_small=(
        "Speeds are measured once with the first 320 sequences of the epoch instead of a whole epoch (generated ones "
        "unless there are real files; `tiny`: 40): a step of 20 real proteins takes several seconds on two cores. The "
        "first step allocates memory, and there are only a few steps.",
        "All set-ups use the same sequences; two ranks with 20 each need half as many steps. A rank pads to its "
        "longest protein, and the other rank waits. So two ranks need the time for 1.1 (by length) to 1.2 times (by "
        "squared length) the work of one process, in these 320 sequences of the real files as in the whole epoch.",
        "If the machine has one NUMA domain, each of two ranks uses half of its cores, so that all cores compute in "
        "both cases, as in the study.",
        "Losses are of an epoch of generated short proteins, also if there are real files, with a warm-up of 100 steps "
        "instead of 4000. In each step the learning rate is 253 times as high; at the end of one process's epoch (20 "
        "steps instead of 277) it is 18 times as high.",
    ),
    data=(f"`{TRAIN}` and `{TEST}` of <http://www.princeton.edu/~jzthree/datasets/ICML2014/>, in DIRECTORY or "
          "DIRECTORY/pssp. They are identified by their names only. A page notes if they were rebuilt instead of "
          "Princeton's. If a directory also has the unfiltered `cullpdb+profile_6133.npy.gz`, the filtered pair is "
          "used."),
)
