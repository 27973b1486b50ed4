"""Pages of the organiser: the board as it grows, items, people, exports, settings, and new polls."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import re
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response

from predilect.errors import DataError
from predilect.live.acts import ROLES, may, role_of_export
from predilect.live.exports import Export, written
from predilect.live.given import Refused, alike, item_of
from predilect.live.poll import Poll
from predilect.live.settings import FIXED, Setting, Settings, described, read_settings
from predilect.live.state import TOLD, Item, Organiser, Role
from predilect.live.web.access import address_of
from predilect.live.web.api import Stored, ThePoll, access_of
from predilect.live.web.hosting import form_token
from predilect.live.web.pages import Field, page, page_language, said_in, to, whole_address
from predilect.live.web.results import Criterion, beside_of, crowd, in_the_room, link_of, pictured, rows_of

routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_ON_A_PAGE = 200  # acts of the trail
_LONG = Annotated[Stored, Form(max_length=900_000)]


def _ruled(request: Request, poll: Poll, csrf: str | None = None, *, role: Role = "reader") -> dict[str, Any]:
    """What every page of organisers needs; Refused for anybody else, and for a form that is not ours."""
    access = access_of(request)
    ruler = access.ruling(request, poll, role)
    if csrf is not None:
        access.check_form(csrf, poll, ruler.token)
    return {"csrf": form_token(ruler.token, poll.name), "me": ruler.who, "may": lambda role: may(ruler.who, role)}


def _acting(request: Request, poll: Poll, csrf: str) -> int:
    """The number of the organiser who sent a form; what their role allows is looked at where it is done."""
    who: Organiser = _ruled(request, poll, csrf)["me"]
    return who.number


@routes.get("/o/{poll}")
def board(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The board, or for whoever is not signed in the way to do so."""
    if access_of(request).organiser(request, poll) is None:
        return page(request, "sign_in.html", poll, wrong="", token="", who=None)
    more = _ruled(request, poll)
    left_out = ", ".join(str(one.row) for one in poll.left_out())
    found = crowd(poll, criterion)
    outlook = poll.outlook(criterion=criterion) if found["n"] else None
    return page(request, "board.html", poll, outlook=outlook, link=link_of(request, poll), status_now=poll.status,
                left_out=left_out, **found, **more)  # fmt: skip


@routes.get("/o/{poll}/room")
def room(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The page for a room, of results that not everybody may see."""
    _ruled(request, poll)
    return in_the_room(request, poll, criterion)


@routes.get("/o/{poll}/preview")
def preview(request: Request, poll: ThePoll) -> Response:
    """What participants are going to see; nothing of it is kept."""
    return page(request, "preview.html", poll, question=poll.preview(), **_ruled(request, poll))


@routes.get("/o/{poll}/results.{form}")
def picture(request: Request, poll: ThePoll, form: str, criterion: Criterion = 0) -> Response:
    """A picture of results that not everybody may see."""
    _ruled(request, poll)
    return pictured(request, poll, form, criterion)


@routes.get("/o/{poll}/in/{token}")
def link(request: Request, poll: ThePoll, token: str) -> Response:
    """The link of an organiser, who is asked whether to sign in: opening a link alone does nothing."""
    who = poll.organiser(token) if token.isascii() else None
    if who is None:
        access_of(request).attempts.take(address_of(request))
        raise Refused("this link was taken back, or is of nobody", 403)
    return page(request, "sign_in.html", poll, wrong="", token=token, who=who)


@routes.post("/o/{poll}/sign-in")
def sign_in(request: Request, poll: ThePoll, token: Field = "") -> Response:
    """Exchange the token for a cookie."""
    access = access_of(request)
    access.check_origin(request)
    if not token.strip().isascii() or not poll.is_organiser(token.strip()):
        access.attempts.take(address_of(request))
        return page(request, "sign_in.html", poll, wrong="token_wrong", token="", who=None, status=403)
    answer = to(request, f"/o/{poll.name}")
    access.remember(answer, "organiser", poll, token.strip())
    return answer


@routes.post("/o/{poll}/sign-out")
def sign_out(request: Request, poll: ThePoll, csrf: Field = "") -> Response:
    """Forget the cookie."""
    _ruled(request, poll, csrf)
    answer = to(request, f"/o/{poll.name}")
    access_of(request).forget(answer, "organiser", poll)
    return answer


@routes.post("/o/{poll}/status")
def status(
    request: Request, poll: ThePoll, status: Annotated[Literal["open", "paused", "closed"], Form()], csrf: Field = ""
) -> Response:
    """Open, pause or close the poll."""
    poll.act("set_status", status, by=_acting(request, poll, csrf))
    return to(request, f"/o/{poll.name}")


@routes.get("/o/{poll}/items")
def items(request: Request, poll: ThePoll) -> Response:
    """All items, and proposals that wait, with what says the same."""
    more = _ruled(request, poll)
    with poll.log.lock:
        shown = dict(enumerate(poll.log.state.times_shown, 1))
    there = poll.items
    alike_to = {item.number: _alike(item, there) for item in there if item.state == "proposed"}
    return page(request, "items.html", poll, items=there, shown=shown, alike_to=alike_to, **more)


def _alike(item: Item, items: list[Item]) -> list[Item]:
    """What may say the same as an item, and what it can be merged into."""
    return alike(item.name, [one for one in items if one.state in ("active", "retired") and one is not item])


@routes.post("/o/{poll}/items")
def add_items(request: Request, poll: ThePoll, csrf: Field = "", names: _LONG = "") -> Response:
    """Add items, one a line."""
    poll.act("add", lines(names), by=_acting(request, poll, csrf))
    return to(request, f"/o/{poll.name}/items")


@routes.get("/o/{poll}/items/{item}")
def item(request: Request, poll: ThePoll, item: int) -> Response:
    """One item: what is said of it, and what it may be merged into."""
    return _item_page(request, poll, item_of(poll.items, item), **_ruled(request, poll))


def _item_page(
    request: Request, poll: Poll, item: Item, *, wrong: str = "", said: dict[str, str] | None = None, **more: Any
) -> Response:  # fmt: skip
    there = poll.items
    names = [one.name for one in there if one.state in ("active", "retired") and one is not item]
    told = {name: getattr(item, name) for name in TOLD} | (said or {})
    return page(request, "item.html", poll, item=item, said=told, wrong=wrong, names=names, found=_alike(item, there),
                into=None if item.into is None else there[item.into - 1], status=400 if wrong else 200,
                **more)  # fmt: skip


@routes.post("/o/{poll}/items/{item}")
async def change_item(request: Request, poll: ThePoll, item: int) -> Response:
    """Accept, refuse, retire, change, merge or part an item."""
    return await run_in_threadpool(_change_item, request, poll, item, await said_in(request))


def _change_item(request: Request, poll: Poll, item: int, said: dict[str, str]) -> Response:
    more = _ruled(request, poll, said.get("csrf", ""), role="moderator")
    number = said.get("number", "")[:15]
    into = int(number) if number.isdecimal() else said.get("into", "")
    told = {name: said[name] for name in TOLD if name in said}
    acts: dict[str, tuple[Any, ...]] = {
        "accept": ("moderate", item, True), "refuse": ("moderate", item, False), "retire": ("retire", item),
        "part": ("part", item), "merge": ("merge", item, into), "change": ("edit", item, told),
    }  # fmt: skip
    act = acts.get(said.get("what", ""))
    if act is None:
        raise Refused("this form is not of one of our pages. Open the page again", 400)
    try:
        poll.act(*act, by=more["me"].number)
    except DataError as error:
        if said["what"] not in ("merge", "change"):
            raise
        return _item_page(request, poll, item_of(poll.items, item), wrong=str(error), said=told, **more)
    return to(request, f"/o/{poll.name}/items")


@routes.get("/o/{poll}/people")
def people(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """Numbers about who answered, and the board beside what it is without those whose answers look like none."""
    more, found, rows = _ruled(request, poll), poll.people(), []
    beside = None
    if found["suspects"]:
        rows = rows_of(poll.board(criterion, max_age=1.0))
        beside = beside_of(rows_of(poll.board_without_suspects(criterion)), "rest")
    return page(request, "people.html", poll, people=found, rows=rows, beside=beside, criterion=criterion, **more)


@routes.get("/o/{poll}/export/{name}")
def export(request: Request, poll: ThePoll, name: str, pids: bool = False) -> Response:
    """A table: answers.csv, board.json, shown.parquet and the like."""
    _ruled(request, poll, role=role_of_export(name.partition(".")[0], pids))
    found = re.fullmatch(rf"({'|'.join(get_args(Export))})\.(csv|json|parquet)", name)
    if found is None:
        raise Refused("there is no such table", 404)
    kind, form = found.groups()
    told: Export = kind  # type: ignore[assignment]
    content = written(poll.export(told, show_pids=pids), form)
    kinds = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/octet-stream"}
    headers = {"Content-Disposition": f'attachment; filename="{poll.name}-{name}"'}
    return Response(content, media_type=kinds[form], headers=headers)


@routes.get("/o/{poll}/settings")
def settings(request: Request, poll: ThePoll) -> Response:
    """What may be changed."""
    more = _ruled(request, poll, role="organiser")
    return _settings_page(request, poll, more, _form_of(poll.settings))


def _settings_page(
    request: Request, poll: Poll, more: dict[str, Any], said: dict[str, str], wrong: str = ""
) -> Response:  # fmt: skip
    with poll.log.lock:
        fixed = FIXED if poll.log.state.n_events else ()
    return page(request, "settings.html", poll, wrong=wrong, said=said, sections=sections(), fixed=fixed,
                snippet=_snippet(request, poll), status=400 if wrong else 200, **more)  # fmt: skip


@routes.post("/o/{poll}/settings")
async def change_settings(request: Request, poll: ThePoll) -> Response:
    """Change settings."""
    return await run_in_threadpool(_change_settings, request, poll, await said_in(request))


def _change_settings(request: Request, poll: Poll, said: dict[str, str]) -> Response:
    more = _ruled(request, poll, said.get("csrf", ""), role="organiser")
    there = _form_of(poll.settings)
    # A form sends all that it shows: what stays as it was was not said.
    moved = {name: text for name, text in said.items() if name in there and _lines(text) != _lines(there[name])}
    try:
        poll.act("change", read_settings(moved), by=more["me"].number)
    except DataError as error:
        return _settings_page(request, poll, more, there | said, str(error))
    return to(request, f"/o/{poll.name}/settings")


def _lines(text: str) -> list[str]:
    """A text without what a browser makes of its line ends."""
    return text.strip().splitlines()


def _form_of(settings: Settings) -> dict[str, str]:
    """Settings as their form has them."""
    return {name: one.written(getattr(settings, name)) for name, one in described().items()}


def sections() -> dict[str, list[Setting]]:
    """Settings as forms show them: in sections."""
    every = described().values()
    return {name: [one for one in every if one.section == name] for name in dict.fromkeys(one.section for one in every)}


def _snippet(request: Request, poll: Poll) -> str:
    """What another site writes into a page to show the poll in it."""
    link, title = link_of(request, poll), html.escape(poll.settings.question)
    return f'<iframe src="{link}" title="{title}" width="100%" height="800" style="border: 0"></iframe>'


@routes.get("/o/{poll}/organisers")
def organisers(request: Request, poll: ThePoll) -> Response:
    """Who looks after the poll, and who did what."""
    return _organisers_page(request, poll, _ruled(request, poll))


def _organisers_page(
    request: Request, poll: Poll, more: dict[str, Any], *, wrong: str = "", made: str = ""
) -> Response:  # fmt: skip
    rows = poll.export("trail").reverse().head(_ON_A_PAGE).to_dicts()
    return page(request, "organisers.html", poll, there=poll.organisers(), rows=rows, wrong=wrong, made=made,
                roles=ROLES, status=400 if wrong else 200, **more)  # fmt: skip


@routes.post("/o/{poll}/organisers")
def change_organisers(
    request: Request, poll: ThePoll, csrf: Field = "", name: Field = "", role: Field = "", revoke: Field = ""
) -> Response:  # fmt: skip
    """Let somebody look after the poll, whose link is shown this once; or take a link back."""
    more = _ruled(request, poll, csrf, role="organiser")
    me: Organiser = more["me"]
    if revoke:
        poll.revoke(int(revoke) if revoke.isdecimal() and len(revoke) < 16 else revoke, by=me.number)
        return to(request, f"/o/{poll.name}/organisers")
    try:
        _, token = poll.invite(name, role, by=me.number)
    except DataError as error:
        return _organisers_page(request, poll, more, wrong=str(error))
    return _organisers_page(request, poll, more, made=whole_address(request, f"/o/{poll.name}/in/{token}"))


@routes.get("/o/{poll}/report")
def report(request: Request, poll: ThePoll, criterion: Criterion = 0) -> Response:
    """The page of a report on the board, with a policy of its own: its style and script are in it."""
    _ruled(request, poll)
    from predilect.show.report.page import page as whole

    told = whole(poll.contents(criterion))
    return HTMLResponse(told, headers={"Content-Security-Policy": policy_of(told)})


def policy_of(told: str) -> str:
    """Policy that allows the styles and the script that stand in a page, by their hashes, and nothing else."""
    inside = {name: re.findall(rf"<{name}>(.*?)</{name}>", told, flags=re.S) for name in ("style", "script")}
    attributes = sorted(set(re.findall(r'\sstyle="([^"]*)"', told)))
    styles = _hashes([*inside["style"], *map(html.unescape, attributes)])
    return (
        f"default-src 'none'; style-src 'unsafe-hashes' {styles}; script-src {_hashes(inside['script'])}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in texts)


@routes.get("/new")
def new(request: Request) -> Response:
    """The form of a new poll."""
    return _new_page(request, {"language": page_language(request, None)})


def _new_page(request: Request, said: dict[str, str], wrong: str = "") -> Response:
    there = {"code": "", "items": "", "draft": ""} | _defaults() | said
    return page(request, "new.html", None, wrong=wrong, said=there, sections=sections(), status=400 if wrong else 200)


def _defaults() -> dict[str, str]:
    """Settings of a new poll as their form has them, before somebody says what is asked."""
    return _form_of(Settings(question="?")) | {"question": ""}


@routes.post("/new")
async def create(request: Request) -> Response:
    """Make a poll, and show its token this once."""
    return await run_in_threadpool(_create, request, await said_in(request))


def _create(request: Request, said: dict[str, str]) -> Response:
    access = access_of(request)
    access.check_origin(request)
    if not hmac.compare_digest(said.get("code", "").strip().encode(), access.host.code.encode()):
        access.attempts.take(address_of(request))
        raise Refused("this is not the code of this server, which it printed when it started", 403)
    try:
        defaults = _defaults()  # what a form shows as it is by default was not said
        moved = {name: text for name, text in said.items() if name in defaults and text != defaults[name]}
        made = access.host.create(
            items=lines(said.get("items", "")), draft=said.get("draft") == "yes", **read_settings(moved)
        )
    except DataError as error:
        return _new_page(request, said, str(error))
    answer = page(request, "made.html", made, token=made.token)
    access.remember(answer, "organiser", made, str(made.token))
    return answer


def lines(text: str) -> list[str]:
    """Items that somebody pasted: one a line, empty lines left out."""
    return [line.strip() for line in text.splitlines() if line.strip()]
