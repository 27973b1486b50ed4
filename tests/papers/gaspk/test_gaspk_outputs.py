"""What a choice researcher gets out of a fitted ``GaSPK``, against dense algebra, sampling and planted utilities."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import ndtr

from predilect import GaSPK
from predilect.errors import DataError, DataWarning
from predilect.inference.likelihoods.tabulated import at
from predilect.papers.gaspk.boundaries import nearest_zero
from predilect.papers.gaspk.posterior.curvature import ByAnswers, ByCoordinates, Noise
from predilect.papers.gaspk.posterior.joint import draw, joint, mixtures
from predilect.papers.gaspk.posterior.solver import ByProducts
from predilect.papers.gaspk.questions import codes_of, limits, mixtures_of
from simulate import random_pairs
from simulate_trade_offs import WORTH, linear_choices
from tolerances import CONVERGED, EXACT, ITERATIVE, STATISTICAL

QUICK = {"n_components": 2, "variance": 10.0, "n_restarts": 2, "n_jobs": 1, "max_iter": 300}


def fitted(spread: float = 1.0, **changes) -> GaSPK:
    answers, items = linear_choices(**{k: changes.pop(k) for k in ("tie_threshold", "three_fuels") if k in changes})
    settings = {**QUICK, "units": {"price": "EUR"}, "spread": spread, **changes}
    return GaSPK(**settings).fit(answers, items=items)


@pytest.fixture(scope="module")
def linear():
    return fitted(n_restarts=1)


@pytest.fixture(scope="module")
def wide():
    """With ties, and weights that leave something open."""
    return fitted(spread=1.5, tie_threshold=0.4, gamma="exact", n_restarts=1)


TRADE_OFFS = {"price": [4.0, -6.0, 0.0, 2.0], "comfort": [0.0, 1.0, -2.0, 3.0], "fuel=gas": [1, 0, 0, -1]}


def dense_posterior(model: GaSPK, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (q, n_c) and covariance (q n_c, q n_c) of the characteristics at t; gaspk.md 2, function space."""
    posterior, answers = model.posterior_, model.answers_
    points, kernel, n_c = model._choices.points, model.hyperparameters_.kernel, model.posterior_.gamma.shape[1]
    F = posterior.basis.forward(posterior.w)
    gamma = posterior.gamma[answers.user]
    z = np.einsum("ic,ic->i", gamma, F[answers.point])
    w = answers.weight * at(answers.outcome, z, model.tie_threshold_)[2]
    A = np.zeros((len(points), n_c, len(z)))
    A[answers.point, :, np.arange(len(z))] = gamma
    A = A.reshape(-1, len(z))
    known, asked = kernel(points), kernel(t, points)
    K, cross = (np.kron(k, np.eye(n_c)) for k in (known, asked))
    L = A * np.sqrt(w)
    inner = L @ np.linalg.solve(np.eye(len(z)) + L.T @ K @ L, L.T)
    covariance = np.kron(kernel(t), np.eye(n_c)) - cross @ inner @ cross.T
    return asked @ np.linalg.lstsq(known, F, rcond=1e-13)[0], covariance


def weight_covariance(model: GaSPK, user: int) -> tuple[np.ndarray, float]:
    """Covariance of somebody's weights by conditioning the Dirichlet's on the answers, and what is left open."""
    posterior, answers = model.posterior_, model.answers_
    mine = answers.user == user
    F = posterior.basis.forward(posterior.w)[answers.point[mine]]
    w = answers.weight[mine] * at(answers.outcome[mine], F @ posterior.gamma[user], model.tie_threshold_)[2]
    n_c = F.shape[1]
    S = (np.eye(n_c) / n_c - 1.0 / n_c**2) / (n_c + 1.0)
    S = S - S @ F.T @ np.linalg.solve(np.diag(1.0 / w) + F @ S @ F.T, F @ S)
    return S, max(posterior.spread - 1.0 - np.einsum("ic,cd,id->i", F, S, F).mean(), 0.0)


@pytest.mark.slow
def test_joint_law_is_that_of_dense_algebra(linear, wide):
    for model in (linear, wide):
        t = model.trade_offs_.from_units(TRADE_OFFS)
        F, covariance = dense_posterior(model, t)
        posterior, spread = model.posterior_, model.posterior_.spread
        K = model.hyperparameters_.kernel(t) / posterior.prior_variance
        n_users = len(posterior.gamma)
        known = [weight_covariance(model, u) for u in range(n_users)]
        together = [np.sum([part[k] for part in known], axis=0) / n_users**2 for k in (0, 1)]
        laws = {"p04": (posterior.gamma[4], *known[4]), None: (posterior.gamma.mean(axis=0), *together)}
        for user, (gamma, S, left_open) in laws.items():
            mean, found = model.evaluation_distribution(TRADE_OFFS, user)
            mix = np.kron(np.eye(len(t)), gamma[None, :])
            np.testing.assert_allclose(mean, F @ gamma, atol=ITERATIVE)
            expected = spread * mix @ covariance @ mix.T + F @ S @ F.T + left_open * K
            np.testing.assert_allclose(found, expected, atol=CONVERGED)
            assert (left_open > 0.0) == (model is wide)


@pytest.mark.slow
def test_draws_have_the_precision_of_the_coordinates(linear):
    posterior, answers = linear.posterior_, linear.answers_
    Phi, gamma = posterior.basis.dense()[:, :12], posterior.gamma
    basis = replace(posterior.basis, root=Phi)
    precision = np.random.default_rng(0).uniform(0.1, 1.0, answers.n_rows)[:150]
    user, point = answers.user[:150], answers.point[:150]
    B = np.zeros((len(Phi), 2, 2))
    np.add.at(B, point, precision[:, None, None] * gamma[user][:, :, None] * gamma[user][:, None, :])
    rows = (Phi[point][:, :, None] * gamma[user][:, None, :]).reshape(150, -1)
    inverse = np.linalg.inv(np.eye(24) + (rows.T * precision) @ rows)
    for curvature, tolerance in (
        (ByCoordinates.of(Phi, B), EXACT),
        (ByAnswers.of(Phi[point], gamma[user], precision), EXACT),
        (ByProducts(basis, B), ITERATIVE),
        (ByCoordinates(inverse.reshape(12, 2, 12, 2)), EXACT),
    ):
        shape = curvature.noise_shape
        n = 24 + int(np.prod(shape))
        unit = np.eye(n)
        noise = Noise(unit[:24].reshape(12, 2, n), unit[24:].reshape(*shape, n))
        root = curvature.drawn(noise).reshape(24, n)
        np.testing.assert_allclose(root @ root.T, inverse, atol=tolerance)
        np.testing.assert_allclose(curvature.covariance_matrix(), inverse, atol=EXACT)


def test_weights_of_somebody_without_answers_are_those_of_the_prior_and_all_else_is_open():
    F, gamma = np.random.default_rng(0).normal(size=(5, 3)), np.full((2, 3), 1.0 / 3.0)
    found = mixtures(
        gamma, F, np.zeros(4, dtype=int), np.arange(4), np.full(4, 0.2), np.array([0, 1]), 1.5, np.ones(2)
    )  # fmt: skip
    assert found.left_open[1] == pytest.approx(0.5, abs=EXACT)
    dirichlet = (np.eye(3) / 3.0 - 1.0 / 9.0) / 4.0
    np.testing.assert_allclose(found.root[1] @ found.root[1].T, dirichlet, atol=EXACT)
    assert np.trace(found.root[0] @ found.root[0].T) < np.trace(dirichlet)


@pytest.mark.slow
def test_draws_have_the_joint_law(wide):
    t, kernel = wide.trade_offs_.from_units(TRADE_OFFS), wide.hyperparameters_.kernel
    n = 4000
    draws = draw(wide.posterior_, kernel, np.stack([-t, t]), n, 3)
    people = mixtures_of(wide, codes_of(wide, ["p00", "p07"]))
    both = draws.of(people)[:, :, 4:]
    for found, user in zip(both, ("p00", "p07"), strict=True):
        mean, covariance = wide.evaluation_distribution(TRADE_OFFS, user)
        error = np.sqrt(np.diag(covariance) / n)
        np.testing.assert_array_less(np.abs(found.mean(axis=0) - mean), STATISTICAL * error)
        error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
        np.testing.assert_array_less(np.abs(np.cov(found.T) - covariance), STATISTICAL * error)


def test_accept_is_the_prediction_for_such_items(wide):
    ids = wide.items_.ids
    pairs = pl.DataFrame({"user": ["p03"] * 20, "left": ids[:20], "right": ids[20:40]})
    t = wide.trade_offs_.pairs(wide._space.matrix, np.arange(20), np.arange(20, 40))
    found = wide.accept(wide.trade_offs_.in_units(t), user="p03")
    np.testing.assert_allclose(found.select("p_accept", "p_tie", "p_reject"), wide.predict_proba(pairs), atol=EXACT)
    mean, var = wide.predict_margin(pairs)
    np.testing.assert_allclose(found["mean"], mean, atol=EXACT)
    np.testing.assert_allclose(found["sd"], np.sqrt(var), atol=EXACT)
    assert found["user"].unique().to_list() == ["p03"]
    assert set(found.columns[1:4]) == set(wide.trade_offs_.names)


def test_accept_averages_the_noise_of_an_answer_and_what_is_not_known(wide):
    found = wide.accept(TRADE_OFFS, "p05")
    n, delta = 100_000, wide.tie_threshold_
    assert delta > 0.1
    f = found["mean"].to_numpy() + np.random.default_rng(1).standard_normal((n, 4)) * found["sd"].to_numpy()
    for name, chance in (("p_accept", ndtr(f - delta)), ("p_reject", ndtr(-f - delta))):
        error = STATISTICAL * chance.std(axis=0) / np.sqrt(n) + EXACT
        np.testing.assert_array_less(np.abs(chance.mean(axis=0) - found[name].to_numpy()), error)
    total = found["p_accept"] + found["p_tie"] + found["p_reject"]
    np.testing.assert_allclose(total, 1.0, atol=EXACT)


def test_together_probabilities_are_shares_and_evaluations_an_average(wide):
    together, each = wide.accept(TRADE_OFFS), wide.accept(TRADE_OFFS, "all")
    for name in ("p_accept", "p_tie", "p_reject", "mean"):
        np.testing.assert_allclose(together[name], each[name].to_numpy().reshape(30, 4).mean(axis=0), atol=EXACT)
    mean, covariance = wide.evaluation_distribution(TRADE_OFFS)
    np.testing.assert_allclose(together["mean"], mean, atol=EXACT)
    np.testing.assert_allclose(together["sd"], np.sqrt(np.diag(covariance)), atol=CONVERGED)
    assert (together["lower"] < together["mean"]).all()
    assert together.columns[:3] == ["price", "comfort", "fuel=gas"]
    # Swapping sides and the name of the category that is minus another.
    turned = {"price": [-4.0], "fuel=oil": [1]}
    assert wide.accept(turned)["p_reject"][0] == pytest.approx(together["p_accept"][0], abs=EXACT)


def test_recovers_what_people_would_pay(linear):
    price = "price (EUR)"
    for kind, first in (("thrifty", 0), ("rich", 1)):
        worth = WORTH[kind]
        people = linear.willingness("price", user=[f"p{u:02d}" for u in range(first, 30, 2)])
        for attribute, true in (
            ("comfort", -worth[1] / worth[0]),
            ("fuel=gas instead of fuel=oil", -worth[2] / worth[0]),
        ):
            rows = people.filter(pl.col("attribute") == attribute)
            assert len(rows) == 15
            held = (rows["lower"] <= true) & (true <= rows["upper"])
            assert held.mean() >= 0.8, (kind, attribute, rows)
            assert rows[price].median() == pytest.approx(true, abs=0.35 * abs(true))
            if kind == "thrifty":  # price matters to them, so that the answers say how much they would pay
                assert (rows["upper"] - rows["lower"]).median() < abs(true) * 2.5
    everybody = linear.willingness("price", "comfort")
    mean = np.mean(list(WORTH.values()), axis=0)
    assert everybody["lower"][0] < -mean[1] / mean[0] < everybody["upper"][0]


def test_what_would_cost_more_than_prices_differed_is_infinite_and_said_to_be(linear):
    low, high = limits(linear)["price (EUR)"]
    worth = WORTH["rich"][1] / -WORTH["rich"][0]
    change = 2.0 * high / worth  # twice as much as any two prices differed
    assert change <= limits(linear)["comfort"][1] + EXACT
    rows = linear.willingness("price", "comfort", change, user=[f"p{u:02d}" for u in range(1, 30, 2)])
    assert low == -high
    assert (rows["price (EUR)"] == np.inf).mean() >= 0.8
    assert rows["share_without"].mean() > 0.5


def test_intervals_are_quantiles_of_the_joint_law(wide):
    found = wide.willingness("price", "comfort", 2.0, user="p02")
    trade_offs, n = wide.trade_offs_, 4000
    y = np.linspace(-20.0, 20.0, 161)
    t = 2.0 * trade_offs.step("comfort").direction + y[:, None] * trade_offs.step("price").direction
    mixture = mixtures_of(wide, codes_of(wide, "p02"))
    mean, covariance = joint(wide.posterior_, wide.hyperparameters_.kernel, mixture, t)
    f = np.random.default_rng(5).multivariate_normal(mean, covariance, n, method="svd")
    zero = nearest_zero(f, y)
    error = STATISTICAL * np.sqrt(0.025 * 0.975 * (1 / n + 1 / 1000))
    assert abs((zero < found["lower"][0]).mean() - 0.025) < error
    assert abs((zero > found["upper"][0]).mean() - 0.025) < error
    assert found["price (EUR)"][0] == pytest.approx(nearest_zero(mean, y), abs=0.01)
    share = np.isinf(zero).mean()
    assert abs(found["share_without"][0] - share) < STATISTICAL * np.sqrt(max(share, 1e-3) * (1 / n + 1 / 1000))


# Heuristic weights have no objective: they may go round for ever, and the fit says so.
@pytest.mark.filterwarnings(r"default:GaSPK \(heuristic weights\) stopped:predilect.errors.ConvergenceWarning")
@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "least"), [("heuristic", 0.6), ("exact", 0.8)])
def test_intervals_hold_the_truth_for_people_with_tastes_of_their_own(gamma, least):
    rng = np.random.default_rng(0)
    n_users, n_answers, n_items = 100, 30, 80
    price, comfort = rng.integers(0, 21, n_items).astype(float), rng.integers(0, 6, n_items).astype(float)
    dear, liked = -0.2 * np.exp(0.4 * rng.standard_normal(n_users)), 0.5 + 0.35 * rng.standard_normal(n_users)
    user = np.repeat(np.arange(n_users), n_answers)
    left, right = random_pairs(rng, len(user), n_items)
    z = dear[user] * (price[left] - price[right]) + liked[user] * (comfort[left] - comfort[right])
    winner = np.where(z + rng.standard_normal(len(user)) > 0, "left", "right")
    items = {"item": np.arange(n_items), "price": price, "comfort": comfort}
    model = GaSPK(gamma=gamma, n_components=5, n_restarts=2, n_jobs=1, max_iter=500)
    model.fit({"user": user, "left": left, "right": right, "winner": winner}, items=items)
    found = model.willingness("price", "comfort", user=list(range(n_users)))
    truth = pl.Series(-liked / dear)
    assert ((found["lower"] <= truth) & (truth <= found["upper"])).mean() >= least
    average = model.willingness("price", "comfort")
    assert average["lower"][0] < -liked.mean() / dear.mean() < average["upper"][0]


def test_indifference_is_mirrored_and_nothing_at_nothing(wide):
    found = wide.indifference("comfort", "price", [-2.0, 0.0, 2.0], "p02")
    assert found.columns == ["user", "comfort", "price (EUR)", "lower", "upper", "share_without"]
    assert found.row(1)[1:] == (0.0, 0.0, 0.0, 0.0, 0.0)
    assert found["price (EUR)"][0] == pytest.approx(-found["price (EUR)"][2], abs=EXACT)
    assert found["price (EUR)"][2] > 0.0  # worth paying for
    same = wide.accept({"comfort": [2.0], "price": [found["price (EUR)"][2]]}, "p02")
    assert same["mean"][0] == pytest.approx(0.0, abs=1e-3)  # linear interpolation
    moved = wide.indifference("comfort", "price", [2.0], "p02", other={"fuel=gas": 1})
    same = wide.accept({"comfort": [2.0], "fuel=gas": [1], "price": [moved["price (EUR)"][0]]}, "p02")
    assert same["mean"][0] == pytest.approx(0.0, abs=1e-3)
    everybody = wide.indifference("fuel", "price")
    assert everybody["fuel=gas instead of fuel=oil"].to_list() == [-1.0, 0.0, 1.0]


def test_a_person_alone_is_as_among_all(linear):
    alone, all_ = linear.willingness("price", user="p09"), linear.willingness("price", user="all")
    assert alone.equals(all_.filter(pl.col("user") == "p09"))


@pytest.mark.slow
def test_nobody_pays_with_what_does_not_matter():
    answers, items = linear_choices()
    noise = np.random.default_rng(3).normal(size=len(items))
    model = GaSPK(**QUICK, spread=1.0).fit(answers, items=items.with_columns(noise=noise))
    found = model.willingness("noise", "price", 5.0, user="p00")
    assert found["share_without"][0] > 0.25
    assert np.isinf(found.select("lower", "upper").row(0)).any()


def test_nearest_zero():
    y = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])
    f = np.array([
        [-4.0, -1.0, 0.0, 1.0, 4.0], [3.0, 3.0, 3.0, 1.0, -1.0], [1.0, -1.0, -2.0, 2.0, 3.0], [5.0, 4.0, 3.0, 2.0, 1.0],
        [-1.0, -2.0, -3.0, -4.0, -5.0], [0.0, 0.0, 0.0, 0.0, 0.0],
    ])  # fmt: skip
    assert nearest_zero(f, y).tolist() == [0.0, 2.5, 0.5, np.inf, -np.inf, 0.0]
    assert nearest_zero(f[:, 2:], y[2:]).tolist()[1] == 2.5


def test_segments_and_characteristics(linear):
    rows = linear.segments()
    weights = rows.drop("user", "largest", "share").to_numpy()
    np.testing.assert_array_equal(weights, linear.weights_)
    assert rows["user"].to_list() == list(linear.users_.ids)
    np.testing.assert_array_equal(weights[np.arange(30), rows["largest"] - 1], rows["share"])
    # The two kinds of people are the two characteristics.
    assert rows["largest"][::2].n_unique() == rows["largest"][1::2].n_unique() == 1
    table = linear.characteristics()
    assert table["n_largest"].sum() == 30
    assert table["weight"].sum() == pytest.approx(1.0)
    assert table["weight"].is_sorted(descending=True)
    steps = {"price +5 EUR": {"price": [5.0]}, "fuel=gas instead of fuel=oil": {"fuel=gas": [1]}}
    for name, trade_off in steps.items():
        for row in table.iter_rows(named=True):
            found = linear.posterior_.at(linear.trade_offs_.from_units(trade_off))
            c = row["characteristic"] - 1
            assert row[name] == pytest.approx(found.mean[0, c], abs=EXACT)
            assert row[f"{name} sd"] == pytest.approx(np.sqrt(found.covariance[0, c, c]), abs=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_three_characteristics_are_three_kinds_of_people(seed):
    rng = np.random.default_rng(seed)
    kinds = np.array([[-2.0, 0.2, -0.5], [-0.5, 1.5, 0.0], [-1.0, 0.0, 1.0]])
    X = np.column_stack([rng.uniform(-1.7, 1.7, 30), rng.choice([-1.0, 1.0], 30), rng.choice([-1.1, 0.0, 1.2], 30)])
    kind, user = rng.integers(0, 3, 300), np.repeat(np.arange(300), 20)
    left = rng.integers(0, 30, len(user))
    right = (left + rng.integers(1, 30, len(user))) % 30
    won = ((X[left] - X[right]) * kinds[kind[user]]).sum(axis=1) + rng.normal(size=len(user)) > 0.0
    pairs = pl.DataFrame({"user": user, "left": left, "right": right, "winner": np.where(won, "left", "right")})
    items = pl.DataFrame({"item": np.arange(30), "price": X[:, 0], "green": X[:, 1], "months": X[:, 2]})
    rows = GaSPK(n_components=3, n_jobs=1).fit(pairs, items=items).segments()
    largest, of = rows["largest"].to_numpy() - 1, kind[rows["user"].to_numpy()]
    assert max((np.array(order)[of] == largest).mean() for order in permutations(range(3))) > 0.95


@pytest.mark.slow
def test_categories_are_gained_and_lost():
    model = fitted(three_fuels=True)
    found = model.willingness("price", user="p00")
    assert found["attribute"].to_list() == ["comfort", "fuel=oil instead of fuel=gas", "fuel=sun instead of fuel=gas"]
    assert found["price (EUR)"][1] < 0.0  # oil must be cheaper
    back = model.willingness("price", "fuel=gas instead of fuel=oil", user="p00")
    assert back["price (EUR)"][0] == pytest.approx(-found["price (EUR)"][1], abs=EXACT)
    with pytest.warns(DataWarning, match='gain a category of "fuel" without losing another'):
        model.accept({"fuel=sun": [1]})
    model.accept({"fuel=sun": [1], "fuel=oil": [-1]})
    with pytest.raises(DataError, match="several categories"):
        model.indifference("fuel", "price")


def test_items_as_attributes_and_nobody_told_apart():
    answers, _ = linear_choices()
    few = answers.filter((pl.col("left") < "i12") & (pl.col("right") < "i12"))
    model = GaSPK(**QUICK, spread=1.0).fit(few.drop("user"))
    with pytest.raises(DataError, match="without a table of items"):
        model.willingness("i00")
    with pytest.raises(DataError, match="no people to tell apart"):
        model.segments()
    with pytest.raises(DataError, match="leave user out"):
        model.accept({"i00": [1], "i01": [-1]}, "p00")
    table, board = model.characteristics(), model.utilities()
    # Up to a constant the scores of the only characteristic are the board.
    scores = np.array([table[f"{item} against the others"][0] for item in board["item"]])
    np.testing.assert_allclose(scores - scores.mean(), board["mean"], atol=EXACT)
    found = model.accept({"i00": [1], "i01": [-1]})
    margin, _ = model.predict_margin(pl.DataFrame({"left": ["i00"], "right": ["i01"]}))
    assert found["mean"][0] == pytest.approx(margin[0], abs=EXACT)


def test_trade_offs_outside_the_data_are_counted_and_evaluated(linear):
    with pytest.warns(DataWarning, match=r"2 of 3 trade-offs lie outside .*price \(EUR\) from -20 to 20"):
        found = linear.accept({"price": [1.0, 21.0, 300.0], "comfort": [0.0, 0.0, 9.0]})
    assert found["mean"][2] == pytest.approx(0.0, abs=1e-3)  # far away a function is what it was at first
    assert found["mean"][1] < found["mean"][0] < 0.0
    with pytest.warns(DataWarning, match="1 of 1 trade-offs lie outside"):
        linear.willingness("price", "comfort", 30.0)


def test_frames_come_back_in_the_callers_kind():
    answers, items = linear_choices(n_users=6)
    model = GaSPK(**{**QUICK, "n_components": 1}, spread=1.0).fit(answers.to_pandas(), items=items.to_pandas())
    assert isinstance(model.accept(pd.DataFrame({"price": [1.0]})), pd.DataFrame)
    assert isinstance(model.willingness("price"), pd.DataFrame)
    assert isinstance(model.segments(), pd.DataFrame)


def test_a_loaded_model_says_the_same(linear, tmp_path):
    linear.save(tmp_path / "model")
    model = GaSPK.load(tmp_path / "model")
    for ask in (lambda m: m.accept(TRADE_OFFS, "p04"), lambda m: m.willingness("price", user="p04")):
        found, again = (ask(m).drop("user", "attribute", strict=False) for m in (linear, model))
        np.testing.assert_allclose(found, again, atol=ITERATIVE)


@pytest.mark.slow
def test_without_antisymmetry_there_is_a_preference_for_a_side():
    answers, items = linear_choices()
    model = GaSPK(**QUICK, spread=1.0, antisymmetric=False).fit(answers, items=items)
    assert abs(model.accept({"price": [0.0]}, "p00")["mean"][0]) > 0.0
    found = model.indifference("comfort", "price", [0.0, 1.0], "p00")
    same = model.accept({"comfort": [1.0], "price": [found["price"][1]]}, "p00")
    assert same["mean"][0] == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda m: m.accept({"colour": [1.0]}), "price"),
        (lambda m: m.accept({"price": ["dear"]}), "must hold numbers"),
        (lambda m: m.accept({"price": [np.inf]}), "not finite"),
        (lambda m: m.accept({}), "no columns"),
        (lambda m: m.accept({"price": np.zeros(0)}), "no rows"),
        (lambda m: m.accept({"price": [1.0]}, "somebody"), "somebody"),
        (lambda m: m.accept({"price": [1.0]}, []), "empty list"),
        (lambda m: m.accept({"price": 1.0}), '"price" is 1.0. Write'),
        (lambda m: m.evaluation_distribution({"price": [1.0]}, ["p00", "p01"]), "one person"),
        (lambda m: m.indifference("colour", "price"), "comfort"),
        (lambda m: m.indifference("price", "price"), "name two"),
        (lambda m: m.indifference("price", "fuel"), "is a category"),
        (lambda m: m.indifference("price", "comfort", [np.nan]), "finite"),
        (lambda m: m.indifference("price", "comfort", []), "at least one"),
        (lambda m: m.indifference("price", "comfort", ["much"]), "must hold numbers"),
        (lambda m: m.indifference("price", "comfort", other={"price": 1.0}), "what the curve is about"),
        (lambda m: m.willingness("price", "price"), "name two"),
        (lambda m: m.willingness("fuel"), "is a category"),
        (lambda m: m.willingness("price", change=np.inf), "finite"),
    ],
)
def test_errors_say_what_there_is(linear, ask, said):
    with pytest.raises(DataError, match=said):
        ask(linear)


def test_a_column_of_the_caller_is_not_replaced(linear):
    model = copy.copy(linear)
    dimensions = tuple(replace(d, name="mean") if d.name == "comfort" else d for d in model.trade_offs_.dimensions)
    model.trade_offs_ = replace(model.trade_offs_, dimensions=dimensions)
    with pytest.raises(DataError, match='an attribute is called "mean"'):
        model.accept({"mean": [1.0]})


@pytest.mark.slow
def test_market_shares_are_means_over_the_people(wide):
    ids = list(wide.items_.ids)[:3]
    table = pl.DataFrame(wide.worth.simulate({"now": ids}))
    people = list(wide.users_.ids)
    sets = pl.DataFrame(
        {"user": [one for one in people for _ in ids], "task": [0] * 3 * len(people), "item": ids * len(people)}
    )
    p = wide.predict_choice(sets).reshape(-1, 3)
    np.testing.assert_allclose(table["share"], p.mean(axis=0), atol=EXACT)
    assert ((table["lower"] <= table["share"]) & (table["share"] <= table["upper"])).all()
    respondents = pl.DataFrame(wide.worth.simulate(ids, of="respondents"))
    assert respondents["share"].to_list() == table["share"].to_list()
    with pytest.raises(DataError, match="take the rule share"):
        wide.worth.simulate(ids, "randomised")
    with pytest.raises(DataError, match="the scenario has one item"):
        wide.worth.simulate(ids[:1])
