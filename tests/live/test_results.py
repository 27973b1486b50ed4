"""Results that people read: shares of duels, what may be first, one's own beside everybody's, room, picture, code."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from live.polls import answered, made
from live.served import browser, fields, joined, served
from predilect.decisions.versus import chances_of_no_side, duels
from predilect.live.web.results import first_of
from predilect.models import Population

ITEMS = ["tea", "<i>milk</i>", "juice", "water", "cola"]
PEOPLE = [f"u{k}" for k in range(6)]


def test_a_share_of_duels_is_the_mean_chance_and_moves_with_the_interval(tmp_path):
    with made(tmp_path) as poll:
        answered(poll, PEOPLE, 5)
        board = poll.board()
        model = poll.belief().catch_up()
        assert (
            board["duel_share"].diff().drop_nulls().max() < 0.02
        )  # people differ more on some, so order and share may, too
        for row in board.to_dicts():
            others = [name for name in board["item"] if name != row["item"]]
            chance = chances_of_no_side(model, [row["item"]] * len(others), others)
            assert row["duel_share"] == pytest.approx(np.mean(chance[:, 0] + 0.5 * chance[:, 1]))
            assert 0.0 < row["duel_share_low"] < row["duel_share"] < row["duel_share_high"] < 1.0
        assert board["duel_share"].mean() == pytest.approx(0.5)


def test_two_items_share_their_duels():
    model = Population(n_jobs=1, personal=False).fit(
        {"left": ["a"] * 9, "right": ["b"] * 9, "winner": ["a"] * 7 + ["b"] * 2}
    )
    board = model.rank()
    lower, upper = (np.asarray(board[name]) for name in ("lower", "upper"))
    first, second = duels(model, list(board["item"]), lower, upper)
    np.testing.assert_allclose(first, 1.0 - second[[0, 2, 1]], atol=1e-12)
    assert duels(model, ["a"], lower[:1], upper[:1]).tolist() == [[0.5, 0.0, 1.0]]


def test_what_may_be_first():
    rows = [{"item": name, "p_best": p} for name, p in (("a", 0.7), ("b", 0.26), ("c", 0.03), ("d", 0.01))]
    assert first_of(rows, 0.6) == ["a"]
    assert first_of(rows, 0.95) == ["a", "b"]
    assert first_of(rows, 0.999) == ["a", "b", "c", "d"]
    assert first_of([{"item": str(k), "p_best": 0.1} for k in range(10)], 0.95) == []
    assert first_of([], 0.95) == []


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder, tokens = tmp_path_factory.mktemp("results"), {}
    for name in ("shown", "hidden"):
        with made(folder / f"{name}.db", ITEMS, name=name, public=name == "shown", own_ranking=2) as poll:
            tokens[name] = poll.token
            answered(poll, PEOPLE, 5)
    with served(str(folder)) as (address, host):
        yield address, host, tokens


def answer(client, name, n):
    for _ in range(n):
        client.post(f"/p/{name}/answer", data=fields(client.get(f"/p/{name}").text, "/answer") | {"answer": "left"})


def test_results_are_bars_with_ones_own_beside(place):
    address, _, _ = place
    client = joined(address, "shown")
    page = client.get("/p/shown/results").text
    assert len(re.findall(r"wins [\d&gt;&lt; ]+\u00a0% of its duels", page)) == 5
    assert page.count("you: place") == 0
    assert f'property="og:url" content="{address}/p/shown/results?criterion=0"' in page
    assert "&lt;i&gt;milk" in page
    assert "<i>milk" not in page
    assert re.search(r"First place is|In first place", page)
    assert page.index("<details") < page.index('<table class="board"')  # one click further
    answer(client, "shown", 2)
    assert client.get("/p/shown/results").text.count("you: place") == 5
    own = client.get("/p/shown/mine").text
    assert own.count("all: place") == 5
    assert "you would choose it in" in own
    other = joined(address, "hidden")
    answer(other, "hidden", 2)
    own = other.get("/p/hidden/mine").text
    assert "all: place" not in own
    assert "you would choose it in" in own


@pytest.mark.slow
def test_the_room_the_picture_and_the_code(place):
    address, _, tokens = place
    anybody = browser(address)
    room = anybody.get("/p/shown/room").text
    assert f"{address.removeprefix('http://')}/p/shown" in room
    assert 'id="live"' in room
    drawn = anybody.get("/p/shown/results.svg")
    assert drawn.headers["content-type"] == "image/svg+xml"
    said = "".join(ElementTree.fromstring(drawn.text).itertext())
    assert "Which drink?" in said
    assert "<i>milk</i>" in said
    assert re.search(r"\d+ answers of \d+ people", said)
    code = ElementTree.fromstring(anybody.get("/p/shown/qr.svg").text)
    assert code.tag.endswith("svg")
    assert anybody.get("/p/shown/results.gif").status_code == 404
    picture = anybody.get("/p/shown/results.png")
    assert picture.status_code == 404 or picture.content[:4] == b"\x89PNG"
    for path in ("results", "room", "results.svg"):
        assert anybody.get(f"/p/hidden/{path}").status_code == 403
        if path != "results":
            assert anybody.get(f"/o/hidden/{path}").status_code == 403
    anybody.post("/o/hidden/sign-in", data={"token": tokens["hidden"]})
    assert "answers of" in anybody.get("/o/hidden/room").text
    assert anybody.get("/o/hidden/results.svg").status_code == 200
