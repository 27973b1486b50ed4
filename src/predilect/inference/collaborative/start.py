"""Start of the paper's variational step: singular vectors of the margins that the sites ask for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from predilect.inference.factor.answers import FactorAnswers
from predilect.posteriors.sites import Sites

__all__ = ["singular_start"]

FloatArray = npt.NDArray[np.float64]

_DENSE = 600  # people or pairs, whichever are fewer
_TOO_SMALL = 1e-3  # of the largest singular value


def singular_start(
    answers: FactorAnswers, sites: Sites, n_functions: int, prior_var: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Means of weights (n_users, D) and of values (n_pairs, D): truncated singular value decomposition.

    Of the means of the messages f̂1 as a matrix of people and pairs, zeros where nobody answered. Functions beyond the
    rank start at random, with ``prior_var`` (n_pairs,), as all at zero would stay there. collaborative.md 3: what the
    authors' code does. Dense up to 600 people or pairs, by Lanczos beyond.
    """
    shape = (answers.n_users, len(answers.left))
    all_copies = sites.times(answers.weight)
    total = coo_array((all_copies.precision, (answers.user, answers.pair)), shape=shape).tocsr()
    asked = coo_array((all_copies.linear, (answers.user, answers.pair)), shape=shape).tocsr()
    asked.sum_duplicates()
    total.sum_duplicates()
    asked.data /= total.data  # both have the same nonzero entries, in the same order
    k = min(n_functions, *shape)
    if min(shape) <= _DENSE:
        left, values, right = np.linalg.svd(asked.toarray(), full_matrices=False)
        left, values, right = left[:, :k], values[:k], right[:k]
    else:
        left, values, right = svds(asked.astype(np.float64), k=min(k, min(shape) - 1), random_state=rng)
        order = np.argsort(-values)
        left, values, right = left[:, order], values[order], right[order]
    keep = values > _TOO_SMALL * values.max(initial=0.0)
    root = np.sqrt(values[keep])
    n_random = n_functions - len(root)
    w = np.hstack([left[:, keep] * root, rng.standard_normal((shape[0], n_random))])
    rest = np.sqrt(prior_var)[:, None] * rng.standard_normal((shape[1], n_random))
    return w, np.hstack([(root[:, None] * right[keep]).T, rest])
