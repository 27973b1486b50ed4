"""Convergence of chains: split R-hat and effective sample size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from predilect._base.types import FloatArray

R_HAT = 1.05  # split R-hat up to which chains agree
WORST, FEWEST = 1.1, 50  # split R-hat and effective sample size beyond which nothing can be read from draws


def split_chains(draws: FloatArray) -> FloatArray:
    """Halves of chains (n_chains, n_draws, ...) as chains of their own."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def r_hat(draws: FloatArray) -> FloatArray:
    """Split R-hat of each quantity of chains (n_chains, n_draws, ...); 1 for what does not vary."""
    halves = split_chains(draws)
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    varies = within > 0.0
    ratio = np.divide(between, within, out=np.where(between > 0.0, np.inf, 0.0), where=varies)
    return np.asarray(np.sqrt(np.where(varies, (n - 1) / n, 1.0) + ratio))


def effective_size(draws: FloatArray) -> FloatArray:
    """Effective number of independent draws of each quantity, by Geyer's initial monotone sequence over all chains."""
    halves = split_chains(draws)
    m, n = halves.shape[:2]
    flat = halves.reshape(m, n, -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(flat, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(power, axis=1)[:, :n].mean(axis=0) / n
    total = covariance[0] + halves.reshape(m, n, -1).mean(axis=1).var(axis=0, ddof=1)
    found = np.full(flat.shape[2], float(m * n))
    for k in np.flatnonzero(total > 0.0):
        rho = 1.0 - (covariance[0, k] - covariance[:, k]) / total[k]
        pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
        below = np.flatnonzero(pairs < 0.0)
        pairs = np.minimum.accumulate(pairs[: below[0]] if len(below) else pairs)
        found[k] = m * n / max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(m * n + 10.0))
    return found.reshape(halves.shape[2:])


def worst_of(found: Mapping[str, Any]) -> tuple[float, float]:
    """The largest split R-hat and the smallest effective sample size of means and variances of the population."""
    largest = [float(x) for name in ("r_hat_means", "r_hat_variances") for x in found[name]]
    least = [float(x) for name in ("effective_size_means", "effective_size_variances") for x in found[name]]
    return max(largest, default=1.0), min(least, default=np.inf)


def why_unusable(largest: float, least: float) -> str:
    """Why nothing can be read from draws with these, in words; empty where it can."""
    faults = [] if largest <= WORST else [f"a split R-hat of {largest:.3g} is above {WORST}"]
    faults += [] if least >= FEWEST else [f"an effective sample size of {least:.0f} is below {FEWEST}"]
    return ", and ".join(faults)


def caution(found: Mapping[str, Any]) -> str:
    """What a reader must know first of chains that do not agree, in words; empty where they do."""
    why = why_unusable(*worst_of(found))
    of_means = max(found["r_hat_means"], default=1.0)
    said = f"Not usable: {why}." if why else ""
    if not said and of_means >= R_HAT:
        said = f"To be read with care: chains do not agree on means, whose largest split R-hat is {of_means:.3f}."
    return said and f"{said} Ask for more sweeps (n_draws), or for fewer attributes."
