"""What OpenAPI says of the API besides types: who may call what, and an example of each call of participants."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import FastAPI

from predilect.live.web.api import PARTICIPANTS

_SCHEMES = {
    "participant": "The secret that joining sends once.",
    "organiser": "The token that is shown once, when the poll is made.",
}


class _Call(NamedTuple):
    """A call of participants: what is sent, what comes back, and who may call, which is one of several."""

    body: Any = None
    answer: Any = None
    who: tuple[str, ...] = ("participant",)  # "": anybody


_LIBRARY = {
    "number": 1, "name": "A library open on Sundays", "description": "", "image": "", "link": "", "attributes": {}
}  # fmt: skip
_BUSES = {
    "number": 2, "name": "More buses after ten", "description": "*Every* line.", "image": "", "link": "",
    "attributes": {"cost": "2 million"},
}  # fmt: skip
_QUESTION = {"shown": 34, "criterion": 0, "text": "Which idea?", "kind": "pair", "items": [_BUSES, _LIBRARY]}
_RANKING = [
    {"item": "More buses after ten", "mean": 0.29, "sd": 0.43, "lower": -0.55, "upper": 1.14, "rank": 1, "rank_low": 1,
     "rank_high": 2, "p_best": 0.81, "tier": 1, "tied_with_leader": True, "n": 8, "wins": 5, "ties": 1, "losses": 2,
     "win_share": 0.69, "duel_share": 0.59, "duel_share_low": 0.33, "duel_share_high": 0.81},
]  # fmt: skip
_CALLS = {
    ("get", ""): _Call(
        answer={"poll": "ideas", "status": "open", "question": "Which idea?", "kind": "pair", "criteria": [],
                "instruction": "", "consent": "We ask for a study.", "ties": True, "skips": True, "undo": True,
                "proposals": True, "limit": 0, "public": True, "opens": "", "closes": ""}, who=("",),
    ),
    ("post", "/participants"): _Call(
        {"consent": True, "language": "en"}, {"secret": "the secret of this participant alone"}, who=("",)
    ),
    ("post", "/questions"): _Call(answer=[_QUESTION]),
    ("post", "/answers"): _Call(
        {"shown": 34, "criterion": 0, "answer": 2, "key": "34 at 1796000000000", "shown_ms": 2300, "ask": 1},
        {"answer": 35, "repeated": False, "questions": [_QUESTION | {"shown": 36}]},
    ),
    ("put", "/answers/{answer}"): _Call(
        {"answer": "right", "key": "again"}, {"answer": 37, "repeated": False, "questions": []}
    ),
    ("post", "/undo"): _Call({"key": "undo at 1796000000000"}, {"answer": 37}),
    ("post", "/proposals"): _Call({"text": "Benches in the park", "key": "benches"}, {"item": 4}),
    ("get", "/alike"): _Call(answer=[_LIBRARY]),
    ("post", "/items/{item}/report"): _Call(),
    ("get", "/me"): _Call(
        answer={"answered": 1, "left": None, "kept": {
            "question": "Which idea?", "joined": "2026-11-29T13:16:41.839+00:00", "language": "en", "answers": [],
            "questions_without_answer": [
                {"time": "2026-11-29T13:16:41.960+00:00", "shown": [_BUSES["name"], _LIBRARY["name"]]}
            ], "proposals": ["Benches in the park"],
        }},
    ),
    ("get", "/me/ranking"): _Call(answer=_RANKING),
    ("delete", "/me"): _Call(),
    ("get", "/board"): _Call(answer=_RANKING, who=("", "organiser")),
}  # fmt: skip


def describe(app: FastAPI) -> None:
    """Have an application say of its API who may call what, and show an example of each call of participants."""
    types_alone = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            told = types_alone()
            told["components"]["securitySchemes"] = {
                name: {"type": "http", "scheme": "bearer", "description": said} for name, said in _SCHEMES.items()
            }
            for path, methods in told["paths"].items():
                for method, operation in methods.items():
                    _complete(operation, method, path.removeprefix("/api/polls/{poll}"))
        return types_alone()

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    if PARTICIPANTS not in operation["tags"]:
        operation["security"] = [{"organiser": []}]
        return
    call = _CALLS[method, path]
    operation["security"] = [{one: []} if one else {} for one in call.who]
    if call.body is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = call.body
    done = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    if call.answer is not None:
        done["content"]["application/json"]["example"] = call.answer
