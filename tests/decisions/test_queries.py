"""Questions: on every model, against exhaustive search, without repeats and near-duplicates, and on bad input."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from contracts.votes import item_ids, user_ids, votes
from predilect import GPPL, CrowdGPPL, GaSPK, Population
from predilect.data import Comparisons, Vocabulary
from predilect.decisions.candidates import MOST_ITEMS, all_pairs, best_first
from predilect.decisions.information import bald, expected_best
from predilect.decisions.questions import STRATEGIES, suggest, suggest_each
from predilect.errors import ConvergenceWarning, DataError, DataWarning
from predilect.inference.gaussian.posterior import GaussianPosterior, Posterior, Utilities
from predilect.inference.likelihoods.probit import outcome_probabilities
from referees.information import bald_by_quadrature
from tolerances import EXACT

FIXED = {
    "strength": 5.0,
    "variance": 2.0,
    "consensus_variance": 2.0,
    "calibration": None,
    "consistency": 0.0,
    "tie_threshold": 0.4,
}
ITEMS = {"item": item_ids(range(6)), "x": [0.3, -1.0, 0.5, 2.0, 0.1, -0.4], "y": [1.0, 0.0, -1.0, 0.5, 2.0, 0.3]}
USERS = {"user": user_ids(range(20)), "age": np.linspace(-1.0, 1.0, 20).tolist()}
MODELS = {
    "population": lambda: Population(**FIXED),
    "pooled": lambda: Population(personal=False, consensus_variance=2.0, tie_threshold=0.4),
    "basis": lambda: Population(**FIXED, basis="inducing", n_inducing=4, feature_weight=0.5, length_scale=1.0),
    "gppl": lambda: GPPL(n_inducing=4, tie_threshold=0.4),
    "gppl-separate": lambda: GPPL(users="separate", tie_threshold=0.4, max_iter=20),
    "gppl-joint": lambda: GPPL(users="joint", tie_threshold=0.4, max_iter=20),
    "gaspk": lambda: GaSPK(n_components=2, tie_threshold=0.4),
    "crowd-gppl": lambda: CrowdGPPL(n_components=2, tie_threshold=0.4, max_iter=20),
}


class Known(SimpleNamespace):
    """A model that says what it is told: the same utilities for everybody."""

    def __init__(self, mean, C, delta=0.0, posterior=None):
        posterior = posterior or GaussianPosterior(np.asarray(mean, dtype=float), np.asarray(C, dtype=float))
        names = Vocabulary([f"i{code:05d}" for code in range(len(mean))])
        super().__init__(
            posterior_=posterior, items_=names, users_=None, personal_=False, _added_users={}, tie_threshold_=delta,
            _backend="polars",
        )  # fmt: skip

    def __copy__(self):
        return self  # it never changes

    def predict_margin(self, X):
        left, right = (self.items_.codes(X[side]) for side in ("left", "right"))
        return self.posterior_.person().margins(left, right)

    def _predict_margin_and_proba(self, X):
        mean, variance = self.predict_margin(X)
        return mean, variance, outcome_probabilities(mean, variance, self.tie_threshold_)


def codes(frame):
    return [tuple(int(name[1:]) for name in row) for row in frame.select("left", "right").rows()]


def wishart(n, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, n + 2))
    return root @ root.T / 2.0


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    columns, y = votes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # cut short: any posterior has questions
        return MODELS[request.param]().fit(columns, y, items=ITEMS, people=USERS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_model_asks(model, strategy):
    user = user_ids([3])[0]
    answered = {frozenset(pair) for name, *pair in zip(*votes()[0].values(), strict=True) if name == user}
    everything = suggest(model, user, n=15, strategy=strategy)
    assert {frozenset(row) for row in everything.select("left", "right").rows()} == {
        frozenset(pair) for pair in itertools.combinations(ITEMS["item"], 2)
    } - answered
    assert np.isfinite(everything["score"].to_numpy()).all()
    pairs = everything.select("left", "right").to_dict(as_series=False) | {"user": [user] * len(everything)}
    chances = everything.select("p_left", "p_tie", "p_right").to_numpy()
    np.testing.assert_allclose(chances, model.predict_proba(pairs), atol=EXACT)
    assert suggest(model, user, n=15, strategy=strategy).equals(everything)
    assert len(suggest(model, user, n=30, strategy=strategy, repeat=True)) == 15
    # One for each of many at once: what each is asked first.
    pool = everything.select("left", "right").with_columns(user=pl.lit(user))
    other = pool.with_columns(user=pl.lit(user_ids([5])[0]))
    each = suggest_each(model, pl.concat([other, pool]), strategy)
    assert each["user"].to_list() == user_ids([3, 5])
    if strategy != "random":
        first = suggest(model, user, candidates=pool, strategy=strategy)
        assert each.select("left", "right").row(0) == first.select("left", "right").row(0)
        assert each["score"][0] == pytest.approx(first["score"][0], abs=1e-9)


def test_scores_are_those_of_the_margins(model):
    user = user_ids([7])[0]
    asked = suggest(model, user, n=15, repeat=True)
    pairs = asked.select("left", "right").to_dict(as_series=False) | {"user": [user] * 15}
    mean, var = model.predict_margin(pairs)
    delta = model.tie_threshold_
    assert asked["score"][0] == pytest.approx(float(bald(mean[0], var[0], delta)), abs=1e-9)
    assert asked["score"][0] == pytest.approx(float(bald_by_quadrature(mean, var, delta).max()), abs=6e-5)


def test_what_was_just_answered_is_not_asked_until_it_is_taken_back(tmp_path):
    columns, y = votes()
    model = Population(**FIXED).fit(columns, y)
    for user in (user_ids([3])[0], "newcomer"):
        if user == "newcomer":
            with pytest.warns(DataWarning, match="does not know 'newcomer'"):
                first = suggest(model, user)
        else:
            first = suggest(model, user)
        answer = {"user": user, "left": first["left"][0], "right": first["right"][0], "outcome": 1}
        model.update(**answer)
        pair = first.select("left", "right").row(0)
        assert pair not in suggest(model, user, n=15).select("left", "right").rows()
        model.save(tmp_path / user)
        assert suggest(Population.load(tmp_path / user), user, n=15).equals(suggest(model, user, n=15))
        model.forget(**answer)
        assert suggest(model, user).select("left", "right").row(0) == pair


def test_a_saved_model_that_holds_no_answers_says_so(tmp_path):
    columns, y = votes()
    GPPL(n_inducing=4, tie_threshold=0.4).fit(columns, y, items=ITEMS).save(tmp_path / "m")
    loaded = GPPL.load(tmp_path / "m")
    with pytest.warns(DataWarning, match="may be asked again"):
        assert len(suggest(loaded, user_ids([3])[0], n=99)) == 15
    # Not to whom answers are named, or where there is nothing to ask.
    assert len(suggest(loaded, user_ids([3])[0], n=99, exclude=columns)) < 15
    assert suggest(loaded, user_ids([3])[0], candidates={"left": [], "right": []}).is_empty()
    pool = {"user": user_ids([3]), "left": item_ids([0]), "right": item_ids([1])}
    with pytest.warns(DataWarning, match="1 of the people"):
        assert len(suggest_each(loaded, pool)) == 1


@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("strategy", ["bald", "entropy", "eubo"])
def test_a_batch_is_the_greedy_one(strategy, delta):
    """Against all pairs scored anew at every step with the conditioned covariance, by sampling what is heard."""
    rng = np.random.default_rng(3)
    n, mean, C = 7, rng.standard_normal(7), wishart(7)
    found = suggest(Known(mean, C, delta), n=4, strategy=strategy)
    left, right = all_pairs(np.arange(n))
    V, chosen = C.copy(), []
    for row in range(4):
        after = V[left, left] + V[right, right] - 2.0 * V[left, right]
        before = C[left, left] + C[right, right] - 2.0 * C[left, right]
        if strategy == "eubo":
            level = mean - mean.mean()
            score = expected_best(level[left], level[right], after)
        else:  # nodes of the mean, which other answers move
            nodes, weights = np.polynomial.hermite_e.hermegauss(60)
            moved = (mean[left] - mean[right])[:, None] + np.sqrt(np.maximum(before - after, 0.0))[:, None] * nodes
            p = outcome_probabilities(moved.ravel(), np.repeat(after, 60), delta).reshape(len(left), 60, 3)
            entropy = -np.where(p > 0.0, p * np.log2(np.where(p > 0.0, p, 1.0)), 0.0).sum(axis=2)
            score = entropy @ (weights / weights.sum())
            if strategy == "bald":
                m = mean[left] - mean[right]
                p = outcome_probabilities(m, before, delta)
                full = -np.where(p > 0.0, p * np.log2(np.where(p > 0.0, p, 1.0)), 0.0).sum(axis=1)
                score = score - (full - bald_by_quadrature(m, before, delta))
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        assert codes(found)[row] == (left[best], right[best])
        assert found["score"][row] == pytest.approx(score[best], abs=1e-4)
        chosen.append(best)
        d = np.zeros(n)
        d[left[best]], d[right[best]] = 1.0, -1.0
        V = V - np.outer(V @ d, V @ d) / (d @ V @ d + 1.0)


@pytest.mark.parametrize(("shortlist", "rescored"), [(2**15, 4096), (2**15, 64), (16, 4)])
@pytest.mark.parametrize(
    "n_directions", [3, 90]
)  # few: the best pairs are much alike, and after one of them no longer best
def test_a_batch_of_very_many_pairs_is_the_greedy_one(monkeypatch, n_directions, shortlist, rescored):
    monkeypatch.setattr("predilect.decisions.information._SHORTLIST", shortlist)
    monkeypatch.setattr("predilect.decisions.information._RESCORED_FIRST", rescored)
    n = 90  # 4 005 pairs: scores are bounded, and few of them made anew
    rng = np.random.default_rng(4)
    mean, rows = rng.standard_normal(n), rng.standard_normal((n, n_directions))
    C = rows @ rows.T + 0.01 * np.eye(n)
    found = codes(suggest(Known(mean, C), n=12))
    left, right = all_pairs(np.arange(n))
    V, m = C.copy(), mean[left] - mean[right]
    before = C[left, left] + C[right, right] - 2.0 * C[left, right]
    for pair in found:
        after = V[left, left] + V[right, right] - 2.0 * V[left, right]
        score = bald(m, before, resolved=before - after)
        d = np.zeros(n)
        d[list(pair)] = 1.0, -1.0
        assert score[(left == pair[0]) & (right == pair[1])][0] > score.max() - 1e-9
        V = V - np.outer(V @ d, V @ d) / (d @ V @ d + 1.0)


@pytest.mark.parametrize("strategy", ["bald", "entropy"])
def test_near_duplicates_are_not_asked_together(strategy):
    """Three copies of one uncertain item, and another kind of question that is worth a little less."""
    C = np.zeros((6, 6))
    C[:3, :3] = 9.0 + 1e-3 * np.eye(3)
    C[3, 3], C[4, 4], C[5, 5] = 7.0, 0.01, 0.01
    first, second = codes(suggest(Known([0.0, 0.0, 0.0, 0.0, 0.3, 5.0], C), n=2, strategy=strategy))
    copies = {0, 1, 2}
    assert (set(first) - copies) != (set(second) - copies) or not (set(second) & copies)


def test_identical_items_come_last():
    C = np.array([[2.0, 2.0, 0.5], [2.0, 2.0, 0.5], [0.5, 0.5, 0.51]])
    mean = [3.0, 3.0, -4.0]  # the best two are one and the same: EUBO would ask about nothing else
    for strategy in STRATEGIES:
        for seed in range(5):
            frame = suggest(Known(mean, C), n=3, strategy=strategy, random_state=seed)
            assert codes(frame)[-1] == (0, 1)
    pool = {"user": ["u"] * 3, "left": ["i00000", "i00000", "i00001"], "right": ["i00001", "i00002", "i00002"]}
    model = Known(mean, C)
    assert codes(suggest_each(model, pool, "eubo")) in ([(0, 2)], [(1, 2)])


@pytest.mark.slow
def test_equal_scores_are_drawn_by_seed_person_and_answers():
    model = Known(np.zeros(5), np.eye(5))
    every = set(itertools.combinations(range(5), 2))
    for strategy in STRATEGIES:
        draws = [tuple(codes(suggest(model, n=3, strategy=strategy, random_state=seed))) for seed in range(60)]
        assert {pair for pairs in draws for pair in pairs} == every
        assert len(set(draws)) > 30
        assert draws[0] == tuple(codes(suggest(model, n=3, strategy=strategy, random_state=0)))
        assert draws[0][0] == codes(suggest(model, strategy=strategy))[0]
    pool = {"left": ["i00003", "i00001"], "right": ["i00002", "i00000"]}
    assert {codes(suggest(model, candidates=pool, random_state=seed))[0] for seed in range(20)} == {(3, 2), (1, 0)}
    # What differs by no more than rounding is equal, and what differs by more is not.
    near, far = np.zeros(5), np.zeros(5)
    near[0], far[0] = 1e-13, 1.0
    assert len({codes(suggest(Known(near, np.eye(5)), random_state=seed))[0] for seed in range(60)}) == 10
    assert all(0 not in codes(suggest(Known(far, np.eye(5)), random_state=seed))[0] for seed in range(60))


def test_what_is_equal_but_for_rounding_depends_on_the_size_of_the_scores():
    first = {
        gap: {
            int(best_first(1e6 * np.array([1.0, 1.0 + gap, 0.0]), np.random.default_rng(seed))[0]) for seed in range(20)
        }
        for gap in (1e-12, 1e-6)
    }
    assert first == {1e-12: {0, 1}, 1e-6: {1}}


def fitted_alike():
    """A model of which items without answers are all the same, so that nearly all that can be asked ties."""
    answers = {"user": ["ann", "bob", "cas"], "left": ["i00"] * 3, "right": ["i01"] * 3}
    items = {"item": [f"i{k:02d}" for k in range(12)]}
    return Population(**FIXED).fit(answers, [1, 1, -1], items=items)


# The predictions are for newcomers, and the model warns that it does not know them.
@pytest.mark.filterwarnings("ignore:the model does not know", "ignore:.* name someone without answers")
def test_newcomers_are_asked_different_things_and_each_the_same_again(tmp_path):
    model, people = fitted_alike(), [f"visitor {k}" for k in range(20)]

    def first(of, who, **options):
        return frozenset(suggest(of, who, **options).select("left", "right").row(0))

    asked = [first(model, who) for who in people]
    assert len(set(asked)) > 12  # of the 45 pairs of items without answers
    assert asked == [first(model, who) for who in people]
    assert len({item for pair in asked for item in pair}) == 10
    model.save(tmp_path / "model")
    loaded = Population.load(tmp_path / "model")
    assert asked == [first(loaded, who) for who in people]
    assert asked != [first(model, who, random_state=1) for who in people]
    # Many at once are asked what each is asked alone.
    pairs = list(itertools.combinations(model.items_.ids, 2))
    pool = {
        "user": [who for who in people for _ in pairs],
        "left": [left for _ in people for left, _ in pairs], "right": [right for _ in people for _, right in pairs],
    }  # fmt: skip
    for strategy in STRATEGIES:
        each = suggest_each(model, pool, strategy)
        found = {row[0]: frozenset(row[1:]) for row in each.select("user", "left", "right").rows()}
        assert found == {who: first(model, who, strategy=strategy) for who in people}


@pytest.mark.slow
# The predictions are for newcomers, and the model warns that it does not know them.
@pytest.mark.filterwarnings("ignore:the model does not know")
def test_other_processes_ask_the_same_whatever_their_hashes_of_strings(tmp_path):
    model, people = fitted_alike(), [f"visitor {k}" for k in range(3)]
    model.save(tmp_path / "model")
    script = (
        "import sys, warnings; warnings.simplefilter('ignore'); from predilect import load\n"
        "model = load(sys.argv[1])\n"
        "for who in sys.argv[2:]: print(*model.suggest(who).row(0)[:2], *model.suggest_set(who)['item'])"
    )
    given = [sys.executable, "-c", script, str(tmp_path / "model"), *people]
    environments = [os.environ | {"PYTHONHASHSEED": seed} for seed in ("0", "1")]
    told = [subprocess.run(given, env=one, capture_output=True, text=True, check=True).stdout for one in environments]
    assert told[0] == told[1]
    assert [frozenset(line.split()[:2]) for line in told[0].splitlines()] == [
        frozenset(suggest(model, who).select("left", "right").row(0)) for who in people
    ]


def test_whoever_answers_is_asked_something_else_among_equals():
    """The seed takes the number of answers: nobody goes through the pairs in the order of another."""
    model = fitted_alike()
    orders = []
    for who in ("dan", "eve"):
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # that the model does not know somebody
                question = suggest(model, who, strategy="random")
            model.update(user=who, left=question["left"][0], right=question["right"][0], outcome=1)
            orders.append(question.select("left", "right").row(0))
    assert len(set(orders[:5])) == len(set(orders[5:])) == 5
    assert orders[:5] != orders[5:]


def test_of_very_many_items_without_answers_any_may_be_asked_about():
    n = MOST_ITEMS + 300
    model = Known(np.zeros(n), None, posterior=Alike(n))
    drawn = {code for seed in range(6) for code in codes(suggest(model, random_state=seed))[0]}
    assert min(drawn) < MOST_ITEMS <= max(drawn)  # the shortlist is not that of the first


class Alike(Posterior):
    """Utilities that are all the same but for their names."""

    def __init__(self, n):
        self.n = n

    def person(self, user=-1):
        return Utilities(np.zeros(self.n), np.eye(1), np.zeros((self.n, 1)), np.zeros(0, dtype=int), np.ones(self.n))


def test_candidates_are_pairs_or_items():
    model = Known([0.0, 1.0, 2.0, 3.0], wishart(4))
    names = ["i00003", "i00000", "i00002"]
    expected = [(0, 2), (0, 3), (2, 3)]
    for items in (
        names,
        tuple(names),
        set(names),
        np.array(names),
        pl.Series(names),
        pd.Series(names),
        Vocabulary(names),
    ):
        assert sorted(codes(suggest(model, candidates=items, n=9))) == expected
    # A pair twice, and once with its sides exchanged, is one pair, as it came first.
    pairs = {"left": ["i00003", "i00000", "i00003"], "right": ["i00000", "i00003", "i00002"]}
    for frame in (pairs, pl.DataFrame(pairs), pd.DataFrame(pairs)):
        assert sorted(codes(suggest(model, candidates=frame, n=9))) == [(3, 0), (3, 2)]
    assert codes(suggest(model, candidates=pairs, exclude={"left": ["i00000"], "right": ["i00003"]}, n=9)) == [(3, 2)]
    answers = Comparisons.from_frame(pairs, outcome=[1, 1, 1])
    assert sorted(codes(suggest(model, candidates=answers, n=9))) == [(0, 3), (2, 3)]


def test_of_a_pool_of_several_people_one_persons_pairs_are_taken():
    columns, y = votes()
    model = Population(**FIXED).fit(columns, y)
    ann, bob, cas = user_ids([3, 4, 5])
    left, right = item_ids([0, 1, 2, 0]), item_ids([1, 2, 3, 4])
    pool = {"user": [ann, bob, ann, "new"], "left": left, "right": right}

    def asked(user):
        return sorted(suggest(model, user, pool, 9, repeat=True).select("left", "right").rows())

    pairs = list(zip(left, right, strict=True))
    assert asked(ann) == sorted([pairs[0], pairs[2]])
    assert asked(bob) == [pairs[1]]
    with pytest.warns(DataWarning, match="none of the 4 candidates is of 'person 0005'"):
        assert asked(cas) == []
    assert asked(None) == sorted(pairs)
    with pytest.warns(DataWarning, match="does not know"):
        assert asked("new") == [pairs[3]]


def test_when_nothing_is_left_the_frame_is_empty():
    model = Known([0.0, 1.0], np.eye(2))
    both = {"left": ["i00000"], "right": ["i00001"]}
    empty = {"left": [], "right": []}
    for found in (
        suggest(model, candidates=both, exclude=both),
        suggest(model, candidates=empty),
        suggest(model, candidates=[]),
        suggest(model, candidates=["i00001"], n=3),
        suggest(model, candidates=empty, strategy="random"),
        suggest(model, candidates=empty, strategy="eubo", n=2),
        suggest_each(model, {"user": [], "left": [], "right": []}),
    ):
        assert found.is_empty()
        assert found.columns[-6:] == ["left", "right", "score", "p_left", "p_tie", "p_right"]
        assert found["left"].dtype == pl.String
    columns, y = votes()
    population = Population(**FIXED).fit(columns, y)
    pool = {name: columns[name] for name in ("user", "left", "right")}
    assert suggest_each(population, pool).is_empty()
    assert len(suggest_each(population, pool, repeat=True)) == 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"strategy": "best"}, "strategy must be one of .*, not 'best'"),
        ({"n": 0}, "n must be"),
        ({"n": 1.5}, "n must be"),
        ({"candidates": ["i00001", "quince"]}, "not known"),
        ({"candidates": {"left": ["i00000", "i00001"], "right": ["i00001", "i00001"]}}, "with itself"),
        ({"candidates": {"left": ["i00000", None], "right": ["i00001", "i00001"]}}, r"missing ids \(first: row 2\)"),
        ({"candidates": {"left": ["i00000"]}}, "right"),
        ({"candidates": "i00000"}, "data frame"),
        ({"exclude": {"left": ["i00000"], "right": ["quince"]}}, "not known"),
    ],
)
def test_bad_input(arguments, said):
    with pytest.raises(DataError, match=said):
        suggest(Known([0.0, 1.0], np.eye(2)), **arguments)


def test_pools_without_people():
    with pytest.raises(DataError, match="name nobody"):
        suggest_each(Known([0.0, 1.0], np.eye(2)), {"left": ["i00000"], "right": ["i00001"]})
    with pytest.warns(DataWarning, match="tells nobody apart"):
        assert len(suggest(Known([0.0, 1.0], np.eye(2)), "ann")) == 1


class Factored(Posterior):
    """Utilities of rank 3 beside what each item has to itself."""

    def __init__(self, n):
        rng = np.random.default_rng(5)
        self.rows, self.own = rng.standard_normal((n, 3)), rng.gamma(0.5, size=n)
        self.mean = rng.standard_normal(n)

    def person(self, user=-1):
        own = self.own.copy()
        own[[2, 4]] = 0.0
        C = np.eye(5)
        C[3, 3], C[4, 4], C[0, 3] = 0.3, 0.2, 0.1
        C[3, 0] = 0.1
        return Utilities(self.mean, C, self.rows, np.array([2, 4]), own)


def test_utilities_in_factored_form_are_conditioned_alike():
    posterior = Factored(30)
    mean, C = posterior.person().dense()
    found = suggest(Known(mean, None, posterior=posterior), n=8)
    dense = suggest(Known(mean, C), n=8)
    assert codes(found) == codes(dense)
    np.testing.assert_allclose(found["score"], dense["score"], atol=1e-9)


@pytest.mark.slow
def test_of_many_items_a_shortlist_holds_what_is_sought():
    n = MOST_ITEMS + 300
    posterior = Factored(n)
    model = Known(posterior.mean, None, posterior=posterior)
    mean, C = posterior.person().dense()
    left, right = all_pairs(np.arange(n))
    var = C[left, left] + C[right, right] - 2.0 * C[left, right]
    assert suggest(model)["score"][0] == pytest.approx(float(bald(mean[left] - mean[right], var).max()), rel=0.01)
    level = mean - mean.mean()
    best = expected_best(level[left], level[right], var)
    assert suggest(model, strategy="eubo")["score"][0] == pytest.approx(float(best.max()), rel=1e-9)
    drawn = {
        code
        for seed in range(5)
        for pair in codes(suggest(model, n=40, strategy="random", random_state=seed))
        for code in pair
    }
    assert max(drawn) > MOST_ITEMS
