"""What was measured as results were trained, against seconds and against steps."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from npdg.results.base import Result
from npdg.training.records import Record

LABELS = {
    "rel_l2": "relative $L^2$ error",
    "rel_h1": "relative $H^1$ error",
    "rmse": "root mean square error",
    "map_l2": "$L^2(\\rho_0)$ error of the map",
    "uvp": "$L^2$-UVP in percent",
    "sliced_w2": "sliced $W_2$ of $T_\\#\\rho_0$ and $\\rho_1$",
    "gap": "|cost − dual value|",
}


def history_figure(results: Sequence[Result]) -> Figure:
    """Errors of some results; of one without a truth to compare with, the terms of L."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    by_seconds, by_steps = figure.subplots(1, 2, sharey=True)
    for result in results:
        name = f"{result.method}, seed {result.seed}: " if len(results) > 1 else ""
        for label, records, values in _curves(result.history):
            by_seconds.loglog([r.seconds for r in records], values, marker=".", label=name + label)
            by_steps.loglog([r.step for r in records], values, marker=".", label=name + label)
    by_seconds.set_xlabel("training seconds")
    by_steps.set_xlabel("steps")
    measured = all(any(record.errors for record in result.history) for result in results)
    by_seconds.set_ylabel("error" if measured else "|term of the functional|")
    for axes in (by_seconds, by_steps):
        axes.grid(alpha=0.3, which="both")
    by_seconds.legend(fontsize=8)
    return figure


def _curves(history: Sequence[Record]) -> Iterator[tuple[str, list[Record], list[float]]]:
    """Names of curves, the records in which they were measured, and their values."""
    if any(record.errors for record in history):
        for key, label in LABELS.items():
            records = [record for record in history if key in record.errors]
            if records:
                yield label, records, [abs(record.errors[key]) for record in records]
        return
    for name in history[0].terms if history else ():
        records = [record for record in history if name in record.terms]  # a later stage may have other terms
        yield name, records, [abs(record.terms[name]) for record in records]
