"""One Gaussian process a person: predilect without a consensus and without what people have in common.

The prior covariance of a person's utilities is that of the items' features (or independent items), with one scale,
feature weight and length scale for everybody, chosen as ``Population`` chooses them. A belief in it that outweighs any
number of people keeps it fixed, and the consensus is held at zero: nothing but the prior's few numbers is shared. The
loops over people are the compiled ones, so that many thousand people take seconds.
"""

from __future__ import annotations

from benchmarks.predilect_model import PredilectModel
from benchmarks.task import Task

__all__ = ["per_person"]

# Belief in the prior covariance, in people; prior variance of the consensus.
STRENGTH, CONSENSUS_SCALE = 1e9, 1e-6


def per_person(task: Task) -> PredilectModel:
    """Fit it."""
    return PredilectModel(task, strength=STRENGTH, consensus_scale=CONSENSUS_SCALE)
