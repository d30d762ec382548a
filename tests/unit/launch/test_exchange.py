"""`export` and `import`: what travels, what stays behind, and what is refused of an archive that others made."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.files.archives import ArchiveBounds
from podwright.launch import Session, export_runs, find, import_runs, start, start_again
from podwright.launch.call_values import source_of
from podwright.launch.exchange.bundle import LIST
from podwright.reading.run_data import gather
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.fixtures.bad_runs import add_run, call
from tests.fixtures.launching import Load

PROGRAM = """
import sys
for step in range(4):
    print(f"step {step} loss={step / 3 + float(sys.argv[1]) - 2:.3f}", flush=True)
"""
SECRET = "s3cr3t-value-of-a-token"


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with a run and a sweep, whose owner lives in /srv/people/me."""
    monkeypatch.setenv("HOME", "/srv/people/me")
    monkeypatch.setenv("MY_TOKEN", SECRET)
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "owner"))
    home = Home.open()
    folder = add_run(
        home, "good-2222", command_line=["podwright", "run", "/srv/people/me/w.yaml"], file="/srv/people/me/w"
    )
    asked = json.loads((folder / "run.json").read_text())
    asked["workload"] |= {
        "env": {"API": "value-of-env"},
        "secrets": ["MY_TOKEN"],
        "command": ["python", "/srv/people/me/train.py"],
        "kubernetes": {"patch": {"spec": {"x": "inner-address"}}},
    }
    (folder / "run.json").write_text(json.dumps(asked))
    (folder / "token").write_text("join-token")
    with (folder / "record" / "n0.r0" / "merged.log").open("a") as log:
        log.write(f'1700000004.000 0 o File "/srv/people/me/train.py" with {SECRET} and /srv/people/meadow\n')
    (folder / "results").mkdir()
    (folder / "results" / "model.bin").write_bytes(bytes(range(256)) * 10)
    (folder / "results" / "out").symlink_to("/etc/passwd")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "last.pt").write_bytes(b"weights")
    add_run(home, "sweep-4444", points=2, nodes=1)
    for index in range(2):
        add_run(home, f"sweep-4444-{index + 1}", parent="sweep-4444", index=index, matrix={"lr": index}, nodes=1)
    call("wait", "good-2222", "sweep-4444")
    return home


@pytest.fixture
def other(owner: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Another home, which commands use from here on."""
    code, _, err = call("export", "good-2222", "--to", str(tmp_path / "run.zip"))
    assert code == 0, err
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "other"))
    return Home.open()


def told(home: Home, run_id: str) -> list[Any]:
    """Return what a run's readers say of it, without what is another home's."""
    data = gather(home.runs / run_id)
    record = {**data.record.as_json(), "folder": "", "imported_from": None}
    lines = [line for line in home.folder(run_id).log_lines() if "people" not in line.text and "~" not in line.text]
    return [record, list(home.folder(run_id).series()), list(home.folder(run_id).samples()), lines, data.told]


def test_a_run_comes_as_it_was_without_what_is_its_owners(owner: Home, other: Home, tmp_path: Path) -> None:
    code, out, err = call("import", str(tmp_path / "run.zip"), "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["id"], document["runs"]) == ("good-2222", ["good-2222"])
    assert told(other, "good-2222") == told(owner, "good-2222")
    folder = other.runs / "good-2222"
    assert (folder / "results" / "model.bin").read_bytes() == bytes(range(256)) * 10
    assert not (folder / "checkpoints").exists()
    assert not (folder / "token").exists()
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for inner in (SECRET, "value-of-env", "inner-address", "/srv/people/me/", "join-token", str(owner.path)):
        assert inner.encode() not in everything, inner
    assert (
        'File "~/train.py" with *** and /srv/people/meadow'
        in [line.text for line in other.folder("good-2222").log_lines()][-1]
    )
    shown = json.loads(call("show", "good-2222", "--json")[1])
    assert shown["imported_from"]["digest"].startswith("sha256:")
    assert "values of the environment: API" in shown["imported_from"]["left_out"]
    assert "good-2222/results/out: a link, no plain file" in shown["imported_from"]["left_out"]
    assert call("tag", "good-2222", "+theirs")[1] == "theirs\n"
    assert call("rm", "good-2222", "--yes")[0] == 0
    assert not folder.exists()


def test_the_same_runs_give_the_same_file(owner: Home, tmp_path: Path) -> None:
    with Session(owner) as session:
        first = export_runs(session, [find(session, "sweep-4444")], tmp_path / "a.zip")
        again = export_runs(session, [find(session, "sweep-4444-1"), find(session, "sweep-4444")], tmp_path / "b.zip")
    assert set(first.runs) == set(again.runs) == {"sweep-4444", "sweep-4444-1", "sweep-4444-2"}
    assert first.runs[0] == again.runs[0] == "sweep-4444"
    (tmp_path / "a2.zip").write_bytes((tmp_path / "a.zip").read_bytes())
    with Session(owner) as session:
        assert export_runs(session, [find(session, "sweep-4444")], tmp_path / "a.zip").digest == first.digest


def test_what_would_go_is_listed_and_nothing_written(owner: Home, tmp_path: Path) -> None:
    to = tmp_path / "run.zip"
    code, out, err = call("export", "good-2222", "--to", str(to), "--dry-run", "--checkpoints")
    assert code == 0, err
    assert "good-2222/checkpoints/last.pt" in out
    assert "good-2222/token" not in out
    assert "left out  values of the environment: API" in err
    assert not to.exists()


def test_a_sweep_goes_with_its_points_and_may_get_another_id(owner: Home, other: Home, tmp_path: Path) -> None:
    with Session(owner) as session:
        export_runs(session, [find(session, "sweep-4444")], tmp_path / "sweep.zip")
    code, out, err = call("import", str(tmp_path / "sweep.zip"), "--as", "theirs-1")
    assert (code, out) == (0, "theirs-1\n"), err
    shown = json.loads(call("show", "theirs-1", "--json")[1])
    assert [point["id"] for point in shown["points"]] == ["theirs-1-1", "theirs-1-2"]
    assert {point["parent"] for point in shown["points"]} == {"theirs-1"}
    assert shown["state"] == "succeeded"
    code, _, err = call("import", str(tmp_path / "sweep.zip"), "--as", "theirs-1")
    assert code == 2
    assert "there is a run theirs-1 here already" in err
    assert call("import", str(tmp_path / "sweep.zip"), "--as", "Not An Id")[0] == 2


def test_a_point_alone_becomes_a_run_by_itself(owner: Home, other: Home, tmp_path: Path) -> None:
    with Session(owner) as session:
        export_runs(session, [find(session, "sweep-4444-2")], tmp_path / "point.zip")
    with Session(other) as session:
        import_runs(session, tmp_path / "point.zip")
        asked = find(session, "sweep-4444-2").folder.asked
    assert (asked.parent, asked.matrix) == (None, {"lr": 1})


def test_the_program_of_an_imported_run_is_shown_before_it_is_run(other: Home, tmp_path: Path) -> None:
    call("import", str(tmp_path / "run.zip"))
    code, _, err = call("run", "--like", "good-2222")
    assert code == 2
    assert "command   python '~/train.py'" in err
    assert "say --yes" in err
    with Session(other) as session, pytest.raises(Refusal, match="its code is another's"):
        start_again(session, "good-2222")


def test_no_trust_in_a_target_holds_for_it(other: Home, tmp_path: Path) -> None:
    call("import", str(tmp_path / "run.zip"))
    settings = other.path / "settings.yaml"
    settings.write_text("trust: [local]\n")
    settings.chmod(0o600)
    assert not source_of(other.path, other.folder("good-2222"), trust=False).is_trusted


Damage = Callable[[Path], None]


def rewritten(change: Callable[[dict[str, tuple[zipfile.ZipInfo, bytes]]], None]) -> Damage:
    """Return what writes an archive again with entries that were changed; the list is made to agree with them."""

    def damage(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename: (info, archive.read(info)) for info in archive.infolist()}
        change(entries)
        path.unlink()
        with zipfile.ZipFile(path, "w") as archive:
            for info, data in entries.values():
                archive.writestr(info, data)

    return damage


def adding(name: str, mode: int = stat.S_IFREG | 0o600, data: bytes = b"x", listed: bool = True) -> Damage:
    def change(entries: dict[str, tuple[zipfile.ZipInfo, bytes]]) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        entries[f"{name} more"] = (info, data)
        if listed:
            info, old = entries[LIST]
            rows = json.loads(old)
            rows["files"][name] = {"bytes": len(data), "sha256": "0" * 64}
            entries[LIST] = (info, json.dumps(rows).encode())

    return rewritten(change)


def changing(name: str, change: Callable[[bytes], bytes]) -> Damage:
    def alter(entries: dict[str, tuple[zipfile.ZipInfo, bytes]]) -> None:
        info, data = entries[name]
        entries[name] = (info, change(data))

    return rewritten(alter)


def of_list(change: Callable[[dict[str, Any]], object]) -> Damage:
    def alter(data: bytes) -> bytes:
        rows = json.loads(data)
        change(rows)
        return json.dumps(rows).encode()

    return changing(LIST, alter)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


RUN = "good-2222"
BAD: dict[str, tuple[Damage, str]] = {
    "absolute": (adding("/etc/cron.d/x"), "no name of a file below"),
    "above": (adding(f"{RUN}/results/../../x"), "no name of a file below"),
    "backslash": (adding(f"{RUN}/results/..\\x"), "no name of a file below"),
    "drive": (adding("C:/x"), "no name of a file below"),
    "empty part": (adding(f"{RUN}/results//x"), "no name of a file below"),
    "folder": (adding(f"{RUN}/results/x/"), "no name of a file below"),
    "link": (adding(f"{RUN}/results/x", stat.S_IFLNK | 0o777, b"/etc"), "is a link"),
    "device": (adding(f"{RUN}/results/x", stat.S_IFCHR | 0o600), "is a device"),
    "pipe": (adding(f"{RUN}/results/x", stat.S_IFIFO | 0o600), "is a pipe"),
    "twice": (adding(f"{RUN}/results/model.bin"), "is there twice"),
    "file and folder": (adding(f"{RUN}/results/model.bin/x"), "is a file and a folder"),
    "order": (adding(f"{RUN}/job/order.json"), "nothing that an export holds"),
    "stub": (adding(f"{RUN}/job/node.sh"), "nothing that an export holds"),
    "other run": (adding("evil-1/run.json"), "nothing that an export holds"),
    "not listed": (adding(f"{RUN}/results/x", listed=False), "in the archive or in its list"),
    "wrong digest": (adding(f"{RUN}/results/x"), "not what the list says"),
    "torn": (torn, "zip archive"),
    "no zip": (lambda path: path.write_text("hello"), "zip archive"),
    "pipe itself": (piped, "cannot be read"),
    "newer": (of_list(lambda rows: rows.update(format=2)), "newer Podwright"),
    "no run": (of_list(lambda rows: rows.update(runs=[])), "no ids"),
    "odd id": (of_list(lambda rows: rows.update(runs=["../x"])), "no ids"),
    "odd list": (changing(LIST, lambda _: b"[]"), "not what an export writes"),
    "run.json": (changing(f"{RUN}/run.json", lambda data: data.replace(b"good-2222", b"good-2223")), "good-2222"),
    "at work": (changing(f"{RUN}/record.json", lambda data: data.replace(b"succeeded", b'running" ')), "good-2222"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", BAD)
def test_a_hostile_archive_is_refused_and_leaves_nothing(name: str, other: Home, tmp_path: Path) -> None:
    path, (damage, said) = tmp_path / "run.zip", BAD[name]
    damage(path)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call("import", str(path))
    assert (code, out) == (2, "")
    assert err.startswith(f"{path}: ")
    assert said in err
    assert sorted(set(tmp_path.rglob("*")) - set(before)) == []
    assert list(other.runs.iterdir()) == []


def test_bounds_hold_for_files_bytes_and_ratio(other: Home, tmp_path: Path) -> None:
    with Session(other) as session:
        for bounds, said in (
            (ArchiveBounds(files=3), "more than 3 files"),
            (ArchiveBounds(bytes=10), "larger than"),
            (ArchiveBounds(directory_bytes=100), "files"),
        ):
            with pytest.raises(Refusal, match=said):
                import_runs(session, tmp_path / "run.zip", bounds=bounds)
        adding(f"{RUN}/results/zeros", data=bytes(40 << 20))(tmp_path / "run.zip")
        with zipfile.ZipFile(tmp_path / "run.zip") as archive:
            entries = [(info, archive.read(info)) for info in archive.infolist()]
        with zipfile.ZipFile(tmp_path / "run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for info, data in entries:
                archive.writestr(info.filename, data)
        with pytest.raises(Refusal, match="more than 200 times"):
            import_runs(session, tmp_path / "run.zip")
    assert list(other.runs.iterdir()) == []


def test_a_run_at_work_does_not_travel(home: Home, load: Load, tmp_path: Path) -> None:
    with Session(home) as session:
        run = start(session, load("command: sleep 600"))
        with pytest.raises(Refusal, match=f"{run.id} is (pending|starting|running)"):
            export_runs(session, [run], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_two_runs_are_told_apart_and_run_again_in_an_empty_home(
    home: Home, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A story: trained, exported, imported elsewhere; report and `diff` as before, and started again."""
    text = "code: code\ncommand: [python3, train.py, '{lr}']"
    (load(text.format(lr=1)).path.parent / "code" / "train.py").write_text(PROGRAM)
    monkeypatch.setenv("PODWRIGHT_HOME", str(home.path))
    with Session(home) as session:
        runs = [start(session, load(text.format(lr=lr))) for lr in (1, 2)]
        assert [run.wait(120).state for run in runs] == ["succeeded", "succeeded"]
        export_runs(session, runs, tmp_path / "two.zip")
    ids = [run.id for run in runs]
    before = call("diff", *ids, "--json")
    assert '"command"' in before[1]
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "empty"))
    code, _, err = call("import", str(tmp_path / "two.zip"))
    assert code == 0, err
    assert call("diff", *ids, "--json") == before
    code, out, err = call("report", ids[1], "--out", str(tmp_path / "report.html"))
    assert code == 0, err
    assert "loss" in (tmp_path / "report.html").read_text()
    assert json.loads(call("show", ids[1], "--json")[1])["results"] == {"loss": 1.0, "step": 3.0}
    code, out, err = call("run", "--like", ids[1], "--yes", "--json")
    assert code == 0, err
    again = json.loads(out)
    assert (again["state"], again["results"], again["imported_from"]) == ("succeeded", {"loss": 1.0, "step": 3.0}, None)
