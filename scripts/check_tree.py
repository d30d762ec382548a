"""Holds the tree to its rules that no other tool checks, and prints how far it is from each.

    python scripts/check_tree.py                       every broken rule's findings, then the table of all
    python scripts/check_tree.py --list RULE [PATH...] every finding of a rule, below these paths
    python scripts/check_tree.py --measure PATH...     the values of each folder by itself

Each rule is a pure function of scripts/tree; `git ls-files` says which files there are.
"""

from __future__ import annotations

import argparse
import gc
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

# Started by its path, as the Makefile does, Python would look beside this file only.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.tree import density, docstrings, doors, imports, sizes, suite, texts, twins
from scripts.tree.rules import Result, Rule, apply, folder_table, measure_table, measures, rule_table
from scripts.tree.sources import Finding, Source, is_below

ROOT = Path(__file__).resolve().parent.parent

# Class names that src may define more than once, each with the reason why all of them are the same idea.
SAME_IDEA = {"Bringup": "what a pod's file says of it, and the door that does what the file says"}


def class_names(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find public class names defined more than once and not listed here as the same idea."""
    return twins.class_names(sources, SAME_IDEA)


def pilot_size(sources: Sequence[Source]) -> Iterator[Finding]:
    """Weigh the sources in the pilot's zip, which travels to every node of every run."""
    # Imported here: the other rules can be listed while the package cannot be imported.
    from podwright.engines.payload import pilot_zip

    size_bytes = len(pilot_zip(compiled=False))
    if size_bytes > sizes.MAX_PILOT_BYTES:
        text = f"its zip has {size_bytes} bytes, at most {sizes.MAX_PILOT_BYTES}"
        yield Finding(PurePosixPath("src/podwright/pilot"), 1, text)


RULES = (
    Rule("file-bytes", "files over 1,000,000 bytes", texts.large_files),
    Rule("words", "unfinished words, registries, empty file names", texts.unfinished_words),
    Rule("file-lines", f"files over {sizes.MAX_FILE_LINES} lines", sizes.long_files),
    Rule("function-lines", f"functions over {sizes.MAX_FUNCTION_LINES} lines", sizes.long_functions),
    Rule("class-lines", f"classes over {sizes.MAX_CLASS_LINES} lines", sizes.long_classes),
    Rule("pilot-size", f"zips of the pilot over {sizes.MAX_PILOT_BYTES:,} bytes", pilot_size),
    Rule("twin-functions", "functions written twice or more", twins.twin_functions),
    Rule("class-names", "public class names defined twice or more", class_names),
    Rule("ternaries", "ternaries per 100 lines of code", density.ternaries, density.per_100_lines, 1.9),
    Rule("comprehensions", "comprehensions nested or with two `for`", density.dense_comprehensions),
    Rule("docstrings", "public names without one in engines, runs, clients", docstrings.missing_docstrings),
    Rule("docstring-form", "docstrings of functions that begin without a verb", docstrings.docstring_forms),
    Rule("cycles", "import cycles, lazy and type-only imports too", imports.import_cycles),
    Rule("cli-imports", "slow imports at the top of the CLI", doors.cli_top_imports),
    Rule("cli-engines", "imports of engines.<name> in the CLI", imports.cli_engine_imports),
    Rule("lazy-imports", "imports inside functions of the CLI", doors.lazy_imports, ceiling=110),
    Rule("cli-doors", "imports of the CLI past the front door of a band", doors.cli_doors),
    Rule("door-names", "names asked of a door that has none of them", doors.door_names),
    Rule("command-effects", "commands that start threads, processes, servers", doors.command_effects),
    Rule("parameters", f"functions of over {doors.MAX_PARAMETERS} parameters", doors.many_parameters),
    Rule("engine-imports", "imports of one engine by another", imports.engine_imports),
    Rule("asserts", "tests that assert nothing", suite.tests_without_asserts),
    Rule("patches", "patches per 100 tests", suite.patches, suite.per_100_tests, 2),
)


def tracked_files() -> list[PurePosixPath]:
    """List what git tracks or would add, less what was deleted and not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [PurePosixPath(name) for name in names if (ROOT / name).is_file()]


def read(path: PurePosixPath) -> Source:
    """Read a file; a binary or large one has no text."""
    size_bytes = (ROOT / path).stat().st_size
    if size_bytes > texts.MAX_FILE_BYTES:
        return Source(path, "", size_bytes)
    try:
        return Source(path, (ROOT / path).read_text(encoding="utf-8"), size_bytes)
    except UnicodeDecodeError:
        return Source(path, "", size_bytes)


def relative(name: str) -> PurePosixPath:
    """Return a path given on the command line as seen from the repository's root."""
    return PurePosixPath(Path(name).resolve().relative_to(ROOT).as_posix())


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Hold the tree to its rules.")
    parser.add_argument("--list", metavar="RULE", choices=[rule.name for rule in RULES], help="print its findings")
    parser.add_argument("--measure", action="store_true", help="print the values of each folder by itself")
    parser.add_argument("paths", nargs="*", type=relative, metavar="PATH")
    return parser.parse_args(arguments)


def print_findings(result: Result, folders: Sequence[PurePosixPath]) -> None:
    """Print every finding of a rule below the folders, or all of them where none is given."""
    findings = [finding for finding in result.findings if not folders or is_below(finding.path, folders)]
    for finding in findings:
        print(finding)
    print(f"{result.rule.name}: {len(findings)} places", file=sys.stderr)


def print_all(results: Sequence[Result], sources: Sequence[Source]) -> int:
    """Print what is broken, then the tables; return 1 when there is any."""
    broken = [result for result in results if result.is_broken]
    for result in broken:
        print(*result.problems(), sep="\n")
    print(*rule_table(results), sep="\n")
    print(*measure_table(measures(sources)), sizes.code_lines_shown(sources), sep="\n")
    names = ", ".join(result.rule.name for result in broken)
    print(f"tree: broken: {names}" if broken else "tree: in order")
    return 1 if broken else 0


def main(arguments: Sequence[str]) -> int:
    """Check the tree, or show a part of what was found."""
    options = parse(arguments)
    sources = [read(path) for path in tracked_files()]
    if options.list:
        rule = next(rule for rule in RULES if rule.name == options.list)
        print_findings(apply(rule, sources), options.paths)
        return 0
    results = [apply(rule, sources) for rule in RULES]
    if options.measure:
        print(*folder_table(results, sources, options.paths or [PurePosixPath("src/podwright")]), sep="\n")
        return 0
    return print_all(results, sources)


if __name__ == "__main__":
    # Ends quietly where its reader does: `--list ternaries | head`.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # Syntax trees live to the end: looking for garbage among their 360,000 nodes takes a quarter of the time.
    gc.disable()
    sys.exit(main(sys.argv[1:]))
