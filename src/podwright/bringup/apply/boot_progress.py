"""How far each host of a pod is on its way from a box to a system, by what the netboot server saw of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.netboot import NetbootPlaces, hyphens, machines

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

STATES = ("absent", "seen", "booting", "installing", "installed", "running")
"""In their order: a host goes from one to the next, and back to `booting` or `installed` when it boots again."""
# What a request shows of the host that makes it, by how its path begins.
_SHOWS = {
    "/mac/": "booting",
    "/installer/": "installing",
    "/files/": "installing",
    "/files/image": "booting",
    "/hosts/": "booting",
    "/answers/": "installing",
    "/done/": "installed",
    "/running": "running",
}


@dataclass(frozen=True)
class NodeState:
    """A host, or a machine that nobody knows yet."""

    state: str
    mac: str | None = None
    address: str | None = None
    since: str | None = None


@dataclass(frozen=True)
class NodesResult:
    """Every host of a pod, then machines that are none of them, by their hardware address."""

    hosts: Mapping[str, NodeState]

    def as_json(self) -> dict[str, Any]:
        """Return what `pod nodes --json` prints."""
        return {"hosts": {name: asdict(host) for name, host in self.hosts.items()}}


def question(places: NetbootPlaces) -> str:
    """Return the line of shell by which the server says what it saw: leases, requests, and who is done."""
    shown = (f"cat {places.leases}", f"cat {places.log}", f"ls {places.root}/done")
    return "; echo ---; ".join(f"{each} 2>/dev/null" for each in shown) + "; true"


def nodes_of(site: Site, answer: str) -> NodesResult:
    """Return how far hosts are by what the server said."""
    leases, requests, done = answer.split("---\n")
    return NodesResult(node_states(site, leases, requests, done.split()))


def node_states(site: Site, leases: str, requests: str, done: Iterable[str]) -> dict[str, NodeState]:
    """Return every host with its state, then machines that are none of them, by their hardware address.

    `leases`: dnsmasq's file. `requests`: the server's log. `done`: names of the files that hosts put there.
    """
    leased = dict(_leases(leases))
    asked = _last_requests(requests)
    finished = {name.removesuffix(".ipxe") for name in done}
    states: dict[str, NodeState] = {}
    known = {host: mac for mac, host in machines(site).items()}
    for host, address in site.addresses.items():
        mac = known.get(host)
        if mac is None:
            states[host] = NodeState("unknown", None, address)
            continue
        state, since = _state(address, mac in leased, asked, hyphens(mac) in finished)
        states[host] = NodeState(state, mac, address, since)
    for mac, address in leased.items():
        if mac not in known.values():
            states[mac] = NodeState("discovered", mac, address)
    return states


def _state(address: str, leased: bool, asked: Mapping[str, tuple[str, str]], done: bool) -> tuple[str, str | None]:
    first = "seen" if leased else "absent"
    state, since = asked.get(address, (first, None))
    return ("installed" if done and state != "running" else state), since


def _leases(text: str) -> Iterable[tuple[str, str]]:
    """Yield hardware address and address of each lease: `EXPIRES MAC ADDRESS NAME CLIENT`."""
    for line in text.splitlines():
        parts = line.split()
        if len(parts) >= 4 and parts[1].count(":") == 5:
            yield parts[1].lower(), parts[2]


def _last_requests(text: str) -> dict[str, tuple[str, str]]:
    """Return what the last telling request of each address shows: `TIME ADDRESS METHOD PATH STATUS BYTES`."""
    last: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) != 6 or not parts[4].startswith("2"):
            continue
        for begin, state in _SHOWS.items():
            if parts[3].startswith(begin):
                last[parts[1]] = state, parts[0]
    return last
