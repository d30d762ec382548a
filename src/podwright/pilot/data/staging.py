"""Brings the data of a run to its node, before the ranks start: from the cache, from other nodes, or from the source.

Of the nodes of a run one reads each content from the source, by the content's number, and only where no other node has
it already; the others get it from there. So the source is read once, however many nodes there are.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from contextlib import closing
from functools import partial
from typing import Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..system.links import Broken
from ..system.plain_files import write_whole
from .cache import Cache, NoRoom
from .manifest import SAMPLES, BadManifest, Content, StagedInput, items_of, sample_lines
from .peers import Peer, PeerAddress
from .shelf import Shelf, has
from .sources import SourceFailed, fetch

SOURCE_WORKERS, PEER_WORKERS = 8, 4
BATCH = 64
"""Contents that are asked of a node before another one is."""
REST_S = 0.2
"""Between two questions to a node that had nothing new."""
STALL_S = 600.0
"""Without a byte from anywhere: then something is wrong that nobody reported."""


class StagingStopped(Exception):
    """The run is over, or this node is."""


class StagingIdentity(NamedTuple):
    """Which node of how many it is, and what it calls itself in the cache."""

    run: str
    node: int
    nodes: int
    pin: str


class Counts:
    """What has come so far, in bytes."""

    def __init__(self) -> None:
        self.total = self.reused = self.from_source = self.from_peers = self.files = 0

    def fields(self) -> Dict[str, int]:
        """Return them as an event has them; `bytes` is what is here."""
        amounts = {"reused": self.reused, "from_source": self.from_source, "from_peers": self.from_peers}
        return {"bytes": sum(amounts.values()), "of": self.total, **amounts}


class Stager:
    """One node's part. `done` is called once for each list of peers: with nothing, or with why it cannot be.

    It works in threads of its own, so that the node goes on to be heard; `done` must be safe to call from any.
    """

    def __init__(
        self,
        identity: StagingIdentity,
        read: Callable[[], List[StagedInput]],
        cache: Cache,
        token: bytes,
        environ: Mapping[str, str],
        done: Callable[[Optional[str]], None],
    ) -> None:
        self._identity, self._read, self._cache, self._token, self._environ = identity, read, cache, token, environ
        self._done = done
        self._own: Deque[int] = deque()
        self._lock = threading.Condition()
        self.shelf = Shelf(cache.run_folder(identity.run), self._lock)
        self._peers: List[PeerAddress] = []
        self._round = 0
        self._stopped = False
        self._failure: Optional[str] = None
        self._heard = time.monotonic()
        self.counts = Counts()

    # what the node says

    def start(self) -> None:
        """Look at what is here already; the rest waits until the peers are known."""
        threading.Thread(target=self._live, daemon=True).start()

    def stage(self, peers: Sequence[PeerAddress]) -> None:
        """Bring what is missing, with the help of these nodes; called again when one was replaced."""
        with self._lock:
            self._peers = [peer for peer in peers if peer.node != self._identity.node]
            self._round += 1
            self._heard = time.monotonic()
            self._lock.notify_all()

    def close(self) -> None:
        """Stop, and leave the run's folder to the other pilots that use it."""
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
        self._cache.abandon()
        self._cache.unpin(self._identity.run, self._identity.pin)

    def keep(self) -> None:
        """Say that the run's folder is in use."""
        self._cache.pin(self._identity.run, self._identity.pin)

    # the work

    def _live(self) -> None:
        try:
            self._scan()
            turn = 0
            while True:
                turn, peers = self._wait_for_peers(turn)
                if self._bring(peers, turn):
                    self._done(None)
        except StagingStopped:
            return
        except (BadManifest, SourceFailed, NoRoom, OSError, ValueError, KeyError) as error:
            self._done(_words(error, self._cache.root))

    def _wait_for_peers(self, turn: int) -> Tuple[int, List[PeerAddress]]:
        with self._lock:
            self._lock.wait_for(lambda: self._stopped or self._round > turn)
            if self._stopped:
                raise StagingStopped
            return self._round, list(self._peers)

    def _scan(self) -> None:
        """Link what the cache has already into the run's folder."""
        inputs = self._read()
        items = items_of(inputs)
        self._cache.make()
        self.keep()
        folder = self._cache.run_folder(self._identity.run)
        for staged in inputs:
            _make_folder(folder, staged)
        missing = set()
        for number, item in enumerate(items):
            if not self._cache.take(self._identity.run, item):
                missing.add(number)
        self.counts.total = sum(item.file.size for item in items)
        self.counts.files = sum(len(item.paths) for item in items)
        self.counts.reused = sum(item.file.size for n, item in enumerate(items) if n not in missing)
        self.shelf.fill(items, missing)
        self._cache.note_origins(items)

    def _bring(self, peers: List[PeerAddress], turn: int) -> bool:
        """Bring what is missing; return whether all is here, False where the peers changed meanwhile."""
        if not self.shelf.missing:
            return True
        sizes = [self.shelf.items[number].file.size for number in self.shelf.missing]
        self._cache.make_room(sum(sizes), self._environ, {item.key for item in self.shelf.items})
        if not self._assign(peers, turn):
            return False
        threads = [threading.Thread(target=self._read_source, args=(turn,), daemon=True) for _ in range(SOURCE_WORKERS)]
        visits: Deque[PeerAddress] = deque(random.sample(peers, len(peers)))
        for _ in range(min(PEER_WORKERS, len(peers))):
            threads.append(threading.Thread(target=self._read_peers, args=(visits, turn), daemon=True))
        for thread in threads:
            thread.start()
        with self._lock:
            while self._is_at_work(turn):
                self._lock.wait(1.0)
                if time.monotonic() - self._heard > STALL_S:
                    raise SourceFailed(f"nothing came for {STALL_S:g} s")
            if self._failure:
                raise SourceFailed(self._failure)
            if self._stopped:
                raise StagingStopped
            return not self.shelf.missing

    def _is_at_work(self, turn: int) -> bool:
        return bool(self.shelf.missing) and not (self._stopped or self._failure or self._round != turn)

    def _assign(self, peers: List[PeerAddress], turn: int) -> bool:
        """Find out what other nodes have, and take on what is this node's to read; False where the peers changed."""
        elsewhere: Set[int] = set()
        waiting = deque(peers)
        while waiting:
            with self._lock:
                if self._stopped:
                    raise StagingStopped
                if self._round != turn:
                    return False
            peer = waiting.popleft()
            bits = _bits_of(peer, self._token)
            if bits is None:
                waiting.append(peer)
                time.sleep(REST_S / len(waiting))
            else:
                elsewhere |= {number for number in self.shelf.missing if has(bits, number)}
        with self._lock:
            nodes, node = self._identity.nodes, self._identity.node
            self._own = deque(sorted(n for n in self.shelf.missing - elsewhere if n % nodes == node))
        return True

    def _read_source(self, turn: int) -> None:
        while True:
            number = self._claim_own(turn)
            if number is None:
                return
            item = self.shelf.items[number]
            try:
                # Another run on this machine may have been faster.
                if not self._cache.take(self._identity.run, item):
                    self._fetch(item)
                self._has_come(number)
            except StagingStopped:
                return
            except Exception as error:  # whatever it is, the run must hear of it
                reason = f"{item.file.source}: {error}"
                if isinstance(error, OSError):
                    reason = _words(error, self._cache.root)
                self._fail(reason)
                return

    def _claim_own(self, turn: int) -> Optional[int]:
        """Choose the next that is this node's to read; None where nothing is left.

        What is on its way from another node, or since the turn before, is waited for: it may not come.
        """
        with self._lock:
            while self._is_at_work(turn) and self._own:
                for _ in range(len(self._own)):
                    number = self._own.popleft()
                    if number not in self.shelf.missing:
                        continue
                    if number not in self.shelf.claimed:
                        self.shelf.claimed.add(number)
                        return number
                    self._own.append(number)
                self._lock.wait(REST_S)
        return None

    def _fetch(self, item: Content) -> None:
        with self._cache.incoming(self._identity.run, item) as new:
            new.sha256 = fetch(item.file, item.site, self._environ, new.file, partial(self._count, "from_source"))
            if item.sha256 not in ("", new.sha256):
                raise SourceFailed("its SHA-256 is not that of the file that was chosen")

    def _read_peers(self, visits: Deque[PeerAddress], turn: int) -> None:
        while True:
            with self._lock:
                if not self._is_at_work(turn):
                    return
                address = visits.popleft() if visits else None
            if address is None:
                time.sleep(REST_S)
                continue
            try:
                count = self._visit(address)
            except StagingStopped:
                return
            except OSError as error:
                self._fail(_words(error, self._cache.root))
                return
            visits.append(address)
            if not count:
                time.sleep(REST_S)

    def _visit(self, address: PeerAddress) -> int:
        """Get some of what a node has; return how much that was. One that is gone is the leader's affair."""
        count, claimed = 0, []
        try:
            with closing(Peer(address, self._token)) as peer:
                claimed = self.shelf.claim(peer.have() or b"", BATCH)
                for number in claimed:
                    self._get(peer, number)
                    count += 1
        except Broken:
            pass
        finally:
            self.shelf.release(claimed)
        return count

    def _get(self, peer: Peer, number: int) -> None:
        item = self.shelf.items[number]
        if self._cache.take(self._identity.run, item):  # nodes may have one cache in common
            self._has_come(number, reused=True)
            return
        with self._cache.incoming(self._identity.run, item) as new:
            new.sha256 = peer.fetch(number, item.file.size, item.sha256, new.file, partial(self._count, "from_peers"))
        self._has_come(number)

    def _count(self, name: str, count: int) -> None:
        with self._lock:
            if self._stopped:
                raise StagingStopped
            self._heard = time.monotonic()
            setattr(self.counts, name, getattr(self.counts, name) + count)

    def _has_come(self, number: int, reused: bool = False) -> None:
        with self._lock:
            self.shelf.missing.discard(number)
            if reused:
                self.counts.reused += self.shelf.items[number].file.size
            self._lock.notify_all()

    def _fail(self, reason: str) -> None:
        with self._lock:
            self._failure = self._failure or reason
            self._lock.notify_all()


def _words(error: BaseException, cache: str) -> str:
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        return f"its data cannot be written to the cache {cache}: {reason}"
    return f"its data cannot be staged: {error}"


def _make_folder(run_folder: str, staged: StagedInput) -> None:
    """Make the folder of an input with its samples.jsonl; nodes that share a cache write the same."""
    os.makedirs(os.path.join(run_folder, staged.name), mode=0o700, exist_ok=True)
    samples = os.path.join(os.fsencode(run_folder), staged.name.encode(), SAMPLES)
    write_whole(samples, "".join(sample_lines(staged.rows)).encode())


def _bits_of(address: PeerAddress, token: bytes) -> Optional[bytes]:
    """Return which contents a node has; None where it is gone, or does not know yet."""
    try:
        with closing(Peer(address, token)) as peer:
            return peer.have()
    except Broken:
        return None
