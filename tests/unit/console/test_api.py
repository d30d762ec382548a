"""The description of the API is true: every document fits its schema, and every route is in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from podwright.console.live.feed import changes_since
from podwright.console.routes.table import ROUTES
from podwright.console.web.openapi import openapi
from podwright.console.web.route import API, WebRoute
from tests.unit.console.conftest import (
    BAD,
    DATASET,
    GOOD,
    POD,
    SELECTIONS,
    SIDES,
    SUITE,
    Site,
    furnish,
    furnish_data,
)

DESCRIBED: dict[str, Any] = openapi(ROUTES, "")
ASKED = [route for route in ROUTES if route.is_api and not route.changes and not isinstance(route.result, str)]
QUERIES = {
    "diff": {"other": BAD},
    "search": {"text": "loss"},
    "logs": {"tail": 5},
    "compare": {"side": [SIDES[0], SIDES[1]]},
}
KNOWN = {"run": GOOD, "pod": POD, "suite": SUITE, "name": DATASET, "node": "dgx001"}
OTHERWISE = {
    "/api/v1/data/{name}/diff": (SELECTIONS[0], {"other": SELECTIONS[1]}),
    "/api/v1/pods/{pod}/rent": (POD, {"rate": "0.92"}),
}
"""What must be asked of another thing, or with a query that others of its name do not have."""
SILENT = {
    "/api/v1/runs/{run}/cost": (f"/api/v1/runs/{GOOD}/cost", "has no prices"),
    "/api/v1/pods/{pod}/live": (f"/api/v1/pods/{POD}/live", "address"),
    "/api/v1/pods/{pod}/nodes/{node}/status": (f"/api/v1/pods/{POD}/nodes/none/status", "has no node"),
}
"""What has no answer here, and what is said instead."""


def test_every_part_of_the_api_is_described() -> None:
    there = {(path, method) for path, methods in DESCRIBED["paths"].items() for method in methods}
    assert there == {(route.path.removeprefix(API), route.method.lower()) for route in ROUTES if route.is_api}
    assert DESCRIBED["openapi"].startswith("3.1")


def test_every_name_is_there_once() -> None:
    operations = [operation for methods in DESCRIBED["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    said = set(re.findall(r"#/components/schemas/(\w+)", str(DESCRIBED)))
    assert said == set(DESCRIBED["components"]["schemas"])


@pytest.mark.parametrize("route", ASKED, ids=[route.path for route in ASKED])
def test_every_document_fits_its_schema(route: WebRoute, site: Site, tmp_path: Path) -> None:
    last = route.path.rpartition("/")[2]
    if any(part in route.path for part in ("/compare", "/suites", "{pod}")):
        furnish(site)
    if "/data" in route.path:
        furnish_data(site, tmp_path / "scenes")
    if route.path in SILENT:
        path, said = SILENT[route.path]
        assert said in site.entered().get(path).text
        return
    name, query = OTHERWISE.get(route.path, (None, QUERIES.get(last)))
    path = re.sub(r"{(\w+)}", lambda match: name or KNOWN[match[1]], route.path)
    answer = site.entered().get(path, params=query)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    described = DESCRIBED["paths"][route.path.removeprefix(API)]["get"]["responses"]["200"]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": DESCRIBED["components"]})


def test_changes_go_on_where_they_ended(site: Site) -> None:
    site.session.home.sync()
    here = changes_since(site.desk, "")
    assert here.runs == ()
    site.client().post(f"/api/v1/runs/{GOOD}/note", json={"text": "seen"}, headers=site.token("steer"))
    after = changes_since(site.desk, here.id)
    assert after.runs == (GOOD,)
    assert changes_since(site.desk, after.id).runs == ()
    assert not after.is_reset


def test_a_run_that_is_removed_is_a_change(site: Site) -> None:
    site.session.home.sync()
    here = changes_since(site.desk, "")
    site.session.home.remove(BAD)
    assert changes_since(site.desk, here.id).runs == (BAD,)


@pytest.mark.parametrize("place", ["nonsense", "0123-4", "-1", "{}-99999", "{}-x", "{}--1"])
def test_an_unknown_place_has_all_of_it_loaded_again(place: str, site: Site) -> None:
    name = site.session.home.index.change().name
    assert changes_since(site.desk, place.format(name)).is_reset


def test_an_index_that_was_made_again_is_another_one(site: Site) -> None:
    site.session.home.sync()
    here = changes_since(site.desk, "")
    site.session.home.rebuild()
    assert changes_since(site.desk, here.id).is_reset
