"""Tables made of answers that are known, in every layout and under any names, for tests of what is read of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from predilect.data import Comparisons

__all__ = ["LAYOUTS", "Dice", "Made", "content", "is_truth", "made", "permuted"]

T = TypeVar("T")
LABEL = "alternative"  # the column of the table of items that names alternatives
Levels = tuple[tuple[str, ...], ...]  # what is liked best first; what stands in one level is not told apart
Content = Counter[tuple[str | None, Levels]]


class Dice:
    """Choices by a seeded generator; a test with Hypothesis hands in its own ``pick``, so that it can shrink."""

    def __init__(self, seed: int, pick: Callable[[Sequence[Any]], Any] | None = None) -> None:
        self.random = random.Random(seed)  # for what fills the rows
        self._pick = pick or self.random.choice

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the plainest."""
        return self._pick(options)

    def often(self) -> bool:
        """Whether something that is there as a rule is there: three times of four."""
        return self.pick((True, True, True, False))

    def seldom(self) -> bool:
        """Whether something that need not be there is there: once of four times."""
        return self.pick((False, False, False, True))

    def even(self) -> bool:
        """One of two things of equal standing."""
        return self.pick((False, True))


@dataclass(frozen=True)
class Made:
    """A table and what it says.

    ``truths``: contents that a reader may find, empty if only a question is right. ``attributes``: what describes
    alternatives that have no id; by its values in the table of items they are known in the truth.
    """

    layout: str
    columns: dict[str, list[Any]]
    truths: tuple[Content, ...]
    attributes: tuple[str, ...] = ()
    told: str = ""
    item: str = ""  # the column of items, by whose values they may be known too
    in_order: tuple[str, ...] = ()  # columns whose order says something, as 1 is the first of them
    core: tuple[str, ...] = ()  # columns that are needed to read it

    def with_columns(self, columns: Mapping[str, list[Any]]) -> Made:
        """The same answers in other columns."""
        return replace(self, columns=dict(columns))


# --- words ------------------------------------------------------------------------------------------------------------

# The first of each are in every list of names, the others in none.
WHO = ("user", "judge", "annotator_id", "Respondent", "participant", "voter_id", "worker", "Rater ID")
WHO_ELSE = ("observer", "listener", "Prüfer", "blimf", "panellist", "jurado", "who", "tester.no")
PAIRS = (
    ("left", "right"), ("model_a", "model_b"), ("item1", "item2"), ("item_a", "item_b"), ("Model A", "Model B"),
    ("generator_1", "generator_2"), ("option_a", "option_b"),
)  # fmt: skip
PAIRS_ELSE = (
    ("sample_a", "sample_b"), ("condition_A", "condition_B"), ("img_left", "img_right"), ("team1", "team2"),
    ("home", "away"), ("White", "Black"), ("HomeTeam", "AwayTeam"), ("artigo 1", "artigo 2"), ("A", "B"),
    ("project_a", "project_b"), ("system_1", "system_2"), ("left_text", "right_text"), ("zip", "zap"),
    ("kelm", "vorn"), ("response_a", "response_b"),
)  # fmt: skip
ANSWER = ("winner", "vote", "preferred", "choice", "result", "outcome", "preference")
ANSWER_ELSE = ("verdict", "blorp", "favourite", "res", "FTR", "pick", "which", "decision")
TASK = ("task", "task_id", "choice_set", "Task", "question", "set")
TASK_ELSE = ("runde", "zworn", "trial", "screen")
ITEM = ("item", "product", "candidate", "model", "movie")
ITEM_ELSE = ("wozzle", "drink", "Getränk", "statement_text")
TIES = ("tie", "draw", "equal", "same", "no preference", "Tie")

THINGS = (
    ("tea", "milk", "juice", "water", "rum", "cola"),
    ("gpt-4", "claude-2", "llama-13b", "vicuna", "palm", "dolly"),
    ("104", "103", "86", "92", "17", "250"),
    ("001", "002", "010", "100", "003", "020"),
    ("Ann Lee", "Bob", "Cy & Co", "Dee", "Eve", "Flo"),
    ("a1", "a2", "b1", "b2", "c1", "c2"),
    ("1", "2", "3", "4", "5", "6"),
    ("A", "B", "C", "D", "E", "F"),
)
PEOPLE = (
    ("ann", "bob", "cyd", "dee", "eli"), ("u1", "u2", "u3", "u4", "u5"), ("1", "2", "3", "4", "5"),
    ("001", "002", "003", "004", "005"), ("a@x.org", "b@x.org", "c@x.org", "d@x.org", "e@x.org"),
)  # fmt: skip


def plain(name: str) -> str:
    """A name without case and separators, as those are no difference between columns."""
    return "".join(c for c in name.lower() if c not in "_-. ")


# --- what was answered ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """An answer about two items: 1 the left one, -1 the right one, 0 neither."""

    who: str
    left: str
    right: str
    outcome: int
    weight: int = 1

    @property
    def levels(self) -> Levels:
        """The better one first."""
        if not self.outcome:
            return (tuple(sorted((self.left, self.right))),)
        return ((self.left,), (self.right,)) if self.outcome > 0 else ((self.right,), (self.left,))


@dataclass(frozen=True)
class Task:
    """An answer about several alternatives; those shown stand in the order of the screen."""

    who: str
    number: int
    shown: tuple[Any, ...]
    levels: tuple[tuple[Any, ...], ...]

    def level_of(self, one: Any) -> int:
        """Where an alternative stands, from 0."""
        return next(k for k, level in enumerate(self.levels) if one in level)


def of_pairs(answers: Iterable[Pair], named: bool = True) -> Content:
    """What pairs say."""
    found: Content = Counter()
    for one in answers:
        found[one.who if named else None, one.levels] += one.weight
    return found


def of_tasks(tasks: Iterable[Task], named: bool = True, key: Callable[[Any], str] = str) -> Content:
    """What tasks say; a task of two is a pair, one of which all stand in one level says nothing."""
    found: Content = Counter()
    for one in tasks:
        levels = tuple(tuple(sorted(map(key, level))) for level in one.levels if level)
        if len(levels) > 1:
            found[one.who if named else None, levels] += 1
    return found


def content(found: Comparisons, attributes: Sequence[str] = (), label: str = "") -> Content:
    """What was read, in the same form; alternatives by some of their attributes where these are named."""
    key = _keys(found, attributes, label)
    tasks: dict[Any, list[tuple[str, str]]] = {}
    said: Content = Counter()
    weights: dict[Any, float] = {}
    for row in found.to_frame("polars").to_dicts():
        one, two = key[row["left"]], key[row["right"]]
        who = None if not found.has_users else str(row["user"])
        if row["outcome"] == 0:
            said[who, (tuple(sorted((one, two))),)] += row["weight"]
            continue
        better, worse = (one, two) if row["outcome"] > 0 else (two, one)
        if not found.joint or row.get("task") is None:
            said[who, ((better,), (worse,))] += row["weight"]
            continue
        tasks.setdefault((who, row["task"]), []).append((better, worse))
        weights[who, row["task"]] = row["weight"]
    for (who, number), rows in tasks.items():
        said[who, _levels(rows)] += weights[who, number]
    return said


def _keys(found: Comparisons, attributes: Sequence[str], label: str = "") -> dict[Any, str]:
    """What each item is called in the truth; alternatives with a name have it in the column ``label``, or as an id."""
    if not attributes:
        return {one: str(one) for one in found.items.ids}
    table = found.item_table
    rows = {one: {"item": one} for one in found.items.ids}
    if table is not None:
        rows |= {row["item"]: row for row in table.to_dicts()}
    for row in rows.values():
        row.setdefault(LABEL, row.get(label, row["item"]))
    unknown = {*attributes} - {name for row in rows.values() for name in row}
    if unknown:
        return {one: f"{one} (without {', '.join(sorted(unknown))})" for one in rows}
    return {one: described({name: row.get(name) for name in attributes}) for one, row in rows.items()}


def described(attributes: Mapping[str, Any]) -> str:
    """What an alternative is called by its attributes; one without any is none of these."""
    if all(value is None or value == "None" for value in attributes.values()):
        return "None"
    return ", ".join(f"{name}={_number(value)}" for name, value in sorted(attributes.items()))


def _number(value: Any) -> str:
    if str(value)[0] == "0" and str(value).isdecimal():
        return str(value)  # 007 is a code
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def _levels(rows: Sequence[tuple[str, str]]) -> Levels:
    """Levels of which each member is over each of the next; the rows themselves where there are no such levels."""
    above: dict[str, set[str]] = {}
    for better, worse in rows:
        above.setdefault(worse, set()).add(better)
        above.setdefault(better, set())
    levels: list[tuple[str, ...]] = []
    placed: set[str] = set()
    while len(placed) < len(above):
        level = tuple(sorted(one for one in above if one not in placed and above[one] <= placed))
        if not level:
            break
        levels.append(level)
        placed |= set(level)
    implied = {(one, two) for upper, lower in pairwise(levels) for one in upper for two in lower}
    return tuple(levels) if implied == {*rows} and len(rows) == len(implied) else tuple(sorted(rows))


# Columns that tell rows apart, and nothing of what stands in them.
_NEVER = frozenset({"comment", "html", "uuid", "row", "date", "timestamp", "note>"})


def is_truth(table: Made, found: Comparisons) -> bool:
    """Whether what was read is what was said.

    Items of a column that no list has may be known by it, as in "drink=tea": that renames them, and no more.
    """
    described_by = [] if found.item_table is None else [name for name in found.item_table.columns if name != "item"]
    if not _NEVER.isdisjoint(described_by):
        return False
    said = [content(found, table.attributes, table.item)]
    if not table.attributes:
        said += [_by_one(found, name) for name in (table.item, LABEL) if name in described_by]
        if not table.item and len(described_by) == 1:
            said += [_by_one(found, described_by[0])]
    return any(one == truth for one in said for truth in table.truths)


def _by_one(found: Comparisons, name: str) -> Content:
    said: Content = Counter()
    for (who, levels), weight in content(found, (name,)).items():
        said[who, tuple(tuple(one.removeprefix(f"{name}=") for one in level) for level in levels)] += weight
    return said


def permuted(columns: Mapping[str, list[Any]], dice: random.Random) -> dict[str, list[Any]]:
    """The rows in another order."""
    order = list(range(len(next(iter(columns.values())))))
    dice.shuffle(order)
    return {name: [values[row] for row in order] for name, values in columns.items()}


# --- columns that mean nothing ----------------------------------------------------------------------------------------


def _texts(dice: random.Random, n: int) -> list[str]:
    words = ("I like it", "5 > 3, as I said", "so so", "better taste", "x", "<b>bold</b> move", "no idea")
    return [f"{dice.choice(words)} {row}" for row in range(n)]


def _some(*values: Any) -> Callable[[random.Random, int], list[Any]]:
    return lambda dice, n: [dice.choice(values) for _ in range(n)]


_Further = tuple[str, Callable[[random.Random, int], list[Any]]]
# Of every table. The values of a row say nothing of its answer.
FURTHER: tuple[_Further, ...] = (
    ("comment", _texts),
    ("date", lambda dice, n: [f"2024-0{dice.randint(1, 9)}-1{dice.randint(0, 9)}" for _ in range(n)]),
    ("timestamp", lambda dice, n: [1_700_000_000 + 37 * row for row in range(n)]),
    ("time_taken", lambda dice, n: [round(dice.uniform(1, 60), 1) for _ in range(n)]),
    ("duration", lambda dice, n: [dice.randint(2, 90) for _ in range(n)]),
    ("row", lambda dice, n: list(range(1, n + 1))),
    ("id", lambda dice, n: list(range(n))),
    ("uuid", lambda dice, n: [f"{dice.getrandbits(48):012x}" for _ in range(n)]),
    ("html", lambda dice, n: [f"<p>q{row}</p>" for row in range(n)]),
    ("topic", _some("sport", "art", "food")),
    ("language", _some("en", "de")),
    ("arm", _some("A", "B")),
    ("batch", _some(1, 2)),
    ("group", _some("treatment", "control")),
    ("confidence", _some(1, 2, 3, 4, 5)),
    ("age", _some(23, 31, 45, 67)),
    ("valid", _some(1)),
    ("flagged", _some(0, 1)),
    ("attention", _some(True, False)),
    ("length", lambda dice, n: [dice.randint(80, 120) for _ in range(n)]),
    ("zworg", _some(0, 1, 2)),
    ("plonk", _some("x", "y")),
    ("note>", _some("a > b", "c")),
    ("empty", lambda dice, n: [None] * n),
)
# Of tables of pairs, where a row is an answer.
OF_PAIRS: tuple[_Further, ...] = (
    ("screen_side", _some("left", "right")),
    ("position", _some(1, 2)),
    ("first_shown", _some("A", "B")),
    ("category", _some("maths", "code", "chat")),
    ("prompt", _some("write a poem", "fix my code", "who was it")),
    ("question_id", lambda dice, n: list(range(100, 100 + n))),
    ("match_id", lambda dice, n: [f"m{row}" for row in range(n)]),
    ("year", _some(2022, 2023)),
    ("score", _some(1, 2, 3, 4, 5)),
    ("rank", _some(1, 2, 3)),
    ("count", lambda dice, n: [dice.choice((80, 95, 120)) for _ in range(n)]),
    ("points", _some(0, 1, 3)),
)
# Such whose names are those of a role, beside a column that has it for certain.
OF_CERTAIN_PAIRS: tuple[_Further, ...] = (
    ("label", _some("A", "B")),
    ("label", _some(1, 2)),
    ("choice", _some("left", "right")),
    ("task", _some("hot", "cold")),
    ("task", _some("Year 1", "Year 2", "Year 3")),
    ("subject", _some("maths", "art")),
    ("user", _some("write a poem", "fix my code", "who was it")),
    ("response", _some("yes", "no")),
)
# Two columns of numbers or texts about the two shown.
BESIDE_PAIRS: tuple[tuple[str, Callable[[random.Random, int], list[Any]]], ...] = (
    ("length", lambda dice, n: [dice.randint(10, 900) for _ in range(n)]),
    ("score", _some(1, 2, 3, 4, 5)),
    ("text", lambda dice, n: [f"Dear {dice.getrandbits(30)}" for _ in range(n)]),
    ("rank", _some(1, 2, 3, 4)),
    ("seen", _some(0, 1)),
    ("seed", _some(1, 2)),
)


def _with_further(dice: Dice, table: Made, pools: Sequence[_Further], most: int = 3) -> Made:
    """The table with further columns, and all of them in another order."""
    n = len(next(iter(table.columns.values())))
    taken = {*map(plain, table.columns)}
    columns = dict(table.columns)
    for _ in range(dice.pick(tuple(range(most + 1)))):
        name, values = dice.pick(pools)
        if plain(name) not in taken:
            taken.add(plain(name))
            columns[name] = values(dice.random, n)
    names = list(columns)
    if dice.often():
        dice.random.shuffle(names)
        kept = iter(table.in_order)
        names = [next(kept) if name in table.in_order else name for name in names]
    return replace(table.with_columns({name: columns[name] for name in names}), core=tuple(table.columns))


# --- pairs ------------------------------------------------------------------------------------------------------------


def _name(dice: Dice, listed: Sequence[T], others: Sequence[T]) -> tuple[T, bool]:
    """A name, and whether it is one of those in every list."""
    if dice.pick((True, True, False)):
        return dice.pick(listed), True
    return dice.pick(others), False


def _things(dice: Dice) -> tuple[str, ...]:
    return dice.pick(THINGS)[: dice.pick((3, 4, 5, 6))]


def _crowd(dice: Dice) -> tuple[str, ...]:
    return dice.pick(PEOPLE)[: dice.pick((2, 1, 3, 5))]


def _answers(dice: Dice, *, ties: bool, weights: bool = False, most: int = 30) -> tuple[list[Pair], tuple[str, ...]]:
    """Answers about pairs of which no side or item wins for a reason."""
    things, crowd = _things(dice), _crowd(dice)
    n = dice.pick(tuple(k for k in (4, 6, 8, 12, 20, 30) if k <= most))
    found = []
    for _ in range(n):
        left, right = dice.random.sample(things, 2)
        outcome = dice.random.choice((1, -1, 1, -1, 0) if ties else (1, -1))
        found.append(Pair(dice.random.choice(crowd), left, right, outcome, dice.random.randint(1, 3) if weights else 1))
    for way in (1, -1, 0) if ties else (1, -1):  # each outcome comes
        if not any(one.outcome == way for one in found):
            place = next(k for k, one in enumerate(found) if sum(x.outcome == one.outcome for x in found) > 1)
            found[place] = replace(found[place], outcome=way)
    if dice.seldom():  # each person in one go
        found.sort(key=lambda one: one.who)
    return found, things


def _typed(values: Sequence[Any]) -> list[Any]:
    """Whole numbers as such, if all are and none begins with a zero."""
    words = [value for value in values if value is not None]
    if words and all(isinstance(word, str) and word.isdecimal() and str(int(word)) == word for word in words):
        return [None if value is None else int(value) for value in values]
    return list(values)


def _pair_table(
    dice: Dice, layout: str, answers: Sequence[Pair], answer: Mapping[str, list[Any]], *, pair: tuple[str, str],
    certain: bool = False, readable: bool = True, told: str = "", person: bool = True,
) -> Made:  # fmt: skip
    """A table of pairs with the columns of their answers, further columns and perhaps people.

    ``certain``: no other column could hold the answer for somebody who reads names. ``readable``: a reader may find the
    answers; otherwise it can only ask.
    """
    columns: dict[str, list[Any]] = {}
    who, listed, named = None, True, False
    if person and dice.often():
        who, listed = _name(dice, WHO, WHO_ELSE)
        columns[who] = _typed([one.who for one in answers])
        named = True
    columns |= {pair[0]: _typed([one.left for one in answers]), pair[1]: _typed([one.right for one in answers])}
    columns |= dict(answer)
    truths = []
    if readable:
        truths = [of_pairs(answers, named)] if listed else [of_pairs(answers), of_pairs(answers, False)]
    table = Made(layout, columns, tuple(truths), told=told)
    pools = (*FURTHER, *OF_PAIRS)
    if certain:
        pools = (*pools, *(one for one in OF_CERTAIN_PAIRS if (named and listed) or one[0] not in ("user", "subject")))
    if not readable:
        pools = FURTHER
    if dice.seldom():
        stem, values = dice.pick(BESIDE_PAIRS)
        one, two = _beside(pair, stem)
        if not {plain(one), plain(two)} & {*map(plain, columns)}:
            table.columns[one], table.columns[two] = (values(dice.random, len(answers)) for _ in range(2))
    return _with_further(dice, table, pools)


def _beside(pair: tuple[str, str], stem: str) -> tuple[str, str]:
    """Names of two columns about the two shown, with the ends of theirs."""
    ends = {"a": "b", "A": "B", "1": "2", "left": "right"}
    for one, two in ends.items():
        if pair[0].endswith(one) and pair[1].endswith(two):
            return f"{stem}_{one}", f"{stem}_{two}"
    return f"{stem}_a", f"{stem}_b"


def winner_by_name(dice: Dice) -> Made:
    """The item that won."""
    answers, _ = _answers(dice, ties=dice.even())
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, listed = _name(dice, ANSWER, ANSWER_ELSE)
    tie = dice.pick(TIES)
    column = [{1: one.left, -1: one.right, 0: tie}[one.outcome] for one in answers]
    return _pair_table(dice, "winner by name", answers, {name: column}, pair=pair, certain=listed and name != "choice")


def _words_of(pair: tuple[str, str]) -> list[tuple[str, str]]:
    """Words for the two sides that follow from the names of their columns."""
    left, right = pair
    words = [(left, right), (left.upper(), right.upper())]
    if (left[-1], right[-1]) in (("a", "b"), ("A", "B"), ("1", "2")):
        words += [(left[-1], right[-1])]
        if left[-1].isalpha():
            words += [(left[-1].swapcase(), right[-1].swapcase())]
    if left[:4] == "left" or left.endswith("_left"):
        words += [("left", "right"), ("L", "R"), ("left wins", "right wins")]
    if plain(left).startswith("home"):
        words += [("H", "A"), ("home", "away")]
    if plain(left) == "white":
        words += [("1-0", "0-1"), ("W", "B")]
    return words


_SIDES = (("left", "right"), ("a", "b"), ("A", "B"), ("first", "second"), ("1", "2"))
_UNKNOWN_SIDES = (("zig", "zag"), ("oben", "unten"), ("x", "y"))


def side_words(dice: Dice) -> Made:
    """A word for the side that won."""
    answers, _ = _answers(dice, ties=dice.even())
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, listed = _name(dice, ANSWER, ANSWER_ELSE)
    tie = dice.pick(TIES)
    words = dice.pick((*_words_of(pair), *_SIDES))
    if words == ("1-0", "0-1"):
        tie = dice.pick(("1/2-1/2", "½-½", "draw"))
    elif words == ("H", "A"):
        tie = "D"
    column = [{1: words[0], -1: words[1], 0: tie}[one.outcome] for one in answers]
    certain = listed and name != "choice" and words != ("1", "2")
    return _pair_table(
        dice, "side words", answers, {name: _typed(column)}, pair=pair, certain=certain, told=f"{words[0]}/{words[1]}"
    )


def unknown_words(dice: Dice) -> Made:
    """Words of which none says which side it stands for, or whether it is a tie."""
    answers, _ = _answers(dice, ties=True)
    pair, name = dice.pick(PAIRS), dice.pick(ANSWER)
    words = (*dice.pick(_UNKNOWN_SIDES), "tie") if dice.even() else ("left", "right", dice.pick(("dunno", "skipped")))
    one, two, tie = words if dice.even() else (words[1], words[0], words[2])
    if tie == "tie" or any(not one.outcome for one in answers):
        column = [{1: one, -1: two, 0: tie}[answer.outcome] for answer in answers]
    else:
        column = ["dunno" if not k else "left" for k in range(len(answers))]
    return _pair_table(dice, "unknown words", answers, {name: column}, pair=pair, readable=False)


def graded_words(dice: Dice) -> Made:
    """A side and by how much it is better."""
    answers, _ = _answers(dice, ties=True)
    pair = dice.pick((("left", "right"), ("model_a", "model_b"), ("a", "b"), ("item_a", "item_b")))
    name, listed = _name(dice, ANSWER, ANSWER_ELSE)
    sides = ("left", "right") if pair[0] == "left" else dice.pick((("A", "B"), ("a", "b")))
    forms = dice.pick((
        ("{0} is much better", "{0} is slightly better", "tie"), ("{0} much better", "{0} better", "equal"),
        ("{0}>>{1}", "{0}>{1}", "{0}={1}"),
    ))  # fmt: skip
    column = []
    for one in answers:
        better = sides if one.outcome >= 0 else sides[::-1]
        form = forms[2] if not one.outcome else dice.random.choice(forms[:2])
        column.append(form.format(*better) if one.outcome else form.format(*sides))
    return _pair_table(dice, "graded words", answers, {name: column}, pair=pair, certain=listed and name != "choice")


def signed(dice: Dice) -> Made:
    """Numbers of which the positive ones speak for a side that no word says."""
    answers, _ = _answers(dice, ties=True)
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, _ = _name(dice, ("preference", "outcome", "vote", "cmos", "slider", "score"), ANSWER_ELSE)
    most = dice.pick((1, 2, 3, 5, 100))
    way = dice.pick((1, -1))
    column = [way * one.outcome * dice.random.randint(1, most) for one in answers]
    if dice.seldom():
        column = [f"{value:+d}" if value else "0" for value in column]
    return _pair_table(dice, "signed", answers, {name: column}, pair=pair, told=f"{way:+d} left")


def on_a_scale(dice: Dice) -> Made:
    """Numbers from one end of a scale, for one of the two, to the other end; no word says which."""
    answers, _ = _answers(dice, ties=True)
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, _ = _name(dice, ("preference", "vote", "slider", "rating", "likert", "answer"), ANSWER_ELSE)
    low, high = dice.pick(((1, 5), (0, 10), (0, 100), (1, 7), (0, 2)))
    middle, way = (low + high) // 2, dice.pick((1, -1))
    reach = 1 if dice.seldom() else middle - low
    column = [middle + way * one.outcome * dice.random.randint(1, reach) for one in answers]
    return _pair_table(dice, "on a scale", answers, {name: column}, pair=pair, told=f"{low} to {high}, {way:+d} left")


def zero_one(dice: Dice) -> Made:
    """1 and 0 of which no word says which one is left."""
    answers, _ = _answers(dice, ties=False)
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, _ = _name(dice, ANSWER, ANSWER_ELSE)
    way = dice.pick((1, -1))
    column: list[Any] = [(way * one.outcome + 1) // 2 for one in answers]
    if dice.seldom():
        column = [bool(value) for value in column]
    return _pair_table(dice, "1 and 0", answers, {name: column}, pair=pair, told=f"{way:+d} left")


def half_points(dice: Dice) -> Made:
    """1, 0.5 and 0 for the side on the left, or for the other one."""
    answers, _ = _answers(dice, ties=True)
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    way = dice.pick((1, -1))
    column = [(way * one.outcome + 1) / 2 for one in answers]
    return _pair_table(
        dice, "points", answers, {dice.pick(("result", "score", "outcome", "p")): column}, pair=pair,
        told=f"{way:+d} left",
    )  # fmt: skip


def one_to_two(dice: Dice) -> Made:
    """From 1, the first is better, to 2, as AlpacaEval writes it."""
    answers, _ = _answers(dice, ties=True)
    pair = dice.pick((("generator_1", "generator_2"), ("item1", "item2"), ("model_1", "model_2")))
    column = [1.5 - 0.5 * one.outcome * dice.random.choice((1.0, 0.5, 0.998)) for one in answers]
    return _pair_table(dice, "from 1 to 2", answers, {"preference": column}, pair=pair)


def flags_of_sides(dice: Dice) -> Made:
    """A column of 1 and 0 for each side, perhaps one for ties, or one for a side alone."""
    pair, words = dice.pick((
        (("model_a", "model_b"), ("winner_model_a", "winner_model_b", "winner_tie")),
        (("left", "right"), ("left_wins", "right_wins", "tie")),
        (("A", "B"), ("choseA", "choseB", "tie")),
        (("item_a", "item_b"), ("a_won", "b_won", "draw")),
        (("condition_A", "condition_B"), ("is_A_selected",)),
        (("left", "right"), ("left_won",)),
    ))  # fmt: skip
    answers, _ = _answers(dice, ties=len(words) > 2 and dice.even())
    yes, no = dice.pick(((1, 0), (True, False), ("yes", "no")))
    columns = {name: [yes if one.outcome == way else no for one in answers]
               for name, way in zip(words, (1, -1, 0), strict=False)}  # fmt: skip
    if len(words) > 2 and dice.even() and all(one.outcome for one in answers):
        del columns[words[2]]
    return _pair_table(dice, "flags of sides", answers, columns, pair=pair, told=", ".join(columns))


WON_LOST = (("chosen", "rejected"), ("winner", "loser"), ("preferred", "dispreferred"))
WON_LOST_ELSE = (
    ("winner_id", "loser_id"), ("Candidate Chosen", "Candidate Not Chosen"), ("winning_team", "losing_team"),
    ("chosen", "notChosen"), ("winner_name", "loser_name"), ("preferred", "other"), ("candidate.chosen",
    "candidate.not.chosen"), ("Gewinner", "Verlierer"), ("sieg", "flop"),
)  # fmt: skip


def won_and_lost(dice: Dice) -> Made:
    """The item that won and the one that lost."""
    answers, _ = _answers(dice, ties=False)
    answers = [one if one.outcome > 0 else Pair(one.who, one.right, one.left, 1) for one in answers]
    pair, _ = _name(dice, WON_LOST, WON_LOST_ELSE)
    more: dict[str, list[Any]] = {}
    if dice.seldom():
        more = dict([dice.pick((
            ("choice", ["left" if dice.random.random() < 0.5 else "right" for _ in answers]),
            ("label", ["A" if dice.random.random() < 0.5 else "B" for _ in answers]),
            ("task", [f"Year {dice.random.randint(1, 3)}" for _ in answers]),
            ("position", [dice.random.randint(1, 2) for _ in answers]),
        ))])  # fmt: skip
    elif dice.seldom():
        stem = dice.pick(("rank", "score", "age", "elo"))
        more = {f"winner_{stem}": [dice.random.randint(1, 9) for _ in answers],
                f"loser_{stem}": [dice.random.randint(1, 9) for _ in answers]}  # fmt: skip
    return _pair_table(dice, "won and lost", answers, more, pair=pair, told=", ".join(more))


def two_scores(dice: Dice) -> Made:
    """What each of the two got: more is better, or fewer where it is the word for it."""
    answers, _ = _answers(dice, ties=dice.even())
    pair = dice.pick((("model_a", "model_b"), ("item1", "item2"), ("left", "right"), ("response_a", "response_b"),
                      ("team1", "team2"), ("home", "away"), ("sample_a", "sample_b")))  # fmt: skip
    stem, way = dice.pick((("score", 1), ("rating", 1), ("stars", 1), ("goals", 1), ("points", 1), ("rank", -1),
                           ("grade", 1), ("grade", -1), ("mark", -1), ("penalty", -1), ("zonk", 1),
                           ("zonk", -1)))  # fmt: skip
    names = _beside(pair, stem)
    if pair == ("home", "away"):
        names = (f"{stem}_home", f"{stem}_away")
    if dice.seldom():
        names = (names[0].replace("_", ""), names[1].replace("_", ""))
    one, two = [], []
    for answer in answers:
        low = dice.random.randint(1, 5)
        high = low + dice.random.randint(1, 4) * abs(answer.outcome)
        left, right = (high, low) if way * answer.outcome > 0 else (low, high)
        one.append(left)
        two.append(right)
    return _pair_table(
        dice, "two scores", answers, {names[0]: one, names[1]: two}, pair=pair, told=f"{names[0]}, {way:+d}"
    )


def counts_of_sides(dice: Dice) -> Made:
    """How many were for each of the two."""
    things = _things(dice)
    pair = dice.pick((("model_a", "model_b"), ("left", "right"), ("item1", "item2"), ("base", "ours"), ("A", "B")))
    stem = dice.pick(("votes", "wins", "num_vote", "n"))
    names = _beside(pair, stem) if pair[0] != "base" else (f"{stem}_base", f"{stem}_ours")
    rows = [(*dice.random.sample(things, 2), dice.random.randint(0, 30), dice.random.randint(1, 30)) for _ in range(6)]
    answers = [one for left, right, m, n in rows for one in (Pair("", left, right, 1, m), Pair("", left, right, -1, n))]
    columns = {pair[0]: [row[0] for row in rows], pair[1]: [row[1] for row in rows],
               names[0]: [row[2] for row in rows], names[1]: [row[3] for row in rows]}  # fmt: skip
    truth = of_pairs([one for one in answers if one.weight], False)
    return _with_further(dice, Made("counts of sides", columns, (truth,)), FURTHER)


def codes(dice: Dice) -> Made:
    """0 the first, 1 the second, 2 a tie, or 0 a tie, 1 and 2."""
    answers, _ = _answers(dice, ties=True)
    pair, _ = _name(dice, PAIRS, PAIRS_ELSE)
    name, _ = _name(dice, ANSWER, ANSWER_ELSE)
    code = dice.pick(({1: 0, -1: 1, 0: 2}, {1: 1, -1: 2, 0: 0}, {1: 1, -1: 2, 0: 3}))
    return _pair_table(
        dice, "codes", answers, {name: [code[one.outcome] for one in answers]}, pair=pair, told=str(code)
    )


def weighted(dice: Dice) -> Made:
    """Answers that came several times."""
    answers, _ = _answers(dice, ties=False, weights=True)
    pair = dice.pick(PAIRS)
    column = [one.left if one.outcome > 0 else one.right for one in answers]
    columns = {dice.pick(ANSWER): column, dice.pick(("weight", "count")): [one.weight for one in answers]}
    return _pair_table(dice, "weighted", answers, columns, pair=pair)


def column_an_annotator(dice: Dice) -> Made:
    """The answers of each person in a column of their own."""
    things, n = _things(dice), dice.pick((4, 6, 10))
    pair = dice.pick((("model_a", "model_b"), ("left", "right")))
    asked = [tuple(dice.random.sample(things, 2)) for _ in range(n)]
    stem = dice.pick(("annotator", "rater_", "judge "))
    columns: dict[str, list[Any]] = {pair[0]: [one for one, _ in asked], pair[1]: [two for _, two in asked]}
    words = dice.pick(({1: "left", -1: "right", 0: "tie"}, {1: "a", -1: "b", 0: "tie"}))
    answers = []
    for k in range(1, dice.pick((3, 4))):
        outcomes = [dice.random.choice((1, -1, 0)) for _ in asked]
        columns[f"{stem}{k}"] = [words[outcome] for outcome in outcomes]
        answers += [Pair(f"{stem}{k}", *one, outcome) for one, outcome in zip(asked, outcomes, strict=True)]
    return _with_further(dice, Made("a column an annotator", columns, (of_pairs(answers),)), FURTHER, 2)


def both_in_one_column(dice: Dice) -> Made:
    """Both items in one column, and the one that won, or its side, in another."""
    answers, _ = _answers(dice, ties=dice.even())
    sign = dice.pick((" vs ", "_vs_", " / ", "|", "_"))
    key = dice.pick(("pair", "comparison", "matchup", "cmp_key", "zorf"))
    name, _ = _name(dice, ANSWER, ANSWER_ELSE)
    words = dice.pick((None, ("left", "right"), ("a", "b")))
    column = []
    for one in answers:
        won = {1: one.left, -1: one.right} if words is None else {1: words[0], -1: words[1]}
        column.append("tie" if not one.outcome else won[one.outcome])
    columns = {"judge": _typed([one.who for one in answers]),
               key: [f"{one.left}{sign}{one.right}" for one in answers], name: column}  # fmt: skip
    return _with_further(dice, Made("both in one column", columns, (of_pairs(answers),)), FURTHER, 2)


def several_judges_a_row(dice: Dice) -> Made:
    """Pairs with the answer beside two columns that name people: who answered and who wrote."""
    answers, _ = _answers(dice, ties=False)
    column = [one.left if one.outcome > 0 else one.right for one in answers]
    columns = {
        "annotator": _typed([one.who for one in answers]),
        dice.pick(("user", "user_id")): [f"p{dice.random.randint(1, 4)}" for _ in answers],
        "model_a": [one.left for one in answers], "model_b": [one.right for one in answers], "winner": column,
    }  # fmt: skip
    return _with_further(dice, Made("two columns of people", columns, (of_pairs(answers),)), FURTHER, 1)


def taken_apart(dice: Dice) -> Made:
    """One baseline against the others, each row an answer; or the one chosen over each other one, a choice of several.

    Only a word, or a column of choice sets, can tell the one from the other. Without them, a few rows of one winner, or
    several choices of one item, are as likely as not answers by themselves.
    """
    things, crowd = _things(dice), _crowd(dice)
    with_task = dice.even()
    joint = with_task or dice.even()
    tasks, rows, numbers = [], [], []
    for who in crowd:
        for number in range(dice.pick((2, 4, 8))):
            best = things[0] if not joint and dice.random.random() < 0.8 else dice.random.choice(things)
            others = [one for one in things if one != best]
            dice.random.shuffle(others)
            others = others[: dice.random.randint(2, len(others))]
            tasks.append(Task(who, number, (best, *others), ((best,), tuple(others))))
            rows += [Pair(who, best, other, 1) for other in others]
            numbers += [number] * len(others)
    pairs = [one if dice.random.random() < 0.5 else Pair(one.who, one.right, one.left, -1) for one in rows]
    columns: dict[str, list[Any]] = {
        "user": [one.who for one in pairs], "left": [one.left for one in pairs], "right": [one.right for one in pairs],
        "winner": [one.left if one.outcome > 0 else one.right for one in pairs],
    }  # fmt: skip
    if with_task:
        columns[dice.pick(("choice_set", "task", "task_id"))] = numbers
    truths = [of_tasks(tasks) if joint else of_pairs(pairs)]
    winners = Counter((one.who, one.levels[0]) for one in tasks)
    if joint and not with_task and (len(winners) < 10 or max(winners.values()) > 1):
        truths.append(of_pairs(pairs))  # nothing need tell
    told = f"{'one choice' if joint else 'each an answer'}{', with tasks' if with_task else ''}"
    return _with_further(dice, Made("choices or not", columns, tuple(truths), told=told), FURTHER, 2)


# --- sets -------------------------------------------------------------------------------------------------------------

_Kind = str


def _tasks(
    dice: Dice, kind: _Kind, *, things: Sequence[Any] | None = None, size: int | None = None, alone: bool = False,
    whole: bool = False,
) -> list[Task]:  # fmt: skip
    """Answers about several: kind is best, best_worst, order, rating, approval; ``alone``: one a person."""
    things = list(things or _things(dice))
    size = min(size or dice.pick((3, 4, 5)), len(things))
    crowd = dice.pick(PEOPLE)[: dice.pick((4, 2, 5))] if alone else _crowd(dice)
    found = []
    for who in crowd:
        for number in range(1, 2 if alone else 1 + dice.pick((2, 3, 5))):
            shown = list(things) if whole else dice.random.sample(things, size)
            dice.random.shuffle(shown)
            found.append(Task(who, number, tuple(shown), _judged(dice, kind, shown)))
    return found


def _judged(dice: Dice, kind: _Kind, shown: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    order = list(shown)
    dice.random.shuffle(order)
    if kind == "best":
        return ((order[0],), tuple(order[1:]))
    if kind == "best_worst":
        return tuple(part for part in ((order[0],), tuple(order[1:-1]), (order[-1],)) if part)
    if kind == "order":
        return tuple((one,) for one in order)
    if kind == "approval":
        n = dice.random.randint(1, len(order) - 1)
        return (tuple(order[:n]), tuple(order[n:]))
    cuts = sorted(dice.random.sample(range(1, len(order)), dice.random.randint(1, len(order) - 1)))
    return tuple(tuple(order[one:two]) for one, two in zip([0, *cuts], [*cuts, len(order)], strict=True))


def _frame(dice: Dice, tasks: Sequence[Task], *, unique: bool | None = None) -> tuple[dict[str, list[Any]], list[bool]]:
    """Columns of people and of tasks for a row an alternative, and whether people may be, or must be, named."""
    columns: dict[str, list[Any]] = {}
    unique = dice.even() if unique is None else unique
    named = [True]
    if not unique or dice.often():
        name, listed = _name(dice, WHO, WHO_ELSE)
        columns[name] = _typed([task.who for task in tasks for _ in task.shown])
        named = [True] if listed else [True, False]
    else:
        named = [False]
    number = {id(task): 100 + k if unique else task.number for k, task in enumerate(tasks)}
    if len({task.number for task in tasks}) > 1 or unique:
        name, _ = _name(dice, TASK, TASK_ELSE)
        columns[name] = [number[id(task)] for task in tasks for _ in task.shown]
    return columns, named


def _set_table(
    dice: Dice, layout: str, tasks: Sequence[Task], columns: dict[str, list[Any]], named: Sequence[bool], *,
    pools: Sequence[_Further] = (), attributes: Sequence[str] = (), key: Callable[[Any], str] = str, told: str = "",
    item: str = "", in_order: Sequence[str] = (),
) -> Made:  # fmt: skip
    truths = tuple(of_tasks(tasks, one, key) for one in named)
    if [*named] != [True]:  # then a number of rows may be that of people
        pools = [one for one in pools if one[0] != "id"]
    return _with_further(dice, Made(layout, columns, truths, tuple(attributes), told, item, tuple(in_order)), pools)


def _by_task(tasks: Sequence[Task]) -> tuple[_Further, ...]:
    """Further columns of which each has one value in all rows of a task."""

    def spread(values: Callable[[random.Random, int], list[Any]]) -> Callable[[random.Random, int], list[Any]]:
        def of_rows(dice: random.Random, _: int) -> list[Any]:
            return [one for one, task in zip(values(dice, len(tasks)), tasks, strict=True) for _ in task.shown]

        return of_rows

    return tuple((name, spread(values)) for name, values in FURTHER if name not in ("row", "id"))


# Of tables with a row an alternative; what stands on the screen is no rank.
_OF_ROWS: tuple[_Further, ...] = (
    ("row", lambda dice, n: list(range(1, n + 1))),
    ("uuid", lambda dice, n: [f"{dice.getrandbits(48):012x}" for _ in range(n)]),
    ("comment", _texts),
    ("html", lambda dice, n: [f"<p>q{row}</p>" for row in range(n)]),
)
# Where a column names the item for certain; otherwise such numbers may describe it.
_BESIDE_ITEMS: tuple[_Further, ...] = (
    ("time_taken", lambda dice, n: [round(dice.uniform(1, 60), 1) for _ in range(n)]),
    ("zworg", _some(0, 1, 2)),
    ("seen", _some(0, 1)),
)


def _places(tasks: Sequence[Task]) -> list[int]:
    return [place for task in tasks for place, _ in enumerate(task.shown, 1)]


def long_items(dice: Dice) -> Made:
    """A row an item of a task, with whether it was chosen, best and worst, approved of, its rank or rating."""
    kind = dice.pick(("best", "best_worst", "approval", "rank", "rating", "number", "named", "points"))
    tasks = _tasks(dice, {"rank": "order", "number": "best", "named": "best", "points": "rating"}.get(kind, kind))
    columns, named = _frame(dice, tasks)
    item, listed = _name(dice, ITEM, ITEM_ELSE)
    columns[item] = _typed([one for task in tasks for one in task.shown])
    level = [task.level_of(one) for task in tasks for one in task.shown]
    told, of_screen = kind, ("position", lambda *_: _places(tasks))
    if kind == "best":
        yes, no = dice.pick(((1, 0), ("yes", "no"), (True, False), ("1", "0")))
        name, _ = _name(dice, ("chosen", "choice", "selected", "response"), ("genommen", "blorp", "taken"))
        columns[name] = [no if one else yes for one in level]
    elif kind == "best_worst":
        last = [len(task.levels) - 1 for task in tasks for _ in task.shown]
        if dice.even():
            one, two = dice.pick((("best", "worst"), ("most", "least"), ("Best", "Worst")))
            columns[one] = [int(not place) for place in level]
            columns[two] = [int(place == end) for place, end in zip(level, last, strict=True)]
        else:
            columns[dice.pick(("choice", "response", "bw", "answer"))] = [
                1 if not place else -int(place == end) for place, end in zip(level, last, strict=True)
            ]
    elif kind == "approval":
        columns[dice.pick(("approved", "approval", "chosen", "zustimmung"))] = [int(not place) for place in level]
    elif kind == "rank":
        name, way = dice.pick((("rank", 1), ("place", 1), ("position", 1), ("ranking", 1), ("rang", 1)))
        columns[name] = [1 + place for place in level]
        of_screen = ("screen_position", of_screen[1])
    elif kind == "rating":
        name, way = dice.pick((
            ("rating", 1), ("stars", 1), ("score", 1), ("grade", 1), ("grade", -1), ("mark", -1), ("penalty", -1),
            ("note", -1), ("zonk", 1), ("zonk", -1), ("points", 1), ("Mark", 1),
        ))  # fmt: skip
        columns[name] = [6 - place if way > 0 else 1 + place for place in level]
        told = f"{name} {way:+d}"
    elif kind == "points":  # 100 to give away
        columns[dice.pick(("response", "points", "share", "allocation"))] = [
            share for task in tasks for share in _shares([task.level_of(one) for one in task.shown])
        ]
    elif kind == "number":
        columns[dice.pick(("alt", "concept", "alternative"))] = _places(tasks)
        number = [1 + task.shown.index(task.levels[0][0]) for task in tasks]
        columns[dice.pick(("choice", "response", "chosen"))] = [
            one for one, task in zip(number, tasks, strict=True) for _ in task.shown
        ]
    else:
        columns[dice.pick(("choice", "winner", "chosen"))] = _typed([t.levels[0][0] for t in tasks for _ in t.shown])
    pools = (*_by_task(tasks), *_OF_ROWS, *(_BESIDE_ITEMS if listed else ()), of_screen)
    return _set_table(dice, "long, items", tasks, columns, named, pools=pools, told=told, item=item)


def _shares(levels: Sequence[int]) -> list[int]:
    """Parts of 100 by level, that of the best the largest."""
    parts = [max(levels) - level for level in levels]
    return [round(100 * part / sum(parts)) for part in parts]


def ratings(dice: Dice) -> Made:
    """A row an item that a person rated or ranked; who and what alone say which rows belong together."""
    kind = dice.pick(("rating", "rank"))
    tasks = _tasks(dice, "rating" if kind == "rating" else "order", alone=True)
    who, _ = _name(dice, WHO, WHO_ELSE)
    item, _ = _name(dice, ITEM, ITEM_ELSE)
    columns = {who: [task.who for task in tasks for _ in task.shown],
               item: _typed([one for task in tasks for one in task.shown])}  # fmt: skip
    name, way = dice.pick((("rating", 1), ("stars", 1), ("grade", -1), ("grade", 1), ("mark", -1), ("penalty", -1)))
    if kind == "rank":
        name, way = dice.pick((("rank", -1), ("place", -1)))
    level = [task.level_of(one) for task in tasks for one in task.shown]
    columns[name] = [6 - place if way > 0 else 1 + place for place in level]
    pools = (*_by_task(tasks), *_OF_ROWS, ("position", lambda *_: _places(tasks)))
    return _set_table(dice, "ratings", tasks, columns, [True], pools=pools, told=f"{name} {way:+d}", item=item)


_ATTRIBUTES = (
    ("price", (1, 2, 3, 4)), ("size", (1, 2)), ("organic", (0, 1)), ("colour", ("red", "blue")),
    ("speed", (10.5, 20.0)),
)  # fmt: skip
_ATTRIBUTES_ELSE = (
    ("x1", (1, 2, 3)), ("x2", (1, 2, 3)), ("x3", (0, 1)), ("a", (1, 2, 3)), ("b", (1, 2, 3)), ("brand_a", (0, 1)),
    ("brand_b", (0, 1)), ("size_1", (0, 1)), ("att1", (1, 2, 3)), ("att2", (1, 2, 3)), ("rating", (1, 2, 3)),
    ("wuzz", (7, 8, 9)), ("grade", ("low", "high")), ("count", (6, 12)), ("time", (10, 20, 30)), ("score", (3, 4)),
)  # fmt: skip


def _profiles(
    dice: Dice, labels: Sequence[str] | None, size: int, *, own: str = "", outside: bool = False
) -> tuple[list[Task], list[str]]:
    """Choices among described alternatives, and the names of what describes them; labels are told in ``own``.

    ``outside``: the last one of each task is none of the others, and has no attributes.
    """
    pool = dice.pick((_ATTRIBUTES, _ATTRIBUTES_ELSE))
    chosen = dict(dice.random.sample(pool, dice.pick((2, 3, 1)) if labels else dice.pick((3, 2))))
    if pool is _ATTRIBUTES_ELSE and dice.even():  # families of columns, as x1, x2, x3
        start = dice.pick(("x", "att", "brand_"))
        chosen |= {name: values for name, values in pool if name.startswith(start)}
    tasks = []
    for who in _crowd(dice):
        for number in range(1, 1 + dice.pick((3, 4, 6))):
            shown: list[tuple[tuple[str, Any], ...]] = []
            while len(shown) < size:
                one = {name: dice.random.choice(values) for name, values in chosen.items()}
                if labels:
                    one = {own: labels[len(shown)], **one}
                if (profile := tuple(one.items())) not in shown or len(shown) > 20:
                    shown.append(profile)
            if outside:
                shown.append(())
            tasks.append(Task(who, number, tuple(shown), _judged(dice, "best", shown)))
    return tasks, [*([own] if labels else []), *chosen]


def _without(task: Task, place: int) -> Task:
    """The choice without the alternative of a place, unless that is below 0."""
    gone = task.shown[place] if place >= 0 else None
    shown = tuple(one for one in task.shown if one != gone)
    return replace(task, shown=shown, levels=tuple(tuple(x for x in level if x != gone) for level in task.levels))


def _vary(tasks: Sequence[Task], names: Iterable[str]) -> list[str]:
    """What differs in some task, and so describes alternatives."""
    return [name for name in names
            if any(len({dict(one)[name] for one in task.shown if one}) > 1 for task in tasks)]  # fmt: skip


def _known_by(names: Sequence[str]) -> Callable[[Any], str]:
    return lambda one: described({name: dict(one).get(name) for name in names})


def long_profiles(dice: Dice) -> Made:
    """A row an alternative that is described; it has a name, or a number of its place alone."""
    own, labels = LABEL, None
    if dice.even():
        labels = dice.pick((("tea", "milk", "juice"), ("bus", "car", "rail", "walk"), ("dannon", "hiland")))
    size = len(labels) if labels else dice.pick((3, 2, 4))
    outside = labels is None and dice.seldom()
    tasks, names = _profiles(dice, labels, size, own=own, outside=outside)
    columns, named = _frame(dice, tasks)
    place = dice.pick(("alt", "alternative", "option", "concept", "mode", "zabb"))
    if labels:
        place = dice.pick(("alt", "alternative", "mode", "brand", "product", "item", "region", "zabb"))
        columns[place] = [dict(one)[own] for task in tasks for one in task.shown]
    elif dice.often():
        columns[place] = _places(tasks)
    for name in names[bool(labels) :]:
        columns[name] = [dict(one).get(name) for task in tasks for one in task.shown]
    level = [task.level_of(one) for task in tasks for one in task.shown]
    form = dice.pick(("flags", "number", "one and two", "named", "first row") if labels is None else ("flags", "named"))
    answer = dice.pick(("choice", "chosen", "response", "Response", "taken"))
    if form == "flags" or (form == "named" and not labels):
        columns[answer] = [int(not one) for one in level]
    elif form == "one and two":
        columns[answer] = [1 + one for one in level]
    elif form == "named":
        columns[answer] = [dict(task.levels[0][0])[own] for task in tasks for _ in task.shown]
    else:
        best = [1 + task.shown.index(task.levels[0][0]) for task in tasks]
        columns[answer] = [one if form == "number" or not k else 0 for one, task in zip(best, tasks, strict=True)
                           for k, _ in enumerate(task.shown)]  # fmt: skip
    known = _vary(tasks, names)
    told = f"{place} {'named' if labels else 'numbered'}, {form}{', one outside' if outside else ''}"
    return _set_table(
        dice, "long, profiles", tasks, columns, named, pools=_by_task(tasks), attributes=known, key=_known_by(known),
        told=f"{told}; {', '.join(known)}", item=place if labels else "",
    )  # fmt: skip


def some_alternatives(dice: Dice) -> Made:
    """A row a labelled alternative that is described; the first has a fee, of which the others have empty cells."""
    labels = dice.pick((("bus", "car", "rail"), ("tea", "milk", "juice")))
    tasks, names = _profiles(dice, labels, len(labels), own=LABEL)
    fees = {profile: (*profile, ("fee", dice.random.choice((1, 2, 3)))) for task in tasks for profile in task.shown
            if dict(profile)[LABEL] == labels[0]}  # fmt: skip
    tasks = [
        replace(task, shown=tuple(fees.get(one, one) for one in task.shown),
                levels=tuple(tuple(fees.get(one, one) for one in level) for level in task.levels))
        for task in tasks
    ]  # fmt: skip
    columns, named = _frame(dice, tasks)
    place = dice.pick(("alt", "alternative", "mode"))
    for name, of in ((place, LABEL), *((one, one) for one in (*names[1:], "fee"))):
        columns[name] = [dict(one).get(of) for task in tasks for one in task.shown]
    columns[dice.pick(("choice", "chosen"))] = [int(not task.level_of(one)) for task in tasks for one in task.shown]
    known = [*_vary(tasks, names), "fee"]
    return _set_table(
        dice, "long, a fee of one alternative", tasks, columns, named, pools=_by_task(tasks), attributes=known,
        key=_known_by(known), told=f"{place}; {', '.join(known)}", item=place,
    )  # fmt: skip


def wide_profiles(dice: Dice) -> Made:
    """A row a task, with columns of what describes each alternative, and the number or the name of the chosen one."""
    labels = dice.pick((None, ("bus", "car", "rail"), ("TRAIN", "SM", "CAR")))
    size = len(labels) if labels else dice.pick((2, 3, 4))
    own = LABEL
    tasks, names = _profiles(dice, labels, size, own=own)
    form = dice.pick(("{name}_{alt}", "{name}.{alt}", "{alt}_{name}", "{name}{alt}"))
    alts = list(labels or map(str, range(1, size + 1)))
    start = 1
    if not labels:
        if form == "{alt}_{name}":
            form = "alt{alt}_{name}"
        if dice.seldom():
            alts = list("ABCD"[:size])
            form = dice.pick(("{name}_{alt}", "{alt}_{name}"))
        elif dice.seldom():
            start = 0
    elif form == "{name}{alt}":
        form = "{name}_{alt}"
    how = dice.pick(("number", "name") if labels or alts[0] == "A" else ("number", "number from 0", "by name"))
    chosen = {task.shown.index(task.levels[0][0]) for task in tasks}
    if (how == "number from 0" and 0 not in chosen) or (start == 0 and size - 1 not in chosen):
        how = "by name"  # as no number tells that it is none of a name
    columns: dict[str, list[Any]] = {}
    who, listed = _name(dice, WHO, WHO_ELSE)
    columns[who] = _typed([task.who for task in tasks])
    if dice.even():
        columns[dice.pick(TASK)] = [task.number for task in tasks]
    families = []
    for name in names[bool(labels) :]:
        for k, alt in enumerate(alts):
            shown = alt if labels or alts[0] == "A" else str(int(alt) - 1 + start)
            families.append(form.format(name=name, alt=shown))
            columns[families[-1]] = [dict(task.shown[k])[name] for task in tasks]
    best = [task.shown.index(task.levels[0][0]) for task in tasks]
    if dice.seldom() and size > 2:  # one of the others was not there
        word = dice.pick(("av", "AV", "available"))
        gone = [dice.random.choice([k for k in range(size) if k != one] + [-1]) for one in best]
        for k, alt in enumerate(alts):
            shown = alt if labels or alts[0] == "A" else str(int(alt) - 1 + start)
            families.append(form.format(name=word, alt=shown))
            columns[families[-1]] = [int(k != one) for one in gone]
        tasks = [_without(task, one) for task, one in zip(tasks, gone, strict=True)]
    answer, _ = _name(dice, ("choice", "chosen", "CHOICE", "answer"), ("blorp", "genommen"))
    if how == "name" or (how == "by name" and alts[0] == "A"):
        columns[answer] = [alts[one] for one in best]
    elif how == "number from 0":
        columns[answer] = best
    elif how == "by name" and not labels:
        columns[answer] = [one + start for one in best]
    else:
        columns[answer] = [one + 1 for one in best]
    known = _vary(tasks, names)
    truth_named = [True] if listed else [True, False]
    return _set_table(
        dice, "wide, profiles", tasks, columns, truth_named, pools=FURTHER, attributes=tuple(known),
        key=_known_by(known), told=f"{form}, {how}, columns from {start}", in_order=families if labels else (),
    )  # fmt: skip


_SHOWN = ("item", "alt", "option", "candidate", "statement", "thing", "a", "zut")


def listed_choices(dice: Dice) -> Made:
    """A row a task with the items that were shown, in columns or in a list, and the best, or the best and worst."""
    kind = dice.pick(("best", "best_worst"))
    tasks = _tasks(dice, kind, size=dice.pick((3, 4)))
    size = len(tasks[0].shown)
    columns: dict[str, list[Any]] = {}
    named = [True]
    if dice.often():
        who, listed = _name(dice, WHO, WHO_ELSE)
        columns[who] = _typed([task.who for task in tasks])
        named = [True] if listed else [True, False]
    else:
        named = [False]
    if dice.even():
        columns[dice.pick(TASK)] = [task.number for task in tasks]
    if dice.seldom():
        columns[dice.pick(("alternatives", "shown", "items"))] = ["|".join(task.shown) for task in tasks]
    else:
        stem, sign = dice.pick(_SHOWN), dice.pick(("", "_", " "))
        for k in range(size):
            columns[f"{stem}{sign}{k + 1}"] = _typed([task.shown[k] for task in tasks])
    by_place = dice.seldom()

    def said(level: int) -> list[Any]:
        chosen = [task.levels[level][0] for task in tasks]
        return [1 + t.shown.index(c) for t, c in zip(tasks, chosen, strict=True)] if by_place else _typed(chosen)

    if kind == "best":
        name, _ = _name(dice, ("winner", "choice", "chosen", "answer"), ("blorp", "favourite"))
        columns[name] = said(0)
    else:
        one, two = dice.pick((("best", "worst"), ("most", "least"), ("Most", "Least"), ("top", "flop")))
        columns[one], columns[two] = said(0), said(-1)
    # Numbers of places where items are numbers too can be either.
    told = f"{kind}, {'by place' if by_place else 'by name'}"
    return _set_table(dice, "listed choices", tasks, columns, named, pools=FURTHER, told=told)


_NTH = ("first", "second", "third", "fourth", "fifth")


def orders(dice: Dice) -> Made:
    """A row an order: places in columns, a text, ranks or ratings by item in columns."""
    form = dice.pick(("columns", "words", "text", "list", "ranks", "ratings", "matrix", "nominal"))
    kind = "rating" if form in ("ratings", "matrix") else "order"
    whole = form in ("ranks", "ratings", "matrix", "nominal")
    tasks = _tasks(dice, kind, alone=dice.even() or form == "matrix", whole=whole)
    columns: dict[str, list[Any]] = {}
    who, listed = _name(dice, WHO, WHO_ELSE)
    columns[who] = _typed([task.who for task in tasks])
    named = [True] if listed else [True, False]
    size, things = len(tasks[0].shown), sorted(tasks[0].shown)
    told = form
    if form in ("columns", "words"):
        stem = dice.pick(("rank", "place", "choice", "pref", "top", "rang", "wahl"))
        sign = dice.pick(("", "_"))
        for k in range(size):
            name = _NTH[k] if form == "words" else f"{stem}{sign}{k + 1}"
            columns[name] = _typed([task.levels[k][0] for task in tasks])
        told = f"{form} {stem}" if form == "columns" else form
    elif form == "text":
        name, _ = _name(dice, ("ballot", "ranking", "order", "preferences"), ("reihe", "blorp"))
        columns[name] = [" > ".join(" = ".join(level) for level in task.levels) for task in tasks]
    elif form == "list":
        columns[dice.pick(("ranking", "order", "ballot"))] = [[level[0] for level in task.levels] for task in tasks]
    elif form == "ranks":
        stem = dice.pick(("rank", "place", "rang"))
        for one in things:
            columns[f"{stem}_{one}"] = [1 + task.level_of(one) for task in tasks]
        told = f"ranks {stem}"
    elif form in ("ratings", "matrix"):
        stem, way = dice.pick((("rating", 1), ("score", 1), ("stars", 1), ("grade", -1), ("mark", -1), ("zonk", -1)))
        way = 1 if form == "matrix" else way
        for one in things:
            values = [6 - task.level_of(one) if way > 0 else 1 + task.level_of(one) for task in tasks]
            columns[one if form == "matrix" else f"{stem}_{one}"] = values
        told = f"{form} {stem} {way:+d}"
    else:
        words = [f"{word.title()} Choice" for word in _NTH] + ["Sixth Choice"]
        for one in things:
            columns[one] = [words[task.level_of(one)] for task in tasks]
    return _set_table(dice, "orders", tasks, columns, named, pools=FURTHER, told=told)


def approvals(dice: Dice) -> Made:
    """Votes of people on statements: -1, 0 and 1 in a row each, or a column a statement."""
    things, crowd = _things(dice), dice.pick(PEOPLE)[: dice.pick((3, 5))]
    tasks, cast = [], []
    for who in crowd:
        shown = dice.random.sample(things, dice.random.randint(2, len(things)))
        votes = {one: dice.random.choice((1, 0, -1)) for one in shown}
        levels = tuple(tuple(one for one in shown if votes[one] == way) for way in (1, 0, -1))
        tasks.append(Task(who, 1, tuple(shown), tuple(level for level in levels if level)))
        cast.append(votes)
    truth = of_tasks(tasks)
    if not truth:
        return approvals(Dice(dice.random.randint(0, 10**6)))
    if dice.even():
        name = dice.pick(("comment-id", "statement", "item"))
        columns: dict[str, list[Any]] = {
            dice.pick(("voter-id", "user", "participant")): [t.who for t in tasks for _ in t.shown],
            name: _typed([one for t in tasks for one in t.shown]),
            "vote": [votes[one] for t, votes in zip(tasks, cast, strict=True) for one in t.shown],
        }
        pools = (("timestamp", FURTHER[2][1]), ("datetime", FURTHER[1][1]))
    else:
        columns = {dice.pick(("participant", "user")): [t.who for t in tasks]}
        for one in things:
            columns[one] = [votes.get(one) for votes in cast]
        pools = (("group-id", _some(0, 1)), ("n-votes", lambda *_: [len(t.shown) for t in tasks]),
                 ("n-agree", lambda *_: [sum(vote > 0 for vote in votes.values()) for votes in cast]))  # fmt: skip
    return _with_further(dice, Made("votes on statements", columns, (truth,)), pools, 2)


def win_matrix(dice: Dice) -> Made:
    """How often the item of the row won over that of the column, or the other way: no word says which."""
    things = list(_things(dice))
    way = dice.pick((1, -1))
    wins = {(one, two): dice.random.randint(0, 9) for one in things for two in things if one != two}
    answers = [Pair("", one, two, 1, n) for (one, two), n in wins.items() if n]
    first, said = dice.pick((("item", 0), ("", 0), ("winner", 1), ("row", 0)))
    way = 1 if said else way
    columns: dict[str, list[Any]] = {first: list(things)}
    blank = dice.pick((0, None, "-"))
    for two in things:
        cells = [blank if one == two else wins[(one, two) if way > 0 else (two, one)] for one in things]
        columns[two] = cells if blank != "-" else [str(cell) for cell in cells]
    if first in things:
        return win_matrix(Dice(dice.random.randint(0, 10**6)))
    return Made("matrix of wins", columns, (of_pairs(answers, False),), told=f"{way:+d}")


# --- no answers at all ------------------------------------------------------------------------------------------------


def no_answers(dice: Dice) -> Made:
    """Tables that hold no answer about what is better: whatever is read of them is wrong."""
    n = dice.pick((3, 6, 12, 24))
    people = [f"u{row}" for row in range(n)]

    def some(*values: Any) -> list[Any]:
        return [dice.random.choice(values) for _ in range(n)]

    columns: dict[str, list[Any]] = dice.pick((
        {"id": list(range(n)), "html": [f"<b>{row}</b> y" for row in range(n)]},
        {"user": people, "choice_1": some("tea", "milk"), "choice_2": some("red", "blue"), "choice_3": some("bus",
         "car")},
        {"id": list(range(n)), "plan": some("<10k: 5%", ">375k: 5%"), "cost": some(1, 2, 3)},
        {"user": people, "age": some(20, 30, 40), "city": some("Ulm", "Bonn"), "rating": some(1, 2, 3, 4, 5)},
        {"user": people, "age": some(20, 30, 40), "score": some(1, 2, 3)},
        {"participant": people, "first": some("Ann", "Bob"), "last": some("Lee", "Ray")},
        {"user": people, "question_1": some(1, 2, 3, 4, 5), "question_2": some(1, 2, 3, 4, 5)},
        {"id": list(range(n)), "name": people, "position": some("back", "front"), "rank": some(1, 2, 3)},
        {"date": [f"2024-01-{1 + row:02d}" for row in range(n)], "x": some(1, 2), "y": some(0, 1)},
        {"user": people, "task_1": some("yes", "no"), "task_2": some("yes", "no"), "time_1": some(3, 4),
         "time_2": some(3, 4)},
    ))  # fmt: skip
    return _with_further(dice, Made("no answers", columns, (), told=", ".join(columns)), FURTHER[:9], 2)


LAYOUTS: dict[str, Callable[[Dice], Made]] = {
    make.__name__: make
    for make in (
        winner_by_name, side_words, unknown_words, graded_words, signed, on_a_scale, zero_one, half_points, one_to_two,
        flags_of_sides, won_and_lost, two_scores, counts_of_sides, codes, weighted, column_an_annotator,
        both_in_one_column, several_judges_a_row, taken_apart, long_items, ratings, long_profiles, wide_profiles,
        some_alternatives, listed_choices, orders, approvals, win_matrix, no_answers,
    )
}  # fmt: skip


def made(layout: str, dice: Dice) -> Made:
    """A table of a layout."""
    return LAYOUTS[layout](dice)
