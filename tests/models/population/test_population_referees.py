"""Slow: how often intervals hold the truth, and how much memory a million answers take."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from predilect import Population
from simulate import probit_answers
from simulate_features import FeaturedCrowd, featured_crowd

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# n_users, n_items, answers a person, s₀, w, δ.
CROWDS = {
    "no features": (100, 8, 20, 1.0, 0.0, 0.0),
    "ties": (200, 12, 15, 4.0, 0.5, 0.4),
    "few answers": (300, 20, 8, 1.0, 0.5, 0.3),
    "decided people": (200, 12, 15, 25.0, 0.5, 0.0),
}
FIRST_SEED = 100  # crowds 0 to 19 were looked at when the steps of the selection were chosen
N_CROWDS = 40  # the mean coverage of contrasts then has a standard error of .01
Z = 1.959964


@pytest.fixture(scope="module", params=CROWDS)  # fitted once, which takes most of a minute for each kind
def crowds(request):
    """Truths, the hyper-parameters learned, and the hyper-parameters known."""
    n_users, n_items, per_person, scale, weight, delta = CROWDS[request.param]
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + N_CROWDS):
        truth = featured_crowd(seed, n_users, n_items, scale=scale, feature_weight=weight, delta=delta)
        columns, outcome = truth.answers(per_person)
        items = truth.items if weight > 0.0 else None
        known = truth.true | {
            "calibration": None,
            "consistency": 0.0,
        }  # there is nothing to calibrate at the true setting
        models = [Population(n_jobs=1, **given).fit(columns, outcome, items=items) for given in ({}, known)]
        found.append((truth, *models))
    return found


def person_coverage(truth: FeaturedCrowd, model: Population, *, divide: bool) -> float:
    """Share of centred utilities of all people inside their 95 % intervals, up to one scale for the crowd or not."""
    true = truth.utilities - truth.utilities.mean(axis=1, keepdims=True)
    mean, var = model.posterior_.centred_utilities(np.arange(len(true)))
    scale = np.vdot(true, mean) / np.vdot(mean, mean) if divide else 1.0
    return float(np.mean(np.abs(true - scale * mean) < Z * scale * np.sqrt(var)))


def contrast_coverage(truth: FeaturedCrowd, model: Population) -> float:
    """Share of differences of the consensus inside their 95 % intervals, the scale divided out."""
    left, right = np.triu_indices(len(truth.consensus), 1)
    mean, covariance = model.utility_distribution()
    centred = truth.consensus - truth.consensus.mean()
    scale = (centred @ mean) / (mean @ mean)
    sd = np.sqrt(covariance[left, left] + covariance[right, right] - 2 * covariance[left, right])
    error = (centred[left] - centred[right]) - scale * (mean[left] - mean[right])
    return float(np.mean(np.abs(error) < Z * scale * sd))


def test_people_at_the_true_hyper_parameters_lie_in_their_intervals(crowds):
    # Measured: .94 to .96.
    covered = np.mean([person_coverage(truth, known, divide=False) for truth, _, known in crowds])
    assert 0.92 <= covered <= 0.99


FALLS_SHORT = {"scale divided out": ["few answers"], "as they are": ["few answers", "decided people"]}


@pytest.mark.parametrize("how", FALLS_SHORT)
def test_people_at_learned_hyper_parameters_lie_in_their_intervals(crowds, how, request):
    # The overall scale is one number that few answers a person leave uncertain (population.md section 1), and
    # intervals at one setting of the prior say nothing of that. Measured on these crowds: few answers .921 with the
    # scale divided out (a standard error of .01: on either side of the edge) and .87 as they are, decided people .885;
    # at the true setting .95.
    if request.node.callspec.params["crowds"] in FALLS_SHORT[how]:
        reason = "intervals leave out how uncertain the learned prior is"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=how == "as they are"))
    covered = np.mean([person_coverage(truth, learned, divide=how != "as they are") for truth, learned, _ in crowds])
    assert 0.92 <= covered <= 0.99, covered


@pytest.mark.parametrize("which", ["learned", "known"])
def test_contrasts_of_the_consensus_lie_in_their_intervals(crowds, which):
    # Measured: .93 to .96 learned, .93 to .97 known.
    covered = np.mean([contrast_coverage(one[0], one[1 + (which == "known")]) for one in crowds])
    assert 0.92 <= covered <= 0.98


# n_users, answers a person, sd of tastes, sd of the logarithm of consistency; the least share of people's utilities,
# and of their consistency, in 95 % intervals that docs/reference/outputs.md leaves a user to expect.
# Measured on 100 crowds: .86, .89 and .93 of utilities; on 50: .94 to .95 of consistency.
SMALL_CROWDS = {
    "few people": (8, 15, 1.0, 0.0, 0.8, None),
    "people alike in care": (30, 20, 1.0, 0.0, 0.91, None),
    "care differs": (30, 20, 1.0, 0.6, 0.86, 0.87),
    "care differs by .5": (30, 40, 0.5, 0.5, None, 0.91),
    "care differs by .8": (30, 40, 0.5, 0.8, None, 0.9),
    "care differs, few answers": (30, 20, 0.5, 0.6, None, 0.9),
}


@pytest.mark.parametrize("name", SMALL_CROWDS)
def test_intervals_of_small_crowds_hold_what_the_docs_say(name):
    n_users, per_person, taste, spread, least, least_care = SMALL_CROWDS[name]
    covered, care = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + 25):
        rng = np.random.default_rng(seed)
        utilities = rng.standard_normal(8) + taste * rng.standard_normal((n_users, 8))
        consistency = np.exp(spread * rng.standard_normal(n_users))
        user = np.repeat(np.arange(n_users), per_person)
        left, right, outcome = probit_answers(rng, consistency[:, None] * utilities, user)
        model = Population(n_jobs=1).fit({"user": user, "left": left, "right": right}, outcome)
        true = utilities - utilities.mean(axis=1, keepdims=True)
        mean, var = model.posterior_.centred_utilities(np.arange(n_users))
        covered.append(np.mean(np.abs(true - mean) < Z * np.sqrt(var)))
        lower, upper = (model.people()[end].to_numpy() for end in ("lower", "upper"))
        if model.hyperparameters_.consistency_spread:
            care.append(np.mean((lower <= consistency) & (consistency <= upper)))
    assert least is None or np.mean(covered) >= least, np.mean(covered)
    assert least_care is None or np.mean(care) >= least_care, np.mean(care)


MEMORY = """
import resource, sys
import numpy as np
from predilect import Comparisons, Population
from predilect.data import Vocabulary
from predilect.data.canonical import canonical_rows

n, n_items = int(sys.argv[1]), 30
rng = np.random.default_rng(0)
user = np.repeat(np.arange(n // 20, dtype=np.int32), 20)
worth = rng.standard_normal(n_items)
left = rng.integers(n_items, size=n).astype(np.int32)
right = ((left + rng.integers(1, n_items, size=n)) % n_items).astype(np.int32)
outcome = np.sign(worth[left] - worth[right] + 2 * rng.standard_normal(n)).astype(np.int8)
rows = canonical_rows(user, left, right, outcome, np.ones(n))
answers = Comparisons(Vocabulary(np.arange(n // 20)), Vocabulary(np.arange(n_items)), *rows)
del user, left, right, outcome, rows
model = Population(n_jobs=2).fit(answers)
assert model.n_answers_ == n
if sys.platform == "linux":  # of which getrusage counts the memory of the process that started this one
    lines = open("/proc/self/status").read().splitlines()
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def peak_megabytes(n_answers: int) -> float:
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(n_answers)], capture_output=True, text=True, check=True, timeout=250
    )
    return float(run.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="the peak of a process comes from getrusage")
def test_memory_grows_by_the_data_and_little_else():
    # 100 bytes an answer and 50 MB. Measured: 103 to 111 MB of the 136 allowed.
    few, many = peak_megabytes(100_000), peak_megabytes(1_000_000)
    assert many - few < 900_000 * 100 / 2**20 + 50
    assert many < 1024
