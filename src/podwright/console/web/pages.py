"""Pages: templates, filled by what routes hand over. Escaping is on everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from podwright import report
from podwright.console.access.guard import masked
from podwright.console.web.answers import Page
from podwright.console.web.route import Visit
from podwright.console.web.static import static_files
from podwright.spec.problems import Problem
from podwright.theme import words

PLACES = (
    ("/", "Overview", "o"),
    ("/runs", "Runs", "r"),
    ("/compare", "Compare", "c"),
    ("/queue", "Queue", "q"),
    ("/pods", "Pods", "p"),
    ("/alerts", "Alerts", "a"),
    ("/data", "Data", "d"),
    ("/prove", "Prove", "v"),
    ("/cost", "Cost", "m"),
    ("/settings", "Settings", "s"),
)
"""The places of the console, with the key that leads there after `g`."""
_TITLES = {
    400: "That cannot be read",
    401: "Sign in",
    403: "Not allowed",
    404: "Nothing here",
    429: "Slow down",
    500: "Our fault",
}


def render(visit: Visit, page: Page) -> str:
    """Return a page as HTML."""
    identity = visit.identity
    shared = {
        "base": visit.base,
        "identity": identity,
        "csrf": masked(identity.csrf) if identity and identity.csrf else "",
        "places": PLACES,
        "here": visit.path,
        "asset": lambda name: f"{visit.base}/static/{static_files()[name].name}",
        "may": lambda right: identity is not None and identity.may(right),
    }
    return _templates().get_template(f"pages/{page.template}.html.j2").render({**shared, **page.view})


def problem_page(status: int, problems: Sequence[Problem]) -> Page:
    """Return the page that says what is wrong, and how to mend it."""
    title = _TITLES.get(status, "That did not work")
    return Page("problem", {"title": title, "status": status, "problems": problems}, status)


def moment(t: float | None) -> Markup | str:
    """Return a time as an element that the page shows in UTC or in local time."""
    if t is None:
        return words.NONE
    at = datetime.fromtimestamp(max(0.0, min(t, 2.5e11)), UTC)
    shown = at.strftime("%Y-%m-%d %H:%M:%S")
    return Markup('<time datetime="{}Z">{}</time>').format(at.strftime("%Y-%m-%dT%H:%M:%S"), shown)


def address(path: str, /, **query: object) -> str:
    """Return an address below the base: what is None or empty is left out of its query."""
    given = {name: value for name, value in query.items() if value not in (None, "", ())}
    return path + (f"?{urlencode(given, doseq=True)}" if given else "")


def money(cost: Mapping[str, Any] | None) -> str:
    """Return `12.30 EUR`."""
    if not cost:
        return words.NONE
    return f"{cost['amount']:,.2f} {cost['currency']}"


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("podwright.console", "templates"), PackageLoader("podwright.report", "templates")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=report.compiled(),
    )
    report.add_words(environment)
    environment.filters |= {"duration": words.duration, "size": words.size, "moment": moment, "money": money}
    environment.filters |= {"value": words.value, "part": lambda text: quote(str(text), safe="")}
    environment.globals |= {"address": address, "escape": escape}
    return environment
