"""The pilot as one file: what it is made of, what it says, and a whole run on the oldest Python."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from podwright.engines.payload import pilot_zip
from podwright.pilot import __version__
from podwright.pilot.main import USAGE
from podwright.pilot.protocol import EXIT_FAILED, RANK_NAMES, Order, rows_of
from podwright.pilot.ranks.shim_protocol import OWN_RANK
from tests.paths import ROOT
from tests.unit.pilot.made import ORDER
from tests.unit.pilot_sensors.test_oldest_python import oldest_python


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pilot") / "pilot.pyz"
    path.write_bytes(pilot_zip())
    return path


def said(pilot: Path, *words: str, python: str = sys.executable, **environ: str) -> tuple[int, str, str]:
    warnings = ["-W", "error", "-W", "ignore::ResourceWarning"]  # a process that ends closes what it holds
    command = [python, *warnings, "-I", "-S", str(pilot), *words]
    environ["PATH"] = os.environ["PATH"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ)
    return done.returncode, done.stdout, done.stderr


def test_the_same_bytes_each_time() -> None:
    first = pilot_zip()
    pilot_zip.cache_clear()
    assert pilot_zip() == first
    assert len(pilot_zip(compiled=False)) < 150_000


def test_it_is_kept_where_python_keeps_bytecode_and_made_anew_when_its_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made = pilot_zip.__wrapped__()
    (kept,) = tmp_path.rglob("*.pyz")
    assert kept.read_bytes() == made
    source = made[-64:]  # the digest of what it was made of ends the archive
    kept.write_bytes(b"what this source gave before" + source)
    assert pilot_zip.__wrapped__() == b"what this source gave before" + source
    kept.write_bytes(b"what another source gave" + b"0" * 64)
    assert pilot_zip.__wrapped__() == made
    assert kept.read_bytes() == made


def test_it_is_made_where_nothing_may_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "file").write_text("no folder can be made in here")
    assert zipfile.is_zipfile(io.BytesIO(pilot_zip.__wrapped__()))


def test_it_holds_the_pilot_and_nothing_else() -> None:
    folder = ROOT / "src" / "podwright" / "pilot"
    with zipfile.ZipFile(io.BytesIO(pilot_zip())) as archive:
        names = archive.namelist()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    modules = [
        f"pilot/{path.relative_to(folder)}" for path in sorted(folder.rglob("*.py")) if path.name != "__main__.py"
    ]
    assert names == ["__main__.py", "__main__.pyc", "modules", *modules]


def test_it_says_its_version(pilot: Path) -> None:
    assert said(pilot, "--version") == (0, f"podwright pilot {__version__}\n", "")
    assert said(pilot, "--version", python=oldest_python()) == (0, f"podwright pilot {__version__}\n", "")


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_goes_to_standard_output(pilot: Path, words: tuple[str, ...]) -> None:
    assert said(pilot, *words) == (0, USAGE, "")


@pytest.mark.parametrize(
    "words", ["dance", "node", "keep", "keep --after", "keep --after run", "ship", "rank", "rank --"]
)
def test_a_wrong_command_line_exits_with_64(pilot: Path, words: str) -> None:
    assert said(pilot, *words.split()) == (64, "", USAGE)


@pytest.mark.parametrize("role", ["node", "keep", "ship"])
def test_an_order_that_cannot_be_read_is_said_in_one_line(pilot: Path, tmp_path: Path, role: str) -> None:
    code, out, words = said(pilot, role, str(tmp_path / "none.json"))
    assert (code, out) == (64, "")
    assert words == f"podwright: [Errno 2] No such file or directory: '{tmp_path}/none.json'\n"


@pytest.mark.parametrize("role", ["node", "keep", "ship"])
def test_an_order_of_another_version_is_said_in_one_line(pilot: Path, tmp_path: Path, role: str) -> None:
    path = tmp_path / "order.json"
    path.write_text('{"version": 99}\n')
    assert said(pilot, role, str(path)) == (64, "", f"podwright: {path} is no order of version 1\n")


def test_a_python_that_is_too_old_is_told_so() -> None:
    main = ROOT / "src" / "podwright" / "pilot" / "__main__.py"
    program = f"import sys\nsys.version_info = (3, 7, 16, 'final', 0)\nexec({main.read_text()!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (69, "podwright: the pilot needs Python 3.8 or newer, this is 3.7\n")


def job_in(folder: Path, order: Order) -> Path:
    """A run's folder as the engine leaves it to the pilot; gives the order's path."""
    (folder / "job").mkdir(parents=True)
    (folder / "token").write_text("secret\n")
    (folder / "job" / "order.json").write_text(order.text())
    (folder / "job" / "pilot.pyz").write_bytes(pilot_zip())
    return folder / "job" / "order.json"


def test_a_whole_run_of_two_ranks_on_the_oldest_python(tmp_path: Path) -> None:
    script = (
        'echo rank $RANK of $WORLD_SIZE in $PODWRIGHT_RUN; echo "{\\"podwright\\": {\\"step\\": $RANK}}"; echo e >&2'
    )
    order = ORDER._replace(nodes=1, command=["sh", "-c", script], goal={"metric": "step", "at_least": 1})
    path = job_in(tmp_path / "run", order)
    code, out, words = said(path.with_name("pilot.pyz"), "node", str(path), python=oldest_python())
    assert (code, out, words) == (0, "", "")
    record = tmp_path / "run" / "record" / "n0.r0"
    events = list(rows_of(str(record / "events.jsonl")))
    counts = Counter(event["k"] for event in events)
    assert {kind: counts[kind] for kind in ("pilot", "joined", "go", "rank", "ready", "rank_end", "goal", "end")} == {
        "pilot": 1,
        "joined": 1,
        "go": 1,
        "rank": 2,
        "ready": 1,
        "rank_end": 2,
        "goal": 1,
        "end": 1,
    }
    assert [event["q"] for event in events] == list(range(len(events)))
    end = events[-1]
    assert (end["k"], end["state"], end["exit_code"]) == ("end", "succeeded", 0)
    for rank in (0, 1):
        lines = (record / f"rank{rank}.log").read_text().splitlines()
        assert sorted(lines)[0] == "e"
        assert f"rank {rank} of 2 in toy-2222" in lines
    assert list(rows_of(str(record / "metrics.jsonl")))
    assert (record / "closed").read_text() == "closed\n"


@pytest.mark.parametrize(("launcher", "names"), [("plain", []), ("ranks", sorted(RANK_NAMES))])
def test_one_rank_sees_others_only_where_a_launcher_is_named(tmp_path: Path, launcher: str, names: list[str]) -> None:
    """Whatever it inherits, and whatever its setup says; on the oldest Python."""
    order = ORDER._replace(nodes=1, ranks_per_node=1, launcher=launcher, command=["env"], setup=["export GROUP_RANK=7"])
    path = job_in(tmp_path / "run", order)
    inherited = dict.fromkeys((*RANK_NAMES, *OWN_RANK), "3")
    assert said(path.with_name("pilot.pyz"), "node", str(path), python=oldest_python(), **inherited)[0] == 0
    lines = (tmp_path / "run" / "record" / "n0.r0" / "rank0.log").read_text().splitlines()
    seen = {line.partition("=")[0] for line in lines}
    assert sorted(seen.intersection(inherited)) == names
    assert {"PODWRIGHT_RUN", "PODWRIGHT_FOLDER", "PODWRIGHT_SCRATCH", "PODWRIGHT_ATTEMPT"} <= seen


def test_what_a_rank_reads_and_what_it_leaves(tmp_path: Path) -> None:
    """What lay there before the ranks, such as the input and what setup made, is not among what they left."""
    command = ["sh", "-c", "cat > copy; mkdir out; echo x > out/ckpt"]
    setup = ["echo yes > answers"]
    order = ORDER._replace(nodes=1, ranks_per_node=1, command=command, setup=setup, stdin="answers", keep=[])
    path = job_in(tmp_path / "run", order)
    assert said(path.with_name("pilot.pyz"), "node", str(path), python=oldest_python())[0] == 0
    kept = tmp_path / "run" / "results" / "workdir"
    assert sorted(file.relative_to(kept).as_posix() for file in kept.rglob("*")) == ["copy", "out", "out/ckpt"]
    assert (kept / "copy").read_text() == "yes\n"
    events = list(rows_of(str(tmp_path / "run" / "record" / "n0.r0" / "events.jsonl")))
    assert [event["k"] for event in events][-2:] == ["workdir", "end"]


def test_an_input_that_is_not_there_is_said(tmp_path: Path) -> None:
    order = ORDER._replace(nodes=1, ranks_per_node=1, command=["true"], stdin="none.txt")
    path = job_in(tmp_path / "run", order)
    assert said(path.with_name("pilot.pyz"), "node", str(path))[0] == EXIT_FAILED
    log = tmp_path / "run" / "record" / "n0.r0" / "rank0.log"
    assert log.read_text() == "podwright: stdin: none.txt: No such file or directory\n"


def test_bytecode_in_the_pilot_is_what_runs(tmp_path: Path) -> None:
    """A source that nothing but its bytecode fits shows which of both was taken."""
    pilot = tmp_path / "pilot.pyz"
    with zipfile.ZipFile(io.BytesIO(pilot_zip())) as whole, zipfile.ZipFile(pilot, "w") as archive:
        for name in whole.namelist():
            is_source = name.startswith("pilot/") and name.endswith(".py")
            archive.writestr(name, b"import of the wrong file\n" if is_source else whole.read(name))
    assert said(pilot, "--version")[0] == 0


def test_bytecode_of_another_python_is_passed_over(tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.pyz"
    with zipfile.ZipFile(io.BytesIO(pilot_zip())) as whole, zipfile.ZipFile(pilot, "w") as archive:
        for name in whole.namelist():
            data = whole.read(name)
            archive.writestr(name, b"\0\0\r\n" + data[4:] if name in ("__main__.pyc", "modules") else data)
    assert said(pilot, "--version")[0] == 0
