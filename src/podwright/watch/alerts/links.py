"""Alerts about links of the fabrics, which the design says how fast they should be."""

from __future__ import annotations

from podwright.watch.alerts.alert import CRITICAL, LINK, LOOK_LINK, WARNING, Alert

# Each port as the design cables it: how fast it should be, and the switch it leads to.
_DESIGN = "podwright_port_design_bytes_per_second"
_BY_PORT = "on (host, device, port)"
_UP_WITH_LEAF = f"(podwright_port_up * {_BY_PORT} group_left (leaf) ({_DESIGN} > bool 0))"
LINKS = (
    Alert(
        "LeafDown",
        f"count by (leaf) ({_UP_WITH_LEAF} == 0) == count by (leaf) ({_DESIGN}) > 1",
        "1m",
        CRITICAL,
        "all {{ $value }} links of {{ $labels.leaf }} are down",
        "the switch is off, or restarts",
        "podwright design POD --json",
    ),
    Alert(
        "LinkDown",
        f"{_UP_WITH_LEAF} == 0",
        "2m",
        CRITICAL,
        f"{LINK} is down",
        "its cable, the port of {{ $labels.leaf }}, or the subnet manager",
        LOOK_LINK,
        remedy="link",
    ),
    Alert(
        "LinkSlow",
        f"podwright_port_rate_bytes_per_second < {_BY_PORT} group_left (leaf) {_DESIGN}"
        f" and {_BY_PORT} podwright_port_up == 1",
        "5m",
        WARNING,
        f"{LINK} runs at {{{{ $value | humanize }}}}B/s, slower than the design says",
        "a cable that is not of this speed, or lanes that failed",
        LOOK_LINK,
    ),
    # Azure's health agent: more than three in three hours, of either.
    Alert(
        "LinkFlapping",
        "increase(podwright_port_link_downed_total[3h]) > 3 or increase(podwright_port_link_recovered_total[3h]) > 3",
        "",
        WARNING,
        f"{LINK} goes down and comes back",
        "a cable or transceiver that is about to fail",
        LOOK_LINK,
    ),
    Alert(
        "PortFirmwareDiffers",
        'podwright_port_info{firmware!=""} unless on (board, firmware)'
        ' topk by (board) (1, count by (board, firmware) (podwright_port_info{firmware!=""}))',
        "1h",
        WARNING,
        f"{LINK} has firmware {{{{ $labels.firmware }}}}, most cards of its kind another",
        "it was replaced, or away when the others were brought up to date",
        "podwright pod firmware POD --limit {{ $labels.host }}",
    ),
    # A pause of a priority is how RoCE bears a full queue for a moment; a tenth of the time is a queue that stays full.
    Alert(
        "LinkPaused",
        "rate(podwright_port_pause_seconds_total[5m]) > 0.1",
        "10m",
        WARNING,
        f"{LINK} is paused {{{{ $value | humanizePercentage }}}} of the time, priority {{{{ $labels.priority }}}}",
        "a receiver slower than its senders, or a switch whose PFC and ECN are not those of the hosts",
        "ssh {{ $labels.host }} ethtool -S {{ $labels.interface }}",
    ),
    Alert(
        "LinkErrors",
        "increase(podwright_port_errors_total[15m]) > 100",
        "15m",
        WARNING,
        f"{LINK} has errors: {{{{ $labels.error }}}}",
        "a cable or transceiver that is about to fail",
        "ssh {{ $labels.host }} perfquery -x",
    ),
)
