from __future__ import annotations

import base64

import pytest

from tests.unit.embedded.calls import Calls, filled


@pytest.fixture
def calls() -> Calls:
    calls = Calls(root_password="secret", jwt_secret="key")
    return calls


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


ROOT = basic("root", "secret")


def test_nobody_and_wrong_passwords_are_refused(calls: Calls) -> None:
    for given in ("", "Basic", "Basic ???", basic("root", ""), basic("nobody", ""), "Bearer a.b.c"):
        assert calls.error("GET", "/_api/version", authorization=given) == (401, 11)
    assert calls.response("GET", "/_api/version", authorization=ROOT).status == 200


def test_a_token_is_good_for_an_hour(calls: Calls) -> None:
    log_in = {"username": "root", "password": "secret"}
    token = calls("POST", "/_open/auth", log_in, expect=200, authorization="")["jwt"]
    bearer = f"bearer {token}"
    calls("GET", "/_api/version", expect=200, authorization=bearer)
    calls.clock.pass_s(3601)
    assert calls.error("GET", "/_api/version", authorization=bearer) == (401, 11)

    forged = token[:-4] + "AAAA"
    assert calls.error("GET", "/_api/version", authorization=f"bearer {forged}") == (401, 11)
    wrong = {"username": "root", "password": "x"}
    assert calls.error("POST", "/_open/auth", wrong, authorization="")[0] == 401


def test_a_user_may_do_what_was_granted(calls: Calls) -> None:
    body = {"name": "shop", "users": [{"username": "ann", "passwd": "a"}]}
    calls("POST", "/_api/database", body, expect=201, authorization=ROOT)
    ann = basic("ann", "a")
    calls("POST", "/_db/shop/_api/collection", {"name": "c"}, expect=200, authorization=ann)
    assert calls.error("GET", "/_api/collection", authorization=ann) == (401, 11)

    grant = "/_api/user/ann/database/shop"
    calls("PUT", grant, {"grant": "ro"}, expect=200, authorization=ROOT)
    assert calls.error("POST", "/_db/shop/_api/document/c", {}, authorization=ann) == (403, 11)
    query = {"query": "FOR d IN c RETURN d"}
    calls("POST", "/_db/shop/_api/cursor", query, expect=201, authorization=ann)
    write = {"query": "INSERT {} INTO c"}
    assert calls.error("POST", "/_db/shop/_api/cursor", write, authorization=ann) == (403, 11)

    calls("PUT", grant, {"grant": "rw"}, expect=200, authorization=ROOT)
    calls("PUT", f"{grant}/c", {"grant": "none"}, expect=200, authorization=ROOT)
    assert calls.error("GET", "/_db/shop/_api/document/c/k", authorization=ann) == (403, 11)
    assert calls.error("POST", "/_db/shop/_api/cursor", query, authorization=ann) == (403, 11)
    calls("DELETE", f"{grant}/c", expect=202, authorization=ROOT)
    calls("DELETE", "/_api/user/ann", expect=202, authorization=ROOT)
    assert calls.error("GET", "/_db/shop/_api/collection", authorization=ann) == (401, 11)


def test_a_user_that_is_not_root_manages_nobody(calls: Calls) -> None:
    calls("POST", "/_api/user", {"user": "bob", "passwd": "b"}, expect=201, authorization=ROOT)
    bob = basic("bob", "b")
    path = "/_api/user/bob/database/_system"
    calls("PUT", path, {"grant": "ro"}, expect=200, authorization=ROOT)

    assert calls.error("POST", "/_api/user", {"user": "eve"}, authorization=bob)[1] == 11
    assert calls.error("GET", "/_api/user", authorization=bob)[1] == 11
    assert calls("GET", "/_api/user/bob", expect=200, authorization=bob)["user"] == "bob"
    calls("PATCH", "/_api/user/bob", {"passwd": "c"}, expect=200, authorization=bob)
    assert calls.error("GET", "/_api/user/bob", authorization=bob) == (401, 11)


def test_a_failed_creation_of_a_database_leaves_nothing(calls: Calls) -> None:
    body = {"name": "shop", "users": [{"username": "ann"}, "no object"]}
    assert calls.error("POST", "/_api/database", body, authorization=ROOT)[0] == 400
    assert calls.error("GET", "/_api/user/ann", authorization=ROOT) == (404, 1703)
    assert calls.error("DELETE", "/_api/database/shop", authorization=ROOT) == (404, 1228)


def test_without_authentication_everybody_is_root() -> None:
    calls = Calls(is_authenticating=False)
    calls("POST", "/_api/database", {"name": "shop"}, expect=201, authorization="")
    filled(calls, "c", [{}])
