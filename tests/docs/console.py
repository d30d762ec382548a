"""Reads the commands a page shows, and what it says they print.

A page is Markdown. In a ```console block a line that starts with `$ ` is a command, the lines under it its output.
A comment before a block says what is out of the ordinary:

    <!-- needs: root -->          the block is not run, and why
    <!-- exit: 2 -->              the exit code of the block's last command
    <!-- file: hello.yaml -->     the block is a file that the page's commands use
    <!-- runs in: repository -->  anywhere in a page: its commands run there and not in an empty folder
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NEEDS = {"dataset", "gpu", "hours", "root", "cluster", "terminal", "network"}
_BLOCK = re.compile(
    r"(?:<!-- (?P<key>needs|exit|file): (?P<value>\S+) -->\n+)?```(?P<kind>\w*)\n(?P<body>.*?)^```", re.M | re.S
)
_DURATION = r"(?:\d+[dhm] ?)*\d+(?:\.\d+)? ?[dhms](?![a-z])"
# What differs from run to run -> what any run may print there. Order matters: a run's id holds digits.
_LOOSE = {
    "elided": (r"\.\.\.", r".*?"),
    "run": (r"\b[a-z][a-z0-9-]*-(?=[a-z]*\d)[a-z0-9]{4}\b", r"[a-z][a-z0-9-]*-[a-z0-9]{4}"),
    "duration": (rf"\b{_DURATION}", _DURATION),
    "number": (r"\d[\d.,:T+Z-]*", r"\d[\d.,:T+Z-]*"),
    # A bar is as long as its share of a time, and may be none.
    "space": (r"\s+(?:━+\s+)?", r"\s+(?:━+\s+)?"),
}
_LOOSE_PARTS = re.compile("|".join(f"(?P<{name}>{shown})" for name, (shown, _) in _LOOSE.items()))


@dataclass(frozen=True)
class Step:
    """One command of a page with the output the page shows for it."""

    line: int
    command: str
    output: tuple[str, ...]
    exit_code: int = 0


@dataclass(frozen=True)
class Page:
    """A page's commands in their order, the files they use, and where they run."""

    path: Path
    steps: tuple[Step, ...]
    files: dict[str, str]
    needs: tuple[str, ...]
    in_repository: bool


def read_page(path: Path) -> Page:
    """Reads one page."""
    text = path.read_text(encoding="utf-8")
    steps: list[Step] = []
    files: dict[str, str] = {}
    needs: list[str] = []
    for block in _BLOCK.finditer(text):
        key, value = block["key"], block["value"]
        if key == "file":
            files[value] = block["body"]
        elif key == "needs":
            needs.append(value)
        elif block["kind"] == "console":
            first = text[: block.start("body")].count("\n") + 1
            steps += read_steps(block["body"], first, int(value) if key == "exit" else 0)
    return Page(path, tuple(steps), files, tuple(needs), "<!-- runs in: repository -->" in text)


def read_steps(body: str, first: int, last_exit_code: int) -> list[Step]:
    """Cuts a console block into commands with their output; a line that ends with a backslash goes on in the next."""
    found: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(body.splitlines(), first):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found and found[-1][1].endswith("\\"):
            number, command, output = found.pop()
            found.append((number, command[:-1] + line.strip(), output))
        elif found:
            found[-1][2].append(line)
    codes = [0] * (len(found) - 1) + [last_exit_code]
    return [Step(n, command, tuple(out), code) for (n, command, out), code in zip(found, codes, strict=True)]


def loosen(line: str) -> re.Pattern[str]:
    """Makes the pattern of a shown line: run ids, times and numbers may differ, and `...` stands for anything."""
    text = line.strip()
    pattern, end = "", 0
    for part in _LOOSE_PARTS.finditer(text):
        pattern += re.escape(text[end : part.start()]) + _LOOSE[str(part.lastgroup)][1]
        end = part.end()
    return re.compile(pattern + re.escape(text[end:]))


def mismatch(shown: tuple[str, ...], printed: list[str]) -> str | None:
    """Says which shown line was not printed in its place, or gives None; a line `...` skips any number of lines."""
    position, skipping = 0, False
    for line in shown:
        if line.strip() == "...":
            skipping = True
            continue
        pattern = loosen(line)
        while position < len(printed) and not pattern.fullmatch(printed[position].strip()) and skipping:
            position += 1
        if position >= len(printed) or not pattern.fullmatch(printed[position].strip()):
            return f"shown, but not printed there: {line!r}"
        position, skipping = position + 1, False
    if position < len(printed) and not skipping:
        return f"printed, but not shown: {printed[position]!r}"
    return None
