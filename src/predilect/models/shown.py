"""What people see of a fitted model: its text, its board in a notebook, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from predilect._base.arguments import check_arguments
from predilect._base.estimator import Parameters, check_is_fitted
from predilect._base.text import grouped, quoted
from predilect.decisions.scales import scale_of
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.plot import Plots

_ROWS_OF_A_NOTEBOOK = 25


class ShownEstimator(Parameters):
    """Base of estimators that show what was fitted, and unfitted their parameters."""

    def __repr__(self) -> str:
        if not hasattr(self, "posterior_"):
            return super().__repr__()
        fitted: Any = self
        counts = [(len(fitted.items_), "item", "items"), (fitted.n_answers_, "answer", "answers")]
        if fitted.personal_ and fitted.users_ is not None:
            counts.insert(0, (fitted._n_people, "person", "people"))
        words = ", ".join(f"{grouped(n)} {one if n == 1 else many}" for n, one, many in counts)
        return f"{type(self).__name__}({words})"

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the board and the verdict, once there is a board; None: the text."""
        if not hasattr(self, "posterior_"):
            return None
        from predilect.show.report.notebook import notebook

        return notebook(self, _ROWS_OF_A_NOTEBOOK)

    @property
    def plot(self) -> Plots:
        """Plots on Matplotlib axes, such as ``model.plot.board()``: those of :mod:`predilect.plot`."""
        check_is_fitted(self)
        from predilect.plot import Plots

        return Plots(self)

    def report(
        self,
        path: str | Path,
        *,
        title: str = "",
        scale: str = "probit",
        base: float | None = None,
        anchor: Any = None,
        compare: Any = None,
        name_people: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write a report of the fitted model, to be sent on: one page of HTML that asks nothing of any other place.

        The board, what it says, whether it can be trusted, how to read it, items against each other, people, segments,
        effects, what to ask next. No id of a person is in it. The verdict is, if :meth:`verdict` was asked for before.

        Parameters
        ----------
        path : str or Path
            The file, such as "board.html"; "board.md" is the same report as Markdown, with charts in words.
        title : str, optional
            Its heading.
        scale, base, anchor
            Of the scores, as ``rank`` takes them.
        compare : fitted model, optional
            An older one: what changed since, and whether it is more than chance.
        name_people : bool, default False
            Name people where a sentence is about some: those with one answer, with most answers, with much noise. Ids
            are often names or addresses: think of whom the page goes to.
        overwrite : bool, default False
            Replace a file that is there.

        Raises
        ------
        DataError
            If the file cannot be there, the scale is none, or the anchor is not known.
        """
        check_is_fitted(self)
        check_arguments(path=path, title=title, name_people=name_people, overwrite=overwrite)
        if compare is not None and not hasattr(compare, "posterior_"):
            raise DataError(f"compare must be a fitted model, an older one, not {quoted(compare)}")
        from predilect.show.report.notebook import write_report

        fitted: Any = self
        unit = scale_of(scale, fitted._likelihood.name, base, anchor)
        write_report(fitted._snapshot(), Path(path), title, unit, compare, name_people, overwrite)
