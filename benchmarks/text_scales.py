"""GPPL and crowdGPPL with length-scales for features of texts: counts by one multiple of √D medians, vectors by more.

A median length-scale gives every column the same say. The 150 singular vectors of
:mod:`benchmarks.datasets.texts` then outvote the 52 counts, each of which says more; ``stretch`` makes theirs longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.texts import KINDS
from benchmarks.predilect_model import PredilectModel
from benchmarks.task import Task
from predilect.data import ItemFeatures
from predilect.inference.gaussian.kernels import median_length_scales

__all__ = ["TextModel", "text_length_scales"]

# Chosen by the even-numbered topics; see README.md.
MULTIPLE, STRETCH = 1.0, 2.0


def text_length_scales(
    features: ItemFeatures, multiple: float = MULTIPLE, stretch: float = STRETCH
) -> npt.NDArray[np.float64]:
    """Length-scales of all columns, shape (n_columns,): ``multiple`` √D medians, ``stretch`` times that for vectors."""
    scales = multiple * median_length_scales(features.matrix, "root")
    vector = [output.source.rpartition("_")[0] in KINDS for output in features.outputs]
    return np.where(vector, stretch * scales, scales)


class TextModel(PredilectModel):
    """An estimator with these length-scales; ``options`` are its other parameters."""

    def __init__(
        self, task: Task, name: str, multiple: float = MULTIPLE, stretch: float = STRETCH, **options: Any
    ) -> None:
        if task.items is None:
            raise ValueError(f"{task.name} has no features of items, and so no length-scales of their columns")
        self.setting = {"multiple": multiple, "stretch": stretch}
        scales = text_length_scales(ItemFeatures.from_frame(task.items), multiple, stretch)
        super().__init__(task, name, length_scale=scales, **options)

    def report(self) -> dict[str, Any]:
        """As for any estimator, and the two numbers."""
        found = super().report()
        return found | {"hyperparameters": found["hyperparameters"] | self.setting}
