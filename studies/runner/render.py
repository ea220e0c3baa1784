"""Pages of studies, as Markdown with SVG images; and the index."""

import json
import pathlib
import re

from studies.runner import chart
from studies.runner.page import number

COMPARISON = ["what", "published", "here", "unit", "what differs"]


def command_of(study, found):
    """With --data, if `found` was measured with files of it; it may be None."""
    real = found and any(data["real"] for data in found["data"])
    return f"studies/study {study.name}" + (" --data FOLDER" if real else "")


def blocks_of(study, found):
    """The whole page as blocks: those of the study's run between what all pages have."""
    yield {"kind": "text", "heading": None, "text":
           f"{study.citation}\n\nMeasured {found['date']}, commit {found['commit']}, scale: "
           f"{found['scale']} (published for {study.machine.processor}; "
           f"here {found['machine']['processor']}, {found['cores']} cores, NUMA nodes: {found['numa_nodes']}). "
           "The same command on any machine:"
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
        yield {"kind": "text", "heading": "What cannot be had here",
               "text": "\n\n".join(map(_missing, found["missing"]))}
    yield {"kind": "table", "title": "Machine", "columns": ["", ""], "note": "",
           "rows": [[name, value] for name, value in found["machine"].items()]}
    for data in found["data"]:
        yield {"kind": "text", "heading": "Data: " + data["name"], "text":
               data["note"] + "\n\n```\n" + "\n".join(
                   f"{digest}  {file}" for file, digest in data["checksums"].items()) + "\n```"}
    yield {"kind": "text", "heading": "Commands", "text":
           "As they were run, in the folder of the study's output, with the build's programs in PATH:\n\n```sh\n"
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
    """`image_of(block, number)` is the path of a chart's file, as the page names it."""
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
    """NAME.md with NAME_1.svg, ..., from what NAME.json holds."""
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
    """What NAME.json holds, or None."""
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
    """README.md of the results."""
    results = {name: read_results(pages, name) for name in studies}
    parts = [
        "# Published studies",
        "Each is repeated by one command, `studies/study NAME`, which runs the published experiment on a machine "
        "of the published size, in small on any other (`--scale`), and writes a page of figures beside the "
        "published ones ([how](../README.md)). What differs from the publication at either scale is listed for each. "
        "This file is made by `studies/study --index` from `studies/results`.",
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
        for title, texts in (("What differs:", study.differs), ("What more differs in small:", study.differs_small)):
            if texts:
                parts.append(f"{title}\n\n{_list(texts)}")
        if found and found["missing"]:
            parts.append("What cannot be had here:")
            parts += map(_missing, found["missing"])
        if study.data:
            parts.append("Real data: " + study.data)
        if found:
            parts.append(f"[Figures, charts and commands]({name}.md).")
    return "\n\n".join(parts) + "\n"


def anchor(title):
    """Of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
