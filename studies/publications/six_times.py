"""ResNet50 six times as fast by another build of TensorFlow, threads and memory: one process on two NUMA nodes."""

import json
import os
import re

from studies.runner import specs
from studies.runner.study import Machine, Study

FIRST, SECOND, THIRD = "1 default", "2 affinity, threads, oneDNN", "3 the same, NCHW, interleaved"
ALONE, PREFERRED = "2 with memory of node 1 alone", "2 with memory of node 1 preferred"
NODE = "2 on the cores of node 0"
FEWER = "2 with fewer threads"
PUBLISHED = {FIRST: 5.48, SECOND: 33.62, THIRD: 34.18, ALONE: 23.6, PREFERRED: 23.6, NODE: None}  # images a second
ROUNDED = (ALONE, PREFERRED)  # published as about so much
TWO_NODES = "\n# These settings need at least two NUMA nodes.\n"  # in the SPEC: settings that need them follow
SPEED = "items_per_second_median"  # of a row
TRAINER = "train_resnet50"
COMMAND = "studies/study six_times --scale published   # on two NUMA nodes"
NO_NODES = "one NUMA node"
# Of set-up 3, where memory is interleaved.
NCHW_TOO = "not interleaving alone: NCHW, which the study's may not have been, costs LibTorch speed"


def batch_of(bench):
    return bench.pick(small=8, published=128, tiny=2)


def side_of(bench):
    return bench.pick(small=224, published=224, tiny=32)


def cpus():
    """Hardware threads that this process may use: as many as TensorFlow takes by itself."""
    return len(os.sched_getaffinity(0))


def spec_of(bench):
    """The published SPEC, with the numbers of this machine and scale."""
    batch, side = batch_of(bench), side_of(bench)
    interval = bench.pick(small=2, published=10, tiny=1)
    other = bench.numa_nodes - 1
    fewer = [threads for threads in (12, 9, 6, 3, 1) if threads < bench.cores] or [1]
    kernels = "".join(f'environment {{ name: "{name}" value: "{value}" }}\n'
                      for name, value in bench.openblas.items())
    alone = "  alone: true\n  threads: {}\n  argument: [\"--memory-format\", \"nhwc\"{}]\n"
    text = specs.changed("resnet50_six_times.txt", {
        'batch { size: 128 ': f"batch {{ size: {batch} ",
        '"--synthetic-images", "5120"': f'"--synthetic-images", "{batch * interval * 4}"',
        '"--log-interval", "10"': f'"--log-interval", "{interval}"',
        '"--image-size", "224"': f'"--image-size", "{side}"',
        "repeats: 3": f"repeats: {bench.pick(small=2, published=3, tiny=1)}",
        "traces: NONE\n": "traces: NONE\n" + kernels,
        '"bind=1"': f'"bind={other}"',
        '"preferred=1"': f'"preferred={other}"',
        "threads: [12, 9, 6, 3, 1]": f"threads: {fewer}",
        **{alone.format(36, more): alone.format(cpus(), more) for more in ("", ', "--no-onednn"')},
    })
    return text if bench.numa_nodes > 1 else text.split(TWO_NODES)[0]


def ratio(speed, other):
    """None where one was not measured."""
    return speed / other if speed and other else None


# ---- How busy the cores are.

def bars_of(text):
    """The busy shares of CPUs, in %, that bars of cores show."""
    return {cpu: float(busy) for cpu, busy in
            re.findall(r"^  CPU (\S+) +[#ws.]{40} +(\d+) %", text, flags=re.MULTILINE)}


def part(spec, pattern):
    """A list of a SPEC's words."""
    return json.loads(re.search(pattern + r"(\[[^]]*\])", spec, re.MULTILINE | re.DOTALL)[1])


def watch_cores(bench, spec, names):
    """The busy shares of the cores in those of the three set-ups that are named, as the study saw them in htop."""
    seconds = bench.pick(small=15, published=60, tiny=1)
    steps = bench.pick(small=24, published=40, tiny=4)
    words = [word.replace("{batch}", str(batch_of(bench))) for word in part(spec, "^command: ")]
    words[words.index("--synthetic-images") + 1] = str(batch_of(bench) * steps)
    environment = dict(re.findall(r'^environment \{ name: "(\w+)" value: "([^"]*)"', spec, re.MULTILINE))
    found = {}
    for name in names:
        setting = spec[spec.index(f'name: "{name}"'):]
        argued = [*words, *part(setting, "argument: ")]
        if name == FIRST:
            # No launcher that could tell: it is watched while it runs. Without a report: it is stopped.
            reported = argued.index("--report")
            alone = " ".join(argued[:reported] + argued[reported + 2:])
            done = bench.run("cores of 1", [
                "sh", "-c", f"{alone} > /dev/null & hvdlite_doctor --watch {seconds}; kill $!; wait $! || true"],
                {"OMP_NUM_THREADS": cpus(), **environment})
            found[name] = bars_of(done.output)
        else:
            done = bench.launch(f"cores of {name[0]}", ["-np", "1", "--report", *part(setting, "launcher_flag: ")],
                                argued, environment)
            found[name] = bars_of(done.errors)
    return found


# ---- The page.

def compare(page, speeds, bench):
    smaller = ", ".join(f"{here} {unit} instead of {there}" for unit, here, there in (
        ("cores", bench.cores, 18), ("images a batch", batch_of(bench), 128),
        ("pixels a side", side_of(bench), 224)) if here != there)
    as_above = "as in the row above" if smaller else ""
    one = bench.numa_nodes < 2
    bound = f"{NO_NODES}: not run" if one else as_above
    differs = {
        FIRST: "LibTorch's own operators and OpenBLAS instead of TensorFlow's Eigen" + (smaller and "; " + smaller),
        SECOND: as_above,
        THIRD: (f"{NO_NODES}: nothing to interleave, only NCHW differs from 2" if one
                else "; ".join(filter(None, [as_above, NCHW_TOO]))),
        ALONE: bound, PREFERRED: bound,
        NODE: bound if one else "published as slower, without a figure",
    }
    differs.update({name: "its runs failed" for name in differs if name in speeds and speeds[name] is None})
    for name, published in PUBLISHED.items():
        page.compare(name, f"~{published}" if name in ROUNDED else published, speeds.get(name), "images/s",
                     differs[name])
    not_interleaved = f"{NO_NODES}: nothing was interleaved" if one else NCHW_TOO
    for name in (SECOND, THIRD):
        page.compare(f"{name}: against 1", round(PUBLISHED[name] / PUBLISHED[FIRST], 2),
                     ratio(speeds[name], speeds[FIRST]), "times", "; ".join(filter(None, [
                         "TensorFlow's two builds against LibTorch with and without oneDNN",
                         smaller, name == THIRD and not_interleaved])), headline=True)
    for name in (THIRD, ALONE, PREFERRED):
        about = "~" if name in ROUNDED else ""
        page.compare(f"{name}: against 2", f"{about}{PUBLISHED[name] / PUBLISHED[SECOND]:.2f} (from the two speeds)",
                     ratio(speeds.get(name), speeds[SECOND]), "times", differs[name])


def second_with(cpus):
    """The command of set-up 2 on some CPUs of a c4.8xlarge, with its 18 threads."""
    spec = specs.changed("resnet50_six_times.txt", {})
    setting = spec[spec.index(f'name: "{SECOND}"'):]
    words = [word.replace("{batch}", "128") for word in part(spec, "^command: ")]
    reported = words.index("--report")
    return " ".join(["taskset", "-c", cpus, "hvdliterun", "-np", "1", "--threads", "18",
                     *part(setting, "launcher_flag: "), *words[:reported], *words[reported + 2:],
                     *part(setting, "argument: ")])


def tell_what_is_missing(page, bench, rows):
    if bench.numa_nodes < 2:
        page.missing("What interleaving and binding to a node do",
                     "this machine has one NUMA node, from which all memory comes under every policy.", COMMAND)
    for row in rows:
        if row[SPEED] is None:
            page.missing(row["setting"], "all its runs failed; what they said is in `sweep/sweep/runs` of the study's "
                         "output." + (" Containers often forbid to set a memory policy, which `docker run --cap-add "
                                      "SYS_NICE` allows." if row["setting"] in (THIRD, ALONE, PREFERRED) else ""),
                         "studies/study six_times")
    page.missing("Binding to one hardware thread of each core",
                 "published as slower, without a figure (`numactl -C 0,2,4...`). On that machine, "
                 "where CPUs n and n + 18 are a core's, these (and its chart) are both threads of "
                 "nine cores, half of all. hvdliterun places the computing threads of set-ups 2 "
                 "and 3 on a core each anyway",
                 "# By its list and chart; by its words 0-17 instead of 0-34:2.\n"
                 + second_with("0-34:2"))


def conclude(page, bench, speeds, curve):
    """What the study concluded, beside what was found."""
    found = []
    if (times := ratio(speeds[THIRD], speeds[SECOND])) is not None:
        found.append(f"set-up 3 is {times:.2f} times as fast as 2"
                     + (f" ({NO_NODES}: that tells nothing of interleaving)" if bench.numa_nodes < 2
                        else f" ({NCHW_TOO})"))
    if len(curve) > 1 and (times := ratio(curve[-1][1], curve[0][1])) is not None:
        found.append(f"{curve[-1][0]:.0f} threads are {times:.2f} times as fast as {curve[0][0]:.0f}")
    page.text("The study concluded that CPUs bound this training, and not memory, since its speed fell in proportion "
              "to the threads, and that interleaved memory is best. Here " + (", and ".join(found) or "neither ran")
              + ".")


def run(bench, page):
    spec = spec_of(bench)
    rows = bench.sweep("sweep", spec)
    speeds = {row["setting"]: row[SPEED] for row in rows if row["setting"] != FEWER}
    compare(page, speeds, bench)
    page.table("Set-ups", ["set-up", "threads", "images/s", "95 % interval", "times as fast as the first"],
               [[row["setting"], row["threads"], row[SPEED],
                 "%.2f to %.2f" % (row["interval_low"], row["interval_high"]) if row["interval_low"] else "–",
                 ratio(row[SPEED], speeds[FIRST])] for row in rows],
               "Set-up 1 has as many threads as there are hardware threads. \"1 with oneDNN\", which is LibTorch's own "
               "default, and \"2 in oneDNN's blocks\" are not in the study.")
    names = [name for name in PUBLISHED if PUBLISHED[name]]
    page.bars("Speed against the default", "times", names, {
        "published": [round(PUBLISHED[name] / PUBLISHED[FIRST], 2) for name in names],
        "here": [ratio(speeds.get(name), speeds[FIRST]) for name in names]},
              note="With memory of node 1 about 23.6 images/s were published, and no ratio.")

    curve = sorted((row["threads"], row[SPEED]) for row in rows if row["setting"] in (FEWER, SECOND) and row[SPEED])
    if curve:
        first, speed = curve[0]
        ideal = "as many threads, so much speed"
        page.lines("Fewer threads in set-up 2", "threads", "images/s",
                   {"here": curve, ideal: [(threads, speed * threads / first) for threads, _ in curve]}, dashed=[ideal],
                   note="Published without figures: the speed falls linearly with the threads. The published script "
                        "has one thread; the numbers between are ours.")
    conclude(page, bench, speeds, curve)

    cores = watch_cores(bench, spec, [name for name in (FIRST, SECOND, THIRD) if speeds[name]])
    shown = list(dict.fromkeys(cpu for busy in cores.values() for cpu in busy))
    if shown:
        page.bars("How busy each core is", "% of the time", [f"CPU {cpu}" for cpu in shown],
                  {name: [busy.get(cpu) for cpu in shown] for name, busy in cores.items()},
                  note="The study looked at htop: fewer threads wait in set-ups 2 and 3 (published: 36 hardware "
                       "threads shown; here a bar is a core). Set-up 1 was watched by `hvdlite_doctor --watch`, from "
                       "its start; the others by `hvdliterun --report`.")
    tell_what_is_missing(page, bench, rows)


STUDY = Study(
    name="six_times",
    title="ResNet50, six times as fast by build and settings",
    citation="Hasanul Karim, *6x training speedup using intel-tensorflow, OMP-settings and numactl interleave policy "
             "optimization*, 2019, <https://github.com/hasanulkarim/"
             "6x-training-speedup-using-intel-tensorflow-OMP-settings-and-numactl-interleave-policy-optimization>",
    machine=Machine(cores=18, numa_nodes=2,
                    processor="Xeon E5-2666 v3, c4.8xlarge: 18 cores on 2 NUMA nodes, 36 hardware threads, 60 GB"),
    experiment="tf_cnn_benchmarks' ResNet50 (v1) on synthetic images of 224x224 pixels, one process, batch "
               "128, 30 batches that are timed; images a second. Plain SGD, its learning rate and 10 batches that warm "
               "up are tf_cnn_benchmarks' defaults. Three set-ups: (1) conda's TensorFlow, not compiled for AVX2, "
               "NHWC, on all 36 hardware threads; (2) Intel's TensorFlow, with oneDNN (`--mkl=true`), NHWC, "
               "`OMP_NUM_THREADS=18`, two inter-op and 18 intra-op threads, which kept all 36 hardware threads busy, "
               "`KMP_AFFINITY=granularity=fine,verbose,compact,1,0`, `KMP_BLOCKTIME=1`; (3) the same with NCHW and "
               "memory from all NUMA nodes in turn (`numactl -i all`). Beside them set-up 2 with memory of one node "
               "alone (`-m`) or preferably (`-p`), on the cores of one node (`-C`), and with fewer threads.\n\n"
               "`tools/scaling_sweep/specs/resnet50_six_times.txt` has the published numbers; what is ours is marked "
               "in it. The command changes batch, batches, threads and nodes where the machine is another.",
    programs=(TRAINER, "hvdlite_doctor"),
    differs=(
        "LibTorch instead of TensorFlow, and one build of it for all set-ups, where the study's set-ups 2 and 3 are "
        "another TensorFlow, Intel's. Without oneDNN LibTorch makes matrix products of convolutions, for OpenBLAS, "
        "and its elementwise operators are vectorised, so that the default is less slow.",
        "The default TensorFlow is taken to be without oneDNN, as set-up 1 is here: an inference, published is only "
        "that it is not optimised.",
        "In the study's set-ups 2 and 3 convolutions, batch normalisation, ReLU and pooling ran in oneDNN's blocks "
        "(its screenshots); here oneDNN has mainly the convolutions. \"2 in oneDNN's blocks\" "
        "(`--memory-format onednn`) is nearer to that.",
        "Whether the study's set-up 3 was NCHW is not certain: its command says so, its words "
        "change only the memory policy, its screenshot shows NHWC images. NCHW, taken here, "
        "itself costs LibTorch speed, so that 3 against 2 is not interleaving alone.",
        "`-C 0`, which it names for the cores of node 0, would be one CPU; its chart shows node "
        "0, which is run here, with one thread for each of its cores instead of 18. On which "
        "set-up is not told: taken to be 2. The cores are watched in set-ups 1 to 3, not in these.",
        "The learning rate stays 0.00005, about what tf_cnn_benchmarks' own, which rises from "
        "zero, is after 40 batches; the publication gives none.",
        "Operators run one after the other: nothing here uses inter-op threads, and set-ups 2 and 3 have one computing "
        "thread a core.",
        "libgomp instead of Intel's OpenMP, into whose words hvdliterun translates `KMP_AFFINITY` and "
        "`KMP_BLOCKTIME=1`. In the study tf_cnn_benchmarks replaced the latter by 0, its own default, since only the "
        "variable was set. `KMP_SETTINGS`, `verbose`, `MKL_VERBOSE` and `MKLDNN_VERBOSE`, which only print, are "
        "left out.",
        "All set-ups have hvdliterun's malloc and OpenBLAS kernels, set-up 1, too; the study sets no malloc, and "
        "names no OpenBLAS.",
        "The speed of a run is the median of three intervals (of ten batches each at the published scale), that of a "
        "set-up the median of its runs (three there); the published ones are the mean of 30 batches.",
        "On machines with more than 18 cores or two nodes the published scale takes all of them; \"node 1\" is the "
        "last node. The published script has memory of node 1 with NHWC, as here."),
    differs_small=(
        "In small: batch 8 instead of 128, two batches that warm up and six that are timed instead of 10 and 30, two "
        "runs of each set-up; this machine's cores and NUMA nodes instead of 18 and two. With one hardware thread a "
        "core set-up 1 has as many threads as set-up 2, where it had twice as many. On one node what needs two is "
        "not run.",
        "At the scale tiny, a test: batch 2, images of 32x32 pixels, one batch and three, one run."),
    notes="oneDNN in the table of the machine is that of set-ups 2 and 3.",
    run=run)
