"""Plot of an indifference curve."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._text import one_line
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError
from predilect.models.gaspk.boundaries import indifference
from predilect.models.gaspk.outputs import accept
from predilect.models.gaspk.plot_axes import (
    CELLS,
    Axis,
    colour_bar,
    finished,
    in_units,
    new_figure,
    reach,
    require_matplotlib,
    style,
)
from predilect.models.gaspk.questions import codes_of
from predilect.models.gaspk.tradeoffs.steps import Step, step_of


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
