"""Conditional and latent-class logit against a referee of their own, and the table of estimates."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from simulate_choices import choices

from predilect import Comparisons, MixedLogit, load
from predilect.data.choices import choices_of
from predilect.errors import DataError, DataWarning
from referees import latent_class as referee
from tolerances import EXACT, ITERATIVE

DATA = choices(7, n_users=40, n_tasks=6, Omega=np.zeros((3, 3)))
NAMES = ("price", "speed", "size")
COEFFICIENTS = np.array([[-1.5, 1.0, 0.2], [0.3, -1.0, 1.5]])


def classes_study(seed, U=150, T=8, share=(0.6, 0.4), by=0.0):
    """Choices of the best of three by people of two classes, of which a covariate z says something."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=U)
    odds = np.log(share[1] / share[0]) + by * z
    label = (rng.random(U) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    X = np.round(rng.normal(size=(U * T, 3, 3)), 2)
    person = np.repeat(np.arange(U), T)
    best = (np.einsum("tkd,td->tk", X, COEFFICIENTS[label[person]]) + rng.gumbel(size=X.shape[:2])).argmax(axis=1)
    frame = pl.DataFrame({
        "person": np.repeat(person, 3), "task": np.repeat(np.arange(U * T), 3),
        "chosen": (np.arange(3) == best[:, None]).astype(int).ravel(),
        **dict(zip(NAMES, X.reshape(-1, 3).T, strict=True)),
    })  # fmt: skip
    first = np.take_along_axis(X, np.argsort(np.arange(3) != best[:, None], axis=1, kind="stable")[:, :, None], axis=1)
    return Comparisons.from_frame(frame), first, person, pl.DataFrame({"person": np.arange(U), "z": z}), frame


STUDY = classes_study(0)


def tasks(data):
    """Attributes of the alternatives of each choice, (T, k, d), the chosen one first, and who chose."""
    found = choices_of(data.answers)
    place = {one: k for k, one in enumerate(data.items["item"])}
    X = np.array([data.items[name] for name in NAMES], dtype=float).T
    rows = X[[place[name] for name in data.answers.items.labels(found.item)]]
    return rows.reshape(len(found.ptr) - 1, -1, len(NAMES)), found.user


def ordered(summary, what):
    table = pl.DataFrame(summary.table).filter(pl.col("what") == what)
    return table.sort(pl.col("attribute").replace_strict(NAMES, range(3)))


def fitted(data=DATA, **settings):
    return MixedLogit(**{"distributions": "fixed", "n_jobs": 1} | settings).fit(data.answers, items=data.items)


@pytest.mark.parametrize("method", ["bayes", "simulated"])
def test_estimates_and_all_errors_are_those_of_the_referee(method):
    X, user = tasks(DATA)
    b = referee.logit(X)
    bread, s = np.linalg.inv(referee.information(X, b)), referee.scores(X, b)
    by_person = np.array([s[user == u].sum(axis=0) for u in range(40)])
    summary = fitted(method=method).summary()
    table = ordered(summary, "mean")
    np.testing.assert_allclose(table["estimate"], b, rtol=ITERATIVE)
    np.testing.assert_allclose(table["hessian"], np.sqrt(np.diagonal(bread)), rtol=ITERATIVE)
    for name, parts in (("robust", s), ("clustered", by_person)):
        V = bread @ (parts.T @ parts) @ bread
        np.testing.assert_allclose(table[name], np.sqrt(np.diagonal(V)), rtol=ITERATIVE)
    facts, value = summary.facts, referee.log_chances(X, b).sum()
    assert facts["log likelihood"] == pytest.approx(value, abs=EXACT * len(X))
    assert facts["log likelihood at 0"] == pytest.approx(-len(X) * np.log(3.0), rel=EXACT)
    assert facts["AIC"] == pytest.approx(6.0 - 2.0 * value, rel=EXACT)
    assert facts["BIC"] == pytest.approx(3.0 * np.log(len(X)) - 2.0 * value, rel=EXACT)
    assert (facts["choices"], facts["people"], facts["parameters"]) == (240, 40, 3)


def test_the_constants_are_those_of_what_labels_the_alternatives():
    rng = np.random.default_rng(0)
    modes = ["bus", "car", "train"]
    cost = rng.normal(size=(200, 3)).round(2)
    best = (np.array([0.0, 1.0, -0.5]) - cost + rng.gumbel(size=(200, 3))).argmax(axis=1)
    frame = pl.DataFrame({
        "task": np.repeat(np.arange(200), 3), "mode": modes * 200, "cost": cost.ravel(),
        "chosen": (np.arange(3) == best[:, None]).astype(int).ravel(),
    })  # fmt: skip
    count = np.bincount(best)
    model = MixedLogit(distributions="fixed").fit(frame)
    facts = model.summary().facts
    assert facts["log likelihood with constants alone"] == pytest.approx(count @ np.log(count / 200), rel=1e-8)
    # Differences of levels: what dummies against one level say, and their errors.
    X = np.concatenate([np.broadcast_to(np.eye(3)[:, 1:], (200, 3, 2)), cost[:, :, None]], axis=2)
    order = np.argsort(np.arange(3) != best[:, None], axis=1, kind="stable")
    X = np.take_along_axis(X, order[:, :, None], axis=1)
    b = referee.logit(X)
    sd = np.sqrt(np.diagonal(np.linalg.inv(referee.information(X, b))))
    table = pl.DataFrame(model.contrasts("alternative")).filter(pl.col("level") == "bus")
    np.testing.assert_allclose(table["mean"], -b[:2], rtol=ITERATIVE)
    np.testing.assert_allclose(table["sd"], sd[:2], rtol=ITERATIVE)
    with pytest.raises(DataError, match='"cost" is no category with levels'):
        model.contrasts("cost")
    with pytest.raises(DataError, match="clustered errors need people"):
        model.summary("clustered")


@pytest.mark.slow
def test_latent_classes_reach_the_maximum_of_the_referee():
    answers, X, person, *_ = STUDY
    value, theta = referee.polished(referee.best_of_em(X, person, 2, 5, 0)[1], X, person, 2)
    model = MixedLogit(distributions="fixed", n_classes=2, n_jobs=1).fit(answers)
    assert model.log_evidence_ == pytest.approx(value, abs=1e-6)
    shares = 1.0 / np.array([1.0 + np.exp(theta[6]), 1.0 + np.exp(-theta[6])])
    order = np.argsort(-shares)
    for k in range(2):
        found = ordered(model.summary(), f"class {k + 1}")
        np.testing.assert_allclose(found["estimate"], theta[:6].reshape(2, 3)[order[k]], atol=1e-5)
    table = pl.DataFrame(model.summary().table).filter(pl.col("what") == "share")
    np.testing.assert_allclose(table["estimate"], shares[order], atol=1e-5)
    member = model.memberships()
    assert member.columns == ["user", "class 1", "class 2", "largest", "share"]
    np.testing.assert_allclose(member["class 1"].mean(), shares[order[0]], atol=1e-5)


@pytest.mark.parametrize(("K", "by"), [(1, 0.0), (2, 0.0), (2, 1.0)])
def test_slopes_and_the_hessian_are_those_of_differences(K, by):
    from predilect.models.mixed_logit.attributes import columns_of
    from predilect.models.mixed_logit.logit import Classes
    from predilect.models.mixed_logit.problem import problem_of
    from predilect.models.reading import read_training

    training = read_training(STUDY[0], None, None, None, None, None, None)
    answers = training.comparisons
    found = choices_of(answers)
    columns = columns_of(
        answers, found, training.features, training.space, distributions="fixed", price=None, personal=True
    )
    traits = np.ones((150, 1)) if by == 0.0 else np.c_[np.ones(150), np.random.default_rng(0).normal(size=150)]
    likelihood = Classes(problem_of(found, columns, traits, 150), K)
    theta = 0.3 * np.random.default_rng(1).normal(size=3 * K + (K - 1) * traits.shape[1])
    at, step = likelihood.at(theta), 1e-5 * np.eye(len(theta))
    values = [likelihood.at(theta + one).values - likelihood.at(theta - one).values for one in step]
    np.testing.assert_allclose(at.slopes, np.array(values).T / 2e-5, atol=ITERATIVE)
    slopes = [(likelihood.at(theta + one).slopes - likelihood.at(theta - one).slopes).sum(axis=0) for one in step]
    np.testing.assert_allclose(-at.H, np.array(slopes) / 2e-5, atol=1e-4)
    np.testing.assert_allclose(at.member.sum(axis=1), 1.0, rtol=EXACT)


@pytest.mark.slow
def test_a_covariate_of_people_says_which_class():
    answers, _, _, people, _ = classes_study(1, U=300, by=1.5)
    model = MixedLogit(distributions="fixed", n_classes=2, n_jobs=1).fit(answers, people=people)
    row = pl.DataFrame(model.summary().table).filter(pl.col("what") == "log odds").row(0, named=True)
    assert (row["attribute"], row["level"]) == ("class 2", "z")
    assert abs(abs(row["estimate"]) - 1.5) < 4.0 * row["hessian"]
    # Somebody new is of the class that the covariate says.
    pairs = pl.DataFrame({"user": ["x", "y"], "left": [model.items_.ids[0]] * 2, "right": [model.items_.ids[1]] * 2})
    new = pl.DataFrame({"person": ["x", "y"], "z": [-3.0, 3.0]})
    with pytest.warns(DataWarning, match="what their features tell"):
        p = model.predict_proba(pairs, people=new)[:, 0]
    assert abs(p[0] - p[1]) > 0.02


@pytest.mark.slow
def test_the_order_of_rows_and_the_names_of_people_make_no_difference():
    frame = classes_study(0, U=60, T=6)[4]
    first = MixedLogit(distributions="fixed", n_classes=2, n_jobs=1).fit(frame)
    renamed = frame.with_columns(pl.format("x{}", 999 - pl.col("person")).alias("person"))
    second = MixedLogit(distributions="fixed", n_classes=2, n_jobs=1).fit(
        renamed.sample(fraction=1.0, seed=0, shuffle=True)
    )
    assert second.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-8)
    one, other = (model.summary().table["estimate"].to_numpy() for model in (first, second))
    np.testing.assert_allclose(one, other, rtol=ITERATIVE)


def test_the_same_choice_twice_is_a_choice_of_weight_two():
    frame = classes_study(2, U=30, T=3)[4].with_columns(weight=pl.lit(1.0))
    twice = pl.concat([frame, frame.with_columns(pl.col("task") + 1000)])
    heavy = frame.with_columns(weight=pl.lit(2.0))
    one, other = (
        MixedLogit(distributions="fixed").fit(each, columns={"weights": "weight"}).summary().table
        for each in (twice, heavy)
    )
    for name in ("estimate", "hessian", "robust", "clustered"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-8)


@pytest.mark.slow
def test_prints_of_the_table(tmp_path):
    model = MixedLogit(distributions="fixed", n_classes=2, n_jobs=1).fit(STUDY[0])
    summary = model.summary("robust")
    text, tex, md = str(summary), summary.latex(), summary.markdown()
    assert "log likelihood: " in text
    assert text.splitlines()[0].split() == [
        "attribute", "level", "what", "estimate", "hessian", "robust", "clustered", "z", "p",
    ]  # fmt: skip
    assert tex.startswith(r"\begin{tabular}{lllrrrrrr}")
    assert tex.count(r"\\") == 1 + 8 + sum(one is not None for one in summary.facts.values())
    assert md.splitlines()[1] == "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    row = summary.table.row(0, named=True)
    assert row["z"] == pytest.approx(row["estimate"] / row["robust"])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert str(again.summary("robust")) == text
    assert again.memberships().equals(model.memberships())
    assert again.describe()[1].startswith("2 latent classes of people, with shares 0.6")


def test_the_table_of_coefficients_that_vary_has_their_spreads():
    model = MixedLogit(method="simulated", covariance="diagonal", n_draws=50, n_jobs=1).fit(
        DATA.answers, items=DATA.items
    )
    table = pl.DataFrame(model.summary().table)
    assert table["what"].to_list() == ["mean"] * 3 + ["sd"] * 3
    coefficients = pl.DataFrame(model.coefficients())
    np.testing.assert_allclose(table["estimate"][:3], coefficients["mean"], rtol=ITERATIVE)
    np.testing.assert_allclose(table["hessian"][:3], coefficients["sd"], rtol=ITERATIVE)
    drawn = MixedLogit(n_draws=200, tol=10.0, n_jobs=1).fit(DATA.answers, items=DATA.items).summary()
    assert drawn.table.columns == ["attribute", "level", "what", "estimate", "sd"]
    assert "AIC" not in drawn.facts


def test_an_attribute_that_always_decides_is_said_to_have_no_bound():
    decisive = {"item": DATA.items["item"], "always": [float(k) for k in range(30)]}
    frame = {"user": [], "task": [], "left": [], "right": [], "winner": []}
    for t in range(20):
        for column, value in zip(frame, (f"u{t % 4}", t, f"i{t + 1}", f"i{t}", f"i{t + 1}"), strict=True):
            frame[column].append(value)
    model = MixedLogit(distributions="fixed").fit(frame, items=decisive)
    assert any("without a bound" in line for line in model.describe())
    assert np.isfinite(model.summary().facts["log likelihood"])


def test_classes_that_cannot_be_had(monkeypatch):
    answers = STUDY[0]
    with pytest.raises(DataError, match="all answers are one person's"):
        MixedLogit(distributions="fixed", n_classes=2).fit(
            {"user": ["ann"] * 2, "left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "z"]}
        )
    with pytest.raises(DataError, match=r"n_classes=2.*do not say who gave them"):
        MixedLogit(distributions="fixed", n_classes=2).fit(
            {
                "left": ["x", "y"] * 5,
                "right": ["y", "z"] * 5,
                "winner": ["x", "y", "y", "z", "x", "z", "x", "y", "y", "z"],
            }
        )
    with pytest.raises(DataError, match=r'need method="bayes"'):
        MixedLogit(n_classes=2, method="simulated").fit(answers)
    with pytest.raises(DataError, match=r"n_classes=41 classes of 40 people"):
        fitted(n_classes=41)
    monkeypatch.setattr("predilect.models.mixed_logit.logit._LEAST_PEOPLE", 30.0)
    with pytest.raises(DataError, match=r"n_classes=2.*at least one ends with less than.*n_classes=1 or fewer"):
        fitted(n_classes=2)
    with pytest.raises(DataError, match="no latent classes"):
        fitted().memberships()
