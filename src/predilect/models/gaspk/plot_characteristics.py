"""Plots of the characteristics of a fitted ``GaSPK`` over two attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predilect._types import FloatArray
from predilect.errors import DataError
from predilect.likelihoods.probit import outcome_probabilities
from predilect.models.gaspk.parameters import resolve
from predilect.models.gaspk.plots import (
    CELLS,
    Axis,
    colour_bar,
    finished,
    in_units,
    new_figure,
    reach,
    require_matplotlib,
    style,
    weights_of_points,
)
from predilect.models.gaspk.questions import typical_size
from predilect.models.gaspk.tradeoffs.map import Step, step_of, steps_of

_MOST_ROWS = 5
_MOST_DOTS = 1500
_Z_95 = 1.959963984540054
_PANELS = ("evaluation", "standard deviation", "probability of accepting")
_COLOURS = ("RdBu", "Greys", "PuOr")


def plot_characteristics(
    model: Any,
    x: str | None = None,
    y: str | None = None,
    which: Sequence[int] | None = None,
    path: str | Path | Sequence[Path] | None = None,
) -> Any:
    """Plot characteristics over two attributes: evaluation, its standard deviation, probability of accepting.

    Parameters
    ----------
    model : GaSPK
        Fitted with attributes.
    x, y : str, optional
        A number, or a change of category; by default the two about which people care most, numbers first. Other
        attributes stay the same. With one attribute in all, or ``y=""``, lines with 95 % bands.
    which : sequence of int, optional
        Numbers of characteristics as in ``segments``, in this order; by default those of the five largest mean weights.
    path : str, Path or several, optional
        Files to write, each in the format that its name ends in; the same model gives the same bytes.

    Returns
    -------
    figure : matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without Matplotlib.
    DataError
        If an attribute or characteristic is not known, or items are their own attributes.

    Notes
    -----
    The three panels of Fig. 4 of Peters et al. (2018), a row each characteristic. Dots are the trade-offs that were
    answered about, whatever else they change; axes hold 98 % of the answers. Black lines: where a person made
    of this characteristic only is indifferent.
    """
    require_matplotlib()
    posterior = model.posterior_
    weight = posterior.gamma.mean(axis=0)
    shown = _rows(which, weight)
    one, two = _axes(model, x, y)
    figure = new_figure(len(shown), two is not None)
    panels = figure.subplots(len(shown), 3, squeeze=False, sharex=True, sharey=two is not None)
    largest = np.bincount(posterior.gamma.argmax(axis=1), minlength=len(weight))
    heights = np.zeros(1) if two is None else two.values
    t = np.array([
        a * one.step.direction + (0.0 if two is None else b * two.step.direction) for b in heights for a in one.values
    ]).reshape(-1, len(one.step.direction))  # fmt: skip
    found = posterior.at(t)
    shape = (len(heights), len(one.values))
    mean = found.mean.T.reshape(-1, *shape)[shown]
    var = np.maximum(np.einsum("qcc->cq", found.covariance), 0.0).reshape(-1, *shape)[shown]
    chance = outcome_probabilities(mean.ravel(), var.ravel(), model.tie_threshold_)[:, 0].reshape(mean.shape)
    values = (mean, np.sqrt(var), chance)
    for row, c in enumerate(shown):
        left = panels[row, 0]
        many = len(posterior.gamma) > 1
        told = f"{100 * weight[c]:.0f} % of weight\nlargest for {largest[c]}" if many else ""
        left.set_ylabel(f"characteristic {c + 1}\n{told}".strip(), fontsize=8.5)
        left.yaxis.set_label_coords(-0.2, 0.5)
    dots = None if two is None else _dots(model, one.step, two.step)
    for column, (name, numbers) in enumerate(zip(_PANELS, values, strict=True)):
        if two is None:
            _lines(panels[:, column], one, mean[:, 0], np.sqrt(var[:, 0]), chance[:, 0], column)
        else:
            _maps(figure, panels[:, column], one, two, numbers, mean, dots, column)
        panels[0, column].set_title(name, fontsize=9.5, loc="left")
        panels[-1, column].set_xlabel(f"change of {one.label}", fontsize=9)
    if two is not None:
        for row in range(len(shown)):
            twin = panels[row, 2]
            twin.yaxis.set_label_position("right")
            twin.set_ylabel(f"change of {two.label}", fontsize=9)
    return finished(figure, path)


def _rows(which: Sequence[int] | None, weight: FloatArray) -> list[int]:
    """Characteristics to draw, counted from 0."""
    if which is None:
        return [int(c) for c in np.lexsort((np.arange(len(weight)), -weight))[:_MOST_ROWS]]
    rows = [int(number) - 1 for number in which]
    if not rows or min(rows) < 0 or max(rows) >= len(weight):
        raise DataError(f"there are characteristics 1 to {len(weight)}, and {list(which)} were asked for.")
    return rows


def _axes(model: Any, x: str | None, y: str | None) -> tuple[Axis, Axis | None]:
    trade_offs = model.trade_offs_
    chosen = [step_of(trade_offs, name) for name in (x, y) if name]
    if trade_offs.items_are_attributes:
        step_of(trade_offs, "")  # says why not
    if len(chosen) < 2 and y != "":
        steps = steps_of(trade_offs)
        care = _care(model, steps)
        order = sorted(range(len(steps)), key=lambda k: (not steps[k].is_number, -care[k]))
        taken = [step.source for step in chosen]
        for k in order:
            if len(chosen) < 2 and steps[k].source not in taken:
                if x is None and y is not None:
                    chosen.insert(0, steps[k])
                else:
                    chosen.append(steps[k])
                taken.append(steps[k].source)
    if len(chosen) == 2 and chosen[0].dimension.label == chosen[1].dimension.label:
        raise DataError(f'x and y are both "{chosen[0].label}"; name two.')
    axes = [Axis(step, reach(model, step, CELLS)) for step in chosen]
    return axes[0], axes[1] if len(axes) > 1 else None


def _care(model: Any, steps: Sequence[Step]) -> FloatArray:
    """Root mean square over people of the evaluation of a typical step."""
    t = np.array([typical_size(model, step) * step.direction for step in steps])
    values = model.posterior_.at(t).mean @ model.posterior_.gamma.T
    return np.asarray(np.sqrt(np.square(values).mean(axis=1)))


def _dots(model: Any, one: Step, two: Step) -> tuple[FloatArray, FloatArray]:
    """Answered trade-offs along two attributes, the most answered first; both ways round where that is one."""
    columns, weight = in_units(model), weights_of_points(model)
    some = np.argsort(-weight, kind="stable")[:_MOST_DOTS]
    across, up = columns[one.dimension.label][some], columns[two.dimension.label][some]
    if not resolve(model).antisymmetric:
        return across, up
    return np.concatenate([across, -across]), np.concatenate([up, -up])


def _maps(
    figure: Any, panels: Any, one: Axis, two: Axis, values: FloatArray, mean: FloatArray, dots: Any, column: int
) -> None:
    """One quantity of all characteristics, on one scale of colours."""
    largest = float(np.abs(values).max()) or 1.0
    low, high = ((-largest, largest), (0.0, largest), (0.0, 1.0))[column]
    both = one.step.is_number and two.step.is_number
    for panel, numbers, evaluation in zip(panels, values, mean, strict=True):
        mesh = panel.pcolormesh(
            one.values, two.values, numbers, cmap=_COLOURS[column], vmin=low, vmax=high,
            shading="gouraud" if both else "nearest", rasterized=True,
        )  # fmt: skip
        if both and column != 1 and evaluation.min() < 0.0 < evaluation.max():
            panel.contour(one.values, two.values, evaluation, levels=[0.0], colors="black", linewidths=1.1)
        if column == 1:
            many = len(dots[0]) > 300
            panel.scatter(*dots, s=2.5 if many else 7, c="tab:red", linewidths=0, alpha=0.35 if many else 0.7, zorder=3)
        panel.set_xlim(*_edges(one))
        panel.set_ylim(*_edges(two))
        one.decorate(panel.xaxis)
        two.decorate(panel.yaxis)
        style(panel)
    colour_bar(
        figure, mesh, list(panels), "units of the noise of one answer" if column < 2 else "probability", "bottom"
    )


def _lines(panels: Any, one: Axis, mean: FloatArray, sd: FloatArray, chance: FloatArray, column: int) -> None:
    values, colour = (mean, sd, chance)[column], "tab:blue"
    for k, panel in enumerate(panels):
        panel.plot(one.values, values[k], color=colour, linewidth=1.6)
        if column == 0:
            panel.fill_between(
                one.values, mean[k] - _Z_95 * sd[k], mean[k] + _Z_95 * sd[k], color=colour, alpha=0.2, linewidth=0
            )
        panel.axhline((0.0, 0.0, 0.5)[column], color="0.6", linewidth=0.8)
        panel.set_xlim(*_edges(one))
        one.decorate(panel.xaxis)
        style(panel)
    spread = (np.abs(mean) + _Z_95 * sd).max() * 1.05
    low, high = ((-spread, spread), (0.0, float(sd.max()) * 1.1), (0.0, 1.0))[column]
    for panel in panels:
        panel.set_ylim(low, high)


def _edges(axis: Axis) -> tuple[float, float]:
    if axis.step.is_number:
        return float(axis.values[0]), float(axis.values[-1])
    return -1.5, 1.5
