"""Shared code of baselines with a Gaussian population distribution: predictions, new items, and saving."""

from __future__ import annotations
from typing import Any
import numpy as np
import numpy.typing as npt
from predilect.inference.prior import FeatureSpace
from predilect.models.fields import Fields, covariance, numbers
from predilect.models.people_storage import PEOPLE_ARRAYS, pack_people, unpack_people
from predilect.models.queries import Queries
from predilect.posteriors.gaussian import GaussianPosterior
from predilect.posteriors.people import Sites
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.projection import Projection
from predilect.scale.shards import workers

__all__ = ["CROWD_ARRAYS", "crowd_margins", "pack_crowd", "unpack_crowd", "with_new_items"]
FloatArray = npt.NDArray[np.float64]
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
    consensus = GaussianPosterior(posterior.m, posterior.C_m).extended(A, R, consensus_scale=consensus_spread)
    # ``extended`` takes the spread apart as scale (strength + trace) / (strength + n).
    return posterior.extended(A, R, consensus=consensus, scale=spread, strength=0.0, trace=float(n))


def pack_crowd(posterior: PopulationPosterior) -> dict[str, Any]:
    """Arrays of a posterior that has no basis."""
    people, sites = posterior.people, posterior.sites
    return pack_people(people) | {
        "m": posterior.m, "C_m": posterior.C_m, "Sigma": posterior.Sigma, "site_precision": sites.precision,
        "site_linear": sites.linear,
    }  # fmt: skip


def unpack_crowd(arrays: dict[str, Any], n_items: int) -> PopulationPosterior:
    """The posterior that :func:`pack_crowd` packed; ValueError if the arrays do not fit each other."""
    m, C_m, Sigma = arrays["m"], arrays["C_m"], arrays["Sigma"]
    sites = Sites(arrays["site_precision"], arrays["site_linear"])
    return PopulationPosterior(m, C_m, Sigma, unpack_people(arrays, n_items), sites)
