"""A node in a browser: its links against the design, its runs and failures; and what is said where nobody answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podwright.console.routes.links import LIVE_S, links_of
from podwright.runs import Record
from podwright.watch import FrameNode
from podwright.watch.frame import FramePort
from tests.fixtures.frames import frame_with_trouble
from tests.fixtures.run_folder import START
from tests.unit.console.conftest import HOSTILE, POD, Site, furnish

LINKS = 10


@pytest.fixture
def told(site: Site) -> Site:
    """A pod whose Prometheus was just asked."""
    furnish(site)
    frame = frame_with_trouble(POD, [f"dgx{number:03d}" for number in range(1, 5)], LINKS)
    site.desk.kept(("frame", POD, int(site.hands.moving_s / LIVE_S)), lambda: frame)
    return site


def took_part(site: Site, run: str, state: str) -> None:
    """Have the index know a run on a node of the pod."""
    record = Record(run, "many", f"{POD}:slurm", state, f"/none/{run}", 1, 1, START, hosts=["dgx001"])  # type: ignore[arg-type]
    site.session.home.index.put([replace(record, ended_at=START + 9, reason="rank 3 exited with 1")])


def test_links_are_those_that_are_seen_and_what_the_design_has_beyond() -> None:
    ports = [FramePort("mlx5_0/1", True), FramePort("mlx5_1/1", False)]
    links = links_of(FrameNode("n1", ports=ports), 4)
    assert [state for _, state in links.states] == ["up", "down", "missing", "missing"]
    assert links.troubled == (("mlx5_1/1", "down"), ("", "missing"), ("", "missing"))
    assert links_of(FrameNode("n1", ports=ports), 1).states == (("mlx5_0/1", "up"), ("mlx5_1/1", "down"))


def test_a_pod_shows_which_nodes_have_links_in_trouble(told: Site) -> None:
    page = told.entered().get(f"/pods/{POD}").text
    assert "1 node has a link that is not as designed." in page
    for state, many in (("slow", 1), ("flapping", 1), ("errors", 1), ("down", 1), ("missing", 5)):
        assert page.count(f": {state}</title>") == many, state
    assert page.count(": up</title>") == 3 * LINKS + 1


def test_a_node_shows_its_links_its_runs_and_its_failures(told: Site) -> None:
    home = told.session.home
    home.sync()
    home.index.see(home.runs.stat().st_mtime_ns)
    for number in range(4):
        took_part(told, f"many-{number}", ("succeeded", "failed")[number % 2])
    client = told.entered()
    page = client.get(f"/pods/{POD}/nodes/dgx001").text
    assert "4 runs here, 2 failed" in page
    assert "It took part in 2 of the last 2 failures of the pod" in page
    assert '<dd>4</dd><dd class="note">of 10</dd>' in page
    assert "12 cables by design" in page
    document = client.get(f"/api/v1/pods/{POD}/nodes/dgx001").json()
    assert [run["id"] for run in document["runs"]] == [f"many-{number}" for number in (0, 1, 2, 3)]
    assert document["failures"]["failures"] == 2
    other = client.get(f"/api/v1/pods/{POD}/nodes/dgx002").json()
    assert (other["runs"], other["failures"]) == ([], None)


def test_a_pod_that_nobody_watches_says_so_and_shows_the_rest(site: Site) -> None:
    furnish(site)
    client = site.entered()
    page = client.get(f"/pods/{POD}/nodes/dgx001").text
    assert "nobody knows the address of dgx001" in page
    assert "Nobody says how its links are." in page
    assert "12 cables by design" in page
    assert client.get(f"/api/v1/pods/{POD}/live").status_code in (400, 503)
    assert "nobody knows the address of dgx001" in client.get(f"/pods/{POD}").text


@pytest.mark.parametrize("host", ["none", "dgx999", "%2e%2e", "dgx001%0a", "-h", "%3Cimg%20src=x%3E"])
def test_a_node_that_is_none_of_the_pods_is_asked_nothing(host: str, told: Site) -> None:
    client = told.entered()
    for path in (f"/pods/{POD}/nodes/{host}?ask=yes", f"/api/v1/pods/{POD}/nodes/{host}/status"):
        assert client.get(path).status_code == 404, path
    assert [row["what"] for row in client.get("/api/v1/audit").json()] == ["enter"]


def test_a_host_is_asked_by_those_who_may_act_and_that_is_noted(told: Site) -> None:
    path = f"/pods/{POD}/nodes/dgx001?ask=yes"
    looked = told.client().get(path, headers=told.token("look"))
    assert looked.status_code == 200
    assert "Ask the host now" not in looked.text
    assert told.desk.audit.rows() == []
    asked = told.entered().get(path).text
    assert "nobody knows the address of dgx001" in asked
    assert told.desk.audit.rows()[0]["what"] == "look at a host"


def test_what_a_run_said_is_text_here_too(told: Site) -> None:
    home = told.session.home
    home.sync()
    home.index.see(home.runs.stat().st_mtime_ns)
    took_part(told, "many-1", "failed")
    record = replace(home.index.record("many-1"), reason=HOSTILE)  # type: ignore[type-var]
    home.index.put([record])  # type: ignore[list-item]
    page = told.entered().get(f"/pods/{POD}/nodes/dgx001").text
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
