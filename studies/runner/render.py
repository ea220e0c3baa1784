"""Pages of studies, as Markdown with SVG images; and the index."""

import json
import pathlib
import re

from studies.runner import chart
from studies.runner.page import number

COMPARISON = ["what", "published", "here", "unit", "what differs"]


def command_of(study, found):
    """Returns the study's command, with --data if `found` (or None) was measured with real files."""
    real = found and any(data["real"] for data in found["data"])
    return f"studies/study {study.name}" + (" --data DIRECTORY" if real else "")


def blocks_of(study, found):
    """Yields the whole page as blocks: the blocks of the study's run and those of all pages."""
    yield {"kind": "text", "heading": None, "text":
           f"{study.citation}\n\nMeasured {found['date']}, commit {found['commit']}, scale: "
           f"{found['scale']} (published for {study.machine.processor}; "
           f"here {found['machine']['processor']}, {found['cores']} cores, NUMA nodes: {found['numa_nodes']}). "
           "The command is the same on any machine:"
           f"\n\n```sh\n{command_of(study, found)}\n```"}
    yield {"kind": "text", "heading": "The experiment", "text": study.experiment}
    yield {"kind": "table", "title": "Published and here", "columns": COMPARISON, "note": found["disturbed"], "rows": [
        [row["what"], row["published"], row["here"], row["unit"], row["differs"]]
        for row in found["comparisons"]]}
    differs = study.differs + (study.differs_small if found["scale"] != "published" else ())
    if differs:
        yield {"kind": "text", "heading": "What differs", "text": _list(differs)}
    yield from found["blocks"]
    if study.notes:
        yield {"kind": "text", "heading": None, "text": study.notes}
    if found["missing"]:
        yield {"kind": "text", "heading": "What cannot run here",
               "text": "\n\n".join(map(_missing, found["missing"]))}
    yield {"kind": "table", "title": "Machine", "columns": ["", ""], "note": "",
           "rows": [[name, value] for name, value in found["machine"].items()]}
    for data in found["data"]:
        yield {"kind": "text", "heading": "Data: " + data["name"], "text":
               data["note"] + "\n\n```\n" + "\n".join(
                   f"{digest}  {file}" for file, digest in data["checksums"].items()) + "\n```"}
    yield {"kind": "text", "heading": "Commands", "text":
           "The commands of this run, in the study's output directory, with the build's programs in PATH:\n\n```sh\n"
           + "\n".join(run["command"] for run in found["runs"]) + "\n```"}


def _missing(row):
    return f"**{row['what']}**: {row['why']}\n\n```sh\n{row['command']}\n```"


def _list(texts):
    return "\n".join(f"- {text}" for text in texts)


# ---- Markdown.

def _cell(value):
    return number(value).replace("|", "\\|").replace("\n", " ")


def _markdown_table(columns, rows):
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
                     + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows])


def markdown(study, found, image_of):
    """`image_of(block, number)` returns the path of a chart's file, relative to the page."""
    parts, charts = [f"# {study.title}"], 0
    for block in blocks_of(study, found):
        heading = block.get("heading") or (block["kind"] == "table" and block["title"])
        if heading:
            parts.append(f"## {heading}")
        if block["kind"] == "text":
            parts.append(block["text"].strip())
        elif block["kind"] == "table":
            parts.append(_markdown_table(block["columns"], block["rows"]))
        else:
            charts += 1
            parts.append(f"![{block['title']}]({image_of(block, charts)})")
        if block.get("note"):
            parts.append(block["note"].strip())
    return "\n\n".join(parts) + "\n"


# ---- Files.

def write_page(study, found, pages):
    """Writes NAME.md and NAME_1.svg, ... from the content of NAME.json."""
    pages = pathlib.Path(pages)
    for old in pages.glob(f"{study.name}_*.svg"):
        if re.fullmatch(rf"{study.name}_\d+\.svg", old.name):
            old.unlink()

    def image(block, index):
        name = f"{study.name}_{index}.svg"
        (pages / name).write_text(chart.svg(block), encoding="utf-8")
        return name
    (pages / f"{study.name}.md").write_text(markdown(study, found, image), encoding="utf-8")


def read_results(pages, name):
    """Returns the content of NAME.json, or None."""
    try:
        return json.loads((pathlib.Path(pages) / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _headlines(found, column):
    rows = [row for row in found["comparisons"] if row["headline"]] or found["comparisons"][:2]
    if column == "differs":
        return "<br>".join(row["differs"] or "–" for row in rows)
    return "<br>".join(f"{row['what']}: {number(row[column])} {row['unit']}".strip() for row in rows)


def index(studies, pages):
    """Returns README.md of the results."""
    results = {name: read_results(pages, name) for name in studies}
    parts = [
        "# Published studies",
        "One command, `studies/study NAME`, repeats a study: the published experiment on a machine of the published "
        "size, a small version of it on any other (`--scale`). It writes a page with the figures and the published "
        "ones ([how](../README.md)). The differences from the publication are listed for each study. "
        "`studies/study --index` makes this file from `studies/results`.",
        _markdown_table(
            ["study", "measured", "published", "here", "what differs"],
            [[f"[{study.title}](#{anchor(study.title)})",
              f"{found['date'].split(' ')[0]}, {found['commit']}, {found['scale']}" if found else "not run yet",
              _headlines(found, "published") if found else "",
              _headlines(found, "here") if found else "",
              _headlines(found, "differs") if found else ""]
             for name, study in studies.items() for found in [results[name]]])]
    for name, study in studies.items():
        found = results[name]
        parts += [f"## {study.title}", study.citation, f"```sh\n{command_of(study, found)}\n```",
                  study.experiment]
        for title, texts in (("What differs:", study.differs), ("What else differs in small:", study.differs_small)):
            if texts:
                parts.append(f"{title}\n\n{_list(texts)}")
        if found and found["missing"]:
            parts.append("What cannot run here:")
            parts += map(_missing, found["missing"])
        if study.data:
            parts.append("Real data: " + study.data)
        if found:
            parts.append(f"[Figures, charts and commands]({name}.md).")
    return "\n\n".join(parts) + "\n"


def anchor(title):
    """Returns GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
