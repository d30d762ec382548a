"""Whatever a catalog, a selection, or a server of data or images says: it is read, or refused in words, in bounds."""

from __future__ import annotations

import io
import json
import random
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from podwright.bringup.mirror.collect import fetch_image
from podwright.clients import registry
from podwright.clients.kubernetes.names import CODE_FILE
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.selecting.links import link
from podwright.data.selecting.select import Choice, make_selection
from podwright.data.selecting.selections import _read, load
from podwright.data.tree import remote
from podwright.engines.kubernetes.code import send_code
from podwright.images.layer import prepare
from podwright.pilot.data import sources
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.canned import CannedHandler, CannedServer, answer_of, opener_of
from tests.fixtures.damage import HOSTILE, bounded, twist
from tests.unit.launch.test_fuzz import CHANGES, seeds

IN_CI, BY_NIGHT = 40, 3200
"""How often each kind is damaged."""


@dataclass(frozen=True)
class Place:
    """A home with a dataset, copies of what was in it when it was whole, and a server."""

    store: Store
    folder: Path
    server: CannedServer


def changed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(CHANGES)(data, chance)
    return data


def catalogs(chance: random.Random, place: Place, patch: pytest.MonkeyPatch) -> None:
    """Its file's bytes, or the values of its tables, in which what reads them believes."""
    path = place.store.file("a2d2", 1)
    path.unlink()
    data = (place.folder / "kept.duckdb").read_bytes()
    if chance.randrange(4) == 0:
        path.write_bytes(changed(data, chance))
    else:
        path.write_bytes(data)
        _change_rows(path, chance)
    read_catalog(place.store, chance)


def _change_rows(path: Path, chance: random.Random) -> None:
    with duckdb.connect(str(path)) as connection:
        query = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        columns = connection.execute(query).fetchall()
        for _ in range(chance.randrange(1, 4)):
            table, column, kind = chance.choice(columns)
            value: Any = chance.choice(HOSTILE)
            if kind == "BLOB":
                value = changed(b"".join(chance.randbytes(9) for _ in range(3)), chance)
            wanted = "rowid = 0" if chance.randrange(2) else "true"
            statement = f'UPDATE "{table}" SET "{column}" = ? WHERE {wanted}'
            # What does not fit the column's type cannot stand there.
            try:
                connection.execute(statement, [value if isinstance(value, bytes) else _plain(value)])
            except (duckdb.Error, UnicodeError):
                connection.execute(f'DELETE FROM "{table}" WHERE {wanted}')


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


FILTERS = ("kind=label", "size>=1B and not camera=front_center", "path~label", "mode=0644 or mtime>2020-01-01", "Car>0")


def read_catalog(store: Store, chance: random.Random) -> None:
    """Ask what commands ask of a dataset."""
    with open_dataset(store, "a2d2") as dataset:
        for text in FILTERS:
            condition = dataset.condition(text)
            dataset.count(condition)
            [match.as_json() for match in dataset.find(condition, limit=5)]
        list(dataset.members(dataset.condition(None), None))
        dataset.facets()
        dataset.statistics()
        dataset.query("select count(*), max(path) from files")


def selections(chance: random.Random, place: Place, patch: pytest.MonkeyPatch) -> None:
    """Frozen with any path, size and name; what is linked lies in the folder that was made for it."""
    folder = place.store.selections / "chosen"
    shutil.rmtree(folder)
    shutil.copytree(place.folder / "chosen", folder)
    document = folder / "selection.json"
    table = folder / "samples.parquet"
    kind = chance.randrange(4)
    if kind == 0:
        document.write_bytes(changed(document.read_bytes(), chance))
    elif kind == 1:
        table.write_bytes(changed(table.read_bytes(), chance))
    elif kind == 2:
        document.write_text(json.dumps(twist(json.loads(document.read_text()), chance)))
    else:
        _change_samples(table, chance)
        _believe(place, document)
    shutil.rmtree(place.store.home / "linked", ignore_errors=True)
    before = sorted(path for path in place.folder.rglob("*") if "linked" not in path.parts)
    try:
        link(place.store, load(place.store, "chosen"), None)
    finally:
        assert sorted(path for path in place.folder.rglob("*") if "linked" not in path.parts) == before


def _change_samples(path: Path, chance: random.Random) -> None:
    rows = twist(parquet.read_table(path).to_pylist(), chance)
    try:
        parquet.write_table(pa.Table.from_pylist(rows), path)
    except (pa.ArrowException, TypeError, AttributeError, UnicodeError, OverflowError):
        path.write_bytes(b"PAR1")


def _believe(place: Place, document: Path) -> None:
    """Write the digest that what was changed has, as who forges a selection would."""
    try:
        selection, _ = _read(document.parent)
        document.write_text(json.dumps({**json.loads(document.read_text()), "digest": selection.digest}))
    except Exception:
        return


PAGE = "<html><a href='../'>up</a> <a href=\"a/\">a/</a> <a href='b%20c.txt'>b</a> <a href=/x>x</a> <a href='?C=M'>"
HEADERS = ("Content-Length: 12", 'ETag: "abc"', "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT")
LINKS = ("//[::1", "http://[x", "%00", "%ff%fe", "\ud800", "é/", "..%2f..%2fx", "x" * 10_000, "a b", "https://h/", "")
ODD = ("Content-Length: -5", "Content-Length: x", f"Content-Length: {10**40}", "Content-Length: 12, 13", "ETag:", "x")
TIMES = ("Last-Modified: never", "Last-Modified: Thu, 01 Jan 0001 00:00:00 +2359", "Last-Modified: ²")


def http_listings(chance: random.Random, place: Place, patch: pytest.MonkeyPatch) -> None:
    """Pages of an index, and what a server says of the files that they lead to."""

    def answers(request: urllib.request.Request) -> bytes:
        if request.get_method() == "HEAD":
            headers = [header for header in HEADERS if chance.randrange(8)]
            if chance.randrange(2):
                headers.append(chance.choice((*ODD, *TIMES)))
            chance.shuffle(headers)
            return answer_of(b"", *headers, status=chance.choice(["200 OK"] * 9 + ["404 no"]))
        page = changed(PAGE.encode(), chance).decode("utf-8", "replace")
        more = "".join(f"<a href='{link}'>" for link in chance.sample(LINKS, 2))
        length = chance.choice([(), ("Content-Length: 5",), ("Content-Length: 100000",), (chance.choice(ODD),)])
        deep = request.full_url.count("/") > 12
        return answer_of(b"" if deep else f"{page}{more}".encode("utf-8", "surrogatepass"), *length)

    opener = opener_of(answers)
    patch.setattr(sources, "_opener", lambda signed: opener)
    for batch in remote.walk_address("http://data.example/x"):
        assert all(b"/../" not in name for name in batch.files.names.split(b"\0"))


LISTING = """<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<Name>b</Name><Prefix></Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>
<Contents><Key>a/one.txt</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>
<Size>12</Size><StorageClass>STANDARD</StorageClass></Contents>
<Contents><Key>two.txt</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;y&quot;</ETag>
<Size>3</Size><StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>"""
VALUES = ("a/one.txt", "12", "2026-01-01T00:00:00.000Z", "&quot;x&quot;", "false", "two.txt")


def s3_listings(chance: random.Random, place: Place, patch: pytest.MonkeyPatch) -> None:
    """What an S3 server lists; a page that says that there is another is followed once here."""
    text = LISTING
    for _ in range(chance.randrange(1, 3)):
        new = str(chance.choice((*HOSTILE, "9" * 30, "-1", "0001-01-01T00:00:00Z", "+99999-01-01T00:00:00Z", "../x")))
        text = text.replace(chance.choice(VALUES), new.replace("<", ""))
    data = text.encode("utf-8", "surrogatepass")
    place.server.body = changed(data, chance) if chance.randrange(2) else data
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        patch.delenv(name, raising=False)
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{place.server.port}")
    list(remote.walk_address("s3://b"))


LAYER = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + "1" * 64, "size": 3}
CONFIG = {"rootfs": {"type": "layers", "diff_ids": ["sha256:" + "2" * 64]}, "history": [{"created_by": "x"}]}
PLACES = ("Location: ::", "Location: http://x/y", "X: y", "Location: http://[x", "Location: /v2/up?a=1", "Location: ")
TOKEN = {"token": "t", "access_token": "u", "expires_in": 60}


def registries(chance: random.Random, place: Place, patch: pytest.MonkeyPatch) -> None:
    """Manifests, indexes and configurations of a registry, for code as a layer and for an archive."""
    config = json.dumps(twist(CONFIG, chance) if chance.randrange(2) else CONFIG).encode()
    named = {"mediaType": "x", "digest": registry.digest_of(config), "size": len(config)}
    manifest: Any = {"schemaVersion": 2, "config": named, "layers": [LAYER]}
    if chance.randrange(2):
        row = {"digest": chance.choice(["latest", "sha256:" + "3" * 64]), "platform": {"os": "linux"}}
        manifest = {"schemaVersion": 2, "manifests": [row]}
    if chance.randrange(2):
        manifest = twist(manifest, chance)
    kind = chance.choice((*registry.MANIFESTS, *registry.INDEXES, "text/html", ""))

    def answers(request: urllib.request.Request) -> bytes:
        if "podwright-" in request.full_url:
            return answer_of(b"", "Content-Length: 0", status="404 none")
        if "token" in request.full_url:
            return answer_of(json.dumps(twist(TOKEN, chance)).encode())
        if not request.has_header("Authorization") and chance.randrange(3) == 0:
            challenge = chance.choice(['Bearer realm="https://r.example/token",scope="²"', "Basic", "Bearer", "\x1b"])
            return answer_of(b"", f"WWW-Authenticate: {challenge}", "Content-Length: 0", status="401 who")
        if request.get_method() in ("POST", "PUT"):
            return answer_of(b"", chance.choice(PLACES), status="202 ok")
        data = config if "blobs" in request.full_url else json.dumps(manifest).encode()
        data = changed(data, chance) if chance.randrange(4) == 0 else data
        return answer_of(data, f"Content-Type: {kind}", *([] if chance.randrange(5) else [chance.choice(ODD)]))

    patch.setattr(registry, "_transport", lambda host, local: CannedHandler(answers))
    if chance.randrange(2):
        wanted = "registry.example/team/toy@sha256:x"
        with (
            suppress(registry.RegistryError),
            prepare("registry.example/team/toy:1", io.BytesIO(b"code"), CODE_FILE) as made,
        ):
            wanted = made.image
        send_code("registry.example/team/toy:1", io.BytesIO(b"code"), wanted)
    else:
        fetch_image("registry.example/team/toy:1", place.folder / "archive")


Damage = Callable[[random.Random, Place, pytest.MonkeyPatch], None]
KINDS: dict[str, Damage] = {
    made.__name__: made for made in (catalogs, selections, http_listings, s3_listings, registries)
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Nothing waits for a server that is away: each is asked once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sources._patiently, "__defaults__", (lambda seconds: None, 1))
    store = Store(tmp_path / "home")
    scan(store, write_scenes(tmp_path / "tree"), "a2d2")
    shutil.copy(store.file("a2d2", 1), tmp_path / "kept.duckdb")
    (tmp_path / "archive").mkdir()
    make_selection(store, "a2d2", Choice("chosen"))
    shutil.copytree(store.selections / "chosen", tmp_path / "chosen")
    with CannedServer() as server:
        yield Place(store, tmp_path, server)


def fuzz(kind: str, place: Place, numbers: range) -> None:
    for name, chance in seeds(numbers):
        try:
            with bounded(), pytest.MonkeyPatch.context() as patch:
                KINDS[kind](chance, place, patch)
        except BaseException as error:
            error.add_note(f"{kind} {name}")
            raise


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_or_refused_in_words(kind: str, place: Place) -> None:
    fuzz(kind, place, range(IN_CI))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_by_night_it_is_read_or_refused_in_words(kind: str, place: Place) -> None:
    fuzz(kind, place, range(BY_NIGHT))
