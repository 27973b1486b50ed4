"""Plots of a fitted model on Matplotlib axes (the extra ``plots``), for PNG, PDF and SVG: ``model.plot.board()``.

>>> from predilect import Population
>>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
>>> model = Population().fit(answers, [1, 1, -1])
>>> axes = model.plot.board(top=10, title="Drinks", size=(5.0, 2.0))
>>> axes.get_title(loc="left")
'Drinks'
>>> axes.figure.savefig("board.pdf")  # doctest: +SKIP

Every function also takes ``ax``, axes to draw on, or makes a figure of ``size`` (width and height in inches), puts a
``title`` above it, and gives the axes back. There is one for each chart of a report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any

from predilect.show.charts.chart import Chart
from predilect.show.charts.on_axes import draw, size_of
from predilect.show.charts.pictures import OF_A_MODEL


def _drawn(make: Callable[..., Chart]) -> Callable[..., Any]:
    """What makes a chart, as what draws it."""

    @wraps(make)
    def plot(*of: Any, title: str = "", ax: Any = None, size: tuple[float, float] | None = None, **which: Any) -> Any:
        chart = make(*of, **which)
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(figsize=size or size_of(chart), layout="constrained")[1]
        return draw(chart, ax, title)

    own = [
        one for one in signature(plot, follow_wrapped=False).parameters.values() if one.kind is Parameter.KEYWORD_ONLY
    ]
    taken = signature(make)
    plot.__signature__ = taken.replace(  # type: ignore[attr-defined]
        parameters=[*taken.parameters.values(), *own], return_annotation=Any
    )
    plot.__module__ = __name__
    return plot


globals().update({name: _drawn(make) for name, make in OF_A_MODEL.items()})
__all__ = list(OF_A_MODEL)


class Plots:
    """The plots of one model, each a function above without its first argument."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in __all__:
            raise AttributeError(f"there is no plot {name!r}; there are {', '.join(__all__)}")
        return partial(globals()[name], self._model)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


def __getattr__(name: str) -> Callable[..., Any]:
    """What type checkers take the functions above for."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
