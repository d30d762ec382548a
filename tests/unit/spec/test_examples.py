"""Every example is a file that loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright import spec
from tests.paths import ROOT

FOLDER = ROOT / "examples"
OTHERS = ("capacity-", "new_images", "suite")
"""What `capacity`, `bench run` and `data policy add` read is tested with them."""
FILES = sorted(path.name for path in FOLDER.glob("*.yaml") if not path.name.startswith(OTHERS))
"""Pods and workloads."""


def lay_out(name: str, folder: Path) -> Path:
    """Copies an example, with empty folders for its code and for the data that is made only when it is run."""
    path = folder / "examples" / name
    path.parent.mkdir(parents=True)
    path.write_bytes((FOLDER / name).read_bytes())
    values: dict[str, Any] = yaml.safe_load(path.read_bytes())
    for value in [*values.get("data", {}).values(), values.get("code", ".")]:
        if "://" not in value:
            (path.parent / value).mkdir(parents=True, exist_ok=True)
    return path


def test_there_are_examples() -> None:
    assert FILES


@pytest.mark.parametrize("name", FILES)
def test_example_loads(name: str, tmp_path: Path) -> None:
    assert spec.load(lay_out(name, tmp_path)).name
