"""GP classification of each person's trade-offs alone: GaSPK's kernel, and nothing that people have in common.

Binary classification in the sense of Rasmussen and Williams: the trade-off t of a question is the input, whether it was
accepted the class, f_u ~ GP(0, k) with a probit. Length-scales by the same median rule as in :class:`predilect.GaSPK`;
the amplitude, one for everybody, is that of 1, 3, 10 and 30 with the highest log evidence, summed over people.
Trade-offs are folded, as there: f(-t) = -f(t).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.task import Task
from predilect.data import Comparisons, ItemFeatures
from predilect.inference.gaussian.kernels import Antisymmetric, Kernel, Scaled, Stationary
from predilect.inference.latent.ep import ep
from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.single import Problem, SingleLatent
from predilect.inference.likelihoods.probit import tilted
from predilect.papers.gaspk.prior import length_scales_by_rule
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs

__all__ = ["PersonClassifier"]

FloatArray = npt.NDArray[np.float64]

AMPLITUDES = (1.0, 3.0, 10.0, 30.0)
MOST_PEOPLE_TRIED = 200
_PAIRS_AT_ONCE = 1000
_METHODS = {"ep": ep, "laplace": laplace}


class PersonClassifier:
    """See :class:`benchmarks.models.Fitted`; people without training answers get ½.

    Parameters
    ----------
    task : Task
        Without ties.
    method : {"ep", "laplace"}, default "ep"
    amplitude : float, optional
        Of the kernel; chosen by default.
    rule : str, default "median"
        Of the length-scales, see :class:`predilect.GaSPK`.
    """

    def __init__(self, task: Task, method: str = "ep", amplitude: float | None = None, rule: str = "median") -> None:
        train = task.train
        if train.has_ties or task.test.has_ties:
            raise ValueError("GP classification has no ties")
        features = None if task.items is None else ItemFeatures.from_frame(task.items)
        self.trade_offs = fit_trade_offs(features, train)
        self.items, self.users = train.items, train.users
        self.matrix = None if features is None else features.align(train.items)[0]
        found = self.trade_offs.points(self.matrix, train.left, train.right)
        self.points = found.points
        scales = length_scales_by_rule(self.points, rule, True, 0)
        start = np.searchsorted(train.user, np.arange(train.n_users + 1))
        outcome = train.outcome * found.sign
        rows = [slice(start[u], start[u + 1]) for u in range(train.n_users)]

        def kernel(variance: float) -> Kernel:
            return Antisymmetric(Scaled(Stationary(scales, "squared-exponential", "product"), variance))

        def fit(u: int, k: Kernel) -> tuple[FloatArray, SingleLatent]:
            own, where = np.unique(found.code[rows[u]], return_inverse=True)
            x = self.points[own]
            return x, _METHODS[method](Problem.of(k(x), where, None, outcome[rows[u]], train.weight[rows[u]]))

        drawn = np.random.default_rng(task.seed).permutation(train.n_users)[:MOST_PEOPLE_TRIED]
        self.evidences = {
            a: float(sum(fit(int(u), kernel(a))[1].evidence for u in drawn)) for a in AMPLITUDES if amplitude is None
        }
        self.amplitude = max(self.evidences, key=self.evidences.__getitem__) if amplitude is None else float(amplitude)
        self.kernel, self.method, self.scales = kernel(self.amplitude), method, scales
        self.people = [fit(u, self.kernel) for u in range(train.n_users)]

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`benchmarks.models.Fitted`."""
        user = self.users.codes(test.users.series(), unknown="minus_one")[test.user]
        item = self.items.codes(test.items.series())
        mean, var = self._margins(user, item[test.left], item[test.right])
        ones = np.ones(len(mean), dtype=np.int8)
        return np.column_stack(
            [tilted(ones, mean, var, 0.0)[0], np.full(len(mean), -np.inf), tilted(-ones, mean, var, 0.0)[0]]
        )

    def scores(self, entries: pl.DataFrame) -> None:
        """None: evaluations of trade-offs are no utilities."""

    def report(self) -> dict[str, Any]:
        """Kernel, and how far fits went."""
        reports = [fitted.report for _, fitted in self.people]
        return {
            "method": self.method, "amplitude": self.amplitude, "length_scales": self.scales.tolist(),
            "evidences": {f"{a:g}": value for a, value in self.evidences.items()},
            "not_converged": sum(not report.converged for report in reports),
        }  # fmt: skip

    def _margins(
        self, user: npt.NDArray[Any], left: npt.NDArray[Any], right: npt.NDArray[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(t)."""
        t = self.trade_offs.pairs(self.matrix, left, right)
        mean, var = np.zeros(len(t)), np.maximum(self.kernel.diagonal(t), 0.0)
        order = np.argsort(user, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
            if not len(some) or user[some[0]] < 0:
                continue
            x, fitted = self.people[user[some[0]]]
            for part in np.split(some, range(_PAIRS_AT_ONCE, len(some), _PAIRS_AT_ONCE)):
                cross = self.kernel(t[part], x)
                mean[part], covariance = fitted.state.extend(cross, self.kernel(t[part]))
                var[part] = np.maximum(np.diag(covariance), 0.0)
        return mean, var
