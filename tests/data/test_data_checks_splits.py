from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.splits import split_answers, split_groups, split_hash, split_items, split_people

import predilect
from predilect.data import Comparisons, check, k_folds_answers
from predilect.data.intake import BASELINE, FIRST
from predilect.errors import DataError
from simulate import random_pairs


def answers(n=2000, seed=0, n_users=40, n_items=12):
    rng = np.random.default_rng(seed)
    left, right = random_pairs(rng, n, n_items)
    frame = {"user": rng.integers(0, n_users, n), "left": left, "right": right}
    return frame, rng.choice([1, 0, -1], n)


def codes(comparisons, *extra):
    return {finding.code: finding for finding in check(comparisons, *extra)}


def test_unconnected_and_unanswered_items():
    frame = {"left": ["a", "b", "x", "x"], "right": ["b", "c", "y", "y"], "winner": ["left", "right", "tie", "tie"]}
    found = codes(Comparisons.from_frame(frame).with_items(["q"]), ["z", "a"])
    assert found["unconnected-items"].count == 2
    assert "sizes 3, 2" in found["unconnected-items"].message
    assert found["items-without-answers"].examples == ("q", "z")
    assert found["items-only-ties"].examples == ("x", "y")
    assert found["items-never-lose"].examples == ("a", "c")
    assert found["items-never-win"].examples == ("b",)
    assert found["few-answers"].severity == "warning"
    severities = [finding.severity for finding in check(Comparisons.from_frame(frame))]
    assert severities == sorted(severities, reverse=True)


def test_items_that_attributes_describe_are_known_by_these():
    rng = np.random.default_rng(0)
    task, place = np.divmod(np.arange(240), 3)
    profiles = {"price": rng.random(240).round(3), "size": rng.random(240).round(3)}
    rows = {"user": task // 4, "task": task, "alt": place, **profiles, "choice": (place == task % 3).astype(int)}
    found = codes(Comparisons.from_frame(rows))
    assert set(found) == {"unconnected-items"}
    assert found["unconnected-items"].severity == "note"
    assert found["unconnected-items"].message.endswith("Scores across groups rest on the attributes.")
    assert found["unconnected-items"].message.count("; price=") == 2  # ids have commas


def test_sides():
    frame, _ = answers()
    n = len(frame["left"])
    assert (
        "list the winner first"
        in codes(Comparisons.from_frame(frame, outcome=np.ones(n)))["winner-always-one-side"].message
    )
    half = np.where(np.arange(n) % 2, 1, -1)
    fair = codes(Comparisons.from_frame(frame, outcome=half))["left-right-bias"]
    assert (fair.severity, fair.count) == ("note", n)
    assert "50.0%" in fair.message
    skewed = np.where(np.arange(n) % 5 < 3, 1, -1)
    biased = codes(Comparisons.from_frame(frame, outcome=skewed))["left-right-bias"]
    assert biased.severity == "warning"
    assert "60.0%" in biased.message  # fmt: skip


def favoured(share: float, of: str, n: int = 600) -> Comparisons:
    """Answers to random pairs in which such a share of the winners is on the left; said of sides, or of items."""
    rng = np.random.default_rng(4)
    left, right = random_pairs(rng, n, 5)
    won = np.arange(n) < share * n
    winner = np.where(won, "left", "right") if of == "sides" else np.where(won, left, right)
    frame = {"user": rng.integers(0, 20, n), "left": left, "right": right, "winner": winner}
    return Comparisons.from_frame(frame, reading={"answer_is": "side" if of == "sides" else "item"})


@pytest.mark.parametrize("share", [0.19, 0.81, 0.97])
def test_a_side_that_wins_often_is_favoured_where_answers_are_sides(share):
    found = favoured(share, "sides")
    assert found.intake.no_sides == ""
    told = codes(found)["left-right-bias"]
    assert told.severity == "warning"
    assert "people favour one side" in told.message
    assert "side" in told.message
    assert "winner-always-one-side" not in codes(found)


def test_a_side_that_wins_nearly_always_was_written_first():
    assert "list the winner first" in codes(favoured(0.99, "sides"))["winner-always-one-side"].message
    assert "list the winner first" in codes(favoured(0.99, "items"))["winner-always-one-side"].message


@pytest.mark.parametrize(("share", "first"), [(0.1, "loser"), (0.81, "winner")])
def test_winners_that_are_mostly_on_one_side_are_a_warning_that_says_what_decides(share, first):
    told = codes(favoured(share, "items"))
    assert "winner-always-one-side" not in told
    assert told["left-right-bias"].severity == "warning"
    assert f"either the file lists the {first} first" in told["left-right-bias"].message
    assert 'reading={"side": True}' in told["left-right-bias"].message


def against_a_baseline(share: float, name: str = "the baseline", n: int = 400) -> dict[str, list]:
    """Answers that compare one item, always on the left, with five others; it wins such a share of them."""
    rng = np.random.default_rng(1)
    right = np.array([f"model {k}" for k in rng.integers(0, 5, n)])
    winner = np.where(np.arange(n) < share * n, name, right)
    return {
        "user": rng.integers(0, 12, n).tolist(),
        "left": [name] * n,
        "right": right.tolist(),
        "winner": winner.tolist(),
    }


@pytest.mark.parametrize("name", ["the baseline", "a baseline"])  # after the others by name, and before them
@pytest.mark.parametrize("share", [0.1, 0.3, 0.75, 0.9, 1.0])
def test_a_baseline_that_is_always_first_is_no_sign_that_a_side_is_favoured(share, name):
    found = Comparisons.from_frame(against_a_baseline(share, name), reading={"task": "none"})
    told = codes(found)["left-right-bias"]
    assert told.severity == "note"
    assert "Always on the same side: " in told.message
    assert told.examples == (name,)
    assert "winner-always-one-side" not in codes(found)
    assert not any("lists the winner" in line for line in found.intake.describe())


@pytest.mark.parametrize(("n", "why"), [(39, FIRST), (40, BASELINE)])
def test_few_items_on_one_side_are_baselines_of_twenty_answers_each(n, why):
    left = ["p", "q"] * n
    frame = {"left": left[:n], "right": (["x", "y", "z"] * n)[:n], "winner": left[:n]}
    assert Comparisons.from_frame(frame).intake.no_sides == why


def test_who_asks_in_both_orders_is_not_told_to_randomise_and_who_does_not_is():
    rng = np.random.default_rng(2)
    pairs = np.array([(i, j) for i in range(6) for j in range(i)] * 30)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    outcome = np.where(rng.random(len(both)) < 0.66, 1, -1)
    frame = {"left": both[:, 0].tolist(), "right": both[:, 1].tolist()}
    told = codes(Comparisons.from_frame(frame, outcome=outcome))["left-right-bias"]
    assert told.severity == "warning"
    assert "people favour one side. Each item was shown on both about equally often" in told.message
    assert "randomise" not in told.message
    one = np.concatenate([pairs, pairs[: len(pairs) // 8, ::-1]])  # the larger code mostly on the left
    frame = {"left": one[:, 0].tolist(), "right": one[:, 1].tolist()}
    told = codes(Comparisons.from_frame(frame, outcome=outcome[: len(one)]))["left-right-bias"]
    assert "people favour one side; randomise the sides when asking" in told.message


def test_pairs_in_the_order_of_their_ids_have_no_sides_that_could_be_favoured():
    pairs = np.array([(i, j) for j in range(6) for i in range(j)] * 30)
    frame = {"left": pairs[:, 0].tolist(), "right": pairs[:, 1].tolist()}
    found = Comparisons.from_frame(frame, outcome=np.resize([1, 1, -1], len(pairs)))
    assert found.intake.no_sides == "sorted pairs"
    assert "left-right-bias" not in codes(found)


@pytest.mark.parametrize(
    ("n", "left_wins", "said"),
    [
        (12, 9, "no sign of a left/right bias"),  # three quarters, of twelve
        (40, 27, "a slight lean"),
        (40_000, 20_500, "a slight lean"),  # surely more than half, and hardly more
        (40_000, 21_000, "people favour one side"),
    ],
)
def test_a_side_is_favoured_where_that_is_both_sure_and_large(n, left_wins, said):
    frame, _ = answers(n)
    found = codes(Comparisons.from_frame(frame, outcome=np.where(np.arange(n) < left_wins, 1, -1)))["left-right-bias"]
    assert said in found.message
    assert found.severity == ("warning" if "favour" in said else "note")


def test_answers_are_checked_as_comparisons_as_a_frame_and_as_a_file(tmp_path):
    frame = pl.DataFrame({"left": ["p", "q", "p"], "right": ["q", "r", "r"], "winner": ["p", "q", "tie"]})
    frame.write_csv(tmp_path / "votes.csv")
    expected = predilect.check(Comparisons.from_frame(frame))
    assert {finding.code for finding in expected} >= {"few-answers", "ties"}
    path = tmp_path / "votes.csv"
    for answers in (frame, frame.to_pandas(), frame.to_dict(as_series=False), path, str(path)):
        assert predilect.check(answers) == expected
    with pytest.raises(DataError, match="there is no file"):
        predilect.check(tmp_path / "typo.csv")
    with pytest.raises(DataError, match="expected a data frame"):
        predilect.check(7)


def test_people_ties_and_contradictions():
    frame, _ = answers(200, n_users=5)
    frame["user"] = np.array(["heavy"] * 180 + [f"u{k}" for k in range(20)])
    outcome = np.zeros(200, dtype=int)
    outcome[:60] = np.tile([1, -1], 30)
    found = codes(Comparisons.from_frame(frame, outcome=outcome))
    assert found["heavy-users"].examples == ("heavy",)
    assert found["users-with-one-answer"].count == 20
    assert found["ties"].severity == "warning"
    assert "70.0%" in found["ties"].message
    twice = {"user": ["u"] * 3, "left": ["a", "b", "a"], "right": ["b", "a", "b"]}
    assert codes(Comparisons.from_frame(twice, outcome=[1, 1, 0], reading={"tie": "0"}))["contradictions"].count == 1


@pytest.mark.parametrize("n_shown", [2, 3, 8])
def test_a_choice_from_several_is_one_answer_of_its_person(n_shown):
    users = np.repeat([f"u{k}" for k in range(30)] + ["u0"], n_shown)
    items = np.tile([f"i{k}" for k in range(n_shown)], 31)
    tasks = np.repeat(np.arange(31), n_shown)
    chosen = np.tile(np.arange(n_shown) == 0, 31).astype(int)
    found = {one.code: one for one in check({"user": users, "task": tasks, "item": items, "chosen": chosen})}
    assert found["users-with-one-answer"].count == 29
    assert "u0" not in found["users-with-one-answer"].message


def test_parts_of_answers_are_counted_as_they_are():
    frame = {"left": ["x", "y", "z"] * 3, "right": ["y", "z", "x"] * 3, "winner": ["left", "tie", "right"] * 3}
    found = check(Comparisons.from_frame(frame | {"weight": [1.5] * 9}))
    said = " ".join(finding.message for finding in found)
    assert "33.3% of 13.5 answers are ties" in said
    assert "Only 13.5 answers for 3 items" in said


def test_no_rows_at_all():
    frame, outcome = answers(50)
    comparisons = Comparisons.from_frame(frame, outcome=outcome).take([])
    assert codes(comparisons)["items-without-answers"].count == comparisons.n_items
    assert split_answers(comparisons)[1].shape == (0,)
    assert k_folds_answers(comparisons).shape == (0,)


def test_look_alikes_and_items_left_out():
    frame = {"left": ["GPT", "gpt ", "c"], "right": ["c", "d", "z"], "winner": ["GPT", "d", "?"]}
    found = codes(Comparisons.from_frame(frame, reading={"drop": "unknown"}))
    assert found["look-alike-items"].count == 2
    assert found["items-left-out"].examples == ("z",)


def test_a_fit_that_takes_minutes_is_foretold():
    """By the number of items cubed, and of rows; of one ranking for all, which takes less, nothing is said."""
    frame = {"left": np.arange(2999), "right": np.arange(1, 3000), "winner": ["left"] * 2999}
    assert "takes-minutes" not in codes(Comparisons.from_frame(frame))
    found = codes(Comparisons.from_frame(frame | {"user": np.arange(2999) % 2}))
    assert "about 2 minutes of one processor" in found["takes-minutes"].message
    few = {"user": np.arange(999) % 2, "left": np.arange(999), "right": np.arange(1, 1000), "winner": ["left"] * 999}
    assert "takes-minutes" not in codes(Comparisons.from_frame(few))


def test_split_answers_keeps_pairs_together_and_people_in_training():
    frame, outcome = answers()
    frame["user"][0] = 999
    comparisons = Comparisons.from_frame(frame, outcome=outcome)
    train, test = split_answers(comparisons, 0.25, random_state=1)
    assert (train ^ test).all()
    assert abs(test.mean() - 0.25) < 0.03
    pair = np.stack([comparisons.user, comparisons.left, comparisons.right])
    held, kept = ({tuple(column) for column in pair[:, mask].T} for mask in (test, train))
    assert not held & kept
    assert set(comparisons.user[train]) == set(range(comparisons.n_users))
    lone = comparisons.users.codes([999])[0]
    assert not test[comparisons.user == lone].any()
    _, two = split_answers(comparisons, n_test_per_person=2)
    per_person = [len({c for c in map(tuple, pair[:, two].T) if c[0] == u}) for u in range(comparisons.n_users)]
    assert per_person == [0 if u == lone else 2 for u in range(comparisons.n_users)]


def test_splits_ignore_the_order_of_rows_and_depend_on_the_seed():
    frame, outcome = answers()
    order = np.random.default_rng(3).permutation(len(outcome))
    first = Comparisons.from_frame(frame, outcome=outcome)
    second = Comparisons.from_frame({name: column[order] for name, column in frame.items()}, outcome=outcome[order])
    for split in (split_answers, split_people, split_items):
        a, b = split(first, random_state=5)[1], split(second, random_state=5)[1]
        assert split_hash(a, first) == split_hash(b, second)
        assert split_hash(split(first, random_state=6)[1], first) != split_hash(a, first)
    folds = k_folds_answers(first, 4)
    assert split_hash(folds, first) == split_hash(k_folds_answers(second, 4), second)
    with pytest.raises(DataError, match="expected"):
        split_hash(folds[1:], first)


def test_folds_are_balanced_within_people():
    frame, outcome = answers(500, n_users=60)
    comparisons = Comparisons.from_frame(frame, outcome=outcome)
    folds = k_folds_answers(comparisons, 3, random_state=2)
    for user in range(comparisons.n_users):
        mine = comparisons.user == user
        pairs = {
            (a, b): f for a, b, f in zip(comparisons.left[mine], comparisons.right[mine], folds[mine], strict=True)
        }
        counts = np.bincount([f for f in pairs.values() if f >= 0], minlength=3)
        assert counts.max() - counts.min() <= 1
        assert (len(pairs) < 2) == (-1 in pairs.values())
    assert np.ptp(np.bincount(folds[folds >= 0], minlength=3)) < 60


def test_held_out_items_people_and_groups():
    frame, outcome = answers()
    comparisons = Comparisons.from_frame(frame, outcome=outcome)
    train, test = split_items(comparisons, 0.2)
    seen = set(comparisons.left[train]) | set(comparisons.right[train])
    out = set(range(comparisons.n_items)) - seen
    assert len(out) == 2
    assert all((left in out) or (right in out)
               for left, right in zip(comparisons.left[test], comparisons.right[test], strict=True))  # fmt: skip
    train, test = split_people(comparisons, 0.1)
    assert len(set(comparisons.user[test])) == 4
    assert not set(comparisons.user[test]) & set(comparisons.user[train])
    groups = np.arange(comparisons.n_rows) // 10
    train, test = split_groups(groups, 0.3)
    assert not set(groups[test]) & set(groups[train])
    with pytest.raises(DataError, match="strictly between 0 and 1"):
        split_answers(comparisons, 1.0)
    with pytest.raises(DataError, match="at least 0"):
        split_answers(comparisons, n_test_per_person=-1)
    with pytest.raises(DataError, match="between 2 and 127"):
        k_folds_answers(comparisons, 1)
    with pytest.raises(DataError, match="cannot split 1 groups"):
        split_groups([1, 1])
