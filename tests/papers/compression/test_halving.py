"""Moments in half the bytes: what differences lose, and that nothing is lost twice."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.gaussian.dense import pack_triangle, unpack_triangle
from predilect.papers.compression.storage import halved, unhalved

SIZES = [3, 0, 1, 5, 5]
PTR = np.concatenate([[0], np.cumsum(SIZES)])


def matrices(scale: float = 1.0):
    """Covariances with a large constant that no difference sees, and two items that are all but the same."""
    rng = np.random.default_rng(0)
    out = []
    for n in SIZES:
        A = rng.standard_normal((n, n))
        if n > 3:
            A[3] = A[1] + 1e-4 * A[3]
        out.append(scale * (A @ A.T + 50.0))
    return out


def differences(C):
    d = np.diagonal(C)
    return d[:, None] + d - 2.0 * C


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_variances_of_differences_keep_three_digits_however_small_they_are(scale):
    C = matrices(scale)
    arrays = halved(np.concatenate([pack_triangle(c) for c in C]), PTR)
    found = unhalved(arrays, PTR)
    assert arrays["variance"].dtype == np.float32
    assert arrays["difference"].dtype == np.float16
    assert (
        sum(array.nbytes for array in arrays.values()) == 4 * sum(SIZES) + 2 * sum(n * (n - 1) // 2 for n in SIZES) + 8
    )
    start = 0
    for c in C:
        size = len(c) * (len(c) + 1) // 2
        back = unpack_triangle(found[start : start + size])
        start += size
        np.testing.assert_allclose(np.diagonal(back), np.diagonal(c), rtol=2.0**-24)
        # The two items that are all but the same: 1e-8, too little for all the bits beside the largest.
        np.testing.assert_allclose(differences(back), differences(c), rtol=2.0**-11, atol=2.0**-39 * 100.0 * scale)
        assert (differences(back) >= -1e-13 * scale).all()


def test_a_second_time_changes_nothing():
    once = unhalved(halved(np.concatenate([pack_triangle(c) for c in matrices()]), PTR), PTR)
    np.testing.assert_array_equal(unhalved(halved(once, PTR), PTR), once)


def test_nobody_and_nothing():
    for ptr in (np.array([0]), np.array([0, 0, 0]), np.array([0, 1])):
        triangles = np.full(ptr[-1], 2.0)
        np.testing.assert_array_equal(unhalved(halved(triangles, ptr), ptr), triangles)
    same = np.ones(3)  # two items that are one
    np.testing.assert_array_equal(unhalved(halved(same, np.array([0, 2])), np.array([0, 2])), same)


def test_a_damaged_file_is_refused():
    arrays = halved(np.concatenate([pack_triangle(c) for c in matrices()]), PTR)
    with pytest.raises(ValueError, match="14 kept items, but 14 variances and 22 differences"):
        unhalved(arrays | {"difference": arrays["difference"][:-1]}, PTR)
