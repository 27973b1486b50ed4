"""What a fitted model shows of itself: its text, its board in a notebook, its report."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from sklearn.base import clone

from drawings import Page
from predilect import GPPL, Population
from predilect.errors import DataError, NotFittedError, OutputError
from predilect.evaluation import judge
from simulate import comparisons
from simulate_camps import FIXED, camps


@pytest.fixture(scope="module")
def model():
    return Population(**FIXED).fit(comparisons(camps(0, delta=0.4)))


def test_the_text_of_a_fitted_model_says_what_was_fitted(model):
    assert repr(model) == "Population(40 people, 6 items, 480 answers)"
    table = {"left": ["tea"], "right": ["milk"], "winner": ["tea"], "weight": [8931]}
    pooled = Population(personal=False, **FIXED).fit(table)
    assert repr(pooled) == "Population(2 items, 8 931 answers)"
    one = GPPL().fit({"left": ["tea"], "right": ["milk"], "winner": ["tea"]})
    assert repr(one) == "GPPL(2 items, 1 answer)"
    assert str(model) == repr(model)


def test_people_who_came_later_are_counted(model):
    later = clone(model).fit(comparisons(camps(0)))
    later.update(user=99, left=0, right=1, outcome=1)
    assert repr(later) == "Population(41 people, 6 items, 481 answers)"


def test_unfitted_it_shows_what_is_not_the_default_and_is_cloned(model):
    fresh = Population(personal=False)
    assert repr(fresh) == "Population(personal=False)"
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert repr(again).startswith("Population(calibration=None")
    assert again._repr_html_() is None


@pytest.mark.slow
def test_a_notebook_shows_the_board_and_the_verdict(model):
    html = model._repr_html_()
    read = Page(html)
    assert "Population(40 people, 6 items, 480 answers)" in read.text
    assert len(read.all("svg")) == 1
    assert "No verdict yet" in read.text
    judged = clone(model).fit(comparisons(camps(0, delta=0.4)))
    judged._keep_verdict(judge(Population(**FIXED), comparisons(camps(0, delta=0.4)), n_folds=2))
    told = Page(judged._repr_html_()).text
    assert judged.verdict_.sentences[0].split(":")[0] in told
    assert "No verdict yet" not in told


@pytest.mark.slow
def test_the_report_is_one_file_that_is_replaced_only_when_that_is_said(model, tmp_path):
    path = tmp_path / "board.html"
    assert model.report(path, title="Tea or milk") is None
    first = Page(path.read_text(encoding="utf-8"))
    assert "Tea or milk" in first.text
    with pytest.raises(DataError, match=r"board.html exists already. .* replace it with overwrite=True"):
        model.report(path)
    model.report(str(path), scale="elo", overwrite=True, compare=model)
    text = Page(path.read_text(encoding="utf-8")).text
    assert "Elo points" in text
    assert "of 6 items in both, the scores of none of them differ by more than chance" in text
    assert [one.name for one in tmp_path.iterdir()] == ["board.html"]


@pytest.mark.slow
def test_what_cannot_be_written_is_said(model, tmp_path):
    with pytest.raises(DataError, match=r"is a folder, and the report needs a file. Give another name with path"):
        model.report(tmp_path)
    with pytest.raises(DataError, match=r"does not exist. Make it, or change path"):
        model.report(tmp_path / "nowhere" / "board.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file and not a folder"):
        model.report(tmp_path / "file" / "board.html")
    with pytest.raises(DataError, match=r"scale must be one of 'probit', 'logit', .*, not 'points'"):
        model.report(tmp_path / "board.html", scale="points")
    with pytest.raises(NotFittedError):
        Population().report(tmp_path / "board.html")
    with pytest.raises(OutputError, match="could not be written"):
        model.report("/proc/board.html")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_verdict_shows_its_sentences_escaped(model):
    verdict = judge(Population(**FIXED), comparisons(camps(0, delta=0.4)), n_folds=2)

    class Text(HTMLParser):
        said = ""

        def handle_data(self, data: str) -> None:
            self.said += data

    read = Text()
    read.feed(verdict._repr_html_())
    assert all(sentence in read.said for sentence in verdict.sentences)
