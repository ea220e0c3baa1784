#!/usr/bin/env python3
"""Writes a trace as hvdlite records it of a training, of any length: for measuring tools.

usage: tests/timeline/generate_trace.py OUT [--events 1000000] [--ranks 4] [--parts] [--seed 1]

Each step has its span, its waits, batches with their phases, a negotiation and an operation for
each tensor, and counters. OUT is the merged trace; with --parts OUT.rank00000 and so on are
written, with clocks that differ, as of a run that was killed.
"""
import argparse
import random

TENSORS_PER_BATCH = 8
BATCHES_PER_STEP = 6
COUNTERS = (
    ("PROGRESS_THREAD", ("cpu_us", "delay_us", "involuntary")),
    ("MAIN_THREAD", ("cpu_us", "delay_us", "involuntary")),
    ("COMPUTE_THREADS", ("cpu_us", "delay_us", "threads")),
    ("MEMORY", ("resident_bytes", "minor_faults", "major_faults", "system_cpu_us")))


def us(time_ns):
    return "%d.%03d" % divmod(time_ns, 1000)


def metadata(rank, lane, name, args):
    return '{"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{%s}}' % (name, rank, lane, args)


def header(rank, size, offset_ns):
    host = "node%d" % (rank // 2)
    yield metadata(rank, 1, "process_name", '"name":"rank %d (%s)"' % (rank, host))
    yield metadata(rank, 1, "process_sort_index", '"sort_index":%d' % rank)
    yield metadata(rank, 1, "hvdlite_trace",
                   '"rank":%d,"size":%d,"host":"%s","clock":"CLOCK_MONOTONIC",'
                   '"clock_offset_ns":%d,"clock_uncertainty_ns":%d' % (
                       rank, size, host, offset_ns, 0 if rank == 0 else 900))
    lanes = [(1, "batch"), (3, "application"), (4, "steps")]
    lanes += [(10 + i, "tensors %d" % (i + 1)) for i in range(TENSORS_PER_BATCH)]
    for lane, name in lanes:
        yield metadata(rank, lane, "thread_name", '"name":"%s"' % name)
        yield metadata(rank, lane, "thread_sort_index", '"sort_index":%d' % lane)


def slice_(rank, lane, name, start_ns, end_ns, args="", flow=""):
    return '{"ts":%s,"dur":%s,"ph":"X","name":"%s","pid":%d,"tid":%d%s%s}' % (
        us(start_ns), us(end_ns - start_ns), name, rank, lane, flow,
        ',"args":{%s}' % args if args else "")


def batch_events(rank, step, number, start_ns, draw):
    """The events of a batch, and when it ended."""
    wait_ns = draw.randrange(20_000, 400_000)
    end_ns = start_ns + wait_ns + 1_500_000
    size = 4 << 20
    flow_id = (rank + 1) << 40 | number
    for i in range(TENSORS_PER_BATCH):
        tensor = "layer%d.%d.conv%d.weight" % (number % BATCHES_PER_STEP, i // 2, i % 2)
        submitted_ns = start_ns - 250_000 + i * 30_000
        args = '"tensor":"%s","bytes":%d' % (tensor, size // TENSORS_PER_BATCH)
        yield slice_(rank, 10 + i, "NEGOTIATE_ALLREDUCE", submitted_ns, start_ns,
                     '%s,"last_rank":%d,"lateness_us":%d,"picked_up_us":%d' % (
                         args, draw.randrange(4), draw.randrange(800),
                         (submitted_ns + 20_000) // 1000))
        yield slice_(rank, 10 + i, "ALLREDUCE", start_ns, end_ns,
                     '%s,"batch":%d' % (args, number),
                     ',"bind_id":"0x%x","flow_out":true' % flow_id)
    args = '"batch":%d,"bytes":%d' % (number, size)
    yield slice_(rank, 1, "ALLREDUCE_BATCH", start_ns, end_ns,
                 '"batch":%d,"tensors":%d,"bytes":%d,"chunks":2,"algorithm":"shm by chunks"' % (
                     number, TENSORS_PER_BATCH, size),
                 ',"bind_id":"0x%x","flow_in":true' % flow_id)
    at_ns = start_ns
    for name, length_ns in (("WAIT_FOR_RANKS", wait_ns), ("MEMCPY_IN_FUSION_BUFFER", 200_000),
                            ("MPI_ALLREDUCE", 1_000_000), ("MEMCPY_OUT_FUSION_BUFFER", 250_000)):
        yield slice_(rank, 1, name, at_ns, at_ns + length_ns, args)
        at_ns += length_ns


def step_events(rank, step, start_ns, draw):
    """The lines of a step, of 20 ms."""
    end_ns = start_ns + 20_000_000
    yield slice_(rank, 3, "LOAD_BATCH", start_ns, start_ns + draw.randrange(100_000, 900_000))
    yield slice_(rank, 3, "FORWARD", start_ns + 1_000_000, start_ns + 5_000_000)
    for i in range(BATCHES_PER_STEP):
        yield from batch_events(rank, step, (step - 1) * BATCHES_PER_STEP + i + 1,
                                start_ns + 6_000_000 + i * 2_200_000, draw)
    yield slice_(rank, 3, "BACKWARD", start_ns + 5_000_000, start_ns + 15_000_000)
    yield slice_(rank, 3, "WAIT_FOR_GRADIENTS", start_ns + 15_000_000, end_ns - 200_000)
    yield slice_(rank, 4, "TRAINING_STEP", start_ns, end_ns, '"step":%d' % step)
    if step % 5 == 0:
        for name, fields in COUNTERS:
            yield '{"ts":%s,"ph":"C","name":"%s","pid":%d,"tid":1,"args":{%s}}' % (
                us(end_ns), name, rank,
                ",".join('"%s":%d' % (field, draw.randrange(100_000)) for field in fields))


def lines_of_rank(rank, size, steps, offset_ns, seed):
    draw = random.Random(seed * 1000 + rank)
    yield from header(rank, size, offset_ns)
    for step in range(1, steps + 1):
        yield from step_events(rank, step, step * 20_000_000 - offset_ns, draw)
    yield metadata(rank, 1, "hvdlite_dropped_events", '"dropped_events":0')


def write(path, ranks, size, steps, offsets_ns, seed):
    with open(path, "w", encoding="utf-8") as file:
        separator = "[\n"
        for rank in ranks:
            for line in lines_of_rank(rank, size, steps, offsets_ns[rank], seed):
                file.write(separator + line)
                separator = ",\n"
        file.write("\n]\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    in_a_step = sum(1 for _ in step_events(0, 1, 0, random.Random(0)))
    steps = max(1, round(args.events / args.ranks / (in_a_step + 0.2 * len(COUNTERS))))
    offsets_ns = [rank * 1_000_003 if args.parts else 0 for rank in range(args.ranks)]
    if not args.parts:
        write(args.out, range(args.ranks), args.ranks, steps, offsets_ns, args.seed)
        return
    for rank in range(args.ranks):
        write("%s.rank%05d" % (args.out, rank), [rank], args.ranks, steps, offsets_ns, args.seed)


if __name__ == "__main__":
    main()
