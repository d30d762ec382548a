"""What a person sees of a run: a real terminal, eight GPUs of which one lags, a progress bar and a retry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podwright import launch
from podwright.runs import Home
from tests.fixtures.launching import home  # noqa: F401
from tests.fixtures.screen import Open, Scene, open_screen  # noqa: F401


@pytest.fixture
def scene(tmp_path: Path, home: Home) -> Scene:  # noqa: F811
    """A run that is worth looking at."""
    return Scene(tmp_path, home.path)


WHOLE = r"running step \d+/100000 ━+╌+ ETA \S+ \S+ \S+/s loss 0\.\d+"
SLOW = r"gpu 83% mean, straggler 12% \S+ gpu 3 mem 71/80 GiB"
RETRY = re.compile(r"^retry     attempt 2: rank 0 on \S+ exited with 1:\s+RuntimeError: CUDA error", re.MULTILINE)
MARKED = ["gpu", "3", "12%", "71/80", "GiB", "121", "W", "straggler"]


def status_of(text: str) -> str:
    """The status, on as many lines as it has; nothing while there is none."""
    _, head, rest = text.partition("\nrunning ")
    return " ".join("".join([head, rest]).replace("\n", " ", 2).partition("\n")[0].split())


def is_whole(text: str) -> bool:
    """Whether all of it is there at once: a look may fall between two pictures of the live view."""
    status = status_of(text)
    # The bar of the first attempt as it ended, and that of the second in place.
    bars = [line for line in text.splitlines() if line.startswith("train: ")]
    return bool(re.search(WHOLE, status) and re.search(SLOW, status) and RETRY.search(text)) and len(bars) == 2


def marks_the_straggler(text: str) -> bool:
    """Whether one line of the table is marked."""
    return [line.split() for line in text.splitlines() if line.rstrip().endswith("straggler")] == [MARKED]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_a_run_with_a_bar_a_straggler_and_a_retry(
    open_screen: Open,  # noqa: F811
    home: Home,  # noqa: F811
    scene: Scene,
    columns: int,
    rows: int,
) -> None:
    screen = open_screen(columns, rows)
    scene.start(screen, "run")
    screen.until(is_whole, "the status, the retry and both bars")
    screen.until(lambda _: not screen.is_broken(), "a screen without a broken line")
    screen.press("C-c")
    shown = screen.until(lambda text: "podwright attach segmentation-" in text, "how to come back")
    assert "left      the run goes on; to come back:" in shown
    assert "running " not in shown

    screen.press("C-c")
    again = open_screen(columns, rows)
    scene.start(again, "top")
    again.until(marks_the_straggler, "the straggler")
    again.until(lambda _: not again.is_broken(), "a table without a broken line")

    scene.end()
    run = launch.find(launch.Session(home), "last")
    assert run.wait(300).state == "succeeded"
