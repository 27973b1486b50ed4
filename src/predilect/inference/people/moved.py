"""The consensus after answers that came, or were taken back, since the fit: one Newton step of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from predilect._base.stored import PLAIN, numbers
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise, sandwiched, solve_lower, symmetrise, widened
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Law
from predilect.inference.people.person import Person

_MANY = 200  # items or functions, from which a change about few of them is worth a way of its own


@dataclass(frozen=True, slots=True)
class Since:
    """By how much sums over people differ from those of the fit, at the fitted consensus; on the basis (M)."""

    H: Annotated[FloatArray, numbers("M M")]  # Σ_u Xᵀ Q X
    r: Annotated[FloatArray, numbers("M")]  # Σ_u Xᵀ α
    n: Annotated[float, PLAIN] = 0.0  # of their rows, by weight

    @classmethod
    def nothing(cls, M: int) -> Since:
        """No change."""
        return cls(np.zeros((M, M)), np.zeros(M))

    def plus(self, other: Since, sign: float = 1.0) -> Since:
        """The sum, or the difference."""
        return Since(self.H + sign * other.H, self.r + sign * other.r, self.n + sign * other.n)

    def with_items(self, n: int) -> Since:
        """With so many items more, of which nothing is told."""
        return Since(np.pad(self.H, (0, n)), np.pad(self.r, (0, n)), self.n)


def share_left(now: float, at_fit: float) -> float:
    """How many answers there are, at most 1, for each that there was at the fit: what was summed over them is less."""
    return min(max(now / at_fit, 0.0), 1.0) if at_fit > 0.0 else 1.0


class Consensus(NamedTuple):
    """Consensus on the basis, m ~ N(m, C), and the population distributions about it: of everybody, of newcomers."""

    m: FloatArray
    C: FloatArray
    C_answers: FloatArray  # by answers alone, with which answers are predicted
    law: Law
    newcomer_law: Law


def told_by(posterior: Any, persons: Iterable[tuple[int, Person]]) -> Since:
    """What some people's answers say of the consensus, at their sites; each with the person's code."""
    held = {user: person for user, person in persons if len(person.rows.key)}
    total = Since.nothing(len(posterior.m))
    for law, users in posterior.by_law(list(held)):
        people, sites = posterior.side_by_side([held[user] for user in users])
        found = expectation(people, sites, law, 1.0, n_sweeps=0)  # the threshold is of the evidence alone
        total = total.plus(Since(found.H, found.r, float(people.weight.sum())))
    return total


def changed_since(posterior: Any) -> Since | None:
    """All that changed since the fit: what was merged into the layout, and the people beside it. None: nothing."""
    since: Since | None = posterior.since
    return summed(posterior).total if posterior.overlay else since


class Summed(NamedTuple):
    """What changed since the fit, with some people beside the layout: by code, as they are in the sum."""

    total: Since
    people: dict[int, Person]


def summed(posterior: Any) -> Summed:
    """Sums with all people beside the layout, from those of a posterior before, of which only some people differ."""
    before: Summed | None = posterior.summed_before
    if before is None:
        before = Summed(posterior.since or Since.nothing(len(posterior.m)), {})
    held, n = before.people, posterior.people.n_users
    new = {user: person for user, person in posterior.overlay.items() if held.get(user) is not person}
    gone = [
        (user, held[user] if user in held else posterior.laid_out(user)) for user in new if user in held or user < n
    ]  # fmt: skip
    total = before.total.plus(told_by(posterior, new.items())).plus(told_by(posterior, gone), -1.0)
    return Summed(total, held | new)


class _Narrowed(NamedTuple):
    """C = (C_fit⁻¹ + ΔH)⁻¹, C Δr, and what makes A D Aᵀ of a symmetric D, with A = C C_fit⁻¹."""

    C: FloatArray
    step: FloatArray
    carried: Callable[[FloatArray], FloatArray]


def _narrowed(C_fit: FloatArray, since: Since) -> _Narrowed:
    """Of a covariance and what changed; O(M² k) where the change is about few, k, of many items."""
    touched = np.flatnonzero(since.H.any(axis=0) | (since.r != 0.0))
    if len(C_fit) >= _MANY and 2 * len(touched) <= len(C_fit):
        return _narrowed_at(C_fit, since, touched)
    lower = factorise(C_fit).lower
    K = factorise(symmetrise(np.eye(len(C_fit)) + lower.T @ since.H @ lower)).inverse()  # C = L K Lᵀ, C_fit = L Lᵀ

    def carried(D: FloatArray) -> FloatArray:
        half = K @ solve_lower(lower, solve_lower(lower, D).T) @ K  # K L⁻¹ D L⁻ᵀ K
        return symmetrise(lower @ half @ lower.T)

    return _Narrowed(symmetrise(lower @ K @ lower.T), lower @ (K @ (lower.T @ since.r)), carried)


def _narrowed_at(C_fit: FloatArray, since: Since, touched: IntArray) -> _Narrowed:
    """With S the items touched, C = C_fit - C_S G C_Sᵀ and A = I - C_S G Eᵀ, where G = (I + H_S C_SS)⁻¹ H_S."""
    C_S, H = C_fit[:, touched], since.H[np.ix_(touched, touched)]
    C_SS = C_S[touched]
    G = symmetrise(np.linalg.solve(np.eye(len(touched)) + H @ C_SS, H))
    r = since.r[touched]

    def carried(D: FloatArray) -> FloatArray:
        less = D[:, touched] @ (G @ C_S.T)  # D E G C_Sᵀ
        return symmetrise(D - less - less.T + C_S @ (G @ less[touched]))

    return _Narrowed(C_fit - symmetrise(sandwiched(C_S, G)), C_S @ (r - G @ (C_SS @ r)), carried)


def moved(posterior: Any) -> Consensus:
    """The consensus given all answers, by one Newton step from the fit: C⁻¹ = C_fit⁻¹ + ΔH, m = m_fit + C Δr.

    population.md section 4. With A = P + Σ_u H_u and b = Σ_u (r_u + H_u m_fit), where H_u = Xᵀ Q X and r_u = Xᵀ α at
    the fitted consensus and population covariance, it is N(A⁻¹ b, A⁻¹). Sums over people do not depend on the order in
    which answers came. Effects of features, of segments and of covariates, and item-specific residuals stay as they
    were fitted, and so does D in C + C D C, what contexts add, of as large a share as is left of the answers at the
    fit. O(rows of the people touched, and M³, or M² k where they are about k of the items).
    """
    m, C_m, law, later = posterior.m, posterior.C_m, posterior.law, posterior.newcomer_law
    since, predicted = changed_since(posterior), posterior.C_predicted
    if since is None:
        return Consensus(m, C_m, predicted, law, later)
    C_fit = C_m if posterior.C_answers is None else posterior.C_answers
    alone, step, carried = _narrowed(C_fit, since)
    C = alone
    if posterior.C_answers is not None:
        at_fit = float(posterior.people.weight.sum()) - (0.0 if posterior.since is None else posterior.since.n)
        C = widened(C, share_left(at_fit + since.n, at_fit) * carried(C_m - C_fit))
    of_items = step if posterior.basis is None else posterior.basis.Phi @ step
    law = law.moved(of_items)
    return Consensus(
        m + step,
        C,
        alone if predicted is C_fit else C,
        law,
        later.moved(of_items) if posterior.shifts_newcomers else law,
    )
