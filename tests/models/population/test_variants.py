"""What makes no difference to a population, whatever its answers and people are: graded, with covariates, careless."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import test_consistency_model
import test_covariate_effects
import test_graded_model
import test_item_ties
import test_newcomer_shift
import test_own_effects
import test_population_ties

from predilect import Comparisons, Population, load
from tolerances import CONVERGED, EXACT, ITERATIVE

pytestmark = [
    pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*without answers:predilect.errors.DataWarning"),
]  # fmt: skip
STRANGER = 999


@dataclass(frozen=True)
class Variant:
    """Columns of answers with integer ids and their outcomes, read in some way, and a model of them."""

    columns: dict[str, Any]
    outcome: Any
    settings: dict[str, Any]
    has_it: Callable[[Population], bool]  # the fitted model is of this kind
    covariates: tuple[str, ...] = ()
    side: bool = False
    # Predictions of answers with other sides, where there are covariates, and with other names are alike to so much.
    turned: float = ITERATIVE
    renamed: float = ITERATIVE

    def fit(self) -> Population:
        return Population(**{"n_jobs": 1} | self.settings).fit(
            Comparisons.from_frame(
                self.columns, outcome=self.outcome, columns={"covariates": list(self.covariates)},
                reading={"side": self.side},
            )
        )  # fmt: skip

    def take(self, rows: Any) -> Variant:
        columns = {name: np.asarray(column)[rows] for name, column in self.columns.items()}
        return replace(self, columns=columns, outcome=np.asarray(self.outcome)[rows])

    def swapped(self) -> Variant:
        return replace(self, columns=swapped(self.columns, self.covariates), outcome=-np.asarray(self.outcome))

    @property
    def asked(self) -> dict[str, Any]:
        """All pairs of some people and of a stranger, with differences in covariates."""
        items = sorted({*np.asarray(self.columns["left"]).tolist()})
        pairs = np.array([(a, b) for a in items for b in items if a != b])
        users = np.repeat([0, 1, 5, STRANGER], len(pairs))
        told = {name: np.resize([10.0, -4.0, 0.0], len(users)) for name in self.covariates}
        return {"user": users, "left": np.tile(pairs[:, 0], 4), "right": np.tile(pairs[:, 1], 4)} | told

    @property
    def more(self) -> tuple[dict[str, Any], np.ndarray]:
        """Further answers, of people who are there and of one who is new."""
        rows = self.take(np.arange(4, len(self.outcome), len(self.outcome) // 9))
        users = np.where(np.arange(len(rows.outcome)) % 4 == 0, STRANGER, rows.columns["user"])
        return swapped(rows.columns, self.covariates) | {"user": users}, rows.outcome


def swapped(columns: dict[str, Any], covariates: tuple[str, ...]) -> dict[str, Any]:
    turned = columns | {"left": columns["right"], "right": columns["left"]}
    return turned | {name: -np.asarray(columns[name]) for name in covariates}


def graded(settings):
    return Variant(*test_graded_model.crowd(), settings | {"tol": 1e-10}, lambda model: len(model.grades_) == 3,
                   renamed=1e-4)  # fmt: skip


def of_item_ties(personal: bool):
    columns, outcome, _ = test_item_ties.crowd(n=1500)
    settings = test_item_ties.model_of(personal, 0.5, tol=1e-9).get_params()
    return Variant(columns, outcome, settings, lambda model: len(model.posterior_.thresholds.of_items) == 8)


def with_covariates(settings):
    frame, _ = test_covariate_effects.crowd(7, side=0.5, length=0.4)
    left, winner, of_left, of_right = (np.array(frame[name]) for name in ("left", "winner", "length_a", "length_b"))
    columns = {"user": frame["user"], "left": left, "right": frame["right"], "length": of_left - of_right}
    return Variant(columns, np.where(winner == left, 1, -1), settings, lambda model: len(model.covariates()) == 2,
                   ("length",), side=True, turned=1e-5)  # fmt: skip


def with_own_effects():
    frame, _, _ = test_own_effects.crowd(4, spread=1.0, n_users=20, n_items=6, n=20)
    outcome = np.where(np.array(frame.pop("winner")) == np.array(frame["left"]), 1, -1)
    return Variant(frame, outcome, test_own_effects.GIVEN, lambda model: model.hyperparameters_.covariate_spread != (),
                   tuple(test_own_effects.NAMES), renamed=1e-4)  # fmt: skip


def of_rows(rows, settings, has_it, **others):
    return Variant({name: getattr(rows, name) for name in ("user", "left", "right")}, rows.outcome, settings, has_it,
                   **others)  # fmt: skip


VARIANTS = {
    "grades": lambda: graded(test_graded_model.MODELS[0]),
    "grades, pooled": lambda: graded(test_graded_model.MODELS[1]),
    "ties of items": lambda: of_item_ties(True),
    "ties of items, pooled": lambda: of_item_ties(False),
    "covariates": lambda: with_covariates(test_covariate_effects.MODELS[0]),
    "covariates, pooled": lambda: with_covariates(test_covariate_effects.MODELS[1]),
    "effects of their own": with_own_effects,
    "newcomers": lambda: of_rows(
        test_newcomer_shift.ROWS, test_newcomer_shift.GIVEN | {"calibration": test_newcomer_shift.WEIGHT, "tol": 1e-12},
        lambda model: model.posterior_.newcomer_shift is not None,
    ),
    "care": lambda: Variant(
        test_consistency_model.FRAME, test_consistency_model.OUTCOME,
        test_consistency_model.GIVEN | {"consistency": 1.0},
        lambda model: model.hyperparameters_.consistency_spread > 0.0,
    ),
    "thresholds of their own": lambda: of_rows(
        test_population_ties.ROWS, test_population_ties.GIVEN | {"tol": 1e-12},
        lambda model: model.hyperparameters_.tie_spread > 0.0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request) -> Variant:
    return VARIANTS[request.param]()


@pytest.fixture(scope="module")
def model(variant) -> Population:
    """Not to be changed."""
    found = variant.fit()
    assert variant.has_it(found)
    return found


def test_the_order_of_rows(variant, model):
    other = variant.take(np.random.default_rng(0).permutation(len(variant.outcome))).fit()
    np.testing.assert_array_equal(other.predict_proba(variant.asked), model.predict_proba(variant.asked))


def test_a_swap_of_all_rows_flips_the_effect_of_the_side_and_nothing_else(variant, model):
    other, expected = variant.swapped().fit(), model.predict_proba(variant.asked)
    if not variant.covariates:
        np.testing.assert_array_equal(other.predict_proba(variant.asked), expected)
        return
    found = other.predict_proba(swapped(variant.asked, variant.covariates))[:, ::-1]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=variant.turned)
    signs = [-1.0 if name == "side" else 1.0 for name in model.covariates()["covariate"]]
    effect = model.covariates()["effect"].to_numpy() * signs
    np.testing.assert_allclose(other.covariates()["effect"], effect, rtol=variant.turned)
    for name in ("mean", "sd"):
        np.testing.assert_allclose(other.utilities()[name], model.utilities()[name], atol=variant.turned)
    if model.hyperparameters_.covariate_spread:
        for name in variant.covariates:
            people, others = (one.people()[f"effect_of_{name}"] for one in (model, other))
            np.testing.assert_allclose(others, people, rtol=variant.turned)


def test_twice_every_answer_is_weight_2(variant):
    n = len(variant.outcome)
    twice = variant.take(np.tile(np.arange(n), 2)).fit()
    weighted = replace(variant, columns=variant.columns | {"weight": np.full(n, 2.0)}).fit()
    assert variant.has_it(twice)
    assert twice.covariates().equals(weighted.covariates())
    np.testing.assert_array_equal(twice.predict_proba(variant.asked), weighted.predict_proba(variant.asked))


def test_names_and_the_order_of_covariates_make_no_difference(variant, model):
    def renamed(columns):
        names = {"user": lambda code: 2000 - code, "left": lambda code: 97 * code % 101}
        names["right"] = names["left"]
        return columns | {name: other(np.asarray(columns[name])) for name, other in names.items()}

    other = replace(variant, columns=renamed(variant.columns), covariates=variant.covariates[::-1]).fit()
    found, expected = other.predict_proba(renamed(variant.asked)), model.predict_proba(variant.asked)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=variant.renamed)


def test_it_is_saved_and_learns_as_before(variant, model, tmp_path):
    model.save(tmp_path / "model")
    again, other = load(tmp_path / "model"), copy.deepcopy(model)
    np.testing.assert_array_equal(again.predict_margin(variant.asked), model.predict_margin(variant.asked))
    np.testing.assert_array_equal(again.predict_proba(variant.asked), model.predict_proba(variant.asked))
    assert again.covariates().equals(model.covariates())
    assert again.grades_ == model.grades_
    assert not model.personal_ or again.people().equals(model.people())
    for one in (again, other):
        one.update(*variant.more)
    np.testing.assert_allclose(again.predict_proba(variant.asked), other.predict_proba(variant.asked), atol=EXACT)
    again.save(tmp_path / "later")
    later = load(tmp_path / "later").predict_proba(variant.asked)
    np.testing.assert_allclose(later, again.predict_proba(variant.asked), atol=EXACT)


def test_answers_come_and_go(variant, model):
    there, before = copy.deepcopy(model).update(*variant.more), model.predict_proba(variant.asked)
    assert np.abs(there.predict_proba(variant.asked) - before).max() > 1e-4
    there.forget(*variant.more)
    np.testing.assert_allclose(there.predict_proba(variant.asked), before, atol=CONVERGED)
    assert there.comparisons_.n_answers == there.n_answers_ == model.n_answers_


def test_answers_that_come_together_are_those_that_come_one_by_one(variant, model):
    columns, outcome = variant.more
    together, single = copy.deepcopy(model).update(columns, outcome), copy.deepcopy(model)
    for row in range(len(outcome)):
        single.update({name: np.asarray(column)[[row]] for name, column in columns.items()}, outcome[[row]])
    expected = single.predict_proba(variant.asked)
    np.testing.assert_allclose(together.predict_proba(variant.asked), expected, atol=CONVERGED)
    assert together.comparisons_ == single.comparisons_
    if model.personal_:
        together._consolidate()
        np.testing.assert_allclose(together.predict_proba(variant.asked), expected, atol=CONVERGED)


def test_all_of_it_compressed_predicts_as_it_does(variant, model, tmp_path):
    if model.hyperparameters_.covariate_spread:
        pytest.skip("a compressed model has the crowd's effects alone")
    small = model.compress(keep="100%", precision="double")
    expected = model.predict_proba(variant.asked)
    np.testing.assert_allclose(small.predict_proba(variant.asked), expected, atol=CONVERGED)
    small.save(tmp_path / "small")
    same = load(tmp_path / "small").predict_proba(variant.asked)
    np.testing.assert_array_equal(same, small.predict_proba(variant.asked))
