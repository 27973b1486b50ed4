"""What everybody tells of a poll, by every way to it, and whether all tell the same."""

from __future__ import annotations

import html
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import note

import predilect
from cli.running import run
from predilect.errors import DataWarning, PredilectError
from predilect.models import Population
from tolerances import ITERATIVE
from walks.poll_truth import Account, plain

_CLAIMS = ("best", "top", "tiers")
_EXPORTS = ("answers", "shown", "items", "board", "groups", "participants", "events", "trail")


class Looks(Account):
    """Looks at a poll: each method that begins with ``look_at_``."""

    def look_at(self, what: str, way: str) -> None:
        note(f"  looking at {what}")
        self.hear()
        LOOKS[what](self, way)

    def look_at_people(self, way: str) -> None:
        is_done, found = self.do(way, "people")
        if not is_done:
            return
        given = [one for criterion in range(self.n_criteria) for one in self.given(criterion)]
        there = {"people": len(self.living()), "answers": len(given), "with_answers": len({one[0] for one in given})}
        for name, n in there.items():
            self.check(found[name] == n, f"people says another number: {name}", f"{found[name]} instead of {n}")

    def look_at_boards(self, way: str) -> None:
        active = {item.name for item in self.items.values() if item.state == "active"}
        for criterion in range(self.n_criteria):
            is_done, rows = self.do(way, "board", criterion)
            if not is_done:
                continue
            found = {row["item"] for row in rows}
            self.check(found == active, "the board has other items than are asked about", f"{found}, not {active}")
            if self.settings["kind"] == "pair" and way != "api":  # whose board may be a second old
                counts = Counter(name for _, question, _ in self.given(criterion) for name in question.names)
                for row in rows:
                    there = counts[row["item"]]
                    self.check(row["n"] == there, "the board counts other answers", f"{row['n']} instead of {there}")

    def look_at_boards_of_processes(self, way: str) -> None:
        """All processes have the same board, one that starts now too."""
        with self.opened() as third:
            for way in ("one", "two"):
                self.ways[way].poll.refit()
            for criterion in range(self.n_criteria):
                boards = [dict(poll.board(criterion).select("item", "mean").iter_rows())
                          for poll in (self.ways["one"].poll, self.ways["two"].poll, third)]  # fmt: skip
                for one in boards[1:]:
                    self.check(_alike(boards[0], one), "two processes have different boards", f"{boards[0]}, {one}")

    def look_at_outlooks(self, way: str) -> None:
        for criterion in range(self.n_criteria):
            for claim in _CLAIMS:
                may = "all may be in one tier" if claim == "tiers" else ""
                self.do(way, "outlook", claim, criterion, may=may)

    def look_at_rankings_of_their_own(self, way: str) -> None:
        active = {item.name for item in self.items.values() if item.state == "active"}
        needed, limit = self.settings["own_ranking"], self.settings["limit"]
        for person in self.living():
            for criterion in range(self.n_criteria):
                is_done, rows = self.do(
                    self._reach(person, "one" if way == "command" else way), "mine", person, criterion
                )
                n = sum(one[0] is person for one in self.given(criterion))
                if not is_done or rows is None:
                    self.check(
                        rows is not None or not needed or n < needed, "enough answers give no own ranking", person
                    )
                    is_done_with = limit and n == self.n_questions(person) >= limit
                    self.check(
                        not needed or not is_done_with,
                        "settings are accepted that cannot take effect",
                        f"no ranking of their own after all {n} answers that somebody may give",
                    )
                    continue
                found = {row["item"] for row in rows}
                self.check(found == active, "somebody's own ranking has other items than are asked about", found)

    def look_at_exports(self, way: str) -> None:
        tables = {}
        for kind in _EXPORTS:
            is_done, tables[kind] = self.do(way, "export", kind)
            if not is_done:
                return
        there = {
            f"p{one.number}": (len(one.asked), sum(meant != "skip" for meant, _ in one.answers.values()),
                               sum(meant == "skip" for meant, _ in one.answers.values()), one.proposals)
            for one in self.living()
        }  # fmt: skip
        found = {row["user"]: (row["shown"], row["answers"], row["skipped"], row["proposals"])
                 for row in tables["participants"]}  # fmt: skip
        self.check(found == there, "the export of participants counts otherwise", f"{found} instead of {there}")
        shown = Counter(name for one in self.living() for question in one.asked.values() for name in question.names)
        for row, (number, item) in zip(tables["items"], self.items.items(), strict=True):
            name = row["item"] if item.name is None else item.name
            true = (number, name, item.state, item.into, *(item.told.get(one, "") for one in ("description", "link")))
            told = tuple(row[one] for one in ("number", "item", "state", "merged_into", "description", "link"))
            self.check(told == true, "the export of items says otherwise", f"{told} instead of {true}")
            self.check(row["times_shown"] == shown[name], "the export of items counts otherwise", row)
        smallest = self.settings["smallest_group"]
        for row in tables["groups"]:
            self.check(row["people"] >= smallest > 0, "a group is smaller than is allowed", row)
        for row in tables["shown"]:
            chance = row["probability"]
            self.check(chance is None or 0.0 < chance <= 1.0, "a question has no chance to be put", row)
        questions = {(f"p{one.number}", number) for one in self.living() for number in one.asked}
        found = {(row["user"], row["question"]) for row in tables["shown"]}
        self.check(found == questions, "the export of questions has others than were put", f"{found}, not {questions}")
        sequences = [row["sequence"] for row in tables["events"]]
        self.check(sequences == list(range(1, len(sequences) + 1)), "events are not in order", sequences)
        for one in self.everybody:
            if one.is_gone:
                rows = [row for row in tables["events"] if row["sequence"] in (one.number, *one.questions)]
                self.check(all(row["payload"] is None and row["user"] is None for row in rows),
                           "events say more of the erased than that they were", rows)  # fmt: skip

    def look_at_what_is_kept_of_each(self, way: str) -> None:
        for person in self.living():
            is_done, kept = self.do(self._reach(person, "page" if way == "command" else way), "kept", person)
            if not is_done:
                continue
            found = Counter(
                one["kind"] if one["kind"] in ("skip", "tie") else tuple(one["answer"]) for one in kept["answers"]
            )
            there = Counter(meant for meant, _ in person.answers.values())
            self.check(found == there, "somebody is told of other answers than theirs", f"{found} instead of {there}")

    def look_at_health(self, way: str) -> None:
        self.do("api", "people")
        health = self.ways["api"].send("GET", "/health")
        self.check(
            (health.status_code, health.text) == (200, "ok\n"), "health says that something is wrong", health.text
        )
        told = self.ways["api"].send("GET", "/metrics", headers=self.ways["api"].ruler).text
        there = {"predilect_answers": sum(len(self.given(k)) for k in range(self.n_criteria)),
                 "predilect_participants": len(self.living())}  # fmt: skip
        for name, n in there.items():
            found = re.search(rf"^{name} (\d+)$", told, flags=re.M)
            self.check(found and int(found[1]) == n, f"metrics say another number: {name}", f"not {n}: {told}")

    def look_at_other_sites(self, way: str) -> None:
        """Sites that the settings name, and no others, may show the pages of participants and call their API."""
        for origin in ("https://city.example", "https://other.example"):
            is_named = origin in self.settings["origins"]
            for method, status in (("GET", 200), ("OPTIONS", 204 if is_named else 405)):
                called = self.ways["api"].send(method, f"/api/polls/{self.name}", headers={"origin": origin})
                self.check(called.status_code == status, "a call from another site is answered otherwise", origin)
                told = called.headers.get("access-control-allow-origin")
                self.check(told == (origin if is_named else None), "another site may call, or one that is named not",
                           f"{origin}: {told}")  # fmt: skip
            told = self.ways["api"].send("GET", f"/p/{self.name}").headers["content-security-policy"]
            self.check((origin in told) == is_named, "another site may show it, or one that is named not", told)
            told = self.ways["api"].send("GET", f"/o/{self.name}").headers["content-security-policy"]
            self.check("frame-ancestors 'none'" in told, "another site may show pages of the organiser", told)

    def look_at_pages(self, way: str) -> None:
        for path in ("", "/items", "/people", "/organisers", "/settings"):
            self.do("page", "of_organiser", path)
        for person in self.living():
            if person.secret is None:
                continue
            for criterion in range(self.n_criteria):
                self.do(
                    "page", "results", person, criterion, must="" if self.settings["public"] else "it is not public"
                )

    def look_at_reports(self, way: str) -> None:
        for criterion in range(self.n_criteria):
            given = self.given(criterion)
            is_done, page = self.do("page", "report_on", criterion, may="" if given else "there is nothing to report")
            if not is_done:
                continue
            text = plain(page)
            n_people = len({one[0] for one in given})
            for told in re.findall(r"(\d+) answers? of (\d+) (?:people|person)", text):
                self.check(
                    int(told[1]) == n_people, "the report counts other people", f"{told[1]} instead of {n_people}"
                )
                self.check(
                    int(told[0]) == len(given), "the report counts other answers", f"{told[0]}, not {len(given)}"
                )
            for told in re.findall(r"Read \d+ rows; used (\d+)", text):
                self.check(int(told) == len(given), "the report used other answers", f"{told} instead of {len(given)}")

    def look_at_the_file_that_is_read_again(self, way: str) -> None:
        """Export, read and rank: the same answers, and where the poll's model is new, the same board."""
        file = self.folder / "answers.csv"
        if way == "command":
            self.do("command", "write", "answers", file)
        else:
            is_done, text = self.do("page", "of_organiser", "/export/answers.csv")
            if not is_done:
                return
            file.write_text(text, encoding="utf-8", newline="")
        if self.n_criteria > 1:
            self._check_that_nothing_is_pooled(file)
        for criterion, name in enumerate(self.boards):
            if not self.given(criterion):
                continue
            self._check_ranked(file, criterion, {"criterion": name} if self.n_criteria > 1 else {}, way)

    def _check_that_nothing_is_pooled(self, file: Path) -> None:
        """What was asked about one criterion says nothing of another."""
        if sum(bool(self.given(criterion)) for criterion in range(self.n_criteria)) < 2:
            return
        try:
            answers = _read(file, {})
        except PredilectError as error:
            note(f"  predilect.read refuses the file of several criteria: {error}")
            return
        n = sum(len(self.given(criterion)) for criterion in range(self.n_criteria))
        is_pooled = self.settings["kind"] == "pair" and answers.n_answers == n
        self.check(not is_pooled, "answers on several criteria are pooled", f"{n} of {', '.join(self.boards)}")

    def _check_ranked(self, file: Path, criterion: int, reading: dict[str, str], way: str) -> None:
        has_ties = self.settings["ties"] and self.settings["kind"] == "pair"
        items = [item.name for item in self.items.values() if item.is_moderated]
        try:
            answers = _read(file, reading)
            ranked = Population(ties=has_ties, n_jobs=1).fit(answers, items=items).rank()
        except PredilectError as error:
            self.failed("the export of answers is not read again", str(error))
            return
        if self.settings["kind"] == "pair":
            there = sorted(
                (f"p{one.number}", *_in_order(question.names, meant)) for one, question, meant in self.given(criterion)
            )
            self.check(
                _pairs(answers) == there, "other answers are read than were exported", f"{_pairs(answers)}, not {there}"
            )
        board = self.ways["one"].poll.board(criterion)
        active = set(board["item"])
        counts, others = (dict(one.select("item", "n").iter_rows()) for one in (board, ranked))
        others = {name: n for name, n in others.items() if name in active}
        self.check(counts == others, "rank counts other answers than the board", f"{others}, the board {counts}")
        if self.fresh and len(active) == len(items):
            here, there = (dict(one.select("item", "mean").iter_rows()) for one in (board, ranked))
            self.check(_alike(here, there), "rank of the export has another board", f"{there}, the poll {here}")
        if way == "command":
            words = [word for key, value in reading.items() for word in ("--read", f"{key}={value}")]
            ran = run("rank", file, *words, "--personal", "yes", "--format", "json")
            if not answers.outcome.any():
                self.check(ran.exit_code == 2 and "are ties" in ran.output, "rank makes a board of ties", ran.output)
            else:
                self.check(ran.exit_code == 0, "predilect rank does not take the export", ran.output)

    def look_at_whoever_is_erased(self, way: str) -> None:
        """Nobody who is erased is in a table, on a page or in a file."""
        living = json.dumps(
            [[one.name, one.pid] for one in self.living()] + [item.name for item in self.items.values()]
        )
        stay = {name for item in self.items.values() for name in item.before if item.name}
        words = [word for word in self.forgotten if json.dumps(word)[1:-1] not in living and word not in stay]
        told = [repr(self.do(way, "export", kind)[1]) for kind in _EXPORTS]
        told += [html.unescape(self.do("page", "of_organiser", path)[1] or "") for path in ("", "/items", "/people")]
        content = b"".join(file.read_bytes() for file in self.file.parent.glob(f"{self.file.name}*"))
        for word in words:
            self.check(not any(word in one for one in told), "somebody who is erased is told of", word)
            self.check(word.encode() not in content, "somebody who is erased is in the file", word)


LOOKS: dict[str, Callable[[Looks, str], None]] = {
    name.removeprefix("look_at_").replace("_", " "): function
    for name, function in vars(Looks).items() if name.startswith("look_at_")
}  # fmt: skip


def _in_order(names: tuple[str, ...], meant: Any) -> tuple[str, str, str]:
    """A pair in the order of its names, and the better one."""
    first, second = sorted(names)
    return first, second, meant[0] if meant in ((first,), (second,)) else "neither"


def _pairs(answers: predilect.Comparisons) -> list[tuple[str, ...]]:
    rows = answers.to_frame().to_dicts()
    found = [
        (row["user"], *_in_order((row["left"], row["right"]), (row.get(row["winner"]),)))
        for row in rows for _ in range(int(row["weight"]))
    ]  # fmt: skip
    return sorted(found)


def _alike(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether two boards have the same items, with the same scores."""
    return one.keys() == other.keys() and np.allclose(
        [one[item] for item in sorted(one)], [other[item] for item in sorted(other)], rtol=0, atol=ITERATIVE
    )


def _read(file: Path, reading: dict[str, str]) -> predilect.Comparisons:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return predilect.read(file, reading=reading)
