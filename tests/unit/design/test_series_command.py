"""`podwright predict --series`: sizes fitted and predicted, compared whole; bad files refused at their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import theme
from podwright.cli.main import main
from podwright.design.exports.series_drawing import series_svg
from podwright.design.predict.scaling_errors import errors
from podwright.design.predict.series import forecast_size
from podwright.design.predict.series_file import read_sizes
from podwright.spec.problems import Refusal
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "scaling"
NAMES = ("sizes", "no-batch")


@pytest.mark.parametrize("case", NAMES)
def test_series_in_the_terminal(
    case: str,
    tmp_path: Path,
    golden: Callable[[Path, str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(CASES / case)
    assert main(["predict", "--series", "sizes.csv"]) == 0
    printed = capsys.readouterr().out
    golden(CASES / case / "expected" / "series.txt", printed)
    assert [line for line in printed.splitlines() if len(line) > 80] == []
    assert main(["predict", "--series", "sizes.csv", "--json", "--svg", str(tmp_path / "series.svg")]) == 0
    golden(CASES / case / "expected" / "series.json", capsys.readouterr().out)
    golden(CASES / case / "expected" / "series.svg", (tmp_path / "series.svg").read_text(encoding="utf-8"))


def test_published_series_give_the_table_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES / "series.csv"
    assert main(["predict", "--series", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    printed = []
    for series in document["series"]:
        printed += [(series["name"], size["count"], size["error"]) for size in series["held_out"]]
    held_out = errors(read_sizes(path.read_text(encoding="utf-8"), "series.csv"))
    assert printed == [(error.series, error.count, pytest.approx(error.error)) for error in held_out]
    assert (document["within_10_percent"], document["within_10_percent_ends_alone"]) == (23, 17)


def test_an_unknown_batch_has_the_wider_interval(capsys: pytest.CaptureFixture[str]) -> None:
    widths = []
    for case in NAMES:
        assert main(["predict", "--series", str(CASES / case / "sizes.csv"), "--json"]) == 0
        minutes = json.loads(capsys.readouterr().out)["series"][0]["forecasts"][0]["minutes"]
        widths.append(round(minutes["high"] / minutes["expected"], 6))
    assert widths == [1.25, 1.35]


BAD = {
    "": "sizes.csv: holds no sizes",
    "count,batch,minutes,epochs\n": "sizes.csv: holds no sizes",
    "cuont,minutes\n8,1\n": "sizes.csv:1:1: count: there is no such column",
    "count,minutes,count\n8,1,8\n": "sizes.csv:1:15: count: stands twice in the line of names",
    "count,minutes\n8,40\n": "sizes.csv:2:1: minutes: the series has fewer than two measured sizes",
    "count,minutes\n8,40\n16\n32,9\n": "sizes.csv:3:1: has 1 cells, and there are 2 columns",
    "count,minutes\n8,40\nmany,20\n32,9\n": 'sizes.csv:3:1: count: "many" is not a whole positive number',
    "count,minutes\n8,40\n2.5,20\n32,9\n": 'sizes.csv:3:1: count: "2.5" is not a whole positive number',
    "count,minutes\n8,40\n16,nan\n32,9\n": 'sizes.csv:3:4: minutes: "nan" is not a positive number',
    "count,minutes\n8,40\n,20\n32,9\n": "sizes.csv:3:1: count: is empty",
    'note,count,minutes\n"a, b",8,-4\nc,16,2\nd,8,3\n': 'sizes.csv:2:10: minutes: "-4" is not a positive number',
    "count,batch,minutes,epochs\n8,64,40,3\n16,,20,3\n": "sizes.csv:3:4: batch: is missing where epochs is given",
    "count,batch,minutes,epochs\n8,64,40,3\n16,64,20,\n": "sizes.csv:3:10: epochs: is missing where batch is given",
    "count,batch,minutes,epochs\n8,64,40,3\n16,64,20,3\n32,,,\n": "sizes.csv:4:4: batch: is missing, and other sizes",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_refused_at_their_place(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sizes.csv").write_text(text)
    assert main(["predict", "--series", "sizes.csv"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(BAD[text])
    assert printed.out == ""


CELLS = st.one_of(
    st.sampled_from(["", "8", "64", "1e15", "1e-6", "1e400", "-1", "nan", "x", '"', '"8"', 'a"b', "0.5", "8,8"]),
    st.floats(1e-6, 1e15).map(str),
    st.text(max_size=6),
)
HEADS = st.sampled_from(["count,batch,minutes,epochs", "count,minutes", "series,count,minutes,evaluate_every", "x,y"])


@settings(max_examples=200, deadline=None)
@given(head=HEADS, rows=st.lists(st.lists(CELLS, min_size=2, max_size=4).map(",".join), max_size=6))
def test_no_file_ends_in_a_traceback(head: str, rows: list[str]) -> None:
    try:
        series = read_sizes("\n".join([head, *rows]), "sizes.csv")
    except Refusal:
        return
    for measured in series:
        for asked in measured.asked:
            forecast = forecast_size(measured, asked).time_s
            assert 0 <= forecast.low <= forecast.expected <= forecast.high
    assert errors(series) is not None
    assert series_svg(series, theme.asset("tokens.css")).endswith("</svg>\n")


def test_all_problems_come_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("count,minutes\nx,1\n8,y\n")
    assert main(["predict", "--series", str(path), "--json"]) == 2
    places = [(error["line"], error["column"]) for error in json.loads(capsys.readouterr().out)["errors"]]
    assert places == [(2, 1), (2, 1), (3, 3)]


@pytest.mark.parametrize("arguments", [[], ["pod.yaml", "--series", "sizes.csv"], ["pod.yaml", "--svg", "a.svg"]])
def test_one_thing_is_predicted_at_a_time(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *arguments]) == 2
    assert "say what to predict" in capsys.readouterr().err


def test_nothing_is_predicted_beyond_where_a_curve_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """148, 88, 64, 64, 88 seconds on 1 to 16: the truth on 64 was 274, and 59 was printed."""
    rows = [f"{count},{seconds / 60}" for count, seconds in ((1, 148), (2, 88), (4, 64), (8, 64), (16, 88))]
    path = tmp_path / "sizes.csv"
    path.write_text("\n".join(["count,minutes", *rows, "3,", "64,"]) + "\n")
    assert main(["predict", "--series", str(path), "--json"]) == 0
    [series] = json.loads(capsys.readouterr().out)["series"]
    assert series["no_prediction_beyond"] == 8
    assert [row["count"] for row in series["forecasts"]] == [3]
    assert [row["count"] for row in series["not_predicted"]] == [64]
    assert main(["predict", "--series", str(path)]) == 0
    assert "refused   64: no prediction beyond 8, where the curve turns" in capsys.readouterr().out


def test_an_interval_is_no_narrower_than_its_own_curve_is_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third size is twice what the others say: so may the next be."""
    path = tmp_path / "sizes.csv"
    path.write_text("count,minutes\n1,100\n2,52\n4,50\n8,14\n16,\n")
    assert main(["predict", "--series", str(path), "--json"]) == 0
    [series] = json.loads(capsys.readouterr().out)["series"]
    assert series["error"] > 0.35
    minutes = series["forecasts"][0]["minutes"]
    assert minutes["high"] / minutes["expected"] > 1.35 * 1.2
