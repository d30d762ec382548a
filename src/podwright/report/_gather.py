"""Reads a run's folder into what its report shows.

A report must come out of any folder, above all of a broken one: what cannot be read is named on the page.
"""

import base64
import json
import math
import time
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from podwright.report._data import Confusion, Event, Example, LogTail, ReportData, TextFile, Track

_TAIL_LINES = 40
_MOST_TAILS = 16
_MOST_EXAMPLES = 12
_MOST_PICTURE_BYTES = 8 * 1024 * 1024
_MOST_FILE_CHARS = 200_000
_SHOWN_FILES = ("spec/workload.yaml", "spec/pod.yaml", "job/order.json")


def gather(folder: Path) -> ReportData:
    """Everything the report of the run in this folder shows, as it is now."""
    unread: list[str] = []
    asked = _json(folder / "run.json", unread)
    events = tuple(sorted(_events(folder), key=_when))
    examples = tuple(_examples(folder, unread))
    return ReportData(
        record=_record(folder, asked, unread),
        asked=asked,
        read_at=time.time(),
        events=events,
        readings=_readings(folder),
        confusion=_confusion(folder, unread),
        iou=_iou(folder, unread),
        examples=examples,
        tails=tuple(_tails(folder, events)),
        files=tuple(_files(folder)),
        unread=tuple(unread),
    )


def _json(path: Path, unread: list[str]) -> dict[str, Any]:
    """An object from a JSON file; {} when it is not there, named in `unread` when it cannot be understood."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        unread.append(f"{path.name}: {error}")
        return {}
    if not isinstance(value, dict):
        unread.append(f"{path.name}: not an object")
        return {}
    return value


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; torn lines, which a kill leaves, are passed over."""
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        for line in file:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def _record(folder: Path, asked: Mapping[str, Any], unread: list[str]) -> dict[str, Any]:
    found = _json(folder / "record.json", unread)
    return found or {**asked, "state": "running" if (folder / "record").is_dir() else "pending", "folder": str(folder)}


def _events(folder: Path) -> Iterator[Event]:
    for path in sorted(folder.glob("record/n*.r*/events.jsonl")):
        yield from (event for event in _lines(path) if isinstance(event.get("t"), int | float))


def _when(event: Event) -> tuple[float, int]:
    return float(event["t"]), int(event.get("q") or 0)


def _readings(folder: Path) -> dict[tuple[int, str], Track]:
    found: dict[tuple[int, str], Track] = {}
    for path in sorted(folder.glob("record/n*.r*/metrics.jsonl")):
        for sample in _lines(path):
            _add_sample(found, sample)
    return {key: _in_order(track) for key, track in found.items()}


def _add_sample(found: dict[tuple[int, str], Track], sample: Mapping[str, Any]) -> None:
    t, node, values = sample.get("t"), sample.get("n"), sample.get("v")
    if not isinstance(t, int | float) or not isinstance(node, int) or not isinstance(values, dict):
        return
    for name, value in values.items():
        if isinstance(value, int | float) and math.isfinite(value):
            track = found.setdefault((node, name), Track())
            track.t.append(t)
            track.v.append(value)


def _in_order(track: Track) -> Track:
    """Tracks of a node that was replaced come from two files whose times may overlap."""
    if all(a <= b for a, b in zip(track.t, track.t[1:], strict=False)):
        return track
    pairs = sorted(zip(track.t, track.v, strict=True))
    return Track(array("d", (t for t, _ in pairs)), array("d", (v for _, v in pairs)))


def _confusion(folder: Path, unread: list[str]) -> Confusion | None:
    found = _json(folder / "results" / "confusion.json", unread)
    if not found:
        return None
    try:
        names = tuple(str(name) for name in found["classes"])
        matrix = tuple(tuple(int(cell) for cell in row) for row in found["matrix"])
        colors = {str(name): str(color) for name, color in dict(found.get("colors") or {}).items()}
    except (KeyError, TypeError, ValueError) as error:
        unread.append(f"confusion.json: {error!r}")
        return None
    if len(matrix) != len(names) or any(len(row) != len(names) for row in matrix):
        unread.append(f"confusion.json: {len(names)} classes do not fit a matrix of {len(matrix)} rows")
        return None
    return Confusion(names, matrix, colors) if names else None


def _iou(folder: Path, unread: list[str]) -> dict[str, float | None]:
    found = _json(folder / "results" / "iou.json", unread)
    return {name: _number(value) for name, value in found.items() if value is None or _number(value) is not None}


def _number(value: object) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None  # type: ignore[arg-type]


def _examples(folder: Path, unread: list[str]) -> Iterator[Example]:
    """The example frames until their pictures weigh more than a page should."""
    listed = _listed_examples(folder / "results", unread)
    left = _MOST_PICTURE_BYTES
    for row in listed[:_MOST_EXAMPLES]:
        pictures = [_picture(folder / "results", row.get(kind)) for kind in ("image", "truth", "prediction")]
        left -= sum(len(picture) for picture in pictures)
        if left < 0:
            unread.append("examples: the other frames are too large for one page; they are in the run's results folder")
            return
        name = str(row.get("name") or row.get("frame") or row.get("file") or "frame")
        yield Example(name, *pictures, _number(row.get("mean_iou")), _number(row.get("pixel_accuracy")))


def _listed_examples(results: Path, unread: list[str]) -> list[dict[str, Any]]:
    path = next((p for p in (results / "examples.json", results / "examples" / "examples.json") if p.exists()), None)
    if path is None:
        return []
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        unread.append(f"examples.json: {error}")
        return []
    rows = found.get("examples") if isinstance(found, dict) else found
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _picture(results: Path, name: object) -> str:
    """A PNG as a data: address; only files within the results folder, since a run writes its own list."""
    path = (results / str(name or "")).resolve()
    if not name or not path.is_relative_to(results.resolve()) or path.suffix.lower() != ".png":
        return ""
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _tails(folder: Path, events: tuple[Event, ...]) -> Iterator[LogTail]:
    """The last lines of every rank; of many ranks those that failed and the lowest."""
    kept: dict[int, deque[tuple[str, str]]] = {}
    nodes: dict[int, int] = {}
    for path in sorted(folder.glob("record/n*.r*/merged.log")):
        for rank, stream, text in _log_lines(path):
            kept.setdefault(rank, deque(maxlen=_TAIL_LINES)).append((stream, text))
            nodes[rank] = int(path.parent.name[1:].partition(".")[0])
    failed = [event.get("rank") for event in events if event.get("k") in ("failed", "hang")]
    for rank in sorted(sorted(kept, key=lambda r: (r not in failed, r))[:_MOST_TAILS]):
        yield LogTail(rank, nodes[rank], tuple(kept[rank]))


def _log_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    try:
        file = path.open("r", encoding="utf-8", errors="replace")
    except OSError:
        return
    with file:
        for line in file:
            parts = line.rstrip("\n").split(" ", 3)
            if len(parts) >= 3 and parts[1].isdigit():
                yield int(parts[1]), parts[2], parts[3] if len(parts) > 3 else ""


def _files(folder: Path) -> Iterator[TextFile]:
    for name in _SHOWN_FILES:
        try:
            text = (folder / name).read_text("utf-8", errors="replace")
        except OSError:
            continue
        yield TextFile(name, text[:_MOST_FILE_CHARS])
