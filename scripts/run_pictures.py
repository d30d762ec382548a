"""Makes the pictures that the docs show from real output: trainings, live views, sweeps, selections, suites.

    .venv/bin/python -m scripts.run_pictures [NAME...]

Each is what a command printed or wrote on this machine a moment ago, seen in Chromium at the size that docs show. It
takes a few minutes, since the training is one.
"""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
BIN = Path(sys.executable).parent
CHROMIUM = "/usr/bin/chromium"
FRAMES = "examples/a2d2-small"
WIDTH = 1200
TERMINAL = (100, 16)
"""Columns and lines of the terminal that the live view is seen in."""
SHOWN_RUN = "/runs/detection-004b"
FAILS = """\
name: widths
code: .
command: python3 fails.py {matrix.width} {matrix.lr}
matrix: {width: [16, 32, 64, 128, 256], lr: [0.01, 0.02, 0.05, 0.1, 0.2]}
resources: {cpus: 1, memory: 256MiB}
"""
FAILING = """\
import json, os, signal, sys
width, lr = int(sys.argv[1]), float(sys.argv[2])
print(json.dumps({"podwright": {"loss": 1 / width + lr}}), flush=True)
if width == 256:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
if width * lr == 12.8:
    os.kill(os.getpid(), signal.SIGSEGV)
"""
"""No GPU is here: what PyTorch says of one that is full is said by hand."""
STEP = """\
import json, sys, time
for step in range(5):
    began = time.monotonic()
    time.sleep(0.05)
    read = time.monotonic()
    time.sleep(float(sys.argv[1]))
    spent = {"input_s": read - began, "compute_s": time.monotonic() - read}
    print(json.dumps({"podwright": {"step": step, **spent}}), flush=True)
"""


class Studio:
    """A home of its own for runs, and a browser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        search = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.env = os.environ | {"PODWRIGHT_HOME": str(folder / "home"), "PATH": search}

    def podwright(self, *words: str, fails: bool = False) -> str:
        """Run a command as a user would, and return what it says; one that is meant to fail has to."""
        command = [str(BIN / "podwright"), *words]
        done = subprocess.run(command, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != int(fails):
            raise SystemExit(f"podwright {' '.join(words)} ended with {done.returncode}")
        return done.stdout

    def photograph(self, page: Path, name: str, height: int, at: str = "") -> None:
        """Take a picture of a page, or of the part of it that a selector names."""
        self.photograph_site([page.as_uri()], name, height, at)

    def photograph_site(self, addresses: Sequence[str], name: str, height: int, at: str = "") -> None:
        """Go to addresses, one after the other, and take a picture of the last."""
        from playwright.sync_api import sync_playwright

        with sync_playwright() as play:
            path = CHROMIUM if Path(CHROMIUM).exists() else play.chromium.executable_path
            browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
            seen = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            for address in addresses:
                seen.goto(address)
            seen.wait_for_selector("canvas, svg, pre", state="attached")
            wide = seen.evaluate("document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                raise SystemExit(f"{name}: the page is {wide} pixels wider than the picture")
            if at:
                seen.locator(at).first.screenshot(path=IMAGES / f"{name}.png")
            else:
                seen.screenshot(path=IMAGES / f"{name}.png")
            browser.close()


def report(studio: Studio) -> None:
    """The first screen of the report of the demonstration's training."""
    _train(studio)
    page = Path(studio.podwright("report", "last").split()[0])
    studio.photograph(page, "report", 900)


def console(studio: Studio) -> None:
    """A run in the console, over the home of the demonstration."""
    command = [str(BIN / "python"), "-m", "scripts.console_demo", "--runs", "100", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, env=studio.env, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            link = next(line.split()[1] for line in demo.stdout if line.startswith("open "))
            site = link.partition("/enter")[0]
            studio.photograph_site([link, f"{site}{SHOWN_RUN}"], "console", 1000)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate()


def live(studio: Studio) -> None:
    """The live view of the same training, as a terminal shows it while the run goes on."""
    _train(studio)
    text = (studio.folder / "typescript").read_bytes().decode("utf-8", "replace")
    page = studio.folder / "live.html"
    page.write_text(_as_page(middle_screen(text)))
    studio.photograph(page, "live", 400, at="pre")


def sweep(studio: Studio) -> None:
    """The map of a sweep of a hundred points."""
    studio.podwright("run", "examples/sweep.yaml", "--json")
    page = Path(studio.podwright("report", "last").split()[0])
    studio.photograph(page, "sweep", 760)


def failures(studio: Studio) -> None:
    """The map of a sweep whose points fail of two things: five run out of memory, two are killed."""
    folder = studio.folder / "failures"
    folder.mkdir()
    (folder / "fails.yaml").write_text(FAILS)
    (folder / "fails.py").write_text(FAILING)
    studio.podwright("run", str(folder / "fails.yaml"), "--json", fails=True)
    page = Path(studio.podwright("report", "last").split()[0])
    studio.photograph(page, "failures", 760)


def suite(studio: Studio) -> None:
    """The report of a suite: two workloads that differ in how long they compute, four runs of each."""
    folder = studio.folder / "suite"
    folder.mkdir()
    (folder / "step.py").write_text(STEP)
    for name, seconds in (("base", 0.4), ("slower", 0.6)):
        (folder / f"{name}.yaml").write_text(f"name: {name}\ncode: .\ncommand: python3 step.py {seconds}\n")
    (folder / "suite.yaml").write_text("name: nightly\nworkloads: [base.yaml, slower.yaml]\nrepeats: 5\n")
    studio.podwright("bench", "run", str(folder / "suite.yaml"))
    studio.photograph(studio.folder / "home" / "suites" / "nightly" / "report.html", "suite", 900)


def selection(studio: Studio) -> None:
    """The page of a selection: its splits with their classes, and frames with their labels over them."""
    frames, page = studio.folder / "street", studio.folder / "drive.html"
    _draw(studio, str(frames), frames=96, scenes=8)
    studio.podwright("data", "scan", str(frames), "--name", "street")
    studio.podwright("data", "stats", "street", "--json")
    split = "train=0.5,pool=0.25,validation=0.25"
    studio.podwright("data", "select", "street", "--name", "drive", "--split", split, "--representative")
    studio.podwright("data", "ls", "drive", "--page", str(page))
    studio.photograph(page, "selection", 900)
    studio.photograph(page, "selection-frames", 1400, at="#frames .frames")


def _draw(studio: Studio, folder: str, frames: int, scenes: int) -> None:
    """Make frames in A2D2's layout."""
    sizes = ["--frames", str(frames), "--scenes", str(scenes)]
    command = [str(BIN / "python"), "programs/segmentation/scenes.py", folder, *sizes]
    subprocess.run(command, cwd=ROOT, env=studio.env, check=True)


def _train(studio: Studio) -> None:
    if (studio.folder / "trained").exists():
        return
    _draw(studio, FRAMES, frames=480, scenes=4)
    columns, lines = TERMINAL
    code = _on_terminal(studio, columns, lines, studio.folder / "typescript")
    if code:
        raise SystemExit(f"the training ended with {code}: {studio.folder / 'typescript'}")
    (studio.folder / "trained").touch()


def _on_terminal(studio: Studio, columns: int, lines: int, output: Path) -> int:
    """Run the training on a terminal of this size; keep all that it writes there."""
    import fcntl
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = studio.env | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [str(BIN / "podwright"), "run", "examples/segmentation.yaml"]
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    with output.open("wb") as file, suppress(OSError):  # so a terminal ends
        while data := os.read(leader, 65536):
            file.write(data)
    return child.wait()


def middle_screen(text: str) -> str:
    """Return what stood on the terminal at half of the training, with its colours: the run at work, its values there.

    The view goes up and clears line by line before it draws itself again.
    """
    screens = re.split(r"(?:\r?\x1b\[2K|\x1b\[1A)+\r?", text.replace("\r\n", "\n"))
    bare = [re.sub(r"\x1b\[\?\d+[hl]", "", screen) for screen in screens]
    at_work = [screen for screen in bare if "loss" in screen and "running" in screen]
    if not at_work:
        raise SystemExit("the live view never showed a value while the run was at work")
    return at_work[len(at_work) // 2]


def _as_page(screen: str) -> str:
    """Return a terminal's text and colours as a page."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=TERMINAL[0], file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()))
    form = "<!doctype html><meta charset=utf-8><body style='margin:0;background:#14171a;color:#e6e8ea'>"
    style = "margin:0;padding:20px 24px;display:inline-block;font:15px/1.45 DejaVu Sans Mono,monospace"
    code = console.export_html(inline_styles=True, code_format="{code}")
    return f"{form}<pre style='{style}'>{code}</pre></body>"


PICTURES = {
    "report": report,
    "console": console,
    "live": live,
    "sweep": sweep,
    "selection": selection,
    "failures": failures,
    "suite": suite,
}


def main() -> None:
    """Make the pictures that are named, or all."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        studio = Studio(Path(folder))
        for name in sys.argv[1:] or PICTURES:
            PICTURES[name](studio)
            print(f"docs/images/{name}")


if __name__ == "__main__":
    main()
