"""The loader outside a run: a selection of the home as a run would get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.data.catalog.store import Store
from podwright.data.selecting.pool import DataSample, SampleFile
from podwright.data.selecting.selections import Selection, Split, freeze
from podwright.loader import Loader, SampleFolder, folder_of
from podwright.runs import Home
from podwright.spec import Refusal


def frozen(home: Path, root: str, names: list[str]) -> None:
    samples = [DataSample(name, None, (SampleFile(name, None, "image", 1, None),)) for name in names]
    splits = {"train": Split(tuple(samples[:3]), None), "test": Split(tuple(samples[3:]), None)}
    selection = Selection("drive", "frames", root.encode(), "plain", 0, {"generation": 1}, splits, (), 0.0)
    freeze(Store(Home.open(home).path), selection)


def test_a_selection_and_a_split_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    names = [f"{letter}.png" for letter in "abcde"]
    (tmp_path / "frames").mkdir()
    for name in names:
        (tmp_path / "frames" / name).write_text(name[0])
    frozen(tmp_path / "home", str(tmp_path / "frames"), names)
    for chosen, letters in (("drive", b"abcde"), ("drive/train", b"abc")):
        samples = SampleFolder(folder_of(chosen), lambda sample: sample["image"][0])
        batches = [bytes(batch.tolist()) for batch in Loader(samples, 2, shuffle=False)]
        assert b"".join(batches) == letters
    (tmp_path / "frames" / "a.png").write_text("more")
    with pytest.raises(Refusal, match=r"a\.png"):
        folder_of("drive")
    with pytest.raises(Refusal, match="other"):
        folder_of("drive/other")


def test_what_lies_behind_an_address_is_staged_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    frozen(tmp_path / "home", "https://example.org/frames", ["a.png", "b.png", "c.png", "d.png"])
    with pytest.raises(Refusal) as caught:
        folder_of("drive/train")
    assert "hint: podwright data stage drive/train --to DIR" in str(caught.value)
