"""Words in use for columns and what they hold: who answered, the two sides, the answer, weights, tasks, items."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


Kind = Literal["pairs", "best", "best_worst", "order", "rank", "rating", "approval"]

# --- who answered -----------------------------------------------------------------------------------------------------

_PERSON = (
    "user", "worker", "judge", "annotator", "rater", "participant", "respondent", "person", "voter", "observer",
    "listener", "viewer", "assessor", "evaluator", "labeler", "labeller", "grader", "marker", "examiner", "reviewer",
    "juror", "subject", "panelist", "customer", "individual", "household",
)  # fmt: skip
# The first with a column in a table are those who answered; two of one line may both be, and it is asked.
PEOPLE_BY_RANK: tuple[tuple[str, ...], ...] = (
    (*(name for word in _PERSON for name in (word, f"{word}_id", f"{word}_name")), "uid", "sys_respnum", "respnum",
     "resp_id", "respid", "resp", "hhid"),
    ("visitor", "visitor_id", "public_username"),
    ("session_id", "session_hash"),
)  # fmt: skip
PEOPLE = tuple(name for names in PEOPLE_BY_RANK for name in names)
# In a table of sets, and of people, "id" is theirs; in one of pairs it numbers the rows.
PEOPLE_OF_SETS = (*PEOPLE, "id")
PEOPLE_OF_TABLES = (*PEOPLE_OF_SETS, "name")

# --- items, tasks, weights --------------------------------------------------------------------------------------------

ITEM = ("item", "item_id", "id", "model", "name")
BOTH_ITEMS = ("cmp_key", "comparison", "pair", "pair_key", "matchup")
# With these a place is one in an order, and not on the screen.
CONTESTANTS = ("player", "team", "contestant", "competitor", "driver", "athlete", "horse")
# Names of things with an id of their own, and of places in a task.
IDENTIFIED = (
    "item", "item_id", "product", "product_id", "model", "candidate", "candidate_id", "movie", "movie_id", "title",
    "object", "stimulus", "name", "brand_id", "comment_id", "statement", "statement_id", *CONTESTANTS,
)  # fmt: skip
PLACED = (
    "alternative", "alternative_id", "alt", "alt_id", "option", "option_id", "concept", "profile", "mode",
)  # fmt: skip
AVAILABLE = ("available", "availability", "avail", "av")

TASK = ("task", "task_id", "choice_set", "choice_set_id", "choice_id")
TASKS = (
    *TASK, "chid", "obs_id", "obs", "observation", "question", "question_id", "ques", "qes", "qid", "scenario",
    "situation", "choice_situation", "occasion", "case", "case_id", "set", "set_id", "sp_task", "block_task", "ballot",
    "game", "game_id", "match", "match_id", "race", "heat",
)  # fmt: skip
# Of which the rows are one choice; a task may be a topic.
CHOICE_TASK = tuple(name for name in TASK if name != "task")
WEIGHT = ("weight", "count")
CRITERION = ("criterion",)  # what was asked about the items, where several things were
_POLL = frozenset(("user", "question", "time", "shown_ms"))  # columns of every export of answers of a poll
OPEN_WEIGHT = ("count",)  # how often something was answered, or anything that was counted

# --- answers ----------------------------------------------------------------------------------------------------------

WINNER = (
    "winner", "label", "chosen", "choice", "outcome", "result", "preferred", "preference", "chosen_model_name", "vote",
)  # fmt: skip
CHOSEN = (
    "chosen", "choice", "is_chosen", "selected", "picked", "choose", "chose", "pick", "picks",
    "selection", "is_selected", "response", "y", "depvar", "decision", "answer",
    *(name for name in WINNER if name not in ("chosen", "choice")),
)  # fmt: skip
APPROVED = ("approved", "approval", "approve", "approves")
RANKED = ("rank", "ranking", "place", "position")
RATED = ("rating", "ratings", "score", "stars", "points", "grade", "mark", "marks", "penalty", "penalties")
# Of these nobody knows which end is good: school marks, points against somebody, places.
EITHER_END = ("grade", "grades", "mark", "marks", "penalty", "penalties", "place", "position", "cost", "errors", "loss")
NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
NUMBERED = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
BEST = ("best", "most", "best_item", "most_important", "top")
WORST = ("worst", "least", "worst_item", "least_important", "flop")
# In the order in which they are looked for: a conjoint study may have an attribute called rating.
KIND_OF: dict[Kind, tuple[str, ...]] = {
    "best": CHOSEN,
    "approval": APPROVED,
    "rank": (*RANKED, "tier"),
    "rating": RATED,
}
YES, NO = ("1", "true", "yes", "y", "x", "chosen"), ("0", "false", "no", "n", "not chosen")

_SEPARATORS = str.maketrans("", "", "_-. ")


@lru_cache(1 << 16)
def plain(name: str) -> str:
    """The name of a column without case, separators and spaces."""
    return name.strip().lower().translate(_SEPARATORS)


def is_called(name: str, *words: Sequence[str]) -> bool:
    """Whether a column is called by one of some words, whatever its case and separators."""
    return any(plain(name) == plain(word) for some in words for word in some)


def all_named(names: Sequence[str], words: Iterable[str]) -> list[str]:
    """Columns called by some words, in the order of the words, whatever their case and separators."""
    known = {plain(name): name for name in reversed(names)}
    return list(dict.fromkeys(known[plain(word)] for word in words if plain(word) in known))


def guess_one(names: Sequence[str], words: Iterable[str]) -> str | None:
    """The first of the columns called by some words, whatever their case and separators."""
    return next(iter(all_named(names, words)), None)


def is_poll(names: Iterable[str]) -> bool:
    """Whether a table has the columns that a poll exports, whatever was asked."""
    return _POLL.issubset(names)


def best_and_worst(names: Sequence[str]) -> tuple[str, str] | None:
    """Columns of the best and of the worst, None unless there are both."""
    best, worst = guess_one(names, BEST), guess_one(names, WORST)
    return None if best is None or worst is None else (best, worst)


def places_between(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the second, the third ..., as they stand between one of the best and one of the worst."""
    after = ("", "_pref", "_preference", "_choice", "_best", "_place", "_rank")
    found = (guess_one(names, [f"{word}{end}" for word in words for end in after])
             for words in list(zip(NTH, NUMBERED, strict=True))[1:])  # fmt: skip
    return tuple(itertools.takewhile(lambda name: name is not None, found))  # type: ignore[arg-type]


# --- the two sides ----------------------------------------------------------------------------------------------------

# Words for the two sides, and for a third, with which more than two were shown.
_SIDES = (
    ("left", "right", ("middle", "center", "centre")), ("a", "b", ("c",)), ("1", "2", ("0", "3")), ("0", "1", ("2",)),
    ("first", "second", ("third",)), ("home", "away", ()), ("white", "black", ()),
)  # fmt: skip
_WON_LOST = (
    ("winner", "loser"), ("winning", "losing"), ("won", "lost"), ("chosen", "rejected"), ("chosen", "not chosen"),
    ("chosen", "notchosen"), ("chosen", "unchosen"), ("chosen", "other"), ("preferred", "rejected"),
    ("preferred", "dispreferred"), ("preferred", "not preferred"), ("preferred", "other"), ("selected", "rejected"),
    ("selected", "not selected"), ("selected", "unselected"), ("picked", "not picked"), ("better", "worse"),
)  # fmt: skip
# What items are called, and what tells them apart.
_ITEMS = _set(
    "item model option alternative video generator system candidate player team image img picture photo audio "
    "clip stimulus condition product object concept project map script essay proposal statement idea "
    "algorithm method codec policy agent bot assistant llm engine song track movie book word design entity "
    "entry contestant competitor fighter club sample variant treatment choice side party portfolio sentence "
    "voice"
)
_IDS = _set("id ids name names key code uid uuid title ident identifier")
# What somebody wrote or made: the items only where nothing else could be.
_WORKS = _set(
    "response text answer output completion content summary caption message reply generation translation url "
    "path link file filename src"
)
# What is said of a side, and no item.
MEASURES = _set(
    "score scores rating ratings rate stars grade mark points goals penalty rank ranking place position pos elo "
    "glicko seed length len tokens chars characters count counts num number n votes vote wins win won loses "
    "draws prob probability p logprob price cost time duration seconds rt latency date year age weight weights "
    "size width height temperature quality level tie ties mean sd std var error correct confidence strength "
    "attribute feature is has was odds better best worst worse likes clicks views shown seen order index turns "
    "chose chosen selected preferred picked winner loser"
)
_KNOWN = _ITEMS | _WORKS | MEASURES
# Numbered, these are places of an order, or several questions.
PLACES = _set("choice pref preference top order rank place position vote response answer")
_LONGEST = 100  # characters of a name that tells anything
_TOKEN = re.compile(r"\d+|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+")


@lru_cache(1 << 16)
def tokens(name: str) -> tuple[str, ...]:
    """Words and numbers that a name is made of, in small letters: home and team of HomeTeam and home_team."""
    return tuple(part.lower() for part in _TOKEN.findall(name))


@dataclass(frozen=True, slots=True)
class Family:
    """Two columns whose names differ by the word of a side alone, such as model_a and model_b."""

    left: str
    right: str
    sides: tuple[str, str]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def stem(self) -> tuple[str, ...]:
        """What the names share."""
        return self.before + self.after

    @property
    def rank(self) -> int | None:
        """How surely items stand in it: 0 by its name, 1 as ids, 2 as texts, 3 perhaps; None: they do not."""
        stem = set(self.stem)
        if stem & MEASURES or stem & {*_PERSON} or (self.sides[0] in ("0", "1", "first") and stem & PLACES):
            return None
        if stem <= _ITEMS | _IDS:
            return 0
        if stem & _IDS:
            return 1
        return 2 if stem <= _ITEMS | _WORKS else 3


def pair_families(names: Sequence[str], *sides: tuple[str, str]) -> list[Family]:
    """Two columns for the two sides each, such as left and right, by names alone; ``sides``: other words for them."""
    return list(_families(tuple(names), tuple((*one, ()) for one in sides) or _SIDES))


def won_and_lost_families(names: Sequence[str]) -> list[Family]:
    """Columns of the winner and of the loser each, by their names alone."""
    return pair_families(names, *_WON_LOST)


def sides_of(left: str, right: str) -> tuple[str, str] | None:
    """The words by which two names differ, None if it is not one of each."""
    for family in pair_families([left, right]):
        if (family.left, family.right) == (left, right):
            return family.sides
    one, two = tokens(left), tokens(right)
    differ = [(a, b) for a, b in zip(one, two, strict=False) if a != b]
    return differ[0] if len(one) == len(two) and len(differ) == 1 else None


@lru_cache(64)
def _families(names: tuple[str, ...], sides: tuple[tuple[str, str, tuple[str, ...]], ...]) -> tuple[Family, ...]:
    words = [word for one, two, _ in sides for word in (one, two)]
    spelled: dict[tuple[str, ...], str] = {}
    for name in sorted((name for name in names if len(name) <= _LONGEST), reverse=True):
        spelled.update(dict.fromkeys(_spellings(name, words), name))
    found: dict[tuple[str, str], Family] = {}
    for form, left in spelled.items():
        for place, token in enumerate(form):
            for one, two, others in sides:
                if token != one:
                    continue
                before, after = form[:place], form[place + 1 :]
                right = spelled.get((*before, *two.split(), *after), left)
                more = any((*before, other, *after) in spelled for other in others)
                if right != left and not more:
                    found.setdefault((left, right), Family(left, right, (one, two), before, after))
    return tuple(found[key] for key in sorted(found))


def _spellings(name: str, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The words of a name, also with that of a side apart where it is written together with another."""
    form = tokens(name)
    if not form:
        return
    yield form
    for word in words:
        behind, before = form[0].removeprefix(word), form[-1].removesuffix(word)
        if behind not in ("", form[0]) and (len(word) > 3 or behind in _KNOWN):
            yield (word, behind, *form[1:])
        if before not in ("", form[-1]) and (len(word) > 3 or before in _KNOWN):
            yield (*form[:-1], before, word)


def likely_items(families: Sequence[Family]) -> list[Family]:
    """Those of the families in which items stand most surely; of the ids and the names of the same the names."""
    ranks = [family.rank for family in families if family.rank is not None]
    found = [family for family in families if ranks and family.rank == min(ranks)]
    if all(same_thing(found[0].stem, one.stem) and found[0].sides == one.sides for one in found):
        return sorted(found, key=lambda one: "name" not in one.stem)[:1]
    return found


_OPPONENTS = ("opponent", "opponent_id", "opponent_name", "against", "versus", "vs", "rival")


def opponents(names: Sequence[str]) -> tuple[str | None, list[str]]:
    """The column of the other item of each row, as an opponent, and those that are called as items beside it."""
    other = guess_one(names, _OPPONENTS)
    return other, [] if other is None else [
        name
        for name in names
        if name != other and (form := {*tokens(name)}) and form <= _ITEMS | _IDS and form & _ITEMS
    ]


def half_of_pair(name: str) -> tuple[str | None, str | None]:
    """A column that can only be that of the left, or of the right item, as one of the two; no bare letter is."""
    for one, two, _ in _SIDES[:2]:
        for form in _spellings(name, (one, two)):
            side = next((word for word in (one, two) if word in form), None)
            rest = {*form} - {side}
            if side is not None and rest <= _ITEMS | _IDS and (rest or len(side) > 1) and len(form) == len(rest) + 1:
                return (name, None) if side == one else (None, name)
    return None, None


# --- columns of the answer --------------------------------------------------------------------------------------------

_ANSWERED = _set(
    "winner winning won chosen chose preferred preference selected picked better choice verdict outcome result "
    "decision judgment judgement"
)
_RESULT = ("pick", "chose", "res", "ftr", "cmos", "ccr", "ccr_score", "cmos_score", "selection", "answer")


def answer_columns(names: Sequence[str]) -> list[str]:
    """Columns that may say who won, in the order of how surely."""
    paired = {name for family in pair_families(names) for name in (family.left, family.right)}
    other = MEASURES - _ANSWERED - {"is"}
    perhaps = [
        name for name in sorted({*names} - paired)
        if (form := {*tokens(name)}) & _ANSWERED and not form & other and (form & _IDS or not form & _WORKS)
        and not is_called(name, TASK)
    ]  # fmt: skip
    return list(dict.fromkeys([*all_named(names, (*WINNER, *_RESULT)), *perhaps]))


# Columns for both sides: whether it won; how often; how good it was.
FLAGGED = _set("winner wins won win chose chosen selected preferred picked better is")
COUNTED = _set("votes vote wins count counts num number n times chosen preferred likes")
_HIGH = _set("score scores rating ratings stars star utility goals likes quality")
_LOW = _set("rank ranks ranking place position error errors loss")
_OPEN = _set("mark marks grade grades penalty penalties points")
SCORED = _HIGH | _LOW | _OPEN
OF_ANY = _set("mean avg average total final overall")


# What is measured, counted or noted of a row, and no answer.
_OF_ROWS = _set(
    "time timestamp date year month day hour week seconds duration latency age row line batch round session trial "
    "block wave version seed length len tokens words chars price cost page language lang country city gender sex "
    "email ip uuid comment note notes text url prompt question category topic domain arm group cohort"
)
NO_ANSWER = _OF_ROWS | _IDS


def same_thing(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the words of two names are those of the id and of the name of the same."""
    return {*one} - _IDS == {*other} - _IDS


def tells(name: str, words: frozenset[str]) -> bool:
    """Whether a column is called by any of some words."""
    return not words.isdisjoint(tokens(name))


def tells_works(name: str) -> bool:
    """Whether a column is called as items, or what they wrote or made."""
    return {*tokens(name)} <= _ITEMS | _IDS | _WORKS


# What is noted when somebody answers, and describes nothing that was shown; what may be, or be a time on the way.
_NOTED = _set(
    "timestamp datetime date comment comments note notes remark remarks html uuid guid email ip url session turn "
    "latency rt ms seen browser device"
)
_WRITTEN = _set(
    "prompt conversation messages html comment comments note notes remark remarks description body abstract"
)
OF_TIME = _set("time year month day hour minute minutes week seconds duration")
OFFERED = _set("price cost fare attribute attr att feature x")


_MARKS = _set("valid invalid spam flagged excluded exclude discarded rejected bot duplicate test")


def marks_rows(name: str) -> bool:
    """Whether a column is called as what tells which rows are to be used."""
    form = {*tokens(name)} - {"is"}
    return bool(form) and form <= _MARKS


def tells_text(name: str) -> bool:
    """Whether a column is called as what somebody wrote, which may be long."""
    return bool({*tokens(name)} & (_WORKS | _WRITTEN))


def tells_note(name: str) -> bool:
    """Whether a column is called as what is noted of an answer, such as its date or a comment."""
    form = {*tokens(name)}
    return bool(form & _NOTED) or {"time", "taken"} <= form or {"response", "time"} <= form


def good_end(name: str) -> Literal["high", "low"] | None:
    """Which end of the numbers in a column is good, by its name; None where it does not tell."""
    words = {*tokens(name)}
    if words & (_OPEN | _LOW):
        return None
    return "high" if words & _HIGH else None


# --- words of the answer ----------------------------------------------------------------------------------------------

TIE_WORDS = frozenset({
    "tie", "ties", "tied", "equal", "equals", "even", "draw", "drawn", "same", "neither", "both", "both equal",
    "both_equal", "both_good", "both_bad", "both good", "both bad", "both-good", "both-bad", "bothgood", "bothbad",
    "tie (bothbad)", "tie (both bad)", "tie (both good)", "no preference", "no_preference", "=", "½",
})  # fmt: skip
BAD_WORDS = frozenset(word for word in TIE_WORDS if "bad" in word) | {"neither"}
_GENERAL = (("left", "right"), ("l", "r"), ("a", "b"), ("1", "2"), ("first", "second"))
# A grade or a mark, of which two values are no two sides.
GRADED = _set("rating ratings likert scale slider score grade mark strength agreement stars")


def squeezed(word: str) -> str:
    """A word without case, and if it is no number without separators: "mapa" of mapA, map_a and "Map A"."""
    short = word.strip().lower()
    return re.sub(r"[\s_.-]+", "", short) if any(c.isalpha() for c in short) else short


@dataclass(frozen=True)
class SideWords:
    """Words for the two sides of a table, squeezed: 1 the left and -1 the right one; and those for a draw."""

    sign: dict[str, int]
    ties: frozenset[str]


@cache
def _signs(one: str, two: str, alone: bool) -> dict[str, int]:
    """Signs of two words for the sides with the nouns that may stand beside them, or ``alone``; not to be changed."""
    pairs = [(noun + one, noun + two) for noun in ("",) * alone + (*_ITEMS, *_WORKS)]
    pairs += [(one + noun, two + noun) for noun in _ITEMS | _WORKS if len(one) > 3]
    return {word: sign for pair in pairs for word, sign in zip(pair, (1, -1), strict=True)}


def side_words(left: str, right: str, left_word: Iterable[object] = (), right_word: Iterable[object] = ()) -> SideWords:
    """The words for the sides by the names of the columns of items, those in general use, and those that are given."""
    own: dict[str, int] = {}
    ties = TIE_WORDS
    family = next((one for one in pair_families([left, right]) if (one.left, one.right) == (left, right)), None)
    sides = sides_of(left, right)
    if family is None and sides is not None:
        family = next((one for one in pair_families([left, right], sides) if one.left == left), None)
    for sign, name, place in ((-1, right, 1), (1, left, 0)):
        if family is not None:
            word = family.sides[place]
            before, after = "".join(family.before), "".join(family.after)
            initial = word[0] if len(word) > 3 and family.sides[0][0] != family.sides[1][0] else word
            own |= dict.fromkeys(map(squeezed, (word, initial, before + word, word + after)), sign)
        own[squeezed(name)] = sign
    if family is not None and family.sides[0] in ("home", "white"):
        ties |= {"d", "x"}
    sign_of: dict[str, int] = {}
    for one, two in _GENERAL:
        is_other = (one in own or two in own) and (own.get(one), own.get(two)) != (1, -1)
        sign_of |= _signs(one, two, not is_other)
    sign_of |= own
    sign_of |= {squeezed(str(word)): sign for words, sign in ((left_word, 1), (right_word, -1)) for word in words}
    return SideWords(sign_of, ties)


def could_be_side(word: str) -> bool:
    """Whether a word may stand for a side, of columns of other names."""
    parts = {*tokens(word)}
    return (
        squeezed(word) in side_words("left", "right").sign
        or any(parts & {one, two} for one, two, _ in _SIDES)
        or len(squeezed(word)) == 1
    )


def positive_side(column: str, left: str, right: str) -> Literal["left", "right"] | None:
    """The side for which positive numbers speak, by the name of their column, such as left_minus_right."""
    form = tokens(column)
    if not {*form} & {"minus", "over", "better", "advantage", "preferred"}:
        return None
    words = side_words(left, right).sign
    first = next((words[token] for token in form if token in words), None)
    return None if first is None else "left" if first > 0 else "right"
