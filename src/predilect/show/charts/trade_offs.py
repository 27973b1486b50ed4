"""Charts of trade-offs between attributes: characteristics of a fitted ``GaSPK``, and lines of indifference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.text import one_line
from predilect._base.types import FloatArray
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.inference.likelihoods.special import Z_95
from predilect.show.charts.chart import Chart, Field, Panels, Plane, Series
from predilect.show.charts.on_axes import can_plot, figure_of, write_figure

CELLS = 41
_SHOWN = 0.98  # share of the answers whose trade-offs the axes hold


class PlotAxis(NamedTuple):
    """One attribute along an axis."""

    step: Any
    values: FloatArray

    @property
    def label(self) -> str:
        """Name and unit; of categories their column."""
        return f"change of {one_line(self.step.label if self.step.is_number else self.step.source)}"

    @property
    def ends(self) -> tuple[float, float]:
        """What the axis reaches from and to."""
        return (float(self.values[0]), float(self.values[-1])) if self.step.is_number else (-1.5, 1.5)

    @property
    def names(self) -> dict[float, str] | None:
        """Names of places, of categories."""
        if self.step.is_number:
            return None
        gained, _, lost = self.step.label.partition(" instead of ")
        first, last = (one_line(name.split("=", 1)[-1]) for name in (lost or "without", gained))
        return {-1.0: first, 0.0: "same", 1.0: last}


def require_matplotlib() -> None:
    """Raise ImportError, with what to do, where Matplotlib is not installed."""
    if not can_plot():
        raise ImportError('plots need Matplotlib: pip install "predilect[plots]"')


def reach(model: Any, step: Any, n: int) -> FloatArray:
    """Values along an axis that holds 98 % of the answers."""
    if not step.is_number:
        return np.array([-1.0, 0.0, 1.0])
    low, high = model._limits()[step.dimension.label]
    size, weight = np.abs(in_units(model)[step.dimension.label]), weights_of_points(model)
    order = np.argsort(size)
    share = np.cumsum(weight[order]) / max(weight.sum(), 1e-300)
    most = float(size[order][min(int(np.searchsorted(share, _SHOWN)), len(size) - 1)])
    most = most if most > 0.0 else float(size.max())
    return np.linspace(max(low, -most), min(high, most), n)


def in_units(model: Any) -> dict[str, FloatArray]:
    """The trade-offs that were answered about, in own units: label -> column."""
    found: dict[str, FloatArray] = model.trade_offs_.in_units(model._choices.points)
    return found


def weights_of_points(model: Any) -> FloatArray:
    """Answers about each of the trade-offs."""
    return np.bincount(model.answers_.point, model.answers_.weight, len(model._choices.points)).astype(np.float64)


def finished(chart: Chart, title: str, path: str | Path | Sequence[Path] | None) -> Any:
    """The figure of a chart, written to files if any are named."""
    figure = figure_of(chart, title)
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
        As :meth:`predilect.GaSPK.indifference` takes them; ``attribute`` a number.
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
    one, two = model.trade_offs_.step(attribute), model.trade_offs_.step(against)
    if not one.is_number:
        raise DataError(f'"{one.label}" is a category, which is no axis; indifference() gives its numbers.')
    across, up = PlotAxis(one, reach(model, one, CELLS)), PlotAxis(two, reach(model, two, CELLS))
    curve = _table(model.indifference(one.label, two.label, across.values.tolist(), user, other=other))
    names = list(curve)[-5:]
    grid = {one.label: np.tile(across.values, len(up.values)), two.label: np.repeat(up.values, len(across.values))}
    fixed: dict[str, Any] = {}
    for name, value in (other or {}).items():
        fixed[name] = np.full(len(grid[one.label]), float(value))
    chances = _table(model.accept({**grid, **fixed}, user))["p_accept"].reshape(len(up.values), -1)

    low, high = 2 * up.values[0] - up.values[-1], 2 * up.values[-1] - up.values[0]
    middle, lower, upper = (np.clip(curve[name], low, high) for name in names[1:4])
    middle = np.where(np.isinf(curve[names[1]]), np.nan, middle)
    said = "probability of accepting" if user is not None else "share expected to accept"
    line = Series("", across.values.tolist(), middle.tolist(), (), lower.tolist(), upper.tolist(), line=True)
    field = Field(across.values, up.values, chances, 0.0, 1.0, said)
    plane = Plane(
        [line, *_own_answers(model, one, two, user)], across.ends, up.ends, field=field, names=(None, up.names)
    )
    who = "The average of the people" if user is None else one_line(user)
    title = f"{who}: indifferent along the line (95 % band)"
    sentence = f"Shades are the {said} over changes of two attributes; along the line accepting is as likely as not."
    return finished(Chart(plane, title, sentence, (across.label, up.label)), title, path)


def _own_answers(model: Any, one: Any, two: Any, user: Any) -> list[Series]:
    """Trade-offs that a person accepted, and that they rejected."""
    if user is None:
        return []
    answers, columns = model.answers_, in_units(model)
    mine = answers.user == model._user_code(user)
    across, up = (columns[step.dimension.label][answers.point[mine]] for step in (one, two))
    found = []
    for sign, name in ((1, "accepted"), (-1, "rejected")):
        some = answers.outcome[mine] == sign
        x, y = across[some].tolist(), up[some].tolist()
        found.append(Series(name, x, y, [name] * len(x)))
    return found


def _table(frame: Any) -> dict[str, npt.NDArray[Any]]:
    """Columns of a frame of any kind."""
    table, _ = open_frame(frame)
    return {name: series.to_numpy() for name, series in to_columns(table, column_names(table)).items()}


_MOST_ROWS = 5
_MOST_DOTS = 1500
_PANELS = ("evaluation", "standard deviation", "probability of accepting")
_UNITS = ("units of the noise of one answer", "units of the noise of one answer", "probability")


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
    return finished(characteristics(model, x, y, which), "", path)


def characteristics(
    model: Any, x: str | None = None, y: str | None = None, which: Sequence[int] | None = None
) -> Chart:
    """Three panels for each characteristic; see :func:`plot_characteristics`."""
    posterior = model.posterior_
    weight = posterior.gamma.mean(axis=0)
    shown = _rows(which, weight)
    one, two = _axes(model, x, y)
    largest = np.bincount(posterior.gamma.argmax(axis=1), minlength=len(weight))
    heights = np.zeros(1) if two is None else two.values
    t = np.array([
        a * one.step.direction + (0.0 if two is None else b * two.step.direction) for b in heights for a in one.values
    ]).reshape(-1, len(one.step.direction))  # fmt: skip
    found = posterior.at(t)
    shape = (len(heights), len(one.values))
    mean = found.mean.T.reshape(-1, *shape)[shown]
    sd = np.sqrt(np.maximum(np.einsum("qcc->cq", found.covariance), 0.0)).reshape(-1, *shape)[shown]
    chance = outcome_probabilities(mean.ravel(), (sd**2).ravel(), model.tie_threshold_)[:, 0].reshape(mean.shape)
    widest = float((np.abs(mean) + (Z_95 * sd if two is None else 0.0)).max()) or 1.0
    reaches = ((-widest, widest), (0.0, float(sd.max()) or 1.0), (0.0, 1.0))
    dots = [] if two is None else [_dots(model, one.step, two.step)]
    rows = []
    for row, c in enumerate(shown):
        sentence = f"\n{100 * weight[c]:.0f} % of weight\nlargest for {largest[c]}" if len(posterior.gamma) > 1 else ""
        beside = (f"characteristic {c + 1}{sentence}", "", "" if two is None else two.label)
        panels = []
        for column, values in enumerate((mean[row], sd[row], chance[row])):
            if two is None:
                line = Series("", one.values.tolist(), values[0].tolist(), (), line=True)
                if column == 0:
                    band = Z_95 * sd[row, 0]
                    line = line._replace(lower=(values[0] - band).tolist(), upper=(values[0] + band).tolist())
                plane = Plane([line], one.ends, reaches[column], names=(one.names, None))
            else:
                field = Field(
                    one.values, two.values, values, *reaches[column], _UNITS[column], column != 1,
                    None if column == 1 else mean[row],
                )  # fmt: skip
                names = (one.names, two.names)
                plane = Plane(dots if column == 1 else [], one.ends, two.ends, field=field, names=names)
            under = one.label if row == len(shown) - 1 else ""
            panels.append(Chart(plane, _PANELS[column], _PANELS[column], (under, beside[column])))
        rows.append(panels)
    sentence = (
        "A row for each characteristic: its evaluation of a change, the standard deviation of that, and acceptance."
    )
    return Chart(Panels(rows), "Characteristics", sentence)


def _rows(which: Sequence[int] | None, weight: FloatArray) -> list[int]:
    """Characteristics to draw, counted from 0."""
    if which is None:
        return [int(c) for c in np.lexsort((np.arange(len(weight)), -weight))[:_MOST_ROWS]]
    rows = [int(number) - 1 for number in which]
    if not rows or min(rows) < 0 or max(rows) >= len(weight):
        raise DataError(f"there are characteristics 1 to {len(weight)}, and {list(which)} were asked for.")
    return rows


def _axes(model: Any, x: str | None, y: str | None) -> tuple[PlotAxis, PlotAxis | None]:
    trade_offs = model.trade_offs_
    chosen = [trade_offs.step(name) for name in (x, y) if name]
    if trade_offs.items_are_attributes:
        trade_offs.step("")  # says why not
    if len(chosen) < 2 and y != "":
        steps = trade_offs.steps()
        importance = _importance(model, steps)
        order = sorted(range(len(steps)), key=lambda k: (not steps[k].is_number, -importance[k]))
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
    axes = [PlotAxis(step, reach(model, step, CELLS)) for step in chosen]
    return axes[0], axes[1] if len(axes) > 1 else None


def _importance(model: Any, steps: Sequence[Any]) -> FloatArray:
    """Root mean square over people of the evaluation of a typical step."""
    t = np.array([model._typical_size(step) * step.direction for step in steps])
    values = model.posterior_.at(t).mean @ model.posterior_.gamma.T
    return np.asarray(np.sqrt(np.square(values).mean(axis=1)))


def _dots(model: Any, one: Any, two: Any) -> Series:
    """Answered trade-offs along two attributes, the most answered first; both ways round where that is one."""
    columns, weight = in_units(model), weights_of_points(model)
    some = np.argsort(-weight, kind="stable")[:_MOST_DOTS]
    across, up = (columns[step.dimension.label][some].tolist() for step in (one, two))
    if model._settings.antisymmetric:
        across, up = across + [-value for value in across], up + [-value for value in up]
    return Series("", across, up, [""] * len(across))
