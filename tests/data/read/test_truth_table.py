"""Small files of the kinds that people have, with what a careful person reads in them, or must ask.

The answers were worked out by hand. ``then`` says which options a question leaves open, and what they make of the file.
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from made_tables import content
from predilect.data import Comparisons
from predilect.errors import DataError

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Then:
    """What is read where ``columns`` and ``reading`` are said: what the case says, unless it is said here."""

    says: str | Counter | None = None
    columns: dict[str, Any] | None = None
    reading: dict[str, Any] | None = None


@dataclass(frozen=True)
class Case:
    """A file: what it says in a line for each answer, or the words that a question about it holds.

    Both where a reader may know it or ask. ``never``: words that no message about it may hold, as advice that leads to
    wrong answers. Alternatives without ids are called by their ``attributes``, names of them stand in ``label``.
    """

    table: str
    says: str | Counter | None = None
    asks: tuple[str, ...] = ()
    then: tuple[Then, ...] = ()
    attributes: tuple[str, ...] = ()
    label: str = ""
    never: tuple[str, ...] = ()


def sentences(text):
    """Answers as they were written down: "who: best > second = as good as it x 3"; who is left out for nobody."""
    found = Counter()
    for line in text.strip().splitlines():
        said, _, times = re.fullmatch(r"\s*(.+?)( x ([\d.]+))?", line).groups()
        who, colon, order = said.rpartition(": ")
        levels = tuple(tuple(sorted(level.split(" = "))) for level in order.split(" > "))
        found[who if colon else None, levels] += float(times or 1)
    return found


def each_row(table, who=None, left="left", right="right", winner="winner"):
    """What a table says of which every row is an answer by itself; winners by name, or by the name of their column."""
    found = Counter()
    for row in rows_of(table).to_dicts():
        word = row[winner]
        left_won = word in (row[left], left)
        assert left_won or word in (row[right], right)
        order = ((row[left],), (row[right],)) if left_won else ((row[right],), (row[left],))
        found[row[who] if who else None, order] += 1.0
    return found


def rows_of(table):
    return pl.read_csv(io.StringIO(re.sub(r"^ +", "", table.strip(), flags=re.M)), infer_schema=False)


def read(case, columns=None, reading=None, seed=None):
    """What is read of a file, or the question."""
    table = rows_of(case.table)
    if seed is not None:
        order = list(range(len(table)))
        random.Random(seed).shuffle(order)
        table = table[order]
    try:
        return Comparisons.from_frame(table, columns=columns, reading=reading)
    except DataError as error:
        return str(error)


def said_by(case, found):
    return content(found, case.attributes, case.label)


BASELINE, BOTH_ORDERS = ((CASES / name).read_text() for name in ("baseline.csv", "both_orders.csv"))
LONG_NAMED = """
    0: alternative=milk, bio=0, price=3 > alternative=tea, bio=1, price=2 = alternative=juice, bio=0, price=4
    0: alternative=tea, bio=0, price=2 > alternative=milk, bio=1, price=4 = alternative=juice, bio=1, price=2
"""


def long_named(column):
    """Alternatives that have a name, in a column called so, and a price that differs between their tasks."""
    return f"""
        user,task,{column},price,bio,chosen
        0,0,tea,2,1,0
        0,0,milk,3,0,1
        0,0,juice,4,0,0
        0,1,tea,2,0,1
        0,1,milk,4,1,0
        0,1,juice,2,1,0
    """


PROFILES = """
    0: x1=2, x2=1, x3=3 > x1=3, x2=3, x3=1 = x1=3, x2=2, x3=2
    0: x1=1, x2=1, x3=1 > x1=1, x2=3, x3=1 = x1=2, x2=3, x3=1
    1: x1=2, x2=2, x3=2 > x1=3, x2=3, x3=1 = x1=2, x2=3, x3=2
"""


def profiles(header, answers):
    """Three tasks of three numbered profiles, with an answer in each row."""
    shown = ("3,3,1", "3,2,2", "2,1,3", "1,1,1", "1,3,1", "2,3,1", "3,3,1", "2,2,2", "2,3,2")
    rows = [f"{k // 6},{k // 3},{1 + k % 3},{one},{answer}" for k, (one, answer) in enumerate(zip(shown, answers,
            strict=True))]  # fmt: skip
    return "\n".join([header, *rows])


X123, ATT123 = "id,task,alt,x1,x2,x3,choice", "sys_RespNum,Task,Concept,att1,att2,att3,Response"
ATT_PROFILES = PROFILES.replace("x", "att")
SAWTOOTH = """
    1: brand=weight, price=7.9 > brand=dannon, price=8.1 = brand=hiland, price=6.1 = brand=yoplait, price=10.8
    1: brand=dannon, price=9.8 > brand=hiland, price=6.4 = brand=weight, price=7.5 = brand=yoplait, price=10.8
"""


def sawtooth(answers):
    """Two tasks of four named concepts, with an answer in each row."""
    shown = ("1,1,dannon,8.1", "1,2,hiland,6.1", "1,3,weight,7.9", "1,4,yoplait,10.8",
             "2,1,dannon,9.8", "2,2,hiland,6.4", "2,3,weight,7.5", "2,4,yoplait,10.8")  # fmt: skip
    rows = [f"1,{one},{answer}" for one, answer in zip(shown, answers, strict=True)]
    return "\n".join(["sys_RespNum,Task,Concept,brand,price,Response", *rows])


FILES = {
    # --- votes of two models, comparative judgement, sports --------------------------------------------------------
    "winner by name": Case(
        """
        model_a,model_b,winner
        GPT-9,Clod-2,GPT-9
        GPT-9,Lama-4,GPT-9
        Clod-2,Lama-4,Clod-2
        Clod-2,GPT-9,Clod-2
        Lama-4,Clod-2,Lama-4
        Lama-4,GPT-9,GPT-9
        """,
        """
        GPT-9 > Clod-2
        GPT-9 > Lama-4 x 2
        Clod-2 > Lama-4
        Clod-2 > GPT-9
        Lama-4 > Clod-2
        """,
    ),
    "ties alone": Case("model_a,model_b,winner\nx1,y1,tie\ny1,z1,tie\nz1,x1,tie", "x1 = y1\ny1 = z1\nx1 = z1"),
    "an answer and its opposite": Case("user,left,right,winner\nj,al,bo,al\nj,al,bo,bo", "j: al > bo\nj: bo > al"),
    "a tie": Case("left,right,winner\nal,bo,tie\nal,cy,al\nbo,cy,bo", "al = bo\nal > cy\nbo > cy"),
    "ranks with a tie": Case(
        """
        user,task,item,rank
        g,1,p1,1
        g,1,p2,2
        g,1,p3,3
        g,1,p4,2
        g,1,p5,4
        """,
        "g: p1 > p2 = p4 > p3 > p5",
        asks=("best", "low", "high"),
        then=(
            Then(reading={"best": "low"}),
            Then("g: p5 > p3 > p2 = p4 > p1", reading={"best": "high"}),
        ),
    ),
    "weights below 1": Case(
        "left,right,winner,weight\nal,bo,al,0.6\nbo,cy,bo,1\nal,cy,cy,1", "al > bo x 0.6\nbo > cy\ncy > al"
    ),
    "both orders of a pair": Case(
        BOTH_ORDERS, each_row(BOTH_ORDERS, "judge", "model_a", "model_b"), asks=("task",),
        then=(Then(reading={"task": "none"}),),
    ),
    "flags a side, and names": Case(
        """
        Judge,A,B,choseA,choseB,Candidate.Chosen,Candidate.Not.Chosen
        2,104,103,1,0,104,103
        2,86,104,0,1,104,86
        2,92,86,0,1,86,92
        """,
        "2: 104 > 103\n2: 104 > 86\n2: 86 > 92",
    ),
    "scores of both answers": Case(
        """
        judge,prompt,response_a,response_b,score_a,score_b
        j,p1,tea,milk,5,3
        j,p2,milk,tea,2,4
        j,p3,milk,tea,2,2
        """,
        "j: tea > milk x 2\nj: milk = tea",
    ),
    "comparison scale": Case(
        """
        listener,system_a,system_b,cmos
        l1,tts1,tts2,3
        l1,tts2,tts1,-2
        l2,tts1,tts2,2
        l2,tts2,tts1,-1
        l3,tts1,tts2,0
        """,
        asks=("positive", "left", "right"),
        then=(
            Then("l1: tts1 > tts2 x 2\nl2: tts1 > tts2 x 2\nl3: tts1 = tts2", reading={"positive": "left"}),
            Then("l1: tts2 > tts1 x 2\nl2: tts2 > tts1 x 2\nl3: tts1 = tts2", reading={"positive": "right"}),
        ),
    ),
    "home and away": Case("home,away,winner\nX,Y,home\nY,Z,away\nZ,X,draw", "X > Y\nZ > Y\nX = Z"),
    "H, D and A": Case(
        "home,away,res\nX,Y,H\nY,Z,A\nZ,X,D\nX,Z,H\nY,X,A",
        "X > Y x 2\nZ > Y\nX = Z\nX > Z",
        asks=("answer",),
        then=(Then(columns={"answer": "res"}),),
        never=("drop",),
    ),
    "a year called task": Case(
        """
        id,judgeId,chosen,notChosen,task
        1,j1,X1,X2,Year 1
        2,j1,X1,X3,Year 1
        3,j2,X2,X3,Year 1
        4,j2,X3,X1,Year 2
        """,
        "j1: X1 > X2\nj1: X1 > X3\nj2: X2 > X3\nj2: X3 > X1",
        asks=("task",),
        then=(Then(reading={"task": "none"}),),
    ),
    "scores of two teams": Case(
        "match_id,team1,team2,score1,score2\n1,NRG,FUR,13,8\n2,FUR,C9,7,13\n3,C9,NRG,13,13",
        "NRG > FUR\nC9 > FUR\nC9 = NRG",
    ),
    "a list of items": Case("item\nal\nbo\ncy\nnever"),
    # --- small tables ----------------------------------------------------------------------------------------------
    "one baseline against others": Case(
        BASELINE, each_row(BASELINE, "judge"), then=(Then(reading={"task": "none"}),),
    ),
    "marked-up text": Case("id,html\n1,<b>x</b> y\n2,<i>z</i>\n3,<p>q</p>"),
    "a table of people": Case("participant,age\n001,30\n002,40\n003,50"),
    "answers to three questions": Case(
        "user,choice_1,choice_2,choice_3\na,tea,red,car\nb,milk,blue,bus\nc,tea,red,bus"
    ),
    "a topic called task": Case(
        """
        user,left,right,winner,task
        ann,tea,milk,left,hot
        ann,tea,juice,left,hot
        ann,milk,juice,right,cold
        ann,juice,milk,left,cold
        bob,tea,milk,left,hot
        bob,tea,juice,left,hot
        bob,milk,juice,right,cold
        bob,juice,milk,left,cold
        """,
        """
        ann: tea > milk
        ann: tea > juice
        ann: juice > milk x 2
        bob: tea > milk
        bob: tea > juice
        bob: juice > milk x 2
        """,
        asks=("task",),
        then=(
            Then(
                reading={"task": "none"},
            ),
        ),
    ),
    "ids that begin with zeros": Case(
        "participant,left,right,winner\n001,tea,milk,tea\n001,milk,juice,milk\n002,tea,milk,tea",
        "001: tea > milk\n001: milk > juice\n002: tea > milk",
    ),
    # --- choices among described alternatives ----------------------------------------------------------------------
    "an attribute of each mode": Case(
        """
        user,task,alt,cost,seats,chosen
        0,0,car,2.05,4,1
        0,0,bus,2.19,40,0
        0,0,rail,4.26,300,0
        0,1,car,1.75,4,0
        0,1,bus,1.22,40,0
        0,1,rail,2.1,300,1
        """,
        """
        0: alternative=car, cost=2.05, seats=4 > alternative=bus, cost=2.19, seats=40 = alternative=rail, cost=4.26, seats=300
        0: alternative=rail, cost=2.1, seats=300 > alternative=bus, cost=1.22, seats=40 = alternative=car, cost=1.75, seats=4
        """,  # noqa: E501
        attributes=("alternative", "cost", "seats"),
    ),
    "choices and ratings of a conjoint": Case(
        """
        respondent,choice_a,choice_b,choice_c,choice_d,rating_a1,rating_a2,rating_b1,rating_b2,rating_c1,rating_c2,rating_d1,rating_d2
        1,2.0,1.0,2.0,2.0,1,1,6,1,4,5,2,4
        2,1.0,2.0,1.0,2.0,4,3,6,1,7,6,3,6
        3,2.0,1.0,2.0,1.0,2,1,3,6,5,4,4,4
        4,2.0,2.0,1.0,2.0,1,6,4,2,4,7,4,7
        5,2.0,1.0,2.0,1.0,7,7,2,3,6,5,6,7
        """
    ),
    "names with >": Case("id,plan,cost\n1,<10k: 5%,3\n2,>375k: 5%,4"),
    "attributes a and b": Case(
        """
        user,task,alt,a,b,price,chosen
        u1,1,1,2,1,5,1
        u1,1,2,1,3,4,0
        u1,1,3,3,2,6,0
        u1,2,1,1,2,5,0
        u1,2,2,2,1,6,1
        u1,2,3,3,1,7,0
        """,
        """
        u1: a=2, b=1, price=5 > a=1, b=3, price=4 = a=3, b=2, price=6
        u1: a=2, b=1, price=6 > a=1, b=2, price=5 = a=3, b=1, price=7
        """,
        attributes=("a", "b", "price"),
    ),
    **{
        f"names in {column}": Case(
            long_named(column), LONG_NAMED, attributes=("alternative", "bio", "price"), label=column
        )
        for column in ("alt", "alternative", "option", "brand", "item", "product")
    },
    "brands by code": Case(
        """
        user,task,brand,price,organic,chosen
        0,0,1,2,1,0
        0,0,2,3,0,1
        0,0,3,4,0,0
        0,1,1,2,0,1
        0,1,2,4,1,0
        0,1,3,2,1,0
        """,
        """
        0: brand=2, organic=0, price=3 > brand=1, organic=1, price=2 = brand=3, organic=0, price=4
        0: brand=1, organic=0, price=2 > brand=2, organic=1, price=4 = brand=3, organic=1, price=2
        """,
        attributes=("brand", "organic", "price"),
        asks=("alternatives",),
    ),
    "att1 to att3, chosen 1": Case(
        profiles(ATT123, (0, 0, 1, 1, 0, 0, 0, 1, 0)), ATT_PROFILES, attributes=("att1", "att2", "att3")
    ),
    "att1 to att3, chosen 1 and not 2": Case(
        profiles(ATT123, (2, 2, 1, 1, 2, 2, 2, 1, 2)), ATT_PROFILES, attributes=("att1", "att2", "att3"),
        asks=("Response",), never=("drop",),
    ),
    "att1 to att3, the number in all rows": Case(
        profiles(ATT123, (3, 3, 3, 1, 1, 1, 2, 2, 2)), ATT_PROFILES, attributes=("att1", "att2", "att3")
    ),
    "x1 to x3, chosen 1": Case(
        profiles(X123, (0, 0, 1, 1, 0, 0, 0, 1, 0)), PROFILES, attributes=("x1", "x2", "x3"), never=("drop",)
    ),
    "x1 to x3, chosen 1 and not 2": Case(
        profiles(X123, (2, 2, 1, 1, 2, 2, 2, 1, 2)), PROFILES, attributes=("x1", "x2", "x3"), asks=("choice",),
        never=("drop",),
    ),
    "x1 to x3, the number in all rows": Case(
        profiles(X123, (3, 3, 3, 1, 1, 1, 2, 2, 2)), PROFILES, attributes=("x1", "x2", "x3")
    ),
    "dummies of brands": Case(
        """
        id,task,alt,choice,price,brand_a,brand_b,brand_c
        0,0,1,0,3,0,0,1
        0,0,2,0,3,0,1,0
        0,0,3,1,2,1,0,0
        0,1,1,1,1,1,0,0
        0,1,2,0,1,0,0,1
        0,1,3,0,2,0,0,1
        """,
        """
        0: brand_a=1, brand_b=0, brand_c=0, price=2 > brand_a=0, brand_b=0, brand_c=1, price=3 = brand_a=0, brand_b=1, brand_c=0, price=3
        0: brand_a=1, brand_b=0, brand_c=0, price=1 > brand_a=0, brand_b=0, brand_c=1, price=1 = brand_a=0, brand_b=0, brand_c=1, price=2
        """,  # noqa: E501
        attributes=("brand_a", "brand_b", "brand_c", "price"),
    ),
    "dummies of sizes": Case(
        """
        id,task,alt,choice,price,size_1,size_2
        0,0,1,0,3,1,0
        0,0,2,0,3,0,1
        0,0,3,1,2,0,0
        0,1,1,1,1,1,0
        0,1,2,0,2,0,1
        0,1,3,0,2,1,0
        """,
        """
        0: price=2, size_1=0, size_2=0 > price=3, size_1=1, size_2=0 = price=3, size_1=0, size_2=1
        0: price=1, size_1=1, size_2=0 > price=2, size_1=0, size_2=1 = price=2, size_1=1, size_2=0
        """,
        attributes=("price", "size_1", "size_2"),
    ),
    "firms and regions": Case(
        "firm,region,chosen,wage\nf1,north,1,10\nf1,south,0,12\nf1,east,0,9\nf2,north,0,11\nf2,south,1,10\nf2,east,0,14",
        asks=("task",),
        attributes=("alternative", "wage"),
        label="region",
        then=(
            Then(
                """
                alternative=north, wage=10 > alternative=south, wage=12 = alternative=east, wage=9
                alternative=south, wage=10 > alternative=north, wage=11 = alternative=east, wage=14
                """,
                columns={"task": "firm", "alternatives": "region"},
            ),
        ),
    ),
    "a market without answers": Case("scenario,item,brand,price,organic\ns,x,tea,2,1\ns,y,tee,2,1"),
    "a price alone, and one outside": Case(
        """
        id,obsID,altID,price,choice
        0,0,1,1.0,0
        0,0,2,3.0,0
        0,0,3,,1
        0,1,1,2.0,0
        0,1,2,1.0,1
        0,1,3,,0
        0,2,1,4.0,0
        0,2,2,1.0,1
        0,2,3,,0
        """,
        """
        0: None > price=1 = price=3
        0: price=1 > price=2 = None
        0: price=1 > price=4 = None
        """,
        attributes=("price",),
    ),
    "concepts, the number in all rows": Case(
        sawtooth((3, 3, 3, 3, 1, 1, 1, 1)), SAWTOOTH, attributes=("brand", "price")
    ),
    "concepts, the number in the first row": Case(
        sawtooth((3, 0, 0, 0, 1, 0, 0, 0)), SAWTOOTH, attributes=("brand", "price")
    ),
    "concepts, points to share": Case(
        sawtooth((10, 10, 70, 10, 70, 10, 10, 10)), SAWTOOTH, asks=("kind",), attributes=("brand", "price"),
        then=(Then(reading={"kind": "rating"}),),
    ),
    "weights of a survey": Case(
        """
        user,task,alt,price,weight,chosen
        u1,1,a,2,1.4,1
        u1,1,b,3,1.4,0
        u1,1,c,4,1.4,0
        u2,1,a,3,0.6,0
        u2,1,b,2,0.6,1
        u2,1,c,1,0.6,0
        """,
        "u1: price=2 > price=3 = price=4 x 1.4\nu2: price=2 > price=3 = price=1 x 0.6",
        attributes=("price",),
    ),
    "names, codes from 0, of which none is 0": Case(
        "price_bus,price_car,price_rail,choice\n3.05,4.8,1.58,2\n2.32,4.15,2.21,2\n4.85,3.9,3.16,1\n3.06,1.46,3.49,1",
        asks=("alternatives",), attributes=("alternative", "price"),
    ),
    "the cheapest of three": Case(
        """
        user,task,price,chosen
        u0,0,3.0,0
        u0,0,2.0,1
        u0,0,4.0,0
        u0,1,4.0,0
        u0,1,5.0,0
        u0,1,1.0,1
        """,
        "u0: price=2 > price=3 = price=4\nu0: price=1 > price=4 = price=5",
        attributes=("price",),
    ),
    "a number of 400 digits": Case(f"id,price_1,price_2,choice\nu,1,2,{'9' * 400}"),
    "features of items": Case("item,x\ntea,1e160\nmilk,1\nrum,2"),
    "prices of items": Case("item,price,size\nnew,1e9,1"),
    "pairs to ask": Case("user,left,right\nu0,1,new"),
    "three votes": Case(
        "user,left,right,winner\nu,tea,milk,tea\nv,milk,rum,milk\nu,tea,rum,tea",
        "u: tea > milk\nv: milk > rum\nu: tea > rum",
    ),
    # --- what stands beside something else -------------------------------------------------------------------------
    "a ballot with one name": Case("voter,ballot\na,x > y\nb,y > z\nc,z", "a: x > y\nb: y > z"),
    "lists in a column of any name": Case(
        'user,said\na,"[""x"",""y"",""z""]"\nb,"[""y"",""x"",""z""]"', "a: x > y > z\nb: y > x > z",
    ),
    "neither of the two": Case(
        "user,task,item,chosen\na,1,x,1\na,1,y,0\na,1,neither,0\nb,2,x,0\nb,2,y,0\nb,2,neither,1",
        "a: x > None = y\nb: None > x = y",
    ),
    "answers about one criterion": Case(
        "criterion,left,right,winner\ntaste,x,y,x\ntaste,y,z,y\ntaste,z,x,z", "x > y\ny > z\nz > x"
    ),
    "three prices beside two columns of names": Case(
        """
        kelm,vorn,price_1,price_2,price_3,choice
        tea,milk,1,2,3,1
        milk,rum,2,3,1,2
        rum,tea,3,4,2,3
        tea,milk,4,1,2,1
        """,
        """
        price=1 > price=2 = price=3
        price=3 > price=1 = price=2
        price=2 > price=3 = price=4
        price=4 > price=1 = price=2
        """,
        attributes=("price",),
    ),
    "days beside two columns of names": Case(
        """
        start_day,end_day,kelm,vorn,winner
        mon,tue,tea,milk,tea
        tue,mon,milk,rum,milk
        mon,tue,rum,tea,rum
        tue,mon,milk,tea,milk
        """,
        "tea > milk\nmilk > rum\nrum > tea\nmilk > tea", asks=('"left": "kelm", "right": "vorn"',),
        then=(Then(columns={"left": "kelm", "right": "vorn"}),), never=("_day",),
    ),
    "numbers of places, and fewer in one task": Case(
        """
        user,task,alt,price,chosen
        a,1,1,3,0
        a,1,2,2,1
        a,1,3,4,0
        b,1,1,2,1
        b,1,2,5,0
        """,
        "a: price=2 > price=3 = price=4\nb: price=2 > price=5", attributes=("price",),
    ),
    "ratings of two days": Case(
        """
        user,item,rating,day
        a,x,1,1
        a,y,2,1
        a,x,3,2
        a,y,1,2
        b,x,2,1
        b,y,1,1
        b,x,1,2
        b,y,3,2
        """,
        asks=('"task": "day"',),
        then=(Then("a: y > x\na: x > y\nb: x > y\nb: y > x", columns={"task": "day"}),),
    ),
    "columns of items, each row all places": Case(
        "person,tea,milk,juice\na,1,2,3\nb,3,1,2\nc,2,3,1", asks=('"kind": "rank", "best": "low"',),
        then=(Then("a: tea > milk > juice\nb: milk > juice > tea\nc: juice > tea > milk",
                   columns={"alternatives": ["tea", "milk", "juice"]}, reading={"kind": "rank", "best": "low"}),),
    ),
    "items and the names of two of them under any name": Case(
        """
        user,task,wozzle,blorp
        a,1,tea,tea
        a,1,milk,tea
        a,1,rum,tea
        b,2,tea,milk
        b,2,milk,milk
        b,2,rum,milk
        c,3,tea,tea
        c,3,milk,tea
        c,3,rum,tea
        """,
        "a: tea > milk = rum\nb: milk > rum = tea\nc: tea > milk = rum", asks=('"answer": "blorp"',),
        then=(Then(columns={"answer": "blorp"}),),
    ),
    "both items in a column of any name": Case(
        "duo,winner\ntea vs milk,tea\nmilk vs rum,milk\nrum vs tea,rum\ntea vs rum,tea",
        "tea > milk\nmilk > rum\nrum > tea\ntea > rum", asks=('"left": "duo", "right": "duo"',),
        then=(Then(columns={"left": "duo", "right": "duo"}),),
    ),
}  # fmt: skip


def expected(says):
    return says if isinstance(says, Counter) else sentences(says)


def rounded(found):
    return {key: round(weight, 9) for key, weight in found.items()}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_a_careful_person_reads_it_or_is_asked_about(name):
    case = FILES[name]
    found = read(case)
    if isinstance(found, str):
        assert case.asks or case.says is None, found
        assert [word for word in case.asks if word not in found] == [], found
        assert [word for word in case.never if word in found] == [], found
    else:
        assert case.says is not None, f"read without a question as {said_by(case, found)}"
        assert rounded(said_by(case, found)) == rounded(expected(case.says)), found.intake.describe()


@pytest.mark.parametrize("name", [name for name, case in FILES.items() if case.then])
def test_what_a_question_leaves_open_can_be_said(name):
    case = FILES[name]
    for then in case.then:
        found = read(case, then.columns, then.reading)
        assert not isinstance(found, str), found
        assert rounded(said_by(case, found)) == rounded(expected(then.says or case.says)), (then.columns, then.reading)


@pytest.mark.parametrize("name", FILES)
def test_the_order_of_rows_means_nothing(name):
    case = FILES[name]
    found = read(case)
    for seed in range(3):
        again = read(case, seed=seed)
        if isinstance(found, str) and isinstance(again, str):
            continue
        assert found == again


def test_codes_of_brands_are_no_numbers():
    case = FILES["brands by code"]
    found = read(case)
    if not isinstance(found, str):
        table = found.item_table
        named = [name for name in ("alternative", "brand") if name in table.columns]
        assert named, table.columns
        assert not table[named[0]].dtype.is_numeric()
