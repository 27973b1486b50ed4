"""Every model's posterior follows the one protocol, and what it does itself agrees with what the protocol would do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from predilect import GPPL, CollaborativeGP, CrowdGPPL, GaSPK, JointGP, Population
from predilect.errors import ConvergenceWarning, DataError
from predilect.inference.gaussian.posterior import Posterior
from predilect.inference.likelihoods.calibration import RANGES, UNCALIBRATED, Calibration, restored_calibration
from predilect.inference.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
from predilect.models import GPVU, HierarchicalGP
from predilect.papers.joint.process import JointProcess
from tolerances import EXACT

MODELS = {
    "population": lambda: Population(variance=1.0, strength=5.0, consensus_variance=1.0, calibration=Calibration(0.7)),
    "pooled": lambda: Population(personal=False, consensus_variance=1.5, calibration=Calibration(0.5)),
    "gppl": lambda: GPPL(max_iter=20),
    "gppl-separate": lambda: GPPL(users="separate", max_iter=5),
    "gppl-joint": lambda: GPPL(users="joint", n_inducing=10, max_iter=5),
    "crowd": lambda: CrowdGPPL(n_components=2, max_iter=5),
    "crowd-inducing": lambda: CrowdGPPL(n_components=2, n_inducing=4, max_iter=5),
    "crowd-paper": lambda: CrowdGPPL(preset="paper", n_components=2, n_inducing=4, max_iter=5),
    "collaborative": lambda: CollaborativeGP(max_iter=5),
    "joint": lambda: JointGP(n_tuning=0),
    "hierarchical": lambda: HierarchicalGP(max_iter=5),
    "gpvu": lambda: GPVU(max_iter=5),
    "gaspk": lambda: GaSPK(n_components=2, max_iter=20),
    "gaspk-open": lambda: GaSPK(n_components=3, variance=20.0, concentration=1.0, spread=1.2, max_iter=20),
    "compressed": lambda: Population(variance=1.0, strength=5.0, consensus_variance=1.0, calibration=Calibration(0.7)),
}
N_ITEMS, N_USERS = 6, 5


def votes():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(N_USERS), 12)
    left = rng.integers(0, N_ITEMS, len(user))
    right = (left + rng.integers(1, N_ITEMS, len(user))) % N_ITEMS
    better = left + rng.normal(0.0, 1.5, len(user)) < right
    names = np.array([f"i{k}" for k in range(N_ITEMS)])
    answers = {
        "user": [f"u{k}" for k in user], "left": names[left].tolist(), "right": names[right].tolist(),
        "winner": np.where(better, names[left], names[right]).tolist(),
    }  # fmt: skip
    items = {"item": names.tolist(), "size": np.arange(N_ITEMS) + 0.5, "age": rng.normal(size=N_ITEMS)}
    people = {"user": [f"u{k}" for k in range(N_USERS)], "height": rng.normal(size=N_USERS)}
    return answers, items, people


def fitted(name):
    answers, items, people = votes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits are cut short
        found = MODELS[name]().fit(answers, items=items, people=people)
    return found.compress(3) if name == "compressed" else found


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(request.param)


USERS = np.array([-1, 0, 1, 1, 4])
LEFT, RIGHT = np.array([0, 1, 2, 0, 5]), np.array([1, 0, 0, 2, 3])


def test_every_posterior_follows_the_protocol(model):
    posterior = model.posterior_
    assert Posterior in type(posterior).__mro__
    assert posterior.n_items == N_ITEMS
    people = [posterior.person(user) for user in USERS.tolist()]
    for one, other in zip(people, posterior.persons(USERS), strict=True):
        for ours, theirs in zip(one.dense(), other.dense(), strict=True):
            assert np.abs(ours - theirs).max() < EXACT
    found = posterior.margins(USERS, LEFT, RIGHT)
    for row, utilities in enumerate(people):
        expected = utilities.margins(LEFT[[row]], RIGHT[[row]])
        for ours, theirs in zip(found, expected, strict=True):
            assert abs(ours[row] - theirs[0]) < 1e-8
    known = USERS if "crowd" in model.report_["model"] else USERS[USERS >= 0]  # which knows the average person too
    mean, var = posterior.centred_utilities(known)
    centre = np.eye(N_ITEMS) - 1.0 / N_ITEMS
    for row, utilities in enumerate(posterior.persons(known)):
        m, C = utilities.dense()
        for one, v in (utilities.centred_marginals(), (centre @ m, np.diagonal(centre @ C @ centre))):
            assert np.abs(mean[row] - one).max() < 1e-8
            assert np.abs(var[row] - v).max() < 1e-8


def test_answers_that_a_posterior_holds_are_those_that_were_given(model):
    held = model.posterior_.answered_rows(1)
    if held is None:
        assert model.report_["model"] not in ("population", "hierarchical-gp", "gpvu")
        return
    answers = votes()[0]
    given = {
        frozenset(pair) for *pair, user in zip(answers["left"], answers["right"], answers["user"], strict=True)
        if user == "u1"
    }  # fmt: skip
    assert {frozenset(model.items_.labels(np.array(pair))) for pair in zip(*held[:2], strict=True)} == given


def test_the_prior_of_one_function_is_what_no_answer_leaves(model):
    posterior, prior = model.posterior_, model.posterior_.prior()
    if prior is None:  # by features of people
        assert model.report_["model"] in ("joint", "gppl")
        return
    if not posterior.is_pooled:
        for ours, theirs in zip(prior.dense(), posterior.person(-1).dense(), strict=True):
            assert np.abs(ours - theirs).max() < EXACT
        return
    mean, covariance = prior.dense()
    assert not mean.any()
    assert np.linalg.eigvalsh(covariance - posterior.crowd().dense()[1]).min() > -1e-8  # answers only tell more
    h = model.hyperparameters_
    variance = h.consensus_variance if model.report_["model"] == "pooled" else h.variance
    assert np.diagonal(covariance) == pytest.approx(np.full(N_ITEMS, variance), rel=1e-6)


def test_what_calibrates_is_the_posteriors(model):
    mean, var = np.array([0.5, -1.0, 0.0, 2.0, 1.0]), np.array([0.1, 1.0, 2.0, 0.5, 0.2])
    asked = (mean, var, USERS, LEFT, RIGHT, 0.4)
    found, logs = model.posterior_.outcome_proba(*asked), model.posterior_.outcome_log_proba(*asked)
    np.testing.assert_allclose(np.exp(logs), found, rtol=1e-12)
    calibration = model.posterior_.calibration
    if calibration == UNCALIBRATED:
        assert not hasattr(model.hyperparameters_, "variance_factor")
        np.testing.assert_array_equal(found, outcome_probabilities(mean, var, 0.4))
        np.testing.assert_array_equal(logs, outcome_log_probabilities(mean, var, 0.4))
    else:
        scaled = calibration.variance_factor * var
        np.testing.assert_allclose(found, outcome_probabilities(mean, scaled, 0.4), rtol=1e-12)


def test_only_what_is_compressed_keeps_less(model):
    kept = model.posterior_.kept(0)
    assert len(kept) == (3 if model.posterior_.is_compressed else N_ITEMS)
    together = model.posterior_.restricted(np.array([0, 1]), np.array([2, 3]))
    assert (together is not None) == isinstance(model.posterior_, JointProcess)
    if together is not None:
        assert together.kept(0).tolist() == [2]
        assert together.holds(np.array([0, 1, -1]), np.array([2, 2, 2])).tolist() == [True, False, False]
    else:
        with pytest.raises(DataError):
            model.compress(2, local=False)


@pytest.mark.parametrize("name", RANGES)
def test_a_calibration_out_of_its_range_is_not_read(name):
    values = {field: getattr(UNCALIBRATED, field) for field in RANGES}
    assert restored_calibration(values) == UNCALIBRATED
    low, high = RANGES[name]
    for value in (low - 1.0, 2.0 * high + 1.0, float("nan"), "much"):
        if value != float("inf"):
            with pytest.raises((ValueError, TypeError)):
                restored_calibration(values | {name: value})
