"""Paths of the model and the published table, for tests."""

import functools
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
DIRECTORY = os.path.join(ROOT, "studies", "scaling_model")
TABLE = os.path.join(DIRECTORY, "a64fx_resnet50_cifar10.json")
sys.dont_write_bytecode = True
sys.path.insert(0, ROOT)
from studies.scaling_model import fit as fits, tables  # noqa: E402
from studies.scaling_model.training import Model  # noqa: E402

PARAMETERS = ["image-ms", "starved-share", "software-ns-per-byte"]
MODEL = Model(first_batch_share=1 / 3)


@functools.cache
def published():
    return tables.read(TABLE)


@functools.cache
def published_fit(fit_nodes, column, beyond=False):
    """Returns the fit of a column (by number) to the rows of these nodes."""
    table = published()
    return (fits.fit_column if beyond else fits.fit_rows)(table, table.columns[column], MODEL, PARAMETERS,
                                                          list(fit_nodes))
