"""One Gaussian process a person: predilect without a consensus and without what people have in common.

The prior covariance of a person's utilities is that of the items' features (or independent items), with one scale,
feature weight and length scale for everybody, chosen as ``Population`` chooses them. A belief in it that outweighs any
number of people keeps it fixed, and the consensus is held at zero: nothing but the prior's few numbers is shared. The
loops over people are the compiled ones, so that many thousand people take seconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.predilect_model import PredilectModel
from benchmarks.task import Task
from predilect.data import Comparisons

__all__ = ["PerPerson"]

# Belief in the prior covariance, in people; prior variance of the consensus.
STRENGTH, CONSENSUS_SCALE = 1e9, 1e-6
# Log-probabilities that differ by less are equal: the consensus is not quite zero, and its sign would decide pairs of
# which the person's own answers say nothing.
SAME = 1e-4


class PerPerson(PredilectModel):
    """``Population`` held to a process a person."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, strength=STRENGTH, consensus_variance=CONSENSUS_SCALE)

    def log_proba(self, test: Comparisons) -> npt.NDArray[np.float64]:
        """See :class:`benchmarks.models.Fitted`."""
        log_proba = super().log_proba(test)
        same = np.abs(log_proba[:, 0] - log_proba[:, 2]) < SAME
        log_proba[same, 0] = log_proba[same, 2] = np.logaddexp(log_proba[same, 0], log_proba[same, 2]) - np.log(2.0)
        return log_proba
