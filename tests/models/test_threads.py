"""Threads that share a model: one at a time changes it, and whoever reads sees it before a change or after."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

from contracts.votes import item_ids, questions, user_ids
from predilect import Comparisons, GaSPK, Population
from predilect.evaluation import judging as verdicts
from predilect.models.population import model as population_model
from simulate_updates import AT_FIT, ITEMS, KINDS, LATER, N_USERS, PERSONAL, ROWS, columns, fitted, one
from tolerances import CONVERGED, ITERATIVE

N_THREADS = 8


@pytest.fixture
def restless():
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def changes(thread: int, n: int) -> list[tuple[str, dict]]:
    """What one thread changes, in its order: answers of people whom all know, and of new ones, some taken back."""
    rng = np.random.default_rng(thread)
    held, made = [], []
    for _ in range(n):
        if held and rng.random() < 0.45:
            made.append(("forget", held.pop(int(rng.integers(len(held))))))
            continue
        left, right = rng.choice(6, size=2, replace=False)
        user = user_ids([rng.integers(14)])[0] if rng.random() < 0.8 else f"new {thread} {rng.integers(3)}"
        answer = {
            "user": user, "left": item_ids([left])[0], "right": item_ids([right])[0],
            "outcome": int(rng.integers(-1, 2)),
        }  # fmt: skip
        held.append(answer)
        made.append(("update", answer))
    return made


def read(model: Population, number: int, place) -> None:
    """One of the things that readers do, with what must hold of it whatever else goes on."""
    user = user_ids([number % N_USERS])[0]
    asked = {name: column[:4] for name, column in questions(12).items()}
    kind = number % 6
    if kind == 0:
        mean, var, chances = model._predict_margin_and_proba(asked)
        assert np.isfinite(mean).all()
        assert (var > 0).all()
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)
    elif kind == 1:
        board = model.rank()
        assert sorted(board["item"]) == item_ids(range(6))
        assert board["n"].sum() % 2 == 0  # an answer is counted on two items
    elif kind == 2:
        known = user if int(user[-2:]) < 12 else None
        assert model.rank(known)["p_best"].sum() == pytest.approx(1.0)
    elif kind == 3:
        assert len(model.suggest(user_ids([3])[0], n=2, repeat=True)) == 2
    elif kind == 4:
        answers = copy.copy(model)
        assert answers.comparisons_.n_answers == pytest.approx(answers.n_answers_)
        assert answers.n_by_item_.sum() == pytest.approx(2 * answers.n_answers_)
    else:
        model.save(place, overwrite=True)
        saved = Population.load(place)
        assert saved.n_by_item_.sum() == pytest.approx(2 * saved.n_answers_)
        if model.personal_:
            assert saved.posterior_.people.weight.sum() == pytest.approx(saved.n_answers_)


def run(model: Population, n: int, n_reads: int, tmp_path) -> None:
    """All threads at once, each with its changes and in between its readings."""
    errors: list[BaseException] = []
    begin = threading.Barrier(N_THREADS)

    def work(thread: int) -> None:
        try:
            begin.wait()
            for number, (name, answer) in enumerate(changes(thread, n)):
                getattr(model, name)(**answer)
                if n_reads * number // n != n_reads * (number + 1) // n:
                    read(model, thread + number, tmp_path / f"model {thread}")
        except BaseException as error:  # noqa: BLE001  (told by the thread that waits)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def assert_same(model: Population, serial: Population, n: int, atol: float) -> None:
    names = sorted({answer["user"] for thread in range(N_THREADS) for _, answer in changes(thread, n)})
    asked = {
        "user": names * 5, "left": ["item 1"] * 5 * len(names),
        "right": [item for item in item_ids(range(6)) if item != "item 1" for _ in names],
    }  # fmt: skip
    for a, b in zip(model.predict_margin(asked), serial.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)
    np.testing.assert_array_equal(model._results_by_item().sum(axis=1), serial._results_by_item().sum(axis=1))
    assert model.n_answers_ == serial.n_answers_
    assert model.report_["updates"] == serial.report_["updates"]
    model._consolidate(), serial._consolidate()
    assert model.users_ == serial.users_
    assert model.comparisons_ == serial.comparisons_


CASES = [
    ("items", 20, 6), ("pooled", 8, 6),
    pytest.param("traits", 1000, 60, marks=pytest.mark.slow), pytest.param("items", 1000, 60, marks=pytest.mark.slow),
    pytest.param("pooled", 1000, 60, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n", "n_reads"), CASES)
def test_changes_of_many_threads_are_those_of_one_after_the_other(kind, n, n_reads, tmp_path, monkeypatch, restless):
    monkeypatch.setattr("predilect.models.population.updating._MOST_BESIDE", 5)  # so that the layout changes often
    model, serial = fitted(kind), fitted(kind)
    run(model, n, n_reads, tmp_path)
    for thread in range(N_THREADS):
        for name, answer in changes(thread, n):
            getattr(serial, name)(**answer)
    assert_same(model, serial, n, CONVERGED if model.personal_ else ITERATIVE)


def meanwhile(monkeypatch, owner, name, model, act):
    """Let something happen right after a function that a reader calls, once."""
    function, done = getattr(owner, name), []

    def slow(*arguments, **keywords):
        found = function(*arguments, **keywords)
        if not done:
            done.append(True)
            act(model)
        return found

    monkeypatch.setattr(owner, name, slow)


def much(model):
    """Changes of every kind: new people, other answers of known ones, another layout."""
    model.update(columns(LATER)).forget(columns(AT_FIT[:5]))._consolidate()


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_is_of_the_model_as_it_was_when_it_began(kind, monkeypatch):
    model, before = fitted(kind), fitted(kind)
    before.update(**one(LATER[0]))
    model.update(**one(LATER[0]))
    meanwhile(monkeypatch, Population, "_margins", model, much)
    asked = {name: column[:5] for name, column in questions(12).items()}
    for a, b in zip(model._predict_margin_and_proba(asked), before._predict_margin_and_proba(asked), strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.n_answers_ == ROWS.n_rows + 1 - 5


@pytest.mark.parametrize("user", [None, "person 0003"])
def test_a_board_is_of_the_model_as_it_was_when_it_began(user, monkeypatch):
    model, before = fitted("items"), fitted("items")
    meanwhile(monkeypatch, Population, "_board", model, much)
    assert model.rank(user).equals(before.rank(user))


def test_questions_are_of_the_model_as_it_was_when_they_began(monkeypatch):
    model, before = fitted("items"), fitted("items")
    expected = before.suggest("person 0003", n=3)
    meanwhile(monkeypatch, Population, "_user_code", model, much)
    meanwhile(monkeypatch, Comparisons, "take", model, much)
    meanwhile(monkeypatch, population_model, "workers", model, much)
    assert model.suggest("person 0003", n=3).equals(expected)


def test_a_verdict_is_kept_only_by_the_answers_it_is_of(monkeypatch):
    model, verdict = fitted("items"), fitted("items").verdict(n_folds=2, n_bootstrap=100)
    monkeypatch.setattr(verdicts, "judge", lambda *_, **__: verdict)
    meanwhile(monkeypatch, verdicts, "judge", model, much)
    assert model.verdict() is verdict
    assert model.verdict_ is None
    assert "verdict" not in model.report_
    assert model.verdict() is verdict
    assert model.verdict_ is verdict


@pytest.mark.parametrize("kind", PERSONAL)
def test_a_change_replaces_and_never_alters(kind):
    model = fitted(kind)
    model.update(**one(LATER[0]))
    before, known = copy.copy(model), fitted(kind).update(**one(LATER[0]))
    much(model)
    for name in ("n_answers_", "results_by_item_", "report_", "_added_users"):
        assert np.array_equal(getattr(before, name), getattr(known, name)), name
    assert before.comparisons_ == known.comparisons_
    assert before.rank("person 0003").equals(known.rank("person 0003"))


def test_copies_of_a_model_do_not_wait_for_each_other():
    model = fitted("items")
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model).fit(columns(AT_FIT))]
    done = []
    with model._lock:
        for other in copies:
            thread = threading.Thread(target=lambda other=other: done.append(other.update(**one(LATER[0]))))
            thread.start()
            thread.join(60)
    assert len(done) == len(copies)


@contextmanager
def collecting() -> Iterator[None]:
    """Garbage is collected at every turn, and whoever collects gives way to another thread."""
    before = gc.get_threshold()

    def give_way(phase, info):
        time.sleep(0)

    gc.callbacks.append(give_way)
    gc.set_threshold(3)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(give_way)


# Python before 3.11.8 and 3.12.2 reads literals, such as the headers of NumPy's arrays, in one thread at a time only.
@pytest.mark.slow
def test_many_threads_load_at_once(tmp_path, restless):
    model = fitted("pooled")
    model.save(tmp_path / "model")
    with collecting(), ThreadPoolExecutor(N_THREADS) as pool:
        loaded = list(pool.map(lambda _: Population.load(tmp_path / "model").n_answers_, range(300)))
    assert set(loaded) == {model.n_answers_}


@pytest.mark.slow  # GaSPK goes on iterating at each update
def test_choices_that_come_from_many_threads_are_all_taken_in(restless):
    shown = {name: ITEMS[name] for name in ("item", "x", "z")}
    model = GaSPK(n_components=1, variance=2.0, max_iter=20, n_jobs=1).fit(columns(AT_FIT), items=shown)
    parts = [LATER[k::N_THREADS] for k in range(N_THREADS)]
    errors: list[BaseException] = []

    def work(part):
        try:
            model.update(columns(part))
            assert copy.copy(model).counts_.count.sum() % 2 == 0
            assert sorted(model.rank()["item"]) == item_ids(range(6))
            model.predict_proba(questions(3))
        except BaseException as error:  # noqa: BLE001  (told by the thread that waits)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert model.n_answers_ == ROWS.n_rows
    assert model.answers_.weight.sum() == ROWS.n_rows
    assert model.counts_.count.sum() == 2 * ROWS.n_rows
