"""Hierarchical Bayes: chains of the compiled Gibbs sampler, and what is kept of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report, Watcher, tell_parts
from predilect._base.text import either
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.diagnosis import effective_size, r_hat, why_unusable, worst_of
from predilect.choice.mixed_logit.gibbs import BETWEEN, Kept, sweeps
from predilect.choice.mixed_logit.problem import (
    ChoiceProblem,
    Mixture,
    Quadratics,
    Start,
    approximation,
    coefficients_of,
    spread_out,
    start_of,
)
from predilect.choice.mixed_logit.trajectories import (
    ClassState,
    Hyperprior,
    LogitQuadratics,
    PeopleState,
    Trajectories,
    packed,
    slopes_near,
)

PRIOR_PEOPLE = 0.01  # prior precision of a mean: enough to be finite where all answers agree
_KEPT = 1000  # draws of the population, of each chain
_PEOPLE_BYTES = 1e8
_CHUNKS = 20  # of a chain; progress is shown after each
_JITTER = 2.0  # of the starts of chains, in standard errors of the mean
_WALK = 2.4  # of a random walk, over the root of its dimension
_DIFFERENCE, _LEAST_CURVATURE = 1e-4, 0.1
_TRUST = 2.0  # of draws in a covariance: as much as that of the quadratics with so many draws a dimension


@dataclass(frozen=True, slots=True)
class Sample:
    """Draws of all chains: populations, and coefficients of people (U, R, d) in the order of their codes."""

    law: Mixture
    people: npt.NDArray[np.float32]
    report: Report
    diagnosis: dict[str, Any]

    def means_agree(self, largest: float) -> bool:
        """Whether no split R-hat of a mean of the population reaches ``largest``."""
        return max(self.diagnosis["r_hat_means"], default=1.0) < largest


def sample(
    problem: ChoiceProblem, *, n_classes: int, diagonal: bool, n_sweeps: int, n_chains: int, tolerance: float,
    fewest: float, random_state: int, executor: ThreadPoolExecutor | None, watch: Watcher | None,
) -> Sample:  # fmt: skip
    """Run chains of ``n_sweeps`` sweeps, of which the first third is left out; the same bits for any executor.

    They converged if the largest R-hat is below the ``tolerance``, and the effective sample size ``fewest`` or more.
    """
    begin = time.perf_counter()
    start = start_of(problem, PRIOR_PEOPLE)
    order = _order(problem, start)
    problem, start = _reordered(problem, start, order)
    U, d, n = problem.n_users, problem.n_coefficients, problem.n_random
    burn = n_sweeps // 3
    thin = max(1, (n_sweeps - burn) // _KEPT)
    wanted = int(np.clip(_PEOPLE_BYTES / (4.0 * U * d), 50, 200)) // n_chains + 1
    thin_people = thin * max(1, (n_sweeps - burn) // (thin * wanted))
    seeds = np.random.SeedSequence(random_state).spawn(n_chains)
    done = [0] * n_chains

    def chain(number: int) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.float32]]:
        rng = np.random.default_rng(seeds[number])
        people, classes = _initial(problem, start, n_classes, rng)
        n_kept = -(-(n_sweeps - burn) // thin)
        G = problem.traits.shape[1]
        kept = Kept(
            burn, thin, thin_people, np.empty((n_kept, n_classes, G, d)), np.empty((n_kept, n_classes, n, n)),
            np.empty((n_kept, n_classes)), np.empty((U, -(-(n_sweeps - burn) // thin_people), d), dtype=np.float32),
        )  # fmt: skip
        prior = _hyperprior(problem, start, n_classes, diagonal)
        around = spread_out(problem, start.around, problem.traits @ start.mean, start.Omega)
        scale = 0.5 * np.sqrt(np.diagonal(start.Omega))  # of spreads
        step = np.array([-1.0, -3.0])
        quadratics = LogitQuadratics(around.linear, around.curvature)
        H = _curvature(problem.rows, people, classes, quadratics, prior, scale)
        root = _root(H, np.empty((0, len(H))))
        trail = np.empty((0, len(root)))
        edges = np.linspace(0, n_sweeps, _CHUNKS + 1).round().astype(int)
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            how = Trajectories(scale, root, step, np.empty(((last - first) // BETWEEN + 1, len(root))))
            walk_root = around.root * (_WALK / np.sqrt(max(n, 1)))
            how.trail[:] = np.nan
            sweeps(first, last - first, problem.rows, prior, people, classes, quadratics, walk_root, how, rng, kept)
            done[number] = last
            if last < burn:
                trail = np.concatenate([trail, how.trail[np.isfinite(how.trail[:, 0])]])[-(-len(trail) // 2) :]
                if n_classes == 1:  # people's quadratics at the population as it is now
                    around = _around(problem, start, problem.traits @ classes.B[0], classes.Omega[0])
                    quadratics = LogitQuadratics(around.linear, around.curvature)
                H = 0.7 * H + 0.3 * _curvature(problem.rows, people, classes, quadratics, prior, scale)
                root = _root(H, trail)
            if watch is not None:
                watch("sampling", sum(done))
                tell_parts(watch, sum(done), n_chains * n_sweeps)
        return kept.B, kept.Omega, kept.share, kept.people

    numbers = range(n_chains)
    chains = list(map(chain, numbers) if executor is None else executor.map(chain, numbers))
    B, Omega, share = (np.stack([np.asarray(one[k], dtype=np.float64) for one in chains]) for k in range(3))
    people = np.empty((U, sum(one[3].shape[1] for one in chains), d), dtype=np.float32)
    people[problem.people] = np.concatenate([one[3] for one in chains], axis=1)
    by_size = np.argsort(1.0 - share, axis=2, kind="stable")  # names of classes are exchanged between draws
    share = np.take_along_axis(share, by_size, 2)
    B = np.take_along_axis(B, by_size[..., None, None], 2)
    Omega = np.take_along_axis(Omega, by_size[..., None, None], 2)
    back = np.argsort(order)
    B, people, Omega = B[..., back], people[..., back], Omega[..., back[:n], :][..., back[:n]]
    S = share.shape[0] * share.shape[1]
    law = Mixture(B.reshape(S, *B.shape[2:]), Omega.reshape(S, *Omega.shape[2:]), share.reshape(S, n_classes))
    average = np.eye(problem.traits.shape[1])[0]
    mean, variance = (one.reshape(*share.shape[:2], one.shape[1]) for one in law.moments(average))
    found = {
        "r_hat_means": r_hat(mean), "r_hat_variances": r_hat(variance), "effective_size_means": effective_size(mean),
        "effective_size_variances": effective_size(variance),
    }  # fmt: skip
    worst, least = worst_of(found)
    report = Report(
        "Gibbs sampler", n_sweeps, worst, tolerance, worst < tolerance and least >= fewest, 0.0,
        time.perf_counter() - begin, "(the largest split R-hat)",
        either(
            "take fewer attributes, or more sweeps: "
            f"{either('--model mixed-logit,n_draws=', 'MixedLogit(n_draws=')}...{either('', ')')}",
            "ask for more sweeps (n_draws), or for fewer attributes",
        ),
        why_unusable(worst, least),
    )  # fmt: skip
    return Sample(law, people, report, {name: value.tolist() for name, value in found.items()})


def _order(problem: ChoiceProblem, start: Start) -> IntArray:
    """Columns, those first in which people are seen to differ most: correlations with the last ones are free."""
    n = problem.n_random
    seen = np.diagonal(start.Omega) * np.diagonal(start.around.curvature.mean(axis=0))[:n]
    return np.concatenate([np.argsort(-seen, kind="stable"), np.arange(n, problem.n_coefficients)])


def _reordered(problem: ChoiceProblem, start: Start, order: IntArray) -> tuple[ChoiceProblem, Start]:
    """With the columns in another order."""
    price = int(np.flatnonzero(order == problem.price)[0]) if problem.price >= 0 else -1
    inner = order[: problem.n_random]
    problem = replace(problem, D=np.asfortranarray(problem.D[:, order]), kind=problem.kind[order], price=price)
    mean, Omega = np.ascontiguousarray(start.mean[:, order]), np.ascontiguousarray(start.Omega[np.ix_(inner, inner)])
    around = approximation(problem, start.around.z[:, order], problem.traits @ mean, Omega)
    return problem, Start(mean, Omega, around)


def _hyperprior(problem: ChoiceProblem, start: Start, n_classes: int, diagonal: bool) -> Hyperprior:
    """Priors; those of several classes are within the population as a whole, since a class may be without people."""
    d, n, one = problem.n_coefficients, problem.n_random, n_classes == 1
    precision: FloatArray = PRIOR_PEOPLE * np.eye(n) if one else np.asarray(np.linalg.inv(start.Omega))
    return Hyperprior(
        problem.traits, np.zeros((problem.traits.shape[1], d)) if one else start.mean, precision,
        PRIOR_PEOPLE if one else 1.0, 10.0 if one else 1.0, diagonal,
    )  # fmt: skip


def _around(problem: ChoiceProblem, start: Start, mean: FloatArray, Omega: FloatArray) -> Quadratics:
    """Quadratics of people in a population, about Gaussians that are near their posteriors."""
    return spread_out(problem, approximation(problem, start.around.z, mean, Omega), mean, Omega)


def _curvature(
    rows: loops.ChoiceRows, people: PeopleState, classes: ClassState, quadratics: LogitQuadratics, prior: Hyperprior,
    scale: FloatArray,
) -> FloatArray:  # fmt: skip
    """Minus the Hessian of the log density in the population's θ at the state, by differences of slopes; (D, D)."""
    K, G, d = classes.B.shape
    n = classes.Omega.shape[1]
    theta = np.empty(K * (G * n + n + (0 if prior.diagonal else n * (n - 1) // 2)) + d - n)
    packed(classes.B, classes.Omega, prior.diagonal, scale, theta)
    h = _DIFFERENCE * np.eye(len(theta))
    slopes = np.empty((2, len(theta), len(theta)))
    for side, one in zip((1.0, -1.0), slopes, strict=True):
        slopes_near(theta - side * h, rows, people, classes, quadratics, prior, scale, one)
    H = (slopes[0] - slopes[1]) / (2.0 * _DIFFERENCE)
    return np.asarray(0.5 * (H + H.T)) if np.isfinite(H).all() else np.eye(len(H))


def _root(H: FloatArray, trail: FloatArray) -> FloatArray:
    """Factor of about the covariance of θ: of a mean curvature H and draws (S, D)."""
    values, vectors = np.linalg.eigh(H)
    values = np.maximum(np.abs(values), _LEAST_CURVATURE)
    precision = (vectors * values) @ vectors.T
    if len(trail) > 1:
        weight = len(trail) / (len(trail) + _TRUST * len(H))
        of_both = (1.0 - weight) * (vectors / values) @ vectors.T + weight * np.cov(trail.T, ddof=0).reshape(H.shape)
        precision = 0.5 * (precision + np.linalg.inv(of_both))
    return np.linalg.cholesky(np.linalg.inv(precision))


def _initial(
    problem: ChoiceProblem, start: Start, n_classes: int, rng: np.random.Generator
) -> tuple[PeopleState, ClassState]:
    """A state of a chain: people near their modes, the population apart from the other chains'."""
    U, d, n = problem.n_users, problem.n_coefficients, problem.n_random
    z = start.around.z.copy()
    if n:
        z[:, :n] += np.einsum("uij,uj->ui", start.around.root, rng.standard_normal((U, n)))
    B = np.repeat(start.mean[None], n_classes, axis=0)
    noise = rng.standard_normal((n_classes, d)) * _JITTER
    error = np.linalg.inv(start.around.curvature.sum(axis=0) + PRIOR_PEOPLE * np.eye(d))
    error[:n, :n] += start.Omega / U
    B[:, 0] += noise @ np.linalg.cholesky(error).T
    B[:, :, n:] = B[:1, :, n:]
    z[:, n:] = B[0, 0, n:]
    label = np.zeros(U, dtype=np.int64)
    if n_classes > 1:  # quantiles of people along the direction in which they differ most
        deviation = start.around.z[:, :n] - (problem.traits @ start.mean)[:, :n]
        along = deviation @ np.linalg.eigh(start.Omega)[1][:, -1] if n else np.zeros(U)
        along = along + 0.3 * along.std() * rng.standard_normal(U)
        label = (np.argsort(np.argsort(along)) * n_classes // U).astype(np.int64)
    c = np.ascontiguousarray(coefficients_of(z, problem.kind, problem.price))
    value = loops.log_likelihoods(c, problem.rows)
    Omega = np.repeat(start.Omega[None], n_classes, axis=0)
    return PeopleState(z, c, value, label), ClassState(B, Omega, np.full(n_classes, 1.0 / n_classes))
