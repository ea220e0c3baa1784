"""Compares runs of the same benchmarks with each other and with targets, like mlbench-report of Mila's
training benchmarks (github.com/mila-iqia/training, milabench/report/report.py before December 2019)."""

import json
import math
import os
import pathlib
import statistics

MIN_RUNS = 4  # fewer leave too little without the best and the worst run
MAX_DEVIATION_PERCENT = 5  # exclusive
DEVIATION_QUANTILE = 0.8
PROGRAM_DIFFERS = "only runs of the same program with the same arguments can be compared"


class Wrong(Exception):
    """The input is wrong. str() contains the file and what was expected."""


def _refuse_constant(name):
    raise ValueError(f"{name} is not a number in JSON")


def read_json(file, expected):
    try:
        return json.loads(pathlib.Path(file).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise Wrong(f"cannot read '{file}': {error.strerror}; expected {expected}") from error
    except ValueError as error:
        raise Wrong(f"'{file}' is not JSON: {error}; expected {expected}") from error


def _is_positive(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def read_targets(file):
    """Returns {benchmark: items per second}."""
    expected = 'an object with the items per second of each benchmark, for example {"resnet50": 12.5}'
    targets = read_json(file, expected)
    if not isinstance(targets, dict):
        raise Wrong(f"'{file}' holds {json.dumps(targets)[:40]}; expected {expected}")
    for name, value in targets.items():
        if not _is_positive(value):
            raise Wrong(f"the target of {name} in '{file}' is {json.dumps(value)}; "
                        "expected a positive number of items per second")
    return targets


def _read_report(where, report):
    if not isinstance(report, dict):
        raise Wrong(f"{where} is {json.dumps(report)[:40]}; expected an object")
    for key in ("name", "unique_id", "version"):
        if not isinstance(report.get(key), str):
            raise Wrong(f"{where} has no {key}; expected a text")
    completed = report.get("completed", True)
    if not isinstance(completed, bool):
        raise Wrong(f"{where} has completed = {json.dumps(completed)}; expected true or false")
    failure = ""
    losses = report.get("batch_loss") or []
    if not isinstance(losses, list):
        raise Wrong(f"{where} has batch_loss = {json.dumps(losses)[:40]}; expected a list of numbers")
    if not completed:
        failure = report.get("failure", "it did not complete")
        if not isinstance(failure, str):
            raise Wrong(f"{where} has failure = {json.dumps(failure)[:40]}; expected a text")
    elif None in losses:
        failure = "a loss is not finite"
    item = report.get("train_item")
    speed = item.get("avg") if isinstance(item, dict) else None
    if not failure and not _is_positive(speed):
        raise Wrong(f"{where} has {json.dumps(speed)} as train_item.avg; expected a positive number of items per second")
    return {**{key: report[key] for key in ("name", "unique_id", "version")}, "failure": failure, "speed": speed}


def read_run(directory):
    """Returns the reports in the files *.json below `directory`, sorted by file name."""
    expected = "a list of benchmark reports"
    def refuse(error):
        raise Wrong(f"cannot read the run's directory '{error.filename}': {error.strerror}") from error

    files = [pathlib.Path(where) / name for where, _, names in os.walk(directory, onerror=refuse)
             for name in names if name.endswith(".json")]
    if not files:
        raise Wrong(f"no *.json in '{directory}'; expected the reports of one run")
    reports = []
    for file in sorted(files):
        found = read_json(file, expected)
        if not isinstance(found, list):
            raise Wrong(f"'{file}' holds {json.dumps(found)[:40]}; expected {expected}")
        reports += [{**_read_report(f"report {index} of '{file}'", report), "file": file}
                    for index, report in enumerate(found)]
    return reports


def row_of(name, speeds, target=None):
    """Returns a benchmark's line: the mean of its runs without the best and the worst, and the sample
    standard deviation of all runs, both in items per second."""
    result = (sum(speeds) - max(speeds) - min(speeds)) / (len(speeds) - 2)
    deviation = statistics.stdev(speeds)
    return {"name": name, "target": target, "result": result, "sd": deviation,
            "sd_percent": 100 * deviation / result, "diff": result / target - 1 if target else None}


def _speeds_by_run(name, runs, missing):
    """Returns the mean of each run in which all reports of the benchmark succeeded. Adds other runs to `missing`."""
    first, speeds = None, []
    for index, reports in enumerate(runs, 1):
        mine = [report for report in reports if report["name"] == name]
        for report in mine:
            first = first or report
            for key in ("unique_id", "version"):
                if report[key] != first[key]:
                    raise Wrong(f"the report of {name} in '{report['file']}' has {key} {report[key]}; expected "
                                f"{first[key]} as in '{first['file']}': {PROGRAM_DIFFERS}")
        failures = [report["failure"] for report in mine if report["failure"]]
        if failures:
            missing.append(f"{name} failed in run {index}: {failures[-1]}")
        elif not mine:
            missing.append(f"{name} is missing in run {index}")
        else:
            speeds.append(statistics.fmean(report["speed"] for report in mine))
    return speeds


def quantile(values, share):
    """Interpolates linearly between the two neighbours."""
    values = sorted(values)
    place = share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def judge(rows, missing):
    """Returns the verdict for JSON. Missing parts are None."""
    deviation = quantile([row["sd_percent"] for row in rows], DEVIATION_QUANTILE) if rows else None
    diffs = [row["diff"] for row in rows if row["diff"] is not None]
    performance = statistics.fmean(diffs) if diffs else None
    stable = deviation is not None and deviation < MAX_DEVIATION_PERCENT
    fast = performance is None or performance >= 0
    return {"benchmarks": rows, "missing": missing, "deviation_quantile_percent": deviation,
            "performance": performance, "stable": stable, "fast": fast, "passes": stable and fast and not missing}


def compare(runs, targets=None):
    """Returns the verdict over `runs`, each a list of reports. If there are targets, each benchmark needs one."""
    if len(runs) < MIN_RUNS:
        raise Wrong(f"{len(runs)} runs given; expected at least {MIN_RUNS}, since the best and the worst do not count")
    rows, missing = [], []
    names = sorted({report["name"] for reports in runs for report in reports})
    for name in names:
        speeds = _speeds_by_run(name, runs, missing)
        if targets is not None and name not in targets:
            raise Wrong(f"there is no target for {name}, which the runs report; expected one for each benchmark")
        if len(speeds) < MIN_RUNS:
            missing.append(f"{name} has no result: {len(speeds)} of its runs succeeded, but {MIN_RUNS} are needed")
        else:
            rows.append(row_of(name, speeds, targets[name] if targets else None))
    missing += [f"{name} has a target, but no run has it" for name in sorted(targets or {}) if name not in names]
    return judge(rows, missing)


def text_of(verdict):
    """Returns a line per benchmark, the missing parts, and the verdict. Without targets their columns are omitted."""
    rows = verdict["benchmarks"]
    targets = verdict["performance"] is not None
    width = max([len("bench"), *(len(row["name"]) for row in rows)])
    lines = [f"{'bench':<{width}}" + (f"  {'target':>12}" if targets else "") +
             f"  {'result':>14}  {'sd':>12}  {'sd%':>8}" + (f"  {'diff':>9}" if targets else "")]
    for row in rows:
        lines.append(f"{row['name']:<{width}}" + (f"  {row['target']:12.2f}" if targets else "") +
                     f"  {row['result']:14.6f}  {row['sd']:12.6f}  {row['sd_percent']:8.4f}" +
                     (f"  {row['diff']:9.6f}" if targets else ""))
    lines.append("")
    if verdict["missing"]:
        lines += [f"Missing: {sentence}" for sentence in verdict["missing"]] + [""]
    deviation = verdict["deviation_quantile_percent"]
    statistics_lines = [("Benchmarks in all runs", "", not verdict["missing"]),
                        ("Deviation quantile (80%)", "none" if deviation is None else f"{deviation:+.4f} %",
                         verdict["stable"])]
    if targets:
        statistics_lines.append(("Performance", f"{verdict['performance']:+.4f}", verdict["fast"]))
    statistics_lines.append(("All", "", verdict["passes"]))
    lines.append(f"{'Statistic':<24} | {'Value':>10} | Verdict")
    lines += [f"{name:<24} | {value:>10} | {'pass' if passes else 'FAIL'}" for name, value, passes in statistics_lines]
    return "\n".join(lines) + "\n"
