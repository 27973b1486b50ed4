"""Newcomers, whose mean goes from the consensus to where the answers of the fit are likeliest as strangers' answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm
from test_newcomers import GIVEN

import predilect
from predilect import Calibration, Population
from predilect.data.features import FeatureSpace
from predilect.inference.likelihoods.calibration import restored_calibration
from predilect.inference.people.layout import lay_out
from predilect.inference.people.queries import NEWCOMER
from predilect.models.population.fit import fit_population
from predilect.models.population.pooled import shift_of_newcomers
from predilect.models.population.prior import Hyperparameters, PopulationPrior
from predilect.models.population.search.calibration import PRIOR_SCALE, newcomer_weight
from predilect.models.population.search.held_out import HeldOut
from referees.dense_population import person_ep
from simulate import comparisons, crowd
from tolerances import CONVERGED, EXACT, ITERATIVE

pytestmark = pytest.mark.filterwarnings("ignore:.*(without answers|was dropped):predilect.errors.DataWarning")
WEIGHT = Calibration(0.7, 1.3, newcomer_factor=1.5, newcomer_weight=0.6)
ROWS = comparisons(crowd(3, 24, 6, 14, delta=0.3))
NEW = {"user": ["z"] * 4, "left": [0, 2, 4, 1], "right": [1, 3, 5, 5], "winner": ["left", "right", "left", "tie"]}


def fitted(weight: float = 0.6, rows=ROWS, **more) -> Population:
    return Population(**GIVEN | more, calibration=replace(WEIGHT, newcomer_weight=weight)).fit(rows)


def named(model: Population, more: dict, user="z") -> dict:
    """Answers of one new person, with an id of the model's kind."""
    return {**more, "user": [99 if user == "z" else user] * len(more["user"])}


@pytest.fixture(scope="module")
def model() -> Population:
    return fitted()


@pytest.fixture(scope="module")
def plain() -> Population:
    return fitted(0.0)


def likeliest(model: Population, rows, traits=None) -> np.ndarray:
    """d by quasi-Newton on the dense objective, from nothing."""
    posterior, c = model.posterior_, model.hyperparameters_.calibration
    basis = posterior.basis
    Phi = np.eye(posterior.n_items) if basis is None else basis.Phi
    X = Phi[rows.left] - Phi[rows.right]
    shift = 0.0 if traits is None else np.einsum("ij,ij->i", X @ posterior.effects.B, traits)
    M = X.shape[1]
    precision = np.linalg.inv(posterior.Sigma)
    var = np.einsum("ij,ij->i", X @ (posterior.Sigma + posterior.C_m), X)
    if traits is not None:
        var = var + (traits**2).sum(axis=1) * np.einsum("ij,ij->i", X @ posterior.effects.covariance, X)
    if basis is not None and basis.has_own:
        own = basis.rho + basis.offset_variance
        var = var + own[rows.left] + own[rows.right]
    mean = posterior.law.mean[rows.left] - posterior.law.mean[rows.right] + shift
    s = np.sqrt(1.0 + c.variance_factor * c.unseen_ratio * c.newcomer_factor * var)
    delta = model.tie_threshold_

    def loss(d):
        z = mean + X @ d
        chance = np.select(
            [rows.outcome > 0, rows.outcome < 0],
            [norm.cdf((z - delta) / s), norm.cdf((-z - delta) / s)],
            norm.cdf((delta - z) / s) - norm.cdf((-delta - z) / s),
        )
        upper, lower = norm.pdf((delta - z) / s), norm.pdf((-delta - z) / s)
        rise = np.select([rows.outcome > 0, rows.outcome < 0], [upper, -lower], lower - upper) / (s * chance)
        value = -rows.weight @ np.log(chance) + 0.5 * d @ precision @ d
        return value, precision @ d - X.T @ (rows.weight * rise)

    return minimize(loss, np.zeros(M), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def test_the_shift_is_where_the_answers_are_likeliest_as_strangers_answers(model, plain):
    assert plain.posterior_.newcomer_shift is None
    d = likeliest(plain, ROWS)
    assert np.abs(d).max() > 0.05
    np.testing.assert_allclose(model.posterior_.newcomer_shift, 0.6 * d, atol=ITERATIVE)


@pytest.mark.slow
@pytest.mark.parametrize("traits", [False, True])
def test_the_shift_on_a_basis_and_with_traits(traits):
    rng = np.random.default_rng(1)
    items = {"item": list(range(6)), "x": rng.standard_normal(6).tolist(), "y": rng.standard_normal(6).tolist()}
    users = {"user": list(range(24)), "age": rng.standard_normal(24).tolist()} if traits else None
    options = {"basis": "attributes"} | ({"user_features": True} if traits else {})
    fits = [
        Population(**GIVEN, calibration=replace(WEIGHT, newcomer_weight=w), **options).fit(
            ROWS, items=items, people=users
        )
        for w in (0.0, 1.0)
    ]
    of_rows = None if not traits else fits[0].posterior_.people.traits[ROWS.user]
    d = likeliest(fits[0], ROWS, of_rows)
    found = fits[1].posterior_
    np.testing.assert_allclose(found.newcomer_shift, d, atol=ITERATIVE)
    np.testing.assert_allclose(found.newcomer_law.mean - found.law.mean, found.basis.Phi @ d, atol=ITERATIVE)
    # An item that nobody has seen is its features, for newcomers too: here half way between two others.
    more = {"item": ["new"], **{name: [np.mean(items[name][1:3])] for name in "xy"}}
    means = [one.predict_margin({"left": ["new"], "right": [0]}, items=more)[0][0] for one in fits]
    shift = found.newcomer_law.mean - found.law.mean
    np.testing.assert_allclose(means[1] - means[0], shift[1:3].mean() - shift[0], atol=CONVERGED)


@pytest.mark.parametrize("kind", ["sides", "grades", "item ties", "orders", "ties left out"])
def test_no_other_shift_predicts_the_answers_better_as_strangers_answers(kind):
    rng = np.random.default_rng(4)
    n, options = 300, GIVEN | {"clickers": 0.0}
    user, left = np.repeat(np.arange(20), 15), rng.integers(6, size=n)
    right = (left + rng.integers(1, 6, size=n)) % 6
    f = np.linspace(-1.0, 1.0, 6) + 0.8 * rng.standard_normal((20, 6))
    seen = f[user, left] - f[user, right] + rng.standard_normal(n) + 0.7 * (kind == "sides")
    frame = {"user": user.tolist(), "left": left.tolist(), "right": right.tolist()}
    outcome = np.sign(seen).astype(int)
    if kind in ("grades", "item ties"):
        outcome = (outcome * np.searchsorted((0.4, 1.2), np.abs(seen))).astype(int)
    if kind == "item ties":
        outcome, options["tie_threshold"] = np.sign(outcome), ("auto", 0.0, 0.3)
    if kind == "orders":
        shown = [rng.permutation(6)[:3] for _ in range(100)]
        best = [one[np.argmax(f[place // 5, one] + rng.standard_normal(3))] for place, one in enumerate(shown)]
        rows = [
            (t // 5, t, int(b), int(i))
            for t, (one, b) in enumerate(zip(shown, best, strict=True))
            for i in one
            if i != b
        ]
        user, task, left, right = (np.array(column) for column in zip(*rows, strict=True))
        frame = {"user": user.tolist(), "task": task.tolist(), "left": left.tolist(), "right": right.tolist()}
        outcome = np.ones(len(rows), dtype=int)
    said = {"columns": {"task": "task"}} if kind == "orders" else {"reading": {"side": kind == "sides"}}
    answers = predilect.Comparisons.from_frame(frame, outcome=outcome.tolist(), **said)
    calibration = replace(WEIGHT, newcomer_weight=1.0, omitted_ties=0.6 * (kind == "ties left out"))
    model = Population(**options, calibration=calibration).fit(answers)
    assert (model.posterior_.covariates is not None) == (kind == "sides")
    assert (model.posterior_.thresholds is not None) == (kind in ("grades", "item ties"))
    posterior, found = model.posterior_, model.posterior_.newcomer_shift
    assert np.abs(found).max() > 0.01
    place = {1: 0, 0: 1, -1: 2}
    asked = {name: frame[name] for name in ("left", "right")}

    def value(d):
        model.posterior_ = replace(posterior, newcomer_shift=d)
        log_p = model.predict_log_proba(asked)
        told = log_p[np.arange(len(outcome)), [place[y] for y in np.sign(outcome).tolist()]]
        return told.sum() - 0.5 * d @ np.linalg.solve(posterior.Sigma, d)

    steps = 1e-4 * np.eye(6)
    gradient = [(value(found + step) - value(found - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)
    assert max(value(found + 300 * sign * step) for step in steps for sign in (-1.0, 1.0)) < value(found)


def test_a_newcomers_utilities_are_dense_conditioning_with_the_mean_shifted(model):
    posterior = model.posterior_
    m, later = posterior.m + posterior.newcomer_shift, fitted()
    later.update(named(later, NEW))
    left, right = np.array(NEW["left"]), np.array(NEW["right"])
    person = person_ep(posterior.Sigma, m, left, right, [1, -1, 1, 0], delta=later.tie_threshold_)
    mean, covariance = person.utilities(m, posterior.C_m)
    for one in (later, later._consolidate()):
        code = one.posterior_.n_users - 1
        found, spread = one.posterior_.utilities(code)
        np.testing.assert_allclose(found, mean, atol=CONVERGED)
        np.testing.assert_allclose(spread, covariance, atol=CONVERGED)
        found, _ = one.posterior_.margins(np.array([code, -1]), np.array([0, 0]), np.array([3, 3]))
        unseen = one.posterior_.now.m + posterior.newcomer_shift  # who has not answered is of the crowd as it is now
        np.testing.assert_allclose(found, [mean[0] - mean[3], unseen[0] - unseen[3]], atol=CONVERGED)
        centred, _ = one.posterior_.centred_utilities(np.array([code]))
        np.testing.assert_allclose(centred[0], mean - mean.mean(), atol=CONVERGED)
    laws = ((code, posterior.newcomer_law), (-1, one.posterior_.now.newcomer_law), (5, posterior.law))
    for user, law in laws:
        np.testing.assert_array_equal(one.posterior_.prior_of(user).mean, law.mean)
    np.testing.assert_array_equal(one.posterior_.prior().mean, posterior.m)


@pytest.mark.slow
def test_people_of_the_fit_are_as_without_it_to_the_bit(model, plain):
    asked = {"user": list(range(24)), "left": [0, 1, 2] * 8, "right": [3, 4, 5] * 8}
    with_it, without = fitted(), fitted(0.0)
    for one in (with_it, without):
        one.update(user=99, left=0, right=1, outcome=1)
        one.update(user=5, left=0, right=5, outcome=1)
    for one, other in ((model, plain), (with_it, without), (with_it._consolidate(), without._consolidate())):
        for a, b in zip(one.predict_margin(asked), other.predict_margin(asked), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(one.predict_proba(asked), other.predict_proba(asked))
        for user in (5, 6):
            assert one.rank(user=user).equals(other.rank(user=user))
    assert model.rank().equals(plain.rank())
    # A newcomer's answers tell the crowd how they differ from the mean of newcomers.
    assert not with_it.rank().equals(without.rank())


def test_what_came_and_went_leaves_a_stranger_to_the_bit():
    one, asked = fitted(), {"user": [99, 98], "left": [0, 0], "right": [3, 3]}
    one.update(user=99, left=0, right=1, outcome=1)
    mean, _ = one.predict_margin(asked)
    assert mean[0] != mean[1]
    one.forget(user=99, left=0, right=1, outcome=1)
    for there in (one, one._consolidate()):
        for values in there.predict_margin(asked):
            assert values[0] == values[1]
    own = ROWS.take(ROWS.user == 4)  # of whom nothing is left is a stranger, until the answers are there again
    before = one.posterior_.person(4).mean
    one.forget(own)
    mean, _ = one.predict_margin({"user": [4, 98], "left": [0, 0], "right": [3, 3]})
    assert mean[0] == mean[1]
    one.update(own)
    np.testing.assert_allclose(one.posterior_.person(4).mean, before, atol=CONVERGED)


def test_it_is_compressed(tmp_path):
    one = fitted()
    one.update(named(one, NEW))
    one.update(user=98, left=0, right=1, outcome=1)
    asked = {"user": [99, 97, 5], "left": [0, 0, 0], "right": [3, 3, 3]}
    for keep in (6, 2):
        small = one.compress(keep, precision="double")
        if keep == 6:
            np.testing.assert_allclose(small.predict_proba(asked), one.predict_proba(asked), atol=EXACT)
        small.save(tmp_path / f"small{keep}")
        same = predilect.load(tmp_path / f"small{keep}").predict_proba(asked)
        np.testing.assert_array_equal(same, small.predict_proba(asked))
        # Whatever else of a newcomer was dropped follows from the mean of newcomers.
        posterior = small.posterior_
        code = small.users_.code(99)
        mean = posterior.person(code).mean
        margin, _ = posterior.margins(np.full(5, code), np.arange(5), np.arange(1, 6))
        np.testing.assert_allclose(margin, mean[:-1] - mean[1:], atol=EXACT)
        S = posterior.kept(code)
        A = np.linalg.solve(posterior.law.covariance[np.ix_(S, S)], posterior.law.covariance[S]).T
        m = one.posterior_.newcomer_law.mean
        np.testing.assert_allclose(
            mean, m + A @ (posterior.mean[posterior.ptr[code] :][: len(S)] - m[S]), atol=CONVERGED
        )


def test_a_new_item_without_features_has_no_shift_and_with_them_that_of_its_like(model, plain):
    with pytest.warns(predilect.errors.DataWarning):
        means = [one.predict_margin({"left": ["new"], "right": [0]})[0][0] for one in (model, plain)]
    np.testing.assert_allclose(means[1] - means[0], model.posterior_.newcomer_shift[0], atol=EXACT)
    items = {"item": list(range(6)), "x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
    options = {"basis": "items", "feature_weight": 0.9, "length_scale": 1.0}
    fits = [
        Population(**GIVEN, **options, calibration=replace(WEIGHT, newcomer_weight=w)).fit(ROWS, items=items)
        for w in (0.0, 1.0)
    ]
    more = {"item": ["new"], "x": [0.5]}
    asked = {"left": ["new"], "right": [0]}
    means = [one.predict_margin(asked, items=more)[0][0] for one in fits]
    space = fits[1]._space
    sd = np.std(items["x"])
    near = np.exp(-0.5 * ((np.array(items["x"]) - 0.5) / sd) ** 2)
    d = fits[1].posterior_.newcomer_shift
    expected = 0.9 * near @ np.linalg.solve(space.covariance(0.9, 1.0), d)
    np.testing.assert_allclose(means[1] - means[0], expected - d[0], atol=CONVERGED)


def steps_at(truth: float, n: int, rng) -> tuple[list[list[HeldOut]], np.ndarray]:
    """Predictions at weights 0, ½ and 1 of answers whose margins are those of weight ``truth``."""
    shift = rng.standard_normal(n)
    mean, var = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    kind = np.full(n, 2 + NEWCOMER)
    left = rng.random(n) < norm.cdf((mean + truth * shift) / np.sqrt(1.0 + var))
    outcome = np.where(left, 1, -1).astype(np.int8)

    def at(w):
        return HeldOut(outcome, mean + w * shift, var, np.ones(n), np.zeros(n), kind)

    return [[at(w)] * 4 for w in (0.0, 0.5, 1.0)], (outcome, mean, shift, var)


@pytest.mark.parametrize("truth", [-0.3, 0.0, 0.4, 0.9, 1.5])
def test_the_weight_is_the_penalised_optimum(truth):
    steps, (outcome, mean, shift, var) = steps_at(truth, 4000, np.random.default_rng(0))

    def loss(w):
        z = outcome * (mean + w * shift) / np.sqrt(1.0 + var)
        return -norm.logcdf(z).sum() + w / PRIOR_SCALE

    best = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded").x
    found = newcomer_weight(Calibration(), steps)
    assert found == pytest.approx(best, abs=0.02)
    assert loss(found) <= loss(best) + 0.1
    # A handful of answers leaves the consensus as it is.
    few, _ = steps_at(truth, 3, np.random.default_rng(1))
    assert newcomer_weight(Calibration(), few) == 0.0


def test_a_calibration_of_before_has_no_weight():
    assert restored_calibration({"variance_factor": 0.7}) == Calibration(0.7)
    with pytest.raises(ValueError, match=r"newcomer_weight must .*0 to 1"):
        Calibration(newcomer_weight=1.1)


def loud_and_quiet(rng, n_people: int, name: str) -> dict[str, list]:
    """A third of the people give thirty answers, the others four, and want the opposite."""
    base, rows = np.linspace(-1.0, 1.0, 8), []
    for person in range(n_people):
        f = base * (-0.75 if person % 3 else 1.5)
        for _ in range(4 if person % 3 else 30):
            a, b = rng.choice(8, 2, replace=False)
            rows.append((f"{name}{person:03d}", f"i{a}", f"i{b}", 1 if f[a] - f[b] + rng.standard_normal() > 0 else -1))
    return dict(zip(("user", "left", "right", "outcome"), map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.slow
def test_strangers_answers_are_predicted_as_well_as_by_the_pooled_model():
    rng = np.random.default_rng(0)
    train, test = loud_and_quiet(rng, 90, "p"), loud_and_quiet(rng, 200, "q")
    outcome = np.array(test.pop("outcome"))
    model = Population(n_jobs=1, consistency=0.0).fit(train, reading={"positive": "left"})
    found = model._choices["calibration"]
    assert found.newcomer_weight > 0.5

    def loss(one):
        log_p = one.predict_log_proba(test)
        return -log_p[np.arange(len(outcome)), 1 - outcome].mean()

    assert loss(model) < loss(Population(personal=False, n_jobs=1).fit(train, reading={"positive": "left"})) + 0.005
    shifted = model.posterior_
    model.posterior_ = replace(shifted, newcomer_shift=None)
    assert loss(model) > 0.69  # a coin's
    # A refit with what was chosen has it too.
    chosen = {"calibration": found, "strength": 10.0, "variance": 1.0, "consensus_variance": 1.0}
    again = Population(n_jobs=1, consistency=0.0, **chosen).fit(train, reading={"positive": "left"})
    assert np.corrcoef(again.posterior_.newcomer_shift, shifted.newcomer_shift)[0, 1] > 0.99


def test_a_shift_is_that_of_other_rows_where_people_are_left_out():
    prior = PopulationPrior.of(Hyperparameters(10.0, 1.0, 2.0, 0.0, 1.0), FeatureSpace.empty(6))
    rows = ROWS.take(ROWS.user % 4 != 1)  # codes stay
    people = lay_out(rows)
    state = fit_population(people, prior)
    posterior = replace(state.posterior(people, prior), calibration=WEIGHT)
    found = shift_of_newcomers(posterior, rows, state.delta)
    # Copies of one person's rows count as often as they are there.
    twice = shift_of_newcomers(posterior, rows.append(rows.take(rows.user == 2)), state.delta)
    weighted = rows.with_weight(np.where(rows.user == 2, 2.0, 1.0) * rows.weight)
    np.testing.assert_allclose(twice, shift_of_newcomers(posterior, weighted, state.delta), atol=CONVERGED)
    assert np.abs(twice - found).max() > 1e-3
