#!/usr/bin/env python3
"""Writes a trace like that of a training with hvdlite, for tests and demonstrations.

usage: make_trace.py FILE [--ranks N] [--steps N] [--tensors N] [--straggler RANK] [--seed N]

In each step, each rank loads a mini-batch, runs forward and backward, and submits
gradients meanwhile, which are reduced in buckets. One rank computes longer than the
others, and its background thread waits for a core from time to time. A step of R ranks
with T tensors has about R * (2.6 T + 5) events: --ranks 4 --tensors 160 --steps 590 makes
1,000,000.
"""

import argparse
import json
import random

BUCKET_TRACK, USER_TRACK, STEP_TRACK, FIRST_TENSOR_TRACK = 1, 3, 4, 10
TENSORS_PER_BUCKET = 8
US_PER_MS = 1000.0


class Writer:
    """Appends events to a merged trace, one per line."""

    def __init__(self, file):
        self.file = file
        self.file.write("[\n")
        self.lines = 0
        self.tracks = set()

    def line(self, event):
        self.file.write((",\n" if self.lines else "") + json.dumps(event, separators=(",", ":")))
        self.lines += 1

    def metadata(self, what, rank, track, /, **args):
        self.line({"name": what, "ph": "M", "pid": rank, "tid": track, "args": args})

    def rank(self, rank, size):
        host = f"node{rank // 2}"
        self.metadata("process_name", rank, BUCKET_TRACK, name=f"rank {rank} ({host})")
        self.metadata("hvdlite_trace", rank, BUCKET_TRACK, rank=rank, size=size, host=host,
                      clock="CLOCK_MONOTONIC", clock_offset_ns=0, cpus=8, cpu_list="0-7",
                      fusion_threshold_bytes=67108864, min_batch_bytes=0)

    def slice(self, rank, track, name, start_us, end_us, **args):
        if (rank, track) not in self.tracks:
            self.tracks.add((rank, track))
            names = {BUCKET_TRACK: "bucket", USER_TRACK: "application", STEP_TRACK: "steps"}
            self.metadata("thread_name", rank, track,
                          name=names.get(track, f"tensors {track - FIRST_TENSOR_TRACK + 1}"))
        start_ns = round(start_us * 1000)
        duration_ns = max(round(end_us * 1000) - start_ns, 0)
        event = {"ts": start_ns / 1000, "dur": duration_ns / 1000, "ph": "X", "name": name,
                 "pid": rank, "tid": track}
        if args:
            event["args"] = args
        self.line(event)

    def counter(self, rank, name, time_us, **values):
        self.line({"ts": round(time_us, 3), "ph": "C", "name": name, "pid": rank,
                   "tid": BUCKET_TRACK, "args": values})

    def finish(self, ranks):
        for rank in range(ranks):
            self.metadata("hvdlite_dropped_events", rank, BUCKET_TRACK, dropped_events=0)
        self.file.write("\n]\n")


class Training:
    def __init__(self, writer, options):
        self.writer = writer
        self.options = options
        self.random = random.Random(options.seed)
        self.bucket = 0
        self.tensors = [(f"layer{i // 4 + 1}.{i % 4}.conv{i % 2 + 1}.weight",
                         4 * 64 * (1 << (i * 10 // options.tensors)) * 9)
                        for i in range(options.tensors)]

    def step(self, number, starts):
        """Writes a step that begins at starts[rank] us. Returns its end for each rank."""
        ranks = range(self.options.ranks)
        computed, submitted = [], []
        for rank in ranks:
            noise = self.random.uniform(0.97, 1.05)
            slow = 1.35 if rank == self.options.straggler and number % 7 else 1.0
            loaded = starts[rank] + 3 * US_PER_MS * self.random.uniform(0.6, 2)
            forward = loaded + 14 * US_PER_MS * noise * slow
            backward = forward + 30 * US_PER_MS * noise * slow
            self.writer.slice(rank, USER_TRACK, "LOAD_BATCH", starts[rank], loaded)
            self.writer.slice(rank, USER_TRACK, "FORWARD", loaded, forward)
            self.writer.slice(rank, USER_TRACK, "BACKWARD", forward, backward)
            computed.append(backward)
            count = len(self.tensors)
            submitted.append([forward + (backward - forward) * (i + 1) / count
                              for i in range(count)])
        free = [0.0] * self.options.ranks
        for first in range(0, len(self.tensors), TENSORS_PER_BUCKET):
            members = range(first, min(first + TENSORS_PER_BUCKET, len(self.tensors)))
            free = self.reduce(members, submitted, free)
        ends = []
        for rank in ranks:
            waited = max(free[rank], computed[rank]) + 20
            self.writer.slice(rank, USER_TRACK, "WAIT_FOR_GRADIENTS", computed[rank], waited)
            end = waited + 2 * US_PER_MS
            self.writer.slice(rank, STEP_TRACK, "TRAINING_STEP", starts[rank], end, step=number)
            ends.append(end)
        return ends

    def reduce(self, members, submitted, free):
        """Writes a bucket of tensors. Returns its end for each rank."""
        write = self.writer.slice
        ready = [max(submitted[rank][i] for i in members) for rank in range(len(submitted))]
        last = max(range(len(ready)), key=lambda rank: ready[rank])
        late = ready[last] - sorted(ready)[-2] if len(ready) > 1 else 0
        size = sum(self.tensors[i][1] for i in members)
        self.bucket += 1
        ends = []
        begin = max(ready[last], max(free)) + 60
        for rank in range(len(submitted)):
            start = begin + self.random.uniform(0, 80)
            gate = begin + 90
            copied = gate + size / 9000
            reduced = copied + 120 + size / 2500
            end = reduced + size / 9000
            for place, i in enumerate(members):
                track = FIRST_TENSOR_TRACK + (i % (2 * TENSORS_PER_BUCKET))
                name, count = self.tensors[i]
                write(rank, track, "NEGOTIATE_ALLREDUCE", submitted[rank][i], start, tensor=name,
                      bytes=count, last_rank=last, lateness_us=round(late), picked_up_us=30)
                write(rank, track, "ALLREDUCE", start, end, tensor=name, bytes=count,
                      bucket=self.bucket)
            said = {"bucket": self.bucket, "bytes": size}
            write(rank, BUCKET_TRACK, "ALLREDUCE_BUCKET", start, end, bucket=self.bucket,
                  tensors=len(members), bytes=size, algorithm="SHM by chunks")
            write(rank, BUCKET_TRACK, "WAIT_FOR_RANKS", start, gate, **said)
            write(rank, BUCKET_TRACK, "MEMCPY_IN_FUSION_BUFFER", gate, copied, **said)
            write(rank, BUCKET_TRACK, "SHM_ALLREDUCE", copied, reduced, **said)
            write(rank, BUCKET_TRACK, "MEMCPY_OUT_FUSION_BUFFER", reduced, end, **said)
            ends.append(end)
        return ends

    def sample(self, time_us):
        for rank in range(self.options.ranks):
            starved = 30000 if rank == self.options.straggler else 400
            delay = round(self.random.uniform(0.2, 1) * starved)
            self.writer.counter(rank, "PROGRESS_THREAD", time_us, delay_us=delay, involuntary=3,
                                cpu_us=round(self.random.uniform(8000, 20000)))
            self.writer.counter(rank, "MAIN_THREAD", time_us, delay_us=delay // 9, involuntary=1,
                                cpu_us=round(self.random.uniform(80000, 99000)))
            self.writer.counter(rank, "COMPUTE_THREADS", time_us, delay_us=delay // 3, threads=7,
                                cpu_us=round(self.random.uniform(560000, 690000)))
            self.writer.counter(rank, "MEMORY", time_us, major_faults=0,
                                rss_bytes=round(1.2e9 + time_us * 3),
                                minor_faults=round(self.random.uniform(0, 900)),
                                system_cpu_us=9000)

    def run(self):
        times = [0.0] * self.options.ranks
        sampled = 0.0
        for number in range(1, self.options.steps + 1):
            times = self.step(number, times)
            while sampled < max(times):
                self.sample(sampled)
                sampled += 100 * US_PER_MS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--tensors", type=int, default=48)
    parser.add_argument("--straggler", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with open(options.file, "w", encoding="utf-8") as file:
        writer = Writer(file)
        for rank in range(options.ranks):
            writer.rank(rank, options.ranks)
        Training(writer, options).run()
        writer.finish(options.ranks)


if __name__ == "__main__":
    main()
