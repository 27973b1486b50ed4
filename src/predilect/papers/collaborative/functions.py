"""Functions through pseudo-inputs (FITC), n m² operations and n m memory, and the weights of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.sparse.linalg import svds

from predilect._base.progress import Report
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.factors.answers import FactorAnswers, FunctionState, ItemDesign
from predilect.inference.factors.posterior import FactorPosterior
from predilect.inference.gaussian.condition import LatentPrior
from predilect.inference.gaussian.dense import Factor, factorise, symmetrise
from predilect.inference.gaussian.design import MarginMatrix, Sites, preference, squared_differences
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.sparse.problem import natural_parameters

USED = 0.01  # of the largest importance


@dataclass(frozen=True, slots=True)
class CollaborativeFit:
    """Fitted collaborative Gaussian process."""

    posterior: FactorPosterior
    delta: float
    evidence: float  # by expectation propagation, in nats; no bound
    importances: FloatArray  # (D,), from importances()
    # For "paper", how often a message was kept, as the new one had no positive precision; for "modern", answers without
    # a proper cavity at the end.
    n_rejected: int
    sites: Sites  # of one copy of each row
    report: Report


def importances(user: IntArray, pair: IntArray, weight: FloatArray, mu: FloatArray, delta: FloatArray) -> FloatArray:
    """Mean square of each function's part of the mean margin of an answer, (D,); near 0 for one pruned."""
    parts = mu[user] * delta[pair]
    return np.asarray(weight @ (parts * parts) / weight.sum())


_DENSE = 600  # people or pairs, whichever are fewer
_TOO_SMALL = 1e-3  # of the largest singular value


def singular_start(
    answers: FactorAnswers, sites: Sites, n_components: int, prior_var: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Means of weights (n_users, D) and of values (n_pairs, D): truncated singular value decomposition.

    Of the means of the messages f̂1 as a matrix of people and pairs, zeros where nobody answered. Functions beyond the
    rank start at random, with ``prior_var`` (n_pairs,), as all at zero would stay there. collaborative.md 3: what the
    authors' code does. Dense up to 600 people or pairs, by Lanczos beyond.
    """
    shape = (answers.n_users, len(answers.left))
    all_copies = sites.times(answers.weight)
    total = coo_array((all_copies.precision, (answers.user, answers.pair)), shape=shape).tocsr()
    asked = coo_array((all_copies.linear, (answers.user, answers.pair)), shape=shape).tocsr()
    asked.sum_duplicates()
    total.sum_duplicates()
    asked.data /= total.data  # both have the same nonzero entries, in the same order
    k = min(n_components, *shape)
    if min(shape) <= _DENSE:
        left, values, right = np.linalg.svd(asked.toarray(), full_matrices=False)
        left, values, right = left[:, :k], values[:k], right[:k]
    else:
        left, values, right = svds(asked.astype(np.float64), k=min(k, min(shape) - 1), random_state=rng)
        order = np.argsort(-values)
        left, values, right = left[:, order], values[order], right[order]
    keep = values > _TOO_SMALL * values.max(initial=0.0)
    root = np.sqrt(values[keep])
    n_random = n_components - len(root)
    w = np.hstack([left[:, keep] * root, rng.standard_normal((shape[0], n_random))])
    rest = np.sqrt(prior_var)[:, None] * rng.standard_normal((shape[1], n_random))
    return w, np.hstack([(root[:, None] * right[keep]).T, rest])


@dataclass(frozen=True, slots=True)
class FitcConditioned:
    """FITC posterior given sites."""

    mean: FloatArray  # marginals, (n,)
    var: FloatArray
    log_z: float  # log ∫ N(f; 0, K') Π_i exp(linear_i f_i - precision_i f_i²/2) df
    point_mean: FloatArray  # of the values at the pseudo-inputs, (m,), with covariance (m, m)
    point_covariance: FloatArray


@dataclass(frozen=True, slots=True)
class Fitc:
    """FITC prior K' = K_nm K_m⁻¹ K_mn + Δ with Δ = diag(K - K_nm K_m⁻¹ K_mn)."""

    factor: Factor  # of K_m
    cross: FloatArray  # K_nm, (n, m)
    own: FloatArray  # Δ, (n,), at least 0

    @classmethod
    def of(cls, K_m: FloatArray, K_nm: FloatArray, diagonal: FloatArray) -> Fitc:
        """From covariances (m, m), (n, m) and variances (n,); NotPositiveDefiniteError if K_m is singular."""
        factor = factorise(K_m)
        half = factor.solve_lower(K_nm.T)
        own = diagonal - np.einsum("mn,mn->n", half, half)
        return cls(factor, K_nm, np.maximum(own, 0.0))

    def condition(self, sites: Sites) -> FitcConditioned:
        """Posterior given sites of precision 0 or more. collaborative.md 4, without dividing by a precision.

        Whitened, B = L_K (I + Wᵀ T' W) L_Kᵀ, W = K_nm L_K⁻ᵀ, T' = τ/(1 + Δτ): a nearly singular K_m does no harm.
        """
        tau, nu = sites.precision, sites.linear
        spread = 1.0 + self.own * tau
        W = self.factor.solve_lower(self.cross.T).T
        B = factorise(symmetrise(np.eye(W.shape[1]) + W.T @ ((tau / spread)[:, None] * W)))
        half = B.solve_lower(W.T) / spread  # L_B⁻¹ P'ᵀ
        pull = half @ nu
        mean = self.own * nu / spread + pull @ half
        var = self.own / spread + np.einsum("mn,mn->n", half, half)
        log_z = 0.5 * float(nu @ mean) - 0.5 * B.log_det() - 0.5 * float(np.log(spread).sum())
        root = B.solve_lower(self.factor.lower.T)  # L_B⁻¹ L_Kᵀ
        return FitcConditioned(mean, var, log_z, pull @ root, symmetrise(root.T @ root))


class Values(NamedTuple):
    """Marginals of the values that messages are about, and log ∫ prior x messages."""

    mean: FloatArray
    var: FloatArray
    log_z: float


class Process(Protocol):
    """Gaussian process, the same for all functions or weights."""

    @property
    def projection(self) -> Projection:
        """Projection from its points to all items, or people."""
        ...

    @property
    def prior_var(self) -> FloatArray:
        """Prior variance of each value, shape (n,)."""
        ...

    def condition(self, sites: Sites) -> Values:
        """Marginals given messages about the values, of precision 0 or more."""
        ...

    def at_points(self, sites: Sites) -> tuple[FloatArray, FloatArray]:
        """Mean (M,) and covariance (M, M) at the points of ``projection``."""
        ...


@dataclass(frozen=True, slots=True)
class ExactFunctions:
    """Margins of pairs through utilities at all items: the same as the pairs' preference kernel; points are the items.

    collaborative.md 1, "utility space". n_items³ + n_pairs n_items operations: nothing of the size pairs x pairs, whose
    covariance has rank n_items - 1 at most.
    """

    design: ItemDesign

    @property
    def projection(self) -> Projection:
        return self.design.projection

    @property
    def prior_var(self) -> FloatArray:
        return self.design.prior_variances()

    def condition(self, sites: Sites) -> Values:
        state = self._state(sites)
        return Values(state.delta, state.D, 0.5 * (float(sites.linear @ state.delta) + state.log_det))

    def at_points(self, sites: Sites) -> tuple[FloatArray, FloatArray]:
        state = self._state(sites)
        return self.design.projection.at_points(state.mean, state.lower)

    def _state(self, sites: Sites) -> FunctionState:
        natural = natural_parameters(self.design.margins, sites.precision, sites.linear, 1.0)
        return FunctionState.of(self.design.margins, *natural)


@dataclass(frozen=True, slots=True)
class PseudoFunctions:
    """Margins of pairs through those of a few pseudo-pairs (FITC).

    collaborative.md 4. n_pairs m² operations a function. With pseudo-pairs that span all items it is exact.
    """

    projection: Projection  # from the items of the pseudo-pairs, and those without features, to all
    first: IntArray  # pseudo-pairs, (m,), as positions among the points of the projection
    second: IntArray
    fitc: Fitc
    prior_var: FloatArray

    @classmethod
    def of(
        cls, kernel: Kernel, features: FloatArray, known: BoolArray, left: IntArray, right: IntArray, pseudo: IntArray
    ) -> PseudoFunctions:
        """FITC for pairs of items; ``pseudo`` (m,): positions of pairs without cycles, see :func:`spanning_pairs`."""
        a, b = left[pseudo], right[pseudo]
        items = np.unique(np.concatenate([a, b]))
        with_features = items[known[items]]
        projection = Projection.of(kernel, features, known, features[with_features])
        items = np.concatenate([with_features, np.flatnonzero(~known)])
        place = np.zeros(len(known), dtype=np.int64)
        place[items] = np.arange(len(items))
        first, second = place[a], place[b]
        L, G = projection.factor.lower, projection.roots()
        cross = (G[left] - G[right]) @ (L[first] - L[second]).T
        variance = squared_differences(G, left, right) + projection.residual_pairs(left, right, G)
        fitc = Fitc.of(preference(L @ L.T, first, second), cross, variance)
        return cls(projection, first, second, fitc, variance)

    def condition(self, sites: Sites) -> Values:
        """See :class:`Process`."""
        found = self.fitc.condition(sites)
        return Values(found.mean, found.var, found.log_z)

    def at_points(self, sites: Sites) -> tuple[FloatArray, FloatArray]:
        """See :class:`Process`; f at the points given the pseudo-pairs u is A u + r with A = K Dᵀ K_m⁻¹."""
        found = self.fitc.condition(sites)
        L = self.projection.factor.lower
        D = L[self.first] - L[self.second]
        A = self.fitc.factor.solve(D @ L.T).T
        K_m = self.fitc.factor.lower @ self.fitc.factor.lower.T
        return A @ found.point_mean, symmetrise(L @ L.T - A @ (K_m - found.point_covariance) @ A.T)


@dataclass(frozen=True, slots=True)
class ExactWeights:
    """Weights of all people for one function, a Gaussian process over their features; the points are the people."""

    projection: Projection
    prior: LatentPrior

    @classmethod
    def of(cls, people: Projection) -> ExactWeights:
        """Weights of all people of a projection."""
        L = people.factor.lower
        n = len(L)
        return cls(people, LatentPrior(L @ L.T, MarginMatrix(np.arange(n), None, n), space="items"))

    @property
    def prior_var(self) -> FloatArray:
        return np.diagonal(self.prior.K).copy()

    def condition(self, sites: Sites) -> Values:
        found = self.prior.condition(sites)
        log_z = 0.5 * (float(sites.linear @ found.margin_mean) - found.log_det)
        return Values(found.margin_mean, found.margin_var, log_z)

    def at_points(self, sites: Sites) -> tuple[FloatArray, FloatArray]:
        found = self.prior.condition(sites)
        return found.mean(), found.covariance()


@dataclass(frozen=True, slots=True)
class PseudoWeights:
    """Weights of all people for one function, through those of a few (FITC); attributes as :class:`PseudoFunctions`."""

    projection: Projection
    fitc: Fitc
    prior_var: FloatArray

    @classmethod
    def of(cls, people: Projection) -> PseudoWeights:
        """Weights of the people of a projection through its points."""
        G, L = people.roots(), people.factor.lower
        variance = np.einsum("nm,nm->n", G, G) + people.own
        return cls(people, Fitc.of(L @ L.T, G @ L.T, variance), variance)

    def condition(self, sites: Sites) -> Values:
        """See :class:`Process`."""
        found = self.fitc.condition(sites)
        return Values(found.mean, found.var, found.log_z)

    def at_points(self, sites: Sites) -> tuple[FloatArray, FloatArray]:
        """See :class:`Process`."""
        found = self.fitc.condition(sites)
        return found.point_mean, found.point_covariance


def spanning_pairs(left: IntArray, right: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Random spanning forest: positions of at most ``most`` pairs without a cycle.

    A pair that closes a cycle is a sum of differences that are there already: as a pseudo-input it would add nothing
    but a singular covariance. **Differs from the code**, which draws from all pairs.
    """
    n_items = int(max(left.max(), right.max())) + 1
    order = rng.permutation(len(left)) + 1.0  # not 0, which a sparse graph would take for no edge
    tree = minimum_spanning_tree(coo_array((order, (left, right)), shape=(n_items, n_items)))
    chosen = np.sort(tree.data)[:most]
    return np.sort(np.argsort(order)[chosen.astype(np.int64) - 1])
