"""PyTorch on Cori: MNIST by synchronous SGD in four steps, and the three kernels that its wheels were timed with."""

import re

from study_lib.study import Machine, Study

MNIST = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
         "t10k-labels-idx1-ubyte"]
# Losses of epochs 0 and 9 by ranks, gradients added up: logs bs128_n1 and bs128_n2_allreduce_sum
# of PyTorch-MPI-DDP-example (mean of the two ranks).
LOSSES = {1: (1.3031, 0.2218), 2: (0.9592, 0.1773)}
# Of a batch, forward and backward, in ms: nersc_benchmarks of the study's repository.
KERNELS = {"alexnet": {"Haswell, before": 23180.65, "Haswell, optimised": 1389.29, "KNL, optimised": 2443.66},
           "conv3d_volumes": {"Haswell, before": 3615.43, "Haswell, optimised": 233.46, "KNL, optimised": 400.06}}


def run(bench, page):
    digits = bench.data("mnist", MNIST, [
        "generate_mnist", "--output", "{folder}", "--plain", "--train-images", bench.pick(6000, 60000, tiny=256),
        "--test-images", bench.pick(1000, 10000, tiny=64)])
    mnist(bench, page, digits)
    same_losses(bench, page, digits)
    kernels(bench, page)
    page.missing("Two nodes of Cori", "MNIST ran with one rank on each of two Haswell nodes, over Cray's MPI. Cori "
                 "is gone; on a cluster with SLURM the same is",
                 "salloc -N 2 --ntasks-per-node=1 --exclusive -t 00:30:00\n"
                 "export MPICH_MAX_THREAD_SAFETY=multiple    # Cray's MPI\n"
                 "hvdliterun --launcher srun --map node train_mnist --data-dir mnist --debug-print --manual --sum-gradients")
    page.missing("A KNL node", "68 cores whose high-bandwidth memory is a cache (`-C knl,quad,cache`)",
                 "KMP_AFFINITY=granularity=fine,compact,1,0 hvdliterun -np 1 --threads 68 --comm-core none \\\n"
                 "  train_synthetic --model alexnet --batch-size-per-rank 128 --num-warmup-batches 5 --num-batches 10")


# ---- MNIST.

def threads_of(bench, ranks):
    return max(1, bench.cores // ranks)


def count(ranks):
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def launch(bench, name, ranks, words):
    flags = ["-np", ranks] + (["--oversubscribe"] if ranks > bench.cores else ["--threads", threads_of(bench, ranks)])
    return bench.launch(name, flags, ["train_mnist", *words])


def mnist(bench, page, digits):
    """The published example: gradients are added up by bare calls and not divided."""
    epochs = bench.pick(10 if digits.real else 3, 10, tiny=2)
    losses, seconds = {}, {}
    for ranks in (1, 2):
        done = launch(bench, "mnist of " + count(ranks), ranks, [
            "--data-dir", digits.folder, "--epochs", epochs, "--manual", "--sum-gradients", "--debug-print",
            "--report", "{report}"])
        losses[ranks] = [sum(values) / len(values) for epoch in range(epochs) for values in [[
            float(value) for value in re.findall(rf"^\[\d/{ranks}\] Epoch {epoch} Loss ([\d.]+)", done.output,
                                                 re.MULTILINE)]]]
        seconds[ranks] = done.report["seconds"] / epochs
        for epoch, published in zip((0, 9), LOSSES[ranks]):
            page.compare(f"MNIST, loss of epoch {epoch} on {count(ranks)}, gradients added up", published,
                         losses[ranks][epoch] if epoch < epochs else None, "",
                         "seed" if digits.real else "generated digits", headline=digits.real and epoch == 9)
    page.lines("Loss of MNIST, gradients added up and not divided", "epoch", "loss",
               {count(ranks): list(enumerate(values)) for ranks, values in losses.items()})
    page.table("An epoch of MNIST", ["ranks", "threads of each", "s", "times as fast as one"],
               [[str(ranks), threads_of(bench, ranks), value, seconds[1] / value] for ranks, value in seconds.items()],
               "The network is too small to gain from more threads; no times were published. With gradients that "
               "are added up and not divided (`--sum-gradients`), N ranks take steps N times as long, which is why "
               "two ranks learn faster an epoch in the published logs, too.")
    lines = re.findall(r"^\[\d/2\] Epoch 0.*$", (bench.folder / "mnist_of_2_ranks/stdout").read_text(), re.MULTILINE)
    page.text("Every rank's lines begin with its rank and their number (`--debug-print`):\n\n```\n"
              + "\n".join(sorted(lines)) + "\n```")


def same_losses(bench, page, digits):
    """With the gradient of the whole batch: N ranks compute what one does, dropout included."""
    found = {}
    for ranks in (1, 2, 3):
        report = launch(bench, "losses of " + count(ranks), ranks, [
            "--data-dir", digits.folder, "--epochs", 1, "--quiet", "--report", "{report}"]).report
        found[ranks] = (report["loss"]["last"], report["evaluation"]["loss"])
    page.table("The gradient of the whole batch, dropout 0.5", ["ranks", "train loss of epoch 0", "test loss after it"],
               [[str(ranks), f"{losses[0]:.7f}", f"{losses[1]:.7f}"] for ranks, losses in found.items()],
               "Without `--sum-gradients` N ranks compute what one process does, dropout included: what is dropped "
               "of an image depends on seed, step and image, not on the rank that has it. What is left is the order "
               "of additions.")
    page.compare("largest difference of losses, 1, 2 and 3 ranks with dropout", None,
                 max(abs(losses[i] - found[1][i]) for losses in found.values() for i in (0, 1)), "",
                 "the study's ranks differ: each draws for itself", headline=True)


# ---- Kernels.

def milliseconds(bench, name, words, batch, plain=False):
    """Of a batch; None where this build cannot."""
    if plain and not bench.knows("train_synthetic", "--no-onednn"):
        return None
    done = bench.launch(name + (" without oneDNN" if plain else ""), [
        "-np", 1, "--threads", bench.cores, "--comm-core", "none"],
        ["train_synthetic", *words, "--batch-size-per-rank", batch,
         "--num-warmup-batches", bench.pick(1, 5), "--num-batches", bench.pick(4, 10, tiny=1),
         "--display-every", bench.pick(4, 10, tiny=1), *(["--no-onednn"] if plain else [])])
    return 1000 * batch / float(re.search(r"total images/sec: ([\d.]+)", done.output)[1])


def kernels(bench, page):
    batches = {"alexnet": bench.pick(16, 128, tiny=1), "conv3d_volumes": bench.pick(4, 4, tiny=1)}
    names = {"alexnet": "AlexNet, 224 x 224", "conv3d_volumes": "Conv3d, volumes of 35 x 35 x 20"}
    rows = []
    for model, batch in batches.items():
        words = ["--model", model] + (["--image-size", 64] if model == "alexnet" and bench.scale == "tiny" else [])
        with_onednn = milliseconds(bench, model, words, batch)
        without = milliseconds(bench, model, words, batch, plain=True)
        published = KERNELS[model]
        full = {"alexnet": 128, "conv3d_volumes": 4}[model]
        differs = f"{bench.cores} cores instead of 32" + (f"; {batch} instead of {full} a batch" if batch != full else "")
        page.compare(f"{names[model]}, forward and backward of a sample, Haswell, optimised build",
                     published["Haswell, optimised"] / full, with_onednn / batch, "ms", differs, headline=True)
        page.compare(f"{names[model]}, the same, KNL, optimised build", published["KNL, optimised"] / full, None, "ms",
                     "no KNL")
        page.compare(f"{names[model]}, optimised build over the one before, Haswell",
                     published["Haswell, before"] / published["Haswell, optimised"],
                     without and without / with_onednn, "times", "LibTorch with oneDNN over the same without")
        rows.append([names[model], batch, with_onednn, without])
    lstm = []
    for batch, length, width in bench.pick([(64, 50, 500), (64, 25, 1024)], [(64, 50, 500), (128, 25, 4096)],
                                           tiny=[(2, 3, 8)]):
        words = ["--model", "lstm_layer", "--hidden", width, "--sequence-length", length]
        # Products of a cell: four gates, input and state, a multiplication and an addition each.
        operations = length * 4 * batch * width * width * 2 * 2
        for mode in ([], ["--forward-only"]):
            ms = milliseconds(bench, " ".join(map(str, ["lstm", batch, length, width, *mode])), words + mode, batch)
            lstm.append([f"{batch} sentences of {length}, width {width}", "forward" if mode else "forward and backward",
                         ms, operations / ms / 1e6 if mode else None])
    page.table("Convolutions", ["kernel", "samples a batch", "a batch, ms", "without oneDNN, ms"], rows,
               "The update of the weights is included here (4 % of AlexNet's published batch), and left out there.")
    page.table("LSTM, one layer", ["sizes", "timed", "a batch, ms", "GFLOP/s"], lstm,
               "The study names this benchmark and publishes no times of it.")


STUDY = Study(
    name="nersc",
    title="PyTorch on Cori: MNIST in four steps, and three kernels",
    citation=("Ma Mingfei, *PyTorch wheels for NERSC's Cori*, <https://github.com/mingfeima/pytorch_nersc_wheel> "
              "(2018). The kernels are those of <https://github.com/MlWoo/PyTorch-benchmark> (Conv3d), "
              "<https://github.com/mingfeima/convnet-benchmarks> (AlexNet) and "
              "<https://github.com/xhzhao/pytorch-rnn-benchmark> (LSTM); losses of MNIST are in the logs of "
              "<https://github.com/xhzhao/PyTorch-MPI-DDP-example>, which has the same example."),
    machine=Machine(cores=32, numa_nodes=2, processor="two Xeon E5-2698 v3, 16 cores each (Haswell); Xeon Phi 7250 (KNL)"),
    experiment=(
        "Synchronous SGD written by hand: start the world, deal the images with a shared seed, broadcast the "
        "parameters before every epoch, add up the gradients after every backward pass. The network is that of "
        "PyTorch's MNIST example; SGD with rate 0.01 and momentum 0.5, 128 images a step over all ranks, 10 "
        "epochs. The gradients of the ranks' means are added up and not divided. Told is each rank's loss of an "
        "epoch.\n\n"
        "The kernels run in one process with a thread on each core (32 on Haswell; 68 on KNL, with "
        "`KMP_AFFINITY=granularity=fine,compact,1,0`), 5 batches to warm up and 10 that are timed: AlexNet on "
        "128 images, four 3-d convolutions on 4 volumes, an LSTM layer."),
    run=run,
    programs=("train_mnist", "generate_mnist", "train_synthetic", "hvdliterun", "scaling_sweep"),
    differs=(
        "Ranks of one machine instead of a rank on each of two nodes.",
        "Kernels: 1 batch warms up and 4 are timed; AlexNet has 16 images a batch.",
        "The step from the build before to the optimised one is shown by LibTorch without and with oneDNN. The "
        "convolutions and LSTMs that were optimised for the study are in today's LibTorch.",
        "Images are dealt to the ranks anew in every epoch, each once; the example deals them once.",
    ),
    data="MNIST's four files (`train-images-idx3-ubyte` and so on, not gzipped), in FOLDER or FOLDER/mnist.",
)
