"""Saved models that were changed at random, by somebody who knows the checksum or not, do no harm."""

from __future__ import annotations

import warnings

import pytest
from tampering import UNHARMED, run
from tampering_kinds import kinds

MAKERS = kinds()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_no_change_of_a_saved_model_does_harm(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit to a few answers
        MAKERS[kind]().save(tmp_path / "model")
    found = run(tmp_path / "model", 0, 60)
    assert len(found) == 60
    assert {seed: what for seed, what in found.items() if what not in UNHARMED} == {}
    assert {"refused at load", "no effect"} <= set(found.values())
