"""One process of PyTorch's distributed data-parallel training over Gloo, for `bench/compare peers`.

usage: ddp_worker.py RANK RANKS SCRATCH PLAN
PLAN is a JSON file: workloads (lists of elements by name), rounds, warmup, operations. The
measurements go to SCRATCH/rank<RANK>.json; times are in seconds of the monotonic clock.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

PAUSE_SECONDS = 0.001


class MakeGradient(torch.autograd.Function):
    """A function without computation. Its backward creates the parameter's gradient in new
    memory, as a layer's backward would."""

    @staticmethod
    def forward(context, parameter, value):
        context.elements, context.value = parameter.numel(), value
        return parameter.new_zeros(())

    @staticmethod
    def backward(context, _):
        return torch.full((context.elements,), context.value), None


class Model(torch.nn.Module):
    """Parameters whose gradients appear in the order of `elements`."""

    def __init__(self, elements):
        super().__init__()
        self.gradients = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(count)) for count in reversed(elements)])

    def forward(self, value):
        return torch.stack([MakeGradient.apply(parameter, value) for parameter in self.gradients])


# (gradient_as_bucket_view, set gradients to None before a step instead of zero). DDP must
# create a dropped view again, which costs a copy.
WAYS = {
    "ddp": (False, True),
    "ddp_views": (True, True),
    "ddp_views_zeroed": (True, False),
}


def step(model, drop, value=0.0):
    model.zero_grad(set_to_none=drop)
    model(value).sum().backward()


def timed(function):
    dist.barrier()
    start = time.monotonic()
    function()
    return [start, time.monotonic()]


def check(tensors, expected, what):
    for tensor in tensors:
        if not bool((tensor == expected).all()):
            sys.exit("ddp_worker: %s: wrong result on rank %d" % (what, dist.get_rank()))


def measure_steps(elements, plan):
    """Returns times of steps with DDP and without it, for each of WAYS."""
    measured = {}
    mean = (dist.get_world_size() + 1) / 2
    for way, (views, drop) in WAYS.items():
        model = DistributedDataParallel(Model(elements), gradient_as_bucket_view=views)
        step(model, drop, value=float(dist.get_rank() + 1))
        check([parameter.grad for parameter in model.parameters()], mean, way)
        alone = Model(elements)
        step(alone, drop)
        synchronised, local = [], []
        for _ in range(plan["warmup"] + plan["rounds"]):
            synchronised.append(timed(lambda: step(model, drop)))
            local.append(timed(lambda: step(alone, drop)))
        measured[way] = {"step": synchronised[plan["warmup"]:], "local": local[plan["warmup"]:]}
    return measured


def measure_one_by_one(elements, plan):
    """Submits all tensors with all_reduce(async_op=True), then waits, last one first."""
    tensors = [torch.full((count,), float(dist.get_rank() + 1)) for count in elements]

    def reduce_all():
        for work in reversed([dist.all_reduce(tensor, async_op=True) for tensor in tensors]):
            work.wait()

    reduce_all()
    size = dist.get_world_size()
    check(tensors, size * (size + 1) / 2, "all_reduce")
    for tensor in tensors:
        tensor.zero_()
    return [timed(reduce_all) for _ in range(plan["warmup"] + plan["rounds"])][plan["warmup"]:]


def measure_latency(operations, pause):
    """Runs 4-byte all_reduces one after the other, each after a pause in seconds or none."""
    tensor = torch.zeros(1)
    times = []
    dist.barrier()
    for _ in range(operations):
        if pause:
            time.sleep(pause)
        start = time.monotonic()
        dist.all_reduce(tensor)
        times.append([start, time.monotonic()])
    return times


def main(rank, ranks, scratch, plan_file):
    torch.set_num_threads(1)
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    dist.init_process_group("gloo", init_method="file://" + os.path.join(scratch, "rendezvous"),
                            rank=rank, world_size=ranks)
    measure_latency(plan["operations"], 0)  # warms up
    result = {
        "torch": torch.__version__,
        "together": measure_latency(plan["operations"], 0),
        "after_pause": measure_latency(max(1, plan["operations"] // 5), PAUSE_SECONDS),
        "steps": {}, "one_by_one": {},
    }
    for name, elements in plan["workloads"].items():
        result["steps"][name] = measure_steps(elements, plan)
        result["one_by_one"][name] = measure_one_by_one(elements, plan)
    with open(os.path.join(scratch, "rank%d.json" % rank), "w", encoding="utf-8") as file:
        json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
