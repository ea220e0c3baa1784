"""Times of steps and epochs with Horovod: a model of computation, allreduces and Horovod's cycles."""

import bisect
import dataclasses
import math
from itertools import accumulate

BYTES_PER_ELEMENT = 4  # float32
MOST_ELEMENTS = 10 ** 12  # limit for all gradients together


class Wrong(Exception):
    """The user's input is wrong. The text says what to do."""


# ---- Links in the LogGP model. tools/scale_sim/network.cc has the same ones, with their sources.

@dataclasses.dataclass(frozen=True)
class Link:
    latency_us: float
    overhead_us: float  # a core's time per message, at either end
    gap_us: float       # time between messages at a port
    ns_per_byte: float


SHARED_MEMORY = Link(0.5, 0.2, 0.2, 0.1)
NETWORKS = {"tcp": Link(15, 4, 4, 0.8), "infiniband": Link(1.0, 0.3, 0.3, 0.08), "tofu": Link(0.5, 0.4, 0.4, 0.15)}


# ---- Gradients.

@dataclasses.dataclass(frozen=True)
class Gradients:
    """The gradients of a step, in the order in which backward makes them."""
    name: str
    elements: tuple
    work: tuple  # relative work of computing each gradient

    def __post_init__(self):
        total, done = sum(self.work), list(accumulate(self.work))
        # The share of backward after which each gradient is ready.
        object.__setattr__(self, "ready", [part / total for part in done[:-1]] + [1.0])
        object.__setattr__(self, "sums", [0, *accumulate(BYTES_PER_ELEMENT * one for one in self.elements)])

    @property
    def bytes(self):
        return self.sums[-1]


def resnet50(classes):
    """ResNet50 of He et al., "Deep Residual Learning for Image Recognition", table 1, with the stride in the 3x3
    convolution. Work is counted in multiply-adds for an image of 224 x 224; for a normalisation and for biases in
    elements of the output."""
    layers = []

    def convolution(inputs, outputs, kernel, side):
        weights, area = inputs * outputs * kernel ** 2, side ** 2
        layers.extend([(weights, weights * area), (outputs, outputs * area), (outputs, outputs * area)])

    convolution(3, 64, 7, 112)
    inputs, side_before = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width, side = 64 << stage, 56 >> stage
        for block in range(blocks):
            convolution(inputs, width, 1, side_before)
            convolution(width, width, 3, side)
            convolution(width, 4 * width, 1, side)
            if block == 0:
                convolution(inputs, 4 * width, 1, side)
            inputs, side_before = 4 * width, side
    layers += [(inputs * classes, inputs * classes), (classes, classes)]
    elements, work = zip(*reversed(layers))
    return Gradients(f"ResNet50 with {classes} classes", elements, work)


def parse_gradients(text, name):
    """Parses one line per gradient: its elements and, if it differs, its work. '#' begins a comment."""
    elements, work = [], []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            one, part = int(fields[0]), float(fields[1]) if len(fields) > 1 else 1.0
        except ValueError:
            one, part = 0, 0.0
        if len(fields) > 2 or one < 1 or not 0 < part < 1e300 or sum(elements) + one > MOST_ELEMENTS:
            raise Wrong(f"{name}: line {number}: '{line}' must be a number of elements above 0, and optionally a work "
                        f"above 0; together there may be {MOST_ELEMENTS} elements")
        elements.append(one)
        work.append(part)
    if not elements:
        raise Wrong(f"{name} has no gradients; write one line per gradient, with its number of elements")
    return Gradients(name, tuple(elements), tuple(work))


def gradients_named(name):
    """`name` is one of the built-in sets or the path of a file."""
    built_in = {"resnet50-cifar10": 10, "resnet50-imagenet": 1000}
    if name in built_in:
        return resnet50(built_in[name])
    try:
        with open(name, encoding="utf-8") as file:
            return parse_gradients(file.read(), name)
    except (OSError, UnicodeDecodeError):
        raise Wrong(f"{name}: no such set of gradients, and no such file; the built-in sets are "
                    + " and ".join(built_in)) from None


# ---- The model.

@dataclasses.dataclass(frozen=True)
class Model:
    """All facts that an epoch depends on."""
    gradients: Gradients = resnet50(10)
    image_ms: float = 1             # forward and backward of an image, on a single rank
    forward_share: float = 1 / 3    # share of the forward pass in it
    starved_share: float = 0        # share of the speed lost to a communication thread, with more than one rank
    first_batch_share: float = 0    # additional cost of an epoch's first batch, relative to its computation
    jitter: float = 0               # ranks need 1 + E times as long in a step; E is exponential with this mean
    within_node: Link = SHARED_MEMORY
    between_nodes: Link = NETWORKS["infiniband"]
    ranks_per_node: int = 1         # they share the node's port
    algorithm: str = "recursive-doubling"
    software_ns_per_byte: float = 0  # in addition to the link's: copies, additions, page faults
    hierarchical: bool = False      # first in the node's shared memory, then each rank a part between nodes
    shared_memory_ns_per_byte: float = 0
    chunk_bytes: int = 0            # larger buffers are reduced in chunks of this size; 0: in one chunk
    cycle_ms: float = 1             # HOROVOD_CYCLE_TIME
    fusion_bytes: int = 64 << 20    # HOROVOD_FUSION_THRESHOLD
    overlap: float = 0              # relative speed of computation during an allreduce
    last_batch: str = "partial"     # full: an epoch's last step takes a full batch, even if fewer images remain

    def allreduce_lines(self, ranks):
        """Returns [(us, ns per byte)] of an allreduce for each permitted algorithm. The fastest one is used."""
        local = min(self.ranks_per_node, ranks)
        if not self.hierarchical:
            return self._group(ranks, local, local)
        us, ns = 0.0, 0.0
        if local > 1:  # a signal and an answer per phase, and the bytes of the other ranks
            us = 2 * (self.within_node.latency_us + 2 * self.within_node.overhead_us)
            ns = self.shared_memory_ns_per_byte * 2 * (1 - 1 / local)
        return [(us + its_us, ns + its_ns / local) for its_us, its_ns in self._group(-(-ranks // local), 1, local)]

    def _group(self, ranks, ranks_per_node, sharing):
        """The same for neighbouring ranks, of which `sharing` use one port. The formulas are those of Thakur,
        Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005)."""
        if ranks == 1:
            return [(0.0, 0.0)]

        def exchange(within_node, part=1.0, sharing=sharing):
            """A rank sends this share of the buffer and receives equally much."""
            link = self.within_node if within_node else self.between_nodes
            ns = link.ns_per_byte * (1 if within_node else sharing) + self.software_ns_per_byte
            return link.latency_us + 2 * link.overhead_us, ns * part

        def total(exchanges):
            return sum(us for us, _ in exchanges), sum(ns for _, ns in exchanges)

        rounds = range(ranks.bit_length() - 1)  # with partners 1, 2, 4, ... ranks away
        # Ranks beyond the largest power of two send their buffer to another rank first, and get the result at the end.
        fold = [exchange(ranks <= ranks_per_node)] * 2 if ranks & (ranks - 1) else []
        found = []
        if self.algorithm in ("recursive-doubling", "fastest"):
            found.append(total(fold + [exchange(1 << one < ranks_per_node) for one in rounds]))
        if self.algorithm in ("rabenseifner", "fastest"):  # halves to the farthest rank first, and back
            found.append(total(fold + 2 * [exchange(1 << one < ranks_per_node, 0.5 ** (len(rounds) - one))
                                           for one in rounds]))
        if self.algorithm in ("ring", "fastest"):  # one rank of a node sends to another
            us, ns = exchange(ranks <= ranks_per_node, 1 / ranks, 1 if ranks_per_node > 1 else sharing)
            found.append((2 * (ranks - 1) * us, 2 * (ranks - 1) * ns))
        return found

    def allreduce_seconds(self, size, ranks):
        """Returns the time for `size` bytes, with blocking calls one after the other."""
        if ranks <= 1 or size <= 0:
            return 0.0
        lines, piece = self.allreduce_lines(ranks), min(self.chunk_bytes or size, size)
        whole, rest = divmod(size, piece)
        return whole * fastest(lines, piece) + (fastest(lines, rest) if rest else 0.0)


def fastest(lines, size):
    """Returns the time of the fastest algorithm in seconds."""
    return 1e-6 * min(us + 1e-3 * ns * size for us, ns in lines)


def harmonic(draws):
    """The expected maximum of so many draws from an exponential distribution of mean 1 (Renyi, 1953)."""
    return math.fsum(1 / one for one in range(1, draws + 1))


@dataclasses.dataclass(frozen=True)
class Step:
    """Times in seconds."""
    step: float           # until all is reduced
    computation: float    # of the slowest rank, with the loss to the communication thread
    communication: float = 0.0  # all allreduces
    buckets: int = 0

    @property
    def exposed(self):
        return self.step - self.computation


def negotiation_seconds(model, ranks):
    """Every rank sends rank 0 one bit per tensor, and gets the tensors that all have. Both queue at rank 0's port."""
    local = min(ranks, model.ranks_per_node) - 1
    remote = ranks - 1 - local
    size = 1 + len(model.gradients.elements) // 8

    def service(link):
        return max(link.overhead_us, link.gap_us + link.ns_per_byte * 1e-3 * (size - 1))

    last = model.between_nodes if remote else model.within_node
    return 1e-6 * (2 * (last.overhead_us + last.latency_us)
                   + 2 * (local * service(model.within_node) + remote * service(model.between_nodes)))


def horovod_step(model, images, ranks):
    """Returns a step of `ranks` ranks with `images` images each. In every cycle the ranks agree on ready tensors.
    These are packed into buffers of up to fusion_bytes and reduced by blocking calls."""
    computation = images * model.image_ms * 1e-3
    if model.jitter > 0:  # the slowest rank decides
        computation *= 1 + model.jitter * harmonic(ranks)
    if ranks == 1:
        return Step(computation, computation)
    speed, cycle = 1 - model.starved_share, model.cycle_ms * 1e-3
    forward, sums = model.forward_share, model.gradients.sums
    ready = [computation * (forward + (1 - forward) * part) for part in model.gradients.ready]
    negotiation, lines = negotiation_seconds(model, ranks), model.allreduce_lines(ranks)
    now = computed = begin = communication = 0.0
    buckets = first = 0
    while first < len(ready):
        if ready[first] > computed:
            now += (ready[first] - computed) / speed
            computed = ready[first]
        if cycle > 0:  # skip cycles in which nothing was ready
            wait = max(0.0, begin + math.ceil((now - begin) / cycle) * cycle - now)
            now += wait
            computed = min(computation, computed + wait * speed)
        end = max(first + 1, bisect.bisect_right(ready, computed))
        now += negotiation
        computed = min(computation, computed + negotiation * speed)
        while first < end:
            batch_end = min(end, max(first + 1, bisect.bisect_right(sums, sums[first] + model.fusion_bytes) - 1))
            seconds = (model.allreduce_seconds(sums[batch_end] - sums[first], ranks) if model.chunk_bytes
                       else fastest(lines, sums[batch_end] - sums[first]))
            now += seconds
            computed = min(computation, computed + seconds * speed * model.overlap)
            communication += seconds
            buckets += 1
            first = batch_end
        begin = now
    return Step(now, computation / speed, communication, buckets)


# ---- Epochs.

def steps_of_epoch(images, batch, ranks, last_batch):
    """Returns [(steps, images of a rank)] of the rank with the most images, in order."""
    whole, rest = divmod(-(-images // ranks), batch)
    if rest and last_batch == "full":
        whole, rest = whole + 1, 0
    return [(count, size) for count, size in ((whole, batch), (1, rest)) if count and size]


@dataclasses.dataclass(frozen=True)
class Epoch:
    steps: int
    seconds: float
    exposed_seconds: float


def epoch_of(model, groups, step):
    """`step(images)` returns the Step with this many images per rank."""
    times = [(count, step(images)) for count, images in groups]
    return Epoch(sum(count for count, _ in times),
                 sum(count * time.step for count, time in times)
                 + model.first_batch_share * model.image_ms * 1e-3 * groups[0][1],
                 sum(count * time.exposed for count, time in times))


def horovod_epoch(model, images, batch, ranks):
    return epoch_of(model, steps_of_epoch(images, batch, ranks, model.last_batch),
                    lambda of_rank: horovod_step(model, of_rank, ranks))
