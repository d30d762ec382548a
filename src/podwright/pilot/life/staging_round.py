"""One round of staging as the leader sees it: which nodes bring data, and whether that is over."""

from __future__ import annotations

from typing import Iterable, List

from ..protocol import KEY_KIND
from .member import Member


class StageRound:
    """Nodes that were told of each other. A node that is gone or was replaced ends the round, and another begins."""

    def __init__(self, here: List[Member]) -> None:
        self._instances = [member.instance for member in here]
        peers = [(member.node, member.address, member.data_port) for member in here]
        for member in here:
            member.link.send({KEY_KIND: "stage", "peers": peers})

    def is_over(self, members: Iterable[Member], now: float, silence_s: float) -> bool:
        """Return whether all have their data, or not all are here any more; a node that is silent is not."""
        here = []
        for member in members:
            if now - member.heard > silence_s:
                member.link.close()
            if member.link.alive:
                here.append(member)
        return [member.instance for member in here] != self._instances or all(member.staged for member in here)
