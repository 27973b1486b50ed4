"""The mistakes that newcomers made, in Python and with the command: each message names the cause and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import predilect
from cli.running import QUICK, run
from predilect import GPPL, Comparisons, Population
from predilect import read as read_file
from predilect._base.text import did_you_mean, either, near_miss, spoken_to
from predilect.data import ItemFeatures
from predilect.errors import ConvergenceError, DataError, DataWarning
from predilect.models import CompressedModel

ANSWERS = pd.DataFrame({
    "user": ["ann", "ann", "bob", "bob", "cas", "cas"],
    "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
    "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
    "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
})  # fmt: skip
PAIRS = ANSWERS[["user", "left", "right"]]
ONE = {"user": "ann", "left": "tea", "right": "milk"}
ODD = ANSWERS.set_axis(["guest", "one_thing", "other_thing", "better"], axis=1)


def winners(first, **more):
    return ANSWERS.assign(winner=[first, *ANSWERS["winner"][1:]], **more)


@pytest.fixture(scope="module")
def model():
    return Population().fit(ANSWERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Answers, and the results of ranking them."""
    place = tmp_path_factory.mktemp("mistakes")
    ANSWERS.to_csv(place / "votes.csv", index=False)
    PAIRS.to_csv(place / "pairs.csv", index=False)
    assert run("rank", place / "votes.csv", "--out", place / "results", *QUICK).exit_code == 0
    return place


IN_PYTHON = {
    "rank before fit": (lambda m: Population().rank(), "Call 'fit'"),
    "list of tuples": (lambda m: m.fit([("tea", "milk", "tea")]), 'holds pairs.*place 1.*columns with names.*"left"'),
    "array": (lambda m: m.fit(np.array([["tea", "milk"]])), "got ndarray. Give columns with names"),
    "unknown argument": (lambda m: Population(personel=True), 'no parameter "personel".*Did you mean "personal"?'),
    "a word for a flag": (lambda m: Population(personal="no").fit(ANSWERS), "True or False, not 'no'"),
    "unknown user": (lambda m: m.rank("zed"), '"zed".*such as "ann", "bob", "cas"'),
    "a missing user": (lambda m: m.rank(float("nan")), "^the user id is missing: it is None, NaN or blank"),
    "a missing item": (lambda m: m.items_.codes(["tea", ""]), "1 of 2 item ids are missing .first: position 2"),
    "a slip in a user": (lambda m: m.rank("Anne"), 'Did you mean "ann"?'),
    "number for text": (lambda m: m.rank(1), "which are text, while those asked for are integers"),
    "column missing": (
        lambda m: m.fit(ANSWERS.drop(columns="right")), 'no column for the right item.*columns={"right": "NAME"}'
    ),
    "a slip in a column": (lambda m: m.fit(ANSWERS.rename(columns={"right": "rigth"})), 'columns={.*"right": "rigth"'),
    "a slip in a name": (lambda m: m.fit(ODD, columns={"left": "one_thin"}), 'Did you mean "one_thing"?'),
    "no winner": (lambda m: m.fit(winners(None)), 'row 1, empty.*reading={"drop": "unknown"}'),
    "capitals": (lambda m: m.fit(winners("TEA")), 'Did you mean "tea" by "TEA"'),
    "a slip in a winner": (lambda m: m.fit(winners("teaa")), 'Did you mean "tea" by "teaa"'),
    "a blank in a winner": (lambda m: m.fit(winners(" tea")), 'Did you mean "tea" by " tea".*blanks'),
    "no rows": (lambda m: m.fit(ANSWERS[:0]), "no rows. Is it the right file"),
    "other names of columns": (lambda m: m.fit(ODD), 'columns={"left": "one_thing", "right": "other_thing", "answer":'),
    "outcomes of another length": (lambda m: m.fit(PAIRS, [1, 1]), "2 outcomes for 6 rows; give one for every row"),
    "outcomes 1 and 0": (
        lambda m: m.fit(PAIRS, [1, 0, 1, 0, 1, 1]), r'-1 in place of 0, or booleans.*reading={"tie": "0"}'
    ),
    "winners 1 and 0": (
        lambda m: m.fit(ANSWERS.assign(winner=[1, 0, 1, 0, 1, 1])),
        'reading={"positive": "left"}.*reading={"positive": "right"}.*reading={"tie": "0"}',
    ),
    "outcomes as words": (lambda m: m.fit(PAIRS, ANSWERS["winner"]), 'as a column "winner" of the frame'),
    "options of what was read": (
        lambda m: m.fit(Comparisons.from_frame(ANSWERS), reading={"drop": "self"}),
        "was read already: give reading to predilect.read",
    ),
    "update: unknown item": (lambda m: m.update(**ONE | {"left": "coffee"}, outcome=1), "one of the 3 items.*refit"),
    "update: a slip": (lambda m: m.update(**ONE | {"left": "Tea"}, outcome=1), 'Did you mean "tea"?'),
    "update: no such outcome": (lambda m: m.update(**ONE, outcome=2), "1 .left is better., 0 .a tie. or -1"),
    "update: no outcome": (lambda m: m.update(**ONE), r"give outcome= .*or winner="),
    "update: no winner": (lambda m: m.update(**ONE, winner=None), "None is no answer"),
    "update: winner in capitals": (lambda m: m.update(**ONE, winner="TEA"), 'Did you mean "tea"?'),
    "update: winner missing in a frame": (
        lambda m: m.update(pd.DataFrame([ONE | {"winner": None}, ONE | {"winner": "tea"}])),
        r'reading={"drop": "unknown"}',
    ),
    "forget: a slip": (lambda m: m.forget(**ONE | {"user": "Ann"}, outcome=1), 'Did you mean "ann"?'),
    "a tie after none": (lambda m: m.update(**ONE, outcome=0), "fitted without ties.*Fit again on answers with ties"),
    "load: no folder": (lambda m: Population.load("nowhere"), "no folder nowhere .looked in"),
    "load: a file": (lambda m: Population.load(__file__), "is a file.*Give the folder"),
    "an item against itself": (lambda m: m.fit(ANSWERS.assign(right="tea")), 'reading={"drop": "self"}'),
    "half a weight": (lambda m: m.fit(ANSWERS.assign(weight=0.5)), "Multiply them all.*personal=False"),
    "columns of other lengths": (lambda m: m.fit({"left": ["tea"], "right": []}), "equally long.*'left': 1"),
    "ties alone": (lambda m: m.fit(ANSWERS.assign(winner="tie")), "Collect answers that prefer one"),
    "columns twice": (lambda m: m.fit(pd.concat([ANSWERS, PAIRS], axis=1)), 'several columns called "left"; rename'),
    "an address": (lambda m: read_file("https://x.org/v.csv"), "https://x.org/v.csv is an address.*download it"),
    "the name of a file": (lambda m: m.fit("votes.csv"), r'name of a file, "votes.csv".*predilect.read\('),
    "a path": (lambda m: m.fit(Path("votes.csv")), "name of a file"),
    "no such strategy": (lambda m: m.suggest("ann", strategy="best"), "must be one of 'bald', .*, not 'best'"),
    "no seed": (lambda m: Population(random_state="x").fit(ANSWERS), "None or a whole number from 0 up, not 'x'"),
    "people in the index": (lambda m: m.fit(ANSWERS.set_index("user")), r"frame.reset_index\(\)"),
    "dates as ids": (
        lambda m: m.fit(ANSWERS.assign(user=pd.to_datetime(["2026-01-01"] * 6))),
        r'"user" holds values of type Timestamp \(first: row 1, .*whole numbers. Turn them into text.*astype\(str\)',
    ),
    "dates and text as ids": (
        lambda m: m.fit(ANSWERS.assign(user=[pd.Timestamp("2026-01-01"), *ANSWERS["user"][1:]])), "mixes kinds of ids"
    ),
    "columns of two levels": (
        lambda m: m.fit(pd.concat({"votes": ANSWERS}, axis=1)), r"2 levels.*frame.columns.get_level_values\(-1\)"
    ),
    "columns of two levels, alike in the last": (
        lambda m: m.predict_proba(pd.concat({"left": ANSWERS, "right": ANSWERS}, axis=1)), r'"_".join\(map\(str, name'
    ),
    "fractions as ids": (lambda m: m.fit(ANSWERS.assign(user=1.5)), "text or whole numbers"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", IN_PYTHON)
def test_in_python(model, mistake):
    make, said = IN_PYTHON[mistake]
    with pytest.raises((ValueError, TypeError, NotFittedError)) as caught:
        make(model)
    assert re.search(said, str(caught.value)), str(caught.value)
    assert not re.search(r"--[a-z]", str(caught.value))


HUGE = 10**5000  # which Python neither writes nor makes a float of
TOO_LARGE = {
    "the user to erase": lambda m: m.forget(user=HUGE),
    "a cost": lambda m: m.decide("ann", ["tea", "milk"], cost_wrong=HUGE),
    "a cost of leaving it": lambda m: m.decide("ann", ["tea", "milk"], cost_defer=HUGE),
    "an option": lambda m: m.decide("ann", ["tea", HUGE]),
    "a default": lambda m: m.decide("ann", ["tea", "milk"], default=HUGE),
    "how many questions": lambda m: m.suggest("ann", candidates=-HUGE),
    "a strategy": lambda m: m.suggest("ann", strategy=HUGE),
    "an item": lambda m: m.update(user="ann", left="tea", right=HUGE, outcome=1),
    "an answer taken back": lambda m: m.forget(user=HUGE, left="tea", right="milk", outcome=1),
    **{name: lambda m, name=name: Population(**{name: HUGE}).fit(ANSWERS)
       for name in ("variance", "strength", "tie_threshold", "tol", "basis", "calibration", "user_features")},
    "a list": lambda m: Population(variance=[HUGE]).fit(ANSWERS),
    "a scale": lambda m: GPPL(variance=HUGE).fit(ANSWERS),
    "a seed": lambda m: Population(random_state=-HUGE).fit(ANSWERS),
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_LARGE)
def test_numbers_of_5000_digits(model, what):
    with pytest.raises((DataError, ValueError)) as caught:
        TOO_LARGE[what](model)
    assert not str(caught.value).startswith("Exceeds the limit")
    with pytest.warns(DataWarning, match="does not know int of more digits than can be written"):
        model.decide(HUGE, ["tea", "milk"])
    assert near_miss(HUGE, ["tea"]) is None


def csv(frame, **how):
    return frame.to_csv(index=False, **how)


VOTES = csv(ANSWERS)
# What the file "v" holds, and further arguments of check.
OF_A_FILE = {
    "column missing": (csv(ANSWERS.drop(columns="right")), [], "no column for the right item.*-c right=NAME"),
    "a slip in a column": (VOTES.replace("right", "rigth"), [], "-c right=rigth"),
    "a slip in an option": (csv(ODD), ["-c", "left=one_thin"], 'Did you mean "one_thing"'),
    "no winner": (csv(winners(None)), [], "row 1, empty.*--read drop=unknown"),
    "capitals": (csv(winners("TEA")), [], 'Did you mean "tea" by "TEA"'),
    "a slip in a winner": (csv(winners("teaa")), [], 'Did you mean "tea" by "teaa"'),
    "a blank in a winner": (csv(winners("tea ")), [], 'Did you mean "tea" by "tea "'),
    "no rows": (csv(ANSWERS[:0]), [], "no rows. Is it the right file"),
    "other names of columns": (csv(ODD), [], "-c left=one_thing -c right=other_thing -c answer=better"),
    "winners 1 and 0": (csv(ANSWERS.assign(winner=[1, 0, 1, 0, 1, 1])), [], "--read positive=left.*--read tie=0"),
    "an item against itself": (csv(ANSWERS.assign(right="tea")), [], "--read drop=self"),
    "columns twice": (csv(pd.concat([ANSWERS, PAIRS], axis=1)), [], "several columns called left, right, user"),
    "no header": (csv(ANSWERS, header=False), [], r"v.csv seems to have no header: .*such as user,left,right,winner\."),
    "no header, no user": (csv(ANSWERS[["left", "right", "winner"]], header=False), [], r"such as left,right,winner\."),
    "no header, sides": ("ann,tea,milk,left\nbob,tea,juice,right\n", [], "seems to have no header"),
    "lines of other lengths": ("left,right,winner\na,b,a\na,b,c,d\n", [], "row 2, 4 fields.*in double quotes"),
    "several chosen": (
        "id,alt,choice,price\n1,x,1,2\n1,y,0,3\n1,x,0,4\n1,y,1,5\n2,x,1,2\n2,y,0,3\n", [],
        "several tasks, name the column that tells them apart: -c task=NAME",
    ),
    "a slip in a choice": (
        "id,alt,choice\n1,car,car\n1,bus,car\n2,car,buss\n2,bus,buss\n", [], 'Did you mean "bus"?',
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", OF_A_FILE)
def test_of_a_file_in_the_command_and_in_python(tmp_path, mistake):
    text, arguments, said = OF_A_FILE[mistake]
    votes = tmp_path / "v.csv"
    votes.write_text(text)
    ran = run("check", votes, *arguments)
    assert ran.exit_code == 2, ran.output
    assert re.search(said, ran.stderr.replace("\n", " ")), ran.stderr
    assert not re.search(r"columns=|reading=|from_frame|predilect\.read", ran.stderr)
    if not arguments:
        with pytest.raises(DataError) as caught:
            read_file(votes)
        assert "--" not in str(caught.value)


def test_what_looks_like_a_value_may_be_the_name_of_a_column(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("a,b,winner\na,b,skip\nb,a,left\n")
    with pytest.raises(DataError, match='"winner" holds 1 value'):
        read_file(path)


OF_THE_COMMAND = {
    "an address": (["check", "https://x.org/v.csv"], "https://x.org/v.csv is an address on the web.*download it"),
    "no ending": (["check", "pairs"], "has no ending that says what is in it; expected .csv"),
    "a slip in the name of a file": (["check", "vote.csv"], 'Check the name. Did you mean "votes.csv"?'),
    "a slip in a column of a map": (
        ["check", "votes.csv", "--map", "votes.csv:Winer"],
        'Did you mean "winner"?',
    ),
    "a slip in a covariate": (["check", "votes.csv", "-c", "covariates=Winer"], 'Did you mean "winner"?'),
    "a slip in a segment": (["rank", "votes.csv", "--by", "Winer"], 'Did you mean "winner"?'),
    "a slip in an option of a choice": (["decide", "results", "ann", "Tea", "milk"], 'Did you mean "tea"?'),
    "no such file": (["check", "gone.csv"], "there is no file gone.csv .looked in"),
    "a folder of results": (["check", "results"], "is a directory; name one file"),
    "a file for a folder": (["predict", "votes.csv", "pairs.csv"], "is a file.*Give the folder that predilect rank"),
    "no such folder": (["predict", "nowhere", "pairs.csv"], "there is no folder nowhere"),
    "results there already": (["rank", "votes.csv", "--out", "results", *QUICK], "Give another name.*--force"),
    "no such option": (["rank", "votes.csv", "--personel", "yes"], "--personal"),
    "half a weight": (["rank", "halves.csv", *QUICK], "Multiply them all.*--personal no"),
    "column missing of pairs": (["predict", "results", "halves.csv", "-c", "right=rigth"], 'Did you mean "right"'),
}


@pytest.mark.parametrize("mistake", OF_THE_COMMAND)
def test_of_the_command(folder, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    Path("pairs").touch()
    ANSWERS.assign(weight=0.5).to_csv("halves.csv", index=False)
    arguments, said = OF_THE_COMMAND[mistake]
    ran = run(*arguments)
    assert ran.exit_code == 2, ran.output
    assert re.search(said, re.sub(r"[\s│]+", " ", ran.stderr)), ran.stderr


def test_results_are_loaded_as_the_model_in_them(folder):
    assert Population.load(folder / "results").rank().equals(Population.load(folder / "results" / "model").rank())
    assert predilect.check(folder / "votes.csv") == predilect.check(ANSWERS)


def test_fit_takes_what_messages_tell_to_set(model):
    named = Population().fit(
        ODD, columns={"who": "guest", "left": "one_thing", "right": "other_thing", "answer": "better"}
    )
    assert named.rank().equals(model.rank())
    odd = pd.concat([ANSWERS, pd.DataFrame([ONE | {"right": "tea", "winner": "tea"}])])
    assert Population().fit(odd, reading={"drop": "self"}).rank().equals(model.rank())
    for make in (Population, GPPL, lambda: CompressedModel(Population(), keep=2)):
        with pytest.raises(DataError, match=r'^"covariate" is no role of a column; .* Did you mean "covariates"\?$'):
            make().fit(ANSWERS, columns={"covariate": ["length"]})
    with pytest.raises(DataError, match=r'^"zzz" is no key of reading; there are kind, answer_is, tie,'):
        Population().fit(ANSWERS, reading={"zzz": 1})
    with pytest.raises(DataError, match=r'^"tabel" is no key of reading; .* Did you mean "table"'):
        read_file("nowhere.csv", reading={"tabel": "a"})
    with pytest.raises(DataError, match=r'^"tie" is said in reading, not in columns'):
        Population().fit(ANSWERS, columns={"tie": "skipped"})


def test_somebody_or_something_nearly_known_is_named(model, folder):
    with pytest.warns(
        DataWarning,
        match=r'first: .Tea.*Did you mean "tea"\? Features would tell more, but.*items=',
    ):
        model.predict_proba(ONE | {name: [value] for name, value in ONE.items()} | {"left": ["Tea"]})
    with pytest.warns(DataWarning, match='does not know .Ann.*Did you mean "ann"'):
        model.suggest("Ann")
    (folder / "slip.csv").write_text("user,left,right\nann,Tea,milk\n")
    ran = run("predict", folder / "results", folder / "slip.csv")
    assert (
        'Did you mean "tea"? Features would tell more, but the model was fitted without any (--items FILE)'
        in ran.stderr
    )


@pytest.mark.slow
def test_items_without_features_are_told(folder):
    items = pd.DataFrame({"item": ["Tea", "milk", "juice"], "size": [1.0, 2.0, 3.0]})
    said = r'no features of 1 of the 3 items with answers \(first: "tea"\).*{}.*Did you mean "Tea"\?'
    for X, features in (
        (ANSWERS, items), (ANSWERS, ItemFeatures.from_frame(items)), (Comparisons.from_frame(ANSWERS), items),
    ):  # fmt: skip
        with pytest.warns(DataWarning, match=said.format("items=")) as caught:
            Population().fit(X, items=features)
        assert caught[0].filename == __file__
    items.to_csv(folder / "items.csv", index=False)
    ran = run("rank", folder / "votes.csv", "--items", folder / "items.csv", *QUICK)
    assert ran.exit_code == 0
    assert len(re.findall(said.format("--items FILE"), ran.stderr.replace("\n", " "))) == 1


def test_near_misses():
    known = ["tea", "green tea", "gpt-4", "gpt-3.5", "item 12", "é"]
    for slip, meant in {
        "TEA": "tea", " tea": "tea", "taa": "tea", "GreenTea": "green tea", "gren tea": "green tea", "GPT 4": "gpt-4",
        "gtp-4": "gpt-4", "itme 12": "item 12", "É": "é",
    }.items():  # fmt: skip
        assert near_miss(slip, known) == meant
    for other in ("coffee", "gpt-5", "item 13", "", "tea", "12", "!", "x" * 1_000_000):
        assert near_miss(other, known) is None, other
    assert near_miss("13", ["12", "14"]) is None
    assert near_miss(" 13", [13, 12]) == 13
    assert did_you_mean("Tea", ["\x1btea"]) == ' Did you mean "\\x1btea"?'
    assert did_you_mean("coffee", known) == ""


def test_an_option_or_python():
    assert either("--personal no", "personal=False") == "personal=False"
    with spoken_to("command"):
        assert either("--personal no", "personal=False") == "--personal no"


def test_what_does_not_converge_is_told_in_the_words_of_the_reader():
    answers = {"user": ["a", "a", "b"], "left": ["x", "y", "x"], "right": ["y", "z", "z"], "winner": ["left"] * 3}
    hasty = Population(personal=True, max_iter=1, strict=True)
    with pytest.raises(ConvergenceError, match=r"allow more passes \(max_iter=...\)"):
        hasty.fit(answers)
    with spoken_to("command"), pytest.raises(ConvergenceError, match="not exact; look for extreme weights"):
        hasty.fit(answers)
