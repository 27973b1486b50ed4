"""Drawing of figures into files, and whether it can be done."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def can_plot() -> bool:
    """Whether Matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> Any:
    """A figure that opens no window; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_figure(figure: Any, paths: Iterable[Path]) -> None:
    """Write a figure into files, by their suffix; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "predilect", "svg.fonttype": "none"}):
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
            figure.set_layout_engine("none")  # the first drawing has arranged everything
