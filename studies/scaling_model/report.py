"""Writes fits and predictions as text and as JSON."""

import dataclasses
import textwrap

from studies.scaling_model.fit import PARAMETERS

WIDTH = 110
TEXTS = ("column", "system", "choices", "fitted")  # left-aligned columns; numbers are right-aligned


def table(titles, rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *rows)]

    def line(cells):
        return "  ".join(cell.ljust(width) if title in TEXTS else cell.rjust(width)
                         for title, cell, width in zip(titles, cells, widths)).rstrip()
    return "\n".join([line(titles), "-" * (sum(widths) + 2 * len(widths) - 2), *map(line, rows)]) + "\n"


def wrapped(text, indent=""):
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent),
                         break_on_hyphens=False) + "\n"


def percent(share):
    return f"{100 * share:.1f}"


def joined(numbers):
    return ", ".join(map(str, numbers))


def value_of(fit, name):
    return getattr(fit.model, PARAMETERS[name].field)


def cores_worth(table_of, fits, fit):
    """Returns how many cores a rank of several on a node is worth, at the speed of a core of the same set-up
    ("Fujitsu" of "Fujitsu/4") with one rank per node. None: this is that column, or it was not fitted."""
    set_up = fit.column.name.partition("/")[0]
    alone = next((one for one in fits if one.column.ranks_per_node == 1
                  and one.column.name.partition("/")[0] == set_up), None)
    if fit.column.ranks_per_node == 1 or alone is None:
        return None
    return table_of.cores_per_node * alone.model.image_ms / fit.model.image_ms


def beyond_text(fit):
    return ", ".join(f"{one.factor:g} times {percent(one.max_error)} %" for one in fit.beyond) or "-"


def reach_text(factor, error):
    if factor == 0:
        return "nothing was fitted"
    where = ("within the fitted rows" if factor <= 1
             else f"{factor:.3g} times beyond the fitted rows")
    if error is None:
        return f"{where}; nothing was measured so far away"
    return f"{where}; measured errors are at most {percent(error)} %"


# ---- Published times.

def efficiencies(measured):
    """Returns speed-up and strong efficiency T1/(N TN) of each time. The table's first number of nodes is 1."""
    rows = [[column.name, nodes, f"{seconds:.5g}", f"{column.epoch_seconds[0] / seconds:.2f}",
             f"{100 * column.epoch_seconds[0] / (nodes * seconds):.2f} %"]
            for column in measured.columns for nodes, seconds in zip(measured.nodes, column.epoch_seconds)]
    return wrapped(measured.source) + "\n" + table(
        ["column", "nodes", "epoch s", "speed-up", "efficiency: T1/(N*TN)"], rows)


# ---- Fits.

def fit_text(measured, fits, fit_nodes, subsets, bound):
    """`subsets`: the results of errors_of_subsets() by column, or nothing."""
    batch = (f"{measured.world_batch} of all ranks" if measured.world_batch else f"{measured.batch_per_rank} per rank")
    parts = [wrapped(
        f"Strong scaling: an epoch of {measured.images} images, up to {batch} and step. "
        + ("Nodes are ranks of one node. " if measured.ranks_stand_for_nodes else "")
        + f"Fitted to the rows of {joined(fit_nodes)} nodes; errors are those of the other rows. Cores' worth: the "
        "speed of one of several ranks on a node, in cores of a rank that is alone on its node. In brackets: not "
        "fitted.")]
    rows = []
    for fit in fits:
        cores = cores_worth(measured, fits, fit)
        rows.append([fit.column.name, fit.column.ranks_per_node, *(
            f"{value_of(fit, name):.4g}" if name in fit.parameters else f"({value_of(fit, name):g})"
            for name in PARAMETERS), "-" if cores is None else f"{cores:.1f}",
            percent(fit.median_error), percent(fit.max_error)])
    parts.append(table(["column", "ranks per node", *PARAMETERS, "cores' worth", "median error %", "maximum %"], rows))
    parts.append(table(["column", "nodes", "fitted", "measured s", "predicted s", "error %"], [
        [fit.column.name, point.nodes, "*" if point.fitted else "", f"{point.measured:.2f}", f"{point.predicted:.2f}",
         f"{100 * point.error:+.1f}"] for fit in fits for point in fit.points]))
    rows = [[fit.column.name, f"{one.factor:g}", percent(one.max_error)] for fit in fits for one in fit.beyond]
    if rows:
        parts.append("Largest errors on more nodes of fits to the first rows only (three or more):\n\n"
                     + table(["column", "times as many nodes", "error %"], rows))
    rows = []
    for name, (every, complete) in subsets.items():
        for kind, one in (("all", every), ("that determine all parameters", complete)):
            if kind == "all" or one.choices < every.choices:
                rows.append([name, kind, one.choices, percent(one.median_of_medians), percent(one.worst_median),
                             percent(one.median_of_maxima), percent(one.worst_maximum), one.medians_within])
    if rows:
        parts.append(f"All choices of {len(fit_nodes)} rows to fit, errors of the other rows in %, and the number of "
                     f"medians within {100 * bound:.0f} %:\n\n" + table(
                         ["column", "choices", "number", "median of medians", "worst median", "median of maxima",
                          "worst maximum", "medians within"], rows))
    return "\n".join(parts)


def _how_tested(fit):
    return {"points": [{"nodes": point.nodes, "measured_seconds": point.measured, "predicted_seconds": point.predicted,
                        "error": point.error, "fitted": point.fitted} for point in fit.points],
            "held_out_median_error": fit.median_error if fit.points else 0,
            "held_out_max_error": fit.max_error if fit.points else 0,
            "beyond": [{"times_as_many_nodes": one.factor, "max_error": one.max_error, "rows": one.rows}
                       for one in fit.beyond]}


def _subsets_json(one):
    return {"choices": one.choices, "median_of_median_errors": one.median_of_medians,
            "worst_median_error": one.worst_median, "median_of_maximum_errors": one.median_of_maxima,
            "worst_maximum_error": one.worst_maximum, "medians_within_bound": one.medians_within}


def fit_json(measured, model, fits, fit_nodes, subsets, bound):
    columns = []
    for fit in fits:
        column = {**_how_tested(fit), "name": fit.column.name, "ranks_per_node": fit.column.ranks_per_node,
                  "parameters": {name: {"value": value_of(fit, name), "fitted": name in fit.parameters}
                                 for name in PARAMETERS}}
        cores = cores_worth(measured, fits, fit)
        if cores is not None:
            column["cores_worth_of_a_rank"] = cores
        if subsets:
            every, complete = subsets[fit.column.name]
            column["all_choices_of_rows"] = {**_subsets_json(every), "rows": len(fit_nodes), "bound": bound,
                                             "that_tell_all_parameters": _subsets_json(complete)}
        columns.append(column)
    return {"source": measured.source, "scaling": "strong", "images": measured.images,
            "batch_per_rank": measured.batch_per_rank, "fit_nodes": fit_nodes, "gradients": model.gradients.name,
            "gradient_bytes": model.gradients.bytes, "overlap": model.overlap, "cycle_ms": model.cycle_ms,
            "fusion_bytes": model.fusion_bytes, "last_batch": model.last_batch, "columns": columns}


# ---- Predictions: for each column its fit, assumptions and predictions.

@dataclasses.dataclass(frozen=True)
class ColumnPrediction:
    fit: object
    assumptions: dict
    predictions: list


TITLES = {"both": "Assumptions about both systems", "horovod": "Assumptions about Horovod",
          "hvdlite": "Assumptions about hvdlite, first with equal settings",
          "added": "Features added one after the other (--add)"}


def predictions_text(measured, columns):
    parts = []
    for column in columns:
        fit = column.fit
        parts.append(f"## {fit.column.name}\n")
        parts += [TITLES[kind] + ":\n" + "".join(wrapped(line, "- ") for line in lines)
                  for kind, lines in column.assumptions.items() if lines]
        parts.append(wrapped(
            f"Strong scaling: an epoch of {measured.images} images; then weak scaling: a step of "
            f"{measured.batch_per_rank} images per node, even if the data set has fewer. x: times as fast as "
            "Horovod; efficiencies refer to one node of the same system."))
        parts.append(table(
            ["nodes", "system", "ranks", "steps", "epoch s", "x", "speed-up", "efficiency %", "exposed %"],
            [[one.nodes, one.system, one.ranks, one.epoch.steps, f"{one.epoch.seconds:.3g}", f"{one.epoch_gain:.2f}",
              f"{one.speedup:.1f}", percent(one.efficiency), percent(one.epoch.exposed_seconds / one.epoch.seconds)]
             for one in column.predictions]))
        parts.append(table(
            ["nodes", "system", "ranks", "step ms", "x", "efficiency %", "exposed %"],
            [[one.nodes, one.system, one.ranks, f"{1e3 * one.full_step.step:.1f}", f"{one.step_gain:.2f}",
              percent(one.weak_efficiency), percent(one.full_step.exposed / one.full_step.step)]
             for one in column.predictions]))
        if fit.points:
            nodes = list(dict.fromkeys(one.nodes for one in column.predictions))
            parts.append(wrapped(
                f"Tests of these numbers: the model was fitted to the rows of {joined(fit.nodes(True))} nodes. Its "
                f"errors on the other measured rows, {joined(fit.nodes(False))} nodes, are "
                f"{percent(fit.median_error)} % (median) and {percent(fit.max_error)} % (maximum). Largest errors on "
                f"more nodes of fits to fewer rows: {beyond_text(fit)}. All of this is about Horovod; hvdlite "
                "was not measured there.")
                + "".join(wrapped(reach_text(*fit.reach(count)), f"- {count} node{'s' if count > 1 else ''}: ")
                          for count in nodes))
    return "\n".join(parts)


def predictions_json(measured, columns):
    def entry(fit, one):
        factor, error = fit.reach(one.nodes)
        return {"system": one.system, "nodes": one.nodes, "ranks": one.ranks, "simulated_ranks": one.simulated_ranks,
                "times_beyond_fitted": factor, "largest_error_measured_so_far_away": error,
                "strong_scaling": {
                    "steps": one.epoch.steps, "epoch_seconds": one.epoch.seconds,
                    "times_as_fast_as_horovod": one.epoch_gain, "speedup": one.speedup, "efficiency": one.efficiency,
                    "exposed_share": one.epoch.exposed_seconds / one.epoch.seconds},
                "weak_scaling": {
                    "step_seconds": one.full_step.step, "times_as_fast_as_horovod": one.step_gain,
                    "computation_seconds": one.full_step.computation,
                    "communication_seconds": one.full_step.communication, "buckets": one.full_step.buckets,
                    "efficiency": one.weak_efficiency, "exposed_share": one.full_step.exposed / one.full_step.step}}
    return {"source": measured.source, "images": measured.images, "images_per_node_and_step": measured.batch_per_rank,
            "columns": [{"name": column.fit.column.name, "assumptions": column.assumptions,
                         "fit": _how_tested(column.fit),
                         "predictions": [entry(column.fit, one) for one in column.predictions]} for column in columns]}
