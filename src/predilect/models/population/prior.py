"""Hyper-parameters, basis of the utilities, and prior of the population model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigvalsh

from predilect._base.arguments import check_choice, check_count, check_positive
from predilect._base.json import typed
from predilect._base.stored import PLAIN, numbers, within
from predilect._base.text import quoted, written
from predilect._base.types import BoolArray, FloatArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.inference.gaussian.dense import factorise, solve_lower
from predilect.inference.gaussian.kernels import squared_exponential
from predilect.inference.gaussian.projection import centres
from predilect.inference.likelihoods.calibration import RANGES, Calibration, restored_calibration
from predilect.inference.people.layout import People
from predilect.models.checks import LARGEST, _is_auto, _number

BASES = ("items", "attributes", "inducing", "attributes+inducing")
_LEAST_SHARE = 1e-6  # keeps the prior of an item-specific residual proper at an inducing point


@dataclass(frozen=True, slots=True)
class Functions:
    """M basis functions of an item's features: f_u = Φ β_u + e_u (population.md section 6).

    If ``own``, item-specific residuals exceed what inducing points lose: w is then the share of the prior variance that
    features explain, attributes and kernel half each. Otherwise w is the share of the kernel, and attributes have the
    rest. A kernel without attributes always leaves 1 - w to the items.
    """

    kind: Annotated[str, PLAIN]
    n_attributes: Annotated[int, PLAIN]  # the first columns of Φ
    # their divisor: rows of mean square 1, so that prior scales mean the same for every basis
    attribute_scale: Annotated[float, within(1.0 / LARGEST)]
    points: Annotated[FloatArray, numbers("P F")]  # inducing points Z, in feature space
    length_scale: Annotated[float, within(1.0 / LARGEST)]
    own: Annotated[bool, PLAIN]

    def checked(self) -> None:
        """ValueError unless the kind is one of :data:`BASES` but "items", and has such points and attributes."""
        has_points, has_attributes = self.kind.endswith("inducing"), self.kind.startswith("attributes")
        n_attributes = self.points.shape[1] if has_attributes else 0
        if self.kind not in BASES[1:] or self.n_attributes != n_attributes or (len(self.points) and not has_points):
            raise ValueError(
                f"{self.n_attributes} attributes and {len(self.points)} points of a basis {self.kind!r:.100}"
            )

    @classmethod
    def of(
        cls, kind: str, space: FeatureSpace, points: FloatArray, length_scale: float, own: bool = False
    ) -> Functions:
        """Functions of a kind, one of :data:`BASES` but "items"."""
        attributes = kind.startswith("attributes")
        scale = float(np.sqrt(np.sum(space.matrix[space.known] ** 2) / max(int(space.known.sum()), 1)))
        if not kind.endswith("inducing"):
            points = points[:0]
        return cls(kind, space.matrix.shape[1] if attributes else 0, scale or 1.0, points, length_scale, own)

    @property
    def n_functions(self) -> int:
        """Number of functions M."""
        return self.n_attributes + len(self.points)

    def rows(self, space: FeatureSpace) -> FloatArray:
        """Design matrix Φ of some items, (n_items, M); zeros for an item without features.

        Kernel columns are K_xZ L⁻ᵀ with K_ZZ = L Lᵀ: independent weights of variance 1 are the Nyström approximation.
        """
        parts = []
        if self.n_attributes:
            parts.append(space.matrix / self.attribute_scale)
        if len(self.points):
            lower = factorise(squared_exponential(self.points, self.points, self.length_scale)).lower
            cross = squared_exponential(self.points, space.matrix, self.length_scale)
            parts.append(solve_lower(lower, cross).T)
        Phi = np.ascontiguousarray(np.hstack(parts))
        Phi[~space.known] = 0.0
        return Phi

    def prior_covariance(self, weight: float) -> FloatArray:
        """Diagonal prior covariance (M, M): shares of the prior variance, a millionth at least, to be proper."""
        attributes, kernel = self._shares(weight)
        shares = np.repeat([attributes, kernel], [self.n_attributes, len(self.points)])
        return np.diag(np.maximum(shares, _LEAST_SHARE))

    def own_share(self, Phi: FloatArray, known: BoolArray, weight: float) -> FloatArray:
        """Share of the prior variance that functions and inducing points lose, (n_items,); empty if none."""
        attributes, kernel = self._shares(weight)
        if not len(self.points) and attributes == 1.0 and known.all():
            return np.zeros(0)
        share = 1.0 - attributes - kernel * np.sum(Phi[:, self.n_attributes :] ** 2, axis=1)
        return np.where(known, np.maximum(share, _LEAST_SHARE), 1.0)

    def slopes(self, Phi: FloatArray, known: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives in w of the diagonal of :meth:`prior_covariance`, (M,), and of :meth:`own_share`, (n_items,)."""
        (low, low_kernel), (high, high_kernel) = self._shares(0.0), self._shares(1.0)
        attributes, kernel = high - low, high_kernel - low_kernel
        share = -attributes - kernel * np.sum(Phi[:, self.n_attributes :] ** 2, axis=1)
        return np.repeat([attributes, kernel], [self.n_attributes, len(self.points)]), np.where(known, share, 0.0)

    @property
    def has_weight(self) -> bool:
        """Whether w is a parameter: not with attributes only."""
        return self.own or len(self.points) > 0

    def _shares(self, weight: float) -> tuple[float, float]:
        """Shares of attributes and of the kernel, linear in w."""
        if not len(self.points):
            return (weight, 0.0) if self.own else (1.0, 0.0)
        if not self.n_attributes:
            return 0.0, weight
        return (0.5 * weight, 0.5 * weight) if self.own else (1.0 - weight, weight)

    def to_dict(self) -> dict[str, Any]:
        """Kind and numbers of functions, for the report."""
        return {"kind": self.kind, "n_attributes": self.n_attributes, "n_inducing": len(self.points), "own": self.own}


def inducing_points(space: FeatureSpace, n_points: int, random_state: int) -> FloatArray:
    """Inducing points (<= n_points, n_columns): k-means centres of the items with features."""
    return centres(space.matrix[space.known], n_points, random_state)


# Where nothing is given, and where a search begins.
DEFAULTS = {"strength": 30.0, "variance": 4.0, "consensus_variance": 4.0, "feature_weight": 0.5}


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Hyper-parameters of the population model (population.md section 1), variances in units of the answer noise."""

    strength: float  # ν₀, weight of the prior of the population covariance, in people
    variance: float  # s₀, prior variance of a person's utility about the consensus
    consensus_variance: float  # s_t, prior variance of a consensus utility
    feature_weight: float  # w, share of the prior variance that item features explain
    length_scale: float  # ℓ of the squared exponential kernel, in standard deviations of a feature
    # w of the consensus; by default ``feature_weight``. Features may explain how people differ but not what they
    # agree on, or the other way round
    consensus_feature_weight: float | None = None
    # s_b, prior variance of the effect of a person's trait on a utility; 0 if traits are not used
    trait_scale: float = 0.0
    # prior variance of each segment's effect on a utility, in the order of their traits; empty without segments
    segment_variances: tuple[float, ...] = ()
    calibration: Calibration = field(default_factory=Calibration)  # how probabilities of answers follow from margins
    # σ_δ: the logarithm of a person's own tie threshold is N(log δ, σ_δ²); 0 where all share one
    tie_spread: float = 0.0
    # σ_ψ: logarithms of the factors by which items move the tie threshold are N(0, σ_ψ²); 0 where all tie alike
    item_tie_spread: float = 0.0
    # σ_a: the logarithm of a person's consistency is N(0, σ_a²); 0 where all answer with the same care
    consistency_spread: float = 0.0
    # π: the share of people who click at random
    click_rate: float = 0.0
    # of their answers: shares of ties and of decided answers, or of each grade; empty where nobody does
    click_shares: tuple[float, ...] = ()
    # c, consistency of the median person: utilities of the posterior, whose noise is that person's, are c times those
    # that all other variances here are of
    unit: float = 1.0
    # how unsure the noise is in which the consensus is told: sd of a factor of all of it
    unit_sd: float = 0.0
    # standard deviations over people of their own effects of covariates of answers, in units near the root mean square
    # of each; empty where all people have the same
    covariate_spread: tuple[float, ...] = ()
    # r, in how many directions people differ beside what items keep to themselves; None: in any, as ν₀ allows
    directions: int | None = None

    @property
    def consensus_weight(self) -> float:
        """W of the consensus, given or shared."""
        return self.feature_weight if self.consensus_feature_weight is None else self.consensus_feature_weight

    @property
    def calibration_of_predictions(self) -> Calibration:
        """Calibration that the posterior takes: with the spreads of what people have of their own."""
        return replace(
            self.calibration, tie_spread=self.tie_spread, consistency_spread=self.consistency_spread,
            click_rate=self.click_rate, unit=self.unit, unit_sd=self.unit_sd,
        )  # fmt: skip

    def in_unit(self) -> Hyperparameters:
        """Variances and spreads of effects of the posterior's utilities."""
        square = self.unit**2
        return replace(
            self, variance=square * self.variance, consensus_variance=square * self.consensus_variance,
            trait_scale=square * self.trait_scale, unit=1.0,
            segment_variances=tuple(square * value for value in self.segment_variances),
            covariate_spread=tuple((self.unit * np.array(self.covariate_spread)).tolist()),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "consensus_feature_weight": self.consensus_weight}


# Population covariance next to nothing, and held there: one ranking for all, in the model that knows people, even if
# one answers a hundred times as consistently.
ONE_MIND = {"strength": 1e4, "variance": 1e-8}
# With less strength than this, in directions that matter, one person can have a direction of Σ to himself, and J keeps
# rewarding it.
LEAST_STRENGTH = 0.5
_SMALLEST_FIRST_SCALE = 0.5
# What J gains at most by one more direction of Σ that overfits, over what it pays for it per person and
# unit of strength: .57 nats an answer, over half of log(v / s₀), which is about 9 where that happens.
_GAIN_OVER_COST = 1.0 / 8.0
# Where answers are few the prior of s₀ is about a quarter of s_t: people differ half as much as items do.
SHARE_OF_PEOPLE, SD_OF_LOG_SHARE = 0.25, 2.0
_FEW_PEOPLE = 0.5  # as a share of the functions that may vary on their own
MANY_FUNCTIONS = 300  # above, M x M algebra outweighs the answers: fewer passes and trials
_FEWEST_FOR_SCALES = 4.0  # answers, as a multiple of the functions that may vary on their own
_FEW_FOR_CONSENSUS = 100.0  # squares of people's numbers of answers, as a multiple of the square of these functions


@dataclass(frozen=True, slots=True)
class PopulationPrior:
    """Prior of the population model."""

    # K₀, (M, M): how alike items are, unit diagonal (M = n_items), or the prior shape of Σ on the functions of a basis
    K: FloatArray
    strength: float  # ν₀, the weight of the prior of Σ, in people
    variance: float  # s₀, prior variance of a person's utility about the consensus
    consensus_variance: float  # s_t, prior variance of a consensus utility
    K_consensus: FloatArray | None = None  # K_t; K₀ unless given, (M, M)
    Phi: FloatArray | None = None  # the basis; by default the items, (n_items, M)
    # share of the prior variance that an item has to itself; empty if none has any, (n_items,)
    own_share: FloatArray = field(default_factory=lambda: np.zeros(0))
    trait_scale: float = 1.0  # s_b, prior variance of the effect of a trait of people; its shape is K_t
    # σ_δ, prior standard deviation of the logarithm of a person's own tie threshold; 0: one for all
    tie_spread: float = 0.0
    consistency_spread: float = 0.0  # σ_a, the same for a person's consistency
    covariate_spread: tuple[float, ...] = ()  # of people's own effects of covariates; empty: one for all
    click_rate: float = 0.0  # π, the share of people who click at random
    directions: int | None = None  # r, in how many Σ departs from its shape; None: in any, and ν₀ weighs them

    @classmethod
    def of(
        cls,
        h: Hyperparameters,
        space: FeatureSpace,
        functions: Functions | None = None,
        Phi: FloatArray | None = None,
    ) -> PopulationPrior:
        """The prior that hyper-parameters and features make; ``Phi`` saves computing the rows of the functions."""
        traits = h.trait_scale or 1.0
        own = (h.tie_spread, h.consistency_spread, h.covariate_spread, h.click_rate)
        if functions is not None:
            Phi = functions.rows(space) if Phi is None else Phi
            share = functions.own_share(Phi, space.known, h.feature_weight)
            K = functions.prior_covariance(h.feature_weight)
            return cls(K, h.strength, h.variance, h.consensus_variance, None, Phi, share, traits, *own)
        K = space.covariance(h.feature_weight, h.length_scale)
        shared = h.consensus_weight == h.feature_weight
        K_t = None if shared else space.covariance(h.consensus_weight, h.length_scale)
        none = np.zeros(0)
        return cls(K, h.strength, h.variance, h.consensus_variance, K_t, None, none, traits, *own, h.directions)

    @property
    def precision_of_effects(self) -> float:
        """Of the effects of covariates."""
        return 1.0 / self.consensus_variance

    @property
    def n_functions(self) -> int:
        """M."""
        return len(self.K)

    def precision_of_consensus(self) -> FloatArray:
        """K_t⁻¹, (M, M)."""
        return factorise(self.K if self.K_consensus is None else self.K_consensus).inverse()


def second_moment(inverse_K: FloatArray, m: FloatArray, C: FloatArray) -> float:
    """E xᵀK⁻¹x of x ~ N(m, C): the EM step of a prior variance takes its share of each of the M functions."""
    return float(m @ inverse_K @ m + np.vdot(inverse_K, C))


def dimension(prior: PopulationPrior) -> float:
    """In how many directions people's prior variance exceeds the noise of an answer: Σ λ / (1 + λ) over s₀ K₀."""
    return _dimension(prior.variance * _spectrum(prior.K))


def n_free_functions(prior: PopulationPrior) -> float:
    """How many functions vary on their own: the participation ratio (tr K₀)² / tr K₀² of the prior's spectrum."""
    return float(np.trace(prior.K)) ** 2 / float(np.vdot(prior.K, prior.K))


def are_few(n_people: int, prior: PopulationPrior) -> bool:
    """Whether people are few for the functions that may vary on their own: then they may be learned by heart."""
    return n_people < _FEW_PEOPLE * n_free_functions(prior)


def is_consensus_costly(people: People, prior: PopulationPrior) -> bool:
    """Whether it matters to the evidence of s₀ that the consensus is integrated out, and not at its best.

    That is worth up to half a nat for each function and unit of log s₀, and answers of a person tell of s₀ where
    they share items: by the squares of their numbers over that of the functions. Of more than 300 functions it takes
    three times as long, and gained less than .001 nats an answer; of fewer than four answers a function the largest
    evidence is as often far from the truth as near it, and the start of the search is as good.
    """
    n = n_free_functions(prior)
    return are_few(people.n_active, prior) or (
        prior.n_functions <= MANY_FUNCTIONS
        and people.n_answers >= _FEWEST_FOR_SCALES * n
        and people.n_shared < _FEW_FOR_CONSENSUS * n**2
    )


def log_prior_of_variances(variance: float, consensus_variance: float) -> float:
    """Weak log prior of s₀ and s_t where answers are few.

    Where answers are few, any common scale fits them as well. The prior of its logarithm is Cauchy's, about utilities
    that differ by as much as the noise of an answer: its tails let many answers go where they like.
    """
    size, ratio = math.log(variance + consensus_variance), math.log(variance / (SHARE_OF_PEOPLE * consensus_variance))
    return -math.log1p(size**2) - 0.5 * (ratio / SD_OF_LOG_SHARE) ** 2


def least_strength(prior: PopulationPrior, n_people: int, n_answers: float) -> float:
    """The strength below which J may be largest where the model overfits.

    A direction over n items separates up to 2n answers without error (Cover's capacity), whoever gave them. It gains
    J the log loss of so many answers, and costs ½ (U + ν₀) log(v / s₀) for its variance v.
    """
    overfitting = _GAIN_OVER_COST * min(2.0 * n_free_functions(prior), n_answers) - n_people
    return max(LEAST_STRENGTH * dimension(prior), overfitting)


def first_scale(prior: PopulationPrior, n_people: int) -> float:
    """Prior variance of the Σ from which a search starts, for a crowd of so many people who answered.

    Σ shrinks in a few passes where it must, but grows slowly, so that a small prior is no good start. But from a Σ that
    is large in more directions than people and prior can hold, the search goes to another maximum of J, where a few
    directions, far beyond the prior, fit every answer of everybody; it takes hundreds of passes to get there.
    """
    from scipy.optimize import brentq

    if prior.variance >= _SMALLEST_FIRST_SCALE:
        return prior.variance
    most = (prior.strength + n_people) / LEAST_STRENGTH
    if min(prior.n_functions, _SMALLEST_FIRST_SCALE * float(np.trace(prior.K))) <= most:  # a bound of the dimension
        return _SMALLEST_FIRST_SCALE
    values = _spectrum(prior.K)

    def excess(log_scale: float) -> float:
        return _dimension(math.exp(log_scale) * values) - most

    low, high = math.log(prior.variance), math.log(_SMALLEST_FIRST_SCALE)
    if excess(high) <= 0.0:
        return _SMALLEST_FIRST_SCALE
    return prior.variance if excess(low) >= 0.0 else math.exp(brentq(excess, low, high))


def _spectrum(K: FloatArray) -> FloatArray:
    diagonal = np.diagonal(K)
    plain = np.array_equal(K, np.diag(diagonal))
    return np.maximum(diagonal if plain else eigvalsh(K, check_finite=False), 0.0)


def _dimension(values: FloatArray) -> float:
    shares: list[float] = (values / (1.0 + values)).tolist()
    return math.fsum(shares)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Basis to try: functions of the items' features, Φ (n_items, M); None: the items themselves."""

    functions: Functions | None
    Phi: FloatArray | None

    @classmethod
    def of(cls, functions: Functions | None, space: FeatureSpace) -> Candidate:
        """Candidate with the rows of the items of a space."""
        return cls(functions, None if functions is None else functions.rows(space))

    @property
    def kind(self) -> str:
        """Name of the basis."""
        return "items" if self.functions is None else self.functions.kind

    def prior(self, setting: Hyperparameters, space: FeatureSpace) -> PopulationPrior:
        """Prior with these hyper-parameters."""
        return PopulationPrior.of(setting, space, self.functions, self.Phi)

    @property
    def has_kernel(self) -> bool:
        """Whether there are inducing points."""
        return self.functions is not None and len(self.functions.points) > 0

    def with_length(self, length_scale: float, space: FeatureSpace) -> Candidate:
        """Candidate with another length scale; unchanged where there are no inducing points."""
        if self.functions is None or not self.has_kernel or self.functions.length_scale == length_scale:
            return self
        return Candidate.of(replace(self.functions, length_scale=length_scale), space)


# Name: smallest and largest value allowed.
_RANGES = {
    "strength": (1e-6, 1e12),
    "variance": (1e-8, 1e8),
    "consensus_variance": (1e-8, float("inf")),
    "feature_weight": (0.0, 1.0),
    "consensus_feature_weight": (0.0, 1.0),
    "length_scale": (1e-6, 1e6),
    "tie_spread": RANGES["tie_spread"],
    "item_tie_spread": RANGES["tie_spread"],
    "consistency_spread": RANGES["consistency_spread"],
    "click_rate": RANGES["click_rate"],
}
_RANGES_OF_FOUND = {
    "trait_scale": (0.0, LARGEST),
    "unit": (1.0 / LARGEST, LARGEST),
    "unit_sd": (0.0, LARGEST),
    "directions": (0.0, LARGEST),
}
# What answers have to tell for a search to be about a setting: item features, ties, ties or grades ("cuts").
_INFORMED_BY = {
    "feature_weight": "features", "length_scale": "features", "tie_spread": "cuts", "item_tie_spread": "ties",
    "consensus_feature_weight": "",  # a move of its own looks for it
}  # fmt: skip


def searchable(informed: set[str]) -> list[str]:
    """Settings that a search is about, where answers tell of "features", "ties" or "cuts"."""
    return ["calibration", *(name for name in _RANGES if _INFORMED_BY.get(name) in {None, *informed})]


_PARAMETERS = {
    "consensus_feature_weight": "feature_weight", "tie_spread": "tie_threshold", "item_tie_spread": "tie_threshold",
    "consistency_spread": "consistency", "click_rate": "clickers",
}  # fmt: skip
_SEARCHED = ("strength", "variance", "consensus_variance", "length_scale")


def threshold_and_spreads(model: Any) -> tuple[Any, Any, Any]:
    """The tie threshold that is asked for, and its spreads over people and items: none where they are not given."""
    delta = model.tie_threshold
    if isinstance(delta, tuple | list) and len(delta) == 3:
        threshold, spread, of_items = delta
        return threshold, spread, of_items
    delta, spread = _pair("tie_threshold", delta, delta if _is_auto(delta) else 0.0)
    return delta, spread, delta if _is_auto(model.tie_threshold) else 0.0


def given_hyperparameters(model: Any) -> dict[str, Any]:
    """Hyper-parameters that are given and not "auto"; DataError if one is neither, or out of its range."""
    weights = _pair("feature_weight", model.feature_weight, model.feature_weight)
    _, spread, item_spread = threshold_and_spreads(model)
    parts = dict(zip(("feature_weight", "consensus_feature_weight"), weights, strict=True))
    parts |= {"tie_spread": spread, "item_tie_spread": item_spread}
    parts |= {"consistency_spread": model.consistency, "click_rate": model.clickers}
    given: dict[str, Any] = {}
    for name, (low, high) in _RANGES.items():
        value = parts[name] if name in parts else getattr(model, name)
        if not _is_auto(value):
            given[name] = _number(_PARAMETERS.get(name, name), value, low, high)
    if model.calibration is None:
        given["calibration"] = Calibration()
    elif isinstance(model.calibration, Calibration):
        if model.calibration.tie_spread or model.calibration.consistency_spread or model.calibration.click_rate:
            raise DataError(
                "spreads and clickers are given with the model's tie_threshold=(..., spread), consistency= and "
                "clickers=, not its calibration"
            )
        given["calibration"] = model.calibration
    elif not _is_auto(model.calibration):
        words = " or ".join(map(written, ("auto", None)))
        raise DataError(f"calibration must be {words} or a Calibration, not {quoted(model.calibration)}")
    return given


def _pair(name: str, value: Any, second: Any) -> tuple[Any, Any]:
    """Both parts of a parameter that is a pair, or one value: then ``second`` is the other part."""
    if not isinstance(value, tuple | list):
        return value, second
    if len(value) != 2:
        raise DataError(f"{name} must be one value or a pair, not {quoted(value)}")
    first, second = value
    return first, second


def restored_hyperparameters(values: Mapping[str, Any]) -> Hyperparameters:
    """Hyper-parameters of a saved model; ValueError if one is out of its range."""
    rest = {name: value for name, value in values.items() if name != "calibration"}
    found: Hyperparameters = typed(Hyperparameters, rest, "hyperparameters")
    found = replace(found, calibration=restored_calibration(values["calibration"]))
    for name, (low, high) in (_RANGES | _RANGES_OF_FOUND).items():
        value = getattr(found, name)
        if name in _SEARCHED:  # which may go beyond what may be given
            low, high = 1.0 / LARGEST, LARGEST
        if value is not None and not low <= value <= high:
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {quoted(value)}")
    if not all(1.0 / LARGEST <= variance <= LARGEST for variance in found.segment_variances):
        raise ValueError(f"variances of segments must be positive numbers, not {found.segment_variances!r:.100}")
    if not all(1.0 / LARGEST <= spread <= LARGEST for spread in found.covariate_spread):
        raise ValueError(f"spreads of effects must be positive numbers, not {found.covariate_spread!r:.100}")
    for name in ("tie_spread", "item_tie_spread", "consistency_spread"):
        if 0.0 < getattr(found, name) < 1.0 / LARGEST:  # whose square is divided by
            raise ValueError(f"{name} must be 0, or more than {1.0 / LARGEST:g}, not {quoted(getattr(found, name))}")
    return found


def check_settings(model: Any) -> None:
    """DataError if an argument that says how to compute is neither "auto" nor in its range."""
    check_positive("tol", model.tol, "auto")
    check_count("max_iter", model.max_iter, 1)
    check_choice("basis", model.basis, ("auto", *BASES))
    check_count("n_inducing", model.n_inducing, 1, "auto")
    check_choice("user_features", model.user_features, ("auto", True, False))
