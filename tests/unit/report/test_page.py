"""The page: whole, alone, and safe whatever the run wrote."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.analysis.data import ReportData, in_order
from podwright.reading.run_data import gather
from podwright.report import render_comparison, render_run, write_comparison, write_run_report
from tests.fixtures.hostile import NO_PLAIN_FILES, TOO_LARGE
from tests.fixtures.run_folder import START, Shape, write_run
from tests.unit.report.made import made
from tests.unit.runs.made import parsed
from tests.unit.runs.odd import odd_rows

HOSTILE = "</script><img src=x onerror=alert(1)>"
VOID = {"meta", "link", "img", "input", "br"}


class Reader(HTMLParser):
    """The visible words of a page line by line, and what it refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        self.images += [found.get("src") or ""] if tag == "img" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not {"script", "style"} & set(self.open):
            self.lines.append(text)


@pytest.mark.parametrize("kind", ["succeeded", "failed", "running"])
def test_the_words_of_the_page(
    kind: str, gathered: dict[str, ReportData], golden: Callable[[Path, str], None], runs: dict[str, Path]
) -> None:
    words = "\n".join(Reader(render_run(gathered[kind])).lines) + "\n"
    golden(Path(__file__).parent / "golden" / f"{kind}.txt", words.replace(str(runs[kind]), "/FOLDER"))


@pytest.mark.parametrize("kind", ["succeeded", "missed", "failed", "running", "cancelled", "lost"])
def test_the_page_is_well_formed_and_asks_nothing_of_the_network(kind: str, gathered: dict[str, ReportData]) -> None:
    reader = Reader(render_run(gathered[kind]))
    assert reader.open == []
    assert [link for link in reader.links if not link.startswith(("#", "data:"))] == []


def test_the_script_is_allowed_by_its_hash_alone(gathered: dict[str, ReportData]) -> None:
    page = render_run(gathered["succeeded"])
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    assert len(script) == 1
    assert f"script-src &#39;sha256-{digest}&#39;;" in policy
    assert policy.startswith("default-src &#39;none&#39;; img-src data:;")


def test_nothing_a_run_wrote_becomes_markup(tmp_path: Path) -> None:
    shape = Shape(run="bad-1", state="failed", retry_at=None, fail_at=20, seconds=22, said=HOSTILE)
    folder = write_run(tmp_path / "bad", shape)
    asked = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(asked | {"id": HOSTILE, "version": HOSTILE}))
    record = json.loads((folder / "record.json").read_text())
    hostile = {"id": HOSTILE, "target": HOSTILE, "results": {HOSTILE: 1}, "hosts": [HOSTILE, HOSTILE]}
    (folder / "record.json").write_text(json.dumps(record | hostile))
    with (folder / "record" / "n0.r0" / "events.jsonl").open("a") as file:
        values = {HOSTILE: 1.0, "loss": 2.0}
        for t in (START + 3, START + 4):
            file.write(
                "\n" + json.dumps({"t": t, "e": [0, 0], "n": 0, "k": "result", "rank": 0, "values": values}) + "\n"
            )
    page = render_run(gather(folder))
    assert "<img" not in page
    assert page.count("</script") == 2
    assert any(HOSTILE in line for line in Reader(page).lines)


def test_colours_and_pictures_come_only_from_where_they_may(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Shape(seconds=30, retry_at=None))
    (tmp_path / "secret.png").write_bytes(b"secret")
    results = folder / "results"
    classes = {"classes": ["a"], "matrix": [[1]], "colors": {"a": "red;background:url(http://x)"}}
    (results / "confusion.json").write_text(json.dumps(classes))
    rows = [{"name": "f", "image": "../../secret.png", "truth": "/etc/passwd", "prediction": "examples/00-truth.png"}]
    (results / "examples.json").write_text(json.dumps(rows))
    page = render_run(gather(folder))
    assert "url(" not in page.split("</style>")[1].split('<script type="application/json"')[0]
    assert [address[:22] for address in Reader(page).images] == ["data:image/png;base64,"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Shape(seconds=30, retry_at=None))
    (folder / "results" / "confusion.json").write_text('{"classes": ["a", "b"], "matrix": [[1]]}')
    (folder / "results" / "iou.json").write_text("{")
    (folder / "metrics.parquet").write_bytes(b"torn")
    lines = Reader(render_run(gather(folder))).lines
    unread = [line.split(": ")[1] for line in lines if line.startswith("Could not be shown")]
    assert unread == ["metrics", "confusion.json", "iou.json"]


@pytest.mark.parametrize("kind", [*NO_PLAIN_FILES, *TOO_LARGE])
def test_results_that_are_no_plain_file_hold_nothing_up_and_are_named(tmp_path: Path, kind: str) -> None:
    folder = write_run(tmp_path / "run", Shape(seconds=30, retry_at=None))
    make = {**NO_PLAIN_FILES, **TOO_LARGE}[kind]
    names = ("confusion.json", "iou.json", "examples.json")
    for name in names:
        (folder / "results" / name).unlink(missing_ok=True)
        make(folder / "results" / name)
    lines = Reader(render_run(gather(folder))).lines
    unread = [line for line in lines if line.startswith("Could not be shown")]
    assert [line.split(": ")[1] for line in unread] == list(names)
    assert all(f": {kind}" in line for line in unread)


@pytest.mark.parametrize("kind", [*NO_PLAIN_FILES, *TOO_LARGE])
def test_a_picture_that_is_no_plain_file_is_not_shown(tmp_path: Path, kind: str) -> None:
    folder = write_run(tmp_path / "run", Shape(seconds=30, retry_at=None))
    (folder / "results" / "examples.json").write_text('[{"image": "odd.png"}, {"image": "nul\\u0000.png"}]')
    {**NO_PLAIN_FILES, **TOO_LARGE}[kind](folder / "results" / "odd.png")
    assert [example.image for example in gather(folder).examples] == ["", ""]


def test_an_empty_folder_still_gives_a_page(tmp_path: Path) -> None:
    lines = Reader(render_run(gather(tmp_path))).lines
    assert "No node has reported yet." in lines
    assert "No readings yet." in lines


def test_every_chart_has_its_table(gathered: dict[str, ReportData]) -> None:
    page = render_run(gathered["succeeded"])
    figures = re.findall(r'<figure class="chart.*?</figure>', page, re.DOTALL)
    assert len(figures) == 16
    assert all("<details" in figure and "<table>" in figure for figure in figures)


def test_140_nodes_are_a_band_with_the_odd_one_by_name(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "many", Shape(nodes=140, ranks_per_node=8, gpus=2, seconds=25, retry_at=None))
    page = render_run(gather(folder))
    payload = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    use = next(chart for chart in payload["charts"] if chart["key"] == "gpu-use")
    assert sorted(use["band"]) == ["high", "low", "middle"]
    assert [line["label"] for line in use["lines"]] == ["dgx078"]
    assert len(page) < 3_000_000


def test_reports_are_written_whole_beside_the_run(runs: dict[str, Path]) -> None:
    path = write_run_report(runs["succeeded"])
    assert path == runs["succeeded"] / "report.html"
    assert path.read_text().rstrip().endswith("</html>")
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".report")] == []


def test_runs_side_by_side(gathered: dict[str, ReportData], runs: dict[str, Path], tmp_path: Path) -> None:
    lines = Reader(render_comparison([gathered["succeeded"], gathered["failed"]])).lines
    assert "Only segmentation-7f3k succeeded, so no order can be given. segmentation-7f3k failed." in lines
    at = lines.index("attempts")
    assert lines[at : at + 4] == ["attempts", "2", "1", "images per second"]
    quick = gather(write_run(tmp_path / "quick", Shape(run="segmentation-9xk2", pace=1.3, retry_at=None)))
    first = next(line for line in Reader(render_comparison([gathered["succeeded"], quick])).lines if "first" in line)
    assert first == "segmentation-9xk2 reached the goal first, in 55.5 s: 39 % sooner than segmentation-7f3k."
    assert write_comparison([runs["succeeded"], runs["failed"]]).name == "comparison.html"


@settings(max_examples=60)
@given(st.lists(odd_rows(), max_size=12), st.sampled_from(["running", "failed", "succeeded", "lost", "pending"]))
def test_a_page_comes_out_of_any_events(events: list[dict[str, Any]], state: str | None) -> None:
    page = render_run(made({"state": state}, events=in_order(parsed(*events))))
    assert Reader(page).open == []
