"""Maps and graphs of a solution on its slices."""

from __future__ import annotations

import numpy as np

from npdg.runs.reading import Run
from npdg.runs.report.page import Chart, Curve, HeatMap, Part, Section

TRUTH = "The truth is the exact solution where it is known, or the problem's own reference, with the same time steps."


def solution_sections(run: Run) -> list[Section]:
    """Maps or graphs of the solution, and pictures that were left in the run's directory."""
    sections = []
    if run.slices is not None:
        names = tuple(f"x{_subscript(k + 1)}" for k in run.slices.axes)
        where = f"The plane of {' and '.join(names)} through the centre of the domain." if run.run["dim"] > 2 else ""
        values, errors = (_graphs(run), []) if len(names) == 1 else _maps(run, (names[0], names[1]))
        if run.slices.times is None:
            values, errors = values + errors, []
        graphs_in_time = len(names) == 1 and run.slices.times is not None and run.slices.exact is not None
        sections = [Section("Solution", values, TRUTH if graphs_in_time else where)]
        sections += [Section("Distance to the truth", errors, TRUTH)] if errors else []
    if run.pictures:
        sections.append(Section("Pictures", list(run.pictures.values())))
    return sections


def _graphs(run: Run) -> list[Part]:
    assert run.slices is not None
    slices, moments = run.slices, _moments(run)
    x = {"x": list(slices.coordinates[0])}
    exact = None if slices.exact is None else np.atleast_2d(slices.exact)
    u = np.atleast_2d(slices.u)
    curves = [Curve(f"u{moment}", x, list(values)) for moment, values in zip(moments, u, strict=True)]
    if exact is None:
        return [Chart("u", curves, log=False)]
    truths = [Curve(f"exact{moment}", x, list(values)) for moment, values in zip(moments, exact, strict=True)]
    errors = [Curve(f"error{moment}", x, list(abs(a - b))) for moment, a, b in zip(moments, u, exact, strict=True)]
    timeless = slices.times is None
    distance = f"Distance to the {'exact solution' if timeless else 'truth'}"
    return [Chart("u", curves + (truths if timeless else []), log=False), Chart(distance, errors)]


def _maps(run: Run, names: tuple[str, str]) -> tuple[list[Part], list[Part]]:
    """Maps of u, beside the exact solution where there is no time, and maps of the error."""
    assert run.slices is not None
    slices, moments = run.slices, _moments(run)
    first, second = slices.coordinates
    shape = (-1, len(first), len(second))
    u = slices.u.reshape(shape)
    exact = None if slices.exact is None else slices.exact.reshape(shape)
    low, high = _range(u if exact is None else np.stack([u, exact]))
    values: list[Part] = [HeatMap(f"u{m}", first, second, v, names, low, high) for m, v in zip(moments, u, strict=True)]
    if exact is None:
        return values, []
    if slices.times is None:
        values.append(HeatMap("exact", first, second, exact[0], names, low, high))
    known = "exact" if slices.times is None else "truth"
    errors: list[Part] = [
        HeatMap(f"|u − {known}|{moment}", first, second, error, names, 0.0, _range(error)[1], "magma")
        for moment, error in zip(moments, abs(u - exact), strict=True)
    ]
    return values, errors


def _moments(run: Run) -> list[str]:
    assert run.slices is not None
    return [""] if run.slices.times is None else [f" at t = {time:.3g}" for time in run.slices.times]


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
