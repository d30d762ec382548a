"""The application: every request goes through one gate, which denies what the table of routes does not allow.

There is no other way to a route: the gate finds it, asks for its right, reads its request, and calls it in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from anyio import CapacityLimiter, to_thread
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from podwright.console.access.guard import HEADERS, MAX_BODY_BYTES, host_is_known, unmasked
from podwright.console.desk import Desk
from podwright.console.web.answers import Answer, Blob, Elsewhere, JsonAnswer, Stream
from podwright.console.web.asking import read_request
from podwright.console.web.pages import problem_page, render
from podwright.console.web.route import Visit, WebRoute
from podwright.spec.problems import Problem, Refusal

THREADS = 16
MISSING, UNREACHABLE = 1, 3
"""Exit codes of refusals that are no fault of the request."""
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class Denied(Exception):
    """A request that goes no further, with the status and the sentence that say why."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclass(frozen=True)
class _Found:
    route: WebRoute
    of_path: dict[str, str]


class Console:
    """The gate. `base` is the path that a proxy puts all of it below."""

    def __init__(self, desk: Desk, routes: Sequence[WebRoute], base: str = "", cookie: str = "podwright") -> None:
        self._desk, self._base = desk, base.rstrip("/")
        self._routes = [(route, compile_path(route.path)[0]) for route in routes]
        self._threads: CapacityLimiter | None = None
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await _live(receive, send)
        if scope["type"] != "http":
            return None
        if self._base and f"{scope['path']}/".startswith(f"{self._base}/"):
            scope = {**scope, "root_path": self._base}
        request = Request(scope, receive)
        visit = self._visit(request)
        try:
            if self._base and not scope.get("root_path"):
                raise Denied(404, "there is nothing here", f"the console is below {self._base}/")
            if self._base and scope["path"] == self._base:
                answer: Answer = Elsewhere("/")
            else:
                answer = await self._answered(request, visit)
        except Denied as denied:
            answer = _denied(visit, denied)
        except ClientDisconnect:
            return None
        await self._response(answer, visit, request)(scope, receive, send)
        return None

    def _visit(self, request: Request) -> Visit:
        session = request.cookies.get(self.cookie)
        address = request.client.host if request.client else "?"
        base = str(request.scope.get("root_path", "")).rstrip("/")
        path = _below(str(request.scope["path"]), base)
        identity = None
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            identity = self._desk.people.of_token(token.strip())
        elif session is not None:
            identity = self._desk.people.of_session(session)
        return Visit(self._desk, identity, address, base, path, request.headers, session)

    async def _answered(self, request: Request, visit: Visit) -> Answer:
        desk = self._desk
        if not host_is_known(request.headers.get("host", ""), desk.hosts):
            raise Denied(400, "this server has another name", "open it by the address that it printed")
        if not desk.requests.take(visit.address) or desk.mistakes.is_empty(visit.address):
            raise Denied(429, "too many requests", "wait a moment")
        found = self._found(request, visit)
        self._check_right(found.route, visit, request)
        given = await _given(request, found.of_path)
        if found.route.changes:
            _check_form(visit, given, request.headers)
        return await self._called(found.route, visit, given)

    def _found(self, request: Request, visit: Visit) -> _Found:
        method = "GET" if request.method == "HEAD" else request.method
        others = []
        for route, pattern in self._routes:
            if match := pattern.match(visit.path):
                if route.method == method:
                    return _Found(route, match.groupdict())
                others.append(route.method)
        if visit.identity is None:
            raise _nobody(visit, request, self._desk)
        if others:
            raise Denied(405, f"{request.method} is not for this address", f"it takes {', '.join(others)}")
        raise Denied(404, "there is nothing here")

    def _check_right(self, route: WebRoute, visit: Visit, request: Request) -> None:
        if route.right == "anyone":
            return
        if visit.identity is None:
            raise _nobody(visit, request, self._desk)
        if not visit.identity.may(route.right):
            if route.changes:
                visit.note(route.path, "refused: no right")
            raise Denied(403, f"this takes the right to {route.right}", "it is not among yours")

    async def _called(self, route: WebRoute, visit: Visit, given: Mapping[str, Sequence[Any]]) -> Answer:
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        try:
            asked: Any = read_request(route.request, given)
            return await to_thread.run_sync(route.answer, visit, asked, limiter=self._threads)
        except Refusal as refusal:
            if route.changes:
                visit.note(route.path, f"refused: {refusal.problems[0]}")
            return _refused(visit, refusal)
        except Exception as error:
            path = self._desk.note_fault(error)
            raise Denied(500, "this is a fault of Podwright's", f"{path} says where") from error

    def _response(self, answer: Answer, visit: Visit, request: Request) -> ASGIApp:
        if isinstance(answer, Stream):
            return _with_headers(StreamingResponse(answer.events, media_type="text/event-stream"), _UNBUFFERED)
        if isinstance(answer, Elsewhere):
            moved = _with_headers(RedirectResponse(f"{visit.base}{answer.path}", 303), {})
            if answer.session is not None:
                moved.set_cookie(
                    self.cookie,
                    answer.session,
                    path=f"{visit.base}/",
                    secure=request.url.scheme == "https",
                    httponly=True,
                    samesite="lax",
                )
            return moved
        if isinstance(answer, Blob):
            return _blob(answer)
        if isinstance(answer, JsonAnswer):
            text, kind = json.dumps(answer.body, allow_nan=False), JSON
        else:
            text, kind = render(visit, answer), "text/html"
        headers = answer.headers if isinstance(answer, JsonAnswer) else {}
        made = Response(text.encode("utf-8", "replace"), answer.status, media_type=kind)
        return GZipMiddleware(_with_headers(made, headers), minimum_size=1024, compresslevel=6)


_UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


def _with_headers(response: Response, more: Mapping[str, str]) -> Response:
    for name, value in {**HEADERS, **more}.items():
        response.headers[name] = value
    return response


def _blob(answer: Blob) -> ASGIApp:
    if isinstance(answer.body, bytes):
        made = Response(answer.body, answer.status, media_type=answer.kind)
        packed = answer.kind.startswith(("text/", "image/svg", "application/json"))
        response = _with_headers(made, answer.headers)
        return GZipMiddleware(response, minimum_size=1024) if packed and answer.status == 200 else response
    return _with_headers(StreamingResponse(answer.body, answer.status, media_type=answer.kind), answer.headers)


def _below(path: str, base: str) -> str:
    """Return a path without the base, which a proxy may have taken off already."""
    if base and f"{path}/".startswith(f"{base}/"):
        path = path[len(base) :]
    return path or "/"


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _nobody(visit: Visit, request: Request, desk: Desk) -> Denied:
    """Deny somebody who has shown nothing, or something that is not good: of the latter only so many are heard."""
    if request.headers.get("authorization") or visit.session:
        desk.mistakes.take(visit.address)
    return Denied(401, "nobody is signed in here", "`podwright console` prints a link; a program shows a token")


async def _given(request: Request, of_path: Mapping[str, str]) -> dict[str, Sequence[Any]]:
    """Return what was given, by name: in the path, and in the query or the body."""
    given: dict[str, Sequence[Any]] = {}
    if request.method in ("GET", "HEAD"):
        given = _of_text(request.url.query)
    else:
        given = _of_body(await _body(request), request.headers.get("content-type", ""))
    return {**given, **{name: [value] for name, value in of_path.items()}}


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise Denied(413, "this is more than is taken", f"at most {MAX_BODY_BYTES >> 20} MiB")
    return body


def _of_body(body: bytes, kind: str) -> dict[str, Sequence[Any]]:
    kind = kind.partition(";")[0].strip().lower()
    try:
        if kind == FORM:
            return _of_text(body.decode())
        if kind == JSON:
            row = json.loads(body or b"{}")
            if not isinstance(row, dict):
                raise ValueError("it is no object")
            return {name: value if isinstance(value, list) else [value] for name, value in row.items()}
    except (ValueError, RecursionError) as error:
        raise Denied(400, f"the body cannot be read: {error}") from None
    if not body:
        return {}
    raise Denied(415, "this kind of body is not taken", f"send {JSON}")


def _of_text(text: str) -> dict[str, Sequence[Any]]:
    try:
        return dict(parse_qs(text, keep_blank_values=True, max_num_fields=2000))
    except ValueError as error:
        raise Denied(400, f"the query cannot be read: {error}") from None


def _check_form(visit: Visit, given: dict[str, Sequence[Any]], headers: Mapping[str, str]) -> None:
    """Refuse what another site has a browser send: a session must bring along what only our own pages hold."""
    proof = str((given.pop("csrf", None) or [headers.get("x-csrf", "")])[0])
    if visit.identity is None or visit.identity.way == "token":
        return
    origin = urlsplit(headers.get("origin", "")).hostname
    is_foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or origin == ""
    if is_foreign or not proof or unmasked(proof) != visit.identity.csrf:
        visit.note(visit.path, "refused: not from a page of this console")
        raise Denied(403, "this did not come from a page of this console", "load the page again")


def _denied(visit: Visit, denied: Denied) -> Answer:
    problem = Problem("", None, None, "", denied.message, denied.hint)
    if visit.is_api:
        return JsonAnswer(Refusal([problem]).as_json(), denied.status)
    return problem_page(denied.status, [problem])


def _refused(visit: Visit, refusal: Refusal) -> Answer:
    status = {MISSING: 404, UNREACHABLE: 503}.get(refusal.exit_code, 400)
    if visit.is_api:
        return JsonAnswer(refusal.as_json(), status)
    return problem_page(status, refusal.problems)
