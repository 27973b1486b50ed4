"""Sums over the answers of a user with many, between the factorisations of the dense form.

``left``, ``right``: positions of each answer's items; X: their design (+1 at left, -1 at right). Loops run along rows.
"""

from __future__ import annotations

from predilect._compile import kernel

__all__ = ["add_person", "gather", "pair_covariance", "pair_variances", "weighted_rows"]


@kernel
def pair_covariance(S, items, left, right, row, out):
    """X S Xᵀ into ``out`` (n, n), with S among ``items`` (k) of a larger matrix; ``row`` is scratch (k)."""
    for p in range(left.shape[0]):
        a = items[left[p]]
        b = items[right[p]]
        for j in range(items.shape[0]):
            row[j] = S[a, items[j]] - S[b, items[j]]
        for q in range(left.shape[0]):
            out[p, q] = row[left[q]] - row[right[q]]


@kernel
def pair_variances(A, left, right, out):
    """Squared length of each row of X A into ``out`` (n): no difference of large numbers, however near the items."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        total = 0.0
        for j in range(A.shape[1]):
            difference = A[a, j] - A[b, j]
            total += difference * difference
        out[p] = total


@kernel
def gather(A, left, right, out):
    """Add Xᵀ A to ``out`` (k, m) for A (n, m)."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        for j in range(A.shape[1]):
            out[a, j] += A[p, j]
            out[b, j] -= A[p, j]


@kernel
def weighted_rows(A, left, right, weight, out):
    """Add Xᵀ diag(weight) X A to ``out`` (k, m) for A (k, m)."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        for j in range(A.shape[1]):
            flow = weight[p] * (A[a, j] - A[b, j])
            out[a, j] += flow
            out[b, j] -= flow


@kernel
def add_person(items, x, Q, H, D):
    """Add Q to ``H`` and x xᵀ - Q to ``D`` among a person's items, which ascend: their lower triangles."""
    for i in range(items.shape[0]):
        for j in range(i + 1):
            H[items[i], items[j]] += Q[i, j]
            D[items[i], items[j]] += x[i] * x[j] - Q[i, j]
