"""Calls to one management controller: encrypted, to nobody else, with the password or by a session."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from typing import Any
from urllib.parse import urljoin

from podwright.clients.http_client import (
    Body,
    ErrorAnswer,
    HttpClient,
    Unreached,
    basic,
    is_loopback,
    no_proxy,
    origin_of,
    request_of,
    trusting,
)
from podwright.spec.problems import Refusal, refuse

Object = dict[str, Any]
ROOT = "/redfish/v1"
TIMEOUT_S = 30.0
_ANSWER_BYTES = 8 << 20
_JSON = {"Content-Type": "application/json"}
_SESSIONS = f"{ROOT}/SessionService/Sessions"


class RefusedCall(Refusal):
    """A call that the controller answered with an error."""

    def __init__(self, message: str, status: int, hint: str | None = None) -> None:
        super().__init__(refuse(message, hint=hint).problems, exit_code=1)
        self.status = status


class AwayError(Refusal):
    """A controller that does not answer."""


@dataclass(frozen=True)
class RedfishAnswer:
    """What a controller said; a document that is empty is none."""

    status: int
    headers: Mapping[str, str] | Message
    document: Object


class RedfishChannel:
    """The way to one controller; making this object touches nothing."""

    def __init__(self, address: str, login: str, certificates: str | None = None) -> None:
        self.address, self._login, self._certificates = address, login, certificates
        self._token, self._place = "", ""

    def ask(
        self, method: str, path: str, body: Object | bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RedfishAnswer:
        """Ask with the password; a controller that takes it for sessions alone is asked by one from then on."""
        more = headers or {}
        try:
            return self._once(method, path, body, {**more, **self._who()})
        except RefusedCall as error:
            if error.status != 401 or self._token or not self._has_session():
                raise
        return self._once(method, path, body, {**more, **self._who()})

    def close(self) -> None:
        """Give a session back: a controller has few."""
        token, self._token = self._token, ""
        if token and self._place:
            try:
                self._once("DELETE", self._place, None, {"X-Auth-Token": token})
            except Refusal:
                """It ends by itself after a while."""

    def _who(self) -> dict[str, str]:
        return {"X-Auth-Token": self._token} if self._token else {"Authorization": basic(self._login)}

    def _has_session(self) -> bool:
        """Return whether the controller gave a session for the password."""
        user, _, password = self._login.partition(":")
        try:
            made = self._once("POST", _SESSIONS, {"UserName": user, "Password": password}, {})
        except RefusedCall:
            return False
        self._token = str(made.headers.get("X-Auth-Token") or "")
        self._place = str(made.headers.get("Location") or made.document.get("@odata.id", ""))
        return bool(self._token)

    def _once(self, method: str, path: str, body: Object | bytes | None, headers: Mapping[str, str]) -> RedfishAnswer:
        url = urljoin(f"{self.address}/", path)
        _check(self.address, url)
        data: Body | None = json.dumps(body).encode() if isinstance(body, dict) else body
        try:
            with self._http.open(request_of(url, method, data, {**_JSON, **headers})) as answer:
                status, said, raw = answer.status, answer.headers, answer.read(_ANSWER_BYTES + 1)
            document: Object = json.loads(raw[:_ANSWER_BYTES]) if raw.strip() else {}
        except ErrorAnswer as error:
            raise _refusal(self.address, error) from None
        except ValueError:
            raise refuse(f"{self.address} does not speak Redfish", exit_code=3) from None
        except Unreached as error:
            reason = f"{self.address} cannot be reached: {error}"
            raise AwayError(refuse(reason).problems, exit_code=3) from None
        return RedfishAnswer(status, said, document)

    @cached_property
    def _http(self) -> HttpClient:
        """Return how it is reached: directly, and never on to somebody else, who would get the password."""
        context = ssl.create_default_context(cafile=self._certificates)
        return HttpClient("refused", TIMEOUT_S, no_proxy(), trusting(context))


def _check(address: str, url: str) -> None:
    """Refuse to send a password in the clear, or to whom an answer names."""
    scheme, host = origin_of(address)
    if origin_of(url) != (scheme, host):
        raise refuse(f"{address} leads elsewhere, to {origin_of(url)[1]}", exit_code=1)
    if scheme != "https" and not is_loopback(host):
        raise refuse(f"{address} is not encrypted", hint="write it like `https://10.0.9.1`", field="nodes.bmc.address")


def _refusal(address: str, error: ErrorAnswer) -> RefusedCall:
    if error.status in (401, 403):
        hint = "the variable that `bmc.secret` names holds USER:PASSWORD"
        return RefusedCall(f"{address} does not take the password", error.status, hint)
    try:
        answer = json.loads(error.body)["error"]
        said = str(answer.get("message") or answer.get("code"))
    except (ValueError, KeyError, AttributeError, TypeError):
        said = error.reason
    return RefusedCall(f"{address} answers {error.status}: {said}", error.status)
