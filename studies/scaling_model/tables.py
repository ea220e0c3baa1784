"""Tables of measured epochs on growing numbers of nodes: published ones as JSON, own ones from scaling_sweep."""

import csv
import dataclasses
import json
import math
import os

from studies.scaling_model.training import Wrong

EXAMPLE = "studies/scaling_model/a64fx_resnet50_cifar10.json"
FEWEST_POINTS = 3
LARGEST = 2 ** 31 - 1


@dataclasses.dataclass(frozen=True)
class Column:
    """The times of one set-up on each of the table's numbers of nodes."""
    name: str
    ranks_per_node: int
    epoch_seconds: tuple


@dataclasses.dataclass(frozen=True)
class Table:
    """Strong scaling: an epoch has `images` on any number of nodes. A rank takes up to `batch_per_rank` per step."""
    source: str
    images: int
    batch_per_rank: int
    cores_per_node: int
    nodes: list  # ascend
    columns: list
    world_batch: int = 0  # batch of all ranks, shared by them, instead of batch_per_rank
    ranks_stand_for_nodes: bool = False  # `nodes` are ranks of one node
    whole_epochs: bool = True  # otherwise computed from speeds after a warm-up, without the cost of the first batch

    def batch_of_rank(self, ranks):
        return max(1, self.world_batch // ranks) if self.world_batch else self.batch_per_rank


# ---- JSON.

def _require(entry, where, keys):
    if not isinstance(entry, dict):
        raise Wrong(f"{where} must be an object with {', '.join(keys)}")
    missing = [key for key in keys if key not in entry]
    if missing:
        raise Wrong(f"{where} lacks {', '.join(missing)}; it must have {', '.join(keys)}, like {EXAMPLE}")


def _whole(value, name):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise Wrong(f"{name} is {json.dumps(value)}, but must be a whole number from 1 to {LARGEST}")
    return value


def _list(value, name):
    if not isinstance(value, list) or not value:
        raise Wrong(f"{name} must be a list with at least one entry, but is {json.dumps(value)}")
    return value


def _seconds(value, where):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise Wrong(f"{where}epoch_seconds must be numbers above 0, but has {json.dumps(value)}")
    return float(value)


def parse(text):
    """A Table from JSON with the names of its first six fields."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Wrong(f"is not JSON; a table of epochs looks like {EXAMPLE} ({error})") from None
    _require(document, "the table", ["source", "images", "batch_per_rank", "cores_per_node", "nodes", "columns"])
    nodes = [_whole(one, "nodes") for one in _list(document["nodes"], "nodes")]
    for before, one in zip(nodes, nodes[1:]):
        if one <= before:
            raise Wrong(f"nodes must ascend, but {one} follows {before}")
    columns = []
    for number, entry in enumerate(_list(document["columns"], "columns"), 1):
        _require(entry, f"column {number}", ["name", "ranks_per_node", "epoch_seconds"])
        name, where = str(entry["name"]), f"column {number}: "
        seconds = [_seconds(one, where) for one in _list(entry["epoch_seconds"], where + "epoch_seconds")]
        if len(seconds) != len(nodes):
            raise Wrong(f"column '{name}': epoch_seconds has {len(seconds)} entries, but nodes has {len(nodes)}")
        if name in [column.name for column in columns]:
            raise Wrong(f"two columns are called '{name}'")
        columns.append(Column(name, _whole(entry["ranks_per_node"], where + "ranks_per_node"), tuple(seconds)))
    counts = [_whole(document[key], key) for key in ("images", "batch_per_rank", "cores_per_node")]
    return Table(str(document["source"]), *counts, nodes, columns)


# ---- The results of a sweep.

def is_sweep(path):
    """Whether `path` is the directory of a sweep's results, or a table.csv."""
    return path.endswith(".csv") or os.path.isdir(path)


def _number(text, kind=int):
    try:
        return kind(text)
    except ValueError:
        return 0


def _points(lines):
    """Returns (series, nodes, ranks, threads, items per second) of the rows with a speed that belong to a scaling."""
    for line in lines:
        nodes, ranks = _number(line["nodes"]), _number(line["ranks"])
        threads, speed = _number(line["threads"]), _number(line["items_per_second_median"], float)
        if line["oversubscribed"] == "yes" or not 1 <= nodes <= ranks <= 1 << 20 or not 0 < speed < 1e15:
            continue
        parts = [line["setting"], line["mapping"], threads and f"{threads} thread{'s' if threads > 1 else ''}"]
        yield [part for part in parts if part], nodes, ranks, max(threads, 1), speed


def parse_sweep(text, items_per_epoch=0, batch_per_rank=0, world_batch=0):
    """Returns a Table from a sweep's table.csv, with a column for each setting, mapping, number of threads and ranks
    per node. Leaves out rows that failed or are oversubscribed, series with fewer than three numbers of nodes, and
    numbers of nodes that not all series have."""
    reader = csv.DictReader(text.splitlines())
    titles = ["setting", "mapping", "nodes", "ranks", "threads", "oversubscribed", "items_per_second_median",
              "epoch_seconds"]
    missing = [title for title in titles if title not in (reader.fieldnames or [])]
    if missing:
        raise Wrong(f"lacks the columns {', '.join(missing)}; name the directory of a sweep, or its table.csv, which "
                    "scaling_sweep report writes again")
    lines = list(reader)
    for number, line in enumerate(lines, 2):
        if None in line or None in line.values():
            raise Wrong(f"line {number} does not have as many cells as there are columns")
    if bool(batch_per_rank) == bool(world_batch):
        raise Wrong("does not have the batch size: give --batch-per-rank, or --world-batch if the batch of all ranks "
                    "is constant")
    points, series, cores = list(_points(lines)), {}, 1
    several = any(nodes > 1 for _, nodes, *_ in points)
    for parts, nodes, ranks, threads, speed in points:
        per_node = ranks // nodes if several else 1
        parts += [f"{per_node} rank{'s' if per_node > 1 else ''} per node"] if several else []
        key = ", ".join(parts) or "measured", per_node
        series.setdefault(key, {})[nodes if several else ranks] = threads, speed
    series = {key: rows for key, rows in series.items() if len(rows) >= FEWEST_POINTS}
    common = sorted(set.intersection(*map(set, series.values()))) if series else []
    if len(common) < FEWEST_POINTS:
        raise Wrong(f"has fewer than {FEWEST_POINTS} numbers of nodes (or of ranks, on one node) of the same setting, "
                    "mapping and threads per rank; measure more of them with fixed threads (scaling_sweep run "
                    "--threads 1, or threads: 1 in a spec file)")
    implied = [_number(line["epoch_seconds"], float) * _number(line["items_per_second_median"], float)
               for line in lines]
    items = items_per_epoch or next((round(one) for one in implied if 1 <= one < 1e9), 0)
    if not items:
        raise Wrong("does not have the number of items per epoch; give --items-per-epoch, or items_per_epoch in the "
                    "sweep's spec file")
    columns = []
    for (name, per_node), rows in sorted(series.items()):
        cores = max([cores, *(per_node * rows[count][0] for count in common)])
        columns.append(Column(name, per_node, tuple(items / rows[count][1] for count in common)))
    return Table("scaling_sweep", items, batch_per_rank or 1, cores, common, columns, world_batch, not several, False)


def read(path, **facts):
    """Reads a table of either kind. `facts` are those of parse_sweep(). Errors contain the file's name."""
    file = os.path.join(path, "table.csv") if os.path.isdir(path) else path
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError):
        raise Wrong(f"{file}: cannot be read; " + ("scaling_sweep report DIR writes it" if is_sweep(path) else
                                                   f"name a file such as {EXAMPLE}")) from None
    try:
        return parse_sweep(text, **facts) if is_sweep(path) else parse(text)
    except Wrong as error:
        raise Wrong(f"{file}: {error}") from None
