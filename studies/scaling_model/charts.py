"""Charts of fits and predictions, as SVG."""

import io

import matplotlib
from matplotlib.figure import Figure

# Told apart by colour-blind people, too (Okabe and Ito, 2008).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
STYLE = {"svg.hashsalt": "scaling_model", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10,
         "axes.titleweight": "bold", "axes.edgecolor": "#888888", "axes.spines.top": False, "axes.spines.right": False,
         "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True, "legend.frameon": False,
         "axes.prop_cycle": matplotlib.cycler(color=COLOURS)}
PER_ROW = 2


def _svg(panels):
    """`panels`: (title, x label, y label, whether y is logarithmic, [(name, x, y, line style)])."""
    with matplotlib.rc_context(STYLE):
        rows = -(-len(panels) // PER_ROW)
        across = min(PER_ROW, len(panels))
        figure = Figure(figsize=(5.2 * across, 3.6 * rows), layout="constrained")
        for axes, (title, x_label, y_label, log_y, curves) in zip(
                figure.subplots(rows, across, squeeze=False).flat, panels):
            ticks = sorted({one for _, x, _, _ in curves for one in x})
            for name, x, y, style in curves:
                axes.plot(x, y, style, label=name, markersize=4)
            axes.set(title=title, xlabel=x_label, ylabel=y_label, xscale="log", yscale="log" if log_y else "linear")
            if not log_y:
                axes.set_ylim(bottom=0)
            axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter("{x:g}")
            axes.legend(fontsize=8)
        for axes in figure.axes[len(panels):]:
            axes.remove()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()


def _measured(fit):
    return "measured", [one.nodes for one in fit.points], [one.measured for one in fit.points], "o"


def fit_svg(measured, fits):
    """Each column's epochs, measured and by the model."""
    label = "ranks" if measured.ranks_stand_for_nodes else "nodes"
    return _svg([(fit.column.name, label, "s per epoch", True, [
        _measured(fit), ("model", [one.nodes for one in fit.points], [one.predicted for one in fit.points], "--")])
        for fit in fits])


def predictions_svg(columns):
    """Of each column an epoch, and the efficiency of a step where every node has its batch, over nodes."""
    panels = []
    for column in columns:
        def curves(value, predictions=column.predictions):
            by_system = {}
            for one in predictions:
                by_system.setdefault(one.system, []).append((one.nodes, value(one)))
            return [(name, *zip(*points), "-") for name, points in by_system.items()]

        name = column.fit.column.name
        panels.append((f"{name}: an epoch, strong scaling", "nodes", "s per epoch", True,
                       ([_measured(column.fit)] if column.fit.points else [])
                       + curves(lambda one: one.epoch.seconds)))
        panels.append((f"{name}: a step, weak scaling", "nodes", "efficiency, %", False,
                       curves(lambda one: 100 * one.weak_efficiency)))
    return _svg(panels)
