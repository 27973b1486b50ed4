from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from predilect.data import Comparisons, ItemFeatures
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.papers.gaspk.tradeoffs.folding import distinct_points
from predilect.papers.gaspk.tradeoffs.grids import LevelGrid, grid_loss
from predilect.papers.gaspk.tradeoffs.natural_breaks import breaks_up_to
from tolerances import EXACT

CARS = {"item": ["a", "b", "c", "d"], "price": [10, 12, 17, 30], "fuel": ["petrol", "gas", "diesel", "petrol"]}
ROWS = arrays(
    np.float64,
    st.tuples(st.integers(2, 20), st.just(2)),
    elements=st.integers(-30, 30).map(lambda whole: 0.1 * whole),
)


def of_cars(levels=None, **options):
    answers = Comparisons.from_frame(
        {"left": ["a", "a", "b", "c"], "right": ["b", "c", "d", "d"], "winner": ["left"] * 4}
    )
    features = ItemFeatures.from_frame(CARS)
    trade_offs = fit_trade_offs(features, answers, units={"price": "EUR"})
    t = trade_offs.pairs(features.matrix, answers.left, answers.right)
    return t, LevelGrid.of(t, None, levels, trade_offs=trade_offs, **options)


def test_a_few_values_are_their_own_levels():
    t, grid = of_cars()
    assert grid.names[0] == "price (EUR)"
    # -2, -7, -18 and -13, each with its mirror image, and 0.
    expected = [-18, -13, -7, -2, 0, 2, 7, 13, 18]
    np.testing.assert_allclose(grid.levels[0] * grid.scale[0], expected, atol=1e-12)
    assert grid.shape == (9, 3, 3, 3)
    code, exact = grid.snap(t)
    assert exact.all()
    np.testing.assert_allclose(grid.points(code), t, atol=1e-14)
    loss = grid_loss(grid, t)
    assert loss.lines() == ["Every trade-off lies on the grid (4 different ones)."]
    assert grid.report == ()


def test_row_major_and_the_mirror_image():
    _, grid = of_cars()
    points = grid.points()
    assert points.shape == (grid.n_points, 4) == (243, 4)
    expected = [level[place] for level, place in zip(grid.levels, (1, 2, 0, 2), strict=True)]
    np.testing.assert_array_equal(points[np.ravel_multi_index((1, 2, 0, 2), grid.shape)], expected)
    np.testing.assert_array_equal(points[::-1], -points)
    code, exact = grid.snap(points)
    assert exact.all()
    np.testing.assert_array_equal(code, np.arange(243))
    folded, sign = grid.fold(code)
    np.testing.assert_array_equal(sign[:, None] * grid.points(folded), points)
    distinct = distinct_points(points)
    np.testing.assert_array_equal(grid.points(folded), distinct.points[distinct.code])
    np.testing.assert_array_equal(sign, distinct.sign)


@given(ROWS, st.booleans(), st.sampled_from([3, 5, 7]))
def test_snapping_takes_the_nearest_point(t, antisymmetric, n_levels):
    spread = np.abs(t).max(axis=0) > 0 if antisymmetric else np.ptp(t, axis=0) > 0
    if not spread.all():
        with pytest.raises(DataError, match="do not vary"):
            LevelGrid.of(t, levels=n_levels, antisymmetric=antisymmetric)
        return
    grid = LevelGrid.of(t, levels=n_levels, antisymmetric=antisymmetric)
    code, exact = grid.snap(t)
    far = np.linalg.norm(t - grid.points(code), axis=1)
    nearest = np.linalg.norm(t[:, None] - grid.points(), axis=2).min(axis=1)
    np.testing.assert_allclose(far, nearest, atol=1e-12)
    np.testing.assert_array_equal(exact, far < 1e-10)
    loss = grid_loss(grid, t)
    np.testing.assert_allclose(loss.rms, np.sqrt(((grid.points(code) - t) ** 2).mean(axis=0)), atol=1e-12)
    assert loss.n_trade_offs == len(distinct_points(t, antisymmetric).points)
    assert loss.n_points == len(distinct_points(grid.points(code), antisymmetric).points)
    if antisymmetric:
        mirrored, _ = grid.snap(-t)
        np.testing.assert_array_equal(mirrored, grid.n_points - 1 - code)
        np.testing.assert_array_equal(grid.fold(mirrored)[0], grid.fold(code)[0])
        # The sides say nothing, nor which of t and -t is given.
        distinct = distinct_points(t)
        turned = LevelGrid.of(distinct.points[distinct.code], levels=n_levels)
        for one, other in zip(turned.levels, grid.levels, strict=True):
            assert one.tobytes() == other.tobytes()


def test_levels_are_natural_breaks_of_weighted_answers():
    rng = np.random.default_rng(0)
    t, w = rng.normal(size=(200, 2)), rng.integers(1, 5, size=200).astype(float)
    grid = LevelGrid.of(t, w, levels=[7, 4], antisymmetric=False)
    for d, n_levels in enumerate((7, 4)):
        np.testing.assert_array_equal(grid.levels[d], breaks_up_to(t[:, d], n_levels, w)[-1].levels)
    repeated = LevelGrid.of(np.repeat(t, w.astype(int), axis=0), levels=[7, 4], antisymmetric=False)
    np.testing.assert_allclose(repeated.levels[0], grid.levels[0], atol=EXACT)
    half = breaks_up_to(np.abs(t[:, 0]), 4, w, zero_is_level=True)[-1].levels
    np.testing.assert_array_equal(LevelGrid.of(t, w, levels=7).levels[0], np.append(-half[:0:-1], half))
    by_default = LevelGrid.of(t[:, :1], w)
    assert by_default.shape == (25,)
    assert "Natural breaks: 25 levels" in by_default.report[0]


def test_default_levels_are_thinned_out_where_least_is_lost():
    rng = np.random.default_rng(1)
    # The first dimension is nearly on five levels; the second is spread out; the third keeps what was asked for.
    first = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], size=400) + 0.001 * rng.normal(size=400)
    t = np.stack([first, rng.normal(size=400), rng.normal(size=400)], axis=1)
    grid = LevelGrid.of(t, levels=[None, None, 9], aim=1200)
    assert grid.shape == (5, 25, 9)
    assert "for a grid of about 1200 points" in grid.report[0]
    assert "for a grid" not in grid.report[1] + grid.report[2]
    assert LevelGrid.of(t, levels=[None, None, 9], aim=500).shape == (5, 11, 9)
    # Never below five levels, whatever the aim.
    assert LevelGrid.of(t, aim=10).shape == (5, 5, 5)
    assert LevelGrid.of(t, aim=100_000).shape == (25, 25, 25)


def test_levels_in_own_units_by_name():
    t, grid = of_cars({"price": [-20, -10, 0, 10, 20], "fuel": 3})
    np.testing.assert_allclose(grid.levels[0] * grid.scale[0], [-20, -10, 0, 10, 20], atol=1e-12)
    np.testing.assert_array_equal(grid.levels[0], -grid.levels[0][::-1])
    assert grid.shape == (5, 3, 3, 3)
    _, by_label = of_cars({"price (EUR)": 3})
    assert by_label.shape == (3, 3, 3, 3)
    # In one unit -2, -7, -18 and -13 go to 0, -10, -20 and -10.
    loss = grid_loss(grid, t, [1.0, 2.0, 1.0, 4.0])
    change = np.array([2.0, 3.0, 2.0, 3.0])
    weight = np.array([1.0, 2.0, 1.0, 4.0]) / 8
    assert loss.rms_in_units[0] == pytest.approx(np.sqrt(weight @ change**2), rel=1e-12)
    assert loss.rms[0] * grid.scale[0] == pytest.approx(loss.rms_in_units[0], rel=1e-12)
    squares = weight @ np.array([4, 49, 324, 169])
    assert loss.variance_lost[0] == pytest.approx(weight @ change**2 / squares, rel=1e-12)
    assert loss.moved.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert loss.moved_at_all == 1.0
    assert (loss.n_trade_offs, loss.n_points) == (4, 4)
    lines = loss.lines()
    assert len(lines) == 2
    assert lines[1].startswith("price (EUR): 100 % of the answers are moved, by 2.78")


def test_what_becomes_one_and_what_becomes_none():
    t = np.array([[0.2], [1.0], [-1.2], [3.0], [3.1], [2.9], [0.0]])
    grid = LevelGrid.of(t, levels=[[-3.0, -1.0, 0.0, 1.0, 3.0]])
    weight = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    loss = grid_loss(grid, t, weight)
    # {0, 0.2}, {1, 1.2} and {2.9, 3, 3.1}: 1 + 1 + 3 pairs.
    assert (loss.n_trade_offs, loss.n_points, loss.n_pairs_merged) == (7, 3, 5)
    assert loss.lost_to_zero == pytest.approx(0.2)
    assert loss.moved_at_all == pytest.approx(0.5)
    assert "20 % of the answers are about differences so small" in loss.lines()[1]
    # A grid that is not mirrored measures variance about the mean.
    plain = LevelGrid.of(t, levels=[[-1.0, 0.0, 1.0, 3.0]], antisymmetric=False)
    squares = np.array([0.2, 0, 0.2, 0, 0.1, 0.1, 0]) ** 2
    mean = weight @ t[:, 0] / 10
    expected = weight @ squares / (weight @ (t[:, 0] - mean) ** 2)
    assert grid_loss(plain, t, weight).variance_lost[0] == pytest.approx(expected, rel=1e-9)
    with pytest.raises(DataError, match="cannot be folded"):
        plain.fold([0])


def test_half_way_goes_towards_zero_on_both_sides():
    grid = LevelGrid.of(np.array([[1.0], [3.0]]))
    assert grid.points(grid.snap([[2.0], [-2.0], [0.5], [-0.5]])[0]).ravel().tolist() == [1.0, -1.0, 0.0, 0.0]


def test_a_grid_that_is_too_large_is_refused_with_what_to_change():
    t = np.random.default_rng(2).normal(size=(50, 11))
    with pytest.raises(DataError, match=r"5 x 5 .* = 4.88281e\+07 points, more than 1e\+07. Give fewer .*function"):
        LevelGrid.of(t)
    with pytest.raises(DataError, match=r"9 x 9 = 81 points, more than 80. .* 9 of dimension 1, 9 of dimension 2"):
        LevelGrid.of(t[:, :2], levels=9, most=80)
    assert LevelGrid.of(t[:, :2], levels=9, most=81).n_points == 81


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (6, "at least 3 levels, an odd number.*got 6. Take 5 or 7"),
        (1, "at least 3 levels"),
        ([3], r"given for 1 dimension, the trade-offs have 4"),
        ({"colour": 3}, 'no attribute "colour"'),
        ({"price": [-10, 0, 20]}, "negative of each.*; 10 is missing|negative of each.*; -20 is missing"),
        ({"price": [-10, 10]}, "negative of each.*; 0 is missing"),
        ({"price": [0]}, "at least two different levels"),
        ({"price": [-np.inf, 0, np.inf]}, "all finite numbers"),
    ],
)
def test_levels_that_do_not_fit(levels, message):
    with pytest.raises(DataError, match=message):
        of_cars(levels)


def test_bad_input():
    with pytest.raises(DataError, match='do not vary in "dimension 2": it is 0 in every answer'):
        LevelGrid.of([[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(DataError, match="one level"):
        LevelGrid.of([[1.0, 3.0], [2.0, 3.0]], antisymmetric=False)
    # A single trade-off has a mirror image.
    assert LevelGrid.of([[1.0, 3.0], [2.0, 3.0]]).shape == (5, 3)
    with pytest.raises(DataError, match="one dimension at least"):
        LevelGrid.of(np.zeros((0, 2)))
    t, grid = of_cars()
    with pytest.raises(DataError, match="4 dimensions, the trade-offs 2"):
        grid.snap(t[:, :2])
    with pytest.raises(DataError, match="4 numbers, some of them positive"):
        grid_loss(grid, t, np.zeros(4))
    with pytest.raises(DataError, match='given for "height"; the dimensions are dimension 1'):
        LevelGrid.of(t, levels={"height": 3})


def test_json():
    t, grid = of_cars({"price": 5})
    again = LevelGrid.from_dict(json.loads(json.dumps(grid.to_dict())))
    assert again.to_dict() == grid.to_dict()
    np.testing.assert_array_equal(again.snap(t)[0], grid.snap(t)[0])
