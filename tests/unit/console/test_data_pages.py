"""Datasets and selections in a browser: the documents of `data`, filters that are refused, names that are hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import podwright
from podwright.data import ScanRequest, ShowRequest
from podwright.data.policies.folder import Policy
from tests.fixtures.a2d2 import write_frame
from tests.unit.console.conftest import DATASET, HOSTILE, SELECTIONS, Site, furnish_data


@pytest.fixture
def furnished(site: Site, tmp_path: Path) -> Site:
    furnish_data(site, tmp_path / "scenes")
    return site


def test_what_is_there_is_the_document_of_its_commands(furnished: Site) -> None:
    client, catalog = furnished.entered(), podwright.catalog(furnished.session)
    for name in (DATASET, *SELECTIONS):
        told = catalog.show(ShowRequest(name, runs=True)).as_json()
        assert client.get(f"/api/v1/data/{name}").json() == json.loads(json.dumps(told))
    told = catalog.diff(*SELECTIONS).as_json()
    assert client.get(f"/api/v1/data/{SELECTIONS[0]}/diff", params={"other": SELECTIONS[1]}).json() == told
    assert client.get(f"/api/v1/data/{DATASET}/stats").json()["images"] == 16


def test_an_empty_home_says_how_to_begin(site: Site) -> None:
    page = site.entered().get("/data").text
    assert "0 datasets, 0 selections, 0 policies" in page
    assert "podwright data scan PATH --name NAME makes one known." in page


def test_a_dataset_shows_what_a_filter_chooses(furnished: Site) -> None:
    client = furnished.entered()
    page = client.get(f"/data/{DATASET}", params={"where": "Car>0"}).text
    assert f"8 samples of {DATASET} where Car&gt;0" in page
    assert page.count("data:image/") == 12
    assert "16 counted" in page
    assert "podwright data select scenes --name NAME --where 'Car&gt;0'" in page


def test_a_filter_that_is_refused_is_said_and_nothing_is_chosen(furnished: Site) -> None:
    answer = furnished.entered().get(f"/data/{DATASET}", params={"where": "Carr>0"})
    assert answer.status_code == 400
    assert "Carr" in answer.text
    assert "data:image/" not in answer.text


def test_a_selection_beside_another(furnished: Site) -> None:
    client = furnished.entered()
    page = client.get(f"/data/{SELECTIONS[0]}", params={"other": SELECTIONS[1]}).text
    assert "small has 0 samples that half has not, lacks 6, and shares 6" in page
    assert "No run of this home was given it." in page
    refused = client.get(f"/data/{SELECTIONS[0]}", params={"other": "none"})
    assert refused.status_code == 400
    assert "none" in refused.text


@pytest.mark.parametrize("name", ["none", "%2e%2e", "%2e%2e%2fx", "%00", "a%20b", "%3Cscript%3E"])
def test_what_is_not_there_is_missing(name: str, furnished: Site) -> None:
    client = furnished.entered()
    for path in (f"/data/{name}", f"/api/v1/data/{name}", f"/api/v1/data/{name}/stats"):
        answer = client.get(path)
        assert answer.status_code in (400, 404), path
        assert "<script>" not in answer.text or path.startswith("/api/")


def test_names_of_files_are_text(site: Site, tmp_path: Path) -> None:
    tree = tmp_path / "named"
    write_frame(tree, "20180801_145028", "front_center", 1, {"Sky": 2})
    (tree / "<img src=x onerror=alert(1)>.png").write_bytes(b"x")
    podwright.catalog(site.session).scan(ScanRequest(tree, "named"))
    page = site.entered().get("/data/named").text
    assert "<img src=x" not in page
    answer = site.entered().get("/data/named", params={"where": HOSTILE})
    assert HOSTILE not in answer.text


def test_policies_say_where_they_stand(furnished: Site) -> None:
    catalog = podwright.catalog(furnished.session)
    catalog.policies.add(Policy("kept", DATASET, "Car>0", "tag", tag="keep=yes"))
    assert "kept" in furnished.entered().get("/data").text
    rows = furnished.entered().get("/api/v1/policies").json()
    assert [(row["name"], row["action"], row["matched"]) for row in rows] == [("kept", "tag", 0)]
