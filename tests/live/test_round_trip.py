"""What a poll exports is read again as it was: the same answers and the same board, whatever was asked."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import polars as pl
import pytest

import predilect
from cli.running import run
from live.polls import made, of_kind, reply
from predilect.errors import DataError
from predilect.live.answers import comparisons, standing
from predilect.live.belief import fitted, keys_of
from predilect.live.exports import written
from predilect.models.registry import estimator
from tolerances import EXACT

# Names that a file, a spreadsheet or a reader of sides might take for something else.
NASTY = ["left", "right", "tie", "skip", "best", "NA", "01", "1", "=1+1", "'=1+1", '"a", b', "null"]
PEOPLE = [f"person {k}" for k in range(6)]


def answered(poll, *, skips, ties, n=6):
    """Have people answer every question on every criterion, the second the other way round."""
    source = random.Random(1)
    for person in PEOPLE:
        for k in range(n):
            for question in poll.ask(person):
                for criterion in range(poll.log.state.n_criteria):
                    answer = reply(question, source)
                    if criterion:
                        answer = answer[::-1] if isinstance(answer, list) else question.items[-1].number
                    if ties and k == 1 and "tie" not in {item.name for item in question.items}:
                        answer = "tie"
                    if skips and k == 2:
                        answer = None
                    poll.tell(person, question.shown, answer, criterion=criterion, shown_ms=900 + k)


def rows_of(answers):
    """Answers without codes: the rows of each task together."""
    users, items = answers.users.ids, answers.items.ids
    tasks = np.full(answers.n_rows, -1) if answers.task is None else answers.task
    alone, joint = Counter(), {}
    for user, left, right, outcome, weight, task in zip(
        answers.user, answers.left, answers.right, answers.outcome, answers.weight, tasks, strict=True
    ):
        row = (users[user], items[left], items[right], int(outcome), float(weight))
        if task < 0:
            alone[row] += 1
        else:
            joint.setdefault(int(task), []).append(row)
    return alone, Counter(frozenset(one) for one in joint.values())


@pytest.fixture(scope="module", params=[(), ("Useful", "Cheap, or not=")], ids=["of one criterion", "of two criteria"])
def criteria(request):
    return request.param


@pytest.fixture(
    scope="module",
    params=[("pair", True, True), ("pair", True, False), ("pair", False, False), ("best", False, True),
            ("best-worst", False, True), ("best-worst", False, False), ("order", False, True)],
    ids=str,
)  # fmt: skip
def exported(request, criteria, tmp_path_factory):
    """A poll of a kind, with ties or not and skips or not, and its answers as they are exported."""
    kind, ties, skips = request.param
    with made(tmp_path_factory.mktemp("poll"), NASTY, **of_kind(kind), criteria=criteria) as poll:
        answered(poll, skips=skips, ties=ties)
        yield poll, poll.export("answers"), skips


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_an_export_is_read_as_the_model_of_the_poll_has_it(exported, criteria, tmp_path, form):
    poll, table, skips = exported
    file = tmp_path / f"answers.{form}"
    file.write_bytes(written(table, form))
    state = poll.log.state
    for criterion, name in enumerate(poll.settings.boards):
        reading = {"criterion": name} if criteria else {}
        read = predilect.read(file, reading=reading)
        own = comparisons(state, standing(state.changes, criterion))
        assert rows_of(read) == rows_of(own)
        assert (read.joint, read.has_ties) == (own.joint, own.has_ties)
        assert (read.sides is None) == (own.sides is None)
        left_out = {"not answered": len(PEOPLE)} if skips else {}
        left_out |= {"of another criterion": len(table) // 2} if criteria else {}
        assert read.intake.left_out == left_out
        assert read.intake.rows_read == len(table)
    if criteria:
        with pytest.raises(DataError, match=r'2 criteria .* Choose it: reading={"criterion": "Cheap, or not="}'):
            predilect.read(file)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["board", "random"])
@pytest.mark.parametrize("kind", ["pair", "best", "best-worst", "order"])
def test_the_board_of_the_export_is_that_of_the_poll(tmp_path, kind, strategy):
    with made(tmp_path, **of_kind(kind), strategy=strategy) as poll:
        answered(poll, skips=True, ties=kind == "pair", n=5)
        file = tmp_path / "answers.csv"
        file.write_bytes(written(poll.export("answers"), "csv"))
        state = poll.log.state
        model = estimator("population")(ties=kind == "pair", n_jobs=1).fit(predilect.read(file), items=keys_of(state))
        one, other = (pl.DataFrame(each.rank()).sort("item") for each in (model, fitted(state, 0)))
        assert np.allclose(one["mean"], other["mean"], rtol=0, atol=EXACT)
        assert one["n"].to_list() == other["n"].to_list()


@pytest.mark.parametrize("kind", ["pair", "best", "best-worst", "order"])
def test_the_columns_may_stand_in_any_order_beside_others(tmp_path, kind):
    with made(tmp_path, NASTY, **of_kind(kind)) as poll:
        answered(poll, skips=True, ties=kind == "pair")
        table = poll.export("answers").with_columns(group=pl.lit("x"), price=pl.lit(1.0))
        own = comparisons(poll.log.state, standing(poll.log.state.changes, 0))
    names = table.columns
    for order in (names, names[::-1], random.Random(1).sample(names, len(names))):
        assert rows_of(predilect.Comparisons.from_frame(table.select(order))) == rows_of(own)


def test_whoever_says_something_else_of_the_columns_has_them_read_so(tmp_path):
    with made(tmp_path) as poll:
        answered(poll, skips=True, ties=True)
        table = poll.export("answers").with_columns(other=pl.lit("left"))
        read = predilect.Comparisons.from_frame(table, columns={"answer": "other"})
        assert read.intake.left_wins == len(table)
        tied = predilect.Comparisons.from_frame(table, reading={"tie": "skip"})
        assert tied.intake.ties_by_word == {"tie": 6.0, "skip": 6.0}


def test_a_criterion_of_any_table_is_asked_about():
    table = {
        "judge": ["a", "b", "a", "b"], "left": ["tea"] * 4, "right": ["milk"] * 4,
        "winner": ["left", "left", "right", "right"], "criterion": ["taste", "taste", "price", "price"],
    }  # fmt: skip
    with pytest.raises(DataError, match="2 criteria"):
        predilect.Comparisons.from_frame(table)
    read = predilect.Comparisons.from_frame(table, reading={"criterion": "price"})
    assert (read.intake.right_wins, read.intake.left_out) == (2.0, {"of another criterion": 2})
    assert read.reading.example == "Row 3: a prefers milk to tea."
    assert read.reading.columns["criterion"] == ("criterion",)
    with pytest.raises(DataError, match=r'holds no "prize"; it holds price, taste. Did you mean "price"'):
        predilect.Comparisons.from_frame(table, reading={"criterion": "prize"})
    with pytest.raises(DataError, match="Rows are counted without those of another criterion"):
        predilect.Comparisons.from_frame(table | {"winner": ["left", "left", "?", "right"]},
                                         reading={"criterion": "price"})  # fmt: skip
    # As contexts they are pooled, since that was said.
    assert predilect.Comparisons.from_frame(table, columns={"context": "criterion"}).n_answers == 4.0
    alone = table | {"criterion": ["taste"] * 4}
    assert predilect.Comparisons.from_frame(alone).n_answers == 4.0


def test_the_command_reads_and_asks(tmp_path):
    with made(tmp_path, criteria=["Useful", "Cheap"]) as poll:
        answered(poll, skips=True, ties=True)
    out = tmp_path / "answers.csv"
    assert run("poll", "export", tmp_path / "poll.db", "answers", "-o", out).exit_code == 0
    told = run("check", out)
    assert told.exit_code == 2
    assert "--read criterion=Cheap" in told.stderr
    chosen = run("check", out, "--read", "criterion=Cheap")
    assert chosen.exit_code == 0, chosen.output
    assert "30 answers, 5 items, 6 people" in chosen.output


@pytest.mark.slow
def test_the_command_ranks_each_criterion(tmp_path):
    with made(tmp_path, criteria=["Useful", "Cheap"]) as poll:
        answered(poll, skips=True, ties=True)
        first = pl.DataFrame(fitted(poll.log.state, 0).rank())["item"][0]
    out = tmp_path / "answers.csv"
    run("poll", "export", tmp_path / "poll.db", "answers", "-o", out)
    told = run("rank", out, "--by", "criterion", "-o", tmp_path / "results")
    assert told.exit_code == 0, told.output
    told = run("rank", out, "--read", "criterion=Useful", "-o", tmp_path / "useful")
    assert told.exit_code == 0, told.output
    assert pl.read_csv(tmp_path / "useful" / "leaderboard.csv")["item"][0] == first
