"""What users of the mixed logit count on: units, kinds of coefficients, sets of items, bad input."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from simulate_choices import choices

import predilect
from predilect import Comparisons, MixedLogit
from predilect._base.text import spoken_to
from predilect.choice.mixed_logit.outputs import chances_of_sets
from predilect.errors import ConvergenceError, ConvergenceWarning, DataError, DataWarning
from predilect.inference.gaussian.dense import moments
from predilect.inference.likelihoods.logit import Logit
from tolerances import EXACT, ITERATIVE

DATA = choices(5, n_users=25, n_tasks=6)
QUICK = {"n_draws": 200, "tol": 100.0, "n_jobs": 1}


def fitted(items=DATA.items, users=None, answers=DATA.answers, **settings) -> MixedLogit:
    return MixedLogit(**QUICK | settings).fit(answers, items=items, people=users)


@pytest.fixture(scope="module")
def model() -> MixedLogit:
    return fitted()


def test_coefficients_are_in_the_units_of_the_attributes(model):
    other = fitted(DATA.items | {"price": [1000.0 * x + 7.0 for x in DATA.items["price"]]})
    one, two = model.worth.coefficients(), other.worth.coefficients()
    for name in ("mean", "sd", "lower", "upper", "spread"):
        np.testing.assert_allclose(np.array(one[name]) / [1000.0, 1.0, 1.0], two[name], rtol=ITERATIVE)
    sets = [["i0", "i1", "i2"]]
    np.testing.assert_allclose(
        chances_of_sets(model, sets, "u0001"), chances_of_sets(other, sets, "u0001"), atol=ITERATIVE
    )


def test_utilities_are_attributes_times_coefficients(model):
    mean = np.array(model.worth.coefficients()["mean"])
    X = np.array([DATA.items[name] for name in ("price", "speed", "size")]).T
    board = dict(model.utilities().select("item", "mean").iter_rows())
    expected = (X - X.mean(axis=0)) @ mean
    np.testing.assert_allclose([board[item] for item in DATA.items["item"]], expected, atol=EXACT)


def test_levels_of_a_category_sum_to_nothing_whatever_the_first_one_is():
    color = [("red", "blue", "green")[i % 3] for i in range(30)]
    one = fitted(DATA.items | {"color": color}).worth.coefficients()
    levels = one.filter(pl.col("attribute") == "color")
    assert levels["level"].to_list() == ["blue", "green", "red"]
    assert abs(levels["mean"].sum()) < EXACT
    assert (levels["sd"] > 0.0).all()


def test_signs_are_kept_and_fixed_coefficients_are_everybodys():
    kinds = {"price": "negative log-normal", "speed": "log-normal", "size": "fixed"}
    for settings in ({}, {"method": "simulated", "n_draws": 20, "covariance": "diagonal"}):
        people = fitted(distributions=kinds, **settings)
        c = people.posterior_.people @ people.columns_.report.T
        assert (c[..., 0] < 0.0).all()
        assert (c[..., 1] > 0.0).all()
        assert np.ptp(c[..., 2], axis=0).max() == 0.0
        assert np.ptp(c[..., 0], axis=0).min() > 0.0


def test_amounts_of_the_price_times_its_coefficient_are_the_coefficients():
    people = fitted(price="price")
    c = people.posterior_.people @ people.columns_.report.T
    assert (c[..., 0] < 0.0).all()
    assert (np.array(people.worth.coefficients()["mean"])[1:] * [1.0, 1.0] != 0.0).all()
    alike = fitted(price="price", distributions={"price": "fixed"})
    c = alike.posterior_.people @ alike.columns_.report.T
    assert np.ptp(c[..., 0], axis=0).max() == 0.0


@pytest.mark.parametrize("method", ["bayes", "simulated"])
def test_features_of_people_move_their_coefficients(method):
    rng = np.random.default_rng(0)
    people = sorted(set(DATA.answers.users.ids))
    price = [row.mean() for row in DATA.coefficients[:, :1]]
    users = {"user": people, "thrift": [-x + 0.1 * rng.normal() for x in price], "noise": rng.normal(size=25).tolist()}
    settings = {"n_draws": 30, "covariance": "diagonal"} if method == "simulated" else {"n_draws": 600}
    moved = fitted(users=users, method=method, **settings)
    asked = {"user": ["thrifty", "lavish"], "left": ["dear"] * 2, "right": ["cheap"] * 2}
    items = {"item": ["dear", "cheap"], "price": [1.0, -1.0], "speed": [0.0, 0.0], "size": [0.0, 0.0]}
    new = {"user": ["thrifty", "lavish"], "thrift": [1.5, -0.5], "noise": [0.0, 0.0]}
    with pytest.warns(DataWarning, match="without answers"):
        mean, var = moved.predict_margin(asked, items=items, people=new)
    assert mean[0] < mean[1] - 0.5
    assert (var > 0.0).all()


def test_the_probability_of_a_choice_is_the_mean_over_draws(model):
    chances = chances_of_sets(model, [["i3", "i0", "i9"], ["i1", "i2"]], users=["u0002", "u0003"])
    X = model.columns_.X
    names = list(model.items_.ids)
    V = X[[names.index(item) for item in ("i3", "i0", "i9")]] @ model.posterior_.people[2].T.astype(float)
    p = np.exp(V) / np.exp(V).sum(axis=0)
    np.testing.assert_allclose(chances[0], p.mean(axis=1), atol=EXACT)
    assert [len(one) for one in chances] == [3, 2]
    for one in chances:
        assert abs(one.sum() - 1.0) < EXACT
    long = {"user": ["u0002"] * 3 + ["u0003"] * 2, "task": [1, 1, 1, 1, 1], "item": ["i3", "i0", "i9", "i1", "i2"]}
    np.testing.assert_array_equal(model.predict_choice(pl.DataFrame(long)), np.concatenate(chances))


def test_a_choice_of_two_is_what_a_pair_says(model):
    pairs = {"user": ["u0004"] * 3, "left": ["i0", "i1", "i2"], "right": ["i5", "i6", "i7"]}
    sets = [list(pair) for pair in zip(pairs["left"], pairs["right"], strict=True)]
    found = np.array(chances_of_sets(model, sets, "u0004"))
    np.testing.assert_allclose(model.predict_proba(pairs)[:, [0, 2]], found, atol=EXACT)


def test_boards_pairs_and_chances_of_skew_draws_agree_with_the_draws():
    # Everybody takes the cheapest: no draw says otherwise, and a normal with their mean and variance would.
    rng = np.random.default_rng(0)
    tasks = [rng.permutation([1.0, 2.0, 3.0, 4.0, 5.0])[:3] for _ in range(120)]
    answers = Comparisons.from_frame(
        {
            "user": np.repeat([f"u{k // 8}" for k in range(120)], 3), "task": np.repeat(np.arange(120), 3),
            "price": np.concatenate(tasks), "chosen": np.concatenate([one == one.min() for one in tasks]).astype(int),
        }
    )  # fmt: skip
    model = MixedLogit(**QUICK).fit(answers)
    coefficient = model.posterior_.people[0].astype(float) @ model.columns_.report.T
    assert (coefficient < 0.0).all()
    board = model.rank("u0")
    cheap, dear = board["item"][0], board["item"][-1]
    assert board["p_best"].to_list() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert board["rank_high"].to_list() == [1, 2, 3, 4, 5]
    assert board["tier"].to_list() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(board["lower"][0], 2.0 * np.quantile(-coefficient, 0.025), rtol=ITERATIVE)
    np.testing.assert_allclose(board["upper"][0], 2.0 * np.quantile(-coefficient, 0.975), rtol=ITERATIVE)
    asked = {"user": ["u0"], "left": [cheap], "right": [dear]}
    np.testing.assert_allclose(model.predict_proba(asked)[0, 0], expit(-4.0 * coefficient).mean(), atol=EXACT)
    row = model.versus([(dear, cheap)], user="u0")
    assert row["p_better"][0] == 0.0
    np.testing.assert_allclose(row["lower"][0], 4.0 * np.quantile(coefficient, 0.025), rtol=ITERATIVE)


def test_an_unknown_item_blurs_the_draws_and_its_sides_can_be_exchanged(model):
    posterior, rows = model.posterior_, np.arange(3)
    users, difference = np.array([4, 4, -1]), posterior.X[[0, 1, 2]] - posterior.X[[5, 6, 7]]
    unknown = np.array([0.0, 1.0, 4.0])
    mean, var, log_p = posterior.predicted(users, difference, unknown, delta=0.3)
    for row in rows:
        z = difference[row] @ posterior.draws_of(int(users[row])).T
        expected = [np.exp(Logit.all_tilted(y, z, unknown[row], 0.3)[0]).mean() for y in (1, 0, -1)]
        np.testing.assert_allclose(np.exp(log_p[row]), expected, atol=EXACT if row == 0 else 0.02)
        np.testing.assert_allclose([mean[row], var[row]], [z.mean(), z.var(ddof=1) + unknown[row]], atol=EXACT)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=EXACT)
    np.testing.assert_array_equal(posterior.predicted(users, -difference, unknown, delta=0.3)[2], log_p[:, ::-1])


def test_new_items_are_known_by_their_attributes(model):
    row = {name: [DATA.items[name][4]] for name in ("price", "speed", "size")}
    new = chances_of_sets(model, [["new", "i1"]], "u0001", items={"item": ["new"], **row})
    np.testing.assert_allclose(new, chances_of_sets(model, [["i4", "i1"]], "u0001"), atol=EXACT)
    with pytest.raises(DataError, match="1 items are not known to the model"):
        chances_of_sets(model, [["new", "i1"]])


def test_somebody_new_is_drawn_from_the_population(model):
    with pytest.warns(DataWarning, match=r"1 of 1 sets name someone without answers .*'nobody'"):
        found = chances_of_sets(model, [["i0", "i1", "i2"]], "nobody")
    np.testing.assert_array_equal(found, chances_of_sets(model, [["i0", "i1", "i2"]]))


@pytest.mark.parametrize(
    ("sets", "users", "message"),
    [
        ([["i0"]], None, "set 1 has one item"), ([["i0", "i1"], []], None, "set 2 has no items"),
    ],
)  # fmt: skip
def test_sets_that_are_none(model, sets, users, message):
    with pytest.raises(DataError, match="no column for the task"):
        model.predict_choice({"item": ["i0"]})
    with pytest.raises(DataError, match=message):
        chances_of_sets(model, sets, users)


def test_the_score_of_choices_is_their_mean_log_likelihood(model):
    rows = DATA.answers.to_frame().filter(pl.col("user") == "u0001")
    test = Comparisons.from_frame(rows, columns={"task": "task"})
    losses = []
    for _, one in rows.group_by("task"):
        best = one[one["winner"][0]][0]
        rest = {*one["left"], *one["right"]} - {best}
        losses.append(np.log(chances_of_sets(model, [[best, *rest]], "u0001")[0][0]))
    assert abs(model.score(test) - np.mean(losses)) < EXACT


def test_a_task_counts_once_and_not_as_its_pairs(model):
    assert model.n_answers_ == 25 * 6 * 2
    assert model.report_["prior"]["answers"] == 25 * 6


def test_shares_of_classes_sum_to_one():
    table = fitted(n_classes=2).classes()
    assert table.columns == ["class", "share", "attribute", "level", "mean", "sd"]
    assert abs(table.group_by("class").agg(pl.col("share").first())["share"].sum() - 1.0) < EXACT


# Bad input


def test_a_constant_attribute_is_left_out_and_named():
    found = fitted(DATA.items | {"same": [1.0] * 30})
    assert found.columns_.attributes == ["price", "speed", "size"]
    assert any('"same"' in line for line in found.report_["features"])


def test_what_other_attributes_tell_is_left_out_and_named():
    found = fitted(DATA.items | {"twice": [2.0 * x for x in DATA.items["price"]]})
    assert len(found.columns_.kind) == 3
    assert any("twice" in line for line in found.describe())


def test_the_constants_of_alternatives_stay_wherever_they_stand():
    mode = [("car", "bus", "rail")[k % 3] for k in range(30)]
    seats = [{"car": 4.0, "bus": 40.0, "rail": 300.0}[one] for one in mode]
    for more in ({"mode": mode, "seats": seats}, {"seats": seats, "mode": mode}):
        found = fitted({"item": DATA.items["item"], **more, **DATA.items})
        assert sorted(found.attributes_) == ["mode", "price", "size", "speed"]
        assert any("nothing of seats varies" in line for line in found.describe())
        with pytest.raises(DataError, match='what "seats" is worth is not known'):
            found.worth.price_curve(["i1", "i2"], "i1", "seats", [5.0])


def test_a_price_that_does_not_vary():
    with pytest.raises(DataError, match=r'no attribute "fee".*constant'):
        fitted(DATA.items | {"fee": [1.0] * 30}, price="fee")
    with pytest.raises(DataError, match='price "fee" does not vary within choices'):
        fitted(DATA.items | {"fee": [2.0 * x for x in DATA.items["speed"]]}, price="fee")
    with pytest.raises(DataError, match='"color" is not a number'):
        fitted(DATA.items | {"color": ["red", "blue"] * 15}, price="color")


def test_an_item_without_attributes_is_refused_and_a_missing_number_is_marked():
    some = {name: column[1:] for name, column in DATA.items.items()}
    with (
        pytest.warns(DataWarning, match="no features of 1 of the 30 items with answers"),
        pytest.raises(DataError, match="1 items were chosen from and are not in the table of attributes"),
    ):
        fitted(some)
    holes = DATA.items | {"price": [None, None, None, *DATA.items["price"][3:]]}
    assert "price missing" in fitted(holes).columns_.attributes


def test_many_items_without_attributes_are_refused():
    with pytest.raises(DataError, match=r"a mixed logit holds 30 of them.*items=\.\.\."):
        fitted(None, answers=choices(0, n_users=5, n_items=60).answers)


@pytest.mark.parametrize("method", ["bayes", "simulated"])
def test_an_attribute_that_decides_every_choice_is_finite_and_named(method):
    rng = np.random.default_rng(0)
    columns = {name: [] for name in ("user", "left", "right", "winner")}
    quality = np.arange(8.0)
    for user in range(10):
        for _ in range(5):
            pair = rng.choice(8, 2, replace=False)
            row = (f"u{user}", *(f"i{k}" for k in pair), f"i{pair.max()}")
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    items = {"item": [f"i{k}" for k in range(8)], "quality": quality, "weight": rng.normal(size=8)}
    found = MixedLogit(**QUICK | {"method": method, "n_draws": 50, "covariance": "diagonal"}).fit(columns, items=items)
    assert np.isfinite(found.predict_proba(columns)).all()
    assert any('never has less of "quality"' in line for line in found.describe())


def test_a_person_with_one_task_is_close_to_the_population():
    frame = DATA.answers.to_frame()
    extra = frame.filter((pl.col("user") == "u0000") & (pl.col("task") == frame["task"][0]))
    assert len(extra) == 2
    added = pl.concat([frame, extra.with_columns(user=pl.lit("once"))])
    found = fitted(answers=Comparisons.from_frame(added, columns={"task": "task"}))
    person, anybody = (moments(draws)[1] for draws in (found.posterior_.people[0], found.posterior_.unseen))
    assert found.rank("once")["mean"].is_finite().all()
    assert 0.3 < np.trace(person) / np.trace(anybody) < 1.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "em"}, "method must be one of"), ({"distributions": "gamma"}, "distributions must be one of"),
        ({"distributions": {"price": "triangular"}}, "needs method"), ({"price": 3}, "price must be None or the name"),
        ({"n_classes": 0}, "n_classes must be"), ({"n_draws": 3}, "n_draws must be"),
    ],
)  # fmt: skip
def test_arguments_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        MixedLogit(**settings).fit(DATA.answers, items=DATA.items)


def test_a_name_of_no_attribute():
    with pytest.raises(DataError, match='no attribute "cost" to be used; there are price, speed, size'):
        fitted(distributions={"cost": "fixed"})


def test_strict_is_an_error_with_what_to_do():
    with pytest.raises(ConvergenceError, match=r"split R-hat.*n_draws"):
        fitted(n_draws=20, tol=1.0, strict=True)


def test_draws_that_say_nothing_are_not_usable_in_every_word(tmp_path):
    why = r"not usable: a split R-hat of [\d.]+ is above 1\.1, and an effective sample size of \d+ is below 50"
    with pytest.warns(
        ConvergenceWarning, match=rf"20 iterations with .* tolerance of 1.05. The result is {why}; ask for more sweeps"
    ):
        found = fitted(n_draws=20, tol="auto", random_state=4)
    assert not found.report_["fit"]["converged"]
    found.save(tmp_path / "model")
    for one in (found, MixedLogit.load(tmp_path / "model")):
        assert re.search(why.replace("not", "Not"), one.describe()[0])
        assert re.fullmatch(rf"MixedLogit\({why}; 25 people, .* answers\)", repr(one))
        assert "not usable" in one._repr_html_()
        summary = one.summary()
        for text in (str(summary), summary.markdown(), summary.latex()):
            assert re.match(f"(% )?{why.replace('not', 'Not')}", text)
            assert text.count("\n") == 0  # and no numbers
            assert "table and facts of the summary hold its numbers" in text
        assert len(summary.table)
    # Whoever sets a tolerance is not warned, and is told all the same.
    assert "not usable" in repr(fitted(n_draws=20))
    assert "usable" not in repr(fitted(method="simulated", n_draws=20))
    assert repr(MixedLogit()) == "MixedLogit()"


def test_too_few_draws_are_not_usable_even_where_the_chains_agree(monkeypatch):
    def say(name, value):
        place = f"predilect.choice.mixed_logit.sampler.{name}"
        monkeypatch.setattr(place, lambda draws: np.full(draws.shape[2:], value))

    say("r_hat", 1.01)
    say("effective_size", 49.0)
    with pytest.raises(
        ConvergenceError,
        match=r"20 iterations. The result is not usable: an effective sample size of 49 is below 50; ask for more",
    ):
        fitted(n_draws=20, tol="auto", strict=True)
    say("effective_size", 50.0)
    found = fitted(n_draws=20, tol="auto", strict=True)
    assert "usable" not in repr(found)
    assert found.describe()[-1].endswith("is 1.010, the smallest effective sample size 50.")
    say("r_hat", 1.08)
    with pytest.warns(ConvergenceWarning, match=r"above the tolerance of 1.05. The result is usable but not exact"):
        assert "usable" not in repr(fitted(n_draws=20, tol="auto"))


def test_people_who_rest_on_few_draws_are_told_in_the_words_of_the_reader():
    found = fitted(method="simulated", n_draws=20, covariance="diagonal")
    assert any("draws: ask for more (n_draws)" in line for line in found.describe())
    with spoken_to("command"):
        assert any("draws: in Python ask for more (n_draws)" in line for line in found.describe())


def test_it_comes_back_from_a_folder_with_classes_and_people(tmp_path):
    users = {"user": sorted(DATA.answers.users.ids), "age": np.arange(25.0)}
    found = fitted(users=users, n_classes=2, price="price")
    found.save(tmp_path / "model")
    again = predilect.load(tmp_path / "model")
    assert again.worth.coefficients().equals(found.worth.coefficients())
    assert again.classes().equals(found.classes())
    sets = [["i0", "i1", "i2"]]
    np.testing.assert_array_equal(chances_of_sets(again, sets, "u0001"), chances_of_sets(found, sets, "u0001"))
    np.testing.assert_array_equal(chances_of_sets(again, sets), chances_of_sets(found, sets))
