"""Random and damaged input for the commands, in processes of their own, and what became of it.

A case is made from its number alone, so that ``Case("check", 123, folder, make_models(folder)).arguments`` are those of
one again. Cases run inside a child, which a new one replaces where it dies or hangs; ``cases.MORE`` makes them more.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import os
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from cases import run_cases

__all__ = ["fuzz"]

LONGEST_SECONDS = 60  # for one case, on a busy machine
CHUNK = 2000  # cases of one child
ESCAPES = "\x1b]0;pwned\x07"

PLAIN = ["a", "b", "c", "d"]
ODD = [
    ESCAPES, "\x9b31mred", "two\nlines", "\r", "\x00", "\u202eright to left", "\u2028", "=1+1", "-2+3", "@SUM(A1)",
    "", " ", "01", "1", "-1", "0", "1.0", "tie", "left", "nan", "inf", "null", "é", "日本", "a,b", 'quo"te', "'",
    "[bold]b[/]", "x" * 300, "1e400", "9" * 30, "\ufeff", "\t", "true", "{}", "$a$", "NA",
]  # fmt: skip
ROLES = {
    "user": ["user", "judge", "user_id"], "left": ["left", "model_a", "item_a", "option_a"],
    "right": ["right", "model_b", "item_b", "option_b"], "winner": ["winner", "choice", "label"],
    "weight": ["weight", "count"], "task": ["task", "choice_set"], "language": ["language", ESCAPES, "=1", "p_left"],
}  # fmt: skip
SUFFIXES = [".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".csv.gz", ".jsonl.gz", ".parquet", ".CSV", ".xlsx", ""]
LIKELY = [0.4, 0.05, 0.02, 0.12, 0.03, 0.08, 0.04, 0.22, 0.02, 0.01, 0.01]


class Case:
    """One call of the command, with files in a folder of its own."""

    def __init__(self, command: str, number: int, folder: Path, models: list[Path]) -> None:
        self.rng = random.Random(f"{command} {number}")
        self.folder, self.models, self.style = folder, models, self.rng.randrange(4)
        # Most checks end where the file is read, and take little time; more of the others are to get further.
        self.damage, odd = (0.3, 0.6) if command == "check" else (0.12, 0.5)
        self.is_odd = self.rng.random() < odd  # whether ids and columns are, besides damage to the file
        self.arguments: list[str] = [command, *map(str, getattr(self, command)())]

    def check(self) -> list[Any]:
        options = self.now_and_then(0.2, "--items", self.features("item"))
        return [self.votes(8), *self.reading(), *options, *self.flags()]

    def rank(self) -> list[Any]:
        rng, options = self.rng, self.reading()
        options += ["--personal", rng.choice(["no", "yes"])]
        options += self.now_and_then(0.3, "--out", self.folder / rng.choice(["out", "out", f"o{ESCAPES}", "x" * 300]))
        options += self.now_and_then(0.1, "--by", self.column("language"))
        options += self.now_and_then(0.2, "--by", ROLES["language"][self.style])
        options += self.now_and_then(0.1, "--segment", self.column("language"))
        options += self.now_and_then(0.2, "--items", self.features("item"))
        options += self.now_and_then(0.1, "--people", self.features("user"))
        options += self.now_and_then(0.03, "--model", rng.choice(["gppl", "single-user-gp", "gaspk", "nothing"]))
        return [self.votes(20), *options, *self.flags()]

    def predict(self) -> list[Any]:
        pairs = self.file("pairs", self.table(["user", "left", "right", "language"], 8))
        names = ["p.csv", "p.jsonl", "p.parquet", "p.x"]
        options = self.now_and_then(0.3, "--out", self.folder / self.rng.choice(names))
        options += self.now_and_then(0.3, "--items", self.features("item"))
        options += self.now_and_then(0.2, "-c", f"left={self.column('left')}")
        return [self.rng.choice([*self.models * 5, self.folder]), pairs, *options, *self.flags()]

    def reading(self) -> list[Any]:
        rng, options = self.rng, []
        named = {
            "who": "user",
            "left": "left",
            "right": "right",
            "answer": "winner",
            "weights": "weight",
            "task": "task",
        }
        for role, column in named.items():
            options += self.now_and_then(0.03, "-c", f"{role}={self.column(column)}")
        for words in (("-c", "who="), ("-c", "weights="), ("--read", "task=none")):
            options += self.now_and_then(0.05, *words)
        for rows in ("missing", "self", "unknown"):
            options += self.now_and_then(0.6, "--read", f"drop={rows}")
        options += self.now_and_then(0.1, "--read", f"tie={self.id()}")
        options += self.now_and_then(0.1, "--read", f"answer-is={rng.choice(['item', 'side', 'sign', ESCAPES])}")
        if rng.random() < 0.15:
            ids = [*PLAIN, *ODD]
            table = {"item": ids, "model": [self.id() for _ in ids]}
            if rng.random() < 0.4:
                table["more"] = self.values("language", len(ids))
            column = rng.choice(["", "", ":model", ":item", ":more", f":{ESCAPES}"])
            options += ["--map", f"{self.file('map', table)}{column}"]
        limit = rng.choice([0.001, 1, 1, 1, -1, "nan", "x"])
        options += self.now_and_then(0.05, "--read", f"unpack-limit={limit}")
        return options

    def flags(self) -> list[str]:
        words = ["--format=json", "--quiet", f"--{ESCAPES}", ESCAPES]
        return [word for word, share in zip(words, (0.2, 0.1, 0.01, 0.01), strict=True) if self.rng.random() < share]

    def now_and_then(self, share: float, *words: Any) -> list[Any]:
        return list(words) if self.rng.random() < share else []

    def column(self, role: str) -> str:
        return self.rng.choice([*ROLES[role], "nothing", ESCAPES, ""])

    def id(self) -> Any:
        return self.rng.choice(ODD if self.is_odd and self.rng.random() < 0.2 else PLAIN)

    def votes(self, most: int) -> Path:
        more = [role for role in ("user", "weight", "task", "language") if self.rng.random() < 0.5]
        return self.file("votes", self.table(["left", "right", "winner", *more], most))

    def table(self, roles: list[str], most: int) -> dict[str, list[Any]]:
        rng = self.rng
        n = rng.randint(0 if rng.random() < 0.05 else 1, most)
        if rng.random() < 0.05:
            roles = rng.sample(roles, rng.randint(0, len(roles)))
        names = {role: ROLES[role][self.style % len(ROLES[role])] for role in roles}
        if rng.random() < 0.1:
            names = {role: self.column(role) for role in roles}
        columns = {role: self.values(role, n) for role in roles}
        if {"left", "right"} <= set(roles):
            for k, one in enumerate(columns["left"]):
                if columns["right"][k] == one and rng.random() < 0.9:
                    columns["right"][k] = rng.choice([other for other in PLAIN if other != one])
            if "winner" in roles and rng.random() < 0.8:
                shown = zip(columns["left"], columns["right"], strict=True)
                columns["winner"] = [rng.choice([one, two, "tie"]) for one, two in shown]
        return {names[role]: columns[role] for role in rng.sample(roles, len(roles))}

    def values(self, role: str, n: int) -> list[Any]:
        rng = self.rng
        if self.is_odd and rng.random() < 0.1:
            kind: Callable[[], Any] = rng.choice([
                lambda: None, lambda: [self.id()], lambda: {"a": self.id()}, lambda: [[[1]]],
                lambda: dt.timedelta(rng.randint(0, 9)), lambda: dt.date(2020, 1, rng.randint(1, 9)),
                lambda: dt.datetime(2020, 1, 1), lambda: rng.random() < 0.5, lambda: rng.choice([0.5, 1.0, math.nan]),
                lambda: rng.choice([1, 2, 3]), lambda: rng.choice([2**62, -(2**63)]),
                lambda: rng.choice([b"\xff", b"a"]), lambda: rng.choice([None, self.id()]),
            ])  # fmt: skip
            return [kind() for _ in range(n)]
        choices = {"weight": [1, 1, 2, 3] + ([0, -1, 0.5, 1e9, math.inf] if self.is_odd else []), "task": [1, 2, 3]}
        if role in choices:
            return [rng.choice(choices[role]) for _ in range(n)]
        return [rng.choice(["left", "right", "tie", self.id()]) if role == "winner" else self.id() for _ in range(n)]

    def features(self, id_name: str) -> Path:
        ids = [*PLAIN, self.id()]
        return self.file(f"{id_name}s", {
            id_name: ids, "x": [self.rng.gauss(0, 1) for _ in ids], "odd": self.values("language", len(ids)),
            ESCAPES if self.is_odd else "y": self.values("weight", len(ids)),
        })  # fmt: skip

    def file(self, name: str, table: dict[str, list[Any]]) -> Path:
        """Write a table in some format, and perhaps damage it."""
        rng = self.rng
        suffix = rng.choices(SUFFIXES, LIKELY)[0]
        path = self.folder / f"{name}{ESCAPES if rng.random() < 0.02 else ''}{suffix}"
        if rng.random() < 0.01:
            return rng.choice([self.folder, self.folder / "absent.csv", self.folder / ("x" * 300 + ".csv")])
        if suffix == ".parquet":
            pl.DataFrame([_series(column, values) for column, values in table.items()]).write_parquet(
                path, compression=rng.choice(["uncompressed", "zstd", "snappy", "gzip"])
            )
            data = path.read_bytes()
        elif "json" in suffix:
            rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            data = "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()
        else:
            data = self.delimited(table, "\t" if suffix == ".tsv" else rng.choice(",,,;\t")).encode("utf-8")
        if suffix.endswith(".gz"):
            data = gzip.compress(data if rng.random() < 0.7 else self.damaged(data), mtime=0)
        path.write_bytes(self.damaged(data) if rng.random() < self.damage else data)
        return path

    def delimited(self, table: dict[str, list[Any]], separator: str) -> str:
        quotes, end = self.rng.random() < 0.6, self.rng.choice(["\n", "\n", "\r\n"])

        def cell(value: Any) -> str:
            text = "" if value is None else str(value)
            return '"' + text.replace('"', '""') + '"' if quotes and (set(text) & set('",;\t\r\n')) else text

        lines = [list(table), *zip(*table.values(), strict=True)]
        return end.join(separator.join(map(cell, line)) for line in lines) + end

    def damaged(self, data: bytes) -> bytes:
        rng, changed = self.rng, bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            one, two = sorted(rng.randint(0, len(changed)) for _ in range(2))
            match rng.randrange(12):
                case 0 | 1 | 2:
                    if changed:
                        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
                case 3:
                    del changed[one:]
                case 4:
                    del changed[one : min(two, one + 20)]
                case 5:
                    changed[one:one] = rng.randbytes(rng.randint(1, 8))
                case 6:
                    changed[one:one] = changed[one:two] * rng.choice([1, 2, 50])
                case 7:
                    signs = [b"\n\n", b"\r", b'"', b"\x00", b"\xff", b",", b";", b"\x1b[2J", b"\n \n"]
                    changed[one:one] = rng.choice(signs)
                case 8:
                    changed[one:one] = rng.choice([b"[", b'{"a":']) * rng.choice([10, 100, 1000, 100_000])
                case 9:
                    changed = bytearray(changed.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b""])))
                case 10:
                    changed = bytearray(rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"PAR1", b"\x1f\x8b"]) + changed)
                case 11:
                    changed[one:one] = b"x" * rng.choice([100, 70_000])
        return bytes(changed[: 1 << 22])


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) > 1 and kinds != {int, float}:
        values = [None if value is None else str(value) for value in values]
    return pl.Series(name, values, strict=False)


def _verdict(arguments: list[str], result: Any, printed: str) -> str:
    """ "ok" and the exit code, or what is wrong."""
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"traceback: {type(error).__name__} at {Path(where.filename).name}:{where.lineno} {str(error)[:150]!r}"
    if result.exit_code not in (0, 2, 3) and "could not be written" not in result.stderr:
        return f"exit code {result.exit_code}: {result.stderr[-150:]!r}"
    if result.exit_code and not result.stderr.strip():
        return f"exit code {result.exit_code} without a word"
    is_table = arguments[0] == "predict" and "--format=json" not in arguments  # exact for programs
    for stream, text in (("stdout", "" if is_table else result.stdout), ("stderr", result.stderr), ("fd", printed)):
        raw = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2028"]
        if raw:
            return f"raw escape on {stream}: {raw[0]!r} in {text[max(0, text.index(raw[0]) - 60) :][:120]!r}"
    return f"ok {result.exit_code}" + (" panic" if "panicked" in printed else "")


def _verdicts(command: str, models: list[Path], numbers: list[int]) -> Iterator[str]:
    """Within a child: what becomes of each case."""
    from cli.running import run  # makes the command once, which takes longer than most cases

    with tempfile.TemporaryFile() as beside:  # what is written past Python, such as panics
        os.dup2(beside.fileno(), 1)
        os.dup2(beside.fileno(), 2)
        for number in numbers:
            with tempfile.TemporaryDirectory() as folder:
                case = Case(command, number, Path(folder), models)
                result = run(*case.arguments)
            beside.seek(0)
            yield _verdict(case.arguments, result, beside.read().decode("utf-8", "replace"))
            beside.seek(0)
            beside.truncate()


def fuzz(command: str, numbers: range, models: list[Path]) -> dict[int, str]:
    """What became of each case of check, rank or predict: "ok" and the exit code, or what went wrong.

    ``models`` are folders of models, for predict.
    """
    return run_cases(_verdicts, (command, models), numbers, seconds=LONGEST_SECONDS, most=CHUNK)


def make_models(folder: Path) -> list[Path]:
    """A personal and a pooled model, of the ids that cases are made of."""
    from cli.running import run

    rng = random.Random(1)
    ids = [*PLAIN, ESCAPES, "=1+1", "two\nlines"]
    pairs = [rng.sample(ids, 2) for _ in range(120)]
    votes = {
        "user": [rng.choice("abcdef") for _ in pairs],
        "left": [one for one, _ in pairs],
        "right": [two for _, two in pairs],
        "winner": [rng.choice(pair) for pair in pairs],
    }
    pl.DataFrame(votes).write_csv(folder / "votes.csv")
    for name, options in (("personal", ["--personal", "yes"]), ("pooled", ["--personal", "no"])):
        command = ["rank", folder / "votes.csv", *options, "--out", folder / name]
        ran = run(*command)
        assert ran.exit_code == 0, ran.output
    return [folder / "personal", folder / "pooled"]
