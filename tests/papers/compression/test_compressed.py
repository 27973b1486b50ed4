"""``CompressedModel``: predicts, ranks, says what it lost, is saved and comes back."""

from __future__ import annotations

import json
import warnings
from functools import partial
from itertools import permutations

import numpy as np
import pytest

import predilect
from predilect.data import Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.papers.baselines import HierarchicalGP
from predilect.papers.compression.criteria import CRITERIA
from predilect.papers.compression.model import CompressedModel
from simulate import comparisons, crowd
from simulate_joint import N_ITEMS, N_USERS, ids, joint_crowd, joint_model, other_models
from tolerances import EXACT

SINGLE = 1e-5  # of a margin: seven digits of a covariance of some tens
# Of probabilities, and of variances, relative: 11 bits of a variance, which moves a logarithm of a probability that is
# not extreme by no more.
HALF = 2.0**-11


@pytest.fixture(scope="module")
def models():
    return other_models() | {"joint": joint_model()}


@pytest.fixture(scope="module")
def small(models):
    return models["joint"].compress(3, "recommendation")


def pairs(model, user="u03"):
    items = model.kept(user)
    return {"user": [user] * 2, "left": [items[0], items[1]], "right": [items[2], items[2]]}


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of what is not kept, which has tests of its own
        return call()


NAMES = ("joint", "population", "gppl")
MORE = ("population-basis", "crowd-gppl", "collaborative", "gppl-separate", "gppl-joint", "pooled")


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_it_is_the_full_model_on_what_is_kept_and_the_same_after_loading(models, name, tmp_path):
    full = models[name]
    for precision, tolerance in (("half", HALF), ("single", SINGLE), ("double", EXACT)):
        found = full.compress(3, precision=precision)
        asked = pairs(found)  # raises no warning
        (mean, var), (full_mean, full_var) = found.predict_margin(asked), full.predict_margin(asked)
        assert np.abs(mean - full_mean).max() < min(tolerance, SINGLE)
        assert np.abs(var / full_var - 1.0).max() < tolerance
        for one, other in (
            (found.predict_proba(asked), full.predict_proba(asked)),
            (found.predict_log_proba(asked), full.predict_log_proba(asked)),
        ):
            known = np.isfinite(other)
            assert np.array_equal(known, np.isfinite(one))
            assert np.abs(one[known] - other[known]).max() < tolerance
        np.testing.assert_array_equal(found.predict(asked), full.predict(asked))
        found.save(tmp_path / precision)
        again = predilect.load(tmp_path / precision)
        one, other = (quiet(partial(model.predict_proba, joint_crowd()[0])) for model in (found, again))
        np.testing.assert_array_equal(one, other)
        for user in (None, "u03"):
            assert again.rank(user).equals(found.rank(user))
            assert again.utilities(user).equals(found.utilities(user))
        assert again.utilities().equals(found.utilities())
        assert again.describe() == found.describe()
        assert again.kept("u03") == found.kept("u03")
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes() == (tmp_path / "double" / "model.json").read_bytes()


def test_a_pooled_model_keeps_its_board_and_what_it_says_of_every_pair(models, tmp_path):
    """Its crowd is its one person: what is dropped is only never recommended."""
    full = models["pooled"]
    found = full.compress(keep=1, precision="double")
    found.save(tmp_path / "small")
    items = list(full.items_)
    asked = {"left": items[:5], "right": items[1:6]}
    for small in (found, predilect.load(tmp_path / "small")):
        assert small.rank().equals(full.rank())
        np.testing.assert_allclose(small.predict_proba(asked), full.predict_proba(asked), atol=EXACT)
        assert small.is_kept(asked).all()
        assert "The crowd is kept" in small.describe()[0]
        assert small.kept() == [small.recommend()] == [full.rank()["item"][0]]
        with pytest.warns(DataWarning, match="not known"):
            margin = small.predict_margin({"left": ["who"], "right": items[:1]})
        assert np.isfinite(margin).all()


def test_boards_of_the_crowd_are_those_of_the_full_model(models):
    for name in ("joint", "population", "crowd-gppl"):
        full, found = models[name], models[name].compress(2, precision="double")
        assert found.rank().drop("n").equals(full.rank().drop("n"))
        np.testing.assert_array_equal(found._results_by_item().sum(axis=1), full._results_by_item().sum(axis=1))
        mine, all_ = found._results_by_item("u03").sum(axis=1), full._results_by_item("u03").sum(axis=1)
        kept = found.items_.codes(found.kept("u03"))
        np.testing.assert_array_equal(mine[kept], all_[kept])
        assert mine.sum() == all_[kept].sum()


@pytest.mark.parametrize("name", NAMES)
def test_it_recommends_what_it_keeps(models, name):
    full = models[name]
    for local in (True, False) if name == "joint" else (True,):
        good = full.compress(2, criterion="ucb", local=local)
        assert good.report_["loss"]["excess"] == 0.0  # the item with the largest mean is always kept
        for user in good.users_.ids if good.personal_ else [None]:
            board = full.rank(user)
            assert good.recommend(user) == board["item"][0]
    few = full.compress(1, criterion="ivm")
    user = "u03" if few.personal_ else None
    assert [few.recommend(user)] == few.kept(user)
    assert few.report_["loss"]["excess"] > 0.0


def test_a_dropped_item_is_told(small, models):
    dropped = next(item for item in small.items_.ids if item not in small.kept("u03"))
    asked = {"user": ["u03", "u03"], "left": [small.kept("u03")[0], dropped], "right": small.kept("u03")[1:]}
    with pytest.warns(DataWarning, match=r"1 of 2 pairs hold an item that was dropped.*row 2"):
        mean, _ = small.predict_margin(asked)
    np.testing.assert_array_equal(small.is_kept(asked), [True, False])
    full = models["joint"].predict_margin(asked)[0]
    assert abs(mean[0] - full[0]) < SINGLE
    assert abs(mean[1] - full[1]) > 1e-3


def test_somebody_unknown_gets_the_populations_prediction(small, models):
    asked = {"user": ["zoe"] * 2, "left": ["i00", "i01"], "right": ["i02", "i03"]}
    with pytest.warns(DataWarning, match="without answers in this model"):
        found = small.predict_proba(asked)
    assert np.abs(found - quiet(lambda: models["joint"].predict_proba(asked))).max() < SINGLE
    with pytest.raises(DataError, match="user ids are not known"):
        small.kept("zoe")
    with pytest.raises(DataError, match="Name a person"):
        small.kept()
    with pytest.raises(DataError, match="not known"):
        small.rank("zoe")


def test_an_unknown_item_is_any_item(small):
    asked = {"user": ["u03"], "left": [small.kept("u03")[0]], "right": ["new"]}
    with pytest.warns(DataWarning, match="not known to the model"):
        mean, var = small.predict_margin(asked)
    assert np.isfinite(mean).all()
    assert var[0] > small.posterior_.moments(3)[1][0, 0]


def test_without_people_everybody_is_one(models):
    found = models["gppl"].compress(3, precision="single")
    assert len(found.kept()) == 3
    asked = {"left": [found.kept()[0]], "right": [found.kept()[1]]}
    assert np.abs(found.predict_proba(asked) - models["gppl"].predict_proba(asked)).max() < SINGLE
    assert found.describe()[0].startswith(f"3 of {N_ITEMS} utilities are kept")


def test_the_whole_covariance_takes_features_of_new_people_and_items(models, tmp_path):
    full = models["joint"]
    found = full.compress("100%", local=False)
    found.save(tmp_path / "small")
    again = predilect.load(tmp_path / "small")
    asked = {"user": ["zoe", "u01"], "left": ["i00", "new"], "right": ["i01", "i02"]}
    people, items = {"user": ["zoe"], "p": [2.0], "q": [-1.0]}, {"item": ["new"], "p": [0.1], "q": [1.0]}
    expected = quiet(lambda: full.predict_margin(asked, people=people, items=items))
    for model in (found, again):
        for one, other in zip(
            quiet(lambda model=model: model.predict_margin(asked, people=people, items=items)), expected, strict=True
        ):
            assert np.abs(one - other).max() < 1e-8
    few = full.compress(3, local=False)
    np.testing.assert_array_equal(few.is_kept(pairs(few)), [True, True])
    with pytest.warns(DataWarning, match="dropped for the person"):
        few.predict({"user": ["u03"] * 7, "left": ["i00"] * 7, "right": ids("i", range(1, 8))})
    assert few.rank("u03")["n"].sum() == 0


def test_a_population_says_what_it_gains(models, tmp_path):
    full, found = models["population"], models["population"].compress(2)
    full.save(tmp_path / "full")
    found.save(tmp_path / "small")
    size = {name: (tmp_path / name / "arrays.npz").stat().st_size for name in ("full", "small")}
    told = found.report_["compressed"]
    assert told["n_kept"] == 2 * N_USERS
    assert told["n_cells"] == N_ITEMS * N_USERS
    # The archive has some 250 bytes an array beyond the numbers.
    assert abs(told["bytes_full"] - size["full"]) < 8000
    assert abs(told["bytes"] - size["small"]) < 4000
    everything = full.compress(1.0, precision="double")
    assert "chosen by voi" in everything.describe()[0]
    assert "compressing costs 0" in everything.describe()[1]
    if everything.report_["compressed"]["bytes"] > told["bytes_full"]:
        assert "not smaller" in everything.describe()[2]


def test_it_is_an_estimator(models):
    X, y, _users, items, _ = joint_crowd()
    found = CompressedModel(predilect.GPPL(users="separate", length_scale="median"), keep=3, loss="log")
    found.fit(X, y, items=items)
    expected = predilect.GPPL(users="separate", length_scale="median").fit(X, y, items=items).compress(3, "log")
    np.testing.assert_array_equal(found.predict_proba(pairs(found)), expected.predict_proba(pairs(found)))
    assert found.report_["compressed"]["criterion"] == "pairs"
    with pytest.raises(DataError, match="no estimator to fit"):
        CompressedModel().fit(X, y)


def test_a_loss_of_the_callers(models, tmp_path):
    def squared(truth, mean, covariance, kept):
        return ((truth - mean) ** 2).mean(axis=1)

    found = models["joint"].compress(4, squared)
    assert found.report_["loss"]["loss"] == "squared"
    assert found.report_["compressed"]["criterion"] == "ucb"
    assert found.report_["loss"]["excess"] > 0.0
    found.save(tmp_path / "small")
    assert predilect.load(tmp_path / "small").report_["loss"] == found.report_["loss"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"keep": 0}, "keeps nothing"), ({"keep": "200%"}, "at most 100 %"), ({"keep": 1e-11}, "rounds to none"),
        ({"keep": 9}, "there are 8 items"), ({"loss": "hinge"}, "loss must be"), ({"precision": "low"}, "precision"),
        ({"loss": lambda truth, mean, covariance, kept: truth[:, 0] * np.nan}, "gave nan"),
        ({"criterion": "random"}, f"criterion must be one of {', '.join(map(repr, CRITERIA))}, or a function of 2"),
        ({"keep": 2, "budget": 40}, "give keep"), ({"budget": 3}, "cannot be shared out"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(models, arguments, said):
    with pytest.raises(DataError, match=said):
        models["joint"].compress(**arguments)


def test_what_is_compressed_or_not_fitted_is_refused(small):
    with pytest.raises(DataError, match="compressed already"):
        small.compress(2)
    with pytest.raises(DataError, match="not fitted"):
        predilect.Population().compress(2)


def test_a_budget_shares_out(models):
    found = models["joint"].compress(budget=2 * N_USERS, criterion="ucb")
    sizes = [len(found.kept(user)) for user in found.users_.ids]
    assert sum(sizes) == 2 * N_USERS
    assert min(sizes) >= 1
    assert len(set(sizes)) > 1


def test_what_is_damaged_is_refused(small, tmp_path):
    small.save(tmp_path / "small")
    with pytest.raises(FileExistsError):
        small.save(tmp_path / "small")
    file = tmp_path / "small" / "model.json"
    document = json.loads(file.read_text())
    for key, value in (("items", Vocabulary(["a"]).ids), ("users", ["a"]), ("report", None)):
        file.write_text(json.dumps(document | {key: value}))
        with pytest.raises(DataError, match="damaged"):
            predilect.load(tmp_path / "small")


@pytest.mark.slow
def test_what_is_kept_is_as_certain_as_in_the_full_model(tmp_path):
    fixed = {"strength": 10.0, "variance": 2.0, "consensus_variance": 4.0, "n_jobs": 1}
    calibration = predilect.Calibration(0.7, 1.4, lapse_rate=0.05)
    full = predilect.Population(**fixed, calibration=calibration).fit(comparisons(crowd(1, 20, 8, 10)))
    found = full.compress(4, precision="double")
    rows = [(user, *pair) for user in range(20) for pair in permutations(found.kept(user), 2)]
    asked = dict(zip(("user", "left", "right"), map(np.array, zip(*rows, strict=True)), strict=True))
    assert set(full.posterior_.pair_kinds(*map(np.array, zip(*rows, strict=True))).tolist()) >= {0, 3}
    np.testing.assert_allclose(found.predict_proba(asked), full.predict_proba(asked), atol=EXACT)
    found.save(tmp_path / "small")
    again = predilect.load(tmp_path / "small")
    np.testing.assert_array_equal(again.predict_proba(asked), found.predict_proba(asked))
    plain = predilect.Population(**fixed).fit(comparisons(crowd(1, 20, 8, 10))).compress(4)
    assert not len(plain.posterior_.implied)


def test_a_model_of_a_population_that_is_not_calibrated_is_compressed_too():
    full = HierarchicalGP(n_jobs=1).fit(comparisons(crowd(1, 20, 8, 10)))
    found = full.compress(8, precision="double")
    asked = {"user": [0, 0, 19], "left": [0, 3, 7], "right": [1, 5, 2]}
    np.testing.assert_allclose(found.predict_proba(asked), full.predict_proba(asked), atol=EXACT)
