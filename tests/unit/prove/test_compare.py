"""`compare` of recorded runs, files and the command as a person and a script see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.runs import Home
from tests.fixtures.repeats import Planted, write_repeats
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "prove"
STEADY = [60.0, 60.3, 59.8, 60.1, 60.2]
SLOW = [value * 1.05 for value in STEADY]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    return Home.open(tmp_path / "home")


def document(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, object]]:
    code = main(["compare", *args, "--json"])
    return code, json.loads(capsys.readouterr().out)


def samples(path: Path, values: list[object]) -> str:
    path.write_text(json.dumps({"samples": values}))
    return str(path)


def test_five_percent_with_their_cause(
    home: Home, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    steps = {"input_s": 4.0, "compute_s": 52.0, "communication_s": 3.0, "checkpoint_s": 1.0}
    write_repeats(home, "train-aaaa", STEADY, Planted(steps=steps))
    slow = Planted(steps=steps | {"compute_s": 55.0}, clock_mhz=1335.0, image="sha256:bbbb")
    write_repeats(home, "train-bbbb", SLOW, slow)
    code, row = document(capsys, "train-aaaa", "train-bbbb")
    assert code == 1
    assert row["verdict"] == "different"
    assert row["ratio"] == pytest.approx(1.05)
    causes = row["causes"]
    assert isinstance(causes, list)
    assert [cause["what"] for cause in causes] == ["compute_s", "GPU clock", "image digest"]
    assert main(["compare", "train-aaaa", "train-bbbb"]) == 1
    golden(CASES / "compare-different.txt", capsys.readouterr().out)


def test_the_same_ends_with_zero(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_repeats(home, "train-aaaa", STEADY, Planted())
    write_repeats(home, "train-bbbb", STEADY[::-1], Planted())
    code, row = document(capsys, "train-aaaa", "train-bbbb")
    assert code == 0
    assert (row["verdict"], row["causes"], row["n"]) == ("same", [], [5, 5])
    assert main(["compare", "train-aaaa", "train-bbbb"]) == 0
    shown = capsys.readouterr().out
    assert "steps     not reported" in shown
    assert "differs   nothing that was recorded" in shown


def test_only_runs_that_succeeded_count(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_repeats(home, "train-aaaa", STEADY, Planted())
    write_repeats(home, "train-bbbb", STEADY, Planted(state="failed"))
    assert main(["compare", "train-aaaa", "train-bbbb"]) == 2
    assert "no run of train-bbbb has succeeded" in capsys.readouterr().err


def test_points_of_a_matrix_are_never_samples(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_repeats(home, "train-aaaa", STEADY, Planted(matrix={"lr": 0.1}))
    write_repeats(home, "train-bbbb", STEADY, Planted())
    for first, second in (("train-aaaa", "train-bbbb"), ("train-bbbb", "train-aaaa-1")):
        assert main(["compare", first, second]) == 2
        assert "points of a matrix" in capsys.readouterr().err


def test_any_result_may_be_compared(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_repeats(home, "train-aaaa", STEADY, Planted(results={"images_per_s": 400.0}))
    write_repeats(home, "train-bbbb", STEADY, Planted(results={"images_per_s": 300.0}))
    assert main(["compare", "train-aaaa", "train-bbbb", "--metric", "images_per_s"]) == 1
    assert "train-bbbb is 25.0% lower than train-aaaa" in capsys.readouterr().out
    assert main(["compare", "train-aaaa", "train-bbbb", "--metric", "speed"]) == 2
    assert "it has duration_s, images_per_s" in capsys.readouterr().err


def test_one_run_each_proves_nothing(tmp_path: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = samples(tmp_path / "a.json", [100.0]), samples(tmp_path / "b.json", [106.13])
    code, row = document(capsys, a, b)
    assert code == 1
    assert (row["verdict"], row["interval"], row["p"], row["needed"]) == ("not proven", None, None, None)
    main(["compare", a, b])
    assert "a single run says nothing of how much runs differ" in capsys.readouterr().out


def test_several_are_measured_against_the_first(tmp_path: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    files = [samples(tmp_path / f"{name}.json", list(values)) for name, values in (("a", STEADY), ("b", SLOW))]
    assert main(["compare", files[0], files[0], files[1], "--json"]) == 1
    assert [row["verdict"] for row in json.loads(capsys.readouterr().out)] == ["same", "different"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "has no samples"),
        ('{"samples": []}', "has no samples"),
        ("[1, 2]", "has no samples"),
        ('{"samples": [1, -2]}', "samples[1]: -2 is no positive number"),
        ('{"samples": [1, true]}', "samples[1]: true is no positive number"),
        ('{"samples": [1, NaN]}', "samples[1]: NaN is no positive number"),
    ],
)
def test_files_that_hold_no_samples(
    text: str, message: str, tmp_path: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    good = samples(tmp_path / "good.json", [1.0])
    (tmp_path / "bad.json").write_text(text)
    assert main(["compare", good, str(tmp_path / "bad.json")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--margin", "3"], "hint: did you mean `3%`?"),
        (["--margin", "wide"], "hint: write it like `3%`"),
        (["--margin", "0%"], "must be more than 0%"),
        (["--margin", "100%"], "less than 100%"),
        (["--until", "proven"], "only runs and cells can be run again"),
        (["--by", "target"], "compares within one suite"),
    ],
)
def test_options_that_make_no_sense(
    args: list[str], message: str, tmp_path: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    file = samples(tmp_path / "a.json", [1.0, 2.0])
    assert main(["compare", file, file, *args]) == 2
    assert message in capsys.readouterr().err


def test_one_name_alone_is_not_enough(tmp_path: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples(tmp_path / "a.json", [1.0])]) == 2
    assert "B: there is nothing to compare it with" in capsys.readouterr().err


def test_samples_beyond_all_sense_are_said_shortly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = samples(tmp_path / "a.json", [60.0, 60.1, 61.0, 60.4])
    b = samples(tmp_path / "b.json", [1e300, 1.1e300, 1e300, 1.05e300])
    assert main(["compare", a, b]) == 1
    page = capsys.readouterr().out
    assert "different b is 1.7e+298 times a" in page
    assert "1.19e+295 days" in page
    assert max(map(len, page.splitlines())) < 130
