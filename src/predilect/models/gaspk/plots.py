"""Axes in own units, figures and files for plots of trade-offs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._plots import can_plot
from predilect._text import one_line, shortened
from predilect._types import FloatArray
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError
from predilect.models.gaspk.boundaries import indifference
from predilect.models.gaspk.outputs import accept
from predilect.models.gaspk.questions import codes_of, limits
from predilect.models.gaspk.tradeoffs.map import Step, step_of

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
        if self.step.is_number:
            axis.set_major_locator(_locator(5))
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


def new_figure(n_rows: int, maps: bool, width: float = 8.0, height: float | None = None) -> Any:
    """A figure of rows of panels that opens no window; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tall = (0.9 if maps else 0.7) + 1.75 * n_rows if height is None else height
    figure = Figure(figsize=(width, tall), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


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


def _locator(n: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(n)


def finished(figure: Any, path: str | Path | Sequence[Path] | None) -> Any:
    """The figure, written to files if any are named; the same figure gives the same bytes."""
    from matplotlib import rc_context

    paths = [] if path is None else [path] if isinstance(path, str | Path) else path
    for file in map(Path, paths):
        with rc_context({"svg.hashsalt": "predilect", "svg.fonttype": "none"}):
            figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
        figure.set_layout_engine("none")  # the first drawing has arranged everything
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

    figure = new_figure(1, True, width=5.4, height=4.4)
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
