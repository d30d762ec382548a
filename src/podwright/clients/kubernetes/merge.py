"""A patch of the user's, laid over an object as Kubernetes itself would lay it."""

from __future__ import annotations

from typing import Any

KEYS = ("mountPath", "containerPort", "name")
"""By what entries of a list are known; an entry of the patch changes the one of the same key, else it is added."""


def merged(value: Any, patch: Any) -> Any:
    """A mapping is merged name by name, a null takes a name away, any other value replaces what was there."""
    if isinstance(value, dict) and isinstance(patch, dict):
        found = {name: one for name, one in value.items() if patch.get(name, one) is not None}
        for name, one in patch.items():
            if one is not None:
                found[name] = merged(value[name], one) if name in value else one
        return found
    key = _key(value, patch)
    return _merged_list(value, patch, key) if key else patch


def _key(value: Any, patch: Any) -> str | None:
    if not isinstance(value, list) or not isinstance(patch, list) or not value or not patch:
        return None
    entries = [*value, *patch]
    return next((key for key in KEYS if all(isinstance(one, dict) and key in one for one in entries)), None)


def _merged_list(value: list[Any], patch: list[Any], key: str) -> list[Any]:
    changes = {one[key]: one for one in patch}
    known = {one[key] for one in value}
    kept = [merged(one, changes[one[key]]) if one[key] in changes else one for one in value]
    return [*kept, *(one for one in patch if one[key] not in known)]
