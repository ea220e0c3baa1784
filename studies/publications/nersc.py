"""PyTorch on Cori: MNIST with synchronous SGD in four steps, and the three kernels used to time its wheels."""

import os
import re

from studies.runner import machine
from studies.runner.study import Machine, Study

MNIST = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
         "t10k-labels-idx1-ubyte"]
# Losses of epochs 0 and 9 by number of ranks, with summed gradients: from_mingfei/bs128_n1.log and bs128_n2.log
# of PyTorch-MPI-DDP-example (mean of the two ranks).
LOSSES = {1: (1.316212, 0.225228), 2: (0.964016, 0.176239)}
# Times of forward and backward of a batch in ms, from nersc_benchmarks of the study's repository.
KERNELS = {"alexnet": {"Haswell, before": 23180.65, "Haswell, optimised": 1389.29, "KNL, optimised": 2443.66},
           "conv3d_volumes": {"Haswell, before": 3615.43, "Haswell, optimised": 233.46, "KNL, optimised": 400.06}}
CORES = {"Haswell": 32, "KNL": 68}
# Published numbers of warm-up batches and of timed batches.
BATCHES = {"alexnet": (10, 10), "conv3d_volumes": (5, 10), "lstm_layer": (50, 100)}
AFFINITY = "granularity=fine,compact,1,0"  # of KMP_AFFINITY, on KNL
NODES = ["-np", 2, "--launcher", "srun", "--map-by", "ppr:1:node"]  # a rank on each


def run(bench, page):
    digits = bench.data("mnist", MNIST, [
        "generate_mnist", "--output", "{directory}", "--plain", "--train-images", bench.pick(6000, 60000, tiny=256),
        "--test-images", bench.pick(1000, 10000, tiny=64)])
    mnist(bench, page, digits)
    same_losses(bench, page, digits)
    kernels(bench, page)
    if not has_nodes(bench):
        page.missing(
            "Two nodes of Cori",
            "MNIST ran with one rank on each of two Haswell nodes, over Cray's MPI. Cori no longer exists. These are "
            "the commands for a cluster with SLURM. `studies/study nersc --scale published` also runs them in such a "
            "job if both nodes see its output directory",
            "salloc -N 2 --ntasks-per-node=1 -C haswell --exclusive -t 00:30:00\n"
            "# Silences Cray MPI's warning about threads; hvdlite itself only needs MPI_THREAD_SERIALIZED.\n"
            "export MPICH_MAX_THREAD_SAFETY=multiple\n"
            f"hvdliterun {' '.join(map(str, NODES))} \\\n"
            "  train_mnist --data-dir mnist --debug-print --manual --sum-gradients")
    if not on_knl():
        kernel = ("hvdliterun -np 1 --threads 68 --comm-core none train_synthetic --gradients-only \\\n"
                  "  --num-warmup-batches {} --num-batches {} --model {} {}\n")
        page.missing(
            "A KNL node",
            "it has 68 cores, and its high-bandwidth memory is a cache (`-C knl,quad,cache`). It is one NUMA node, so "
            "`--scale auto` treats it as a small machine: use `--scale published`. There is no ratio to the earlier "
            "build, which crashed on KNL. The other commands run the kernels only, with one of the sizes of LSTM",
            f"studies/study nersc --scale published\n\nexport KMP_AFFINITY={AFFINITY}\n" + "".join(
                kernel.format(*BATCHES[model], model, sizes) for model, sizes in (
                    ("alexnet", "--batch-size-per-rank 128"), ("conv3d_volumes", "--batch-size-per-rank 4"),
                    ("lstm_layer", "--batch-size-per-rank 64 --sequence-length 50 --hidden 500"))).rstrip())


def on_knl():
    return "Xeon Phi" in machine.processor()


def has_nodes(bench):
    """Whether each of two ranks gets its own node, as published."""
    return bench.scale == "published" and int(os.environ.get("SLURM_JOB_NUM_NODES", 1)) >= 2


# ---- MNIST.

def count(ranks):
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def launch(bench, name, ranks, words):
    flags = ["-np", ranks]
    # A job on two nodes may have fewer slots than ranks.
    if ranks > bench.cores or ranks > 2 and has_nodes(bench):
        flags += ["--oversubscribe"]
    if ranks <= bench.cores:
        flags += ["--threads", bench.cores // ranks]
    return bench.launch(name, flags, ["train_mnist", *words])


def mnist(bench, page, digits):
    """Runs the published example: plain calls sum the gradients and do not divide them."""
    epochs = bench.pick(10 if digits.real else 3, 10, tiny=2)
    losses, done = {}, {}
    for ranks in (1, 2):
        name = "mnist of " + count(ranks)
        words = ["--data-dir", digits.directory, "--epochs", epochs, "--manual", "--sum-gradients", "--debug-print",
                 "--report", "{report}"]
        done[ranks] = (bench.launch(name, NODES, ["train_mnist", *words]) if ranks == 2 and has_nodes(bench)
                       else launch(bench, name, ranks, words))
        losses[ranks] = [sum(values) / len(values) for epoch in range(epochs) for values in [[
            float(value) for value in re.findall(rf"^\[\d/{ranks}\] Epoch {epoch} Loss ([\d.]+)", done[ranks].output,
                                                 re.MULTILINE)]]]
        for epoch, published in zip((0, 9), LOSSES[ranks]):
            here = losses[ranks][epoch] if epoch < epochs else None
            page.compare(f"MNIST, loss of epoch {epoch} on {count(ranks)}, summed gradients", published, here, "",
                         (f"{epochs} epochs instead of 10" if here is None
                          else "seed" if digits.real else "generated digits")
                         + ("; both are means over the two ranks" if ranks == 2 else ""),
                         headline=digits.real and epoch == 9)
    page.lines("Loss of MNIST, with summed gradients", "epoch", "loss",
               {count(ranks): list(enumerate(values)) for ranks, values in losses.items()})
    speeds = {ranks: run.speed("images", warmup=1) for ranks, run in done.items()}
    page.table("Speed of MNIST, after the first epoch",
               ["ranks", "threads per rank", "images/s", "times as fast as one"],
               [[str(ranks), done[ranks].report["threads_per_rank"], speed, speed / speeds[1]]
                for ranks, speed in speeds.items()],
               "The network is too small to profit from more threads; no times were published. If gradients are "
               "summed and not divided (`--sum-gradients`), the steps of N ranks are N times as large. So two ranks "
               "learn faster per epoch, also in the published logs.")
    page.text("Every rank's results begin with its rank and the number of ranks (`--debug-print`):\n\n"
              + excerpt(bench, "mnist_of_2_ranks", r"\[\d/2\] Epoch 0"))


def excerpt(bench, directory, beginning):
    """Returns the lines of a program's output that begin with `beginning`, as a block."""
    output = (bench.directory / directory / "stdout").read_text(encoding="utf-8")
    return "```\n" + "\n".join(sorted(re.findall(f"^{beginning}.*$", output, re.MULTILINE))) + "\n```"


def same_losses(bench, page, digits):
    """Uses the gradient of the whole batch: N ranks compute the same as one, also with dropout."""
    found = {}
    for ranks in (1, 2, 3):
        report = launch(bench, "losses of " + count(ranks), ranks, [
            "--data-dir", digits.directory, "--epochs", 1, "--report", "{report}"]).report
        found[ranks] = (report["loss"]["last"], report["evaluation"]["loss"])
    page.table("The gradient of the whole batch, dropout 0.5", ["ranks", "train loss of epoch 0", "test loss after it"],
               [[str(ranks), f"{losses[0]:.7f}", f"{losses[1]:.7f}"] for ranks, losses in found.items()],
               "Without `--sum-gradients` N ranks compute the same as one process, also with dropout: the dropped "
               "values of an image depend on seed, step and image, not on its rank. The remaining difference is the "
               "order of additions. Its rounding grows over the steps of the epoch; a few steps agree to 1e-5 "
               "(`tests/trainers/train_mnist_e2e_test.cc`).")
    page.text("Without `--debug-print` only rank 0 prints, for all ranks:\n\n"
              + excerpt(bench, "losses_of_2_ranks", "(?:Epoch|Test)"))
    page.compare("largest difference of losses, 1, 2 and 3 ranks with dropout", None,
                 max(abs(losses[i] - found[1][i]) for losses in found.values() for i in (0, 1)), "",
                 "the example's dropout depends on the distribution of the images, so its ranks do not compute the "
                 "same as one process")


# ---- Kernels.

def milliseconds(bench, name, model, words, batch, plain=False):
    """Returns the time of a batch; None if this build cannot run it."""
    if plain and not bench.knows("train_synthetic", "--no-onednn"):
        return None
    warmup, timed = BATCHES[model]
    timed = bench.pick(4, timed, tiny=1)
    done = bench.launch(name + (" without oneDNN" if plain else ""), [
        "-np", 1, "--threads", bench.cores, "--comm-core", "none"],
        ["train_synthetic", "--model", model, *words, "--batch-size-per-rank", batch,
         "--num-warmup-batches", bench.pick(1, warmup), "--num-batches", timed, "--display-every", timed,
         *(["--no-onednn"] if plain else [])],
        {"KMP_AFFINITY": AFFINITY} if on_knl() else None)
    return 1000 * batch / float(re.search(r"total images/sec: ([\d.]+)", done.output)[1])


def kernels(bench, page):
    batches = {"alexnet": bench.pick(16, 128, tiny=1), "conv3d_volumes": bench.pick(4, 4, tiny=1)}
    side = bench.pick(224, 224, tiny=64)
    here = "KNL" if on_knl() else "Haswell"
    rows = []
    for model, batch in batches.items():
        name = {"alexnet": "AlexNet", "conv3d_volumes": "Conv3d, volumes of 35 x 35 x 20"}[model]
        words = ["--gradients-only"] + (["--image-size", side] if model == "alexnet" and side != 224 else [])
        with_onednn = milliseconds(bench, model, model, words, batch)
        without = milliseconds(bench, model, model, words, batch, plain=True)
        published, full = KERNELS[model], {"alexnet": 128, "conv3d_volumes": 4}[model]
        smaller = [f"{batch} instead of {full} a batch"] if batch != full else []
        if model == "alexnet" and side != 224:
            smaller.append(f"images of {side} x {side} instead of 224 x 224")
        own = [*smaller]
        if model == "conv3d_volumes":
            own.append("oneDNN's convolution, vol2col there"
                       + (f" (here without oneDNN: {without / batch:.4g} ms)" if without else ""))
        for processor, cores in CORES.items():
            measured = processor == here
            optimised = published[f"{processor}, optimised"]
            page.compare(f"{name}, forward and backward of a sample, {processor}, optimised build",
                         optimised / full, with_onednn / batch if measured else None, "ms",
                         "; ".join([f"published: derived, {optimised}/{full}", *(
                             [f"{bench.cores} cores of {machine.processor()}, {cores} there", *own]
                             if measured else ["no KNL" if processor == "KNL" else "a KNL"])]),
                         headline=measured)
        comparable = model == "alexnet" and not on_knl()
        before, optimised = published["Haswell, before"], published["Haswell, optimised"]
        page.compare(f"{name}, optimised build compared with the earlier one, Haswell", before / optimised,
                     without / with_onednn if comparable and without else None, "times",
                     "; ".join([f"published: derived, {before}/{optimised}", *(
                         ["LibTorch with and without oneDNN", *smaller] if comparable
                         else ["a KNL"] if model == "alexnet"
                         else ["the study made vol2col parallel; in today's LibTorch it is also parallel without "
                               "oneDNN"])]))
        rows.append([f"{name}, {side} x {side}" if model == "alexnet" else name, batch, with_onednn, without])
    lstm = []
    for batch, length, width in bench.pick([(64, 50, 500), (64, 25, 1024)], [(64, 50, 500), (128, 25, 4096)],
                                           tiny=[(2, 3, 8)]):
        # Operations of a cell: four gates, input and state, each with a multiplication and an addition.
        operations = length * 4 * batch * width * width * 2 * 2
        for mode in ("--gradients-only", "--forward-only"):
            ms = milliseconds(bench, f"lstm {batch} {length} {width} {mode}", "lstm_layer",
                              ["--hidden", width, "--sequence-length", length, mode], batch)
            forward = mode == "--forward-only"
            lstm.append([f"{batch} sentences of {length}, width {width}", "forward" if forward else
                         "forward and backward", ms, operations / ms / 1e6 if forward else None])
    page.table("Convolutions", ["kernel", "samples per batch", "time per batch, ms", "without oneDNN, ms"], rows,
               "Forward and backward, as published; weights are not updated (`--gradients-only`).")
    page.table("LSTM, one layer", ["sizes", "timed", "time per batch, ms", "GFLOP/s"], lstm,
               "The study names this benchmark, but publishes no times.")


STUDY = Study(
    name="nersc",
    title="PyTorch on Cori: MNIST in four steps, and three kernels",
    citation=("Ma Mingfei, *PyTorch wheels for NERSC's Cori*, <https://github.com/mingfeima/pytorch_nersc_wheel> "
              "(2018): learning rate, batch and epochs of MNIST are from its `examples/mnist_dist.py`, times of "
              "kernels from its `nersc_benchmarks/`; the build before the optimised one crashed on KNL. The kernels "
              "are those of <https://github.com/MlWoo/PyTorch-benchmark> (Conv3d), "
              "<https://github.com/mingfeima/convnet-benchmarks> (AlexNet) and "
              "<https://github.com/xhzhao/pytorch-rnn-benchmark> (LSTM). Losses of the same MNIST script are from logs "
              "of another machine in `from_mingfei/` of <https://github.com/xhzhao/PyTorch-MPI-DDP-example>."),
    machine=Machine(cores=32, numa_nodes=2,
                    processor="two Xeon E5-2698 v3, 32 cores on 2 NUMA nodes (Haswell), and Xeon Phi 7250, 68 cores on "
                              "one (KNL)"),
    experiment=(
        "Synchronous SGD written by hand: start the world, distribute the images with a shared seed, broadcast the "
        "parameters before every epoch, sum the gradients after every backward pass. The network is that of "
        "PyTorch's MNIST example; SGD with rate 0.01 and momentum 0.5, 128 images per step over all ranks, 10 "
        "epochs. The gradients of the ranks' means are summed and not divided. Published is each rank's loss of an "
        "epoch.\n\n"
        "The kernels run in one process with one thread per core (32 on Haswell; 68 on KNL, with "
        "`KMP_AFFINITY=granularity=fine,compact,1,0`). AlexNet on 128 images, in evaluation mode "
        "(training mode since October 2018): 10 warm-up batches (5 since March 2018, after the "
        "figures) and 10 timed ones. Four 3-d convolutions on 4 volumes: 5 and 10. An LSTM layer "
        "of 24 sizes: 50 and 100 (as from March to November 2018), forward only or with "
        "backward. The times are of forward and backward, without the update of the weights."),
    run=run,
    programs=("train_mnist", "generate_mnist", "train_synthetic", "hvdliterun"),
    differs=(
        "hvdlite, in C++, instead of torch.distributed with the mpi backend: gradients may be fused; they use shared "
        "memory between ranks of a node and MPI between nodes.",
        "MNIST: the ranks share one machine and its cores; a single rank has all of them. The study gives each rank "
        "a node. Here two ranks have a node each only at the scale `published` in a SLURM job of at least two nodes. "
        "The number of threads per rank of MNIST is not published. In the SLURM job each of two ranks uses all cores "
        "of its node except one, which is for the coordinator.",
        "Step 4 starts the allreduces of all gradients and then waits for them; the example makes one blocking call "
        "after the other.",
        "Images are distributed to the ranks again in every epoch, each once. The example distributes them once, and "
        "each rank shuffles its own.",
        "The values of an image that dropout removes depend on seed, step and image. In the example all ranks have the "
        "same seed and draw the same values for different images.",
        "After every epoch the test images are evaluated, which the example does not do; speeds do not include it.",
        "The study's batch scripts set only `OMP_NUM_THREADS` (and `KMP_AFFINITY` on KNL). hvdliterun also binds ranks "
        "and threads to cores, keeps memory local and tunes malloc. Kernels use one thread per core of this machine.",
        "The builds were Intel's branch of PyTorch of 2018 with icc (\"optimised\") and PyTorch's master with gcc "
        "(\"the earlier build\"), so the published ratios include the compilers. Here it is today's LibTorch, from "
        "C++, with OpenBLAS and libgomp (the study's BLAS is not published). It contains the convolutions and LSTMs "
        "that were optimised for the study. So LibTorch without and with oneDNN shows the step of AlexNet from the "
        "earlier to the optimised build; that of Conv3d cannot be shown.",
        "Gradients grow from batch to batch, as in the benchmarks of Conv3d and LSTM; that of AlexNet sets them to "
        "zero and updates the weights, both outside of the timed part.",
        "Conv3d: the loss uses the log-softmax over the classes, in the benchmark over the volumes of the batch.",
        "LSTM: the benchmark's batches and L1 loss of March to November 2018. Before, it timed 20 batches without "
        "warm-up; later, 30 batches after 3, and the loss is the sum of the outputs.",
        "LSTM: two of the 24 sizes. The state begins with zeros, in the benchmark with random values. Here forward "
        "only includes the loss and records nothing for a backward pass; in the benchmark it has no loss and records.",
    ),
    differs_small=(
        "MNIST without the real files: 6,000 generated images instead of 60,000, and 3 epochs instead of 10 (`tiny`: "
        "256 images, 2 epochs).",
        "Kernels: 1 warm-up batch and 4 timed ones (`tiny`: 1 and 1).",
        "AlexNet has 16 images per batch instead of 128 (`tiny`: 1 of 64 x 64 pixels, and Conv3d has 1 volume instead "
        "of 4).",
        "LSTM: the second size is 64 sentences of 25 words, width 1024, instead of 128 of 25, width 4096 (`tiny`: one "
        "size, 2 of 3, width 8).",
    ),
    notes=("The four steps are marked (1) to (4) in [trainers/train_mnist.cc](../../trainers/train_mnist.cc). Batch "
           "scripts for Haswell and KNL nodes are in [clusters.md](../../docs/clusters.md#slurm)."),
    data=("MNIST's four files (`train-images-idx3-ubyte` and so on), in DIRECTORY or DIRECTORY/mnist. They are distributed "
          "compressed: `gunzip *.gz` first (`train_mnist` itself reads both forms)."),
)
