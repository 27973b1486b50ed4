"""Items that join a fitted population, and rows that it cannot take."""

from __future__ import annotations

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import predilect
from predilect import Comparisons, Population
from predilect.errors import DataError, DataWarning
from predilect.models.population.new_items import exchangeable
from simulate import crowd, random_covariance
from simulate_updates import AT_FIT, FIXED, ITEMS, LATER, USERS, columns, fitted, one
from tolerances import CONVERGED, EXACT, ITERATIVE


def differences(covariance: np.ndarray) -> np.ndarray:
    d = np.diagonal(covariance)
    return d[:, None] + d[None, :] - 2.0 * covariance


def plain() -> Population:
    return Population(**FIXED).fit(columns(AT_FIT))


def test_a_new_item_differs_from_the_others_as_these_do():
    """Over people by the mean of theirs, in the consensus by their mean squared difference."""
    posterior = plain().posterior_
    for n_new in (1, 3):
        found = exchangeable(posterior, n_new)
        n = posterior.n_items
        listed = differences(posterior.Sigma)[np.triu_indices(n, 1)].mean()
        new = differences(found.Sigma)
        np.testing.assert_allclose(new[n:, :n].mean(axis=1), listed, atol=EXACT)
        np.testing.assert_allclose(new[n:, n:][~np.eye(n_new, dtype=bool)], listed, atol=EXACT)
        np.testing.assert_array_equal(found.Sigma[:n, :n], posterior.Sigma)
        m, C = posterior.m, posterior.C_m
        apart = (differences(C) + (m[:, None] - m) ** 2)[np.triu_indices(n, 1)].mean()
        # In expectation the squared difference of a new item from a listed one, its own mean being theirs.
        square = differences(found.C_m)[n:, :n] + (found.m[n:, None] - m) ** 2
        np.testing.assert_allclose(square.mean(axis=1), apart, atol=EXACT)
        assert np.linalg.eigvalsh(found.C_m)[0] > 0.0


def test_items_join_at_once_or_one_after_the_other():
    rng = np.random.default_rng(0)
    posterior = plain().posterior_
    posterior = type(posterior)(
        rng.standard_normal(6), random_covariance(rng, 6, 1.0), random_covariance(rng, 6, 1.0), posterior.people,
        posterior.sites,
    )  # fmt: skip
    at_once, by_turns = exchangeable(posterior, 2), exchangeable(exchangeable(posterior, 1), 1)
    for name in ("m", "C_m", "Sigma"):
        np.testing.assert_allclose(getattr(at_once, name), getattr(by_turns, name), atol=EXACT)


@pytest.mark.parametrize("kind", ["items", "traits", "attributes", "inducing", "contexts", "covariates", "item ties"])
def test_nobody_changes_when_an_item_joins_and_codes_follow_the_ids(kind, tmp_path):
    model = made(kind).update(columns(LATER))
    pairs = {"user": USERS["user"], "left": ["item 1"] * 14, "right": ["item 4"] * 14}
    board, before = model.utilities(ranks=False), model.predict_margin(pairs)
    people = model.people()
    n_answers = model.n_answers_
    model.update(items=["item 11", "a first item", "item 1"])
    assert model.provisional_items_ == ["a first item", "item 11"]
    model.save(tmp_path / "model")
    for now in (model, predilect.load(tmp_path / "model")):
        assert list(now.items_) == sorted([*ITEMS["item"], "item 11", "a first item"])
        for a, b in zip(before, now.predict_margin(pairs), strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)
        after = now.utilities(ranks=False)
        kept = [now.items_.code(item) for item in board["item"]]
        step = after["mean"].to_numpy()[kept] - board["mean"].to_numpy()
        np.testing.assert_allclose(step, step[0], atol=CONVERGED)  # centred over more items
        assert now.n_answers_ == n_answers
        assert_frame_equal(now.people(), people, rel_tol=0.0, abs_tol=EXACT)
        now.update(user="person 0001", left="item 11", right="item 1", winner="item 11")
        assert now.utilities(ranks=False)["n"].sum() == 2 * now.n_answers_
        assert "joined" in now.needs_refit_ or "came" in now.needs_refit_
        fresh = now.predict_margin({"user": ["person 0001"], "left": ["item 11"], "right": ["item 1"]})[0]
        assert fresh[0] > -np.inf
    assert model.comparisons_.n_answers == model.n_answers_


def made(kind: str) -> Population:
    if kind in ("traits", "attributes", "inducing"):
        return fitted(kind)
    if kind == "items":
        return plain()
    frame, settings = columns(AT_FIT), dict(FIXED)
    rng, n = np.random.default_rng(1), len(AT_FIT)
    said = {}
    if kind == "contexts":
        frame["topic"] = [f"topic {k}" for k in rng.integers(5, size=n)]
        said = {"context": "topic"}
    if kind == "covariates":
        frame["length"] = rng.integers(-2, 3, size=n).astype(float).tolist()
        said = {"covariates": ["length"]}
    if kind == "item ties":
        settings["tie_threshold"] = (0.4, 0.0, 0.5)
    return Population(**settings).fit(Comparisons.from_frame(frame, columns=said))


@pytest.mark.slow
def test_a_new_items_place_moves_to_that_of_a_fit_which_knew_it():
    rows = crowd(3, 60, 8, 20, delta=0.3)
    of_last = (rows.left == 7) | (rows.right == 7)

    def table(mask):
        return {
            "user": [f"u{k}" for k in rows.user[mask]], "left": [f"i{k}" for k in rows.left[mask]],
            "right": [f"i{k}" for k in rows.right[mask]],
            "winner": [{1: "left", 0: "tie", -1: "right"}[y] for y in rows.outcome[mask].tolist()],
        }  # fmt: skip

    everything = np.ones(rows.n_rows, dtype=bool)
    whole = Population(**FIXED).fit(table(everything)).utilities(ranks=False)
    model = Population(**FIXED).fit(table(~of_last)).update(table(of_last), items=["i7"])
    found = model.utilities(ranks=False)
    mean, sd = (whole[name].to_numpy() for name in ("mean", "sd"))
    assert np.all(np.abs(found["mean"].to_numpy() - mean) < 0.5 * sd)
    np.testing.assert_allclose(found["sd"].to_numpy(), sd, rtol=0.15)


def test_a_moved_board_with_a_new_item_is_dense_conditioning():
    """One Newton step with the new item in the prior, as population.md section 4, "Without answers", has it."""
    model = plain().update(columns(LATER)).update(items=["zz"])
    model.update(user="person 0002", left="item 2", right="zz", winner="zz")
    model.update(user="person 0014", left="item 1", right="zz", winner="zz")
    posterior = model.posterior_
    m, C = posterior.m, posterior.C_m
    H, r = np.zeros_like(C), np.zeros_like(m)
    fit = plain().update(items=["zz"]).posterior_
    for sign, one_of in ((1.0, posterior), (-1.0, fit)):
        for user in range(one_of.n_users):
            rows, (left, right, _) = one_of.answers_of(user).rows, one_of.answered_rows(user)
            X = np.eye(len(m))[left] - np.eye(len(m))[right]
            Q = np.linalg.inv(np.diag(1.0 / (rows.weight * rows.precision)) + X @ posterior.Sigma @ X.T)
            H += sign * X.T @ Q @ X
            r += sign * X.T @ Q @ (rows.linear / rows.precision - X @ m)
    wanted = np.linalg.inv(np.linalg.inv(C) + H)
    found = posterior.crowd().dense()
    np.testing.assert_allclose(found[1], wanted, atol=ITERATIVE)
    np.testing.assert_allclose(found[0], m + wanted @ r, atol=ITERATIVE)


ROWS = {
    "user": ["zoe"] * 4, "left": ["item 1", "item 1", "juice", "item 2"],
    "right": ["item 2", "tea", "item 1", "item 3"],
    "winner": ["left", "left", "right", "left"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["items", "pooled"])
def test_a_row_that_is_not_known_refuses_no_batch(kind):
    model = fitted(kind)
    n = model.n_answers_
    with pytest.warns(DataWarning, match=r"2 of 4 rows were left out: 2 of the items are not known.*'juice'"):
        model.update(ROWS)
    assert model.n_answers_ == n + 2
    assert [(row["user"], row["left"], row["right"], row["why"]) for row in model.left_out_] == [
        ("zoe", "item 1", "juice", "item"), ("zoe", "item 1", "tea", "item")
    ]  # fmt: skip
    model.update(**one(LATER[0]))
    assert model.left_out_ == []
    with pytest.warns(DataWarning, match="2 of 2 rows"):
        model.update({name: column[1:3] for name, column in ROWS.items()})
    assert model.n_answers_ == n + 3


def test_a_slip_in_a_row_is_named():
    model = fitted("items")
    with pytest.warns(DataWarning, match=r"first: 'Item 1'\)\. Did you mean \"item 1\"\?"):
        model.update({"user": ["zoe"], "left": ["Item 1"], "right": ["item 2"], "winner": ["right"]})
    with pytest.raises(TypeError, match="column"):
        model.update(columns([0]), column={"left": "x"})


@pytest.mark.parametrize("personal", [True, False])
def test_a_tie_that_is_held_impossible_refuses_no_batch(personal):
    strict = crowd(2, 6, 4, 8)
    frame = {"user": strict.user.tolist(), "left": strict.left.tolist(), "right": strict.right.tolist()}
    model = Population(**FIXED | {"tie_threshold": "auto", "personal": personal, "tol": 1e-2})
    model.fit(frame, strict.outcome.astype(int))
    n = model.n_answers_
    tie = {"user": [1, 1], "left": [1, 1], "right": [2, 2], "winner": ["left", "tie"]}
    with pytest.warns(DataWarning, match=r"1 of 2 rows were left out: 1 are ties.*ties=True"):
        model.update(tie)
    assert model.n_answers_ == n + 1
    assert [row["why"] for row in model.left_out_] == ["tie"]


def test_a_task_with_an_unknown_item_is_left_out_as_a_whole():
    n = 24
    rng = np.random.default_rng(0)
    rows = {"user": [], "task": [], "item": [], "rank": []}
    for t in range(n):
        for place, item in enumerate(rng.permutation(5)[:3]):
            rows["user"].append(f"u{t % 6}")
            rows["task"].append(t)
            rows["item"].append(f"i{item}")
            rows["rank"].append(place + 1)
    answers = Comparisons.from_frame(rows)
    model = Population(**FIXED | {"tie_threshold": "auto"}).fit(answers)
    more = {"user": ["u1"] * 6, "task": [1, 1, 1, 2, 2, 2], "item": ["i0", "i1", "i9", "i2", "i3", "i4"],
            "rank": [1, 2, 3, 1, 2, 3]}  # fmt: skip
    before = model.n_answers_
    with pytest.warns(DataWarning, match="left out"):
        model.update(more)
    assert model.n_answers_ == before + 2
    assert {row["why"] for row in model.left_out_} == {"item"}


def test_items_that_cannot_join():
    model = fitted("items")
    with pytest.raises(DataError, match="pooled"):
        fitted("pooled").update(items=["tea"])
    whole = Population(**FIXED).fit({"user": [1, 2], "left": [1, 1], "right": [2, 3], "winner": [1, 3]})
    with pytest.raises(DataError, match="whole numbers"):
        whole.update(items=["tea"])
    with pytest.raises(DataError, match="not one of"):  # and after an error none has joined
        model.update(user="u", left="tea", right="coffee", winner="tea", items=["tea"])
    assert list(model.items_) == ITEMS["item"]
    assert model.provisional_items_ == []
