"""``GPPL`` with an independent utility function for each user."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Kernel
from predilect.errors import DataError
from predilect.inference.prior import FeatureSpace
from predilect.inference.separate import fit_separate
from predilect.inference.training import Watcher
from predilect.models.fields import LARGEST, Fields, covariance, numbers
from predilect.models.inputs import Training
from predilect.models.people_storage import PEOPLE_ARRAYS, pack_people, unpack_people
from predilect.models.pooled_gppl import Fitted, scale_prior
from predilect.models.process_parameters import make_kernel, optimises
from predilect.models.queries import Queries
from predilect.models.restoring import number_within
from predilect.posteriors.people import Sites, lay_out
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.projection import Projection, item_covariance
from predilect.posteriors.separate import SeparatePosterior
from predilect.scale.shards import workers

__all__ = ["SEPARATE_ARRAYS", "fit_separate_gppl", "pack_separate", "separate_margins", "unpack_separate"]

FloatArray = npt.NDArray[np.float64]

SEPARATE_ARRAYS: Fields = PEOPLE_ARRAYS | {"m": numbers("I"), "C_m": covariance("I I"), "spread": covariance("I I")}
_MOST_ITEMS = 3000  # items x items algebra, some 12 n² floats


def fit_separate_gppl(
    model: Any, training: Training, delta: float | None, executor: ThreadPoolExecutor | None, watch: Watcher | None
) -> Fitted:
    """Fit of a GPPL with ``users="separate"``; DataError if there are more items than dense algebra can hold."""
    answers, space = training.comparisons, training.space
    if answers.n_items > _MOST_ITEMS:
        raise DataError(
            f'{answers.n_items} items are too many for users="separate", which holds {_MOST_ITEMS}. Use '
            'Population(), CrowdGPPL() or users="pooled"'
        )
    kernel = make_kernel(model, model.kernel, space.matrix[space.known], model.random_state)
    prior = scale_prior(model)
    found = fit_separate(
        lay_out(answers), kernel, space.matrix, space.known,
        shape=prior.shape, rate=prior.rate / (2.0 * prior.noise_var),
        scale=None if prior.learned else prior.shape / prior.rate, delta=delta,
        learn_kernel=optimises(model) and space.informative,
        tolerance=1e-5 if isinstance(model.tolerance, str) else float(model.tolerance),
        max_iterations=model.max_iterations, executor=executor,
        progress=None if watch is None else lambda done: watch("choosing the prior by the evidence", done),
    )  # fmt: skip
    return Fitted(found.posterior, found.scale, found.kernel, found.delta, found.evidence, found.report, {})


def separate_margins(model: Any, queries: Queries, new: FeatureSpace | None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the queried margins, (n,); ``new`` items have codes after those of the fit."""
    posterior, h, space = model.posterior_, model.hyperparameters_, model.space_
    assert isinstance(posterior, SeparatePosterior)
    if new is not None:
        prior = Projection.of(h.kernel, space.matrix, space.known, None)
        posterior = posterior.with_items(prior.with_items(new.matrix, new.known), h.scale)
    with workers(model.n_jobs) as executor:
        return posterior.margins(queries.users, queries.left, queries.right, executor=executor)


def pack_separate(posterior: SeparatePosterior) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of a posterior."""
    people, sites = posterior.people.people, posterior.people.sites
    arrays = pack_people(people)
    arrays |= {"site_precision": sites.precision, "site_linear": sites.linear, "m": posterior.mean}
    arrays |= {"C_m": posterior.covariance, "spread": posterior.spread}
    return {}, arrays


def unpack_separate(arrays: dict[str, Any], kernel: Kernel, scale: float, space: FeatureSpace) -> SeparatePosterior:
    """The posterior that :func:`pack_separate` packed; ValueError if the arrays do not fit each other."""
    number_within("scale", scale, 1.0 / LARGEST, LARGEST)
    K = item_covariance(kernel, space.matrix, space.known)
    m, C_m, spread = arrays["m"], arrays["C_m"], arrays["spread"]
    people = unpack_people(arrays, len(K))
    sites = Sites(arrays["site_precision"], arrays["site_linear"])
    posterior = PopulationPosterior(np.zeros(len(K)), np.zeros_like(K), K / scale, people, sites)
    return SeparatePosterior(posterior, m, C_m, spread)
