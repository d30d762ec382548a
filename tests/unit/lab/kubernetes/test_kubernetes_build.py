"""The build of a Kubernetes lab's programs: a small program stands for Go, as the real build takes ten minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podwright.lab.kubernetes import binaries
from podwright.spec import Refusal

GO = """#!/bin/sh
case "$1 $2" in
"version ") echo "go version {version} linux/amd64" ;;
"list -deps") printf 'one\\ntwo\\n' ;;
"mod download") echo '{{"Dir": "{modules}"}}' ;;
"build -v")
	echo one >&2
	while [ "$1" != -o ]; do shift; done
	{build}
	echo two >&2 ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives an empty machine: no Go, no cache, and modules that hold every file that is wanted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    (tmp_path / "bin").mkdir()
    for wanted in (binaries._MANIFESTS, binaries._NEWER_MANIFESTS):
        for folders in wanted.values():
            for folder, names in folders.items():
                (tmp_path / "modules" / folder).mkdir(parents=True, exist_ok=True)
                for name in names:
                    (tmp_path / "modules" / folder / name).write_text(name)
    return tmp_path


def put_go(machine: Path, version: str = "go1.26.8", build: str = 'touch "$2etcd"') -> None:
    program = machine / "bin" / "go"
    program.write_text(GO.format(version=version, modules=machine / "modules", build=build))
    program.chmod(0o755)


def quiet(word: str, text: str) -> None:
    """Says nothing."""


def test_all_is_built_once_and_counted(machine: Path) -> None:
    put_go(machine)
    seen: list[tuple[int, int]] = []
    found = binaries.get(quiet, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2), (2, 2)] * 2
    assert found["etcd"] == binaries.cache() / "etcd"
    assert found["etcd"].is_file()
    assert (binaries.cache() / "manifests" / binaries.MPI_JOBS).read_text() == binaries.MPI_JOBS
    (machine / "bin" / "go").unlink()
    assert binaries.get(quiet, lambda done, total: None) == found


@pytest.mark.parametrize(("given", "niceness"), [((), "19"), ((0,), "0")])
def test_a_build_steps_back_behind_other_work_unless_it_is_told_not_to(
    machine: Path, given: tuple[int, ...], niceness: str
) -> None:
    put_go(machine, build=f'nice >{machine}/niceness; touch "$2etcd"')
    binaries.get(quiet, lambda done, total: None, *given)
    assert (machine / "niceness").read_text().strip() == niceness


def test_a_build_that_fails_says_its_last_words_and_leaves_no_cache(machine: Path) -> None:
    put_go(machine, build="echo 'no space left' >&2; exit 1")
    with pytest.raises(Refusal, match="Kubernetes could not be built:\none\nno space left"):
        binaries.get(quiet, lambda done, total: None)
    assert not binaries.cache().exists()


@pytest.mark.parametrize("version", ["go1.19.8", "devel"])
def test_without_a_go_that_is_new_enough_it_is_said_how_to_get_one(machine: Path, version: str) -> None:
    put_go(machine, version)
    with pytest.raises(Refusal) as caught:
        binaries.get(quiet, lambda done, total: None)
    assert str(caught.value) == (
        "Kubernetes is built with Go, and this machine has none that is new enough\n\n"
        "hint: install it with `pip install 'podwright[lab]'`, or put Go 1.26 or newer on PATH"
    )
