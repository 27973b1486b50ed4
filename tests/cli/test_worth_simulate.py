"""``predilect worth`` and ``predilect simulate``: from a ranking of choices to part-worths and shares."""

from __future__ import annotations

import io
import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

from cli.running import files_beside, run
from predilect import GPPL, Population, load, models, read
from predilect.models.registry import COMMANDS

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
    """A ranking of the choices; not to be changed."""
    return ranked(long, tmp_path_factory.mktemp("worth"))


def ranked(frame, place, *options):
    """What rank wrote of some choices."""
    frame.write_csv(place / "choices.csv")
    ran = run("rank", place / "choices.csv", "--personal", "yes", *options, "-o", place / "out")
    assert ran.exit_code == 0, ran.output
    return place / "out"


def refused(*arguments):
    ran = run(*arguments)
    assert ran.exit_code == 2, ran.output
    return said(ran)


@pytest.mark.slow
def test_worth_of_attributes_that_stand_in_the_file(folder, tmp_path):
    ran = run("worth", folder, "--price", "price", "-o", tmp_path / "worth")
    assert ran.exit_code == 0, ran.output
    assert "guessing gives 0.33" in said(ran)
    assert "in units of price" in said(ran)
    assert all(len(line) <= 80 for line in ran.stdout.splitlines() if "…" in line or "─" in line)
    assert files_beside(tmp_path / "worth") == sorted([*TABLES, "willingness_to_pay.csv"])
    worth = pl.read_csv(tmp_path / "worth" / "part_worths.csv")
    assert worth.columns == ["user", "attribute", "level", "mean", "sd", "lower", "upper"]
    assert len(worth) == 20 * 3
    assert (worth.filter(pl.col("attribute") == "price")["mean"] < 0.0).mean() > 0.9
    model = load(folder)
    np.testing.assert_allclose(worth["mean"], model.worth.parts()["mean"], atol=1e-12)
    amount = pl.read_csv(tmp_path / "worth" / "willingness_to_pay.csv").filter(pl.col("level") == "large")
    assert amount["lower"][0] < 0.5 / 0.8 < amount["upper"][0]
    fit = pl.read_csv(tmp_path / "worth" / "fit.csv")
    assert fit["rlh"].median() > 0.4
    # The folder holds the answers, by which a person's choices are explained as by the file itself.
    answers = read(folder.parent / "choices.csv")
    np.testing.assert_allclose(fit["rlh"], model.worth.fit_of_people(answers)["rlh"], atol=1e-12)


def test_worth_to_one_person(folder):
    table = pl.read_csv(io.StringIO(run("worth", folder, "--user", "p03", "--format", "csv").stdout))
    expected = load(folder).worth.parts().filter(pl.col("user") == "p03")
    assert table.equals(pl.read_csv(io.StringIO(expected.write_csv())))
    assert "Importance" not in run("worth", folder, "--user", "p03", "--price", "price").stdout
    assert "p99" in refused("worth", folder, "--user", "p99")


@pytest.mark.slow
def test_tables_in_other_formats(folder):
    as_csv = run("worth", folder, "--price", "price", "--format", "csv")
    expected = load(folder).worth.coefficients()
    assert pl.read_csv(io.StringIO(as_csv.stdout)).equals(pl.read_csv(io.StringIO(expected.write_csv())))
    md = run("worth", folder, "--price", "price", "--format", "md")
    assert [line for line in md.stdout.splitlines() if line.startswith("#")] == [
        "## Coefficients", "## Importances", "## Willingness to pay",
    ]  # fmt: skip
    assert "| price |  | -" in md.stdout


@pytest.mark.slow
def test_mixed_logit_pieces_held_out_tasks_and_json(long, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.choice.mixed_logit.training._SWEEPS", 200)
    out = ranked(long, tmp_path, "--model", "mixed-logit", "--read", "piecewise=price:3")
    assert "--force prints them all the same" in refused("worth", out, "-o", tmp_path / "worth")
    assert not (tmp_path / "worth").exists()
    ran = run("worth", out, "--holdout", 1, "--format", "json", "-o", tmp_path / "worth", "--force")
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["schema"] == "predilect/worth"
    assert [row["level"] for row in told["coefficients"]] == ["up to 3", "from 3", "large", "small"]
    assert [row["model"] for row in told["holdout"]] == ["mixed-logit", "population", "guessing"]
    assert told["holdout"][0]["choices"] == 20.0
    assert "Verdict: the two models" in said(ran)
    assert "Held out: 20 choices of 20 people" in said(ran)
    assert files_beside(tmp_path / "worth") == sorted([*TABLES, "holdout.csv", "summary.csv", "summary.tex"])


@pytest.mark.slow
def test_a_logit_and_latent_classes_by_the_command(long, tmp_path):
    long.write_csv(tmp_path / "choices.csv")
    ran = run("rank", tmp_path / "choices.csv", "--model", "logit", "-o", tmp_path / "logit")
    assert ran.exit_code == 0, ran.output
    ran = run("worth", tmp_path / "logit", "--explain", "-o", tmp_path / "worth")
    assert "Likelihood: log likelihood at 0 -" in said(ran)
    assert "clustered" in said(ran)
    assert "The same coefficients for all people" in said(ran)
    table = pl.read_csv(tmp_path / "worth" / "summary.csv")
    assert table.columns[3:] == ["estimate", "hessian", "robust", "clustered", "z", "p", "lower", "upper"]
    assert "\\n" not in said(ran)
    assert "Model: logit." in said(ran)
    assert "in log-odds" in said(ran)
    assert "clustered by person" in said(ran)
    plain = run("worth", tmp_path / "logit", "--errors", "hessian", "-o", tmp_path / "plain", "--price", "price")
    assert "those of the Hessian" in said(plain)
    first, second = (pl.read_csv(tmp_path / name / "coefficients.csv") for name in ("worth", "plain"))
    np.testing.assert_allclose(first["mean"], second["mean"], rtol=1e-9)
    np.testing.assert_allclose(first["sd"], table["clustered"], rtol=1e-9)
    np.testing.assert_allclose(second["sd"], table["hessian"], rtol=1e-9)
    assert "willingness to pay" in (tmp_path / "plain" / "summary.tex").read_text()
    assert (tmp_path / "worth" / "summary.tex").read_text().startswith(r"\begin{tabular}")
    ran = run("rank", tmp_path / "choices.csv", "--model", "latent-class,n_classes=2", "-o", tmp_path / "classes")
    assert ran.exit_code == 0, ran.output
    assert "Score: log-odds of one answer; 0 is the mean of the items. Model: latent-class." in said(ran)
    ran = run("worth", tmp_path / "classes", "-o", tmp_path / "of_classes")
    assert "2 latent classes of people" in said(ran)
    assert pl.read_csv(tmp_path / "of_classes" / "memberships.csv").columns[:2] == ["user", "class 1"]


@pytest.mark.slow
def test_equal_profiles_come_back_from_the_folder(tmp_path):
    rng = np.random.default_rng(5)
    task = np.repeat(np.arange(60), 3)
    best = rng.integers(0, 3, 60)
    frame = pl.DataFrame({
        "id": [f"p{k // 6}" for k in task], "task": task, "price": rng.integers(1, 4, 180),
        "choice": (np.tile(np.arange(3), 60) == best[task]).astype(int),
    })  # fmt: skip
    out = ranked(frame, tmp_path, "--model", "logit")
    ran = run("worth", out, "--errors", "hessian", "-o", tmp_path / "worth")
    assert ran.exit_code == 0, ran.output
    fit = pl.read_csv(tmp_path / "worth" / "fit.csv")
    assert fit["choices"].to_list() == [6.0] * 10
    np.testing.assert_allclose(fit["chance"], 1.0 / 3.0)
    kept = read(tmp_path / "choices.csv")
    model = load(out)
    model.fit(kept, items=kept.item_table)
    written = pl.read_csv(tmp_path / "worth" / "coefficients.csv")
    np.testing.assert_allclose(written["mean"], model.worth.coefficients()["mean"], rtol=1e-8)


def test_what_is_not_usable_prints_no_numbers_unless_asked(long, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.choice.mixed_logit.training._SWEEPS", 20)
    monkeypatch.setattr("predilect.choice.mixed_logit.training.R_HAT", 1e9)
    out = ranked(long, tmp_path, "--model", "mixed-logit")
    market = tmp_path / "market.csv"
    pl.DataFrame({"item": ["x", "y"], "price": [1, 2], "screen": ["large", "small"]}).write_csv(market)
    for command in (("worth", out), ("simulate", out, market)):
        ran = run(*command)
        assert ran.exit_code == 2
        assert ran.stdout == ""
        assert "mixed-logit model that is not usable: " in " ".join(ran.stderr.split())
        assert "mixed-logit,n_draws=80" in ran.stderr
        forced = run(*command, "--force")
        assert forced.exit_code == 0
        assert "Not usable" in said(forced)
        assert "%" in forced.stdout
    pairs = tmp_path / "pairs.csv"
    pl.DataFrame({"left": ["x"], "right": ["y"]}).write_csv(pairs)
    asked = ("decide", out, "ann", "x", "y", "--cost-wrong", "10", "--cost-question", "1"), ("ask", out, "ann")
    for command in (("predict", out, pairs, "--items", market), *asked):
        ran = run(*command)
        assert ran.exit_code == 2
        assert ran.stdout == ""
        assert "mixed-logit model that is not usable: " in " ".join(ran.stderr.split())
        assert ("--force" in ran.stderr) == (command[0] == "predict")
    assert run("predict", out, pairs, "--items", market, "--force").exit_code == 0


def test_too_few_sweeps_ask_for_nothing_that_the_command_lacks(long, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.choice.mixed_logit.training._SWEEPS", 20)
    monkeypatch.setattr("predilect.choice.mixed_logit.training.R_HAT", 1.0)
    long.write_csv(tmp_path / "choices.csv")
    told = said(run("rank", tmp_path / "choices.csv", "--model", "mixed-logit"))
    assert "take fewer attributes, or more sweeps: --model mixed-logit,n_draws=..." in told
    assert "ask for more sweeps (n_draws)" not in told


@pytest.mark.slow
def test_attributes_may_stand_in_a_table_of_items(tmp_path):
    votes = {"user": ["a", "a", "b", "b"], "left": ["x", "y", "x", "z"], "right": ["y", "z", "z", "y"],
             "winner": ["x", "z", "x", "z"]}  # fmt: skip
    pl.DataFrame({"item": ["x", "y", "z"], "price": [1, 2, 3], "brand": [1, 2, 1]}).write_csv(tmp_path / "items.csv")
    given = ("--items", tmp_path / "items.csv", "--read", "categorical=brand")
    out = ranked(pl.DataFrame(votes), tmp_path, *given)
    ran = run("worth", out)
    assert ran.exit_code == 0, ran.output
    assert "Nothing was written" in said(ran)
    shutil.rmtree(out)
    out = ranked(pl.DataFrame(votes), tmp_path)
    assert "rank again with --items FILE" in refused("worth", out, "--price", "price")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["piecewise=price:9"], '"price" lies between 1 and 5, and is cut at 9'),
        (["piecewise=cost:2"], "not there: cost; there are"),
        (["categorical=colour"], "not there: colour; there are"),
        (["categorical=a,,b"], "--read categorical takes names"),
    ],
)
def test_attributes_that_cannot_be_used_are_said_before_the_fit(long, tmp_path, options, message):
    items = long.select(pl.concat_str("price", "screen").alias("item"), "price", "screen", weight=7).unique()
    items.write_csv(tmp_path / "items.csv")
    long.with_columns(pl.concat_str("price", "screen").alias("alt")).write_csv(tmp_path / "choices.csv")
    given = ["--items", tmp_path / "items.csv", *(part for one in options for part in ("--read", one))]
    assert message in refused("rank", tmp_path / "choices.csv", *given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--price", "prise"], "prise"), (["--price", "screen"], "these are: price"),
        (["--anchor", "x"], "--anchor is for scores of items without attributes"),
    ],
)  # fmt: skip
def test_what_is_no_price_and_no_score(folder, options, message):
    assert message in refused("worth", folder, *options)


def test_what_choices_cannot_tell_is_said(long, tmp_path):
    without = pl.when(pl.col("alt") == 1)
    long.with_columns(price=without.then(None).otherwise(pl.col("price"))).write_csv(tmp_path / "choices.csv")
    told = refused("rank", tmp_path / "choices.csv")
    assert "--read constants=yes" in told
    assert "--read constants=no" in told
    some = pl.when((pl.col("alt") == 1) & (pl.col("task") == 0))
    long.with_columns(price=some.then(None).otherwise(pl.col("price"))).write_csv(tmp_path / "choices.csv")
    told = refused("rank", tmp_path / "choices.csv")
    assert f'an attribute ("price") is missing in {long["id"].n_unique()} tasks' in told


@pytest.mark.slow
def test_an_attribute_that_decides_every_choice_and_people_with_one_task(long, tmp_path):
    cheapest = (pl.col("price") == pl.col("price").min().over("id", "task")).cast(int)
    few = long.filter((pl.col("id") < "p06") & ((pl.col("id") != "p00") | (pl.col("task") == 0)))
    told = said(run("worth", ranked(few.with_columns(choice=cheapest), tmp_path)))
    assert told.count('never has more of "price" than the average of what it was chosen from') == 1


@pytest.mark.slow
def test_ratings_have_part_worths_and_no_choices_to_explain(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(f"p{u}", f"i{i}", int(np.clip(round(5 - i + rng.normal()), 1, 5))) for u in range(6) for i in range(5)]
    pl.DataFrame({"item": [f"i{i}" for i in range(5)], "price": range(5)}).write_csv(tmp_path / "items.csv")
    ratings = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    out = ranked(ratings, tmp_path, "--items", tmp_path / "items.csv")
    ran = run("worth", out, "-o", tmp_path / "worth")
    assert ran.exit_code == 0, ran.output
    assert "How well choices are explained is not said: a task of user" in said(ran)
    assert "fit.csv" not in files_beside(tmp_path / "worth")
    assert "--holdout is about choices: a task of user" in refused("worth", out, "--holdout", 1)


@pytest.mark.slow
def test_best_worst_answers_without_attributes_have_scores(tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.choice.mixed_logit.training._SWEEPS", 400)  # which is quicker than a search
    rng, rows = np.random.default_rng(2), []
    for user in range(6):
        for _ in range(4):
            shown = rng.choice(5, 3, replace=False)
            order = shown[np.argsort(shown + 0.7 * rng.normal(size=3))]
            rows.append((f"p{user}", *(f"i{i}" for i in shown), f"i{order[0]}", f"i{order[-1]}"))
    columns = ["user", "item1", "item2", "item3", "best", "worst"]
    out = ranked(pl.DataFrame(rows, schema=columns, orient="row"), tmp_path, "--model", "mixed-logit")
    ran = run("worth", out, "-o", tmp_path / "worth", "--force")
    assert ran.exit_code == 0, ran.output
    assert files_beside(tmp_path / "worth") == ["scores.csv"]
    table = pl.read_csv(tmp_path / "worth" / "scores.csv")
    assert table["item"][0] == "i0"
    assert abs(table["score"].sum() - 100.0) < 1e-6
    assert pl.read_csv(io.StringIO(run("worth", out, "--format", "csv", "--force").stdout)).equals(table)
    told = json.loads(run("worth", out, "--anchor", "i2", "--format", "json", "--force").stdout)
    assert abs(next(row["score"] for row in told["scores"] if row["item"] == "i2") - 100.0) < 1e-6
    for options, message in ((["--anchor", "i9"], "i9"), (["--price", "i1"], "--price and --holdout need attributes")):
        assert message in refused("worth", out, *options, "--force")


def test_scores_where_every_answer_names_the_worst_alone(tmp_path):
    """All but one approved of: no choice of the best says how large a set usually is, the sets themselves do."""
    rows = [(f"u{k}", 1, item, int(item != worst)) for k, worst in enumerate("ccb") for item in "abc"]
    approved = pl.DataFrame(rows, schema=["user", "task", "item", "chosen"], orient="row")
    out = ranked(approved, tmp_path, "--read", "kind=approval")
    table = pl.read_csv(io.StringIO(run("worth", out, "--format", "csv").stdout))
    fitted = load(out)
    np.testing.assert_allclose(table["score"], fitted.scores(3)["score"], atol=1e-9)
    assert table["item"].to_list() == ["a", "b", "c"]


@pytest.mark.slow
def test_one_person_who_guesses_is_no_people(tmp_path):
    rng, rows = np.random.default_rng(2), []
    for user, task in np.ndindex(8, 24):
        x = rng.permutation(5)[:4].tolist()
        chosen = int(rng.integers(4)) if user == 3 else int(np.argmax(x))
        rows += [(f"p{user}", task, place, x[place], int(place == chosen)) for place in range(4)]
    out = ranked(pl.DataFrame(rows, schema=["id", "task", "alt", "x", "choice"], orient="row"), tmp_path)
    assert "1 person (12 %) answers no better than chance (first: p3)" in said(run("worth", out))


@pytest.mark.slow
def test_without_people_there_is_one_set_of_coefficients(long, tmp_path):
    one = long.drop("id").with_columns(task=pl.int_range(pl.len()) // 3)
    one.write_csv(tmp_path / "choices.csv")
    assert run("rank", tmp_path / "choices.csv", "-c", "who=", "-o", tmp_path / "out").exit_code == 0
    told = said(run("worth", tmp_path / "out"))
    assert "of all answers together" in told
    assert "Fit:" not in told


def test_models_that_do_not_say_what_attributes_are_worth(long, tmp_path):
    out = ranked(long.head(90), tmp_path, "--model", "gppl")
    assert "Rank with --model population or mixed-logit" in refused("worth", out)


def scenarios(path, text):
    path.write_text(text)
    return path


KNOWN = "price=1, screen=small", "price=2, screen=large"


def test_shares_of_known_and_new_items(folder, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join([
        "scenario,item,price,screen", *(f'now,"{item}",,' for item in KNOWN), *(f'then,"{item}",,' for item in KNOWN),
        "then,ours,1,large",
    ]))  # fmt: skip
    ran = run("simulate", folder, file, "--out", tmp_path / "shares.csv", "--format", "json")
    assert ran.exit_code == 0, ran.output
    table = pl.read_csv(tmp_path / "shares.csv")
    assert table.columns == ["scenario", "item", "share", "lower", "upper", "of"]
    assert table["item"].to_list() == [*KNOWN, *KNOWN, "ours"]
    np.testing.assert_allclose(table.group_by("scenario").agg(pl.col("share").sum())["share"], 1.0, atol=1e-9)
    assert table["share"][4] == table.filter(pl.col("scenario") == "then")["share"].max()
    assert json.loads(ran.stdout)["shares"][4]["share"] == table["share"][4]


@pytest.mark.slow
def test_it_is_said_of_whom_averages_are(folder, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join(["item", *(f'"{item}"' for item in KNOWN)]))
    widths = []
    for of, words in (("population", "of the population of which those who answered"), ("respondents", "of those who")):
        assert f"Shares and their intervals are {words}" in said(run("simulate", folder, file, "--of", of))
        told = json.loads(run("simulate", folder, file, "--of", of, "--format", "json").stdout)
        assert told["of"] == of
        assert {row["of"] for row in told["shares"]} == {of}
        widths.append(sum(row["upper"] - row["lower"] for row in told["shares"]))
    assert widths[0] > widths[1]
    ran = run("worth", folder, "--of", "respondents")
    assert ran.exit_code == 0, ran.output
    assert "Importances and their intervals are of those who answered alone" in said(ran)


@pytest.mark.slow
def test_an_attribute_that_follows_from_others_is_left_out_and_said(long, tmp_path):
    pixels = pl.col("screen").replace_strict({"small": 720, "large": 1080})
    out = ranked(long.with_columns(pixels=pixels), tmp_path)
    ran = run("worth", out, "--price", "price", "--format", "csv")
    assert ran.exit_code == 0, ran.output
    assert "Within answers nothing of pixels varies that other attributes do not tell" in said(ran)
    assert pl.read_csv(io.StringIO(ran.stdout))["attribute"].unique().sort().to_list() == ["price", "screen"]
    assert 'what "pixels" is worth is not known' in refused("worth", out, "--price", "pixels")


def test_attributes_of_known_items_may_be_given_in_part(folder, tmp_path):
    tables = []
    for cells in (",", "2,", ",large"):
        file = scenarios(tmp_path / "s.csv", f'item,price,screen\n"{KNOWN[0]}",1,small\n"{KNOWN[1]}",{cells}')
        ran = run("simulate", folder, file, "--format", "json")
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
    ran = run("simulate", folder, file, "--vary", f"{KNOWN[1]}.price=1,3,5", "--rule", rule,
              "--out", tmp_path / "c.csv")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    mine = pl.read_csv(tmp_path / "c.csv").filter(pl.col("item") == KNOWN[1])
    assert mine["price"].to_list() == [1.0, 3.0, 5.0]
    assert mine["share"][0] > mine["share"][2]


@pytest.mark.slow
def test_elasticities_and_the_price_that_brings_most(folder, tmp_path):
    market = tmp_path / "market.csv"
    market.write_text("item,price,screen\nours,3,large\ntheirs,2,small\n")
    ran = run("--format", "csv", "simulate", folder, market, "--elasticities", "price")
    table = pl.read_csv(io.StringIO(ran.stdout))
    assert table.columns == ["scenario", "item", "changes", "elasticity", "lower", "upper", "of"]
    assert (table.filter(pl.col("item") == pl.col("changes"))["elasticity"] < 0.0).all()
    ran = run("simulate", folder, market, "--vary", "ours.price=1,2,3", "--maximise", "margin", "--cost", "0.5")
    assert ran.exit_code == 0, ran.output
    assert "Largest: at " in said(ran)


LINES = [
    "item,price,screen,ours,unit", "a,1,small,yes,0.2", "b,2,large,yes,1.5", "c,3,large,yes,0.4", "theirs,2,small,no,",
]  # fmt: skip


@pytest.mark.slow
def test_the_line_that_brings_most(folder, tmp_path):
    market = scenarios(tmp_path / "market.csv", "\n".join(LINES))
    asked = "simulate", folder, market, "--line", "2", "--maximise"
    ran = run("--format", "csv", *asked, "margin", "--price", "price", "--cost", "unit")
    assert ran.exit_code == 0, ran.output
    table = pl.read_csv(io.StringIO(ran.stdout))
    assert table.columns == ["scenario", "line", "brings", "lower", "upper", "p_best", "is_best", "of"]
    items = pl.read_csv(market)
    cost = dict(items.filter(ours="yes")["item", "unit"].iter_rows())
    model = load(folder / "model")
    mine = model.worth.best_line(list("abc"), ["theirs"], 2, "margin", price="price", cost=cost,
                           items=items.select("item", "price", "screen"))  # fmt: skip
    assert table["line"].to_list() == pl.DataFrame(mine)["line"].to_list()
    np.testing.assert_allclose(table["brings"], mine["brings"], rtol=1e-12)
    told = said(run(*asked, "share"))
    assert f"Largest: {table_of_shares(model, items)['line'][0]}, with probability" in told
    assert "Line Brings" in told


def table_of_shares(model, items):
    return pl.DataFrame(
        model.worth.best_line(list("abc"), ["theirs"], 2, items=items.select("item", "price", "screen"))
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--line", "2"), "say of what, --maximise"),
        (("--line", "4", "--maximise", "share"), "take --line from 1 to 3"),
        (("--line", "2", "--maximise", "revenue"), "needs the attribute that is the price (--price NAME)"),
        (("--line", "2", "--maximise", "revenue", "--price", "screen"), "no number in use"),
        (("--line", "2", "--maximise", "margin", "--price", "price", "--cost", "units"), "or a column of SCENARIOS"),
        (("--line", "2", "--maximise", "margin", "--price", "price", "--cost", "item"), 'column "item" of SCENARIOS'),
        (("--line", "2", "--vary", "a.price=1,2", "--maximise", "share"), "--vary and --line are different questions"),
        (("--price", "price"), "surplus is a difference between scenarios"),
        (("--price", "price", "--vary", "a.price=1,2"), "--price is for --line, or alone"),
        (("--price", "price", "--rule", "first-choice"), "leave --rule out"),
        (("--vary", "a.price=1,2", "--maximise", "margin", "--cost", "1,2"), "--cost takes a number; got"),
    ],
)
def test_lines_that_cannot_be_told(folder, tmp_path, options, message):
    market = scenarios(tmp_path / "market.csv", "\n".join(LINES))
    assert message in refused("simulate", folder, market, *options)


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        ("mine", "in a column ours of SCENARIOS"),
        ("ours", "should hold yes or no"),
        ("none", 'nothing in scenario "" is ours'),
    ],
)
def test_what_is_ours_is_not_guessed(folder, tmp_path, ours, message):
    text = "\n".join(LINES).replace("ours", "mine" if ours == "mine" else "ours")
    text = text.replace("yes", "perhaps") if ours == "ours" else text.replace("yes", "no") if ours == "none" else text
    market = scenarios(tmp_path / "market.csv", text)
    assert message in refused("simulate", folder, market, "--line", "2", "--maximise", "share")


@pytest.mark.slow
def test_terms_of_the_default_model_by_the_command(long, tmp_path):
    place = ranked(long, tmp_path, "--model", 'population,attributes=["price","screen","price:screen"]')
    table = pl.read_csv(io.StringIO(run("--format", "csv", "worth", place).stdout))
    assert table.filter(attribute="price:screen")["level"].to_list() == ["large", "small"]
    market = scenarios(tmp_path / "market.csv", "item,price,screen\nours,3,large\ntheirs,2,small\n")
    assert run("simulate", place, market).exit_code == 0
    assert 'name "screen" among the attributes too' in refused(
        "rank", tmp_path / "choices.csv", "--model", 'population,attributes=["price","price:screen"]'
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--maximise", "revenue"), "--maximise is about the values of --vary"),
        (("--elasticities", "price", "--vary", "ours.price=1,2"), "different questions"),
        (("--elasticities", "price", "--rule", "randomised"), "leave --rule out"),
        (("--cost", "2"), "--cost is for --maximise margin"),
    ],
)
def test_options_of_simulate_that_do_not_go_together(folder, tmp_path, options, message):
    market = tmp_path / "market.csv"
    market.write_text("item,price,screen\nours,3,large\ntheirs,2,small\n")
    assert message in refused("simulate", folder, market, *options)


def test_prices_that_were_not_seen_are_told_and_shares_lie_in_their_intervals(folder, tmp_path):
    file = scenarios(tmp_path / "s.csv", "\n".join([
        "scenario,item", *(f'{name},"{item}"' for name in ("a", "b") for item in KNOWN)
    ]))  # fmt: skip
    ran = run("simulate", folder, file, "--vary", f"{KNOWN[1]}.price=5,6,60", "--format", "json")
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
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", f"{KNOWN[0][:-1]}.price=1"], "Did you mean"),
        (f'item,price\n"{KNOWN[0]}",\nours,3', [], 'lack the column "screen"; their columns are "item", "price"'),
        (f'item,price,screen\n"{KNOWN[0]}",,\n"{KNOWN[1]}",2,\nours,,large\nmine,2,', [],
         """attribute "price" is empty for 1 new item (first: 'ours', row 3 of SCENARIOS), and no item of the fit"""),
        (f'item,price,screen\n"{KNOWN[0]}",,\nours,3," "', [], "\"screen\" is empty for 1 new item (first: 'ours'"),
        (f'item,price\n"{KNOWN[0]}",3\n"{KNOWN[1]}",', [], "is known to the model with other attributes"),
        (f'item,price,screen\n"{KNOWN[0]}",3,small\n"{KNOWN[1]}",,', [], "is known to the model with other attributes"),
        ('s,item,price,screen\n1,o,3,small\n1,p,3,large\n2,o,4,small\n2,p,3,large', [], "two sorts of attributes"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", "x.price=1"], "no scenario offers 'x'"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", f"{KNOWN[0]}.price=low"], "--vary takes numbers"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", f"{KNOWN[0]}.price=1,nan"], "--vary takes"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", f"{KNOWN[0]}.screen=1"], "these are: price"),
        (f'item\n"{KNOWN[0]}"\n"{KNOWN[1]}"', ["--vary", f"{KNOWN[0]}=1"], "--vary takes ITEM.ATTRIBUTE=1,2,3"),
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
    assert "holds a model of items without attributes, and shares are of described ones. Rank choices" in said(ran)


@pytest.mark.slow
def test_worth_of_trade_offs_advises_an_attribute_that_one_can_pay_with(tmp_path, long):
    long.write_csv(tmp_path / "choices.csv")
    assert run("rank", tmp_path / "choices.csv", "--model", "gaspk", "-o", tmp_path / "out").exit_code == 0
    told = said(run("worth", tmp_path / "out", "--price", "scenario"))
    assert f"predilect show {tmp_path / 'out'} --pay-with price, --accept or --indifference" in told
    assert run("show", tmp_path / "out", "--pay-with", "price").exit_code == 0


@pytest.mark.slow
def test_rank_says_what_attributes_are_worth_in_place_of_a_board_of_profiles(tmp_path, long):
    long.write_csv(tmp_path / "choices.csv")
    ran = run("rank", tmp_path / "choices.csv", "--model", "logit", "-o", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    told = said(ran)
    assert "What one unit adds, or a level against the mean of all levels" in told
    assert "Between people" in told
    assert f"predilect show {tmp_path / 'out'} has the board of the" in told
    assert "P(best)" not in told
    assert "P(best)" in said(run("show", tmp_path / "out"))
    assert run("rank", tmp_path / "choices.csv", "--model", "logit", "--format", "csv").stdout.startswith("item,mean,")


def test_a_model_that_has_no_shares_names_those_that_have(tmp_path):
    votes = {"user": ["a", "b"], "left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "x"]}
    GPPL().fit(votes, items={"item": ["x", "y"], "size": [1.0, 2.0]}).save(tmp_path / "model")
    ran = run("simulate", tmp_path / "model", scenarios(tmp_path / "s.csv", "item\nx\ny"))
    assert ran.exit_code == 2
    names = re.search(r"holds a gppl model, which has no shares. Rank with --model ([a-z, -]+)", said(ran))[1]
    can = {name for name, entry in COMMANDS.items() if hasattr(getattr(models, entry.estimator), "worth")}
    assert set(names.replace(" or ", ", ").split(", ")) == can


@pytest.mark.slow
def test_of_one_ranking_for_all_nobody_has_part_worths_of_their_own(tmp_path, votes_frame):
    votes_frame.head(80).write_csv(tmp_path / "votes.csv")
    ran = run("rank", tmp_path / "votes.csv", "--personal", "no", "-o", tmp_path / "plain")
    names = pl.read_csv(tmp_path / "plain" / "leaderboard.csv")["item"].to_list()
    pl.DataFrame({"item": names, "size": list(range(len(names)))}).write_csv(tmp_path / "items.csv")
    ran = run(
        "rank", tmp_path / "votes.csv", "--items", tmp_path / "items.csv", "--personal", "no", "-o", tmp_path / "out"
    )
    assert ran.exit_code == 0, ran.output
    refused = run("worth", tmp_path / "out", "--user", votes_frame["judge"][0])
    assert refused.exit_code == 2
    assert "holds one ranking for all, and part-worths of nobody alone. Leave --user out" in said(refused)
    stranger = run("worth", tmp_path / "plain", "--user", "nobody")
    assert "the model does not know 'nobody': what is said is of somebody without answers" in said(stranger)
    assert "question" not in said(stranger)


@pytest.mark.slow
def test_one_person_tells_two_models_not_apart(long, tmp_path):
    """Of one there is no interval, and so no verdict."""
    out = ranked(long.filter(pl.col("id") == "p00"), tmp_path, "--model", "logit")
    told = said(run("worth", out, "--holdout", 2))
    assert "the two models cannot be told apart by one person (log loss of" in told
    assert "nan" not in told


def test_rank_does_not_advise_to_look_at_what_is_of_no_use(long, tmp_path):
    long.write_csv(tmp_path / "choices.csv")
    short = "mixed-logit,n_draws=20,n_chains=2"
    told = said(run("rank", tmp_path / "choices.csv", "--model", short, "-o", tmp_path / "out"))
    assert "is not usable" in told
    assert "rank again with more sweeps, --model mixed-logit,n_draws=80, or with fewer attributes." in told
    assert "predilect worth" not in told
    assert "Rank again with more sweeps, --model mixed-logit,n_draws=80" in refused("worth", tmp_path / "out")


def test_pay_over_people_has_a_median_and_a_mean_under_a_price_of_one_sign(long, tmp_path):
    given = 'mixed-logit,method=simulated,n_draws=60,distributions={"price":"negative log-normal"}'
    out = ranked(long, tmp_path, "--model", given)
    ran = run("worth", out, "--price", "price", "-o", tmp_path / "tables")
    assert ran.exit_code == 0, ran.output
    assert "Median over people" in said(ran)
    assert "Mean over people" in said(ran)
    table = pl.read_csv(tmp_path / "tables" / "willingness_to_pay.csv")
    expected = load(out).worth.willingness_to_pay("price")
    np.testing.assert_allclose(table["mean_upper"], expected["mean_upper"], rtol=1e-9)
    assert "mean over people" in (tmp_path / "tables" / "summary.tex").read_text(encoding="utf-8")
