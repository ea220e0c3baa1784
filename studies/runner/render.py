"""Pages of studies, as Markdown with SVG images and as one self-contained HTML file; and the index."""

import json
import pathlib
import re
from html import escape

from studies.runner import chart
from studies.runner.page import number

COMPARISON = ["what", "published", "here", "unit", "what differs"]
HTML_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.45 sans-serif;margin:2em auto;max-width:60em;padding:0 1em;"
    "background:#fff;color:#222}h2{margin:1.6em 0 .5em}svg{max-width:100%;height:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}"
    "td,th{border:1px solid #ccc;padding:3px 8px;text-align:right;vertical-align:top}"
    "td:first-child,th:first-child,td.text,th.text{text-align:left}"
    "pre{background:#f4f4f4;padding:.6em;overflow-x:auto}code{background:#f4f4f4;padding:0 .2em}"
    "pre code{padding:0}.note{color:#555}"
    "@media (prefers-color-scheme:dark){body{background:#16181c;color:#e4e4e4}td,th{border-color:#444}"
    "pre,code{background:#25282d}.note{color:#aaa}a{color:#7ab8f5}}")


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


# ---- HTML.

def _inline(text):
    """The Markdown of our texts: code, bold, links."""
    kept = []

    def keep(match):
        kept.append("<code>" + escape(match.group(1), quote=False) + "</code>")
        return f"\0{len(kept) - 1}\0"
    text = escape(re.sub(r"`([^`]+)`", keep, text), quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', text)
    text = re.sub(r"&lt;(https?://[^\s&]+)&gt;", r'<a href="\1">\1</a>', text)
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match.group(1))], text)


def _html_table(columns, rows):
    def cell(tag, value):
        kind = "" if isinstance(value, (int, float)) or value is None else ' class="text"'
        return f"<{tag}{kind}>{_inline(number(value))}</{tag}>"
    head = "<tr>" + "".join(cell("th", column) for column in columns) + "</tr>" if any(columns) else ""
    return "<table>" + head + "\n".join(
        "<tr>" + "".join(cell("td", value) for value in row) + "</tr>" for row in rows) + "</table>"


def html_of_markdown(text):
    """Paragraphs, headings, lists, tables and code blocks of our texts."""
    found = []
    for index, part in enumerate(re.split(r"```\w*\n(.*?)```", text, flags=re.DOTALL)):
        if index % 2:
            found.append(f"<pre><code>{escape(part.rstrip(), quote=False)}</code></pre>")
            continue
        for paragraph in re.split(r"\n\s*\n", part.strip()):
            lines = paragraph.split("\n")
            if not paragraph.strip():
                continue
            if heading := re.match(r"(#+) (.*)", lines[0]):
                level = len(heading.group(1))
                found.append(f"<h{level}>{_inline(heading.group(2))}</h{level}>")
            elif lines[0].startswith("|") and len(lines) > 1:
                rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
                found.append(_html_table(rows[0], rows[2:]))
            elif lines[0].startswith("- "):
                items = re.split(r"(?:^|\n)- ", paragraph)[1:]
                found.append("<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>")
            else:
                found.append(f"<p>{_inline(paragraph)}</p>")
    return "\n".join(found)


def html(study, found):
    parts = []
    for block in blocks_of(study, found):
        heading = block.get("heading") or (block["kind"] == "table" and block["title"])
        if heading:
            parts.append(f"<h2>{_inline(heading)}</h2>")
        if block["kind"] == "text":
            parts.append(html_of_markdown(block["text"]))
        elif block["kind"] == "table":
            parts.append(_html_table(block["columns"], block["rows"]))
        else:
            parts.append(chart.svg(block))
        if block.get("note"):
            parts.append('<div class="note">' + html_of_markdown(block["note"]) + "</div>")
    title = escape(study.title)
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">\n'
            f"<style>{HTML_STYLE}</style>\n<title>{title}</title></head><body>\n<h1>{title}</h1>\n"
            + "\n".join(parts) + "\n</body></html>\n")


# ---- Files.

def write_page(study, found, pages):
    """NAME.md with NAME_1.svg, ..., and NAME.html, from what NAME.json holds."""
    pages = pathlib.Path(pages)
    for old in pages.glob(f"{study.name}_*.svg"):
        if re.fullmatch(rf"{study.name}_\d+\.svg", old.name):
            old.unlink()

    def image(block, index):
        name = f"{study.name}_{index}.svg"
        (pages / name).write_text(chart.svg(block), encoding="utf-8")
        return name
    (pages / f"{study.name}.md").write_text(markdown(study, found, image), encoding="utf-8")
    (pages / f"{study.name}.html").write_text(html(study, found), encoding="utf-8")


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
            parts.append(f"[Figures, charts and commands]({name}.md) ([one page]({name}.html)).")
    return "\n\n".join(parts) + "\n"


def anchor(title):
    """Of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
