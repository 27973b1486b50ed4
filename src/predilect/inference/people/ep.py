"""Compiled expectation propagation over a range of people: the loop in which nearly all time is spent.

Written for the probit: :meth:`~predilect.inference.likelihoods.views.PairLikelihood.compiled` puts another in its
place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.likelihoods.probit import moments_scalar, tilted_scalar
from predilect.inference.people.engaged import engagement
from predilect.inference.people.rank_one import add_effects, catch_up, direction, rank_one, take_in
from predilect.inference.people.state import (
    answers_of,
    codes_of_sides,
    n_effects,
    needs_pair_space,
    pair_statistics,
    person_statistics,
    prior_of_person,
    replay,
    room_of_state,
    room_of_sums,
    sway_of,
    unscale,
)
from predilect.inference.people.tasks import (
    ALL,
    MEMBERS,
    begin_task,
    covariance_in_task,
    load_task,
    margin_in_task,
    room_of_task,
    shared_noise,
    size_with_noise,
    with_noise,
    without_noise,
)

_MAX_INNER = 200  # inner iterations of the site of many identical answers
_INNER_TOLERANCE = 1e-12


@kernel
def refresh_site(y, w, mu, v, share, lam, eta, delta, offset, noise):
    """New site (λ, η) of one of w identical answers, given the person's current posterior N(mu, v) of the margin.

    What else moves the answer, ``offset``, is added to the margin where it meets the likelihood, and nowhere else.
    ``noise`` is what the margin has of the answer's noise already: 1 for a row of a task, and 0 otherwise.

    ``share`` is 1 - w λ v, the part of the variance without the copies that v is. It is passed in since the difference
    has no digits left where the copies carry nearly all information.
    """
    # All w copies move together: iterate to the fixed point of the group against everything else, N(m_r, v_r).
    # Undamped, the copies overshoot together (10^5 copies oscillate for ever), so the step is halved when they do.
    # One copy is there at the first step; a call of its own would be compiled twice into every caller.
    v_r = v / share
    m_r = (mu - v * w * eta) / share
    v_c = v_r
    m_c = m_r
    step = 1.0
    last = 0.0
    for _ in range(_MAX_INNER):
        if w != 1.0:
            denominator = 1.0 + w * lam * v_r
            v = v_r / denominator
            mu = (m_r + v_r * w * eta) / denominator
            denominator = 1.0 - lam * v
            v_c = v / denominator
            m_c = (mu - v * eta) / denominator
        slope, curvature = moments_scalar(y, m_c + offset, v_c - noise, delta)
        denominator = 1.0 - curvature * v_c
        new_lam = curvature / denominator
        new_eta = (slope + curvature * m_c) / denominator
        if w == 1.0:
            return new_lam, new_eta
        change_lam = new_lam - lam
        change_eta = new_eta - eta
        if abs(change_lam) <= _INNER_TOLERANCE * (1.0 + lam) and abs(change_eta) <= _INNER_TOLERANCE * (1.0 + abs(eta)):
            break
        if change_lam * last < 0.0:
            step = max(0.5 * step, 0.05)
        last = change_lam
        lam += step * change_lam
        eta += step * change_eta
    return lam, eta


@inner_kernel
def change_of_margin(d_lam, d_eta, mean, v):
    """Change of a margin by a change of its site, in units of its noise: the scale-free measure of convergence."""
    change = (abs(d_lam) * (1.0 + abs(mean)) + abs(d_eta - d_lam * mean)) * v / (1.0 + math.sqrt(v))
    # max() would lose a NaN, and what is not a number would count as converged.
    return change if change == change else math.inf


@kernel
def refresh_sites(outcome, task, weight, mean, v, share, lam, eta, delta, offset, step):
    """Parallel site update of one person, a ``step`` of the way, in place; the largest change of a margin."""
    largest = 0.0
    for p in range(outcome.shape[0]):
        in_task = task[p] >= 0
        new_lam, new_eta = refresh_site(
            outcome[p], weight[p], mean[p], v[p], share[p], lam[p], eta[p], 0.0 if in_task else delta, offset[p],
            1.0 if in_task else 0.0,
        )  # fmt: skip
        d_lam = step * (new_lam - lam[p])
        d_eta = step * (new_eta - eta[p])
        largest = max(largest, change_of_margin(weight[p] * d_lam, weight[p] * d_eta, mean[p], v[p]))
        lam[p] += d_lam
        eta[p] += d_eta
    return largest


@inner_kernel
def _sweep_task(first, answers, sway, d, state, block):
    """:func:`sweep` of a task among items, on a C that lacks no update."""
    C, mu, c, late, after, lam, eta = state.C, state.mu, state.c, state.late, state.after, answers.lam, answers.eta
    k = answers.items.shape[0]
    m, r = load_task(first, d, d - k, answers.left, answers.right, after, block)
    begin_task(first, m, r, d, ALL, answers, sway, state, block)
    log_det = 0.0
    largest = 0.0
    n_late = 0
    p = first
    while p >= 0:
        a, b, noise = block.a[p], block.b[p], block.noise[p]
        own_lam, own_eta = without_noise(noise, lam[p], eta[p])
        v, mean = direction(C, mu, a, b, d + r, c)
        if sway is not None:
            v, mean = add_effects(C, mu, a, b, d + r, c, sway, p, k)
        v -= catch_up(late, n_late, a, b, sway, p, k, d + r, c)
        v_c, m_c = with_noise(v, mean, noise, own_lam, own_eta)
        # Of a weight of 1, and with moments of the cavity, the old site is not asked for.
        offset = answers.consistency * answers.offset[p]
        new_lam, new_eta = refresh_site(answers.outcome[p], 1.0, m_c, v_c, 1.0, 0.0, 0.0, 0.0, offset, 1.0)
        share = 1.0 + lam[p] * v_c
        moved = change_of_margin(new_lam - lam[p], new_eta - eta[p], (m_c + v_c * eta[p]) / share, v_c / share)
        largest = max(largest, moved)
        log_det += math.log((1.0 + noise * new_lam) / (1.0 + noise * lam[p]))
        lam[p] = new_lam
        eta[p] = new_eta
        new_lam, new_eta = without_noise(noise, new_lam, new_eta)
        change, n_late = rank_one(C, mu, c, d + r, new_lam - own_lam, new_eta - own_eta, v, mean, late, n_late)
        log_det += change
        p = after[p]
    take_in(C, d, late, n_late)
    return log_det, largest


@inner_kernel
def sweep(in_pair_space, answers, sway, d, delta, state, block):
    """One sequential EP sweep; (change of log |B|, largest relative change of a site)."""
    C, mu, c, late = state.C, state.mu, state.c, state.late
    weight, lam, eta = answers.weight, answers.lam, answers.eta
    k = answers.items.shape[0]
    log_det = 0.0
    largest = 0.0
    n_late = 0
    for p in range(lam.shape[0]):
        in_task = answers.task[p] >= 0
        if block is not None and in_task and not in_pair_space:
            if state.before[p] < 0:
                take_in(C, d, late, n_late)
                n_late = 0
                change, moved = _sweep_task(p, answers, sway, d, state, block)
                log_det += change
                largest = max(largest, moved)
            continue
        a = p if in_pair_space else answers.left[p]
        b = -1 if in_pair_space else answers.right[p]
        v, mean = direction(C, mu, a, b, d, c)
        if sway is not None and not in_pair_space:
            v, mean = add_effects(C, mu, a, b, d, c, sway, p, k)
        v -= catch_up(late, n_late, a, b, sway, p, k, d, c)
        share = 1.0 - weight[p] * lam[p] * v
        new_lam, new_eta = refresh_site(
            answers.outcome[p], weight[p], mean, v, share, lam[p], eta[p], 0.0 if in_task else delta,
            answers.consistency * answers.offset[p], 1.0 if in_task else 0.0,
        )  # fmt: skip
        d_lam = new_lam - lam[p]
        d_eta = new_eta - eta[p]
        largest = max(largest, change_of_margin(weight[p] * d_lam, weight[p] * d_eta, mean, v))
        change, n_late = rank_one(C, mu, c, d, weight[p] * d_lam, weight[p] * d_eta, v, mean, late, n_late)
        log_det += change
        lam[p] = new_lam
        eta[p] = new_eta
    take_in(C, d, late, n_late)
    return log_det, largest


@inner_kernel
def _answer_evidence(outcome, in_task, w, mean, v, lam, eta, z_bar, delta, offset, of_noise, out):
    """Adds one row's part of log Z, and its derivatives in δ, to ``out``; ``of_noise``: its part of tr (ααᵀ - Q) N.

    A choice from a set has no threshold, and its noise is in v.
    """
    denominator = 1.0 - lam * v
    v_c = v / denominator
    m_c = (mean - v * eta) / denominator
    log_z, _, _, slope_delta, curvature_delta = tilted_scalar(
        outcome, m_c + offset, v_c - (1.0 if in_task else 0.0), 0.0 if in_task else delta
    )
    denominator = 1.0 + lam * v_c
    message = 0.5 * math.log(denominator) + 0.5 * (lam * m_c * m_c - 2.0 * m_c * eta - v_c * eta * eta) / denominator
    out[0] += w * (log_z + message + eta * z_bar - 0.5 * lam * z_bar * z_bar)
    if not in_task:
        out[1] += w * slope_delta
        out[2] += w * curvature_delta
    # Utilities and their covariance rise together: αᵀ A m + tr (ααᵀ - Q) A Σ Aᵀ, a sum over answers, as Q C_0 = Λ C for
    # the prior covariance C_0 of the margins; of a task that is A Σ Aᵀ + N.
    slope = w * (eta * mean - lam * (mean * mean + v)) + w * offset * (eta - lam * mean) - of_noise
    out[3] += slope
    out[4] += slope * slope / w


@kernel
def answers_evidence(outcome, task, weight, mean, v, lam, eta, z_bar, delta, offset, of_noise, out):
    """Adds the rows' parts of a person's log Z to ``out``; the two joint terms are the caller's."""
    for p in range(outcome.shape[0]):
        _answer_evidence(
            outcome[p], task[p] >= 0, weight[p], mean[p], v[p], lam[p], eta[p], z_bar[p], delta, offset[p],
            of_noise[p], out,
        )  # fmt: skip


@inner_kernel
def _of_noise(answers, state, out):
    """Each row's part of tr (ααᵀ - Q) N, in pair space: 0 but for tasks, whose rows have weight 1."""
    C, mu, before = state.C, state.mu, state.before
    la, lb, lam, eta = answers.left, answers.right, answers.lam, answers.eta
    for p in range(lam.shape[0]):
        out[p] = 0.0
        if answers.task[p] < 0:
            continue
        alpha = eta[p] - lam[p] * mu[p]
        out[p] = alpha * alpha - lam[p] + lam[p] * C[p, p] * lam[p]
        q = before[p]
        while q >= 0:
            value = alpha * (eta[q] - lam[q] * mu[q]) + lam[p] * C[p, q] * lam[q]
            value *= shared_noise(la[p], lb[p], la[q], lb[q])
            out[p] += value
            out[q] += value
            q = before[q]


@inner_kernel
def _task_evidence(first, answers, sway, d, state, block, out, pull):
    """:func:`_person_evidence` of the rows of a task among items; its part of ½ eᵀ C e."""
    C, mu, own, lam, eta = state.C, state.mu, state.own, answers.lam, answers.eta
    k = answers.items.shape[0]
    m, r = load_task(first, d, d - k, answers.left, answers.right, state.after, block)
    begin_task(first, m, r, d, MEMBERS, answers, sway, state, block)
    value = 0.0
    p = first
    while p >= 0:
        a, b, noise = block.a[p], block.b[p], block.noise[p]
        own_lam, own_eta = without_noise(noise, lam[p], eta[p])
        v, mean = margin_in_task(a, b, p, k, sway, C, mu)
        # The row's part of tr (ααᵀ - Q) N, for the noise that is its own and for what it shares.
        alpha = own_eta - own_lam * mean
        of_noise = noise * (alpha * alpha - own_lam + own_lam * v * own_lam)
        i, j = answers.left[p], answers.right[p]
        if a >= d:
            told = covariance_in_task(a, b, a, p, k, sway, C) - covariance_in_task(a, b, i, p, k, sway, C)
            of_noise += alpha * (mu[a] - mu[i]) - own_lam * told
        if b >= d:
            told = covariance_in_task(a, b, b, p, k, sway, C) - covariance_in_task(a, b, j, p, k, sway, C)
            of_noise -= alpha * (mu[b] - mu[j]) - own_lam * told
        v_c, m_c = with_noise(v, mean, noise, own_lam, own_eta)
        share = 1.0 + lam[p] * v_c
        v, mean = v_c / share, (m_c + v_c * eta[p]) / share
        z_bar = own[i] - own[j]
        offset = answers.consistency * answers.offset[p]
        _answer_evidence(answers.outcome[p], True, 1.0, mean, v, lam[p], eta[p], z_bar, 0.0, offset, of_noise, out)
        if pull.shape[0]:
            pull[p] = answers.consistency * alpha
        value += 0.5 * (eta[p] - lam[p] * z_bar) * (mean - z_bar)
        p = state.after[p]
    return value


@inner_kernel
def _person_evidence(in_pair_space, answers, sway, d, delta, state, block, of_noise, log_det, out, pull):
    """Adds the person's log Z, its gradient and curvature in δ to ``out``; sets the ``pull`` of each row on its offset.

    population.md section 2.
    """
    C, mu, own = state.C, state.mu, state.own
    weight, lam, eta, care = answers.weight, answers.lam, answers.eta, answers.consistency
    value = -0.5 * log_det
    if in_pair_space:
        _of_noise(answers, state, of_noise)
    for p in range(lam.shape[0]):
        w = weight[p]
        a = answers.left[p]
        b = answers.right[p]
        in_task = answers.task[p] >= 0
        if block is not None and in_task and not in_pair_space:
            if state.before[p] < 0:
                value += _task_evidence(p, answers, sway, d, state, block, out, pull)
            continue
        if in_pair_space:
            v = C[p, p]
            mean = mu[p]
        else:
            v = C[a, a] + C[b, b] - 2.0 * (C[a, b] if a > b else C[b, a])
            mean = mu[a] - mu[b]
            if sway is not None:
                k = d - sway.shape[1]
                for i in range(sway.shape[1]):
                    along = C[k + i, a] - C[k + i, b] + 0.5 * sway[p, i] * C[k + i, k + i]
                    for j in range(i):
                        along += sway[p, j] * C[k + i, k + j]
                    v += 2.0 * sway[p, i] * along
                    mean += sway[p, i] * mu[k + i]
        z_bar = own[a] - own[b]
        _answer_evidence(
            answers.outcome[p], in_task, w, mean, v, lam[p], eta[p], z_bar, delta,
            care * answers.offset[p], of_noise[p] if in_pair_space else 0.0, out,
        )  # fmt: skip
        if pull.shape[0]:
            pull[p] = care * w * (eta[p] - lam[p] * mean)
        value += 0.5 * w * (eta[p] - lam[p] * z_bar) * (mean - z_bar)  # of ½ eᵀ C e, as means are z̄ + C e
    out[0] += value


@inner_kernel
def _scatter_items(items, x, Q, w, sums):
    """Adds a person's sums over the own items, times w, where the items are the basis."""
    for i in range(items.shape[0]):
        sums.r[items[i]] += w * x[i]
        for j in range(i + 1):  # items ascend: this is the lower triangle
            sums.H[items[i], items[j]] += w * Q[i, j]
            sums.D[items[i], items[j]] += w * (x[i] * x[j] - Q[i, j])


@inner_kernel
def scatter_basis(in_pair_space, answers, d, alpha, Q, w, R, sums, v):
    """Adds a person's sums, times w, on a basis of functions.

    With Q and the rows R in the person's space, W[i] collects Q R so that Σ_u Rᵀ Q R = Φᵀ W: one product over all items
    in place of one a person. √w Rᵀ α goes to ``v``, of which the caller makes the sum of squares.
    """
    items, la, lb = answers.items, answers.left, answers.right
    H, r, own_H, own_D = sums.H, sums.r, sums.own_H, sums.own_D
    own_Q = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            own_Q[i, j] = w * Q[i, j]
    T = np.dot(own_Q, R[:d])
    root = math.sqrt(w)
    for i in range(d):
        a = items[la[i]] if in_pair_space else items[i]
        r[a] += w * alpha[i]
        for j in range(R.shape[1]):
            v[j] += root * alpha[i] * R[i, j]
            H[a, j] += T[i, j]
        if in_pair_space:
            b = items[lb[i]]
            r[b] -= w * alpha[i]
            for j in range(R.shape[1]):
                H[b, j] -= T[i, j]
    if own_H.shape[0] == 0:
        return
    left, right = codes_of_sides(answers)
    for p in range(d):
        if not in_pair_space:
            own_H[items[p]] += own_Q[p, p]
            own_D[items[p]] += w * alpha[p] * alpha[p] - own_Q[p, p]
            continue
        a = left[p]
        b = right[p]
        for q in range(d):
            square = w * alpha[p] * alpha[q] - own_Q[p, q]
            a2 = left[q]
            b2 = right[q]
            if a == a2:
                own_H[a] += own_Q[p, q]
                own_D[a] += square
            if a == b2:
                own_H[a] -= own_Q[p, q]
                own_D[a] -= square
            if b == a2:
                own_H[b] -= own_Q[p, q]
                own_D[b] -= square
            if b == b2:
                own_H[b] += own_Q[p, q]
                own_D[b] += square


@inner_kernel
def _own_effects(in_rows, sway, k, x, Q, w, out):
    """Posterior means of the person's own effects, and what answers take off their prior variance of 1, by turns.

    ``x, Q`` are of items and effects, or of rows.
    """
    for j in range(sway.shape[1]):
        if not in_rows:
            out[4 + 2 * j] = w * x[k + j]
            out[5 + 2 * j] = w * Q[k + j, k + j]
            continue
        for p in range(sway.shape[0]):
            out[4 + 2 * j] += w * sway[p, j] * x[p]
            for q in range(sway.shape[0]):
                out[5 + 2 * j] += w * sway[p, j] * Q[p, q] * sway[q, j]


class Sums(NamedTuple):
    """What a pass over people adds to.

    - H, D (n_items, M), without a basis: lower triangles of the sums of Xᵀ Q X and of Xᵀ α αᵀ X - Xᵀ Q X. With one, H
      is the first times Φ, and D (n_people, M) holds each person's Φᵀ Xᵀ α. An H without rows: these sums, and the
      following three, are not wanted.
    - r (n_items,), r_traits (n_items, n_traits): the sum of Xᵀ α, and of its products with the traits.
    - own_H, own_D (n_items,), where there is a ``rho``: diagonals of the two sums over items.
    - out (4,): evidence, its gradient and curvature in δ; and the largest site change (a maximum).
    """

    H: Any
    D: Any
    r: Any
    r_traits: Any
    own_H: Any
    own_D: Any
    out: Any


class Slopes(NamedTuple):
    """What a pass sets for each person and row.

    ``of_people`` (n_users, 4 + 2 n_effects): gradient and curvature of each person's evidence in the log of their own
    threshold, gradient and information in the log of their consistency (population.md section 4), and of each own
    effect of a covariate the mean, and 1 less the variance. ``of_rows`` (n_rows,), or empty where nobody wants it: the
    gradient of the evidence in each row's offset. ``engaged`` (n_users,): the probability that a person does not click
    at random, by which all that the person adds is multiplied.
    """

    of_people: Any
    of_rows: Any
    engaged: Any
    evidences: Any  # log Z_u of each person, (n_users,)


@inner_kernel
def _room(start, stop, columns, sway, among_items, Phi):
    """Room for the largest of some people: the state, the sums ``x, Q, W``, and parts of the evidence."""
    d = 1
    k = 1
    n = 1
    for u in range(start, stop):
        if columns.is_heavy[u]:
            continue
        rows = columns.answer_ptr[u + 1] - columns.answer_ptr[u]
        own = columns.item_ptr[u + 1] - columns.item_ptr[u]
        in_pair_space = needs_pair_space(columns.task, columns.answer_ptr[u], rows, own)
        d = max(d, rows if in_pair_space else own + n_effects(sway))
        k = max(k, own)
        n = max(n, rows)
    x, Q, W = room_of_sums(k + n_effects(sway) if Phi is None else d, d)
    block = room_of_task(k, n_effects(sway), n, among_items)
    state = room_of_state(size_with_noise(d, k, among_items), k, n, Phi)
    return state, block, x, Q, W, np.empty(n), np.empty(5)


@kernel
def em_pass(start, stop, columns, sway, among_items, prior, Phi, delta, n_sweeps, tolerance, sums, slopes):
    """E step: at most ``n_sweeps`` EP sweeps of each of people ``start .. stop`` who is not heavy, and sums over them.

    The sites are updated in place. ``sway`` (n_rows, n_effects) or None: covariates, in units in which people's own
    effects of them have variance 1.
    """
    state, block, x, Q, W, of_noise, own_out = _room(start, stop, columns, sway, among_items, Phi)
    out, r_traits = sums.out, sums.r_traits
    for u in range(start, stop):
        answers = answers_of(u, columns)
        if columns.is_heavy[u] or not answers.left.shape[0]:
            continue
        own_sway = sway_of(u, columns, sway)
        items = answers.items
        n = answers.left.shape[0]
        k = items.shape[0]
        in_pair_space = needs_pair_space(answers.task, 0, n, k)
        d = n if in_pair_space else k + n_effects(sway)
        factor = columns.tie_factor[u]
        own_delta = delta * factor
        prior_of_person(in_pair_space, answers, own_sway, prior, Phi, state)
        log_det = replay(in_pair_space, answers, own_sway, d, state, block)
        largest = 0.0
        for _ in range(n_sweeps):
            change, largest = sweep(in_pair_space, answers, own_sway, d, own_delta, state, block)
            log_det += change
            if largest < tolerance:
                break
        out[3] = max(out[3], largest)
        for i in range(5):
            own_out[i] = 0.0
        pull = slopes.of_rows
        if pull.shape[0]:
            pull = pull[columns.answer_ptr[u] : columns.answer_ptr[u + 1]]
        _person_evidence(in_pair_space, answers, own_sway, d, own_delta, state, block, of_noise, log_det, own_out, pull)
        w, evidence = engagement(own_out[0], columns.clicks[u], columns.engaged[u])
        slopes.engaged[u] = w
        slopes.evidences[u] = own_out[0]
        for i in range(1, 5):
            own_out[i] *= w
        for p in range(pull.shape[0]):
            pull[p] *= w
        out[0] += evidence
        out[1] += factor * own_out[1]
        out[2] += factor * factor * own_out[2]
        of_person = slopes.of_people[u]
        of_person[0] = own_delta * own_out[1]
        of_person[1] = own_delta * own_delta * own_out[2] + of_person[0]
        of_person[2] = own_out[3]
        of_person[3] = own_out[4]
        if sums.H.shape[0] == 0:
            continue
        in_rows = in_pair_space and Phi is not None
        if in_rows:
            pair_statistics(answers, state, x, Q)
        else:
            person_statistics(in_pair_space, answers, own_sway, state, block, x, Q, W)
        unscale(answers.consistency, x, Q, n if in_rows else k + n_effects(sway))
        if Phi is None:
            _scatter_items(items, x, Q, w, sums)
        else:
            scatter_basis(in_pair_space, answers, n if in_rows else k, x, Q, w, state.R, sums, sums.D[u - start])
        if sway is not None:
            _own_effects(in_rows, own_sway, k, x, Q, w, of_person)
        for j in range(answers.traits.shape[0]):
            for i in range(n if in_rows else k):
                share = w * x[i] * answers.traits[j]
                r_traits[items[answers.left[i] if in_rows else i], j] += share
                if in_rows:
                    r_traits[items[answers.right[i]], j] -= share
