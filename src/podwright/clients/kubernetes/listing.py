"""Objects of one kind as they are now: listed when a command looks once, watched when a client goes on looking."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from podwright.clients.kubernetes.api import UNKNOWN_USER, Api, ApiError, Away

FLOOR_S = 1.0
"""Between two lists, whatever number of runs is looked at."""
WATCH_AFTER = 3
"""Lists; whoever asked so often will ask on."""
TURN_S = 240
"""How long the server lets one watch go on."""
PAUSE_S = 1.0


class Listing:
    """Safe to be read from several threads; what was known last stays when the server is away."""

    def __init__(self, api: Api, path: str, selector: str) -> None:
        self._api, self._path, self._selector = api, path, selector
        self._objects: dict[str, dict[str, Any]] = {}
        self._version = ""
        self._asked_at = -FLOOR_S
        self._times = 0
        self._lock = threading.Lock()
        self._watching = False
        self._broken_at: float | None = None
        self._refused: ApiError | None = None
        self.away = ""
        """Why the server does not answer, once it was waited for long enough."""

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the objects by name. An error of the server that is no absence is the caller's."""
        with self._lock:
            if not self._watching and time.monotonic() - self._asked_at >= FLOOR_S:
                self._list()
                if self._times == WATCH_AFTER:
                    self._watching = True
                    threading.Thread(target=self._watch, daemon=True).start()
            if self._refused is not None:
                raise self._refused
            return dict(self._objects)

    def forget(self) -> None:
        """Let the next reading ask anew: something was changed just now."""
        self._asked_at = -FLOOR_S

    def _list(self) -> None:
        self._asked_at = time.monotonic()
        try:
            items, self._version = self._api.items(self._path, labelSelector=self._selector)
        except Away as error:
            self.away = str(error)
            return
        self._objects = {item["metadata"]["name"]: item for item in items}
        self._times += 1
        self._answers()

    def _answers(self) -> None:
        self._broken_at, self._refused, self.away = None, None, ""

    def _watch(self) -> None:
        """Watch until the process ends; a watch that breaks goes on where it was, one that is too old lists anew."""
        while True:
            try:
                self._turn()
            except Away as error:
                self._break_off(error)
                time.sleep(PAUSE_S)
            except (ApiError, ValueError):
                time.sleep(PAUSE_S)
                self._list_anew()

    def _break_off(self, error: Away) -> None:
        """Note that the watch broke; a server that restarts is not called away for it."""
        now = time.monotonic()
        self._broken_at = self._broken_at or now
        if now - self._broken_at >= self._api.silence.budget_s:
            self.away = str(error)

    def _list_anew(self) -> None:
        with self._lock:
            try:
                self._list()
            except ApiError as error:
                if error.status == UNKNOWN_USER:
                    self._refused = error

    def _turn(self) -> None:
        query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": TURN_S}
        query |= {"labelSelector": self._selector, "resourceVersion": self._version}
        with self._api.lines(self._path, TURN_S + 30.0, **query) as lines:
            self._answers()
            for line in lines:
                self._take(json.loads(line))

    def _take(self, news: dict[str, Any]) -> None:
        if news["type"] == "ERROR":
            raise ApiError(int(news["object"].get("code", 500)), "", str(news["object"].get("message", "")))
        changed, metadata = news["object"], news["object"]["metadata"]
        self._version = metadata["resourceVersion"]
        with self._lock:
            if news["type"] == "DELETED":
                self._objects.pop(metadata["name"], None)
            elif news["type"] != "BOOKMARK":
                self._objects[metadata["name"]] = changed
