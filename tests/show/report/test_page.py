"""The report: a page that is sound, says what the board says, and asks nothing of any other place."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from drawings import WILD, Page
from predilect import Comparisons, GaSPK, Population, load, plot
from predilect._base.text import one_line
from predilect.data import PersonFeatures
from predilect.decisions.scales import SCALES
from predilect.errors import ConvergenceWarning, DataError
from predilect.evaluation.metrics import Reliability
from predilect.evaluation.verdict import Contest, Verdict, judged, not_judged
from predilect.show.charts.chart import name_of
from predilect.show.charts.facts import PairShares
from predilect.show.report.changes import changes_between
from predilect.show.report.page import page
from predilect.show.report.parts import Table
from predilect.show.report.sections import MOST_LISTED, board_in_short, contents_of, needy, sentences
from predilect.show.report.text import document, markdown, terminal
from simulate import comparisons, random_pairs
from simulate_camps import FIXED, camps

SETTINGS = {"n_folds": 5, "max_people": 2000, "n_bootstrap": 2000, "random_state": 0}


def verdict_of(outcome: str = "better", gain: float = 0.05) -> Verdict:
    contest = Contest(
        "personal", outcome, "", log_loss=0.4, baseline_log_loss=0.4 + gain, accuracy=0.7, baseline_accuracy=0.6,
        gain=gain, lower=gain - 0.02, upper=gain + 0.02, n_people=40, n_answers=480.0, n_folds=5,
    )  # fmt: skip
    shares = (Reliability(0.25, 0.3, 0.2, 0.4, 100.0), Reliability(0.75, 0.7, 0.6, 0.8, 100.0))
    return Verdict(judged(contest, 40, 40), None, None, SETTINGS, 40, 40, reliability=shares)


@pytest.fixture(scope="module")
def model():
    return Population(**FIXED).fit(comparisons(camps(0, delta=0.4)))


@pytest.fixture(scope="module")
def wild():
    """Items, people, segments and covariates with names that would break a careless page."""
    rng = np.random.default_rng(2)
    n, n_items = 600, len(WILD)
    left, right = random_pairs(rng, n, n_items)
    user = rng.integers(len(WILD), size=n)
    names = np.array(WILD, dtype=object)
    z = (left - right) / 4.0 + rng.standard_normal(n)
    table = {
        "user": names[user].tolist(), "left": names[left].tolist(), "right": names[right].tolist(),
        "winner": np.where(z > 0, names[left], names[right]).tolist(), "<i>length": rng.standard_normal(n).tolist(),
    }  # fmt: skip
    people = {"user": WILD, "party": [WILD[k % 2] for k in range(len(WILD))]}
    found = Comparisons.from_frame(table, columns={"covariates": ["<i>length"]})
    return Population(**FIXED).fit(found, people=PersonFeatures.from_frame(people, segments="party"))


def sound(text: str) -> Page:
    """The page read back; what every page promises is checked on the way."""
    read = Page(text)
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for name, attributes in read.elements:
        assert name not in ("img", "link", "iframe", "object", "embed", "base", "form")
        assert not {key for key in attributes if key.startswith("on")} | ({"src"} & set(attributes))
        if "href" in attributes:
            assert attributes["href"].removeprefix("#") in ids
        assert attributes.get("aria-labelledby", ids[0]) in ids
    assert not re.search(r"url\(|@import|http(?!://www\.w3\.org/2000/svg|-equiv)", text)
    heads = [int(name[1]) for name, _ in read.elements if re.fullmatch(r"h[1-6]", name)]
    assert heads[0] == 1
    assert heads.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(heads))
    assert [name for name, _ in read.elements if name in ("header", "nav", "main", "footer")] == [
        "header", "nav", "main", "footer",
    ]  # fmt: skip
    assert len(read.all("caption")) == len(read.all("table"))
    assert all(one.get("scope") in ("row", "col") for one in read.all("th"))
    assert len(read.all("script")) == 1
    assert read.all("html")[0]["lang"] == "en"
    return read


@pytest.mark.slow
def test_the_page_is_sound_and_says_what_the_board_says(model):
    told = contents_of(model, title="Tea & <milk>")
    read = sound(page(told))
    board = pl.DataFrame(model.rank())
    assert "Tea & <milk>" in read.text
    for row in board.iter_rows(named=True):
        said = f"{row['rank']} {row['rank_low']}–{row['rank_high']} {row['item']} {row['mean'] + 0.0:.2f}"
        assert said.replace(" ", "") in read.text.replace(" ", "")
    assert "480 answers of 40 people" in read.text
    # Board, pairs expected and observed, ranks, people; some are drawn anew for a phone.
    assert len({one["aria-label"] for one in read.all("svg")}) == 5


@pytest.mark.slow
def test_columns_that_a_phone_has_no_room_for_are_said_below_the_name(model):
    text = page(contents_of(model))
    hidden = [int(n) for n in re.findall(r":nth-child\((\d)\)", text.split("</style>")[0])]
    assert len(hidden) == 4
    board = re.search(r'<table class="board sortable">.*?</table>', text)[0]
    rows = [re.findall(r"<t[dh]([^>]*)>(.*?)</t[dh]>", row) for row in board.split("<tr")[2:]]
    assert len(rows) == 6
    for cells in rows:
        more = re.search('data-more="(.*)"', cells[2][0])[1]
        for n in hidden:
            assert cells[n - 1][1] in more
        assert 'scope="row"' in cells[2][0]  # the name is always there


def test_names_that_would_break_a_page_are_shown_as_they_are(wild):
    wild.verdict_ = verdict_of()
    text = page(contents_of(wild, title=WILD[0], warnings=[WILD[1]], returned=WILD[2], made={WILD[3]: WILD[0]}))
    wild.verdict_ = None
    read = sound(text)
    assert {"segments", "effects", "people"} <= {one.get("id") for one in read.all("section")}
    for name in WILD:
        whole = name_of(name)
        titles = {one.get("title") for one in read.all("bdi")}
        assert whole in read.text or whole in titles
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    assert "alert" not in text.split("<script>")[-1]
    assert "\u2068مرحبا بالعالم\u2069" in text  # a name from right to left leaves the sentence around it alone


def people_of_all_kinds() -> tuple[pl.DataFrame, list[str], PersonFeatures]:
    """Answers by people of whom each kind of sentence is about some, and their ids, which occur nowhere else.

    One gave a single answer, one most of all, one answers at random, one gave none that counts; one has no features.
    """
    rng, rows, ids = np.random.default_rng(8), [], [f"qzkv{k:03d}@x.org" for k in range(30)]
    worth = rng.normal(0.0, 2.0, 6)
    for k, who in enumerate(ids[:29]):
        for _ in range({0: 1, 1: 600, 2: 80}.get(k, 12)):
            a, b = rng.choice(6, 2, replace=False).tolist()
            z = rng.standard_normal() * (20.0 if k == 2 else 0.5) + worth[a] - worth[b]
            rows.append((who, f"item {a}", f"item {b}", f"item {a if z > 0 else b}"))
    rows.append((ids[29], "item 0", None, "item 0"))
    table = pl.DataFrame(rows, schema=["user", "left", "right", "winner"], orient="row")
    party = ["north", "south"] * 14 + ["south", None]
    return table, ids, PersonFeatures.from_frame({"user": ids, "party": party}, segments="party")


CAUSES = {
    "gave one answer": "qzkv000",
    "can dominate": "qzkv001",
    "usual noise": "qzkv002",
    "No usable answer": "qzkv029",
}


@pytest.mark.slow
def test_nobody_is_named_in_a_page_unless_asked_for(tmp_path):
    table, ids, people = people_of_all_kinds()
    settings = FIXED | {"consistency": 1.0}
    model = Population(**settings).fit(table, people=people, reading={"drop": "missing"})
    model.report(tmp_path / "board.html")
    text = (tmp_path / "board.html").read_text(encoding="utf-8")
    said = sound(text).text
    assert all(cause in said for cause in CAUSES)  # each is there, and about somebody
    assert {"segments", "people"} <= {one.get("id") for one in Page(text).all("section")}
    assert [one for one in ids if one in text or one[:7] in text] == []  # neither in a picture, nor in a script
    assert "1 person gave the fewest answers (1 each). Ask them next" in said
    assert "People: 29, not named here" in " ".join(said.split())
    model.report(tmp_path / "named.html", name_people=True)
    named = (tmp_path / "named.html").read_text(encoding="utf-8")
    assert all(who in sound(named).text for who in CAUSES.values())
    assert f"1 person gave the fewest answers (1 each): {ids[0]}. Ask them next" in sound(named).text
    assert "not named" not in named
    assert "qzkv" not in model._repr_html_()


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (None, "was not judged on held-out answers"),
        (verdict_of(), "differ in taste, and rankings of their own predict them better than the crowd's "
         "(knowing who answers makes the given answer 5.1 % likelier, 95 % interval 3.0 to 7.3 %)"),
        (verdict_of("nothing", -0.01), "One ranking serves all: rankings of people's own predict held-out answers no "
         "better (knowing who answers makes the given answer 1.0 % less likely, 95 % interval -1.0 to 3.0 %)"),
        (verdict_of("worse", -0.05), "One ranking serves all: rankings of people's own predict held-out answers worse"),
        (Verdict(not_judged("personal", "too few"), None, None, SETTINGS, 2, 2), "could not be judged: too few."),
    ],
)  # fmt: skip
def test_five_sentences_go_by_the_verdict(model, verdict, said):
    lines = sentences(replace(contents_of(model), verdict=verdict))
    assert len(lines) == 5
    assert said in lines[3]


def test_sentences_give_the_boards_numbers(model):
    told = contents_of(model)
    board = told.board
    first, last_tier = board.row(0, named=True), board["tier"].max()
    lines = sentences(told)
    assert lines[0].startswith(f"{first['item']} leads 6 items")
    assert f"{100 * first['p_best']:.0f} %" in lines[0]
    assert f"{(board['tier'] == 1).sum()} items share the first tier" in lines[1]
    assert lines[1].endswith(f"there {'is 1 tier' if last_tier == 1 else f'are {last_tier} tiers'} in all.")
    p = model.predict_proba({"left": [board["item"][0]], "right": [board["item"][2]]})[0]
    for share in p:
        assert f"{100 * share:.0f} %" in lines[2]
    width = (board["rank_high"] - board["rank_low"]).to_list()
    assert f"least is known of {board['item'][width.index(max(width))]} " in lines[4]
    assert needy(board)[0].startswith(f"{board['item'][width.index(max(width))]} ")


def test_a_model_that_makes_nothing_of_segments_of_people_has_a_page_without():
    people = PersonFeatures.from_frame({"user": list(range(12)), "party": ["tea", "milk"] * 6}, segments="party")
    items = {"item": list(range(4)), "price": [0.0, 1.0, 2.0, 3.0]}
    rows = comparisons(camps(0, n_users=12, n_items=4))
    model = GaSPK(n_components=2).fit(rows, items=items, people=people)
    read = sound(page(contents_of(model)))
    assert "segments" not in {one.get("id") for one in read.all("section")}
    assert "further" in {one.get("id") for one in read.all("section")}
    assert all(name in read.text for name in ("characteristic 1", "evaluation", "probability of accepting"))
    with pytest.raises(DataError, match="knows no segments of people"):
        plot.segments(model)


@pytest.mark.slow
def test_attributes_are_left_out_for_many_people_and_that_is_said(monkeypatch):
    items = {"item": list(range(6)), "price": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
    fitted = Population(**FIXED, feature_weight=0.5, length_scale=1.0).fit(comparisons(camps(0)), items=items)
    assert "Part-worths, in units of the noise of one answer" in sound(page(contents_of(fitted))).text
    monkeypatch.setattr("predilect.show.report.sections.MOST_WITH_DRAWS", 39)
    read = sound(page(contents_of(fitted)))
    assert "Left out here for more than" in read.text
    assert "Part-worths" not in read.text


@pytest.mark.slow
def test_a_loaded_model_has_a_page_that_says_what_was_not_checked(model, tmp_path):
    model.save(tmp_path / "model")
    read = sound(page(contents_of(load(tmp_path / "model"))))
    assert "the model was loaded without its answers" in read.text
    assert "The same in the answers" not in read.text


@pytest.mark.slow
def test_what_does_not_converge_is_a_warning_on_the_page(model):
    short = Population(**{**FIXED, "max_iter": 1, "tol": 1e-12})
    with pytest.warns(ConvergenceWarning):
        short.fit(comparisons(camps(0)))
    assert "Warning: the fit did not converge in 5 iterations." in sound(page(contents_of(short))).text


def test_pooled_answers_to_one_question_have_a_page_on_any_scale(model):
    pooled = Population(personal=False, **FIXED).fit({"left": ["tea"], "right": ["milk"], "winner": ["tea"]})
    read = sound(page(contents_of(pooled, scale=SCALES["elo"])))
    assert "Elo points" in read.text
    assert "people" not in {one.get("id") for one in read.all("section")}


def board_of(n_items: int) -> pl.DataFrame:
    """A board with names of usual length."""
    mean = np.linspace(2.0, -2.0, n_items)
    rank = np.arange(1, n_items + 1)
    return pl.DataFrame({
        "item": [f"a language model of the year {2000 + k}" for k in range(n_items)], "mean": mean,
        "sd": np.full(n_items, 0.1), "lower": mean - 0.2, "upper": mean + 0.2, "rank": rank, "rank_low": rank,
        "rank_high": rank + 9, "p_best": np.where(rank == 1, 0.9, 0.0), "tier": 1 + np.arange(n_items) // 9,
        "n": rank, "win_share": 0.5 + mean / 8.0,
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "most"), [(200, 400_000), (1000, 1_500_000), (10_000, 1_500_000)])
def test_a_page_of_many_items_is_of_the_size_that_is_promised_and_says_what_is_left_out(
    model, monkeypatch, n_items, most
):
    told = replace(contents_of(model), board=board_of(n_items))
    n_drawn = 30  # as many as are ever drawn, each with numbers of two digits
    names = board_of(n_drawn)["item"].to_list()
    shares = np.full((n_drawn, n_drawn + 1), 0.55)
    pairs = PairShares(names, *np.full((3, n_drawn, n_drawn), 0.55))
    # The model knows none of these items.
    monkeypatch.setattr("predilect.show.report.sections.pairs_of", lambda *_: pairs)
    monkeypatch.setattr("predilect.show.report.sections.rank_shares", lambda *_: shares)
    monkeypatch.setattr("predilect.show.report.sections.chances_of_no_side", lambda *_: np.full((1, 3), 1 / 3))
    text = page(told)
    read = sound(text)
    assert len(text.encode()) <= most
    assert f"The best 60 of {n_items} items by score" in text
    assert len(read.all("bdi")) >= min(n_items, MOST_LISTED)
    left_out = "The first 1 000 are listed, 9 000 are left out here"
    assert (left_out in read.text) == (n_items == 10_000)


def test_markdown_has_the_board_and_the_verdict_and_names_cannot_break_it(wild):
    board = pl.DataFrame(wild.rank())
    text = markdown(board_in_short(board, SCALES["probit"], 5, verdict_of()))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 6  # with the head
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 9 for row in rows)
    assert f"... and {len(board) - 5} more items." in text
    assert "Personal rankings predict people better" in text
    everything = markdown(board_in_short(board, SCALES["probit"], len(board)))
    assert not re.search(r"(?<!\\)<(?!1 %)", everything)


def test_the_page_markdown_and_the_terminal_say_the_same_sections(wild, tmp_path):
    told = contents_of(wild, title="Tea & <milk>")
    found = document(told)
    assert found.startswith("# Tea \\& \\<milk\\>\n")
    assert re.findall(r"^## (.*)$", found, flags=re.MULTILINE) == [one.head for one in told.sections]
    read = sound(page(told)).text
    console = Console(width=100, file=io.StringIO())
    for one in told.sections:
        console.print(terminal(one, console.width))
    lines = console.file.getvalue()
    assert max(map(cell_len, lines.splitlines())) <= 100
    plain = re.sub(r"\\([^\w\s])", r"\1", found)
    for one in told.sections:
        for table in (part for part in one.parts if isinstance(part, Table)):
            assert all(name_of(table.caption) in " ".join(text.split()) for text in (read, lines))
            assert len(re.findall(rf"^\| {re.escape(table.columns[0].head)} \|", found, flags=re.MULTILINE)) >= 1
            for last in (cells[-1] for cells in table.rows if cells[-1]):
                assert f" {one_line(last)} |" in plain
    wild.report(tmp_path / "board.md", title="Tea & <milk>")
    date = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert date.sub("", (tmp_path / "board.md").read_text(encoding="utf-8")) == date.sub("", found)


# Changes


def test_a_model_against_itself_has_not_changed(model):
    found = changes_between(model, model, SCALES["elo"], "old")
    assert not found.table["more_than_chance"].any()
    assert (found.table["difference"] == 0.0).all()
    board = pl.DataFrame(model.rank())
    row = found.table.filter(pl.col("item") == board["item"][0]).row(0, named=True)
    assert abs(row["new_lower"] - SCALES["elo"].per_probit * board["lower"][0]) < 1e-9
    assert row["old_rank"] == row["new_rank"] == 1
    assert "the scores of none of them differ by more than chance" in found.sentence


def test_a_change_of_taste_is_found_and_items_that_come_and_go_are_named():
    def fitted(seed: int, taste: np.ndarray, names: list[str]) -> Population:
        rng = np.random.default_rng(seed)
        left, right = random_pairs(rng, 900, len(taste))
        z = taste[left] - taste[right] + rng.standard_normal(900)
        ids = np.array(names)
        table = {"left": ids[left], "right": ids[right]}
        return Population(personal=False, **FIXED).fit(table, np.where(z > 0, 1, -1))

    old = fitted(0, np.array([0.0, 0.5, 1.0, 1.5, 0.2]), ["a1", "b1", "c1", "d1", "gone"])
    new = fitted(1, np.array([1.5, 0.5, 1.0, 0.0, 0.2]), ["a1", "b1", "c1", "d1", "come"])
    found = changes_between(new, old, SCALES["probit"], "old")
    sure = found.table.filter(pl.col("more_than_chance"))
    assert set(sure["item"]) >= {"a1", "d1"}
    up = found.table.filter(pl.col("item") == "a1").row(0, named=True)
    assert up["lower"] > 1.0
    assert f"a1 {up['difference']:+.2f}" in found.sentence
    assert found.came == ["come"]
    assert found.went == ["gone"]
    read = sound(page(contents_of(new, changes=found)))
    assert "New items: come. Items that are gone: gone." in read.text.replace("  ", " ")
    other = fitted(2, np.array([0.0, 1.0]), ["x1", "y1"])
    with pytest.raises(DataError, match="0 items in common"):
        changes_between(new, other, SCALES["probit"], "old")


@pytest.mark.slow
def test_boards_of_two_kinds_of_models_are_not_compared(model):
    """Their scales differ: on the same answers, items of the pooled board would have changed more than chance."""
    pooled = Population(personal=False, **FIXED).fit(model.comparisons_)
    found = changes_between(model, pooled, SCALES["probit"], "old")
    assert found.table.is_empty()
    assert 'its model is "pooled" and this one "population"' in found.sentence
    assert "Rank both with the same personal=" in found.sentence
    read = sound(page(contents_of(model, changes=found)))
    assert "no scores are compared" in read.text
    assert "takes the two fits for independent" not in read.text


@pytest.mark.slow
def test_nothing_is_found_more_often_than_promised_where_the_old_answers_are_in_the_new():
    n_found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        left, right = random_pairs(rng, 600, 5)
        y = np.where(0.4 * (left - right) + rng.standard_normal(600) > 0, 1, -1)
        table = pl.DataFrame({"left": left, "right": right})
        old, new = (Population(personal=False, **FIXED).fit(table.head(n), y[:n]) for n in (300, 600))
        n_found += bool(changes_between(new, old, SCALES["probit"], "old").table["more_than_chance"].any())
    assert n_found <= 5  # of 30; at a rate of 5 % more than 5 come once in 100 times
