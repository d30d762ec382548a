"""The parts of single benchmarks that can be wrong without anybody noticing."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.paths import ROOT

FOLDER = ROOT / "benchmarks"
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a script as running it would: with its own folder first on the path."""
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(FOLDER)):
            del sys.modules[name]


def document(name: str, **facts: str) -> dict[str, Any]:
    """A result as a benchmark writes it."""
    machine = {
        "date": "2026-11-16T04:26:58Z",
        "cpu": "a CPU",
        "cores": 2,
        "load_at_start": [0.12, 0.2, 0.3],
        "python": "3.11.7",
        "versions": {"podwright": "0.1.0", "torch": "2.15.0"},
        **facts,
    }
    estimate = {"value": 1.004, "low": 0.996, "high": 1.012, "count": 5}
    row = {"what": f"{name} with / without", "estimate": estimate, "unit": "x", "goal": 1.01, "seen": "2.01 s / 2.00 s"}
    return {"benchmark": name, "machine": machine, "rows": [row], "raw": {}}


def test_the_summary(script: Callable[[str], ModuleType], golden: Callable[[Path, str], None]) -> None:
    found = [document("overhead"), document("gpu_step", gpu="a GPU")]
    golden(GOLDEN / "summary.md", script("run_all").summary(found))


def test_every_simulated_table_is_made_again_by_one_command(script: Callable[[str], ModuleType]) -> None:
    tables = [path.stem for path in (FOLDER / "results").glob("*.md") if "seeded" in path.read_text("utf-8")]
    assert sorted(script("simulations").RULES) == sorted(tables)
    assert "\t$(BIN)/python benchmarks/simulations.py\n" in (ROOT / "Makefile").read_text("utf-8")


def test_a_regression_of_our_own_is_found(script: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """Made: a ratio that is 8 % more from the thirteenth round on; two rounds were measured beside other work."""
    history, path = script("history"), tmp_path / "history.jsonl"
    documents = []
    for number in range(24):
        made = document("overhead", date=f"2026-11-{number + 1:02}T04:26:58Z")
        made["rows"][0]["estimate"]["value"] = (1.0 + 0.001 * (number % 5)) * (1.08 if number >= 14 else 1)
        if number in (3, 7):
            made["machine"]["load_at_start"] = [3.2, 2.0, 1.0]
        documents.append(made)
    history.append(path, documents[:14])
    history.append(path, documents[:14])
    rows = history.read(path)
    assert len(rows) == 14, "what was added is not added again"
    assert list(history.page(rows)) == ["history   1 ratios, 12 rounds at most; 2 left out for load above 1"]
    history.append(path, documents)
    [worse, count] = history.page(history.read(path))
    assert worse.startswith("worse     overhead: overhead with / without: 1.08")
    assert "since its round 13" in worse
    assert count == "history   1 ratios, 22 rounds at most; 2 left out for load above 1"


def test_the_pilot_is_known_by_its_command_line(script: Callable[[str], ModuleType], tmp_path: Path) -> None:
    pilot_cpu = script("pilot_cpu")
    own, other = "idle-2345", "idle-9999"
    cases = {
        ("python3", "-I", "-S", "/proc/self/fd/4", "node", "order.json", own): "node",
        ("python3", "-I", "-S", "/home/runs/idle-2345/job/pilot.pyz", "keep", "order.json", own): "keep",
        ("python3", "-I", "-S", "/proc/7/fd/4", "rank", "--", "sleep", "9", own): "rank",
        ("python3", "-I", "-S", "/proc/self/fd/4", "ship", "order.json", own): None,
        ("python3", "-I", "-S", "/proc/self/fd/4", "node", "order.json", other): None,
        ("sleep", "9", own): None,
    }
    for number, ((*words, run_id), role) in enumerate(cases.items()):
        process = tmp_path / str(number)
        process.mkdir()
        (process / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
        (process / "environ").write_bytes(f"HOME=/root\0PODWRIGHT_RUN={run_id}\0".encode())
        assert pilot_cpu.role_of(process, "idle-2345") == role
    assert pilot_cpu.role_of(tmp_path / "gone", "idle-2345") is None


def test_copied_runs_are_listed_as_runs(script: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """The home that `ps` is timed on must hold what `ps` lists: ended, sealed runs, one after the other."""
    from podwright import launch
    from podwright.runs import Asked, Home

    sample_home = Home.open(tmp_path / "sample")
    asked = Asked("sample-2345", "sample", "local", "local", 1_790_000_000.0, 1, 1, {"name": "sample"})
    end = b'{"t":1790000001.0,"e":[0,0],"n":0,"q":1,"k":"end","state":"succeeded","reason":"","exit_code":0}\n'
    files = {"record/n0.r0/events.jsonl": end, "record.json": b'{"id": "sample-2345"}', "job/pilot.pyz": b"zip"}
    sample = sample_home.create(asked, files, {})

    script("ps_scale").fill(tmp_path / "many", sample, 3)

    home = Home.open(tmp_path / "many")
    records = launch.recent(launch.Session(home))
    assert [record.id for record in records] == ["sample-00000", "sample-00001", "sample-00002"]
    assert {record.state for record in records} == {"succeeded"}
    assert all(home.folder(record.id).is_sealed for record in records)
    assert (home.folder("sample-00001").path / "record.json").read_bytes() == b'{"id": "sample-00001"}'
    assert not (home.folder("sample-00001").path / "job").exists()


def test_the_training_loop_is_timed_by_the_programs_own_words(
    script: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    log = tmp_path / "rank0.log"
    log.write_bytes(b'words\n:::MLLOG {"time_ms": 1000}\n{"podwright": {"step": 1}}\n:::MLLOG {"time_ms": 4500}\n')
    training = script("overhead").Training(tmp_path, [], {})
    training.note("arm", log)
    assert training.loops == {"arm": [3.5]}


def test_the_pilot_is_written_and_answers(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "pilot.pyz"
    subprocess.run([sys.executable, str(FOLDER / "make_pilot.py"), str(out)], check=True, stdout=subprocess.DEVNULL)
    answer = subprocess.check_output([sys.executable, "-I", "-S", str(out), "--version"], text=True)
    assert answer.startswith("podwright pilot ")


def test_every_case_of_the_gpu_is_summed_up(script: Callable[[str], ModuleType]) -> None:
    run_all = script("run_all")
    kept = {path.stem for path in (FOLDER / "results").glob("gpu_step_*.json")}
    headings = [line.removeprefix("## ") for line in (FOLDER / "results" / "summary.md").read_text().splitlines()]
    assert kept
    assert kept <= set(headings)
    assert not kept & set(run_all.NAMES)


METRICS = """\
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="batch",resource="jobs",scope="namespace",verb="WATCH"} 2
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",dry_run="All",group="batch",resource="jobs",subresource="",verb="APPLY"} 1
apiserver_request_total{code="201",dry_run="",group="batch",resource="jobs",subresource="",verb="APPLY"} 1e+03
apiserver_request_total{code="200",dry_run="",group="batch",resource="jobs",subresource="",verb="WATCH"} 3
apiserver_request_total{code="200",dry_run="",group="",resource="nodes",subresource="",verb="LIST"} 7
"""


def test_requests_are_read_from_the_server_s_own_count(script: Callable[[str], ModuleType]) -> None:
    """A watch that is open was asked for, too; what other programs of the cluster look at is left out."""
    assert script("kubernetes_submit").counted(METRICS) == {("APPLY", "jobs"): 1001, ("WATCH", "jobs"): 5}


def test_the_docs_show_how_a_lab_scales(script: Callable[[str], ModuleType]) -> None:
    """Table and picture follow from the figures that are kept."""
    results = FOLDER / "results"
    lab_scaling, curves = script("lab_scaling"), json.loads((results / "lab_scaling.json").read_text())["curves"]
    assert curves
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for curve in curves:
        assert [size["size"] for size in curve["sizes"]] == [1, 2, 4]
        for size in curve["sizes"]:
            assert f"| {curve['workload']} {lab_scaling.row_of(size)}" in page
    picture = lab_scaling.picture_of(curves)
    assert picture == (results / "lab_scaling.svg").read_text()
    assert picture == (ROOT / "docs" / "images" / "lab-scaling.svg").read_text()


def test_the_docs_have_the_worst_of_what_compare_proves() -> None:
    kept = (FOLDER / "results" / "proof_families.md").read_text("utf-8")
    row = r"^\| [a-z ]+ \| (\d+)" + r" \| ([\d.]+)%" * 4 + r" \|$"
    rows = re.findall(row, kept, re.MULTILINE)
    by_count: dict[str, list[list[float]]] = {}
    for count, *shares in rows:
        by_count.setdefault(count, []).append(list(map(float, shares)))
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert {len(words) for words in by_count.values()} == {5}
    for count, words in by_count.items():
        holds, false, same, found = zip(*words, strict=True)
        assert f"| {count} | {min(holds)}% | {max(false)}% | {max(same)}% | {min(found)}% |" in page
