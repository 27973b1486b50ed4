"""What ``/api/openapi.json`` says beside types: who may call what, errors, and an example of each call."""

from __future__ import annotations

import httpx
import pytest

from live.polls import answered, made
from live.served import served

PLACE = "/api/polls/{poll}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Address of a server with a poll, and what it says of its API."""
    folder = tmp_path_factory.mktemp("described")
    told = {"name": "ideas", "question": "Which idea?", "own_ranking": 1, "proposals": True, "public": True}
    items = [
        "A library open on Sundays",
        {"name": "More buses after ten", "attributes": {"cost": "2 million"}},
        "Trees",
    ]
    with made(folder, items, **told) as poll:
        answered(poll, [f"p{k}" for k in range(6)], 2)
    with served(str(folder / "poll.db")) as (address, _):
        yield address, httpx.get(f"{address}/api/openapi.json").json()


@pytest.fixture
def calls(place):
    """Everything that can be called: method, path and what is said of it."""
    return [(method, path, one) for path, methods in place[1]["paths"].items() for method, one in methods.items()]


def test_all_of_it_says_who_may_call(place, calls):
    assert {one["scheme"] for one in place[1]["components"]["securitySchemes"].values()} == {"bearer"}
    said = {(method, path.removeprefix(PLACE)): one["security"] for method, path, one in calls}
    assert said["get", ""] == said["post", "/participants"] == [{}]
    assert said["post", "/answers"] == said["delete", "/me"] == [{"participant": []}]
    assert said["get", "/board"] == [{}, {"organiser": []}]
    assert said["put", "/status"] == said["delete", "/participants/{number}"] == [{"organiser": []}]
    address = place[0]
    for method, path, one in calls:  # and it is so: whoever is nobody is refused, and nobody else
        where = address + path.format(poll="ideas", item=1, answer=1, number=1, kind="answers")
        answer = httpx.request(method, where, timeout=120)  # the first board may compile loops
        assert (answer.status_code == 403) == ({} not in one["security"]), (method, path)


def test_every_error_has_one_schema(place, calls):
    address, told = place
    (schema,) = {
        answer["content"]["application/json"]["schema"]["$ref"]
        for *_, one in calls for status, answer in one["responses"].items() if status >= "4"
    }  # fmt: skip
    assert set(told["components"]["schemas"][schema.rpartition("/")[2]]["properties"]) == {"error"}
    for status, answer in {
        403: httpx.post(f"{address}/api/polls/ideas/questions"), 404: httpx.get(f"{address}/api/polls/nobody"),
        422: httpx.post(f"{address}/api/polls/ideas/participants", json={"consent": 3}),
    }.items():  # fmt: skip
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}
        assert all(str(status) in one["responses"] for *_, one in calls)


def shape(told):
    """What a value consists of, whatever is in it."""
    if isinstance(told, dict):
        return {key: shape(one) for key, one in told.items() if key not in ("attributes", "left")}
    if isinstance(told, list):
        return [shape(one) for one in told[:1]]
    return float if isinstance(told, int) and not isinstance(told, bool) else type(told)


def test_examples_are_calls_that_are_answered_so(place, calls):
    """Each call of participants, with what its example sends: what comes back looks as its example says."""
    address, _ = place
    said = {(method, path.removeprefix(PLACE)): one for method, path, one in calls if one["tags"] == ["participants"]}
    headers, numbers, tried = {}, {"item": 1}, []

    def call(method, path, **changed):
        one = said[method, path]
        content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = content["example"] | changed if content else None
        where = f"{address}/api/polls/ideas{path.format(**numbers)}"
        query = {"params": {"text": "a libary on sundays"}} if path == "/alike" else {}
        answer = httpx.request(method, where, json=body, headers=headers, timeout=120, **query)
        (status,) = [one for one in one["responses"] if one < "3"]
        assert answer.status_code == int(status), answer.text
        tried.append((method, path))
        if answer.text:
            example = one["responses"][status]["content"]["application/json"]["example"]
            assert shape(answer.json()) in (shape(example), []), path
            return answer.json()
        return None

    call("get", "")
    headers["authorization"] = f"Bearer {call('post', '/participants')['secret']}"
    (question,) = call("post", "/questions")
    told = call("post", "/answers", shown=question["shown"], answer=question["items"][0]["number"])
    call("post", "/items/{item}/report")
    numbers["answer"] = told["answer"]
    assert call("put", "/answers/{answer}")["answer"] > told["answer"]
    for path in ("/me/ranking", "/board", "/alike"):
        assert call("get", path)
    call("post", "/undo")
    call("post", "/proposals")
    call("get", "/me")
    call("delete", "/me")
    assert sorted(tried) == sorted(said)
