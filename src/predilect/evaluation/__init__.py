"""Measures of predictions, paired differences of two models, and the verdict.

>>> import numpy as np
>>> from predilect.evaluation import accuracy, log_loss
>>> log_proba = np.log([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])  # left, tie, right
>>> accuracy([1, 0], log_proba)
0.5
>>> round(log_loss([1, 0], log_proba), 4)
1.0397
"""

from typing import TYPE_CHECKING, Any

from predilect.evaluation.holdout import holdout
from predilect.evaluation.judging import judge
from predilect.evaluation.metrics import (
    PairedDifference,
    accuracy,
    answer_losses,
    log_loss,
    neg_log_loss,
    paired_difference,
)
from predilect.evaluation.verdict import Contest, Verdict

__all__ = [
    "Contest",
    "PairedDifference",
    "Verdict",
    "accuracy",
    "answer_losses",
    "holdout",
    "judge",
    "log_loss",
    "neg_log_loss",
    "paired_difference",
    "select_attributes",
]

if TYPE_CHECKING:
    from predilect.choice.attributes import select_attributes as select_attributes


def __getattr__(name: str) -> Any:
    if name != "select_attributes":  # which opens ``predilect.choice`` when it is first used
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from predilect.choice import attributes

    return attributes.select_attributes
