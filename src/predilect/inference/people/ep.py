"""Expectation propagation of one person after another (Minka 2001; Rasmussen and Williams, Algorithm 3.5).

The state of a person is Gaussian, N(mu, C), of which the lower triangle of C is kept (population.md section 2). It
holds the margins of the answers, or the utilities of the items and then the person's own effects of covariates;
:func:`begin` fills the prior. After that an answer is a margin of states, and no loop asks what they are. The noise
that rows of a task share is in the prior of the margins; among items it joins the state, see
:mod:`~predilect.inference.people.tasks`.

Written for the probit: :meth:`~predilect.inference.likelihoods.views.PairLikelihood.compiled` puts another in its
place. A ``Phi`` of None: the items are the basis. Numba compiles nothing of a branch that ``Phi is None`` rules out,
and what only a basis of functions needs takes as long to compile as all else. So with an ``among_items``, or a
``block``, of None: nobody's tasks are worked on among items. Both are arguments of their own, as Numba does not look
for None within a tuple.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.likelihoods.probit import moments_scalar, tilted_scalar
from predilect.inference.people.tasks import add_shared_noise, begin_task, order_rows, room_of_task, sign, starts_task

AT_ONCE = 4  # updates of C that are done in one pass over it, which takes half the time; as :func:`take_in` writes out
_MAX_INNER = 200  # inner iterations of the site of many identical answers
_INNER_TOLERANCE = 1e-12
MOST_THRESHOLD_STEPS = 40
_LARGEST_STEP = 1.0
# A chord's slope is accepted within these factors of the curvature with the cavities held.
_LOWEST_CHORD, _HIGHEST_CHORD = 0.2, 5.0
_TOO_SHORT = 1e-9  # a step whose chord would be rounding
# Tolerance of the sites of one person at first, and as a share of the last step.
FIRST_REST, _REST = 1e-3, 0.02
_OF_THRESHOLD = 5.0  # how much more a threshold may be left to move, in its logarithm, than a margin


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
    slope_columns: Any
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
    slope_columns: Any  # covariates in units in which people's own effects of them have variance 1, (n, n_effects)
    traits: Any  # (n_traits,)
    consistency: Any  # a number


class Shape(NamedTuple):
    """Size d of a person's state, of which the first m are margins or items, and the others own effects."""

    is_of_margins: Any
    m: Any
    d: Any


class State(NamedTuple):
    """Room for the Gaussian state of a person, of size d at most, with k items and n rows."""

    C: Any  # (d, d), lower triangle
    mu: Any  # (d,)
    c: Any  # covariance of the states with a margin; scratch, (max(d, k),)
    late: Any  # directions of updates that C has not had yet, (AT_ONCE + 1, d), and in the last row their gains
    own: Any  # prior mean of the own items, (k,)
    R: Any  # rows of a basis, (d, M)
    a: Any  # states whose difference is the margin of a row, but for own effects, (n,); b < 0: the state a itself
    b: Any
    before: Any  # of margins the row of the same task before each; -1 without, (n,)
    plus: Any  # own items whose difference is a state, (d,); minus < 0: the utility of the item plus
    minus: Any


@inner_kernel
def answers_of(u, columns):
    """Rows of person u: views."""
    rows = slice(columns.answer_ptr[u], columns.answer_ptr[u + 1])
    items = columns.item_idx[columns.item_ptr[u] : columns.item_ptr[u + 1]]
    slopes = columns.slope_columns
    return Answers(
        items, columns.left[rows], columns.right[rows], columns.outcome[rows], columns.task[rows],
        columns.weight[rows], columns.offset[rows], columns.lam[rows], columns.eta[rows],
        slopes[rows] if slopes.shape[1] else slopes, columns.traits[u], columns.consistency[u],
    )  # fmt: skip


@inner_kernel
def are_better_among_items(n, k):
    """Whether n rows of tasks on k items take less time among the items than among themselves.

    Of a pass a row takes about .6 + n² / 10⁴ and 1.6 + 2 k² / 10⁴ microseconds, by measurement.
    """
    return n * n > 2 * k * k + 10_000


@inner_kernel
def shape_of(task, k, q):
    """Shape of the state of a person with k items and q own effects: of the margins if it is the smaller one, or if
    rows are of tasks and so few that each finds the noise that it shares sooner among them.
    """
    n = task.shape[0]
    is_of_margins = n <= k
    if not is_of_margins and not are_better_among_items(n, k):
        for p in range(n):
            is_of_margins = is_of_margins or task[p] >= 0
    return Shape(True, n, n) if is_of_margins else Shape(False, k, k + q)


@inner_kernel
def room_of_state(d, k, n, among_items, Phi):
    """Room for a state of size d, on k items and of n answers.

    Made here for all callers: Numba compiles what makes an array once for each function that is called from Python.
    """
    size = d if among_items is None else d + k  # with the utilities with noise of a task
    M = 0 if Phi is None else Phi.shape[1]
    rows, sides = np.empty((3, n), dtype=np.int64), np.empty((2, d), dtype=np.int32)
    return State(
        np.empty((size, size)), np.empty(size), np.empty(max(size, k)), np.empty((AT_ONCE + 1, max(size, AT_ONCE))),
        np.empty(k), np.empty((d, M)), rows[0], rows[1], rows[2], sides[0], sides[1],
    )  # fmt: skip


@inner_kernel
def _covariance(m, items, plus, minus, cov, scale, C, row):
    """Prior covariance of m margins or items, times ``scale``, where the items are the basis."""
    for i in range(m):
        a = items[plus[i]]
        for j in range(items.shape[0]):
            row[j] = scale * cov[a, items[j]]
        if minus[i] >= 0:
            b = items[minus[i]]
            for j in range(items.shape[0]):
                row[j] -= scale * cov[b, items[j]]
        for j in range(i + 1):
            C[i, j] = row[plus[j]] - row[minus[j]] if minus[j] >= 0 else row[plus[j]]


@inner_kernel
def covariance_on_basis(m, items, plus, minus, prior, Phi, scale, C, R):
    """The same on a basis of functions, of which the rows go into ``R``."""
    cov, rho = prior.cov, prior.rho
    L = np.empty((m, Phi.shape[1]))
    for i in range(m):
        a = items[plus[i]]
        for j in range(Phi.shape[1]):  # loops: expressions of arrays take far longer to compile
            R[i, j] = Phi[a, j]
            L[i, j] = cov[a, j]
        if minus[i] >= 0:
            b = items[minus[i]]
            for j in range(Phi.shape[1]):
                R[i, j] -= Phi[b, j]
                L[i, j] -= cov[b, j]
    product = np.dot(L, R[:m].T)
    for i in range(m):
        for j in range(i + 1):
            C[i, j] = scale * product[i, j]
    if rho.shape[0] == 0:
        return
    for i in range(m):
        a, b = _codes(i, items, plus, minus)
        for j in range(i, -1, -1):
            a2, b2 = _codes(j, items, plus, minus)
            C[i, j] += scale * rho[a] * sign(a, a2, b2)
            if b >= 0:
                C[i, j] -= scale * rho[b] * sign(b, a2, b2)
            elif a2 != a:  # copies of one item follow each other
                break


@inner_kernel
def _codes(i, items, plus, minus):
    """Items of a state: copies of one are that item; the second is -1 where there is none."""
    return np.int64(items[plus[i]]), np.int64(items[minus[i]]) if minus[i] >= 0 else -1


@inner_kernel
def begin(shape, answers, prior, Phi, state, block):
    """Fill a person's prior: means ``own`` (k) and ``mu``, the lower triangle of ``C``, the rows ``R`` of a basis; and
    what states the margin of each row is of.

    Utilities but for ``R`` are multiplied by the consistency a, so that answers have noise of variance 1. Own effects
    of covariates, in standard deviations of their spread, are in the margins, or the last states.
    """
    a, m, d = answers.consistency, shape.m, shape.d
    C, mu, own, plus, minus = state.C, state.mu, state.own, state.plus, state.minus
    is_of_margins = shape.is_of_margins
    items, left, right, task, slope_columns = (
        answers.items,
        answers.left,
        answers.right,
        answers.task,
        answers.slope_columns,
    )
    for i in range(m):
        plus[i] = left[i] if is_of_margins else i
        minus[i] = right[i] if is_of_margins else -1
    mean, shift, traits = prior.mean, prior.shift, answers.traits
    of_left, of_right = state.a, state.b
    for p in range(task.shape[0]):
        of_left[p] = p if is_of_margins else left[p]
        of_right[p] = -1 if is_of_margins else right[p]
    if block is not None:
        order_rows(is_of_margins, task, block.order, block.noise)
    for i in range(items.shape[0]):
        own[i] = mean[items[i]]
        for j in range(traits.shape[0]):
            own[i] += shift[items[i], j] * traits[j]
        own[i] *= a
    for i in range(m):
        mu[i] = own[plus[i]] - own[minus[i]] if minus[i] >= 0 else own[plus[i]]
    if Phi is None:
        _covariance(m, items, plus, minus, prior.cov, a * a, C, state.c)
    else:
        covariance_on_basis(m, items, plus, minus, prior, Phi, a * a, C, state.R)
    if is_of_margins:
        for h in range(slope_columns.shape[1]):
            for i in range(m):
                for j in range(i + 1):
                    C[i, j] += a * a * slope_columns[i, h] * slope_columns[j, h]
    for i in range(m, d):
        mu[i] = 0.0
        for j in range(i):
            C[i, j] = 0.0
        C[i, i] = a * a
    if is_of_margins:
        _add_noise(task, left, right, state.before, C)


@inner_kernel
def _add_noise(task, left, right, before, C):
    """Adds the noise that margins of tasks have to their prior covariance, and finds the row ``before`` each."""
    for p in range(task.shape[0]):
        before[p] = -1
        if task[p] < 0:
            continue
        C[p, p] += 1.0
        q = p - 1
        while q >= 0 and task[q] != task[p]:
            q -= 1
        before[p] = q
        while q >= 0:
            C[p, q] += _shared_noise(left[p], right[p], left[q], right[q])
            q = before[q]


@inner_kernel
def _shared_noise(a, b, a2, b2):
    """Covariance of the noise of two rows of one task: each item has noise of variance ½."""
    return 0.5 * (sign(a, a2, b2) - sign(b, a2, b2))


# What follows is called for each row: with arrays, as tuples of them take as long to pass as a row takes.


@inner_kernel
def margin(C, mu, c, late, n_late, a, b, slope_columns, p, m, d, size):
    """Covariance ``c`` of the first states, as many as ``size``, with the margin of row p, its variance and mean.

    The margin is state a less state b, and ``slope_columns[p]`` times the states from m to d; b < 0: state a itself.
    """
    for i in range(a + 1):
        c[i] = C[a, i]
    for i in range(a + 1, size):
        c[i] = C[i, a]
    if b >= 0:
        for i in range(b + 1):
            c[i] -= C[b, i]
        for i in range(b + 1, size):
            c[i] -= C[i, b]
    for j in range(m, d):
        x = slope_columns[p, j - m]
        for i in range(j + 1):
            c[i] += x * C[j, i]
        for i in range(j + 1, size):
            c[i] += x * C[i, j]
    for h in range(n_late):
        x = late[h, a] - late[h, b] if b >= 0 else late[h, a]
        for j in range(m, d):
            x += slope_columns[p, j - m] * late[h, j]
        x *= late[AT_ONCE, h]
        for i in range(size):
            c[i] -= x * late[h, i]
    return _along(c, a, b, slope_columns, p, m, d), _along(mu, a, b, slope_columns, p, m, d)


@inner_kernel
def _along(c, a, b, slope_columns, p, m, d):
    """What a vector over states has of the margin of row p."""
    value = c[a] - c[b] if b >= 0 else c[a]
    for j in range(m, d):
        value += slope_columns[p, j - m] * c[j]
    return value


@inner_kernel
def gain_and_shift(d_lam, d_eta, mean, v):
    """What a precision and a precision-mean that are added to a margin N(mean, v) do: 1 + d_lam v, by which its
    variance is divided; by how much the square of a covariance with it is to be multiplied and taken from a variance;
    and the covariance itself for the mean.
    """
    factor = 1.0 + d_lam * v
    return factor, d_lam / factor, (d_eta - d_lam * mean) / factor


@inner_kernel
def cavity(mean, v, lam, eta):
    """Mean and variance of a margin N(mean, v) without one copy of its site (λ, η)."""
    share = 1.0 - lam * v
    return (mean - v * eta) / share, v / share


@inner_kernel
def site_at(slope, curvature, mean, v):
    """Site (λ, η) by which the cavity N(mean, v) has the moments that the answer gives it."""
    denominator = 1.0 - curvature * v
    return curvature / denominator, (slope + curvature * mean) / denominator


@inner_kernel
def quadratic_of_site(lam, eta, mean, v):
    """Log of the cavity's mean of its site, but for -½ log (1 + λ v), with the sign turned."""
    return 0.5 * (lam * mean * mean - 2.0 * mean * eta - v * eta * eta) / (1.0 + lam * v)


@inner_kernel
def add_site(C, mu, c, late, n_late, d_lam, d_eta, v, mean, size):
    """Add a precision and a precision-mean to the margin N(mean, v) that has the covariances c with the state.

    The mean has it at once, C with the last of four. Returns log (1 + d_lam v) and how many updates are late.
    """
    _, late[AT_ONCE, n_late], shift = gain_and_shift(d_lam, d_eta, mean, v)
    for i in range(size):
        mu[i] += shift * c[i]
        late[n_late, i] = c[i]
    n_late += 1
    if n_late == AT_ONCE:
        take_in(C, late, n_late, size)
        n_late = 0
    return math.log1p(d_lam * v), n_late


@inner_kernel
def take_in(C, late, n_late, size):
    """Takes the updates that are late from the lower triangle of C."""
    if n_late == 0:
        return
    for h in range(n_late, AT_ONCE):
        late[AT_ONCE, h] = 0.0
        for i in range(size):
            late[h, i] = 0.0
    for i in range(size):
        x0 = late[AT_ONCE, 0] * late[0, i]
        x1 = late[AT_ONCE, 1] * late[1, i]
        x2 = late[AT_ONCE, 2] * late[2, i]
        x3 = late[AT_ONCE, 3] * late[3, i]
        for j in range(i + 1):
            C[i, j] -= x0 * late[0, j] + x1 * late[1, j] + x2 * late[2, j] + x3 * late[3, j]


@inner_kernel
def _covariance_with(g, C, a, b, slope_columns, p, m, d):
    """Covariance of the margin of row p with state g."""
    value = C[max(a, g), min(a, g)]
    if b >= 0:
        value -= C[max(b, g), min(b, g)]
    for j in range(m, d):
        value += slope_columns[p, j - m] * C[max(j, g), min(j, g)]
    return value


@inner_kernel
def marginal(C, mu, a, b):
    """Variance and mean of the margin between states a and b, or for b < 0 of state a itself, without own effects."""
    if b < 0:
        return C[a, a], mu[a]
    return C[a, a] + C[b, b] - 2.0 * C[max(a, b), min(a, b)], mu[a] - mu[b]


@inner_kernel
def marginal_of_effects(C, mu, a, b, slope_columns, p, m, d):
    """What own effects, states m to d, add to the variance and the mean of the margin of row p."""
    v, mean = 0.0, 0.0
    for j in range(m, d):
        along = C[max(j, a), min(j, a)] - C[max(j, b), min(j, b)] + 0.5 * slope_columns[p, j - m] * C[j, j]
        for i in range(m, j):
            along += slope_columns[p, i - m] * C[j, i]
        v += 2.0 * slope_columns[p, j - m] * along
        mean += slope_columns[p, j - m] * mu[j]
    return v, mean


@inner_kernel
def replay(shape, answers, state, block):
    """Update the prior state to the posterior under the stored sites; log |I + Λ^½ G Λ^½|."""
    C, mu, c, late, slope_columns, size = state.C, state.mu, state.c, state.late, answers.slope_columns, shape.d
    n_late: Any = np.int64(0)  # for a 0 as it stands, what is called is compiled twice
    a, b, m, d = state.a, state.b, shape.m, shape.d
    task, weight, lam, eta, is_of_margins = answers.task, answers.weight, answers.lam, answers.eta, shape.is_of_margins
    log_det = 0.0
    for t in range(answers.left.shape[0]):
        p = t
        if block is not None:
            p = block.order[t]
            if starts_task(t, is_of_margins, task, block.order):
                take_in(C, late, n_late, size)
                size, n_late = begin_task(t, True, shape, answers, state, block), np.int64(0)
        if lam[p] == 0.0 and eta[p] == 0.0:
            continue
        total, linear = weight[p] * lam[p], weight[p] * eta[p]
        if block is not None and block.noise[p] > 0.0:
            # With noise of its own of variance ν, a site (λ, η) of the margin is (λ, η) / (1 + ν λ) of that without it.
            own = 1.0 + block.noise[p] * lam[p]
            total, linear = total / own, linear / own
            log_det += math.log(own)
        v, mean = margin(C, mu, c, late, n_late, a[p], b[p], slope_columns, p, m, d, size)
        change, n_late = add_site(C, mu, c, late, n_late, total, linear, v, mean, size)
        log_det += change
    take_in(C, late, n_late, size)
    return log_det


@inner_kernel
def _with_noise(v, mean, noise, lam, eta):
    """Variance and mean of a margin with the row's own noise, of N(mean, v) without, under the site (λ, η)."""
    own = 1.0 + noise * lam
    return (v / own + noise) / own, (mean + noise * eta) / own


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
            m_c, v_c = cavity(mu, v, lam, eta)
        slope, curvature = moments_scalar(y, m_c + offset, v_c - noise, delta)
        new_lam, new_eta = site_at(slope, curvature, m_c, v_c)
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
def sweep(shape, answers, delta, state, block):
    """One sequential EP sweep; (change of log |B|, largest change of a margin)."""
    C, mu, c, late, slope_columns, size = state.C, state.mu, state.c, state.late, answers.slope_columns, shape.d
    n_late: Any = np.int64(0)  # for a 0 as it stands, what is called is compiled twice
    a, b, m, d = state.a, state.b, shape.m, shape.d
    weight, lam, eta = answers.weight, answers.lam, answers.eta
    task, outcome, offset, care = answers.task, answers.outcome, answers.offset, answers.consistency
    is_of_margins = shape.is_of_margins
    log_det, largest = 0.0, 0.0
    for t in range(answers.left.shape[0]):
        p = t
        if block is not None:
            p = block.order[t]
            if starts_task(t, is_of_margins, task, block.order):
                take_in(C, late, n_late, size)
                size, n_late = begin_task(t, False, shape, answers, state, block), np.int64(0)
        w, in_task = weight[p], task[p] >= 0
        v_own, mean_own = margin(C, mu, c, late, n_late, a[p], b[p], slope_columns, p, m, d, size)
        v, mean = v_own, mean_own
        if block is not None:
            v, mean = _with_noise(v, mean, block.noise[p], lam[p], eta[p])
        new_lam, new_eta = refresh_site(
            outcome[p], w, mean, v, 1.0 - w * lam[p] * v, lam[p], eta[p], 0.0 if in_task else delta,
            care * offset[p], 1.0 if in_task else 0.0,
        )  # fmt: skip
        d_lam, d_eta = new_lam - lam[p], new_eta - eta[p]
        largest = max(largest, change_of_margin(w * d_lam, w * d_eta, mean, v))
        if block is not None and block.noise[p] > 0.0:
            before, after = 1.0 + block.noise[p] * lam[p], 1.0 + block.noise[p] * new_lam
            d_lam, d_eta = new_lam / after - lam[p] / before, new_eta / after - eta[p] / before
            log_det += math.log(after / before)
        change, n_late = add_site(C, mu, c, late, n_late, w * d_lam, w * d_eta, v_own, mean_own, size)
        log_det += change
        lam[p] = new_lam
        eta[p] = new_eta
    take_in(C, late, n_late, size)
    return log_det, largest


@inner_kernel
def _answer_evidence(outcome, in_task, w, mean, v, lam, eta, z_bar, delta, offset, of_noise, out):
    """Adds one row's part of log Z, and its derivatives in δ, to ``out``; ``of_noise``: its part of tr (ααᵀ - Q) N.

    A choice from a set has no threshold, and its noise is in v.
    """
    m_c, v_c = cavity(mean, v, lam, eta)
    log_z, _, _, slope_delta, curvature_delta = tilted_scalar(
        outcome, m_c + offset, v_c - (1.0 if in_task else 0.0), 0.0 if in_task else delta
    )
    message = 0.5 * math.log(1.0 + lam * v_c) + quadratic_of_site(lam, eta, m_c, v_c)
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
def _of_noise(C, mu, task, before, left, right, lam, eta, out):
    """Each row's part of tr (ααᵀ - Q) N into ``out``, for the noise N that margins of tasks share."""
    for p in range(lam.shape[0]):
        out[p] = 0.0
        if task[p] < 0:
            continue
        alpha = eta[p] - lam[p] * mu[p]
        out[p] = alpha * alpha - lam[p] + lam[p] * C[p, p] * lam[p]
        q = before[p]
        while q >= 0:
            score = alpha * (eta[q] - lam[q] * mu[q]) + lam[p] * C[p, q] * lam[q]
            score *= _shared_noise(left[p], right[p], left[q], right[q])
            out[p] += score
            out[q] += score
            q = before[q]


@inner_kernel
def _of_noise_in_state(item, g, alpha, lam, C, mu, a, b, slope_columns, p, m, d):
    """Part of an item's noise in that of row p: α times the noise, less λ times its covariance with the margin; the
    utility with it is state g.
    """
    if g == item:
        return 0.0
    score = _covariance_with(g, C, a, b, slope_columns, p, m, d) - _covariance_with(
        item, C, a, b, slope_columns, p, m, d
    )
    return alpha * (mu[g] - mu[item]) - lam * score


@inner_kernel
def evidence(shape, answers, delta, log_det, state, block, out, pull):
    """Sets ``out`` (5,) to the person's log Z, its gradient and curvature in δ, and the gradient and information in the
    logarithm of the consistency; and the ``pull`` of each row on its offset.

    population.md section 2.
    """
    C, mu, own, slope_columns, m, d = state.C, state.mu, state.own, answers.slope_columns, shape.m, shape.d
    left, right, task, weight, lam, eta = (
        answers.left, answers.right, answers.task, answers.weight, answers.lam, answers.eta
    )  # fmt: skip
    at_left, at_right = state.a, state.b
    is_of_margins = shape.is_of_margins
    outcome, offset, care = answers.outcome, answers.offset, answers.consistency
    for i in range(5):
        out[i] = 0.0
    value = -0.5 * log_det
    shared = state.c
    if is_of_margins:
        _of_noise(C, mu, task, state.before, left, right, lam, eta, shared)
    for t in range(left.shape[0]):
        p = t
        if block is not None:
            p = block.order[t]
            if starts_task(t, is_of_margins, task, block.order):
                begin_task(t, False, shape, answers, state, block)
        w, a, b = weight[p], at_left[p], at_right[p]
        v_own, mean_own = marginal(C, mu, a, b)
        if d > m:
            of_effects = marginal_of_effects(C, mu, a, b, slope_columns, p, m, d)
            v_own, mean_own = v_own + of_effects[0], mean_own + of_effects[1]
        v, mean = v_own, mean_own
        if block is not None:
            v, mean = _with_noise(v, mean, block.noise[p], lam[p], eta[p])
        alpha = eta[p] - lam[p] * mean
        of_noise = 0.0
        if is_of_margins:
            of_noise = shared[p]
        if block is not None and task[p] >= 0 and not is_of_margins:
            noise = block.noise[p]
            own_lam = lam[p] / (1.0 + noise * lam[p])
            of_noise = noise * (alpha * alpha - own_lam + own_lam * v_own * own_lam)
            of_noise += _of_noise_in_state(left[p], a, alpha, own_lam, C, mu, a, b, slope_columns, p, m, d)
            of_noise -= _of_noise_in_state(right[p], b, alpha, own_lam, C, mu, a, b, slope_columns, p, m, d)
        z_bar = own[left[p]] - own[right[p]]
        _answer_evidence(
            outcome[p], task[p] >= 0, w, mean, v, lam[p], eta[p], z_bar, delta, care * offset[p],
            of_noise, out,
        )  # fmt: skip
        if pull.shape[0]:
            pull[p] = care * w * alpha
        value += 0.5 * w * (eta[p] - lam[p] * z_bar) * (mean - z_bar)  # of ½ eᵀ C e, as means are z̄ + C e
    out[0] += value


class Statistics(NamedTuple):
    """Room for what answers tell of the d states of a person, and of the own items and effects, s in all."""

    alpha: Any  # (d,)
    P: Any  # (d, d)
    W: Any  # scratch, (max(d, s), d)
    x: Any  # (s,)
    S: Any  # (s, s)


@inner_kernel
def _room_of_statistics(d, s):
    return Statistics(np.empty(d), np.empty((d, d)), np.empty((max(d, s), d)), np.empty(s), np.empty((s, s)))


@inner_kernel
def statistics(shape, answers, state, block, room):
    """α (d) and the lower triangle of Q = P - P C P (d, d), in place of C, for the precision P that answers add to the
    prior's (population.md section 3); of utilities that are not multiplied by the consistency.
    """
    C, mu, d, care = state.C, state.mu, shape.d, answers.consistency
    weight, lam, eta, alpha = answers.weight, answers.lam, answers.eta, room.alpha
    if shape.is_of_margins:
        for p in range(d):
            total = weight[p] * lam[p]
            alpha[p] = weight[p] * eta[p] - total * mu[p]
            for q in range(p + 1):
                C[p, q] *= -total * weight[q] * lam[q]
            C[p, p] += total
    else:
        _information(shape, answers, state, block, alpha, room.P)
        _subtract_square(d, room.P, room.W, C)
    for i in range(d):
        alpha[i] *= care
        for j in range(i + 1):
            C[i, j] *= care * care


@inner_kernel
def _information(shape, answers, state, block, alpha, P):
    """α (d) and P (d, d) among items and own effects."""
    mu, m, d, a, b = state.mu, shape.m, shape.d, state.a, state.b
    left, right, task, slope_columns = answers.left, answers.right, answers.task, answers.slope_columns
    weight, lam, eta = answers.weight, answers.lam, answers.eta
    for i in range(d):
        alpha[i] = 0.0
        for j in range(d):
            P[i, j] = 0.0
    for t in range(left.shape[0]):
        p = t
        if block is not None:
            p = block.order[t]
            if starts_task(t, False, task, block.order):
                size = begin_task(t, False, shape, answers, state, block)
                add_shared_noise(size - d, m, d, block.n_rows, block.at, block.M, block.W, P)
        total, score = weight[p] * lam[p], weight[p] * eta[p]
        if block is not None and block.noise[p] > 0.0:
            own = 1.0 + block.noise[p] * lam[p]
            total, score = total / own, score / own
        mean = mu[a[p]] - mu[b[p]]
        for g in range(m, d):
            mean += slope_columns[p, g - m] * mu[g]
        score -= total * mean
        i, j = left[p], right[p]
        alpha[i] += score
        alpha[j] -= score
        # What is of a state with noise has been added with its task.
        of_left, of_right = total * (a[p] < d), total * (b[p] < d)
        P[i, i] += of_left
        P[j, j] += of_right
        both = of_left * (b[p] < d)
        P[i, j] -= both
        P[j, i] -= both
        for g in range(m, d):
            x = slope_columns[p, g - m]
            alpha[g] += x * score
            P[g, i] += x * of_left
            P[i, g] += x * of_left
            P[g, j] -= x * of_right
            P[j, g] -= x * of_right
            for h in range(m, d):
                P[g, h] += x * total * slope_columns[p, h - m]


@inner_kernel
def _subtract_square(d, P, W, C):
    """The lower triangle of P - P C P in place of that of C, for a P with many zeros; W (d, d) is scratch."""
    for i in range(d):
        for j in range(i):
            C[j, i] = C[i, j]
    for i in range(d):
        for j in range(d):
            W[i, j] = 0.0
        for h in range(d):
            x = P[i, h]
            if x != 0.0:
                for j in range(d):
                    W[i, j] += x * C[h, j]
    for i in range(d):
        for j in range(i):
            W[i, j], W[j, i] = W[j, i], W[i, j]
    for i in range(d):
        for j in range(i + 1):
            C[i, j] = P[i, j]
        for h in range(d):
            x = P[i, h]
            if x != 0.0:
                for j in range(i + 1):
                    C[i, j] -= x * W[h, j]


@inner_kernel
def _on_items(shape, answers, Q, room):
    """Sums x = Xᵀ α (s) and the lower triangle of Xᵀ Q X (s, s) on the k own items and the own effects."""
    left, right, slope_columns, alpha, W, x, S = (
        answers.left, answers.right, answers.slope_columns, room.alpha, room.W, room.x, room.S
    )  # fmt: skip
    k, n = answers.items.shape[0], left.shape[0]
    s = k + slope_columns.shape[1]
    if not shape.is_of_margins:
        return alpha, Q
    for i in range(s):
        x[i] = 0.0
        for j in range(s):
            S[i, j] = 0.0
        for q in range(n):
            W[i, q] = 0.0
    # Xᵀ Q X = Z + Zᵀ, Z = W X = Xᵀ L X with the lower triangle L of Q and half of its diagonal.
    for p in range(n):
        a, b = left[p], right[p]
        Q[p, p] *= 0.5
        x[a] += alpha[p]
        x[b] -= alpha[p]
        for q in range(p + 1):
            W[a, q] += Q[p, q]
            W[b, q] -= Q[p, q]
        for h in range(slope_columns.shape[1]):
            x[k + h] += slope_columns[p, h] * alpha[p]
            for q in range(p + 1):
                W[k + h, q] += slope_columns[p, h] * Q[p, q]
        Q[p, p] *= 2.0
    for q in range(n):
        a, b = left[q], right[q]
        for i in range(s):
            S[a, i] += W[i, q]
            S[b, i] -= W[i, q]
        for h in range(slope_columns.shape[1]):
            for i in range(s):
                S[k + h, i] += W[i, q] * slope_columns[q, h]
    for i in range(s):
        for j in range(i + 1):
            S[i, j] += S[j, i]
    return x, S


@kernel
def person_sums(u, columns, among_items, prior, Phi):
    """The sums x (s) and Q (s x s) of user u at the stored sites, on own items and own effects of covariates.

    Of copies of an item those of the first are of all.
    """
    answers = answers_of(u, columns)
    items = answers.items
    n, k, q = answers.left.shape[0], items.shape[0], answers.slope_columns.shape[1]
    shape = shape_of(answers.task, k, q)
    state = room_of_state(shape.d, k, n, among_items, Phi)
    block = room_of_task(k, q, n, among_items)
    room = _room_of_statistics(shape.d, k + q)
    begin(shape, answers, prior, Phi, state, block)
    replay(shape, answers, state, block)
    statistics(shape, answers, state, block, room)
    x, Q = _on_items(shape, answers, state.C, room)
    S = room.S
    for i in range(k + q):
        for j in range(i + 1):
            S[i, j] = Q[i, j]
            S[j, i] = Q[i, j]
    for i in range(k - 1, 0, -1):
        if items[i] == items[i - 1]:
            x[i - 1] += x[i]
            x[i] = 0.0
            for j in range(k + q):
                S[i - 1, j] += S[i, j]
                S[i, j] = 0.0
            for j in range(k + q):
                S[j, i - 1] += S[j, i]
                S[j, i] = 0.0
    return x, S


@inner_kernel
def scatter_means(m, alpha, w, items, plus, minus, traits, r, r_traits):
    """Adds a person's α, times w, to the sums over items."""
    for i in range(m):
        a, b = _codes(i, items, plus, minus)
        r[a] += w * alpha[i]
        for j in range(traits.shape[0]):
            r_traits[a, j] += w * alpha[i] * traits[j]
        if b >= 0:
            r[b] -= w * alpha[i]
            for j in range(traits.shape[0]):
                r_traits[b, j] -= w * alpha[i] * traits[j]


@inner_kernel
def _scatter_items(items, x, S, w, H, D):
    """Adds a person's sums over the own items, times w, where the items are the basis: lower triangles."""
    for i in range(items.shape[0]):
        a = items[i]
        for j in range(i + 1):  # items ascend
            H[a, items[j]] += w * S[i, j]
            D[a, items[j]] += w * (x[i] * x[j] - S[i, j])
        j = i - 1
        while j >= 0 and items[j] == a:  # copies, on one diagonal element from both triangles
            H[a, a] += w * S[i, j]
            D[a, a] += w * (x[i] * x[j] - S[i, j])
            j -= 1


@inner_kernel
def scatter_basis(m, alpha, Q, w, R, items, plus, minus, sums, v):
    """Adds a person's sums, times w, on a basis of functions; Q is a lower triangle.

    With Q and the rows R of the states, H collects Q R so that Σ_u Rᵀ Q R = Φᵀ H: one product over all items in place
    of one a person. √w Rᵀ α goes to ``v``, of which the caller makes the sum of squares.
    """
    H, own_H, own_D = sums.H, sums.own_H, sums.own_D
    own_Q = np.empty((m, m))
    for i in range(m):
        for j in range(i + 1):
            own_Q[i, j] = w * Q[i, j]
            own_Q[j, i] = own_Q[i, j]
    T = np.dot(own_Q, R[:m])
    root = math.sqrt(w)
    for i in range(m):
        a, b = _codes(i, items, plus, minus)
        for j in range(R.shape[1]):
            v[j] += root * alpha[i] * R[i, j]
            H[a, j] += T[i, j]
        if b >= 0:
            for j in range(R.shape[1]):
                H[b, j] -= T[i, j]
    if own_H.shape[0] == 0:
        return
    for i in range(m):
        a, b = _codes(i, items, plus, minus)
        for j in range(i, -1, -1):
            a2, b2 = _codes(j, items, plus, minus)
            h = own_Q[i, j] if i == j else 2.0 * own_Q[i, j]
            g = w * alpha[i] * alpha[j] if i == j else 2.0 * w * alpha[i] * alpha[j]
            own_H[a] += h * sign(a, a2, b2)
            own_D[a] += (g - h) * sign(a, a2, b2)
            if b >= 0:
                own_H[b] -= h * sign(b, a2, b2)
                own_D[b] -= (g - h) * sign(b, a2, b2)
            elif a2 != a:  # copies of one item follow each other
                break


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
    threshold, gradient and information in the log of their consistency (people.md), and of each own
    effect of a covariate the mean, and 1 less the variance. ``of_rows`` (n_rows,), or empty where nobody wants it: the
    gradient of the evidence in each row's offset. ``engaged`` (n_users,): the probability that a person does not click
    at random, by which all that the person adds is multiplied.
    """

    of_people: Any
    of_rows: Any
    engaged: Any
    evidences: Any  # log Z_u of each person, (n_users,)
    tie_factor: Any  # by which each person's threshold is multiplied, (n_users,); found where it has a spread


@kernel
def engagement(log_z: float, clicks: float, held: float) -> tuple[float, float]:
    """Probability that a person does not click, and log((Z + e^clicks)): of the model's evidence and of clicking.

    With ``clicks`` of -inf the probability is the one that is ``held``, and the evidence the model's.
    """
    if clicks == -math.inf:
        return held, log_z
    gap = clicks - log_z
    if gap > 0.0:
        w = math.exp(-gap)
        return w / (1.0 + w), clicks + math.log1p(w)
    w = math.exp(gap)
    return 1.0 / (1.0 + w), log_z + math.log1p(w)


@kernel
def next_threshold(theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest):
    """Chord step of a person's θ = log of the own threshold, and the tolerance of the sites after it.

    ``slope``, ``curvature``: of the person's evidence in θ, with the cavities held; θ ~ N(0, ``spread``²). What the
    sites add to the curvature would take a system of the size of a person's answers; chords see it for nothing.
    ``gradient, step, chord, last, rest`` are what the call before returned; at first anything, 0, 0, 1 and
    :data:`FIRST_REST`. Returns them with θ, and whether θ, unchanged then, and the sites have converged.
    """
    before = gradient
    gradient = slope - theta / spread**2
    if abs(step) > _TOO_SHORT:
        chord = (before - gradient) / step
    hessian = max(-curvature, 0.0) + spread**-2
    if chord > 0.0:
        hessian = min(max(chord, _LOWEST_CHORD * hessian), _HIGHEST_CHORD * hessian)
    step = min(max(gradient / hessian, -_LARGEST_STEP), _LARGEST_STEP)
    earlier, last = last, abs(step) if step == step else math.inf  # what is not a number has not converged
    if last > _OF_THRESHOLD * tolerance:
        # Chords leave an error of the order of the last two steps' product: where that is little, it was the last.
        rest = tolerance if last * earlier < tolerance else max(min(rest, _REST * last), tolerance)
        return theta + step, gradient, step, chord, last, rest, False
    return theta, gradient, 0.0, chord, last, tolerance, not rest > tolerance


@inner_kernel
def _room(start, stop, columns, among_items, Phi):
    """Room for the largest of some people."""
    d = k = n = np.int64(1)
    q = columns.slope_columns.shape[1]
    for u in range(start, stop):
        if not columns.is_heavy[u]:
            task = columns.task[columns.answer_ptr[u] : columns.answer_ptr[u + 1]]
            own = columns.item_ptr[u + 1] - columns.item_ptr[u]
            d, k, n = max(d, shape_of(task, own, q).d), max(k, own), max(n, task.shape[0])
    return (
        room_of_state(d, k, n, among_items, Phi), room_of_task(k, q, n, among_items), _room_of_statistics(d, k + q),
        np.empty(5),
    )  # fmt: skip


@kernel
def em_pass(start, stop, columns, among_items, prior, Phi, delta, spread, n_sweeps, tolerance, sums, slopes):
    """E step: at most ``n_sweeps`` EP sweeps of each of people ``start .. stop`` who is not heavy, and sums over them.

    The sites are updated in place. With a ``spread`` σ > 0 of the logarithm of people's own thresholds each is at its
    mode: the state lives through all its values, each with so many sweeps.
    """
    state, block, room, own_out = _room(start, stop, columns, among_items, Phi)
    out, n_effects = sums.out, columns.slope_columns.shape[1]
    for u in range(start, stop):
        answers = answers_of(u, columns)
        if columns.is_heavy[u] or not answers.left.shape[0]:
            continue
        shape = shape_of(answers.task, answers.items.shape[0], answers.slope_columns.shape[1])
        factor = columns.tie_factor[u]
        theta, gradient, step, chord, last = math.log(factor), 0.0, 0.0, 0.0, 0.0 if spread == 0.0 else 1.0
        rest = tolerance if spread == 0.0 else max(FIRST_REST, tolerance)
        pull = slopes.of_rows
        if pull.shape[0]:
            pull = pull[columns.answer_ptr[u] : columns.answer_ptr[u + 1]]
        begin(shape, answers, prior, Phi, state, block)
        log_det = replay(shape, answers, state, block)
        largest, own_delta, w, log_z = 0.0, delta * factor, 0.0, 0.0
        for i in range(MOST_THRESHOLD_STEPS + 1):
            own_delta = delta * factor
            for _ in range(n_sweeps):
                change, largest = sweep(shape, answers, own_delta, state, block)
                log_det += change
                if largest < rest:
                    break
            evidence(shape, answers, own_delta, log_det, state, block, own_out, pull)
            w, log_z = engagement(own_out[0], columns.clicks[u], columns.engaged[u])
            if spread == 0.0 or i == MOST_THRESHOLD_STEPS:
                break
            slope = w * own_delta * own_out[1]
            theta, gradient, step, chord, last, rest, done = next_threshold(
                theta, slope, w * own_delta * own_delta * own_out[2] + slope, spread, tolerance, gradient, step, chord,
                last, rest,
            )  # fmt: skip
            if done:
                break
            factor = math.exp(theta)
        out[3] = max(out[3], largest, last)
        slopes.tie_factor[u] = factor
        slopes.engaged[u] = w
        slopes.evidences[u] = own_out[0]
        for i in range(1, 5):
            own_out[i] *= w
        for p in range(pull.shape[0]):
            pull[p] *= w
        out[0] += log_z
        out[1] += factor * own_out[1]
        out[2] += factor * factor * own_out[2]
        of_person = slopes.of_people[u]
        of_person[0] = own_delta * own_out[1]
        of_person[1] = own_delta * own_delta * own_out[2] + of_person[0]
        of_person[2] = own_out[3]
        of_person[3] = own_out[4]
        if sums.H.shape[0] == 0:
            continue
        statistics(shape, answers, state, block, room)
        scatter_means(
            shape.m, room.alpha, w, answers.items, state.plus, state.minus, answers.traits, sums.r, sums.r_traits
        )  # fmt: skip
        if Phi is not None:
            scatter_basis(
                shape.m, room.alpha, state.C, w, state.R, answers.items, state.plus, state.minus, sums,
                sums.D[u - start],
            )  # fmt: skip
        if Phi is None or n_effects:
            x, S = _on_items(shape, answers, state.C, room)
            k = answers.items.shape[0]
            if Phi is None:
                _scatter_items(answers.items, x, S, w, sums.H, sums.D)
            for j in range(n_effects):
                of_person[4 + 2 * j] = w * x[k + j]
                of_person[5 + 2 * j] = w * S[k + j, k + j]
