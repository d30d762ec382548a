"""What holds for every request: names, limits, headers, links that let in once, sessions and tokens with an end."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from podwright.console.access.guard import MAX_BODY_BYTES, host_is_known, masked, unmasked
from podwright.console.access.people import DAY_S, LINK_S, MAX_SESSIONS, SESSION_S
from podwright.console.web.answers import Answer
from podwright.console.web.app import Console
from podwright.console.web.route import Nothing, Visit, WebRoute
from tests.unit.console.conftest import GOOD, Site, csrf


def test_a_link_lets_in_once(site: Site) -> None:
    key = site.desk.people.new_link()
    first = site.client().get("/enter", params={"key": key})
    assert first.status_code == 303
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    again = site.client().get("/enter", params={"key": key})
    assert again.status_code == 401
    assert "used up" in again.text
    assert "set-cookie" not in again.headers


def test_a_link_and_a_session_end(site: Site) -> None:
    key = site.desk.people.new_link()
    site.hands.time_s += LINK_S + 1
    assert site.client().get("/enter", params={"key": key}).status_code == 401
    client = site.entered()
    assert client.get("/runs").status_code == 200
    site.hands.time_s += SESSION_S + 1
    assert client.get("/runs").status_code == 401


def test_signing_out_ends_the_session_for_all_who_hold_it(site: Site) -> None:
    client = site.entered()
    cookies = dict(client.cookies)
    assert client.post("/leave", data={"csrf": csrf(client.get("/").text)}).status_code == 200
    other = site.client()
    other.cookies.update(cookies)
    assert other.get("/").status_code == 401


def test_sessions_are_bounded(site: Site) -> None:
    people = site.desk.people
    first = people.enter(people.new_link())
    assert first is not None
    for _ in range(MAX_SESSIONS):
        people.enter(people.new_link())
    assert people.of_session(first) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]", "a:b:c"]
)
def test_a_name_that_is_not_ours_is_refused(host: str, site: Site) -> None:
    """A page elsewhere may have its own name lead to this machine, and then read what we answer."""
    assert site.entered().get("/runs", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"])
def test_our_names_are_known(host: str) -> None:
    assert host_is_known(host, frozenset({"127.0.0.1", "localhost", "::1"}))


def test_so_many_requests_and_no_more(site: Site) -> None:
    client = site.entered()
    statuses = {client.get("/static/none").status_code for _ in range(450)}
    assert statuses == {404, 429}
    site.hands.moving_s += 10
    assert client.get("/runs").status_code == 200


def test_guessing_is_slow(site: Site) -> None:
    guess = {"Authorization": "Bearer pwt_00000000_guess"}
    statuses = [site.client().get("/runs", headers=guess).status_code for _ in range(25)]
    assert statuses[:20] == [401] * 20
    assert statuses[-1] == 429


def test_a_body_is_bounded(site: Site) -> None:
    answer = site.client().post("/api/v1/runs/tag", content=b"x" * (MAX_BODY_BYTES + 1), headers=site.token("steer"))
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"runs=a", "text/plain", 415),
        (b"&".join([b"a=b"] * 3000), "application/x-www-form-urlencoded", 400),
        (b'{"runs": ["last"], "tags": []}', "application/json", 400),
        (b'{"runs": [1]}', "application/json", 400),
        (b'{"runs": []}', "application/json", 400),
    ],
)
def test_a_body_that_is_none(body: bytes, kind: str, status: int, site: Site) -> None:
    headers = {**site.token("steer"), "Content-Type": kind}
    answer = site.client().post("/api/v1/runs/cancel", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["errors"][0]["message"]


def test_every_answer_says_what_may_be_done_with_it(site: Site) -> None:
    client = site.entered()
    for path in ("/", "/runs", f"/runs/{GOOD}", "/api/v1/runs", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


def test_a_token_is_told_once_and_kept_as_a_digest(site: Site) -> None:
    client = site.entered()
    page = client.post(
        "/settings/tokens",
        data={"csrf": csrf(client.get("/settings").text), "name": "ci", "rights": ["look"], "days": "2"},
    )
    text = page.text.partition('<pre id="token">')[2].partition("<")[0]
    assert text.startswith("pwt_")
    stored = (site.session.home.path / "console" / "tokens.jsonl").read_text()
    assert text.split("_")[2] not in stored
    header = {"Authorization": f"Bearer {text}"}
    assert site.client().get("/api/v1/runs", headers=header).status_code == 200
    assert text not in client.get("/settings").text
    site.hands.time_s += 3 * DAY_S
    assert site.client().get("/api/v1/runs", headers=header).status_code == 401


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"name": "", "rights": ["look"]}, "name"),
        ({"name": "a", "rights": []}, "rights"),
        ({"name": "a", "rights": ["everything"]}, "rights"),
        ({"name": "a", "rights": ["look"], "days": 0}, "days"),
        ({"name": "a", "rights": ["look"], "days": 9999}, "days"),
        ({"name": "a", "days": "soon"}, "days"),
        ({"name": "a", "for": "ever"}, "for"),
    ],
)
def test_a_token_that_is_not_made(asked: dict[str, object], field: str, site: Site) -> None:
    answer = site.client().post("/api/v1/tokens", json=asked, headers=site.token("manage"))
    assert answer.status_code == 400
    assert field in {error["field"] for error in answer.json()["errors"]}


def test_a_proof_is_another_text_each_time_and_the_same_proof() -> None:
    texts = {masked("ab" * 16) for _ in range(8)}
    assert len(texts) == 8
    assert {unmasked(text) for text in texts} == {"ab" * 16}
    assert unmasked("zz") == ""


def test_a_fault_of_ours_is_said_and_written_down(site: Site) -> None:
    def fails(visit: Visit, asked: Nothing) -> Answer:
        raise KeyError("what nobody thought of")

    row = WebRoute("GET", "/", "look", Nothing, "page", fails, "Fails")
    client = TestClient(Console(site.desk, [row]), "http://localhost")
    answer = client.get("/", headers=site.token("look"))
    assert answer.status_code == 500
    assert "what nobody thought of" not in answer.text
    assert answer.headers["content-security-policy"]
    written = site.session.home.path / "console" / "faults.log"
    assert "KeyError: 'what nobody thought of'" in written.read_text()
    assert written.stat().st_mode & 0o777 == 0o600


def test_the_audit_has_every_act_and_who_did_it(site: Site) -> None:
    client = site.entered()
    proof = csrf(client.get("/runs").text)
    client.post("/runs/act", data={"csrf": proof, "act": "tag", "run": GOOD, "tags": "paper", "confirmed": "yes"})
    site.client().post(f"/api/v1/runs/{GOOD}/note", json={"text": "a secret"}, headers=site.token("steer"))
    site.client().post("/api/v1/runs/cancel", json={"runs": [GOOD]}, headers=site.token("look"))
    rows = client.get("/api/v1/audit").json()
    told = [(row["who"], row["what"], row["outcome"]) for row in rows]
    assert [what for _, what, _ in told] == ["/api/v1/runs/cancel", "note", "tag", "enter"]
    assert told[0][0] == told[1][0] == "token a program"
    assert told[0][2] == "refused: no right"
    assert "a secret" not in json.dumps(rows)
    path = site.session.home.path / "console" / "audit.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
