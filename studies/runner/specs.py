"""Spec files of published sweeps, with other numbers for other scales."""

import pathlib

from studies.runner.study import Wrong

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/scaling_sweep/specs"


def changed(name, changes):
    """Returns the text of a spec file with all `changes`. Each old text must occur exactly once."""
    text = (DIRECTORY / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        if text.count(old) != 1:
            raise Wrong(f"{name} does not have '{old}' exactly once; fix the study that changes it, too")
        text = text.replace(old, new)
    return text
