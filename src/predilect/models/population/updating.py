"""``update`` and ``forget``: the methods of a model that takes answers after the fit."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy.typing as npt

from predilect._base.estimator import check_is_fitted
from predilect.data import Comparisons
from predilect.models.estimator import Turn
from predilect.models.population.batches import AnswerLog, read_batch
from predilect.models.reading import Said


def _said(columns: Said = None, reading: Said = None, **other: Any) -> tuple[Said, Said]:
    """Columns of a frame, and how they are read; TypeError for another argument."""
    if other:
        raise TypeError(
            f"update() has no argument {next(iter(other))}: one answer is user=, left=, right= and winner= or "
            "outcome=, whatever the columns of the fit were called. A data frame may have these columns"
        )
    return columns, reading


class Updating:
    """Base of estimators that take answers after the fit."""

    _log: AnswerLog
    _turn: Turn
    personal_: bool
    n_answers_: float
    report_: dict[str, Any]

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
        people: Any = None,
        items: Any = None,
        **read: Said,
    ) -> Self:
        """Add answers, and items, without a refit.

        The utilities of the people who answered are updated at once, with the population as it was fitted, and the
        crowd's board, which newcomers begin from, moves by one Newton step of the fit. How people differ, thresholds,
        effects and the calibration stay until a refit, ``fit`` on all answers; :attr:`needs_refit_` says when.

        Parameters
        ----------
        more : Comparisons or data frame, optional
            As :meth:`fit` takes them. Rows about an item that the model does not know, and ties in a model that holds
            them impossible, are left out, with a warning and in ``left_out_``; after an error nothing is taken in.
            Covariates of the model that they lack are equal on both sides, as those of an answer given by name.
        y : array of int, shape (n,), optional
            Outcomes of the rows of a frame.
        user, left, right : id, optional
            One answer instead of a frame, within microseconds: who, and the two items.
        outcome : {1, 0, -1} or a grade, optional
            Of that one answer: left is better, a tie, right is better; of a model with grades their number, from 1 for
            the slightest, negative where right is better.
        winner : id or "tie", optional
            Instead of ``outcome``: the better item, or the word tie; nothing is said of the grade then.
        weight : float, default 1
            How many identical answers the one stands for.
        people : data frame, optional
            Features of new people, if the model uses them; without them a new person is taken for an average one.
        items : list of ids or data frame, optional
            Items that join, perhaps with their features: those that the model knows already count for nothing. Without
            features an item is taken for one of the kind of the others. Not of the pooled model.
        columns, reading : dict, optional
            As of :meth:`fit`, of a frame.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If an item of the one answer is not known, or a tie is impossible in this model, or anything is missing.
            Nothing is changed.
        DataWarning
            If rows were left out.

        Notes
        -----
        population.md section 4, "Update": expectation propagation of the people touched, run to convergence. So the
        result is that of a person with all these answers, in whatever order they came; the same answer twice is one of
        weight 2. Where rows of a task are one answer, it comes, or goes, as a whole. O(n_u min(n_u, k_u)²) for a person
        with n_u answers on k_u items, however many answers the model holds; the pooled model O(pairs with answers +
        n_items³). The board's step is computed when it is asked for, O(answers of the people touched + n_items³): sums
        over people, which do not depend on the order of answers.

        Threads may share a model: of ``update``, ``forget`` and ``_consolidate`` one runs at a time; predictions,
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
        answer = {"user": user, "left": left, "right": right, "outcome": outcome, "winner": winner}
        self._change(1, more, y, weight, answer, _said(**read), people, items)
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
        columns: Said = None,
        reading: Said = None,
    ) -> Self:
        """Remove answers, as if they had never been given, or all that is known of a person.

        The fitted population is held fixed. With ``user`` alone the person is erased: the answers, the id, the
        features and all that was found out about the person are gone, from the model and from what it saves; a saved
        folder, a table or a page that was written before has to be written anew. Predictions for the id are then those
        for somebody unknown, and for everybody else they are the same to the bit. The crowd's board is without them.
        What the answers had told of the population stays until the next :meth:`fit`: the consensus that others' own
        boards begin from, how people differ, effects of features and covariates, thresholds, the prior, the
        calibration, and how features are scaled. None of it has a part for this person alone; in a crowd of a few, it
        can still tell of one. Whoever came by :meth:`update` has told the population nothing.

        Of answers: somebody who has the answers of the fit (or of ``_consolidate``) again is as before to the bit;
        otherwise utilities agree to the tolerance of the iteration, some 1e-10, since it goes on from where it stands.
        Boards come back as they were, with tied items in the order of the ids. Someone whose last answer is removed
        stays known, with the population's prediction.

        Parameters
        ----------
        answers, y, user, left, right, outcome, winner, weight, columns, reading
            As in :meth:`update`. Each must be held, with at least its weight, whichever item was on the left. ``user``
            alone: erase this person.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If one of them is not held, or was taken back already; the message names the first. If there is no such
            person, or nobody else. Nothing is changed.
        DataWarning
            If the model is pooled and was loaded: it holds who is in it, and the answers, but not who gave which. The
            id is gone then, and the answers are not.

        Notes
        -----
        The pooled model holds answers, and not who gave them. To erase takes O(answers), as ``_consolidate``, after
        which codes of people are others.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> model.forget(user="bob").users_
        Vocabulary(2 ids: "ann", "cas")
        """
        from predilect.models.population.erasure import erase

        answer = {"user": user, "left": left, "right": right, "outcome": outcome, "winner": winner}
        rest = (answers, y, left, right, outcome, winner, columns, reading)
        if user is None or weight != 1.0 or any(value is not None for value in rest):
            self._change(-1, answers, y, weight, answer, (columns, reading))
            return self
        check_is_fitted(self)
        with self._turn:
            erase(self, user)
        return self

    def _consolidate(self) -> Self:
        """Merge changed and new people into one layout and into ``users_``.

        Predictions do not change; codes of people (positions in ``users_``) do if there are new ones. It runs by itself
        before saving, and when more than a few percent of the people changed. O(answers).
        """
        from predilect.models.population.updates import consolidate

        check_is_fitted(self)
        with self._turn:
            consolidate(self)
        return self

    @property
    def n_fitted_(self) -> float:
        """Number of answers that the population was fitted to; 0: it is the prior."""
        since = self.report_.get("updates", {})
        came, went = since.get("answers_added", 0.0), since.get("answers_taken_back", 0.0)
        return max(self.n_answers_ - came + went, 0.0)

    @property
    def needs_refit_(self) -> str | None:
        """Why a refit, ``fit`` on all answers, is due; None if it is not.

        The board moves with updates by one Newton step, and how people differ, thresholds and the calibration stay:
        that is good for small changes. A refit is due after a tenth as many answers as the fit had (after the prior: 10
        answers of two people), when an item moved by more than its standard deviation, after a first tie, and when
        there are answers on items that joined.
        """
        from predilect.models.population.refits import reason_to_refit

        check_is_fitted(self)
        return reason_to_refit(copy.copy(self))

    @property
    def comparisons_(self) -> Comparisons | None:
        """The answers; None after :meth:`load`. New pairs have no task."""
        return self._log.comparisons

    def _change(
        self, sign: int, more: Any, y: Any, weight: float, answer: dict[str, Any], said: tuple[Said, Said],
        people: Any = None, items: Any = None,
    ) -> None:  # fmt: skip
        from predilect.models.population.new_items import joining, with_new_items
        from predilect.models.population.updates import change

        check_is_fitted(self)
        with self._turn:
            new = [] if items is None else joining(self, items)
            now = copy.copy(self) if new else self
            if new:
                vars(now).update(with_new_items(self, new, items))
            if items is None or more is not None or any(value is not None for value in answer.values()):
                batch = read_batch(now, more, y, said, weight=weight, may_add=sign > 0, **answer)
                change(now, batch, sign, people)
            if new:
                vars(self).update(vars(now))

    def _snapshot(self) -> Self:
        """Snapshot of the model with everybody in one layout."""
        return copy.copy(self._consolidate())._consolidate()
