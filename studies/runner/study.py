"""What a study is, and where studies are found: studies/publications/NAME.py has STUDY = Study(name="NAME", ...)."""

import dataclasses
import importlib.util
import pathlib
from typing import Callable

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "publications"


@dataclasses.dataclass(frozen=True)
class Machine:
    """The one that a study was published for. Its figures are compared with this machine's to choose
    the scale."""
    cores: int
    numa_nodes: int
    processor: str
    architecture: str = "x86_64"


@dataclasses.dataclass(frozen=True)
class Study:
    """A published experiment, and how to repeat it.

    `run(bench, page)` measures with a Bench and tells what it found to a Page. It runs the same
    experiment at every scale; only the numbers that `bench.pick(...)` chooses differ. Texts are
    Markdown of one or more paragraphs, and are read anew whenever a page is written, so that
    they can be mended without measuring again.
    """
    name: str
    title: str
    citation: str    # author, title, where, year
    machine: Machine
    experiment: str  # what was done: model, input, batch, ranks, threads, settings, what is timed
    run: Callable
    programs: tuple = ()  # of the build, which have to be there
    differs: tuple = ()   # sentences: what differs from the published experiment, at every scale
    differs_small: tuple = ()  # what more of it differs where it is not at the published scale
    notes: str = ""       # knowledge that no run gives; links go from studies/results
    data: str = ""        # which real files --data may hold, and where they are from


class Wrong(Exception):
    """A study, a flag or a file is wrong; str() says which and what to do."""


def load(folder=FOLDER):
    """All studies of a folder, by name, in the order of their names."""
    found = {}
    for file in sorted(pathlib.Path(folder).glob("*.py")):
        spec = importlib.util.spec_from_file_location("study_" + file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        study = getattr(module, "STUDY", None)
        if not isinstance(study, Study) or study.name != file.stem:
            raise Wrong(f"{file.name} needs STUDY = Study(name=\"{file.stem}\", ...)")
        found[study.name] = study
    return found
