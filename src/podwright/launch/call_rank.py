"""What a rank of `podwright.call` runs: it calls a function that was pickled elsewhere and leaves what came of it.

    python call.py call.pkl [ITEM]

This file travels with the run, beside cloudpickle; of Podwright nothing else is there. A value is written whole or not
at all. An error leaves its traceback, and ends the rank with 1, so that the run fails as any other. There is one for
each item of a map, so that it imports little.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "call"


def read(path: str) -> dict[str, Any]:
    """Read the call; one that another Python pickled is refused, since code objects differ."""
    with open(path, "rb") as file:
        asked: dict[str, Any] = pickle.load(file)
    here = sys.version_info[:2]
    if tuple(asked["python"]) != here:
        wanted = ".".join(str(part) for part in asked["python"])
        sys.exit(f"podwright: the function was pickled by Python {wanted}, and this is {here[0]}.{here[1]}")
    return asked


def outcome(asked: dict[str, Any], item: str | None) -> tuple[str, bytes]:
    """Return `value` or `error`, and the value, pickled or as JSON, or the traceback as JSON."""
    import cloudpickle

    try:
        function, args = pickle.loads(asked["function"]), pickle.loads(asked["args"])
        if item is not None:
            args = (pickle.loads(asked["items"][int(item)]), *args)
        value = function(*args)
        return "value", as_json(value) if asked.get("values") == "json" else cloudpickle.dumps(value)
    except Exception as error:
        import base64
        import traceback

        text = traceback.format_exc()
        try:
            pickled = cloudpickle.dumps(error)
        except Exception:
            pickled = b""
        return "error", as_json({"text": text, "error": base64.b64encode(pickled).decode()})


def as_json(value: Any) -> bytes:
    """Return a value as JSON; TypeError says what cannot be."""
    import json

    return json.dumps(value).encode()


def main(path: str, item: str | None = None) -> int:
    """Call, and write what came of it."""
    kind, data = outcome(read(path), item)
    rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    folder = os.path.join(os.environ["PODWRIGHT_FOLDER"], "results", FOLDER)
    os.makedirs(folder, exist_ok=True)
    part = os.path.join(folder, f".{rank}.part")
    with open(part, "wb") as file:
        file.write(data)
    for other in ("value", "error"):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, f"{rank}.{other}"))
    os.rename(part, os.path.join(folder, f"{rank}.{kind}"))
    if kind == "error":
        import json

        sys.stderr.write(json.loads(data)["text"])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
