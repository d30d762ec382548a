"""The owner of a home and their tokens: a link that lets in once, sessions in memory, tokens by digest on disk."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.console.access.rights import RIGHTS, ROLES, Identity
from podwright.files.journal import JournalFile
from podwright.runs.record import iso
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse, short

LINK_S = 15 * 60.0
SESSION_S = 12 * 3600.0
MAX_SESSIONS = 256
MAX_DAYS = 366
DAY_S = 86400.0


@dataclass(frozen=True)
class Token:
    """A token as it is listed; its secret was shown once and is nowhere."""

    id: str
    name: str
    rights: tuple[str, ...]
    ends_at: float

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        return {"id": self.id, "name": self.name, "rights": list(self.rights), "ends_at": iso(self.ends_at)}


@dataclass(frozen=True)
class _Session:
    identity: Identity
    ends_at: float


class People:
    """Constructing it reads nothing. Every secret is compared by its digest, in constant time."""

    def __init__(self, folder: Path, owner: str, now: Callable[[], float]) -> None:
        self._owner, self._now = owner, now
        self._journal = JournalFile(folder / "tokens.jsonl")
        self._links: dict[str, float] = {}
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._lock = threading.Lock()

    # links and sessions

    def new_link(self) -> str:
        """Return the secret of a link that lets its bearer in once, within a quarter of an hour."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest(secret)] = self._now() + LINK_S
        return secret

    def enter(self, secret: str) -> str | None:
        """Return the secret of a new session for that of a link, which is used up by this; None for any other."""
        with self._lock:
            ends_at = self._links.pop(_digest(secret), 0.0)
            if ends_at <= self._now():
                return None
            session = secrets.token_urlsafe(32)
            identity = Identity(self._owner, ROLES["operator"], "session", secrets.token_hex(16))
            self._sessions[_digest(session)] = _Session(identity, self._now() + SESSION_S)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def of_session(self, secret: str) -> Identity | None:
        """Return whose session it is; None where it has ended or never was."""
        with self._lock:
            session = self._sessions.get(_digest(secret))
            if session is None or session.ends_at <= self._now():
                return None
            return session.identity

    def leave(self, secret: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_digest(secret), None)

    # tokens

    def make_token(self, name: str, rights: Iterable[str], days: int) -> tuple[Token, str]:
        """Make a token with an end and return it with its text, which nobody can read again."""
        scope = tuple(right for right in RIGHTS if right in set(rights))
        if unknown := set(rights) - set(RIGHTS):
            wrong = sorted(unknown)[0]
            raise refuse(f'"{short(wrong)}" is no right', one_of(wrong, "a right", RIGHTS), field="rights")
        if not scope:
            raise refuse("are missing", f"choose of {', '.join(RIGHTS)}", field="rights")
        if not 1 <= days <= MAX_DAYS:
            raise refuse(f"is {days}", f"a token lasts 1 to {MAX_DAYS} days", field="days")
        if not name.strip() or len(name) > 64 or not name.isprintable():
            raise refuse("says too little or too much", "1 to 64 printable characters", field="name")
        token = Token(secrets.token_hex(4), name.strip(), scope, self._now() + days * DAY_S)
        secret = secrets.token_urlsafe(32)
        self._journal.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        row = {"k": "made", "id": token.id, "name": token.name, "rights": list(scope), "ends": token.ends_at}
        self._journal.append({**row, "sha256": _digest(secret)})
        return token, f"pwt_{token.id}_{secret}"

    def revoke(self, token_id: str) -> None:
        """End a token now."""
        if token_id not in {token.id for token in self.tokens()}:
            raise refuse(f"there is no token {short(token_id)!r}", field="token", exit_code=1)
        self._journal.append({"k": "revoked", "id": token_id})

    def tokens(self) -> list[Token]:
        """Return the tokens that are good now."""
        return [token for token, _ in self._known().values() if token.ends_at > self._now()]

    def of_token(self, text: str) -> Identity | None:
        """Return who shows a token; None where it has ended, was revoked or never was."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        with self._lock:
            known = self._known().get(token_id)
        if prefix != "pwt" or known is None:
            return None
        token, digest = known
        if not hmac.compare_digest(digest, _digest(secret)) or token.ends_at <= self._now():
            return None
        return Identity(f"token {token.name}", frozenset(token.rights), "token")

    def _known(self) -> dict[str, tuple[Token, str]]:
        known: dict[str, tuple[Token, str]] = {}
        for row in self._journal.rows():
            token_id = str(row.get("id"))
            if row.get("k") == "revoked":
                known.pop(token_id, None)
            elif row.get("k") == "made":
                rights = tuple(right for right in RIGHTS if right in row.get("rights", ()))
                token = Token(token_id, str(row.get("name")), rights, float(row.get("ends") or 0.0))
                known[token_id] = token, str(row.get("sha256"))
        return known


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
