"""The API: JSON for the verbs of a poll, described by OpenAPI at ``/api/openapi.json``."""

from __future__ import annotations

import logging
import secrets
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from predilect._base.json import plain
from predilect.errors import DataError, OutputError
from predilect.live.acts import role_of_export
from predilect.live.exports import Export
from predilect.live.given import Refused, Unfit
from predilect.live.poll import Poll, PollQuestion
from predilect.live.settings import LONGEST_TEXT, Settings, storable
from predilect.live.state import Item, Role
from predilect.live.web.access import Access, Ruler, Visitor, address_of
from predilect.live.web.languages import LANGUAGES

Stored = Annotated[str, AfterValidator(storable)]
Text = Annotated[Stored, Field(min_length=1, max_length=LONGEST_TEXT)]
Told = Annotated[Stored, Field(max_length=2000)]
Number = Annotated[int, Field(ge=1, le=2**53)]
Name = Annotated[str, Path(max_length=64)]
LONGEST_SHOWN = 10**12  # milliseconds
Key = Annotated[Stored | None, Field(min_length=1, max_length=200, description="The same key again counts once.")]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Joining(_Given):
    """Somebody who agrees to take part."""

    consent: Literal[True]
    language: Annotated[str, Field(pattern=f"^({'|'.join(LANGUAGES)})?$")] = ""
    pid: Annotated[Stored | None, Field(min_length=1, max_length=200)] = None
    signature: Annotated[str, Field(max_length=64)] = ""


class Joined(BaseModel):
    """What a participant shows to come back, as ``Authorization: Bearer``; it is not kept."""

    secret: str


class QuestionItem(BaseModel):
    """An item of a question."""

    number: int
    name: str
    description: str = ""
    image: str = ""
    link: str = ""
    attributes: dict[str, str] = {}


class NextQuestion(BaseModel):
    """A question, with the items in the order in which they are to be shown."""

    shown: int
    criterion: int
    text: str
    kind: str
    items: list[QuestionItem]


class Answering(_Given):
    """An answer: an item's number or name, several of them, or left, right, tie, skip, skip:unknown."""

    shown: Number
    answer: Number | Text | Annotated[list[Number | Text], Field(min_length=1, max_length=8)]
    criterion: Annotated[int | None, Field(ge=0, le=9)] = None
    key: Key = None
    shown_ms: Annotated[
        int | None, Field(ge=0, le=LONGEST_SHOWN, description="Milliseconds since the question came into sight.")
    ] = None
    ask: Annotated[int, Field(ge=0, le=5, description="Send so many questions with the answer.")] = 0


class Receipt(BaseModel):
    """The number of an answer that is kept, and the next questions, if they were asked for."""

    answer: int
    repeated: bool
    questions: list[NextQuestion] = []


class Replacing(_Given):
    """Another answer in the place of an earlier one."""

    answer: Number | Text | Annotated[list[Number | Text], Field(min_length=1, max_length=8)]
    key: Key = None


class WithKey(_Given):
    """A request that counts once."""

    key: Key = None


class Proposing(_Given):
    """An item that a participant proposes."""

    text: Text
    key: Key = None


class NewItem(_Given):
    """An item of the organiser."""

    name: Text
    description: Told = ""
    image: Told = ""
    link: Told = ""
    attributes: dict[Stored, Stored] = {}


class Telling(_Given):
    """What is said of an item from now on; nothing of what is left out changes."""

    name: Text | None = None
    description: Told | None = None
    image: Told | None = None
    link: Told | None = None


class Merging(_Given):
    """The item that another one's answers count for."""

    into: Number


class Adding(_Given):
    """Items of the organiser."""

    items: Annotated[list[NewItem], Field(min_length=1, max_length=3000)]


class Moderating(_Given):
    """Whether a proposal is accepted."""

    accept: bool


class Status(_Given):
    """What a poll is to be."""

    status: Literal["open", "paused", "closed"]


class Inviting(_Given):
    """Somebody who is to look after the poll."""

    name: Annotated[Stored, Field(min_length=1, max_length=80)]
    role: Role = "moderator"


class NamedOrganiser(BaseModel):
    """Somebody who looks after the poll."""

    number: int
    name: str
    role: Role


class Invited(NamedOrganiser):
    """What they show, as ``Authorization: Bearer`` or in the link ``/o/POLL/in/TOKEN``; it is not kept."""

    token: str


class Failing(BaseModel):
    """Why something was not done, in words for people; of whatever kind it is."""

    error: str = Field(examples=["join the poll first"])


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": said, "model": Failing}
    for status, said in {
        400: "not what the poll takes", 403: "not allowed", 404: "not there", 409: "not now", 422: "not readable",
        429: "too many requests; Retry-After says for how many seconds", 503: "nothing can be kept at the moment",
    }.items()
}  # fmt: skip


def access_of(request: Request) -> Access:
    """What decides who may do what."""
    found: Access = request.app.state.access
    return found


async def poll_of(request: Request, poll: Name) -> Poll:
    """The poll that a path names."""
    host = access_of(request).host
    found = host.opened(poll)
    if found is None:
        return await run_in_threadpool(host.poll, poll)
    if found.is_due:
        await run_in_threadpool(found.keep_time)
    return found


ThePoll = Annotated[Poll, Depends(poll_of)]


def whose(request: Request, poll: ThePoll) -> Visitor:
    """The participant who asks."""
    access = access_of(request)
    visitor = access.needed(request, poll)
    if request.method != "GET":
        access.check_header(request, poll, visitor.secret)
    return visitor


def ruled(request: Request, poll: ThePoll) -> Ruler:
    """The organiser who asks; what their role allows is looked at where it is done."""
    ruler = access_of(request).ruling(request, poll)
    if request.method != "GET":
        access_of(request).check_header(request, poll, ruler.token)
    return ruler


def answering(request: Request, poll: ThePoll) -> Visitor:
    """The participant who writes, not too often."""
    who = whose(request, poll)
    access_of(request).answers.take((poll.name, who.number))
    return who


Who = Annotated[Visitor, Depends(whose)]
Writer = Annotated[Visitor, Depends(answering)]
By = Annotated[Ruler, Depends(ruled)]
ItemNumber = Annotated[int, Path(ge=1, le=2**53)]
Criterion = Annotated[int, Query(ge=0, le=9)]
PARTICIPANTS = "participants"
OF_ORGANISER: dict[str, Any] = {"tags": ["organiser"], "dependencies": [Depends(ruled)]}
_log = logging.getLogger("predilect.live")
routes = APIRouter(prefix="/api/polls/{poll}", responses=REFUSALS)


def _body(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of the body of a request that is read by hand."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}}


_CHANGES = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": Settings.model_json_schema() | {
        "required": [], "title": "Settings",
    }}}}
}  # fmt: skip


@routes.get("", tags=[PARTICIPANTS])
def describe(poll: ThePoll) -> dict[str, Any]:
    """What the poll asks, and what it takes."""
    settings = poll.settings
    return {
        "poll": poll.name, "status": poll.status, "question": settings.question, "kind": settings.kind,
        "criteria": settings.criteria, "instruction": settings.instruction, "consent": settings.consent,
        "ties": settings.ties, "skips": settings.skips, "undo": settings.undo, "proposals": settings.proposals,
        "limit": settings.limit, "public": settings.public, "opens": settings.opens, "closes": settings.closes,
    }  # fmt: skip


@routes.post("/participants", status_code=201, tags=[PARTICIPANTS])
def join(request: Request, poll: ThePoll, joining: Joining) -> Joined:
    """Take part; the secret is sent this once."""
    access_of(request).joins.take(address_of(request))
    return Joined(secret=joined(poll, joining.language, joining.pid, joining.signature))


@routes.post("/questions", tags=[PARTICIPANTS])
def ask(poll: ThePoll, who: Who, n: Annotated[int, Query(ge=1, le=5)] = 1) -> list[NextQuestion]:
    """The next questions: the same until they are answered."""
    return [_asked(question) for question in poll.ask(who.number, n)]


@routes.post("/answers", status_code=201, response_model=Receipt, tags=[PARTICIPANTS], openapi_extra=_body(Answering))
async def tell(request: Request, poll: Annotated[str, Path(max_length=64)]) -> Response:
    """Keep an answer: it is on the disk when this one is sent."""
    # Without FastAPI's dependencies, which took more of the time than all else of this request, the most frequent one.
    return await run_in_threadpool(_keep, request, await poll_of(request, poll), await request.body())


def _keep(request: Request, poll: Poll, body: bytes) -> Response:
    who = answering(request, poll)
    try:
        given = Answering.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from error
    told, questions = poll.tell_and_ask(
        who.number, given.shown, given.answer, given.ask, criterion=given.criterion, key=given.key,
        shown_ms=given.shown_ms,
    )  # fmt: skip
    kept = Receipt(answer=told.answer, repeated=told.repeated, questions=[_asked(one) for one in questions])
    return Response(kept.model_dump_json(), 201, media_type="application/json")


@routes.put("/answers/{answer}", tags=[PARTICIPANTS])
def replace(poll: ThePoll, who: Writer, answer: ItemNumber, given: Replacing) -> Receipt:
    """Put an answer in the place of an earlier one."""
    told = poll.replace(who.number, answer, given.answer, key=given.key)
    return Receipt(answer=told.answer, repeated=told.repeated)


@routes.post("/undo", tags=[PARTICIPANTS])
def undo(poll: ThePoll, who: Writer, given: WithKey) -> dict[str, int]:
    """Take back the last answer."""
    return {"answer": poll.undo(who.number, key=given.key)}


@routes.post("/proposals", status_code=201, tags=[PARTICIPANTS])
def propose(poll: ThePoll, who: Writer, given: Proposing) -> dict[str, int]:
    """Propose an item."""
    return {"item": poll.propose_item(who.number, given.text, key=given.key)}


@routes.get("/alike", tags=[PARTICIPANTS])
def alike(poll: ThePoll, who: Who, text: Annotated[Stored, Query(min_length=1, max_length=LONGEST_TEXT)]) -> list[
    QuestionItem
]:  # fmt: skip
    """Items that may say the same as what somebody is about to propose, the likest first."""
    return [_shown(item) for item in poll.alike(text)]


@routes.post("/items/{item}/report", status_code=204, response_model=None, tags=[PARTICIPANTS])
def report(poll: ThePoll, who: Writer, item: ItemNumber) -> None:
    """Tell the organiser that an item should not be there."""
    poll.report(who.number, item)


@routes.get("/me", tags=[PARTICIPANTS])
def me(poll: ThePoll, who: Who) -> dict[str, Any]:
    """How far this participant is, and all that is kept of them."""
    progress = poll.progress(who.number)
    return {"answered": progress.answered, "left": progress.left, "kept": poll.own(who.number)}


@routes.get("/me/ranking", tags=[PARTICIPANTS])
def mine(poll: ThePoll, who: Who, criterion: Criterion = 0) -> list[dict[str, Any]]:
    """The participant's own ranking, once there are answers enough."""
    table = poll.mine(who.number, criterion)
    if table is None:
        raise Refused("there are too few answers for a ranking of your own")
    return _rows(table)


@routes.delete("/me", status_code=204, response_model=None, tags=[PARTICIPANTS])
def leave(poll: ThePoll, who: Who) -> Response:
    """Erase this participant; 202 if old pages of the file are overwritten only later."""
    return Response(status_code=204 if erased(poll, who.number) else 202)


@routes.get("/board", tags=[PARTICIPANTS])
def board(request: Request, poll: ThePoll, criterion: Criterion = 0) -> list[dict[str, Any]]:
    """The crowd's board: of everybody where it is public, otherwise of the organiser."""
    if not poll.settings.public:
        access_of(request).ruling(request, poll)
    return _rows(poll.board(criterion, max_age=1.0))


@routes.get("/outlook", **OF_ORGANISER)
def outlook(poll: ThePoll, claim: Literal["best", "top", "tiers"] = "best", criterion: Criterion = 0) -> dict[str, Any]:
    """How likely a claim is, and about how many more answers settle it."""
    try:
        found = poll.outlook(claim, criterion=criterion)
    except Refused:
        raise
    except DataError as error:  # there is no such claim on this board, yet
        raise Unfit(str(error)) from error
    return {
        "claim": found.claim, "level": found.level, "items": plain(found.items), "probability": found.probability,
        "enough": found.enough, "more_answers": found.more_answers, "likely_answers": found.likely_answers,
        "may_never": found.may_never, "text": str(found),
    }  # fmt: skip


@routes.get("/people", **OF_ORGANISER)
def people(poll: ThePoll) -> dict[str, Any]:
    """Numbers about who answered."""
    return poll.people()


@routes.get("/export/{kind}", **OF_ORGANISER)
def export(request: Request, poll: ThePoll, kind: Export, pids: bool = False) -> list[dict[str, Any]]:
    """A table of the poll; the log as it is, and outer references, for organisers alone."""
    access_of(request).ruling(request, poll, role_of_export(kind, pids))
    return _rows(poll.export(kind, show_pids=pids))


@routes.post("/items", status_code=201, **OF_ORGANISER)
def add(poll: ThePoll, by: By, given: Adding) -> dict[str, list[int]]:
    """Add items."""
    return {"items": poll.act("add", [one.model_dump() for one in given.items], by=by.who.number)}


@routes.post("/items/{item}/moderate", status_code=204, response_model=None, **OF_ORGANISER)
def moderate(poll: ThePoll, by: By, item: ItemNumber, given: Moderating) -> None:
    """Accept or refuse a proposal."""
    poll.act("moderate", item, given.accept, by=by.who.number)


@routes.post("/items/{item}/retire", status_code=204, response_model=None, **OF_ORGANISER)
def retire(poll: ThePoll, by: By, item: ItemNumber) -> None:
    """Ask no more about an item."""
    poll.act("retire", item, by=by.who.number)


@routes.put("/items/{item}", status_code=204, response_model=None, **OF_ORGANISER)
def edit(poll: ThePoll, by: By, item: ItemNumber, given: Telling) -> None:
    """Rename an item, or say more of it; its answers stay."""
    poll.act("edit", item, given.model_dump(exclude_none=True), by=by.who.number)


@routes.post("/items/{item}/merge", status_code=204, response_model=None, **OF_ORGANISER)
def merge(poll: ThePoll, by: By, item: ItemNumber, given: Merging) -> None:
    """Let the answers on an item count for another one."""
    poll.act("merge", item, given.into, by=by.who.number)


@routes.post("/items/{item}/part", status_code=204, response_model=None, **OF_ORGANISER)
def part(poll: ThePoll, by: By, item: ItemNumber) -> None:
    """Undo a merge."""
    poll.act("part", item, by=by.who.number)


@routes.put("/status", status_code=204, response_model=None, **OF_ORGANISER)
def change_status(poll: ThePoll, by: By, given: Status) -> None:
    """Open, pause or close the poll."""
    poll.act("set_status", given.status, by=by.who.number)


@routes.get("/settings", **OF_ORGANISER)
def settings(request: Request, poll: ThePoll) -> dict[str, Any]:
    """All settings of the poll."""
    access_of(request).ruling(request, poll, "organiser")
    return poll.settings.to_dict()


@routes.put("/settings", status_code=204, response_model=None, openapi_extra=_CHANGES, **OF_ORGANISER)
def change(poll: ThePoll, by: By, given: dict[str, Any]) -> None:
    """Change settings; what is left out stays."""
    try:
        poll.act("change", given, by=by.who.number)
    except Refused:
        raise
    except DataError as error:
        raise Unfit(str(error)) from error


@routes.get("/organisers", **OF_ORGANISER)
def organisers(poll: ThePoll) -> list[NamedOrganiser]:
    """Who looks after the poll, besides whoever has its own token."""
    return [NamedOrganiser(**one._asdict()) for one in poll.organisers()]


@routes.post("/organisers", status_code=201, **OF_ORGANISER)
def invite(poll: ThePoll, by: By, given: Inviting) -> Invited:
    """Let somebody look after the poll; the token is sent this once."""
    number, token = poll.invite(given.name, given.role, by=by.who.number)
    return Invited(number=number, name=given.name, role=given.role, token=token)


@routes.delete("/organisers/{number}", status_code=204, response_model=None, **OF_ORGANISER)
def revoke(poll: ThePoll, by: By, number: ItemNumber) -> None:
    """Take back what lets somebody look after the poll."""
    poll.revoke(number, by=by.who.number)


@routes.delete("/participants/{number}", status_code=204, response_model=None, **OF_ORGANISER)
def erase(poll: ThePoll, by: By, number: ItemNumber) -> Response:
    """Erase a participant, by the number that exports write after "p"; 202 as for participants."""
    return Response(status_code=204 if erased(poll, number, by.who.number) else 202)


def erased(poll: Poll, number: int, by: int | None = None) -> bool:
    """Erase a participant; whether nothing is left in the files either: what a long reader holds goes later."""
    try:
        poll.erase(number, by=by)
    except OutputError as error:
        if poll.has(number):
            raise
        _log.error("%s", error)
        return False
    return True


def joined(poll: Poll, language: str, pid: str | None, signature: str, secret: str | None = None) -> str:
    """Secret of somebody who takes part, a new one unless it is given; Refused for a reference that is not taken."""
    secret = secret or secrets.token_urlsafe(32)
    way = poll.settings.pids
    if pid is not None and way == "none":
        pid = None
    if way == "signed":
        if pid is None or not secrets.compare_digest(poll.sign(pid), signature.encode("ascii", "replace").decode()):
            raise Refused("this poll is for people who come by a signed link", 403)
        # One participant a signed reference: who comes back gets a new secret for the same one.
        poll.readmit(f"pid {pid}", secret, pid, language)
        return secret
    poll.join(secret=secret, pid=pid, language=language)
    return secret


def _asked(question: PollQuestion) -> NextQuestion:
    return NextQuestion(
        shown=question.shown, criterion=question.criterion, text=question.text, kind=question.kind,
        items=[_shown(item) for item in question.items],
    )  # fmt: skip


def _shown(item: Item) -> QuestionItem:
    return QuestionItem(number=item.number, name=item.name, description=item.description, image=item.image,
                        link=item.link, attributes=item.attributes)  # fmt: skip


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows of a table as JSON has them."""
    rows: list[dict[str, Any]] = plain(table.to_dicts(), words=False)
    return rows
