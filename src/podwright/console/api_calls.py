"""One call to a console's API, by the standard library alone."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen


class ApiCalls:
    """Asks a console, by its address and a token."""

    def __init__(self, url: str, token: str, timeout_s: float = 60.0) -> None:
        self._url, self._token, self._timeout_s = url.rstrip("/") + "/api/v1", token, timeout_s

    def _asked(self, path: str, query: dict[str, Any], body: dict[str, Any] | None = None) -> bytes:
        given = {name: value for name, value in query.items() if value not in (None, "")}
        request = Request(self._url + path + (f"?{urlencode(given)}" if given else ""))
        request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=self._timeout_s) as answer:
            return bytes(answer.read())
