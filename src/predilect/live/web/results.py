"""What came out, for those who read no statistics: the results, one's own ranking, a page for the room, a picture."""

from __future__ import annotations

import io
from typing import Annotated, Any

import segno
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from predilect.live.belief import DUELS
from predilect.live.given import Refused
from predilect.live.poll import Poll
from predilect.live.web.api import ThePoll, access_of
from predilect.live.web.pages import page, page_language, whole_address
from predilect.live.web.texts import Speech
from predilect.show.charts.chart import Chart, Row, Whiskers, isolated, name_of
from predilect.show.charts.on_axes import can_plot, figure_of
from predilect.show.charts.svg import standing_alone

routes = APIRouter(prefix="/p/{poll}", include_in_schema=False, default_response_class=HTMLResponse)
Criterion = Annotated[int, Query(ge=0, le=9)]
_FEW = 4  # items that may be first and are still named
_IN_THE_ROOM, _IN_A_PICTURE = 8, 15  # items
_FOLLOWED = "default-src 'none'; style-src 'unsafe-inline'"  # of a picture that somebody opens by itself


@routes.get("/results")
def results(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The crowd's board, where everybody may see it, with the reader's own ranking beside it."""
    public(poll)
    visitor = access_of(request).participant(request, poll)
    own = None if visitor is None else poll.mine(visitor.number, criterion)
    beside = None if own is None else beside_of(rows_of(own), "mine")
    return page(request, "ranking.html", poll, is_own=False, link=link_of(request, poll), has_png=can_plot(),
                **crowd(poll, criterion, beside))  # fmt: skip


@routes.get("/mine")
def mine(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The participant's own ranking, with the crowd's beside it where everybody may see that."""
    visitor = access_of(request).needed(request, poll)
    table = poll.mine(visitor.number, criterion)
    rows = [] if table is None else rows_of(table)
    is_shown = rows and poll.settings.public
    beside = beside_of(rows_of(poll.board(criterion, max_age=1.0)), "crowd") if is_shown else None
    return page(request, "ranking.html", poll, rows=rows, first=[], criterion=criterion, is_own=True, beside=beside,
                groups=None)  # fmt: skip


@routes.get("/room")
def room(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The results for a screen that many look at."""
    public(poll)
    return in_the_room(request, poll, criterion)


@routes.get("/results.{form}")
def picture(request: Request, poll: ThePoll, form: str, criterion: Criterion = 0) -> Response:
    """The results as a picture."""
    public(poll)
    return pictured(request, poll, form, criterion)


@routes.get("/qr.svg")
def code(request: Request, poll: ThePoll) -> Response:
    """The participants' address as a QR code, black on white whatever is around it."""
    drawn = io.BytesIO()
    segno.make(link_of(request, poll), error="m").save(drawn, kind="svg", scale=8, light="white", xmldecl=False)
    return Response(drawn.getvalue(), media_type="image/svg+xml", headers={"Content-Security-Policy": _FOLLOWED})


def public(poll: Poll) -> None:
    """Refused unless everybody may see the results."""
    if not poll.settings.public:
        raise Refused("the results of this poll are not public", 403)


def link_of(request: Request, poll: Poll) -> str:
    """The participants' address."""
    return whole_address(request, f"/p/{poll.name}")


def in_the_room(request: Request, poll: Poll, criterion: int) -> Response:
    """The page for a room, which follows by itself."""
    link = link_of(request, poll)
    return page(request, "room.html", poll, link=link, short=link.partition("://")[2], most=_IN_THE_ROOM,
                status_now=poll.status, **crowd(poll, criterion))  # fmt: skip


def pictured(request: Request, poll: Poll, form: str, criterion: int) -> Response:
    """The results as SVG, or as PNG where Matplotlib is installed."""
    if form not in ("svg", "png"):
        raise Refused("there is no such picture", 404)
    if form == "png" and not can_plot():
        raise Refused("this server draws no PNG: it lacks predilect[plots]", 404)
    say = Speech(page_language(request, poll))
    found = crowd(poll, criterion)
    chart = _chart(found["rows"], say)
    question = poll.settings.boards[criterion]
    foot = f"{say.counts(found['n'], found['people'])} \N{MIDDLE DOT} {link_of(request, poll)}"
    headers = {"Content-Security-Policy": _FOLLOWED, "Content-Disposition": f'inline; filename="{poll.name}.{form}"'}
    if form == "svg":
        return Response(standing_alone(chart, question, foot), media_type="image/svg+xml", headers=headers)
    drawn = io.BytesIO()
    figure_of(chart, question).savefig(drawn, format="png", dpi=150)
    return Response(drawn.getvalue(), media_type="image/png", headers=headers)


def _chart(rows: list[dict[str, Any]], say: Speech) -> Chart:
    shown = [
        Row(f"{place}  {isolated(row['item'])}", row["wins"], row["low"], row["high"],
            f"{name_of(row['item'])}: {told_of(row, say)}")
        for place, row in enumerate(rows[:_IN_A_PICTURE], 1)
    ]  # fmt: skip
    return Chart(Whiskers(shown), say("results"), " ".join(row.sentence for row in shown), (say("wins_axis"), ""))


def told_of(row: dict[str, Any], say: Speech, key: str = "wins") -> str:
    """What is said of a row, in words: how many duels it wins, and how sure that is."""
    share, low, high = (say.percent(row[name] / 100.0) for name in ("wins", "low", "high"))
    return say(key, share=share) + " " + say("wins_between", low=low, high=high)


def crowd(poll: Poll, criterion: int, beside: dict[str, Any] | None = None) -> dict[str, Any]:
    """What every page of results shows: rows, what may be first, how many answered, and what stands beside it."""
    people, rows = poll.people(max_age=2.0), rows_of(poll.board(criterion, max_age=1.0))
    return {"rows": rows, "first": first_of(rows, poll.settings.level), "people": people["with_answers"],
            "n": people["answers"], "criterion": criterion, "beside": beside,
            "groups": poll.groups(criterion)}  # fmt: skip


def first_of(rows: list[dict[str, Any]], level: float) -> list[str]:
    """The fewest items of which one is the best, with the probability that is enough; none if they are many."""
    found, total = list[str](), 0.0
    for row in sorted(rows, key=lambda row: -row["p_best"]):
        if len(found) == _FEW:
            return []
        found.append(row["item"])
        total += row["p_best"]
        if total >= level:
            break
    return found


def beside_of(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Another ranking of the same items: its name, and by item its place and share of duels."""
    return {"name": name, "of": {row["item"]: {"place": place, "wins": row["wins"]}
                                 for place, row in enumerate(rows, 1)}}  # fmt: skip


def rows_of(board: Any) -> list[dict[str, Any]]:
    """Rows of a board: shares of duels in per cent, and where the bars of scores begin and end, from 0 to 100."""
    rows: list[dict[str, Any]] = board.to_dicts()
    low, high = min((row["lower"] for row in rows), default=0.0), max((row["upper"] for row in rows), default=0.0)
    width = (high - low) or 1.0
    for row in rows:
        row |= {name: round(100.0 * (row[column] - low) / width, 2)
                for name, column in (("from", "lower"), ("to", "upper"), ("at", "mean"))}  # fmt: skip
        row |= {name: round(100.0 * row[column], 1)
                for name, column in zip(("wins", "low", "high"), DUELS, strict=True)}  # fmt: skip
    return rows
