"""A patch of the user's, laid over an object as Kubernetes itself would lay it."""

from __future__ import annotations

from typing import Any

KEYS = ("mountPath", "containerPort", "name")
"""By what entries of a list are known; an entry of the patch changes the one of the same key, else it is added."""


def merged(value: Any, patch: Any) -> Any:
    """Merge a mapping name by name: a null takes a name away, any other value replaces what was there."""
    if isinstance(value, dict) and isinstance(patch, dict):
        return _merged_mapping(value, patch)
    key = _key(value, patch)
    if key is None:
        return patch
    return _merged_list(value, patch, key)


def _merged_mapping(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    kept = {name: field for name, field in value.items() if patch.get(name, field) is not None}
    for name, change in patch.items():
        if change is not None and name in value:
            kept[name] = merged(value[name], change)
        elif change is not None:
            kept[name] = change
    return kept


def _key(value: Any, patch: Any) -> str | None:
    if not isinstance(value, list) or not isinstance(patch, list) or not value or not patch:
        return None
    entries = [*value, *patch]
    for key in KEYS:
        if all(isinstance(entry, dict) and key in entry for entry in entries):
            return key
    return None


def _merged_list(value: list[Any], patch: list[Any], key: str) -> list[Any]:
    changes = {entry[key]: entry for entry in patch}
    known = {entry[key] for entry in value}
    kept = list(value)
    for index, entry in enumerate(value):
        if entry[key] in changes:
            kept[index] = merged(entry, changes[entry[key]])
    return [*kept, *(entry for entry in patch if entry[key] not in known)]
