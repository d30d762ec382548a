"""The JSON schema, from which editors complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from podwright import spec


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Goes through all fields of a schema and of what it refers to."""
    for model in [schema, *schema.get("$defs", {}).values()]:
        for name, field in model.get("properties", {}).items():
            yield f"{model['title']}.{name}", field


@pytest.mark.parametrize("kind", ["workload", "pod"])
def test_every_field_is_described(kind: str) -> None:
    bare = [name for name, field in fields(spec.schema(kind)) if not field.get("description")]
    assert set(bare) <= {"SlurmScheduler.kind", "KubernetesScheduler.kind"}


def test_names_are_those_of_the_files() -> None:
    workload = spec.schema("workload")
    names = (
        "name command code include setup nodes spares replace_slow ranks_per_node launcher image build runtime "
        "resources data env secrets checkpoint keep stdin retries grace time_limit hang_after join_timeout goal "
        "results matrix local slurm kubernetes"
    )
    assert " ".join(workload["properties"]) == names
    assert workload["required"] == ["name", "command"]
    assert workload["additionalProperties"] is False
    assert set(spec.schema("pod")["required"]) == {"name", "nodes"}


@pytest.mark.parametrize("kind", ["workload", "pod"])
def test_schema_is_json(kind: str) -> None:
    schema = spec.schema(kind)
    assert json.loads(json.dumps(schema)) == schema


def test_unknown_kind() -> None:
    with pytest.raises(spec.Refusal, match="did you mean `workload`"):
        spec.schema("worklod")


def test_public_names_are_there() -> None:
    assert all(getattr(spec, name) is not None for name in spec.__all__)
    assert dir(spec) == sorted(spec.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spec.nothing  # noqa: B018
