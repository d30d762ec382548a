"""Every route, with every right and every state of a token: what is not allowed is denied. Made from the table."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from podwright.console.access.people import DAY_S
from podwright.console.access.rights import RIGHTS
from podwright.console.routes.table import ROUTES
from podwright.console.web.asking import Names, is_needed, kinds_of
from podwright.console.web.route import WebRoute
from tests.unit.console.conftest import GOOD, Site, csrf

OPEN = [route for route in ROUTES if route.right == "anyone"]
CLOSED = [route for route in ROUTES if route.right != "anyone"]
CHANGING = [route for route in CLOSED if route.changes]
STREAMS = "events"
NOBODY, NO_RIGHT = 401, 403


def address(route: WebRoute) -> str:
    """Return a route's address with something in its places."""
    names = {
        "run": GOOD,
        "pod": "none",
        "drawing": "compute",
        "file": "none.css",
        "suite": "none",
        "name": "none",
        "node": "none",
    }
    return re.sub(r"{(\w+)}", lambda match: names[match[1]], route.path)


def body(route: WebRoute) -> dict[str, object]:
    """Return a body that a route would read."""
    kinds = kinds_of(route.request)
    needed = [field.name for field in fields(route.request) if is_needed(route.request, field.name)]
    in_path = set(re.findall(r"{(\w+)}", route.path))
    return {name: [GOOD] if kinds[name] == Names else "x" for name in needed if name not in in_path}


def names(routes: list[WebRoute]) -> list[str]:
    return [f"{route.method} {route.path}" for route in routes]


def asked(site: Site, route: WebRoute, headers: dict[str, str]) -> int:
    client = site.client()
    if route.method == "GET":
        return client.get(address(route), headers=headers).status_code
    return client.request(route.method, address(route), headers=headers, json=body(route)).status_code


def test_only_the_way_in_and_its_looks_are_open() -> None:
    assert [route.path for route in OPEN] == ["/enter", "/static/{file}"]


@pytest.mark.parametrize("route", CLOSED, ids=names(CLOSED))
def test_nobody_gets_nothing(route: WebRoute, site: Site) -> None:
    ended = site.token(*RIGHTS, days=1)
    revoked = site.token(*RIGHTS)
    site.desk.people.revoke(revoked["Authorization"].split("_")[1])
    site.hands.time_s += 2 * DAY_S
    wrong = {"Authorization": "Bearer pwt_00000000_wrong"}
    for headers in ({}, ended, revoked, wrong, {"Authorization": "Basic eA=="}, {"Cookie": "podwright=wrong"}):
        assert asked(site, route, headers) == NOBODY, headers


@pytest.mark.parametrize("route", CLOSED, ids=names(CLOSED))
@pytest.mark.parametrize("right", RIGHTS)
def test_a_token_opens_what_its_right_is_for_and_nothing_else(route: WebRoute, right: str, site: Site) -> None:
    if route.result == STREAMS and right == route.right:
        assert route.path == "/api/v1/events"  # it has no end: the browser's tests listen to it
        return
    status = asked(site, route, site.token(right))
    if right == route.right:
        assert status not in (NOBODY, NO_RIGHT)
        assert status < 500
    else:
        assert status == NO_RIGHT


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.changes and route.right != "anyone"], ids=lambda r: r.path
)
def test_a_session_changes_nothing_without_the_proof_of_its_own_pages(route: WebRoute, site: Site) -> None:
    client = site.entered()
    own = csrf(client.get("/runs").text)
    other = csrf(site.entered().get("/runs").text)
    for proof in ("", "0" * 64, other, own[:32]):
        answer = client.request(route.method, address(route), json={**body(route), "csrf": proof})
        assert answer.status_code == NO_RIGHT, proof
    foreign = {"Sec-Fetch-Site": "cross-site"}
    answer = client.request(route.method, address(route), json={**body(route), "csrf": own}, headers=foreign)
    assert answer.status_code == NO_RIGHT
    allowed = client.request(route.method, address(route), json={**body(route), "csrf": own})
    assert allowed.status_code not in (NOBODY, NO_RIGHT)


def test_what_is_not_in_the_table_is_denied_to_nobody_and_missing_for_others(site: Site) -> None:
    assert site.client().get("/nothing").status_code == NOBODY
    assert site.entered().get("/nothing").status_code == 404
    assert site.entered().put("/runs").status_code == 405
    assert site.client().put("/runs").status_code == NOBODY


@pytest.mark.parametrize("base", ["/pods", "/a/b"])
@pytest.mark.parametrize("way", ["console", "server"])
def test_a_base_path_opens_nothing(base: str, way: str, site: Site) -> None:
    """Whether the console is told of it, or the server before it: the gate sees the same path."""
    options = {"root_path": base} if way == "server" else {}
    own = base if way == "console" else ""
    client = site.client(own, **options)
    for path in ("/", "/runs", "/api/v1/runs", "//runs", "/runs/"):
        assert client.get(f"{base}{path}").status_code == NOBODY, path
    entered = client.get(f"{base}/enter", params={"key": site.desk.people.new_link()})
    assert entered.headers["location"] == f"{base}/"
    assert f"Path={base}/" in entered.headers["set-cookie"]
    page = client.get(f"{base}/runs")
    assert page.status_code == 200
    links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text))
    assert {link for link in links if not link.startswith(f"{base}/")} == set()
    assert client.get(next(link for link in links if link.endswith(".css"))).status_code == 200


def test_below_a_base_path_there_is_nothing_beside_it(site: Site) -> None:
    client = site.entered("/pod")
    assert client.get("/pod/runs").status_code == 200
    assert client.get("/pod").headers["location"] == "/pod/"
    for path in ("/runs", "/pods", "/", "/podx/runs"):
        assert client.get(path).status_code == 404, path
