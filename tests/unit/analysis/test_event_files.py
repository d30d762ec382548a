"""TensorBoard's event files: what is read of them, which name wins, and what a hostile one does."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.analysis.event_files import MAX_RECORD_BYTES, Scalar, crc32c, scalars
from podwright.analysis.reported import CurvePoint, Told, summed_up
from podwright.reading.event_folder import beside, values_of_event_files
from tests.fixtures.tensorboard import HEAD, field, record, simple, tensor

# Not by our own encoder: the length and its checksum that files of TensorBoard begin with.
PUBLISHED = bytes.fromhex("1800000000000000a37f4b22")


def test_the_checksum_is_castagnolis() -> None:
    """The check value of CRC-32C, and the checksum of length 24 as every event file begins with it."""
    assert crc32c(b"123456789") == 0xE3069283
    crc = crc32c(PUBLISHED[:8])
    assert struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF) == PUBLISHED[8:]


def test_scalars_of_both_forms() -> None:
    picture = record(field(1, 2.0) + field(5, field(1, field(1, b"image") + field(4, b"png"))))
    data = HEAD + simple(2.0, 1, "train/loss", 0.5) + picture + tensor(3.0, 2, "acc", 0.25)
    assert list(scalars(io.BytesIO(data))) == [Scalar(2.0, 1, "train/loss", 0.5), Scalar(3.0, 2, "acc", 0.25)]
    assert list(scalars(io.BytesIO(data[:-3]))) == [Scalar(2.0, 1, "train/loss", 0.5)]


def test_a_large_record_is_passed_over() -> None:
    data = record(bytes(MAX_RECORD_BYTES + 1)) + simple(2.0, 1, "loss", 0.5)
    assert [scalar.tag for scalar in scalars(io.BytesIO(data))] == ["loss"]


@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_are_scalars_or_a_value_error(noise: bytes, at: int) -> None:
    good = HEAD + simple(2.0, 1, "loss", 0.5)
    for data in (noise, record(noise), good[:at] + noise + good[at:]):
        with suppress(ValueError):
            assert all(isinstance(scalar, Scalar) for scalar in scalars(io.BytesIO(data)))


def write(folder: Path, path: str, data: bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)


def test_files_of_a_run_become_curves(tmp_path: Path) -> None:
    name = "events.out.tfevents.1.host"
    write(tmp_path, f"results/workdir/logs/{name}", HEAD + simple(2.0, 1, "Train/Loss", 0.5))
    write(tmp_path, f"results/workdir/logs/{name}.2", simple(3.0, 2, "Train/Loss", 0.25))
    write(tmp_path, f"checkpoints/train/{name}", simple(2.0, 1, "acc", 0.1) + simple(9.0, 2, "nan", float("nan")))
    write(tmp_path, f"checkpoints/val/{name}", simple(2.0, 1, "acc", 0.2) + b"\0" * 12)
    unread: list[str] = []
    told = summed_up(values_of_event_files(tmp_path, unread))
    assert {name: [point[1:] for point in points] for name, points in told.curves.items()} == {
        "train_acc": [(1.0, pytest.approx(0.1))],
        "val_acc": [(1.0, pytest.approx(0.2))],
        "train_loss": [(1.0, 0.5), (2.0, 0.25)],
    }
    assert unread == [f"{name}: a record is damaged"]


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    write(tmp_path, "else/events.out.tfevents.1", simple(2.0, 1, "loss", 0.5))
    (tmp_path / "run" / "results").mkdir(parents=True)
    (tmp_path / "run" / "results" / "logs").symlink_to(tmp_path / "else")
    (tmp_path / "run" / "results" / "x.tfevents.1").symlink_to(tmp_path / "else" / "events.out.tfevents.1")
    unread: list[str] = []
    assert summed_up(values_of_event_files(tmp_path / "run", unread)).curves == {}
    assert len(unread) == 1


def test_what_is_told_comes_first_and_a_guess_last() -> None:
    def curve(value: float) -> tuple[CurvePoint, ...]:
        return (CurvePoint(1.0, None, value),)

    told = Told({"loss": curve(1.0), "acc": curve(1.0)}, {"step": 3.0})
    more = Told({"loss": curve(2.0), "acc": curve(2.0), "lr": curve(2.0)})
    merged = beside(told, frozenset({"acc"}), more)
    assert {name: points[0].value for name, points in merged.curves.items()} == {"loss": 1.0, "acc": 2.0, "lr": 2.0}
    assert merged.progress == {"step": 3.0}
