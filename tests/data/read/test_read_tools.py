"""Files as six tools for choice models write and expect them, each read without any word about its columns."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from answers import tasks_of
from predilect.data import ItemFeatures
from predilect.data import read as read_file
from predilect.errors import DataError

APOLLO_MODES = """\
ID,RP,SP,SP_task,av_car,av_bus,av_air,time_car,cost_car,time_bus,cost_bus,access_bus,time_air,cost_air,access_air,female,income,choice
1,0,1,1,1,1,0,275,50,300,30,5,0,0,0,1,46,2
1,0,1,2,1,1,1,275,45,300,35,10,60,90,20,1,46,3
2,0,1,1,0,1,1,0,0,330,30,5,70,80,40,0,23,2
"""
APOLLO_ROUTES = """\
ID,choice,tt1,tc1,hw1,ch1,tt2,tc2,hw2,ch2,hh_inc_abs,car_availability,commute
1,1,52,8,30,0,60,4,15,2,50000,0,0
1,2,40,10,15,1,60,4,30,0,50000,0,0
2,2,30,6,15,0,20,9,30,1,90000,1,1
"""
MLOGIT_WIDE = """\
mode,price.beach,price.pier,price.boat,catch.beach,catch.pier,catch.boat,income
pier,157.9,157.9,182.9,0.07,0.05,0.54,7083.3
boat,15.1,15.1,34.5,0.1,0.05,0.47,1250
"""
MLOGIT_LONG = """\
case,alt,choice,dist,cost,freq,income
1,train,no,83,28.25,4,45
1,car,yes,83,15.77,0,45
2,train,yes,83,28.25,4,25
2,car,no,83,12.0,0,25
2,bus,no,83,9.5,2,25
"""
XLOGIT = """\
choice,id,alt,pf,cl,loc,chid
0,1,1,7,5,0,1
1,1,2,9,1,1,1
0,1,3,0,0,0,1
1,1,1,7,5,0,2
0,1,2,0,1,1,2
0,1,3,0,0,0,2
0,2,1,9,1,1,3
0,2,2,7,5,0,3
1,2,3,0,0,0,3
"""
BIOGEME = """\
GROUP\tID\tPURPOSE\tTRAIN_AV\tCAR_AV\tSM_AV\tTRAIN_TT\tTRAIN_CO\tTRAIN_HE\tSM_TT\tSM_CO\tSM_HE\tSM_SEATS\tCAR_TT\tCAR_CO\tCHOICE
2\t1\t1\t1\t1\t1\t112\t48\t120\t63\t52\t20\t0\t117\t65\t2
2\t1\t1\t1\t0\t1\t103\t48\t30\t60\t49\t10\t0\t0\t0\t1
2\t2\t1\t1\t1\t1\t130\t48\t60\t67\t58\t30\t1\t117\t52\t3
"""
BAYESM = """\
hhid,choice,PPk_Stk,PBB_Stk,PFl_Stk,PHse_Tub
2100016,1,0.66,0.67,1.09,0.57
2100016,4,0.63,0.67,0.99,0.57
2100024,2,0.29,0.5,0.99,0.57
"""
BAYESM_PANEL = """\
resp.id,ques,alt,carpool,seat,price,choice
1,1,1,yes,6,35,0
1,1,2,yes,8,30,0
1,1,3,yes,6,30,1
1,2,1,yes,6,30,0
1,2,2,yes,7,35,1
1,2,3,yes,6,35,0
"""
SAWTOOTH = """\
sys_RespNum,Task,Concept,Brand,Price,Response
1001,1,1,1,2,1
1001,1,2,2,1,0
1001,1,3,0,0,0
1001,2,1,2,3,0
1001,2,2,1,1,0
1001,2,3,0,0,1
"""


def read(tmp_path, text, name="choices.csv", **options):
    (tmp_path / name).write_text(text)
    return read_file(tmp_path / name, **options)


def test_apollo(tmp_path):
    modes = read(tmp_path, APOLLO_MODES)
    assert tasks_of(modes) == [
        ("1", "air, access=20, cost=90, time=60 > bus, access=10, cost=35, time=300",
         "air, access=20, cost=90, time=60 > car, cost=45, time=275"),
        ("1", "bus, access=5, cost=30, time=300 > car, cost=50, time=275"),
        ("2", "bus, access=5, cost=30, time=330 > air, access=40, cost=80, time=70"),
    ]  # fmt: skip
    assert "The choice was read by the order of the columns: 1 car, 2 bus, 3 air." in modes.intake.notes
    assert {"female", "income", "RP"} <= set(modes.intake.ignored_columns)
    routes = read(tmp_path, APOLLO_ROUTES)
    assert tasks_of(routes)[1] == ("1", "ch=0, hw=30, tc=8, tt=52 > ch=2, hw=15, tc=4, tt=60")
    assert routes.item_table.columns == ["item", "ch", "hw", "tc", "tt"]


def test_mlogit(tmp_path):
    wide = read(tmp_path, MLOGIT_WIDE)
    assert tasks_of(wide) == [
        (None, "boat, catch=0.47, price=34.5 > beach, catch=0.1, price=15.1",
         "boat, catch=0.47, price=34.5 > pier, catch=0.05, price=15.1"),
        (None, "pier, catch=0.05, price=157.9 > beach, catch=0.07, price=157.9",
         "pier, catch=0.05, price=157.9 > boat, catch=0.54, price=182.9"),
    ]  # fmt: skip
    long = read(tmp_path, MLOGIT_LONG)
    assert tasks_of(long) == [
        (None, "car, cost=15.77, freq=0 > train, cost=28.25, freq=4"),
        (None, "train, cost=28.25, freq=4 > bus, cost=9.5, freq=2", "train, cost=28.25, freq=4 > car, cost=12, freq=0"),
    ]  # fmt: skip
    assert set(long.intake.ignored_columns) == {"dist", "income"}


def test_xlogit(tmp_path):
    choices = read(tmp_path, XLOGIT)
    assert tasks_of(choices) == [
        ("1", "cl=1, loc=1, pf=9 > cl=0, loc=0, pf=0", "cl=1, loc=1, pf=9 > cl=5, loc=0, pf=7"),
        ("1", "cl=5, loc=0, pf=7 > cl=0, loc=0, pf=0", "cl=5, loc=0, pf=7 > cl=1, loc=1, pf=0"),
        ("2", "cl=0, loc=0, pf=0 > cl=1, loc=1, pf=9", "cl=0, loc=0, pf=0 > cl=5, loc=0, pf=7"),
    ]
    assert choices.item_table.rows() == [
        ("cl=0, loc=0, pf=0", 0, 0, 0), ("cl=1, loc=1, pf=0", 1, 1, 0), ("cl=1, loc=1, pf=9", 1, 1, 9),
        ("cl=5, loc=0, pf=7", 5, 0, 7),
    ]  # fmt: skip
    assert ItemFeatures.from_frame(choices.item_table).columns == ["cl", "loc", "pf"]
    assert str(choices.reading).startswith(
        "Read: 3 choices of the best of 3; who=id, task=chid, alternatives=alt, answer=choice, profile=pf,cl,loc.\n"
    )


def test_biogeme(tmp_path):
    choices = read(tmp_path, BIOGEME, "swissmetro.dat")
    train, sm = "TRAIN, CO=48, HE=30, TT=103", "SM, CO=49, HE=10, SEATS=0, TT=60"
    assert tasks_of(choices)[1] == ("1", f"{train} > {sm}")
    assert [len(task) - 1 for task in tasks_of(choices)] == [2, 1, 2]
    nobody = read(
        tmp_path, BIOGEME + BIOGEME.splitlines()[1][:-1] + "0\n", "swissmetro.dat", reading={"drop": "unknown"}
    )
    assert nobody.intake.left_out == {"no clear winner": 1}
    with pytest.raises(
        DataError, match=r'column "CHOICE" chooses none of TRAIN, SM, CAR in 1 task \(first: row 4\): it holds "0"'
    ):
        read(tmp_path, BIOGEME + BIOGEME.splitlines()[1][:-1] + "0\n", "swissmetro.dat")


def test_bayesm(tmp_path):
    alternatives = ["Pk_Stk", "BB_Stk", "Fl_Stk", "Hse_Tub"]
    choices = read(tmp_path, BAYESM, columns={"alternatives": alternatives})
    assert tasks_of(choices)[1] == (
        "2100016", "Pk_Stk, P=0.66 > BB_Stk, P=0.67", "Pk_Stk, P=0.66 > Fl_Stk, P=1.09",
        "Pk_Stk, P=0.66 > Hse_Tub, P=0.57",
    )  # fmt: skip
    panel = read(tmp_path, BAYESM_PANEL)
    assert tasks_of(panel)[0] == ("1", "price=30, seat=6 > price=30, seat=8", "price=30, seat=6 > price=35, seat=6")
    assert "carpool" in panel.intake.ignored_columns


def test_sawtooth_with_none_as_an_empty_concept(tmp_path):
    choices = read(tmp_path, SAWTOOTH)
    assert tasks_of(choices) == [
        ("1001", "Brand=1, Price=2 > Brand=2, Price=1", "Brand=1, Price=2 > None"),
        ("1001", "None > Brand=1, Price=1", "None > Brand=2, Price=3"),
    ]
    assert choices.item_table.filter(item="None").row(0) == ("None", None, None)
    assert "no deal" in read(tmp_path, SAWTOOTH, reading={"none": "no deal"}).items.ids


def test_numbers_of_named_alternatives_are_not_guessed_where_columns_do_not_tell(tmp_path):
    header, *lines = BIOGEME.splitlines()
    order = sorted(range(16), key=lambda place: header.split("\t")[place])
    mixed = "\n".join("\t".join(line.split("\t")[place] for place in order) for line in (header, *lines))
    with pytest.raises(DataError, match=r'columns={"alternatives": \["TRAIN", "SM", "CAR"\]'):
        read(tmp_path, mixed, "mixed.dat")
    told = read(tmp_path, mixed, "mixed.dat", columns={"alternatives": ["TRAIN", "SM", "CAR"]})
    assert told == read(tmp_path, BIOGEME, "swissmetro.dat")


@pytest.mark.slow
@pytest.mark.data
def test_files_as_their_users_have_them_give_the_pairs_that_were_made_of_them_by_hand():
    data = Path(os.environ["PREDILECT_DATA"])
    if not (data / "layouts").is_dir():
        pytest.skip(f"{data / 'layouts'} is missing")
    table = pl.read_csv(data / "electricity" / "items.csv")
    named = {
        str(row["item"]): ", ".join(f"{name}={row[name]}" for name in sorted(row) if name != "item")
        for row in table.to_dicts()
    }
    by_hand = read_file(data / "electricity" / "comparisons.csv.gz", item_map=named, reading={"side": False})
    assert read_file(data / "layouts" / "electricity_long.csv.gz") == by_hand
    wide = read_file(data / "layouts" / "swissmetro_wide.csv.gz", reading={"drop": "unknown"})
    pairs = read_file(data / "swissmetro" / "comparisons.csv.gz")
    assert (wide.n_users, wide.n_items, wide.n_answers) == (pairs.n_users, pairs.n_items, pairs.n_answers)
    assert wide.intake.left_out == {"no clear winner": 9}
