"""YAML as plain values with the place of each one.

The file is read as a stream of events, so that depth and size are bounded before anything is built. Anchors, aliases,
merge keys and tags are refused: none of these files needs them, and a few lines of them can fill a machine's memory.
Plain scalars follow YAML 1.1, which people's editors expect, save for its traps (`010`, `1:30`): these stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.resolver import Resolver

from podwright.spec.placeholders import written
from podwright.spec.problems import Problem, Refusal, short
from podwright.spec.syntax import syntax_problems

Path = tuple[str | int, ...]

DEEPEST = 32
MAX_VALUES = 50_000
MAX_PROBLEMS = 50

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = Resolver()
_NOT_USED = "is not used in these files"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_TRUE = frozenset(("yes", "true", "on"))


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a value stands, where its key stands, and how it is written if it is a plain scalar."""

    file: str
    line: int | None
    column: int | None
    key_line: int | None
    key_column: int | None
    text: str | None = None


@dataclass(slots=True)
class Document:
    """A file's values, their places, and what was wrong with the YAML itself without hiding the rest."""

    file: str
    value: Any = None
    places: dict[Path, SourcePlace] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)


def parse(text: str, file: str) -> Document:
    """Read one YAML document; what cannot be read at all is refused at once."""
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        raise Refusal([*builder.document.problems, *syntax_problems(error, text, file)]) from None
    except RecursionError:
        raise Refusal([Problem(file, None, None, "", f"is nested deeper than {DEEPEST} levels")]) from None
    return builder.document


def field_name(path: Path) -> str:
    """Write a path as users do: `nodes[0].hosts`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif text:
            text += f".{short(part)}"
        else:
            text = short(part)
    return text


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is still open; without a path it is read but not kept."""

    path: Path | None
    value: Any
    is_key: bool = False
    key: str | None = None
    key_mark: Any = None
    wants_key: bool = True

    def next_path(self) -> Path | None:
        if self.path is None:
            return None
        if isinstance(self.value, list):
            return (*self.path, len(self.value))
        if self.key is None:
            return None
        return (*self.path, self.key)

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
            return
        if self.key is not None:
            self.value[self.key] = value
        self.wants_key = True

    def takes_key(self) -> bool:
        return isinstance(self.value, dict) and self.wants_key


class _Builder:
    """Turns events into values, one at a time; holds no more than the limits above."""

    def __init__(self, file: str) -> None:
        self.document = Document(file)
        self._stack: list[_Frame] = []
        self._count = 0
        self._documents = 0
        self._said: set[str] = set()

    def take(self, event: Any) -> None:
        """Take the next event of the stream."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._start_document(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, (yaml.NodeEvent,)):
            self._bound(event)
            self._node(event)

    def _start_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            message, hint = "a second document begins here", "put one pod or workload in a file; take out the `---`"
            self._fail(event, message, hint)

    def _bound(self, event: Any) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            self._fail(event, f"the file holds more than {MAX_VALUES:,} values", "is this the right file?")
        if len(self._stack) >= DEEPEST:
            self._fail(event, f"is nested deeper than {DEEPEST} levels", "is this the right file?")
        if len(self.document.problems) >= MAX_PROBLEMS:
            self._fail(event, "too many problems to go on", "fix these first")

    def _node(self, event: Any) -> None:
        frame: _Frame | None = None
        path: Path | None = ()
        if self._stack:
            frame = self._stack[-1]
            if frame.takes_key():
                self._key(frame, event)
                return
            path = frame.next_path()
        self._keep_place(path, frame, event)
        self._refuse_extras(path, event)
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._stack.append(_Frame(path, _empty(event)))
        elif isinstance(event, yaml.AliasEvent):
            self._add(None)
        else:
            self._add(_scalar(event))

    def _key(self, frame: _Frame, event: Any) -> None:
        frame.key, frame.key_mark, frame.wants_key = None, event.start_mark, False
        if not isinstance(event, yaml.ScalarEvent):
            self._say(event, "a key must be plain text", "write `key: value`")
            if isinstance(event, yaml.AliasEvent):
                return
            # The key is read to its end, so that what follows it is understood, and is not kept.
            frame.wants_key = True
            self._stack.append(_Frame(None, _empty(event), is_key=True))
        elif event.value == "<<" and not event.style:
            self._say(event, f"a merge key {_NOT_USED}", "write the fields out")
        elif event.value in frame.value and frame.path is not None:
            first = self.document.places[(*frame.path, event.value)].key_line
            name = field_name((*frame.path, event.value))
            self._say(event, f"is given twice, first on line {first}", "keep one of the two", name)
        else:
            self._refuse_extras(None, event)
            frame.key = event.value

    def _close(self) -> None:
        frame = self._stack.pop()
        if frame.is_key:
            self._stack[-1].wants_key = False
        else:
            self._add(frame.value)

    def _add(self, value: Any) -> None:
        if self._stack:
            self._stack[-1].add(value)
        elif self._documents == 1:
            self.document.value = value

    def _keep_place(self, path: Path | None, frame: _Frame | None, event: Any) -> None:
        if path is None:
            return
        mark = event.start_mark
        key_line = key_column = text = None
        if frame and isinstance(frame.value, dict) and frame.key_mark:
            key_line, key_column = frame.key_mark.line + 1, frame.key_mark.column + 1
        if isinstance(event, yaml.ScalarEvent) and not event.style:
            text = event.value
        place = SourcePlace(self.document.file, mark.line + 1, mark.column + 1, key_line, key_column, text)
        self.document.places[path] = place

    def _refuse_extras(self, path: Path | None, event: Any) -> None:
        what, hint = _extra(event)
        if not what:
            return
        if path is not None:
            self.document.broken.add(path)
        # An alias is often used many times; naming it once is enough.
        if what not in self._said or not isinstance(event, yaml.AliasEvent):
            self._say(event, f"{what} {_NOT_USED}", hint, field_name(path or ()))
        self._said.add(what)

    def _say(self, event: Any, message: str, hint: str, name: str = "") -> None:
        mark = event.start_mark
        problem = Problem(self.document.file, mark.line + 1, mark.column + 1, name, message, hint)
        self.document.problems.append(problem)

    def _fail(self, event: Any, message: str, hint: str) -> None:
        self._say(event, message, hint)
        raise Refusal(self.document.problems)


def _empty(event: Any) -> dict[str, Any] | list[Any]:
    """Return the value that a mapping or a list begins as."""
    if isinstance(event, yaml.MappingStartEvent):
        return {}
    return []


def _extra(event: Any) -> tuple[str, str]:
    """Name what a value carries beside itself, and how to do without."""
    if isinstance(event, yaml.AliasEvent):
        return f"an alias (`*{short(event.anchor or '')}`)", "write the value out"
    if event.anchor is not None:
        return f"an anchor (`&{short(event.anchor)}`)", "write the value out"
    if event.tag is not None:
        return f"a tag (`{short(event.tag.replace('tag:yaml.org,2002:', '!!'))}`)", "take it out"
    return "", ""


def trap_hint(text: str) -> str | None:
    """Say what YAML 1.1 makes of a plain scalar, where that surprises people."""
    lowered = text.lower()
    if lowered in ("yes", "no", "on", "off"):
        return f'YAML reads `{text}` as {written(lowered in _TRUE)}; for the word write "{text}"'
    if _OCTAL.fullmatch(text):
        plain = text.replace("_", "")
        return f"YAML may read `{text}` as octal {int(plain, 8)}; write `{int(plain, 8)}` or `{int(plain)}`"
    if re.fullmatch(r"[-+]?\d[\d_]*(:[0-5]?\d)+(\.\d*)?", text, re.ASCII):
        return f"YAML may read `{text}` as a number in base 60; write a time as `1h30m` or `1m30s`"
    if re.fullmatch(r"[-+]?(\d+|\d*\.\d+|\d+\.)[eE][-+]?\d+", text, re.ASCII):
        mantissa, exponent = re.split("[eE]", text)
        # YAML 1.1 takes it for a number only with a point and a signed exponent.
        if "." not in mantissa:
            mantissa += ".0"
        if exponent[0] not in "+-":
            exponent = f"+{exponent}"
        return f"YAML reads `{text}` as text; write `{mantissa}e{exponent}`"
    return None


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value below and including this one."""
    yield path, value
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from walk(child, (*path, key))


def _scalar(event: Any) -> Any:
    if event.style or event.tag is not None:
        return event.value
    tag = str(_RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))).removeprefix("tag:yaml.org,2002:")
    text = event.value.replace("_", "")
    if tag == "null":
        return None
    if tag == "bool":
        return event.value.lower() in _TRUE
    if tag == "int" and ":" not in text and not _OCTAL.fullmatch(text):
        return _integer(text, event.value)
    if tag == "float" and ":" not in text:
        return _real(text)
    return event.value


def _integer(text: str, as_written: str) -> int | str:
    # A number of a thousand digits is not meant as one, and Python refuses to read it.
    if len(text) > 40:
        return as_written
    return int(text, 0)


def _real(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
