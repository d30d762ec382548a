"""What lets a page stand alone and be safe: its script allowed by hash, its data unable to end their element. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def policy(script: str) -> str:
    """Return the content security policy of a page with this one script inside it.

    The script is allowed by its hash alone, so that nothing a run wrote can ever be run by the reader's browser.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(payload: Mapping[str, Any]) -> str:
    """Return JSON that can stand in a script element: `<`, `>` and `&` are written as escapes, so it cannot end it."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
