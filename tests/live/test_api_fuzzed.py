"""The API takes whatever is sent to it without failing: calls made up by schemathesis from its own description."""

from __future__ import annotations

import pytest

from cases import MORE
from live.polls import DRINKS, answered, made
from predilect.live.web.app import create_app
from predilect.live.web.hosting import Host

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install -e .[outside]")
N_CALLS = 8 * MORE  # of each operation and kind of caller; 10 000 in all are PREDILECT_CASES=16


@pytest.mark.slow
@pytest.mark.parametrize("caller", ["nobody", "participant", "organiser"])
def test_no_call_makes_the_server_fail(tmp_path, caller):
    """Nothing but refusals: no 5xx, for known and for made-up polls, items and participants."""
    from hypothesis import HealthCheck, Phase, given, settings

    with made(tmp_path, DRINKS, proposals=True, public=True, name="x") as poll:
        answered(poll, ["ann", "bob"], 2)
        token = poll.token
        poll.join(secret="the secret")
    host = Host(str(tmp_path / "poll.db"))
    app = create_app(host, joins=10**9)
    for rate in (app.state.access.answers, app.state.access.attempts):
        rate.per_second = rate.burst = 1e9
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    secret = {"participant": "the secret", "organiser": token}.get(caller)
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    n, failed = 0, []
    for operation in (found.ok() for found in schema.get_all_operations()):
        if operation.method.upper() == "DELETE" and caller != "nobody":
            continue  # whoever erases themselves is nobody afterwards

        @settings(max_examples=N_CALLS, deadline=None, database=None, phases=[Phase.generate], derandomize=True,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=operation.as_strategy())
        def call(case):
            nonlocal n
            if n % 4:
                case.path_parameters = (case.path_parameters or {}) | {"poll": "x"}
            n += 1
            answer = case.call(headers=headers)
            if answer.status_code >= 500:
                failed.append((case.method, case.path, case.path_parameters, case.body, answer.status_code))

        call()
    host.close()
    assert failed == []
    assert n > 10 * N_CALLS
