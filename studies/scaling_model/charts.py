"""Charts of fits and predictions, as SVG."""

from studies.runner import chart
from studies.runner.page import Page


def _measured(fit):
    return [(point.nodes, point.measured) for point in fit.points]


def fit_svg(measured, fits):
    """Draws each column's epochs, measured and predicted by the model."""
    page, label = Page(), "ranks" if measured.ranks_stand_for_nodes else "nodes"
    for fit in fits:
        page.lines(fit.column.name, label, "s per epoch", {
            "measured": _measured(fit), "model": [(point.nodes, point.predicted) for point in fit.points]},
            dashed=["model"], log_x=True, log_y=True)
    return chart.stacked(page.blocks)


def predictions_svg(columns):
    """Draws for each column the time of an epoch, and the efficiency of a step with a full batch per node."""
    page = Page()
    for column in columns:
        name, epochs, steps = column.fit.column.name, {}, {}
        if column.fit.points:
            epochs["measured"] = _measured(column.fit)
        for one in column.predictions:
            epochs.setdefault(one.system, []).append((one.nodes, one.epoch.seconds))
            steps.setdefault(one.system, []).append((one.nodes, 100 * one.weak_efficiency))
        page.lines(f"{name}: an epoch, strong scaling", "nodes", "s per epoch", epochs, log_x=True, log_y=True)
        page.lines(f"{name}: a step, weak scaling", "nodes", "efficiency, %", steps, log_x=True)
    return chart.stacked(page.blocks)
