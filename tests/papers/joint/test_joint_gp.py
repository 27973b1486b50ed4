"""``JointGP``: arguments, hyper-parameters, shares, and people without answers."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.votes import item_ids, questions, same_bits, user_ids, votes
from predilect import JointGP
from predilect.errors import DataWarning
from predilect.inference.gaussian.kernels import Own, Stationary
from simulate import crowd
from tolerances import CONVERGED, EXACT

ROWS = crowd(1, 8, 5, 8, delta=0.3)
DELTA = {"tie_threshold": 0.3}
AGES = {"user": user_ids(range(8)), "age": [20.0, 60.0, 31.0, 30.0, 55.0, 44.0, 27.0, 70.0]}
SIZES = {"item": item_ids(range(5)), "size": [1.0, 4.0, 2.0, 8.0, 5.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_share": 1.5}, "user_share must be 'auto' or a number from 0 to 1"),
        ({"item_share": "much"}, "item_share must be"),
        ({"noise": 0.0}, "noise must be a positive number"),
        ({"variance": -1.0}, "variance must be"),
        ({"n_tuning": -1}, "n_tuning must be"),
        ({"max_evaluations": 0}, "max_evaluations must be"),
        ({"user_kernel": "smooth"}, "kernel must be one of"),
        ({"length_scale": [1.0, -1.0]}, "length_scale must be"),
    ],
)
def test_arguments_out_of_range(change, message):
    with pytest.raises(ValueError, match=message):
        JointGP(**change).fit(*votes(ROWS))


def test_features_that_do_not_fit():
    columns, y = votes(ROWS)
    few = {name: column[:-2] for name, column in AGES.items()}
    with pytest.warns(DataWarning, match="2 of 8 people have no features: the mean"):
        model = JointGP(n_tuning=0).fit(columns, y, people=few)
    mean, _ = model.predict_margin({"user": ["person 0006"], "left": ["item 0"], "right": ["item 1"]})
    assert np.isfinite(mean).all()
    with pytest.raises(ValueError, match="length_scale holds 3 numbers"):
        JointGP(length_scale=[1.0, 1.0, 1.0], n_tuning=0).fit(columns, y, items=SIZES)


def test_noise_and_amplitude_are_one_number():
    """(α, a) and (1, a/α²)."""
    columns, y = votes(ROWS)
    asked = questions(8, np.array([(0, 1), (2, 4)]))
    models = [JointGP(**DELTA, n_tuning=0, noise=n, variance=a).fit(columns, y) for n, a in ((3.0, 18.0), (1.0, 2.0))]
    same = [model.predict_margin(asked) for model in models]
    for a, b in zip(*same, strict=True):
        np.testing.assert_allclose(a, b, atol=EXACT)
    other = JointGP(**DELTA, n_tuning=0, noise=3.0, variance=1.0).fit(columns, y).predict_margin(asked)
    assert np.abs(other[0] - same[0][0]).max() > 0.05
    assert models[0].hyperparameters_.item_kernel.variance == pytest.approx(2.0, abs=EXACT)


@pytest.mark.slow
def test_hyperparameters_are_learned_and_those_given_are_kept():
    columns, y = votes(ROWS)
    known = {"items": SIZES, "people": AGES}
    start = JointGP(**DELTA, n_tuning=0).fit(columns, y, **known)
    learned = JointGP(**DELTA, max_evaluations=10).fit(columns, y, **known)
    assert learned.log_evidence_ > start.log_evidence_ + 0.1
    assert learned.report_["prior"]["n_tuning"] == 8
    held = JointGP(**DELTA, user_share=0.3, variance=9.0, length_scale=2.0, max_evaluations=8).fit(columns, y, **known)
    h = held.hyperparameters_
    assert isinstance(h.user_kernel, Own)
    assert h.user_kernel.share == pytest.approx(0.3, abs=EXACT)
    assert h.item_kernel.variance == pytest.approx(1.0, abs=EXACT)
    assert h.item_kernel.kernel.odds != pytest.approx(0.25, rel=1e-3)
    assert isinstance(h.item_kernel.kernel.kernel, Stationary)
    assert h.item_kernel.kernel.kernel.length_scales.tolist() == [2.0]
    few = JointGP(**DELTA, n_tuning=3, max_evaluations=8).fit(columns, y, **known)
    assert few.report_["prior"]["n_tuning"] == 3
    assert few.log_evidence_ < learned.log_evidence_


@pytest.mark.parametrize(("share", "others"), [(0.0, True), (1.0, False)])
def test_shares_at_their_ends(share, others):
    """Without features of people: all as one, or nobody like another."""
    columns, y = votes(ROWS)
    model = JointGP(**DELTA, user_share=share, item_share=share, max_evaluations=5).fit(columns, y)
    asked = questions(8, np.array([(0, 1), (2, 4)]))
    by_person = model.predict_margin(asked)[0].reshape(8, 2)
    assert (np.ptp(by_person, axis=0).max() < CONVERGED) == others
    mean, var = model.predict_margin({"left": ["item 0"], "right": ["item 1"]})
    assert (abs(mean[0]) < EXACT) == (not others)
    assert var[0] > 0.0


def test_new_people_by_features():
    """Somebody as old as one who answered is like them, but for what is one's own."""
    columns, y = votes(ROWS)
    model = JointGP(**DELTA, n_tuning=0, user_share=0.05, length_scale="median").fit(columns, y, people=AGES)
    pair = {"left": ["item 0"], "right": ["item 4"]}
    with pytest.warns(DataWarning, match="without answers"):
        mean, var = model.predict_margin(pair | {"user": ["new"]}, people={"user": ["new"], "age": [70.0]})
    nobody, _ = model.predict_margin(pair)
    of_old, var_of_old = model.predict_margin(pair | {"user": ["person 0007"]})
    assert abs(mean[0] - of_old[0]) < abs(nobody[0] - of_old[0])
    assert var[0] > var_of_old[0]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits():
    columns, y = votes()
    same_bits(*(JointGP(n_tuning=4, max_evaluations=3).fit(columns, y) for _ in range(2)))
