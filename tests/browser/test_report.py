"""The report in a real browser: every kind of run, light and dark, narrow and wide, by mouse, by keyboard, on paper."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SHAPES, Opener

pytestmark = pytest.mark.browser

FIRST_VALUES = '[data-chart="gpu-use"] .values'


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))


@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [
        *(
            (name, theme, width)
            for name in (*SHAPES, "comparison", "sweep", "suite")
            for theme, width in (("light", 1440), ("dark", 390))
        ),
        *((name, "light", width) for name in ("succeeded", "comparison") for width in (360, 390, 820)),
        ("succeeded", "dark", 1440),
    ],
)
def test_it_opens_quietly_and_fits(name: str, theme: str, width: int, opener: Opener) -> None:
    page = opener.open(name, width, theme)
    expect(page.locator("h1")).to_be_in_viewport()
    assert overflow(page) <= 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 26)" if theme == "dark" else "rgb(255, 255, 255)")


def test_the_button_switches_the_colours_of_page_and_charts(opener: Opener) -> None:
    page = opener.open("succeeded")
    before = page.locator('[data-curve="loss"] canvas').screenshot()
    page.get_by_role("button", name="Switch to dark colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert page.locator('[data-curve="loss"] canvas').screenshot() != before
    expect(page.get_by_role("button", name="Switch to light colours")).to_be_visible()


def test_hovering_one_chart_shows_the_values_of_all(opener: Opener) -> None:
    page = opener.open("succeeded")
    expect(page.locator(FIRST_VALUES)).to_contain_text("mean")
    page.locator("input[name=over][value=time]").check()
    page.locator('[data-chart="cpu-use"] .u-over').hover(position={"x": 400, "y": 30})
    for chart in ("cpu-use", "gpu-use", "net-sent"):
        expect(page.locator(f'[data-chart="{chart}"] .values')).to_have_text(re.compile(r"^at \d.*dgx001\d.*dgx002\d"))
    expect(page.locator('[data-curve="loss"] .values')).to_have_text(re.compile(r"^at \d.*\d$"))
    expect(page.locator(".lane-cursor")).to_be_visible()
    page.mouse.move(5, 5)
    expect(page.locator(FIRST_VALUES)).to_contain_text("mean")


def test_dragging_zooms_all_and_escape_brings_all_back(opener: Opener) -> None:
    page = opener.open("succeeded")
    plot = page.locator('[data-chart="gpu-use"] .u-over')
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 100, box["y"] + 40, steps=4)
    page.mouse.up()
    width = "document.body.style.getPropertyValue('--zoom-width')"
    assert float(page.evaluate(width).rstrip("%")) == pytest.approx(200, rel=0.02)
    page.keyboard.press("Escape")
    assert float(page.evaluate(width).rstrip("%")) == pytest.approx(100, rel=0.001)


def test_nodes_and_ranks_can_be_picked_by_keyboard(opener: Opener) -> None:
    page = opener.open("succeeded")
    values = page.locator(FIRST_VALUES)
    page.get_by_role("checkbox", name="dgx002").focus()
    page.keyboard.press("Space")
    expect(values).not_to_contain_text("dgx002")
    page.locator("input[name=by][value=node]").focus()
    page.keyboard.press("ArrowRight")
    expect(values).to_contain_text("rank 3")
    expect(page.locator('[data-chart="net-sent"] .values')).to_contain_text("dgx001")
    page.get_by_role("checkbox", name="3", exact=True).focus()
    page.keyboard.press("Space")
    expect(values).not_to_contain_text("rank 3")


def test_all_or_none_of_many_ranks(opener: Opener) -> None:
    page = opener.open("ranks")
    page.locator("input[name=by][value=rank]").check()
    expect(page.locator(FIRST_VALUES)).to_have_text(re.compile("least, rank .*middle, rank .*greatest, rank "))
    page.get_by_role("button", name="None").click()
    expect(page.locator(FIRST_VALUES)).to_have_text("mean")
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator(FIRST_VALUES)).to_contain_text("greatest")


def test_the_tab_key_reaches_every_control_in_order(opener: Opener) -> None:
    page = opener.open("succeeded")
    reached = []
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.append(focused(page))
    wanted = ['class="skip"', 'id="theme"', 'href="#timeline"', "<summary>", 'name="over"', 'class="plot"']
    wanted += ['name="by"', 'data-node="0"', 'role="gridcell"', 'data-copy="again-1"']
    places = [next((i for i, html in enumerate(reached) if want in html), None) for want in wanted]
    assert None not in places, dict(zip(wanted, places, strict=True))
    assert places == sorted(places)


def test_arrows_move_the_cursor_of_a_chart_and_the_cell_of_the_matrix(opener: Opener) -> None:
    page = opener.open("succeeded")
    page.locator('[data-chart="gpu-use"] .plot').focus()
    page.keyboard.press("End")
    at_end = page.locator(FIRST_VALUES).inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator(FIRST_VALUES).inner_text() != at_end
    page.locator(".matrix td[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#classes .readout")).to_have_text(
        re.compile(r"^Road, taken for Sky: [\d,]+ pixels, [\d.]+ % of Road$")
    )


def test_a_sweep_is_a_map_to_walk_and_a_table_to_sort(opener: Opener) -> None:
    page = opener.open("sweep")
    first = page.locator(".map").first
    first.locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(first.locator(".readout")).to_have_text(
        re.compile(r"^learning_rate=0\.0001, batch=2: mean IoU [\d.]+ \(sweep-7f3k-34\)$")
    )
    head = page.locator("#points th", has_text="mean IoU")
    values = page.locator("#points tbody td:nth-child(5)")
    for order, turned in (("ascending", False), ("descending", True)):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", order)
        shown = [float(text) for text in values.all_inner_texts()]
        assert shown == sorted(shown, reverse=turned)
        assert len(shown) == 40


def test_curves_are_over_steps_where_there_are_steps(opener: Opener) -> None:
    page = opener.open("succeeded")
    expect(page.locator("input[name=over][value=step]")).to_be_checked()
    page.locator('[data-curve="loss"] .u-over').hover(position={"x": 300, "y": 60})
    expect(page.locator('[data-curve="loss"] .values')).to_have_text(re.compile(r"^at step \d+\d"))
    expect(page.locator(FIRST_VALUES)).to_contain_text("mean")


def csv_of(page: Page, name: str) -> list[list[str]]:
    """The file that the button gives."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"CSV of {name}", exact=True).click()
    assert download.value.suggested_filename == f"{name.lower().replace(' ', '-')}.csv"
    return list(csv.reader(Path(download.value.path()).read_text().splitlines()))


def test_values_that_came_at_one_instant_are_all_drawn(opener: Opener) -> None:
    page = opener.open("flushed")
    over_steps = csv_of(page, "loss")
    page.locator("input[name=over][value=time]").check()
    over_time = csv_of(page, "loss")
    assert [row[1] for row in over_time[1:]] == [row[1] for row in over_steps[1:]]
    assert len(over_time) > 100


def test_curves_of_a_sweep_are_named_by_what_was_varied_and_can_be_hidden(opener: Opener) -> None:
    page = opener.open("sweep")
    values = page.locator('[data-curve="loss"] .values')
    expect(values).to_contain_text("learning_rate=")
    for box in page.locator("#curve-picks [data-line]").all()[2:]:
        box.uncheck()
    expect(values.locator(".item")).to_have_text(
        [re.compile(r"^learning_rate=0\.01, batch=1\d"), re.compile("batch=64")]
    )
    page.locator("#curve-picks").get_by_role("button", name="All", exact=True).click()
    expect(values).to_contain_text("greatest")


def test_a_logarithmic_scale_and_smoothing_change_the_picture_and_not_the_file(opener: Opener) -> None:
    page = opener.open("succeeded")
    canvas = page.locator('[data-curve="loss"] canvas')
    rows = csv_of(page, "loss")
    pictures = [canvas.screenshot()]
    page.locator("input[name=scale][value=log]").check()
    pictures.append(canvas.screenshot())
    page.locator("input[name=smoothing]").focus()
    page.keyboard.press("End")
    pictures.append(canvas.screenshot())
    assert len(set(pictures)) == 3
    assert csv_of(page, "loss") == rows
    assert rows[0] == ["step", "loss"]
    assert len(rows) > 20


def test_every_chart_and_map_gives_its_values_as_a_file(opener: Opener) -> None:
    page = opener.open("succeeded")
    charts = page.locator(".chart, .half:has(table)")
    assert page.locator(".csv").count() == charts.count()
    assert csv_of(page, "GPU utilisation")[0] == ["seconds", "dgx001", "dgx002", "rank 0", "rank 1", "rank 2", "rank 3"]
    sweep = opener.open("sweep")
    assert csv_of(sweep, "mean IoU")[0] == ["", "1", "2", "4", "8", "16", "32", "64", "128"]
    points = csv_of(sweep, "Points")
    assert (points[0][:3], len(points)) == (["Run", "learning_rate", "batch"], 41)


def test_pictures_are_shown(opener: Opener) -> None:
    page = opener.open("succeeded")
    sizes = page.evaluate("Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))")
    assert sizes == [192] * 18


def test_it_prints_light_with_every_table_open(opener: Opener) -> None:
    page = opener.open("succeeded", theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open], .on-screen)").count() == 0
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert page.evaluate("document.documentElement.dataset.theme ?? ''") == ""
    paper = page.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") > 3 or len(paper) > 100_000


def test_without_script_the_words_and_tables_are_there(opener: Opener) -> None:
    page = opener.open("succeeded", script=False)
    expect(page.locator("h1")).to_have_text("Reached mean IoU 0.67, goal at least 0.65, in 1m 31s.")
    expect(page.locator("#machine-picks")).to_be_hidden()
    page.locator('[data-chart="gpu-use"] summary').click()
    expect(page.locator('[data-chart="gpu-use"] table')).to_contain_text("dgx002")


def test_copying_gives_the_command(opener: Opener) -> None:
    page = opener.open("failed")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command").first.click()
    expect(page.get_by_role("button", name="Copied the command")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "podwright logs segmentation-7f3k --rank 3"
