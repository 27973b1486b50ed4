"""Factor model: its posterior, and the state of its variational fit."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from predilect._base.compile import kernel
from predilect._base.stored import LARGEST, PART, ArraySpec, amounts, numbers, positive, within
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.content import Keys, dealt, refined, rounded
from predilect.inference.factors.answers import (
    FactorAnswers,
    FunctionState,
    GammaPrior,
    ItemDesign,
    StandardWeights,
    WeightPrior,
    scale_bound,
)
from predilect.inference.gaussian.dense import covariances, symmetrise
from predilect.inference.gaussian.design import pair_variance
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.gaussian.projection import Projection
from predilect.inference.likelihoods.probit import starting_threshold


@kernel
def add_products(user, pair, delta, D, mu, Sigma, mean, var):
    """Add the components' part of the margins of rows (user, pair) to ``mean``, ``var`` (n,): modern.md (3.1).

    ``delta``, ``D`` (n_pairs, C): moments of v_c(left) - v_c(right); ``Sigma`` (n_users, C, C), or (n_users, C, 1).
    """
    C = mu.shape[1]
    full = Sigma.shape[2] == C and C > 1
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        m = 0.0
        v = 0.0
        for c in range(C):
            d = delta[q, c]
            own = Sigma[u, c, c] if full else Sigma[u, c, 0]
            m += mu[u, c] * d
            cross = 0.5 * own * d
            if full:
                for k in range(c):
                    cross += Sigma[u, c, k] * delta[q, k]
            v += (mu[u, c] * mu[u, c] + own) * D[q, c] + 2.0 * cross * d
        mean[p] += m
        var[p] += v


_DENSE_ITEMS = 2000  # items up to which one user's covariance is formed


def covariances_or_variances(shape: str) -> ArraySpec:
    """Stored covariances, or variances where there is an axis less."""
    whole, diagonal = covariances(shape), amounts(shape)
    return replace(
        whole, wanted="covariances, or variances",
        is_right=lambda a, sizes: (whole if a.ndim == 3 else diagonal).is_right(a, sizes),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactorPosterior(Posterior):
    """q(t) Π_c q(v_c) Π_u q(w_u), with functions at M points and one projection to the items.

    modern.md (3.1), crowdgppl.md 2.4. **Differs from the paper**: 2020 prints no residual variance between the points;
    here it is R/s for the consensus, and R/s times E w² for a component.
    """

    projection: Annotated[Projection, PART]
    # consensus at the M points; None in a model without one
    t_mean: Annotated[FloatArray | None, numbers("M")]
    t_covariance: Annotated[FloatArray | None, covariances("M M")]
    t_scale: Annotated[float, within(1.0 / LARGEST)]  # s_t: the residual between the points has variance R/s_t
    v_mean: Annotated[FloatArray, numbers("M C")]  # C components at the points
    v_covariance: Annotated[FloatArray, covariances("C M M")]
    v_scale: Annotated[FloatArray, positive("C")]  # s_c
    w_mean: Annotated[FloatArray, numbers("U C")]  # weights of the users
    # with covariances, or variances if the weights of a user are independent
    w_covariance: Annotated[FloatArray, covariances_or_variances("U C C|U C")]
    # distribution of the weights of an unseen user
    weights: Annotated[WeightPrior, PART] = field(default_factory=StandardWeights)

    def checked(self) -> None:
        """ValueError unless there is a value at each point, and a consensus or none."""
        if len(self.v_mean) != self.projection.n_points:
            raise ValueError(f"{self.projection.n_points} points, but values at {len(self.v_mean)}")
        if (self.t_mean is None) != (self.t_covariance is None):
            raise ValueError("half a consensus")

    @property
    def n_items(self) -> int:
        return self.projection.n_items

    @property
    def n_users(self) -> int:
        """Number of people."""
        return len(self.w_mean)

    @property
    def n_components(self) -> int:
        """Number of components, C."""
        return int(self.v_mean.shape[1])

    @property
    def importances(self) -> FloatArray:
        """Prior variance that each component gives to a utility, (C,): 1/s_c, or 1/(s_v s_w) where both are."""
        return np.asarray(self.weights.law(self.n_components, None)[1][0] / self.v_scale)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, traits: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); modern.md (3.1). n C² operations.

        ``traits`` (n, n_traits) are read where ``users`` is -1, an unseen user.
        """
        who = np.asarray(users, dtype=np.int64)
        codes = np.asarray(left, dtype=np.int64) * self.n_items + np.asarray(right, dtype=np.int64)
        pairs, pair = np.unique(codes, return_inverse=True)
        a, b = pairs // self.n_items, pairs % self.n_items
        mu, Sigma, rows = self._laws(who, traits)
        residual = self.projection.residual_pairs(a, b)
        mean, var = np.zeros(len(who)), np.zeros(len(who))
        if self.t_mean is not None:
            assert self.t_covariance is not None
            values = self.projection.expand(self.t_mean)
            mean = (values[a] - values[b])[pair]
            var = (pair_variance(self.t_covariance, a, b, self.projection.A) + residual / self.t_scale)[pair]
        if self.n_components:
            values = self.projection.expand(self.v_mean)
            D = np.empty((len(a), self.n_components))
            for c in range(self.n_components):
                D[:, c] = pair_variance(self.v_covariance[c], a, b, self.projection.A) + residual / self.v_scale[c]
            add_products(rows, pair, np.ascontiguousarray(values[a] - values[b]), D, mu, Sigma, mean, var)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        mu, Sigma, who = self._laws(np.array([user], dtype=np.int64), None)
        full = Sigma[who[0]] if Sigma.shape[2] == Sigma.shape[1] else np.diag(Sigma[who[0], :, 0])
        return self._utilities(mu[who[0]], full)

    def crowd(self) -> Utilities:
        """Consensus t; without one in the model the average of the users, with weights Σ_u w_u / n_users."""
        C = self.n_components
        if self.t_mean is not None or not C:
            return self._utilities(np.zeros(C), np.zeros((C, C)))
        n = max(self.n_users, 1)
        total = self.w_covariance.sum(axis=0) / n**2
        return self._utilities(self.w_mean.mean(axis=0), total if total.ndim == 2 else np.diag(total))

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        mu, Sigma, who = self._laws(np.asarray(users, dtype=np.int64), None)
        mu, Sigma = mu[who], Sigma[who]
        if Sigma.shape[2] != Sigma.shape[1]:
            Sigma = Sigma[:, :, 0, None] * np.eye(self.n_components)
        V = self.projection.expand(self.v_mean)
        V = V - V.mean(axis=0)
        second = mu**2 + np.diagonal(Sigma, axis1=1, axis2=2)
        mean = mu @ V.T
        variance = np.einsum("uic,ic->ui", np.einsum("ucd,id->uic", Sigma, V), V)
        for c in range(self.n_components):
            variance += np.outer(second[:, c], self._centred_variance(self.v_covariance[c], self.v_scale[c]))
        if self.t_mean is not None:
            assert self.t_covariance is not None
            t = self.projection.expand(self.t_mean)
            mean += t - t.mean()
            variance += self._centred_variance(self.t_covariance, self.t_scale)
        return mean, variance

    def with_items(self, features: FloatArray, known: BoolArray) -> FactorPosterior:
        """With new items appended, predicted from their features; see :meth:`Projection.with_items`."""
        return replace(self, projection=self.projection.with_items(features, known))

    def _laws(self, users: IntArray, traits: FloatArray | None) -> tuple[FloatArray, FloatArray, IntArray]:
        """Mean and covariance of weights, and the row of each entry of ``users`` in them."""
        mu = self.w_mean
        Sigma = self.w_covariance if self.w_covariance.ndim == 3 else self.w_covariance[:, :, None]
        Sigma = np.ascontiguousarray(Sigma)  # a view would need a second compilation
        unknown = np.flatnonzero(users < 0)
        if not len(unknown):
            return mu, Sigma, users
        prior_mean, prior_var = self.weights.law(self.n_components, None if traits is None else traits[unknown])
        block = prior_var[:, :, None]
        if Sigma.shape[2] == self.n_components and self.n_components != 1:
            block = np.zeros((len(prior_var), self.n_components, self.n_components))
            block[:, np.arange(self.n_components), np.arange(self.n_components)] = prior_var
        who = users.copy()
        # Without traits all unseen users are alike: one row serves them.
        who[unknown] = len(mu) + (np.zeros(len(unknown), dtype=np.int64) if traits is None else np.arange(len(unknown)))
        return np.vstack([mu, prior_mean]), np.concatenate([Sigma, block]), who

    def _utilities(self, mu: FloatArray, Sigma: FloatArray) -> Utilities:
        """F = t + Σ w_c v_c for w ~ N(mu, Sigma): crowdgppl.md 2.4, with the covariance between weights."""
        M = len(self.v_mean)
        mean, covariance = np.zeros(M), np.zeros((M, M))
        spread = 0.0
        if self.t_mean is not None:
            assert self.t_covariance is not None
            mean, covariance, spread = self.t_mean, self.t_covariance, 1.0 / self.t_scale
        if self.n_components:
            second = mu**2 + np.diagonal(Sigma)
            mean = mean + self.v_mean @ mu
            covariance = covariance + np.tensordot(second, self.v_covariance, 1) + self.v_mean @ Sigma @ self.v_mean.T
            spread += float(np.sum(second / self.v_scale))
        return Utilities.through(self.projection, mean, symmetrise(covariance), spread)

    def _centred_variance(self, covariance: FloatArray, scale: float) -> FloatArray:
        """Variance of each value of A f + r, centred over the items, for f with the given covariance; (n_items,)."""
        p, n = self.projection, self.n_items
        if p.A is None:
            row = covariance.mean(axis=0)
            return np.asarray(np.diagonal(covariance) - 2.0 * row + row.mean())
        rows = p.A - p.A.mean(axis=0)
        own = p.own / scale
        if n > _DENSE_ITEMS:
            residual = own * (1.0 - 2.0 / n) + own.mean() / n
        else:
            R = p.residual() / scale
            residual = own - 2.0 * R.mean(axis=0) + R.mean()
        return np.asarray(np.einsum("ij,ij->i", rows @ covariance, rows) + residual)


VAGUE = GammaPrior(1.0, 10.0)


@dataclass(frozen=True, slots=True)
class FactorPriors:
    """Priors of the inverse scales s_t and of every s_c."""

    consensus: GammaPrior = VAGUE
    components: GammaPrior = VAGUE


@dataclass(slots=True)
class FactorState:
    """q(t) Π q(v_c) Π q(w_u), and derived moments of the margins of pairs."""

    consensus: FunctionState | None
    components: list[FunctionState]
    s_0: float  # E s_t
    s: FloatArray  # E s_c, (C,)
    delta_0: FloatArray  # mean of t(left) - t(right), (n_pairs,)
    D_0: FloatArray  # its variance
    delta: FloatArray  # the same of the components, (n_pairs, C)
    D: FloatArray
    prior: FloatArray  # prior mean of the weights, (n_users, C)
    mu: FloatArray
    Sigma: FloatArray  # (n_users, C, C)
    log_det: FloatArray
    threshold: float

    @property
    def n_components(self) -> int:
        """Number of components C."""
        return int(self.mu.shape[1])

    def copy(self) -> FactorState:
        """Independent copy."""
        return replace(
            self, components=list(self.components), s=self.s.copy(), delta=self.delta.copy(), D=self.D.copy(),
            mu=self.mu.copy(), Sigma=self.Sigma.copy(), log_det=self.log_det.copy(),
        )  # fmt: skip

    def set_component(self, c: int, function: FunctionState, design: ItemDesign) -> None:
        """Replaces q(v_c) and its moments of pairs."""
        self.components[c] = function
        self.delta[:, c] = function.delta
        self.D[:, c] = function.D + design.residual / self.s[c]

    def set_consensus(self, function: FunctionState, design: ItemDesign) -> None:
        """Replaces q(t) and its moments of pairs."""
        self.consensus = function
        self.delta_0 = function.delta
        self.D_0 = function.D + design.residual / self.s_0

    def set_scale(self, c: int, s: float, design: ItemDesign) -> None:
        """Replaces E s_c and what depends on it; -1 is the consensus."""
        if c < 0:
            self.s_0 = s
            if self.consensus is not None:
                self.D_0 = self.consensus.D + design.residual / s
            return
        self.s[c] = s
        self.D[:, c] = self.components[c].D + design.residual / s

    def divergence(self, priors: FactorPriors, design: ItemDesign) -> float:
        """KL of everything from its prior, scales included: expected log-likelihood less the bound."""
        n_users, C = self.mu.shape
        total = 0.5 * float(
            np.einsum("ucc->", self.Sigma) + np.sum((self.mu - self.prior) ** 2) - n_users * C - self.log_det.sum()
        )
        M = design.n_points
        if self.consensus is not None:
            total += self.consensus.divergence(self.s_0) - scale_bound(priors.consensus, M, self.s_0)
        for c, function in enumerate(self.components):
            total += function.divergence(self.s[c]) - scale_bound(priors.components, M, self.s[c])
        return total


def assemble(
    state: FactorState, projection: Projection, mu: FloatArray, Sigma: FloatArray, weights: WeightPrior
) -> FactorPosterior:
    """Posterior from a state, with ``weights`` for unseen users; Sigma (n_users, C, C), or (n_users, C) if diagonal."""
    M, C = projection.n_points, state.n_components
    t_mean, t_covariance = None, None
    if state.consensus is not None:
        t_mean, t_covariance = projection.at_points(state.consensus.mean, state.consensus.lower)
    v_mean, v_covariance = np.zeros((M, C)), np.zeros((C, M, M))
    for c, function in enumerate(state.components):
        v_mean[:, c], v_covariance[c] = projection.at_points(function.mean, function.lower)
    return FactorPosterior(
        projection, t_mean, t_covariance, state.s_0, v_mean, v_covariance, state.s, mu, Sigma, weights
    )


def assemble_with_prior(
    state: FactorState, projection: Projection, weights: WeightPrior, active: BoolArray, traits: FloatArray
) -> FactorPosterior:
    """Posterior from a state; the weights of people without answers (not ``active``) follow their traits."""
    unseen = np.flatnonzero(~active)
    mu, Sigma = state.mu.copy(), state.Sigma.copy()
    mu[unseen], variance = weights.law(state.n_components, traits[unseen])
    Sigma[unseen] = variance[:, :, None] * np.eye(state.n_components)
    return assemble(state, projection, mu, Sigma, weights)


def moments(state: FactorState, answers: FactorAnswers) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the margin of every row: modern.md (3.1)."""
    mean, var = state.delta_0[answers.pair], state.D_0[answers.pair]
    if state.n_components:
        add_products(answers.user, answers.pair, state.delta, state.D, state.mu, state.Sigma, mean, var)
    return mean, var


def random_start(
    answers: FactorAnswers, design: ItemDesign, n_components: int, consensus: bool, prior: FloatArray,
    threshold: float | None, rng: np.random.Generator, *, s_0: float = 0.1, s: float = 0.5,
) -> FactorState:  # fmt: skip
    """Random functions and weights: modern.md 4.2. Zero means are a saddle (crowdgppl.md 2.3).

    What is drawn goes to people, and to items, in an order that follows from the answers and from no name.
    ``prior`` (n_users, C): prior mean of the weights; s_0, s: initial inverse scales of consensus and components.
    """
    n_users, M, C = answers.n_users, design.n_points, n_components
    n_pairs = len(answers.left)
    spread = design.prior_variances()
    state = FactorState(
        None, [], s_0, np.full(C, s), np.zeros(n_pairs), np.zeros(n_pairs), np.zeros((n_pairs, C)),
        np.zeros((n_pairs, C)), prior.copy(), np.zeros((n_users, C)), np.zeros((n_users, C, C)),
        np.full(n_users, C * math.log(0.5)), starting_threshold(answers.outcome, answers.weight, threshold),
    )  # fmt: skip
    if consensus:
        state.set_consensus(_about(design, np.zeros(M), s_0, spread), design)
    people, items = _order(answers, design)
    root = None if items is None else _symmetric_root(design)
    for c in range(C):
        x = 0.5 * rng.standard_normal(M) / math.sqrt(s)
        if root is not None and items is not None:
            x = root @ dealt(x, items)
        state.components.append(_about(design, x, s, spread))
        state.set_component(c, state.components[c], design)
    state.mu[:] = dealt(rng.standard_normal((n_users, C)), people)
    state.Sigma[:] = 0.5 * np.eye(C)
    return state


def _order(answers: FactorAnswers, design: ItemDesign) -> tuple[Keys, Keys | None]:
    """Keys of people (n_users,) and, where they are the points, of items (M,)."""
    projection, left, right = design.projection, answers.left[answers.pair], answers.right[answers.pair]
    covariance = design.G @ design.G.sum(axis=0)
    start = rounded(covariance / max(float(np.abs(covariance).max(initial=0.0)), 1e-300))
    said = answers.outcome.astype(np.int64)
    found = refined(answers.user, left, right, said, answers.weight, answers.n_users, start)
    return found.people, found.items if projection.A is None else None


def _symmetric_root(design: ItemDesign) -> FloatArray:
    """R (M, M), orthogonal, with G R the symmetric root of the covariance of items: it follows them in any order."""
    left, _, right = np.linalg.svd(design.G)
    return np.asarray(right.T @ left.T)


def _about(design: ItemDesign, mean: FloatArray, s: float, spread: FloatArray) -> FunctionState:
    """Prior covariance about a mean."""
    M = len(mean)
    return FunctionState(
        mean, math.sqrt(s) * np.eye(M), float(mean @ mean) + M / s, -M * math.log(s), design.margins.mean(mean),
        spread / s,
    )  # fmt: skip
