"""Ports of InfiniBand and RoCE cards, out of /sys: state, speed, errors, and how they bear congestion."""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, Optional

from ...pilot.sensors.hardware import ib_ports
from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import read_text
from ..page import Labels, MetricSample

# InfiniBand counts data in words of four bytes.
_WORD_BYTES = 4
_BITS = 8
_PLAIN = (
    ("received_bytes_total", "port_rcv_data", _WORD_BYTES),
    ("sent_bytes_total", "port_xmit_data", _WORD_BYTES),
    ("wait_ticks_total", "port_xmit_wait", 1),
    ("link_downed_total", "link_downed", 1),
    ("link_recovered_total", "link_error_recovery", 1),
)
_ERRORS = (
    ("symbol", "counters/symbol_error"),
    ("received", "counters/port_rcv_errors"),
    ("received_remote", "counters/port_rcv_remote_physical_errors"),
    ("send_discarded", "counters/port_xmit_discards"),
    ("integrity", "counters/local_link_integrity_errors"),
    ("overrun", "counters/excessive_buffer_overrun_errors"),
    ("out_of_sequence", "hw_counters/out_of_sequence"),
    ("packet_sequence", "hw_counters/packet_seq_err"),
    ("acknowledge_timeout", "hw_counters/local_ack_timeout_err"),
    ("not_ready_retries", "hw_counters/rnr_nak_retry_err"),
    ("adaptive_retransmission", "hw_counters/roce_adp_retrans"),
)
_ECN = (
    ("marked", "np_ecn_marked_roce_packets"),
    ("notice_sent", "np_cnp_sent"),
    ("notice_handled", "rp_cnp_handled"),
    ("notice_ignored", "rp_cnp_ignored"),
)


def port_samples(scope: Scope) -> List[MetricSample]:
    """Return what all ports say of themselves; a counter that a card lacks is left out."""
    samples: List[MetricSample] = []
    for port, folder in ib_ports(scope):
        samples += _samples(port, folder)
    return samples


def _samples(name: str, folder: str) -> Iterator[MetricSample]:
    device, _, port = name.rpartition("/")
    labels: Labels = (("device", device), ("port", port))
    yield MetricSample("podwright_port_info", (*labels, *_about(folder).items()), 1.0)
    state = read_text(folder + "/state").strip()
    if state:
        yield MetricSample("podwright_port_up", labels, float(state.endswith("ACTIVE")))
    rate = read_text(folder + "/rate").split()
    if rate:
        yield MetricSample("podwright_port_rate_bytes_per_second", labels, float(rate[0]) * 1e9 / _BITS)
    for what, file, factor in _PLAIN:
        value = _number("%s/counters/%s" % (folder, file))
        if value is not None:
            yield MetricSample("podwright_port_" + what, labels, value * factor)
    yield from _by_kind(
        "podwright_port_errors_total", "error", labels, {word: "%s/%s" % (folder, file) for word, file in _ERRORS}
    )
    yield from _by_kind(
        "podwright_port_ecn_total", "event", labels, {word: "%s/hw_counters/%s" % (folder, file) for word, file in _ECN}
    )


def _by_kind(name: str, label: str, labels: Labels, files: Dict[str, str]) -> Iterator[MetricSample]:
    for word, path in files.items():
        value = _number(path)
        if value is not None:
            yield MetricSample(name, (*labels, (label, word)), value)


def _about(folder: str) -> Dict[str, str]:
    device = os.path.dirname(os.path.dirname(folder))
    return {
        "link_layer": read_text(folder + "/link_layer").strip(),
        "board": read_text(device + "/board_id").strip(),
        "firmware": read_text(device + "/fw_ver").strip(),
    }


def _number(path: str) -> Optional[float]:
    text = read_text(path).strip()
    return float(text) if text.isascii() and text.isdigit() else None
