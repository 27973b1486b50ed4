"""``predilect open``: the pages without script, beside the command that does the same."""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="needs predilect[live]")
pytest.importorskip("sqlalchemy", reason="needs predilect[live]")

from cli.desks import Visitor, desk_served
from cli.running import run
from made_tables import LAYOUTS, Dice, made
from predilect.cli.desk.asked import Asked
from predilect.cli.desk.looks import Looks
from predilect.cli.desk.shelf import Shelf
from predilect.data.read.options import OPTIONS
from reading_score import frame_of

VOTES = "judge,left,right,winner\n" + "".join(
    f"p{k},{a},{b},{a}\n" for k in range(12) for a, b in (("tea", "milk"), ("milk", "juice"), ("tea", "juice"))
)
UNCLEAR = VOTES.replace("judge,left,right,winner", "judge,x,y,z")


@pytest.fixture(scope="module")
def desk():
    with desk_served() as (address, desk):
        yield address, desk


@pytest.fixture
def visitor(desk):
    with Visitor(desk[0]) as visitor:
        yield visitor


def file(folder: Path, text: str, name: str = "votes.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.slow
def test_a_file_that_is_dropped_is_read_ranked_and_shown_with_the_numbers_of_the_command(visitor, tmp_path):
    visitor.upload(file(tmp_path, VOTES))
    assert "Row 1: p0 prefers tea to milk." in visitor.page
    assert "Row 3: p0 prefers tea to juice." in visitor.page
    command = shlex.split(visitor.command)
    assert command == ["predilect", "rank", "votes.csv", "-o", "results"]
    visitor.submit("/rank", personal="no").ranked()
    assert "/results/" in visitor.at
    assert "tea" in visitor.page
    content = httpx.get(visitor.at + "/folder.zip").content
    own = run("rank", tmp_path / "votes.csv", "--personal", "no", "-o", tmp_path / "results")
    assert own.exit_code == 0
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.read("results/leaderboard.csv") == (tmp_path / "results" / "leaderboard.csv").read_bytes()
    for question, said in (
        ("ask=pair&left=tea&right=milk", "tea is better than milk with probability"),
        ("ask=pair&left=tea&right=beer", "beer"),
        ("ask=person&user=p0", "3 items, best first"),
        ("ask=person", ""),
        ("ask=groups", "too few people"),
    ):
        answer = httpx.get(f"{visitor.at}/answer?{question}")
        assert answer.status_code == 200
        assert said in answer.text, answer.text
    assert "p0" not in httpx.get(visitor.at + "/page.html").text
    assert httpx.get(visitor.at + "/board.csv").text.startswith("item,mean")


def test_a_question_is_one_click(visitor, tmp_path):
    visitor.upload(file(tmp_path, UNCLEAR))
    assert "in more than one way" in visitor.page
    assert len(visitor.ways) > 1
    visitor.go(visitor.ways[0])
    assert "Row 1:" in visitor.page
    assert '<button class="main">Rank' in visitor.page


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_after_two_clicks_as_by_the_command_that_the_page_says(layout, tmp_path):
    shelf = Shelf()
    table = frame_of(made(layout, Dice(1)).columns, True)
    path = tmp_path / "made.parquet"
    table.write_parquet(path)
    asked, looks = Asked(shelf.put(path)), Looks(shelf)
    for _ in range(2):
        look = looks.at(asked)
        asked = look.ways[0].asked if look.ways else asked
    look = looks.at(asked)
    if look.answers is not None:
        words = shlex.split(asked.command(shelf))
        done = run("check", path, *words[3 : words.index("-o")], "--format", "json")
        assert done.exit_code == 0, done.stderr
        assert look.answers.intake.example[0] in done.stdout.replace('\\"', '"')
    else:
        assert look.problem
    shelf.close()


def test_controls_say_what_the_options_say(visitor, tmp_path):
    visitor.upload(file(tmp_path, VOTES))
    assert {f'name="role.{one.name}"' for one in OPTIONS if one.is_column} <= set(
        re.findall(r'name="role\.[^"]+"', visitor.page)
    )
    visitor.submit("/read", **{"role.left": "right", "role.right": "left", "role.answer": "winner", "key.tie": "even"})
    assert "column=left%3Dright" in visitor.at
    assert "read=tie%3Deven" in visitor.at
    assert "-c left=right -c right=left" in visitor.command


@pytest.mark.slow
def test_a_limit_of_the_address_stays_and_holds(visitor, tmp_path):
    with zipfile.ZipFile(tmp_path / "votes.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("votes.csv", VOTES + "p0,tea,milk,tea\n" * 300_000)
    visitor.upload(tmp_path / "votes.zip")
    visitor.go(f"{visitor.at}&read=unpack-limit%3D0.002")
    assert "more than 0.002 GB" in visitor.page
    visitor.submit("/read", **{"key.tie": "even"})
    assert "unpack-limit%3D0.002" in visitor.at
    assert "more than 0.002 GB" in visitor.page


def test_a_second_table_can_lie_beside(visitor, tmp_path):
    visitor.upload(file(tmp_path, VOTES))
    people = "user,school\n" + "".join(f"p{k},{'north' if k % 2 else 'south'}\n" for k in range(12))
    visitor.upload(file(tmp_path, people, "people.csv"), "new-people")
    assert 'name="segment" value="school"' in visitor.page
    assert "--people people.csv" in visitor.command


def test_a_ranking_can_be_stopped_and_begun_again(visitor, tmp_path):
    visitor.upload(file(tmp_path, VOTES)).submit("/rank")
    place = re.search(r"/work/(\w+)", visitor.at)[0]
    visitor.submit(f"{place}/stop")
    assert "/read?" in visitor.at
    assert "Stopped" in visitor.go(f"{visitor.address}{place}").page


def test_whoever_has_not_the_address_gets_nothing(desk, tmp_path):
    address, _ = desk
    origin = address.rpartition("/")[0]
    for place, headers, status in (
        (f"{origin}/", {}, 404),
        (f"{origin}/other-token/", {}, 404),
        (f"{address}/", {"host": "predilect.example:80"}, 404),
        (f"{address}/", {"host": "127.0.0.1.example"}, 404),
    ):
        assert httpx.get(place, headers=headers).status_code == status, place
    for headers in ({"origin": "http://elsewhere.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        answer = httpx.post(f"{address}/", headers=headers, files={"new-file": ("votes.csv", VOTES)})
        assert answer.status_code == 403, headers
    answer = httpx.get(f"{address}/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("votes.csv", b"", "empty"),
        ("../../votes.csv", b"\x00\x01", "This did not work"),
        ("votes.xlsx", b"PK\x03\x04 broken", "votes.xlsx"),
        ("<script>.csv", VOTES.encode(), "_script_.csv"),
        ("votes.csv", VOTES.replace("tea", "<img src=x onerror=alert(1)>").encode(), "&lt;img src=x"),
    ],
)
def test_bad_files_end_in_words(visitor, name, content, said):
    answer = httpx.post(f"{visitor.address}/", files={"new-file": (name, content)}, follow_redirects=True)
    assert answer.status_code in (200, 400)
    assert said in answer.text or 'class="wrong"' in answer.text
    assert "<img src=x" not in answer.text
    assert "Traceback" not in answer.text


def test_what_is_not_open_any_more_is_said(visitor):
    for place in ("/read?file=nothing", "/results/nothing", "/read"):
        assert "not open any more" in visitor.go(f"{visitor.address}{place}").page
    assert "not under way" in visitor.go(f"{visitor.address}/work/nothing").page
