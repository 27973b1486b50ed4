"""The report as one HTML page: it asks nothing of any other place, and everything can be read without script."""

from __future__ import annotations

from html import escape
from importlib.resources import files

import numpy as np
import polars as pl

from predilect._text import amount, grouped, number, one_line, percent
from predilect.charts.facts import has_attributes
from predilect.charts.pictures import (
    MOST_ROWS,
    board_chart,
    calibration_chart,
    effects_chart,
    importances_chart,
    pairs_chart,
    part_worths_chart,
    people_chart,
    ranks_chart,
    segments_chart,
)
from predilect.charts.svg import name_of, style
from predilect.report.changes import ASSUMPTION
from predilect.report.contents import MOST_WITH_DRAWS, Contents, needy, reading_it, sentences
from predilect.report.html import attribute, bullets, figure, named, row, table
from predilect.report.tables import least_consistent

MOST_ITEMS = 1000  # rows of the board
_MOST_CHANGES, _MOST_NAMED = 100, 20
# Browsers keep to it: nothing can be asked of any other place, whatever the page holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'"


def page(told: Contents) -> str:
    """The whole page."""
    sections = [
        ("says", "What it says", bullets(sentences(told), "ol")),
        ("board", "The board", _board(told)),
        ("trust", "Can you trust this?", _trust(told)),
        ("reading", "How to read it, and how not to", _reading(told)),
        ("pairs", "Item against item", _pairs(told)),
        ("ranks", "How sure the ranks are", _ranks(told)),
        ("people", "How people differ", _people(told)),
        ("segments", "Segments of people", _segments(told)),
        ("effects", "Effects of the side and of other covariates", _effects(told)),
        ("attributes", "What attributes are worth", _attributes(told)),
        ("changes", "What changed", _changes(told)),
        ("next", "What to ask next", _next(told)),
        ("made", "How this was made", _made(told)),
    ]
    sections = [one for one in sections if one[2]]
    links = "".join(f'<li><a href="#{key}">{escape(head)}</a></li>' for key, head, _ in sections)
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{escape(head)}</h2>{inside}</section>\n'
        for key, head, inside in sections
    )
    title = escape(name_of(told.title))
    counts = f"{grouped(len(told.board))} items, from {told.answered}. {told.made['Date']}"
    sheet, script = ((files("predilect.report") / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{style()}{sheet}</style></head>\n"
        '<body class="predilect"><a class="skip" href="#board">Skip to the board</a>\n'
        f"<header><h1>{title}</h1><p>{escape(counts)}</p>"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>\n<main>{body}</main>\n'
        '<footer><p class="soft">Made by Predilect, which ranks from answers to “which of these two?”. This file holds '
        f"all that it shows.</p></footer>\n<script>{script}</script></body></html>\n"
    )


def _board(told: Contents) -> str:
    board, digits = told.board, told.scale.digits
    rows, tier = [], 1
    for item in board.head(MOST_ITEMS).iter_rows(named=True):
        opens, tier = item["tier"] != tier, item["tier"]
        ranks, n = f"{item['rank_low']}–{item['rank_high']}", amount(item["n"])
        interval = f"{number(item['lower'], digits)} … {number(item['upper'], digits)}"
        # On a phone these columns are a second line below the name: see page.css.
        folded = f"{interval}, rank {ranks}, tier {tier}, {n} {'answer' if item['n'] == 1 else 'answers'}"
        rows.append(
            f"<tr{attribute('class', 'new' * opens)}><td>{item['rank']}</td><td>{ranks}</td>"
            f'<th scope="row" class="t" data-more="{folded}">{named(item["item"])}</th>'
            f"<td>{number(item['mean'], digits)}</td><td>{interval}</td>"
            f'<td data-v="{item["p_best"]:.3g}">{escape(percent(item["p_best"]))}</td><td>{tier}</td><td>{n}</td></tr>'
        )
    heads = ["Rank", "95 %", ":Item", "Score", "95 % interval", "P(best)", "Tier", "Answers"]
    by = ["up", "", "text", "down", "", "down", "up", "down"]
    caption = f"{grouped(len(board))} items, best first; a thick line opens a new tier"
    if len(board) > MOST_ITEMS:
        caption += f". The first {grouped(MOST_ITEMS)} are listed, {grouped(len(board) - MOST_ITEMS)} are left out here"
    shown = "all items" if len(board) <= MOST_ROWS else f"the best {MOST_ROWS} items"
    chart = board_chart(board, told.scale.unit, digits, origin=told.scale.origin)
    drawn = figure(chart, f"Scores of {shown} with 95 % intervals. Bands are tiers.")
    return drawn + table(caption, heads, rows, "board sortable", by)


def _trust(told: Contents) -> str:
    model, verdict = told.model, told.verdict
    fit = model.report_["fit"]
    rounds = f"{fit['iterations']} iterations"
    lines = [f"The fit converged after {rounds}."]
    if not fit["converged"]:
        lines = [f"Warning: the fit did not converge in {rounds}. Do not rely on these numbers."]
    lines += [f"Warning: {line}" for line in told.warnings]
    if told.findings is None:
        lines.append("Not checked: the model was loaded without its answers, so they could not be looked at again.")
    elif not told.findings:
        lines.append("Checked for what makes a ranking untrustworthy: nothing was found.")
    else:
        said = [one.with_names if told.name_people else one.message for one in told.findings]
        lines += [f"{one.severity.capitalize()}: {text}" for one, text in zip(told.findings, said, strict=True)]
    parts = [bullets(lines), "<h3>Held-out answers</h3>"]
    if verdict is None:
        parts.append("<p>No verdict: nothing was held out to see how well the ranking predicts.</p>")
    else:
        parts.append(bullets([*verdict.sentences, *([told.returned] if told.returned else [])]))
        if verdict.reliability:
            caption = (
                "Probabilities given to held-out answers, and how often these came, with 95 % intervals. On the dashed "
                "line a probability means what it says."
            )
            parts.append(figure(calibration_chart(verdict.reliability), caption, small=True))
    read, learned = model.report_["intake"], model.describe()
    if told.name_people:
        learned += least_consistent(model)
        read = read if model.comparisons_ is None else model.comparisons_.intake.describe(name_people=True)
    parts += ["<h3>What was read, and what was left out</h3>", bullets(read)]
    parts += ["<h3>What was learned</h3>", bullets(learned)]
    return "".join(parts)


def _reading(told: Contents) -> str:
    read, not_read = reading_it(told)
    return f"{bullets(read)}<h3>How not to read it</h3>{bullets(not_read)}"


def _pairs(told: Contents) -> str:
    pairs = told.pairs
    n = len(pairs.items)
    which = f"the best {n} of {grouped(len(told.board))} items" if n < len(told.board) else f"all {n} items"
    expected = (
        f"How often a new person would prefer the row to the column, in per cent: {which}. Columns have the numbers of "
        "the rows."
    )
    parts = [figure(pairs_chart(pairs), expected)]
    if pairs.n.any():
        caption = "The same in the answers. Few answers to a pair say little."
        parts.append(figure(pairs_chart(pairs, observed=True), caption))
    rows = []
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        both = (i, j), (j, i)
        seen = [f"{100 * pairs.observed[one]:.0f} %" if pairs.n[i, j] else "" for one in both]
        cells = [f"{100 * pairs.expected[one]:.0f} %" for one in both] + seen
        rows.append(row(str(i + 1), str(j + 1), *cells, amount(pairs.n[i, j])))
    heads = [":One", "Other", "One expected", "Other expected", "One observed", "Other observed", "Answers"]
    all_pairs = table(f"All pairs of {which}, by their places on the board; ties are for neither", heads, rows)
    return f"{''.join(parts)}<details><summary>All {len(rows)} pairs in a table</summary>{all_pairs}</details>"


def _ranks(told: Contents) -> str:
    items = told.pairs.items
    caption = f"Probability of each rank in per cent, for the best {len(items)} items."
    return figure(ranks_chart(items, told.ranks), caption)


def _people(told: Contents) -> str:
    found, parts = told.people, []
    if found is not None:
        n, share = len(found.place), [100 * one for one in found.share]
        caption = (
            f"{'All' if n == found.n_people else f'{n} of'} {grouped(found.n_people)} people on the two main axes of "
            f"how they differ ({share[0]:.0f} and {share[1]:.0f} % of it), in units of the noise of one answer. Who "
            "answered little stands near the middle."
        )
        parts.append(figure(people_chart(found), caption))
        sides = ("To the left", "to the right"), ("At the bottom", "at the top")
        for ends, names in zip(found.ends, sides, strict=True):
            told_ends = [
                f"{name}: more for {', '.join(map(named, end))}" for name, end in zip(names, ends, strict=True)
            ]
            parts.append(f"<p>{'; '.join(told_ends)}.</p>")
    if told.answerers is not None:
        parts.append(bullets(_answerers(told.answerers)))
    return "".join(parts)


def _answerers(people: pl.DataFrame) -> list[str]:
    low, middle, high = (
        amount(round(value)) for value in np.quantile(people["n"].to_numpy(), [0.25, 0.5, 0.75]).tolist()
    )
    lines = [f"The middle person gave {middle} answers, the middle half {low} to {high}."]
    agreement = people["agreement"].drop_nulls().to_numpy()
    if len(agreement):
        share = 100 * np.quantile(agreement, [0.1, 0.5, 0.9])
        lines.append(
            f"Where the middle person preferred one item, it was the crowd's in {share[1]:.0f} % of answers; four "
            f"people in five lie between {share[0]:.0f} and {share[2]:.0f} %."
        )
    return lines


def _segments(told: Contents) -> str:
    parts, unit = [], told.scale.of_differences
    digits = unit.digits
    for column in dict.fromkeys(board["column"][0] for board in told.segments):
        own = [board for board in told.segments if board["column"][0] == column]
        title = f'Segments by "{one_line(column)}"'
        caption = f"{title}: score less the crowd's, with the number of people. A star: more than chance."
        parts.append(figure(segments_chart(own, told.board, unit.unit, digits), caption))
        rows = []
        for board in own:
            sure = board.filter(pl.col("more_than_chance")).sort(pl.col("difference").abs(), descending=True)
            first = sure.select("item", "difference").head(5).iter_rows()
            said = ", ".join(f"{named(item)} {difference:+.{digits}f}" for item, difference in first)
            rows.append(row(named(board["segment"][0]), str(board["people"][0]), str(len(sure)), said))
        parts.append(table(title, [":Segment", "People", "Items beyond chance", ":Largest of them"], rows))
    return "".join(parts)


def _effects(told: Contents) -> str:
    effects = told.covariates
    if effects is None or not len(effects):
        return ""
    rows = [
        row(
            named(one["covariate"]), f"{one['effect']:+.3g}", f"{one['lower']:+.3g} … {one['upper']:+.3g}",
            f"{one['rms']:.3g}", f"{one['effect_of_rms']:+.3f}",
            "not tried" if one["spread"] is None else f"{one['spread']:.3g}",
        )
        for one in effects.iter_rows(named=True)
    ]  # fmt: skip
    heads = [":Covariate", "Effect of one unit", "95 % interval", "Usual difference", "Its effect", "Sd over people"]
    caption = (
        "What is added to the utility of the left item, in units of the noise of one answer. The board is at equal "
        "covariates"
    )
    drawn = figure(effects_chart(effects), "Effects of a usual difference, with 95 % intervals.")
    return drawn + table(caption, heads, rows)


def _attributes(told: Contents) -> str:
    if told.attributes is None:
        left_out = f"Left out here for more than {grouped(MOST_WITH_DRAWS)} people: model.part_worths() has them."
        return f"<p>{left_out}</p>" if has_attributes(told.model) else ""
    importances, worths = told.attributes
    rows = [
        row(
            named(one["attribute"]), named(one["label"]), f"{one['mean']:+.3g}",
            f"{one['lower']:+.3g} … {one['upper']:+.3g}", f"{one['spread']:.3g}",
        )
        for one in worths.iter_rows(named=True)
    ]  # fmt: skip
    heads = [":Attribute", ":Level", "Worth, mean", "95 % interval", "Spread between people"]
    return (
        figure(
            importances_chart(importances),
            "How much each attribute matters over the range of the items; intervals are of the population of which "
            "those who answered are a sample.",
        )
        + figure(part_worths_chart(worths), "What attributes are worth; the levels of a category sum to 0.")
        + table(f"Part-worths, in {told.model._likelihood.unit}", heads, rows)
    )


def _changes(told: Contents) -> str:
    changes, digits = told.changes, told.scale.of_differences.digits
    if changes is None:
        return ""

    def interval(one: dict[str, float], start: str = "") -> str:
        return f"{number(one[f'{start}lower'], digits)} … {number(one[f'{start}upper'], digits)}"

    rows = [
        row(
            named(one["item"]), f"{number(one['old'], digits)} ({interval(one, 'old_')})",
            f"{number(one['new'], digits)} ({interval(one, 'new_')})", f"{one['difference']:+.{digits}f}",
            interval(one), f"{one['old_rank']} → {one['new_rank']}", "yes" if one["more_than_chance"] else "no",
        )
        for one in changes.table.head(_MOST_CHANGES).iter_rows(named=True)
    ]  # fmt: skip
    heads = [":Item", "Before (95 %)", "Now (95 %)", "Difference", "95 % interval", "Rank", "More than chance"]
    caption = "Scores before and now, of which 0 is the mean of the items in both, the surest change first"
    if len(changes.table) > len(rows):
        caption += f"; {len(changes.table) - len(rows)} more items are left out"
    beside = []
    for what, ids in (("New items", changes.came), ("Items that are gone", changes.went)):
        if ids:
            more = ", ..." if len(ids) > _MOST_NAMED else ""
            beside.append(f"{what}: {', '.join(map(name_of, ids[:_MOST_NAMED]))}{more}.")
    first = [changes.sentence, *beside]
    return bullets(first) + (f"{table(caption, heads, rows)}<p>{escape(ASSUMPTION)}</p>" if rows else "")


def _next(told: Contents) -> str:
    rows = [
        row(
            named(one["left"]), named(one["right"]), f"{one['score']:.2f}",
            *(f"{100 * one[key]:.0f} %" for key in ("p_left", "p_tie", "p_right")),
        )
        for one in told.questions.iter_rows(named=True)
    ]  # fmt: skip
    caption = "Pairs whose answers tell most about a new person, in bits, with the answers that are expected"
    questions = table(caption, [":One item", ":Other item", "Bits", "One", "Tie", "Other"], rows)
    least = "; ".join(map(escape, needy(told.board)))
    return f"{questions}<p>Least is known of the ranks of {least}. Show these items more often.</p>"


def _made(told: Contents) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(one_line(value))}</dd>" for name, value in told.made.items())
    return f"<dl>{facts}</dl>"
