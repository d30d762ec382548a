"""A row of the table of routes, and who asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podwright.console.access.audit import Act
from podwright.console.access.rights import Identity, Right
from podwright.console.desk import Desk
from podwright.console.web.answers import Answer

API = "/api/v1"


@dataclass(frozen=True)
class Nothing:
    """The request of a route that takes nothing."""


@dataclass(frozen=True)
class Visit:
    """One request, as routes see it."""

    desk: Desk
    identity: Identity | None
    address: str
    base: str
    """The path that all of the console lies below."""
    path: str
    headers: Mapping[str, str]
    session: str | None = None
    """The secret of the session that asks."""

    def note(self, what: str, outcome: str, **subject: object) -> None:
        """Write an act into the audit."""
        who = self.identity.name if self.identity else "nobody"
        self.desk.audit.note(Act(who, self.address, what, subject, outcome))

    @property
    def is_api(self) -> bool:
        """Return whether a program asks, which takes no page for an answer."""
        return self.path == API or self.path.startswith(f"{API}/")


@dataclass(frozen=True)
class WebRoute:
    """What may be asked, with which right, and what comes of it."""

    method: str
    path: str
    right: Right
    request: type
    result: Any
    """The type of the document; of what is no document a word, such as `page`."""
    answer: Callable[[Visit, Any], Answer]
    summary: str

    @property
    def is_api(self) -> bool:
        """Return whether it is a part of the API."""
        return self.path.startswith(API)

    @property
    def changes(self) -> bool:
        """Return whether it changes anything."""
        return self.method != "GET"
