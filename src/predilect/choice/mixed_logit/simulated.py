"""Maximum simulated likelihood: Halton draws, the analytic gradient, BFGS."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from predilect._base.progress import Report, Watcher
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.attributes import NORMAL, TRIANGULAR
from predilect.choice.mixed_logit.problem import ChoiceProblem, Mixture, coefficients_of, start_of, triangular
from predilect.choice.mixed_logit.sampler import Sample

_DROPPED = 10  # of the first points of a Halton sequence
_RIDGE = 1e-4  # prior precision of a mean, in units of its column: finite where all answers agree
_STEP = 1e-5  # of differences of the gradient
_LEAST_CURVATURE = 1e-2  # of an estimate: no standard error is beyond 10 units of a column
_SINGULAR = 1e-5  # least diagonal of a factor whose changes are looked at
_KEPT_PEOPLE, _KEPT_LAWS = 200, 400
_FEW_DRAWS = 10.0  # that a person's coefficients rest on


def halton(problem: ChoiceProblem, n_draws: int) -> FloatArray:
    """Standardised draws (U, n_draws, n), a stretch of the sequence for each person."""
    n_users, n_random = problem.n_users, problem.n_random
    if not n_random:
        return np.zeros((n_users, 1, 0))
    points = qmc.Halton(n_random, scramble=False)
    points.fast_forward(_DROPPED)
    found = ndtri(points.random(n_users * n_draws)).reshape(n_users, n_draws, n_random)
    is_triangular = problem.kind[:n_random] == TRIANGULAR
    found[..., is_triangular] = triangular(found[..., is_triangular])
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulated log-likelihood of parameters: B (G, d), of which traits move the first n columns, and spreads.

    Parameters stand in one vector: the d means, the effects of traits by rows, then the lower triangle of the factor L
    of Ω by rows, or its diagonal.
    """

    problem: ChoiceProblem
    draws: FloatArray  # (U, R, n)
    diagonal: bool

    @property
    def entries(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Rows and columns of the free entries of L."""
        n = self.problem.n_random
        return np.diag_indices(n) if self.diagonal else np.tril_indices(n)  # type: ignore[return-value]

    def unpacked(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B (G, d) and L (n, n)."""
        G, d, n = self.problem.traits.shape[1], self.problem.n_coefficients, self.problem.n_random
        B, L = np.zeros((G, d)), np.zeros((n, n))
        B[0] = theta[:d]
        B[1:, :n] = theta[d : d + (G - 1) * n].reshape(G - 1, n)
        L[self.entries] = theta[d + (G - 1) * n :]
        return B, L

    def packed(self, B: FloatArray, L: FloatArray) -> FloatArray:
        """The inverse of :meth:`unpacked`."""
        return np.concatenate([B[0], B[1:, : self.problem.n_random].ravel(), L[self.entries]])

    def coefficients(self, u: int, B: FloatArray, L: FloatArray) -> FloatArray:
        """Of a person's draws, (R, d)."""
        p = self.problem
        z = np.repeat((p.traits[u] @ B)[None], self.draws.shape[1], axis=0)
        z[:, : p.n_random] += self.draws[u] @ L.T
        return coefficients_of(z, p.kind, p.price)

    def at(self, B: FloatArray, L: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-likelihoods at draws (U, R); slopes of people's means in the mean (U, d), and in L (U, n, n)."""
        p = self.problem
        U, d, n = p.n_users, p.n_coefficients, p.n_random
        at_draws, of_means, of_L = np.empty((U, self.draws.shape[1])), np.empty((U, d)), np.empty((U, n, n))
        rows = p.rows._replace(kind=np.where(p.kind == TRIANGULAR, NORMAL, p.kind).astype(np.int8))
        loops.over_draws(p.traits @ B, L, self.draws, rows, at_draws, of_means, of_L)
        return at_draws, of_means, of_L

    def of_people(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-likelihoods of people (U,), their gradients (U, n_parameters), and log-likelihoods at draws (U, R)."""
        p = self.problem
        at_draws, of_means, of_L = self.at(*self.unpacked(theta))
        of_traits = p.traits[:, 1:, None] * of_means[:, None, : p.n_random]
        slopes = np.hstack([of_means, of_traits.reshape(p.n_users, -1), of_L[:, *self.entries]])
        return log_means(at_draws), slopes, at_draws

    def objective(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood a choice, with a ridge that is next to nothing, and its gradient."""
        values, slopes, _ = self.of_people(theta)
        d, n = self.problem.n_coefficients, float(self.problem.weight.sum())
        ridge = np.zeros(len(theta))
        ridge[:d] = _RIDGE
        value = values.sum() - 0.5 * float(ridge @ theta**2)
        return -value / n, -(slopes.sum(axis=0) - ridge * theta) / n


def log_means(values: FloatArray) -> FloatArray:
    """Logarithms of the means of exp values (U, R), (U,)."""
    return np.asarray(logsumexp(values, axis=1) - np.log(values.shape[1]))


class Simulation(NamedTuple):
    """An estimate: draws around it, the likelihood, parameters (P,), minus the Hessian (P, P)."""

    sample: Sample
    likelihood: Simulated
    theta: FloatArray
    H: FloatArray
    values: FloatArray  # log-likelihoods of people, (U,)
    slopes: FloatArray  # of each, (U, P)


def fit_simulated(
    problem: ChoiceProblem, draws: FloatArray, *, diagonal: bool, max_iter: int, tolerance: float, random_state: int,
    watch: Watcher | None,
) -> Simulation:  # fmt: skip
    """Estimates by ``draws`` (U, R, n), and draws of populations by standard errors and of people by their answers."""
    begin = time.perf_counter()
    start = start_of(problem, _RIDGE)
    likelihood = Simulated(problem, draws, diagonal)
    Omega = np.diag(np.diagonal(start.Omega)) if diagonal else start.Omega
    theta = likelihood.packed(start.mean, np.asarray(np.linalg.cholesky(Omega)))
    n = float(problem.weight.sum())
    slopes = likelihood.of_people(theta)[1]
    guess = np.linalg.inv(slopes.T @ slopes / n + np.eye(len(theta)) / n)
    steps = [0]

    def note_step(intermediate_result: Any) -> None:
        steps[0] += 1
        if watch is not None:
            watch("maximising", steps[0])

    found = minimize(
        likelihood.objective, np.ravel(theta), jac=True, method="BFGS", callback=note_step,
        options={"gtol": tolerance, "maxiter": max_iter, "hess_inv0": 0.5 * (guess + guess.T)},
    )  # fmt: skip
    theta = found.x
    residual = float(np.abs(found.jac).max())
    values, slopes, at_draws = likelihood.of_people(theta)
    H = np.stack([likelihood.objective(theta + step)[1] - found.jac for step in _STEP * np.eye(len(theta))])
    H = (H + H.T) * (0.5 * n / _STEP)
    drawn = _sample(likelihood, theta, H, at_draws, np.random.default_rng(random_state))
    report = Report(
        "Simulated likelihood", int(found.nit), residual, tolerance, residual <= tolerance, 0.0,
        time.perf_counter() - begin, "nats a choice (the largest slope)", "raise max_iter, or take fewer attributes",
    )  # fmt: skip
    return Simulation(Sample(*drawn, report, _noise(at_draws)), likelihood, theta, H, values, slopes)


def _sample(
    likelihood: Simulated, theta: FloatArray, H: FloatArray, at_draws: FloatArray, rng: np.random.Generator
) -> tuple[Mixture, npt.NDArray[np.float32]]:
    problem = likelihood.problem
    B, L = likelihood.unpacked(theta)
    people = np.empty((problem.n_users, _KEPT_PEOPLE, problem.n_coefficients), dtype=np.float32)
    points = (np.arange(_KEPT_PEOPLE) + 0.5) / _KEPT_PEOPLE
    for u in range(problem.n_users):
        share = np.cumsum(np.exp(at_draws[u] - at_draws[u].max()))
        chosen = np.searchsorted(share / share[-1], points)
        people[problem.people[u]] = likelihood.coefficients(u, B, L)[chosen]
    return populations(likelihood, theta, H, rng), people


def law_at(likelihood: Simulated, thetas: FloatArray) -> Mixture:
    """Populations (S,) of parameters (S, P)."""
    B, L = (np.stack(part)[:, None] for part in zip(*map(likelihood.unpacked, thetas), strict=True))
    return Mixture(B, L @ np.swapaxes(L, 2, 3), np.ones((len(thetas), 1)))


def populations(likelihood: Simulated, theta: FloatArray, H: FloatArray, rng: np.random.Generator) -> Mixture:
    """Populations around an estimate, from minus the Hessian of the log-likelihood there.

    Means and the symmetric root of Ω are normal, with a centre at which the mean of Ω is the estimate. Their covariance
    is that of the estimate, so that standard errors do not depend on the seed.
    """
    L = likelihood.unpacked(theta)[1]
    n, others = len(L), len(theta) - len(likelihood.entries[0])
    R, basis, into = _root(L, likelihood.entries)
    change = np.eye(len(theta))
    change[others:, others:] = into
    noise = populations_around(np.zeros(len(theta)), change.T @ H @ change, rng, _KEPT_LAWS)
    B = np.stack([likelihood.unpacked(theta + one)[0] for one in noise])
    away = np.einsum("sk,kij->sij", noise[:, others:], basis)
    Omega = R @ R
    centre = _square_root(Omega - (away @ away).mean(axis=0))
    drawn = (centre + away) @ (centre + away)
    # Where less is known than that, Ω is drawn too large, and is brought back.
    root = _square_root(drawn.mean(axis=0))
    back = np.linalg.solve(root, np.linalg.solve(root, _square_root(root @ Omega @ root)).T)
    drawn = back @ drawn @ back.T
    drawn[:, np.arange(n), np.arange(n)] += 1e-12
    return Mixture(B[:, None], 0.5 * (drawn + np.swapaxes(drawn, 1, 2))[:, None], np.ones((_KEPT_LAWS, 1)))


def populations_around(theta: FloatArray, H: FloatArray, rng: np.random.Generator, n: int) -> FloatArray:
    """Normal draws of parameters, (n, P), of mean and covariance exactly those of an estimate: H is the information.

    No standard error is beyond 10 units of a column.
    """
    values, vectors = np.linalg.eigh(H)
    scale = (vectors / np.sqrt(np.maximum(values, _LEAST_CURVATURE))) @ vectors.T
    return np.asarray(theta + _standardised(rng.standard_normal((n, len(theta)))) @ scale)


def _standardised(noise: FloatArray) -> FloatArray:
    """Draws (S, k) with means of exactly 0 and, where there are more of them than columns, covariance exactly I."""
    noise = noise - noise.mean(axis=0)
    if noise.shape[1] >= len(noise):
        return noise
    return np.asarray(np.linalg.solve(np.linalg.cholesky(noise.T @ noise / len(noise)), noise.T).T)


def _root(
    L: FloatArray, entries: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R = √(L Lᵀ), an orthonormal basis of its changes (k, n, n), and the changes of L's entries with them (k, k)."""
    n = len(L)
    rows, columns = entries
    basis = np.zeros((len(rows), n, n))
    basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = np.where(
        rows == columns, 1.0, np.sqrt(0.5)
    )
    L = L.copy()
    diagonal = np.diagonal(L)
    L[np.diag_indices(n)] = np.copysign(np.maximum(np.abs(diagonal), _SINGULAR), diagonal)
    U, size, _ = np.linalg.svd(L)
    R = (U * size) @ U.T
    # L dLᵀ + dL Lᵀ = dΩ: dL is L times the lower triangle, its diagonal halved, of L⁻¹ dΩ L⁻ᵀ.
    inner = np.linalg.solve(L, R @ basis + basis @ R)
    inner = np.linalg.solve(L, np.swapaxes(inner, 1, 2))
    lower = np.tril(inner) - 0.5 * inner * np.eye(n)
    return R, basis, (L @ lower)[:, rows, columns].T


def _square_root(A: FloatArray) -> FloatArray:
    """That of a symmetric matrix, negative eigenvalues being 0."""
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _noise(at_draws: FloatArray) -> dict[str, Any]:
    """How much the simulated log-likelihood would differ with other draws, if they were independent."""
    share = np.exp(at_draws - at_draws.max(axis=1, keepdims=True))
    effective = share.sum(axis=1) ** 2 / (share**2).sum(axis=1)
    R = at_draws.shape[1]
    variance = share.var(axis=1) / (R * share.mean(axis=1) ** 2)
    return {
        "log_likelihood_sd": float(np.sqrt(variance.sum())), "log_likelihood_bias": float(-0.5 * variance.sum()),
        "effective_draws_median": float(np.median(effective)), "effective_draws_least": float(effective.min()),
        "people_on_few_draws": int((effective < _FEW_DRAWS).sum()) if R > 1 else 0,
    }  # fmt: skip


def evidence_of(problem: ChoiceProblem, law: Mixture, n_draws: int = 200) -> float:
    """Simulated log-likelihood at the mean of a law's draws."""
    draws, rows = halton(problem, n_draws), problem.rows
    values, by_class = np.empty(draws.shape[:2]), []
    for k, share in enumerate(law.share.mean(axis=0).tolist()):
        B, Omega = law.B[:, k].mean(axis=0), law.Omega[:, k].mean(axis=0)
        L = np.linalg.cholesky(Omega) if len(Omega) else Omega
        for place in range(draws.shape[1]):  # the loop over draws that has slopes too would be compiled for this alone
            z = problem.traits @ B
            z[:, : problem.n_random] += draws[:, place] @ L.T
            c = np.ascontiguousarray(coefficients_of(z, problem.kind, problem.price))
            values[:, place] = loops.log_likelihoods(c, rows)
        by_class.append(math.log(share) + log_means(values))
    return float(logsumexp(by_class, axis=0).sum())
