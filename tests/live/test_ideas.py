"""Items on the way: renamed, described, merged and parted, what is alike; answers stay, whatever they are called."""

from __future__ import annotations

import html
import random

import numpy as np
import pytest

from live.polls import DRINKS, answered, made, of_kind
from live.served import browser, fields, joined, served
from predilect.errors import DataError
from predilect.live import Poll
from predilect.live.given import Refused, alike
from predilect.live.settings import Kind
from predilect.live.state import Item
from predilect.models import Population
from tolerances import ITERATIVE

KINDS = Kind.__args__
PEOPLE = [f"u{k}" for k in range(5)]


def means(poll):
    return dict(poll.board().select("item", "mean").iter_rows())


def by_number(poll):
    numbers = {item.name: item.number for item in poll.items}
    return {numbers[name]: mean for name, mean in means(poll).items()}


def same(one, other):
    assert one.keys() == other.keys()
    np.testing.assert_allclose([one[k] for k in one], [other[k] for k in one], rtol=0, atol=ITERATIVE)


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_renamed_item_keeps_its_answers_and_its_old_name_is_free(tmp_path, is_fitted):
    with made(tmp_path, strategy="board", own_ranking=1) as poll:
        answered(poll, PEOPLE, 3)
        if is_fitted:
            poll.refit()
        before = by_number(poll)
        poll.edit_item("tea", name="<b>green</b>  tea")
        same(by_number(poll), before)
        (new,) = poll.add_items(["tea"])
        answered(poll, PEOPLE, 2)
        assert poll.outlook().items == (poll.board()["item"][0],)
        assert "<b>green</b> tea" in {item.name for one in poll.ask("new", 3) for item in one.items} | set(means(poll))
        assert set(means(poll)) == {"<b>green</b> tea", *DRINKS}
        assert set(poll.mine("u1")["item"]) == set(means(poll))
        with Poll.open(tmp_path / "poll.db", background=False) as other:  # an old model, and a log that is read again
            same(means(other), means(poll))
            assert [item.key for item in other.items] == [item.key for item in poll.items]
            assert other.items[new - 1].key != "tea"
        rows = poll.export("answers")
        assert {"<b>green</b> tea", "tea"} <= {*rows["left"], *rows["right"]}
        assert "&lt;b&gt;green" in whole_report(poll)
        with pytest.raises(Refused, match="there already"):
            poll.edit_item("milk", name="tea")
        for wrong in ({"name": " "}, {"link": "javascript:alert(1)"}, {"image": "x"}, {"colour": "red"}):
            with pytest.raises(DataError):
                poll.edit_item("milk", **wrong)


def whole_report(poll):
    from predilect.show.report.page import page

    return page(poll.contents())


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_the_merged_count_for_one_and_are_parted_again(tmp_path, kind):
    with made(tmp_path, **of_kind(kind)) as poll:
        poll._source = random.Random(1)
        answered(poll, PEOPLE, 6)
        poll.refit()
        before, n = means(poll), len(poll.export("answers"))
        poll.merge_items("milk", "cola")
        poll.merge_items("milk", "cola")  # as it is
        merged = means(poll)
        assert set(merged) == set(DRINKS) - {"milk"}
        rows = poll.export("answers")
        assert "milk" not in {name for column in rows.get_columns() for name in column.to_list()}
        fresh = Population(n_jobs=1, ties=kind == "pair").fit(read_again(rows, tmp_path), items=DRINKS)
        if kind == "pair":
            assert fresh.n_answers_ == len(rows) < n  # the question about both says nothing
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            same(means(other), merged)
            assert other.log.state.n_answers == poll.log.state.n_answers == [len(rows)]
        answered(poll, ["new"], 1)
        last = [poll.own("new")["answers"][-1]]
        assert "milk" not in last[0]["shown"]
        poll.undo("new")
        poll.part_item("milk")
        same(means(poll), before)
        assert len(poll.export("answers")) == n
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            same(means(other), before)
            assert not other.left_out()


def read_again(rows, folder):
    import predilect

    rows.write_csv(folder / "answers.csv")
    return predilect.read(folder / "answers.csv")


def test_merges_in_a_row_and_what_cannot_be_merged(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        answered(poll, PEOPLE, 3)
        poll.merge_items(poll.propose_item("u1", "kola"), "cola")
        with pytest.raises(Refused, match='asks about "cola" already'):
            poll.propose_item("u2", "Kola!")
        poll.merge_items("tea", "milk")
        poll.merge_items("milk", "juice")
        assert poll.log.state.root(1) == 3
        assert set(means(poll)) == {"juice", "water", "cola"}
        with pytest.raises(Refused, match="merged into another"):
            poll.merge_items("tea", "cola")
        for item, into in (("juice", "juice"), ("juice", "tea"), ("water", "nothing")):
            with pytest.raises(Refused):
                poll.merge_items(item, into)
        with pytest.raises(Refused, match="Part them first"):
            poll.moderate("tea", accept=True)
        poll.merge_items("water", "juice")
        with pytest.raises(Refused, match="no more are left"):
            poll.merge_items("cola", "juice")
        poll.part_item("milk")
        assert poll.log.state.root(1) == 2
        poll.part_item("milk")  # as it is


def test_the_text_of_a_proposal_goes_with_its_author_however_it_was_mended(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        answered(poll, ["ann", "bob"], 2)
        number = poll.propose_item("ann", "an insullt about the mayor")
        poll.edit_item(number, name="an insult about the mayor", description="of *Babel*")
        poll.merge_items(number, "tea")
        poll.erase("ann")
        poll.log.refresh()
        item = poll.items[number - 1]
        assert (item.state, item.was, item.description) == ("merged", "refused", "")
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert [(one.name, one.state, one.was, one.key) for one in other.items] == [
                (one.name, one.state, one.was, one.key) for one in poll.items
            ]
            assert other.left_out() == []
    content = b"".join(file.read_bytes() for file in tmp_path.glob("poll.db*"))
    for word in (b"insullt", b"insult about", b"Babel"):
        assert word not in content


def test_what_is_alike():
    items = [Item(k, name) for k, name in enumerate(
        ["More buses after ten", "Free Wi-Fi for all", "A library that is open on Sundays", "Trees in every street",
         "Bäume in jeder Straße", "Less noise at night"], 1)]  # fmt: skip
    for text, number in (
        ("more busses after 10", 1), ("after ten more buses", 1), ("free wifi for everybody", 2),
        ("Free WiFi for all", 2), ("library open sundays", 3), ("Baume in jeder Strasse", 5),
        ("trees in each street", 4), ("less night noise", 6),
    ):  # fmt: skip
        assert [item.number for item in alike(text, items)][:1] == [number], text
    for text in ("A new swimming pool", "Cheaper tickets", "", "!?", "Benches in the park"):
        assert alike(text, items) == [], text


def test_whoever_proposes_sees_what_is_alike_first_and_organisers_too(tmp_path):
    with made(
        tmp_path, ["More buses after ten", "Trees in every street", "<i>x</i>"], name="x", proposals=True
    ) as poll:
        token = poll.token
    with served(str(tmp_path / "poll.db")) as (address, host):
        client = joined(address, "x")
        form = fields(client.get("/p/x").text, "/propose")
        page = client.post("/p/x/propose", data=form | {"text": "<b>more</b> busses after ten"}).text
        assert "More buses after ten" in page
        assert "&lt;b&gt;more" in page
        assert "<b>more" not in page
        assert len(host.poll("x").items) == 3
        sent = {name: html.unescape(value) for name, value in fields(page, "/propose").items()}
        assert "Thank you" in client.post("/p/x/propose", data=sent).text
        assert [item.name for item in host.poll("x").items][3:] == ["<b>more</b> busses after ten"]
        (cookie, *_) = (one.value for one in client.cookies.jar if one.name == "participant-x")
        secret = {"authorization": f"Bearer {cookie}"}
        found = client.get("/api/polls/x/alike", params={"text": "tree in every street"}, headers=secret).json()
        assert [one["name"] for one in found] == ["Trees in every street"]
        ruler = browser(address)
        ruler.post("/o/x/sign-in", data={"token": token})
        page = ruler.get("/o/x/items").text
        assert "Merge into it" in page[: page.index("<table")]
        form = fields(page, "/items/4")
        ruler.post("/o/x/items/4", data=form | {"what": "merge", "number": "1"})
        assert host.poll("x").items[3].into == 1
        page = ruler.post("/o/x/items/2", data=form | {"what": "change", "name": "<i>x</i>"}).text
        assert "is there already" in page
        assert "<i>x" not in page
        page = ruler.post("/o/x/items/2", data=form | {"what": "merge", "into": "nothing"}).text
        assert "has no item" in page
        mended = {"name": "Trees & shrubs", "description": "A *lot*.\n<script>x</script>", "link": "https://a.example"}
        ruler.post("/o/x/items/2", data=form | {"what": "change"} | mended)
        asked = {}
        while "Trees &amp; shrubs" not in (page := client.get("/p/x").text) and (asked := fields(page, "/answer")):
            client.post("/p/x/answer", data=asked | {"answer": "left"})
        assert "<em>lot</em>" in page
        assert "<script>x" not in page
        assert 'href="https://a.example"' in page
        assert ruler.post("/o/x/items/2", data=form | {"what": "nothing"}).status_code == 400
        assert ruler.get("/o/x/items/99").status_code == 404
