"""Pairs of any columns: by pattern, words of sides by the columns' own names, and what is asked instead of guessed."""

from __future__ import annotations

import polars as pl
import pytest

from answers import refused, tasks_of
from predilect.data import Comparisons
from predilect.data.read.names import all_named, answer_columns, side_words
from predilect.errors import DataError

A, B = ["tea", "milk", "rum", "tea"], ["milk", "rum", "tea", "milk"]
THREE = (["x", "y", "z"], ["y", "z", "x"])
TWO_AND_A_TIE = [(None, "x = z"), (None, "x > y"), (None, "z > y")]  # left, right, tie


def read(table, **options):
    return Comparisons.from_frame(table, **options)


def asked(table, **options):
    with pytest.raises(DataError) as told:
        read(table, **options)
    return str(told.value)


def pairs(left, right, **more):
    return {left: THREE[0], right: THREE[1], **more}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("left", "right"), ("model_a", "model_b"), ("video_A", "video_B"), ("project_a", "project_b"),
        ("map_a_layout_id", "map_b_layout_id"), ("HomeTeam", "AwayTeam"), ("generator_1", "generator_2"),
        ("item1", "item2"), ("condition_A", "condition_B"), ("a_text", "b_text"), ("White", "Black"),
        ("first_song", "second_song"), ("Left Choice ID", "Right Choice ID"), ("modela", "modelb"), ("A", "B"),
        ("kelmLeft", "kelmRight"), ("model.a.name", "model.b.name"),
    ],
)  # fmt: skip
def test_columns_of_pairs_are_found_by_pattern_and_name_their_own_sides(left, right):
    for winner in ([left, right, "tie"], ["x", "z", "tie"]):
        found = read(pairs(left, right, winner=winner))
        assert tasks_of(found) == TWO_AND_A_TIE, winner
        assert (found.intake.columns["left"], found.intake.columns["right"]) == (left, right)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("map_a_layout_id", "map_b_layout_id"), ("mapA", "mapB")),
        (("model_a_name", "model_b_name"), ("model_a", "Model B")),
        (("generator_1", "generator_2"), ("1", "2")),
        (("HomeTeam", "AwayTeam"), ("H", "A")),
        (("home", "away"), ("home wins", "away wins")),
        (("White", "Black"), ("white", "B")),
        (("left", "right"), ("A is better", "B is better")),
        (("left", "right"), ("response_a", "response_b")),
        (("model_a", "model_b"), ("l", "r")),
        (("White", "Black"), ("1-0", "0-1")),
        (("team1", "team2"), ("13-8", "7:13")),
        (("left", "right"), ("A>B", "B>A")),
    ],
)
def test_words_of_sides_follow_from_the_columns(columns, words):
    assert tasks_of(read(pairs(*columns, winner=[*words, "tie"]))) == TWO_AND_A_TIE


def test_the_answer_may_be_called_so_and_who_may_be_who_pays():
    rows = {"user": ["u", "v"], "left": ["x", "y"], "right": ["y", "x"], "answer": ["left", "left"], "who": [1, 2]}
    found = Comparisons.from_frame(rows)
    assert found.reading.columns["answer"] == ("answer",)
    assert found.reading.columns["who"] == ("user",)
    assert found.reading.unused == ("who",)


def test_draws_of_games_are_ties():
    for columns, words in (
        (("HomeTeam", "AwayTeam"), ["H", "A", "D"]), (("home", "away"), ["H", "A", "X"]),
        (("White", "Black"), ["1-0", "0-1", "1/2-1/2"]), (("White", "Black"), ["1-0", "0-1", "½-½"]),
        (("model_a", "model_b"), ["A>>B", "B>>A", "A=B"]),
    ):  # fmt: skip
        assert tasks_of(read(pairs(*columns, result=words))) == TWO_AND_A_TIE
    # "A" is the away team, and no first one: a league does not come out upside down.
    assert side_words("home", "away").sign["a"] == -1
    assert "b" not in side_words("home", "away").sign


def test_marks_between_sides_are_grades():
    columns = {"model_a": ["x"] * 5, "model_b": [f"y{k}" for k in range(5)],
               "winner": ["A>>B", "A>B", "A=B", "B>A", "[[B>>A]]"]}  # fmt: skip
    found = read(columns)
    assert found.grades == ("better", "much better")
    assert found.code.tolist() == [3, 2, 0, -2, -3]
    named = read({**columns, "winner": ["A>>B", "A>B", "A=B", "B>A", "B>A"]}, reading={"grades": [">", ">>"]})
    assert named.code.tolist() == [3, 2, 0, -2, -2]


def test_other_words_for_sides_are_named():
    columns = pairs("left", "right", winner=["oben", "unten", "tie"])
    said = asked(columns)
    assert said.startswith(
        "the table can be read in 2 ways. Say which is meant. Row 1: x is preferred to y (who won by"
    )
    assert 'reading={"left_word": "oben", "right_word": "unten"}; or Row 1: y is preferred to x' in said
    assert said.endswith('reading={"left_word": "unten", "right_word": "oben"}.')
    assert tasks_of(read(columns, reading={"left_word": "oben", "right_word": ["unten"]})) == TWO_AND_A_TIE
    assert tasks_of(read(columns, reading={"left_word": "unten", "right_word": "oben"})) != TWO_AND_A_TIE
    said = asked(columns, reading={"left_word": "oben", "right_word": "unter"})
    assert 'reading={"right_word": "unter"} names a word that column "winner" never holds' in said
    assert 'Did you mean "unten"?' in said


def test_two_pairs_of_columns_that_both_may_be_items_are_asked_about():
    both = {**pairs("model_a", "model_b"), "system_a": list("pqr"), "system_b": list("qrp"), "winner": ["a", "b", "a"]}
    assert 'Row 1: x is preferred to y (who won by "winner"): columns={"left": "model_a", "right": "model_b"}' in asked(
        both
    )
    assert asked(both).endswith('columns={"left": "system_a", "right": "system_b"}.')
    assert read(both, columns={"left": "system_a"}).items.ids == ["p", "q", "r"]
    # What is said of the two sides is no item, nor are texts beside what has a name.
    more = {"response_a": ["u", "v", "w"], "response_b": ["k", "l", "m"], "elo_a": [1, 2, 3], "elo_b": [3, 2, 1],
            "seed1": [7, 8, 9], "seed2": [9, 8, 7], "score_a": [1, 2, 3], "score_b": [3, 2, 1]}  # fmt: skip
    assert asked({**both, **more}) == asked(both)
    found = read({**pairs("model_a", "model_b"), **more, "winner": ["a", "b", "a"]})
    assert (found.intake.columns["left"], found.intake.columns["winner"]) == ("model_a", "winner")
    # The name of what also has an id.
    named = {"model_a_id": [1, 2, 3], "model_b_id": [2, 3, 1], **pairs("model_a_name", "model_b_name")}
    assert read({**named, "winner": ["a", "b", "a"]}).items.ids == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("won", "lost"),
    [
        ("winner", "loser"), ("winner_id", "loser_id"), ("winning_team", "losing_team"), ("chosen", "rejected"),
        ("Candidate Chosen", "Candidate Not Chosen"), ("candidate.chosen", "candidate.not.chosen"),
        ("chosen", "notChosen"), ("preferred", "other"), ("better", "worse"), ("selected", "not_selected"),
    ],
)  # fmt: skip
def test_winners_and_losers_in_any_spelling(won, lost):
    more = {"judge": ["j", "j", "k"], "winner_rank": [1, 1, 2], "loser_rank": [2, 3, 3]}
    found = read({**pairs(won, lost), **more})
    assert tasks_of(found) == [("j", "x > y"), ("j", "y > z"), ("k", "z > x")]
    assert found.intake.no_sides == f"{won} and {lost} columns"


def test_winners_and_losers_of_any_name_are_named():
    columns = {**pairs("sieg", "flop"), "judge": ["j", "j", "k"]}
    assert tasks_of(read(columns, columns={"won": "sieg", "lost": "flop"}))[0] == ("j", "x > y")
    assert 'no column "flopp"' in asked(columns, columns={"won": "sieg", "lost": "flopp"})


def test_the_side_of_the_winner_stands_beside_winners_and_losers():
    columns = {"judge": list("jjk"), **pairs("candidate_chosen", "candidate_not_chosen"),
               "choice": ["right", "left", None]}  # fmt: skip
    found = read(columns)
    assert tasks_of(found) == [("j", "x > y"), ("j", "y > z"), ("k", "z > x")]
    assert found.intake.notes == ('"choice" says on which side the winner was shown.',)
    sides = {(found.items.ids[a], found.items.ids[b]): tuple(side)
             for a, b, side in zip(found.left, found.right, found.sides, strict=True)}  # fmt: skip
    assert sides == {("x", "y"): (0, 1), ("y", "z"): (1, 0), ("x", "z"): (0, 0)}
    other = {**columns, "choice": list("pqr")}
    assert "must say the side on which the winner was shown" in asked(other, columns={"answer": "choice"})
    assert read(other).sides is None


def test_two_ratings_of_a_pair_say_who_is_better_and_never_name_items():
    for one, two in (("score_a", "score_b"), ("rating1", "rating2"), ("stars_left", "stars_right")):
        columns = {**pairs("model_a", "model_b"), one: [5, 2, 3], two: [3, 4, 3]}
        found = read(columns)
        assert tasks_of(found) == TWO_AND_A_TIE
        assert found.intake.notes == (f'Of "{one}" and "{two}" the higher number wins, and equal numbers are a tie.',)
        assert tasks_of(read(columns, reading={"best": "low"})) == [(None, "x = z"), (None, "y > x"), (None, "y > z")]
        assert read({**columns, "winner": ["b", "b", "b"]}).intake.right_wins == 3  # what says it by name is believed


def test_the_good_end_of_marks_and_places_is_asked():
    for stem in ("mark", "grade", "penalty", "rank", "points"):
        columns = {**pairs("team1", "team2"), f"{stem}_1": [1, 2, 3], f"{stem}_2": [2, 1, 3]}
        said = asked(columns)
        assert f'Row 1: y is preferred to x ("{stem}_1" and "{stem}_2" say how good each is, high is good)' in said
        assert 'reading={"best": "high"}; or Row 1: x is preferred to y' in said
        assert said.endswith('reading={"best": "low"}.')
        assert tasks_of(read(columns, reading={"best": "low"})) == TWO_AND_A_TIE


def test_scores_are_asked_about_where_another_column_may_say_who_won():
    columns = {**pairs("model_a", "model_b"), "score_a": [5, 2, 3], "score_b": [3, 4, 3], "slider": [-5, 3, 0]}
    said = asked(columns)
    assert 'who won by "slider", numbers above 0 for the left' in said
    assert 'columns={"answer": "score_a"}' in said
    assert tasks_of(read(columns, columns={"answer": "score_a"})) == TWO_AND_A_TIE
    assert tasks_of(read(columns, columns={"answer": "slider"}, reading={"positive": "right"}))[1] == (None, "x > y")
    del columns["slider"]
    assert read({**columns, "row": [1, 2, 3], "age": [30, 20, 30], "comment": ["so", "a", "b"]}).n_rows == 3


def test_counts_of_both_sides_are_weights():
    for one, two in (("num_vote_a", "num_vote_b"), ("wins_a", "wins_b"), ("votes_1", "votes_2")):
        found = read({**pairs("model_a", "model_b"), one: [12, 0, 3], two: [35, 4, 0]})
        assert found.n_answers == 54
        assert (found.intake.left_wins, found.intake.right_wins) == (15, 39)
    # Words for sides that only the counts tell, and ties.
    found = read({"base": ["b1", "b2"], "ours": ["o1", "o2"], "num_vote_base": [12, 20], "num_vote_ours": [35, 27]})
    assert (found.intake.left_wins, found.intake.right_wins) == (32, 62)
    assert "weight" not in found.intake.columns
    tied = read({**pairs("model_a", "model_b"), "wins_a": [3, 1, 1], "wins_b": [2, 2, 1], "ties": [4, 0, 0]})
    assert tied.intake.ties == 4
    weighted = {**pairs("model_a", "model_b"), "votes_a": [1, 2, 3], "votes_b": [3, 2, 1], "n": [1, 1, 1]}
    assert 'leave columns={"weights": "n"} out' in asked(weighted, columns={"weights": "n"})


def test_which_side_positive_numbers_speak_for_is_asked():
    for values in ([2, -2, 0], ["1", "-1", "0"], [1.0, -1.0, 0.0], [1, 0, 0.5]):
        columns = pairs("left", "right", user=["u0", "u1", "u2"], preference=values)
        said = asked(columns)
        assert "Row 1: u0 prefers x to y" in said
        assert 'for the left): reading={"positive": "left"}; or Row 1: u0 prefers y to x' in said
        assert said.endswith('for the right): reading={"positive": "right"}.')
        left, right = (read(columns, reading={"positive": side}) for side in ("left", "right"))
        assert (left.intake.left_wins, right.intake.right_wins) == (1, 1)
        assert left.outcome.tolist() == (-right.outcome).tolist()
    named = pairs("left", "right", left_minus_right=[1, -1, 0])
    assert read(named, columns={"answer": "left_minus_right"}).intake.left_wins == 1
    graded = pairs("left", "right", preference=[-3, 1, 2])
    assert read(graded, reading={"positive": "right"}).grades == ("1", "2", "3")


@pytest.mark.parametrize(
    ("numbers", "middle"),
    [
        ([0, 3, 4], 2.0), ([0, 3, 7], 5.0), ([0, 3, 60], 50.0), ([1, 3, 4], 3.0), ([1, 3, 8], 5.0), ([2, 3, 10], 5.0),
        ([20, 50, 60], 50.0),
    ],
)  # fmt: skip
def test_numbers_speak_for_a_side_above_the_middle_of_the_first_scale_that_holds_them(numbers, middle):
    answers = read(pairs("left", "right", slider=numbers), columns={"answer": "slider"}, reading={"positive": "left"})
    expected = [
        f"{min(a, b)} = {max(a, b)}" if number == middle else f"{a} > {b}" if number > middle else f"{b} > {a}"
        for a, b, number in zip(*THREE, numbers, strict=True)
    ]
    assert sorted(said for _, said in tasks_of(answers)) == sorted(expected)


def test_two_columns_that_both_say_who_won_are_asked_about():
    columns = {"user": ["u", "v", "w"], **pairs("left", "right", label=["A", "A", "B"], vote=["left", "right", "left"])}
    said = asked(columns)
    assert '(who won by "label"): columns={"answer": "label"}; or ' in said
    assert said.endswith('(who won by "vote"): columns={"answer": "vote"}.')
    assert read(columns, columns={"answer": "vote"}).intake.left_wins == 2
    assert read({**columns, "label": ["left", "right", "left"]}).intake.left_wins == 2  # they agree
    assert read({**columns, "label": ["north", "south", "north"]}).intake.columns["winner"] == "vote"
    assert read({**columns, "winner": ["a", "b", "b"]}).intake.columns["winner"] == "winner"  # the name itself
    unsure = {**columns, "vote": ["left", "skip", "left"]}
    assert read(unsure).intake.columns["winner"] == "label"


def test_two_columns_that_both_say_who_answered_are_asked_about():
    columns = {"user": ["write a poem", "fix my code", "write a poem"], "annotator": ["u0", "u1", "u2"],
               **pairs("left", "right", winner=["a", "b", "a"])}  # fmt: skip
    said = asked(columns)
    assert 'Row 1: write a poem prefers x to y (who won by "winner", user by "user"): columns={"who": "user"}' in said
    assert said.endswith(
        'Row 1: u0 prefers x to y (who won by "winner", user by "annotator"): columns={"who": "annotator"}.'
    )
    assert read(columns, columns={"who": "annotator"}).users.ids == ["u0", "u1", "u2"]
    for nothing in (None, "", False):
        assert not read(columns, columns={"who": nothing}).has_users
    with pytest.raises(DataError, match='"who" is the name of a column; got True'):
        read(columns, columns={"who": True})
    named = {**columns, "user": ["Ann", "Bob", "Cy"], "user_id": [1, 2, 3]}
    del named["annotator"]
    assert read(named).users.ids == ["Ann", "Bob", "Cy"]  # an id and a name of the same
    visits = {**columns, "session_id": ["s", "s", "t"]}
    del visits["user"]
    assert read(visits).intake.columns["user"] == "annotator"


def test_a_count_beside_answers_is_asked_about():
    columns = pairs("left", "right", winner=["a", "b", "a"], count=[120, 80, 95])
    said = asked(columns)
    assert 'weight by "count"): columns={"weights": "count"}; or ' in said
    assert said.endswith('columns={"weights": ""}.')
    assert read(columns, columns={"weights": "count"}).n_answers == 295
    assert read(columns, columns={"weights": None}).n_answers == 3
    assert read({**columns, "count": [1, 1, 1]}).n_answers == 3
    assert read({**columns, "weight": [2, 1, 1]}).n_answers == 4


def test_a_scale_of_which_two_values_came_is_no_column_of_sides():
    columns = pairs("left", "right", rating=[1, 2, 1])
    said = asked(columns, columns={"answer": "rating"})
    assert 'numbers above 1.5 for the left): reading={"positive": "left"}' in said
    assert 'reading={"answer_is": "side"}' in said
    assert read(columns, columns={"answer": "rating"}, reading={"answer_is": "side"}).intake.left_wins == 2
    whole = pairs("left", "right", likert=[1, 2, 5])
    words = {"left_word": ["1", "2"], "right_word": ["5"]}
    assert read(whole, columns={"answer": "likert"}, reading=words).intake.left_wins == 2


def test_half_points_are_ties():
    halves = pairs("left", "right", winner=["1", "0.5", "0"])
    assert 'numbers above 0.5 for the left): reading={"positive": "left"}' in asked(
        halves, reading={"answer_is": "side"}
    )
    assert read(halves, reading={"positive": "left"}).intake.ties == 1


def test_a_column_of_answers_may_be_called_as_one_of_the_items():
    columns = {"one": ["x", "y", "z"], "two": ["y", "z", "x"], "left": ["x", "z", "z"], "right": [7, 8, 9]}
    found = read(columns, columns={"left": "one", "right": "two", "answer": "left"})
    assert tasks_of(found) == [(None, "x > y"), (None, "z > x"), (None, "z > y")]


def test_both_bad_is_a_loss_of_both_if_asked():
    columns = {"user": ["u", "u", "v"], **pairs("model_a", "model_b", winner=["model_a", "tie (bothbad)", "tie"])}
    assert read(columns).intake.ties == 2
    found = read(columns, reading={"both_bad": "item"})
    assert tasks_of(found) == [("u", "(neither) > y"), ("u", "(neither) > z"), ("u", "x > y"), ("v", "x = z")]
    assert found.intake.ties_by_word == {"tie": 1.0}
    assert found.intake.notes == ('1 answer that both are bad: each of the two loses against "(neither)".',)
    hot = {**pairs("model_a", "model_b"), "winner_model_a": [1, 0, 0], "winner_model_b": [0, 0, 1],
           "winner_tie": [0, 0, 0], "winner_tie_both_bad": [0, 1, 0]}  # fmt: skip
    assert tasks_of(read(hot, reading={"both_bad": "item"}))[:2] == [(None, "(neither) > y"), (None, "(neither) > z")]
    numbers = {"left": [1, 2], "right": [2, 3], "winner": ["left", "both bad"]}
    assert 'none can be called "(neither)"' in asked(numbers, reading={"both_bad": "item"})


def test_advice_is_given_where_it_reads_the_table():
    """A word for a tie only where the others are two sides and it could be none; rows to leave out only where few."""
    odd = pairs("left", "right", winner=["left", "kelm_b", "left"])
    assert "ties=" not in asked(odd)
    assert 'reading={"left_word": "kelm_b"} or reading={"right_word": "kelm_b"}' in asked(odd)
    assert "drop_unknown" not in asked(odd)
    skipped = pairs("left", "right", winner=["left", "right", "skipped"])
    assert asked(skipped).endswith('If "skipped" means a tie, say reading={"tie": "skipped"}.')
    many = {"left": ["x"] * 40, "right": ["y"] * 40, "winner": [*["left", "right"] * 19, "skipped", "left"]}
    assert asked(many).endswith('say reading={"tie": "skipped"}. Leave such rows out with reading={"drop": "unknown"}.')
    two = {"left": ["x"] * 40, "right": ["y"] * 40, "winner": [*["left", "right"] * 18, *["skipped"] * 4]}
    assert "drop_unknown" not in asked(two)


def test_names_of_roles_have_one_home():
    assert all_named(["Observer", "x", "listener_id"], ["observer", "listener_id"]) == ["Observer", "listener_id"]
    names = ["winner", "winner_tie", "chosen_map", "is_A_selected", "chosen_time", "task_id", "preferred_text"]
    assert answer_columns(names) == ["winner", "chosen_map", "is_A_selected"]


def test_columns_of_attributes_are_no_pairs():
    long = {"user": ["u"] * 4, "task": [1, 1, 2, 2], "alt": [1, 2, 1, 2], "a": [2, 1, 3, 1], "b": [1, 3, 2, 2],
            "chosen": [1, 0, 0, 1]}  # fmt: skip
    assert read(long).intake.tasks_read == {"choices of the best of 2": 2}
    wide = {"user": ["u", "v"], "x1": [3, 1], "x2": [2, 2], "choice": [2, 1]}
    assert read(wide).intake.tasks_read == {"choices of the best of 2": 2}


def test_many_columns_are_looked_through_quickly():
    names = [f"f{k} a" if k % 2 else f"f{k - 1} b" for k in range(300)]
    columns = {**pairs("model_a", "model_b", winner=["a", "b", "a"]), **{name: [1, 2, 3] for name in names}}
    assert read(pl.DataFrame(columns)).intake.columns["left"] == "model_a"


@pytest.mark.parametrize(("right", "sign", "left_out"), [("x", 1, True), ("y", 0, False)])
def test_nothing_is_asked_of_signs_where_no_row_has_one(right, sign, left_out):
    rows = {"left": ["x"] * 3, "right": [right] * 3, "vote": [sign] * 2 + [0]}
    if left_out:
        with pytest.raises(DataError, match="no usable answer"):
            read(rows, reading={"drop": "self", "answer_is": "sign"})
    else:
        assert read(rows, reading={"answer_is": "sign"}).intake.ties == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"kelm": A, "vorn": B, "text_a": list("pqrs"), "text_b": list("tuvw"), "winner": list("ABBA")},
         'columns={"left": "kelm", "right": "vorn", "answer": "winner"}'),
        ({"White": A, "Black": B, "score_a": [1, 2, 1, 2], "score_b": [2, 1, 2, 1], "pick": ["a", "draw", "a", "a"]},
         'who won by "pick"'),
        ({"left": A, "right": B, "score_left": [1, 2, 1, 2], "score_right": [2, 1, 2, 1],
          "pick": [True, False, True, True]}, 'who won by "pick"'),
        ({"Gewinner": A, "Verlierer": B, "winner_score": [3, 4, 9, 5], "loser_score": [6, 5, 1, 5]}, "winner_score"),
        ({"response_a": list("pqrs"), "response_b": list("tuvw"), "rank_a": [1, 2, 1, 3], "rank_b": [2, 1, 2, 1]},
         "rank_a"),
        ({"judge": list("aaaa"), "said": ["a > b"] * 4, "favourite": list("abba")}, '"answer": "said"'),
    ],
)  # fmt: skip
def test_columns_that_could_hold_something_else_are_asked_about(columns, message):
    with pytest.raises(DataError) as caught:
        Comparisons.from_frame(columns)
    assert message in str(caught.value)


@pytest.mark.parametrize("side", ["left", "right"])
def test_who_names_one_column_need_not_name_the_other(side):
    rows = {"user": ["u", "v"], "left": ["p", "q"], "right": ["q", "r"], "winner": ["p", "r"]}
    renamed = {"foo" if name == side else name: column for name, column in rows.items()}
    found = Comparisons.from_frame(renamed, columns={side: "foo"})
    assert found == Comparisons.from_frame(rows)
    assert found.intake.columns[side] == "foo"
    with pytest.raises(DataError, match=r"found no column for the (left|right) item"):  # two could be it
        Comparisons.from_frame({**renamed, "item_left": ["x", "y"], "item_right": ["x", "y"]}, columns={side: "user"})


def test_what_no_number_is_does_not_win():
    table = {"model_a": list("xyx"), "model_b": list("yzz"), "winner": ["1", "nan", "-1"], "score_a": [1, 2, 3],
             "score_b": [3, 1, 2]}  # fmt: skip
    refused(table, {}, 'column "winner" holds 2 values that are neither', 'row 2, "nan"')


def test_scores_do_not_tell_who_won_where_a_column_of_answers_has_words_that_nothing_tells():
    table = {"model_a": list("xyx"), "model_b": list("yzz"), "outcome": ["left", "dunno", "right"],
             "score_a": [1, 2, 3], "score_b": [3, 1, 2]}  # fmt: skip
    refused(table, {}, 'column "outcome" holds 1 value that is neither', '"dunno"')


def test_an_answer_of_any_name_is_known_by_the_items_that_it_names():
    """Any of three items would be one of its row with a chance of two thirds: in all of 18 rows, of one in 1 000."""
    pairs = [("tea", "milk"), ("milk", "rum"), ("rum", "tea")] * 6
    columns = {"model_a": [one for one, _ in pairs], "model_b": [other for _, other in pairs],
               "blorp": [one[k % 2] for k, one in enumerate(pairs)]}  # fmt: skip
    assert Comparisons.from_frame(columns).intake.columns["winner"] == "blorp"
    with pytest.raises(DataError, match=r'nothing tells that it must be.*columns={"answer": "blorp"}'):
        Comparisons.from_frame({name: values[:17] for name, values in columns.items()})
