"""The command line of studies/study."""

import argparse
import datetime
import json
import pathlib
import platform
import sys
import time

from bench.lib import launch
from studies.runner import bench as benches
from studies.runner import machine, page as pages_of, render, study as studies_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parser(description):
    made = argparse.ArgumentParser(prog="studies/study", description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="NAME", help="names of studies, or all")
    made.add_argument("--list", action="store_true", help="list the studies")
    made.add_argument("--index", action="store_true",
                      help="write the pages again from the saved results, and the index README.md")
    made.add_argument("--scale", choices=["auto", *benches.SCALES], default="auto",
                      help="auto: published if this machine has the study's architecture, cores and NUMA nodes, "
                           "otherwise small; tiny: a minute or two, to check that it runs")
    made.add_argument("--data", type=pathlib.Path, metavar="DIRECTORY",
                      help="directory of the real data; missing data are replaced by generated ones")
    made.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="DIRECTORY",
                      help="build directory of the programs (default: build/release)")
    made.add_argument("--output", type=pathlib.Path, default=ROOT / "build/studies", metavar="DIRECTORY",
                      help="directory of raw output, in DIRECTORY/NAME (default: build/studies)")
    made.add_argument("--pages", type=pathlib.Path, metavar="DIRECTORY",
                      help="directory of the result pages (default: studies/results; with --scale tiny: DIRECTORY/NAME "
                           "of --output)")
    made.add_argument("--resume", action="store_true", help="reuse saved runs of the same command")
    return made


def scale_for(study, wanted, cores, numa_nodes, architecture):
    """Returns the scale that auto means on a machine."""
    if wanted != "auto":
        return wanted
    published = study.machine
    alike = cores >= published.cores and numa_nodes >= published.numa_nodes and architecture == published.architecture
    return "published" if alike else "small"


def run(study, options):
    """Runs one study and writes its results and pages. Returns the directory of the pages."""
    scale = scale_for(study, options.scale, machine.cores(), machine.numa_nodes(), platform.machine())
    output = options.output / study.name
    pages = options.pages or (output if scale == "tiny" else ROOT / "studies/results")
    print(f"{study.name}: {study.title}, scale: {scale}", flush=True)
    bench = benches.Bench(study, scale, options.build, output, options.data, options.resume,
                          say=lambda text: print(text, flush=True))
    try:
        bench.require_programs()
        page, start = pages_of.Page(), time.monotonic()
        study.run(bench, page)
        found = {
            "name": study.name, "scale": scale, "commit": launch.commit(),
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
            "minutes": round((time.monotonic() - start) / 60, 1),
            "disturbed": bench.disturbed(), "cores": bench.cores, "numa_nodes": bench.numa_nodes, "machine": bench.facts(),
            "comparisons": page.comparisons, "blocks": page.blocks, "missing": page.missed,
            "data": [{"name": data.name, "real": data.real, "note": data.note(), "checksums": data.checksums}
                     for data in bench.sets],
            "runs": [{"name": run.name, "command": run.command, "seconds": round(run.seconds, 3),
                      "others": round(run.others, 3)} for run in bench.runs],
            "sweeps": bench.sweeps,
        }
    finally:
        bench.close()
    pages.mkdir(parents=True, exist_ok=True)
    (pages / f"{study.name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    render.write_page(study, found, pages)
    print(f"{study.name}: {pages / (study.name + '.md')} and .json, after {found['minutes']} minutes")
    return pages


def write_index(studies, pages):
    for name, study in studies.items():
        found = render.read_results(pages, name)
        if found:
            render.write_page(study, found, pages)
    (pages / "README.md").write_text(render.index(studies, pages), encoding="utf-8")


def main(arguments=None, directory=studies_of.DIRECTORY, description=__doc__):
    """Returns the exit code: 0: all done; 1: a study failed; 2: the command line or a study is wrong."""
    made = parser(description)
    options = made.parse_args(arguments)
    try:
        studies = studies_of.load(directory)
        names = list(studies) if options.names == ["all"] else options.names
        unknown = [name for name in names if name not in studies]
        if unknown:
            made.error(f"unknown study '{unknown[0]}'; the studies are {', '.join(studies)}")
        if options.list:
            for name, study in studies.items():
                print(f"{name:<10} {study.title}")
        elif not names and not options.index:
            made.error("give the name of a study, or all; --list lists the studies")
        failures = []
        for name in names:
            try:
                run(studies[name], options)
            except (launch.Failed, studies_of.Wrong) as failure:
                failures.append(name)
                print(f"studies/study: {name}: {failure}", file=sys.stderr)
        if options.index:
            write_index(studies, options.pages or ROOT / "studies/results")
        return 1 if failures else 0
    except studies_of.Wrong as wrong:
        print(f"studies/study: {wrong}", file=sys.stderr)
        return 2
