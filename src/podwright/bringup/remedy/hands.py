"""What the unit does with a node: by the scheduler's own drain, and by the hands that are on the pod's hosts."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.bringup.apply.changes import ChangeId, begin
from podwright.bringup.apply.rolling import Drain, KubernetesDrain, SlurmDrain
from podwright.bringup.remedy.policy import Act, RemedyNode
from podwright.bringup.remedy.unit import Outcome
from podwright.spec.problems import Refusal, refuse

REMEDY, SERVICE = "podwright: remedy", "podwright: needs service"
# What the health check of nodes writes of GPUs when it drains one: it saw first what the alert says.
_HEALTH = ("podwright: GPU ", "podwright: the driver shows ")
_CALL_S, _LOOK_S = 3600.0, 20.0
_NOBODYS = ChangeId("-")


@dataclass(frozen=True)
class RemedyChange(ChangeId):
    """The id of a drain of ours, with what is wrong; the health check's word on a GPU counts as ours."""

    why: str = ""
    words: str = REMEDY

    @property
    def reason(self) -> str:
        """Return what the node shows."""
        return f"{self.words} {self.own}: {self.why}" if self.why else f"{self.words} {self.own}"

    def is_ours(self, reason: str) -> bool:
        """Return whether a node was drained by this unit or by the health check, and not by a person."""
        if reason.startswith(_HEALTH):
            return True
        for words in (REMEDY, SERVICE):
            if reason.startswith(f"{words} "):
                return self.knows(reason.removeprefix(f"{words} ").split(":")[0].strip())
        return False


@dataclass(frozen=True)
class HandAddress:
    """Where a host's hand is, and by what it and we are known."""

    place: str
    name: str = ""
    authority: str = ""
    token: str = ""


class _NamedConnection(http.client.HTTPSConnection):
    """Reaches a host by its address, and wants the name that all of a pod's certificates have."""

    def __init__(self, address: HandAddress, timeout_s: float) -> None:
        host, _, port = address.place.rpartition(":")
        self._name, self._context_of = address.name, ssl.create_default_context(cafile=address.authority)
        super().__init__(host.strip("[]"), int(port), timeout=timeout_s, context=self._context_of)

    def connect(self) -> None:
        """Connect, and shake hands under the pod's name."""
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._context_of.wrap_socket(plain, server_hostname=self._name)


def ask(address: HandAddress, message: Mapping[str, Any], timeout_s: float = _CALL_S) -> dict[str, Any]:
    """Return what a hand answers; refused where it is not reached, or could not do it."""
    connection: http.client.HTTPConnection
    if address.authority:
        connection = _NamedConnection(address, timeout_s)
    else:
        host, _, port = address.place.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
    try:
        headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
        connection.request("POST", "/act", json.dumps(dict(message)).encode(), headers)
        answer = connection.getresponse()
        said = json.loads(answer.read(1 << 20))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise refuse(f"{address.place}: {error}", exit_code=3) from None
    finally:
        connection.close()
    if answer.status != 200 or not isinstance(said, dict):
        raise refuse(f"{address.place}: {_error(said) or answer.status}")
    return said


def _error(said: object) -> str:
    return str(said.get("error", "")) if isinstance(said, dict) else ""


@dataclass(frozen=True)
class SchedulerPlace:
    """One scheduler: its drain, the host whose hand knows its commands, and its nodes."""

    kind: str
    host: str
    members: frozenset[str]


_DRAINS: Mapping[str, type[Drain]] = {"slurm": SlurmDrain, "kubernetes": KubernetesDrain}


@dataclass(frozen=True)
class RemedyHands:
    """Acts on nodes of a pod; `folder` has the ids of drains."""

    hands: Mapping[str, HandAddress]
    schedulers: tuple[SchedulerPlace, ...]
    folder: Path
    boot_s: float = 1800.0
    """How long a host may take to start."""
    every_s: float = 5.0
    ask: Callable[[HandAddress, Mapping[str, Any], float], dict[str, Any]] = ask

    def __call__(self, act: Act, node: RemedyNode) -> Outcome:
        """Do an act, and return what came of it."""
        return _DOINGS[act](self, node)

    def drain(self, node: RemedyNode) -> Outcome:
        """Drain it, and wait until nothing runs there; a node that somebody else has drained is left alone."""
        part = self._drain(node, begin(self._drains, time.time()))
        closed = part.closed([node.host])
        if closed:
            return Outcome("foreign", closed[node.host])
        part.drain([node.host])
        return Outcome("done")

    def mend(self, node: RemedyNode) -> Outcome:
        """Reset its GPUs or start it anew, when nothing runs there for certain."""
        part = self._known(node)
        closed = part.closed([node.host])
        if closed:
            return Outcome("foreign", closed[node.host])
        part.drain([node.host])
        if node.cure == "reboot":
            return self._reboot(node.host)
        return Outcome("done", str(self._tell(node.host, {"verb": "reset"}).get("said", "")))

    def check(self, node: RemedyNode) -> Outcome:
        """Look whether the node may take jobs, as its own health check does."""
        reason = str(self._tell(node.host, {"verb": "check"}).get("reason", ""))
        return Outcome("failed", reason) if reason else Outcome("done")

    def resume(self, node: RemedyNode) -> Outcome:
        """Give it back, unless somebody else has drained it meanwhile."""
        closed = self._known(node).resume([node.host])
        return Outcome("foreign", closed[node.host]) if closed else Outcome("done")

    def serve(self, node: RemedyNode) -> Outcome:
        """Leave it drained, with the reason that somebody must see to it."""
        part = self._drain(node, begin(self._drains, time.time()), SERVICE)
        closed = part.closed([node.host])
        if closed:
            return Outcome("foreign", closed[node.host])
        part.drain([node.host])
        return Outcome("done")

    def look(self, node: RemedyNode) -> Outcome:
        """Look whether somebody has opened it."""
        is_closed = self._part(node, _NOBODYS).closed([node.host])
        return Outcome(None) if is_closed else Outcome("opened")

    @property
    def _drains(self) -> Path:
        return self.folder / "drains.jsonl"

    def _known(self, node: RemedyNode) -> Drain:
        """Return the drain that knows all ids of ours; a node that is open already would get the newest."""
        return self._drain(node, begin(self._drains, time.time()))

    def _drain(self, node: RemedyNode, change: ChangeId, words: str = REMEDY) -> Drain:
        return self._part(node, RemedyChange(change.own, change.earlier, node.why, words))

    def _part(self, node: RemedyNode, change: ChangeId) -> Drain:
        for place in self.schedulers:
            if node.host in place.members:
                shell = _Shell(self, place.host)
                return _DRAINS[place.kind](shell, change, every_s=self.every_s)
        raise refuse(f"{node.host} is no scheduler's node")

    def _reboot(self, host: str) -> Outcome:
        before = self._tell(host, {"verb": "boot"})["boot"]
        self._tell(host, {"verb": "reboot"})
        until_s = time.monotonic() + self.boot_s
        while time.monotonic() < until_s:
            time.sleep(self.every_s)
            try:
                if self._tell(host, {"verb": "boot"}, _LOOK_S)["boot"] != before:
                    return Outcome("done")
            except Refusal:
                continue
        return Outcome("failed", f"it did not come back within {self.boot_s:.0f} s")

    def _tell(self, host: str, message: Mapping[str, Any], timeout_s: float = _CALL_S) -> dict[str, Any]:
        if host not in self.hands:
            raise refuse(f"{host} has no hand")
        return self.ask(self.hands[host], message, timeout_s)

    def line(self, host: str, line: str) -> str:
        """Have a line of a scheduler's commands run on a host; return what it printed."""
        return str(self._tell(host, {"verb": "line", "line": line}).get("said", ""))


@dataclass(frozen=True)
class _Shell:
    hands: RemedyHands
    host: str

    def __call__(self, line: str) -> str:
        return self.hands.line(self.host, line)


_DOINGS: Mapping[Act, Callable[[RemedyHands, RemedyNode], Outcome]] = {
    "drain": RemedyHands.drain,
    "mend": RemedyHands.mend,
    "check": RemedyHands.check,
    "resume": RemedyHands.resume,
    "serve": RemedyHands.serve,
    "look": RemedyHands.look,
}
