"""What every page carries: colours that can be read, and a library that is what it says."""

import hashlib
import re
from importlib import resources

import pytest

ASSETS = resources.files("podwright.theme") / "assets"
SHEETS = resources.files("podwright.report") / "assets"
TOKENS = (ASSETS / "tokens.css").read_text("utf-8")
PAIRS = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS)}
READ = ("ink", "ink-soft", "accent", "good", "warn", "bad")
SEEN = ("line-strong", *(f"series-{i}" for i in range(1, 9)))


def brightness(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((brightness(one), brightness(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "paper-sunk"])
@pytest.mark.parametrize("name", READ)
def test_text_can_be_read(name: str, paper: str, mode: int) -> None:
    assert contrast(PAIRS[name][mode], PAIRS[paper][mode]) >= 4.5


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", SEEN)
def test_lines_can_be_seen(name: str, mode: int) -> None:
    assert contrast(PAIRS[name][mode], PAIRS["paper"][mode]) >= 3


def test_every_token_in_use_is_defined() -> None:
    defined = set(re.findall(r"(--[\w-]+):", TOKENS))
    sheets = [path.read_text("utf-8") for path in SHEETS.iterdir() if path.name in ("report.css", "sections.css")]
    own = set(re.findall(r"(--[\w-]+):", "".join(sheets))) | {"--zoom-width", "--zoom-left", "--shade"}
    assert set(re.findall(r"var\((--[\w-]+)", "".join(sheets))) - defined - own == set()


def test_the_charting_library_is_the_one_that_was_published() -> None:
    listed = re.findall(r"^([0-9a-f]{64})  (\S+)$", (ASSETS / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [name for _, name in listed] == ["uPlot.iife.min.js", "uPlot.min.css"]
    for digest, name in listed:
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
