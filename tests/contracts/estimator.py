"""What every estimator keeps: scikit-learn's conventions, and invariance to all that must make no difference."""

from __future__ import annotations

import json
import pickle
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_score

from contracts.votes import ROWS, item_ids, questions, same_bits, swapped, user_ids, votes
from drawings import Page
from predilect import Comparisons
from predilect.errors import ConvergenceError, ConvergenceWarning, DataError
from simulate import crowd
from tolerances import EXACT, ITERATIVE

SHUFFLED = np.random.default_rng(0).permutation(ROWS.n_rows)


class EstimatorContract:
    """Inherit, and say how the estimator is made."""

    # Further ones with which nothing starts from random numbers: these fall to items in the order of their names.
    without_random_start: ClassVar[dict[str, Any]] = {}
    # Constructor arguments that leave nothing to choose and ask for the last digit.
    fixed: ClassVar[dict[str, Any]]
    # People, items and answers a person of the test of threads.
    for_threads: ClassVar[tuple[int, int, int]] = (200, 20, 30)

    @classmethod
    def make(cls, **changes: Any) -> Any:
        """An estimator, with some arguments changed."""
        raise NotImplementedError

    def cut_short(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Any:
        """An estimator that cannot converge on the answers of the contract."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> Any:
        return cls.make().fit(*votes())

    @pytest.fixture(scope="class")
    @classmethod
    def again(cls) -> Any:
        """Another fit of the same, for what must not differ."""
        return cls.make().fit(*votes())

    # scikit-learn

    def test_the_constructor_keeps_what_it_is_given(self):
        model = self.make()
        parameters = model.get_params()
        assert parameters
        assert parameters == type(model)(**parameters).get_params()
        for name, value in parameters.items():
            assert getattr(model, name) is value

    def test_a_near_miss_among_the_parameters_is_named(self):
        kind = type(self.make())
        with pytest.raises(
            TypeError, match=rf'^{kind.__name__} has no parameter "random_stat".* mean "random_state"\?'
        ):
            kind(random_stat=1)
        with pytest.raises(TypeError, match=f'no parameter "x". It has {", ".join(signature(kind).parameters)}$'):
            kind(x=1)
        assert [*signature(kind).parameters] == [*signature(kind.__init__).parameters][1:]

        class Wider(kind):
            def __init__(self, own, **others):
                super().__init__(**others)

        assert Wider(own=1, random_state=7).random_state == 7

    def test_true_and_false_are_no_words(self):
        arguments = signature(type(self.make())).parameters.values()
        flags = [argument.name for argument in arguments if isinstance(argument.default, bool)]
        assert flags
        for name in flags:
            for value in ("no", "False", 0, None):
                with pytest.raises(ValueError, match=f"{name} must be True or False, not {value!r}"):
                    self.make().set_params(**{name: value}).fit(*votes())

    def test_outcomes_are_true_where_the_left_item_won_and_zero_and_one_are_refused(self, model):
        columns, outcome = votes()
        decided = np.flatnonzero(outcome)
        columns = {name: [column[row] for row in decided] for name, column in columns.items()}
        won = outcome[decided] > 0
        for kind in (won, won.tolist(), pd.Series(won), pl.Series(won)):
            assert model.score(columns, kind) == model.score(columns, outcome[decided])
        with pytest.raises(DataError, match=r'only 1 and 0.*give -1 in place of 0, or booleans.*reading={"tie": "0"}'):
            self.make().fit(columns, won.astype(int))

    def test_fit_takes_what_says_how_a_frame_is_read(self, model):
        columns, outcome = votes()
        odd = {f"the {name}": [*column, "item 1"] for name, column in columns.items()}
        names = {"who" if name == "user" else name: f"the {name}" for name in columns}
        same_bits(self.make().fit(odd, [*outcome, 1], columns=names, reading={"drop": "self"}), model)
        with pytest.raises(DataError, match="was read already: give columns to predilect"):
            self.make().fit(
                Comparisons.from_frame(columns, outcome=outcome), columns={"left": "left"}, reading={"drop": "self"}
            )

    def test_an_index_that_names_people_items_or_answers_is_refused(self, model):
        columns, outcome = votes()
        words = np.array(["tie", "left", "right"])[outcome]
        frame = pd.DataFrame({**columns, "winner": words})
        for name in ("user", "left", "winner"):
            with pytest.raises(DataError, match=rf'"{name}" is the index of the frame.*reset_index\(\)'):
                self.make().fit(frame.set_index(name))
        with pytest.raises(DataError, match='"user" is the index of the frame'):
            model.predict_proba(frame.set_index("user"))

    def test_the_report_is_plain_json(self, model, tmp_path):
        text = json.dumps(model.report_, allow_nan=False)
        assert json.loads(text) == model.report_
        model.save(tmp_path / "model")
        kept = {key: value for key, value in model.report_.items() if key != "timing"}
        assert type(model).load(tmp_path / "model").report_ == kept

    def test_it_shows_what_was_fitted_and_has_a_page(self, model, tmp_path):
        assert repr(model).startswith(f"{type(model).__name__}(")
        assert repr(model).endswith("items, 240 answers)")
        model.report(tmp_path / "board.html")
        read = Page((tmp_path / "board.html").read_text(encoding="utf-8"))
        assert Page(model._repr_html_()).all("svg")
        for item in pl.DataFrame(model.rank())["item"].to_list():
            assert str(item) in read.text

    def test_a_clone_is_alike_and_unfitted(self, model):
        twin = clone(model)
        assert twin is not model
        assert twin.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            twin.rank()
        same_bits(twin.fit(*votes()), model)

    def test_set_params(self):
        model = self.make()
        assert model.set_params(random_state=7) is model
        assert model.get_params()["random_state"] == 7
        with pytest.raises(ValueError, match="no_such_thing"):
            model.set_params(no_such_thing=1)

    def test_without_a_seed_one_is_drawn_at_the_fit_and_kept(self, model, monkeypatch, tmp_path):
        assert model.get_params()["random_state"] == model.seed_ == 0
        monkeypatch.setattr(type(model), "_draw_seed", lambda model: setattr(model, "_seed", 0))
        unseeded = self.make(random_state=None).fit(*votes())
        assert unseeded.get_params()["random_state"] is None
        same_bits(unseeded, model)
        unseeded.save(tmp_path / "model")
        assert type(model).load(tmp_path / "model").random_state == 0
        with pytest.raises(ValueError, match="random_state must be None or a whole number from 0 up, not -1"):
            self.make(random_state=-1).fit(*votes())

    def test_fit_returns_the_estimator_and_leaves_its_parameters_alone(self):
        model = self.make()
        before = model.get_params()
        assert model.fit(*votes()) is model
        assert model.get_params() == before

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "predict_margin"])
    def test_predicting_before_fit(self, method):
        with pytest.raises(NotFittedError, match="fit"):
            getattr(self.make(), method)(questions())

    def test_asking_before_fit(self, tmp_path):
        model = self.make()
        ask = [model.rank, model.utilities, model._results_by_item, lambda: model.score(*votes())]
        for method in [*ask, lambda: model.save(tmp_path / "model")]:
            with pytest.raises(NotFittedError, match="fit"):
                method()
        assert list(tmp_path.iterdir()) == []

    def test_a_pickled_model_is_the_same_model(self, model):
        same_bits(pickle.loads(pickle.dumps(model)), model)

    @pytest.fixture(scope="class")
    @classmethod
    def score_by_fold(cls):
        y = votes(order=SHUFFLED)[1]
        scores = []
        for train, test in KFold(3).split(y):
            X, X_test = votes(order=SHUFFLED[train])[0], votes(order=SHUFFLED[test])[0]
            scores.append(cls.make(**cls.fixed).fit(X, y[train]).score(X_test, y[test]))
        return scores

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_cross_val_score(self, kind, score_by_fold):
        columns, y = votes(order=SHUFFLED)
        frame = kind(columns)
        found = cross_val_score(self.make(**self.fixed), frame, y, cv=KFold(3), error_score="raise")
        assert found.tolist() == score_by_fold
        assert np.all((np.log(0.01) < found) & (found < 0))

    def test_comparisons_and_frames_are_one_and_the_same(self, model):
        columns, y = votes()
        same_bits(self.make().fit(Comparisons.from_frame(columns, outcome=y)), model)
        words = np.array(["right", "tie", "left"])[y + 1].tolist()
        same_bits(self.make().fit(columns | {"winner": words}), model)

    # What must make no difference

    def test_the_order_of_rows(self, model):
        same_bits(self.make().fit(*votes(order=SHUFFLED)), model)

    def test_left_and_right_with_the_outcome_flipped(self, model):
        columns, y = votes()
        same_bits(self.make().fit(swapped(columns), -y), model)

    def test_left_and_right_of_some_rows(self, model):
        columns, y = votes()
        other = swapped(columns)
        flip = np.arange(len(y)) % 3 == 0
        mixed = {
            name: np.where(flip, other[name], columns[name]).tolist() for name in ("left", "right")
        }  # fmt: skip
        same_bits(self.make().fit(columns | mixed, np.where(flip, -y, y)), model)

    def test_the_names_of_items_and_people(self):
        columns, y = votes()
        fixed = self.fixed | self.without_random_start
        model = self.make(**fixed).fit(columns, y)
        items = dict(zip(item_ids(range(6)), "FBDACE", strict=True))
        people = dict(zip(user_ids(range(20)), map(str, np.random.default_rng(1).permutation(20)), strict=True))

        def renamed(frame: dict[str, list[str]]) -> dict[str, list[str]]:
            return {name: [(people if name == "user" else items)[value] for value in frame[name]] for name in frame}

        other = self.make(**fixed).fit(renamed(columns), y)
        asked = questions()
        for a, b in zip(model.predict_margin(asked), other.predict_margin(renamed(asked)), strict=True):
            np.testing.assert_allclose(a, b, atol=ITERATIVE)
        np.testing.assert_allclose(model.predict_proba(asked), other.predict_proba(renamed(asked)), atol=ITERATIVE)
        board, board_of_other = model.rank(), other.rank()
        assert [items[item] for item in board["item"]] == list(board_of_other["item"])
        for name in ("mean", "sd", "lower", "upper"):
            np.testing.assert_allclose(board[name], board_of_other[name], atol=ITERATIVE)

    def test_a_duplicate_is_a_weight_of_two(self):
        columns, y = votes()
        twice = {name: column + column for name, column in columns.items()}
        one = self.make(**self.fixed).fit(twice, np.tile(y, 2))
        other = self.make(**self.fixed).fit(columns | {"weight": [2.0] * len(y)}, y)
        assert one.n_answers_ == other.n_answers_ == 2 * len(y)
        same_bits(one, other)
        assert abs(one.score(twice, np.tile(y, 2)) - other.score(columns, y)) < EXACT

    def test_the_same_seed_gives_the_same_bits(self, model, again):
        same_bits(again, model)

    def test_the_number_of_threads(self):
        n_users, n_items, n_each = self.for_threads
        rows = crowd(3, n_users, n_items, n_each, delta=0.3)
        asked = questions(n_users, np.array([(0, 1), (n_items - 1, 3), (n_items // 3 + 1, 8 % n_items)]))
        found = [self.make(**self.fixed, n_jobs=n).fit(*votes(rows)) for n in (1, 3)]
        self.check_shards(found[0])
        one, other = found
        for a, b in zip(one.predict_margin(asked), other.predict_margin(asked), strict=True):
            np.testing.assert_array_equal(a, b)
        assert one.rank().equals(other.rank())
        assert one.log_evidence_ == other.log_evidence_

    def check_shards(self, model: Any) -> None:
        """Asserts that the answers of the threads' test are more than one piece of work."""

    def test_answers_that_say_nothing_are_refused(self):
        tie = {"user": ["a", "b"], "left": ["item 1"] * 2, "right": ["item 2"] * 2, "winner": ["tie"] * 2}
        with pytest.raises(DataError, match=r"all 2 answers are ties.*nothing says which item is better"):
            self.make().fit(tie)
        with pytest.raises(DataError, match="compared with itself"):
            self.make().fit({"user": ["a"], "left": ["item 1"], "right": ["item 1"], "winner": ["item 1"]})

    # Convergence

    def test_no_convergence_is_a_warning(self, monkeypatch):
        with pytest.warns(ConvergenceWarning, match="tolerance"):
            model = self.cut_short(monkeypatch).fit(*votes())
        assert not model.report_["fit"]["converged"]
        assert np.isfinite(model.predict_proba(questions())).all()

    def test_no_convergence_is_an_error_where_strict(self, monkeypatch):
        with pytest.raises(ConvergenceError, match="tolerance"):
            self.cut_short(monkeypatch, strict=True).fit(*votes())
