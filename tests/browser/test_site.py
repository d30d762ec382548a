"""The documentation in a real browser: search, contents, copying and colours, without a network."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scripts import make_site, picture_sources
from tests.browser.conftest import Opener

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("site")
    make_site.write_site(folder)
    return {str(path.relative_to(folder).with_suffix("")): path for path in folder.rglob("*.html")}


@pytest.fixture
def docs(opener: Opener, site: dict[str, Path]) -> Opener:
    opener.pages = opener.pages | site
    return opener


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("width", [390, 820, 1440])
@pytest.mark.parametrize("name", ["index", "concepts", "reference/workload"])
def test_a_page_fits_and_complains_of_nothing(docs: Opener, name: str, width: int) -> None:
    assert overflow(docs.open(name, width)) <= 0


def test_search_finds_a_section_from_any_page(docs: Opener) -> None:
    page = docs.open("reference/workload")
    page.keyboard.press("/")
    page.keyboard.type("side by side sweeps")
    link = page.locator("#found a", has_text="Sweeps").first
    expect(link).to_be_visible()
    link.click()
    expect(page).to_have_url(re.compile(r"concepts\.html#sweeps$"))
    page.locator("#search").fill("zebra quagga")
    expect(page.locator("#found")).to_have_text("Nothing has all of these words.")


def test_a_page_has_its_contents_and_marks_where_one_reads(docs: Opener) -> None:
    page = docs.open("concepts")
    page.locator(".contents a", has_text="Sweeps").click()
    expect(page.locator("#sweeps")).to_be_in_viewport()
    expect(page.locator(".contents a[aria-current]")).to_have_count(1)


def test_a_block_is_coloured_and_its_commands_are_copied_without_prompt_and_output(docs: Opener) -> None:
    page = docs.open("concepts")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator("pre", has_text="podwright run waves.yaml")
    assert block.locator("span").count() > 0
    block.hover()
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "podwright run waves.yaml\npodwright report last\n"


def test_every_picture_of_the_docs_is_shown_and_none_is_blank(docs: Opener, site: dict[str, Path]) -> None:
    shown = set()
    for name, path in site.items():
        if "<img" not in path.read_text():
            continue
        page = docs.open(name)
        for picture in page.locator("main img").all():
            assert picture.evaluate("i => i.decode().then(() => i.naturalWidth)") > 100
            shown.add(Path(str(picture.get_attribute("src"))).name)
            assert colours(picture.screenshot()) > 8, f"{picture.get_attribute('src')} on {name} is blank"
    pictures = {path.name for path in (make_site.DOCS / "images").iterdir()} - {picture_sources.DIGESTS.name}
    assert shown == pictures


def colours(picture: bytes) -> int:
    """How many colours a picture has."""
    import io

    from PIL import Image

    return len(Image.open(io.BytesIO(picture)).convert("RGB").getcolors(1 << 24) or [])
