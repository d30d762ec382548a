"""What a rule is, what a measure is, and the tables that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from scripts.tree.sizes import comment_lines, docstring_lines, percentile
from scripts.tree.sources import Finding, Source, is_below, length_of, python_in

Sources = Sequence[Source]


def count_subjects(sources: Sources, findings: Sequence[Finding]) -> float:
    """Count findings; those with the same subject (a class name, a cycle) count as one."""
    alone = [finding for finding in findings if not finding.subject]
    return len(alone) + len({finding.subject for finding in findings if finding.subject})


@dataclass(frozen=True)
class Rule:
    """A rule finds places in the tree; it is broken when the value made of them is above the ceiling."""

    name: str
    unit: str
    find: Callable[[Sources], Iterable[Finding]]
    value: Callable[[Sources, Sequence[Finding]], float] = count_subjects
    ceiling: float = 0


@dataclass(frozen=True)
class Result:
    """What a rule finds in a tree, in order of files and lines."""

    rule: Rule
    findings: tuple[Finding, ...]
    value: float

    @property
    def is_broken(self) -> bool:
        """Tell whether the tree does not satisfy the rule."""
        return self.value > self.rule.ceiling

    def problems(self) -> list[str]:
        """List what to fix; of a rule that allows some findings only the value, as none of them is wrong by itself."""
        if self.rule.ceiling == 0:
            return [str(finding) for finding in self.findings]
        value, ceiling = shown(self.value), shown(self.rule.ceiling)
        return [f"{self.rule.name}: {value} {self.rule.unit}, at most {ceiling}"]


def apply(rule: Rule, sources: Sources) -> Result:
    """Apply a rule to the whole tree."""
    findings = tuple(sorted(rule.find(sources)))
    return Result(rule, findings, rule.value(sources, findings))


def narrowed(result: Result, sources: Sources, folder: PurePosixPath) -> Result:
    """Return the part of a result that lies below a folder, with the value that the folder has by itself."""
    findings = tuple(finding for finding in result.findings if is_below(finding.path, [folder]))
    below = [source for source in sources if is_below(source.path, [folder])]
    return Result(result.rule, findings, result.rule.value(below, findings))


def measures(sources: Sources) -> dict[str, float]:
    """Measure what no rule bounds: lengths, and how many of 100 lines of code are comments or docstrings."""
    files = list(python_in(sources, "src"))
    code = sum(source.code_lines for source in files)
    lengths: list[int] = []
    for source in files:
        lengths.extend(length_of(function) for function in source.functions)
    return {
        "physical lines of src": sum(len(source.lines) for source in files),
        "lines of code of src (not blank)": code,
        "comment lines per 100 lines of code": 100 * sum(comment_lines(source) for source in files) / max(code, 1),
        "docstring lines per 100 lines of code": 100 * sum(docstring_lines(source) for source in files) / max(code, 1),
        "function length, median": percentile(lengths, 0.5),
        "function length, 90th percentile": percentile(lengths, 0.9),
    }


def shown(value: float) -> str:
    """Return a number as the tables show it: whole, or with two decimals."""
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def standing(result: Result) -> str:
    """Say in a word how a tree stands to a rule."""
    return "broken" if result.is_broken else "kept"


def rule_table(results: Sequence[Result]) -> list[str]:
    """Lay out a line a rule: its value, its ceiling, how the tree stands to it."""
    lines = [f"{'rule':<19}{'value':>8}{'at most':>9}  {'':<9}unit"]
    for result in results:
        value, ceiling = shown(result.value), shown(result.rule.ceiling)
        state = standing(result)
        lines.append(f"{result.rule.name:<19}{value:>8}{ceiling:>9}  {state:<9}{result.rule.unit}")
    return lines


def measure_table(values: Mapping[str, float]) -> list[str]:
    """Lay out a line a measure."""
    return [f"{name:<38}{shown(value):>8}" for name, value in values.items()]


def folder_table(results: Sequence[Result], sources: Sources, folders: Sequence[PurePosixPath]) -> list[str]:
    """Lay out a line a rule or measure and a column a folder."""
    columns = [_column(results, sources, folder) for folder in folders]
    names = [str(folder).removeprefix("src/podwright/") for folder in folders]
    widths = [max(len(name), 8) + 2 for name in names]
    head = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    lines = [f"{'':<38}{head}"]
    for label in columns[0]:
        cells = [column[label] for column in columns]
        row = "".join(f"{shown(cell):>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{label:<38}{row}")
    return lines


def _column(results: Sequence[Result], sources: Sources, folder: PurePosixPath) -> dict[str, float]:
    per_folder = [narrowed(result, sources, folder) for result in results]
    column = {result.rule.name: result.value for result in per_folder}
    return column | measures([source for source in sources if is_below(source.path, [folder])])
