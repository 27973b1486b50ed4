from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from predilect.data import ItemFeatures, PersonFeatures, Vocabulary
from predilect.errors import DataError, DataWarning
from tolerances import EXACT

FRAME = {
    "item": ["c", "a", "b", "d"],
    "size": [3.0, 1.0, None, 5.0],
    "kind": ["x", "y", "x", None],
    "new": [True, False, True, False],
    "same": [7, 7, 7, 7],
}


def test_columns_are_standardised_and_aligned():
    features = ItemFeatures.from_frame(FRAME)
    assert features.ids.ids == ["a", "b", "c", "d"]
    assert features.columns == ["size", "size missing", "kind=x", "kind=y", "new"]
    assert features.n_columns_before_constants == 6
    np.testing.assert_allclose(features.matrix.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(features.matrix[:, 1:].std(axis=0), 1)
    size = np.array([1.0, 0, 3, 5])
    np.testing.assert_allclose(features.matrix[:, 0], np.where(size > 0, (size - 3) / np.sqrt(8 / 3), 0))
    assert any('"same"' in line for line in features.report)
    with pytest.raises(ValueError, match="read-only"):
        features.matrix[0, 0] = 1


def test_missing_is_the_mean_and_order_does_not_matter():
    shuffled = {name: [column[k] for k in (3, 1, 0, 2)] for name, column in FRAME.items()}
    first, second = ItemFeatures.from_frame(FRAME), ItemFeatures.from_frame(pd.DataFrame(shuffled))
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert first.matrix[1, 0] == 0.0


def test_new_items_are_encoded_the_same_also_after_json():
    features = ItemFeatures.from_frame(FRAME)
    again = ItemFeatures.from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(again.matrix, features.matrix)
    for one in (features, again):
        np.testing.assert_allclose(one.transform(pl.DataFrame(FRAME))[[1, 2, 0, 3]], features.matrix)
    with pytest.warns(DataWarning, match=r'1 values belong to no known category \(first: "z"\)'):
        row = features.transform({"size": [3.0], "kind": ["z"], "new": [True], "more": [1]})
    no_kind = features.transform({"size": [3.0], "kind": [None], "new": [True]})
    np.testing.assert_array_equal(row, no_kind)
    whole = ItemFeatures.from_frame({"item": [1, 2], "size": [1.0, 3.0], "length": [2.0, 8.0]})
    with pytest.warns(DataWarning, match='^Column "size": 1 missing value set to the mean.$'):
        filled = whole.transform({"size": [None, 3.0, None], "length": [2.0, 8.0, None]})
    np.testing.assert_array_equal(filled[:, 0], [0.0, 1.0, 0.0])  # the last is described by nothing
    with pytest.raises(DataError, match=r'new items lack the columns "kind", "new"; their columns are "size"\. Give'):
        features.transform({"size": [1.0]})
    with pytest.raises(DataError, match=r'held numbers .* no number in 4 rows \(first: "big"\)'):
        features.transform({**FRAME, "size": ["big"] * 4})


def test_features_for_half_the_items():
    features = ItemFeatures.from_frame(FRAME)
    matrix, has = features.align(Vocabulary(["a", "b", "y", "z"]))
    assert has.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(matrix[:2], features.matrix[:2])
    assert (matrix[2:] == 0).all()
    text = ItemFeatures.from_frame({"item": ["7", "8"], "x": [1, 2]})
    assert text.align(Vocabulary([7, 9]))[1].tolist() == [True, False]


TINY = 5e-324  # the smallest number above 0


@pytest.mark.parametrize("values", [
    [1e300, 1.0], [1e160, 1.0, -3e159], [1.7e308, 1.6e308, 1e308], [8e307, -8e307, 1.0], [1e300, 1.0, 1e-300],
    [1e-307, 2e-307, 5e-307, 0.0], [1e-170, 3e-170, 2e-170, 1e-170], [2e-320, 1e-300, 1.0],
])  # fmt: skip
@pytest.mark.parametrize("kind", [np.array, list, lambda values: pl.Series(values, dtype=pl.Float64)])
def test_very_large_and_very_small_numbers_are_standardised_as_any_others(values, kind):
    features = ItemFeatures.from_frame({"item": [f"{k}" for k in range(len(values))], "x": kind(values)})
    exact = [Fraction(value) for value in values]
    centre = sum(exact) / len(exact)
    off = [value - centre for value in exact]
    largest = max(map(abs, off))
    mean_square = sum((one / largest) ** 2 for one in off) / len(off)
    expected = [float(one / largest) / math.sqrt(mean_square) for one in off]
    np.testing.assert_allclose(features.matrix[:, 0], expected, rtol=0, atol=EXACT)
    np.testing.assert_array_equal(features.transform({"x": kind(values)}), features.matrix)
    again = ItemFeatures.from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(again.matrix, features.matrix)


def test_numbers_whose_spread_is_no_number_are_refused_and_those_without_one_are_constant():
    ids = ["a", "b", "c"]
    with pytest.raises(DataError, match=r'feature "x" .*from -1e\+308 to 1e\+308.*other unit'):
        ItemFeatures.from_frame({"item": ids, "x": [1e308, -1e308, 0.0]})
    for constant in ([1e308] * 3, [TINY, 0.0, TINY], [1e-310, 3e-310, 0.0], [1e300, 1e300, np.nextafter(1e300, 0.0)]):
        assert ItemFeatures.from_frame({"item": ids, "x": constant, "y": [1, 2, 3]}).sources == ["y"]
    cut = ItemFeatures.from_frame({"item": ids, "x": [1e300, 1.0, 3e300]}, piecewise={"x": [2e300]})
    np.testing.assert_allclose(cut.matrix.std(axis=0), 1.0)
    with pytest.raises(DataError, match=r'feature "x" .*other unit'):
        ItemFeatures.from_frame({"item": ids, "x": [1.7e308, -1.7e308, 0.0]}, piecewise={"x": [-1.5e308]})


def test_a_new_number_too_far_from_all_others_is_refused_and_one_within_is_not():
    features = ItemFeatures.from_frame({"item": ["a", "b"], "x": [1e-300, 2e-300]})
    with pytest.raises(DataError, match=r'feature "x" is 1e\+300 in row 2, .* standard deviation 5e-301'):
        features.transform({"x": [1e-300, 1e300]})
    with pytest.raises(DataError, match="Is it in the same unit"):
        ItemFeatures.from_frame({"item": ["a", "b"], "x": [1.0, 2.0]}).transform({"x": [1e155]})
    large = ItemFeatures.from_frame({"item": ["a", "b"], "x": [1e308, 2e307]})
    np.testing.assert_allclose(large.transform({"x": [1e308, -1e308]})[:, 0], [1.0, -4.0], rtol=0, atol=EXACT)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_feature(value):
    with pytest.raises(DataError, match=r'feature "size" is infinite in 1 row \(first: item b'):
        ItemFeatures.from_frame({"item": ["a", "b"], "size": [1.0, value]})
    with pytest.raises(DataError, match="infinite"):
        ItemFeatures.from_frame({"item": ["a", "b"], "size": [1.0, 2.0]}).transform({"size": [value]})


def test_repeated_items():
    frame = {"item": ["a", "b", "a"], "size": [1, 2, 1]}
    assert len(ItemFeatures.from_frame(frame)) == 2
    frame["size"][2] = 9
    with pytest.raises(DataError, match=r'differ in column "size" \(first: a, 1 and 9\)'):
        ItemFeatures.from_frame(frame)


def test_constant_free_text_and_other_types():
    n = 60
    frame = pl.DataFrame({
        "item": [f"i{k}" for k in range(n)],
        "text": [f"some text {k}" for k in range(n)],
        "flat": [0.1] * n,
        "day": [None] * n,
        "list": [[1, 2]] * n,
    })  # fmt: skip
    features = ItemFeatures.from_frame(frame)
    assert features.matrix.shape == (n, 0)
    told = " ".join(features.report)
    for words in ('"text": free text', '"flat"', '"list": values of type', "No usable feature"):
        assert words in told


def test_integer_labels_and_people():
    frame = {"user": [1, 2, 3], "region": [10, 20, 30]}
    assert PersonFeatures.from_frame(frame).columns == ["region"]
    assert PersonFeatures.from_frame(frame, categorical=["region"]).columns == [
        "region=10", "region=20", "region=30"]  # fmt: skip
    with pytest.raises(DataError, match="found no column with the item ids"):
        ItemFeatures.from_frame(frame)
    with pytest.raises(DataError, match="not there: age"):
        PersonFeatures.from_frame(frame, categorical=["age"])
    with pytest.raises(DataError, match="1 missing ids"):
        PersonFeatures.from_frame({"user": ["a", None], "x": [1, 2]})


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_a_sparse_matrix_is_refused_with_advice(kind):
    matrix = kind((4, 30_000))
    for encode in (ItemFeatures.from_frame, ItemFeatures.from_frame(FRAME).transform):
        with pytest.raises(DataError, match=r"item features, got a sparse .*TruncatedSVD"):
            encode(matrix)
    with pytest.raises(DataError, match="person features"):
        PersonFeatures.from_frame(matrix)


def test_an_item_without_any_feature_has_one_column_of_its_own():
    """None of these: a constant, and not a gap in every attribute."""
    table = {"item": ["a", "b", "None"], "price": [1.0, 2.0, None], "size": [3, 1, None], "brand": ["x", "y", None]}
    features = ItemFeatures.from_frame(table)
    assert features.columns == ["price", "None", "size", "brand=x", "brand=y"]
    assert features.ids.ids[0] == "None"
    assert (features.matrix[0, [0, 2]] == 0.0).all()
    np.testing.assert_array_equal(features.transform(table)[[2, 0, 1]], features.matrix)
    assert any('the constant of "None"' in line for line in features.report)
    more = {"item": ["a", "b", "None", "c"], "price": [1.0, 2.0, None, 3.0], "size": [3, 1, None, None]}
    gap = ItemFeatures.from_frame(more | {"brand": ["x", "y", None, "x"]})
    assert gap.columns == ["price", "None", "size", "size missing", "brand=x", "brand=y"]
    words = ItemFeatures.from_frame({"item": ["a", "b", "None"], "brand": ["x", "y", None], "kind": ["u", "u", None]})
    assert "None" in words.columns


def test_the_outside_option_has_its_constant_beside_a_lone_attribute():
    features = ItemFeatures.from_frame({"item": ["a", "b", "None"], "price": [1.0, 3.0, None]})
    assert features.columns == ["price", "None"]
    assert any('the constant of "None"' in line for line in features.report)
    other = ItemFeatures.from_frame({"item": ["a", "b", "c"], "price": [1.0, 3.0, None]})
    assert other.columns == ["price", "price missing"]


def test_pieces_of_a_number_add_up_to_it():
    prices = [1.0, 2.5, 3.0, 4.0, 7.0]
    features = ItemFeatures.from_frame({"item": list("abcde"), "price": prices}, piecewise={"price": [3, 5]})
    assert features.columns == ["price up to 3", "price 3 to 5", "price from 5"]
    assert features.sources == ["price"]
    raw = features.matrix * [one.scale for one in features.outputs] + [one.centre for one in features.outputs]
    np.testing.assert_allclose(raw, [[1, 0, 0], [2.5, 0, 0], [3, 0, 0], [3, 1, 0], [3, 2, 2]])
    again = ItemFeatures.from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(again.transform({"price": prices}), features.matrix)
    np.testing.assert_allclose(raw.sum(axis=1), prices)


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({"price": [9.0]}, '"price" lies between 1 and 7, and is cut at 9'),
        ({"price": [5, 3]}, "ascending"),
        ({"price": []}, "ascending"),
        ({"brand": [1]}, '"brand" is not a number'),
        ({"prise": [1]}, "not there: prise; there are price, brand"),
    ],
)
def test_cuts_that_cannot_be_made_are_refused(cuts, message):
    with pytest.raises(DataError, match=message):
        ItemFeatures.from_frame({"item": [1, 2], "price": [1.0, 7.0], "brand": ["x", "y"]}, piecewise=cuts)
