"""A real Chromium, and pages that tell when they do what a report must not."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from podwright.launch import Session
from podwright.prove.scale import scaling_curve
from podwright.prove.suite_folder import CellKey, SuiteFolder
from podwright.report import write_comparison, write_run_report
from podwright.report.suite import write_suite_report
from podwright.runs import Home
from tests.fixtures.run_folder import Shape, write_run
from tests.fixtures.suites import IMAGES, write_history

CHROMIUM = "/usr/bin/chromium"
HOSTILE = "</script><img src=x onerror=alert(1)>"
SHAPES = {
    "succeeded": Shape(),
    "failed": Shape(state="failed", retry_at=None, fail_at=60, seconds=62, said=HOSTILE),
    "running": Shape(state="running", seconds=70, retry_at=None),
    "bare": Shape(metrics=False, pictures=False, goal_missed=True),
    "flushed": Shape(retry_at=None, flush_s=5, pictures=False),
    "ranks": Shape(nodes=3, ranks_per_node=3, gpus=3, seconds=20, retry_at=None),
    "many": Shape(nodes=140, ranks_per_node=4, gpus=1, seconds=25, retry_at=12),
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of a run of every kind, and a comparison."""
    base = tmp_path_factory.mktemp("pages")
    folders = {name: write_run(base / name, shape) for name, shape in SHAPES.items()}
    made = {name: write_run_report(folder) for name, folder in folders.items()}
    made["comparison"] = write_comparison([folders["succeeded"], folders["bare"]])
    return made | {"sweep": write_comparison(list(_sweep(base))), "suite": _suite(base)}


def _suite(base: Path) -> Path:
    """A suite of two sizes, with how it scales; one image has a name that no page may take for its own words."""
    home = Home.open(base / "home")
    folder = SuiteFolder(home.path / "suites" / "night")
    write_history(folder, [1.0], IMAGES[:1])
    hostile = CellKey("resnet", "local", "container", 4, HOSTILE)
    folder.note("asked", round=1, cell=asdict(hostile), warmup=False, run="resnet-hhhh")
    folder.note("done", run="resnet-hhhh", state="succeeded", values={"duration_s": 17.0}, version=HOSTILE)
    return write_suite_report(Session(home), folder, scaling_curve(folder.cells(), "strong"))


def _sweep(base: Path) -> Iterator[Path]:
    """Forty points over two axes, as a parent's folder has them."""
    for i in range(40):
        shape = Shape(run=f"sweep-7f3k-{i + 1}", nodes=1, gpus=0, seconds=20, retry_at=None, pictures=False, seed=i)
        folder = write_run(base / shape.run, shape)
        record = json.loads((folder / "record.json").read_text())
        quality = round(0.4 + 0.3 * math.sin(i / 9) * math.cos(i % 8), 3)
        matrix = {"learning_rate": 10.0 ** -(i // 8), "batch": 2 ** (i % 8)}
        record |= {"parent": "sweep-7f3k", "matrix": matrix, "results": {"mean_iou": quality}}
        (folder / "record.json").write_text(json.dumps(record))
        yield folder


# Playwright keeps an event loop running in this thread: beyond its module no other test could run one of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or the one Playwright brought where the distribution has none."""
    with sync_playwright() as play:
        path = CHROMIUM if Path(CHROMIUM).exists() else play.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("needs Chromium: apt-get install -y chromium fonts-dejavu-core")
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


@dataclass
class Opener:
    """Opens reports and keeps what they complain of or ask for."""

    browser: Browser
    pages: dict[str, Path]
    trouble: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def open(self, name: str, width: int = 1440, theme: str = "light", script: bool = True) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=script,
        )
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self.trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.trouble.append(f"dialog: {dialog.message}"))
        page.on("request", self._on_request)
        page.goto(self.pages[name].as_uri())
        if script:
            page.wait_for_selector("html[data-ready]", state="attached")
        return page

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.trouble.append(f"request: {request.url}")


@pytest.fixture
def opener(browser: Browser, pages: dict[str, Path]) -> Iterator[Opener]:
    """Gives the opener; afterwards no page may have complained, asked for anything, or shown a dialog."""
    made = Opener(browser, pages)
    yield made
    for context in made.contexts:
        context.close()
    assert made.trouble == []
