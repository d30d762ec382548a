"""The list of runs and a run: the documents of `--json`, a page at a time; no run's words are taken for ours."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from podwright import launch
from podwright.console.access.people import DAY_S
from podwright.runs import Record
from podwright.runs.facts import fact
from tests.fixtures.run_folder import START
from tests.unit.console.conftest import BAD, GOOD, HOSTILE, LINES, Site, csrf

MANY = 137


def made(number: int) -> Record:
    """A run that has ended, of which the index alone knows."""
    return Record(
        f"many-{number:04d}",
        "many",
        "local",
        ("succeeded", "failed")[number % 2],
        f"/none/{number}",
        1,
        1,
        START + number // 3,  # three at a time: places are told apart by their ids
        duration_s=float(number % 7),
        results={"loss": number / MANY} if number % 5 else {},
        tags=("paper",) if number % 11 == 0 else (),
    )


@pytest.fixture
def many(site: Site) -> Site:
    """A home whose index holds more runs than a page; it takes it that no folder came or went since."""
    home = site.session.home
    home.sync()
    home.index.see(home.runs.stat().st_mtime_ns)
    home.index.put([made(number) for number in range(MANY)])
    return site


def pages(site: Site, **asked: object) -> list[list[str]]:
    """Follow the header from page to page."""
    client, path, found = site.entered(), "/api/v1/runs", []
    params: dict[str, object] | None = asked
    while path:
        answer = client.get(path, params=params)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        found.append([run["id"] for run in answer.json()])
        path = answer.headers.get("link", "").partition(">")[0].removeprefix("<")
        params = None
    return found


@pytest.mark.parametrize(
    "sort", [None, "created", "-duration_s", "name", "results.loss", "-results.loss", "id", "-state"]
)
def test_pages_hold_every_run_once_and_in_order(sort: str | None, many: Site) -> None:
    asked = {"where": "name=many", "limit": 10} | ({"sort": sort} if sort else {})
    found = pages(many, **asked)
    assert {len(page) for page in found[:-1]} == {10}
    ids = [run for page in found for run in page]
    assert sorted(ids) == [f"many-{number:04d}" for number in range(MANY)]
    by = (sort or "-created").removeprefix("-")
    values = [fact(made(int(run[-4:])), by) for run in ids]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=(sort or "-created").startswith("-"))
    assert values[: len(known)] == known


def test_a_run_that_comes_meanwhile_moves_no_page(many: Site) -> None:
    client = many.entered()
    first = client.get("/api/v1/runs", params={"limit": 5, "where": "name=many"})
    place = re.search(r"after=([^&>]+)", first.headers["link"])
    assert place is not None
    many.session.home.index.put([replace(made(MANY + 1), created_at=START + 9999.0)])
    after = {"limit": 5, "where": "name=many", "after": place[1]}
    second = [run["id"] for run in client.get("/api/v1/runs", params=after).json()]
    assert second == [f"many-{number:04d}" for number in range(MANY - 6, MANY - 11, -1)]


def test_the_server_never_reads_more_runs_than_it_shows(many: Site) -> None:
    queries: list[str] = []
    index = many.session.home.index
    link = index._open()
    client = many.entered()
    link.set_trace_callback(queries.append)
    client.get("/runs", params={"limit": 10})
    link.set_trace_callback(None)
    lists = [query for query in queries if "SELECT record" in query and "facts" not in query.partition("FROM")[2][:8]]
    assert lists
    assert all("LIMIT" in query or "WHERE id =" in query for query in lists)


@pytest.mark.parametrize("place", ["x", "e30", "WzEsMiwzXQ", "....", "W10"])
def test_a_place_that_is_none_is_refused(place: str, many: Site) -> None:
    answer = many.entered().get("/api/v1/runs", params={"after": place})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "after"


def test_the_list_is_the_document_of_ps(site: Site) -> None:
    with_door = launch.search(site.session, launch.RunSearch()).as_json()
    assert site.entered().get("/api/v1/runs").json() == json.loads(json.dumps(with_door[::-1]))


def test_a_run_is_the_document_of_show(site: Site) -> None:
    told = launch.overview_of(launch.find(site.session, GOOD)).as_json()
    assert site.entered().get(f"/api/v1/runs/{GOOD}").json() == json.loads(json.dumps(told))


def test_what_differs_is_the_document_of_diff(site: Site) -> None:
    told = launch.diff_runs(site.session, GOOD, BAD).as_json()
    client = site.entered()
    assert client.get(f"/api/v1/runs/{GOOD}/diff", params={"other": BAD}).json() == json.loads(json.dumps(told))
    assert client.get(f"/runs/{GOOD}/diff", params={"other": BAD}).status_code == 200


def test_a_filter_that_is_wrong_is_said_on_the_page_and_by_the_api(site: Site) -> None:
    client = site.entered()
    page = client.get("/runs", params={"where": "los<"})
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert (
        client.get("/api/v1/runs", params={"where": "stat=failed"}).json()["errors"][0]["hint"]
        == "did you mean `state`?"
    )


@pytest.mark.parametrize("path", ["/runs/none", "/api/v1/runs/none", "/runs/none/log", "/api/v1/runs/none/series"])
def test_a_run_that_is_not_there_is_missing(path: str, site: Site) -> None:
    assert site.entered().get(path).status_code == 404


def test_nothing_is_done_before_it_was_confirmed(site: Site) -> None:
    client = site.entered()
    proof = csrf(client.get("/runs").text)
    asked = {"csrf": proof, "act": "tag", "run": [GOOD, BAD], "tags": "paper -draft"}
    page = client.post("/runs/act", data=asked)
    assert page.status_code == 200
    assert "Tag 2 runs?" in page.text
    assert launch.find(site.session, GOOD).last_known().tags == ()
    assert client.post("/runs/act", data={**asked, "confirmed": "yes"}).status_code == 303
    assert [run["tags"] for run in client.get("/api/v1/runs").json()] == [["paper"], ["paper"]]


def test_cancelling_what_is_over_says_so(site: Site) -> None:
    answer = site.client().post("/api/v1/runs/cancel", json={"runs": [GOOD]}, headers=site.token("steer"))
    assert answer.json() == {"runs": [], "was_over": [GOOD]}


def test_no_word_of_a_run_is_taken_for_markup(site: Site) -> None:
    """In logs, notes and tails; in addresses; in the data of charts. A tag that is no tag is refused."""
    client = site.entered()
    steer = site.token("steer")
    site.client().post(f"/api/v1/runs/{BAD}/note", json={"text": HOSTILE}, headers=steer)
    refused = site.client().post("/api/v1/runs/tag", json={"runs": [BAD], "added": [HOSTILE]}, headers=steer)
    assert refused.status_code == 400
    (site.session.home.runs / BAD / "results" / f"a{HOSTILE.replace('/', '')}.txt").write_text(HOSTILE)
    (site.session.home.runs / BAD / "record" / "n0.r0" / "rank0.log").write_text(HOSTILE)
    asked = ["/", "/runs", f"/runs/{BAD}", f"/runs/{BAD}/log", f"/runs/{BAD}/files?path=results", f"/runs/{GOOD}/diff"]
    asked += [f"/runs/{BAD}/log?text=script", "/settings"]
    for path in (*asked, f"/runs?where={HOSTILE}", f"/runs/{BAD}/diff?other={HOSTILE}", f"/runs?columns={HOSTILE}"):
        text = client.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path


def test_no_page_names_a_foreign_place(site: Site) -> None:
    client = site.entered()
    pages = ["/", "/runs", f"/runs/{GOOD}", f"/runs/{GOOD}/log", f"/runs/{GOOD}/files", "/queue", "/pods", "/alerts"]
    texts = [client.get(path).text for path in (*pages, "/settings", "/nothing")]
    files = {link for text in texts for link in re.findall(r'"(/static/[^"]+)"', text)}
    assert len(files) == 5
    for text in (*texts, *(client.get(file).text for file in files)):
        without_licences = re.sub(r"/\*! .*?\*/", "", text)
        foreign = set(re.findall(r"(?:https?:)?//[a-z0-9][a-z0-9.-]+\.[a-z]{2,}", without_licences))
        assert foreign <= {"http://www.w3.org"}


def test_a_page_is_small(site: Site) -> None:
    """What a browser fetches for a run with its charts, packed: the bound of the first paint."""
    client = site.entered()
    page = client.get(f"/runs/{GOOD}")
    data = page.text.partition('id="data">')[2].partition("</script>")[0]
    packed = int(client.get(f"/runs/{GOOD}", headers={"Accept-Encoding": "gzip"}).headers["content-length"])
    for file in set(re.findall(r'"(/static/[^"]+)"', page.text)):
        packed += int(client.get(file, headers={"Accept-Encoding": "gzip"}).headers["content-length"])
    assert packed - len(data) // 4 < 60_000
    runs = client.get("/runs", headers={"Accept-Encoding": "gzip"})
    assert int(runs.headers["content-length"]) < 15_000


# logs and files


def test_a_log_comes_by_its_end_and_from_any_place(site: Site) -> None:
    client, path = site.entered(), f"/api/v1/runs/{GOOD}/log"
    whole = LINES.encode()
    end = client.get(path)
    assert end.content == whole[-(1 << 18) :]
    assert end.headers["content-range"] == f"bytes {len(whole) - (1 << 18)}-{len(whole) - 1}/{len(whole)}"
    part = client.get(path, headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, whole[100:200])
    assert client.get(path, headers={"Range": "bytes=-50"}).content == whole[-50:]
    beyond = client.get(path, headers={"Range": f"bytes={len(whole)}-"})
    assert (beyond.status_code, beyond.headers["x-size"]) == (416, str(len(whole)))
    assert client.get(path, params={"rank": 99}).status_code == 400


def test_a_log_of_several_files_is_one(site: Site) -> None:
    """The older half of a rank's log, and those of a node that was replaced."""
    record = site.session.home.runs / GOOD / "record"
    (record / "n0.r0" / "rank0.log.1").write_text("older\n")
    (record / "n0.r1").mkdir()
    (record / "n0.r1" / "rank0.log").write_text("newer\n")
    client = site.entered()
    log = client.get(f"/api/v1/runs/{GOOD}/log", headers={"Range": "bytes=0-1048575"}).text
    assert log == f"older\n{LINES}newer\n"
    hits = client.get(f"/api/v1/runs/{GOOD}/search", params={"text": "NEWER"}).json()["hits"]
    assert hits == [{"offset": len(log) - 6, "text": "newer"}]


def test_a_search_stops_and_goes_on(site: Site) -> None:
    client, path = site.entered(), f"/api/v1/runs/{GOOD}/search"
    first = client.get(path, params={"text": "step"}).json()
    assert len(first["hits"]) == 500
    found, turn = first["hits"], first
    while turn["next"] is not None:
        turn = client.get(path, params={"text": "step", "begin": turn["next"]}).json()
        found += turn["hits"]
    assert [hit["text"] for hit in found] == LINES.splitlines()
    assert len({hit["offset"] for hit in found}) == len(found)


def test_a_search_takes_no_more_than_its_turn(site: Site) -> None:
    """The clock of the core stands at the end of the turn from the second line on."""
    ticks = iter([0.0, 0.0])
    log = launch.RankBytes(launch.find(site.session, GOOD), 0)
    turn = log.search("no such text", cpu_s=lambda: next(ticks, 9.0))
    assert turn.hits == ()
    assert turn.next is not None
    assert 0 < turn.next < 100


@pytest.mark.parametrize(
    "path",
    [
        "token",
        "../../../etc/passwd",
        "/etc/passwd",
        "results/../token",
        "record/../../segmentation-9k2p/token",
        "results/link",
        "results/link/passwd",
        "results/\0",
        "lease",
        "..",
    ],
)
def test_no_path_leads_out_of_what_is_shown(path: str, site: Site) -> None:
    folder = site.session.home.runs / BAD
    (folder / "results" / "link").symlink_to("/etc")
    client = site.entered()
    for address in (f"/api/v1/runs/{BAD}/file", f"/api/v1/runs/{BAD}/files", f"/runs/{BAD}/files"):
        answer = client.get(address, params={"path": path})
        assert answer.status_code == 404, address
        assert "a secret" not in answer.text
        assert "root:" not in answer.text


def test_a_file_is_saved_and_not_run(site: Site) -> None:
    folder = site.session.home.runs / BAD / "results"
    (folder / "page.html").write_text("<script>alert(1)</script>")
    client = site.entered()
    answer = client.get(f"/api/v1/runs/{BAD}/file", params={"path": "results/page.html"})
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    listed = client.get(f"/api/v1/runs/{BAD}/files", params={"path": "results"}).json()
    assert "page.html" in {entry["name"] for entry in listed["files"]}
    assert "token" not in {entry["name"] for entry in client.get(f"/api/v1/runs/{BAD}/files").json()["files"]}


def test_the_overview_says_how_things_are(site: Site) -> None:
    """Of the first who looks, too: nobody has looked at these folders before."""
    client = site.entered()
    ended = {"succeeded": 1, "failed": 1}
    assert client.get("/api/v1/overview").json() == {"open": 0, "day": ended, "week": ended, "costs": {}}
    assert "Nothing runs; since yesterday 1 failed or was lost, 1 succeeded." in client.get("/").text
    site.hands.time_s += 30 * DAY_S
    assert "Nothing has run this week." in site.entered().get("/").text


def test_costs_are_added_up_by_currency(site: Site) -> None:
    costs = [("EUR", 2.5), ("EUR", 0.25), ("USD", 7.0)]
    made_of = [replace(made(i), cost={"amount": cost, "currency": name}) for i, (name, cost) in enumerate(costs)]
    site.session.home.sync()
    site.session.home.index.put(made_of)
    site.session.home.index.see(site.session.home.runs.stat().st_mtime_ns)
    assert launch.tally(site.session, START + 60).costs == {"EUR": 2.75, "USD": 7.0}
