"""Saved models that were changed at random, by somebody who knows the checksum or not, do no harm."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from tampering import UNHARMED, run
from tampering_changes import seal
from tampering_kinds import kinds

from cases import MORE
from predilect import load
from predilect.errors import DataError

MAKERS = kinds()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_no_change_of_a_saved_model_does_harm(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit to a few answers
        MAKERS[kind]().save(tmp_path / "model")
    found = run(tmp_path / "model", 0, 60 * MORE)
    assert len(found) == 60 * MORE
    assert {seed: what for seed, what in found.items() if what not in UNHARMED} == {}
    assert {"refused at load", "no effect"} <= set(found.values())


@pytest.fixture
def saved(tmp_path):
    """A saved model, by its kind."""

    def save(kind):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            MAKERS[kind]().save(tmp_path / "model")
        return tmp_path / "model"

    return save


@contextmanager
def changed(folder):
    """Document and arrays of a saved model, to be changed by somebody who knows the checksum."""
    document = json.loads((folder / "model.json").read_text())
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive)
    yield document, arrays
    np.savez(folder / "arrays.npz", **arrays)
    (folder / "model.json").write_text(json.dumps(document))
    seal(folder)


def test_a_basis_with_more_than_the_prior_variance_is_refused(saved):
    folder = saved("gaspk, relative")
    with changed(folder) as (_, arrays):
        arrays["kept.back"] *= 1e9
    with pytest.raises(DataError, match="more than the prior variance"):
        load(folder)


def test_rows_of_features_that_the_kernel_is_not_made_for_are_refused(saved):
    folder = saved("compressed, joint")
    with changed(folder) as (document, arrays):
        name = "posterior.kernel.users.features"
        document["arrays"][name][1][1] = 0
        arrays[name] = arrays[name][:, :0]
    with pytest.raises(DataError, match="features"):
        load(folder)


def test_a_basis_that_the_model_has_no_use_for_is_left_alone(saved):
    folder = saved("pooled")
    before = load(folder).utility_distribution()
    with changed(folder) as (document, arrays):
        document["arrays"]["Phi"] = ["bool", [5]]
        arrays["Phi"] = np.ones(5, dtype=bool)
    for one, other in zip(load(folder).utility_distribution(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_kernel_made_for_other_features_is_refused(saved):
    folder = saved("gpvu")
    with changed(folder) as (document, _):
        scales = document["hyperparameters"]["kernel"]["kernels"][0]["kernel"]["length_scales"]
        scales["array"] = [1.0, *scales["array"]]
    with pytest.raises(DataError, match="features"):
        load(folder)


def test_a_category_without_a_name_is_refused(saved):
    folder = saved("joint")
    with changed(folder) as (document, _):
        encoded = next(one for one in document["features"]["outputs"] if one["kind"] == "category")
        encoded["category"] = None
    with pytest.raises(DataError, match="neither a number nor a category"):
        load(folder)


def test_features_of_items_that_are_said_to_be_there_and_are_not_are_refused(saved):
    folder = saved("joint")
    with changed(folder) as (document, arrays):
        del document["arrays"]["space.matrix"], arrays["space.matrix"]
    with pytest.raises(DataError, match="a matrix of 0"):
        load(folder)


def test_a_process_of_other_people_than_those_of_the_model_is_refused(saved):
    folder = saved("gppl joint")
    with changed(folder) as (document, _):
        document["posterior"]["n_users"] += 1
    with pytest.raises(DataError, match="features of people"):
        load(folder)
