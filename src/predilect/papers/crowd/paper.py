"""crowdGPPL as published, corrected: Algorithm 2 with linearised sites and factorised weights (crowdgppl.md 2.3, 3)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect._base.progress import Report
from predilect._base.text import quoted
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.factors.answers import (
    FactorAnswers,
    FunctionState,
    GammaPrior,
    ItemDesign,
    ProcessWeights,
    StandardWeights,
    WeightPrior,
    scale_bound,
    scale_step,
)
from predilect.inference.factors.posterior import FactorPosterior, FactorState, assemble, moments, random_start
from predilect.inference.factors.sweep import component_sums, consensus_sums
from predilect.inference.gaussian.projection import Projection, inducing_points
from predilect.inference.latent.sparse.problem import (
    Margins,
    RowMargins,
    linearised_sites,
    natural_parameters,
    surrogate_variance,
)
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import starting_threshold, tilted
from predilect.inference.likelihoods.tabulated import at
from predilect.models.checks import make_kernel, scales_of
from predilect.papers.crowd.fit import FactorFit, Watch

_CHECK_EVERY, _CHECKS = 2, 3
_FULL_STEP = 0.25
_PEOPLE_AS_POINTS = 500
_FULL_BATCH_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class PaperPriors:
    """Gamma priors (shape, rate) of the inverse scales of t, of v_c and of w_c; by default those for Sushi.

    ``noise_var``: noise of one utility in whose units they are, 0.5 in the text, 1 in the code.
    """

    consensus: GammaPrior = GammaPrior(1.0, 100.0)  # noqa: RUF009  an immutable tuple
    components: GammaPrior = GammaPrior(1.0, 10.0)  # noqa: RUF009  the same
    weights: GammaPrior = GammaPrior(1.0, 10.0)  # noqa: RUF009  the same
    noise_var: float = 0.5

    def in_unit_noise(self) -> PaperPriors:
        """The same where the noise of an answer is 1: rates divided by 2 ``noise_var``."""
        if self.noise_var not in (0.5, 1.0):
            raise DataError(f"noise_var must be 0.5 or 1, not {quoted(self.noise_var)}")
        t, v = (GammaPrior(g.shape, g.rate / (2.0 * self.noise_var)) for g in (self.consensus, self.components))
        return PaperPriors(t, v, self.weights)


@dataclass(slots=True)
class _Paper:
    """Natural parameters of every block, beside the moments in ``state``, whose Sigma are variances (n_users, C, 1)."""

    answers: FactorAnswers
    design: ItemDesign
    people: Projection | None
    people_rows: RowMargins
    process: BoolArray
    state: FactorState
    priors: PaperPriors
    s_w: FloatArray
    Q: FloatArray
    natural_t: tuple[FloatArray, FloatArray]
    natural_v: list[tuple[FloatArray, FloatArray]]
    natural_w: tuple[FloatArray, FloatArray]
    natural_process: list[tuple[FloatArray, FloatArray]]
    functions_w: list[FunctionState | None]


def fit_paper(
    answers: FactorAnswers, projection: Projection, *, n_components: int = 20, consensus: bool = True,
    people: Projection | None = None, priors: PaperPriors | None = None,
    batches: tuple[int | None, float, float] = (None, 1.0, 0.9), delta: float | None = None, tolerance: float = 3.5e-3,
    max_iter: int = 200,
    random_state: int | np.random.Generator | None = 0, watch: Watch | None = None,
) -> FactorFit:  # fmt: skip
    """Factor model by the corrected Algorithm 2 of Simpson and Gurevych (2020).

    ``watch`` gets the value of the stop rule. ``people``: the first half of the components has a Gaussian process over
    people's features, the others independent weights.

    - batches: rows of a step, by default all, or 50 000 of more than 200 000: a step costs rows x C for the answers and
      C M³ for the functions, and small batches pay the latter more often; the delay and the forgetting rate r. Steps
      (i + delay)^-r; of a
      full batch .25, as full steps overshoot: answers thrown to the far side of Φ have no slope there and never return
      (Sushi-B, log loss .515 with full steps, .477 with .25).
    - delta: by default fitted to the final margins. The surrogate takes a tie as y = ½.
    - tolerance: stop after three checks in a row (one every second iteration) with a smaller relative change of the
      plug-in bound; never within an epoch. Scales drift on long after, and predictions become too
      certain: a tighter rule made them worse on Sushi-B (log loss .477 after 80 iterations, .493 after 156).

    ``bound`` has the expected log-likelihood by quadrature, crowdgppl.md 2.6; ``component_scales`` are s_v s_w.

    crowdgppl.md 2.3, 3. **Differs from the paper**: the Jacobian, the scales and the start as corrected there; g is
    computed anew before every block, once (the code iterates up to ten times inside each); 3 quiet checks stop, not 10.
    """
    began = time.perf_counter()
    design = ItemDesign.of(projection, answers.left, answers.right)
    rng = np.random.default_rng(random_state)
    model = _start(answers, design, people, n_components, consensus, (priors or PaperPriors()).in_unit_noise(), rng)
    n_rows = len(answers.user)
    batch_size, delay, forgetting_rate = batches
    if batch_size is None:
        batch_size = n_rows if n_rows <= _FULL_BATCH_ROWS else 50_000
    n_batches = max(1, round(n_rows / batch_size))
    iteration, quiet, change, value = 0, 0, np.inf, -np.inf
    while iteration < max(max_iter, n_batches) and quiet < _CHECKS:
        order = np.arange(n_rows) if n_batches == 1 else rng.permutation(n_rows)
        for rows in np.array_split(order, n_batches):
            rho = _FULL_STEP if n_batches == 1 else (iteration + 1 + delay) ** -forgetting_rate
            _step(model, None if n_batches == 1 else rows, rho, n_rows / len(rows))
            iteration += 1
            if iteration % _CHECK_EVERY == 0 and iteration >= n_batches:
                new = _plug_in_bound(model)
                change, value = abs(new - value) / abs(new), new
                quiet = quiet + 1 if change < tolerance else 0
                if watch is not None:
                    watch(iteration, value)
    state = model.state
    mean, var = moments(state, answers)
    state.threshold = _threshold(answers, mean, var) if delta is None else delta
    bound = float(answers.weight @ expected(answers.outcome, mean, var, state.threshold)[0]) - _divergence(model)
    report = Report(
        "Algorithm 2 of crowdGPPL", iteration, change, tolerance, quiet >= _CHECKS, projection.factor.jitter,
        time.perf_counter() - began, "of the bound", "allow more iterations.",
    )  # fmt: skip
    return FactorFit(_posterior(model), state.threshold, bound, state.s_0, state.s * model.s_w, report)


def fit_as_published(
    model: Any, answers: FactorAnswers, projection: Projection, shared: dict[str, Any], traits: FloatArray | None,
    tolerance: float,
) -> FactorFit:  # fmt: skip
    """:func:`fit_paper` with a model's arguments; ``traits`` of people are given if they count."""
    priors = PaperPriors(noise_var=float(model.noise_variance))
    for name, given in (("consensus", model.consensus_prior), ("components", model.component_prior)):
        if not isinstance(given, str):
            given_prior: dict[str, Any] = {name: GammaPrior(*map(float, given))}
            priors = replace(priors, **given_prior)
    people = None
    if traits is not None:
        known = np.ones(len(traits), dtype=bool)
        kernel = make_kernel(model, model.user_kernel, traits)
        wanted = _PEOPLE_AS_POINTS if isinstance(model.n_inducing_users, str) else model.n_inducing_users
        n_points = len(traits) if wanted is None else int(wanted)
        points = inducing_points(traits, known, scales_of(kernel, traits.shape[1]), n_points, model.seed_)
        people = Projection.of(kernel, traits, known, points.points)
    return fit_paper(
        answers, projection, **shared, people=people, priors=priors, tolerance=tolerance,
        batches=(
            None if isinstance(model.batch_size, str) else model.batch_size, float(model.delay),
            float(model.forgetting_rate),
        ),
    )  # fmt: skip


def _start(
    answers: FactorAnswers, design: ItemDesign, people: Projection | None, C: int, consensus: bool,
    priors: PaperPriors, rng: np.random.Generator,
) -> _Paper:  # fmt: skip
    """Scales at their prior means, functions at zero, weights drawn: zero weights would be a saddle."""
    s_t, s_v, s_w = (g.shape / g.rate for g in (priors.consensus, priors.components, priors.weights))
    M, n_users = design.n_points, answers.n_users
    state = random_start(answers, design, C, consensus, np.zeros((n_users, C)), 0.0, rng, s_0=s_t, s=s_v)
    nothing, unit = np.zeros(M), np.eye(M)
    for c in range(C):
        state.set_component(c, FunctionState.of(design.margins, s_v * unit, nothing), design)
    state.Sigma = np.full((n_users, C, 1), 1.0 / s_w)
    # Prior variance of a margin between two items at s = 1; that of the weights is 1.
    variance = design.prior_variances() + design.residual
    V = variance * (float(consensus) / s_t + C / (s_v * s_w))
    Q = surrogate_variance(V[answers.pair], "2020")
    process = np.zeros(C, dtype=bool)
    roots = np.zeros((n_users, 0))
    if people is not None:
        roots, process[: C // 2] = people.roots(), True
    k = roots.shape[1]
    return _Paper(
        answers, design, people, RowMargins(roots), process, state, priors, np.full(C, s_w), Q, (s_t * unit, nothing),
        [(s_v * unit, nothing) for _ in range(C)], (np.full((n_users, C), s_w), s_w * state.mu),
        [(s_w * np.eye(k), np.zeros(k)) for _ in range(C)], [None] * C,
    )  # fmt: skip


def _step(model: _Paper, rows: IntArray | None, rho: float, scale: float) -> None:
    """One iteration: t, all v_c, all w_c, each with its scale; crowdgppl.md 2.3 with rho and pi as in 2.2."""
    state, answers, design = model.state, model.answers, model.design
    some = slice(None) if rows is None else rows
    user, pair, outcome = answers.user[some], answers.pair[some], answers.outcome[some]
    weight, Q = answers.weight[some], model.Q[some]
    n_pairs, M = len(answers.left), design.n_points
    margin = state.delta_0[pair] + np.einsum("pc,pc->p", state.mu[user], state.delta[pair])

    if state.consensus is not None:
        sites = linearised_sites(outcome, margin, Q).times(weight)
        W, H = consensus_sums(pair, sites, margin, state.delta_0)
        old = state.delta_0
        model.natural_t = _mixed(design.margins, model.natural_t, scale * W, scale * H, state.s_0, rho)
        state.set_consensus(FunctionState.of(design.margins, *model.natural_t), design)
        margin = margin + (state.delta_0 - old)[pair]
        state.set_scale(-1, scale_step(model.priors.consensus, M, state.consensus.square, 0.0), design)
    for c in range(state.n_components):
        sites = linearised_sites(outcome, margin, Q)
        W, H = np.zeros((2, n_pairs))
        component_sums(
            c, user, pair, weight, sites.precision, sites.linear, margin, state.delta, state.mu, state.Sigma, W, H
        )  # fmt: skip
        model.natural_v[c] = _mixed(design.margins, model.natural_v[c], scale * W, scale * H, state.s[c], rho)
        old = state.delta[:, c].copy()
        state.set_component(c, FunctionState.of(design.margins, *model.natural_v[c]), design)
        margin = margin + state.mu[user, c] * (state.delta[:, c] - old)[pair]
        state.set_scale(c, scale_step(model.priors.components, M, state.components[c].square, 0.0), design)
    for c in range(state.n_components):
        margin = _weights_step(model, c, user, pair, outcome, weight, Q, margin, rho, scale)


def _weights_step(
    model: _Paper, c: int, user: IntArray, pair: IntArray, outcome: npt.NDArray[np.int8], weight: FloatArray,
    Q: FloatArray, margin: FloatArray, rho: float, scale: float,
) -> FloatArray:  # fmt: skip
    """Update of all people's w_c and its scale; returns the margins."""
    state, n_users = model.state, model.answers.n_users
    sites = linearised_sites(outcome, margin, Q)
    tau = weight * sites.precision
    delta = state.delta[pair, c]
    own = tau * delta * delta
    W: FloatArray = np.asarray(scale * np.bincount(user, own + tau * state.D[pair, c], n_users), dtype=np.float64)
    pull = (weight * sites.linear - tau * margin) * delta + own * state.mu[user, c]
    H: FloatArray = np.asarray(scale * np.bincount(user, pull, n_users), dtype=np.float64)
    old, s, prior = state.mu[:, c].copy(), model.s_w[c], model.priors.weights
    if model.process[c]:
        assert model.people is not None
        rows = model.people_rows
        model.natural_process[c] = _mixed(rows, model.natural_process[c], W, H, s, rho)
        function = FunctionState.of(rows, *model.natural_process[c])
        model.functions_w[c] = function
        model.s_w[c] = scale_step(prior, model.people.n_points, function.square, 0.0)
        state.mu[:, c], state.Sigma[:, c, 0] = function.delta, function.D + model.people.own / model.s_w[c]
    else:
        P, h = model.natural_w
        P[:, c] += rho * (s + W - P[:, c])
        h[:, c] += rho * (H - h[:, c])
        state.mu[:, c], state.Sigma[:, c, 0] = h[:, c] / P[:, c], 1.0 / P[:, c]
        square = float(np.sum(state.mu[:, c] ** 2 + state.Sigma[:, c, 0]))
        model.s_w[c] = scale_step(prior, n_users, square, 0.0)
    return np.asarray(margin + (state.mu[:, c] - old)[user] * delta)


def _mixed(
    margins: Margins, old: tuple[FloatArray, FloatArray], W: FloatArray, H: FloatArray, s: float, rho: float
) -> tuple[FloatArray, FloatArray]:
    """Natural parameters after a step of ``rho`` towards the target of the answers."""
    precision, linear = natural_parameters(margins, W, H, s)
    return old[0] + rho * (precision - old[0]), old[1] + rho * (linear - old[1])


def _divergence(model: _Paper) -> float:
    """KL of functions, weights and scales from their priors; crowdgppl.md 2.6."""
    state, priors, M = model.state, model.priors, model.design.n_points
    total = 0.0
    if state.consensus is not None:
        total += state.consensus.divergence(state.s_0) - scale_bound(priors.consensus, M, state.s_0)
    for c in range(state.n_components):
        s = float(model.s_w[c])
        total += state.components[c].divergence(state.s[c]) - scale_bound(priors.components, M, state.s[c])
        function = model.functions_w[c]
        if function is not None:
            assert model.people is not None
            total += function.divergence(s) - scale_bound(priors.weights, model.people.n_points, s)
            continue
        mu, var, n = state.mu[:, c], state.Sigma[:, c, 0], len(state.mu)
        total += 0.5 * (s * float(np.sum(mu**2 + var)) - n - n * math.log(s) - float(np.log(var).sum()))
        total -= scale_bound(priors.weights, n, s)
    return total


def _plug_in_bound(model: _Paper) -> float:
    """Bound with log Φ at the mean margins, as the article's appendix and the code have it: not a bound, but cheap."""
    answers, state = model.answers, model.state
    margin = state.delta_0[answers.pair] + np.einsum("pc,pc->p", state.mu[answers.user], state.delta[answers.pair])
    strict = answers.outcome != 0
    data = at(np.where(strict, answers.outcome, 1), margin)[0]
    if not strict.all():  # half an answer for either side
        data[~strict] = 0.5 * (data[~strict] + at(np.full(np.count_nonzero(~strict), -1), margin[~strict])[0])
    return float(answers.weight @ data) - _divergence(model)


def _threshold(answers: FactorAnswers, mean: FloatArray, var: FloatArray) -> float:
    """Tie threshold of maximum likelihood at the final margins; 0 without ties."""
    if not answers.has_ties:
        return 0.0
    # At margins of that size the same share of ties needs a wider threshold.
    wider = math.sqrt(1.0 + float(np.mean(mean * mean + var)))
    start = math.log(starting_threshold(answers.outcome, answers.weight) * wider)
    found = minimize_scalar(
        lambda x: -float(answers.weight @ tilted(answers.outcome, mean, var, math.exp(x))[0]),
        bounds=(start - 6.0, start + 3.0), method="bounded",
    )  # fmt: skip
    return math.exp(float(found.x))


def _posterior(model: _Paper) -> FactorPosterior:
    state, C = model.state, model.state.n_components
    weights: WeightPrior = StandardWeights(1.0 / model.s_w)
    if model.people is not None:
        k = model.people.n_points
        mean, covariance = np.zeros((k, C)), np.zeros((C, k, k))
        for c, function in enumerate(model.functions_w):
            if function is not None:
                mean[:, c], covariance[c] = model.people.at_points(function.mean, function.lower)
        weights = ProcessWeights(model.people, model.process, mean, covariance, 1.0 / model.s_w)
    return assemble(state, model.design.projection, state.mu, state.Sigma[:, :, 0], weights)
