"""Willingness to pay over people: the closed form of its mean, and its median, against people who are drawn."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from simulate_choices import choices

from predilect import MixedLogit, load
from predilect.choice.mixed_logit.attributes import FIXED, NEGATIVE, NORMAL, POSITIVE, TRIANGULAR, ItemColumns
from predilect.choice.mixed_logit.pay import pay_of_people
from predilect.choice.mixed_logit.problem import Mixture, coefficients_of, triangular
from predilect.decisions.conjoint import willingness_to_pay
from tolerances import EXACT, ITERATIVE

LEVELS = (("price", ""), ("speed", ""), ("brand", "a"), ("brand", "b"), ("room", ""), ("milk", ""))
REPORT = np.array([
    [2.0, 0, 0, 0, 0], [0, 0.5, 0, 0, 0], [0, 0, 1.5, 0, 0], [0, 0, -1.5, 0, 0], [0, 0, 0, 0.7, 0], [0, 0, 0, 0, 3.0],
])  # fmt: skip
MEAN = np.array([-0.4, 0.3, 0.6, -0.2, 0.8])
ROOT = np.array([[0.6, 0, 0, 0], [0.3, 0.4, 0, 0], [-0.5, 0.2, 0.7, 0], [0.1, 0.2, -0.1, 0.5]])


def columns_of(kinds, price=-1):
    """Columns of five attributes, of which the last is the same for all people."""
    kind = np.array([NORMAL if one == FIXED else one for one in kinds], dtype=np.int8)
    return ItemColumns(np.zeros((1, 5)), None, kind, 4, price, REPORT, LEVELS, ())


def law_of(means, roots, share):
    return Mixture(np.array(means)[None, :, None], np.array([L @ L.T for L in roots])[None], np.array([share]))


def drawn(law, columns, n=4_000_000, seed=0):
    """Coefficients of people, (n, levels), by the definition of the model."""
    rng = np.random.default_rng(seed)
    k = rng.choice(law.share.shape[1], n, p=law.share[0])
    noise = rng.standard_normal((n, 4))
    noise[:, columns.kind[:4] == TRIANGULAR] = triangular(noise[:, columns.kind[:4] == TRIANGULAR])
    z = law.B[0, k, 0].copy()
    for one in range(law.share.shape[1]):
        z[k == one, :4] += noise[k == one] @ np.linalg.cholesky(law.Omega[0, one]).T
    return coefficients_of(z, columns.kind, columns.price) @ columns.report.T


MIXED = (NEGATIVE, POSITIVE, NORMAL, NORMAL, FIXED)
ONE = law_of([MEAN], [ROOT], [1.0])
TWO = law_of([MEAN, MEAN * [1.5, -1.0, -1.0, 2.0, -0.5]], [ROOT, 0.7 * ROOT], [0.7, 0.3])
DIAGONAL = law_of([MEAN], [np.diag(np.diag(ROOT))], [1.0])
CASES = {
    "correlated": (ONE, columns_of(MIXED)),
    "classes": (TWO, columns_of(MIXED)),
    "positive price": (ONE, columns_of((POSITIVE, NEGATIVE, NORMAL, NORMAL, FIXED))),
    "triangular": (DIAGONAL, columns_of((NEGATIVE, POSITIVE, NORMAL, TRIANGULAR, FIXED))),
    "space of pay": (ONE, columns_of((NEGATIVE, POSITIVE, NORMAL, NORMAL, FIXED), price=0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_mean_and_median_over_people_are_those_of_people_who_are_drawn(case):
    law, columns = CASES[case]
    found = pay_of_people(law, columns, 0)
    c = drawn(law, columns)
    ratio = -c[:, 1:] / c[:, :1]
    error = ratio.std(axis=0) / np.sqrt(len(ratio))
    # Of the mean of something with a long tail four standard errors are themselves a draw: a tenth more.
    np.testing.assert_array_less(np.abs(found.mean[0, 1:] - ratio.mean(axis=0)), 4.4 * error + EXACT)
    below = (ratio <= found.median[0, 1:] + EXACT).mean(axis=0)
    alone = ratio.std(axis=0) > EXACT  # else all are the same
    np.testing.assert_allclose(below[alone], 0.5, atol=4.0 * 0.5 / np.sqrt(len(ratio)))


def test_a_correlated_attribute_has_the_mean_and_the_median_of_a_quadrature():
    """The mean is not that of the attribute times that of 1 / price, nor the median the ratio of medians."""
    found = pay_of_people(*CASES["correlated"], 0)
    Omega = ROOT @ ROOT.T
    m, a = MEAN[0] + np.log(2.0), 0.7 * MEAN[3]
    s, r = np.sqrt(Omega[0, 0]), 0.7 * Omega[0, 3]
    v = 0.49 * Omega[3, 3] - r**2 / s**2

    def given(y):
        return a + r * (y - m) / s**2

    def over_people(function):
        return quad(lambda y: function(y) * norm.pdf(y, m, s), m - 10 * s, m + 10 * s, epsabs=1e-13, limit=500)[0]

    mean = over_people(lambda y: given(y) * np.exp(-y))
    assert found.mean[0, 4] == pytest.approx(mean, rel=ITERATIVE)
    assert found.mean[0, 4] == pytest.approx((a - r) * np.exp(s**2 / 2 - m), rel=EXACT)
    assert abs(a * np.exp(s**2 / 2 - m) - mean) > 0.05 * abs(mean)
    t = found.median[0, 4]
    assert over_people(lambda y: norm.cdf((t * np.exp(y) - given(y)) / np.sqrt(v))) == pytest.approx(0.5, abs=ITERATIVE)
    assert abs(a * np.exp(-m) - t) > 0.02 * abs(t)


def test_of_a_price_alone_the_mean_is_that_of_a_log_normal():
    law, columns = CASES["correlated"]
    found, s2 = pay_of_people(law, columns, 0), (ROOT @ ROOT.T)[0, 0]
    assert found.median[0, 5] == pytest.approx(3.0 * 0.8 / (2.0 * np.exp(-0.4)), rel=EXACT)
    assert found.mean[0, 5] == pytest.approx(found.median[0, 5] * np.exp(s2 / 2.0), rel=EXACT)


def test_there_is_no_mean_over_people_of_a_ratio_to_a_normal_coefficient():
    law, columns = CASES["correlated"]
    assert pay_of_people(law, columns, 4) is None  # room is normal
    assert pay_of_people(law, columns, 5) is not None  # milk is the same for all
    fixed = ItemColumns(np.zeros((1, 5)), None, columns.kind, 0, -1, REPORT, LEVELS, ())
    assert pay_of_people(Mixture(law.B, np.zeros((1, 1, 0, 0)), law.share), fixed, 0) is None  # nobody differs


def test_a_price_that_hardly_matters_makes_amounts_that_are_large_and_no_nan():
    """A price that must be bad and was liked: its logarithm is far below 0, and what is known of it little."""
    rng = np.random.default_rng(0)
    B = np.tile(MEAN, (40, 1)) + np.array([200.0, 1, 1, 1, 0]) * rng.standard_normal((40, 5)) - [300.0, 0, 0, 0, 0]
    Omega = np.tile(np.diag([400.0, 1.0, 1.0, 1.0]), (40, 1, 1))
    found = pay_of_people(Mixture(B[:, None, None], Omega[:, None], np.ones((40, 1))), columns_of(MIXED), 0)
    assert not np.isnan(found.median).any()
    assert not np.isnan(found.mean).any()
    assert np.isinf(found.mean).any()
    draws = type("Draws", (), {
        "levels": LEVELS, "coefficients": lambda self, user: -np.ones((40, 6)), "pay_of_people": lambda self, k: found,
    })  # fmt: skip
    table = willingness_to_pay(draws(), "price")
    assert not np.isnan([*table["mean"], *table["mean_upper"], *table["lower"]]).any()


@pytest.mark.slow
def test_one_in_a_hundred_may_make_most_of_a_mean():
    columns = columns_of(MIXED)
    tops = [pay_of_people(law_of([MEAN], [np.diag([s, 0.1, 0.1, 0.1])], [1.0]), columns, 0).top[5] for s in (0.5, 2.5)]
    rng = np.random.default_rng(0)
    for top, s in zip(tops, (0.5, 2.5), strict=True):
        pay = np.sort(np.exp(s * rng.standard_normal(4_000_000)))
        assert pay[-40_000:].sum() / pay.sum() == pytest.approx(top, abs=0.05)
    assert tops[0] < 0.05 < 0.5 < tops[1]


@pytest.fixture(scope="module")
def fitted():
    data = choices(1, n_users=60, n_tasks=8)
    distributions = {"price": "negative log-normal"}
    return MixedLogit(method="simulated", n_draws=100, distributions=distributions).fit(data.answers, items=data.items)


def test_a_fitted_model_says_both_with_their_intervals(fitted, tmp_path):
    table = fitted.worth.willingness_to_pay("price")
    assert table.columns == [
        "attribute", "level", "median", "lower", "upper", "mean", "mean_lower", "mean_upper", "said",
    ]  # fmt: skip
    assert ((table["lower"] < table["median"]) & (table["median"] < table["upper"])).all()
    assert ((table["mean_lower"] < table["mean"]) & (table["mean"] < table["mean_upper"])).all()
    wide = pay_of_people(fitted.posterior_.law, fitted.columns_, [a for a, _ in fitted.columns_.levels].index("price"))
    assert table["said"].str.contains("take the median").any() == (wide.top > 0.25).any()
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model").worth.willingness_to_pay("price")
    np.testing.assert_allclose(again["mean"], table["mean"], rtol=ITERATIVE)
    assert "mean" not in fitted.worth.willingness_to_pay("price", "u0003").columns  # one person has one amount
    latex = fitted.summary().latex(table)
    heads = r"attribute & level & median over people & lower & upper & mean over people & lower & upper \\"
    assert heads in latex
    assert r"\begin{tabular}{llrrrrrr}" in latex


def test_the_mean_is_about_that_of_people_drawn_from_the_fit(fitted):
    table = fitted.worth.willingness_to_pay("price").filter(attribute="size")
    law, columns = fitted.posterior_.law, fitted.columns_
    mean, Omega = law.B[:, 0, 0].mean(axis=0), law.Omega[:, 0].mean(axis=0)
    rng = np.random.default_rng(0)
    z = mean + rng.standard_normal((400_000, 3)) @ np.linalg.cholesky(Omega).T
    c = coefficients_of(z, columns.kind, -1) @ columns.report.T
    names = [attribute for attribute, _ in columns.levels]
    ratio = -c[:, names.index("size")] / c[:, names.index("price")]
    assert table["mean_lower"][0] < ratio.mean() < table["mean_upper"][0]
    assert table["lower"][0] < np.median(ratio) < table["upper"][0]


def test_where_the_price_may_not_matter_neither_has_bounds(fitted):
    class Draws:
        levels = (("price", ""), ("speed", ""))

        def coefficients(self, user):
            return np.array([[-1.0, 1.0]] * 9 + [[1.0, 1.0]])

        def pay_of_people(self, place):
            return type("Pay", (), {"median": np.ones((10, 2)), "mean": np.ones((10, 2)), "top": np.zeros(2)})

    table = pl.DataFrame(willingness_to_pay(Draws(), "price"))
    assert r"speed &  & 1 & -$\infty$ & $\infty$ & 1 & -$\infty$ & $\infty$ \\" in fitted.summary().latex(table)
    assert table["mean_lower"].to_list() == [-np.inf]
    assert table["upper"].to_list() == [np.inf]
    assert "unbounded" in table["said"][0]
