"""A leader and the nodes that talk to it, made by hand: every input is a method call, time is a number."""

from __future__ import annotations

from typing import Any

from podwright.pilot.life.leader import Leader
from podwright.pilot.life.lease import Leases
from podwright.pilot.protocol import Order

START = 1_700_000_000.0


class FakeLink:
    """Records what the leader sends."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.alive = True

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def close(self) -> None:
        self.alive = False

    def kinds(self) -> list[str]:
        return [message["k"] for message in self.sent]


class Crowd:
    """A leader, its nodes, and the time they live in. It stands for the journal too."""

    def __init__(self, order: Order, leases: Leases, restart: int = 0) -> None:
        self.order = order
        self.t = 1000.0
        self.events: list[dict[str, Any]] = []
        self.links: dict[int, FakeLink] = {}
        self.restart, self.leases = restart, leases
        self.leader: Leader

    def now(self) -> float:
        return START + self.t

    def monotonic(self) -> float:
        return self.t

    def say(self, kind: str, **fields: Any) -> None:
        self.events.append({"k": kind, **fields})

    def begin(self) -> Crowd:
        self.leader = Leader(
            self.order,
            self.restart,
            "10.0.0.1",
            self.leases,
            self,  # type: ignore[arg-type]
            self.monotonic,
        )
        return self

    def join(self, node: int, **facts: Any) -> str | None:
        link = FakeLink()
        own = {"node": node, "host": f"host{node}", "restart": 0, "instance": f"i{node}", "socket": f"s{node}"}
        refused = self.leader.join({**own, "idle": True, **facts}, link)
        if refused is None:
            self.links[node] = link
        return refused

    def go(self) -> Crowd:
        for node in range(self.order.allocated):
            assert self.join(node) is None
        self.leader.tick()
        assert self.leader.phase == "run"
        return self

    def hear(self, node: int, kind: str, **fields: Any) -> None:
        self.leader.hear(node, {"k": kind, "e": self.leader.epoch, **fields})

    def everyone(self, kind: str, **fields: Any) -> None:
        for node in range(self.order.nodes):
            self.hear(node, kind, **fields)

    def after(self, seconds: float, quiet: tuple[int, ...] = ()) -> Crowd:
        """Time goes by in small steps; all but the quiet nodes are heard."""
        until = self.t + seconds
        while self.t < until:
            self.t = min(self.t + 0.5, until)
            for node, member in self.leader.members.items():
                if node not in quiet and member.link.alive:
                    member.heard = self.t
            self.leader.tick()
        return self

    def fail(self, node: int, rank: int | None = 1, **fields: Any) -> None:
        facts = {"rank": rank, "code": 1, "signal": None, "after_s": 41.0, "why": "exited with 1", "tail": ["boom"]}
        self.hear(node, "failed", **{**facts, **fields})

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [{name: event[name] for name in event if name != "k"} for event in self.events if event["k"] == kind]

    @property
    def end(self) -> dict[str, Any]:
        (end,) = self.said("end")
        return end


def go_of(link: FakeLink) -> dict[str, Any]:
    return [message for message in link.sent if message["k"] == "go"][-1]
