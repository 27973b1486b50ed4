"""The population model keeps the contract of estimators whatever its utilities hang on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_population_contract import FIXED, INFINITE, TRUSTING

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.votes import ROWS, item_ids, votes
from predilect import Population
from predilect.models.reading import read_answers
from tolerances import EXACT

# Two features of each of twenty items; of the first six, one goes with how good they are.
FEATURES = np.random.default_rng(5).standard_normal((20, 2))
FEATURES[:6, 0] = ROWS.truth.mean(axis=0)


def number_of(item: Any) -> int:
    """Which item an id stands for, in any of the ways in which the contracts name items."""
    if isinstance(item, str) and not item[-1].isdigit():
        return "FBDACE".index(item)
    return int(str(item).split()[-1])


class Featured(Population):
    """Brings features along where the contract gives none."""

    def fit(
        self, X: Any, y: Any = None, *, items: Any = None, people: Any = None, watch: Any = None, **how: Any
    ) -> Any:
        if items is None:
            ids = read_answers(X, y, **how).items.ids
            place = [number_of(item) for item in ids]
            items = {"item": ids, "good": FEATURES[place, 0], "other": FEATURES[place, 1]}
        return super().fit(X, y, items=items, people=people, watch=watch, **how)


class OnABasis(PredictionContract):
    personal = True
    fixed = FIXED | {"tol": 1e-13}  # J is a parabola at its maximum: parameters are known to about the root of this
    trusting_features = TRUSTING
    beyond_json = INFINITE
    rounding = EXACT  # queries of a person are one matrix product, which BLAS cuts by their number
    basis: str

    @classmethod
    def make(cls, **changes: Any) -> Population:
        # What is given is chosen in the same way for every basis, and that would take most of the time.
        given = {"strength": 10.0, "variance": 2.0, "tie_threshold": ("auto", 0.3)}
        return Featured(**({"n_jobs": 1, "basis": cls.basis} | given | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(strength=10.0, variance=2.0, consensus_variance=4.0, max_iter=2, **changes)

    def check_shards(self, model):
        assert len(model.posterior_.people.shards) > 2


@pytest.mark.slow  # the contract once more, on a basis
class TestAttributes(OnABasis):
    basis = "attributes"

    # Items have answers enough in the contract, and so something to themselves. Among many others that nobody was
    # shown they have too few, and attributes say everything.

    @pytest.fixture(scope="class")
    @classmethod
    def sparse(cls):
        columns, y = votes()
        unseen = np.linspace(-2.0, 2.0, 80)
        items = {"item": item_ids([*range(6), *range(20, 100)]), "x": [*ROWS.truth.mean(axis=0), *unseen]}
        model = cls.make(feature_weight=(0.9, "auto"), consensus_variance=4.0).fit(columns, y, items=items)
        assert 2 * model.n_answers_ / 86 < 10
        return model

    def test_what_has_the_features_of_another_item_is_that_item(self, sparse):
        worth = ROWS.truth.mean(axis=0)
        best, worst = item_ids([worth.argmax(), worth.argmin()])
        new = {"item": ["like best", "like worst"], "x": [worth.max(), worth.min()]}
        mean, var = sparse.predict_margin(
            {"left": ["like best", best], "right": ["like worst", worst]}, items=new
        )  # fmt: skip
        assert abs(mean[0] - mean[1]) < EXACT
        assert abs(var[0] - var[1]) < EXACT
        assert mean[1] > 0

    def test_the_board_is_linear_in_the_one_feature_there_is(self, sparse):
        board = sparse.rank()
        names = item_ids([*range(6), *range(20, 100)])
        worth = dict(zip(names, [*ROWS.truth.mean(axis=0), *np.linspace(-2.0, 2.0, 80)], strict=True))
        assert list(board["item"]) == sorted(worth, key=worth.get, reverse=True)
        assert board["n"][list(board["item"]).index(names[-1])] == 0
        mean, x = np.array(board["mean"]), np.array([worth[item] for item in board["item"]])
        np.testing.assert_allclose(mean, (x - x.mean()) * mean[0] / (x[0] - x.mean()), atol=EXACT)


@pytest.mark.slow  # the contract once more, on a basis
class TestInducing(OnABasis, SavingContract):
    basis = "inducing"
