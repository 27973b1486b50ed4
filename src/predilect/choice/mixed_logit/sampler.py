"""Hierarchical Bayes: chains of the compiled Gibbs sampler, and what is kept of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report, Watcher, tell_parts
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.diagnosis import effective_size, r_hat, why_unusable, worst_of
from predilect.choice.mixed_logit.gibbs import ClassState, Hyperprior, Kept, PeopleState, Proposals, sweeps
from predilect.choice.mixed_logit.problem import ChoiceProblem, Mixture, Start, approximation, coefficients_of, start_of

PRIOR_PEOPLE = 0.01  # how many people the prior of a mean is worth: enough to be finite where all answers agree
_KEPT = 1000  # draws of the population, of each chain
_PEOPLE_BYTES = 1e8
_CHUNKS = 20  # between which progress is told
_JITTER = 2.0  # of the starts of chains, in standard errors of the mean
_WALK = 2.4  # of a random walk, over the root of its dimension


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
    """Run chains of ``n_sweeps`` sweeps, of which the second half is kept; the same bits for any executor.

    They converged if the largest R-hat is below the ``tolerance``, and the effective sample size ``fewest`` or more.
    """
    begin = time.perf_counter()
    start = start_of(problem, PRIOR_PEOPLE)
    U, d, n = problem.n_users, problem.n_coefficients, problem.n_random
    burn = n_sweeps // 2
    thin = max(1, (n_sweeps - burn) // _KEPT)
    wanted = int(np.clip(_PEOPLE_BYTES / (4.0 * U * d), 50, 200)) // n_chains + 1
    thin_people = thin * max(1, (n_sweeps - burn) // (thin * wanted))
    seeds = np.random.SeedSequence(random_state).spawn(n_chains)
    done = [0] * n_chains

    def chain(number: int) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.float32], FloatArray]:
        rng = np.random.default_rng(seeds[number])
        people, classes = _initial(problem, start, n_classes, rng)
        n_kept = -(-(n_sweeps - burn) // thin)
        G = problem.traits.shape[1]
        kept = Kept(
            burn, thin, thin_people, np.empty((n_kept, n_classes, G, d)), np.empty((n_kept, n_classes, n, n)),
            np.empty((n_kept, n_classes)), np.empty((U, -(-(n_sweeps - burn) // thin_people), d), dtype=np.float32),
        )  # fmt: skip
        prior = Hyperprior(
            problem.traits, np.zeros((G, d)) if n_classes == 1 else start.mean,
            np.full(G, PRIOR_PEOPLE if n_classes == 1 else 1.0),  # a class may be without people
            10.0 if n_classes == 1 else 1.0, diagonal,
        )  # fmt: skip
        around = start.around
        root = np.linalg.cholesky(np.linalg.inv(start.around.curvature.sum(axis=0) + PRIOR_PEOPLE * np.eye(d)))
        along, across = _directions(start, n, diagonal)
        step = np.full((3, max(n, 1)), np.log(0.1))
        step[0] = 0.0
        edges = np.linspace(0, n_sweeps, _CHUNKS + 1).round().astype(int)
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            proposals = Proposals(
                around.linear, around.curvature, around.root * (_WALK / np.sqrt(max(n, 1))), root, along, across, step
            )
            sweeps(first, last - first, problem.rows, prior, people, classes, proposals, rng, kept)
            done[number] = last
            if last < burn and n_classes == 1:  # people's quadratics at the population as it is now
                around = approximation(problem, start.around.z, problem.traits @ classes.B[0], classes.Omega[0])
            if watch is not None:
                watch("sampling", sum(done))
                tell_parts(watch, sum(done), n_chains * n_sweeps)
        return kept.B, kept.Omega, kept.share, kept.people, step

    numbers = range(n_chains)
    chains = list(map(chain, numbers) if executor is None else executor.map(chain, numbers))
    B, Omega, share = (np.stack([np.asarray(one[k], dtype=np.float64) for one in chains]) for k in range(3))
    people = np.empty((U, sum(one[3].shape[1] for one in chains), d), dtype=np.float32)
    people[problem.people] = np.concatenate([one[3] for one in chains], axis=1)
    by_size = np.argsort(1.0 - share, axis=2, kind="stable")  # names of classes are exchanged between draws
    share = np.take_along_axis(share, by_size, 2)
    B = np.take_along_axis(B, by_size[..., None, None], 2)
    Omega = np.take_along_axis(Omega, by_size[..., None, None], 2)
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


def _directions(start: Start, n: int, diagonal: bool) -> tuple[FloatArray, FloatArray]:
    """Directions of stretches and their duals, rows, (n, n), those first of which people's answers tell the least."""
    if diagonal or not n:
        return np.eye(n), np.eye(n)
    root = np.linalg.cholesky(start.Omega)
    vectors = np.linalg.eigh(root.T @ start.around.curvature[:, :n, :n].mean(axis=0) @ root)[1]
    return np.ascontiguousarray((root @ vectors).T), np.ascontiguousarray(np.linalg.solve(root.T, vectors).T)


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
