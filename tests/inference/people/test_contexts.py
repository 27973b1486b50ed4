"""Contexts of answers in the model of people: the covariance of the consensus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from predilect import GPPL, Comparisons, Population
from predilect.errors import DataError
from predilect.inference.people.contexts import share_between_contexts, with_contexts

FIXED = {
    "strength": 60.0, "variance": 0.36, "consensus_variance": 4.0, "calibration": None, "consistency": 0.0,
    "clickers": 0.0,
}  # fmt: skip


def arena(seed, n_contexts=200, spread=0.8, taste=0.6, n_users=40, n_items=5):
    """Questions with three judges each, asked twice over; the true utilities."""
    rng = np.random.default_rng([30_000, seed])
    utility = rng.normal(size=n_items)
    own = spread * rng.normal(size=(n_contexts, n_items))
    f = taste * rng.normal(size=(n_users, n_items))
    context = np.repeat(np.arange(n_contexts), 3)
    left = np.repeat(rng.integers(n_items, size=n_contexts), 3)
    right = (left + np.repeat(rng.integers(1, n_items, size=n_contexts), 3)) % n_items
    user = rng.integers(n_users, size=len(context))
    z = utility[left] - utility[right] + own[context, left] - own[context, right] + f[user, left] - f[user, right]
    winner = np.where(z + rng.normal(size=len(z)) > 0, left, right)
    columns = {"user": user, "left": left, "right": right, "winner": winner, "prompt": context}
    return {name: column.tolist() for name, column in columns.items()}, utility


def read(frame):
    return Comparisons.from_frame(frame, columns={"context": "prompt"}, reading={"side": False})


@pytest.mark.parametrize(("K", "own_effects"), [(3, False), (12, False), (12, True), (30, False)])
def test_the_consensus_is_as_uncertain_as_products_of_two_peoples_scores_say(K, own_effects):
    """Against dense matrices of all answers; also where people have effects of a covariate of their own.

    Of few contexts the products are averaged with those that contexts bring which move all items alike.
    """
    frame, _ = arena(0, n_contexts=K, n_users=6)
    answers = read(frame)
    plain = Population(**FIXED).fit(replace(answers, context=None, contexts=None)).posterior_
    slope_columns = np.random.default_rng(1).normal(size=(answers.n_rows, int(own_effects)))
    plain = replace(plain, people=replace(plain.people, slope_columns=slope_columns))
    found = with_contexts(plain, answers)
    n, people, law = answers.n_rows, plain.people, plain.law
    A = np.zeros((n, answers.n_items))
    A[np.arange(n), answers.left], A[np.arange(n), answers.right] = 1.0, -1.0
    told = people.weight * plain.sites.precision
    same = answers.user[:, None] == answers.user
    Q = np.linalg.inv(np.diag(1.0 / told) + same * (A @ law.Sigma @ A.T + slope_columns @ slope_columns.T))
    residual = plain.sites.linear / plain.sites.precision - A @ law.mean
    C, of_all, of_each, alike = plain.C_m, *np.zeros((3, answers.n_items, answers.n_items))
    for k in range(K):
        of_people = [
            A.T @ Q @ (residual * ((answers.context == k) & (answers.user == user))) for user in range(answers.n_users)
        ]
        if sum(one.any() for one in of_people) < 2:
            continue  # of one person alone
        g, J = np.sum(of_people, axis=0), A.T @ Q @ ((answers.context == k)[:, None] * A)
        of_all += K / (K - 1) * np.outer(g, g)
        of_each += sum(np.outer(one, one) for one in of_people)
        alike += J @ J.T
    n, d = K - 1, {3: 2, 12: 4, 30: 0}[K]
    share = max(np.trace(C @ (of_all - of_each) @ C), 0.0) / np.trace(C @ alike @ C)
    of_all = (n * of_all + d * (share * alike + of_each)) / (n + d)
    D = (t(n + d).ppf(0.975) / norm.ppf(0.975)) ** 2 * of_all - of_each
    expected = plain.C_m + plain.C_m @ D @ plain.C_m
    while np.linalg.eigvalsh(expected)[0] < 0.0:
        D *= 0.5
        expected = plain.C_m + plain.C_m @ D @ plain.C_m
    np.testing.assert_allclose(found.C_m, expected, rtol=1e-8, atol=1e-12)


def test_contexts_of_one_person_each_change_nothing():
    frame, _ = arena(1, n_contexts=30)
    frame["prompt"] = [f"{user} {row % 4}" for row, user in enumerate(frame["user"])]
    answers = read(frame)
    plain = Population(**FIXED).fit(replace(answers, context=None, contexts=None)).posterior_
    np.testing.assert_allclose(with_contexts(plain, answers).C_m, plain.C_m, rtol=1e-9)
    frame["prompt"] = ["the one"] * len(frame["user"])
    assert with_contexts(plain, read(frame)) is plain


@pytest.mark.parametrize("settings", [FIXED, {"personal": False}])
def test_one_context_tells_nothing_of_contexts_and_is_refused(settings):
    frame, _ = arena(1, n_contexts=30)
    frame["prompt"] = ["the one", None] * (len(frame["user"]) // 2)
    with pytest.raises(DataError, match=r'the same one \("the one", in column "prompt"\).*leave context=\.\.\. out'):
        Population(**settings).fit(read(frame))


@pytest.mark.parametrize("settings", [FIXED, {"personal": False}])
def test_boards_know_contexts_and_say_so(settings, tmp_path):
    frame, _ = arena(2)
    model = Population(**settings).fit(read(frame))
    plain = Population(**settings).fit(Comparisons.from_frame(frame, reading={"side": False}))
    assert (model.utilities()["sd"] > plain.utilities()["sd"]).all()
    if model.personal_:  # contexts are no matter of whom answers are predicted
        asked = {name: frame[name][:9] for name in ("user", "left", "right")}
        np.testing.assert_allclose(model.predict_proba(asked), plain.predict_proba(asked), rtol=1e-6)
    assert any("contexts for independent" in line or "people and contexts" in line for line in model.describe())
    model.update(user=3, left=0, right=1, outcome=1)
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert again.describe() == model.describe()
    assert again.utilities()["sd"].to_list() == pytest.approx(model.utilities()["sd"].to_list())
    assert model.comparisons_.n_answers == len(frame["user"]) + 1


def shown(user, prompt, **more):
    n = len(user)
    frame = {"user": user, "left": [0] * n, "right": [1, 2] * (n // 2), "winner": [0] * n, "prompt": prompt} | more
    return read(frame)


def test_the_share_of_contexts_in_the_noise_is_that_of_two_answers_of_one_person_apart():
    nested = shown([0] * 4 + [1] * 4, ["a"] * 4 + ["b"] * 4)
    assert share_between_contexts(nested) == 0.0
    assert share_between_contexts(shown([0, 0, 1, 1], ["a", "b", "b", "c"])) == 1.0
    # 2 of 6 pairs of the first person are alike, all of the second; four and two answers
    assert share_between_contexts(shown([0] * 4 + [1] * 2, ["a", "a", "b", "b", "c", "c"])) == pytest.approx(4 / 9)
    assert share_between_contexts(shown([0, 1], ["a", "b"])) == 0.0  # nobody gave two
    counted = shown([0, 0], ["a", "b"])
    assert share_between_contexts(replace(counted, weight=np.array([2.0, 2.0]))) == pytest.approx(2 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("n_of_person", [1, 2, 4])
def test_scores_are_in_the_unit_that_contexts_leave(n_of_person):
    """Nested in people, between, and crossed: the factor by which scores are below utilities within a context."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng([seed, n_of_person])
        utility, f = 1.5 * rng.normal(size=6), rng.normal(size=(20, 6))
        user = np.repeat(np.arange(100), 16)
        own = np.array([rng.choice(20, n_of_person, replace=False) for _ in range(100)])
        context = own[user, rng.integers(n_of_person, size=len(user))]
        left = rng.integers(6, size=len(user))
        right = (left + rng.integers(1, 6, size=len(user))) % 6
        true = utility + f.mean(axis=0)
        z = (utility + f[context])[np.arange(len(user))]
        won = z[np.arange(len(user)), left] - z[np.arange(len(user)), right] + rng.normal(size=len(user)) > 0.0
        columns = {"user": user, "left": left, "right": right, "winner": np.where(won, left, right), "prompt": context}
        model = Population(n_jobs=1, clickers=0.0).fit(read({name: x.tolist() for name, x in columns.items()}))
        share = model.report_["between_contexts"]
        assert any(f"holds {100 * share:.0f} % of how far contexts differ" in line for line in model.describe())
        mean = model.utility_distribution()[0]
        true = true[list(model.items_.ids)]
        mean, true = mean - mean.mean(), (true - true.mean()) / np.sqrt(1.0 + 2.0 * share)
        ratios.append(float(mean @ true / (true @ true)))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.12)


def test_other_models_say_that_they_take_no_contexts():
    with pytest.raises(DataError, match="GPPL takes no contexts of answers"):
        GPPL().fit(read(arena(3)[0]))


@pytest.mark.slow
def test_the_verdict_is_as_unsure_as_contexts_make_it():
    frame, _ = arena(4, n_contexts=12, spread=3.0, taste=0.0)
    frame = {name: column * 6 for name, column in frame.items()}
    frame["user"] = np.random.default_rng(0).integers(40, size=len(frame["user"])).tolist()
    answers = read(frame)
    found = Population(**FIXED).fit(answers).verdict()
    plain = Population(**FIXED).fit(replace(answers, context=None, contexts=None)).verdict()
    width, narrow = (one.personal.upper - one.personal.lower for one in (found, plain))
    assert width > narrow
    assert found.personal.n_people == plain.personal.n_people


@pytest.mark.slow
@pytest.mark.parametrize("personal", [False, True])
def test_contrasts_are_covered(personal):
    """In units of an answer's noise that holds what contexts, and for the pooled model tastes, differ by."""
    settings = FIXED if personal else {"personal": False, "consensus_variance": 4.0}
    found = []
    for seed in range(150):
        frame, utility = arena(seed)
        model = Population(**settings).fit(read(frame))
        mean, C = model.utility_distribution()
        truth = utility / np.sqrt(1.0 + 2 * 0.8**2 + (0.0 if personal else 2 * 0.6**2))
        for i, j in zip(*np.triu_indices(5, 1), strict=True):
            sd = np.sqrt(C[i, i] + C[j, j] - 2 * C[i, j])
            found.append(abs(mean[i] - mean[j] - truth[i] + truth[j]) < 1.96 * sd)
    assert 0.93 <= np.mean(found) <= 0.97
