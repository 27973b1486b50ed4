"""Named organisers: what each role may do by every way, links that are taken back, and the trail of who did what."""

from __future__ import annotations

import re

import httpx
import pytest

from live.polls import answered, made
from live.served import browser, fields, joined, served
from predilect.errors import DataError
from predilect.live import Poll
from predilect.live.acts import ACTS, ROLES, may
from predilect.live.given import Refused
from predilect.live.state import OWNER


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Address and host of a poll, with the token of each role."""
    folder = tmp_path_factory.mktemp("organised")
    with made(folder, name="ideas", proposals=True) as poll:
        tokens = {"owner": poll.token} | {role: poll.invite(f"<b>{role}</b>", role)[1] for role in ROLES}
    with served(str(folder / "poll.db")) as (address, host):
        yield address, host, tokens


def bearer(token):
    return {"authorization": f"Bearer {token}"}


CALLS = [
    ("reader", "GET", "/people", None), ("reader", "GET", "/export/trail", None),
    ("reader", "GET", "/organisers", None),
    ("organiser", "GET", "/export/participants?pids=yes", None), ("organiser", "GET", "/export/events", None),
    ("organiser", "GET", "/settings", None), ("organiser", "PUT", "/settings", {"webhook": "https://{}.example/secret"}),
    ("moderator", "POST", "/items", {"items": [{"name": "{}"}]}),
    ("moderator", "PUT", "/items/1", {"description": "{}"}),
    ("moderator", "POST", "/items/2/retire", None),
    ("moderator", "POST", "/items/2/moderate", {"accept": True}),
    ("moderator", "POST", "/items/3/merge", {"into": 1}), ("moderator", "POST", "/items/3/part", None),
    ("organiser", "PUT", "/status", {"status": "open"}),
    ("organiser", "POST", "/organisers", {"name": "{}"}),
]  # fmt: skip


@pytest.mark.parametrize(("role", "method", "path", "body"), CALLS)
def test_the_api_does_what_a_role_allows_and_no_more(place, role, method, path, body):
    address, _, tokens = place
    for one in (*ROLES, "owner"):
        told = (
            None if body is None else httpx.Request("POST", "http://x", json=body).content.replace(b"{}", one.encode())
        )
        headers = bearer(tokens[one]) | {"content-type": "application/json"}
        answer = httpx.request(method, f"{address}/api/polls/ideas{path}", content=told, headers=headers, timeout=60)
        allows = one == "owner" or ROLES.index(one) >= ROLES.index(role)
        assert (answer.status_code < 300) == allows, answer.text
        assert allows or (answer.status_code, "not for a" in answer.text) == (403, True)


def test_every_act_is_for_a_role_and_the_owner_may_do_all():
    assert {act.role for act in ACTS.values()} == {"moderator", "organiser"}
    assert all(may(OWNER, act.role) for act in ACTS.values())


def test_a_link_is_shown_once_signs_in_by_a_button_and_is_taken_back(place):
    address, host, tokens = place
    ruler = browser(address)
    ruler.post("/o/ideas/sign-in", data={"token": tokens["owner"]})
    form = fields(ruler.get("/o/ideas/organisers").text, "/organisers")
    page = ruler.post("/o/ideas/organisers", data=form | {"name": "Zoë", "role": "moderator"}).text
    link = re.search(r'id="made-link">([^<]+)<', page)[1]
    assert link.startswith(f"{address}/o/ideas/in/")
    assert link not in ruler.get("/o/ideas/organisers").text
    again = ruler.post("/o/ideas/organisers", data=form | {"name": " Zoë ", "role": "reader"})
    assert (again.status_code, "already" in again.text) == (400, True)
    zoe = browser(address)
    asked = zoe.get(link)
    assert "Zoë" in asked.text
    assert zoe.get("/o/ideas/items").status_code == 403  # the address alone does nothing
    zoe.post("/o/ideas/sign-in", data=fields(asked.text, "/sign-in"))
    items = zoe.get("/o/ideas/items").text
    assert "Zoë" in items
    assert zoe.post("/o/ideas/items", data=fields(items, "/items") | {"names": "cocoa of Zoë"}).status_code == 200
    csrf = fields(items, "/items")
    for path, said in (
        ("status", {"status": "closed"}),
        ("organisers", {"name": "x", "role": "reader"}),
        ("settings", {}),
    ):
        assert zoe.post(f"/o/ideas/{path}", data=csrf | said).status_code == 403
    assert zoe.get("/o/ideas/settings").status_code == 403
    number = next(one.number for one in host.poll("ideas").organisers() if one.name == "Zoë")
    ruler.post("/o/ideas/organisers", data=form | {"revoke": str(number)})
    assert zoe.get("/o/ideas/items").status_code == 403
    assert zoe.post("/o/ideas/items", data=csrf | {"names": "more"}).status_code == 403
    assert browser(address).get(link).status_code == 403
    trail = ruler.get("/o/ideas/organisers").text
    assert "cocoa of Zoë" in trail
    assert "Zoë" in ruler.get("/o/ideas/export/trail.csv").text  # what they did is not forgotten


def test_pages_offer_what_a_role_may_do(place):
    address, _, tokens = place
    for role, n in (("reader", 0), ("moderator", 1), ("organiser", 1)):
        client = browser(address)
        client.post("/o/ideas/sign-in", data={"token": tokens[role]})
        pages = {
            path: client.get(f"/o/ideas{path}").text for path in ("", "/items", "/items/1", "/people", "/organisers")
        }
        assert all(f"&lt;b&gt;{role}&lt;/b&gt;" in page and f"<b>{role}" not in page for page in pages.values())
        assert pages["/items"].count('name="names"') == n
        assert pages["/items/1"].count('value="change"') == n
        for path, what in (("", 'name="status"'), ("/organisers", 'name="revoke"'), ("", "/settings")):
            assert (what in pages[path]) == (role == "organiser"), (role, what)


def test_the_trail_says_who_did_what_and_participants_are_not_in_it(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        ann, _ = poll.invite("Ann", "organiser")
        poll.act("retire", "tea", by=ann)
        poll.act("change", {"limit": 20, "webhook": "https://hook.example/secret"}, by=ann)
        poll.edit_item("milk", name="oat milk")
        poll.propose_item("somebody", "lemonade")
        poll.act("moderate", "lemonade", False, by=ann)
        poll.act("set_status", "paused", by=ann)
        poll.resume()
        poll.act("merge", "juice", "cola", by=ann)
        poll.part_item("juice")
        answered(poll, ["bob", "cid"], 1)
        poll.erase("somebody")  # they do it themselves
        poll.erase("bob", by=ann)
        poll.revoke("Ann")
        found = [(row["who"], row["act"], row["what"]) for row in poll.export("trail").to_dicts()]
        assert found == [
            ("", "made", ""), ("", "added", "tea, milk, juice, water, cola"), ("", "invited", "Ann (organiser)"),
            ("Ann", "retired", "tea"), ("Ann", "changed", "limit: 20, webhook: ..."), ("", "edited", "oat milk (name)"),
            ("Ann", "refused", "(erased\u00a06)"), ("Ann", "paused", ""), ("", "open", ""),
            ("Ann", "merged", "juice → cola"), ("", "parted", "juice"), ("Ann", "erased", f"p{found_number(found)}"),
            ("", "revoked", "Ann"),
        ]  # fmt: skip
        with Poll.open(tmp_path / "poll.db", background=False) as again:
            assert again.export("trail").equals(poll.export("trail"))


def found_number(found):
    return next(what[1:] for _, act, what in found if act == "erased")


def test_who_was_revoked_does_nothing_and_others_go_on(tmp_path):
    with made(tmp_path) as poll, Poll.open(tmp_path / "poll.db", background=False) as other:
        ann, token = poll.invite("Ann", "moderator")
        assert other.organiser(token).name == "Ann"  # though it has not read the log since
        assert token not in (tmp_path / "poll.db").read_bytes().decode("latin-1")
        poll.revoke(ann)
        assert other.organiser(token) is None
        with pytest.raises(Refused, match="taken back"):
            other.act("retire", "tea", by=ann)  # decided on the log of all, within the transaction
        again, _ = poll.invite("Ann", "reader")
        assert again != ann
        with pytest.raises(Refused, match="not for a reader"):
            poll.act("retire", "tea", by=again)
        for wrong in (lambda: poll.invite("Ann"), lambda: poll.invite(" "), lambda: poll.invite("x", "king"),
                      lambda: poll.revoke("Bob"), lambda: poll.revoke(0), lambda: poll.act("rule")):  # fmt: skip
            with pytest.raises(DataError):
                wrong()


def test_a_reader_is_told_numbers_of_the_server_for_their_poll_alone(place):
    address, _, tokens = place
    assert httpx.get(f"{address}/metrics", headers=bearer(tokens["reader"])).status_code == 200
    assert joined(address, "ideas").get("/o/ideas/organisers").status_code == 403
