"""The console in a real browser: every page in both colours, wide and narrow, live, by keyboard, for everybody."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

import podwright
from podwright import launch
from podwright.console.desk import Desk
from podwright.console.routes.table import ROUTES
from podwright.console.web.app import Console
from podwright.data import Catalog, Choice, ScanRequest, StatsRequest
from podwright.launch import pods
from podwright.prove import SuiteFolder
from podwright.runs import Home
from podwright.spec.loader import workload_of
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.priced import price_run
from tests.fixtures.repeats import Planted, write_repeats
from tests.fixtures.run_folder import Shape, write_run
from tests.fixtures.suites import write_history
from tests.fixtures.sweeps import write_sweep
from tests.paths import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]

WAIT_MS = 180_000
GOOD, BAD = "segmentation-7f3k", "segmentation-9k2p"
PAGES = {
    "overview": "/",
    "runs": "/runs",
    "run": f"/runs/{GOOD}",
    "failed": f"/runs/{BAD}",
    "log": f"/runs/{GOOD}/log",
    "search": f"/runs/{GOOD}/log?text=loss",
    "files": f"/runs/{GOOD}/files",
    "file": f"/runs/{GOOD}/files?path=spec/workload.yaml",
    "diff": f"/runs/{GOOD}/diff?other={BAD}",
    "queue": "/queue",
    "pods": "/pods",
    "pod": "/pods/lab-hosts",
    "alerts": "/alerts",
    "settings": "/settings",
    "sweep": "/runs/sweep-00aa",
    "compare": "/compare?side=plain-00aa&side=fused-00aa",
    "side by side": f"/compare?side={GOOD}&side={BAD}",
    "nothing to compare": "/compare",
    "data": "/data",
    "dataset": "/data/scenes?where=Car%3E0",
    "selection": "/data/half?other=small",
    "prove": "/prove",
    "suite": "/prove/scale-strong-local-resnet",
    "cost": "/cost?days=3660",
    "pod's cost": "/cost/superpod-140?rate=0.92",
    "node": "/pods/superpod-140/nodes/dgx001",
    "wrong filter": "/runs?where=los%3C",
    "nothing": "/nothing",
}
LOG = "".join(f"loss {1 / i:.5f}\n" for i in range(1, 9000))
LIVE = """
import json, time
for step in range(100000):
    print(json.dumps({"podwright": {"step": step, "loss": 1 / (step + 1)}}), flush=True)
    time.sleep(0.2)
"""


def select_scenes(catalog: Catalog, folder: Path) -> None:
    """Scan a few scenes, count their labels, and freeze two selections of them."""
    catalog.scan(ScanRequest(write_scenes(folder, frames=4), "scenes"))
    catalog.stats(StatsRequest("scenes"))
    for name, count in (("half", 12), ("small", 6)):
        catalog.select("scenes", Choice(name, size=count, split="train=0.75,validation=0.25"))


@dataclass
class Served:
    """A console that listens, with what is behind it."""

    desk: Desk
    url: str

    @property
    def session(self) -> launch.Session:
        return self.desk.session


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = Home.open(tmp_path_factory.mktemp("console") / "home")
    folder = write_run(home.runs / GOOD, Shape())
    (folder / "record" / "n0.r0" / "rank0.log").write_text(LOG)
    write_run(home.runs / BAD, Shape(run=BAD, state="failed", retry_at=None, fail_at=60, seconds=62))
    price_run(folder, 12.5, user="ada", team="vision")
    pods.add(home, ROOT / "examples" / "lab-pod.yaml")
    pods.add(home, ROOT / "examples" / "superpod-140.yaml")
    write_sweep(home.runs, "sweep-00aa")
    write_repeats(home, "plain-00aa", (61.2, 60.4, 62.0, 61.6, 60.9), Planted(driver="550"))
    write_repeats(home, "fused-00aa", (60.1, 59.2, 61.9, 59.6, 60.8), Planted())
    suite = SuiteFolder(home.path / "suites" / "scale-strong-local-resnet")
    write_history(suite, [1.0, 1.0, 1.0, 1.2], ["sha256:1"] * 4)
    with launch.Session(home) as session:
        select_scenes(podwright.catalog(session), tmp_path_factory.mktemp("scenes"))
        desk = Desk(session)
        server = uvicorn.Server(uvicorn.Config(Console(desk, ROUTES), port=0, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(desk, f"http://127.0.0.1:{port}")
        server.should_exit = server.force_exit = True
        thread.join()
        desk.close()


@pytest.fixture
def entered(served: Served, browser: Browser) -> Iterator[BrowserContext]:
    """A browser that came by a link; what goes to another place, or is said on its console, is a failure."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    said: list[str] = []
    context.on(
        "request",
        lambda request: said.append(request.url) if not request.url.startswith((served.url, "data:")) else None,
    )
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("console", lambda line: said.append(line.text) if "Content Security" in line.text else None)
    page = context.new_page()
    page.goto(f"{served.url}/enter?key={served.desk.people.new_link()}")
    page.close()
    yield context
    context.close()
    assert said == []


def opened(context: BrowserContext, served: Served, path: str) -> Page:
    page = context.new_page()
    page.goto(served.url + path)
    page.wait_for_selector("html[data-live]", timeout=WAIT_MS)
    return page


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_in_both_colours_and_keeps_nobody_out(name: str, served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, PAGES[name])
    for width, theme, paper in ((1440, "light", "rgb(255, 255, 255)"), (390, "dark", "rgb(20, 23, 26)")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        assert overflow(page) <= 0, (width, theme)
        found = Axe().run(page).response["violations"]
        grave = [
            f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")
        ]
        assert grave == [], (width, theme)


def test_a_phone_of_360_has_room(served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, "/runs")
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("/", f"/runs/{GOOD}", "/settings", "/runs"):
        page.goto(served.url + path)
        assert overflow(page) <= 0, path


def test_charts_are_drawn_and_hold_the_runs_values(served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, f"/runs/{GOOD}")
    expect(page.locator('[data-curve="loss"] canvas')).to_be_visible(timeout=WAIT_MS)
    expect(page.locator('[data-chart="gpu-use"] .values')).to_contain_text("mean", timeout=WAIT_MS)
    page.keyboard.press("d")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"


def test_what_somebody_else_writes_appears_by_itself(served: Served, entered: BrowserContext) -> None:
    """In two tabs, of which one holds the stream; what was chosen stays chosen."""
    first, second = opened(entered, served, "/runs"), opened(entered, served, f"/runs/{GOOD}")
    second.bring_to_front()
    first.get_by_label(f"Choose {BAD}").check()
    launch.tag_runs(served.session, [launch.find(served.session, GOOD)], launch.TagChange(("by-hand",)))
    expect(first.get_by_role("link", name="by-hand")).to_be_visible(timeout=WAIT_MS)
    expect(second.get_by_role("link", name="by-hand")).to_be_visible(timeout=WAIT_MS)
    expect(first.get_by_label(f"Choose {BAD}")).to_be_checked()
    launch.tag_runs(served.session, [launch.find(served.session, GOOD)], launch.TagChange((), ("by-hand",)))
    expect(first.get_by_role("link", name="by-hand")).to_have_count(0, timeout=WAIT_MS)


def test_seven_tabs_all_answer(served: Served, entered: BrowserContext) -> None:
    """A browser has six connections to a place: one stream for each tab would leave the seventh without an answer."""
    tabs = [opened(entered, served, "/runs") for _ in range(8)]
    expect(tabs[-1].locator("h1")).to_have_count(1, timeout=WAIT_MS)


def test_by_keyboard_alone(served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, "/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url(f"{served.url}/runs", timeout=WAIT_MS)
    page.wait_for_selector("html[data-live]", timeout=WAIT_MS)
    page.keyboard.press("/")
    page.keyboard.type(f"id={BAD}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?where=id*", timeout=WAIT_MS)
    page.wait_for_selector("html[data-live]", timeout=WAIT_MS)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_label(f"Choose {BAD}")).to_be_checked()
    expect(page.locator("#count")).to_have_text("1 chosen")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{served.url}/runs/{BAD}", timeout=WAIT_MS)
    page.go_back()
    page.wait_for_url("**/runs?where=id*", timeout=WAIT_MS)


def test_times_are_utc_or_local_and_stay_so(served: Served, browser: Browser) -> None:
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    page.goto(f"{served.url}/enter?key={served.desk.people.new_link()}")
    page.goto(f"{served.url}/runs")
    page.wait_for_selector("html[data-live]", timeout=WAIT_MS)
    first = page.locator("time").first
    utc = first.text_content()
    page.keyboard.press("u")
    local = first.text_content()
    assert utc != local
    page.reload()
    page.wait_for_selector("html[data-live]", timeout=WAIT_MS)
    assert first.text_content() == local
    context.close()


def test_a_search_in_a_log_runs_to_its_end(served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, f"/runs/{GOOD}/log?text=loss+0.0001")
    expect(page.locator("#found")).to_contain_text("100 % of the log", timeout=WAIT_MS)
    assert page.locator("#hits li").count() == LOG.count("loss 0.0001")


def test_all_of_it_works_without_script(served: Served, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.url}/enter?key={served.desk.people.new_link()}")
    page.goto(f"{served.url}/runs")
    page.get_by_label(f"Choose {GOOD}").check()
    page.get_by_label("Tags").fill("without-script")
    page.get_by_role("button", name="Tag").click()
    page.get_by_role("button", name="Tag them").click()
    expect(page.get_by_role("link", name="without-script")).to_be_visible()
    page.get_by_role("link", name="Log").click()
    expect(page.locator("#log")).to_contain_text("loss 0.00011")
    context.close()
    launch.tag_runs(served.session, [launch.find(served.session, GOOD)], launch.TagChange((), ("without-script",)))


def test_sides_are_compared_without_script(served: Served, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.url}/enter?key={served.desk.people.new_link()}")
    page.goto(f"{served.url}/runs?where=name~0")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_label("A", exact=True).fill("plain-00aa")
    page.get_by_label("B", exact=True).fill("fused-00aa")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_contain_text("about 18 a side would decide")
    page.get_by_role("link", name="plain-00aa").click()
    expect(page.locator("h1")).to_contain_text("plain-00aa")
    context.close()


def test_a_map_is_read_by_keyboard(served: Served, entered: BrowserContext) -> None:
    page = opened(entered, served, "/runs/sweep-00aa")
    page.locator(".matrix td[role=gridcell]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".readout").first).to_contain_text("learning_rate=0.01, batch=16: mean IoU")
    shades = page.evaluate(
        "[...document.querySelectorAll('.matrix td[role]')].map((cell) => getComputedStyle(cell).backgroundColor)"
    )
    assert len(set(shades)) > 5


def test_a_run_is_followed_and_cancelled(served: Served, entered: BrowserContext, tmp_path: Path) -> None:
    """A real one on this machine: its values and its log come as it tells them, and it ends when it is asked to."""
    (tmp_path / "tell.py").write_text(LIVE)
    given = {"name": "live", "command": [sys.executable, "tell.py"], "code": "."}
    run = launch.start(served.session, workload_of(given, tmp_path))
    page = opened(entered, served, f"/runs/{run.id}")
    try:
        expect(page.locator("#live-verdict h1")).to_contain_text("Still running", timeout=WAIT_MS)
        seen = page.locator("#live-verdict h1").text_content()
        expect(page.locator("#live-verdict h1")).not_to_have_text(seen or "", timeout=WAIT_MS)
        page.goto(f"{served.url}/runs/{run.id}/log")
        expect(page.locator("#log")).to_contain_text('"step": 3', timeout=WAIT_MS)
        page.goto(f"{served.url}/runs/{run.id}")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel them").click()
        page.wait_for_url(f"{served.url}/runs/{run.id}", timeout=WAIT_MS)
        expect(page.locator("#live-verdict h1")).to_contain_text("Cancelled", timeout=WAIT_MS)
        expect(page.get_by_role("button", name="Rerun")).to_be_visible(timeout=WAIT_MS)
    finally:
        run.cancel()
        run.wait(WAIT_MS / 1000)
