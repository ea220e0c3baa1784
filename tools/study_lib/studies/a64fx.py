"""PyTorch on A64FX (Ookami): PACS on one node, CIFAR-10 on up to 128 nodes."""

from study_lib.study import Machine, Study

PACS = ["art_painting", "cartoon", "photo", "sketch"]
TRAINING_IMAGES, TEST_IMAGES = 6101, 3942
BLIS_EPOCH = 10162.18  # seconds, of the slowest published build: GNU's compiler with BLIS
# nChw16c, the blocks that oneDNN prefers with vectors of 64 bytes.
BLOCKS = "oneDNN, its blocks"
SETTINGS = {
    "own operators": ["--no-onednn"],
    "oneDNN, NCHW": [],
    "oneDNN, NHWC": ["--memory-format", "nhwc"],
    BLOCKS: ["--memory-format", "onednn"],
}


def run(bench, page):
    single_node(bench, page)


# ---- One node.

def launch_flags(bench, allocator=True):
    flags = ["-np", 1, "--map", "node", "--mem", "local", "--set", "XOS_MMM_L_HPAGE_TYPE=none"]
    return flags + (["--alloc", "tcmalloc"] if allocator and bench.has_library("tcmalloc_minimal") else [])


def single_node(bench, page):
    """An epoch of PACS, three domains for training and one for evaluation."""
    images = bench.pick(small=3, published=None, tiny=1)  # of each class and domain
    pacs = bench.data("pacs", PACS, ["generate_pacs", "--output", "{folder}", "--size", bench.pick(227, 227, tiny=32)]
                      + (["--images-per-class", images] if images else ["--full"]))
    side = bench.pick(small=224, published=224, tiny=32)
    batch = bench.pick(small=8, published=32, tiny=4)
    words = ["train_resnet50", "--stem", "imagenet", "--data-dir", pacs.folder, "--train-domains", ",".join(PACS[:3]),
             "--val-domains", PACS[3], "--image-size", side, "--batch-size-per-rank", batch, "--workers",
             bench.pick(small=1, published=4), "--epochs", 1, "--log-interval", bench.pick(2, 10, tiny=1),
             "--report", "{report}"]
    speeds = {}
    for name, flags in SETTINGS.items():
        speeds[name] = bench.launch(name, launch_flags(bench), [*words, *flags]).speed("images", warmup=1)
    if bench.has_library("tcmalloc_minimal"):
        name = BLOCKS + ", glibc's malloc"
        speeds[name] = bench.launch(name, launch_flags(bench, allocator=False),
                                    [*words, *SETTINGS[BLOCKS]]).speed("images", warmup=1)
    else:
        page.missing("TCMalloc", "it is not installed here", "apt-get install libtcmalloc-minimal4")

    epochs = {name: TRAINING_IMAGES / speed for name, speed in speeds.items()}
    here = f"{bench.cores} cores instead of 48" if bench.cores != 48 else "another BLAS"
    page.compare("an epoch of PACS, LibTorch's own operators", BLIS_EPOCH, epochs["own operators"], "s",
                 f"{here}; OpenBLAS, published with a generic BLIS (GNU's compiler); "
                 "training alone, at the speed measured")
    page.compare("an epoch of PACS, oneDNN's blocks", None, epochs[BLOCKS], "s",
                 f"{here}; published as a chart without figures")
    page.compare("oneDNN's blocks against own operators", None, speeds[BLOCKS] / speeds["own operators"], "times",
                 "published: significantly faster", headline=True)
    page.table("One node, PACS", ["set-up", "images/s", "an epoch of 6,101 images, s", "times as fast as the first"],
               [[name, speed, epochs[name], speed / speeds["own operators"]] for name, speed in speeds.items()])
    page.bars("One node, PACS", "images/s", list(speeds), {"here": list(speeds.values())})
    page.missing("Compilers and BLAS libraries of the study",
                 "Fujitsu's compiler with SSL2, ARM's with its Performance Libraries, GNU's with BLIS. A build is "
                 "compared by giving each to CMake, and the BLAS to the loader as `libblas.so.3`",
                 "cmake --preset release -DCMAKE_CXX_COMPILER=FCC && LD_LIBRARY_PATH=FOLDER_OF_BLAS tools/study a64fx")


NOTES = """\
## What LibTorch has of fused operators

oneDNN can compute a convolution, its normalisation and the ReLU behind it as one kernel. LibTorch
lets it do so for inference alone, in frozen TorchScript modules, where normalisation is folded
into weights that do not change; no network in C++ is one. For training there is what the set-ups
above compare: with oneDNN a convolution is one kernel, by LibTorch's own operators an unfolding
and a matrix product for each image (`--no-onednn`); with `--memory-format onednn` normalisation,
pooling, sums and ReLUs stay in oneDNN's blocks between convolutions, and nothing is reordered.
Sums and ReLUs of our ResNet are in place, as torchvision's.

LibTorch's one fused operator for the end of a residual block, `at::_add_relu`, has no
derivative; with one written by hand the ends of all blocks of ResNet50, 8 images of 224x224,
one thread, took 113 ms forward and backward instead of 128, about a hundredth of a step. But of
17 NaN it made 16: it takes those beyond the last whole vector for zero, and a training that
diverges would be noticed late. So there is no flag for it.

## The open question: why NEGOTIATE takes 18 times as long

On two nodes, one process of 48 threads on each, the build by GNU's compiler spends
730.638 ms in each NEGOTIATE_ALLREDUCE where the one by ARM's spends 40.704 (18 times as
much), 129.160 ms in each MPI_ALLREDUCE instead of 88.884 (1.45 times), and, which the
study does not remark on, 0.114 ms in each copy into the fusion buffer instead of 0.020
(5.7 times) and 0.112 in each copy out of it instead of 0.026 (4.4 times). Both tables are
in `tools/timeline_viewer/tables/a64fx_negotiation.json`; traces made up from them give
back every cell, and `timeline_viewer diff` says what is above
(`tests/tools/timeline_viewer/published_tables_test.cc`).

NEGOTIATE is a wait, so it tells that something is late and not what. Here each candidate
was brought about in small: two ranks on two cores, hvdlite, a network of 12 layers
(`tools/causes --runs 3 --first 300`, 2026-11-23, other programs beside it; times of one
event as multiples of the undisturbed run's, medians of three traces,
`timeline_viewer --json`):

| brought about | NEGOTIATE | MPI_ALLREDUCE | copy in | copy out |
|---|---|---|---|---|
| one rank has more to compute | 1.8 | 1.4 | 1.3 | 1.4 |
| one rank's input is slow | 3.0 | 1.1 | 1.0 | 0.9 |
| uneven batches | 1.4 | 1.3 | 1.1 | 1.4 |
| page faults on one rank | 3.7 | 1.3 | 1.2 | 1.0 |
| **other threads on the cores of one rank** | **2.7** | **3.2** | **2.8** | 1.2 |
| three waiting OpenMP threads on each rank's core | 2.1 | 0.6 | 0.7 | 0.6 |
| more ranks than cores | 2.1 | 2.2 | 1.9 | 5.4 |
| a slow link | 9.6 | 485 | 0.9 | 2.0 |
| published, GNU to ARM | 18.0 | 1.45 | 5.7 | 4.4 |

- A slow network is out: it would be in MPI_ALLREDUCE.
- A slow or uneven rank, slow input, page faults of the application: they lengthen
  NEGOTIATE as far as one likes and leave the copies as they are. The two builds compute
  at nearly the same speed on one node (97.14 s and 111.26 s an epoch), too.
- A copy needs neither the network nor another rank: it is slower where the thread that
  makes it has less of a core. In Horovod that is the background thread, which also
  negotiates, once in each cycle, and on all ranks; and 48 threads on 48 cores leave it
  none. GNU's OpenMP runtime lets threads that wait spin without giving way
  (`GOMP_SPINCOUNT`); that of LLVM, on which ARM's compiler builds, yields where there are
  more threads than cores. With four processes of 12 threads a node the scaling of the two
  builds is alike (526.1 s and 542.1 s on two nodes).

So the starved background thread fits best; we hold it for likely, at about 70 %. What does
not fit by itself: MPI_ALLREDUCE grows by 1.45 only, where starvation in our data plane
costs as much as in negotiation (Horovod's reduction spins in MPI once it has begun, and a
thread that runs keeps its core for its time slice; its negotiation sleeps between cycles
and has to get a core back each time). And the copies could be slower for another
reason, such as where the buffer's memory lies or larger batches (48 of 49 batches held
several tensors, instead of 38). It has not been tried on an A64FX. To decide it there:
`OMP_WAIT_POLICY=passive`, or 47 threads, with the GNU build; in a trace of hvdlite's the
counter `PROGRESS_THREAD` tells directly (`delay_us`), and `why` says `starved-threads`.
"""

STUDY = Study(
    name="a64fx",
    title="ResNet50 on A64FX",
    citation="S. Chheda, \"Machine Learning with PyTorch\", Ookami User Group Meeting, Stony Brook University, 2022",
    machine=Machine(cores=48, numa_nodes=4, processor="A64FX"),
    experiment="**One node**: ResNet50 trained on PACS (6,101 images of three domains: resized, flipped, colours "
               "jittered, some made grey, normalised) and evaluated on the fourth (3,942: resized, normalised), "
               "48 threads, TCMalloc, `XOS_MMM_L_HPAGE_TYPE=none`; memory in the formats NCHW, NHWC and oneDNN's "
               "blocks (nChw16c), oneDNN on and off; seconds an epoch, by compiler and BLAS.",
    programs=("train_resnet50", "generate_pacs"),
    differs=("The study does not tell the batch of PACS (here 32) nor the size of its images (here 224).",
             "Its counts of images exceed those of PACS, 6,062 and 3,929, by 13 for each domain.",
             "Fused operators: see below what of them can be had for training."),
    notes=NOTES,
    data="PACS (Li et al., ICCV 2017): the folders art_painting, cartoon, photo and sketch",
    run=run)
