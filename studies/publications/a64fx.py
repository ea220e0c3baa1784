"""PyTorch on A64FX (Ookami): ResNet50 on PACS, on one node. a64fx_scaling has the other part of the study."""

import json

from studies.runner.study import Machine, Study

PACS = ["art_painting", "cartoon", "photo", "sketch"]
TRAINING_IMAGES, TEST_IMAGES = 6101, 3942
BLIS_EPOCH = 10162.18  # seconds, of the slowest published build: GNU's compiler with BLIS
# nChw16c: the block format that oneDNN prefers with vectors of 64 bytes.
OWN, BLOCKS, NCHW = "own operators", "oneDNN, its blocks", "oneDNN, NCHW"
SETTINGS = {
    NCHW: [],
    "oneDNN, NHWC": ["--memory-format", "nhwc"],
    BLOCKS: ["--memory-format", "onednn"],
    OWN: ["--no-onednn"],
}


def run(bench, page):
    single_node(bench, page)


# ---- One node.

def launch_flags(bench, allocator=True):
    flags = ["-np", 1, "--map", "node", "--mem", "local", "--set", "XOS_MMM_L_HPAGE_TYPE=none",
             "--timeline", "{trace}"]
    return flags + (["--alloc", "tcmalloc"] if allocator and bench.has_library("tcmalloc_minimal") else [])


def evaluation_seconds(trace):
    """Returns the evaluation's duration from a trace with one evaluation and one event per line."""
    with open(trace, encoding="utf-8") as file:
        event = next(line for line in file if '"EVALUATE"' in line)
    return json.loads(event.strip().rstrip(","))["dur"] / 1e6


def measured(bench, run):
    """Returns images/s, seconds of an epoch and of an evaluation, and accuracy in %. At the published scale the
    seconds are measured, otherwise computed for the same number of images from the speed of fewer images."""
    speed, tested = run.speed("images", warmup=1), run.report["evaluation"]
    evaluation = evaluation_seconds((bench.directory / run.report["settings"]["report"]).with_name("trace.json"))
    if bench.scale == "published":
        return speed, run.report["seconds"], evaluation, 100 * tested["accuracy"]
    return (speed, TRAINING_IMAGES / speed, evaluation * TEST_IMAGES / tested["images"], 100 * tested["accuracy"])


def single_node(bench, page):
    """An epoch of PACS, three domains for training and one for evaluation."""
    images = bench.pick(small=3, published=None, tiny=1)  # per class and domain
    pacs = bench.data("pacs", PACS, ["generate_pacs", "--output", "{directory}", "--size", bench.pick(227, 227, tiny=32)]
                      + (["--images-per-class", images] if images else ["--full"]))
    side = bench.pick(small=224, published=224, tiny=32)
    batch = bench.pick(small=8, published=32, tiny=4)
    words = ["train_resnet50", "--stem", "imagenet", "--data-dir", pacs.directory, "--train-domains", ",".join(PACS[:3]),
             "--val-domains", PACS[3], "--augmentation", "domain-generalisation", "--image-size", side,
             "--batch-size-per-rank", batch, "--workers",
             bench.pick(small=1, published=4), "--epochs", 1, "--log-interval", bench.pick(2, 10, tiny=1),
             "--report", "{report}"]
    found = {}
    for name, flags in SETTINGS.items():
        found[name] = measured(bench, bench.launch(name, launch_flags(bench), [*words, *flags]))
    if bench.has_library("tcmalloc_minimal"):
        name = BLOCKS + ", glibc's malloc"
        found[name] = measured(bench, bench.launch(name, launch_flags(bench, allocator=False),
                                                   [*words, *SETTINGS[BLOCKS]]))
    else:
        page.missing("TCMalloc", "it is not installed here", "apt-get install libtcmalloc-minimal4")

    here = "another BLAS (see Machine)"
    if bench.cores != 48:
        here = f"{bench.cores} cores instead of 48; {here}"
    if side != 224:
        here += f"; images of {side}x{side} instead of 224x224"
    timed = ("the whole epoch's training" if bench.scale == "published"
             else "training alone, at the speed measured")
    page.compare("an epoch of PACS, oneDNN, NCHW", BLIS_EPOCH, found[NCHW][1], "s",
                 f"{here}; published: GNU's compiler with a generic BLIS and without LAPACK, the slowest build, "
                 f"probably with oneDNN; the format is not published; {timed}")
    page.compare("an epoch of PACS, LibTorch's own operators", None, found[OWN][1], "s",
                 f"{here}; published as a chart without figures")
    page.compare("an epoch of PACS, oneDNN's blocks", None, found[BLOCKS][1], "s",
                 f"{here}; published as a chart without figures")
    page.compare("an evaluation of PACS, oneDNN's blocks", None, found[BLOCKS][2], "s", f"{here}; not published")
    page.compare("accuracy after an epoch, oneDNN's blocks", None, found[BLOCKS][3], "%",
                 "not published; starts from random weights"
                 + ("" if bench.scale == "published" else ", few images"))
    page.compare("oneDNN's blocks compared with own operators", None, found[BLOCKS][0] / found[OWN][0], "times",
                 "published: a chart with block format and fused operators faster than no oneDNN", headline=True)
    page.table("One node, PACS", ["set-up", "images/s", "an epoch, s", "an evaluation, s", "accuracy, %",
                                  "times as fast as own operators"],
               [[name, *figures, figures[0] / found[OWN][0]] for name, figures in found.items()],
               f"Images of {side}x{side}." + (
                   "" if bench.scale == "published" else f" Seconds are computed for {TRAINING_IMAGES:,} and "
                   f"{TEST_IMAGES:,} images from the speed of a few images."))
    page.bars("One node, PACS", "images/s", list(found), {"here": [figures[0] for figures in found.values()]})
    page.missing("Compilers and BLAS libraries of the study",
                 "the study has five builds: Fujitsu's compiler 4.5 in Clang mode with SSL2 (`-Kfast -Knolargepage "
                 "-lpthread`); with `-Ofast -pthread -mcpu=a64fx` ARM's compiler 21.0 with its Performance Libraries, "
                 "and GNU's 10.3 with these, with OpenBLAS 0.3.19 and with BLIS 0.8.1. Each needs PyTorch with oneDNN, "
                 "built with that compiler and BLAS, and then hvdlite with this LibTorch (hvdlite needs C++20: GNU's "
                 "compiler 12 or later, which can link with it)",
                 "cmake --preset release -DCMAKE_CXX_COMPILER=FCC -DCMAKE_PREFIX_PATH=ITS_LIBTORCH\n"
                 "cmake --build --preset release --target train_resnet50 generate_pacs hvdliterun\n"
                 "LD_LIBRARY_PATH=DIRECTORY_OF_BLAS studies/study a64fx")


NOTES = """\
## Fused operators of LibTorch

oneDNN can compute a convolution, its normalisation and the following ReLU in one kernel. LibTorch
uses this only for inference, in frozen TorchScript modules, where normalisation is folded into
constant weights; a network in C++ is no such module. The set-ups above compare the possibilities
for training. With oneDNN a convolution is one kernel. With LibTorch's own operators (`--no-onednn`)
it is an unfolding and a matrix product per image. With `--memory-format onednn`, normalisation,
pooling, sums and ReLUs between convolutions also use oneDNN's blocks: activations are not
reordered, weights are. Sums and ReLUs of our ResNet are computed in place, as in torchvision.

LibTorch's only fused operator for the end of a residual block, `at::_add_relu`, has no derivative.
It also treats a NaN after the last whole vector as zero, so a diverging training would be noticed
late. So there is no flag for it.

The study's other half is about the scaling of the same network over nodes, and about slow negotiation
with one compiler: `studies/study a64fx_scaling`, [negotiation](../../docs/results/2026-11-a64fx-negotiation.md).
"""

STUDY = Study(
    name="a64fx",
    title="ResNet50 on A64FX",
    citation="S. Chheda, \"Machine Learning with PyTorch\", Ookami User Group Meeting, Stony Brook University, "
             "10 February 2022 (slides).",
    machine=Machine(cores=48, numa_nodes=4, processor="A64FX, 48 cores on 4 NUMA nodes", architecture="aarch64"),
    experiment="**One node**: ResNet50 is trained on PACS (6,101 images of three domains: resized, flipped, colours "
               "jittered, some made grey, normalised) and evaluated on the fourth domain (3,942 images: resized, "
               "normalised), with 48 threads, TCMalloc and `XOS_MMM_L_HPAGE_TYPE=none`. Memory formats are NCHW, NHWC "
               "and oneDNN's blocks (nChw16c), with and without oneDNN. Published are seconds per epoch, by compiler "
               "and BLAS.",
    programs=("train_resnet50", "generate_pacs", "hvdliterun"),
    differs=("The study does not give the batch, the image size, the strengths of the augmentations or the tested "
             "domain. Here: 32 (in small 8, with 3 images per class and domain; tiny 4), 224 (tiny 32), Carlucci's "
             "recipe with crops, and sketch. The published counts show the tested domain, and that the study trains on "
             "three domains and tests on the fourth.",
             "The published counts of images exceed those of PACS, 6,062 and 3,929, by 13 per domain.",
             "A later LibTorch than PyTorch 1.10.0, from C++; another oneDNN than 2.4.3; one build instead of "
             "five. hvdliterun binds threads (`OMP_PROC_BIND`, `OMP_PLACES`), and a trace is recorded.",
             "The first epoch is timed. The study does not say which epoch it times, or how many, nor whether the time "
             "includes the evaluation; here it does not.",
             "Learning rate, optimiser and loader threads are not published. Here: the trainer's rate, SGD and 4 "
             "threads (in small 1).",
             "hvdliterun makes either malloc keep freed memory.",
             "The study does not say which operators were fused. Here convolution, normalisation, sum and ReLU are "
             "one operator each. The page of figures describes LibTorch's fused operators."),
    differs_small=("This machine's cores instead of 48; generated pictures unless there are real ones.",
                   "Seconds are computed from the speed of a few images, without the first steps.",),
    notes=NOTES,
    data="PACS (Li et al., ICCV 2017): the directories art_painting, cartoon, photo and sketch",
    run=run)
