"""Posterior of the population model: the consensus, the population covariance, and each user's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from predilect._base.stored import PART, flags, numbers
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import sides_of
from predilect.errors import DataError
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.dense import covariances, factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.posterior import GaussianPosterior, Posterior, Utilities
from predilect.inference.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.probit import margins_in_noise, with_random_clicks
from predilect.inference.people.combinations import Combinations, GivenConsensus
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Basis, Effects, Law
from predilect.inference.people.layout import People
from predilect.inference.people.moved import Consensus, Since, Summed, changed_since, moved, summed, told_by
from predilect.inference.people.person import Overlay, Person, joined, person_of, side_by_side
from predilect.inference.people.queries import (
    NEWCOMER,
    apart_from_crowd,
    centred_in,
    kinds_in,
    margins_in,
    offset_variance,
    person_in,
)

_ENOUGH_PEOPLE = 200  # of whom what an answer tells of the consensus is known well


@dataclass(frozen=True, slots=True)
class PopulationPosterior(Posterior):
    """Posterior of f_u = m + the deviation of user u, with the consensus m ~ N(m, C_m).

    Users' posteriors are not stored: two numbers per answer (the sites) and the population distribution determine them.
    People with answers are draws of the population as it was fitted; the crowd, and people without answers, are of the
    consensus ``now``, which moves with answers since.
    """

    m: Annotated[FloatArray, numbers("M")]  # consensus of the items (M = n_items), or of the functions of a basis
    C_m: Annotated[FloatArray, covariances("M M")]  # posterior covariance of the consensus
    Sigma: Annotated[FloatArray, covariances("M M")]  # population covariance of deviations from the consensus
    people: Annotated[People, PART]  # all answers and sites but those of the users in ``overlay``
    sites: Annotated[Sites, PART]
    basis: Annotated[Basis | None, PART] = None  # by default the items themselves
    effects: Annotated[Effects | None, PART] = None
    overlay: Overlay = field(default_factory=Overlay)  # users whose answers changed since, and new users
    calibration: Calibration = UNCALIBRATED
    # (people.n_users,): who came after the fit; None: nobody but in ``overlay``
    newcomers: Annotated[BoolArray | None, flags("U")] = None
    covariates: Annotated[CovariateEffects | None, PART] = None  # of answers
    # d, by which the mean of newcomers differs from m
    newcomer_shift: Annotated[FloatArray | None, numbers("M")] = None
    # C_m by answers alone, where what else is not known (effects of covariates and segments, contexts, how far people
    # differ) widens it: with it answers are predicted, and the calibration was chosen
    C_answers: Annotated[FloatArray | None, covariances("M M")] = None
    since: Annotated[Since | None, PART] = None  # of answers that came after the fit, but for those in ``overlay``
    law: Law = field(init=False)  # population distribution
    newcomer_law: Law = field(init=False)  # that of people whom the population was learned without
    _now: Consensus | None = field(init=False, default=None, repr=False, compare=False)
    _summed: Summed | None = field(init=False, default=None, repr=False, compare=False)
    # the layout of one of the changed users, who is often asked about several times
    _alone: tuple[int, tuple[People, Sites]] | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        basis, effects, d = self.basis, self.effects, self.newcomer_shift
        if basis is None:
            shift = np.zeros((0, 0)) if effects is None else effects.B
            law = Law(self.Sigma, self.m, shift=shift)
        else:
            shift = np.zeros((0, 0)) if effects is None else basis.Phi @ effects.B
            law = Law(self.Sigma, basis.mean(self.m), basis.Phi, basis.rho, shift)
        object.__setattr__(self, "law", law)
        later = law if d is None else replace(law, mean=self.m + d if basis is None else basis.mean(self.m + d))
        object.__setattr__(self, "newcomer_law", later)

    def checked(self) -> None:
        """ValueError unless the population is of the items, and of the traits, that people have."""
        if self.n_items != self.people.n_items:
            raise ValueError(f"a consensus of {self.n_items} items, of which there are {self.people.n_items}")
        if self.effects is None and self.people.traits.shape[1]:
            raise ValueError(f"{self.people.traits.shape[1]} traits of people without effects")

    @property
    def n_items(self) -> int:
        return len(self.law.mean)

    @property
    def n_users(self) -> int:
        """Number of known users; their codes are below it."""
        return self.people.n_users + self.overlay.n_added

    @property
    def thresholds(self) -> Thresholds | None:
        return self.people.thresholds

    @property
    def n_basis(self) -> int | None:
        """Number of basis functions; None where these are the items."""
        return None if self.basis is None else len(self.m)

    @property
    def C_predicted(self) -> FloatArray:
        """Covariance of the consensus with which answers are predicted: by answers alone, or with effects all of it."""
        has_effects = self.covariates is not None or self.effects is not None
        return self.C_m if self.C_answers is None or has_effects else self.C_answers

    @property
    def now(self) -> Consensus:
        """The consensus given all answers; computed when it is first asked for."""
        if self._now is None:
            if self.overlay:
                object.__setattr__(self, "_summed", summed(self))
            object.__setattr__(self, "_now", moved(self))
        found = self._now
        assert found is not None
        return found

    @property
    def summed_before(self) -> Summed | None:
        """Sums over people that those of now differ from by a few people, or None."""
        return self._summed

    @property
    def has_moved(self) -> bool:
        return self.since is not None or len(self.overlay) > 0

    def answers_of(self, user: int) -> Person:
        """One user's answers and sites."""
        changed = self.overlay.get(user)
        return self.laid_out(user) if changed is None else changed

    def laid_out(self, user: int) -> Person:
        """One user's answers and sites as the layout has them."""
        return person_of(self.people, self.sites, user)

    def answered_rows(self, user: int) -> tuple[IntArray, IntArray, IntArray]:
        rows = self.answers_of(user).rows
        left, right, _, _ = sides_of(rows.key)
        return left, right, rows.task

    def with_people(
        self, people: Mapping[int, Person], n_new: int, covariates: CovariateEffects | None = None
    ) -> PopulationPosterior:
        """With other answers of some users, by code, the last ``n_new`` of whom are new; all else is shared.

        ``covariates`` has the patterns of the new answers too.
        """
        new = object.__new__(PopulationPosterior)  # dataclasses.replace would compute the law again
        for name in self.__slots__:
            object.__setattr__(new, name, getattr(self, name))
        object.__setattr__(new, "overlay", self.overlay.plus(people, n_new))
        object.__setattr__(new, "covariates", covariates)
        object.__setattr__(new, "_now", None)
        object.__setattr__(new, "_alone", None)
        return new

    def about_crowd(self, user: int, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Margins apart from the crowd's; O(k (k + M)) a pair.

        population.md section 4, "What to ask the crowd": given the consensus m, f_u has mean const + (I - Σ Q) m and
        covariance Σ - Σ Q Σ, with Q = Xᵀ Q X of the person's answers.
        """
        left, right = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
        if user in self.overlay:
            people, sites, place = *self._beside([user]), 0
        else:
            people, sites, place = self.people, self.sites, user
        return apart_from_crowd(self, self._law_now(user), people, sites, place, left, right)

    def information_of_answers(self, n_people: int | None = None) -> tuple[FloatArray, FloatArray | None]:
        """Information of an answer about the consensus, (M, M), and all that ``n_people`` may still add; None: no end.

        population.md section 4, "When to stop": the mean of Xᵀ Q X per answer over 200 people, those who came or
        answered since the fit first. A person whose every utility is known tells Σ⁻¹. DataError for fewer people than
        have answered.
        """
        active = np.flatnonzero(~self.without_answers(np.arange(self.n_users)))
        limit = None
        if n_people is not None:
            if n_people < len(active):
                raise DataError(f"n_people={n_people} is fewer than the {len(active)} people who have answered")
            information = expectation(self.people, self.sites, self.law, 1.0, n_sweeps=0).H
            since = changed_since(self)
            if since is not None:
                gone = Since.nothing(len(self.m)) if self.since is None else self.since
                information = information + since.H - gone.H
            limit = symmetrise(n_people * factorise(self.Sigma).inverse() - information)
        if not len(active):
            return Posterior.information_of_answers(self)[0], limit
        later = [user for user in active.tolist() if user in self.overlay or user >= self.people.n_users]
        rest = [user for user in active.tolist() if user not in self.overlay]
        users = (later + rest[:: max(1, -(-len(rest) // _ENOUGH_PEOPLE))])[:_ENOUGH_PEOPLE]
        persons = [(user, self.answers_of(user)) for user in users]
        n_answers = sum(float(person.rows.weight.sum()) for _, person in persons)
        return told_by(self, persons).H / n_answers, limit

    def consolidated(self, order: IntArray | None = None) -> PopulationPosterior:
        """The same in one layout; O(n_rows). ``order``: users by their new codes, by default the same.

        Whoever is not in the order is left out, and must have no answers.
        """
        changed = np.arange(self.n_users)
        position = {user: self.people.n_users + place for place, user in enumerate(self.overlay)}
        changed[list(position)] = list(position.values())
        people, sites = joined(
            self.people, self.sites, self._beside(list(position)) if position else None,
            changed if order is None else changed[order], n_basis=self.n_basis,
        )  # fmt: skip
        newcomers = self.newcomers
        if self.overlay.n_added or newcomers is not None:
            n = self.people.n_users
            newcomers = np.append(
                np.zeros(n, bool) if newcomers is None else newcomers, np.ones(self.n_users - n, bool)
            )
            newcomers = newcomers if order is None else newcomers[order]
        since = changed_since(self)
        return replace(self, people=people, sites=sites, overlay=Overlay(), newcomers=newcomers, since=since)

    def margins(
        self,
        users: IntArray,
        left: IntArray,
        right: IntArray,
        *,
        traits: FloatArray | None = None,
        covariates: FloatArray | None = None,
        executor: ThreadPoolExecutor | None = None,
        if_engaged: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,), noise not included, the consensus integrated out.

        A user of -1 is unseen, with ``traits`` (n, n_traits), by default the mean, zeros. By how much a user's own
        effects of ``covariates`` (n, n_covariates), by default equal ones, differ from everybody's is added.
        ``if_engaged``: as if nobody clicked at random, which :meth:`in_units_of_noise` then reckons with.
        O(n_u k_u²) per user once, O(k_u²) per query; with a basis O(M (k_u + M)) per query.
        """
        left = np.asarray(left, dtype=np.int64)
        right = np.asarray(right, dtype=np.int64)
        users = np.asarray(users, dtype=np.int64)
        mean, var = np.empty(len(users)), np.empty(len(users))
        spread = np.zeros(0) if self.covariates is None else self.covariates.spread
        asked = np.zeros((len(users), len(spread)))
        if covariates is not None and len(spread):
            asked = covariates * spread
        for rows, law, people, sites, codes in self._by_law(users):
            known = None if traits is None else traits[rows]
            mean[rows], var[rows] = margins_in(
                self, law, people, sites, codes, left[rows], right[rows], known, asked[rows], executor, if_engaged
            )
        return mean, var

    def margins_of_answers(
        self, users: IntArray, left: IntArray, right: IntArray, covariates: FloatArray | None = None, *,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """:meth:`margins`, with effects of ``covariates`` (n, n_covariates), in units of the noise of the user's own
        answers.
        """
        mean, var = self.margins(users, left, right, covariates=covariates, executor=executor, if_engaged=True)
        if self.covariates is not None:
            mean, var = self.covariates.added(mean, var, covariates)
        return self.in_units_of_noise(mean, var, users)

    def pair_kinds(self, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
        kind = np.full(len(users), 2, dtype=np.int8)
        for rows, people, _, codes in self._where(users):
            kind[rows] = kinds_in(people, codes, left[rows], right[rows])
        kind[self.are_newcomers(users)] += NEWCOMER
        return kind

    def are_newcomers(self, users: IntArray) -> BoolArray:
        """Whether the population was learned without users, (n,): unseen, without answers, or added after the fit."""
        return self.without_answers(users) | self.came_later(users)

    def came_later(self, users: IntArray) -> BoolArray:
        """Whether known users, by code, were added after the fit, (n,)."""
        users = np.asarray(users, dtype=np.int64)
        found = users >= self.people.n_users
        if self.newcomers is not None:
            old = ~found & (users >= 0)
            found[old] = self.newcomers[users[old]]
        return np.asarray(found)

    @property
    def shifts_newcomers(self) -> bool:
        return self.newcomer_shift is not None

    def newcomers_mean(self) -> FloatArray | None:
        return self.newcomer_law.mean if self.shifts_newcomers else None

    def law_of(self, user: int) -> Law:
        """Population distribution of which a user, by code, is a draw once there are answers."""
        shifted = self.shifts_newcomers and self.came_later(np.array([user]))[0]
        return self.newcomer_law if shifted else self.law

    def by_law(self, users: list[int]) -> list[tuple[Law, list[int]]]:
        """Users, by code, who have answers, with the population distribution of which they are draws."""
        if not self.shifts_newcomers:
            return [(self.law, users)] if users else []
        later = self.came_later(np.array(users, dtype=np.int64)).tolist()
        parts = [
            (law, [user for user, is_late in zip(users, later, strict=True) if is_late == late])
            for law, late in ((self.law, False), (self.newcomer_law, True))
        ]
        return [(law, some) for law, some in parts if some]

    def side_by_side(self, persons: Sequence[Person]) -> tuple[People, Sites]:
        """Layout of some people, in their order, under this population."""
        return side_by_side(persons, self.people, self.covariates, n_basis=self.n_basis)

    def without_answers(self, users: IntArray) -> BoolArray:
        """Whether users, by code, have no answers: their posterior is the population distribution."""
        users = np.asarray(users, dtype=np.int64)
        unseen = np.ones(len(users), dtype=bool)
        for rows, people, _, codes in self._where(users):
            unseen[rows] = (codes < 0) | (people.answer_ptr[codes + 1] == people.answer_ptr[codes])
        return unseen

    def tie_factors(self, users: IntArray) -> FloatArray:
        """Factors of users' tie thresholds, by code; 1 for an unseen user (-1)."""
        return self._of_people("tie_factor", users)

    def consistencies(self, users: IntArray) -> tuple[FloatArray, FloatArray]:
        sd = self._of_people("consistency_sd", users, self.calibration.consistency_spread)
        return self._of_people("consistency", users, 1.0 / self.calibration.unit), sd

    def _of_people(self, name: str, users: IntArray, of_unseen: float = 1.0) -> FloatArray:
        users = np.asarray(users, dtype=np.int64)
        found = np.full(len(users), of_unseen)
        for rows, people, _, codes in self._where(users):
            known = codes >= 0
            found[np.arange(len(users))[rows][known]] = getattr(people, name)[codes[known]]
        return found

    def person(self, user: int = -1, traits: FloatArray | None = None) -> Utilities:
        """One user's utilities in factored form, for any number of items; -1: unseen, with ``traits`` (n_traits,).

        State (β, e_o): the basis functions, and the residuals of the user's k_u own items. O((M + k_u)² k_u).
        """
        law = self._law_now(user)
        if user in self.overlay:
            people, sites = self._beside([user])
            return person_in(self, law, people, sites, 0)
        return person_in(self, law, self.people, self.sites, user, traits)

    def engaged(self, users: IntArray) -> FloatArray:
        """Probabilities that users, by code, do not click at random, (n,)."""
        return self._of_people("engaged", users, 1.0 - self.calibration.click_rate)

    def in_units_of_noise(self, mean: FloatArray, var: FloatArray, users: IntArray) -> tuple[FloatArray, FloatArray]:
        mean, var = margins_in_noise(mean, var, *self.consistencies(users))
        return with_random_clicks(mean, var, self.engaged(users)) if self.calibration.click_rate else (mean, var)

    def with_consistencies(self, away: float) -> PopulationPosterior:
        """With everybody's consistency so many standard deviations of its logarithm above that of the fit.

        Sites are about utilities in units of a user's noise, whatever the consistency is, and stay. O(n_users), and
        O(n_rows) where answers changed since the fit.
        """
        held = self.consolidated() if len(self.overlay) else self
        consistency = held.people.consistency * np.exp(away * held.people.consistency_sd)
        return replace(held, people=replace(held.people, consistency=consistency))

    def in_unit(self, unit: float) -> PopulationPosterior:
        """The same with utilities multiplied by ``unit`` and consistencies divided: no probability of an answer moves.

        Sites, and thresholds, are in units of people's own noise, and stay.
        """
        if unit == 1.0:
            return self
        square, people, effects, covariates = unit * unit, self.people, self.effects, self.covariates
        basis, d = self.basis, self.newcomer_shift
        if basis is not None:
            basis = Basis(
                basis.Phi, square * basis.rho, unit * basis.offset, square * basis.offset_variance,
                square * basis.own_scale,
            )  # fmt: skip
        people = replace(
            people,
            consistency=people.consistency / unit,
            offset=unit * people.offset,
            slope_columns=unit * people.slope_columns,
        )
        if covariates is not None:
            covariates = replace(
                covariates, mean=unit * covariates.mean, covariance=square * covariates.covariance,
                spread=unit * covariates.spread,
            )  # fmt: skip
        return replace(
            self, m=unit * self.m, C_m=square * self.C_m, Sigma=square * self.Sigma, people=people, basis=basis,
            effects=None if effects is None else Effects(unit * effects.B, square * effects.covariance),
            calibration=replace(self.calibration, unit=unit * self.calibration.unit), covariates=covariates,
            newcomer_shift=None if d is None else unit * d,
            C_answers=None if self.C_answers is None else square * self.C_answers,
        )  # fmt: skip

    def combined(self, user: int, asked: Combinations) -> GivenConsensus:
        """Linear combinations of one user's utilities, in draws of the consensus; -1: unseen."""
        law = self._law_now(user)
        if user in self.overlay:
            return asked.of_person(self, law, *self._beside([user]), 0)
        return asked.of_person(self, law, self.people, self.sites, user)

    def prior(self) -> Utilities:
        """Utilities of somebody whom the population was learned from, without their answers."""
        return person_in(self, self.law, self.people, self.sites, -1, C_m=self.C_m)

    def prior_of(self, user: int) -> Utilities:
        C_m = None if self.without_answers(np.array([user]))[0] else self.C_m
        return person_in(self, self._law_now(user), self.people, self.sites, -1, C_m=C_m)

    def crowd(self, traits: FloatArray | None = None) -> Utilities:
        """Consensus, the mean of the population, in factored form; or the mean of those with ``traits`` (n_traits,)."""
        nothing = np.zeros(0, dtype=np.int64)
        Phi = None if self.basis is None else self.basis.Phi
        mean, covariance = self.now.law.mean, self.now.C
        if traits is not None and self.effects is not None:
            mean, covariance = mean + self.law.shift @ traits, covariance + self.effects.spread(traits)
        return Utilities(mean, covariance, Phi, nothing, offset_variance(self), unit_sd=self.calibration.unit_sd)

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of known users' utilities, centred over the items; (n, n_items).

        O(n_items k_u²) per user, with a basis O(n_items (M + k_u)²); nothing of n_items x n_items per user.
        """
        users = np.asarray(users, dtype=np.int64)
        mean = np.empty((len(users), self.n_items))
        var = np.empty_like(mean)
        for rows, law, people, sites, codes in self._by_law(users):
            mean[rows], var[rows] = centred_in(self, law, people, sites, codes, executor)
        return mean, var

    def widenings(self, users: IntArray) -> FloatArray:
        unseen = np.ones(len(users))
        for rows, people, _, codes in self._where(users):
            held = np.where(codes < 0, 0, people.item_ptr[codes + 1] - people.item_ptr[codes])
            unseen[rows] = 1.0 - held / self.n_items
        return self.calibration.widening(unseen, self.are_newcomers(users))

    def extended(
        self,
        A: FloatArray,
        R: FloatArray,
        *,
        consensus: GaussianPosterior,
        scale: float,
        strength: float,
        trace: float,
        effects: Effects | None = None,
        newcomer_shift: FloatArray | None = None,
        C_answers: FloatArray | None = None,
    ) -> PopulationPosterior:
        """With new items appended that have no answers (population.md section 6): A = K_*o K_oo⁻¹, R = K_** - A K_o*.

        ``consensus``, ``effects``, ``newcomer_shift`` and ``C_answers`` are over all items; ``scale`` is s₀,
        ``strength`` ν₀, ``trace`` tr((s₀ K_oo)⁻¹ Σ_oo).
        """
        cross = A @ self.Sigma
        spread = scale * (strength + trace) / (strength + self.n_items) * R + cross @ A.T
        Sigma = symmetrise(np.block([[self.Sigma, cross.T], [cross, spread]]))
        people = replace(self.people, n_items=len(consensus.mean))
        since = None if self.since is None else self.since.with_items(len(R))
        return PopulationPosterior(
            consensus.mean, consensus.covariance, Sigma, people, self.sites, None, effects, self.overlay,
            self.calibration, self.newcomers, self.covariates, newcomer_shift, C_answers, since,
        )  # fmt: skip

    def with_items(self, Phi: FloatArray, share: FloatArray, consensus_variance: float) -> PopulationPosterior:
        """With new items appended as linear functions of the basis; parameters as :meth:`Basis.extended`."""
        assert self.basis is not None
        basis = self.basis.extended(Phi, share, consensus_variance)
        return replace(self, people=replace(self.people, n_items=len(basis.Phi)), basis=basis)

    def _where(self, users: IntArray) -> Iterator[tuple[IntArray | slice, People, Sites, IntArray]]:
        """Rows of queries by the layout that holds their users, with the users' codes there."""
        held = self.overlay.holds(users)
        if held is None:
            yield slice(None), self.people, self.sites, users
            return
        if not held.all():
            rows = np.flatnonzero(~held)
            yield rows, self.people, self.sites, users[rows]
        rows = np.flatnonzero(held)
        changed, codes = np.unique(users[rows], return_inverse=True)
        yield rows, *self._beside(changed.tolist()), codes

    def _law_now(self, user: int) -> Law:
        """Population distribution by which a user, by code, is predicted as things stand."""
        if self.without_answers(np.array([user]))[0]:
            return self.now.newcomer_law
        return self.law_of(user)

    def _by_law(self, users: IntArray) -> Iterator[tuple[IntArray | slice, Law, People, Sites, IntArray]]:
        """:meth:`_where`, with the population distribution of the rows."""
        for rows, people, sites, codes in self._where(users):
            if not self.shifts_newcomers and not self.has_moved:
                yield rows, self.law, people, sites, codes
                continue
            places, new = np.arange(len(users))[rows], self.without_answers(users[rows])
            later = self.came_later(users[rows]) & ~new if self.shifts_newcomers else np.zeros_like(new)
            laws = ((self.law, ~(new | later)), (self.newcomer_law, later), (self.now.newcomer_law, new))
            for law, some in laws:
                if some.any():
                    yield places[some], law, people, sites, codes[some]

    def _beside(self, users: list[int]) -> tuple[People, Sites]:
        """Layout of some of the changed users."""
        alone = self._alone
        if alone is not None and users == [alone[0]]:
            return alone[1]
        found = self.side_by_side([self.overlay[user] for user in users])
        if len(users) == 1:
            object.__setattr__(self, "_alone", (users[0], found))
        return found
