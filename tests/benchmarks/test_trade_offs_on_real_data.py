"""Trade-offs and grids of choice experiments whose levels are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.datasets import TASKS

from predilect.data import ItemFeatures
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.papers.gaspk.tradeoffs.grids import LevelGrid, grid_loss

pytestmark = pytest.mark.data


def points_of(name, n_attributes=None):
    task = TASKS[name](0)
    features, answers = ItemFeatures.from_frame(task.items, "item"), task.train.append(task.test)
    trade_offs = fit_trade_offs(features, answers, attributes=features.sources[:n_attributes])
    matrix, _ = features.align(answers.items)
    return task, features, answers, trade_offs, trade_offs.points(matrix, answers.left, answers.right)


@pytest.mark.parametrize(
    ("name", "shape", "n_points"),
    [
        # Levels of every dimension and different trade-offs, t and -t being one: SOURCE.md of each data set.
        ("amt-cars", (3, 3, 15, 3), 78 // 2),
        ("electricity", (7, 7, 3, 3, 3, 3), 388 // 2),
        ("tax-plans", (11, 7, 7, 7, 9, 11, 9), None),
    ],
)
def test_levels_and_trade_offs(name, shape, n_points):
    task, features, answers, trade_offs, (points, code, sign) = points_of(name)
    grid = LevelGrid.of(points, trade_offs=trade_offs, aim=10**7)
    assert grid.shape == shape
    loss = grid_loss(grid, points)
    assert loss.moved_at_all == 0.0
    assert loss.n_trade_offs == loss.n_points == len(points)
    # An independent count, on the file's own numbers.
    table = task.items.select("item", *features.sources).with_columns(pl.col(features.sources).cast(pl.Float64))
    rows = {row[0]: np.array(row[1:]) for row in table.rows()}
    labels = answers.items.labels(np.arange(answers.n_items))
    t = np.array([rows[labels[a]] - rows[labels[b]] for a, b in zip(answers.left, answers.right, strict=True)])
    different = {max(tuple(row), tuple(-row)) for row in np.round(t, 9) + 0.0}
    assert len(points) == len(different)
    assert n_points in (None, len(points))
    shown = trade_offs.in_units(sign[:, None] * points[code])
    for d in trade_offs.dimensions:
        if d.kind == "number":
            np.testing.assert_allclose(shown[d.label], t[:, features.sources.index(d.source)], atol=1e-9)


def test_positions_of_parties_need_natural_breaks():
    _, _, answers, trade_offs, (points, code, _) = points_of("uk-election-2010", 8)
    weight = np.bincount(code, weights=answers.weight)
    # 28 pairs of 8 parties, of which one was never on the same ballot: SNP and Plaid Cymru.
    assert len(points) == 27
    grid = LevelGrid.of(points, weight, trade_offs=trade_offs)
    assert grid.shape == (5,) * 8
    loss = grid_loss(grid, points, weight)
    assert 0.0 < loss.variance_lost.max() < 0.07
    # By hand: the two magnitudes of the first dimension that leave the least, with 0 as the third level.
    size = np.abs(points[:, 0])
    best = np.inf
    order = np.argsort(size)
    for a in range(len(size)):
        for b in range(a + 1, len(size)):
            parts = [order[:a], order[a:b], order[b:]]
            about = [0.0] + [np.average(size[part], weights=weight[part]) for part in parts[1:]]
            squares = [weight[part] @ (size[part] - c) ** 2 for part, c in zip(parts, about, strict=True)]
            best = min(best, sum(squares))
    assert loss.variance_lost[0] == pytest.approx(best / (weight @ size**2), rel=1e-9)
