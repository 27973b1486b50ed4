"""``predilect poll``: live polls in the terminal: make one, serve it, look at it, take out what it holds."""

from __future__ import annotations

import re
import signal
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

import typer

from predilect._base.text import as_typed
from predilect.cli.options import Force, OutFile
from predilect.cli.session import Talk, session
from predilect.errors import DataError, OutputError

if TYPE_CHECKING:
    from predilect.live import Poll
    from predilect.live.exports import Export

app = typer.Typer(
    name="poll", no_args_is_help=True, rich_markup_mode="rich",
    help="Live polls: ask a crowd, keep every answer, stop in time. Needs pip install 'predilect\\[live]'.",
    epilog="Start with: predilect poll new poll.db ideas.txt --question 'Which idea first?', then predilect poll serve "
    "poll.db.",
)  # fmt: skip

_PLACE: dict[str, Any] = {"metavar": "POLL", "show_default": False}
_DATABASE = "A file, poll.db, or postgresql://HOST/NAME."
_PLACES = "A file, a folder of such files, or postgresql://HOST/NAME."
DatabaseFirst = Annotated[str, typer.Argument(help=_DATABASE, **_PLACE)]  # more arguments follow
Database = Annotated[str, typer.Argument(help=_DATABASE, envvar="PREDILECT_POLL", **_PLACE)]
Place = Annotated[str, typer.Argument(help=_PLACES, envvar="PREDILECT_POLL", **_PLACE)]
Items = Annotated[
    Path,
    typer.Argument(
        metavar="ITEMS", show_default=False,
        help="What is compared: a text file with one a line, or a table with columns item, image and attributes; - for "
        "standard input.",
    ),
]  # fmt: skip
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", show_default="the only one", help="Which poll of several.")
]
OwnNetwork = Annotated[
    bool,
    typer.Option(
        "--own-network", envvar="PREDILECT_SERVE_OWN_NETWORK",
        help="Polls may tell webhooks at addresses of this machine and the networks around it.",
    ),
]  # fmt: skip
KindName = StrEnum("KindName", {"pair": "pair", "best": "best", "best_worst": "best-worst", "order": "order"})
StrategyName = StrEnum("StrategyName", ["board", "best", "top", "person", "random"])
ExportName = StrEnum("ExportName", ["answers", "shown", "items", "board", "groups", "participants", "events", "trail"])
RoleName = StrEnum("RoleName", ["reader", "moderator", "organiser"])


@app.command("new")
def new(
    ctx: typer.Context,
    poll: DatabaseFirst,
    items: Items,
    question: Annotated[
        str, typer.Option("--question", metavar="TEXT", show_default=False, help="What everybody is asked.")
    ],
    kind: Annotated[
        KindName, typer.Option("--kind", help="Two items, or the best, best and worst, or the order of a few.")
    ] = KindName.pair,
    strategy: Annotated[
        StrategyName,
        typer.Option(
            "--strategy", help="What questions are for: the whole board, first place, the first few, each "
            "participant's own ranking; random, where participants are graded.",
        ),
    ] = StrategyName.board,
    criterion: Annotated[
        list[str] | None,
        typer.Option("--criterion", metavar="TEXT", help="Asked in turn about the same items; as often as needed."),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE",
            help="Another setting, as often as needed; predilect poll settings lists them all.",
        ),
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Nobody takes part before predilect poll open; organisers have a preview.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", show_default="at random", help="Of the poll, in addresses."),
    ] = None,
) -> None:  # fmt: skip
    """Make a poll, and print the organiser's token, which is kept nowhere.

    Example: predilect poll new poll.db ideas.txt --question "Which idea should we do first?"
    """
    with session(ctx.obj) as talk:
        given = _items(talk, items)
        live = the_live_wing()
        settings = _settings(more or []) | {"kind": kind.value, "strategy": strategy.value}
        made = live.Poll.create(
            poll, question=question, items=given, name=name, background=False, draft=draft,
            criteria=criterion or [], **settings,
        )  # fmt: skip
        with made:
            for host in _not_shown(made):
                talk.warn(f"Images of {host} are not shown without --set images={host}, as it sees who looks at them")
            told = {"poll": made.name, "items": len(given), "token": made.token}
            _hand_over(
                talk, f"The organiser's token, which is shown this once: {made.token}", "poll-new", told,
                said=f"A poll of {len(given)} items, {made.name}. Serve it: predilect poll serve {as_typed(poll)}",
            )  # fmt: skip


@app.command("serve")
def serve(
    ctx: typer.Context,
    poll: Place,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", envvar="PREDILECT_SERVE_HOST",
            help="Where to listen; 0.0.0.0 for every network.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", envvar="PREDILECT_SERVE_PORT", min=0, max=65535, help="0 for any that is free."
        ),
    ] = 8000,
    root_path: Annotated[
        str,
        typer.Option(
            "--root-path", metavar="PATH", envvar="PREDILECT_SERVE_ROOT_PATH",
            help="Path below which a proxy puts it, such as /polls.",
        ),
    ] = "",
    https: Annotated[
        bool,
        typer.Option(
            "--https", envvar="PREDILECT_SERVE_HTTPS",
            help="Visitors come by TLS, through a proxy: cookies are marked as secure.",
        ),
    ] = False,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", metavar="ADDRESS", envvar="PREDILECT_SERVE_PROXIES",
            help="A proxy whose X-Forwarded-For is believed; repeatable.",
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", envvar="PREDILECT_SERVE_PROCESSES", min=1, max=64,
            help="Processes that answer.",
        ),
    ] = 1,
    joins: Annotated[
        int,
        typer.Option(
            "--joins", metavar="N", envvar="PREDILECT_SERVE_JOINS", min=1,
            help="New participants of one address in a minute.",
        ),
    ] = 600,
    access_log: Annotated[
        bool,
        typer.Option(
            "--access-log", envvar="PREDILECT_SERVE_ACCESS_LOG",
            help="Write a line for each request, with addresses of visitors.",
        ),
    ] = False,
    code: Annotated[
        str,
        typer.Option(
            "--code", metavar="TEXT", envvar="PREDILECT_SERVE_CODE", show_default="at random",
            help="What somebody needs who makes a poll on the pages; better in the environment than here, where other "
            "users of the machine see it.",
        ),
    ] = "",
    own_network: OwnNetwork = False,
    seconds: Annotated[
        float | None, typer.Option("--stop-after", metavar="SECONDS", min=0.1, help="Stop by itself; for trials.")
    ] = None,
) -> None:  # fmt: skip
    """Serve the pages and the API of a poll, or of all polls of a folder, until Ctrl-C or SIGTERM.

    Example: predilect poll serve poll.db --port 8080
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as after Ctrl-C, in its own time
    with session(ctx.obj) as talk:
        the_live_wing()
        from predilect.live.web.serving import Serving, run

        told = Serving(
            poll,
            host,
            port,
            root_path,
            https,
            tuple(proxies or ()),
            processes,
            joins,
            access_log,
            seconds,
            code,
            own_network,
        )
        run(told, talk.say)


@app.command("list")
def list_(ctx: typer.Context, poll: Place) -> None:
    """List the polls of a file, of a folder, or of a PostgreSQL.

    Example: predilect poll list /srv/polls
    """
    with session(ctx.obj) as talk:
        live = the_live_wing()
        from predilect.live.web.hosting import polls_at

        rows = []
        for name, place in polls_at(poll).items():
            with live.Poll.open(place, name, background=False) as opened:
                found = opened.numbers()
                rows.append(
                    {"poll": name, "status": opened.status, "question": opened.settings.question,
                     "items": sum(item.state == "active" for item in opened.items),
                     "people": found["participants"], "answers": found["answers"], "place": _without_password(place)}
                )  # fmt: skip
        if not rows:
            talk.say(f"There are no polls in {_without_password(poll)}.")
        _print(talk, rows, "poll-list", {"polls": rows})


@app.command("status")
def status(ctx: typer.Context, poll: Database, name: Name = None) -> None:
    """Say how a poll stands: who answered, the board, and how many answers settle first place.

    Example: predilect poll status poll.db
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        from predilect.live.state import said_of

        people, settings = opened.people(), opened.settings
        boards = []
        for place, text in enumerate(settings.boards):
            rows = opened.board(place).select("item", "mean", "lower", "upper", "p_best", "n").to_dicts()
            boards.append({"criterion": text, "outlook": str(opened.outlook(criterion=place)), "board": rows})
        left_out = opened.left_out()
        told = {"poll": opened.name, "question": settings.question, "status": opened.status, **people,
                "left_out": [one._asdict() for one in left_out], "boards": boards}  # fmt: skip
        if left_out:
            talk.warn(said_of(left_out))
        if talk.kind != "table":
            _print(talk, [row | {"criterion": one["criterion"]} for one in boards for row in one["board"]],
                   "poll-status", told)  # fmt: skip
            return
        talk.show(f"{settings.question} ({opened.status})")
        talk.show(f"{people['with_answers']} of {people['people']} people gave {people['answers']} answers.")
        for one in boards:
            if len(boards) > 1:
                talk.show(f"\n{one['criterion']}")
            talk.show(one["outlook"])
            _print(talk, one["board"][:20], "poll-status", told)


@app.command("set")
def change(
    ctx: typer.Context,
    poll: DatabaseFirst,
    settings: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", show_default=False, help="As predilect poll settings lists them."),
    ],
    name: Name = None,
) -> None:
    """Change settings of a poll; once there are answers, none of those that say what answers mean.

    Example: predilect poll set poll.db public=yes limit=20
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        opened.change(**_settings(settings))
        talk.say(f"Changed {', '.join(one.partition('=')[0] for one in settings)} of {opened.name}.")


@app.command("settings")
def settings(
    ctx: typer.Context,
    poll: Annotated[
        str | None, typer.Argument(metavar="[POLL]", help=_DATABASE, show_default="what is default")
    ] = None,
    name: Name = None,
) -> None:
    """List all settings, what each takes and is for; of a poll, as they are.

    Example: predilect poll settings poll.db
    """
    with session(ctx.obj) as talk:
        the_live_wing()
        from predilect.live.settings import Settings, described

        now = Settings(question="?")
        if poll is not None:
            with _open(poll, name) as opened:
                now = opened.settings
        rows = [
            {"setting": one.name, "value": one.written(getattr(now, one.name)).replace("\n", ","),
             "takes": "yes or no" if one.form == "switch" else one.takes, "said": one.said.replace("``", "")}
            for one in described().values()
        ]  # fmt: skip
        _print(talk, rows, "poll-settings", {"settings": rows})


@app.command("add")
def add(ctx: typer.Context, poll: DatabaseFirst, items: Items, name: Name = None) -> None:
    """Add items to a poll that there is; all of them, or where one is there already none.

    Example: predilect poll add poll.db more-ideas.txt
    """
    with session(ctx.obj) as talk:
        given = _items(talk, items)
        with _open(poll, name) as opened:
            opened.add_items(given)
            hosts = _not_shown(opened)
            if hosts:
                wanted = ",".join([*opened.settings.images, *hosts])
                talk.warn(
                    f"Images of {', '.join(hosts)} are not shown without predilect poll set {as_typed(poll)} "
                    f"images={wanted}, as these see who looks at them"
                )
            talk.say(f"Added {len(given)} items to {opened.name}.")


@app.command("retire")
def retire(
    ctx: typer.Context,
    poll: DatabaseFirst,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", show_default=False, help="Names of items.")],
    name: Name = None,
) -> None:
    """Ask no more about items; their answers stay.

    Example: predilect poll retire poll.db "Free coffee"
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        from predilect.live.given import item_of

        for found in [item_of(opened.items, one) for one in items]:  # all are there, or nothing is done
            opened.retire(found.number)
            talk.say(f"{opened.name} asks no more about {found.name}.")


def _to(word: str, become: str, act: str, help_text: str) -> None:
    """Make the command of a word that brings a poll into a state, by a method of Poll."""

    @app.command(word, help=f"{help_text}\n\nExample: predilect poll {word} poll.db")
    def into(ctx: typer.Context, poll: Database, name: Name = None) -> None:
        with session(ctx.obj) as talk, _open(poll, name) as opened:
            getattr(opened, act)()
            talk.say(f"{opened.name} is {become}.")


_to("open", "open", "resume", "Open a poll that is a draft, paused or closed.")
_to("pause", "paused", "pause", "Ask nobody, and take no answers, until predilect poll open.")
_to("close", "closed", "close", "End a poll: nobody may join or answer. Its retention_days count from now on.")


@app.command("export")
def export(
    ctx: typer.Context,
    poll: Database,
    kind: Annotated[
        ExportName, typer.Argument(metavar="[KIND]", help=", ".join(ExportName) + ".")
    ] = ExportName.answers,
    out: OutFile = None,
    name: Name = None,
    show_pids: Annotated[
        bool, typer.Option("--pids", help="Outer references as they came, and not hashed.")
    ] = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Write a table of a poll: as CSV to standard output, or to a .csv, .json or .parquet file.

    The answers are in a layout that predilect rank reads.

    Example: predilect poll export poll.db answers -o answers.csv
    """
    with session(ctx.obj, "csv") as talk, _open(poll, name) as opened:
        table = opened.export(cast("Export", kind.value), show_pids=show_pids)
        if out is None:
            talk.result(table, f"poll-{kind.value}", {"poll": opened.name, kind.value: table.to_dicts()})
            return
        from predilect.live.exports import written
        from predilect.show.report.output import OutputFile

        form = out.suffix.removeprefix(".")
        if form not in ("csv", "json", "parquet"):
            raise DataError(f"{out} ends in {out.suffix or 'nothing'}; a table is .csv, .json or .parquet")
        content = written(table, form)
        target = OutputFile(out, force, what="the export needs", reads=[Path(poll)])
        target.write(lambda place: place.write_bytes(content))
        talk.written = str(out)
        talk.say(f"{len(table)} rows written to {out}.")


@app.command("erase")
def erase(
    ctx: typer.Context,
    poll: Database,
    participants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARTICIPANT...]", show_default=False,
            help="Names, or what exports call them, such as p17.",
        ),
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Every one of them is what exports call somebody, and no name.")
    ] = False,
    expired: Annotated[
        bool, typer.Option("--expired", help="Everybody, if the poll was closed longer ago than its retention_days.")
    ] = False,
    name: Name = None,
) -> None:  # fmt: skip
    """Erase participants: their ids and answers, and what these told of the board. Back-ups are yours to mend.

    Example: predilect poll erase poll.db p17
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        if bool(participants) == expired:
            raise DataError("name participants to erase, or give --expired")
        gone = opened.expired(time.time()) if expired else [_number(opened, one, ids) for one in participants or ()]
        left = [number for number in dict.fromkeys(gone) if not _erased(opened, number)]
        talk.say(f"Erased {len({*gone})} participants.")
        if left:
            again = " ".join(f"p{number}" for number in left)
            talk.warn(
                f"Another program reads {poll}, so traces stay in it until that ends. Then say: predilect poll erase "
                f"{as_typed(poll)} --ids {again}"
            )


@app.command("token")
def token(
    ctx: typer.Context,
    poll: Database,
    pid: Annotated[
        str | None,
        typer.Option("--pid", metavar="ID", help="Print the signature of a panel's id, and leave the token alone."),
    ] = None,
    webhook: Annotated[
        bool, typer.Option("--webhook", help="Print the key by which notices are signed, and leave the token alone.")
    ] = False,
    name: Name = None,
) -> None:
    """Make a new token for the organiser, who lost the old one, which is worth nothing from then on.

    Example: predilect poll token poll.db
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        if webhook:
            what, made = "key", opened.webhook_key
        else:
            what, made = ("token", opened.new_token()) if pid is None else ("signature", opened.sign(pid))
        _hand_over(talk, made, "poll-token", {"poll": opened.name, what: made})


@app.command("invite")
def invite(
    ctx: typer.Context,
    poll: DatabaseFirst,
    who: Annotated[
        str | None,
        typer.Argument(metavar="[WHO]", show_default="list who there is", help="Name of somebody, for the trail."),
    ] = None,
    role: Annotated[
        RoleName,
        typer.Option("--role", help="A reader looks on, a moderator decides on items too, an organiser may do all."),
    ] = RoleName.moderator,
    name: Name = None,
) -> None:  # fmt: skip
    """Let somebody look after a poll, and print their token, which is kept nowhere; it can be taken back by revoke.

    Their link is the organiser's address, /in/ and the token. Example: predilect poll invite poll.db Ann --role reader
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        if who is None:
            rows = [one._asdict() for one in opened.organisers()]
            _print(talk, rows, "poll-organisers", {"poll": opened.name, "organisers": rows})
            return
        number, token = opened.invite(who, role.value)
        told = {"poll": opened.name, "number": number, "name": who, "role": role.value, "token": token}
        _hand_over(
            talk, token, "poll-invite", told,
            said=f"{who} is a {role.value} of {opened.name}. Their link: .../o/{opened.name}/in/TOKEN, with the token",
        )  # fmt: skip


@app.command("revoke")
def revoke(
    ctx: typer.Context,
    poll: DatabaseFirst,
    who: Annotated[str, typer.Argument(metavar="WHO", show_default=False, help="Name of somebody invited.")],
    name: Name = None,
) -> None:
    """Take back the link of somebody who was invited; what they did stays in the trail.

    Example: predilect poll revoke poll.db Ann
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        opened.revoke(who)
        talk.say(f"{who} looks after {opened.name} no more.")


@app.command("backup")
def backup(
    ctx: typer.Context,
    poll: DatabaseFirst,
    target: Annotated[Path, typer.Argument(metavar="COPY", show_default=False, help="File to make.")],
) -> None:
    """Copy an SQLite file of polls while it is in use; PostgreSQL has pg_dump.

    Example: predilect poll backup poll.db copy.db
    """
    with session(ctx.obj) as talk:
        the_live_wing()
        from predilect.live.tables import Database as Tables

        database = Tables(poll)
        database.backup(target)
        database.close()
        talk.written = str(target)
        talk.say(f"Copied to {target}.")


@app.command("move")
def move(
    ctx: typer.Context,
    poll: DatabaseFirst,
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, help=_DATABASE)],
    name: Name = None,
) -> None:
    """Move a poll into another file, or between SQLite and PostgreSQL; stop the server of it first.

    All is written, read again and compared before it is taken from POLL. Refused where TARGET has a poll of this name.

    Example: predilect poll move poll.db postgresql://HOST/NAME
    """
    with session(ctx.obj) as talk, _open(poll, name) as opened:
        from predilect.live.moving import move as moved

        n = moved(opened.database, opened.name, target)
        talk.written = _without_password(target)
        talk.say(f"Moved {opened.name}, of {n} events, to {_without_password(target)}.")


def the_live_wing() -> Any:
    """The polls, or what to install."""
    try:
        from predilect import live
    except ImportError as error:
        raise DataError(str(error)) from error
    return live


def _open(poll: str, name: str | None) -> Poll:
    opened: Poll = the_live_wing().Poll.open(poll, name, background=False)
    return opened


def _not_shown(poll: Poll) -> list[str]:
    """Hosts of images that the settings do not name."""
    return sorted({urlsplit(item.image).netloc for item in poll.items if item.image} - set(poll.settings.images))


def _without_password(place: str | Path) -> str:
    """A place as it may be printed."""
    return re.sub(r"(?<=://)([^/@:]*):[^/]*@", r"\1:***@", str(place))


def _erased(poll: Poll, number: int) -> bool:
    """Erase a participant; whether nothing is left in the file either."""
    try:
        poll.erase(number, by=0)
    except OutputError:
        if not poll.was_erased(number):
            raise
        return False
    return True


def _number(poll: Poll, word: str, is_id: bool) -> int:
    """Number of a participant as exports write it, or by name; DataError for whoever could be either of two."""
    from predilect.live.answers import user_of

    number = int(word[1:]) if word[:1] == "p" and word[1:].isdecimal() and len(word) < 19 else 0
    is_known = poll.has(number) or poll.was_erased(number)
    by_id = number if word == user_of(number) and is_known else None
    by_name = None if is_id else poll.who(name=word)
    if by_id is not None and by_name not in (None, by_id):
        raise DataError(
            f'"{word}" is what exports call one participant, and the name of another, {user_of(by_name)}. Say which: '
            f"--ids {word}, or --ids {user_of(by_name)}"
        )
    found = by_id if by_name is None else by_name
    if found is None:
        raise DataError(f'the poll knows no participant "{word}". predilect poll export POLL participants lists them')
    return found


def _items(talk: Talk, path: Path) -> list[Any]:
    """Items of a text file, one a line, or of a table with a column item."""
    path = talk.file(path)
    if path.suffix in (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"):
        from predilect.data.read.names import ITEM, guess_one
        from predilect.data.read.readers import read_table

        names, table = read_table(path)
        column = guess_one(names, ITEM) or ("name" if "name" in names else None)
        if column is None:
            raise DataError(f"{path.name} has no column item; its columns are {', '.join(names)}. Rename one")
        others = [name for name in names if name not in (column, "image")]
        rows = zip(*(list(table[name]) for name in (column, *others)), strict=True)
        images = list(table["image"]) if "image" in names else [None] * len(list(table[column]))
        return [
            {"name": str(name), "image": image or "",
             "attributes": {key: str(value) for key, value in zip(others, values, strict=True) if value is not None}}
            for (name, *values), image in zip(rows, images, strict=True)
        ]  # fmt: skip
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is no UTF-8 text, with an item on each line") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _settings(said: list[str]) -> dict[str, Any]:
    """Settings of KEY=VALUE: numbers, yes and no, lists with commas, texts."""
    from predilect.live.settings import read_settings

    found: dict[str, str] = {}
    for one in said:
        key, equals, value = one.partition("=")
        if not equals:
            raise DataError(f'a setting is KEY=VALUE, such as limit=20; got "{one}"')
        found[key.replace("-", "_")] = value
    return read_settings(found, ",")


def _hand_over(talk: Talk, secret: str, schema: str, document: dict[str, Any], said: str = "") -> None:
    """Show what is shown this once: alone on a terminal, below what is ``said`` of it, or in a document."""
    if talk.kind != "table":
        _print(talk, [document], schema, document)
        return
    if said:
        talk.say(said)
    talk.show(secret)


def _print(talk: Talk, rows: list[dict[str, Any]], schema: str, document: dict[str, Any]) -> None:
    import polars as pl

    talk.result(pl.DataFrame(rows), schema, document)
