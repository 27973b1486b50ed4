"""The population model keeps the contract of estimators whatever its utilities hang on."""

from __future__ import annotations

from typing import Any

import numpy as np
from test_population_contract import FIXED

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.votes import ROWS, item_ids
from predilect import Population
from predilect.models.inputs import read_answers
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

    def fit(self, X: Any, y: Any = None, *, items: Any = None, **options: Any) -> Any:
        if items is None:
            ids = read_answers(X, y).items.ids
            place = [number_of(item) for item in ids]
            items = {"item": ids, "good": FEATURES[place, 0], "other": FEATURES[place, 1]}
        return super().fit(X, y, items=items, **options)


class OnABasis(PredictionContract):
    personal = True
    fixed = FIXED | {"tolerance": 1e-11}
    rounding = EXACT  # queries of a person are one matrix product, which BLAS cuts by their number
    basis: str

    @classmethod
    def make(cls, **changes: Any) -> Population:
        # Two numbers are given, since the walk on them is the same for every basis and takes most of the time.
        return Featured(**({"n_jobs": 1, "basis": cls.basis, "strength": 10.0, "scale": 2.0} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(strength=10.0, scale=2.0, consensus_scale=4.0, max_passes=2, **changes)

    def check_shards(self, model):
        assert len(model.posterior_.people.shards) > 2


class TestAttributes(OnABasis):
    basis = "attributes"

    def test_features_tell_where_something_unknown_lies(self, featured):
        # Attributes say everything: what has the features of another item is that item.
        worth = ROWS.truth.mean(axis=0)
        best, worst = item_ids([worth.argmax(), worth.argmin()])
        new = {"item": ["like best", "like worst"], "x": [worth.max(), worth.min()]}
        mean, var = featured.predict_margin(
            {"left": ["like best", best], "right": ["like worst", worst]}, items=new
        )  # fmt: skip
        assert abs(mean[0] - mean[1]) < EXACT
        assert abs(var[0] - var[1]) < EXACT
        assert mean[1] > 0

    def test_an_item_with_features_and_no_answers_is_ranked(self, featured):
        board = featured.rank()
        assert board["n"][list(board["item"]).index("item 9")] == 0
        worth = dict(zip(item_ids([*range(6), 9]), [*ROWS.truth.mean(axis=0), -1.0], strict=True))
        assert list(board["item"]) == sorted(worth, key=worth.get, reverse=True)  # linear in the one feature there is


class TestInducing(OnABasis, SavingContract):
    basis = "inducing"
