"""Changes lines that matter, one at a time in a copy of the tree, and says which of the changes the tests notice.

    python -m scripts.mutants [--only TEXT] [--workers N] [--out FILE]   the chosen lines of scripts/mutants.toml
    python -m scripts.mutants --random N --seed S [...]                  lines drawn at random from src, besides

It ends with 1 where a chosen line's change survives, and with 2 where a line is no longer there: then its entry must
follow it. Random ones are a figure without a goal.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.random_mutants import draw

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "mutants.toml"
PAGE = ROOT / "benchmarks" / "results" / "mutants.md"
PATIENCE_S = 300.0
"""A mutant whose tests take longer hangs, and counts as killed."""
UNSOUND = "its tests fail without it"
HEAD = """\
# What the tests notice

Each line below is changed in a copy of the tree, one at a time; the tests that are named for it ought to fail.

| what is broken | line of | first pass | now |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Mutant:
    """A change to one file, and the tests that ought to notice it."""

    name: str
    path: str
    line: str
    becomes: str
    tests: tuple[str, ...]
    first: str = ""

    def applied(self, text: str) -> str:
        """Return the file's text with the change; raise LookupError where the line does not stand there just once."""
        times = text.count(self.line)
        if times != 1:
            found = "is no longer there" if not times else f"stands there {times} times"
            raise LookupError(f"{self.path}: {self.name}: this line {found}: {self.line.splitlines()[0]}")
        return text.replace(self.line, self.becomes)


@dataclass(frozen=True)
class Verdict:
    """How a mutant ended."""

    mutant: Mutant
    outcome: str
    took_s: float


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Return the chosen mutants."""
    rows = tomllib.loads(path.read_text())["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def lost(mutants: Sequence[Mutant], root: Path = ROOT) -> list[str]:
    """Return a sentence for each mutant whose line, or one of whose tests, is no longer where its entry says."""
    problems = []
    for mutant in mutants:
        path = root / mutant.path
        problems += [f"{mutant.name}: there is no {test}" for test in mutant.tests if not _is_there(root, test)]
        try:
            mutant.applied(path.read_text() if path.is_file() else "")
        except LookupError as error:
            problems.append(str(error))
    return problems


def _is_there(root: Path, test: str) -> bool:
    """Return whether there is a folder, a file, or a function of a file."""
    file, _, function = test.partition("::")
    path = root / file
    return path.exists() and (not function or f"def {function}(" in path.read_text())


class Copy:
    """A copy of the tree in which one file at a time is another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = time.time_ns()
        self._sound: dict[tuple[str, ...], bool] = {}
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(source):
                shutil.copy2(source, target, follow_symlinks=False)
        (folder / ".venv").symlink_to(sys.prefix)

    def is_sound(self, tests: tuple[str, ...]) -> bool:
        """Return whether these tests pass in the tree as it is; they are asked once."""
        if tests not in self._sound:
            self._sound[tests] = self.passes(tests)
        return self._sound[tests]

    def passes(self, tests: Sequence[str]) -> bool:
        """Return whether these tests pass as the copy is now; those that do not end do not pass."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        env = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "PYTHONPYCACHEPREFIX": str(self.folder / ".pyc")}
        # A cache of its own: what a mutant leaves in one must be nobody's, not even the next mutant's.
        with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory() as cache:
            env["XDG_CACHE_HOME"] = cache
            process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=said, stderr=said, start_new_session=True
            )
            try:
                return process.wait(PATIENCE_S) == 0
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return False

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Have the mutant's file changed within the block."""
        path = self.folder / mutant.path
        before = path.read_text()
        try:
            self._write(path, mutant.applied(before))
            yield
        finally:
            self._write(path, before)

    def _write(self, path: Path, text: str) -> None:
        """Write a file as of another second than ever before: Python compares whole seconds with its bytecode."""
        path.write_text(text)
        self._clock += 2_000_000_000
        os.utime(path, ns=(self._clock, self._clock))


def judge(mutants: Sequence[Mutant], workers: int) -> Iterator[Verdict]:
    """Yield how each mutant ended, in their order, in so many copies at once; the tests must pass without it."""
    with tempfile.TemporaryDirectory(prefix="podwright-mutants-") as place, ThreadPoolExecutor(workers) as pool:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(workers):
            folder = Path(place, str(number))
            folder.mkdir()
            copies.put(Copy(folder))

        def run(mutant: Mutant) -> Verdict:
            copy, began = copies.get(), time.monotonic()
            try:
                with copy.changed(mutant):
                    survived = copy.passes(mutant.tests)
                outcome = "survived"
                if not survived:
                    outcome = "killed" if copy.is_sound(mutant.tests) else UNSOUND
                return Verdict(mutant, outcome, time.monotonic() - began)
            finally:
                copies.put(copy)

        for verdict in pool.map(run, mutants):
            print(f"{verdict.outcome:<9} {verdict.took_s:5.1f} s  {verdict.mutant.name}", flush=True)
            yield verdict


def page(chosen: Sequence[Verdict], drawn: Sequence[Verdict], seed: int, day: str) -> str:
    """Return the Markdown page of what was noticed."""
    lines = []
    for verdict in chosen:
        mutant = verdict.mutant
        lines.append(f"| {mutant.name} | `{mutant.path}` | {mutant.first or 'killed'} | {verdict.outcome} |\n")
    first = sum(verdict.mutant.first == "survived" for verdict in chosen)
    now = sum(verdict.outcome != "killed" for verdict in chosen)
    text = HEAD + "".join(lines)
    text += f"\nOf {len(chosen)} lines {first} survived the first pass, before any test was mended; now {now} do.\n"
    sound = [verdict for verdict in drawn if verdict.outcome != UNSOUND]
    if sound:
        killed = sum(verdict.outcome == "killed" for verdict in sound)
        text += f"\n## At random\n\n{len(sound)} changes drawn with seed {seed} from src: {killed} were noticed "
        text += f"({killed / len(sound):.0%}) by the unit tests that name their module, or else by their folder's.\n"
    return f"{text}\n{day}, `python -m scripts.mutants`.\n"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Say which changes of lines that matter the tests notice.")
    parser.add_argument("--only", metavar="TEXT", default="", help="those whose name or path has this in it")
    parser.add_argument("--random", metavar="N", type=int, default=0, help="also draw so many lines of src")
    parser.add_argument("--seed", metavar="S", type=int, default=1)
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="copies at once")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page here")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Judge the chosen mutants, and random ones where some are asked for."""
    options = parse(arguments)
    mutants = [mutant for mutant in read_mutants() if options.only in mutant.name + mutant.path]
    problems = lost(mutants)
    if problems:
        print(*problems, f"mend the entries in {LIST.relative_to(ROOT)}", sep="\n", file=sys.stderr)
        return 2
    chosen = list(judge(mutants, options.workers))
    at_random = [Mutant(*row) for row in draw(ROOT, options.random, options.seed)]
    drawn = list(judge(at_random, options.workers)) if at_random else []
    if options.out:
        options.out.write_text(page(chosen, drawn, options.seed, datetime.now(UTC).date().isoformat()))
    survivors = [verdict for verdict in chosen if verdict.outcome != "killed"]
    print(f"{len(chosen)} chosen: {len(survivors)} survived; {len(drawn)} at random: "
          f"{sum(verdict.outcome == 'survived' for verdict in drawn)} survived")  # fmt: skip
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
