"""Plots of the characteristics and trade-offs of a fitted ``GaSPK``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._text import one_line, shortened
from predilect._types import FloatArray
from predilect.charts.on_axes import can_plot, new_figure, write_figure
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError
from predilect.likelihoods.probit import outcome_probabilities
from predilect.likelihoods.special import Z_95
from predilect.models.gaspk.boundaries import indifference
from predilect.models.gaspk.outputs import accept
from predilect.models.gaspk.parameters import resolve
from predilect.models.gaspk.questions import codes_of, limits, typical_size
from predilect.models.gaspk.tradeoffs.map import Step, step_of, steps_of

CELLS = 41
_SHOWN = 0.98  # share of the answers whose trade-offs the axes hold


class Axis(NamedTuple):
    """One attribute along an axis."""

    step: Step
    values: FloatArray

    @property
    def label(self) -> str:
        """Name and unit; of categories their column."""
        return one_line(self.step.label if self.step.is_number else self.step.source)

    def decorate(self, axis: Any) -> None:
        """Ticks and limits; of categories in words."""
        from matplotlib.ticker import MaxNLocator

        if self.step.is_number:
            axis.set_major_locator(MaxNLocator(5))
            return
        gained, _, lost = self.step.label.partition(" instead of ")
        names = [shortened(one_line(name.split("=", 1)[-1]), 12) for name in (lost or "without", gained)]
        axis.set_ticks([-1.0, 0.0, 1.0], [names[0], "same", names[1]])


def require_matplotlib() -> None:
    """Raise ImportError, with what to do, where Matplotlib is not installed."""
    if not can_plot():
        raise ImportError('plots need Matplotlib: pip install "predilect[plots]"')


def reach(model: Any, step: Step, n: int) -> FloatArray:
    """Values along an axis that holds 98 % of the answers."""
    if not step.is_number:
        return np.array([-1.0, 0.0, 1.0])
    low, high = limits(model)[step.dimension.label]
    size, weight = np.abs(in_units(model)[step.dimension.label]), weights_of_points(model)
    order = np.argsort(size)
    share = np.cumsum(weight[order]) / max(weight.sum(), 1e-300)
    most = float(size[order][min(int(np.searchsorted(share, _SHOWN)), len(size) - 1)])
    most = most if most > 0.0 else float(size.max())
    return np.linspace(max(low, -most), min(high, most), n)


def in_units(model: Any) -> dict[str, FloatArray]:
    """The trade-offs that were answered about, in own units: label -> column."""
    found: dict[str, FloatArray] = model.trade_offs_.in_units(model.choices_.points)
    return found


def weights_of_points(model: Any) -> FloatArray:
    """Answers about each of the trade-offs."""
    return np.bincount(model.answers_.point, model.answers_.weight, len(model.choices_.points)).astype(np.float64)


def colour_bar(figure: Any, mesh: Any, panels: Any, label: str, location: str = "right") -> None:
    """A scale of the colours of a mesh beside or below panels."""
    bar = figure.colorbar(mesh, ax=panels, location=location, shrink=0.9, aspect=30, pad=0.02)
    bar.set_label(label, fontsize=8.5)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_linewidth(0.5)


def style(panel: Any) -> None:
    """Thin lines and small figures."""
    panel.tick_params(labelsize=8, length=2.5, width=0.6)
    for spine in panel.spines.values():
        spine.set_linewidth(0.6)


def finished(figure: Any, path: str | Path | Sequence[Path] | None) -> Any:
    """The figure, written to files if any are named."""
    write_figure(figure, map(Path, [] if path is None else [path] if isinstance(path, str | Path) else path))
    return figure


def plot_indifference(
    model: Any,
    attribute: str,
    against: str,
    user: Any = None,
    *,
    other: Mapping[str, float] | None = None,
    path: str | Path | None = None,
) -> Any:
    """Plot the indifference curve of a person, or by default of the average of the people, and acceptance.

    Parameters
    ----------
    model, attribute, against, user, other
        As :func:`predilect.models.gaspk.boundaries.indifference` takes them; ``attribute`` a number.
    path : str or Path, optional
        File to write.

    Returns
    -------
    figure : matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without Matplotlib.
    DataError
        If an attribute or person is not known, or ``attribute`` is a category.

    Notes
    -----
    Colours are the probability of accepting; the line is where the mean evaluation is 0, with its 95 % band. A person's
    own answers are dots: full where the trade-off was accepted. Other attributes that they changed are not shown.
    """
    require_matplotlib()
    one, two = step_of(model.trade_offs_, attribute), step_of(model.trade_offs_, against)
    if not one.is_number:
        raise DataError(f'"{one.label}" is a category, which is no axis; indifference() gives its numbers.')
    across, up = Axis(one, reach(model, one, CELLS)), Axis(two, reach(model, two, CELLS))
    curve = _table(indifference(model, one.label, two.label, across.values.tolist(), user, other=other))
    names = list(curve)[-5:]
    grid = {one.label: np.tile(across.values, len(up.values)), two.label: np.repeat(up.values, len(across.values))}
    fixed: dict[str, Any] = {}
    for name, value in (other or {}).items():
        fixed[name] = np.full(len(grid[one.label]), float(value))
    chances = _table(accept(model, {**grid, **fixed}, user))["p_left"].reshape(len(up.values), -1)

    figure = new_figure(5.4, 4.4)
    panel = figure.subplots()
    norm = {"vmin": 0.0, "vmax": 1.0}
    mesh = panel.pcolormesh(across.values, up.values, chances, cmap="PuOr", shading="gouraud", rasterized=True, **norm)
    colour_bar(figure, mesh, panel, "probability of accepting" if user is not None else "share expected to accept")
    low, high = 2 * up.values[0] - up.values[-1], 2 * up.values[-1] - up.values[0]
    middle, lower, upper = (np.clip(curve[name], low, high) for name in names[1:4])
    panel.fill_between(across.values, lower, upper, color="black", alpha=0.12, linewidth=0)
    for bound in (lower, upper):
        panel.plot(across.values, bound, color="black", linewidth=0.8, linestyle="--")
    middle = np.where(np.isinf(curve[names[1]]), np.nan, middle)
    panel.plot(across.values, middle, color="black", linewidth=1.8)
    _own_answers(model, panel, one, two, user)
    panel.set_xlim(across.values[0], across.values[-1])
    panel.set_ylim(up.values[0], up.values[-1])
    panel.set_xlabel(f"change of {across.label}", fontsize=9)
    panel.set_ylabel(f"change of {up.label}", fontsize=9)
    who = "The average of the people" if user is None else one_line(user)
    panel.set_title(f"{who}: indifferent along the line (95 % band)", fontsize=9.5, loc="left", parse_math=False)
    style(panel)
    return finished(figure, path)


def _own_answers(model: Any, panel: Any, one: Step, two: Step, user: Any) -> None:
    who = codes_of(model, user)
    if who is None:
        return
    answers, columns = model.answers_, in_units(model)
    mine = answers.user == int(who[0][0])
    across, up = (columns[step.dimension.label][answers.point[mine]] for step in (one, two))
    outcome = answers.outcome[mine]
    for sign, face, edge in ((1, "black", "white"), (-1, "white", "black")):
        some = outcome == sign
        panel.scatter(
            across[some], up[some], s=20, c=face, edgecolors=edge, linewidths=0.7, zorder=4,
            label="accepted" if sign > 0 else "rejected",
        )  # fmt: skip
    panel.legend(fontsize=8, loc="upper right", framealpha=0.9)


def _table(frame: Any) -> dict[str, npt.NDArray[Any]]:
    """Columns of a frame of any kind."""
    table, _ = open_frame(frame)
    return {name: series.to_numpy() for name, series in to_columns(table, column_names(table)).items()}


_MOST_ROWS = 5
_MOST_DOTS = 1500
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
    figure = new_figure(8.0, (0.7 if two is None else 0.9) + 1.75 * len(shown))
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
                one.values, mean[k] - Z_95 * sd[k], mean[k] + Z_95 * sd[k], color=colour, alpha=0.2, linewidth=0
            )
        panel.axhline((0.0, 0.0, 0.5)[column], color="0.6", linewidth=0.8)
        panel.set_xlim(*_edges(one))
        one.decorate(panel.xaxis)
        style(panel)
    spread = (np.abs(mean) + Z_95 * sd).max() * 1.05
    low, high = ((-spread, spread), (0.0, float(sd.max()) * 1.1), (0.0, 1.0))[column]
    for panel in panels:
        panel.set_ylim(low, high)


def _edges(axis: Axis) -> tuple[float, float]:
    if axis.step.is_number:
        return float(axis.values[0]), float(axis.values[-1])
    return -1.5, 1.5
