"""Axes in own units, figures and files for plots of trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._plots import can_plot
from predilect._text import one_line, shortened
from predilect.models.gaspk.questions import limits
from predilect.models.gaspk.tradeoffs.steps import Step

FloatArray = npt.NDArray[np.float64]

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
