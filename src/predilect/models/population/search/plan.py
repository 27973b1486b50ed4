"""What a fit learns from, and what the caller fixed: handed from training to the fit of each fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from predilect._base.progress import Watcher
from predilect._base.types import FloatArray
from predilect.data import Comparisons
from predilect.data.content import keys_of_answers
from predilect.data.features import FeatureSpace
from predilect.data.splits import some_people, with_items_of
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.models.population.prior import Functions

if TYPE_CHECKING:
    from predilect.models.population.segments import Segments


@dataclass(frozen=True, slots=True)
class Plan:
    """Answers with what is known of their items and people, and all that the caller fixed."""

    answers: Comparisons
    space: FeatureSpace  # of the items
    traits: FloatArray | None = None  # of people, uncorrelated, (n_users, n_traits)
    traits_must: bool = False  # used even where held-out answers do not gain by them
    segments: Segments | None = None  # join in at the final fit
    given: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters that are fixed
    length_scale: float = 1.0  # where the search for ℓ starts
    basis: str = "auto"
    n_inducing: int | None = None
    delta: float | None = None  # the tie threshold; None learns it
    tolerance: float | None = None  # None grows with the number of answers beyond 5 000
    max_iter: int = 300
    random_state: int = 0
    executor: ThreadPoolExecutor | None = None
    watch: Watcher | None = None
    likelihood: type[PairLikelihood] = Probit
    ties: bool = False  # ties may come, even if none has been seen
    n_ties: float = 0.0  # answers, ties all of them, that come after the prior

    @property
    def awaits_ties(self) -> bool:
        """Whether ties may come of which nothing is known yet."""
        return self.ties and self.delta is None and not self.answers.has_ties and not self.answers.grades

    def keys(self) -> Any:
        """What tells answers apart whatever their items and people are called."""
        return keys_of_answers(self.answers, self.space)

    def some(self, seed: int | SeedSequence | np.random.Generator, most: int) -> Plan:
        """The same for at most so many people, drawn by chance; itself where there are no more."""
        answers, codes = some_people(self.answers, np.random.default_rng(seed), most, keys=self.keys())
        if answers is self.answers:
            return self
        return replace(self, answers=answers, traits=None if self.traits is None else self.traits[codes])

    def for_bases(self, bases: Sequence[Functions | None]) -> Plan:
        """The same without the items that nobody was asked about, which only cost time unless they are a basis."""
        if None in bases:
            return self
        answers, space = with_items_of(self.answers, self.space)
        return replace(self, answers=answers, space=space)
