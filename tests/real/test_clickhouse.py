"""A catalog at home in ClickHouse: Debian's server (18.16) over the wire, and today's engine, both against DuckDB."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import podwright.data.clickhouse.publish
from podwright.cli.main import main
from podwright.clients.clickhouse import ClickHouse
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.clickhouse.dialect import DIALECTS, POINTER, name
from podwright.data.clickhouse.publish import publish
from podwright.data.clickhouse.published import PublishedDataset, open_published
from podwright.data.labels.recount import count_labels
from podwright.data.policies.tags import tag
from podwright.data.query.conditions import EVERYTHING, condition_of
from podwright.data.selecting.pool import read_pool
from podwright.data.selecting.select import Choice, make_selection
from podwright.data.selecting.selections import load
from podwright.runs import Home
from podwright.spec.catalogs import parse_catalog
from podwright.spec.filters import Filter
from podwright.spec.problems import Refusal
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.clickhouse import DATABASE, Running, chdb_server, debian_server
from tests.unit.data.test_lookup import trees

# The time of a test alone: the first one's fixture may install chdb.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300, func_only=True), pytest.mark.xdist_group("clickhouse")]
SERVERS = {"18.16": debian_server, "today": chdb_server}
ODD = (b"no\xffutf8.txt", b"new\nline\ttab.txt", b"back\\slash'quote\".txt", b"100%.txt", "grün.txt".encode(), b"\\N")


@pytest.fixture(scope="module", params=sorted(SERVERS))
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with SERVERS[request.param](tmp_path_factory.mktemp("clickhouse") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with debian_server(tmp_path_factory.mktemp("clickhouse") / "debian") as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A dataset with all that rows can hold: odd names, broken labels, tags that are numbers and such that are not."""
    folder = tmp_path_factory.mktemp("data")
    tree = write_scenes(folder / "a2d2", scenes=4, frames=3)
    (tree / "odd").mkdir()
    for number, odd in enumerate(ODD):
        Path(os.fsdecode(os.fsencode(tree / "odd") + b"/" + odd)).write_bytes(b"x" * number)
    next(tree.glob("*/label/*/*.png")).write_bytes(b"no picture")
    store = Store(folder / "home")
    scan(store, tree, "a2d2")
    count_labels(store, "a2d2")
    tag(store, "a2d2", "frame=1", "weather", "rain")
    tag(store, "a2d2", "frame=2", "weather", "4")
    tag(store, "a2d2", "frame=1", "note", "it's\ta \\ tab\n")
    tag(store, "a2d2", "frame=2", "note", "nan")
    return store


@dataclass(frozen=True)
class Both:
    """The same dataset here and there."""

    here: Dataset
    there: PublishedDataset


@pytest.fixture(scope="module")
def both(running: Running, store: Store) -> Iterator[Both]:
    server = running.client()
    publish(store, "a2d2", server, everything=True)
    with open_dataset(store, "a2d2") as here, open_published(server, "a2d2") as there:
        yield Both(here, there)


@given(tree=trees())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_filter_chooses_the_same_files_in_the_same_order(both: Both, tree: Filter) -> None:
    condition = condition_of(tree, both.here.vocabulary)
    assert condition == condition_of(tree, both.there.vocabulary)
    here = [match.as_json() for match in both.here.find(condition)]
    assert [match.as_json() for match in both.there.find(condition)] == here
    assert both.there.count(condition) == both.here.count(condition)
    assert [match.as_json() for match in both.there.find(condition, 2)] == here[:2]


@pytest.mark.parametrize("sort", ["-size", "-path", "mtime", "-frame", "-kind", "-Car", "weather", "-note"])
def test_files_come_in_the_same_order(both: Both, sort: str) -> None:
    here = [match.as_json() for match in both.here.find(EVERYTHING, None, both.here.order(sort))]
    assert [match.as_json() for match in both.there.find(EVERYTHING, None, both.there.order(sort))] == here
    assert [row["path"] for row in here] != [match.path for match in both.here.find(EVERYTHING)]


@pytest.mark.parametrize(
    "text",
    [
        'name~""',
        'name="new\nline\ttab.txt"',
        r'name="back\\slash\'quote\".txt"',
        "name~%FF",
        "name>=é",
        r'path<"odd/\\\\N"',
        "note>3 or note<=4",
        'note~"it\'s"',
        'not note=nan and not (sha256="" or Car>0)',
        "Car<9223372036854775807 and Car!=-1",
        "mode<7777777 and mtime>=1970-01-02",
        "class=Car or class!=Car",
        "owner!=nobody and group~o",
    ],
)
def test_odd_values_are_asked_for_as_they_are(both: Both, text: str) -> None:
    here = [match.as_json() for match in both.here.find(both.here.condition(text))]
    assert [match.as_json() for match in both.there.find(both.there.condition(text))] == here


def test_facets_statistics_and_the_table_of_labels_are_the_same(both: Both) -> None:
    assert both.there.facets() == both.here.facets()
    assert both.there.statistics() == both.here.statistics()
    assert both.there.statistics().broken == 1
    assert both.there.per_image().equals(both.here.per_image())


@given(tree=trees())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_filter_gives_the_same_samples(both: Both, tree: Filter) -> None:
    condition = condition_of(tree, both.here.vocabulary)
    here, there = (read_pool(dataset, condition, "scene") for dataset in (both.here, both.there))
    assert (there.samples, there.classes, there.incomplete) == (here.samples, here.classes, here.incomplete)
    assert there.pixels.tolist() == here.pixels.tolist()
    assert there.total.tolist() == here.total.tolist()


def test_without_groups_the_samples_are_the_same_too(both: Both) -> None:
    here, there = (read_pool(dataset, EVERYTHING, None) for dataset in (both.here, both.there))
    assert here.samples
    assert there.samples == here.samples


def test_a_selection_is_made_where_nothing_was_scanned(both: Both, running: Running, tmp_path: Path) -> None:
    home = Store(tmp_path)
    made = make_selection(home, "a2d2", Choice("s", size=5, seed=3), open_published(running.client(), "a2d2"))
    assert load(home, "s").digest == made.digest
    assert made.root == both.here.root_bytes
    assert made.digest == make_selection(both.here.store, "a2d2", Choice(f"s{running.port}", size=5, seed=3)).digest


def test_the_view_has_the_columns_that_it_has_in_duckdb(both: Both) -> None:
    here = both.here.connection.execute("SELECT * FROM files ORDER BY id")
    columns = [column[0] for column in here.description or ()]
    answer = both.there.query("select * from files order by id -- from files")
    assert answer.columns == columns
    without_time = [place for place, column in enumerate(columns) if column != "mtime"]
    for row, other in zip(here.fetchall(), answer.rows, strict=True):
        assert [row[place] for place in without_time] == [other[place] for place in without_time]
    assert both.there.query("select count(*) as files from files f where f.name != 'from files'").rows == [[42]]


def test_the_oldest_dialect_is_understood_by_every_server(running: Running, store: Store) -> None:
    server = running.client()
    server.__dict__["version"] = DIALECTS[0].since
    server.run(f"DROP TABLE IF EXISTS {POINTER}")
    assert publish(store, "a2d2", server, everything=True).files == 42


@dataclass(frozen=True)
class Site:
    """A server, a pod whose file names it, and the command line."""

    running: Running
    pod: Path
    store: Store
    printed: pytest.CaptureFixture[str]

    def ask(self, *options: object, code: int = 0) -> Any:
        assert main(["data", *map(str, options), "--json"]) == code
        return json.loads(self.printed.readouterr().out)

    def tables(self) -> list[str]:
        names = [(row[0] or b"").decode() for row in self.running.client().ask("SHOW TABLES")]
        return sorted(name for name in names if name != POINTER)


@pytest.fixture
def site(
    debian: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Site]:
    pod = tmp_path / "pod.yaml"
    pod.write_text(f"name: adas\nnodes: [{{hosts: n1, model: cpu-server}}]\ncatalog: {debian.url}\n")
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    for variable, value in debian.environ.items():
        monkeypatch.setenv(variable, value)
    server = debian.client()
    yield Site(debian, pod, Store(Home.open(tmp_path / "home").path), capfd)
    for table in [(row[0] or b"").decode() for row in server.ask("SHOW TABLES")]:
        server.run(f"DROP TABLE {name(table)}")


def without_time(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "took_s"}


def test_commands_answer_from_the_pods_catalog_what_they_answer_here(site: Site, tmp_path: Path) -> None:
    tree = write_scenes(tmp_path / "a2d2", scenes=4, frames=3)
    scanned = site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")
    assert scanned["published"] == {"catalog": site.running.url, "generation": 1, "files": 36, "left_out": 0}
    refused = site.ask("stats", "a2d2", "--catalog", site.pod, code=2)["errors"][0]
    assert refused["message"] == "the labels of a2d2 were not counted when it was published"
    counted = site.ask("stats", "a2d2")
    assert site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")["published"]["generation"] == 2
    assert site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")["published"]["generation"] == 2
    assert site.ask("stats", "a2d2", "--catalog", site.pod) == {**counted, "counted": 0}
    for options in (["find", "a2d2", "kind=label and Car>0"], ["find", "a2d2", "--limit", 3]):
        assert without_time(site.ask(*options, "--catalog", site.pod)) == without_time(site.ask(*options))
    assert site.ask("find", "a2d2", "--catalog", site.running.url)["count"] == 36
    assert site.ask("ls", "--catalog", site.pod) == site.ask("ls")
    assert site.ask("ls", "a2d2", "--catalog", site.pod) == site.ask("ls", "a2d2")
    query = "select scene, count(*) as n from files where kind = 'label' group by scene order by scene"
    assert site.ask("sql", "a2d2", query, "--catalog", site.pod) == site.ask("sql", "a2d2", query)
    chosen = ["--where", "Car>0", "--split", "train=0.5,test=0.5", "--representative"]
    here = site.ask("select", "a2d2", "--name", "here", *chosen)
    there = site.ask("select", "a2d2", "--name", "there", *chosen, "--catalog", site.pod)
    assert there["lineage"] == {**here["lineage"], "generation": 2, "catalog": site.running.url}
    assert (there["digest"], there["splits"]) == (here["digest"], here["splits"])
    assert site.ask("diff", "here", "there") == {"added": 0, "removed": 0, "kept": 6, "distance": 0.0}
    for file in ("here.csv", "there.csv"):
        site.ask(
            "stats", "a2d2", "--per-image", tmp_path / file, *(["--catalog", site.pod] if file == "there.csv" else [])
        )
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def test_what_is_wrong_is_said_in_words(site: Site, tmp_path: Path) -> None:
    def message(*options: object, code: int) -> str:
        return str(site.ask(*options, "--catalog", site.pod, code=code)["errors"][0]["message"])

    assert message("find", "a2d2", code=2) == f'{site.running.url} has no dataset "a2d2"'
    site.ask("scan", write_scenes(tmp_path / "a2d2"), "--name", "a2d2", "--catalog", site.pod, "--whole")
    assert message("find", "a2d2", "knd=label", code=2) == "unknown column"
    assert message("find", "a2d2", "Car>0", code=2) == "is a class, and its pixels are not counted yet"
    assert "Unknown identifier" in message("sql", "a2d2", "select scen from files", code=2)
    assert message("select", "a2d2", "--name", "s", "--where", "knd=label", code=2) == "unknown column"
    uncounted = "needs to know what the labels hold, and they are not counted yet"
    assert message("select", "a2d2", "--name", "s", "--size", 2, "--representative", code=2) == uncounted
    assert message("find", "a2d3", code=2) == f'{site.running.url} has no dataset "a2d3"'
    site.pod.write_text(site.pod.read_text().replace(f"/{DATABASE}", "/nowhere"))
    assert message("find", "a2d2", code=3).endswith("/nowhere: there is no such database")
    site.pod.write_text(site.pod.read_text().replace(f":{site.running.port}/nowhere", f":1/{DATABASE}"))
    assert message("find", "a2d2", code=3).endswith("cannot be reached: connection refused")


def test_a_wrong_password_is_refused_and_no_password_is_written_anywhere(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.ask("scan", write_scenes(tmp_path / "a2d2"), "--name", "a2d2", "--catalog", site.pod, "--whole")
    password = site.running.environ["CLICKHOUSE_PASSWORD"]
    for path in site.store.home.rglob("*"):
        assert not path.is_file() or password.encode() not in path.read_bytes()
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "wrong")
    refused = site.ask("find", "a2d2", "--catalog", site.pod, code=3)["errors"][0]
    assert "does not let you in" in refused["message"]
    assert "wrong" not in refused["message"].lower().replace("wrong password", "")


def test_a_user_who_may_only_read_reads_and_publishes_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_scenes(tmp_path / "a2d2")
    site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")
    monkeypatch.setenv("CLICKHOUSE_USER", "reader")
    assert site.ask("find", "a2d2", "kind=label", "--catalog", site.pod)["count"] == 12
    assert site.ask("sql", "a2d2", "select count() as n from files", "--catalog", site.pod)["rows"] == [[36]]
    (tree / "new.txt").touch()
    refused = site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole", code=1)["errors"][0]
    assert "readonly mode" in refused["message"]


def test_tls_is_spoken_and_its_certificate_checked(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.ask("scan", write_scenes(tmp_path / "a2d2"), "--name", "a2d2", "--catalog", site.pod, "--whole")
    secure = f"clickhouses://127.0.0.1:{site.running.tls_port}/{DATABASE}"
    site.pod.write_text(site.pod.read_text().replace(site.running.url, secure))
    refused = site.ask("find", "a2d2", "--catalog", site.pod, code=3)["errors"][0]
    assert "its certificate is not trusted" in refused["message"]
    monkeypatch.setenv("SSL_CERT_FILE", str(site.running.certificate))
    assert site.ask("find", "a2d2", "--catalog", site.pod)["count"] == 36


@pytest.mark.parametrize(
    "statement",
    [
        "drop table files",
        f"insert into {POINTER} values ('a', 1, 'b', now(), 'c')",
        "create table x (a Int8) engine = Memory",
        "select * from url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "select * from file('/etc/passwd', 'CSV', 'a String')",
        "select * from remote('127.0.0.1:1', system.one)",
        "set readonly = 0",
        "select 1 settings readonly = 0",
    ],
)
def test_a_query_of_the_users_own_only_reads(site: Site, tmp_path: Path, statement: str) -> None:
    site.ask("scan", write_scenes(tmp_path / "a2d2"), "--name", "a2d2", "--catalog", site.pod, "--whole")
    refused = site.ask("sql", "a2d2", statement, "--catalog", site.pod, code=2)["errors"][0]
    assert refused["message"].startswith("not allowed here: ")
    assert site.ask("find", "a2d2", "--catalog", site.pod)["count"] == 36


def test_only_what_everybody_may_read_is_published_unless_all_is_asked_for(site: Site) -> None:
    # The folders of pytest are its user's alone.
    with TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "open").mkdir(mode=0o755)
        (root / "closed").mkdir(mode=0o750)
        for path, mode in {"open/a": 0o644, "open/b": 0o600, "closed/c": 0o644}.items():
            (root / path).write_bytes(path.encode())
            (root / path).chmod(mode)
        published = site.ask("scan", root, "--name", "mixed", "--checksums", "--catalog", site.pod)["published"]
        assert (published["files"], published["left_out"]) == (2, 1)
        query = "select path, sha256 is not null as known, id from files order by path"
        assert site.ask("sql", "mixed", query, "--catalog", site.pod)["rows"] == [["open/a", 1, 0], ["open/b", 0, 1]]
        published = site.ask("scan", root, "--name", "mixed", "--catalog", site.pod, "--whole")["published"]
        assert (published["files"], published["left_out"]) == (3, 0)


def test_a_reader_goes_on_with_his_generation_and_older_ones_are_dropped(site: Site, tmp_path: Path) -> None:
    tree, server = write_scenes(tmp_path / "a2d2"), site.running.client()

    def grow(file: str) -> None:
        (tree / file).touch()
        site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")

    grow("one")
    with open_published(server, "a2d2") as there:
        grow("two")
        assert there.count(EVERYTHING)[0] == 37
    grow("three")
    assert [table[:12] for table in site.tables()] == ["a2d2.g000002", "a2d2.g000002", "a2d2.g000003", "a2d2.g000003"]

    def read_late() -> None:
        with open_published(server, "a2d2") as there:
            grow("four")
            grow("five")
            there.count(EVERYTHING)

    with pytest.raises(Refusal, match="a2d2 was published again meanwhile"):
        read_late()


def test_a_dataset_is_withdrawn_and_can_be_published_again(site: Site, tmp_path: Path) -> None:
    tree = write_scenes(tmp_path / "a2d2")
    for file in ("one", "two"):
        (tree / file).touch()
        site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")
    assert len(site.tables()) == 4
    assert main(["data", "forget", "a2d2", "--catalog", str(site.pod)]) == 2
    assert len(site.tables()) == 4
    assert main(["data", "forget", "a2d2", "--catalog", str(site.pod), "--yes"]) == 0
    site.printed.readouterr()
    assert site.tables() == []
    assert site.ask("ls", "--catalog", site.pod)["datasets"] == []
    assert site.ask("find", "a2d2")["count"] == 38
    published = site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")["published"]
    assert (published["generation"], published["files"]) == (4, 38)
    assert site.ask("find", "a2d2", "--catalog", site.pod)["count"] == 38


class Struck(BaseException):
    """What ends a command at this place, as kill -9 would."""


@pytest.mark.parametrize("place", ["run", "insert"])
def test_a_publication_that_is_struck_leaves_the_old_one(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    tree = write_scenes(tmp_path / "a2d2")
    site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")
    (tree / "new.txt").touch()
    scan(site.store, tree, "a2d2")

    class Dying(ClickHouse):
        """Loses its life with half of the rows sent, or before the row that would publish them."""

        def run(self, statement: str) -> None:
            if place == "run" and statement.startswith("INSERT"):
                raise Struck
            super().run(statement)

        def insert(self, table: str, pieces: Iterable[bytes]) -> None:
            if place == "insert":
                half = next(iter(pieces)).splitlines(keepends=True)[:18]
                super().insert(table, half)
                raise Struck
            super().insert(table, pieces)

    server = Dying(parse_catalog(site.running.url), site.running.environ)
    with pytest.raises(Struck):
        publish(site.store, "a2d2", server, everything=True)
    assert site.ask("find", "a2d2", "--catalog", site.pod)["count"] == 36
    left = set(site.tables())
    monkeypatch.setattr(podwright.data.clickhouse.publish, "_ORPHAN_S", -60)  # what was left is old enough at once
    assert site.ask("scan", tree, "--name", "a2d2", "--catalog", site.pod, "--whole")["published"]["generation"] == 2
    assert site.ask("find", "a2d2", "--catalog", site.pod)["count"] == 37
    assert len(site.tables()) == 4
    assert len(left - set(site.tables())) == len(left) - 2
