"""What weights of people are worth, without a step from them."""

from __future__ import annotations

from predilect.papers.gaspk.em.weights import Climb, likeliest_weights


def standing(answers, F, weights, *, delta=0.0, executor=None) -> Climb:
    """Value and gap of the weights as they are."""
    return likeliest_weights(answers, F, start=weights, delta=delta, tolerance=1.0, max_steps=0, executor=executor)


def objective_of(*args, **options) -> float:
    """Log-likelihood of all answers in nats."""
    return float(standing(*args, **options).value.sum())
