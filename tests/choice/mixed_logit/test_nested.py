"""Nested logit: against a likelihood written out choice by choice, finite differences, and simulation."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from predilect import MixedLogit, load
from predilect.choice.mixed_logit.nested import nested_log_chances
from predilect.errors import DataError
from slopes import slope_along
from tolerances import ITERATIVE

MODES = ("car", "bus", "train", "tram")
KIND = {"car": "private", "bus": "public", "train": "public", "tram": "public"}
TRUE = {"cost": -0.8, "time": -0.5, "public": 0.5}
NESTED = {"distributions": "fixed", "nests": "kind", "n_jobs": 1}


def chances_by_hand(utility: dict[str, float], dissimilarity: dict[str, float]) -> dict[str, float]:
    """P(nest) P(alternative | nest), one by one."""
    inclusive = {
        nest: math.log(sum(math.exp(v / dissimilarity[nest]) for mode, v in utility.items() if KIND[mode] == nest))
        for nest in {KIND[mode] for mode in utility}
    }
    whole = sum(math.exp(dissimilarity[nest] * value) for nest, value in inclusive.items())
    return {
        mode: math.exp(v / dissimilarity[KIND[mode]]) / math.exp(inclusive[KIND[mode]])
        * math.exp(dissimilarity[KIND[mode]] * inclusive[KIND[mode]]) / whole
        for mode, v in utility.items()
    }  # fmt: skip


def study(seed: int, n_people: int = 120, n_tasks: int = 6, public: float = 0.5) -> pl.DataFrame:
    """Choices of a mode by people who see buses, trains and trams as much the same."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(n_people):
        for task in range(n_tasks):
            cost, time = rng.uniform(0.0, 3.0, 4).round(2), rng.uniform(0.0, 3.0, 4).round(2)
            V = {m: TRUE["cost"] * c + TRUE["time"] * t for m, c, t in zip(MODES, cost, time, strict=True)}
            p = chances_by_hand(V, {"private": 1.0, "public": public})
            chosen = MODES[rng.choice(4, p=[p[m] for m in MODES])]
            rows += [
                (person, f"{person}-{task}", f"{m} {c} {t}", m, KIND[m], c, t, int(m == chosen))
                for m, c, t in zip(MODES, cost, time, strict=True)
            ]
    names = ["user", "task", "item", "mode", "kind", "cost", "time", "chosen"]
    return pl.DataFrame(rows, names, orient="row")


def fitted(table: pl.DataFrame, **more):
    """A fit to a study, of costs and times alone unless other attributes are named."""
    items = table.select("item", "kind", "cost", "time").unique(maintain_order=True)
    given = {"attributes": ["cost", "time"]} | NESTED | more
    return MixedLogit(**given).fit(table.select("user", "task", "item", "chosen"), items=items)


def loss_by_hand(table: pl.DataFrame):
    """Minus the log-likelihood of cost, time and log λ, by groups of rows."""
    cost, time = (table[name].to_numpy().reshape(-1, 4) for name in ("cost", "time"))
    best = table["chosen"].to_numpy().reshape(-1, 4).argmax(axis=1)

    def loss(theta):
        lam = math.exp(theta[2])
        V = theta[0] * cost + theta[1] * time
        public = np.exp(V[:, 1:] / lam).sum(axis=1)
        whole = np.exp(V[:, 0]) + public**lam
        p = (
            np.column_stack([np.exp(V[:, :1]), np.exp(V[:, 1:] / lam) * public[:, None] ** (lam - 1.0)])
            / whole[:, None]
        )
        return -np.log(p[np.arange(len(best)), best]).sum()

    return loss


def numerical(value, x):
    """The gradient by central differences."""
    return np.array([slope_along(value, x, one) for one in np.eye(len(x))])


TABLE = study(0)


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    return fitted(TABLE)


def test_the_maximum_and_its_errors_are_those_of_a_likelihood_written_out(model):
    loss = loss_by_hand(TABLE)
    best = minimize(loss, np.array([-0.5, -0.5, 0.0]), method="BFGS", options={"gtol": 1e-7})
    table = model.summary().table
    found = [table.filter(attribute=name)["estimate"][0] for name in ("cost", "time", "dissimilarity")]
    np.testing.assert_allclose(found, [*best.x[:2], math.exp(best.x[2])], rtol=1e-5)
    assert model.log_evidence_ == pytest.approx(-best.fun, abs=1e-6)
    assert table.filter(attribute="dissimilarity")["level"].to_list() == ["public"]
    H = np.array([numerical(lambda t, k=k: numerical(loss, t)[k], best.x) for k in range(3)])
    V = np.linalg.inv(0.5 * (H + H.T))
    V[2, 2] *= math.exp(2.0 * best.x[2])  # of λ, from log λ
    errors = [table.filter(attribute=name)["hessian"][0] for name in ("cost", "time", "dissimilarity")]
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(V)), rtol=1e-3)
    # z and p of a dissimilarity are of 1, at which there are no nests.
    z = model.summary(errors="hessian").table.filter(attribute="dissimilarity")["z"][0]
    assert z == pytest.approx((found[2] - 1.0) / errors[2], rel=1e-6)


def test_slopes_are_finite_differences_and_nests_of_one_have_no_parameter():
    from predilect.choice.mixed_logit.nested import NestedChoices
    from predilect.data.choices import choices_of

    answers = fitted(TABLE).comparisons_
    rng = np.random.default_rng(1)
    choices, n = choices_of(answers), answers.n_items

    class Columns:
        X = rng.standard_normal((n, 3))

    problem = NestedChoices.of(choices, Columns, rng.integers(0, 3, n), 4, answers.n_users)
    theta = np.array([0.4, -0.7, 0.2, *np.log([0.5, 0.8, 1.3])])
    assert problem.n_parameters == 6
    assert problem.place.tolist() == [3, 4, 5, -1]
    at = problem.at(theta)
    slope = numerical(lambda t: float(problem.at(t).values.sum()), theta)
    np.testing.assert_allclose(at.slopes.sum(axis=0), slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(problem.scores_of_answers(theta).sum(axis=0), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_what_was_true_is_found_and_a_logit_is_worse():
    inside, better = 0, 0
    for seed in range(6):
        table = study(seed, n_people=150)
        nested, plain = fitted(table), fitted(table, nests=None)
        row = nested.summary().table.filter(attribute="dissimilarity").row(0, named=True)
        inside += row["lower"] < 0.5 < row["upper"]
        better += nested.likelihood_ratio(plain)["p"][0] < 0.05
        test = nested.likelihood_ratio(plain).row(0, named=True)
        assert test["df"] == 1
        assert test["statistic"] == pytest.approx(2.0 * (nested.log_evidence_ - plain.log_evidence_), rel=1e-9)
    assert inside >= 5
    assert better >= 5


@pytest.mark.slow
def test_of_a_logit_the_ratio_of_likelihoods_is_chi_squared():
    p = []
    for seed in range(60):
        table = study(seed, n_people=60, public=1.0)
        p.append(fitted(table).likelihood_ratio(fitted(table, nests=None))["p"][0])
    assert 0.0 <= np.mean(np.array(p) < 0.05) <= 0.13
    assert 0.35 < np.mean(p) < 0.65


def test_chances_of_sets_and_pairs_are_those_by_hand(model):
    utility = {"car": 0.3, "bus": 0.1, "train": -0.4, "tram": 0.2}
    nest = np.array([0, 1, 1, 1])
    log_p, whole = nested_log_chances(np.array([[*utility.values()]] * 2), nest, np.array([[1.0, 0.5], [0.7, 0.9]]))
    for k, lam in enumerate(({"private": 1.0, "public": 0.5}, {"private": 0.7, "public": 0.9})):
        np.testing.assert_allclose(np.exp(log_p[k]), [*chances_by_hand(utility, lam).values()], rtol=1e-12)
    assert whole[0] > whole[1] - 1.0
    items = TABLE["item"][:4].to_list()
    draws, lam = model.posterior_.draws_of(-1), model.posterior_.nests.of_crowd[:, 1]
    V = model.posterior_.X[model.items_.codes(items)] @ draws.T
    expected = np.mean([[*chances_by_hand(dict(zip(MODES, v, strict=True)), {"private": 1.0, "public": b}).values()]
                        for v, b in zip(V.T, lam, strict=True)], axis=0)  # fmt: skip
    found = model.predict_choice({"task": [1] * 4, "item": items})
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    # Of two the odds are those of a logit, and steeper within a nest.
    pairs = {"left": [items[0], items[1]], "right": [items[1], items[2]]}
    p = model.predict_proba(pairs)[:, 0]
    by_hand = [np.mean(1.0 / (1.0 + np.exp(-(V[0] - V[1])))), np.mean(1.0 / (1.0 + np.exp(-(V[1] - V[2]) / lam)))]
    np.testing.assert_allclose(p, by_hand, rtol=1e-9)


def test_who_loses_an_alternative_takes_one_of_its_nest(model):
    """What distinguishes a nested logit: shares of what is taken away go to the rest of the nest first."""
    items = pl.DataFrame({"item": MODES, "kind": [*KIND.values()], "cost": 1.5, "time": 1.5})
    found = model.worth.simulate({"all": [*MODES], "no tram": [*MODES[:3]]}, items=items)
    share = {(row["scenario"], row["item"]): row["share"] for row in found.to_dicts()}
    gone = share["all", "tram"]
    to_bus, to_car = (share["no tram", one] - share["all", one] for one in ("bus", "car"))
    assert to_bus + to_car == pytest.approx(gone - (share["no tram", "train"] - share["all", "train"]), rel=1e-6)
    assert to_bus / share["all", "bus"] > 1.3 * to_car / share["all", "car"]


def test_it_is_saved_and_described(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    asked = {"task": [1] * 4, "item": TABLE["item"][:4].to_list()}
    np.testing.assert_array_equal(again.predict_choice(asked), model.predict_choice(asked))
    assert again.describe() == model.describe()
    said = " ".join(model.describe())
    assert 'Dissimilarity of the nest "public" ("kind")' in said
    assert "above 1" not in said
    odd = fitted(study(3, public=2.0))
    assert "It is above 1" in " ".join(odd.describe())
    assert odd.summary().table.filter(attribute="dissimilarity")["estimate"][0] > 1.0


def test_names_and_the_order_of_rows_make_no_difference(model):
    order = np.random.default_rng(0).permutation(TABLE["task"].n_unique())
    parts = TABLE.partition_by("task", maintain_order=True)
    shuffled = pl.concat([parts[k].sample(fraction=1.0, shuffle=True, seed=int(k)) for k in order])
    other = fitted(shuffled)
    assert other.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(
        other.summary().table["estimate"].to_numpy(), model.summary().table["estimate"].to_numpy(), rtol=ITERATIVE
    )


@pytest.mark.parametrize(("given", "said"), [
    ({"nests": ""}, "needs nests"), ({"nests": "kinds"}, "Did you mean"), ({"nests": "cost"}, "no category"),
    ({"distributions": "normal"}, "same for all"), ({"n_classes": 2}, "same for all"),
])  # fmt: skip
def test_what_cannot_be_is_said(given, said):
    with pytest.raises(DataError, match=said):
        fitted(TABLE, **given)


def test_nests_that_never_hold_two_are_refused():
    table = TABLE.filter(pl.col("mode").is_in(["car", "bus"]))
    chosen = table.filter(pl.col("chosen") == 1)["task"]
    with pytest.raises(DataError, match="two alternatives of one nest"):
        fitted(table.filter(pl.col("task").is_in(chosen.implode())))
