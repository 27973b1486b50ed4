"""Gaussian state of one user in pair or item space (population.md sections 2, 3).

A ``Phi`` of None: the items are the basis. Numba compiles nothing of a branch that ``Phi is None`` rules out, and what
only a basis of functions needs takes as long to compile as all else. So with a ``sway`` of None: answers have no
covariates. One without columns: nobody has effects of them of their own. And so with an ``among_items``, or a
``block``, of None: nobody's tasks are worked on among items. All are arguments of their own, as Numba does not look for
None within a tuple.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.people.rank_one import add_effects, catch_up, direction, late_updates, rank_one, take_in
from predilect.inference.people.tasks import (
    MEANS,
    add_task,
    begin_anew,
    begin_task,
    chain,
    load_task,
    room_of_task,
    shared_noise,
    size_with_noise,
    without_noise,
)

# In lanes: kinds of people from here on have a state of their utilities, those below of their margins; and the width of
# a group is a multiple of what the processor may work on at once
BY_ITEM, AT_A_TIME = 1000, 8


class Columns(NamedTuple):
    """Answers of all people, sorted by person, and their sites: as in ``layout.People``."""

    answer_ptr: Any
    item_ptr: Any
    item_idx: Any
    left: Any
    right: Any
    outcome: Any  # +1, 0 or -1, (n_rows,), or the ends of intervals, (n_rows, 2)
    task: Any
    weight: Any
    offset: Any
    traits: Any
    tie_factor: Any
    consistency: Any
    clicks: Any  # log odds of a random clicker before the evidence of the model; -inf: ``engaged`` is held
    engaged: Any
    is_heavy: Any
    lam: Any  # sites of *one* copy of each answer, (n_rows,): precision, and precision times mean
    eta: Any


class Prior(NamedTuple):
    """Population distribution but for its basis Φ: arrays as in :class:`~predilect.inference.people.law.Law`."""

    cov: Any  # Σ or Φ Σ, (n_items, M)
    rho: Any
    mean: Any
    shift: Any


class Answers(NamedTuple):
    """Rows of one person, and their sites."""

    items: Any  # codes of the person's own items, ascending, (k,)
    left: Any  # positions in ``items``, (n,)
    right: Any
    outcome: Any
    task: Any  # rows of one number share the noise of their items; -1 for the others
    weight: Any
    offset: Any  # what else moves an answer
    lam: Any  # sites of *one* copy of each answer: precision, and precision times mean
    eta: Any
    traits: Any  # (n_traits,)
    consistency: Any  # a number


class State(NamedTuple):
    """Room for the Gaussian state of a person, of size d at most."""

    C: Any  # (d, d), lower triangle
    mu: Any  # (d,)
    c: Any  # (d,), covariance with a margin
    late: Any  # updates that C has not had yet
    own: Any  # prior mean of the own items, (k,)
    R: Any  # rows of a basis, (d, M)
    before: Any  # the row of the same task before each, (n,); -1 for none
    after: Any  # and the one after it


@inner_kernel
def answers_of(u, columns):
    """Rows of person u: views."""
    rows = slice(columns.answer_ptr[u], columns.answer_ptr[u + 1])
    items = columns.item_idx[columns.item_ptr[u] : columns.item_ptr[u + 1]]
    return Answers(
        items, columns.left[rows], columns.right[rows], columns.outcome[rows], columns.task[rows],
        columns.weight[rows], columns.offset[rows], columns.lam[rows], columns.eta[rows], columns.traits[u],
        columns.consistency[u],
    )  # fmt: skip


@inner_kernel
def sway_of(u, columns, sway):
    """Rows of person u of the covariates; None without."""
    return None if sway is None else sway[columns.answer_ptr[u] : columns.answer_ptr[u + 1]]


@inner_kernel
def _prior_state(in_pair_space, answers, cov, state):
    """Fill the lower triangle of the user's prior covariance, and its mean, where the items are the basis."""
    C, mu, own = state.C, state.mu, state.own
    items, la, lb = answers.items, answers.left, answers.right
    k = items.shape[0]
    n = la.shape[0]
    for i in range(n if in_pair_space else k):
        mu[i] = own[la[i]] - own[lb[i]] if in_pair_space else own[i]
    if in_pair_space:
        with_items = np.empty(k)
        for p in range(n):
            a = items[la[p]]
            b = items[lb[p]]
            for i in range(k):
                with_items[i] = cov[a, items[i]] - cov[b, items[i]]
            for q in range(p + 1):
                C[p, q] = with_items[la[q]] - with_items[lb[q]]
    else:
        for i in range(k):
            for j in range(i + 1):
                C[i, j] = cov[items[i], items[j]]


@inner_kernel
def codes_of_sides(answers):
    """Items of the left and right sides of the rows, (n,) each: copies of one item are that item."""
    n = answers.left.shape[0]
    left = np.empty(n, dtype=np.int32)
    right = np.empty(n, dtype=np.int32)
    for p in range(n):
        left[p] = answers.items[answers.left[p]]
        right[p] = answers.items[answers.right[p]]
    return left, right


@inner_kernel
def prior_state_on_basis(in_pair_space, answers, prior, Phi, state):
    """The same on a basis of functions, of which the rows go into ``R``."""
    C, mu, own, R = state.C, state.mu, state.own, state.R
    items, la, lb = answers.items, answers.left, answers.right
    cov, rho = prior.cov, prior.rho
    d = la.shape[0] if in_pair_space else items.shape[0]
    L = np.empty((d, Phi.shape[1]))
    for i in range(d):
        mu[i] = own[la[i]] - own[lb[i]] if in_pair_space else own[i]
        a = items[la[i]] if in_pair_space else items[i]
        b = items[lb[i]] if in_pair_space else a
        for j in range(Phi.shape[1]):  # loops: expressions of arrays take far longer to compile
            R[i, j] = Phi[a, j] - Phi[b, j] if in_pair_space else Phi[a, j]
            L[i, j] = cov[a, j] - cov[b, j] if in_pair_space else cov[a, j]
    product = np.dot(L, R[:d].T)
    for i in range(d):
        for j in range(i + 1):
            C[i, j] = product[i, j]
    if rho.shape[0] == 0:
        return
    left, right = codes_of_sides(answers)
    for p in range(d):
        if not in_pair_space:
            q = p
            while q >= 0 and items[q] == items[p]:  # copies of one item
                C[p, q] += rho[items[p]]
                q -= 1
            continue
        a = left[p]
        b = right[p]
        for q in range(p + 1):
            a2 = left[q]
            b2 = right[q]
            if a == a2:
                C[p, q] += rho[a]
            if b == b2:
                C[p, q] += rho[b]
            if a == b2:
                C[p, q] -= rho[a]
            if b == a2:
                C[p, q] -= rho[b]


@inner_kernel
def are_better_among_items(n, k):
    """Whether n rows of tasks on k items take less time among the items than among themselves.

    Of a pass a row takes about .6 + n² / 10⁴ and 1.6 + 2 k² / 10⁴ microseconds, by measurement.
    """
    return n * n > 2 * k * k + 10_000


@inner_kernel
def needs_pair_space(task, first, n, k):
    """Whether a user's state is of the margins: it is the smaller one, or rows are of tasks and so few that each finds
    the noise that it shares sooner among them.
    """
    if n <= k:
        return True
    if are_better_among_items(n, k):
        return False
    for p in range(first, first + n):  # noqa: SIM110 -- Numba compiles no generators
        if task[p] >= 0:
            return True
    return False


@inner_kernel
def _prior_of_effects(in_pair_space, answers, sway, state):
    """What own effects of covariates add to the prior, before utilities are multiplied by the consistency a."""
    C, mu = state.C, state.mu
    k = answers.items.shape[0]
    if in_pair_space:
        for p in range(sway.shape[0]):
            for q in range(p + 1):
                for j in range(sway.shape[1]):
                    C[p, q] += sway[p, j] * sway[q, j]
        return
    for i in range(k, k + sway.shape[1]):
        mu[i] = 0.0
        for j in range(i):
            C[i, j] = 0.0
        C[i, i] = answers.consistency * answers.consistency


@inner_kernel
def n_effects(sway):
    """Number of covariates of which people have effects of their own."""
    return 0 if sway is None else sway.shape[1]


@inner_kernel
def room_of_state(d, k, n, Phi):
    """Room for a state of size d, on k items and of n answers.

    Made here for all callers: Numba compiles what makes an array once for each function that is called from Python.
    """
    M = 0 if Phi is None else Phi.shape[1]
    return State(
        np.empty((d, d)), np.empty(d), np.empty(d), late_updates(d), np.empty(k), np.empty((d, M)),
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
    )  # fmt: skip


@inner_kernel
def room_of_sums(s, d):
    """Arrays ``x, Q, W`` for the sums of a person with a state of size d."""
    return np.empty(s), np.empty((s, s)), np.empty((s, d))


@inner_kernel
def prior_of_person(in_pair_space, answers, sway, prior, Phi, state):
    """Fill the user's prior: means ``own`` (k) and ``mu`` (d), the lower triangle ``C``, and the rows ``R`` of a basis.

    Also the rows of the same task ``before`` and ``after`` each.

    Utilities but for ``R`` are multiplied by the user's consistency a, so that answers have noise of variance 1. Rows
    of a ``task`` have it in ``C`` in pair space, as they share it. The user's own effects of covariates, in standard
    deviations of their spread, are in the margins in pair space, and the last states in item space.
    """
    a = answers.consistency
    C, own, before = state.C, state.own, state.before
    items, la, lb, task = answers.items, answers.left, answers.right, answers.task
    n = la.shape[0]
    k = items.shape[0]
    for i in range(k):
        own[i] = prior.mean[items[i]]
        for j in range(answers.traits.shape[0]):
            own[i] += prior.shift[items[i], j] * answers.traits[j]
        own[i] *= a
    if Phi is None:
        _prior_state(in_pair_space, answers, prior.cov, state)
    else:
        prior_state_on_basis(in_pair_space, answers, prior, Phi, state)
    if sway is not None:
        _prior_of_effects(in_pair_space, answers, sway, state)
    for i in range(n if in_pair_space else k):
        for j in range(i + 1):
            C[i, j] *= a * a
    chain(task, before, state.after)
    if in_pair_space:
        for p in range(n):
            if task[p] < 0:
                continue
            C[p, p] += 1.0
            q = before[p]
            while q >= 0:
                C[p, q] += shared_noise(la[p], lb[p], la[q], lb[q])
                q = before[q]


@inner_kernel
def unscale(a, x, Q, n):
    """Sums (n), (n, n) of utilities that were multiplied by the consistency, as those of the utilities."""
    for i in range(n):
        x[i] *= a
        for j in range(n):
            Q[i, j] *= a * a


@inner_kernel
def _replay_task(first, answers, sway, d, state, block):
    """:func:`replay` of a task, on a C that lacks no update; log determinant."""
    C, mu, c, late, after, lam, eta = state.C, state.mu, state.c, state.late, state.after, answers.lam, answers.eta
    k = answers.items.shape[0]
    m, r = load_task(first, d, d - k, answers.left, answers.right, after, block)
    begin_anew(m, d, C, mu, block)
    log_det = 0.0
    n_late = 0
    p = first
    while p >= 0:
        a, b, noise = block.a[p], block.b[p], block.noise[p]
        own_lam, own_eta = without_noise(noise, lam[p], eta[p])
        v, mean = direction(C, mu, a, b, d + r, c)
        if sway is not None:
            v, mean = add_effects(C, mu, a, b, d + r, c, sway, p, k)
        v -= catch_up(late, n_late, a, b, sway, p, k, d + r, c)
        change, n_late = rank_one(C, mu, c, d + r, own_lam, own_eta, v, mean, late, n_late)
        log_det += change + math.log1p(noise * lam[p])
        p = after[p]
    take_in(C, d, late, n_late)
    return log_det


@inner_kernel
def replay(in_pair_space, answers, sway, d, state, block):
    """Update the prior state to the posterior under the stored sites; log |I + Λ^½ G Λ^½|."""
    C, mu, c, late = state.C, state.mu, state.c, state.late
    k = answers.items.shape[0]
    log_det = 0.0
    n_late = 0
    for p in range(answers.left.shape[0]):
        w = answers.weight[p]
        lam = w * answers.lam[p]
        eta = w * answers.eta[p]
        if block is not None and answers.task[p] >= 0 and not in_pair_space:
            if state.before[p] < 0:
                take_in(C, d, late, n_late)
                log_det += _replay_task(p, answers, sway, d, state, block)
                n_late = 0
            continue
        if lam == 0.0 and eta == 0.0:
            continue
        a = p if in_pair_space else answers.left[p]
        b = -1 if in_pair_space else answers.right[p]
        v, mean = direction(C, mu, a, b, d, c)
        if sway is not None and not in_pair_space:
            v, mean = add_effects(C, mu, a, b, d, c, sway, p, k)
        v -= catch_up(late, n_late, a, b, sway, p, k, d, c)
        change, n_late = rank_one(C, mu, c, d, lam, eta, v, mean, late, n_late)
        log_det += change
    take_in(C, d, late, n_late)
    return log_det


@inner_kernel
def pair_statistics(answers, state, alpha, Q):
    """α (n) and Q_u (n x n) in pair space (population.md section 3)."""
    C, mu = state.C, state.mu
    weight, lam, eta = answers.weight, answers.lam, answers.eta
    for p in range(weight.shape[0]):
        total = weight[p] * lam[p]
        alpha[p] = weight[p] * eta[p] - total * mu[p]
        for q in range(p + 1):
            value = -total * C[p, q] * weight[q] * lam[q]
            Q[p, q] = value
            Q[q, p] = value
        Q[p, p] += total


@inner_kernel
def _add(value, a, b, Q):
    """Add to Q a value times the square of the design of an answer about items a and b."""
    Q[a, a] += value
    Q[a, b] -= value
    Q[b, a] -= value
    Q[b, b] += value


@inner_kernel
def _add_effects(value, a, b, sway, p, k, Q):
    """The same for answer p, in the rows and columns of own effects of covariates."""
    for i in range(sway.shape[1]):
        Q[k + i, a] += value * sway[p, i]
        Q[k + i, b] -= value * sway[p, i]
        Q[a, k + i] += value * sway[p, i]
        Q[b, k + i] -= value * sway[p, i]
        for j in range(sway.shape[1]):
            Q[k + i, k + j] += value * sway[p, i] * sway[p, j]


@inner_kernel
def _add_task(first, answers, sway, d, state, block, x, P):
    """Add to x = Xᵀ α, and to P, what the task whose first row is ``first`` tells of items and effects."""
    m, r = load_task(first, d, d - answers.items.shape[0], answers.left, answers.right, state.after, block)
    begin_task(first, m, r, d, MEANS, answers, sway, state, block)
    add_task(first, m, r, d, answers, sway, state, block, x, P)


@inner_kernel
def _subtract_square(s, C, Q, W, P):
    """Q - Q C Q in place of Q (s, s), by the lower triangle of C, the upper one of which is overwritten."""
    for i in range(s):
        for j in range(i):
            C[j, i] = C[i, j]
        for j in range(s):
            P[i, j] = Q[i, j]
    for i in range(s):
        for j in range(s):
            W[i, j] = 0.0
        for h in range(s):
            value = P[i, h]
            if value != 0.0:
                for j in range(s):
                    W[i, j] += value * C[h, j]
    for i in range(s):
        for h in range(s):
            value = W[i, h]
            for j in range(i + 1):
                Q[i, j] -= value * P[h, j]
        for j in range(i):
            Q[j, i] = Q[i, j]


@inner_kernel
def _add_to_one_before(i, x, Q, n):
    """Sums x (n), Q (n, n) of which what is of i is of the one before it."""
    x[i - 1] += x[i]
    x[i] = 0.0
    for j in range(n):
        Q[i - 1, j] += Q[i, j]
        Q[i, j] = 0.0
    for j in range(n):
        Q[j, i - 1] += Q[j, i]
        Q[j, i] = 0.0


@inner_kernel
def person_statistics(in_pair_space, answers, sway, state, block, x, Q, W):
    """The sums x = Xᵀ α (s) and Xᵀ Q X (s x s), on the k own items of the user and the own effects of covariates.

    Of copies of an item those of the first are of all.
    """
    _statistics_by_place(in_pair_space, answers, sway, state, block, x, Q, W)
    items = answers.items
    for i in range(items.shape[0] - 1, 0, -1):
        if items[i] == items[i - 1]:
            _add_to_one_before(i, x, Q, items.shape[0] + n_effects(sway))


@inner_kernel
def _statistics_by_place(in_pair_space, answers, sway, state, block, x, Q, W):
    """:func:`person_statistics` in which copies of an item are items of their own."""
    C, mu, c = state.C, state.mu, state.c
    la, lb, weight, lam, eta = answers.left, answers.right, answers.weight, answers.lam, answers.eta
    n = la.shape[0]
    k = answers.items.shape[0]
    s = k + n_effects(sway)
    for i in range(s):
        x[i] = 0.0
        for j in range(s):
            Q[i, j] = 0.0
        for j in range(n if in_pair_space else s):
            W[i, j] = 0.0
    if in_pair_space:
        for p in range(n):
            a = la[p]
            b = lb[p]
            total = weight[p] * lam[p]
            alpha = weight[p] * eta[p] - total * mu[p]
            x[a] += alpha
            x[b] -= alpha
            # Of Xᵀ Q X = Z + Zᵀ, Z = Xᵀ L X with the lower triangle L of Q and half of its diagonal; W = Xᵀ L.
            for q in range(p + 1):
                c[q] = -total * C[p, q] * weight[q] * lam[q]
            c[p] = 0.5 * (c[p] + total)
            for q in range(p + 1):
                W[a, q] += c[q]
                W[b, q] -= c[q]
            if sway is not None:
                for j in range(sway.shape[1]):
                    x[k + j] += sway[p, j] * alpha
                    for q in range(p + 1):
                        W[k + j, q] += sway[p, j] * c[q]
        for q in range(n):
            a = la[q]
            b = lb[q]
            for i in range(s):
                Q[a, i] += W[i, q]
                Q[b, i] -= W[i, q]
                if sway is not None:
                    for j in range(sway.shape[1]):
                        Q[k + j, i] += W[i, q] * sway[q, j]
        for i in range(s):
            for j in range(i + 1):
                Q[i, j] += Q[j, i]
                Q[j, i] = Q[i, j]
        return
    # Item space: P = Xᵀ Λ X is a weighted graph Laplacian, or what tasks tell, and Xᵀ Q X = P - P S P.
    has_tasks = False
    for p in range(n):
        a = la[p]
        b = lb[p]
        total = weight[p] * lam[p]
        if block is not None and answers.task[p] >= 0:
            has_tasks = True
            if state.before[p] < 0:
                _add_task(p, answers, sway, s, state, block, x, Q)
            continue
        mean = mu[a] - mu[b]
        if sway is not None:
            for j in range(sway.shape[1]):
                mean += sway[p, j] * mu[k + j]
        alpha = weight[p] * eta[p] - total * mean
        x[a] += alpha
        x[b] -= alpha
        _add(total, a, b, Q)
        if sway is not None:
            for j in range(sway.shape[1]):
                x[k + j] += sway[p, j] * alpha
            _add_effects(total, a, b, sway, p, k, Q)
    if block is not None and has_tasks:
        _subtract_square(s, C, Q, W, block.rows)
        return
    for i in range(s):  # W = P S, with P in Q
        for h in range(s):
            value = Q[i, h]
            if value != 0.0:
                for j in range(h + 1):
                    W[i, j] += value * C[h, j]
                for j in range(h + 1, s):
                    W[i, j] += value * C[j, h]
    for p in range(n):  # Q = P - W P, the rows of P being those of Xᵀ Λ X
        a = la[p]
        b = lb[p]
        total = weight[p] * lam[p]
        for i in range(s):
            change = W[i, a] - W[i, b]
            if sway is not None:
                for j in range(sway.shape[1]):
                    change += W[i, k + j] * sway[p, j]
            flow = total * change
            Q[i, a] -= flow
            Q[i, b] += flow
            if sway is not None:
                for j in range(sway.shape[1]):
                    Q[i, k + j] -= flow * sway[p, j]
    for i in range(s):
        for j in range(i):
            Q[j, i] = Q[i, j]


@kernel
def person_sums(u, columns, sway, among_items, prior, Phi):
    """The sums x (s) and Q (s x s) of user u at the stored sites, on own items and own effects of covariates."""
    answers = answers_of(u, columns)
    own_sway = sway_of(u, columns, sway)
    n = answers.left.shape[0]
    k = answers.items.shape[0]
    in_pair_space = needs_pair_space(answers.task, 0, n, k)
    s = k + n_effects(sway)
    d = n if in_pair_space else s
    state = room_of_state(size_with_noise(d, k, among_items), k, n, Phi)
    block = room_of_task(k, n_effects(sway), n, among_items)
    x, Q, W = room_of_sums(s, d)
    prior_of_person(in_pair_space, answers, own_sway, prior, Phi, state)
    replay(in_pair_space, answers, own_sway, d, state, block)
    person_statistics(in_pair_space, answers, own_sway, state, block, x, Q, W)
    unscale(answers.consistency, x, Q, s)
    return x, Q
