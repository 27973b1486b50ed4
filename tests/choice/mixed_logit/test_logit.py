"""Conditional and latent-class logit against a referee of their own, and the table of estimates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from simulate_choices import choices

from predilect import Comparisons, MixedLogit, load
from predilect.data.choices import choices_of
from predilect.errors import DataError, DataWarning
from predilect.inference.likelihoods.special import Z_95
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
    of_few = np.sqrt(40 / 39 * (len(X) - 1) / (len(X) - 3))
    by_person = of_few * np.array([s[user == u].sum(axis=0) for u in range(40)])
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
    table = pl.DataFrame(model.worth.contrasts("alternative")).filter(pl.col("level") == "bus")
    np.testing.assert_allclose(table["mean"], -b[:2], rtol=ITERATIVE)
    np.testing.assert_allclose(table["sd"], sd[:2], rtol=ITERATIVE)
    with pytest.raises(DataError, match='"cost" is no category with levels'):
        model.worth.contrasts("cost")
    with pytest.raises(DataError, match="clustered errors need people"):
        model.summary("clustered")


def pairs_study(n_people=30, n_pairs=8, ties=0.0, seed=0):
    """Answers to pairs by people who differ, differences of attributes (n, 2), what was said, 1, ½ or 0, and who."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), n_pairs)
    X = rng.normal(size=(len(person), 2, 2)).round(2)
    D = X[:, 0] - X[:, 1]
    felt = (D * (np.array([0.5, -0.3]) + 0.6 * rng.normal(size=(n_people, 2)))[person]).sum(axis=1)
    felt += rng.logistic(size=len(felt))
    said = np.where(np.abs(felt) < ties, 0.5, felt > 0)
    frame = {
        "user": person, "left": [f"a{k}" for k in range(len(felt))], "right": [f"b{k}" for k in range(len(felt))],
        "winner": np.where(said == 0.5, "tie", np.where(said == 1.0, "left", "right")),
    }  # fmt: skip
    items = {"item": [*frame["left"], *frame["right"]]}
    items |= {name: np.r_[X[:, 0, k], X[:, 1, k]] for k, name in enumerate("xy")}
    return frame, items, D, said, person


def test_clustered_errors_are_those_of_statsmodels_and_intervals_are_students():
    discrete, stats = pytest.importorskip("statsmodels.discrete.discrete_model"), pytest.importorskip("scipy.stats")
    frame, items, D, said, person = pairs_study()
    theirs = discrete.Logit(said, D).fit(disp=0, cov_type="cluster", cov_kwds={"groups": person})
    model = MixedLogit(distributions="fixed").fit(pl.DataFrame(frame), items=items)
    summary, coefficients = model.summary(), model.worth.coefficients()
    assert summary.errors == "clustered"
    np.testing.assert_allclose(summary.table["clustered"], theirs.bse, rtol=1e-5)
    z, p = theirs.params / theirs.bse, 2.0 * stats.t.sf(np.abs(theirs.params / theirs.bse), 29)
    np.testing.assert_allclose(summary.table["z"], z, rtol=1e-5)
    np.testing.assert_allclose(summary.table["p"], p, rtol=1e-4)
    np.testing.assert_allclose(coefficients["sd"], theirs.bse, rtol=1e-5)
    half = stats.t.ppf(0.975, 29) * theirs.bse
    np.testing.assert_allclose(coefficients["lower"], theirs.params - half, rtol=1e-5)
    np.testing.assert_allclose(coefficients["upper"], theirs.params + half, rtol=1e-5)
    assert "clustered by person (30 people)" in " ".join(model.describe())
    # All that is made of draws follows: pay, and shares.
    plain = MixedLogit(distributions="fixed", errors="hessian").fit(pl.DataFrame(frame), items=items)
    assert plain.summary().errors == "hessian"
    wider = np.array(theirs.bse / np.sqrt(np.diag(np.linalg.inv(-discrete.Logit(said, D).hessian(theirs.params)))))
    assert (wider > 1.2).all()
    pay = [table["upper"][0] - table["lower"][0] for m in (model, plain) for table in [m.worth.willingness_to_pay("y")]]
    shares = [
        table["upper"][0] - table["lower"][0] for m in (model, plain) for table in [m.worth.simulate(["a0", "b0"])]
    ]
    assert pay[0] > 1.1 * pay[1]
    assert shares[0] > 1.1 * shares[1]


def test_errors_are_clustered_where_that_is_possible(tmp_path):
    frame, items, *_ = pairs_study(n_people=20)

    def made(columns=frame, **settings):
        return MixedLogit(distributions="fixed", **settings).fit(pl.DataFrame(columns), items=items)

    few = made()
    assert few.summary().errors == "clustered"
    assert "Of fewer than 30 people clustered errors are uncertain themselves" in " ".join(few.describe())
    few.save(tmp_path / "few")
    again = load(tmp_path / "few")
    assert again.describe() == few.describe()
    assert str(again.summary()) == str(few.summary())
    assert made(errors="robust").describe()[-1].startswith("Standard errors are robust")
    once = made(frame | {"user": range(160)})
    assert once.summary().errors == "hessian"  # nobody answered twice
    two = made(frame | {"user": [k % 2 for k in range(160)]})
    assert two.summary().errors == "hessian"  # two people do not tell two coefficients
    nobody = {name: column for name, column in frame.items() if name != "user"}
    assert made(nobody).summary().errors == "hessian"
    with pytest.raises(DataError, match="more people than there are numbers to estimate, and there are 2 people"):
        made(frame | {"user": [k % 2 for k in range(160)]}, errors="clustered")
    with pytest.raises(DataError, match="and the answers do not say who gave them"):
        made(nobody, errors="clustered")
    with pytest.raises(DataError, match="is for coefficients that are the same for all people"):
        MixedLogit(errors="robust").fit(pl.DataFrame(frame), items=items)
    with pytest.raises(ValueError, match="errors must be"):
        made(errors="sandwich")


@pytest.mark.slow
def test_classes_have_clustered_errors_too():
    answers, *_ = STUDY
    one, other = (MixedLogit(distributions="fixed", n_classes=2, n_jobs=1, errors=errors).fit(answers)
                  for errors in ("auto", "hessian"))  # fmt: skip
    assert (one.summary().errors, other.summary().errors) == ("clustered", "hessian")
    for model, name in ((one, "clustered"), (other, "hessian")):
        table = model.summary().table.filter(pl.col("what").str.starts_with("class"))
        np.testing.assert_allclose(table[name].sort(), model.classes()["sd"].sort(), rtol=1e-3)


@pytest.mark.slow
def test_a_tie_is_one_answer_for_robust_errors():
    frame, items, D, said, _ = pairs_study(n_people=200, n_pairs=2, ties=1.5)
    assert (said == 0.5).mean() > 0.4
    model = MixedLogit(distributions="fixed").fit(pl.DataFrame(frame), items=items)
    b = model.summary().table["estimate"].to_numpy()
    p = 1.0 / (1.0 + np.exp(-D @ b))
    np.testing.assert_allclose(D.T @ (said - p), 0.0, atol=1e-6)
    bread, s = np.linalg.inv(D.T @ (D * (p * (1.0 - p))[:, None])), D * (said - p)[:, None]
    expected = np.sqrt(np.diagonal(bread @ s.T @ s @ bread))
    np.testing.assert_allclose(model.summary().table["robust"], expected, rtol=ITERATIVE)


def test_an_order_is_one_answer_for_robust_errors():
    table = {"task": np.repeat(np.arange(60), 3), "alt": np.tile([1, 2, 3], 60)}
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3)).round(2)
    rank = np.argsort(np.argsort(-(X + rng.gumbel(size=(60, 3))), axis=1), axis=1) + 1
    found = Comparisons.from_frame(table | {"x": X.ravel(), "rank": rank.ravel()})
    model = MixedLogit(distributions="fixed").fit(found, items=found.item_table)
    b = model.summary().table["estimate"][0]
    order = np.take_along_axis(X, np.argsort(rank, axis=1), axis=1)
    slopes, information = np.zeros(60), 0.0
    for first in range(2):
        rest = order[:, first:]
        p = np.exp(b * rest) / np.exp(b * rest).sum(axis=1, keepdims=True)
        mean = (p * rest).sum(axis=1)
        slopes += rest[:, 0] - mean
        information += (p * rest**2).sum() - (mean**2).sum()
    expected = np.sqrt(slopes @ slopes) / information
    assert model.summary().table["robust"][0] == pytest.approx(expected, rel=ITERATIVE)


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
    from predilect.choice.mixed_logit.attributes import columns_of
    from predilect.choice.mixed_logit.logit import Classes
    from predilect.choice.mixed_logit.problem import problem_of
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
        "attribute", "level", "what", "estimate", "hessian", "robust", "clustered", "z", "p", "lower", "upper",
    ]  # fmt: skip
    assert tex.startswith(r"\begin{tabular}{lllrrrrrrrr}")
    assert tex.count(r"\\") == 1 + 8 + sum(one is not None for one in summary.facts.values())
    assert md.splitlines()[1] == "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    row = summary.table.row(0, named=True)
    assert row["z"] == pytest.approx(row["estimate"] / row["robust"])
    assert row["upper"] - row["lower"] == pytest.approx(2.0 * Z_95 * row["robust"])
    assert "e-" not in tex.split(r"\midrule")[1].replace("log", "")  # p is in words where it is next to nothing
    assert "$<$ .001" in tex
    pay = model.worth.willingness_to_pay("price")
    both = summary.latex(pay)
    assert both.startswith(tex)
    assert both.count(r"\\") == tex.count(r"\\") + 1 + len(pay)
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
    for name in ("z", "p", "lower", "upper"):  # a spread of 0 is the edge of what is possible
        assert table[name].is_null().to_list() == [False] * 3 + [True] * 3
    coefficients = pl.DataFrame(model.worth.coefficients())
    np.testing.assert_allclose(table["estimate"][:3], coefficients["mean"], rtol=ITERATIVE)
    np.testing.assert_allclose(table["hessian"][:3], coefficients["sd"], rtol=ITERATIVE)


def test_the_table_of_hierarchical_bayes_has_posterior_intervals_of_spreads_too(tmp_path):
    model = MixedLogit(n_draws=200, tol=10.0, n_jobs=1).fit(DATA.answers, items=DATA.items)
    drawn = model.summary()
    table = drawn.table
    assert table.columns == ["attribute", "level", "what", "estimate", "sd", "lower", "upper"]
    assert "AIC" not in drawn.facts
    assert ((table["lower"] < table["estimate"]) & (table["estimate"] < table["upper"])).all()
    spread = table.filter(what="sd", attribute="price").row(0, named=True)
    spreads = np.sqrt(model.posterior_.law.Omega[:, 0].diagonal(axis1=1, axis2=2))
    place = model.columns_.attributes.index("price")
    row = model.columns_.report[place]
    of_price = spreads[:, int(np.abs(row).argmax())] * np.abs(row).max()
    np.testing.assert_allclose([spread["lower"], spread["upper"]], np.quantile(of_price, [0.025, 0.975]), rtol=0.05)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m").summary()
    assert again.table.equals(table)
    tex = replace(drawn, usable=True).latex()
    assert r"attribute & level & what & estimate & sd & lower & upper \\" in tex


def test_a_name_that_begins_with_a_bracket_is_no_option_of_latex():
    items = {("[price]" if name == "price" else name): column for name, column in DATA.items.items()}
    tex = MixedLogit(distributions="fixed").fit(DATA.answers, items=items).summary().latex()
    assert "\n{}[price] & " in tex


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
    monkeypatch.setattr("predilect.choice.mixed_logit.logit._LEAST_PEOPLE", 30.0)
    with pytest.raises(DataError, match=r"n_classes=2.*at least one ends with less than.*n_classes=1 or fewer"):
        fitted(n_classes=2)
    with pytest.raises(DataError, match="no latent classes"):
        fitted().memberships()


def test_people_of_whom_most_say_the_same_have_no_errors_of_their_own():
    """Their scores have fewer directions than there are numbers to estimate: intervals are by the Hessian."""
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 4, (12, 3, 2))
    better = rng.integers(0, 3, (2, 12))
    rows = [
        {"person": who, "task": f"{who} {task}", "price": a, "size": b, "chosen": int(k == better[who // 3, task])}
        for who in range(4) for task in range(12) for k, (a, b) in enumerate(shown[task].tolist())
    ]  # fmt: skip
    table = pl.DataFrame(rows)
    fixed = {"distributions": "fixed"}
    assert MixedLogit(**fixed).fit(table).summary().errors == "hessian"
    with pytest.raises(DataError, match="more people"):
        MixedLogit(**fixed, errors="clustered").fit(table)
