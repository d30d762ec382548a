"""What the pilot and the rest of Podwright agree on: the order, events, result lines, join messages and frames.

Everything here is pure or reads a file it is given; clients import it too, so it must stay as small as the pilot.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import stat
import struct
import sys
import zlib
from fnmatch import filter as filter_names
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .system.numbers import whole_number as whole_number
from .system.plain_files import names_in, open_to_read

VERSION = 1
"""Of the order and the record. A pilot refuses an order of another version: both travel together, so it is a fault."""

Epoch = Tuple[int, int]
"""(engine restart, local retry). Compared as a tuple: a later attempt is always greater."""

EXIT_BAD_ORDER, EXIT_NO_PYTHON = 64, 69
EXIT_GIVEN_BACK, EXIT_FENCED, EXIT_FAILED, EXIT_STOPPED = 75, 76, 77, 143
"""How a pilot ends by its own will. A fault of its own ends with 1, as Python does: no outcome may look like that."""

EXITS = {
    "succeeded": 0,
    "failed": EXIT_FAILED,
    "terminated": EXIT_STOPPED,
    "given_back": EXIT_GIVEN_BACK,
    "fenced": EXIT_FENCED,
}
"""How a pilot leaves, by what became of its run."""

RANK_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
"""The variables of the torchrun contract. A program that finds them takes itself for one of several processes."""
WORKDIR = "results/workdir"
"""In a run's folder: what its ranks left in the folder that they started in."""

SEPARATOR = "\x1e"
FRAME_LIMIT_BYTES = 8 * 1024 - 1
FRAME_PIECE_BYTES = 64 * 1024
"""More than a piece of a record and the line before it: what inflates to more was not sent by a pilot."""
FRAME_NUMBERS = 1 << 40
"""No node, sequence or offset is this great: a frame that says so was not sent by a pilot."""
SERIES_BYTES = 128 * 1024 * 1024
"""Of the series of one rank: some two million lines whole, and years of thinned ones."""
GROWING_BYTES = 4 * 1024 * 1024 * 1024
"""Of any other file that grows in the record of a node: a month of events of eight ranks with values each second."""
SERIES_SUFFIX = ".series.jsonl"
CLOSED = "closed"
"""Beside a record that is written to its end."""
PORT_FIRST, PORT_SPAN, PORT_TRIES = 20000, 12000, 8

# The short keys of a line of the record and of a message between pilots; every other key is written out. An event has
# all of them but the values, and the fields of its kind beside them; a metrics sample has neither sequence nor kind.
KEY_TIME = "t"
"""Unix seconds."""
KEY_EPOCH = "e"
KEY_NODE = "n"
KEY_SEQUENCE = "q"
"""The number of an event within its pilot process, from 0: a gap or a double shows by it."""
KEY_KIND = "k"
KEY_VALUES = "v"
"""The values of a metrics sample, by metric name, or those of a line of a series."""
KEY_OF = "of"
"""How many lines that a rank reported one line of its series stands for, where it is more than one."""


SILENCE_S = 30.0
"""How long nothing is heard of a node before it is taken for lost."""


class Order(NamedTuple):
    """What the pilots of a run are to do: one file, the same for every node. Paths are relative to the file's folder.

    An empty `scratch` is a folder of the node's own, removed at the end; `mpi` are the words that start all ranks of an
    MPI program on this site, without them it is mpirun. `parent` is the folder of the matrix that the run is a point
    of, where a cancel of all points is marked. `rejoin_s` is how long, beyond the silence, a node that had joined may
    be away before the nodes are given back; None where the engine replaces single nodes: then it is `join_timeout_s`.

    `data` are the inputs that the pilots bring to their nodes, each with its `name`, its `manifest` (a file beside the
    order), the manifest's `sha256` and the `site` of its source; `cache` says where to (`path`, `bytes`): an empty path
    is beside the node's own scratch folders. With `loader` ranks can import `podwright_data` (pilot/data/loader).

    Where no engine does it, the pilot itself ends a run whose folder was gone for `gone_s`, and an attempt that takes
    more than `memory_bytes` on its node.

    `launcher` is `torchrun`, `mpi`, `ranks`, or `plain`: one process that knows of no others. `stdin` is a file of
    the code. `keep` are patterns of what is kept of the folder that ranks started in, all of it where there are none;
    None where there is no place to keep it.

    `nodes` train; `spares` more join them and wait, so that one of them can take the place of a node that is lost, or
    of one with a rank that is slower than the others by `replace_slow` (0.3: by 30 %).

    It holds no secret: those are named here and come through the environment; the join token has its own file.
    """

    run: str
    engine: str
    nodes: int
    ranks_per_node: int
    launcher: str
    command: List[str]
    folder: str
    scratch: str
    shared: bool
    bind: str
    checkpoint: str
    setup: List[str] = []  # noqa: RUF012 - nobody changes an order
    env: Dict[str, str] = {}  # noqa: RUF012 - nobody changes an order
    secrets: List[str] = []  # noqa: RUF012 - nobody changes an order
    gpus: int = 0
    rdma: bool = False
    retries: int = 0
    grace_s: float = 30.0
    time_limit_s: Optional[float] = None
    hang_after_s: Optional[float] = None
    join_timeout_s: float = 600.0
    rejoin_s: Optional[float] = None
    goal: Optional[Dict[str, Any]] = None
    code: Optional[Dict[str, str]] = None
    data: List[Dict[str, Any]] = []  # noqa: RUF012 - nobody changes an order
    cache: Optional[Dict[str, Any]] = None
    loader: bool = False
    hardware: Optional[Dict[str, Any]] = None
    mpi: List[str] = []  # noqa: RUF012 - nobody changes an order
    parent: str = ""
    virtual: bool = False
    spares: int = 0
    replace_slow: Optional[float] = None
    sample_s: float = 1.0
    beat_s: float = 2.0
    silence_s: float = SILENCE_S
    gone_s: Optional[float] = None
    memory_bytes: Optional[int] = None
    keep: Optional[List[str]] = None
    stdin: str = ""
    results: Dict[str, str] = {}  # noqa: RUF012 - nobody changes an order
    log_bytes: int = 64 * 1024 * 1024
    frames_bytes: int = 8 * 1024 * 1024
    version: int = VERSION

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def allocated(self) -> int:
        """Return how many nodes the run has: those that train and the spares, numbered from 0."""
        return self.nodes + self.spares

    def text(self) -> str:
        return field_lines(self._asdict())


def field_lines(row: Dict[str, Any]) -> str:
    """Return a JSON object with a line for each field: as easy to read as an indented one, and a tenth of the work."""
    lines = [f"  {json.dumps(name)}: {json.dumps(row[name])}" for name in sorted(row)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_order(path: str) -> Order:
    """Read an order; raise ValueError in words when the file is no order of this version."""
    with open(path, "rb") as file:
        return parse_order(file.read(), path)


def parse_order(data: bytes, path: str) -> Order:
    """Return the order that was read from a file."""
    row = json.loads(data)
    if not isinstance(row, dict) or row.get("version") != VERSION:
        raise ValueError(f"{path} is no order of version {VERSION}")
    unknown = set(row) - set(Order._fields)
    if unknown:
        raise ValueError(f"{path} has fields this pilot does not know: {', '.join(sorted(unknown))}")
    lacking = set(Order._fields) - set(Order._field_defaults) - set(row)
    if lacking:
        raise ValueError(f"{path} lacks {', '.join(sorted(lacking))}")
    return Order(**row)


def join_ports(run: str) -> List[int]:
    """Return the ports the leader of a run may listen on, in the order in which they are tried.

    They depend on the run alone: a member must find the leader that replaced a lost one without being told.
    """
    import hashlib  # OpenSSL behind it takes milliseconds, which clients that only read do not need

    digest = hashlib.sha256(run.encode()).digest()
    # Two bytes of the digest for each try.
    numbers = struct.unpack_from(f">{PORT_TRIES}H", digest)
    return [PORT_FIRST + number % PORT_SPAN for number in numbers]


def mac(key: bytes, *parts: object) -> str:
    """Return an HMAC over parts that cannot be shifted into each other."""
    import hashlib
    import hmac

    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def same_mac(a: str, b: str) -> bool:
    """Return whether two are the same, in a time that does not show where they differ."""
    import hmac

    return hmac.compare_digest(a.encode(), b.encode())


PROGRESS = "p"
"""Of a merged log: the stream of lines that show how far a line is that is still written over."""
OWN_TIME = ("spent.", "work_")
"""Names of what a program tells of its own time begin so: seconds by class since it began, and of a step's own work."""
WORKS = ("work_slowest_rank", "work_slowest_s", "work_s")
"""Which rank took longest for its own work of a step, how long, and how long the middle of the others did."""
SLOW_IN_A_ROW = 3
MIN_SLOWER = 0.1
"""By which part a rank is slower at least that is called slow: ranks that are well differ by less."""
MLLOG = b":::MLLOG "
OWN = b'{"podwright"'


def parse_result(line: bytes) -> Optional[Dict[str, Any]]:
    """Return the numbers a program reports by a line on stdout, as `{name: value}`; None for any other line.

    MLLOG lines become `{key: value}` with `mllog` naming the event, so that run_start and run_stop keep their meaning.
    """
    start = line.find(MLLOG)
    if start >= 0:
        return _mllog(line[start + len(MLLOG) :])
    start = line.find(OWN)
    if start < 0:
        return None
    row = parse_line(line[start:].strip()) or {}
    values = row.get("podwright")
    if not isinstance(values, dict):
        return None
    return {str(name): value for name, value in values.items() if is_number(value)} or None


def _mllog(raw: bytes) -> Optional[Dict[str, Any]]:
    row = parse_line(raw.strip())
    if not row or not isinstance(row.get("key"), str):
        return None
    values: Dict[str, Any] = {"mllog": row["key"]}
    if is_number(row.get("value")):
        values[row["key"]] = row["value"]
    if is_number(row.get("time_ms")):
        values["time_ms"] = row["time_ms"]
    return values


def goal_reached(goal: Mapping[str, Any], value: float) -> bool:
    """Return whether a value of the goal's metric reaches it; a goal has one of the bounds `at_least`, `at_most`."""
    least = goal.get("at_least")
    return bool(value <= goal["at_most"] if least is None else value >= least)


def is_number(value: object) -> bool:
    """Return whether a value read from JSON is a number that any reader can hold.

    NaN, infinity and endless integers are JSON in Python only; they would not survive another reader.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max


class SlowRank(NamedTuple):
    """A rank whose own work of a step takes longer than that of the others, by which part of it at least."""

    rank: int
    slower_by: float
    evidence: str


def slow_by_work(told: Sequence[Mapping[str, float]], least: float) -> Optional[SlowRank]:
    """Return the rank that was the slowest each of the last times, where it was so by that part at least.

    `told` are rows that have WORKS. In synchronous training all ranks have the same step time, which says nothing.
    """
    rank_name, slowest_name, others_name = WORKS
    last = told[-SLOW_IN_A_ROW:]
    rows = [(row[rank_name], row.get(slowest_name, 0.0), row.get(others_name, 0.0)) for row in last]
    if len(rows) < SLOW_IN_A_ROW or len({rank for rank, _, _ in rows}) > 1 or any(others <= 0 for _, _, others in rows):
        return None
    slower_by = min(slowest / others - 1 for _, slowest, others in rows)
    if slower_by < least:
        return None
    rank, slowest, others = rows[-1]
    times = f"{slowest:.3g} s of own work in a step, {others:.3g} s in the middle of the others"
    return SlowRank(int(rank), round(slower_by, 4), f"{times}, {SLOW_IN_A_ROW} times in a row")


class Frame(NamedTuple):
    """A piece of a record file on its way through a container's stdout."""

    node: int
    epoch: Epoch
    seq: int
    file: str
    offset: int
    data: bytes


def encode_frame(frame: Frame) -> Optional[str]:
    """Return the line of stdout for a frame, or None when its piece is too large and must be halved."""
    head = json.dumps({"f": frame.file, "o": frame.offset}).encode()
    payload = base64.b64encode(zlib.compress(head + b"\n" + frame.data, 6)).decode()
    origin = f"{frame.node} {frame.epoch[0]}.{frame.epoch[1]} {frame.seq}"
    line = f"{SEPARATOR}pw1 {origin} {frame_crc(origin, payload):08x} {payload}"
    return None if len(line) > FRAME_LIMIT_BYTES else line


def decode_frame(line: str) -> Optional[Frame]:
    """Return the frame in a line of a container's log; None for the ranks' own chatter and for a damaged frame."""
    start = line.find(SEPARATOR + "pw1 ")
    if start < 0:
        return None
    try:
        _, node, epoch, seq, crc, payload = line[start:].split()
        if len(payload) > FRAME_LIMIT_BYTES or frame_crc(f"{node} {epoch} {seq}", payload) != int(crc, 16):
            return None
        head, data = _inflate(base64.b64decode(payload)).split(b"\n", 1)
        names = json.loads(head)
        restart, retry = epoch.split(".")
        numbers = [whole_number(text) for text in (node, restart, retry, seq, str(names["o"]))]
        name = str(names["f"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
        return None
    valid = [number for number in numbers if number is not None and number < FRAME_NUMBERS]
    if len(valid) < len(numbers):
        return None
    return Frame(valid[0], (valid[1], valid[2]), valid[3], name, valid[4], data)


def _inflate(data: bytes) -> bytes:
    """Return what was deflated; ValueError for more than any piece holds, before it is made."""
    inflater = zlib.decompressobj()
    piece = inflater.decompress(data, FRAME_PIECE_BYTES)
    if not inflater.eof:
        raise ValueError("it is cut, or too large")
    return piece


def frame_crc(origin: str, payload: str) -> int:
    """Return a checksum over node, epoch and sequence too: a digit damaged on the way must not move a piece."""
    return zlib.crc32(f"{origin} {payload}".encode())


def node_name(hosts: Sequence[str], node: int) -> str:
    """Return what a node of a run is called, by the hosts of all of them in their order."""
    return node_names(dict(enumerate(hosts))).get(node, f"node{node}")


def node_names(hosts: Mapping[int, str]) -> Dict[int, str]:
    """Return what nodes are called everywhere: by the host where no other node of the run is on it, else `node1`."""
    times: Dict[str, int] = {}
    for host in hosts.values():
        times[host] = times.get(host, 0) + 1
    return {node: host if host and times[host] == 1 else f"node{node}" for node, host in hosts.items()}


def record_name(node: int, restart: int) -> str:
    """Return the name of the folder that one pilot process writes to: never shared, so no two writers meet."""
    return f"n{node}.r{restart}"


def parse_record_name(name: str) -> Optional[Tuple[int, int]]:
    """Return (node, restart) of a name that `record_name` gave, or None for any other."""
    head, _, tail = name.partition(".r")
    node, restart = whole_number(head[1:]), whole_number(tail)
    if head[:1] != "n" or node is None or restart is None:
        return None
    return node, restart


def series_name(rank: int) -> str:
    """Return the name of the file that holds all that a rank reported."""
    return f"rank{rank}{SERIES_SUFFIX}"


def parse_series_name(name: str) -> Optional[int]:
    """Return the rank of a name that `series_name` gave, or None for any other."""
    if not name.startswith("rank") or not name.endswith(SERIES_SUFFIX):
        return None
    return whole_number(name[len("rank") : -len(SERIES_SUFFIX)])


def series_files(folder: str) -> List[Tuple[int, str]]:
    """Return (rank, path) of every series that a pilot wrote into its folder, in the order of ranks."""
    ranks = [(parse_series_name(name), name) for name in names_in(folder)]
    return sorted((rank, os.path.join(folder, name)) for rank, name in ranks if rank is not None)


def record_folders(record: str) -> Iterator[Tuple[int, int, str]]:
    """Yield (node, restart, path) of every pilot that wrote into `record`, in that order."""
    writers = [(parse_record_name(name), name) for name in names_in(record)]
    for (node, restart), name in sorted((writer, name) for writer, name in writers if writer is not None):
        yield node, restart, os.path.join(record, name)


def leader_events(record: str) -> List[str]:
    """Return the events of each pilot that led the run, the oldest first."""
    return [os.path.join(path, "events.jsonl") for node, _, path in record_folders(record) if node == 0]


MAX_READ_BYTES = 1 << 20
"""The most that is read at once. A longer line was not written by a pilot, and is passed over."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def json_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line of a record file."""
    return _encode(row).encode() + b"\n"


def parse_line(raw: bytes) -> Optional[Dict[str, Any]]:
    """Return the JSON object in a line of a record file, or None for a torn or foreign line."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_piece(path: str, offset: int = 0) -> Tuple[bytes, int]:
    """Return what `piece_of` does. Whatever lies there that is no plain file has no lines, such as an endless pipe."""
    try:
        with open_to_read(path) as file:
            return piece_of(file, offset)
    except OSError:
        return b"", offset


def piece_of(file: BinaryIO, offset: int) -> Tuple[bytes, int]:
    """Return complete lines from `offset` on, and where the next reading starts: that is `offset` when nothing is new.

    A torn last line waits. A file that is shorter than `offset` was made again, and is read from its beginning.
    """
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        return b"", offset
    if offset > status.st_size:
        offset = 0
    start = file.seek(_after_hole(file.fileno(), offset, status.st_size))
    data = file.read(MAX_READ_BYTES)
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end], start + end
    if len(data) == MAX_READ_BYTES:
        return b"", start + len(data)
    return b"", offset


def _after_hole(file: int, offset: int, size: int) -> int:
    """Return where bytes lie from `offset` on: a file of terabytes may be made out of nothing."""
    if offset >= size:
        return offset
    try:
        return os.lseek(file, offset, os.SEEK_DATA)
    except OSError as error:
        # Nothing but a hole up to the end; or a file system that knows no holes, which shows by reading.
        return size if error.errno == errno.ENXIO else offset


def parse_lines(data: bytes) -> Iterator[Dict[str, Any]]:
    """Yield the JSON objects of some lines."""
    for line in data.splitlines():
        row = parse_line(line)
        if row is not None:
            yield row


def pieces(path: str) -> Iterator[bytes]:
    """Yield all whole lines that are there, piece by piece."""
    offset, before = 0, -1
    while offset != before:
        before = offset
        data, offset = read_piece(path, offset)
        yield data


def rows_of(path: str) -> Iterator[Dict[str, Any]]:
    """Yield the JSON objects of all whole lines that are there."""
    for data in pieces(path):
        yield from parse_lines(data)


def fits(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern fits the whole path, a folder it lies in, or any one part of it."""
    parts = path.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    candidates = [*folders, *parts]
    return any(filter_names(candidates, pattern.strip("/")) for pattern in patterns)
