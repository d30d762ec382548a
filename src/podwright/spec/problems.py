"""What is wrong with something a user gave, and where; every refusal in the project is made of these.

Only the standard library is imported here, so that refusing costs no start-up time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and how to mend it.

    Lines and columns count from 1 and are None where there is no such place (a missing file, a command line).
    """

    file: str
    line: int | None
    column: int | None
    field: str
    message: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the form that `--json` prints, with exactly the keys file, line, column, field, message, hint."""
        return asdict(self)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part not in ("", None))
        return ": ".join(part for part in (place, self.field, self.message) if part)


class Refusal(Exception):
    """Podwright will not go on, for reasons that the user can mend; carries all of them at once."""

    def __init__(self, problems: Iterable[Problem], exit_code: int = 2) -> None:
        self.problems = tuple(problems)
        self.exit_code = exit_code
        super().__init__(self.problems, exit_code)

    def as_json(self) -> dict[str, Any]:
        """Return the one JSON document that `--json` prints for a refusal."""
        return {"errors": [problem.as_json() for problem in self.problems]}

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        hints = list(dict.fromkeys(f"hint: {self._hint(problem)}" for problem in self.problems if problem.hint))
        if hints:
            lines += ["", *hints]
        return "\n".join(lines)

    def _hint(self, problem: Problem) -> str:
        """Name the field where several problems make "did you mean" a riddle."""
        hint, name = problem.hint or "", problem.field.rpartition(".")[2]
        if name and len(self.problems) > 1 and hint.startswith("did you mean"):
            return f"{name}: {hint}"
        return hint


def short(text: str) -> str:
    """Return something a user wrote as it can be shown: one line, at most 60 characters, no control characters."""
    if not text.isprintable():
        text = text.encode("unicode_escape", "backslashreplace").decode("ascii")
    if len(text) > 60:
        return text[:57] + "..."
    return text


def refuse(message: str, hint: str | None = None, field: str = "", file: str = "", exit_code: int = 2) -> Refusal:
    """Return a refusal of one problem that has no place in a file; the caller raises it."""
    return Refusal([Problem(file, None, None, field, message, hint)], exit_code)
