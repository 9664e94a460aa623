from __future__ import annotations

from tests.unit.embedded.calls import Calls, request


def transcript() -> list[bytes]:
    calls = Calls(is_cluster=True, regions=("eu", "us"))
    answers = []
    for method, path, body in (
        ("POST", "/_api/collection", {"name": "c", "keyOptions": {"type": "uuid"}}),
        ("POST", "/_api/document/c", [{"n": n} for n in range(5)]),
        ("POST", "/_api/cursor", {"query": "FOR d IN c SORT RAND() RETURN d"}),
        ("POST", "/_api/user", {"user": "u", "passwd": "p"}),
        ("POST", "/_api/cursor", {"query": "RETURN [DATE_NOW(), RAND()]"}),
        ("GET", "/_admin/time", None),
    ):
        calls.clock.pass_s(0.25)
        response = calls.engine.handle(request(method, path, body))
        answers.append(response.body)
    return answers


def test_the_same_calls_on_the_same_clock_and_seed_give_the_same_bytes() -> None:
    assert transcript() == transcript()
