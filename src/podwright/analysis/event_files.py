"""Scalars of TensorBoard's event files, read and written: records with checksums (TFRecord) of messages of protobuf.

Only what scalars need is read: of Event `wall_time` 1, `step` 2 and `summary` 5; of Summary `value` 1; of a value its
`tag` 1, `simple_value` 2 and `tensor` 8; of a tensor its content 4, `float_val` 5 or `double_val` 6. A run's program
wrote the files, so that any byte may stand anywhere: what does not fit raises ValueError.
"""

import math
import struct
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO, NamedTuple

MAX_RECORD_BYTES = 1 << 20
"""A longer record holds pictures or a graph, and is passed over."""
MAX_FILE_BYTES = 32 << 20
"""Of records that are read: checking them takes a second for ten million bytes."""
LARGEST = 1 << 50
MAX_TAG_CHARS = 200
_DOUBLE = 2
"""The number of a tensor's type whose content is eight bytes a value; any other we take as four."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Field = tuple[int, int | bytes]


class Scalar(NamedTuple):
    """One value of a tag."""

    t: float
    step: int
    tag: str
    value: float


def scalars(file: BinaryIO) -> Iterator[Scalar]:
    """Yield the scalars of an event file as they come; a last record that is still being written is not there yet."""
    for record in records(file):
        yield from scalars_of(record)


def records(file: BinaryIO, max_bytes: int = MAX_FILE_BYTES) -> Iterator[bytes]:
    """Yield what the records hold; ValueError where a checksum says that it is not what was written."""
    read = 0
    while len(head := file.read(12)) == 12:
        size, check = struct.unpack("<QI", head)
        if _masked(head[:8]) != check:
            raise ValueError("a record is damaged")
        if size > MAX_RECORD_BYTES:
            file.seek(min(size, LARGEST) + 4, 1)
            continue
        read += size
        if read > max_bytes:
            raise ValueError(f"only its first {max_bytes >> 20} MiB of records are read")
        data = file.read(size + 4)
        if len(data) < size + 4:
            return
        if _masked(data[:size]) != struct.unpack("<I", data[size:])[0]:
            raise ValueError("a record is damaged")
        yield data[:size]


@cache
def _table() -> tuple[int, ...]:
    """Return the table of CRC-32C, byte by byte."""
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return tuple(rows)


def crc32c(data: bytes) -> int:
    """Return the checksum that such files use (Castagnoli)."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def scalars_of(event: bytes) -> Iterator[Scalar]:
    """Yield the scalars of one record."""
    t, step = 0.0, 0
    summaries = []
    for number, value in _fields(event):
        if number == 1 and isinstance(value, bytes) and len(value) == 8:
            t = struct.unpack("<d", value)[0]
        elif number == 2 and isinstance(value, int):
            step = value - (1 << 64) * (value >> 63)
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in _fields(summary):
            if number == 1 and isinstance(value, bytes) and (named := _value(value)):
                yield Scalar(t, step, *named)


def _value(message: bytes) -> tuple[str, float] | None:
    """Return the tag and its number; None for a picture, a text or a histogram."""
    tag, number_read = "", None
    for number, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8", "replace")[:MAX_TAG_CHARS]
        elif number == 2 and len(value) == 4:
            number_read = struct.unpack("<f", value)[0]
        elif number == 8:
            number_read = _tensor(value)
    if not tag or number_read is None:
        return None
    return tag, number_read


def _tensor(message: bytes) -> float | None:
    """Return the number of a tensor that holds a single one."""
    kind, content = 0, {}
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif isinstance(value, bytes) and number in (4, 5, 6):
            content[number] = value
    form = "<d" if kind == _DOUBLE else "<f"
    for data in content.values():
        if len(data) == struct.calcsize(form):
            return float(struct.unpack(form, data)[0])
    return None


def _fields(message: bytes) -> Iterator[Field]:
    """Yield (number, value) of the fields of a message; a value is a whole number or bytes."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            number, at = _varint(message, at)
            yield key >> 3, number
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _varint(message, at)
        if size is None or at + size > end:
            raise ValueError("a record has another form")
        yield key >> 3, message[at : at + size]
        at += size


def file_head(t: float) -> bytes:
    """Return the record that an event file begins with."""
    return _record(_written(1, struct.pack("<d", t), _FIXED64) + _written(3, b"brain.Event:2"))


def scalar_record(scalar: Scalar) -> bytes:
    """Return one value as a record; such files hold four bytes of it."""
    value = _written(1, scalar.tag.encode("utf-8", "replace")) + _written(2, four_bytes(scalar.value), _FIXED32)
    step = bytes([2 << 3]) + _number(scalar.step % (1 << 64))
    return _record(_written(1, struct.pack("<d", scalar.t), _FIXED64) + step + _written(5, _written(1, value)))


def four_bytes(value: float) -> bytes:
    """Return a number in the four bytes that it has in such a file; one beyond them is infinite there."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return b"".join([head, struct.pack("<I", _masked(head)), data, struct.pack("<I", _masked(data))])


def _written(number: int, data: bytes, kind: int = _BYTES) -> bytes:
    size = _number(len(data)) if kind == _BYTES else b""
    return bytes([number << 3 | kind]) + size + data


def _number(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (1 << 64) - 1, at
    raise ValueError("a record has another form")
