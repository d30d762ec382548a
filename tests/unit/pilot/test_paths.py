"""Folders of a node are the user's alone, and the group's where the volume above them is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.pilot.system.paths import make_private


@pytest.fixture(autouse=True)
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(("above", "between"), [(0o700, 0o700), (0o755, 0o750), (0o770, 0o770), (0o2770, 0o770)])
def test_folders_between_have_the_groups_rights_of_what_is_above(tmp_path: Path, above: int, between: int) -> None:
    top = tmp_path / "top"
    top.mkdir()
    top.chmod(above)
    for _ in range(2):
        make_private(str(top / "runs" / "record" / "n0.r0"))
    modes = [path.stat().st_mode & 0o777 for path in (top / "runs", top / "runs" / "record")]
    assert modes == [between, between]
    assert (top / "runs" / "record" / "n0.r0").stat().st_mode & 0o777 == 0o700
