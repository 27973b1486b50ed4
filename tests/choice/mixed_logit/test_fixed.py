"""Coefficients that are the same for all: estimates and standard errors of a conditional logit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2
from simulate_choices import choices

from predilect import Comparisons, MixedLogit, Population
from predilect.data.choices import choices_of
from predilect.errors import DataError
from predilect.inference.likelihoods.special import Z_95

DATA = choices(7, n_users=40, n_tasks=6, Omega=np.zeros((3, 3)))
NAMES = ("price", "speed", "size")
# What the search for the maximum, to 1e-5 nats a choice, and one-sided differences of the gradient leave of errors.
CLOSE = 2e-4


def tasks(data, columns):
    """Attributes of the alternatives of each choice, (T, k, n_columns), the chosen one first."""
    found = choices_of(data.answers)
    names, place = data.answers.items.labels(found.item), {one: k for k, one in enumerate(data.items["item"])}
    X = np.array([data.items[name] for name in columns], dtype=float).T
    return X[[place[name] for name in names]].reshape(len(found.ptr) - 1, -1, len(columns))


def conditional_logit(X):
    """Estimates and their covariance, by algebra of its own: Newton's method on log-sums of exponentials."""

    def loss(b):
        return float((logsumexp(X @ b, axis=1) - X[:, 0] @ b).sum())

    b = np.zeros(X.shape[2])
    for _ in range(20):
        p = np.exp(X @ b - logsumexp(X @ b, axis=1, keepdims=True))
        mean = np.einsum("tk,tkd->td", p, X)
        slope = (mean - X[:, 0]).sum(axis=0)
        H = np.einsum("tk,tkd,tke->de", p, X, X) - mean.T @ mean
        b = b - np.linalg.solve(H, slope)
    # The same from second differences of the likelihood alone.
    step = 1e-3 * np.eye(len(b))
    second = [
        [(loss(b + e + f) - loss(b + e - f) - loss(b - e + f) + loss(b - e - f)) / 4e-6 for e in step] for f in step
    ]
    np.testing.assert_allclose(second, H, rtol=1e-4, atol=1e-3)
    return b, np.linalg.inv(H)


def fixed(data, seed=0, **settings):
    given = {"method": "simulated", "distributions": "fixed", "errors": "hessian", "n_jobs": 1, "random_state": seed}
    return MixedLogit(**given | settings).fit(data.answers, items=data.items)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_standard_errors_are_those_of_the_hessian_whatever_the_seed(seed):
    b, covariance = conditional_logit(tasks(DATA, NAMES))
    table = pl.DataFrame(fixed(DATA, seed).worth.coefficients()).sort(
        pl.col("attribute").replace_strict(NAMES, range(3))
    )
    np.testing.assert_allclose(table["mean"], b, rtol=CLOSE)
    np.testing.assert_allclose(table["sd"], np.sqrt(np.diagonal(covariance)), rtol=CLOSE)
    np.testing.assert_allclose(table["upper"] - table["mean"], Z_95 * table["sd"], rtol=1e-10)
    np.testing.assert_allclose(table["mean"] - table["lower"], Z_95 * table["sd"], rtol=1e-10)
    assert (table["spread"] < 1e-12).all()


def test_levels_of_a_category_have_the_errors_of_their_contrasts():
    kinds = ["red", "green", "blue"]
    items = DATA.items | {"colour": [kinds[k % 3] for k in range(30)]}
    data = DATA._replace(items=items)
    dummies = {name: [float(one == name) for one in items["colour"]] for name in kinds[:2]}
    b, covariance = conditional_logit(tasks(data._replace(items=items | dummies), ("price", "size", *kinds[:2])))
    # Levels that sum to 0, of dummies against blue.
    map_of = np.zeros((3, 4))
    map_of[:2, 2:] = np.eye(2)
    map_of -= map_of.sum(axis=0) / 3.0
    del items["speed"]
    table = pl.DataFrame(fixed(data).worth.coefficients()).filter(pl.col("attribute") == "colour")
    order = [kinds.index(level) for level in table["level"]]
    np.testing.assert_allclose(table["mean"], (map_of @ b)[order], rtol=10 * CLOSE)
    np.testing.assert_allclose(table["sd"], np.sqrt(np.diagonal(map_of @ covariance @ map_of.T))[order], rtol=CLOSE)


def test_they_are_those_of_statsmodels():
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models")
    X = tasks(DATA, NAMES)
    T, k, d = X.shape
    chosen = np.tile(np.eye(k)[0], T)
    theirs = conditional.ConditionalLogit(chosen, X.reshape(T * k, d), groups=np.repeat(range(T), k)).fit(disp=0)
    table = pl.DataFrame(fixed(DATA).worth.coefficients()).sort(pl.col("attribute").replace_strict(NAMES, range(3)))
    np.testing.assert_allclose(table["mean"], theirs.params, rtol=1e-3)
    np.testing.assert_allclose(table["sd"], theirs.bse, rtol=1e-3)


@pytest.mark.slow
def test_what_varies_between_people_is_as_sure_as_the_hessian_says_too():
    """Draws of populations have the covariance of the estimate, and not about that."""
    model = MixedLogit(method="simulated", covariance="diagonal", n_draws=40, n_jobs=1)
    found = [
        pl.DataFrame(model.set_params(random_state=seed).fit(DATA.answers, items=DATA.items).worth.coefficients())["sd"]
        for seed in (0, 1)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_an_answer_less_changes_the_errors():
    """They are of these answers: half of them has larger ones."""
    half = DATA.answers.take(DATA.answers.user < 20)
    all_of = np.array(pl.DataFrame(fixed(DATA).worth.coefficients())["sd"])
    of_half = np.array(pl.DataFrame(fixed(DATA._replace(answers=half)).worth.coefficients())["sd"])
    assert (of_half > 1.2 * all_of).all()
    assert isinstance(half, Comparisons)


@pytest.mark.slow
def test_the_ratio_of_likelihoods_tests_what_was_left_out():
    b, _ = conditional_logit(whole := tasks(DATA, NAMES))
    c, _ = conditional_logit(part := tasks(DATA, NAMES[:1]))
    loss = [float((logsumexp(X @ at, axis=1) - X[:, 0] @ at).sum()) for X, at in ((whole, b), (part, c))]
    large, small = fixed(DATA), fixed(DATA, attributes=list(NAMES[:1]))
    row = pl.DataFrame(large.likelihood_ratio(small)).row(0, named=True)
    assert row["statistic"] == pytest.approx(2.0 * (loss[1] - loss[0]), rel=CLOSE)
    assert (row["df"], row["said"]) == (len(NAMES) - 1, "")
    assert row["p"] == pytest.approx(chi2.sf(row["statistic"], row["df"]), rel=1e-9)
    spread = fixed(DATA, distributions={NAMES[0]: "normal", **dict.fromkeys(NAMES[1:], "fixed")}, errors="auto")
    assert pl.DataFrame(spread.likelihood_ratio(large))["said"][0].startswith("an upper bound")


def test_likelihoods_that_cannot_be_compared_are_refused():
    large, half = fixed(DATA), choices(3, n_users=20, n_tasks=4)
    for other, message in (
        (fixed(half), "of different answers"), (fixed(DATA, n_classes=2), "Compare their BIC"),
        (large, "no fewer parameters"), (Population(), "compares fits of MixedLogit"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            large.likelihood_ratio(other)
    with pytest.raises(DataError, match="which this one has not"):
        fixed(DATA, attributes=list(NAMES[:2])).likelihood_ratio(fixed(DATA, attributes=list(NAMES[2:])))
