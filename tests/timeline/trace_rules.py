#!/usr/bin/env python3
"""Checks traces by the rules of the viewers that users open them with.

    trace_rules.py TRACE...

Prints what is wrong, a line each; exit status 1 if anything is. Chrome's trace format
(Trace Event Format, Google, 2016); that events of a track nest is Perfetto's rule.
"""

import collections
import json
import sys

# Times are microseconds with three digits.
NANOSECOND = 0.001


def problems_of_event(event):
    """What is wrong with one event."""
    for key, kinds in (("ph", str), ("name", str), ("pid", int), ("tid", int)):
        if not isinstance(event.get(key), kinds):
            yield f"'{key}' is {event.get(key)!r}"
    if event.get("ph") not in ("X", "C", "M"):
        yield f"phase {event.get('ph')!r} is none that hvdlite writes"
    if event.get("tid") == 0:
        yield "track 0, which viewers take for the process"
    for key, phases in (("ts", "XC"), ("dur", "X")):
        time = event.get(key)
        if event.get("ph") in phases and not (isinstance(time, (int, float)) and time >= 0):
            yield f"'{key}' is {time!r}"
    if event.get("ph") == "C":
        values = event.get("args", {}).values()
        if not values or not all(isinstance(value, (int, float)) for value in values):
            yield f"a counter of {event.get('args')!r}"


def problems_of_nesting(slices):
    """Slices of one track that overlap without one being inside the other."""
    open_slices = []
    for start, length, name in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_slices and open_slices[-1][0] <= start + NANOSECOND / 2:
            open_slices.pop()
        if open_slices and start + length > open_slices[-1][0] + NANOSECOND * 1.5:
            yield f"{name} at {start} ends after {open_slices[-1][1]}, in which it begins"
        open_slices.append((start + length, name))


def problems_of_flows(slices):
    """Arrows without an end or a beginning, or that end before they begin."""
    ends = collections.defaultdict(dict)
    for event in slices:
        for end in ("flow_out", "flow_in"):
            if event.get(end):
                times = ends[event.get("bind_id")].setdefault(end, [])
                times.append(event["ts"])
    for flow, found in ends.items():
        if flow is None or len(found) != 2:
            yield f"flow {flow} has {' and '.join(sorted(found))} alone"
        elif max(found["flow_in"]) < min(found["flow_out"]):
            yield f"flow {flow} ends before it begins"


def refuse(word):
    """NaN and the like, which are no JSON."""
    raise ValueError(f"{word} is no number")


def problems_of(text):
    """What is wrong with a trace."""
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
    """Exit status."""
    wrong = False
    for path in paths:
        with open(path, encoding="utf-8") as file:
            try:
                found = list(problems_of(file.read()))
            except ValueError as error:
                found = [f"is not JSON: {error}"]
        for problem in found:
            print(f"{path}: {problem}")
        wrong = wrong or bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
