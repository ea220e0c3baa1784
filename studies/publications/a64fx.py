"""PyTorch on A64FX (Ookami): ResNet50 on PACS, on one node. a64fx_scaling is the rest of it."""

import json

from studies.runner.study import Machine, Study

PACS = ["art_painting", "cartoon", "photo", "sketch"]
TRAINING_IMAGES, TEST_IMAGES = 6101, 3942
BLIS_EPOCH = 10162.18  # seconds, of the slowest published build: GNU's compiler with BLIS
# nChw16c, the blocks that oneDNN prefers with vectors of 64 bytes.
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
    """Of a trace with one evaluation; an event of it is a line."""
    with open(trace, encoding="utf-8") as file:
        event = next(line for line in file if '"EVALUATE"' in line)
    return json.loads(event.strip().rstrip(","))["dur"] / 1e6


def measured(bench, run):
    """Images/s, seconds of an epoch and of an evaluation, accuracy in %. Seconds are of the whole ones at the
    published scale, else of as many images at the speed of those that there are."""
    speed, tested = run.speed("images", warmup=1), run.report["evaluation"]
    evaluation = evaluation_seconds((bench.folder / run.report["settings"]["report"]).with_name("trace.json"))
    if bench.scale == "published":
        return speed, run.report["seconds"], evaluation, 100 * tested["accuracy"]
    return (speed, TRAINING_IMAGES / speed, evaluation * TEST_IMAGES / tested["images"], 100 * tested["accuracy"])


def single_node(bench, page):
    """An epoch of PACS, three domains for training and one for evaluation."""
    images = bench.pick(small=3, published=None, tiny=1)  # of each class and domain
    pacs = bench.data("pacs", PACS, ["generate_pacs", "--output", "{folder}", "--size", bench.pick(227, 227, tiny=32)]
                      + (["--images-per-class", images] if images else ["--full"]))
    side = bench.pick(small=224, published=224, tiny=32)
    batch = bench.pick(small=8, published=32, tiny=4)
    words = ["train_resnet50", "--stem", "imagenet", "--data-dir", pacs.folder, "--train-domains", ",".join(PACS[:3]),
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
                 f"probably with oneDNN; in which format is not told; {timed}")
    page.compare("an epoch of PACS, LibTorch's own operators", None, found[OWN][1], "s",
                 f"{here}; published as a chart without figures")
    page.compare("an epoch of PACS, oneDNN's blocks", None, found[BLOCKS][1], "s",
                 f"{here}; published as a chart without figures")
    page.compare("an evaluation of PACS, oneDNN's blocks", None, found[BLOCKS][2], "s", f"{here}; not published")
    page.compare("accuracy after an epoch, oneDNN's blocks", None, found[BLOCKS][3], "%",
                 "not published; from random weights"
                 + ("" if bench.scale == "published" else ", few images"))
    page.compare("oneDNN's blocks against own operators", None, found[BLOCKS][0] / found[OWN][0], "times",
                 "published: a chart, block format and fused operators faster than without oneDNN", headline=True)
    page.table("One node, PACS", ["set-up", "images/s", "an epoch, s", "an evaluation, s", "accuracy, %",
                                  "times as fast as own operators"],
               [[name, *figures, figures[0] / found[OWN][0]] for name, figures in found.items()],
               f"Images of {side}x{side}." + (
                   "" if bench.scale == "published" else f" Seconds are those of {TRAINING_IMAGES:,} and "
                   f"{TEST_IMAGES:,} images at the speed of the few that there are."))
    page.bars("One node, PACS", "images/s", list(found), {"here": [figures[0] for figures in found.values()]})
    page.missing("Compilers and BLAS libraries of the study",
                 "Its five builds: Fujitsu's compiler 4.5 in Clang mode with SSL2 (`-Kfast -Knolargepage -lpthread`), "
                 "and with `-Ofast -pthread -mcpu=a64fx` ARM's 21.0 with its Performance Libraries, GNU's "
                 "10.3 with these, with OpenBLAS 0.3.19 and with BLIS 0.8.1. For each, PyTorch with oneDNN has to be "
                 "built by that compiler and with that BLAS, then hvdlite with this LibTorch (hvdlite needs C++20: of "
                 "GNU's compilers 12 or later, which link with it)",
                 "cmake --preset release -DCMAKE_CXX_COMPILER=FCC -DCMAKE_PREFIX_PATH=ITS_LIBTORCH\n"
                 "cmake --build --preset release --target train_resnet50 generate_pacs hvdliterun\n"
                 "LD_LIBRARY_PATH=FOLDER_OF_BLAS studies/study a64fx")


NOTES = """\
## What LibTorch has of fused operators

oneDNN can compute a convolution, its normalisation and the ReLU behind it as one kernel. LibTorch
lets it do so for inference alone, in frozen TorchScript modules, where normalisation is folded
into weights that do not change; no network in C++ is one. For training there is what the set-ups
above compare: with oneDNN a convolution is one kernel, by LibTorch's own operators an unfolding
and a matrix product for each image (`--no-onednn`); with `--memory-format onednn` normalisation,
pooling, sums and ReLUs stay in oneDNN's blocks between convolutions: no activation is
reordered, weights are. Sums and ReLUs of our ResNet are in place, as torchvision's.

LibTorch's one fused operator for the end of a residual block, `at::_add_relu`, has no
derivative, and takes a NaN beyond the last whole vector for zero: a training that diverges
would be noticed late. So there is no flag for it.

How the same network scales over nodes, and why negotiation takes so long with one compiler, is of
the study's other half: `studies/study a64fx_scaling`, [negotiation](../../docs/results/2026-11-a64fx-negotiation.md).
"""

STUDY = Study(
    name="a64fx",
    title="ResNet50 on A64FX",
    citation="S. Chheda, \"Machine Learning with PyTorch\", Ookami User Group Meeting, Stony Brook University, "
             "10 February 2022 (slides).",
    machine=Machine(cores=48, numa_nodes=4, processor="A64FX, 48 cores on 4 NUMA nodes", architecture="aarch64"),
    experiment="**One node**: ResNet50 trained on PACS (6,101 images of three domains: resized, flipped, colours "
               "jittered, some made grey, normalised) and evaluated on the fourth (3,942: resized, normalised), "
               "48 threads, TCMalloc, `XOS_MMM_L_HPAGE_TYPE=none`; memory in the formats NCHW, NHWC and oneDNN's "
               "blocks (nChw16c), oneDNN on and off; seconds an epoch, by compiler and BLAS.",
    programs=("train_resnet50", "generate_pacs", "hvdliterun"),
    differs=("The study does not tell batch, image size, strengths of the changes or which domain is tested; here 32 "
             "(in small 8, of 3 images a class and domain; tiny 4), 224 (tiny 32), Carlucci's recipe with crops, "
             "sketch (the counts tell; also that it trains on three domains and tests on the fourth).",
             "Its counts of images exceed those of PACS, 6,062 and 3,929, by 13 for each domain.",
             "A later LibTorch than PyTorch 1.10.0, from C++; another oneDNN than 2.4.3; one build instead of "
             "five. hvdliterun binds threads (`OMP_PROC_BIND`, `OMP_PLACES`), and a trace is recorded.",
             "Timed is the first epoch; which one the study times, or how many, it does not tell, "
             "nor whether an epoch's time holds the evaluation; here it does not.",
             "Rate, optimiser and loader threads are not told; here the trainer's rate and SGD, 4 "
             "threads (in small 1).",
             "hvdliterun has either malloc keep what is freed.",
             "Which operators were fused is not told; here convolution, normalisation, sum and "
             "ReLU are "
             "one operator each. What LibTorch has of fused ones is on the page of figures."),
    differs_small=("This machine's cores instead of 48; generated pictures, unless real ones are there.",
                   "Seconds are computed from the speed of a few images, without the first steps.",),
    notes=NOTES,
    data="PACS (Li et al., ICCV 2017): the folders art_painting, cartoon, photo and sketch",
    run=run)
