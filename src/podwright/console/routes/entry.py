"""The way in and out, files of the pages themselves, tokens and the audit."""

from __future__ import annotations

from dataclasses import dataclass

from podwright.console.access.rights import RIGHTS
from podwright.console.web.answers import Answer, Blob, Elsewhere, JsonAnswer, Page
from podwright.console.web.route import Nothing, Visit
from podwright.console.web.static import by_served_name
from podwright.spec.problems import refuse

FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True)
class EnterRequest:
    """The secret of a link."""

    key: str = ""


@dataclass(frozen=True)
class StaticRequest:
    """A file of the pages, by the name with its digest."""

    file: str


@dataclass(frozen=True)
class TokenRequest:
    """A token as it is asked for."""

    name: str
    rights: tuple[str, ...] = ()
    days: int = 30


@dataclass(frozen=True)
class TokenNamed:
    """A token, by its id."""

    token: str


def enter(visit: Visit, asked: EnterRequest) -> Answer:
    """Let in whoever has the link, once."""
    session = visit.desk.people.enter(asked.key)
    if session is None:
        visit.desk.mistakes.take(visit.address)
        visit.note("enter", "refused: the link is used up, too old, or none")
        return Page("used", {"title": "This link is used up"}, 401)
    visit.note("enter", "done")
    return Elsewhere("/", session)


def leave(visit: Visit, asked: Nothing) -> Answer:
    """End the session."""
    if visit.session is not None:
        visit.desk.people.leave(visit.session)
    return Page("left", {"title": "Signed out"})


def static(visit: Visit, asked: StaticRequest) -> Answer:
    """Return a style sheet or a script."""
    file = by_served_name().get(asked.file)
    if file is None:
        raise refuse("there is no such file", field="file", exit_code=1)
    return Blob(file.body, file.kind, headers=FOR_EVER)


def list_tokens(visit: Visit, asked: Nothing) -> Answer:
    """Return the tokens that are good now."""
    return JsonAnswer([token.as_json() for token in visit.desk.people.tokens()])


def make_token(visit: Visit, asked: TokenRequest) -> Answer:
    """Make a token with an end; its text is told this once."""
    token, text = visit.desk.people.make_token(asked.name, asked.rights, asked.days)
    visit.note("token", "made", token=token.id, name=token.name, rights=list(token.rights))
    return JsonAnswer({**token.as_json(), "token": text}, 201)


def revoke_token(visit: Visit, asked: TokenNamed) -> Answer:
    """End a token now."""
    _revoke(visit, asked)
    return JsonAnswer([token.as_json() for token in visit.desk.people.tokens()])


def _revoke(visit: Visit, asked: TokenNamed) -> None:
    visit.desk.people.revoke(asked.token)
    visit.note("token", "revoked", token=asked.token)


def settings_page(visit: Visit, asked: Nothing) -> Answer:
    """Show tokens and the audit."""
    return _settings(visit)


def make_token_page(visit: Visit, asked: TokenRequest) -> Answer:
    """Make a token, and show its text this once."""
    made = make_token(visit, asked)
    assert isinstance(made, JsonAnswer)
    return _settings(visit, str(made.body["token"]))


def revoke_token_page(visit: Visit, asked: TokenNamed) -> Answer:
    """End a token, and show those that are left."""
    _revoke(visit, asked)
    return Elsewhere("/settings")


def _settings(visit: Visit, text: str = "") -> Page:
    people = visit.desk.people
    rows = visit.desk.audit.rows()
    return Page("settings", {"title": "Settings", "tokens": people.tokens(), "text": text, "acts": rows, "all": RIGHTS})


def read_audit(visit: Visit, asked: Nothing) -> Answer:
    """Return the latest acts, the newest first."""
    return JsonAnswer([dict(row) for row in visit.desk.audit.rows()])
