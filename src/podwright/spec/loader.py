"""Opens the two files: the only part of this package, beside the library, that touches the disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.spec import workload_checks
from podwright.spec.check import checked, mapping, no_gaps
from podwright.spec.findings import Finding
from podwright.spec.nearest import one_of
from podwright.spec.overrides import apply_sets
from podwright.spec.problems import refuse, short
from podwright.spec.source import decode, read_source
from podwright.spec.workload import Workload
from podwright.spec.yaml_document import Document, parse, trap_hint

if TYPE_CHECKING:
    from podwright.spec.pod import Pod

KINDS = ("pod", "workload")

_PATCH = ("kubernetes", "patch")


def load_workload(path: str | Path, sets: Iterable[str] = ()) -> Workload:
    """Read a workload file, with the settings of `--set` laid over it."""
    source = read_source(Path(path))
    return _workload(_document(path, source), Path(path), source, tuple(sets))


def workload_of(values: Mapping[str, Any], folder: Path, sets: Iterable[str] = ()) -> Workload:
    """Check a workload that is given as values under the names of the file; paths in it are relative to the folder."""
    source = json.dumps(values).encode()
    return _workload(_document("workload", source), folder / "workload", source, tuple(sets))


def restore_workload(values: Mapping[str, Any], path: Path, source: bytes) -> Workload:
    """Return the workload that a run's record holds, as it was read from this file."""
    workload = Workload.model_validate(values)
    workload._path, workload._source = path, source
    return workload


def load_pod(path: str | Path) -> Pod:
    """Read a pod file."""
    source = read_source(Path(path))
    return _pod(_document(path, source), Path(path), source)


def pod_of(source: bytes, path: Path) -> Pod:
    """Return a pod of a text that lies in no file, as if it lay in this one."""
    return _pod(_document(path, source), path, source)


def load(path: str | Path) -> Workload | Pod:
    """Read either file: one with a `command` is a workload."""
    source = read_source(Path(path))
    document = _document(path, source)
    if _is_workload(mapping(document)):
        return _workload(document, Path(path), source, ())
    return _pod(document, Path(path), source)


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of `workload` or `pod`, from which editors complete."""
    if kind not in KINDS:
        raise refuse(f'"{short(kind)}" is not a kind of file', hint=one_of(kind, "kind", KINDS))
    fields = _model(kind).model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **fields}


def _document(path: str | Path, source: bytes) -> Document:
    return parse(decode(source, str(path)), str(path))


def _workload(document: Document, path: Path, source: bytes, sets: tuple[str, ...]) -> Workload:
    tree = mapping(document)
    apply_sets(document, sets)
    _take_as_written(document)
    folder = path.absolute().parent
    before = [*no_gaps(tree, _PATCH), *_octal_in_patch(document)]
    checks = (
        *workload_checks.CHECKS,
        lambda values: workload_checks.on_disk(values, folder, _comments(document, source)),
    )
    workload = checked(Workload, document, checks, before)
    workload._path, workload._source, workload._document = folder / path.name, source, document
    return workload


def _comments(document: Document, source: bytes) -> Callable[[tuple[str, ...]], str]:
    """Return what finds the comment behind a field, on its own line; nothing for one that the file does not have."""
    lines = source.decode("utf-8", "replace").splitlines()

    def comment(field: tuple[str, ...]) -> str:
        place = document.places.get(field)
        if place is None or place.line is None or place.file != document.file or place.line > len(lines):
            return ""
        return lines[place.line - 1].partition(" # ")[2].strip()

    return comment


def _model(kind: str) -> type[Workload] | type[Pod]:
    # Building the models takes longer than reading a file, and a run needs no pod's.
    from podwright.spec.pod import Pod

    if kind == "workload":
        return Workload
    return Pod


def _pod(document: Document, path: Path, source: bytes) -> Pod:
    from podwright.spec import pod_checks
    from podwright.spec.pod import Pod

    pod = checked(Pod, document, pod_checks.CHECKS, no_gaps(mapping(document)))
    pod._path, pod._source = path.absolute(), source
    return pod


def _is_workload(tree: dict[str, Any]) -> bool:
    """Decide by `command`; a workload that lost it is known by its other fields."""
    if "command" in tree:
        return True
    of_workload, of_pod = _field_names("workload"), _field_names("pod")
    only_workload = set(tree) & (of_workload - of_pod)
    return len(only_workload) > len(set(tree) & (of_pod - of_workload))


def _field_names(kind: str) -> set[str]:
    return {field.alias or name for name, field in _model(kind).model_fields.items()}


def _take_as_written(document: Document) -> None:
    """Put the text back where YAML made a number or a truth of something that is meant as it is written."""
    for path, place in document.places.items():
        if place.text is None or not path or path[0] not in ("command", "env", "matrix"):
            continue
        parent: Any = document.value
        for part in path[:-1]:
            parent = parent[part]
        if _is_meant_as_text(parent[path[-1]], place.text, path[0] == "matrix"):
            parent[path[-1]] = place.text


def _is_meant_as_text(value: Any, text: str, in_matrix: bool) -> bool:
    """Return whether a value is meant as text; in a matrix numbers and truths keep their kind, as the record shows."""
    if isinstance(value, bool):
        return not in_matrix or text.lower() not in ("true", "false")
    return isinstance(value, (int, float)) and not in_matrix


def _octal_in_patch(document: Document) -> list[Finding]:
    """Find a file mode in a patch, whose value must not change silently."""
    return [
        Finding(path, "may be read as octal", trap_hint(place.text))
        for path, place in document.places.items()
        if path[:2] == _PATCH
        and place.text
        and (trap_hint(place.text) or "").startswith(f"YAML may read `{place.text}` as octal")
    ]
