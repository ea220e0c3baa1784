#!/usr/bin/env python3
"""Checks traces against the rules of the viewers that users open them with.

    trace_rules.py TRACE...

Prints one line per fault; the exit status is 1 if there is any. The format is Chrome's (Trace
Event Format, Google, 2016). Perfetto also requires that the events of a track nest.
"""

import collections
import json
import sys

# Times are microseconds with three digits.
NANOSECOND = 0.001


def problems_of_event(event):
    """Yields the faults of one event."""
    for key, kinds in (("ph", str), ("name", str), ("pid", int), ("tid", int)):
        if not isinstance(event.get(key), kinds):
            yield f"'{key}' is {event.get(key)!r}"
    if event.get("ph") not in ("X", "C", "M"):
        yield f"hvdlite does not write phase {event.get('ph')!r}"
    if event.get("tid") == 0:
        yield "track 0: viewers show it as the process"
    for key, phases in (("ts", "XC"), ("dur", "X")):
        time = event.get(key)
        if event.get("ph") in phases and not (isinstance(time, (int, float)) and time >= 0):
            yield f"'{key}' is {time!r}"
    if event.get("ph") == "C":
        values = event.get("args", {}).values()
        if not values or not all(isinstance(value, (int, float)) for value in values):
            yield f"a counter has the values {event.get('args')!r}"


def problems_of_nesting(slices):
    """Yields slices of one track that overlap without one containing the other."""
    open_slices = []
    for start, length, name in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_slices and open_slices[-1][0] <= start + NANOSECOND / 2:
            open_slices.pop()
        if open_slices and start + length > open_slices[-1][0] + NANOSECOND * 1.5:
            yield f"{name} at {start} begins in {open_slices[-1][1]} and ends after it"
        open_slices.append((start + length, name))


def problems_of_flows(slices):
    """Yields arrows without an end or a beginning, and arrows that end before they begin."""
    ends = collections.defaultdict(dict)
    for event in slices:
        for end in ("flow_out", "flow_in"):
            if event.get(end):
                times = ends[event.get("bind_id")].setdefault(end, [])
                times.append(event["ts"])
    for flow, found in ends.items():
        if flow is None or len(found) != 2:
            yield f"flow {flow} has only {' and '.join(sorted(found))}"
        elif max(found["flow_in"]) < min(found["flow_out"]):
            yield f"flow {flow} ends before it begins"


def refuse(word):
    """Refuses NaN and infinities, which are not JSON."""
    raise ValueError(f"{word} is not a number")


def problems_of(text):
    """Yields the faults of a trace."""
    events = json.loads(text, parse_constant=refuse)
    if isinstance(events, dict):
        events = events["traceEvents"]
    named = {event.get("pid") for event in events if event.get("name") == "process_name"}
    named_tracks = {(event.get("pid"), event.get("tid")) for event in events
                    if event.get("name") == "thread_name"}
    tracks = collections.defaultdict(list)
    for number, event in enumerate(events):
        found = [f"event {number}: {problem}" for problem in problems_of_event(event)]
        yield from found
        if found or event["ph"] != "X":
            continue
        tracks[event["pid"], event["tid"]].append((event["ts"], event["dur"], event["name"]))
    for (pid, tid), slices in tracks.items():
        if pid not in named:
            yield f"process {pid} has no name"
        if (pid, tid) not in named_tracks:
            yield f"process {pid}, track {tid} has no name"
        yield from (f"process {pid}, track {tid}: {problem}"
                    for problem in problems_of_nesting(slices))
    if not tracks:
        yield "no slices"
    yield from problems_of_flows([event for event in events if event.get("ph") == "X"])


def main(paths):
    """Checks the files and returns the exit status."""
    wrong = False
    for path in paths:
        with open(path, encoding="utf-8") as file:
            try:
                found = list(problems_of(file.read()))
            except ValueError as error:
                found = [f"not JSON: {error}"]
        for problem in found:
            print(f"{path}: {problem}")
        wrong = wrong or bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
