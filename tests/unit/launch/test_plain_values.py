"""Values that are not trusted: plain types and arrays of numpy pass, nothing runs code here."""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import json
import os
import pickle
import uuid
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.launch import Session, find, value_here
from podwright.launch.call_values import RESULTS, CallFailed
from podwright.launch.plain_values import NotPlain, plain_value
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.fixtures.bad_runs import add_run, bad_home

__all__ = ["bad_home"]

RUN = "called-2222"
PLAIN = [
    *(None, True, 7, 2**200, 1.5, 1j, "text", b"bytes", bytearray(b"more"), range(3), slice(1, 2)),
    *([1, (2, 3)], {"a": {1, 2}}, frozenset([1]), collections.OrderedDict(a=1)),
    *(datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), datetime.timedelta(1), decimal.Decimal("1.5")),
    *(np.float32(1.5), np.int64(3), np.bool_(True)),
]
ARRAYS = [
    *(np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3), "f4")), np.array(3.5), np.zeros((0, 3))),
    *(np.array(["ab", "c"]), np.array([b"x", b"yy"]), np.arange(3) > 1, np.arange(3).astype(">i4"), np.ones(2, "c8")),
]


def fails() -> None:
    raise KeyError


REFUSED: dict[str, Any] = {
    "pathlib.PosixPath": Path("x"),
    "uuid.UUID": uuid.UUID(int=1),
    "collections.Counter": collections.Counter("aa"),
    "numpy.ndarray": np.array([object()]),
    "numpy.dtype M8": np.datetime64("2020-01-01"),
    "builtins.KeyError": KeyError("x"),
    "cloudpickle.cloudpickle._make_function": lambda: 1,
    "builtins.getattr": getattr,
}


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_types_pass(value: Any) -> None:
    read = plain_value(cloudpickle.dumps(value))
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays_of_numbers_and_texts_pass(array: np.ndarray[Any, Any]) -> None:
    read = plain_value(cloudpickle.dumps({"loss": [array]}))["loss"][0]
    assert type(read) is np.ndarray
    assert (read.dtype, read.shape, read.tolist()) == (array.dtype, array.shape, array.tolist())
    assert read.flags.writeable


@pytest.mark.parametrize("name", REFUSED)
def test_any_other_type_is_refused_by_name(name: str) -> None:
    with pytest.raises(NotPlain) as refused:
        plain_value(cloudpickle.dumps([REFUSED[name]]))
    assert refused.value.named == name


class Evil:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


FORGED = {
    "gigabytes of memo": b"\x80\x05Nr\xff\xff\xff\x7f.",
    "gigabytes of a byte array": b"\x80\x05\x96\x00\x00\x00\x00\x00\x01\x00\x00.",
    "an array that is not in its bytes": pickle.dumps(np.ones(3), 5).replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"),
    "an extension": b"\x80\x05\x82\x01.",
    "a persistent name": b"\x80\x05N\x51.",
    "no end": b"\x80\x05]",
    "no JSON": b"[",
    "deep JSON": b"[" * 100_000,
    "nothing": b"",
    "an old protocol": pickle.dumps(["x", "x"], 2),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_is_forged_is_refused_in_words(name: str) -> None:
    with pytest.raises(NotPlain):
        plain_value(FORGED[name])


@given(st.integers(0, 200), st.binary(max_size=8))
def test_any_damage_is_read_or_refused(place: int, new: bytes) -> None:
    data = pickle.dumps({"a": [1.5, np.ones(3)], "t": datetime.date(2026, 1, 1)}, 5)
    damaged = data[:place] + new + data[place + len(new) :]
    try:
        read = repr(plain_value(damaged))
    except NotPlain as refused:
        read = str(refused)
    assert read


def left(home: Home, target: str, value: bytes, error: bytes | None = None, runtime: str = "bare") -> Path:
    folder = add_run(home, RUN, target=target)
    path = folder / "run.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "workload": {**document["workload"], "runtime": runtime}}))
    (folder / RESULTS).mkdir(parents=True)
    kind, data = ("value", value) if error is None else ("error", error)
    (folder / RESULTS / f"0.{kind}").write_bytes(data)
    return folder


@pytest.mark.parametrize(("target", "runtime"), [("far:slurm", "bare"), ("local", "container")])
def test_a_value_of_a_cluster_or_a_container_runs_nothing_until_it_is_trusted(
    bad_home: Home, tmp_path: Path, target: str, runtime: str
) -> None:
    made = tmp_path / "made"
    left(bad_home, target, cloudpickle.dumps(Evil(made)), runtime=runtime)
    run = find(Session(bad_home), RUN)
    with pytest.raises(Refusal) as refused:
        value_here(run)
    assert f"rank 0 of {RUN} left a value that is not read without trust: it holds posix.mkdir" in str(refused.value)
    assert f"give `trust=True`, or write `trust: [{target}]` into settings.yaml" in str(refused.value)
    assert not made.exists()
    value_here(run, trust=True)
    assert made.is_dir()


@pytest.mark.parametrize("trusted", ["far:slurm", "far"])
def test_a_target_may_be_trusted_for_good(bad_home: Home, trusted: str) -> None:
    left(bad_home, "far:slurm", cloudpickle.dumps(Path("x")))
    settings = bad_home.path / "settings.yaml"
    settings.write_text(f"trust: [{trusted}]\n")
    settings.chmod(0o600)
    assert value_here(find(Session(bad_home), RUN)) == Path("x")


def test_a_folder_that_lies_elsewhere_does_not_make_itself_local(bad_home: Home, tmp_path: Path) -> None:
    folder = left(bad_home, "local", cloudpickle.dumps(Path("x")))
    folder.rename(tmp_path / RUN)
    folder.symlink_to(tmp_path / RUN)
    with pytest.raises(Refusal, match=r"pathlib\.PosixPath"):
        value_here(find(Session(bad_home), RUN))


def test_an_error_comes_as_text_and_is_not_unpickled(bad_home: Home, tmp_path: Path) -> None:
    made = tmp_path / "made"
    evil = base64.b64encode(cloudpickle.dumps(Evil(made))).decode()
    error = json.dumps({"text": "Traceback\nKeyError: 'gone'\n", "error": evil}).encode()
    left(bad_home, "far:slurm", b"", error)
    run = find(Session(bad_home), RUN)
    with pytest.raises(CallFailed, match="KeyError: 'gone'") as failed:
        value_here(run)
    assert (failed.value.__cause__, made.exists()) == (None, False)


@pytest.mark.parametrize("error", [b"", b"[]", b"\x80", b"{}", b'{"text": 1, "error": 2}', cloudpickle.dumps(fails)])
def test_an_error_that_is_none_is_still_a_failure_in_words(bad_home: Home, error: bytes) -> None:
    left(bad_home, "far:slurm", b"", error)
    with pytest.raises(CallFailed, match=f"rank 0 of {RUN} failed"):
        value_here(find(Session(bad_home), RUN))
