"""Nested logit: alternatives of one nest are alike in what is not seen, by a dissimilarity of each nest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from predilect._base.stored import PLAIN, codes, positive
from predilect._base.text import did_you_mean, either
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.attributes import NORMAL, ItemColumns
from predilect.choice.mixed_logit.estimates import DISSIMILARITY
from predilect.choice.mixed_logit.logit import LogLikelihoods
from predilect.choice.mixed_logit.problem import Mixture
from predilect.data import ItemFeatures
from predilect.data.choices import Choices
from predilect.errors import DataError

_STEP = 1e-5  # of central differences of slopes


@dataclass(frozen=True, slots=True)
class Nests:
    """Nests of the items, the levels of an attribute, and draws of their dissimilarities λ.

    Within a nest utilities count by 1 / λ; λ = 1 is a logit.
    """

    name: Annotated[str, PLAIN]
    levels: Annotated[tuple[str, ...], PLAIN]
    of_people: Annotated[FloatArray, positive("R W")]  # λ in the draws of people
    of_crowd: Annotated[FloatArray, positive("S W")]  # and in those of somebody without answers
    of_items: Annotated[npt.NDArray[np.int32], codes("I", "W")]

    def draws(self, user: int) -> FloatArray:
        """Dissimilarities in the draws of a person, (R, N); of -1 those of somebody without answers."""
        return self.of_crowd if user < 0 else self.of_people


def nests_of(name: str, features: ItemFeatures | None, encoded: FloatArray) -> tuple[tuple[str, ...], IntArray]:
    """Nests that an attribute makes, and those of items with encoded attributes (n, F), (n,); DataError if none such.

    Items without a value are a nest of their own, the last one.
    """
    if not name:
        raise DataError(
            "a nested logit needs nests: name the attribute that says which nest an alternative is in "
            f"({either('--model nested-logit,nests=COLUMN', 'nests=COLUMN')})"
        )
    outputs = [] if features is None else list(enumerate(features.outputs))
    mine = [(k, one) for k, one in outputs if one.kind == "category" and one.source == name]
    if not mine:
        known = list(dict.fromkeys(one.source for _, one in outputs if one.kind == "category"))
        said = f"{', '.join(known) or 'none'}.{did_you_mean(name, known)}"
        raise DataError(f'the nests "{name}" are no category among the attributes, which are {said}')
    indicators = encoded[:, [k for k, _ in mine]] * [one.scale for _, one in mine] + [one.centre for _, one in mine]
    has = indicators > 0.5
    found = np.where(has.any(axis=1), has.argmax(axis=1), len(mine))
    return (*(str(one.category) for _, one in mine), "none of these"), found


class NestedChoices(NamedTuple):
    """Choices of one of several alternatives, rows in the order of choice and nest; a group is a nest in a choice.

    Parameters stand in one vector: the d coefficients, then log λ of the nests of which some choice has two.
    """

    X: FloatArray  # (n, d)
    chosen: IntArray  # row of the chosen alternative, (T,)
    start: IntArray  # first row of each group, (G,)
    nest: IntArray  # of each group
    first: IntArray  # first group of each choice, (T,)
    group: IntArray  # of each row
    choice: IntArray  # of each group
    user: IntArray  # of each choice
    weight: FloatArray
    answer: IntArray
    share_of_answer: FloatArray  # ½ for the halves of a tie
    n_users: int
    place: IntArray  # of the λ of each nest among the parameters, -1 where it is 1, (N,)

    @classmethod
    def of(
        cls, choices: Choices, columns: ItemColumns, of_items: IntArray, n_nests: int, n_users: int
    ) -> NestedChoices:
        """DataError for choices of the worst, and where no choice has two alternatives of one nest."""
        if (choices.sign < 0).any():
            raise DataError("a nested logit is of choices of the best. Leave best-worst answers out")
        size = np.diff(choices.ptr)
        t = np.repeat(np.arange(choices.n_choices), size)
        nest = of_items[choices.item].astype(np.int64)
        is_chosen = np.zeros(len(t), dtype=bool)
        is_chosen[choices.ptr[:-1]] = True
        order = np.lexsort((~is_chosen, nest, t))
        key = (t * n_nests + nest)[order]
        start = np.flatnonzero(np.diff(key, prepend=-1))
        group = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(key))))
        of_group, choice = nest[order][start], t[order][start]
        several = np.unique(of_group[np.diff(np.append(start, len(key))) > 1])
        if not len(several):
            raise DataError(
                "no choice has two alternatives of one nest, so that answers say nothing of how alike they are. Take "
                "--model logit, or nests that hold several"
            )
        place = np.full(n_nests, -1)
        place[several] = columns.X.shape[1] + np.arange(len(several))
        return cls(
            columns.X[choices.item[order]], np.flatnonzero(is_chosen[order]), start, of_group,
            np.flatnonzero(np.diff(choice, prepend=-1)), group, choice, choices.user.astype(np.int64), choices.weight,
            choices.answer, choices.share, n_users, place,
        )  # fmt: skip

    @property
    def n_parameters(self) -> int:
        """Coefficients and dissimilarities."""
        return self.X.shape[1] + int((self.place >= 0).sum())

    def dissimilarities(self, theta: FloatArray) -> FloatArray:
        """λ of each nest, (..., N), 1 where answers say nothing of it."""
        found = np.ones((*theta.shape[:-1], len(self.place)))
        known = self.place >= 0
        found[..., known] = np.exp(theta[..., self.place[known]])
        return found

    def slopes(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log-likelihoods of the choices, (T,), and their slopes, (T, P)."""
        d, X, g = self.X.shape[1], self.X, self.group
        lam = self.dissimilarities(theta)[self.nest]  # of groups
        a = (X @ theta[:d]) / lam[g]
        top = np.maximum.reduceat(a, self.start)
        odds = np.exp(a - top[g])
        total = np.add.reduceat(odds, self.start)
        A, q = top + np.log(total), odds / total[g]  # inclusive values, and shares within groups
        L = lam * A
        most = np.maximum.reduceat(L, self.first)[self.choice]
        share = np.exp(L - most)
        whole = np.add.reduceat(share, self.first)
        share /= whole[self.choice]
        i, k = self.chosen, g[self.chosen]
        log_p = a[i] - A[k] + L[k] - (most[self.first] + np.log(whole))
        mean_x = np.add.reduceat(q[:, None] * X, self.start, axis=0)
        mean_a = np.add.reduceat(q * a, self.start)
        found = np.zeros((len(i), len(theta)))
        found[:, :d] = (X[i] - mean_x[k]) / lam[k, None] + mean_x[k]
        found[:, :d] -= np.add.reduceat(share[:, None] * mean_x, self.first, axis=0)
        own, gain = self.place[self.nest], lam * (A - mean_a)
        rows = np.flatnonzero(own >= 0)
        np.subtract.at(found, (self.choice[rows], own[rows]), (share * gain)[rows])
        mine = np.flatnonzero(own[k] >= 0)
        np.add.at(found, (mine, own[k][mine]), (gain[k] + mean_a[k] - a[i])[mine])
        return log_p, found

    def scores_of_answers(self, theta: FloatArray) -> FloatArray:
        """Slopes of the log-likelihoods of answers, times √weight, as of the logit; (n_answers, P)."""
        slopes = self.share_of_answer[:, None] * self.slopes(theta)[1]
        _, first, answer = np.unique(self.answer, return_index=True, return_inverse=True)
        found = np.zeros((len(first), len(theta)))
        np.add.at(found, answer, slopes)
        return np.asarray(np.sqrt((self.weight / self.share_of_answer)[first])[:, None] * found)

    def at(self, theta: FloatArray) -> LogLikelihoods:
        """Values and slopes by person, and minus the Hessian, by central differences of the slopes."""
        log_p, slopes = self.slopes(theta)
        U, P = self.n_users, len(theta)
        values = np.asarray(np.bincount(self.user, self.weight * log_p, U), dtype=float)
        by_person = np.zeros((U, P))
        np.add.at(by_person, self.user, self.weight[:, None] * slopes)
        step = _STEP * np.eye(P)
        H = np.stack([self.weight @ (self.slopes(theta - one)[1] - self.slopes(theta + one)[1]) for one in step])
        H /= 2.0 * _STEP
        return LogLikelihoods(values, by_person, 0.5 * (H + H.T), np.ones((U, 1)))

    def reported(self, columns: ItemColumns, levels: tuple[str, ...]) -> ItemColumns:
        """The columns with a further one for each dissimilarity, as estimates are told of."""
        known = np.flatnonzero(self.place >= 0)
        n = len(known)
        report = np.zeros((len(columns.report) + n, columns.report.shape[1] + n))
        report[: -n or None, : -n or None] = columns.report
        report[len(columns.report) :, columns.report.shape[1] :] = np.eye(n)
        return replace(
            columns, kind=np.append(columns.kind, np.full(n, NORMAL, dtype=np.int8)), report=report,
            levels=(*columns.levels, *((DISSIMILARITY, levels[k]) for k in known)),
        )  # fmt: skip

    def apart(
        self, law: Mixture, people: npt.NDArray[np.float32], nests: Nests
    ) -> tuple[Nests, Mixture, npt.NDArray[np.float32]]:  # fmt: skip
        """Nests with draws of their dissimilarities, and coefficients alone, of what :meth:`law` put together."""
        d, known = self.X.shape[1], np.flatnonzero(self.place >= 0)
        of_people, of_crowd = np.ones((people.shape[1], len(self.place))), np.ones((len(law.B), len(self.place)))
        of_people[:, known], of_crowd[:, known] = people[0, :, d:], law.B[:, 0, 0, d:]
        found = replace(nests, of_people=of_people, of_crowd=of_crowd)
        return found, replace(law, B=law.B[..., :d]), np.ascontiguousarray(people[..., :d])

    def law(self, thetas: FloatArray) -> Mixture:
        """Populations (S,) of parameters (S, P), dissimilarities beside the coefficients."""
        d = self.X.shape[1]
        known = np.flatnonzero(self.place >= 0)
        B = np.concatenate([thetas[:, :d], self.dissimilarities(thetas)[:, known]], axis=1)
        S = len(thetas)
        return Mixture(B[:, None, None], np.zeros((S, 1, 0, 0)), np.ones((S, 1)))


def nested_log_chances(V: FloatArray, nest: IntArray, dissimilarity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log chances of alternatives with utilities V (R, k) in nests (k,), and the expected utility of the chosen, (R,).

    ``dissimilarity``: λ in each draw, (R, N).
    """
    which, place = np.unique(nest, return_inverse=True)
    lam = dissimilarity[:, which]
    a = V / lam[:, place]
    A = np.stack([logsumexp(a[:, place == k], axis=1) for k in range(len(which))], axis=1)
    whole = logsumexp(lam * A, axis=1)
    return a + ((lam - 1.0) * A)[:, place] - whole[:, None], whole
