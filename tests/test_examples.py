"""``python -m predilect.examples``: files to try things with, and what they are."""

from __future__ import annotations

import polars as pl
import pytest

from predilect import read
from predilect.examples import FILES, copy_into
from predilect.examples.__main__ import main

READ = {
    "votes.csv": "Read: pairs; who=judge, left=model_a, right=model_b, answer=winner",
    "survey.csv": "Read: pairs; who=person, left=left, right=right, answer=winner",
    "choices.csv": "Read: 1000 choices of the best of 4; who=person, task=task, answer=chosen, profile=price,milk",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("examples")
    assert copy_into(place) == dict.fromkeys(FILES, True)
    return place


@pytest.mark.parametrize("name", READ)
def test_each_file_is_read_without_an_option(folder, name):
    assert str(read(folder / name).reading).startswith(READ[name])


def test_the_votes_are_those_of_the_bundled_texts(folder):
    votes = pl.read_csv(folder / "votes.csv")
    assert votes.columns == ["judge", "model_a", "model_b", "winner", "words_a", "words_b"]
    assert votes.shape == (8931, 6)
    assert votes["judge"].n_unique() == 124
    assert len({*votes["model_a"], *votes["model_b"]}) == 59
    assert set(votes["winner"]) == {"model_a", "model_b", "tie"}
    assert votes["words_a"].is_between(0, 12).all()


def test_market_has_items_with_the_attributes_of_the_choices(folder):
    attributes = read(folder / "choices.csv").item_table.columns
    assert set(attributes) - {"item"} < set(pl.read_csv(folder / "market.csv").columns)


def test_a_file_that_is_there_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "votes.csv").write_text("mine")
    main(str(tmp_path))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "votes.csv: is there already, and was left as it is."
    assert [line.split(":")[0] for line in told] == list(FILES)
    assert (tmp_path / "votes.csv").read_text() == "mine"
    assert all((tmp_path / name).stat().st_size > 100 for name in list(FILES)[1:])
    with pytest.raises(SystemExit, match="There is no folder"):
        main(str(tmp_path / "nowhere"))
