"""The data of one node of a run, as its pilot deals with it: what the leader, the record and other nodes hear of it."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Mapping, Optional

from ..protocol import KEY_KIND, Order, record_name
from ..ranks.node_ranks import RankFailure
from ..system.journal import Journal
from ..system.loop import Loop
from ..system.node_identity import NodeIdentity
from ..system.paths import Paths

EARLY_S, LATER_S = 2.0, 20.0
EARLY = 15
"""Events of progress that come early: a short staging is watched closely, a long one fills no record."""


class NodeData:
    """Nothing at all for a run whose data needs no staging: no thread, no socket, no import."""

    def __init__(self, order: Order, paths: Paths, identity: NodeIdentity, loop: Loop) -> None:
        self._order, self._paths, self._identity, self._loop = order, paths, identity, loop
        self._stager: Any = None
        self._server: Any = None
        self._progress_count = 0
        self._began: Optional[float] = None
        self._failure: Optional[str] = None
        self._waiting: List[Dict[str, Any]] = []
        self.is_here = not order.data
        self.port = 0

    def begin(self, journal: Journal, token: bytes, instance: str, environ: Mapping[str, str]) -> None:
        """Look at what the cache has, and be ready to serve others."""
        if not self._order.data:
            return
        from .cache import Cache
        from .manifest import must_verify, read_inputs
        from .staging import Stager, StagingIdentity

        order, node = self._order, self._identity.node
        self._say = journal.say
        staging_identity = StagingIdentity(order.run, node, order.allocated, record_name(node, self._identity.restart))
        cache = Cache(self._paths.cache, (order.cache or {}).get("bytes"), verify=must_verify(order.data))
        self._stager = Stager(
            staging_identity, lambda: read_inputs(self._paths.job, order.data), cache, token, environ, self._done_soon
        )
        if order.allocated > 1:
            from .peers import PeerServer

            self._server = PeerServer(self._loop, order.bind, token, instance, order.allocated, self._stager.shelf)
            self.port = self._server.port
        self._stager.start()

    def facts(self) -> Dict[str, Any]:
        """Return what a leader must know of a node's data."""
        return {"staged": self.is_here, "data_port": self.port} if self._order.data else {}

    def stage(self, message: Mapping[str, Any]) -> None:
        """Do as the leader says: bring the data, with the help of these nodes."""
        if self._failure is not None:
            self._fail(self._failure)
        elif self._stager is None:
            self._waiting.append({KEY_KIND: "staged"})
        else:
            from .peers import PeerAddress

            if self._began is None:
                self._began = time.monotonic()
                self._loop.every("staging", EARLY_S, self._progress)
            self._stager.stage([PeerAddress(int(node), str(host), int(port)) for node, host, port in message["peers"]])

    def messages(self) -> List[Dict[str, Any]]:
        """Return what the leader has not heard yet."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _done_soon(self, reason: Optional[str]) -> None:
        self._loop.call_soon(lambda: self._done(reason))

    def _done(self, reason: Optional[str]) -> None:
        """Take note that all is here, or cannot be; before the leader asked, only the latter is heard of."""
        if reason is not None:
            self._failure = reason
            if self._began is not None:
                self._fail(reason)
            return
        if not self.is_here:
            self._loop.every("pin", 60.0, self._stager.keep)
            assert self._began is not None
            counts = self._stager.counts
            took_s = round(time.monotonic() - self._began, 3)
            self._say("staged", what="data", took_s=took_s, files=counts.files, **counts.fields())
        self._loop.stop("staging")
        self.is_here = True
        self._waiting.append({KEY_KIND: "staged"})

    def _fail(self, reason: str) -> None:
        self._loop.stop("staging")
        after_s = round(time.monotonic() - (self._began or time.monotonic()), 3)
        failure = RankFailure(None, 1, None, after_s, reason, [])
        self._waiting.append({KEY_KIND: "failed", **failure._asdict(), "fatal": True})

    def _progress(self) -> None:
        self._progress_count += 1
        if self._progress_count == EARLY:
            self._loop.every("staging", LATER_S, self._progress)
        self._say("staging", what="data", **self._stager.counts.fields())

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._stager is not None:
            self._stager.close()


def fill_placeholders(order: Order, paths: Paths) -> Order:
    """Fill in what only the node can: where its checkpoint folder is, and its data."""
    placeholders = {"{checkpoint}": paths.checkpoint}
    for entry in order.data:
        placeholders[f"{{data.{entry['name']}}}"] = os.path.join(paths.cache, "runs", order.run, str(entry["name"]))

    def fill(text: str) -> str:
        for name, path in placeholders.items():
            text = text.replace(name, path)
        return text

    command = [fill(word) for word in order.command]
    return order._replace(command=command, env={name: fill(text) for name, text in order.env.items()})
