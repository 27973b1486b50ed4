"""Saving of models of many people: their answers in a layout, or factors and weights; description of the latter."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np

from predilect._text import either
from predilect._types import BoolArray, FloatArray
from predilect.data.features import FeatureSpace, Traits
from predilect.data.orders import implied_rows
from predilect.errors import DataError
from predilect.factors.answers import CrowdWeights, LinearWeights, ProcessWeights, StandardWeights, WeightPrior
from predilect.factors.posterior import FactorPosterior
from predilect.gaussian.design import Sites
from predilect.gaussian.kernels import Kernel
from predilect.gaussian.posterior import GaussianPosterior
from predilect.gaussian.projection import Projection
from predilect.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.models.checks import LARGEST, kernel_from_dict, kernel_to_dict
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import Queries, Training, rows_of_features
from predilect.models.saving import (
    Field,
    Fields,
    amounts,
    codes,
    covariance,
    flags,
    number_within,
    numbers,
    optional,
    outcomes,
    pointer,
    positive,
)
from predilect.people.law import Basis, Effects
from predilect.people.layout import People
from predilect.people.posterior import PopulationPosterior
from predilect.progress import Watcher
from predilect.shards import workers

_CONSISTENCY = ("consistency", "consistency_sd")  # where people differ in it
_ARRAYS = ("traits", "tie_factor", "answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight")

# U people with T traits, R rows of answers, K own items of all of them.
PEOPLE_ARRAYS: Fields = {
    "traits": numbers("U T"), "tie_factor": positive("U"), "answer_ptr": pointer("U+1", "R"),
    "item_ptr": pointer("U+1", "K"), "item_idx": codes("K", "I"), "left": codes("R", "I"), "right": codes("R", "I"),
    "outcome": outcomes("R"), "weight": positive("R"), "site_precision": amounts("R"), "site_linear": numbers("R"),
    "shards": amounts("S 2", "int64"), "consistency": optional(positive("U")),
    "consistency_sd": optional(amounts("U")), "variant": optional(codes("R", "V")), "task": optional(codes("R", "R")),
}  # fmt: skip


def pack_people(people: People, sites: Sites) -> dict[str, Any]:
    """Arrays of a layout, and of the sites of its answers."""
    names = (*_ARRAYS, *_CONSISTENCY) if people.consistency_sd.any() else _ARRAYS
    more = {"variant": people.variant.astype(np.int32)} if people.variant.any() else {}
    if (people.task >= 0).any():
        number = np.unique(np.where(people.task < 0, -1, people.task), return_inverse=True)[1]
        more["task"] = (number + (people.task.min() >= 0)).astype(np.int32)
    return {name: getattr(people, name) for name in names} | more | {
        "shards": np.array(people.shards, dtype=np.int64), "site_precision": sites.precision,
        "site_linear": sites.linear,
    }  # fmt: skip


def unpack_people(arrays: dict[str, Any], n_items: int) -> tuple[People, Sites]:
    """The layout and the sites that :func:`pack_people` packed; ValueError if the arrays do not fit each other."""
    shards = [(int(start), int(stop)) for start, stop in arrays["shards"]]
    own = {name: arrays[name] for name in (*_ARRAYS, *_CONSISTENCY) if name in arrays}
    if "variant" in arrays:
        own["variant"] = arrays["variant"].astype(np.int64)
    if "task" in arrays:
        own["task"] = arrays["task"].astype(np.int64) - 1
    people = People(**own, n_items=n_items, shards=shards)
    owner = np.repeat(np.arange(people.n_users), np.diff(people.item_ptr))
    if (np.diff(owner * n_items + people.item_idx) <= 0).any():
        raise ValueError("the own items of a person do not ascend")
    n_own = np.repeat(np.diff(people.item_ptr), np.diff(people.answer_ptr))
    if (people.left >= people.right).any() or (people.right >= n_own).any():
        raise ValueError("an answer compares what is not two of the person's own items")
    _check_orders(people)
    edges = [0, *(stop for _, stop in shards)]
    if shards != list(pairwise(edges)) or edges != sorted(edges) or edges[-1] != people.n_users:
        raise ValueError("the shards do not hold every person once, in order")
    return people, Sites(arrays["site_precision"], arrays["site_linear"])


def _check_orders(people: People) -> None:
    """ValueError for tasks of one row's weight, of ties, or that contradict themselves."""
    rows = np.flatnonzero(people.task >= 0)
    if not len(rows):
        return
    if (people.weight[rows] != 1.0).any() or (people.outcome[rows] == 0).any():
        raise ValueError("a task holds a tie, or an answer counted more than once")
    owner = np.repeat(np.arange(people.n_users), np.diff(people.answer_ptr))[rows]
    order = np.lexsort((people.task[rows], owner))
    rows, owner = rows[order], owner[order]
    group = np.cumsum(np.append(0, (np.diff(people.task[rows]) != 0) | (np.diff(owner) != 0)))
    if implied_rows(group, people.left[rows], people.right[rows], people.outcome[rows])[1] >= 0:
        raise ValueError("a task contradicts itself")


CROWD_ARRAYS: Fields = PEOPLE_ARRAYS | {"m": numbers("I"), "C_m": covariance("I I"), "Sigma": covariance("I I")}


def crowd_margins(model: Any, queries: Queries, posterior: PopulationPosterior) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the queried margins, (n,)."""
    with workers(model.n_jobs) as executor:
        return posterior.margins(queries.users, queries.left, queries.right, executor=executor)


def with_new_items(
    posterior: PopulationPosterior, prior: Projection, new: FeatureSpace, *, spread: float, consensus_spread: float
) -> PopulationPosterior:
    """With items appended that have no answers, f_new = A f + r given all users' utilities f of the others.

    A = K_*o K_oo⁻¹; the covariance of r is K_** - A K_o* times ``spread``, for the consensus ``consensus_spread``.
    """
    n = posterior.n_items
    everything = prior.with_items(new.matrix, new.known)
    assert everything.A is not None
    A, R = everything.A[n:], everything.residual()[n:, n:]
    consensus = GaussianPosterior(posterior.m, posterior.C_m).extended(A, R, consensus_variance=consensus_spread)
    # ``extended`` takes the spread apart as scale (strength + trace) / (strength + n).
    return posterior.extended(A, R, consensus=consensus, scale=spread, strength=0.0, trace=float(n))


def pack_crowd(posterior: PopulationPosterior) -> dict[str, Any]:
    """Arrays of a posterior, but for those of a basis or of effects."""
    later = {} if posterior.newcomers is None else {"newcomers": posterior.newcomers}
    own = {"m": posterior.m, "C_m": posterior.C_m, "Sigma": posterior.Sigma}
    if posterior.newcomer_shift is not None:
        own["newcomer_shift"] = posterior.newcomer_shift
    return pack_people(posterior.people, posterior.sites) | later | own


def unpack_crowd(
    arrays: dict[str, Any],
    n_items: int,
    basis: Basis | None = None,
    effects: Effects | None = None,
    calibration: Calibration = UNCALIBRATED,
) -> PopulationPosterior:
    """The posterior that :func:`pack_crowd` packed; ValueError if the arrays do not fit each other."""
    m, C_m, Sigma = arrays["m"], arrays["C_m"], arrays["Sigma"]
    people, sites = unpack_people(arrays, n_items)
    newcomers = arrays.get("newcomers")
    return PopulationPosterior(
        m, C_m, Sigma, people, sites, basis, effects, calibration=calibration, newcomers=newcomers,
        newcomer_shift=arrays.get("newcomer_shift"),
    )  # fmt: skip


_COVARIANCE_OR_VARIANCES = Field(
    "U C C|U C", "float64", "covariances, or variances",
    lambda a, sizes: (covariance("") if a.ndim == 3 else amounts("")).is_right(a, sizes),
)  # fmt: skip


def traits_of_people(model: Any, training: Training) -> tuple[Traits | None, FloatArray | None]:
    """Map from user features to traits, and all users' traits; None unless asked for, DataError if there are none."""
    if not model.user_features:
        return None, None
    if training.people is None:
        raise DataError(
            f"user_features=True needs features of people. Give them "
            f"({either('--people FILE', 'people=...')}), or leave it out"
        )
    aligned = training.people.align(training.comparisons.users)
    traits = Traits.of(*aligned)
    return (traits, traits.transform(*aligned)) if traits.rotation.shape[1] else (None, None)


def traits_of_new_users(model: Any, queries: Queries, people: Any) -> FloatArray | None:
    """Traits of unseen users, row by row of the queries; None if they do not matter."""
    if people is None or not queries.new_users or model._traits is None or model.user_features_ is None:
        return None
    rows = rows_of_features(queries.new_users, model.user_features_, people)
    return queries.of_new_users(model._traits.transform(*rows))


class FactorEstimator(Estimator):
    """Base of estimators with functions of the items that people share and weigh."""

    item_features = True  # whether features of items count: an argument of subclasses
    n_jobs: int | None
    posterior_: FactorPosterior
    _traits: Traits | None

    @abstractmethod
    def _fit(self, training: Training, delta: float | None, watch: Watcher | None) -> tuple[Learned, Traits | None]:
        """As :meth:`_learn`, with the traits of people if they are used."""

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        with workers(self.n_jobs):
            learned, self._traits = self._fit(training, delta, watch)
        return learned

    def _margins(self, queries: Queries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new = self.posterior_, self._new_items(queries, items)
        traits = traits_of_new_users(self, queries, people)
        if new is not None:
            posterior = posterior.with_items(new.matrix, new.known & self.item_features)
        return posterior.margins(queries.users, queries.left, queries.right, traits=traits)

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return pack_factor(self.posterior_, self._traits)

    @classmethod
    def _fields(cls, document: dict[str, Any]) -> Fields:
        return factor_fields(document["posterior"]["weights"], has_traits="trait_mean" in document["arrays"])

    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> FactorPosterior:
        known = self._space.known & self.item_features
        posterior, self._traits = unpack_factor(values, arrays, self.hyperparameters_.kernel, self._space.matrix, known)
        return posterior


def describe_features(model: Any, *, item_features: bool = True) -> list[str]:
    """Sentences on the features of items, if they are used, and of users."""
    lines = []
    if model.features_ is not None and item_features:
        lines.append(f"Item features: {', '.join(model.features_.sources) or 'none of use'}.")
    if model.user_features_ is not None:
        how = "used" if model._traits is not None else "not used"
        lines.append(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {how}.")
    return lines


def pack_factor(posterior: FactorPosterior, traits: Traits | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of a posterior, from which projections are rebuilt."""
    p, w = posterior.projection, posterior.weights
    arrays: dict[str, Any] = {
        "m": posterior.v_mean, "C_m": posterior.v_covariance, "component_scale": posterior.v_scale,
        "weights": posterior.w_mean, "weights_covariance": posterior.w_covariance,
    }  # fmt: skip
    values: dict[str, Any] = {"consensus_scale": posterior.t_scale, "weights": type(w).__name__}
    if posterior.t_mean is not None and posterior.t_covariance is not None:
        arrays |= {"t": posterior.t_mean, "C_t": posterior.t_covariance}
    if p.A is not None:
        arrays["points"] = p.points[p.known_points]
    if traits is not None:
        arrays |= {"trait_mean": traits.mean, "trait_rotation": traits.rotation}
    if isinstance(w, StandardWeights) and w.variance is not None:
        arrays["weight_variance"] = w.variance
    elif isinstance(w, LinearWeights):
        arrays |= {"B": w.effects, "C_B": w.covariance}
    elif isinstance(w, CrowdWeights):
        arrays |= {"B": w.effects, "C_B": w.covariance, "weight_variance": w.spread}
    elif isinstance(w, ProcessWeights):
        values["user_kernel"] = kernel_to_dict(w.projection.kernel)
        arrays |= {
            "weight_variance": w.variance, "is_process": w.process, "process_mean": w.mean,
            "process_covariance": w.covariance, "user_rows": w.projection.features,
        }  # fmt: skip
        if w.projection.A is not None:
            arrays["user_points"] = w.projection.points
    return values, arrays


def factor_fields(law: str, *, has_traits: bool) -> Fields:
    """Shapes of a saved posterior's arrays: P inducing points, M with featureless items, C components, T traits."""
    fields: Fields = {
        "points": optional(numbers("P F")), "component_scale": positive("C"), "m": numbers("M C"),
        "C_m": covariance("C M M"), "t": optional(numbers("M")), "C_t": optional(covariance("M M")),
        "weights": numbers("U C"), "weights_covariance": _COVARIANCE_OR_VARIANCES,
    }  # fmt: skip
    if has_traits:
        fields |= {"trait_mean": numbers("G"), "trait_rotation": numbers("G T")}
    if law == "LinearWeights":
        fields |= {"B": numbers("C T"), "C_B": covariance("C T T")}
    elif law == "CrowdWeights":
        columns = "T+1" if has_traits else "1"
        fields |= {"B": numbers(f"C {columns}"), "C_B": covariance(f"C {columns} {columns}")}
        fields["weight_variance"] = amounts("C")
    elif law == "ProcessWeights":
        fields |= {
            "user_rows": numbers("U T"), "user_points": optional(numbers("Q T")), "is_process": flags("C"),
            "process_mean": numbers("Q C"), "process_covariance": covariance("C Q Q"), "weight_variance": amounts("C"),
        }  # fmt: skip
    else:
        fields["weight_variance"] = optional(amounts("C"))
    return fields


def unpack_factor(
    values: dict[str, Any], arrays: dict[str, Any], kernel: Kernel, features: FloatArray, known: BoolArray
) -> tuple[FactorPosterior, Traits | None]:
    """The posterior that :func:`pack_factor` packed; ValueError if the arrays do not fit each other."""
    projection = Projection.of(kernel, features, known, arrays.get("points"))
    if len(arrays["m"]) != projection.n_points:
        raise ValueError(f"{projection.n_points} points, but values at {len(arrays['m'])}")
    if ("t" in arrays) != ("C_t" in arrays):
        raise ValueError("half a consensus")
    scale = number_within("consensus_scale", values["consensus_scale"], 1.0 / LARGEST, LARGEST)
    posterior = FactorPosterior(
        projection, arrays.get("t"), arrays.get("C_t"), scale, arrays["m"], arrays["C_m"],
        arrays["component_scale"], arrays["weights"], arrays["weights_covariance"], _weights(values, arrays),
    )  # fmt: skip
    traits = Traits(arrays["trait_mean"], arrays["trait_rotation"]) if "trait_mean" in arrays else None
    return posterior, traits


def _weights(values: dict[str, Any], arrays: dict[str, Any]) -> WeightPrior:
    kind = values["weights"]
    if kind == "StandardWeights":
        return StandardWeights(arrays.get("weight_variance"))
    if kind == "LinearWeights":
        return LinearWeights(arrays["B"], arrays["C_B"])
    if kind == "CrowdWeights":
        return CrowdWeights(arrays["B"], arrays["C_B"], arrays["weight_variance"])
    if kind != "ProcessWeights":
        raise ValueError(f"there are no weights called {kind!r}")
    rows = arrays["user_rows"]
    people = Projection.of(
        kernel_from_dict(values["user_kernel"]), rows, np.ones(len(rows), dtype=bool), arrays.get("user_points")
    )
    return ProcessWeights(
        people, arrays["is_process"], arrays["process_mean"], arrays["process_covariance"], arrays["weight_variance"]
    )
