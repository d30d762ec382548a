"""Writes the console's Python client from its table of routes: a method a row, typed by what it takes and returns.

.venv/bin/python -m scripts.make_client
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from podwright.console.routes.table import ROUTES
from podwright.console.web.asking import is_needed
from podwright.console.web.route import WebRoute

TARGET = Path(__file__).parents[1] / "src" / "podwright" / "console" / "client.py"
_HEAD = '''\
"""The console's API from Python; made of its routes (`scripts/make_client.py`)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from podwright.console.api_calls import ApiCalls
from podwright.console.routes import documents as docs


class ConsoleClient(ApiCalls):
    """One console, by its address and a token. A refusal is an HTTPError, whose body says what is wrong."""
'''


def client_text() -> str:
    """Return the client's source, as ruff lays it out."""
    methods = [_method(route) for route in ROUTES if route.is_api and route.result not in ("events", "bytes")]
    text = "\n".join([_HEAD, "\n".join(methods)])
    ruff = Path(sys.executable).with_name("ruff")
    laid_out = subprocess.run(
        [ruff, "format", "--stdin-filename", TARGET, "-"], input=text.encode(), capture_output=True
    )
    laid_out.check_returncode()
    return laid_out.stdout.decode()


def _method(route: WebRoute) -> str:
    in_path = re.findall(r"{(\w+)}", route.path)
    parameters = ["self", *_parameters(route)]
    result = _result(route.result)
    path = re.sub(r"{(\w+)}", r"{quote(\1, safe='')}", route.path.removeprefix("/api/v1"))
    sent_fields = [field for field in fields(route.request) if field.name not in in_path]
    others = ", ".join(f'"{field.name}": {_sent(field)}' for field in sent_fields)
    sent = f"{{}}, {{{others}}}" if route.changes else f"{{{others}}}"
    form = "f" if in_path else ""
    verb = "Send" if route.changes else "Return"
    place, summary = route.path.removeprefix("/api/v1"), route.summary[0].lower() + route.summary[1:]
    return "\n".join(
        [
            f"    def {route.answer.__name__}({', '.join(parameters)}) -> {result}:",
            f'        """{verb} `{place}`: {summary}. It takes the right to {route.right}."""',
            f'        answer: {result} = json.loads(self._asked({form}"{path}", {sent}))',
            "        return answer",
            "",
        ]
    )


def _parameters(route: WebRoute) -> Iterator[str]:
    for field in fields(route.request):
        default = "" if is_needed(route.request, field.name) else f" = {field.default!r}"
        assert field.default_factory is MISSING
        yield f"{field.name}: {field.type}{default}".replace("'", '"')


def _sent(field: Any) -> str:
    return f"list({field.name})" if str(field.type).startswith("tuple") else str(field.name)


def _result(kind: Any) -> str:
    if get_origin(kind) is list:
        return f"list[{_result(get_args(kind)[0])}]"
    return "dict[str, Any]" if kind is dict else f"docs.{kind.__name__}"


if __name__ == "__main__":
    TARGET.write_text(client_text(), encoding="utf-8")
