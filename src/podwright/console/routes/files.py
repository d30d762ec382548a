"""Files of a run: listed, looked at, taken away. Whatever they are, nothing in them is run by a browser of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from podwright import launch
from podwright.console.access.guard import FILE_POLICY
from podwright.console.routes.run import found
from podwright.console.web.answers import Answer, Blob, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.spec.problems import Refusal

PREVIEW_BYTES = 1 << 16
PIECE = 1 << 18
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


@dataclass(frozen=True)
class FilesRequest:
    """A folder of a run, or a file of it to look at."""

    run: str
    path: str = ""


@dataclass(frozen=True)
class FileRequest:
    """A file of a run."""

    run: str
    path: str


def list_files(visit: Visit, asked: FilesRequest) -> Answer:
    """List a folder of a run."""
    return JsonAnswer(launch.files_of(found(visit, asked.run), asked.path).as_json())


def fetch_file(visit: Visit, asked: FileRequest) -> Answer:
    """Return a file of a run as it is; a browser saves it, but for pictures."""
    file = launch.open_file(found(visit, asked.run), asked.path)
    path = PurePosixPath(asked.path)
    kind = PICTURES.get(path.suffix.lower())
    way = "inline" if kind else "attachment"
    name = quote(path.name, safe="")
    headers = {"Content-Disposition": f"{way}; filename*=UTF-8''{name}", "Content-Security-Policy": FILE_POLICY}
    return Blob(_pieces(file), kind or "application/octet-stream", headers=headers)


def _pieces(file: BufferedReader) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece


def files_page(visit: Visit, asked: FilesRequest) -> Answer:
    """Show a folder of a run, or the beginning of a file."""
    run = found(visit, asked.run)
    path = PurePosixPath(asked.path)
    parents = [str(PurePosixPath(*path.parts[: place + 1])) for place in range(len(path.parts))]
    view: dict[str, Any] = {
        "title": f"{run.id}: files",
        "run": run,
        "record": run.last_known(),
        "path": asked.path,
        "parents": [(parent, PurePosixPath(parent).name) for parent in parents],
        "listed": None,
        "text": None,
        "is_picture": path.suffix.lower() in PICTURES,
        "size": 0,
    }
    try:
        view["listed"] = launch.files_of(run, asked.path)
    except Refusal:
        view |= _preview(run, asked.path)
    return Page("files", view)


def _preview(run: launch.Run, path: str) -> dict[str, Any]:
    """Return the beginning of a file as text; of one that is none its size alone."""
    with launch.open_file(run, path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        data = file.read(PREVIEW_BYTES)
    text = None if b"\0" in data else data.decode("utf-8", "replace")
    return {"text": text, "size": size}
