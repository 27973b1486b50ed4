"""Online learning of GaSPK: batches under the posterior of what came before."""

from __future__ import annotations

import numpy as np
import pytest
from test_gaspk_prior import CARS, votes

from predilect import GaSPK
from predilect.errors import DataError
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.online import penalised
from predilect.papers.gaspk.posterior.basis import DenseBasis
from tolerances import CONVERGED, EXACT, ITERATIVE
from tradeoff_problems import problem

SETTINGS = {"n_components": 3, "n_jobs": 1, "variance": 20.0, "concentration": 1.0, "spread": 1.0}
ORDER = np.random.default_rng(0).permutation(24 * 12)
ANSWERS = {name: np.asarray(column)[ORDER] for name, column in votes(n_users=24, each=12).items()}
TRUTH = votes(n_users=24, each=12, seed=5)
ASKED = {k: v for k, v in TRUTH.items() if k != "winner"}


def part(start, stop, answers=ANSWERS):
    return {name: column[start:stop] for name, column in answers.items()}


def loss(model, truth=TRUTH):
    p = model.predict_proba({k: v for k, v in truth.items() if k != "winner"})[:, 0]
    return -np.mean(np.log(np.where(np.array(truth["winner"]) == np.array(truth["left"]), p, 1.0 - p)))


def test_a_batch_moves_one_characteristic_to_the_mode_under_the_posterior_before_it():
    settings = SETTINGS | {"n_components": 1, "length_scale": 3.0}
    model = GaSPK(**settings).fit(part(0, 240), items=CARS)
    before, told = model.posterior_, model.answers_
    H = np.linalg.inv(before.curvature.covariance_matrix())
    model.update(part(240, 260), online=True)
    after, everything = model.posterior_, model.answers_
    assert after.basis is before.basis
    # The slope of what is new: that of all answers less that of the old ones.
    slope = np.zeros((len(model._choices.points), 1))
    for answers, sign in ((everything, 1.0), (told, -1.0)):
        z = (after.basis.root @ after.w)[answers.point, 0]
        np.add.at(slope[:, 0], answers.point, sign * answers.weight * Probit().at(answers.outcome, z)[1])
    np.testing.assert_allclose(after.basis.root.T @ slope, H @ (after.w - before.w), atol=1e-5)
    whole = GaSPK(**settings).fit(part(0, 260), items=CARS)
    assert np.abs(model.predict_proba(ASKED) - whole.predict_proba(ASKED)).max() < 0.05


def test_a_tenth_more_answers_ask_for_going_on_with_all(tmp_path):
    model = GaSPK(**SETTINGS).fit(part(0, 200), items=CARS)
    model.update(part(200, 210), online=True)
    model.save(tmp_path / "model")
    loaded, all_ = (GaSPK.load(tmp_path / "model") for _ in range(2))
    assert not loaded.posterior_.curvature.follows
    for one in (model, loaded):
        one.update(part(210, 220), online=True)  # a tenth more than 200
    all_.update(part(210, 220))
    for one in (model, loaded):
        assert one.posterior_.curvature.follows
        np.testing.assert_array_equal(one.predict_proba(ASKED), all_.predict_proba(ASKED))
    model.update(part(220, 241), online=True)  # less than a tenth more than 220
    assert not model.posterior_.curvature.follows


def test_batches_lose_little_to_going_on_with_all_answers():
    start = GaSPK(**SETTINGS).fit(part(0, 144), items=CARS)
    before = loss(start)
    for k in range(144, 288, 12):
        start.update(part(k, k + 12), online=True)
    again = GaSPK(**SETTINGS).fit(part(0, 144), items=CARS).update(part(144, 288))
    assert loss(start) < loss(again) + 0.01
    assert loss(start) < before - 0.01
    assert start.n_answers_ == again.n_answers_ == 288
    assert start.comparisons_ == again.comparisons_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*name someone without answers")
def test_batches_of_people_with_few_answers_lose_little_to_going_on_with_all():
    """Little is known of weights: characteristics that do not pay for it follow the noise of each batch."""
    for seed in range(3):
        order, truth = np.random.default_rng(seed).permutation(900), votes(n_users=150, each=6, seed=seed + 50)
        answers = {k: np.asarray(column)[order] for k, column in votes(n_users=150, each=6, seed=seed).items()}
        online, again = (GaSPK(**SETTINGS).fit(part(0, 300, answers), items=CARS) for _ in range(2))
        for k in range(300, 900, 30):
            online.update(part(k, k + 30, answers), online=True)
        again.update(part(300, 900, answers))
        assert loss(online, truth) < loss(again, truth) + 0.01


@pytest.mark.parametrize("q", [3, 5])  # fewer than coordinates, and more
def test_what_characteristics_pay_is_added_to_the_precision(q):
    rng = np.random.default_rng(0)
    Phi, roots = rng.normal(size=(q, 4)), rng.normal(size=(q, 3, 3))
    roots -= roots.mean(axis=1, keepdims=True)
    Q, covariance = roots @ roots.transpose(0, 2, 1), np.cov(rng.normal(size=(12, 30)))
    mean = rng.normal(size=12)
    paid = np.einsum("tj,tcd,tk->jckd", Phi, Q, Phi).reshape(12, 12)
    expected = np.linalg.inv(np.linalg.inv(covariance) + paid)
    found = penalised(mean, covariance, Phi, Q)
    np.testing.assert_allclose(found[1], expected, atol=CONVERGED)
    np.testing.assert_allclose(found[0], expected @ np.linalg.solve(covariance, mean), atol=CONVERGED)


def test_an_answer_without_weight_changes_nothing():
    model = GaSPK(**SETTINGS | {"tol": 1e-8, "max_iter": 2000}).fit(ANSWERS, items=CARS)
    before = model.predict_proba(ASKED)
    model.update(part(0, 1) | {"weight": [1e-12]}, online=True)
    np.testing.assert_allclose(model.predict_proba(ASKED), before, atol=ITERATIVE)


def test_new_people_and_items_join_online_and_are_saved(tmp_path):
    model = GaSPK(**SETTINGS).fit(ANSWERS, items=CARS)
    more = {"user": ["new"] * 2, "left": ["van", "c0"], "right": ["c0", "c4"], "winner": ["van", "c4"]}
    model.update(more, items={"item": ["van"], "price": [2.3], "doors": [4.6]}, online=True)
    assert len(model.weights_) == 25
    assert model.posterior_.basis.rank > 0
    asked = {"user": ["new", "p00"], "left": ["van", "c1"], "right": ["c0", "van"]}
    assert model.predict_proba(asked)[0, 0] > 0.5
    model.save(tmp_path / "model")
    loaded = GaSPK.load(tmp_path / "model")
    for a, b in zip(loaded.predict_margin(asked), model.predict_margin(asked), strict=True):
        np.testing.assert_array_equal(a, b)
    loaded.update(part(0, 5), online=True)
    assert loaded.n_answers_ == model.n_answers_ + 5
    assert np.isfinite(model.willingness("price")["lower"].to_numpy()).any()


def test_a_basis_with_further_points_has_the_covariance_of_the_kernel():
    at = problem()
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, at.basis.pivots.shape[1]))
    moved = np.sort(rng.permutation(30)[:18])
    basis = DenseBasis.of(at.basis.kernel, points[moved])
    wider = basis.extended(points, moved)
    K = at.basis.kernel(points)
    np.testing.assert_allclose(wider.root @ wider.root.T, K, atol=2e-3 * K.max())
    x = rng.normal(size=(5, points.shape[1]))
    phi, left = wider.rows(x)
    np.testing.assert_allclose(phi @ wider.root.T, at.basis.kernel(x, points), atol=2e-2 * K.max())
    assert (left >= 0.0).all()
    np.testing.assert_allclose(wider.rows(points)[0], wider.root, atol=1e-6)
    np.testing.assert_allclose(wider.root[moved][:, : basis.rank], basis.root, atol=EXACT)


def test_a_grid_refuses_to_learn_online():
    model = GaSPK(**SETTINGS, levels=3, backend="grid").fit(ANSWERS, items=CARS)
    before = model.n_answers_
    with pytest.raises(DataError, match="online=True"):
        model.update(part(0, 5), online=True)
    assert model.n_answers_ == before
