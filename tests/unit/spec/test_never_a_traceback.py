"""Two thousand files that nobody would write: each one loads or is refused in our words."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podwright import spec
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "spec"
TREES: list[dict[str, Any]] = [
    yaml.safe_load((CASES / "everything" / "workload.yaml").read_bytes()),
    yaml.safe_load((CASES / "pod-everything" / "pod.yaml").read_bytes()),
    yaml.safe_load((CASES / "pod-written-out" / "pod.yaml").read_bytes()),
]
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        10**30,
        0.5,
        float("nan"),
        float("inf"),
        "",
        " ",
        "\0",
        "no",
        "010",
        "1:30",
        "x" * 5000,
    ),
    *(
        "{data.x}",
        "{matrix.}",
        "../..",
        "/",
        "~",
        "dgx[1-3]",
        "dgx[1-",
        "80GiB",
        "2h",
        "1e3",
        "'",
        "\\",
        "\n",
        "\u2028",
        "é",
    ),
    *([], {}, [[]], [{}], {"": ""}, {"kind": "slurm"}, {"kind": []}, {"ports": 0}, [None], {"a": {"b": None}}),
]
SETTINGS = settings(max_examples=700, suppress_health_check=list(HealthCheck))
PIECES = [
    "name",
    "command",
    "nodes",
    ": ",
    "- ",
    "\n",
    "  ",
    "\t",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!!str ",
    "!x ",
]
PIECES += [
    "<<: ",
    "'",
    '"',
    "|",
    ">",
    "#",
    "%",
    "@",
    "`",
    "?",
    "---\n",
    "...\n",
    "x",
    "0",
    "\\",
    "é",
    "\ufeff",
    "\x07",
    "~",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


def words(load: Callable[[Path], object], path: Path) -> list[spec.Problem]:
    """Gives what a load refuses, or nothing; anything but a refusal is a fault of ours and goes through."""
    try:
        load(path)
    except spec.Refusal as refusal:
        assert str(refusal)  # noqa: PT017 - the text must always come out
        return list(refusal.problems)
    return []


def check(folder: Path, content: bytes) -> None:
    """Loads the content as both kinds."""
    path = folder / "spec.yaml"
    path.write_bytes(content)
    for load in (spec.load, spec.load_workload, spec.load_pod):
        for problem in words(load, path):
            assert problem.message
            assert f"{problem.field}{problem.message}".isprintable()
            assert len(f"{problem.field}{problem.message}") < 2000


def mutate(tree: Any, random_: random.Random) -> Any:
    """Puts something odd at a random place, or takes something away."""
    if isinstance(tree, (dict, list)) and tree and random_.random() < 0.8:
        changed = copy.copy(tree)
        key = random_.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if random_.random() < 0.15:
            del changed[key]
        elif isinstance(changed, dict) and random_.random() < 0.2:
            changed[random_.choice(["names", "gpu", "", "\0", "x" * 300, "<<"])] = changed.pop(key)
        else:
            changed[key] = mutate(tree[key], random_)
        return changed
    return random_.choice(ODD)


@SETTINGS
@given(st.integers(min_value=0))
def test_mutated_files(folder: Path, seed: int) -> None:
    random_ = random.Random(seed)
    tree = random_.choice(TREES)
    for _ in range(random_.randint(1, 5)):
        tree = mutate(tree, random_)
    check(folder, yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"))


@SETTINGS
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_random_yaml(folder: Path, pieces: list[str]) -> None:
    check(folder, "".join(pieces).encode())


@SETTINGS
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=40).map(lambda tail: b"name: x\ncommand: " + tail)))
def test_random_bytes(folder: Path, content: bytes) -> None:
    check(folder, content)


@settings(SETTINGS, max_examples=200)
@given(st.lists(st.text(alphabet="abcdenorsu.=[]{},:*&!' 01", max_size=30), max_size=4))
def test_random_settings(folder: Path, sets: list[str]) -> None:
    path = folder / "good.yaml"
    path.write_text("name: x\ncommand: x\nresources: {gpus: 1}\n")
    assert all(problem.message for problem in words(lambda file: spec.load_workload(file, sets), path))
