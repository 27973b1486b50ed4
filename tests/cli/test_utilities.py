"""``predilect utilities`` and ``predilect simulate``: from a file of choices to part-worths and shares."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import files_beside, run
from predilect import Population, load_model
from predilect.decisions import scores

TABLES = ["coefficients.csv", "fit.csv", "importances.csv", "part_worths.csv"]


def said(ran):
    return " ".join((ran.stderr + ran.stdout).split())


@pytest.fixture(scope="module")
def long():
    """20 people, 6 choices each of the best of three phones or of none."""
    rng = np.random.default_rng(8)
    rows = []
    for user in range(20):
        slope = -0.8 + 0.2 * rng.standard_normal()
        for task in range(6):
            price, screen = rng.choice([1, 2, 3, 4, 5], 3, replace=False), rng.choice(["small", "large"], 3)
            utility = slope * price + np.where(screen == "large", 1.0, 0.0) + rng.normal(0.0, 0.7, 3)
            best = int(np.argmax(utility))
            rows += [(f"p{user:02d}", task, place, int(price[place]), screen[place], int(place == best))
                     for place in range(3)]  # fmt: skip
    return pl.DataFrame(rows, schema=["id", "task", "alt", "price", "screen", "choice"], orient="row")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, long):
    """What utilities wrote; not to be changed."""
    place = tmp_path_factory.mktemp("utilities")
    long.write_csv(place / "choices.csv")
    ran = run("utilities", place / "choices.csv", "--price", "price", "--out", place / "out")
    assert ran.exit_code == 0, ran.output
    assert "Read: 120 choices of the best of 3" in said(ran)
    assert "guessing gives 0.33" in said(ran)
    assert "in units of price" in said(ran)
    assert all(len(line) <= 80 for line in ran.stdout.splitlines() if "…" in line or "─" in line)
    return place / "out"


def test_a_file_that_describes_its_alternatives_needs_no_other(folder):
    assert files_beside(folder) == sorted([*TABLES, "willingness_to_pay.csv", "model"])
    worth = pl.read_csv(folder / "part_worths.csv")
    assert worth.columns == ["user", "attribute", "level", "mean", "sd", "lower", "upper"]
    assert len(worth) == 20 * 3
    assert (worth.filter(pl.col("attribute") == "price")["mean"] < 0.0).mean() > 0.9
    model = load_model(folder)
    np.testing.assert_allclose(worth["mean"], model.part_worths()["mean"], atol=1e-12)
    amount = pl.read_csv(folder / "willingness_to_pay.csv").filter(pl.col("level") == "large").row(0, named=True)
    assert amount["lower"] < 0.5 / 0.8 < amount["upper"]
    fit = pl.read_csv(folder / "fit.csv")
    assert fit["rlh"].median() > 0.4


def test_tables_in_other_formats(folder, long, tmp_path):
    choices = folder.parent / "choices.csv"
    as_csv = run("utilities", choices, "--price", "price", "--format", "csv")
    # Written again from the same choices: the same to the last digit.
    assert pl.read_csv(io.StringIO(as_csv.stdout)).equals(pl.read_csv(folder / "coefficients.csv"))
    assert "Read: 120 choices" in " ".join(as_csv.stderr.split())
    long.head(90).write_csv(tmp_path / "few.csv")
    md = run("utilities", tmp_path / "few.csv", "--price", "price", "--format", "md")
    assert [line for line in md.stdout.splitlines() if line.startswith("#")] == [
        "## Coefficients", "## Importances", "## Willingness to pay",
    ]  # fmt: skip
    assert "| price |  | -" in md.stdout
    both = run("utilities", choices, "--format", "md", "--json")
    assert both.exit_code == 2
    assert "both want standard output" in both.stderr


def test_mixed_logit_pieces_held_out_tasks_and_json(folder, long, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.models.mixed_logit.model._SWEEPS", 200)
    long.write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--model", "mixed-logit", "--piecewise", "price=3",
              "--holdout", 1, "--json", "--out", tmp_path / "out")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["schema"] == "predilect/utilities"
    assert [row["level"] for row in told["coefficients"]] == ["up to 3", "from 3", "large", "small"]
    assert [row["model"] for row in told["holdout"]] == ["mixed-logit", "population", "guessing"]
    assert told["holdout"][0]["choices"] == 20.0
    assert "Verdict: the two models" in said(ran)
    assert "Held out: 20 choices of 20 people" in said(ran)
    assert files_beside(tmp_path / "out") == sorted([*TABLES, "holdout.csv", "model"])


def test_too_few_sweeps_ask_for_nothing_that_the_command_lacks(long, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.models.mixed_logit.model._SWEEPS", 20)
    monkeypatch.setattr("predilect.models.mixed_logit.model._R_HAT", 1.0)
    long.write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--model", "mixed-logit")
    assert "take fewer attributes, or more sweeps in Python: MixedLogit(n_draws=...)" in said(ran)
    assert "ask for more sweeps (n_draws)" not in said(ran)


def test_attributes_may_stand_in_a_table_of_items(tmp_path):
    votes = {"user": ["a", "a", "b", "b"], "left": ["x", "y", "x", "z"], "right": ["y", "z", "z", "y"],
             "winner": ["x", "z", "x", "z"]}  # fmt: skip
    pl.DataFrame(votes).write_csv(tmp_path / "votes.csv")
    pl.DataFrame({"item": ["x", "y", "z"], "price": [1, 2, 3], "brand": [1, 2, 1]}).write_csv(tmp_path / "items.csv")
    ran = run("utilities", tmp_path / "votes.csv", "--attributes", tmp_path / "items.csv", "--categorical", "brand")
    assert ran.exit_code == 0, ran.output
    assert "Nothing was written" in said(ran)
    none = run("utilities", tmp_path / "votes.csv")
    assert none.exit_code == 2
    assert "CHOICES names its alternatives and does not describe them. Give --attributes FILE" in said(none)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--price", "prise"], '--price "prise" is no number that differs between alternatives'),
        (["--price", "screen"], "these are: price"),
        (["--price", "weight"], 'Dropped constant columns: "weight"'),
        (["--piecewise", "price"], "--piecewise takes an attribute and where its slope changes, as price=3,5"),
        (["--piecewise", "price=9"], '"price" lies between 1 and 5, and is cut at 9'),
        (["--piecewise", "cost=2"], "not there: cost; there are"),
        (["--categorical", "colour"], "not there: colour; there are"),
        (["--categorical", "a,,b"], "--categorical takes names"),
    ],
)
def test_attributes_that_cannot_be_used_are_said_before_the_fit(long, tmp_path, options, message):
    items = long.select(pl.concat_str("price", "screen").alias("item"), "price", "screen", weight=7).unique()
    items.write_csv(tmp_path / "items.csv")
    long.with_columns(pl.concat_str("price", "screen").alias("alt")).write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--attributes", tmp_path / "items.csv", *options)
    assert ran.exit_code == 2, ran.output
    assert message in said(ran)


def told_of(long, tmp_path, *options, **columns):
    long.with_columns(**columns).write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", *options)
    return ran.exit_code, said(ran)


def test_what_choices_cannot_tell_is_said(long, tmp_path):
    code, told = told_of(long, tmp_path, "--price", "fee", fee=pl.col("task") + 1)
    assert code == 2
    assert 'Column "fee" of CHOICES is the same for all alternatives of a task' in told
    without = pl.when(pl.col("alt") == 1)
    code, told = told_of(long, tmp_path, price=without.then(None).otherwise(pl.col("price")))
    assert code == 2
    assert 'column "alt" numbers the alternatives (0, 1, 2 ...), and "price" goes by it' in told
    some = pl.when((pl.col("alt") == 1) & (pl.col("task") == 0))
    code, told = told_of(long, tmp_path, price=some.then(None).otherwise(pl.col("price")))
    assert code == 2
    assert f'an attribute ("price") is missing in {long["id"].n_unique()} tasks' in told


def test_an_attribute_that_decides_every_choice_and_people_with_one_task(long, tmp_path):
    cheapest = (pl.col("price") == pl.col("price").min().over("id", "task")).cast(int)
    few = long.filter((pl.col("id") < "p06") & ((pl.col("id") != "p00") | (pl.col("task") == 0)))
    code, told = told_of(few, tmp_path, choice=cheapest)
    assert code == 0
    assert told.count('never has more of "price" than the average of what it was chosen from') == 1


def test_ratings_have_part_worths_and_no_choices_to_explain(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(f"p{u}", f"i{i}", int(np.clip(round(5 - i + rng.normal()), 1, 5))) for u in range(6) for i in range(5)]
    pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_csv(tmp_path / "ratings.csv")
    pl.DataFrame({"item": [f"i{i}" for i in range(5)], "price": range(5)}).write_csv(tmp_path / "items.csv")
    ran = run("utilities", tmp_path / "ratings.csv", "--attributes", tmp_path / "items.csv", "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    assert "How well choices are explained is not said: a task of user" in said(ran)
    assert "fit.csv" not in files_beside(tmp_path / "out")
    ran = run("utilities", tmp_path / "ratings.csv", "--attributes", tmp_path / "items.csv", "--holdout", 1)
    assert ran.exit_code == 2
    assert "--holdout is about choices: a task of user" in said(ran)


def test_best_worst_answers_without_attributes_have_scores(tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.models.mixed_logit.model._SWEEPS", 400)  # which is quicker than a search
    rng, quick = np.random.default_rng(2), ("--model", "mixed-logit")
    rows = []
    for user in range(6):
        for _ in range(4):
            shown = rng.choice(5, 3, replace=False)
            order = shown[np.argsort(shown + 0.7 * rng.normal(size=3))]
            rows.append((f"p{user}", *(f"i{i}" for i in shown), f"i{order[0]}", f"i{order[-1]}"))
    columns = ["user", "item1", "item2", "item3", "best", "worst"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(tmp_path / "maxdiff.csv")
    ran = run("utilities", tmp_path / "maxdiff.csv", *quick, "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    assert files_beside(tmp_path / "out") == ["model", "scores.csv"]
    table = pl.read_csv(tmp_path / "out" / "scores.csv")
    assert table["item"][0] == "i0"
    assert abs(table["score"].sum() - 100.0) < 1e-6
    as_csv = run("utilities", tmp_path / "maxdiff.csv", *quick, "--format", "csv")
    assert pl.read_csv(io.StringIO(as_csv.stdout)).equals(table)
    told = json.loads(run("utilities", tmp_path / "maxdiff.csv", *quick, "--anchor", "i2", "--json").stdout)
    assert abs(next(row["score"] for row in told["scores"] if row["item"] == "i2") - 100.0) < 1e-6
    for options, message in ((["--anchor", "i9"], "i9"), (["--price", "i1"], "--price and --holdout need attributes")):
        ran = run("utilities", tmp_path / "maxdiff.csv", *quick, *options)
        assert ran.exit_code == 2
        assert message in said(ran)


def test_scores_where_every_answer_names_the_worst_alone(tmp_path):
    """All but one approved of: no choice of the best says how large a set usually is, the sets themselves do."""
    rows = [(f"u{k}", 1, item, int(item != worst)) for k, worst in enumerate("ccb") for item in "abc"]
    pl.DataFrame(rows, schema=["user", "task", "item", "chosen"], orient="row").write_csv(tmp_path / "approved.csv")
    ran = run("utilities", tmp_path / "approved.csv", "--read", "kind=approval", "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    table = pl.read_csv(tmp_path / "out" / "scores.csv")
    fitted = load_model(tmp_path / "out")
    fitted.backend_ = "polars"
    np.testing.assert_allclose(table["score"], scores(fitted, 3)["score"], atol=1e-9)
    assert table["item"].to_list() == ["a", "b", "c"]


def test_one_person_who_guesses_is_no_people(tmp_path):
    rng = np.random.default_rng(2)
    rows = []
    for user, task in np.ndindex(8, 24):
        x = rng.permutation(5)[:4].tolist()
        chosen = int(rng.integers(4)) if user == 3 else int(np.argmax(x))
        rows += [(f"p{user}", task, place, x[place], int(place == chosen)) for place in range(4)]
    columns = ["id", "task", "alt", "x", "choice"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv")
    assert "1 person (12 %) answers no better than chance (first: p3)" in said(ran)


def test_without_people_there_is_one_set_of_coefficients(long, tmp_path):
    code, told = told_of(long.drop("id").with_columns(task=pl.int_range(pl.len()) // 3), tmp_path, "-c", "who=")
    assert code == 0, told
    assert "of all answers together" in told
    assert "Fit:" not in told


def scenarios(path, text):
    path.write_text(text)
    return path


KNOWN = "price=1, screen=small", "price=2, screen=large"


def test_shares_of_known_and_new_items(folder, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join([
        "scenario,item,price,screen", *(f'now,"{item}",,' for item in KNOWN), *(f'then,"{item}",,' for item in KNOWN),
        "then,ours,1,large",
    ]))  # fmt: skip
    ran = run("simulate", folder, file, "--out", tmp_path / "shares.csv", "--json")
    assert ran.exit_code == 0, ran.output
    table = pl.read_csv(tmp_path / "shares.csv")
    assert table.columns == ["scenario", "item", "share", "lower", "upper", "of"]
    assert table["item"].to_list() == [*KNOWN, *KNOWN, "ours"]
    np.testing.assert_allclose(table.group_by("scenario").agg(pl.col("share").sum())["share"], 1.0, atol=1e-9)
    assert table["share"][4] == table.filter(pl.col("scenario") == "then")["share"].max()
    assert json.loads(ran.stdout)["shares"][4]["share"] == table["share"][4]


def test_it_is_said_of_whom_averages_are(folder, long, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join(["item", *(f'"{item}"' for item in KNOWN)]))
    widths = []
    for of, words in (("population", "of the population of which those who answered"), ("respondents", "of those who")):
        assert f"Shares and their intervals are {words}" in said(run("simulate", folder, file, "--of", of))
        told = json.loads(run("simulate", folder, file, "--of", of, "--json").stdout)
        assert told["of"] == of
        assert {row["of"] for row in told["shares"]} == {of}
        widths.append(sum(row["upper"] - row["lower"] for row in told["shares"]))
    assert widths[0] > widths[1]
    assert set(pl.read_csv(folder / "importances.csv")["of"]) == {"population"}
    long.write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--of", "respondents")
    assert ran.exit_code == 0, ran.output
    assert "Importances and their intervals are of those who answered alone" in said(ran)


def test_an_attribute_that_follows_from_others_is_left_out_and_said(long, tmp_path):
    pixels = pl.col("screen").replace_strict({"small": 720, "large": 1080})
    long.with_columns(pixels=pixels).write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--price", "price", "--format", "csv")
    assert ran.exit_code == 0, ran.output
    assert "Within answers nothing of pixels varies that other attributes do not tell" in said(ran)
    assert pl.read_csv(io.StringIO(ran.stdout))["attribute"].unique().sort().to_list() == ["price", "screen"]
    ran = run("utilities", tmp_path / "choices.csv", "--price", "pixels")
    assert ran.exit_code == 2
    assert 'what "pixels" is worth is not known' in said(ran)
    assert "Model:" not in said(ran)  # said before the fit


def test_attributes_of_known_items_may_be_given_in_part(folder, tmp_path):
    tables = []
    for cells in (",", "2,", ",large"):
        file = scenarios(tmp_path / "s.csv", f'item,price,screen\n"{KNOWN[0]}",1,small\n"{KNOWN[1]}",{cells}')
        ran = run("simulate", folder, file, "--json")
        assert ran.exit_code == 0, ran.output
        tables.append(json.loads(ran.stdout)["shares"])
    assert tables[0] == tables[1] == tables[2]


def test_what_is_no_number_is_empty_in_parquet(folder, tmp_path):
    given = {"item": [*KNOWN, "ours"], "price": [np.nan, 2.0, 3.0], "screen": [None, None, "large"]}
    pl.DataFrame(given).write_parquet(tmp_path / "s.parquet")
    ran = run("simulate", folder, tmp_path / "s.parquet")
    assert ran.exit_code == 0, ran.output
    pl.DataFrame(given | {"price": [1.0, 2.0, np.nan]}).write_parquet(tmp_path / "s.parquet")
    assert '"price" is empty for 1 new item' in said(run("simulate", folder, tmp_path / "s.parquet"))


@pytest.mark.parametrize("rule", ["share", "first-choice", "randomised"])
def test_a_price_curve_of_one_item(folder, tmp_path, rule):
    file = scenarios(tmp_path / "s.csv", "\n".join(["item", *(f'"{item}"' for item in KNOWN)]))
    ran = run("simulate", folder, file, "--price-curve", KNOWN[1], "--prices", "1,3,5", "--rule", rule,
              "--out", tmp_path / "c.csv")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    mine = pl.read_csv(tmp_path / "c.csv").filter(pl.col("item") == KNOWN[1])
    assert mine["price"].to_list() == [1.0, 3.0, 5.0]
    assert mine["share"][0] > mine["share"][2]


def test_prices_that_were_not_seen_are_told_and_shares_lie_in_their_intervals(folder, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join([
        "scenario,item", *(f'{name},"{item}"' for name in ("a", "b") for item in KNOWN)
    ]))  # fmt: skip
    ran = run("simulate", folder, file, "--price-curve", KNOWN[1], "--prices", "5,6,60", "--json")
    assert ran.exit_code == 0, ran.output
    assert (
        said(ran).count("2 of 3 offers lie outside the range of those the model learned from (price from 1 to 5)") == 2
    )
    told = json.loads(ran.stdout)
    assert len(told["warnings"]) == 1
    assert all(one["lower"] <= one["share"] <= one["upper"] for one in told["shares"])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (f'scenario,item\none,"{KNOWN[0]}"', [], 'scenario "one" has one item: a choice is between two or more'),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[0]}"', [], "the scenario has an item twice"),
        (f'item\n"{KNOWN[0]}"\nours', [], "1 items are not known to the model (first: 'ours'). Give their attributes"),
        ("item,price,screen\n", [], "SCENARIOS has no rows. Give a row for each item"),
        ('item,Price,screen\no,3,small\np,3,large', [], 'lack the column "price"; their columns are "item", "Price"'),
        ('item,price,screen\no,low,small\np,3,large', [], 'and now no number in 1 row (first: "low"). Give a number'),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--price-curve", KNOWN[0][:-1], "--prices", "1"], "Did you mean"),
        (f'item,price\n"{KNOWN[0]}",\nours,3', [], 'lack the column "screen"; their columns are "item", "price"'),
        (f'item,price,screen\n"{KNOWN[0]}",,\n"{KNOWN[1]}",2,\nours,,large\nmine,2,', [],
         """attribute "price" is empty for 1 new item (first: 'ours', row 3 of SCENARIOS), and no item of the fit"""),
        (f'item,price,screen\n"{KNOWN[0]}",,\nours,3," "', [], "\"screen\" is empty for 1 new item (first: 'ours'"),
        (f'item,price\n"{KNOWN[0]}",3\n"{KNOWN[1]}",', [], "is known to the model with other attributes"),
        (f'item,price,screen\n"{KNOWN[0]}",3,small\n"{KNOWN[1]}",,', [], "is known to the model with other attributes"),
        ('s,item,price,screen\n1,o,3,small\n1,p,3,large\n2,o,4,small\n2,p,3,large', [], "two sorts of attributes"),
        ("name\nx", ["--price-curve", "x"], "--price-curve ITEM and --prices 1,2,3 go together"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--price-curve", "x", "--prices", "1"], "no scenario offers 'x'"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--price-curve", KNOWN[0], "--prices", "low"], "--prices takes numbers"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--price-curve", KNOWN[0], "--prices", "1,nan"], "--prices takes"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--price-curve", KNOWN[0], "--prices", "1", "--price", "screen"],
         "these are: price. Say which with --price NAME"),
        ("scenario,product_line\n1,x", [], "found no column item in SCENARIOS"),
    ],
)  # fmt: skip
def test_scenarios_that_say_nothing_clear_are_refused(folder, tmp_path, text, options, message):
    ran = run("simulate", folder, scenarios(tmp_path / "s.csv", text), *options)
    assert ran.exit_code == 2, ran.output
    assert message in said(ran)


def test_a_model_without_attributes_says_what_to_fit(tmp_path):
    votes = {"user": ["a", "b"], "left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "x"]}
    Population(variance=1.0, strength=20.0, n_jobs=1).fit(votes).save(tmp_path / "model")
    ran = run("simulate", tmp_path / "model", scenarios(tmp_path / "s.csv", "item\nx\ny"))
    assert ran.exit_code == 2
    assert "holds a model without attributes. Fit one with predilect utilities" in said(ran)


def test_a_price_that_is_the_same_for_all_alternatives_is_named_without_attributes_too(tmp_path):
    columns = {"user": ["u", "u"], "task": [1, 1], "item": ["a", "b"], "price": [1, 1], "chosen": [1, 0]}
    pl.DataFrame(columns).write_csv(tmp_path / "choices.csv")
    ran = run("utilities", tmp_path / "choices.csv", "--price", "price")
    assert ran.exit_code == 2
    assert 'Column "price" of CHOICES is the same for all alternatives of a task' in said(ran)
