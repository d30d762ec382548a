"""The sheets of a design on paper: every page names the pod and its rack, and every cable has its label."""

import csv
import io
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from podwright import theme
from podwright.design import Design
from podwright.design.exports.sheets import bundle_sheets, rack_sheets, switch_sheets
from podwright.design.exports.tables import cable_plan
from podwright.design.management_tiers import SITE
from podwright.spec import load_pod
from tests.paths import ROOT

pytestmark = pytest.mark.browser
SHEETS = {"racks": rack_sheets, "switches": switch_sheets, "bundles": bundle_sheets}
LABEL = re.compile(r"\S+:(?:\S| P)+ - \S+:\S+")


@pytest.mark.parametrize("name", SHEETS)
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_every_page_names_the_pod_and_every_cable_has_its_label(
    name: str, paper: str, browser: Browser, tmp_path: Path
) -> None:
    design = Design.of(load_pod(ROOT / "examples" / "superpod-140.yaml"))
    (tmp_path / "sheet.html").write_text(SHEETS[name](design, theme.asset("tokens.css")))
    pages = printed(browser, tmp_path, paper)
    racks = "|".join(rack.name for rack in design.floor.racks)
    where = {
        "racks": rf"superpod-140, rack ({racks})\b",
        "switches": rf"superpod-140, \S+, rack ({racks}), unit \d+",
        "bundles": rf"superpod-140, bundle ({racks})",
    }[name]
    assert [number for number, text in enumerate(pages, 1) if not re.search(where, text)] == []
    shown = Counter(LABEL.findall("\n".join(pages)))
    assert shown == expected(name, cable_plan(design), {switch.name for switch in design.switches})


def printed(browser: Browser, folder: Path, paper: str) -> list[str]:
    """Prints a sheet, and gives the text of each page as a reader of PDF finds it."""
    page = browser.new_page()
    page.goto((folder / "sheet.html").as_uri())
    page.pdf(path=folder / "sheet.pdf", format=paper)
    page.close()
    command = ["pdftotext", "-layout", str(folder / "sheet.pdf"), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return text.removesuffix("\f").split("\f")


def expected(name: str, plan: str, switches: set[str]) -> Counter[str]:
    """How often each label is on the sheets: on those of racks where no switch has it, on those of switches by end."""
    counted: Counter[str] = Counter()
    for row in csv.DictReader(io.StringIO(plan)):
        ends = [row["device_a"], row["device_b"]]
        on_switches = sum(device in switches for device in ends)
        if SITE in ends:  # it ends outside of all racks: only the sheet of its switch has it
            counted[row["label"]] += int(name == "switches")
            continue
        counted[row["label"]] += {"racks": 2 - on_switches, "switches": on_switches, "bundles": 1}[name]
    return +counted
