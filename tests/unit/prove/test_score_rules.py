"""Logs are judged as mlperf-logging judges them: 300 made ones of all benchmarks that it knows, whole and broken."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlperf_logging import compliance_checker
from mlperf_logging.benchmark_meta import _ALL_RESULT_FILE_COUNTS
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from mlperf_logging.result_summarizer.result_summarizer import _compute_olympic_average, _query_run_start_stop

from podwright.cli.main import main
from podwright.mlperf.log import entries_of, olympic_minutes, score_run
from podwright.mlperf.rules import BENCHMARKS, check_log

NAMES = sorted({name for counts in _ALL_RESULT_FILE_COUNTS.values() for name in counts})
RULESET = "4.1.0"
STRUCTURE = {
    *("init_start", "init_stop", "run_start", "run_stop", "epoch_start", "epoch_stop", "block_start", "block_stop"),
    *("eval_start", "eval_stop", "eval_accuracy"),
}
"""The keys that decide a time; who submitted and with which parameters is not ours to judge."""
DEFECTS = (
    *("whole", "aborted", "no run_start", "no run_stop", "two runs", "two ranks", "restarted", "backwards", "no init"),
    *("no status", "no epochs", "no epoch_num"),
)

Event = tuple[float, str, Any, dict[str, Any]]


def events(chance: random.Random, name: str, status: str = "success") -> list[Event]:
    minutes, epochs = chance.uniform(5, 90), chance.randint(1, 4)
    rows: list[Event] = [(-60, "init_start", None, {}), (-1, "init_stop", None, {})]
    rows += [(0, "run_start", None, {}), (0, "submission_benchmark", name, {})]
    for epoch in range(1, epochs + 1):
        at, place = 60 * minutes * (epoch - 1) / epochs, {"epoch_num": epoch}
        rows += [(at, "epoch_start", None, place), (at + 50, "epoch_stop", None, place)]
        rows += [(at + 51, "eval_start", None, place), (at + 55, "eval_stop", None, place)]
        rows.append((at + 55, "eval_accuracy", 0.7, place))
    return [*rows, (60 * minutes + 60, "run_stop", None, {"status": status})]


def broken(chance: random.Random, name: str, defect: str) -> list[Event]:
    rows = events(chance, name, "aborted" if defect == "aborted" else "success")
    match defect:
        case "no run_start" | "no run_stop":
            return [row for row in rows if row[1] != defect.split()[1]]
        case "two runs":
            return rows + [(at + 9000, key, value, more) for at, key, value, more in events(chance, name)]
        case "two ranks":
            return [row for row in rows for _ in range(2)]
        case "restarted":
            return [*rows[: len(rows) // 2], *rows]
        case "backwards":
            return [rows[0], rows[1], rows[-1], *rows[2:-1]]
        case "no init":
            return rows[2:]
        case "no status":
            return [*rows[:-1], (rows[-1][0], "run_stop", None, {})]
        case "no epochs":
            return [row for row in rows if not row[1].startswith("epoch")]
        case "no epoch_num":
            return [(at, key, value, {} if key == "epoch_start" else more) for at, key, value, more in rows]
    return rows


def text_of(rows: list[Event]) -> str:
    lines = []
    for at, key, value, more in rows:
        row = {"namespace": "", "time_ms": round(1.6e12 + 1000 * at), "event_type": "POINT_IN_TIME", "key": key}
        lines.append(f":::MLLOG {json.dumps({**row, 'value': value, 'metadata': {'file': 'a', 'lineno': 1, **more}})}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def structure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checker's own rules, those of the keys that decide a time."""
    source = Path(compliance_checker.__file__).parent / f"training_{RULESET}" / "common.yaml"
    kept = []
    for row in yaml.safe_load(source.read_text()):
        if "BEGIN" in row or ("KEY" in row and row["KEY"]["NAME"] in STRUCTURE):
            kept.append(row)
    # How long a start may take follows from the division, which is none of these keys: the longer one.
    kept[0]["BEGIN"]["CODE"] = kept[0]["BEGIN"]["CODE"].replace("'compile_time_mins': 0", "'compile_time_mins': 240")
    path = tmp_path_factory.mktemp("rules") / "structure.yaml"
    path.write_text(yaml.safe_dump(kept))
    return path


def checker_accepts(log: Path, rules: Path) -> bool:
    checker = mlp_compliance.make_checker("training", RULESET, quiet=True, werror=False)
    # An absolute path is taken as it is by the checker, which joins it to its own folder.
    return bool(checker.check_file(str(log), str(rules)))


def test_all_benchmarks_that_it_knows_are_known() -> None:
    assert set(NAMES) <= BENCHMARKS


@pytest.mark.parametrize("defect", DEFECTS)
def test_logs_are_judged_alike(defect: str, structure: Path, tmp_path: Path) -> None:
    """Never refused what the checker accepts; never silent on what it refuses; one time for both."""
    chance = random.Random(defect)
    for number in range(25):
        name = NAMES[(number + 7 * DEFECTS.index(defect)) % len(NAMES)]
        log = tmp_path / f"result_{number}.txt"
        log.write_text(text_of(broken(chance, name, defect)))
        entries = list(entries_of(log.read_text().splitlines()))
        warnings, accepted = check_log(str(log), entries), checker_accepts(log, structure)
        assert accepted == (defect in ("whole", "aborted", "two ranks")), (defect, warnings)
        assert bool(warnings) == (defect not in ("whole", "aborted")), (defect, warnings)
        if accepted:
            assert not any(warning.refuses for warning in warnings)
            lines, _ = mlp_parser.parse_file(str(log), ruleset=RULESET)
            start, stop = _query_run_start_stop(lines)
            assert score_run(entries).minutes == pytest.approx((stop - start) / 60000)


@pytest.mark.parametrize(("count", "dropped", "missed"), [(5, 1, 0), (5, 1, 1), (10, 1, 1), (40, 4, 0), (40, 4, 3)])
def test_the_olympic_mean_is_that_of_the_summary(count: int, dropped: int, missed: int) -> None:
    chance = random.Random(count + missed)
    times = [chance.uniform(10, 30) for _ in range(count - missed)]
    runs: list[tuple[float | None, bool]] = [(minutes, True) for minutes in times]
    runs += [(1.0, False)] * missed
    expected = _compute_olympic_average(list(times), missed, dropped)
    assert olympic_minutes(runs, dropped) == pytest.approx(expected)


def test_a_log_of_two_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance, files = random.Random(1), []
    for number, defect in enumerate(("whole", "whole", "whole", "two runs")):
        files.append(str(tmp_path / f"result_{number}.txt"))
        Path(files[-1]).write_text(text_of(broken(chance, "bert", defect)))
    assert main(["bench", "score", *files[:3]]) == 0
    capsys.readouterr()
    assert main(["bench", "score", *files, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["minutes"] is None
    assert not any(row["refuses"] for row in document["warnings"] if row["file"] != files[3])
    refused = [row for row in document["warnings"] if row["refuses"]]
    assert {row["file"] for row in refused} == {files[3]}
    assert all(isinstance(row["line"], int) and "two runs" in row["rule"] for row in refused)
    assert main(["bench", "score", *files]) == 2
    shown = capsys.readouterr().out
    assert "MLPerf's checker refuses result_3.txt" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_unet3d_drops_four_at_each_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for number in range(10):
        files.append(str(tmp_path / f"result_{number}.txt"))
        Path(files[-1]).write_text(text_of(events(random.Random(number), "unet3d")))
    times = sorted(score_run(entries_of(Path(file).read_text().splitlines())).minutes or 0.0 for file in files)
    assert main(["bench", "score", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["minutes"] == pytest.approx(sum(times[4:6]) / 2)
