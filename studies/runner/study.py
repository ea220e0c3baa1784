"""Studies. The module studies/publications/NAME.py defines STUDY = Study(name="NAME", ...)."""

import dataclasses
import importlib.util
import pathlib
from typing import Callable

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent / "publications"


@dataclasses.dataclass(frozen=True)
class Machine:
    """The machine of a published study. It is compared with this machine to choose the scale."""
    cores: int
    numa_nodes: int
    processor: str
    architecture: str = "x86_64"


@dataclasses.dataclass(frozen=True)
class Study:
    """A published experiment, and how to repeat it.

    `run(bench, page)` measures with a Bench and adds the results to a Page. It runs the same
    experiment at every scale; only the numbers that `bench.pick(...)` chooses differ. Texts are
    Markdown of one or more paragraphs. They are read again whenever a page is written, so they can
    be corrected without a new measurement.
    """
    name: str
    title: str
    citation: str    # author, title, where, year
    machine: Machine
    experiment: str  # what was run: model, input, batch, ranks, threads, settings, what is timed
    run: Callable
    programs: tuple = ()  # programs of the build that it needs
    differs: tuple = ()   # sentences: what differs from the published experiment, at every scale
    differs_small: tuple = ()  # what else differs at other scales than the published one
    notes: str = ""       # facts that no run gives; links are relative to studies/results
    data: str = ""        # which real files --data may have, and their source


class Wrong(Exception):
    """A study, a flag or a file is wrong. str() says what is wrong and what to do."""


def load(directory=DIRECTORY):
    """Returns all studies of a directory by name, sorted by name."""
    found = {}
    for file in sorted(pathlib.Path(directory).glob("*.py")):
        spec = importlib.util.spec_from_file_location("study_" + file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        study = getattr(module, "STUDY", None)
        if not isinstance(study, Study) or study.name != file.stem:
            raise Wrong(f"{file.name} needs STUDY = Study(name=\"{file.stem}\", ...)")
        found[study.name] = study
    return found
