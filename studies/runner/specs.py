"""SPECs of published sweeps, with other numbers where a scale wants them."""

import pathlib

from studies.runner.study import Wrong

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/scaling_sweep/specs"


def changed(name, changes):
    """The text of a SPEC with each of `changes` made, whose old text stands in it exactly once."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        if text.count(old) != 1:
            raise Wrong(f"{name} does not have '{old}' once; the study that changes it wants mending, too")
        text = text.replace(old, new)
    return text
