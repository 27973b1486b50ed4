"""Algorithm 2 of crowdGPPL, corrected, against quadrature and direct minimisation of its linearised bound."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import FactorAnswers, GammaPrior, ItemDesign
from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.sparse.problem import linearised_sites
from predilect.papers.crowd import paper
from predilect.papers.crowd.paper import PaperPriors, fit_paper
from simulate_factor import simulate_factor
from tolerances import EXACT

FIXED = GammaPrior(1e9, 1e9)


@pytest.mark.slow
@pytest.mark.parametrize("n_points", [None, 4])
@pytest.mark.parametrize("features", [False, True])
def test_a_step_minimises_the_linearised_bound_block_by_block(n_points, features, monkeypatch):
    """With frozen sites every block lowers the bound to where no move of its mean lowers it more."""
    data = simulate_factor(n_points=n_points, delta=0.3)
    answers = data.answers
    design = ItemDesign.of(data.projection, answers.left, answers.right)
    people = None
    if features:
        x = np.random.default_rng(0).normal(size=(data.n_users, 2))
        people = Projection.of(matern([1.0, 1.0]), x, np.ones(data.n_users, bool), x[:5] + 0.1)
    priors = PaperPriors(FIXED, FIXED, FIXED)
    model = paper._start(answers, design, people, 2, True, priors, np.random.default_rng(1))
    for _ in range(5):
        paper._step(model, None, 1.0, 1.0)
    mean, _ = paper.moments(model.state, answers)
    sites = linearised_sites(answers.outcome, mean, model.Q)
    # Frozen: every block sees the same linearisation.
    monkeypatch.setattr(paper, "linearised_sites", lambda *_: sites)

    def value(state=None):
        state = model.state if state is None else state
        m, v = paper.moments(state, answers)
        told = sites.linear * m - 0.5 * sites.precision * (m**2 + v)
        return float(answers.weight @ told) - paper._divergence(model)

    last = -np.inf
    for _ in range(300):
        paper._step(model, None, 1.0, 1.0)
        now = value()
        assert now > last - 1e-6  # of 1e9, which the fixed scales weigh
        last = now
    state, h = model.state, 1e-5
    for c in range(2):
        if not model.process[c]:
            slopes = []
            for u in (0, 5):
                up = []
                for e in (h, -h):
                    state.mu[u, c] += e
                    up.append(value())
                    state.mu[u, c] -= e
                slopes.append((up[0] - up[1]) / (2 * h))
            np.testing.assert_allclose(slopes, 0.0, atol=1e-4)
        f = state.components[c]
        rows = design.G[design.left] - design.G[design.right]
        direction = np.random.default_rng(c).normal(size=design.n_points)
        up = []
        for e in (h, -h):
            x = f.mean + e * direction
            moved = paper.FunctionState(x, f.lower, f.square + x @ x - f.mean @ f.mean, f.log_det, rows @ x, f.D)
            state.set_component(c, moved, design)
            up.append(value())
        state.set_component(c, f, design)
        assert abs(up[0] - up[1]) / (2 * h) < 1e-3


def predict(fit, data):
    left, right = np.triu_indices(len(data.X), 1)
    users = np.arange(len(left)) % (data.n_users + 1) - 1
    return fit.posterior.margins(users, left, right)


def test_noise_variance_is_a_unit():
    data = simulate_factor()
    t, v, w = GammaPrior(1.0, 100.0), GammaPrior(1.0, 10.0), GammaPrior(1.0, 10.0)
    doubled = PaperPriors(GammaPrior(1.0, 200.0), GammaPrior(1.0, 20.0), w, noise_var=1.0)
    one = fit_paper(data.answers, data.projection, n_components=3, priors=PaperPriors(t, v, w), max_iter=20)
    two = fit_paper(
        data.answers, data.projection, n_components=3, priors=doubled, max_iter=20
    )  # fmt: skip
    for ours, theirs in zip(predict(one, data), predict(two, data), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_points_at_the_items_are_no_points():
    data = simulate_factor()
    points = Projection.of(matern([1.5, 1.5]), data.X, np.ones(9, bool), data.X.copy())
    options = {"n_components": 2, "max_iter": 30}
    one = fit_paper(data.answers, data.projection, **options)
    two = fit_paper(data.answers, points, **options)
    for ours, theirs in zip(predict(one, data), predict(two, data), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_the_mean_of_stochastic_steps_is_the_full_one():
    """Natural parameters of equal batches, scaled, average to those of all rows."""
    data = simulate_factor(n_answers=160)
    answers = data.answers
    design = ItemDesign.of(data.projection, answers.left, answers.right)
    n = len(answers.user) // 4 * 4
    rows = np.arange(n)
    batches = np.random.default_rng(0).permutation(n).reshape(4, -1)
    naturals = []
    for part in [rows, *batches]:
        model = paper._start(answers, design, None, 2, True, PaperPriors(), np.random.default_rng(1))
        paper._step(model, part, 1.0, n / len(part))
        naturals.append(model.natural_t)
    for k in (0, 1):
        np.testing.assert_allclose(np.mean([x[k] for x in naturals[1:]], axis=0), naturals[0][k], atol=1e-8)


@pytest.mark.slow
def test_mini_batches_come_to_the_full_result():
    data = simulate_factor(n_answers=1500, n_users=10)
    options = {"n_components": 2, "priors": PaperPriors(FIXED, FIXED, FIXED), "max_iter": 120, "tolerance": 0.0}
    full = fit_paper(data.answers, data.projection, **options)
    small = fit_paper(data.answers, data.projection, batches=(300, 1.0, 0.9), **options)
    a, b = predict(full, data)[0], predict(small, data)[0]
    assert np.corrcoef(a, b)[0, 1] > 0.98
    same = fit_paper(data.answers, data.projection, batches=(300, 1.0, 0.9), **options)
    np.testing.assert_array_equal(predict(small, data)[0], predict(same, data)[0])


def test_variants_and_little_data():
    data = simulate_factor(delta=0.4)
    x = np.random.default_rng(0).normal(size=(data.n_users, 2))
    people = Projection.of(matern([1.0, 1.0]), x, np.ones(data.n_users, bool), None)
    for options in ({}, {"consensus": False}, {"people": people}, {"n_components": 20}):
        fit = fit_paper(data.answers, data.projection, **{"n_components": 4, "max_iter": 20} | options)
        mean, var = predict(fit, data)
        assert np.isfinite(mean).all()
        assert (var > 0).all()
        assert fit.delta > 0.0
        assert np.isfinite(fit.bound)
    one = fit_paper(FactorAnswers.of([0], [0], [1], [1], None, 3), data.projection, n_components=3)
    assert one.posterior.margins(np.array([0]), np.array([0]), np.array([1]))[0][0] > 0.0
    with pytest.raises(ValueError, match="noise_var"):
        fit_paper(data.answers, data.projection, priors=PaperPriors(noise_var=2.0))


def test_it_learns():
    data = simulate_factor(n_answers=1500)
    fit = fit_paper(data.answers, data.projection, n_components=4)
    mean, _ = fit.posterior.margins(data.user, data.left, data.right)
    assert np.mean(np.sign(mean) == np.sign(data.margin)) > 0.9
    np.testing.assert_allclose(fit.posterior.importances, 1.0 / fit.component_scales, rtol=EXACT)
