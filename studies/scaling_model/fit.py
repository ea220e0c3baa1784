"""Fits a Model to some rows of a table of epochs, predicts the others, and computes the errors."""

import dataclasses
import functools
import itertools
import signal
import statistics
from concurrent import futures

import numpy
from scipy import optimize

from studies.scaling_model.tables import Column
from studies.scaling_model.training import Model, Wrong, horovod_epoch


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A positive parameter, searched on a logarithmic scale."""
    field: str    # of a Model
    start: float
    lower: float  # means 0
    upper: float


PARAMETERS = {
    "image-ms": Parameter("image_ms", 10, 1e-6, 1e6),
    "starved-share": Parameter("starved_share", 0.1, 1e-4, 0.95),
    "software-ns-per-byte": Parameter("software_ns_per_byte", 1, 1e-4, 1e4),
    "first-batch-share": Parameter("first_batch_share", 0.3, 1e-4, 1e3),
    "jitter": Parameter("jitter", 0.01, 1e-6, 10),
}
FEWEST_ROWS_TO_EXTRAPOLATE = 3
FEWEST_ROWS_FOR_EVERY_OTHER = 6


@dataclasses.dataclass(frozen=True)
class Point:
    nodes: int
    measured: float   # seconds of an epoch
    predicted: float
    fitted: bool

    @property
    def error(self):
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1


@dataclasses.dataclass(frozen=True)
class Beyond:
    """Errors of fits on `factor` times the nodes that they were fitted to."""
    factor: float
    max_error: float
    rows: int


@dataclasses.dataclass(frozen=True)
class Fit:
    column: Column
    parameters: tuple  # names of the fitted parameters
    model: Model       # with the fitted parameters
    points: tuple = ()
    # Fits to the first three rows, the first four, ..., tested on the later rows. Factors ascend.
    beyond: tuple = ()

    def _errors(self):
        return [abs(point.error) for point in self.points if not point.fitted]

    @property
    def median_error(self):
        """Median magnitude of the errors of the rows that were not fitted."""
        return statistics.median(self._errors())

    @property
    def max_error(self):
        return max(self._errors())

    def nodes(self, fitted):
        return [point.nodes for point in self.points if point.fitted == fitted]

    def reach(self, nodes):
        """Returns (factor, error). factor: `nodes` divided by the most nodes that were fitted; 0: nothing was fitted.
        error: the largest error found at least as far away or, within the fitted range, of the rows that were not
        fitted; None: nothing was measured."""
        if not self.nodes(True):
            return 0.0, None
        most = max(self.nodes(True))
        if nodes <= most:
            errors = [abs(point.error) for point in self.points if not point.fitted and point.nodes <= most]
            return nodes / most, max(errors, default=None)
        return nodes / most, next((one.max_error for one in self.beyond if one.factor >= nodes / most), None)


def default_fit_nodes(table):
    """Returns every other row except the last; of fewer than six rows all except the last."""
    return table.nodes[:-1:1 if len(table.nodes) < FEWEST_ROWS_FOR_EVERY_OTHER else 2]


def _check_nodes(table, fit_nodes):
    if len(table.nodes) < 2:
        raise Wrong(f"the table has a single row, of {table.nodes[0]} node{'s' if table.nodes[0] > 1 else ''}; "
                    "a fit takes two or more: at least one to fit, and one to predict")
    for nodes in fit_nodes:
        if nodes not in table.nodes:
            raise Wrong(f"fit nodes: the table has no row for {nodes} nodes; it has {', '.join(map(str, table.nodes))}")
        if fit_nodes.count(nodes) > 1:
            raise Wrong(f"fit nodes: {nodes} is named twice")
    if not fit_nodes:
        raise Wrong("fit nodes: give at least one")
    if len(fit_nodes) == len(table.nodes):
        raise Wrong("fit nodes: all rows are fitted, and none remains to predict; leave some out")


def _choose_parameters(column, names, fit_nodes):
    """Returns at most one parameter per row, in order. If every row has several ranks, starved-share is left out,
    since it cannot be distinguished from image-ms."""
    for name in names:
        if name not in PARAMETERS:
            raise Wrong(f"parameters: unknown '{name}'; known are {', '.join(PARAMETERS)}")
        if names.count(name) > 1:
            raise Wrong(f"parameters: '{name}' is named twice")
    several_ranks = column.ranks_per_node * min(fit_nodes) > 1
    return tuple(name for name in names if name != "starved-share" or not several_ranks)[:len(fit_nodes)]


def _search(parameters, residuals):
    """Returns the values of the parameters with the smallest sum of squares of residuals(values)."""
    lower, upper, start = (numpy.log([getattr(PARAMETERS[name], key) for name in parameters])
                           for key in ("lower", "upper", "start"))

    def at(point):
        return numpy.array(residuals(numpy.exp(numpy.clip(point, lower, upper))))

    def slopes(point):
        # Horovod's cycles make small steps in the times, so differences must be larger.
        edge, here = 0.01, at(point)
        return numpy.stack([(at(point + edge * unit) - here) / edge for unit in numpy.eye(len(point))], axis=1)

    def squares(point):
        return float(numpy.sum(at(point) ** 2))

    if parameters[0] == "image-ms":  # start with times of the right size
        start[0] -= numpy.mean(at(start))
    best = optimize.least_squares(at, numpy.clip(start, lower + 1e-6, upper - 1e-6), slopes, (lower, upper),
                                  xtol=1e-3, ftol=1e-4, max_nfev=20).x
    for edge in (1.0, 0.1):  # crosses the small steps, and leaves points without a slope
        simplex = best + edge * numpy.vstack([numpy.zeros(len(best)), -numpy.eye(len(best))])
        best = optimize.minimize(squares, best, method="Nelder-Mead", options={
            "initial_simplex": simplex, "xatol": 1e-5, "fatol": 1e-9, "maxiter": 300}).x
    return numpy.exp(numpy.clip(best, lower, upper))


def fit_rows(table, column, model, parameters, fit_nodes):
    """Fits the logarithms of the column's times at `fit_nodes` by least squares. `model` has the values of the
    parameters that are not fitted."""
    _check_nodes(table, fit_nodes)
    parameters = _choose_parameters(column, list(parameters), fit_nodes)
    model = dataclasses.replace(model, ranks_per_node=column.ranks_per_node)
    measured = dict(zip(table.nodes, column.epoch_seconds))

    def seconds(own, nodes):
        ranks = nodes * column.ranks_per_node
        return horovod_epoch(own, table.images, table.batch_of_rank(ranks), ranks).seconds

    def model_with(values):
        return dataclasses.replace(model, **{PARAMETERS[name].field: float(value)
                                             for name, value in zip(parameters, values)})

    def residuals(values):
        own = model_with(values)
        return [numpy.log(seconds(own, nodes) / measured[nodes]) for nodes in fit_nodes]

    if parameters:
        model = model_with(_search(parameters, residuals))
    return Fit(column, parameters, model, tuple(
        Point(nodes, measured[nodes], seconds(model, nodes), nodes in fit_nodes) for nodes in table.nodes))


def fit_column(table, column, model, parameters, fit_nodes):
    """The same, with the errors beyond the fitted rows."""
    fit, found = fit_rows(table, column, model, parameters, fit_nodes), {}
    for rows in range(FEWEST_ROWS_TO_EXTRAPOLATE, len(table.nodes)):
        first = table.nodes[:rows]
        for point in fit_rows(table, column, model, parameters, first).points[rows:]:
            found.setdefault(point.nodes / first[-1], []).append(abs(point.error))
    return dataclasses.replace(fit, beyond=tuple(
        Beyond(factor, max(errors), len(errors)) for factor, errors in sorted(found.items())))


@dataclasses.dataclass(frozen=True)
class Subsets:
    """Medians and maxima of the other rows' errors over several choices of rows to fit."""
    choices: int
    median_of_medians: float
    worst_median: float
    median_of_maxima: float
    worst_maximum: float
    medians_within: int  # number of medians within the bound


def _summary(fits, bound):
    medians, maxima = [fit.median_error for fit in fits], [fit.max_error for fit in fits]
    return Subsets(len(fits), statistics.median(medians), max(medians), statistics.median(maxima), max(maxima),
                   sum(one <= bound for one in medians))


def errors_of_subsets(table, column, model, parameters, size, bound, on_fit=lambda: None):
    """Returns Subsets of (all choices of `size` rows, the choices that determine every parameter)."""
    if not 1 <= size < len(table.nodes):
        raise Wrong(f"subsets must have 1 to {len(table.nodes) - 1} rows, but have {size}")
    fits, fit = [], functools.partial(fit_rows, table, column, model, parameters)
    with futures.ProcessPoolExecutor(initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        for found in pool.map(fit, map(list, itertools.combinations(table.nodes, size))):
            fits.append(found)
            on_fit()
    most = max(len(fit.parameters) for fit in fits)
    return _summary(fits, bound), _summary([fit for fit in fits if len(fit.parameters) == most], bound)
