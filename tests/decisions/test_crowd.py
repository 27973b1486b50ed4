"""Questions about the crowd's board: what they tell, by dense algebra and quadrature, and by what chance they come."""

from __future__ import annotations

import copy
import functools
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr, ndtr
from scipy.stats import chisquare, norm

import predilect
from predilect import Comparisons, Population
from predilect.decisions.crowd import QuestionDraws, _between_sets, information_about
from predilect.errors import DataError
from simulate_updates import FIXED
from tolerances import EXACT, ITERATIVE

N_ITEMS = 7
IDS = [f"i{k}" for k in range(N_ITEMS)]


def answers(n_people: int, per_person: int, seed: int = 0, delta: float = 0.0) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    f = 0.8 * np.arange(N_ITEMS) / N_ITEMS + 0.7 * rng.standard_normal((n_people, N_ITEMS))
    rows: dict[str, list] = {"user": [], "left": [], "right": [], "winner": []}
    for u in range(n_people):
        for _ in range(per_person):
            a, b = rng.choice(N_ITEMS, 2, replace=False)
            z = f[u, a] - f[u, b] + rng.standard_normal()
            rows["user"].append(f"u{u}")
            rows["left"].append(IDS[a])
            rows["right"].append(IDS[b])
            rows["winner"].append("tie" if abs(z) < delta else IDS[a if z > 0.0 else b])
    return rows


@functools.cache
def _fitted(delta: float, basis: str = "items") -> Population:
    settings = FIXED | {"tie_threshold": delta, "tol": 1e-6, "clickers": 0.0}
    items = None
    if basis != "items":
        rng = np.random.default_rng(5)
        items = {"item": IDS, "x": rng.standard_normal(N_ITEMS), "y": rng.standard_normal(N_ITEMS)}
        settings |= {"basis": basis, "n_inducing": 3}
    return Population(**settings).fit(answers(30, 8, delta=delta), items=items)


def fitted(delta: float = 0.0, basis: str = "items") -> Population:
    return copy.deepcopy(_fitted(delta, basis))


def entropy(z: float, s: float, delta: float) -> float:
    """Of the answer at a margin z whose noise has standard deviation s, in bits."""
    left, right = ndtr((z - delta) / s), ndtr((-z - delta) / s)
    return float(entr([left, right, max(1.0 - left - right, 0.0)]).sum() / np.log(2.0))


def dense_information(model: Population, user: str, a: int, b: int) -> float:
    """I(y; m): the law of the person's margin given m by dense conditioning, its entropy by quadrature."""
    posterior, delta = model.posterior_, model.tie_threshold_
    code = QuestionDraws(model, model.questions()._weights).code(user)
    C, Sigma = posterior.now.C, posterior.Sigma
    rows, (left, right, _) = posterior.answers_of(code).rows, posterior.answered_rows(code)
    X = np.eye(N_ITEMS)[left] - np.eye(N_ITEMS)[right]
    total = rows.weight * rows.precision
    # Gaussian pseudo-answers: given m, f_u ~ N(m, Σ), and (m, f_u) have been told by them, m only by C.
    noise = np.diag(1.0 / total)
    gain = Sigma @ X.T @ np.linalg.inv(X @ Sigma @ X.T + noise)
    e = np.eye(N_ITEMS)[a] - np.eye(N_ITEMS)[b]
    given_m = np.eye(N_ITEMS) - gain @ X
    s = e @ (Sigma - gain @ X @ Sigma) @ e
    V = e @ given_m @ C @ given_m.T @ e
    mu = posterior.margins(np.array([code]), np.array([a]), np.array([b]))[0][0]
    root, sd = np.sqrt(1.0 + s), np.sqrt(V)
    before = entropy(mu, np.sqrt(1.0 + s + V), delta)
    after = quad(lambda x: norm.pdf(x) * entropy(mu + sd * x, root, delta), -9.0, 9.0, epsabs=1e-10, limit=400)[0]
    return before - after


@pytest.mark.parametrize("delta", [0.0, 0.35])
@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_information_about_the_consensus_is_that_of_dense_algebra_and_quadrature(delta, n):
    model = fitted(delta)
    own = answers(1, max(n, 1), seed=9, delta=delta)
    own["user"] = ["zoe"] * len(own["left"])
    model.update(own)
    if n == 0:
        model.forget(own)
    draws = QuestionDraws(model, model.questions()._weights)
    weights = draws.weights
    pairs = np.arange(len(weights.left))
    found = draws.information(draws.code("zoe"), pairs)
    for pair in pairs[::3].tolist():
        if n == 0:
            expected = dense_stranger(model, int(weights.left[pair]), int(weights.right[pair]))
            assert weights.information[pair] == pytest.approx(expected, abs=ITERATIVE)
        else:
            expected = dense_information(model, "zoe", int(weights.left[pair]), int(weights.right[pair]))
        assert found[pair] == pytest.approx(expected, abs=ITERATIVE)


def dense_stranger(model: Population, a: int, b: int) -> float:
    """The same of somebody without answers."""
    posterior, delta = model.posterior_, model.tie_threshold_
    e = np.eye(N_ITEMS)[a] - np.eye(N_ITEMS)[b]
    s, V, mu = e @ posterior.Sigma @ e, e @ posterior.now.C @ e, float(e @ posterior.now.law.mean)
    after = quad(
        lambda x: norm.pdf(x) * entropy(mu + np.sqrt(V) * x, np.sqrt(1.0 + s), delta), -9.0, 9.0, epsabs=1e-10,
        limit=400,
    )[0]  # fmt: skip
    return entropy(mu, np.sqrt(1.0 + s + V), delta) - after


def test_asked_the_same_again_a_person_tells_ever_less():
    """A person's own variance must not count as the consensus's."""
    model, told = fitted(), []
    for n in (0, 1, 5, 20):
        one = copy.deepcopy(model)
        if n:
            one.update(user="zoe", left="i1", right="i4", winner="i1", weight=float(n))
        draws = QuestionDraws(one, one.questions()._weights)
        pair = draws.pairs([("i1", "i4")])
        told.append(float(draws.information(draws.code("zoe"), pair)[0]) if n else draws.weights.information[pair[0]])
    assert told == sorted(told, reverse=True)
    assert told[-1] < 0.2 * told[0]


@pytest.mark.parametrize("basis", ["items", "attributes", "attributes+inducing"])
def test_what_is_a_persons_and_what_the_crowds_add_up(basis):
    model = fitted(0.0, basis).update(user="u3", left="i0", right="i6", winner="i6")
    posterior = model.posterior_
    left, right = np.triu_indices(N_ITEMS, 1)
    # At the fit the person's variance is that of predictions; later the consensus is known better than then.
    fit = fitted(0.0, basis).posterior_
    for code in (-1, 0, 3):
        mean, within, shared = fit.about_crowd(code, left, right)
        wanted, var = fit.margins(np.full(len(left), code), left, right)
        np.testing.assert_allclose(mean, wanted, atol=EXACT)
        np.testing.assert_allclose(within + shared, var, atol=EXACT)
        assert (within > 0.0).all()
        assert (shared > 0.0).all()
    code = model.users_.code("u3")
    mean, within, shared = posterior.about_crowd(code, left, right)
    wanted, var = posterior.margins(np.full(len(left), code), left, right)
    np.testing.assert_allclose(mean, wanted, atol=EXACT)
    np.testing.assert_allclose(within + shared, var, rtol=0.05)


def test_information_is_in_units_of_the_rest():
    mean, shared = np.array([0.3, -1.0]), np.array([0.5, 0.2])
    np.testing.assert_allclose(
        information_about(2.0 * mean, np.full(2, 3.0), 4.0 * shared, np.full(2, 0.6)),
        information_about(mean, np.zeros(2), shared, np.full(2, 0.3)), atol=EXACT,
    )  # fmt: skip


def model_with_state(n_more: int = 30) -> Population:
    model = fitted(0.35)
    more = answers(4, n_more // 4, seed=3, delta=0.35)
    more["user"] = [f"new {one}" for one in more["user"]]
    return model.update(more)


def expected_and_drawn(model, user, n_draws, **settings):
    """How often each pair was drawn, and the probability that was logged for it."""
    questions = model.questions(**settings)
    rng = np.random.default_rng(0)
    count: dict[tuple[str, str], int] = {}
    logged: dict[tuple[str, str], float] = {}
    left = 0
    for _ in range(n_draws):
        (one,) = questions.draw(user, random_state=rng)
        pair = tuple(sorted(one[:2]))
        left += one[:2] == pair
        count[pair] = count.get(pair, 0) + 1
        assert logged.setdefault(pair, one.probability) == pytest.approx(one.probability, rel=1e-12)
    return count, logged, left


@pytest.mark.slow
@pytest.mark.parametrize("user", ["new u1", "nobody"])
@pytest.mark.parametrize("target", ["board", "best", "top", "random"])
def test_logged_probabilities_are_those_of_draws(target, user):
    n_draws = 4000
    count, logged, left = expected_and_drawn(
        model_with_state(), user, n_draws, target=target, k=3 if target == "top" else 1
    )
    assert sum(logged.values()) == pytest.approx(1.0, abs=1e-9)
    frequent = [pair for pair, p in logged.items() if p * n_draws >= 5.0]
    seen = np.array([count[pair] for pair in frequent] + [n_draws - sum(count[pair] for pair in frequent)])
    wanted = np.array([n_draws * logged[pair] for pair in frequent])
    wanted = np.append(wanted, n_draws - wanted.sum())
    keep = wanted > 1e-6
    assert chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue > 1e-4
    assert abs(left - n_draws / 2.0) < 4.0 * np.sqrt(n_draws / 4.0)  # sides are drawn


@pytest.mark.slow
def test_the_chances_of_all_pairs_sum_to_one_whatever_is_closed():
    """By listing every pair instead of drawing: of the first question, and of the second given it."""
    model = model_with_state()
    for settings in ({}, {"target": "best"}, {"target": "top", "k": 2}, {"retired": ["i2"]}, {"difficulty": 0.5},
                     {"shown": {"i0": 1, "i1": 100, "i5": 90}}):  # fmt: skip
        weights = model.questions(**settings)._weights
        for user in ("u3", "nobody"):
            for exclude in ([], [("i0", "i1"), ("i3", "i1")]):
                draws = QuestionDraws(model, weights)
                closed = draws.pairs(exclude)
                code = draws.code(user)
                seen: dict[int, float] = {}
                rng = np.random.default_rng(1)
                for _ in range(1500):
                    pair, p = draws.draw(code, closed, rng)
                    seen[pair] = p
                assert sum(seen.values()) == pytest.approx(1.0, abs=1e-9)


def test_a_pair_is_drawn_alike_with_and_without_what_is_expected_of_it():
    questions = model_with_state().questions()
    one = questions.draw("u3", 3, random_state=5)
    other = questions.ask("u3", 3, random_state=5)
    assert [pair.probability for pair in one] == [question.probability for question in other]
    assert [set(pair[:2]) for pair in one] == [{question.left, question.right} for question in other]


def test_filters():
    model = model_with_state()
    rng = np.random.default_rng(0)
    held, _, _ = model.posterior_.answered_rows(model.users_.code("u3"))
    answered = {frozenset(pair) for pair in zip(*asked_by(model, "u3"), strict=True)}
    assert len(held)
    n_pairs = N_ITEMS * (N_ITEMS - 1) // 2
    every = model.questions().ask("u3", 1000, random_state=rng)
    assert {frozenset((one.left, one.right)) for one in every}.isdisjoint(answered)
    assert len(every) == n_pairs - len(answered)
    assert len(model.questions().ask("u3", 1000, repeat=True, random_state=rng)) == n_pairs
    # What was answered a moment ago does not come again, though the weights are of before.
    questions = model.questions()
    (one,) = questions.ask("zoe", random_state=rng)
    model.update(user="zoe", left=one.left, right=one.right, winner=one.left)
    later = questions.ask("zoe", 1000, random_state=rng)
    assert len(later) == n_pairs - 1
    assert frozenset((one.left, one.right)) not in {frozenset((two.left, two.right)) for two in later}
    assert not model.questions().ask("zoe", exclude=[(a, b) for a in IDS for b in IDS])
    retired = model.questions(retired=["i0", "i3"]).ask("nobody", 1000, random_state=rng)
    assert len(retired) == 10
    assert {"i0", "i3"}.isdisjoint({side for two in retired for side in (two.left, two.right)})
    hard = model.questions(difficulty=0.55).ask("nobody", 1000, random_state=rng)
    assert 0 < len(hard) < n_pairs
    assert all(max(two.p_left, two.p_right) >= 0.55 for two in hard)
    starved = model.questions(shown=dict.fromkeys(IDS, 10) | {"i2": 1}).ask("nobody", 6, random_state=rng)
    assert all("i2" in (two.left, two.right) for two in starved)
    free = model.questions(shown=dict.fromkeys(IDS, 10) | {"i2": 1}, quota=False).ask("nobody", 21, random_state=rng)
    assert len(free) == n_pairs


def asked_by(model: Population, user: str) -> tuple[list[str], list[str]]:
    left, right, _ = model.posterior_.answered_rows(model.users_.code(user))
    return [model.items_.ids[k] for k in left], [model.items_.ids[k] for k in right]


def test_a_batch_of_visitors_is_asked_different_pairs():
    model = Population().fit(None, items=IDS)
    asked = model.questions().ask_each([f"v{k}" for k in range(21)], random_state=0)
    assert len({frozenset((one.left, one.right)) for one in asked}) == 21
    more = model.questions().ask_each([f"v{k}" for k in range(50)], random_state=0)
    assert len(more) == 50  # beyond all pairs some come twice
    frame = model.suggest_each([f"v{k}" for k in range(5)])
    assert list(frame["user"]) == [f"v{k}" for k in range(5)]
    assert frame.columns == ["user", "left", "right", "score", "p_left", "p_tie", "p_right", "probability"]


def test_newcomers_are_asked_different_things_and_a_seed_repeats():
    model = model_with_state()
    with pytest.warns(predilect.errors.DataWarning, match="does not know"):
        asked = [model.suggest(f"visitor {k}", target="board") for k in range(30)]
    assert len({frozenset((one["left"][0], one["right"][0])) for one in asked}) > 10
    again = model.suggest("u3", 3, target="board")
    assert model.suggest("u3", 3, target="board").equals(again)
    other = [model.suggest("u3", target="board", random_state=seed)["left"][0] for seed in range(20)]
    assert len(set(other)) > 1
    assert not model.suggest("u3", target="board", random_state=None).is_empty()
    for ask in (model.suggest, lambda user, **how: model.suggest_each([user], **how)):
        with pytest.raises(DataError, match="strategy= is of questions about one person"):
            ask("u3", target="board", strategy="eubo")


def test_weights_are_made_once_for_a_state_and_again_for_the_next(tmp_path):
    model = model_with_state()
    first = model.questions()._weights
    assert model.questions()._weights is first
    assert model.questions("best")._weights is not first
    model.update(user="u3", left="i0", right="i1", winner="i0")
    assert model.questions()._weights is not first
    model.save(tmp_path / "model")
    loaded = predilect.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.questions()._weights.weight, model.questions()._weights.weight, rtol=1e-6)
    one = loaded.questions().ask("u3", 50, random_state=3)
    two = model.questions().ask("u3", 50, random_state=3)
    assert [(a.left, a.right) for a in one] == [(b.left, b.right) for b in two]


def test_the_best_item_is_sought_among_those_that_may_be():
    """Top-two Thompson sampling, and where one item is best for sure its challengers by their own chances."""
    model = fitted()
    f, rng = np.array([3.0, 2.9, 2.8, 0.0, 0.0, -1.0, -1.0]), np.random.default_rng(0)
    sure = copy.deepcopy(model)
    for name, mean, scale in (("close", f, 0.05), ("sure", np.append(f[0] + 5.0, f[1:]), 0.05)):
        one = copy.deepcopy(sure)
        posterior = one.posterior_
        object.__setattr__(posterior, "_now", posterior.now._replace(
            C=scale * np.eye(N_ITEMS), law=posterior.law.moved(mean - posterior.law.mean)
        ))  # fmt: skip
        weights = one.questions("best")._weights
        W = np.zeros((N_ITEMS, N_ITEMS))
        W[weights.left, weights.right] = weights.weight
        W += W.T
        assert W.sum() == pytest.approx(2.0)
        assert W[:3, :3].sum() / W.sum() > 0.95
        if name == "sure":
            assert W[0].sum() == pytest.approx(1.0)
        draws = mean + np.sqrt(scale) * rng.standard_normal((200_000, N_ITEMS))
        p = np.bincount(draws.argmax(axis=1), minlength=N_ITEMS) / len(draws)
        if name == "close":
            wanted = p[0] * p[1] * (1.0 / (1.0 - p[0]) + 1.0 / (1.0 - p[1]))
            assert W[0, 1] == pytest.approx(wanted, abs=0.03)


@pytest.mark.parametrize("most", [400, 4])
def test_the_first_k_are_told_from_the_rest(most, monkeypatch):
    """Against two draws at a time, of which the first k differ; of the first draws where these sets are too many."""
    monkeypatch.setattr("predilect.decisions.crowd._MOST_SETS", most)
    rng = np.random.default_rng(4)
    f = np.array([1.0, 0.9, 0.5, 0.4, -1.0]) + 0.3 * rng.standard_normal((300, 5))
    W = _between_sets(f, 2)
    assert W.sum() == pytest.approx(1.0)
    sets = [frozenset(np.argsort(-row)[:2].tolist()) for row in f][:most]
    assert len(set(sets)) > 1
    # S is drawn first, and then S' until it differs.
    alike = {one: sum(other == one for other in sets) for one in sets}
    exact = np.zeros((5, 5))
    for one, times in alike.items():
        for other, count in alike.items():
            if one != other:
                share = times / len(sets) * (count / len(sets)) / (1.0 - times / len(sets))
                for i in one - other:
                    for j in other - one:
                        exact[i, j] += share / len(one - other) ** 2
    np.testing.assert_allclose(W, exact, atol=EXACT)
    assert _between_sets(np.tile(f[:1] * 10.0, (5, 1)), 2).sum() == pytest.approx(1.0)


def enumerated(questions, several, n=5):
    """Chance of a set, over all orders in which its items can be drawn one after the other."""
    weights, model = questions._weights, questions._model
    codes, eps = [int(model.items_.code(one)) for one in several], weights.eps
    order = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(weights.left, weights.right, strict=True))}

    def of(values, a, b):
        return values[order[min(a, b), max(a, b)]]

    def mixed(chances, one):
        return (1.0 - eps) * chances[one] / sum(chances.values()) + eps / len(chances)

    total = 0.0
    for first, second, *rest in permutations(codes):
        if first > second:
            continue
        chance = mixed({pair: weights.weight[k] for pair, k in order.items()}, (first, second))
        drawn = [first, second]
        for one in rest:
            left = [code for code in range(n) if code not in drawn]
            if weights.target == "board":
                told = {code: np.mean([of(weights.information, code, other) for other in drawn]) for code in left}
                worth = {code: np.exp((value - max(told.values())) / weights.tau) for code, value in told.items()}
            else:
                worth = {code: sum(of(weights.weight, code, other) for other in drawn) for code in left}
            chance *= mixed(worth, one)
            drawn.append(one)
        total += chance
    return total


@pytest.mark.parametrize("target", ["board", "random"])
def test_of_items_that_are_alike_each_set_is_as_likely(target):
    questions = Population().fit(None, items=list("abcd")).questions(target)
    assert {round(questions.ask_set(None, 3, random_state=seed).probability, 12) for seed in range(5)} == {0.25}
    # With a set that is barred the others are drawn, and their chances sum to 1.
    chances = {}
    for seed in range(60):
        one = questions.ask_set(None, 3, exclude=[list("abc")], random_state=seed)
        chances[frozenset(one.items)] = one.probability
    assert len(chances) == 3
    assert sum(chances.values()) == pytest.approx(1.0)
    many = Population().fit(None, items=[str(k) for k in range(14)]).questions(target)
    assert many.ask_set(None, 11, random_state=0).probability is None
    assert many.ask_set(None, 8, random_state=0).probability == pytest.approx(1.0 / math.comb(14, 8))


@pytest.mark.parametrize("target", ["board", "best"])
def test_the_probability_of_a_set_is_that_of_all_orders_of_its_items(target):
    questions = fitted().questions(target, retired=["i5", "i6"])
    for seed in range(5):
        one = questions.ask_set("nobody", 4, random_state=seed)
        assert one.probability == pytest.approx(enumerated(questions, one.items), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["board", "best", "random"])
def test_sets_are_drawn_and_their_probability_is_exact(target):
    model = Population().fit(Comparisons.from_frame(answers(12, 6)))
    questions, rng = model.questions(target, retired=["i5", "i6"]), np.random.default_rng(0)
    count: dict[frozenset, int] = {}
    logged: dict[frozenset, float] = {}
    for _ in range(3000):
        one = questions.ask_set("nobody", 3, random_state=rng)
        key = frozenset(one.items)
        count[key] = count.get(key, 0) + 1
        assert logged.setdefault(key, one.probability) == pytest.approx(one.probability)
    for key, p in logged.items():
        assert p == pytest.approx(enumerated(questions, key), rel=1e-9)
        assert abs(count[key] - 3000 * p) < 5.0 * np.sqrt(3000 * p) + 5.0
    every = [enumerated(questions, frozenset(several)) for several in combinations(IDS[:5], 3)]
    assert sum(every) == pytest.approx(1.0)
    barred = [IDS[:3], IDS[1:4]]
    for _ in range(100):
        one = questions.ask_set("nobody", 3, exclude=barred, random_state=rng)
        assert set(one.items) not in [set(several) for several in barred]
    assert model.questions(retired=IDS[3:]).ask_set("nobody", 3, exclude=[IDS[:3]]) is None
    frame = model.suggest_set("u0", 4, target=target)
    assert len(frame) == 4


def test_pooled_models_are_asked_about_their_board():
    model = Population(personal=False).fit(answers(12, 6))
    asked = model.suggest(None, 4, target="board")
    assert len(asked) == 4
    weights = model.questions()._weights
    from predilect.decisions.information import bald

    mean, var = model.posterior_.margins(np.full(21, -1), weights.left, weights.right)
    np.testing.assert_allclose(weights.information, bald(mean, np.minimum(var, model.posterior_.crowd().margins(
        weights.left, weights.right)[1])), atol=1e-9)  # fmt: skip


def test_settings_that_cannot_be_used():
    model = fitted()
    for settings, message in (
        ({"target": "worst"}, "target must be one of .*, not 'worst'"), ({"target": "top", "k": 7}, "k must be"),
        ({"k": 0}, "k must be"), ({"difficulty": 1.5}, "difficulty must be"), ({"eps": 0.0}, "eps must be"),
        ({"retired": ["tea"]}, "not known"), ({"retired": IDS[:6]}, "needs two"), ({"shown": {"tea": 1}}, "not known"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            model.questions(**settings)
    with pytest.raises(DataError, match="drawn from all pairs of some items"):
        model.suggest("u1", target="board", candidates={"left": ["i0"], "right": ["i1"]})
    with pytest.raises(DataError, match="a list of people"):
        model.suggest_each({"user": ["u1"], "left": ["i0"], "right": ["i1"]}, target="board")
    with pytest.raises(DataError, match="n must be"):
        model.questions().ask("u1", 0)
    with pytest.raises(DataError, match="size must be"):
        model.questions().ask_set("u1", 1)
    with pytest.raises(DataError, match="but there are"):
        model.questions().ask_set("u1", 8)
