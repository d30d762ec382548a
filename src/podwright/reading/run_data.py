"""Reads a run's folder into what its report shows.

A report must come out of any folder, above all of a broken one: what cannot be read is named on the page.
"""

import base64
import json
import re
import tarfile
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from podwright.analysis.data import Confusion, Example, LastLines, ReportData, TextFile, Track, in_order
from podwright.analysis.profile import StepsProfile, profile_of
from podwright.analysis.reported import Told, summed_up
from podwright.analysis.statistics import as_number
from podwright.analysis.straggler import RankWatch, Straggler
from podwright.files.untrusted import UNTRUSTED_BYTES, open_untrusted, read_untrusted
from podwright.reading.event_folder import beside, guessed_names, values_of_event_files
from podwright.runs import Asked, Fold, Record, RunFolder
from podwright.runs.events import Event, RankFailed, RankHung, ResultTold
from podwright.runs.goodput import GoodputLedger
from podwright.runs.labels import RunLabels, labels_of
from podwright.runs.record import from_row
from podwright.runs.series import of_events
from podwright.runs.training_clock import RUN_START
from podwright.spec.problems import Refusal

_TAIL_LINES = 40
_MAX_TAILS = 16
_MAX_EXAMPLES = 12
_MAX_PICTURE_BYTES = 8 * 1024 * 1024
_MAX_FILE_CHARS = 200_000
_MAX_RECORD_BYTES = 256 * 1024 * 1024
_SHOWN_FILES = ("spec/workload.yaml", "spec/pod.yaml", "job/order.json")


def gather(folder: Path, now: float | None = None) -> ReportData:
    """Return everything the report of the run in this folder shows, as it is now."""
    unread: list[str] = []
    run = RunFolder(folder)
    asked = _asked(run, unread)
    if now is None:
        now = time.time()
    ledger, watch = GoodputLedger(asked.created_at, asked.allocated_nodes, asked.gpus, asked.spares), RankWatch()
    events = in_order(_heard(run, ledger, watch))
    record = _record(run, asked, now, unread)
    return ReportData(
        record=record,
        asked=asked,
        read_at=now,
        events=events,
        readings=_readings(run, unread),
        told=_told(run, unread),
        confusion=read_confusion(folder, unread),
        iou=_iou(folder, unread),
        examples=tuple(_examples(folder, unread)),
        profile=_profile(folder, unread),
        goodput=ledger.goodput(record.ended_at or record.silent_since or now, record.state),
        straggler=_straggler(run, watch),
        tails=tuple(_tails(run, events)),
        files=tuple(_files(folder)),
        workload_in_code=_workload_in_code(folder),
        unread=tuple(unread),
    )


def _heard(run: RunFolder, ledger: GoodputLedger, watch: RankWatch) -> Iterator[Event]:
    """Yield the events that a page shows; what sums them up takes all."""
    for event in run.events():
        ledger.take(event)
        watch.take(event)
        if not _is_in_series(event):
            yield event


def _straggler(run: RunFolder, watch: RankWatch) -> Straggler | None:
    try:
        return watch.straggler(run.samples)
    except (OSError, ValueError):  # named where the readings are
        return None


def _is_in_series(event: Event) -> bool:
    """Return whether an event says no more than the series does: of results only the clock's start is an event too."""
    return isinstance(event, ResultTold) and event.mllog != RUN_START


def _told(run: RunFolder, unread: list[str]) -> Told:
    """Return what the ranks told, and what event files of TensorBoard say beside it.

    Of a series that is damaged the last values of each second count, which events hold.
    """
    try:
        of_ranks = summed_up(run.series())
    except (OSError, ValueError) as error:
        unread.append(f"series: {_reason(error)}")
        of_ranks = summed_up(of_events(run.events()))
    return beside(of_ranks, guessed_names(run), summed_up(values_of_event_files(run.path, unread)))


def _asked(run: RunFolder, unread: list[str]) -> Asked:
    """Return what was asked of the run; of one whose file cannot be read nothing but its name."""
    try:
        return run.asked
    except Refusal as refusal:
        unread.append(f"run.json: {refusal.problems[0].message.removeprefix(f'{run.path}/run.json ')}")
        return Asked(run.id, run.id, "local", "", 0.0, 0, 0, {})


def _record(run: RunFolder, asked: Asked, now: float, unread: list[str]) -> Record:
    """Return the sealed record, else what the events add up to; while its target is silent, that is the reason."""
    sealed = _json(run.path, "record.json", unread, _MAX_RECORD_BYTES)
    try:
        if sealed:
            record = from_row(sealed)
            labels = labels_of(run.client_events(), RunLabels(record.tags, record.note))
            return replace(record, tags=labels.tags, note=labels.note)
    except ValueError as error:
        unread.append(f"record.json: {error}")
    fold = Fold(asked, str(run.path))
    fold.take(run.events())
    record = fold.record(now)
    return replace(record, reason=record.silence or record.reason)


def _readings(run: RunFolder, unread: list[str]) -> dict[tuple[int, str], Track]:
    tracks: dict[tuple[int, str], Track] = defaultdict(Track)
    try:
        for sample in run.samples():
            for name, value in sample.values.items():
                track = tracks[sample.node, name]
                track.t.append(sample.time)
                track.v.append(value)
    except (OSError, ValueError) as error:
        unread.append(f"metrics: {_reason(error)}")
    return {key: _in_order(track) for key, track in tracks.items()}


def _json(folder: Path, name: str, unread: list[str], limit_bytes: int = UNTRUSTED_BYTES) -> dict[str, Any]:
    """Read an object from a JSON file; {} when it is not there, named in `unread` when it cannot be understood."""
    shown = Path(name).name
    try:
        value = json.loads(read_untrusted(folder, name, limit_bytes).decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        unread.append(f"{shown}: {_reason(error)}")
        return {}
    if not isinstance(value, dict):
        unread.append(f"{shown}: not an object")
        return {}
    return value


def _reason(error: Exception) -> str:
    """Return why a file was not read; the file itself is named beside it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def _in_order(track: Track) -> Track:
    """Sort a track by time: those of a node that was replaced come from two files whose times may overlap."""
    if all(a <= b for a, b in zip(track.t, track.t[1:], strict=False)):
        return track
    pairs = sorted(zip(track.t, track.v, strict=True))
    return Track(array("d", (t for t, _ in pairs)), array("d", (v for _, v in pairs)))


def read_confusion(folder: Path, unread: list[str]) -> Confusion | None:
    """Read what a run's model took for what; what is wrong with the file is added to `unread`."""
    document = _json(folder, "results/confusion.json", unread)
    if not document:
        return None
    try:
        names = tuple(str(name) for name in document["classes"])
        matrix = tuple(tuple(map(int, row)) for row in document["matrix"])
        colors = {str(name): _color(color) for name, color in dict(document.get("colors") or {}).items()}
    except (KeyError, TypeError, ValueError) as error:
        unread.append(f"confusion.json: {error!r}")
        return None
    if len(matrix) != len(names) or any(len(row) != len(names) for row in matrix):
        unread.append(f"confusion.json: {len(names)} classes do not fit a matrix of {len(matrix)} rows")
        return None
    if not names:
        return None
    return Confusion(names, matrix, colors)


def _color(value: object) -> str:
    """Return a colour as `#rrggbb`, empty for anything else: it goes into a style, where only a colour may stand."""
    if isinstance(value, list) and len(value) == 3 and all(isinstance(part, int) and 0 <= part < 256 for part in value):
        return "#{:02x}{:02x}{:02x}".format(*value)
    if isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{6}", value):
        return value
    return ""


def _profile(folder: Path, unread: list[str]) -> StepsProfile | None:
    document = _json(folder, "results/profile.json", unread)
    if not document:
        return None
    try:
        return profile_of(document)
    except (ValueError, TypeError, OverflowError) as error:
        unread.append(f"profile.json: {error}")
        return None


def _iou(folder: Path, unread: list[str]) -> dict[str, float | None]:
    """Read IoU per class; null says that no frame held the class, and anything else but a number is left out."""
    document = _json(folder, "results/iou.json", unread)
    return {name: as_number(value) for name, value in document.items() if value is None or as_number(value) is not None}


def _examples(folder: Path, unread: list[str]) -> Iterator[Example]:
    """Yield the example frames until their pictures weigh more than a page should."""
    listed = _listed_examples(folder, unread)
    left = _MAX_PICTURE_BYTES
    for row in listed[:_MAX_EXAMPLES]:
        pictures = {kind: _picture(folder, row.get(kind)) for kind in ("image", "truth", "prediction")}
        left -= sum(len(picture) for picture in pictures.values())
        if left < 0:
            unread.append("examples: the other frames are too large for one page; they are in the run's results folder")
            return
        title = str(row.get("frame") or row.get("name") or "frame").removesuffix(".png")
        yield Example(
            title, **pictures, mean_iou=as_number(row.get("mean_iou")), accuracy=as_number(row.get("pixel_accuracy"))
        )


def _listed_examples(folder: Path, unread: list[str]) -> list[dict[str, Any]]:
    rows: Any = []
    try:
        for name in ("results/examples.json", "results/examples/examples.json"):
            with suppress(FileNotFoundError):
                rows = json.loads(read_untrusted(folder, name).decode())
                break
    except (OSError, ValueError, RecursionError) as error:
        unread.append(f"examples.json: {_reason(error)}")
    if isinstance(rows, dict):
        rows = rows.get("examples")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _picture(folder: Path, name: object) -> str:
    """Return a PNG as a data: address; only files within the results folder, since a run writes its own list."""
    if not name:
        return ""
    try:
        root = folder.resolve() / "results"
        path = (root / str(name)).resolve()
        if not path.is_relative_to(root) or path.suffix.lower() != ".png":
            return ""
        content = read_untrusted(root, path.relative_to(root).as_posix(), _MAX_PICTURE_BYTES)
    except (OSError, ValueError, RuntimeError):
        return ""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _tails(run: RunFolder, events: tuple[Event, ...]) -> Iterator[LastLines]:
    """Yield the last lines of every rank, and of the launcher; of many ranks those that failed and the lowest."""
    lines: dict[int | None, deque[tuple[str, str]]] = {}
    nodes: dict[int | None, int] = {}
    for line in run.log_lines():
        lines.setdefault(line.rank, deque(maxlen=_TAIL_LINES)).append((line.stream, line.text))
        nodes[line.rank] = line.node
    failed = [event.rank for event in events if isinstance(event, RankFailed | RankHung)]
    ranks = sorted((rank for rank in lines if rank is not None), key=lambda rank: (rank not in failed, rank))
    shown: list[int | None] = [*sorted(ranks[:_MAX_TAILS])]
    if None in lines:
        shown.append(None)
    for rank in shown:
        yield LastLines(rank, nodes[rank], tuple(lines[rank]), rank is not None and rank in failed[-1:])


def _files(folder: Path) -> Iterator[TextFile]:
    for name in _SHOWN_FILES:
        try:
            text = read_untrusted(folder, name).decode("utf-8", errors="replace")
        except OSError:
            continue
        yield TextFile(name, text[:_MAX_FILE_CHARS])


def _workload_in_code(folder: Path) -> str:
    """Return where the workload's file lies in the code that travelled: known by its content, empty without one."""
    try:
        source = read_untrusted(folder, "spec/workload.yaml")
        with open_untrusted(folder, "job/code.tar") as file, tarfile.open(fileobj=file, mode="r:") as code:
            for member in code:
                is_yaml = member.isfile() and member.name.endswith((".yaml", ".yml"))
                if not is_yaml or member.size != len(source):
                    continue
                content = code.extractfile(member)
                if content is not None and content.read() == source:
                    return member.name
    except (OSError, tarfile.TarError):
        return ""
    return ""
