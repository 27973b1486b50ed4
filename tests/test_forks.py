"""Processes that are forked off one that has fitted: what they do works, or is refused at once; nothing hangs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed

from contracts.votes import item_ids, questions, votes
from predilect import Comparisons, GaSPK, MixedLogit, Population, check, load, read
from predilect.data import ItemFeatures
from predilect.errors import PredilectError
from predilect.papers.gaspk.outputs import accept

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

ITEMS = {"item": item_ids(range(6)), "x": [0.0, 5.0, 1.0, 3.0, 2.0, 4.0], "kind": list("ababbc")}
SETS = {"task": [1, 1, 1], "item": item_ids([0, 1, 2])}
DONE, REFUSED, WRONG, HUNG = 0, 1, 2, -signal.SIGKILL
_PATIENCE = 100.0  # seconds: a child may compile loops first


def in_child(act: Callable[[], object]) -> int:
    """What becomes of it in a process that is forked off this one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 and later: that there are threads
        number = os.fork()
    if number == 0:
        code = WRONG
        try:
            warnings.simplefilter("ignore")  # by exit code alone the child says what came
            act()
            code = DONE
        except PredilectError as error:
            if "forked off" in str(error):
                code = REFUSED
            else:
                traceback.print_exc()
        except BaseException:  # noqa: BLE001  (nothing of pytest may run on in the child)
            traceback.print_exc()
        finally:
            os._exit(code)
    end = time.monotonic() + _PATIENCE
    while (found := os.waitpid(number, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(number, signal.SIGKILL)
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(found[1])


@pytest.fixture(scope="module")
def model():
    return Population().fit(*votes(), items=ITEMS)


@pytest.fixture(autouse=True)
def threads():
    """The threads of polars have begun."""
    pl.Series([2, 1]).sort()


@pytest.mark.slow
def test_what_a_server_does_with_a_fitted_model_works_in_a_child(model, tmp_path):
    asked = {name: column[:30] for name, column in questions(6).items()}
    expected, board = model.predict_proba(asked), model.rank()["mean"].to_list()
    model.save(tmp_path / "model")

    def serve():
        loaded = load(tmp_path / "model")
        for one in (model, loaded):
            np.testing.assert_array_equal(one.predict_proba(asked), expected)
            assert one.rank()["mean"].to_list() == board
            one.update(user="new", left="item 1", right="item 2", outcome=1).rank("new")
            one.suggest("new", n=2)
        loaded.save(tmp_path / "again")

    assert in_child(serve) == DONE
    assert model.predict_proba(asked).tobytes() == expected.tobytes()
    assert load(tmp_path / "again").n_answers_ == model.n_answers_ + 1


@pytest.mark.parametrize("act", [
    lambda model: Population().fit(*votes()),
    lambda model: model.predict_proba({name: 200 * column for name, column in questions(6).items()}),
], ids=["fit", "predict much"])  # fmt: skip
def test_what_needs_the_threads_is_refused_at_once(model, act):
    assert in_child(lambda: act(model)) == REFUSED


def acts(model, tmp_path):
    """Everything that people call, by what it is called."""
    columns, y = votes()
    frame, answers = pd.DataFrame(columns), Comparisons.from_frame(columns, outcome=y)
    new = {"item": ["new"], "x": [2.5], "kind": ["c"]}
    pl.DataFrame(columns | {"outcome": y}).write_csv(tmp_path / "votes.csv")
    model.save(tmp_path / "model")
    yield "fit", lambda: type(model)().fit(columns, y)
    yield "fit, numbers", lambda: type(model)().fit(answers)
    yield "fit, frame", lambda: type(model)().fit(frame, y)
    yield "fit, features", lambda: Population().fit(answers, items=ITEMS)
    yield "read", lambda: read(tmp_path / "votes.csv", reading={"positive": "left"})
    yield "check", lambda: check(answers)
    yield "features", lambda: ItemFeatures.from_frame(ITEMS)
    yield "features, whole numbers", lambda: ItemFeatures.from_frame({"item": ["a", "b"], "x": [1, 2]})
    yield "predict", lambda: model.predict_proba(columns)
    yield "predict, frame", lambda: model.predict_proba(frame)
    yield "predict, polars", lambda: model.predict(pl.DataFrame(columns))
    yield "predict, answers", lambda: model.predict_margin(answers)
    yield "predict, unknown", lambda: model.predict_proba({"left": ["new"], "right": ["item 1"]})
    yield "predict, new", lambda: model.predict_proba({"left": ["new"], "right": ["item 1"]}, items=new)
    yield "predict, sets", lambda: model.predict_choice(SETS)
    yield "score", lambda: model.score(answers)
    yield "score, frame", lambda: model.score(frame, y)
    yield "rank", lambda: (model.rank(), model.rank("person 0003"))
    yield "notebook", model._repr_html_
    yield "suggest", lambda: model.suggest("person 0003", n=2)
    yield "suggest, candidates", lambda: model.suggest(candidates={"left": ["item 1"], "right": ["item 2"]})
    yield "decide", lambda: model.decide("person 0003", item_ids(range(3)))
    yield "save", lambda: model.save(tmp_path / "child")
    yield "load", lambda: load(tmp_path / "model").rank()
    yield "compress", lambda: model.compress(keep=2).rank()
    yield "report", lambda: model.report(tmp_path / "page.html")
    yield "tables", lambda: [table() for table in model._further_tables().values()]
    if not isinstance(model, GaSPK):
        yield "suggest a set", lambda: model.suggest_set("person 0003", size=3, exclude=SETS)
    if isinstance(model, Population):
        yield "update", lambda: model.update(columns, y).rank()
        yield "verdict", model.verdict
        yield "people", model.people
    if isinstance(model, Population | MixedLogit):
        yield "part-worths", lambda: (model.worth.parts(), model.worth.coefficients(), model.worth.importances())
        yield "simulate", lambda: model.worth.simulate({"now": item_ids([1, 2])})
    if isinstance(model, GaSPK):
        yield "accept", lambda: accept(model, {"x": [1.0]})
        yield "accept, whole numbers", lambda: accept(model, {"x": [1]}, user="person 0003")


@pytest.mark.slow  # many processes
@pytest.mark.parametrize("kind", [Population, GaSPK, MixedLogit])
def test_nothing_that_people_call_hangs_in_a_child(kind, tmp_path):
    model = kind().fit(*votes(), items=ITEMS)
    found = {name: in_child(act) for name, act in acts(model, tmp_path)}
    assert {name for name, code in found.items() if code not in (DONE, REFUSED)} == set()
    assert {name for name in found if name.split(",")[0] in ("fit", "read")} <= {
        name for name, code in found.items() if code == REFUSED
    } | {"fit, numbers"}


@pytest.mark.slow  # a process of its own
def test_processes_that_are_forked_before_anything_is_read_fit_as_any_other():
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import predilect.models.population.model
from test_forks import DONE, REFUSED, in_child
import predilect
from contracts.votes import votes
fit = lambda: predilect.Population().fit(*votes())
assert in_child(fit) == DONE
fit()
assert in_child(fit) == REFUSED
assert in_child(lambda: in_child(fit) == REFUSED or 1 / 0) == DONE
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr


def _fitted(seed):
    columns, y = votes()
    fitted = Population(random_state=seed, n_jobs=2).fit(columns, y)
    return fitted.predict_proba(columns).tobytes()


@pytest.mark.slow  # processes of their own
@pytest.mark.parametrize("way", ["spawn", "forkserver", "loky", "threading"])
def test_other_ways_to_start_processes_give_the_same_bits(way):
    expected = _fitted(0)
    if way in ("loky", "threading"):
        found = Parallel(2, backend=way)(delayed(_fitted)(0) for _ in range(4))
    else:
        with multiprocessing.get_context(way).Pool(2) as pool:
            found = pool.map(_fitted, [0, 0])
    assert set(found) == {expected}
