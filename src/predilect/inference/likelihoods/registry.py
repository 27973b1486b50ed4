"""The table of likelihoods of pairs, by the names that saved models have for them."""

from __future__ import annotations

from predilect.inference.likelihoods.logit import Logit
from predilect.inference.likelihoods.views import PairLikelihood, Probit

LIKELIHOODS: dict[str, type[PairLikelihood]] = {likelihood.name: likelihood for likelihood in (Probit, Logit)}
