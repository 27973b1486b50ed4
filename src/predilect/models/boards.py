"""Estimator methods that make boards and give utilities."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from predilect._types import FloatArray
from predilect.data import Vocabulary, build_frame
from predilect.decisions.ranking import Board, board_columns, rank_utilities, refuse_unsound
from predilect.errors import DataWarning
from predilect.gaussian.posterior import Posterior, Utilities, centre


class Ranking(ABC):
    """Base of estimators: boards and utilities from their posterior."""

    kept_posterior: ClassVar[Any] = None  # class of :meth:`Posterior.restricted`'s result, where there is one

    posterior_: Posterior
    items_: Vocabulary
    users_: Vocabulary | None
    personal_: bool
    added_users_: dict[Any, int]
    n_by_item_: FloatArray
    backend_: str
    report_: dict[str, Any]
    random_state: int

    @abstractmethod
    def _answers_of(self, user: int) -> FloatArray:
        """Number of answers of one person on each item; shape (n_items,)."""

    @abstractmethod
    def answers_of_people(self, start: int, stop: int) -> FloatArray:
        """Number of answers on each item by people ``start`` to before ``stop``; shape (stop - start, n_items)."""

    @abstractmethod
    def stored_arrays(self) -> dict[str, Any]:
        """Arrays that are saved of the posterior, and of the answers behind it."""

    def _now(self) -> Self:
        """Snapshot of the model, whatever other threads do."""
        check_is_fitted(self, "posterior_")
        return copy.copy(self)

    def _user_code(self, user: Any) -> int:
        if user is None or self.users_ is None:
            return -1
        code = self.added_users_.get(self.users_.own(user), -1)
        return code if code >= 0 else int(self.users_.codes([user], what="user")[0])

    def _user_or_unseen(self, user: Any) -> int:
        """Code of a person; -1, with a warning, of somebody without answers in this model."""
        if self.users_ is None or self.added_users_.get(self.users_.own(user), -1) >= 0:
            return self._user_code(user)
        code = int(self.users_.codes([user], unknown="minus_one", what="user")[0])
        if code < 0:
            warnings.warn(
                f"{user!r:.100} is someone without answers in this model: the utilities are those of an unseen user",
                DataWarning, stacklevel=3,
            )  # fmt: skip
        return code

    def rank(self, user: Any = None) -> Any:
        """The board of the crowd, or of one person, best first.

        Parameters
        ----------
        user : id, optional
            A person; by default the consensus, in which every person has an equal voice (pooled: every answer).

        Returns
        -------
        board : data frame of the caller's kind
            Columns item, mean, sd, lower, upper (utility centred over the items, in units of the noise of one answer;
            95 % interval), rank, rank_low, rank_high (95 % interval of the rank), p_best, tier, n (answers).
        """
        now = self._now()
        if user is None:
            return now._frame(now._board(now.posterior_.crowd()), now.n_answers_by_item())
        return now._frame(now._board(now.posterior_.person(now._user_code(user))), now.n_answers_by_item(user))

    def utilities(self, user: Any = None) -> Any:
        """Utilities of the crowd, or of one person: the frame of :meth:`rank`, in the order of :attr:`items_`.

        Parameters
        ----------
        user : id, optional
            A person; by default the crowd. A name that the model has no answers of is an unseen user, drawn from the
            population distribution; it comes with a warning.
        """
        if user is None:
            return self.consensus()
        now = self._now()
        code = now._user_or_unseen(user)
        is_unseen = code < 0 and now.personal_
        n = np.zeros(len(now.items_)) if is_unseen else now.n_answers_by_item(user)
        return now._frame(now._board(now.posterior_.person(code)).by_item(), n)

    def consensus(self) -> Any:
        """The crowd's utilities: the frame of :meth:`rank`, in the order of :attr:`items_`."""
        now = self._now()
        return now._frame(now._board(now.posterior_.crowd()).by_item(), now.n_by_item_)

    def utility_distribution(self, user: Any = None) -> tuple[FloatArray, FloatArray]:
        """Joint posterior of the utilities of the crowd, or of one person, centred, over :attr:`items_`.

        Parameters
        ----------
        user : id, optional
            As in :meth:`utilities`.

        Returns
        -------
        mean, covariance : arrays of float, shapes (n_items,) and (n_items, n_items)
        """
        if user is None:
            return self.consensus_distribution()
        now = self._now()
        return _centred(*now.posterior_.utilities(now._user_or_unseen(user)))

    def consensus_distribution(self) -> tuple[FloatArray, FloatArray]:
        """Joint posterior of the consensus, centred; shapes as :meth:`utility_distribution`."""
        now = self._now()
        return _centred(*now.posterior_.consensus())

    @abstractmethod
    def describe(self) -> list[str]:
        """What was learned, in sentences."""

    def further_tables(self) -> dict[str, Callable[[], Any]]:
        """Tables that ``predilect rank --out`` writes beside the board: by name, what makes the frame."""
        return {}

    def further_plots(self) -> dict[str, Callable[[list[Path]], Any]]:
        """Plots that ``predilect rank --out`` writes beside that of the board: by name, what draws it into files."""
        return {}

    def _board(self, utilities: Utilities) -> Board:
        return rank_utilities(utilities, random_state=self.random_state)

    def _frame(self, board: Board, n_answers: FloatArray) -> Any:
        return build_frame(board_columns(board, self.items_, n_answers), self.backend_)

    def n_answers_by_item(self, user: Any = None) -> FloatArray:
        """Number of answers on each item, of the crowd or of one person; shape (n_items,)."""
        now = self._now()
        if user is None or not now.personal_:
            return now.n_by_item_.copy()
        return now._answers_of(now._user_code(user))


def _centred(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, covariance = centre(mean, covariance)
    refuse_unsound(mean, np.diagonal(covariance))
    return mean, covariance
