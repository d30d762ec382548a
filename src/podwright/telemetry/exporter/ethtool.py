"""Pauses of RoCE ports by priority (PFC): cards tell them by ethtool's ioctl alone, and no file has them."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from typing import Callable, Dict, Iterator, List

from ...pilot.sensors.hardware import ib_ports
from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import names_in
from ..page import Labels, MetricSample

_IOCTL = 0x8946
_COUNT, _STRINGS, _VALUES = 0x37, 0x1B, 0x1D
_OF_STATISTICS, _NAME_BYTES, _MAX_STATISTICS = 1, 32, 8192
_PAUSE = re.compile(r"rx_prio(\d)_pause_duration")
_MICROSECOND = 1e-6
Ask = Callable[[str, bytes], bytes]


def asked(interface: str, request: bytes) -> bytes:
    """Return the kernel's answer to a request of ethtool about an interface; an OSError where it knows none."""
    answer = array.array("B", request)
    place, _ = answer.buffer_info()
    name = interface.encode()[:15].ljust(16, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket.fileno(), _IOCTL, struct.pack("16sP16x", name, place))
    return answer.tobytes()


def statistics(interface: str, ask: Ask = asked) -> Dict[str, int]:
    """Return what the driver of an interface counts, by the driver's own names."""
    head = struct.pack("=IIQI", _COUNT, 0, 1 << _OF_STATISTICS, 0)
    (count,) = struct.unpack("=I", ask(interface, head)[16:20])
    if not 0 < count <= _MAX_STATISTICS:
        return {}
    names = ask(interface, struct.pack("=III", _STRINGS, _OF_STATISTICS, count) + bytes(_NAME_BYTES * count))[12:]
    values = ask(interface, struct.pack("=II", _VALUES, count) + bytes(8 * count))[8:]
    numbers = struct.unpack("=%dQ" % count, values[: 8 * count])
    rows = (names[at : at + _NAME_BYTES] for at in range(0, _NAME_BYTES * count, _NAME_BYTES))
    return {row.split(b"\0")[0].decode("ascii", "replace"): number for row, number in zip(rows, numbers)}


def pause_samples(scope: Scope, ask: Ask = asked) -> List[MetricSample]:
    """Return how long each port of each card was paused, by priority; a card that counts none is left out."""
    samples: List[MetricSample] = []
    for port, folder in ib_ports(scope):
        device, _, number = port.rpartition("/")
        for interface in sorted(names_in(folder + "/../../device/net")):
            labels: Labels = (("device", device), ("port", number), ("interface", interface))
            samples += _pauses(labels, interface, ask)
    return samples


def _pauses(labels: Labels, interface: str, ask: Ask) -> Iterator[MetricSample]:
    try:
        found = statistics(interface, ask)
    except (OSError, struct.error):  # a driver that has no statistics
        return
    for name, value in sorted(found.items()):
        priority = _PAUSE.fullmatch(name)
        if priority is not None:
            row = (*labels, ("priority", priority[1]))
            yield MetricSample("podwright_port_pause_seconds_total", row, value * _MICROSECOND)
