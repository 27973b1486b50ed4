"""What every estimator says about pairs, people and items it knows and does not know, in which kind of frame."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.metrics import get_scorer, log_loss

from contracts.estimator import EstimatorContract
from contracts.votes import ROWS, item_ids, questions, swapped, user_ids, votes, without_user
from predilect.errors import DataError, DataWarning
from predilect.evaluation import neg_log_loss
from tolerances import EXACT, ITERATIVE

KINDS = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "lazy": (lambda columns: pl.DataFrame(columns).lazy(), pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
    "dict": (dict, pl.DataFrame),
}
COLUMNS = [
    "item",
    "mean",
    "sd",
    "lower",
    "upper",
    "rank",
    "rank_low",
    "rank_high",
    "p_best",
    "tier",
    "tied_with_leader",
    "n",
    "wins",
    "ties",
    "losses",
    "win_share",
]


class PredictionContract(EstimatorContract):
    # Whether it tells people apart.
    personal: bool
    # By how much an answer may depend on what else is asked in the same call.
    rounding: ClassVar[float] = 0.0
    # How far, in standard deviations, the mean of a margin may be on the other side than most of its distribution.
    skewness: ClassVar[float] = 0.0
    # Constructor arguments with which item features matter.
    trusting_features: ClassVar[dict[str, Any]]
    # Whether items with the same features are one and the same to it: nothing is an item's own.
    features_say_all: ClassVar[bool] = False

    @pytest.fixture(scope="class")
    @classmethod
    def integers(cls) -> Any:
        """The same answers with ids that are integers."""
        columns, y = votes()
        return cls.make().fit({name: [int(value.split()[1]) for value in columns[name]] for name in columns}, y)

    @pytest.fixture(scope="class")
    @classmethod
    def featured(cls) -> Any:
        """Items placed by how good they are, of which 9 was never shown."""
        columns, y = votes()
        items = {"item": item_ids([*range(6), 9]), "x": [*ROWS.truth.mean(axis=0), -1.0]}
        return cls.make(**cls.trusting_features).fit(columns, y, items=items)

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_callers_kind_of_frame_goes_in_and_comes_out(self, model, kind):
        make, expected = KINDS[kind]
        columns, y = votes()
        found = self.make().fit(make(columns), y)
        np.testing.assert_array_equal(found.predict_proba(make(questions())), model.predict_proba(questions()))
        board = found.rank()
        assert type(board) is expected
        assert list(board.column_names if expected is pa.Table else board.columns) == COLUMNS
        assert [str(item) for item in board["item"]] == list(model.rank()["item"])

    def test_integers_and_text_name_the_same_ids(self, integers):
        pairs = questions()
        numbers = {name: [int(value.split()[1]) for value in pairs[name]] for name in pairs}
        text = {name: list(map(str, numbers[name])) for name in numbers}
        expected = integers.predict_proba(numbers)
        np.testing.assert_array_equal(integers.predict_proba(text), expected)
        for side in numbers:  # one column text, the others integers
            np.testing.assert_array_equal(integers.predict_proba(numbers | {side: text[side]}), expected)
        columns, y = votes()
        named = self.make().fit({name: [value.split()[1] for value in columns[name]] for name in columns}, y)
        ints = {name: [int(value) for value in text[name]] for name in text}
        plain = {name: [value.split()[1] for value in pairs[name]] for name in pairs}
        np.testing.assert_array_equal(
            named.predict_proba(plain), named.predict_proba(plain | {"left": ints["left"], "right": ints["right"]})
        )
        assert set(integers.rank()["item"]) == set(range(6))
        assert set(named.rank()["item"]) == set("012345")

    def test_kinds_mixed_within_a_column_are_an_error(self, integers):
        with pytest.raises(DataError, match="mixes kinds"):
            integers.predict_proba({"user": [1, 2], "left": [0, "1"], "right": [2, 3]})

    def test_probabilities(self, model):
        assert model.classes_.tolist() == [1, 0, -1]
        asked = questions()
        proba = model.predict_proba(asked)
        assert proba.shape == (len(asked["user"]), 3)
        assert np.all(proba > 0)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=EXACT)
        np.testing.assert_allclose(model.predict_proba(swapped(asked)), proba[:, ::-1], atol=EXACT)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(asked)), proba, atol=EXACT)
        np.testing.assert_array_equal(model.predict(asked), np.array([1, 0, -1])[proba.argmax(axis=1)])

    def test_it_decides_by_its_own_probabilities(self, model):
        user, options = user_ids([3])[0], item_ids([4, 1, 2])
        found = model.decide(user, options, cost_question=0.2)
        sets = {"task": [0] * 3, "item": list(found.options), "user": [user] * 3}
        np.testing.assert_allclose(found.probabilities, model.predict_choice(sets), atol=EXACT)
        assert list(found.probabilities) == sorted(found.probabilities, reverse=True)
        assert model.decide(user, options[::-1], cost_question=0.2) == found
        assert model.decide(user, options, cost_question=100.0).action == "act"
        assert model.decide(user, options[:2], cost_question=0.0).action == "ask"
        with pytest.warns(DataWarning, match="the choice is that of somebody without answers"):
            stranger = model.decide("zoe", options)
        assert stranger == model.decide(None, options)

    @pytest.mark.parametrize("with_ties", [True, False])
    def test_scikit_learn_scores_it(self, model, with_ties):
        columns, y = votes()
        if not with_ties:
            columns, y = {name: np.asarray(column)[y != 0] for name, column in columns.items()}, y[y != 0]
            model = self.make().fit(columns, y)
        proba, predicted = model.predict_proba(columns), model.predict(columns)
        np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], predicted)
        assert get_scorer("accuracy")(model, columns, y) == np.mean(predicted == y)
        order = np.argsort(model.classes_)  # scikit-learn wants columns in the order of sorted labels
        loss = log_loss(y, proba[:, order], labels=model.classes_[order])
        assert abs(loss + model.score(columns, y)) < EXACT
        assert neg_log_loss(model, columns, y) == model.score(columns, y)
        refused = DataError, r"left, tie, right, as classes_ says.*predilect.evaluation.neg_log_loss"
        if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6):  # it refuses what is not a classifier itself
            refused = ValueError, "should either be a classifier"
        for scorer in ("neg_log_loss", "roc_auc_ovr"):  # which take columns for sorted
            with pytest.raises(refused[0], match=refused[1]):
                get_scorer(scorer)(model, columns, y)

    def test_margins(self, model):
        asked = questions()
        mean, var = model.predict_margin(asked)
        other_mean, other_var = model.predict_margin(swapped(asked))
        assert np.all(var > 0)
        np.testing.assert_allclose(other_mean, -mean, atol=EXACT)
        np.testing.assert_allclose(other_var, var, atol=EXACT)
        proba = model.predict_proba(asked)
        clear = np.abs(mean) > self.skewness * np.sqrt(var)
        assert clear.mean() > 0.9
        np.testing.assert_array_equal((proba[:, 0] > proba[:, 2])[clear], mean[clear] > 0)

    def test_the_board_says_who_is_left_of_whom(self, model):
        board = model.rank()
        best, *_, worst = board["item"]
        left, tie, right = model.predict_proba({"left": [best], "right": [worst]})[0]
        assert left > right > 0
        assert tie > 0

    def test_rows_are_answered_one_by_one(self, model):
        asked = questions()
        proba = model.predict_proba(asked)
        order = np.random.default_rng(2).permutation(len(proba))[:60]
        some = {name: [column[i] for i in order] for name, column in asked.items()}
        np.testing.assert_allclose(model.predict_proba(some), proba[order], atol=self.rounding, rtol=0.0)
        assert model.predict_proba({name: column[:0] for name, column in asked.items()}).shape == (0, 3)

    def test_the_score_is_the_mean_log_likelihood(self, model):
        columns, y = votes()
        log_proba = np.log(model.predict_proba(columns))[np.arange(len(y)), 1 - y]
        assert abs(model.score(columns, y) - log_proba.mean()) < EXACT
        people = {"user": [*sorted(set(columns["user"]))]}
        assert model.score(columns, y, people=people | {"age": [1.0] * len(people["user"])}) == model.score(columns, y)
        weight = np.random.default_rng(3).integers(1, 5, size=len(y)).astype(float)
        weighted = model.score(columns | {"weight": weight.tolist()}, y)
        assert abs(weighted - np.average(log_proba, weights=weight)) < EXACT

    def test_someone_unknown_gets_the_prediction_of_the_population(self, model):
        asked = questions(1)
        nobody = model.predict_proba(without_user(asked))
        if not self.personal:  # everybody is alike, known or not
            np.testing.assert_array_equal(model.predict_proba(asked | {"user": ["?"] * 30}), nobody)
            return
        mixed = {name: column * 2 for name, column in asked.items()} | {"user": ["?"] * 30 + asked["user"]}
        with pytest.warns(DataWarning, match="30 of 60 pairs name someone without answers"):
            proba = model.predict_proba(mixed)
        np.testing.assert_allclose(proba[:30], nobody, atol=EXACT)
        np.testing.assert_allclose(proba[30:], model.predict_proba(asked), atol=EXACT)
        assert np.abs(proba[30:] - nobody).max() > 0.01

    def test_something_unknown_without_features_gets_the_prior(self, model):
        user = user_ids([2, 2, 2])
        with pytest.warns(DataWarning, match=r"2 .*items .*without features \(first: 'new'\)"):
            mean, var = model.predict_margin(
                {"user": user, "left": ["new", "newer", "item 1"], "right": ["newer", "item 1", "item 2"]}
            )
        assert mean[0] == 0.0  # nothing tells one unknown item from another
        expected = model.predict_margin({"user": user[:1], "left": ["item 1"], "right": ["item 2"]})
        np.testing.assert_allclose([mean[2], var[2]], np.ravel(expected), atol=EXACT)
        assert var[0] > var[1] > var[2]

    def test_features_tell_where_something_unknown_lies(self, featured):
        worth = ROWS.truth.mean(axis=0)
        best, worst = item_ids([worth.argmax(), worth.argmin()])
        new = {"item": ["like best", "like worst"], "x": [worth.max(), worth.min()]}
        pairs = {"left": ["like best", best], "right": ["like worst", worst]}
        mean, var = featured.predict_margin(pairs, items=new)
        if self.features_say_all:
            np.testing.assert_allclose([mean[0], var[0]], [mean[1], var[1]], atol=EXACT)
            assert mean[0] > 0
            assert var[0] > 0
        else:
            assert mean[1] > mean[0] > 0.25 * mean[1] > 0
            assert var[0] > var[1] > 0
        with pytest.warns(DataWarning, match="2 .*items .* come without features"):
            mean, _ = featured.predict_margin(pairs)
        assert mean[0] == 0.0
        with pytest.warns(DataWarning, match=r"1 .*items .* \(first: 'like worst'\)"):
            featured.predict_margin(pairs, items={"item": ["like best"], "x": [worth.max()]})

    def test_an_item_with_features_and_no_answers_is_ranked(self, featured):
        board = featured.rank()
        row = list(board["item"]).index("item 9")
        assert board["n"][row] == 0
        if self.features_say_all:  # its neighbours speak for it, and the board's ends are the least certain
            assert board["sd"][row] > sorted(board["sd"])[len(board["sd"]) // 2]
        else:
            assert board["sd"][row] == max(board["sd"])
        np.testing.assert_allclose(sum(board["mean"]), 0.0, atol=EXACT)
        assert featured.predict_proba({"left": ["item 9"], "right": ["item 0"]}).shape == (1, 3)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"left": ["item 1"]}, "compare an item with itself"),
            ({"left": [None]}, "missing ids"),
            ({"user": ["person 0001"] * 2}, "equally long"),
        ],
    )
    def test_questions_that_cannot_be_answered(self, model, change, message):
        with pytest.raises(DataError, match=message):
            model.predict_proba({"user": ["person 0001"], "left": ["item 0"], "right": ["item 1"]} | change)
        with pytest.raises(DataError, match="column"):
            model.predict_proba({"left": ["item 0"]})

    def test_without_ranks_the_scores_are_the_same(self, model):
        for user in (None, *model.users_.ids[:1]) if model.personal_ else (None,):
            whole, scores = model.utilities(user), model.utilities(user, ranks=False)
            counts = ["n", "wins", "ties", "losses", "win_share"]
            assert list(scores.columns) == ["item", "mean", "sd", "lower", "upper", *counts]
            for name in scores.columns[1:]:
                np.testing.assert_allclose(scores[name], whole[name], atol=1e-6)  # a board makes near ties equal
            assert scores["item"].to_list() == whole["item"].to_list() == model.items_.ids
            for name in whole.columns:
                assert whole.sort("rank")[name].to_list() == list(model.rank(user)[name])

    def test_the_board_of_someone_unknown(self, model):
        with pytest.raises(DataError, match="user ids are not known"):
            model.rank("nobody")

    def test_without_a_name_the_crowd_is_meant_and_by_an_unseen_name_an_unseen_user(self, model):
        mean, covariance = model.utility_distribution()
        np.testing.assert_allclose(mean, model.utilities()["mean"], atol=EXACT)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), model.utilities()["sd"], atol=EXACT)
        assert model.utilities()["n"].to_list() == model._results_by_item().sum(axis=1).tolist()
        with pytest.warns(DataWarning, match="without answers"):
            frame = model.utilities("nobody")
        with pytest.warns(DataWarning, match="without answers"):
            mean, covariance = model.utility_distribution("nobody")
        np.testing.assert_allclose(frame["mean"].to_numpy(), mean, atol=ITERATIVE)
        np.testing.assert_allclose(frame["sd"].to_numpy() ** 2, np.diagonal(covariance), atol=ITERATIVE)
        assert (frame["n"].sum() == 0) == self.personal
