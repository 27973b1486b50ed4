"""Estimator methods that add and remove answers after the fit."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from predilect.data import Comparisons
from predilect.models.batches import read_batch
from predilect.models.remembering import Memory
from predilect.models.turn import Turn
from predilect.models.updating import change, consolidate

__all__ = ["Updating"]


class Updating:
    """Base of estimators that take answers after the fit."""

    memory_: Memory
    turn_: Turn
    personal_: bool

    def update(
        self,
        more: Any = None,
        y: npt.ArrayLike | None = None,
        *,
        user: Any = None,
        left: Any = None,
        right: Any = None,
        outcome: int | None = None,
        winner: Any = None,
        weight: float = 1.0,
        users: Any = None,
    ) -> Self:
        """Add answers, with the fitted population held fixed.

        The utilities of the people who answered are updated at once. The consensus and the population covariance move
        only at a refit, ``fit`` on all answers; the pooled model's one utility function does move.

        Parameters
        ----------
        more : Comparisons or data frame, optional
            As :meth:`fit` takes them. All are taken in or, after an error, none.
        y : array of int, shape (n,), optional
            Outcomes of the rows of a frame.
        user, left, right : id, optional
            One answer instead of a frame, within microseconds: who, and the two items.
        outcome : {1, 0, -1}, optional
            Of that one answer: left is better, a tie, right is better.
        winner : id or "tie", optional
            Instead of ``outcome``: the better item, or the word tie.
        weight : float, default 1
            How many identical answers the one stands for.
        users : data frame, optional
            Features of new people, if the model uses them; without them a new person is taken for an average one.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If an item is not known, a tie is impossible in this model, or anything is missing. Nothing is changed.

        Notes
        -----
        population.md section 4, "Update": expectation propagation of the people touched, run to convergence. So the
        result is that of a person with all these answers, in whatever order they came; the same answer twice is one of
        weight 2. Tasks make no difference. O(n_u min(n_u, k_u)²) for a person with n_u answers on k_u items, however
        many answers the model holds; the pooled model O(pairs with answers + n_items³).

        Threads may share a model: of ``update``, ``forget`` and ``consolidate`` one runs at a time; predictions,
        boards, questions and ``verdict`` wait for none, ``save`` only before it begins, and all see the model as it was
        when they began. ``fit`` must not run beside any of them.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> model.update(user="dan", left="milk", right="juice", outcome=1).n_answers_
        4.0
        >>> model.forget(user="dan", left="milk", right="juice", outcome=1).n_answers_
        3.0
        """
        self._change(1, more, y, user, left, right, outcome, winner, weight, users)
        return self

    def forget(
        self,
        answers: Any = None,
        y: npt.ArrayLike | None = None,
        *,
        user: Any = None,
        left: Any = None,
        right: Any = None,
        outcome: int | None = None,
        winner: Any = None,
        weight: float = 1.0,
    ) -> Self:
        """Remove answers, as if they had never been given, with the fitted population held fixed.

        Somebody who has the answers of the fit (or of :meth:`consolidate`) again is as before to the bit; otherwise
        utilities agree to the tolerance of the iteration, some 1e-10, since it goes on from where it stands. Boards
        come back as they were, with tied items in the order of the ids. Someone whose last answer is removed stays
        known, with the population's prediction.

        Parameters
        ----------
        answers, y, user, left, right, outcome, winner, weight
            As in :meth:`update`. Each must be held, with at least its weight, whichever item was on the left.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If one of them is not held, or was taken back already; the message names the first. Nothing is changed.

        Notes
        -----
        The pooled model holds answers, and not who gave them.
        """
        self._change(-1, answers, y, user, left, right, outcome, winner, weight, None)
        return self

    def consolidate(self) -> Self:
        """Merge changed and new people into one layout and into ``users_``.

        Predictions do not change; codes of people (positions in ``users_``) do if there are new ones. It runs by itself
        before saving, and when more than a few percent of the people changed. O(answers).
        """
        check_is_fitted(self, "posterior_")
        with self.turn_:
            consolidate(self)
        return self

    @property
    def comparisons_(self) -> Comparisons | None:
        """The answers; None after :meth:`load`. New ones have no task."""
        return self.memory_.comparisons

    def _change(
        self,
        sign: int,
        more: Any,
        y: npt.ArrayLike | None,
        user: Any,
        left: Any,
        right: Any,
        outcome: int | None,
        winner: Any,
        weight: float,
        users: Any,
    ) -> None:
        if "posterior_" not in vars(self):  # scikit-learn's own check takes as long as the update
            check_is_fitted(self, "posterior_")
        with self.turn_:
            batch = read_batch(
                self, more, y, user=user, left=left, right=right, outcome=outcome, winner=winner, weight=weight,
                may_add=sign > 0,
            )  # fmt: skip
            change(self, batch, sign, users)

    def _at_rest(self) -> Self:
        """Snapshot of the model with everybody in one layout."""
        return copy.copy(self.consolidate()).consolidate()
