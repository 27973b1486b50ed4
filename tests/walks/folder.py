"""A walk through the command: tables of any kind, ``rank`` and whatever may follow it, in a folder of its own.

Rules are verbs with any arguments, and each step ends with what holds of every command: words and an exit code, nothing
in a text that nobody should read, nothing lost that the user put there, advice that can be taken, the same numbers in
all that was written. ``$`` in a failure is what to type.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import made_tables
from cli.running import run
from made_tables import LAYOUTS, Dice, made
from predilect.cli.desk.app import Desk
from predilect.cli.desk.asked import Asked
from predilect.data.read.options import OPTIONS
from predilect.errors import PredilectError
from predilect.models.registry import COMMANDS as MODELS
from predilect.show.report.output import MARKER
from predilect.show.report.page import page
from walks.agreement import disagreement
from walks.commands import COMMANDS, COMMON, Parameter, taking
from walks.texts import advised, formulas, has_numbers, texts_in, wrong_in

__all__ = ["FolderWalk"]

STEMS = ("votes", "my votes", "-rf", "é日本", "it's", 'a "b"', "$x; y", "#1", "a.b")
KINDS = (".csv", ".csv", ".tsv", ".jsonl", ".parquet")
FOLDERS = ("out", "my out", "-out", "résultats", "it's out", 'out "2"')
OWN = ("notes.txt", "leaderboard.csv", "own/notes.txt", ".hidden", "votes.parquet")
# Names that a spreadsheet, a shell or a page would obey, in place of those of the tables.
THINGS = (
    (), (), (), ("=1+1", "-2+3", "@SUM(A1)", "it's", 'say "no"', "a, b"),
    ("-rf", "--out", "$HOME", "*", "; ls", "`id`"), ("日本", "é è", "<b>x</b>", "x|y", "a=b", "😀"),
)  # fmt: skip
PEOPLE = ("=ann", "-bob", "@cyd", "d'ee", "e li")
JUNK = ("x", "", "-1", "0", "nan", "1e400", "a b", ",", "a=b", "=1+1", "{x}")
NUMBERS = {
    "N": ("1", "2", "3", "50"), "K": ("2", "1", "3"), "P": (".4", ".1"), "C": ("1", "10"), "Q": (".1", "0"),
    "D": (".2", "5"),
}  # fmt: skip
ROLES = tuple(one.name for one in OPTIONS if one.is_column)
KEYS = tuple(f"{o.name}={value}" for o in OPTIONS if not o.is_column for value in o.values or ("yes", "no", "tie"))
# Tables of described alternatives, and the models that say what attributes are worth.
OF_PROFILES = ("long_profiles", "wide_profiles", "some_alternatives") * 4
WITH_COEFFICIENTS = ("mixed-logit", "logit", "latent-class", "gaspk")
# Commands that tell what attributes are worth or do, and all that tell numbers of a fit: of one that is marked as not
# usable they print none.
OF_ATTRIBUTES = ("worth", "simulate")
TELLING = (*OF_ATTRIBUTES, "predict", "decide", "ask")


class Line(tuple[str, ...]):
    """A command as somebody types it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"$ {shlex.join(('predilect', *self))}"


class FolderWalk(RuleBasedStateMachine):
    """A working folder, all that was put there, and the commands that run in it."""

    passed_over: ClassVar[set[str]] = set()  # kinds of failures that a search has found already

    def __init__(self) -> None:
        super().__init__()
        self.before = Path.cwd()
        self.place = Path(tempfile.mkdtemp(prefix="walk-"))
        os.chdir(self.place)
        self.own: dict[str, bytes] = {}  # what the user put there
        self.tables: dict[str, list[str]] = {
            role: [] for role in ("answers", "items", "people", "pairs", "scenarios", "levels")
        }
        self.words: list[str] = []  # names of columns
        self.things: list[str] = []  # items and people of the answers
        self.users: list[str] = []
        self.typed: list[Line] = []  # commands that worked
        self.taken: set[str] = set()  # advice that was taken
        self.marked: set[str] = set()  # folders whose results are said to be of no use

    def teardown(self) -> None:
        """Leave nothing."""
        os.chdir(self.before)
        shutil.rmtree(self.place)

    # --- what a user does ---------------------------------------------------------------------------------------------

    @initialize(
        layout=st.sampled_from([*LAYOUTS, *OF_PROFILES]), seed=st.integers(0, 200), stem=st.sampled_from(STEMS),
        kind=st.sampled_from(KINDS), things=st.sampled_from(THINGS), out=st.sampled_from(FOLDERS), data=st.data(),
    )  # fmt: skip
    def begin(self, layout: str, seed: int, stem: str, kind: str, things: Sequence[str], out: str, data: Any) -> None:
        """A table, and what ``rank`` makes of it."""
        self.answers(layout, seed, stem, kind, things)
        known = WITH_COEFFICIENTS if layout in OF_PROFILES else [*MODELS]
        model = data.draw(st.sampled_from(["population", *known]), label="model")
        self.run("rank", typed(self.tables["answers"][-1]), "-o", out, *["--model", model] * (model != "population"))

    @rule(layout=st.sampled_from([*LAYOUTS]), seed=st.integers(0, 200), stem=st.sampled_from(STEMS),
          kind=st.sampled_from(KINDS), things=st.sampled_from(THINGS))  # fmt: skip
    def answers(self, layout: str, seed: int, stem: str, kind: str, things: Sequence[str]) -> None:
        """A table of answers, under any name."""
        self.things, self.users = [], []

        def pick(options: Sequence[Any]) -> Any:
            found = dice.random.choice(options)
            if options is made_tables.THINGS:
                self.things = [*(things or found)]
                return tuple(self.things)
            if options is made_tables.PEOPLE:
                self.users = [*(PEOPLE if things else found)]
                return tuple(self.users)
            return found

        dice = Dice(seed, pick)
        table = made(layout, dice)
        self.things += ["None"] * bool(table.attributes)  # which is what the outside option is called
        self.words = [*dict.fromkeys([*table.attributes, *table.columns, *self.words])][:30]
        self.write("answers", f"{stem}{kind}", table.columns)

    @rule(role=st.sampled_from(["items", "people", "pairs", "scenarios", "levels"]), stem=st.sampled_from(STEMS),
          kind=st.sampled_from(KINDS), folder=st.sampled_from(FOLDERS), seed=st.integers(0, 3))  # fmt: skip
    def beside(self, role: str, stem: str, kind: str, folder: str, seed: int) -> None:
        """A table about the items or people of a board, or else of the answers."""
        known = self.items_of(folder) or self.things or ["tea", "milk"]
        things = [*known[:11], *["new one"] * (seed % 2)]
        n = len(things)
        of_items = {
            "item": things, "price": [1 + (seed + k) % 4 for k in range(n)], "size": [k * k % 5 / 2 for k in range(n)],
            "brand": ["=x" if k % 2 else "y" for k in range(n)],
        }  # fmt: skip
        users = self.users_of(folder) or self.users or ["ann", "bob"]
        columns: dict[str, list[Any]] = {
            "items": of_items,
            "people": {
                "user": users,
                "age": [20 + k % 3 for k, _ in enumerate(users)],
                "region": [*"nsnsn"][: len(users)],
            },
            "pairs": {"user": [users[k % len(users)] for k in range(n - 1)], "left": things[:-1], "right": things[1:]},
            "scenarios": {"scenario": ["a"] * n, **of_items, "ours": ["yes" if k < 2 else "no" for k in range(n)]},
            "levels": {
                "attribute": [*["price"] * 3, *["=brand"] * 2],
                "level": ["1", "2", "4", "=x", "y"],
                "prior": [-0.5, None, None, 0.2 * (seed % 2), None],
                "spread": [0.3 * (seed // 2), *[None] * 4],
            },
        }[role]  # type: ignore[assignment]
        if role == "pairs" and seed > 1:
            columns["winner"] = things[1:]
        if role == "scenarios" and seed < 2:
            columns = {name: columns[name] for name in ("scenario", "item")}
        self.words = [*dict.fromkeys([*self.words, *columns])][:30]
        self.write(role, f"{stem} {role}{kind}" if stem != "votes" else f"{role}{kind}", columns)

    @rule(name=st.sampled_from(OWN), data=st.data())
    def put(self, name: str, data: Any) -> None:
        """A file of the user's own, in any folder that is there and at any depth below it."""
        folder = data.draw(st.sampled_from(self.all_folders()), label="in")
        path = Path(folder) / name
        if not path.exists() and (path.parent.is_dir() or not path.parent.exists()):
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine", encoding="utf-8")
            self.own[str(path)] = b"mine"

    @rule(data=st.data())
    def look(self, data: Any) -> None:
        """``check`` of any file."""
        self.run(*data.draw(lines(self, "check"), label="type"))

    @rule(data=st.data())
    def rank(self, data: Any) -> None:
        """``rank`` of any file, with any options."""
        self.run(*data.draw(lines(self, "rank"), label="type"))

    @precondition(lambda self: self.results())
    @rule(data=st.data(), command=st.sampled_from(["report", "compare", "predict", "ask", "decide"]))
    def go_on(self, data: Any, command: str) -> None:
        """A command about a ranking, with any arguments."""
        self.run(*data.draw(lines(self, command), label="type"))

    @precondition(lambda self: self.results())
    @rule(data=st.data())
    def show(self, data: Any) -> None:
        """``show`` with any arguments."""
        self.run(*data.draw(lines(self, "show"), label="type"))

    @precondition(lambda self: self.results())
    @rule(data=st.data(), command=st.sampled_from(OF_ATTRIBUTES))
    def value(self, data: Any, command: str) -> None:
        """What attributes are worth, with any arguments."""
        self.run(*data.draw(lines(self, command), label="type"))

    @precondition(lambda self: self.typed)
    @rule(data=st.data())
    def again(self, data: Any) -> None:
        """Something that worked, with an option more."""
        words = data.draw(st.sampled_from(self.typed[-8:]), label="again")
        self.run(*data.draw(longer(self, words), label="type"))

    @rule(data=st.data())
    def deal(self, data: Any) -> None:
        """``partition`` of any files."""
        self.run(*data.draw(lines(self, "partition"), label="type"))

    @rule(data=st.data())
    def plan(self, data: Any) -> None:
        """``design`` of any levels."""
        self.run(*data.draw(lines(self, "design"), label="type"))

    @rule(data=st.data())
    def open(self, data: Any) -> None:
        """The page of any file or folder: it says what the command says, and offers ways that can be gone."""
        place = data.draw(st.sampled_from([*self.results(), *self.files()]), label="open")
        note(f"$ predilect open {typed(place)}")
        desk = Desk("token")
        try:
            address = desk.opened(Path(place))
            if "/results/" in address:
                self.shown(desk, address.rpartition("/")[2], place)
            else:
                self.looked(desk, Asked(desk.shelf.put(Path(place))), place)
        except PredilectError as error:
            if found := wrong_in(str(error), self.known()):
                self.wrong(f"text of open: {found[:25]}", f"{found}\n{error}")
        finally:
            desk.close()

    def shown(self, desk: Desk, key: str, place: str) -> None:
        """The page of results begins with the board's first item."""
        found = desk.library.at(key)
        text = page(found.contents)
        if (items := self.items_of(place)) and found.items[0] != items[0]:
            self.wrong("numbers differ: the page of open", f"{found.items[:3]} and {items[:3]}\n{text[:500]}")

    def looked(self, desk: Desk, asked: Asked, place: str) -> None:
        """A page of reading: what stands there is clean, and no way that it offers is a refusal."""
        look = desk.looks.at(asked)
        for one in (look.problem, look.amounts, *look.sentences, *(way.example for way in look.ways)):
            if found := wrong_in(one, [*self.known(), place]):
                self.wrong(f"text of open: {found[:25]}", f"{found}\n{one}")
        for way in look.ways:
            then = desk.looks.at(way.asked)
            if then.answers is None and not then.ways:
                self.wrong("a way that is refused", f"{way}\n{then.problem}")

    @rule(
        data=st.data(),
        command=st.sampled_from(["new", "status", "export", "erase", "token", "backup", "add", "retire", "list"]),
    )
    def poll(self, data: Any, command: str) -> None:
        """A live poll of whatever there is, and what can be asked of it without a server."""
        self.run(*data.draw(lines(self, f"poll {command}"), label="type"))

    # --- what holds ---------------------------------------------------------------------------------------------------

    def run(self, *words: str, advice_of: str = "") -> Any:
        """Run a command, and look at what it says and leaves."""
        line, before = Line(words), self.tree()
        note(repr(line) if not advice_of else f"{line!r}   (advised by {advice_of})")
        ended = signal.getsignal(signal.SIGTERM)  # which a server changes for the rest of its process
        result = run(*words)
        signal.signal(signal.SIGTERM, ended)
        said = f"{result.stdout}\n{result.stderr}"
        told = f"\n{line!r}\nexit code {result.exit_code}\n{said[-3000:]}"
        command = " ".join(words[: 1 + (words[0] == "poll")])
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            at = error.__traceback__
            while at is not None and at.tb_next is not None:
                at = at.tb_next
            where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else ""
            self.wrong(f"traceback: {type(error).__name__} {where}", f"{error}{told}")
            return result
        if result.exit_code not in (0, 1, 2, 3):
            self.wrong(f"exit code {result.exit_code} of {command}", told)
        if result.exit_code and not result.stderr.strip():
            self.wrong(f"no word of {command}", told)
        kind = self.kind_of(words)
        self.read(command, words, result, kind, told)
        self.look_after(command, words, result, before, told)
        marked = self.is_marked(words, result) and command in TELLING and result.exit_code == 0
        if marked and "--force" not in words and (row := has_numbers(result.stdout, kind)):
            self.wrong(f"numbers of what is not usable: {command} {kind}", f"{row}{told}")
        is_new = result.exit_code == 0 and command == "rank" and "model/" in said
        if is_new and (found := disagreement(self.out_of(words))):
            self.wrong(f"numbers differ: {found.split(':')[0]}", f"{found}{told}")
        if result.exit_code == 0 and words[:2] != ("poll", "serve"):
            self.typed.append(line)
        if not advice_of:
            self.follow(command, words, said if kind == "table" else result.stderr)
            if result.exit_code == 2:
                self.obey(command, words, result.stderr)
        return result

    def wrong(self, kind: str, told: str) -> None:
        """Fail, unless the kind is one that a search passes over."""
        if kind not in self.passed_over:
            raise AssertionError(f"{kind}\n{told}")

    def read(self, command: str, words: tuple[str, ...], result: Any, kind: str, told: str) -> None:
        """Look for what no text holds."""
        printed = result.stdout
        if kind == "json" and printed and result.exit_code == 0:
            try:
                printed = "\n".join(texts_in(json.loads(printed)))
            except ValueError as why:
                self.wrong(f"no JSON of {command}", f"{why}{told}")
        for text in (printed, result.stderr):
            if found := wrong_in(text, [*words, *self.known()]):
                self.wrong(f"text of {command}: {found[:25]}", f"{found}{told}")

    def look_after(self, command: str, words: tuple[str, ...], result: Any, before: dict[str, int], told: str) -> None:
        """What the user put there is there, a command that failed left nothing, and tables for people are harmless."""
        out, after = self.out_of(words), self.tree()
        for path, data in [*self.own.items()]:
            if not Path(path).is_file() or Path(path).read_bytes() != data:
                if not (path == out and "--force" in words and result.exit_code == 0):
                    self.wrong(f"lost by {command}: {Path(path).name}", f"{path} is not what it was{told}")
                self.own.pop(path)
        if result.exit_code and before != after and not command.startswith("poll"):
            self.wrong(f"left behind by {command}", f"{sorted(set(after.items()) ^ set(before.items()))}{told}")
        for path, when in after.items():
            is_new = before.get(path) != when and path.endswith(".csv") and path not in self.own
            if is_new and (cells := formulas(Path(path).read_text(encoding="utf-8"))):
                self.wrong(f"formulas of {command}: {Path(path).name}", f"{path} holds {cells[:3]}{told}")

    def is_marked(self, words: tuple[str, ...], result: Any) -> bool:
        """Whether what was asked about is of no use, as is said of it now, or was when the folder was made."""
        said = f"{result.stdout}\n{result.stderr}"
        if words[0] == "rank" and not result.exit_code:
            (self.marked.add if "is not usable" in said else self.marked.discard)(self.out_of(words))
        return "Not usable:" in said or any(os.path.normpath(word) in self.marked for word in words[1:])

    def follow(self, command: str, words: tuple[str, ...], said: str) -> None:
        """Take each advice once: a command that a message prints is accepted, capitals filled in."""
        for one in advised(said, [*self.known(), *words[1:]]):
            if isinstance(one, str):
                self.wrong(f"advice of {command}: quotes", f"no shell reads: predilect {one}\n{Line(words)!r}")
                continue
            filled = self.filled(one, words)
            if filled is None or filled[0] == "--help" or str(filled) in self.taken:
                continue
            self.taken.add(str(filled))
            if "with the same options" in said:
                common = {other.names[-1] for other in COMMON} | {"-o"}
                same = [(name, value) for name, value in options_in(words) if name not in common]
                filled += [word for pair in same for word in pair if word]
            if filled[:2] == ["poll", "serve"]:
                filled += ["--port", "0", "--stop-after", "0.2"]
            ran = self.run(*filled, advice_of=command)
            # Whoever fills in a file may take a wrong one, which is said in words of its own.
            if ran.exit_code and "exists already" not in ran.stderr and ("FILE" not in one or "Usage:" in ran.stderr):
                self.wrong(
                    f"advice of {command}: {' '.join(one[:1])}, {short(ran.stderr)}",
                    f"{Line(words)!r}\nadvises   {Line(one)!r}\nwhich is  {Line(filled)!r}\n{ran.stderr[-1000:]}\n"
                    f"{said[-1500:]}",
                )

    def obey(self, command: str, words: tuple[str, ...], error: str) -> None:
        """Say what an error says to say: the same command with the option is no wrong one, and has no such error."""
        for found in re.finditer(rf"{_OPTION}(?: {_OPTION})*", error):
            if error[found.end() :].startswith((" is about", " says")):
                continue  # the one that is refused
            said = found[0]
            options = options_in((*command.split(), *shlex.split(said)))
            if not {*options} - {*options_in(words)}:
                continue  # they were said
            filled = list(words)
            for flag, value in options:
                option = taking(command, flag)
                if option is None or option.alone == bool(value) or re.search(r"[A-Z]{2}|\.\.\.", value):
                    break  # it is but named, or to be filled in
                at = filled.index("--") if "--" in filled else len(filled)
                filled[at:at] = [flag, *[value] * bool(value)]
            else:
                if str(filled) in self.taken:
                    continue
                self.taken.add(str(filled))
                ran = self.run(*filled, advice_of=f"{command}: {said}")
                if ran.exit_code == 2 and ("Usage:" in ran.stderr or ran.stderr == error):
                    self.wrong(
                        f"advice of {command}: {options[0][0]}, {short(error)}",
                        f"{Line(words)!r}\n{error[-1500:]}\nadvises {said}, and\n{Line(filled)!r}\n{ran.stderr}",
                    )

    # --- what there is ------------------------------------------------------------------------------------------------

    def write(self, role: str, name: str, columns: dict[str, list[Any]]) -> None:
        """Write a table of the user's into a file, by its suffix."""
        frame = pl.DataFrame(columns, strict=False)
        if any(kind.is_nested() for kind in frame.dtypes) and not name.endswith((".jsonl", ".parquet")):
            name = f"{Path(name).stem}.jsonl"
        path = Path(name)
        if path.exists() and name not in self.own:
            return
        if path.suffix == ".parquet":
            frame.write_parquet(path)
        elif path.suffix == ".jsonl":
            frame.write_ndjson(path)
        else:
            frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
        self.own[name] = path.read_bytes()
        for names in self.tables.values():
            names[:] = [one for one in names if one != name]
        self.tables[role].append(name)
        note(f"# {name} holds {role}: {', '.join(columns)}; {len(frame)} rows")

    def tree(self) -> dict[str, int]:
        """All files, hidden ones too, and when each was written; databases of polls are written to at any time."""
        found = (path for path in Path().rglob("*") if ".db" not in path.name)
        return {str(path): path.stat().st_mtime_ns for path in sorted(found) if path.is_file()}

    def all_folders(self) -> list[str]:
        return sorted(str(path) for path in [Path(), *Path().rglob("*")] if path.is_dir())

    def files(self) -> list[str]:
        """All files, but for those that a database has beside it for a while."""
        beside = (MARKER, "poll.db-wal", "poll.db-shm")
        return sorted(str(path) for path in Path().rglob("*") if path.is_file() and not path.name.endswith(beside))

    def results(self) -> list[str]:
        return [one for one in self.all_folders() if (Path(one) / "leaderboard.json").is_file()]

    def items_of(self, folder: str) -> list[str]:
        """Items of the board in a folder, best first."""
        path = Path(folder) / "leaderboard.json"
        return [str(row["item"]) for row in json.loads(path.read_bytes())["board"]] if path.is_file() else []

    def users_of(self, folder: str) -> list[str]:
        path = Path(folder) / "answers.parquet"
        if not path.is_file() or "user" not in (frame := pl.read_parquet(path)).columns:
            return []
        return sorted({str(one) for one in frame["user"] if one is not None})[:5]

    def known(self) -> list[str]:
        """Names that the user gave."""
        board = [item for folder in self.results() for item in self.items_of(folder)]
        names = [*self.files(), *self.all_folders()[1:], *board, *self.things, *self.users, *self.words]
        return [*dict.fromkeys(map(str, names))]

    def out_of(self, words: Sequence[str]) -> str:
        """The place that a command was given for what it writes."""
        return os.path.normpath(dict(options_in(words)).get("-o", "") or ".")

    def kind_of(self, words: Sequence[str]) -> str:
        """What standard output holds."""
        usually = "csv" if words[0] in ("predict", "ask", "decide") or words[:2] == ("poll", "export") else "table"
        return dict(options_in(words)).get("--format") or usually

    def filled(self, advice: Sequence[str], words: Sequence[str]) -> list[str] | None:
        """An advice with real names in place of capitals; None where there is none to fill in."""
        folder = next((one for one in map(os.path.normpath, [*advice, *words[1:]]) if self.items_of(one)), "")
        items, users, known = self.items_of(folder), self.users_of(folder), self.known()
        files = [one for one in words[1:] if os.path.normpath(one) in self.tables["answers"] or Path(one).is_dir()]
        plain, names = ([one for one in ids if one[:1] != "-"] for ids in (items, users))  # else one has to know --
        folders = [typed(folder)] if folder else []
        stock = {
            "ITEM": iter(plain), "OPTION": iter(plain), "ID": iter(names), "USER": iter(names), "FILE": iter(files),
            "DIR": iter(folders), "OLD": iter(folders), "POLL": iter(words[2:3]),
            "PRICE": iter(one for one in self.words if one in ("price", "x1", "cost")), "TEXT": iter(["Which?"]),
        }  # fmt: skip
        made = {"SCENARIOS": "scenarios", "PAIRS": "pairs"}
        found: list[str] = []
        for word in advice:
            if found and found[-1] in ("-o", "--out") and word.isupper():
                found.append(next(name for k in range(99) if not Path(name := f"new{k}").exists()))
            elif word in made or (found and found[-1] == "--items" and word == "FILE"):
                found.append(self.made_for(folder, made.get(word, "items")))
            elif word.isupper() and word.isalpha() and word not in known:
                values = [next(stock.get(word, iter(())), None) for _ in range(1 + (word == "OPTION"))]
                if None in values:
                    return None
                found += values
            else:
                found.append(word)
        return found

    def made_for(self, folder: str, role: str) -> str:
        """A table for the items of a folder, beside it."""
        name = f"for-{role}.csv"
        items = self.items_of(folder) or self.things
        columns = {
            "items": {"item": items, "price": [1 + k % 3 for k in range(len(items))]},
            "scenarios": {"scenario": ["a"] * len(items[:4]), "item": items[:4]},
            "pairs": {"left": items[:-1], "right": items[1:]},
        }[role]
        self.write(role, name, columns)
        return name

    # --- what may be said ---------------------------------------------------------------------------------------------

    def values(self, command: str, one: Parameter, folder: str) -> list[str]:
        """What may be given for a parameter and is likely to be taken, the plainest first."""
        if one.choices:
            return [*one.choices]
        tables, answers, items, users = (
            self.tables,
            self.tables["answers"],
            self.items_of(folder),
            self.users_of(folder),
        )
        items, users, columns, results = items or self.things, users or self.users, self.words, self.results()
        by_name = {
            "--items": tables["items"], "--people": tables["people"], "--exclude": tables["pairs"] + answers,
            "--candidates": tables["pairs"] + tables["items"], "--design": answers,
            "--map": [f"{name}:brand" for name in tables["items"]],
            "--model": [*MODELS, "mixed-logit,n_draws=400", "population,ties=true", "gaspk,n_components=2",
                        "population,keep=50%", "gppl,keep=2,criterion=ucb,beta=3", "population,keep=1,loss=log"],
            "--cost-wrong": ["1", "10", *tables["items"]], "--name": ["a-poll"], "--versions": ["1", "2"],
            "--tasks": ["4", "12"],
            "--set": ["ties=yes", "skips=yes", "limit=2", "size=3", "top=1", "proposals=yes", "language=de"],
        }  # fmt: skip
        by_word = {
            "LEVELS": tables["levels"], "A=1,B=2": ["price=1,=brand=y", "price=2", *(f"{name}=1" for name in columns)],
            "FILE": answers + [one for one in self.all_folders() if (Path(one) / "manifest.json").exists()],
            "PAIRS": tables["pairs"] + answers, "SCENARIOS": tables["scenarios"] + tables["items"],
            "ITEMS": tables["items"] + self.files(),
            "DIR": results, "OLD": results, "NEW": results, "POLL": ["poll.db", "-p.db", "my poll.db"],
            "ITEM": items, "OPTION": items, "ID": users, "USER": users, "PARTICIPANT": ["p1", "p2"], "COLUMN": columns,
            "ROLE=COLUMN": [f"{role}={name}" for role in ROLES for name in columns] + ["who=", "profile="],
            "KEY=VALUE": [*KEYS, *(f"keep={name}:{value}" for name in columns for value in ("1", "left", "u1"))],
            "COLUMN=VALUE": [f"{name}={value}" for name in columns for value in ("n", "s", "en")],
            "NAME[:BASE[:ITEM]]": ["elo:1000", "logit", "0-100", "share", "probit:5", *(f"elo:0:{x}" for x in items)],
            "PRICE": columns, "NAME": columns, "TEXT": ["Which one?", "=1+1"],
            "CHANGES": [f"{name}=1" for name in columns],
            "A,B": [",".join(columns[k : k + 2]) for k in range(len(columns) - 1)],
            "ITEM.ATTRIBUTE=1,2,3": [f"{item}.{name}=1,2" for item in items for name in columns],
            "PAGE": ["board.html", "my board.html", "-b.md"], "COPY": ["copy.db"],
        }  # fmt: skip
        word = one.word.strip("[]").removesuffix("...")
        if set(one.names) & {"-o"}:
            files = ["p.csv", "my p.csv", "-p.csv", "p.parquet", "p.jsonl", "p.json"]
            places = {"DIR": [*FOLDERS, *results * 3], "PAGE": by_word["PAGE"]}
            return places.get(one.word, files)
        named = next((by_name[name] for name in one.names if name in by_name), None)
        return [*map(str, NUMBERS.get(word, by_word.get(word, ())) if named is None else named)]


def options_in(words: Sequence[str]) -> list[tuple[str, str]]:
    """The options of a command by their last names, with their values; "" where there is none."""
    command, rest, found = words[0] if words[0] != "poll" else " ".join(words[:2]), list(words[1:]), []
    while rest and rest[0] != "--":
        option = taking(command, rest.pop(0))
        if option is not None:
            found.append((option.names[-1], "" if option.alone or not rest else rest.pop(0)))
    return found


def short(error: str) -> str:
    """The first words of an error, without names."""
    if "Usage:" in error:
        return "usage"
    said = error[error.find("Error: ") + 7 :].split("\n", 1)[0]
    return " ".join([word for word in re.findall(r"[\w-]+", said) if word.isalpha() and word.islower()][:7])


def typed(path: str) -> str:
    """A path as somebody types it who knows that a leading hyphen makes an option."""
    return f"./{path}" if path[:1] == "-" else path


_QUOTED = r"""'[^']*'|"[^"]*\""""
_VALUE = rf"""(?=['"]?[\w-]+=)(?:{_QUOTED}|[\w.,=-])*(?:{_QUOTED}|\w|=(?=[\s.]))|yes\b|no\b|auto\b"""
_OPTION = rf"(?<!\S)(?:-c|--[a-z-]+)\b(?: (?:{_VALUE}))?"  # with its value
# Of eight times, how often an option is given that is given more than once.
LIKELY = {"--out": 3, ("rank", "--out"): 7, ("rank", "--model"): 3, ("rank", "--force"): 3, ("decide", "--everyone"): 3}


@st.composite
def given(draw: Any, walk: FolderWalk, command: str, one: Parameter, folder: str, anything: Sequence[str]) -> str:
    """A value for a parameter, of the right kind as a rule."""
    right = walk.values(command, one, folder)
    odd = draw(st.integers(0, 11)) == 11
    found: str = draw(st.sampled_from(anything if odd or not right else right))
    return typed(found) if not one.names and Path(found).exists() else found


@st.composite
def longer(draw: Any, walk: FolderWalk, words: Line) -> Line:
    """A command with one option more, of its own or of all."""
    command = " ".join(words[: 1 + (words[0] == "poll")])
    options = [one for one in [*COMMON, *COMMANDS[command]] if one.names]
    one = draw(st.sampled_from(options))
    folder = next((word for word in words[1:] if walk.items_of(word)), "")
    value = [] if one.alone else [draw(given(walk, command, one, folder, [*JUNK, *walk.files()]))]
    at = words.index("--") if "--" in words else len(words)
    return Line([*words[:at], one.names[0], *value, *words[at:]])


@st.composite
def lines(draw: Any, walk: FolderWalk, command: str) -> Line:
    """A command with arguments and options, most of which are of the right kind."""
    anything = [*JUNK, *walk.files(), *walk.all_folders()]
    folder = ""

    def value(one: Parameter) -> str:
        return draw(given(walk, command, one, folder, anything))

    words: list[str] = []
    options: list[str] = []
    for one in [*COMMANDS[command], *COMMON]:
        if not one.names:
            n = draw(st.integers(1, 2)) if one.many and one.needed else int(one.needed)
            n = n or draw(st.sampled_from([0, 1, 0, 2, 3] if one.many else [0, 1]))
            for _ in range(n):
                words.append(value(one))
                folder = folder or words[-1] * bool(walk.items_of(words[-1]))
        elif one.needed or draw(st.integers(0, 7)) >= 8 - LIKELY.get(
            (command, one.names[0]), LIKELY.get(one.names[0], 1)
        ):
            flag = one.names[-1] if len(one.names) > 1 else one.names[0]
            options += [flag] if one.alone else [flag, value(one)]
    apart = ["--"] if any(word[:1] == "-" for word in words) else []
    return Line([*command.split(), *([*options, *apart, *words] if apart else [*words, *options])])
