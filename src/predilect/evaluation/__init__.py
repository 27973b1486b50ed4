"""Measures of predictions, paired differences of two models, and the verdict.

>>> import numpy as np
>>> from predilect.evaluation import accuracy, log_loss
>>> log_proba = np.log([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])  # left, tie, right
>>> accuracy([1, 0], log_proba)
0.5
>>> round(log_loss([1, 0], log_proba), 4)
1.0397
"""

from predilect.evaluation.judging import judge
from predilect.evaluation.metrics import (
    CalibrationBins,
    PairedDifference,
    accuracy,
    answer_losses,
    brier,
    calibration_bins,
    calibration_error,
    kendall_tau_per_person,
    kendall_tau_pooled,
    log_loss,
    paired_difference,
    strict_accuracy,
    tie_share_log_proba,
)
from predilect.evaluation.verdict import Contest, Verdict

__all__ = [
    "CalibrationBins",
    "Contest",
    "PairedDifference",
    "Verdict",
    "accuracy",
    "answer_losses",
    "brier",
    "calibration_bins",
    "calibration_error",
    "judge",
    "kendall_tau_per_person",
    "kendall_tau_pooled",
    "log_loss",
    "paired_difference",
    "strict_accuracy",
    "tie_share_log_proba",
]
