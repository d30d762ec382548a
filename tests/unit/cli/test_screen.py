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


def status_of(text: str) -> str:
    """The status, on as many lines as it has; nothing while there is none."""
    _, head, rest = text.partition("\nrunning ")
    return " ".join("".join([head, rest]).replace("\n", " ", 2).partition("\n")[0].split())


def is_whole(text: str) -> bool:
    """Whether the second attempt has told of its steps too: what was told before may still be on the screen."""
    return "attempt 2" in text and "straggler" in text and re.search(WHOLE, status_of(text)) is not None


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
    shown = screen.until(is_whole, "the status")
    assert not screen.is_broken(), shown
    status = status_of(shown)
    assert re.search(r"gpu 83% mean, straggler 12% \S+ gpu 3 mem 71/80 GiB", status)
    assert re.search(r"^retry     attempt 2: rank 0 on \S+ exited with 1:\s+RuntimeError: ", shown, re.MULTILINE)
    assert "RuntimeError: CUDA error" in shown
    bars = [line for line in shown.splitlines() if line.startswith("train: ")]
    assert len(bars) == 2, "the bar of the first attempt as it ended, and that of the second in place"
    screen.press("C-c")
    shown = screen.until(lambda text: "podwright attach segmentation-" in text, "how to come back")
    assert "left      the run goes on; to come back:" in shown
    assert "running " not in shown

    screen.press("C-c")
    again = open_screen(columns, rows)
    scene.start(again, "top")
    shown = again.until(lambda text: "straggler" in text, "the straggler")
    assert not again.is_broken(), shown
    [marked] = [line.split() for line in again.lines() if line.endswith("straggler")]
    assert marked == ["gpu", "3", "12%", "71/80", "GiB", "121", "W", "straggler"]

    scene.end()
    run = launch.find(launch.Session(home), "last")
    assert run.wait(120).state == "succeeded"
