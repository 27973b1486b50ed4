"""Pages of participants: consent, questions, their own data; ``results`` has their ranking and everybody's."""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import time
from collections import Counter
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from predilect.errors import DataError
from predilect.live.given import REASONS, SKIPS, Button, Refused, Unfit, folded, person_of
from predilect.live.poll import Poll
from predilect.live.questions import Drawn
from predilect.live.settings import Settings, storable
from predilect.live.web.access import Access, Visitor, address_of, policy
from predilect.live.web.api import Stored, ThePoll, access_of, erased, joined
from predilect.live.web.hosting import form_token
from predilect.live.web.languages import LANGUAGES
from predilect.live.web.texts import Speech, preferred

routes = APIRouter(prefix="/p/{poll}", include_in_schema=False, default_response_class=HTMLResponse)
templates = Environment(
    loader=PackageLoader("predilect.live.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
Field = Annotated[Stored, Form(max_length=20_000)]
_SHOWN_AT_ONCE = 2  # the second waits in the page until the first is answered
_A_MOMENT = 2.0  # seconds in which nobody takes back an answer by going back to its page
_COOKIE, _JOINED = "language", "joined"
_log = logging.getLogger("predilect.live")


def page(
    request: Request, template: str, poll: Poll | None, *, status: int = 200, csrf: str = "", **values: Any
) -> Response:
    """A page from a template, in the visitor's language."""
    access = access_of(request)
    language = page_language(request, poll)
    # What came by a form is not asked for again in another language: its address knows no GET.
    here = "" if request.method == "GET" else f"{access.root}/" if poll is None else f"{access.root}/p/{poll.name}"
    told = templates.get_template(template).render(
        say=Speech(language), root=access.root, poll=poll, settings=None if poll is None else poll.settings, csrf=csrf,
        others=[one for one in LANGUAGES if one != language], here=here, path=request.scope["path"], **values,
    )  # fmt: skip
    answer = HTMLResponse(told, status)
    if poll is not None:
        origins = poll.settings.origins if is_participants(request) else ()
        answer.headers["Content-Security-Policy"] = policy(poll.settings.images, origins)
    if request.query_params.get("lang") in LANGUAGES:
        access.keep(answer, _COOKIE, language, 86_400 * 365, access.root or "/", poll)
    return answer


def is_participants(request: Request) -> bool:
    """Whether a page is one of participants, who may see it in a frame of a site that the organiser allows."""
    return str(request.scope["path"]).removeprefix(access_of(request).root).startswith("/p/")


def whole_address(request: Request, path: str) -> str:
    """The address of a path, with scheme and host."""
    return f"{request.base_url}".rstrip("/") + path


def page_language(request: Request, poll: Poll | None) -> str:
    """The language of a page: what was chosen, or what the browser asks for."""
    default = LANGUAGES[0] if poll is None or poll.settings.language not in LANGUAGES else poll.settings.language
    for chosen in (request.query_params.get("lang"), request.cookies.get(_COOKIE)):
        if chosen in LANGUAGES:
            return str(chosen)
    return preferred(request.headers.get("accept-language", ""), default)


def refusal(request: Request, status: int, said: str) -> Response:
    """A page that says why something was not possible, with a way back to the poll."""
    access = access_of(request)
    found = re.match(r"/([po])/([^/]+)", request.scope["path"].removeprefix(access.root))
    poll = access.host.opened(found[2]) if found is not None else None
    back = f"/{found[1]}/{poll.name}" if found is not None and poll is not None else ""
    return page(request, "refusal.html", poll, status=status, said=said, number=status, back=back)


def to(request: Request, path: str) -> Response:
    """Send the browser to another page of ours."""
    return RedirectResponse(access_of(request).root + path, 303)


def allowed_image(settings: Settings, address: str) -> str:
    """The address of an image, if the organiser allows its host; nothing otherwise."""
    return address if any(address.startswith(f"https://{host}/") for host in settings.images) else ""


_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True})
_markdown.disable(["image", "code", "heading", "lheading", "hr", "html_block", "html_inline", "reference"])


def _link(self: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("rel", "nofollow noopener noreferrer")
    return str(self.renderToken(tokens, place, options, env))


_markdown.add_render_rule("link_open", _link)


def markdown(text: str) -> Markup:
    """What somebody wrote, as HTML: paragraphs, emphasis, lists, quotes, links to the web; all else as it stands."""
    return Markup(_markdown.render(text))


templates.filters["markdown"] = markdown
templates.globals |= {
    "allowed_image": allowed_image,
    "reasons": REASONS,
    "languages": {one: Speech(one).name for one in LANGUAGES},  # a catalogue that is not one is refused here
}


@routes.get("")
def start(request: Request, poll: ThePoll) -> Response:
    """What the poll is about, or for a participant the next question."""
    visitor = access_of(request).participant(request, poll)
    if visitor is None:
        if _JOINED in request.query_params and _may_be_in_a_frame(request):
            return page(request, "lost.html", poll)
        pid, signature = (request.query_params.get(name, "")[:200] for name in ("pid", "sig"))
        asked = poll.first() if poll.settings.at_once else None
        if asked is not None:
            return page(request, "first.html", poll, question=asked[0], wrong="",
                        more={"first": _signed(poll, asked[1]), "pid": pid, "signature": signature})  # fmt: skip
        return page(request, "welcome.html", poll, pid=pid, signature=signature)
    return question(request, poll, visitor)


def _to_questions(request: Request, poll: Poll) -> Response:
    """Send somebody who just joined on; in a frame of another site some browsers will have kept no cookie of it."""
    is_asked = poll.settings.origins and _may_be_in_a_frame(request)
    return to(request, f"/p/{poll.name}{f'?{_JOINED}=1' if is_asked else ''}")


def _may_be_in_a_frame(request: Request) -> bool:
    """Whether a page may be for a frame; older browsers, and those without TLS, do not say."""
    return request.headers.get("sec-fetch-dest") != "document"


def _signed(poll: Poll, question: Drawn) -> str:
    """A question that nobody was asked yet, as a form carries it: drawn by this server, to be answered by one."""
    text = f"{secrets.token_hex(16)} {question.probability!r} {' '.join(map(str, question.items))}"
    return f"{text} {_signature(poll, 'first', text)}"


def _signature(poll: Poll, what: str, text: str) -> str:
    return form_token(poll.database.secret(), f"{what} of {poll.name}: {text}")


def _drawn_in(poll: Poll, text: str) -> tuple[Drawn, str]:
    """The question that such a form carries, and the secret of whoever answers it: the same, sent how often."""
    said, _, signature = text.rpartition(" ")
    if not hmac.compare_digest(_signature(poll, "first", said).encode(), signature.encode()):
        raise Refused("this form is not of one of our pages. Open the page again", 403)
    _, probability, *items = said.split(" ")
    drawn = Drawn(tuple(map(int, items)), None if probability == "None" else float(probability))
    return drawn, _signature(poll, "secret", said)


@routes.post("/first")
async def answer_first(request: Request, poll: ThePoll) -> Response:
    """Take part by answering the first question."""
    return await run_in_threadpool(_keep_first, request, poll, await said_in(request))


def _keep_first(request: Request, poll: Poll, said: dict[str, str]) -> Response:
    access = access_of(request)
    access.check_origin(request)
    answer = _to_questions(request, poll)
    if access.participant(request, poll) is not None:
        return answer
    drawn, secret = _drawn_in(poll, said.get("first", ""))
    given, wrong = _given(poll.settings.kind, said)
    language, pid = said.get("language", ""), said.get("pid", "")[:200] or None
    access.joins.take(address_of(request))
    joined(poll, language if language in LANGUAGES else "", pid, said.get("signature", "")[:64], secret)
    access.remember(answer, "participant", poll, secret)
    number = poll.who(secret=secret)
    if number is None:
        return answer
    try:
        shown = poll.put(number, drawn)
        if wrong:
            answer = question(request, poll, Visitor(number, secret, True), wrong=_incomplete(poll), status=400)
            access.remember(answer, "participant", poll, secret)
            return answer
        poll.tell(number, shown, given, criterion=0, shown_ms=_whole(said.get("shown_ms") or "0") or None)
    except Refused:  # it ended meanwhile, or was answered by another click: the next one is asked
        _log.info("%s: a first question was not answered", poll.name)
    return answer


def question(request: Request, poll: Poll, visitor: Visitor, *, wrong: str = "", status: int = 200) -> Response:
    """The page of the next question, which holds the one after it; or thanks, if there is none."""
    asked = poll.ask(visitor.number, _SHOWN_AT_ONCE)
    progress = poll.progress(visitor.number)
    common: dict[str, Any] = {
        "csrf": form_token(visitor.secret, poll.name), "progress": progress, "key": secrets.token_hex(8),
        "ranking_in": _ranking_in(poll, visitor.number, progress.left),
    }  # fmt: skip
    if not asked:
        return page(request, "done.html", poll, completion=_completion(poll, progress.left), **common)
    return page(request, "question.html", poll, status=status, questions=asked, wrong=wrong, **common)


def _ranking_in(poll: Poll, number: int, left: int | None) -> int | None:
    """Answers until somebody sees a ranking of their own; None for never: those that are left are too few."""
    with poll.log.lock:
        state = poll.log.state
        given = Counter(answer.criterion for answer in state.said_by(person_of(state, number)))
    missing = max(0, poll.settings.own_ranking - max(given.values(), default=0))
    return missing if poll.settings.own_ranking and (left is None or missing <= left) else None


def _completion(poll: Poll, left: int | None) -> str:
    return poll.settings.completion if left == 0 else ""


@routes.post("/join")
def join(
    request: Request, poll: ThePoll, agreed: Field = "", language: Field = "", pid: Field = "", signature: Field = ""
) -> Response:
    """Take part."""
    access = access_of(request)
    access.check_origin(request)
    if access.participant(request, poll) is None:
        if agreed != "yes":
            raise Refused("nobody takes part without agreeing to it. Go back, and tick the box", 400)
        access.joins.take(address_of(request))
        secret = joined(poll, language if language in LANGUAGES else "", pid[:200] or None, signature[:64])
        answer = _to_questions(request, poll)
        access.remember(answer, "participant", poll, secret)
        return answer
    return to(request, f"/p/{poll.name}")


@routes.get("/r/{secret}")
def come_back(request: Request, poll: ThePoll, secret: str) -> Response:
    """A participant's link: exchanged for the cookie, and out of sight; who is somebody else already is asked."""
    access = access_of(request)
    theirs, known = _whose_link(request, poll, secret), access.participant(request, poll)
    if known is not None and known.number != theirs:
        return page(request, "become.html", poll, secret=secret, csrf=form_token(known.secret, poll.name))
    return _becomes(request, poll, secret)


@routes.post("/r/{secret}")
def become(request: Request, poll: ThePoll, secret: str, csrf: Field = "") -> Response:
    """Go on as the participant of a link, for somebody who was another one."""
    access = access_of(request)
    access.check_form(csrf, poll, access.needed(request, poll).secret)
    _whose_link(request, poll, secret)
    return _becomes(request, poll, secret)


def _whose_link(request: Request, poll: Poll, secret: str) -> int:
    number = poll.who(secret=secret)
    if number is None:
        access_of(request).attempts.take(address_of(request))
        raise Refused("this link is of no participant", 403)
    return number


def _becomes(request: Request, poll: Poll, secret: str) -> Response:
    answer = to(request, f"/p/{poll.name}")
    access_of(request).remember(answer, "participant", poll, secret)
    return answer


def _checked(request: Request, poll: Poll, csrf: str) -> tuple[Access, Visitor]:
    """The participant who sent a form of one of our pages."""
    access = access_of(request)
    visitor = access.needed(request, poll)
    access.check_form(csrf, poll, visitor.secret)
    access.answers.take((poll.name, visitor.number))
    return access, visitor


async def said_in(request: Request) -> dict[str, str]:
    """Fields of a form, by their names."""
    async with request.form(max_files=0, max_fields=100) as form:
        said = {name: str(value) for name, value in form.items()}
    try:
        return {name: storable(value) for name, value in said.items()}
    except DataError as error:
        raise Unfit(str(error)) from error


@routes.post("/answer")
async def answer(request: Request, poll: ThePoll) -> Response:
    """Keep an answer, and show the next question."""
    return await run_in_threadpool(_keep_answer, request, poll, await said_in(request))


def _keep_answer(request: Request, poll: Poll, said: dict[str, str]) -> Response:
    _, visitor = _checked(request, poll, said.get("csrf", ""))
    shown, criterion = _whole(said.get("shown", "")), _whole(said.get("criterion", "0"))
    given, wrong = _given(poll.settings.kind, said)
    if wrong:
        return question(request, poll, visitor, wrong=_incomplete(poll), status=400)
    shown_ms = _whole(said.get("shown_ms") or "0") or None
    try:
        poll.tell(visitor.number, shown, given, criterion=criterion, shown_ms=shown_ms)
    except Refused:
        with poll.log.lock:
            person = person_of(poll.log.state, visitor.number)
            old = person.answers.get(person.given.get((shown, criterion), 0))
        if old is None:
            raise
        if time.time() - old.time > _A_MOMENT:  # not two clicks on one page: somebody went back to it
            poll.replace(visitor.number, old.sequence, given, shown_ms=shown_ms)
    return to(request, f"/p/{poll.name}")


def _incomplete(poll: Poll) -> str:
    return "incomplete_order" if poll.settings.kind == "order" else "incomplete_best_worst"


def _given(kind: str, said: dict[str, str]) -> tuple[Any, bool]:
    """The answer that a form holds, and whether something is missing in it."""
    word = said.get("answer", "")
    if word in ("left", "right", "tie", *SKIPS):
        return Button(word), False
    if kind == "best-worst":
        pair = [_whole(said[name]) for name in ("best", "worst") if name in said]
        return pair, len(set(pair)) < 2
    if kind == "order":
        places = {_whole(name[5:]): said[name] for name in said if name.startswith("place")}
        wanted = [str(place) for place in range(1, len(places) + 1)]
        return sorted(places, key=lambda number: places[number]), sorted(places.values()) != wanted or not places
    return _whole(word), False


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise Refused("this form is not of one of our pages. Open the page again", 400)
    return int(text)


@routes.post("/undo")
def undo(request: Request, poll: ThePoll, csrf: Field = "", key: Field = "") -> Response:
    """Take back the last answer; a page takes back one."""
    _, visitor = _checked(request, poll, csrf)
    poll.undo(visitor.number, key=key or None)
    return to(request, f"/p/{poll.name}")


@routes.post("/propose")
def propose(request: Request, poll: ThePoll, csrf: Field = "", text: Field = "", anyway: Field = "") -> Response:
    """Propose an item, once its author has seen what is alike."""
    _, visitor = _checked(request, poll, csrf)
    found = poll.alike(text) if poll.settings.proposals and anyway != "yes" else []
    if found and folded(text) not in map(folded, (item.name for item in found)):  # that one is there, as is said below
        return page(request, "alike.html", poll, found=found, text=text, csrf=csrf)
    poll.propose_item(visitor.number, text)
    return page(request, "message.html", poll, title="propose", said="proposed", back=f"/p/{poll.name}")


@routes.post("/report")
def report(request: Request, poll: ThePoll, csrf: Field = "", item: Field = "") -> Response:
    """Report an item."""
    _, visitor = _checked(request, poll, csrf)
    poll.report(visitor.number, _whole(item))
    return page(request, "message.html", poll, title="report", said="reported", back=f"/p/{poll.name}")


@routes.get("/me")
def me(request: Request, poll: ThePoll) -> Response:
    """What a participant can do about what is kept of them."""
    visitor = access_of(request).needed(request, poll)
    link = whole_address(request, f"/p/{poll.name}/r/{quote(visitor.secret)}")
    return page(request, "me.html", poll, csrf=form_token(visitor.secret, poll.name), link=link)


@routes.get("/me.json")
def my_data(request: Request, poll: ThePoll) -> Response:
    """All that is kept of a participant."""
    visitor = access_of(request).needed(request, poll)
    told = json.dumps(poll.own(visitor.number), ensure_ascii=False, indent=1)
    name = f'attachment; filename="{poll.name}.json"'
    return Response(told, media_type="application/json", headers={"Content-Disposition": name})


@routes.post("/erase")
def erase(request: Request, poll: ThePoll, csrf: Field = "", sure: Field = "") -> Response:
    """Erase a participant who asks for it."""
    access, visitor = _checked(request, poll, csrf)
    if sure != "yes":
        return to(request, f"/p/{poll.name}/me")
    said = "erased" if erased(poll, visitor.number) else "erased_later"
    gone = page(request, "message.html", poll, title="erase", said=said, back="")
    access.forget(gone, "participant", poll)
    return gone
