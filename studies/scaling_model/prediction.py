"""Predicts epochs and steps on any number of nodes: with Horovod by a formula, and with hvdlite by scale_sim, which
runs its negotiation in virtual time. hvdlite first has Horovod's settings; then its own features are added."""

import dataclasses
import json
import os
import subprocess
import tempfile
from typing import Optional

from studies.scaling_model.training import Epoch, Step, Wrong, epoch_of, harmonic, horovod_step, steps_of_epoch

ADDITIONS = ("core", "overlap", "ranks", "shared-memory")
ALGORITHMS = {"recursive-doubling": "recursive doubling", "ring": "a ring",
              "rabenseifner": "Rabenseifner's algorithm", "fastest": "the fastest of three algorithms"}
WHEN_SOMEBODY_WAITS = 2 ** 63 - 1  # larger than any bucket


def starved_share(core, threads, busy_share):
    """Returns the share of its speed that a team of threads loses in loops with equal parts. The communication thread
    is runnable for `busy_share` of the time: on a core of the team (shared), on a core taken from the team (own; a
    team of one has none), or on a core that the team does not use (spare)."""
    if core == "spare":
        return 0.0
    return 1 / threads if core == "own" and threads > 1 else busy_share / 2


@dataclasses.dataclass(frozen=True)
class Hvdlite:
    """The setup of hvdlite. By default as much as possible is as fitted for Horovod."""
    ranks_per_node: int = 1  # they share a node's cores; its speed and its images per step stay the same
    core: Optional[str] = None  # core of the coordinator; None: it costs as much computation as Horovod's thread
    busy_share: float = 1.0
    overlap: bool = False  # otherwise no bucket begins before step() waits
    hierarchical: bool = False
    shared_memory_ns_per_byte: float = 0.13
    chunk_bytes: int = 4 << 20
    algorithm: Optional[str] = None  # None: the fit's
    software_ns_per_byte: Optional[float] = None
    arity: int = 8
    fusion_bytes: int = 64 << 20
    min_batch_bytes: int = 4 << 20
    steps: int = 1  # number of steps to average; one is enough without jitter
    max_simulated_ranks: int = 128  # most ranks that negotiate; collectives take the time of all
    seed: int = 1

    def model(self, table, fit):
        """Returns the model from which a step is predicted."""
        its = fit.model
        share = its.starved_share if self.core is None else starved_share(
            self.core, table.cores_per_node // self.ranks_per_node, self.busy_share)
        return dataclasses.replace(
            its, image_ms=its.image_ms * self.ranks_per_node, starved_share=share, ranks_per_node=self.ranks_per_node,
            hierarchical=self.hierarchical, shared_memory_ns_per_byte=self.shared_memory_ns_per_byte,
            chunk_bytes=self.chunk_bytes, algorithm=self.algorithm or its.algorithm,
            software_ns_per_byte=(its.software_ns_per_byte if self.software_ns_per_byte is None
                                  else self.software_ns_per_byte))


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    setup: Hvdlite
    added: str = ""  # the added feature as text; "" for equal settings


def equal_settings(horovod, full):
    return dataclasses.replace(full, ranks_per_node=1, core=None, hierarchical=False, algorithm=None,
                               software_ns_per_byte=None, overlap=horovod.overlap == 1,
                               fusion_bytes=horovod.fusion_bytes)


def variants(table, fit, full, additions):
    """Returns equal settings, then one variant for each of `additions`, added to the previous one as in `full`."""
    found = [Variant("hvdlite, equal settings", equal_settings(fit.model, full))]
    for addition in [*additions, *(["algorithm"] if full.algorithm else []),
                     *(["software"] if full.software_ns_per_byte is not None else [])]:
        before = found[-1].setup
        if addition == "core":
            setup, name = dataclasses.replace(before, core=full.core), full.core + " core"
            name = {"own": "core of its own"}.get(full.core, name)
            text = _core_text(table, setup)
        elif addition == "overlap":
            setup, name = dataclasses.replace(before, overlap=True), "overlap"
            text = "computation continues at full speed while buckets are reduced"
        elif addition == "ranks":
            setup = dataclasses.replace(before, ranks_per_node=full.ranks_per_node)
            name = f"{full.ranks_per_node} rank{'s' if full.ranks_per_node > 1 else ''} per node"
            text = ("the ranks of a node (--ranks-per-node) together compute as fast as the single one of the fit, "
                    f"{fit.model.image_ms:.4g} ms per image, "
                    + ("less one core per rank for its coordinator, " if setup.core == "own" else "")
                    + f"and take equally many images per step, {table.batch_per_rank} per node")
        elif addition == "shared-memory":
            setup, name = dataclasses.replace(before, hierarchical=True), "shared memory"
            text = (f"gradients are reduced in it within a node, {full.shared_memory_ns_per_byte:.3g} ns per byte "
                    "read (--shared-memory-ns-per-byte), then between nodes, where each rank reduces a part")
        elif addition == "algorithm":
            setup, name = dataclasses.replace(before, algorithm=full.algorithm), "algorithm"
            text = f"MPI reduces with {ALGORITHMS[full.algorithm]} (--hvdlite-algorithm)"
        else:
            setup = dataclasses.replace(before, software_ns_per_byte=full.software_ns_per_byte)
            name = f"{full.software_ns_per_byte:g} ns per byte"
            text = "MPI's cost of software per byte (--hvdlite-software-ns-per-byte)"
        found.append(Variant("+ " + name, setup, f"{name}: {text}"))
    return found


# ---- Assumptions, with the flag that changes each.

def _core_text(table, setup):
    threads = table.cores_per_node // setup.ranks_per_node
    lost = f"which costs {100 * starved_share(setup.core, threads, setup.busy_share):.1f} % of the computing speed"
    return {
        "own": f"the coordinator has one of a rank's {threads} cores for itself, {lost} (--comm-core own); Horovod's "
               "thread would profit from a core of its own, too",
        "shared": f"the coordinator shares a core with a computing thread for {100 * setup.busy_share:.0f} % of the "
                  f"time, {lost} (--comm-core shared, --busy-share)",
        "spare": "the coordinator uses a core that computation does not use, and costs nothing (--comm-core spare)",
    }[setup.core]


def assumptions(table, fit, systems):
    """Returns the assumptions about both systems, horovod, hvdlite, and the added features."""
    model, setup = fit.model, systems[0].setup
    its = setup.model(table, fit)
    gradients = model.gradients
    return {
        "both": [
            f"{len(gradients.elements)} gradients of {gradients.bytes} bytes in total: {gradients.name} "
            f"(--gradients); forward is {model.forward_share:.3g} of the computation (--forward-share)",
            "ranks compute longer than alone, by a share that is exponentially distributed with mean "
            f"{model.jitter:.3g} (--jitter); a step waits for the slowest" if model.jitter > 0
            else "all ranks compute equally fast (--jitter)",
            f"the first batch of an epoch costs an additional {model.first_batch_share:.3g} of its computation "
            "(--first-batch-share)",
            "an epoch's last step takes a full batch (--last-batch)" if model.last_batch == "full"
            else "an epoch's last step takes the remaining images (--last-batch)"],
        "horovod": [
            f"one rank per node, which loses {100 * model.starved_share:.1f} % of its computing speed to the "
            "communication thread (--starved-share)",
            f"computation continues at {model.overlap:.3g} of its speed while a buffer is reduced (--overlap)"
            if model.overlap > 0 else "computation stops while a buffer is reduced (--overlap)",
            f"every {model.cycle_ms:.3g} ms rank 0 asks all ranks which gradients are ready (--cycle-ms); buffers of "
            f"up to {model.fusion_bytes} bytes (--fusion-bytes)",
            f"MPI reduces with {ALGORITHMS[model.algorithm]} (--algorithm); software costs "
            f"{model.software_ns_per_byte:.4g} ns per byte (--software-ns-per-byte), the network "
            f"{model.between_nodes.ns_per_byte:.3g} (--network)"],
        "hvdlite": [
            f"like Horovod: one rank per node, {100 * its.starved_share:.1f} % of its computing speed lost to the "
            f"communication thread, MPI with {ALGORITHMS[its.algorithm]} and {its.software_ns_per_byte:.4g} ns per "
            "byte of software",
            "computation continues at full speed while buckets are reduced" if setup.overlap
            else "no bucket begins before step() waits, since no overlap is known of Horovod (--overlap)",
            "different: negotiation and fusion, simulated in virtual time with up to "
            f"{setup.max_simulated_ranks} ranks (--max-simulated-ranks); buckets of up to {setup.fusion_bytes} bytes "
            "(--fusion-bytes), at least "
            f"{setup.min_batch_bytes} unless a thread waits, reduced in chunks of {setup.chunk_bytes} "
            "(--chunk-bytes)"],
        "added": [variant.added for variant in systems[1:]],
    }


# ---- A step with hvdlite.

class Simulator:
    """Runs scale_sim, once per step."""

    def __init__(self, program):
        self._program = program

    def run(self, words, gradients):
        """Runs scale_sim and returns its only world, as JSON."""
        with tempfile.TemporaryDirectory() as directory:
            files = [os.path.join(directory, name) for name in ("gradients.txt", "world.json")]
            with open(files[0], "w", encoding="utf-8") as file:
                file.writelines(f"{one} {work!r}\n" for one, work in zip(gradients.elements, gradients.work))
            command = [self._program, *map(str, words), "--gradients", files[0], "--json", files[1]]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                raise Wrong(f"cannot run {self._program}: {error.strerror}; build it (cmake --build --preset release "
                            "--target scale_sim), or name it with --scale-sim") from None
            if done.returncode:
                raise Wrong(f"{self._program} failed: {done.stderr.strip()}")
            with open(files[1], encoding="utf-8") as file:
                return json.load(file)["worlds"][0]

    def step(self, setup, model, images, ranks):
        """Returns the mean of setup.steps steps of `ranks` ranks with `images` images each."""
        if ranks == 1:
            alone = images * model.image_ms * 1e-3 * (1 + model.jitter)
            return Step(alone, alone)
        simulated = min(ranks, setup.max_simulated_ranks)
        computation = images * model.image_ms / (1 - model.starved_share)
        piece = min(setup.chunk_bytes or setup.fusion_bytes, setup.fusion_bytes, model.gradients.bytes)
        us, ns = min(model.allreduce_lines(ranks), key=lambda line: line[0] + 1e-3 * line[1] * piece)
        words = ["--ranks", simulated, "--ranks-per-node", model.ranks_per_node, "--arity", setup.arity,
                 "--steps", setup.steps, "--seed", setup.seed,
                 "--forward-ms", computation * model.forward_share,
                 "--backward-ms", computation * (1 - model.forward_share),
                 # The slowest simulated rank is as slow as the slowest of all ranks.
                 "--compute-jitter", model.jitter * harmonic(ranks) / harmonic(simulated),
                 "--bucket-us", us, "--bucket-ns-per-byte", ns, "--chunk-bytes", setup.chunk_bytes,
                 "--fusion-bytes", setup.fusion_bytes,
                 "--min-batch-bytes", setup.min_batch_bytes if setup.overlap else WHEN_SOMEBODY_WAITS]
        for prefix, link in (("node", model.within_node), ("net", model.between_nodes)):
            for name, value in dataclasses.asdict(link).items():
                words += [f"--{prefix}-{name.replace('_', '-')}", value]
        world = self.run(words, model.gradients)
        return Step(world["step_ms"] * 1e-3, world["computation_ms"] * 1e-3, world["buckets_ms"] * 1e-3,
                    int(world["steady"]["decisions"]))


# ---- Predictions.

@dataclasses.dataclass(frozen=True)
class Prediction:
    system: str
    nodes: int
    ranks: int
    simulated_ranks: int  # 0: by a formula
    epoch: Epoch          # strong scaling: an epoch of the data set
    full_step: Step       # weak scaling: a step with a full batch on every rank
    speedup: float = 1.0  # over one node of the same system; so are the efficiencies
    efficiency: float = 1.0
    weak_efficiency: float = 1.0
    epoch_gain: float = 1.0  # how many times as fast as Horovod on the same number of nodes
    step_gain: float = 1.0


def _predict_on(nodes, table, name, model, ranks_per_node, step, max_simulated_ranks=0):
    ranks, batch, known = nodes * ranks_per_node, table.batch_per_rank // ranks_per_node, {}

    def once(images):
        if images not in known:
            known[images] = step(images, ranks)
        return known[images]

    epoch = epoch_of(model, steps_of_epoch(table.images, batch, ranks, model.last_batch), once)
    return Prediction(name, nodes, ranks, 0 if ranks == 1 else min(ranks, max_simulated_ranks), epoch, once(batch))


def _check(table, fit, systems):
    if table.world_batch or table.ranks_stand_for_nodes:
        raise Wrong("predictions need nodes with a fixed batch per rank; this table has a fixed batch of the world, or "
                    "its rows are ranks of one node")
    if fit.column.ranks_per_node != 1:
        raise Wrong(f"column '{fit.column.name}' has several ranks per node, whose threads share cores in an unknown "
                    "way; use a column with one rank per node")
    for ranks in {variant.setup.ranks_per_node for variant in systems}:
        if table.cores_per_node % ranks or table.batch_per_rank % ranks:
            raise Wrong(f"ranks per node must divide {table.cores_per_node} cores and {table.batch_per_rank} images, "
                        f"but there are {ranks}")


def predict(table, fit, systems, nodes, simulator, on_prediction=lambda: None):
    """Predicts Horovod, then each variant of `systems`, on each of `nodes`. The column has one rank per node."""
    _check(table, fit, systems)

    def on(number):
        model = fit.model
        yield _predict_on(number, table, "horovod", model, 1, lambda images, ranks: horovod_step(model, images, ranks))
        for variant in systems:
            setup, its = variant.setup, variant.setup.model(table, fit)
            yield _predict_on(number, table, variant.name, its, setup.ranks_per_node,
                              lambda images, ranks, setup=setup, its=its: simulator.step(setup, its, images, ranks),
                              setup.max_simulated_ranks)

    found, alone = [], list(on(1))
    for number in nodes:
        horovod = None
        for first, one in zip(alone, alone if number == 1 else on(number)):
            horovod = horovod or one
            speedup = first.epoch.seconds / one.epoch.seconds
            found.append(dataclasses.replace(
                one, speedup=speedup, efficiency=speedup / number,
                weak_efficiency=first.full_step.step / one.full_step.step,
                epoch_gain=horovod.epoch.seconds / one.epoch.seconds,
                step_gain=horovod.full_step.step / one.full_step.step))
            on_prediction()
    return found
