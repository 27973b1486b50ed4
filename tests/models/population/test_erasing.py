"""forget(user=...): nothing of the person is left, and everybody else is as before."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
import polars as pl
import pytest

from predilect import Comparisons, Population, load
from predilect.data import PersonFeatures
from predilect.errors import DataError, DataWarning
from predilect.show.report.folder import write_people
from simulate_updates import FIXED
from tolerances import CONVERGED
from traces import traces

# Text and numbers that cannot be in a model by chance, and the same in both kinds of ids.
ZOE, LATE, SILENT, LOST = 7_304_118_225, 7_304_118_226, 7_304_118_227, 7_304_118_228
IDS = {"text": "Zoë-{}-Ω".format, "numbers": int}
JOB, LENGTH = "keeper of the seventh lighthouse", 123.4567
TEXTS = (JOB,)
N_PEOPLE, ITEMS = 9, ["i0", "i1", "i2", "i3", "i4"]


def votes(of, *more: int) -> dict[str, list]:
    """Answers of some people, of whom ZOE has one under a covariate of her own, and LOST gave none that counts."""
    rng = np.random.default_rng(4)
    rows: dict[str, list] = {name: [] for name in ("user", "left", "right", "winner", "length", "topic")}
    for who in more or (*range(1, N_PEOPLE), ZOE, LOST):
        for _ in range(1 if who == LOST else 6):
            a, b = rng.choice(len(ITEMS), 2, replace=False).tolist()
            rows["user"].append(of(who))
            rows["left"].append(ITEMS[a])
            rows["right"].append(None if who == LOST else ITEMS[b])
            rows["winner"].append(ITEMS[a] if rng.random() < 0.5 + 0.1 * (b - a) else ITEMS[b])
            rows["length"].append(LENGTH if who == ZOE else float(rng.integers(-2, 3)))
            rows["topic"].append(f"topic of {who}" if who == ZOE else f"topic {rng.integers(4)}")
    return rows


def people(of) -> dict[str, list]:
    """Features of all people, of somebody who never answers and of one of whom nothing is known."""
    ids = [*range(1, N_PEOPLE), ZOE, LATE, SILENT]
    jobs = ["cook", "smith"] * (N_PEOPLE // 2) + [JOB, "cook", None]
    return {
        "user": [of(one) for one in ids], "job": jobs,
        "age": [*(20.0 + 3.0 * k for k in range(len(ids) - 1)), None],
        "town": [*(["Aix", "Ulm"] * (len(ids) // 2)), None],
    }  # fmt: skip


KINDS = {
    "plain": {},
    "features": {"user_features": True},
    "consistency": {"consistency": 0.5},
    "pooled": {"personal": False},
    "segments": {},
}
PERSONAL = [kind for kind in KINDS if kind != "pooled"]


def fitted(kind: str, ids: str = "text", *, later: bool = True) -> Population:
    """A model of which people came at the fit and later."""
    model = copy.deepcopy(_fitted(kind, ids))
    return model.update(votes(IDS[ids], LATE)) if later else model


@functools.cache
def _fitted(kind: str, ids: str) -> Population:
    of = IDS[ids]
    answers = Comparisons.from_frame(
        votes(of), columns={"covariates": ["length"], "context": "topic"}, reading={"drop": "missing"}
    )
    table = people(of)
    if kind == "segments":
        users = PersonFeatures.from_frame(table, segments=["job", "town"])
    else:
        users = PersonFeatures.from_frame(table, columns=["job", "age", "town"])
    return Population(**FIXED | KINDS[kind]).fit(answers, people=users)


def questions(of, who) -> dict[str, list]:
    pairs = [(a, b) for a in ITEMS for b in ITEMS if a < b]
    return {
        "user": [of(one) for one in who for _ in pairs],
        "left": [a for _ in who for a, _ in pairs], "right": [b for _ in who for _, b in pairs],
    }  # fmt: skip


def everything(model: Population, folder) -> None:
    """All that a model writes of people: itself, everybody's ranking, and its tables."""
    model.save(folder / "model")
    if model.personal_:
        write_people(folder / "users.parquet", model)
        pl.DataFrame(model.people()).write_csv(folder / "people.csv")
    words = [repr(model), *model.describe(), *model.report_["intake"]]
    if model.comparisons_ is not None:
        words += [*model.comparisons_.intake.describe(), str(model.comparisons_.intake)]
        model.comparisons_.to_frame("polars").write_parquet(folder / "answers.parquet")
    (folder / "words.txt").write_text("\n".join(words), encoding="utf-8")
    (folder / "memory.bin").write_bytes(pickle.dumps(vars(model)))


@pytest.mark.slow
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loaded", [False, True])
def test_nothing_of_an_erased_person_is_left(kind, ids, loaded, tmp_path):
    of, model = IDS[ids], fitted(kind, ids)
    (tmp_path / "before").mkdir()
    everything(model, tmp_path / "before")
    assert traces(tmp_path / "before", of(ZOE))  # the search finds what is there
    assert traces(tmp_path / "before", JOB)
    if loaded:
        model = Population.load(tmp_path / "before" / "model")
    told = pytest.warns(DataWarning, match="does not hold who gave") if loaded and kind == "pooled" else None
    for who in (ZOE, LATE, SILENT, *([] if loaded else [LOST])):
        if told is not None and who in (ZOE, LATE):
            with told:
                model.forget(user=of(who))
        else:
            model.forget(user=of(who))
    (tmp_path / "after").mkdir()
    everything(model, tmp_path / "after")
    for who in (ZOE, LATE, SILENT, LOST):
        assert traces(tmp_path / "after", of(who)) == []
        assert of(who) not in model.users_
    for text in TEXTS:
        assert traces(tmp_path / "after", text) == []
    assert not model._added_users
    if told is None:  # nor what only she was asked under
        odd, found = LENGTH / model.posterior_.covariates.scale, []
        for folder in ("before", "after"):
            with np.load(tmp_path / folder / "model" / "arrays.npz") as arrays:
                found.append(bool(np.isclose(np.abs(arrays["posterior.covariates.patterns"]), odd).any()))
        assert found == [True, False]


AGAINST_THE_CROWD = ["agreement", "infit", "infit_z", "outfit", "outfit_z", "misfit"]


@pytest.mark.slow
@pytest.mark.parametrize("who", [ZOE, LATE])
@pytest.mark.parametrize("kind", PERSONAL)
def test_everybody_else_is_as_before_to_the_bit_and_the_erased_is_nobody_known(kind, who, tmp_path):
    of, model = IDS["text"], fitted(kind)
    others = [*range(1, N_PEOPLE), *({ZOE, LATE} - {who})]
    asked = questions(of, others)
    before, board = model.predict_margin(asked), pl.DataFrame(model.rank(of(2)))
    table = pl.DataFrame(model.people())
    model.forget(user=of(who))
    for one in (model, _saved(model, tmp_path)):
        for a, b in zip(before, one.predict_margin(asked), strict=True):
            np.testing.assert_array_equal(a, b)
        assert board.equals(pl.DataFrame(one.rank(of(2))))
        rest = table.filter(pl.col("user") != of(who)).drop(AGAINST_THE_CROWD)  # whose part the erased is no more
        assert rest.equals(pl.DataFrame(one.people()).drop(AGAINST_THE_CROWD))
        with pytest.warns(DataWarning, match="without answers"):
            gone = one.predict_margin(questions(of, [who]))
        with pytest.warns(DataWarning, match="without answers"):
            unknown = one.predict_margin(questions(of, [7_304_110_000]))
        for a, b in zip(gone, unknown, strict=True):
            np.testing.assert_array_equal(a, b)
    theirs = 6.0
    assert model.n_answers_ == fitted(kind).n_answers_ - theirs
    assert model._results_by_item().sum(axis=1).sum() == 2 * model.n_answers_
    assert model.report_["updates"]["answers_taken_back"] == theirs
    # Whoever comes back starts from nothing.
    again, fresh = copy.deepcopy(model), votes(of, LATE)
    fresh["user"] = [of(who)] * len(fresh["user"])
    strangers = votes(of, LATE)
    strangers["user"] = [of(7_304_110_000)] * len(fresh["user"])
    again.update(fresh).update(strangers)
    same = [again.predict_margin(questions(of, [one]))[0] for one in (who, 7_304_110_000)]
    np.testing.assert_allclose(same[0], same[1], atol=CONVERGED)


def _saved(model: Population, tmp_path) -> Population:
    model.save(tmp_path / "saved")
    return load(tmp_path / "saved")


def test_whoever_came_after_the_fit_is_erased_as_if_they_had_never_come():
    for kind in KINDS:
        before, model = fitted(kind, later=False), fitted(kind).forget(user=IDS["text"](LATE))
        asked = questions(IDS["text"], range(1, N_PEOPLE))
        for a, b in zip(before.predict_margin(asked), model.predict_margin(asked), strict=True):
            np.testing.assert_allclose(a, b, atol=CONVERGED)
        assert model.comparisons_ == before.comparisons_
        assert model.users_ == before.users_
        assert (model.n_by_item_ == before.n_by_item_).all()


def test_a_pooled_ranking_without_a_person_is_that_without_their_answers():
    of, model = IDS["text"], fitted("pooled")
    theirs = model.comparisons_.take(model.comparisons_.user == model.comparisons_.users.code(of(ZOE)))
    other = fitted("pooled").forget(theirs)
    model.forget(user=of(ZOE))
    asked = questions(of, [1])
    for a, b in zip(other.predict_margin(asked), model.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    assert model.n_answers_ == other.n_answers_
    model.update(votes(of, 3)).forget(votes(of, 3))  # its keys are whole


def test_answers_come_and_go_after_somebody_was_erased():
    of = IDS["text"]
    for kind in PERSONAL:
        model = fitted(kind).forget(user=of(ZOE))
        asked = questions(of, range(1, N_PEOPLE))
        before = model.predict_margin(asked)
        own = Comparisons.from_frame(votes(of, 3, LATE), columns={"covariates": ["length"]})
        model.update(own).forget(own)
        for a, b in zip(before, model.predict_margin(asked), strict=True):
            np.testing.assert_allclose(a, b, atol=CONVERGED)


def test_who_cannot_be_erased():
    of, model = IDS["text"], fitted("plain")
    state = pickle.dumps(model.predict_margin(questions(of, range(1, N_PEOPLE))))
    with pytest.raises(DataError, match=r'not one of the 10 people.*Did you mean "Zoë-7304118225-Ω"'):
        model.forget(user="Zoe-7304118225-Ω")
    with pytest.raises(DataError, match="left is missing"):  # a slip in an answer erases nobody
        model.forget(user=of(ZOE), outcome=1)
    with pytest.raises(DataError, match="neither outcome nor winner"):
        model.forget(user=of(ZOE), left="i0", right="i1")
    with pytest.raises(DataError, match="left is missing"):
        model.forget(user=of(ZOE), weight=2.0)
    with pytest.raises(DataError, match="left is missing"):
        model.forget()
    assert of(ZOE) in model.users_
    assert pickle.dumps(model.predict_margin(questions(of, range(1, N_PEOPLE)))) == state
    nobody = Population(**FIXED | {"personal": False}).fit({"left": ["a", "b"], "right": ["b", "c"]}, [1, 1])
    with pytest.raises(DataError, match="does not know who answered"):
        nobody.forget(user="ann")
    alone = Population(**FIXED).fit({"user": ["ann"] * 2, "left": ["a", "b"], "right": ["b", "c"]}, [1, 1])
    with pytest.raises(DataError, match="nobody else"):
        alone.forget(user="ann")


@pytest.mark.slow
def test_all_but_one_person_may_be_erased(tmp_path):
    of = IDS["text"]
    for kind in KINDS:
        model = fitted(kind)
        for who in (ZOE, LATE, *range(2, N_PEOPLE)):
            model.forget(user=of(who))
        assert list(model.users_) == [of(1)]
        assert model.n_answers_ == 6.0
        model.describe()
        model.rank()
        if kind == "segments":
            assert set(pl.DataFrame(model.segments())["people"]) == {1}
            model.update(votes(of, LATE)).forget(user=of(1))  # who comes later belongs to none
            with pytest.raises(DataError, match="no segments"):
                model.segments()
        elif kind == "plain":
            again = _saved(model, tmp_path)
            np.testing.assert_array_equal(
                again.predict_margin(questions(of, [1]))[0], model.predict_margin(questions(of, [1]))[0]
            )
