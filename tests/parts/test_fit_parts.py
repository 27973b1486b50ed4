"""The fit to answers in parts: the same population as on one machine, by any workers, whatever is lost on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import predilect
import predilect.parts
from predilect.errors import DataError, OutputError
from predilect.inference.people.law import Law
from predilect.models.population.in_parts import PopulationInParts
from predilect.parts.cells import START, PartState, Pass, cell, read_state, sweep
from simulate_parts import in_parts, votes
from tolerances import CONVERGED, ITERATIVE

GIVEN = {
    "clickers": 0.0,
    "strength": 10.0,
    "variance": 1.0,
    "consensus_variance": 2.0,
    "calibration": None,
    "consistency": 0.0,
}
PAIRS = votes().head(40).select("user", "left", "right")


def fitted(parts, work=None, pool=None, **settings) -> PopulationInParts:
    return predilect.Population(n_jobs=1, **settings).fit_parts(parts, work=work, pool=pool)


def bits(model: PopulationInParts) -> bytes:
    posterior = model.population.posterior_
    return posterior.m.tobytes() + posterior.Sigma.tobytes() + model.predict_parts(PAIRS).tobytes()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return in_parts(tmp_path_factory.mktemp("crowd"), votes())


@pytest.fixture(scope="module")
def model(crowd):
    return fitted(crowd, **GIVEN)


@pytest.mark.slow
def test_equal_profiles_of_a_task_stay_as_many_in_parts(tmp_path):
    rng = np.random.default_rng(3)
    n = 40 * 5
    price, best = rng.integers(1, 4, (n, 3)), rng.integers(0, 3, n)
    task = np.repeat(np.arange(n), 3)
    frame = pl.DataFrame({
        "user": [f"p{k // 5}" for k in task], "task": task, "price": price.ravel(),
        "chosen": (np.arange(3) == best[:, None]).astype(int).ravel(),
    })  # fmt: skip
    parts = in_parts(tmp_path, frame)
    whole = predilect.read(tmp_path / "votes.csv")
    assert whole.copies is not None
    assert sum(len(parts.answers(k).left) for k in range(len(parts))) == whole.n_rows
    assert sum(int(parts.answers(k).copies.sum()) for k in range(len(parts))) == int(whole.copies.sum())
    one = predilect.Population(n_jobs=1, **GIVEN).fit(whole)
    many = fitted(parts, **GIVEN).population
    np.testing.assert_allclose(many.posterior_.m, one.posterior_.m, rtol=0.0, atol=CONVERGED)
    assert many.log_evidence_ == pytest.approx(one.log_evidence_, abs=ITERATIVE)
    assert many.n_answers_ == one.n_answers_ < whole.n_answers  # of one profile alone nothing is said
    assert many.rank()["n"].to_list() == one.rank()["n"].to_list()


def test_the_population_is_that_of_fit(crowd, model):
    one = predilect.Population(n_jobs=1, **GIVEN).fit(predilect.read(crowd.path.parent / "votes.csv"))
    many = model.population
    np.testing.assert_allclose(many.posterior_.m, one.posterior_.m, rtol=0.0, atol=CONVERGED)
    np.testing.assert_allclose(many.posterior_.Sigma, one.posterior_.Sigma, rtol=0.0, atol=CONVERGED)
    np.testing.assert_allclose(many.posterior_.C_m, one.posterior_.C_m, rtol=0.0, atol=CONVERGED)
    assert many.log_evidence_ == pytest.approx(one.log_evidence_, abs=ITERATIVE)
    np.testing.assert_allclose(model.predict_parts(PAIRS), one.predict_proba(PAIRS), rtol=0.0, atol=CONVERGED)
    np.testing.assert_allclose(model.rank()["mean"], one.rank()["mean"], rtol=0.0, atol=CONVERGED)
    assert model.rank()["n"].to_list() == one.rank()["n"].to_list()
    assert model.rank("p7").equals(one.rank("p7")) or np.allclose(model.rank("p7")["mean"], one.rank("p7")["mean"])
    best = model.top_parts(2)
    ours = {user: rows["item"].to_list() for (user,), rows in best.group_by("user", maintain_order=True)}
    assert ours == {user: one.rank(user)["item"].to_list()[:2] for user in ours}
    assert len(ours) == one.posterior_.n_users
    first = one.rank("p7")["mean"][:2]
    np.testing.assert_allclose(best.filter(pl.col("user") == "p7")["mean"], first, rtol=0.0, atol=CONVERGED)
    assert repr(many) == repr(one)
    assert many.describe() == one.describe()


@pytest.mark.parametrize("verb", ["people", "groups", "top"])
def test_the_model_of_the_crowd_does_not_pass_for_one_of_nobody(model, verb):
    for crowd in (model, model.population):
        with pytest.raises(DataError, match="holds nobody: ask the model of a part"):
            getattr(crowd, verb)()
    getattr(model.part(0), verb)()


def test_strangers_are_predicted_as_fit_does(crowd, tmp_path):
    settings = GIVEN | {"calibration": predilect.Calibration(newcomer_weight=0.5, variance_factor=1.2)}
    one = predilect.Population(n_jobs=1, **settings).fit(predilect.read(crowd.path.parent / "votes.csv"))
    many = fitted(crowd, tmp_path / "work", **settings)
    pairs = PAIRS.with_columns(user=pl.lit("a stranger"))
    with pytest.warns(predilect.errors.DataWarning, match="without answers"):
        np.testing.assert_allclose(many.predict_parts(pairs), one.predict_proba(pairs), rtol=0.0, atol=CONVERGED)


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_the_side_is_a_covariate_once(tmp_path, named):
    """Where the answers are read with ``side=yes``, and where a covariate is called so."""
    lean = pl.when(pl.int_range(480) % 3 == 0).then(pl.col("left")).otherwise("winner")
    frame = votes().with_columns(winner=lean, **({"side": pl.lit(1.0)} if named else {}))
    how = {"columns": {"covariates": ["side"]}, "reading": {"side": "no"}} if named else {"reading": {"side": "yes"}}
    parts = in_parts(tmp_path, frame, **how)
    one = predilect.Population(n_jobs=1, **GIVEN).fit(predilect.read(tmp_path / "votes.csv", **how))
    many = fitted(parts, **GIVEN)
    assert one.covariates()["covariate"].to_list() == ["side"]
    assert many.population.covariates()["effect"].to_list() == pytest.approx(one.covariates()["effect"].to_list())
    np.testing.assert_allclose(many.predict_parts(PAIRS), one.predict_proba(PAIRS), rtol=0.0, atol=ITERATIVE)
    np.testing.assert_allclose(many.rank("p3")["mean"], one.rank("p3")["mean"], rtol=0.0, atol=ITERATIVE)


_SIDE = pl.when(pl.col("winner") == pl.col("left")).then(pl.lit("left ")).otherwise(pl.lit("right "))
_GRADE = pl.when(pl.col("user") == "p0").then(pl.lit("much")).otherwise(pl.lit("slightly"))
CARRIED = {
    "grades": ({"winner": _SIDE + _GRADE}, {}, {"grades": ["slightly", "much"]}),
    "covariates": ({"length": pl.int_range(pl.len()) % 5 - 2}, {"covariates": ["length"]}, {}),
    "sides": ({}, {}, {"side": "yes"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("carried", CARRIED)
def test_parts_may_hold_nobody_and_not_all_that_there_is(tmp_path, carried):
    """Two people in four parts, one of whom alone says "much"."""
    more, columns, reading = CARRIED[carried]
    frame = votes(n_people=2, per_person=20)
    parts = in_parts(tmp_path, frame.with_columns(**more), n_parts=4, columns=columns, reading=reading)
    assert 0 in {record.n_users for record in parts.records}
    settings = GIVEN | {"clickers": 0.2, "tol": 1e-12}
    one = predilect.Population(n_jobs=1, **settings).fit(
        predilect.read(tmp_path / "votes.csv", columns=columns, reading=reading)
    )
    many = fitted(parts, **settings)
    pairs = PAIRS.with_columns(user=pl.lit("p0"))
    np.testing.assert_allclose(many.predict_parts(pairs), one.predict_proba(pairs), rtol=0.0, atol=ITERATIVE)
    for column in ("mean", "sd"):
        np.testing.assert_allclose(many.rank()[column], one.rank()[column], rtol=0.0, atol=ITERATIVE)


CASES = {
    "consistency": (votes(), {**GIVEN, "consistency": 0.4}),
    "ties of their own": (votes(ties=0.5), {**GIVEN, "tie_threshold": ("auto", 0.5)}),
    "sides": (votes().with_columns(winner=pl.when(pl.int_range(480) % 3 == 0).then("left").otherwise("winner")), GIVEN),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_differs_between_people_is_found_by_the_workers(tmp_path, name):
    frame, settings = CASES[name]
    parts = in_parts(tmp_path, frame)
    settings = settings | {"tol": 1e-13, "max_iter": 3000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", predilect.errors.ConvergenceWarning)  # so tight that rounding may be in the way
        one = predilect.Population(n_jobs=1, **settings).fit(predilect.read(tmp_path / "votes.csv"))
        many = fitted(parts, **settings)
    np.testing.assert_allclose(many.predict_parts(PAIRS), one.predict_proba(PAIRS), rtol=0.0, atol=ITERATIVE)
    for user in ("p3", "p4"):
        mine, theirs = (m.people().filter(pl.col("user") == user) for m in (many.of(user), one))
        np.testing.assert_allclose(mine["consistency"], theirs["consistency"], rtol=1e-4)


@pytest.mark.slow
def test_boards_are_as_unsure_as_their_unit_in_parts_too(tmp_path):
    frame = votes(ties=0.0)
    coin = pl.when(pl.int_range(len(frame)) % 2 == 0).then("left").otherwise("right")
    at_random = pl.col("user").is_in([f"p{k}" for k in range(12)])
    parts = in_parts(tmp_path, frame.with_columns(winner=pl.when(at_random).then(coin).otherwise("winner")))
    free = {name: value for name, value in GIVEN.items() if name != "variance"} | {"clickers": 0.2, "tol": 1e-11}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", predilect.errors.ConvergenceWarning)  # so tight that rounding may be in the way
        one = predilect.Population(n_jobs=1, **free).fit(predilect.read(tmp_path / "votes.csv"))
        given = free | {"variance": one.hyperparameters_.variance}
        held = predilect.Population(n_jobs=1, **given).fit(predilect.read(tmp_path / "votes.csv"))
        many = fitted(parts, **free)
    np.testing.assert_allclose(many.rank()["sd"], one.rank()["sd"], rtol=1e-4)
    assert (one.rank()["sd"] / held.rank()["sd"]).mean() > 1.002


@pytest.mark.slow
def test_effects_are_as_unsure_as_tastes_leave_them_in_parts_too(tmp_path):
    columns = {"covariates": ["length"]}
    parts = in_parts(tmp_path, votes().with_columns(length=pl.int_range(480) % 5 - 2), columns=columns)
    settings = GIVEN | {"variance": "auto", "tol": 1e-12}
    one = predilect.Population(n_jobs=1, **settings).fit(predilect.read(tmp_path / "votes.csv", columns=columns))
    many = fitted(parts, **settings).population
    held = predilect.Population(n_jobs=1, **settings | {"variance": one.hyperparameters_.variance})
    held.fit(predilect.read(tmp_path / "votes.csv", columns=columns))
    for column in ("effect", "sd"):
        np.testing.assert_allclose(many.covariates()[column], one.covariates()[column], rtol=1e-5)
    assert one.covariates()["sd"][0] > 1.001 * held.covariates()["sd"][0]


NEWCOMERS = predilect.Calibration(newcomer_weight=0.5)


@pytest.mark.parametrize(
    ("ties", "settings"),
    [
        (0.0, {}),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in [(0.5, {"consistency": 0.3}), (0.0, {"calibration": NEWCOMERS})]
        ),
    ],
)
def test_who_clicks_at_random_is_found_by_the_workers(tmp_path, ties, settings):
    """With the unit of the others, the sandwich of boards, and predictions without it."""
    frame = votes(ties=ties)
    at_random = pl.col("user").is_in([f"p{k}" for k in range(12)]) & (pl.col("winner") != "tie")
    coin = pl.when(pl.int_range(len(frame)) % 2 == 0).then("left").otherwise("right")
    parts = in_parts(tmp_path, frame.with_columns(winner=pl.when(at_random).then(coin).otherwise("winner")))
    settings = GIVEN | {"clickers": 0.2, "tol": 1e-12, "max_iter": 3000} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", predilect.errors.ConvergenceWarning)  # so tight that rounding may be in the way
        one = predilect.Population(n_jobs=1, **settings).fit(predilect.read(tmp_path / "votes.csv"))
        many = fitted(parts, **settings)
    near = {"rtol": 0.0, "atol": ITERATIVE}
    h, chosen = one.hyperparameters_, many.population.hyperparameters_
    assert chosen.unit == pytest.approx(h.unit, abs=ITERATIVE)
    assert chosen.click_shares == h.click_shares
    assert (h.unit == 1.0) == (not settings["consistency"])
    np.testing.assert_allclose(many.population.posterior_.C_answers, one.posterior_.C_answers, **near)
    np.testing.assert_allclose(many.predict_parts(PAIRS), one.predict_proba(PAIRS), **near)
    of_anybody = PAIRS.drop("user")
    np.testing.assert_allclose(many.predict_proba(of_anybody), one.predict_proba(of_anybody), **near)
    for column in ("mean", "sd"):
        np.testing.assert_allclose(many.rank()[column], one.rank()[column], **near)
        np.testing.assert_allclose(many.rank("p3")[column], one.rank("p3")[column], **near)
    for user in ("p3", "p30"):
        mine, theirs = (m.people().filter(pl.col("user") == user) for m in (many.of(user), one))
        np.testing.assert_allclose(mine["clicks_at_random"], theirs["clicks_at_random"], **near)
    assert any("% of the people seem to click at random" in line for line in many.describe())
    many.save(tmp_path / "model")
    again = PopulationInParts.load(tmp_path / "model")
    assert again.of("p3").people().equals(many.of("p3").people())
    known = predilect.Population(n_jobs=1, **settings).fit_parts(parts, work=tmp_path / "again", start=again)
    np.testing.assert_allclose(known.predict_parts(PAIRS), one.predict_proba(PAIRS), **near)


@pytest.mark.slow
def test_what_is_chosen_is_what_fit_chooses_of_the_sample(tmp_path):
    rng = np.random.default_rng(3)
    items = pl.DataFrame({"item": [f"item {k}" for k in range(6)], "size": rng.standard_normal(6)})
    parts = in_parts(tmp_path, votes(ties=0.4), n_parts=4)
    one = predilect.Population(n_jobs=1).fit(predilect.read(tmp_path / "votes.csv"), items=items)
    many = predilect.Population(n_jobs=1).fit_parts(parts, items=items)
    found, expected = many.population.hyperparameters_, one.hyperparameters_
    assert replace(found, unit_sd=0.0) == replace(expected, unit_sd=0.0)
    assert found.unit_sd == pytest.approx(expected.unit_sd, abs=CONVERGED)
    best = many.top_parts(1)
    for user in ("p1", "p2"):
        found = best.row(by_predicate=pl.col("user") == user, named=True)
        board = many.rank(user)
        assert (found["item"], found["mean"]) == (board["item"][0], pytest.approx(board["mean"][0], abs=CONVERGED))
    held = votes(seed=1, n_people=60)
    assert abs(many._score_and_accuracy(predilect.Comparisons.from_frame(held))[0] - one.score(held)) < 1e-3


@pytest.mark.slow
def test_of_a_sample_the_rest_joins_for_the_population(tmp_path):
    parts = in_parts(tmp_path, votes(200))
    settings = GIVEN | {"tol": 1e-10}
    one = predilect.Population(n_jobs=1, **settings).fit(predilect.read(tmp_path / "votes.csv"))
    many = predilect.Population(n_jobs=1, **settings).fit_parts(parts, most_people=40)
    assert 20 < many.population.report_["parts"]["sample"] < 80
    np.testing.assert_allclose(many.population.posterior_.m, one.posterior_.m, rtol=0.0, atol=1e-4)


class Backwards(Executor):
    """Does everything at once, the last first: as late as results are asked for."""

    def __init__(self) -> None:
        self.waiting: list = []

    def submit(self, function, *args, **how):
        future: Future = Future()
        self.waiting.append((future, function, args))
        future.result = lambda timeout=None: self._done(future)
        return future

    def _done(self, future):
        while self.waiting:
            one, function, args = self.waiting.pop()
            one.set_result(function(*args))
        return Future.result(future)


@pytest.mark.slow
def test_workers_do_not_change_a_bit(crowd, model, tmp_path):
    with ThreadPoolExecutor(3) as threads:
        assert bits(fitted(crowd, tmp_path / "threads", threads, **GIVEN)) == bits(model)
    assert bits(fitted(crowd, tmp_path / "backwards", Backwards(), **GIVEN)) == bits(model)


@pytest.mark.slow
def test_processes_do_not_change_a_bit(crowd, model, tmp_path):
    assert bits(fitted(crowd, tmp_path / "work", "processes", **GIVEN)) == bits(model)


class Cut(Exception):
    """A fit that ends somewhere."""


def stopped(crowd, work, after):
    """Leave in ``work`` what a fit had done after so many passes."""

    def stop(stage, done):
        if stage == "fitting" and done > after:
            raise Cut

    with pytest.raises(Cut):
        predilect.Population(n_jobs=1, **GIVEN).fit_parts(crowd, work=work, watch=stop)


@pytest.fixture(scope="module")
def after_four(crowd, tmp_path_factory):
    """The folder of a fit that was stopped; not to be changed."""
    work = tmp_path_factory.mktemp("stopped") / "work"
    stopped(crowd, work, 4)
    return work


@pytest.mark.parametrize("after", [1, 4])
def test_a_fit_that_was_stopped_goes_on_with_the_same_bits(crowd, model, after_four, tmp_path, after):
    if after == 4:
        shutil.copytree(after_four, tmp_path / "work")
    else:
        stopped(crowd, tmp_path / "work", after)
    again = fitted(crowd, tmp_path / "work", **GIVEN)
    assert again.population.report_["parts"]["passes_known"] > after - 1
    assert again.population.report_["parts"]["lost"] == 0
    assert bits(again) == bits(model)


@pytest.mark.parametrize(
    ("what", "size"),
    [("passes/*.npz", 0.5), ("part-*/laid-out.json", 0), ("part-*/weight.npy", 0.5), ("part-*/state-*.npy", 0)],
)
def test_what_cannot_be_read_of_the_cache_counts_as_absent(crowd, model, after_four, tmp_path, what, size):
    shutil.copytree(after_four, tmp_path / "work")
    files = list((tmp_path / "work").glob(f"*/{what}"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: int(size * file.stat().st_size)])
    again = fitted(crowd, tmp_path / "work", **GIVEN)
    np.testing.assert_allclose(again.predict_parts(PAIRS), model.predict_parts(PAIRS), atol=1e-4)


def test_parts_that_are_lost_are_read_again(crowd, model, tmp_path):
    work, seen = tmp_path / "work", 0

    def lose(stage, done):
        nonlocal seen
        seen += stage == "fitting"
        if seen in (3, 7):
            for folder in work.glob(f"*/part-000{seen % 3}"):
                shutil.rmtree(folder)

    found = predilect.Population(n_jobs=1, **GIVEN).fit_parts(crowd, work=work, watch=lose)
    assert found.population.report_["parts"]["lost"] == 2
    held = predilect.Comparisons.from_frame(votes(seed=1))
    assert abs(found._score_and_accuracy(held)[0] - model._score_and_accuracy(held)[0]) < 1e-4


def test_what_is_cached_is_on_the_disk_before_it_has_its_name(crowd, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append(os.path.realpath(f"/proc/self/fd/{descriptor}")))
    replace_file = Path.replace

    def renamed(self, target):
        assert str(self.resolve()) in done, self
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", renamed)
    fitted(crowd, tmp_path / "work", **GIVEN)
    assert any(name.endswith(".npz") for name in done)
    assert any("state-sites" in name for name in done)


def spec_of(model: PopulationInParts, work: Path):
    from predilect.parts.cells import Spec

    return Spec(model.parts.path, model.parts.checksum, work, model.population.items_)


def test_a_state_of_another_pass_is_never_used(model, tmp_path):
    spec, law = spec_of(model, tmp_path), Law(np.eye(6), np.zeros(6))
    first = sweep(spec, 0, Pass(law, 0.0, np.zeros(0), 50, 1e-9, START, "one"))[0]
    people, folder = cell(spec, 0)
    assert read_state(folder, "two", people) is None
    # A copy that stood still while others went on, under another name and law: the answer is that of no copy at all.
    other = Law(3.0 * np.eye(6), np.linspace(0.0, 1.0, 6))
    stale, lost = sweep(spec, 0, Pass(other, 0.0, np.zeros(0), 1, 0.0, "two", "three"))
    assert lost == 1
    fresh = sweep(replace(spec, scratch=tmp_path / "fresh"), 0, Pass(other, 0.0, np.zeros(0), 100, 1e-9, START, "x"))[0]
    assert stale.evidence == pytest.approx(fresh.evidence, abs=ITERATIVE)
    assert abs(stale.evidence - first.evidence) > 1.0
    # A file of the right name, of other answers.
    np.save(folder / "state-sites-four.npy", np.zeros((2, 3)))
    np.save(folder / "state-own-four.npy", np.zeros((3, 0)))
    assert read_state(folder, "four", people) is None
    assert isinstance(read_state(folder, "three", people), PartState)


def test_states_that_nobody_needs_are_removed(model):
    # The last pass, and the one before it, from which it is made again.
    for folder in model._states.glob("part-*"):
        assert len(list(folder.glob("state-sites-*"))) == 2


class Dying(Executor):
    """Dies at some call."""

    def __init__(self, at: int) -> None:
        self.left = at

    def submit(self, function, *args, **how):
        from concurrent.futures.process import BrokenProcessPool

        self.left -= 1
        future: Future = Future()
        if self.left < 0:
            future.set_exception(BrokenProcessPool("a process died"))
        else:
            future.set_result(function(*args))
        return future


@pytest.mark.slow
def test_a_pool_that_died_is_said_and_the_fit_goes_on_with_another(crowd, model, tmp_path):
    with pytest.raises(DataError, match="lost a worker at part 1"):
        fitted(crowd, tmp_path / "work", Dying(10), **GIVEN)
    assert bits(fitted(crowd, tmp_path / "work", **GIVEN)) == bits(model)
    with ThreadPoolExecutor(1) as closed:
        pass
    with pytest.raises(DataError, match="takes no work"):
        fitted(crowd, tmp_path / "work2", closed, **GIVEN)


@pytest.mark.slow
def test_processes_that_are_killed_are_started_again(crowd, model, tmp_path):
    killed = []

    def kill(stage, done):
        import multiprocessing

        children = [one for one in multiprocessing.active_children() if one.name.startswith("SpawnProcess")]
        if stage == "fitting" and done in (2, 5) and done not in killed and children:
            killed.append(done)
            os.kill(children[0].pid, signal.SIGKILL)

    found = predilect.Population(n_jobs=1, **GIVEN).fit_parts(
        crowd, pool="processes", work=tmp_path / "work", watch=kill
    )
    assert killed
    assert bits(found) == bits(model)


def test_a_part_that_fails_twice_is_named(crowd, tmp_path, monkeypatch):
    calls = []

    def fails(people, *_, **__):
        calls.append(people.n_users)
        raise ZeroDivisionError("a kernel failed")

    monkeypatch.setattr("predilect.parts.cells.expectation", fails)
    with pytest.raises(DataError, match=r"part 0 of .* failed twice \(ZeroDivisionError: a kernel failed\)"):
        fitted(crowd, tmp_path / "work", **GIVEN)
    assert calls[0] == calls[1]


def test_no_space_for_the_state_is_said(crowd, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("predilect.parts.cells.np.save", full)
    with pytest.raises(OutputError, match=r"No space left.*work="):
        fitted(crowd, tmp_path / "work", **GIVEN)


def test_what_parts_do_not_know_is_refused(crowd, tmp_path):
    with pytest.raises(DataError, match="pools them"):
        predilect.Population(personal=False).fit_parts(crowd)
    with pytest.raises(DataError, match="no folder of parts"):
        predilect.Population().fit_parts(tmp_path)
    with pytest.raises(DataError, match="a pool is None"):
        fitted(crowd, tmp_path / "work", 3, **GIVEN)
    frame = votes().with_columns(prompt=pl.Series(["a", "b"] * 240))
    (tmp_path / "c").mkdir()
    parts = in_parts(tmp_path / "c", frame, columns={"context": "prompt"})
    with pytest.raises(DataError, match="have contexts"):
        fitted(parts, **GIVEN)


def test_ray_that_is_not_there_is_asked_for(crowd, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(DataError, match=r"pip install 'predilect\[ray\]'"):
        fitted(crowd, tmp_path / "work", "ray", **GIVEN)


_RAY = """
import os, sys

class exceptions:
    class RayError(Exception): pass
    class RayTaskError(RayError): pass

class Method:
    def __init__(self, call): self.remote = call

def remote(**_):
    def of(cls):
        class Actor:
            @staticmethod
            def remote():
                made = cls()
                made.run = Method(made.run)
                return made
        return Actor
    return of

def get(result):
    if "DIES" in os.environ:
        os._exit(1)  # as it does when the processes on this machine are gone
    return result

def put(value): return value
def is_initialized(): return True
def cluster_resources(): return {"CPU": 2}
def kill(actor): pass
"""


@pytest.fixture
def ray(tmp_path):
    (tmp_path / "ray.py").write_text(_RAY)


@pytest.mark.slow
def test_a_fit_by_ray_is_the_same_and_says_nothing_of_an_end(crowd, model, ray, tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "ray", None)  # what is there is put back
    monkeypatch.delitem(sys.modules, "ray")
    monkeypatch.syspath_prepend(tmp_path)
    assert bits(fitted(crowd, tmp_path / "work", "ray", **GIVEN)) == bits(model)
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_fit_that_ray_ends_says_what_to_do(crowd, ray, tmp_path):
    code = (
        "import sys, predilect\npredilect.Population(n_jobs=1, **eval(sys.argv[1])).fit_parts(sys.argv[2], pool='ray')"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(predilect.__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-c", code, repr(GIVEN), str(crowd.path)], capture_output=True, text=True, check=False,
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path, "DIES": "1"},
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    said = "Ray's own processes on this machine have died, and the fit with them. What was done so far is kept"
    assert said in ran.stderr


def test_a_saved_model_reads_the_part_of_a_person(crowd, model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "model")
    again = PopulationInParts.load(tmp_path / "model")
    assert bits(again) == bits(model)
    assert again.rank().equals(model.rank())
    assert type(predilect.load(tmp_path / "model")) is predilect.Population
    with pytest.raises(DataError, match="not known"):
        again.of("nobody")
    shutil.rmtree(tmp_path / "model" / "states" / "part-0001")
    with pytest.raises(DataError, match="does not hold"):
        PopulationInParts.load(tmp_path / "model").part(1)
    with pytest.raises(DataError, match="no part 7"):
        again.part(7)
    written = model.top_parts(1, path=tmp_path / "top")
    assert pl.read_parquet(tmp_path / "top" / "*.parquet").equals(model.top_parts(1))
    assert written["n_rows"].sum() == model.parts.n_users
    document = json.loads((tmp_path / "model" / "parts.json").read_text())
    (tmp_path / "model" / "parts.json").write_text(json.dumps(document | {"checksum": "x"}))
    with pytest.raises(DataError, match="other answers"):
        PopulationInParts.load(tmp_path / "model")


@pytest.mark.slow
def test_a_new_day_begins_where_the_last_one_ended(tmp_path):
    parts = in_parts(tmp_path, votes(80))
    day = fitted(parts, **GIVEN)
    day.save(tmp_path / "day")
    votes(20, seed=2).with_columns(user="user" + pl.lit(" of day 2")).write_csv(tmp_path / "more.csv")
    parts = predilect.parts.partition(tmp_path / "more.csv", tmp_path / "parts", add=True)
    cold = fitted(parts, **GIVEN)
    warm = predilect.Population(n_jobs=1, calibration=None).fit_parts(parts, start=tmp_path / "day")
    assert replace(warm.population.hyperparameters_, unit_sd=0.0) == day.population.hyperparameters_
    passes = [one.population.report_["fit"]["iterations"] for one in (warm, cold)]
    assert passes[0] < passes[1]
    np.testing.assert_allclose(warm.population.posterior_.m, cold.population.posterior_.m, atol=0.02)
    assert warm.part(0).update(user="a new one", left="item 1", right="item 2", outcome=1).n_answers_ == 801.0


@pytest.mark.slow
def test_parts_in_which_not_all_grades_occur(tmp_path):
    """Answers are counted by grade in each part, and added up."""
    rng = np.random.default_rng(0)
    left, right = np.array([rng.permutation(3)[:2] for _ in range(60)]).T
    user = [f"u{k % 6}" for k in range(60)]
    word = ["left much better" if one == "u0" and k % 12 else "left slightly better" for k, one in enumerate(user)]
    file = tmp_path / "votes.csv"
    pl.DataFrame({"user": user, "left": left, "right": right, "winner": word}).write_csv(file)
    said = {"grades": ["slightly", "much"]}
    parts = predilect.parts.partition(file, tmp_path / "parts", n_parts=3, reading=said)
    given = {"strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "calibration": None, "consistency": 0.0}
    whole = predilect.Population(**given, tie_threshold=0.3, n_jobs=1).fit(predilect.read(file, reading=said))
    parted = predilect.Population(**given, tie_threshold=0.3, n_jobs=1).fit_parts(parts)
    np.testing.assert_allclose(parted.rank()["mean"], whole.rank()["mean"], atol=0.005)
