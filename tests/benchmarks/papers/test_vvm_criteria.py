"""Scores of the tables of the valuable vector machine: what they order alike, and what is wrong with one of them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.vvm_criteria import ALPHA, OF_MARGINALS, score

from predilect.compression.criteria import in_order
from predilect.compression.sparsify import select
from predilect.gaussian.posterior import Utilities
from referees.risks import exponential_risk
from simulate_joint import N_ITEMS, N_USERS, joint_model
from tolerances import EXACT

MEAN = np.array([0.0, 2.0, 1.9, 1.0, -1.0])
VAR = np.array([0.1, 0.1, 1.5, 2.5, 9.0])


@pytest.mark.parametrize(
    ("name", "order"),
    [
        # μ + 1.5 σ²: .15, 2.15, 4.15, 4.75, 12.5
        ("ucb", [4, 3, 2, 1, 0]), ("gp-ucb", [2, 3, 1, 4, 0]), ("ivm", [0, 1, 2, 3, 4]), ("mean", [1, 2, 3, 0, 4]),
        # σ (c Φ(c) + φ(c)): 0, .126, .441, .253, .250
        ("voi", [2, 3, 4, 1, 0]),
    ],
)  # fmt: skip
def test_the_order_of_a_case_made_by_hand(name, order):
    of_person = score(name, marginals="raw")(0, Utilities.of(MEAN, np.diag(VAR)))
    assert in_order(of_person).tolist() == order


def test_exponential_utility_is_the_risk_with_the_papers_beta():
    risk = exponential_risk(MEAN, VAR, ALPHA)
    np.testing.assert_allclose(np.log(-risk) / ALPHA, OF_MARGINALS["ucb"](MEAN, VAR), atol=EXACT)


def test_the_papers_confidence_bound_prefers_a_bad_item():
    mean, var = np.array([-3.0, 0.2]), np.array([0.1, 0.1])
    assert np.argmax(OF_MARGINALS["taylor"](mean, var)) == 0
    assert np.argmax(OF_MARGINALS["ucb"](mean, var)) == 1


def test_random_items_are_those_of_the_seed():
    model = joint_model()
    one, same, other = (select(model, 3, score("random", seed=s)).items.tolist() for s in (1, 1, 2))
    assert one == same != other
    assert all(len(set(one[3 * user : 3 * user + 3])) == 3 for user in range(N_USERS))
    assert max(one) < N_ITEMS


def test_raw_utilities_have_the_constant_that_centred_ones_lack():
    everybody = Utilities.of(MEAN, np.diag(VAR) + 100.0)
    raw, centred = (score("ivm", marginals=how)(0, everybody) for how in ("raw", "centred"))
    np.testing.assert_allclose(-raw, VAR + 100.0, atol=EXACT)
    np.testing.assert_allclose(-centred, Utilities.of(MEAN, np.diag(VAR)).centred_marginals()[1], atol=1e-9)
