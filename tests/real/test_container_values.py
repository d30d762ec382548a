"""What a program pickled inside of a real container, read outside: refused by name, or as plain types."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from podwright.spec.problems import Refusal
from tests.contract.sites import END_S
from tests.paths import ROOT
from tests.real.test_images import ContainerSite, base, site

__all__ = ["base", "site"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("images")]

HOSTILE = """
import os, pathlib, pickle, sys, zipfile
class Evil:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)
evil = pickle.dumps([Evil()], 2)
value = pathlib.Path(os.environ["PODWRIGHT_FOLDER"], "results", "call", "0.value")
value.parent.mkdir(parents=True)
value.write_bytes(pickle.dumps([Evil()], 5))
with zipfile.ZipFile(os.path.join(os.environ["PODWRIGHT_CHECKPOINT"], "step-00000001.pt"), "w") as checkpoint:
    for name, text in {"data.pkl": evil, "version": "3\\n", "byteorder": "little"}.items():
        checkpoint.writestr(f"archive/{name}", text)
"""


def test_what_was_pickled_in_a_container_runs_nothing_here_until_it_is_trusted(
    site: ContainerSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value is refused by name; a checkpoint is read as plain tensors, and set aside as damaged."""
    made, kept, said = tmp_path / "made", tmp_path / "kept", list[str]()
    run = site.start(command=json.dumps(["python3", "-c", HOSTILE, str(made)]), checkpoint=str(kept))
    assert run.wait(END_S).state == "succeeded", run.explain()
    with pytest.raises(Refusal, match=r"left a value that is not read without trust: it holds posix\.mkdir"):
        run.value()
    monkeypatch.syspath_prepend(ROOT / "programs")
    assert importlib.import_module("kit.checkpoint").load_latest(kept, said.append) is None
    assert "step-00000001.pt is damaged (Weights only load failed" in said[0]
    assert not made.exists()
    run.value(trust=True)
    assert made.is_dir()
