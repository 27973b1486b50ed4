"""A table with its attributes in another order says the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from simulate_choices import choices

from predilect import MixedLogit
from predilect.errors import DataWarning
from tolerances import ITERATIVE

DATA = choices(5, n_users=40, n_tasks=5)
ITEMS = DATA.items | {"color": [("red", "blue", "green")[i % 3] for i in range(30)]}
COLUMNS = ["price", "speed", "size", "color"]
OFFERED = {"two": ["i1", "i2"], "three": ["i3", "i4", "i5"]}
SETTINGS = [
    {"method": "simulated", "n_draws": 60},
    {"method": "simulated", "n_draws": 60, "covariance": "diagonal", "price": "price"},
    {"method": "simulated", "n_draws": 40, "covariance": "diagonal", "distributions": {"size": "triangular"}},
    {"n_draws": 200, "tol": 100.0},
]  # fmt: skip


def said(settings, columns):
    """Everything that is said of somebody unknown, of shares, and of what attributes are worth."""
    items = {name: ITEMS[name] for name in ["item", *columns]}
    model = MixedLogit(n_jobs=1, **settings).fit(DATA.answers, items=items)
    sets = {"task": [1, 1, 1, 2, 2, 2], "item": [f"i{i}" for i in range(6)]}
    pairs = {"user": ["nobody"] * 10, "left": [f"i{i}" for i in range(10)], "right": [f"i{i + 9}" for i in range(10)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that nobody of that name has answers is meant
        found = [model.predict_choice(sets), *model.predict_margin(pairs), model.predict_proba(pairs)]
    found.append(np.array([model.log_evidence_]))
    worth = model.worth
    for table, by in ((worth.simulate(OFFERED), ()), (worth.willingness_to_pay("price"), ("attribute", "level")),
                      (worth.coefficients(), ("attribute", "level"))):  # fmt: skip
        table = table.sort(by) if by else table
        found += [table[name].to_numpy() for name in table.columns if table[name].dtype.is_float()]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_order_of_attributes_makes_no_difference(settings):
    once = said(settings, COLUMNS)
    for columns in (COLUMNS[::-1], [COLUMNS[k] for k in (1, 3, 0, 2)]):
        for one, other in zip(once, said(settings, columns), strict=True):
            np.testing.assert_allclose(one, other, rtol=ITERATIVE, atol=ITERATIVE)
