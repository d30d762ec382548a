"""How a node stands to the others: node 0 leads, any other follows."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from ..protocol import (
    EXIT_BAD_ORDER,
    EXIT_FENCED,
    EXIT_GIVEN_BACK,
    EXIT_STOPPED,
    EXITS,
    KEY_EPOCH,
    KEY_KIND,
    read_order,
)
from ..system import links
from ..system.listener import Listener, Take, raise_file_limit
from ..system.loop import Loop
from ..system.node_identity import identify_node
from ..system.paths import Paths
from ..system.sealed import order_path
from .checkpoint import CheckpointWatch
from .ended import final_state, ranks_ended_well
from .leader import Leader
from .node import Node, Role

QUICK_RECONNECT_S, RECONNECT_S = 0.05, 0.4
QUICK_TRIES = 40
"""A leader that is only a little late is found at once; one that is away long is not asked all the time."""


class OwnLink:
    """The leader's line to its own node: the same messages, without a socket."""

    alive = True

    def __init__(self, loop: Loop, take: Any) -> None:
        self._loop, self._take = loop, take

    def send(self, message: Dict[str, Any]) -> None:
        self._loop.call_soon(lambda: self._take(message))

    def close(self) -> None:
        pass


class Leading:
    """Node 0: its own ranks, and the leader of all."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._signal_sent = False
        order, identity = node.order, node.identity
        self.leader = Leader(order, identity.restart, identity.leader, node.leases, node.journal)
        self.leader.checkpoints = CheckpointWatch(node.paths.checkpoint, node.journal.now())
        self.leader.keeping = node.keeping
        record, count = os.path.dirname(node.paths.record), order.ranks_per_node
        self.leader.has_ended = lambda member, epoch: ranks_ended_well(
            record, member.node, member.restart, epoch, count
        )
        self._listener: Optional[Listener] = None
        if order.allocated > 1:
            raise_file_limit()
            self._listener = Listener(
                node.loop, "join", links.listen(order.bind, order.run), self._missing, self._greet
            )
        self.leader.join({**node.facts(), "address": identity.leader}, OwnLink(node.loop, node.take))

    def _missing(self) -> int:
        """Return how many nodes may come yet."""
        return self._node.order.allocated - len(self.leader.members.here)

    def _greet(self, sock: socket.socket) -> Take:
        greeting = links.Greeting(self._node.token, self._node.instance)
        links.say(sock, greeting.challenge)
        return lambda line: self._welcome(sock, greeting, line)

    def _welcome(self, sock: socket.socket, greeting: links.Greeting, line: bytes) -> None:
        """Believe a node that has the token; what follows is no stranger's any more, and a fault there is our own."""
        welcome, key, facts = greeting.check(line)
        links.say(sock, welcome)
        link = links.Link(sock, key, "leader")
        self._node.loop.call_soon(lambda: self._enter(link, facts))

    def _enter(self, link: links.Link, facts: Dict[str, Any]) -> None:
        refused = self.leader.join({**facts, "address": link.address}, link)
        if refused:
            link.send({KEY_KIND: "refused", "why": refused})
            link.close()
            return
        number = int(facts["node"])
        self._node.loop.watch(link.sock, lambda: self._hear(number, link))

    def _hear(self, number: int, link: links.Link) -> None:
        for message in link.receive():
            if self.leader.members[number].link is link:
                self.leader.hear(number, message)
        if not link.alive:
            self._node.loop.forget(link.sock)
            link.sock.close()

    def tell(self, message: Dict[str, Any]) -> None:
        self.leader.hear(0, {**message, KEY_EPOCH: self._node.epoch})

    def tick(self) -> None:
        node = self._node
        node.report_ranks(self)
        if node.signalled and not self._signal_sent:
            self._signal_sent = True
            self.leader.terminate(f"stopped by {node.signalled}")
        if self.leader.is_failing:
            self._heed_cancel()
        self.leader.members[0].heard = time.monotonic()
        self.leader.tick()
        if self.leader.exit_code is not None:
            node.exit_code = self.leader.exit_code

    def beat(self) -> None:
        self.tell(self._node.pulse())
        self._heed_cancel()
        if os.path.exists(self._node.paths.yield_mark):
            self.leader.give_back("its slice of time is over")
        self.leader.beat()
        self._node.word.checkpoint_at = self.leader.checkpoints.at

    def _heed_cancel(self) -> None:
        """Look for a cancel by file: its signal may have come before a pilot could hear it, or reached a rank first."""
        if self._node.paths.is_cancelled():
            self.leader.terminate("cancelled")

    def close(self) -> None:
        for member in self.leader.members.values():
            member.link.close()
        if self._listener is not None:
            self._listener.close()


class Following:
    """Any other node: keeps a link to the leader, whichever process that is now."""

    def __init__(self, node: Node, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._node, self._monotonic = node, monotonic
        self._link: Optional[links.Link] = None
        self._leader = ""
        self._heard = self._alone_since = self._monotonic()
        self._trying = False
        self._try_at = 0.0
        self._tries = 0
        self._signal_sent = False
        self._connect()

    def _connect(self) -> None:
        self._trying = True
        facts, self._tries = self._node.facts(), self._tries + 1
        try:
            threading.Thread(target=self._try, args=(facts,), daemon=True).start()
        except RuntimeError:  # no thread is to be had just now
            self._missed()

    def _try(self, facts: Dict[str, Any]) -> None:
        """Look for the leader, in a thread: a cut network makes a try wait, and the ranks must be heard meanwhile."""
        node = self._node
        try:
            link, instance = links.find_leader(node.identity.leader, node.order.run, node.token, facts)
        except Exception:  # whatever it is, the next try must come
            node.loop.call_soon(self._missed)
            return
        node.loop.call_soon(lambda: self._linked(link, instance, bool(facts["idle"])))

    def _missed(self) -> None:
        self._trying = False
        wait_s = QUICK_RECONNECT_S if self._tries < QUICK_TRIES else RECONNECT_S
        self._try_at = self._monotonic() + wait_s

    def _linked(self, link: links.Link, instance: str, said_idle: bool) -> None:
        """Take up a link to a leader; ranks that belong to one that is gone have no attempt any more."""
        self._trying = False
        # The ranks were ended while the leader was being looked for: what it heard is not true any more.
        if said_idle == self._node.ranks.running:
            link.close()
            return
        if self._leader and instance != self._leader and self._node.ranks.running:
            self._node.end_ranks()
            link.send({KEY_KIND: "stopped", KEY_EPOCH: self._node.epoch})
        elif self._leader:
            self._node.say_again()
        self._link, self._leader, self._heard = link, instance, self._monotonic()
        self._node.loop.watch(link.sock, self._hear)

    def _hear(self) -> None:
        assert self._link is not None
        for message in self._link.receive():
            self._heard = self._monotonic()
            if message.get(KEY_KIND) == "refused":
                self._refused(str(message.get("why")))
            else:
                self._node.take(message)
        if not self._link.alive:
            self._drop()

    def _refused(self, reason: str) -> None:
        self._node.say("fenced", by=None, job=reason)
        self._node.end_ranks()
        self._node.exit_code = EXIT_FENCED

    def _drop(self) -> None:
        if self._link is not None:
            self._node.loop.forget(self._link.sock)
            self._link.close()
        self._link, self._alone_since = None, self._monotonic()

    def tell(self, message: Dict[str, Any]) -> None:
        if self._link is not None:
            self._link.send({**message, KEY_EPOCH: self._node.epoch})

    def tick(self) -> None:
        node, now = self._node, self._monotonic()
        if self._link is not None:
            node.report_ranks(self)
        if self._link is not None and now - self._heard > node.order.silence_s:
            self._drop()
            self._alone_since = self._heard
        if self._link is None:
            self._be_alone(now)
            if not self._trying and now >= self._try_at and node.exit_code is None:
                self._connect()
        elif node.signalled and not self._signal_sent:
            self._signal_sent = True
            self.tell({KEY_KIND: "signal", "name": node.signalled})

    def _be_alone(self, now: float) -> None:
        node, alone_s = self._node, now - self._alone_since
        if node.ranks.running and alone_s > node.order.silence_s:
            node.say("alone", why=f"the leader on {node.identity.leader} is gone; another is waited for")
            node.end_ranks()
        if node.signalled:
            node.end_ranks()
            node.exit_code = EXIT_STOPPED
        elif alone_s > self._patience_s:
            node.say("given_back", why=f"no leader at {node.identity.leader} for {self._patience_s:g} s")
            node.end_ranks()
            node.exit_code = EXIT_GIVEN_BACK

    @property
    def _patience_s(self) -> float:
        """Return how long a leader is waited for: one that was here and is gone may never come back by itself."""
        order = self._node.order
        if self._leader and order.rejoin_s is not None:
            return order.silence_s + order.rejoin_s
        return order.join_timeout_s

    def beat(self) -> None:
        self.tell(self._node.pulse())

    def close(self) -> None:
        self._drop()


def role_of(node: Node) -> Role:
    """Return the role of a node by its number."""
    return Leading(node) if node.identity.node == 0 else Following(node)


def main(argv: List[str]) -> int:
    """Be the pilot of one node; of a run that has ended, end as it did.

    Exit codes: 0 succeeded, 64 no valid order, 75 given back, 76 fenced, 77 failed, 143 stopped.
    """
    order_file = argv[0]
    beside = os.path.join(os.path.dirname(order_file), "..", "token")
    try:
        order = read_order(order_path(order_file))
        with open(os.environ.get("PODWRIGHT_TOKEN_FILE") or beside, "rb") as file:
            token = file.read().strip()
    except (OSError, ValueError, TypeError) as error:
        print(f"podwright: {error}", file=sys.stderr)
        return EXIT_BAD_ORDER
    identity = identify_node(os.environ)
    order = order._replace(join_timeout_s=max(order.join_timeout_s, identity.join_s))
    paths = Paths(order, order_file, identity)
    # Nobody knows without a shared folder.
    ended = final_state(paths.lease, os.path.dirname(paths.record), paths.cancel_marks) if paths.lease else None
    if ended is not None:
        print(f"podwright: {order.run} has ended ({ended}), nothing is started", file=sys.stderr)
        return EXITS[ended]
    paths.make()
    return Node(order, paths, identity, token).run(role_of)
