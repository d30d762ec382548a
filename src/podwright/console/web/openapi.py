"""The table of routes as OpenAPI 3.1: what may be asked, with which right, and what comes of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from podwright.console.web.asking import Names, is_needed, kinds_of
from podwright.console.web.route import API, WebRoute
from podwright.pilot import __version__

Schema = dict[str, Any]
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_BINARY: Schema = {"type": "string", "format": "binary"}
_KINDS = {"bytes": "application/octet-stream", "events": "text/event-stream"}


def openapi(routes: Iterable[WebRoute], base: str) -> Schema:
    """Return the description of all that programs may ask."""
    schemas: dict[str, Schema] = {"Errors": _ERRORS}
    paths: dict[str, Schema] = {}
    for route in routes:
        if route.is_api:
            paths.setdefault(route.path.removeprefix(API), {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Podwright", "version": __version__},
        "servers": [{"url": f"{base}{API}"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "podwright"},
            },
        },
    }


def _operation(route: WebRoute, schemas: dict[str, Schema]) -> Schema:
    errors = {"description": "It was refused", "content": _json({"$ref": "#/components/schemas/Errors"})}
    operation: Schema = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": f"Takes the right to {route.right}.",
        "responses": {"200": _response(route, schemas), "default": errors},
    }
    in_path = set(re.findall(r"{(\w+)}", route.path))
    kinds = kinds_of(route.request)
    if route.changes:
        body = {name: schema_of(kind, schemas) for name, kind in kinds.items() if name not in in_path}
        needed = [name for name in body if is_needed(route.request, name)]
        schema = {"type": "object", "properties": body, "required": needed, "additionalProperties": False}
        operation["requestBody"] = {"content": _json(schema)}
    asked = [name for name in kinds if name in in_path or not route.changes]
    operation["parameters"] = [_parameter(route, name, name in in_path) for name in asked]
    return operation


def operation_id(route: WebRoute) -> str:
    """Return the name that a client has for a route: that of the function behind it."""
    return str(route.answer.__name__)


def _parameter(route: WebRoute, name: str, in_path: bool) -> Schema:
    schema = schema_of(kinds_of(route.request)[name], {})
    default = next(field.default for field in fields(route.request) if field.name == name)
    if default is not MISSING and default is not None:
        schema = {**schema, "default": list(default) if isinstance(default, tuple) else default}
    place, needed = ("path", True) if in_path else ("query", is_needed(route.request, name))
    return {"name": name, "in": place, "required": needed, "schema": schema}


def _response(route: WebRoute, schemas: dict[str, Schema]) -> Schema:
    if isinstance(route.result, str):
        return {"description": route.summary, "content": {_KINDS[route.result]: {"schema": _BINARY}}}
    return {"description": route.summary, "content": _json(schema_of(route.result, schemas))}


def _json(schema: Mapping[str, Any]) -> Schema:
    return {"application/json": {"schema": schema}}


def schema_of(kind: Any, schemas: dict[str, Schema]) -> Schema:
    """Return the JSON schema of a type; those of documents are put by their names."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind == Names or origin is list:
        return {"type": "array", "items": schema_of(inner[0], schemas)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(part, schemas) for part in inner]}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is NotRequired:
        return schema_of(inner[0], schemas)
    if is_typeddict(kind):
        return _document(kind, schemas)
    if kind is dict or origin is dict:
        return {"type": "object", **({"additionalProperties": schema_of(inner[1], schemas)} if inner else {})}
    return {}


def _document(kind: Any, schemas: dict[str, Schema]) -> Schema:
    name = kind.__name__.removesuffix("JsonAnswer")
    if name not in schemas:
        schemas[name] = {}
        hints = get_type_hints(kind, include_extras=True)
        properties = {field: schema_of(hint, schemas) for field, hint in hints.items()}
        needed = [field for field, hint in hints.items() if get_origin(hint) is not NotRequired]
        text = (kind.__doc__ or "").strip()
        schemas[name] = {"type": "object", "description": text, "properties": properties, "required": needed}
    return {"$ref": f"#/components/schemas/{name}"}


_PROBLEM: Schema = {
    "type": "object",
    "properties": {
        name: {"type": kinds}
        for name, kinds in {
            "file": "string",
            "line": ["integer", "null"],
            "column": ["integer", "null"],
            "field": "string",
            "message": "string",
            "hint": ["string", "null"],
        }.items()
    },
    "required": ["field", "message"],
}
_ERRORS: Schema = {"type": "object", "properties": {"errors": {"type": "array", "items": _PROBLEM}}}
