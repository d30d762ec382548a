"""Node 0's second job: gather the nodes, start attempts, judge failures, end the run.

Phases: `join` (wait until every node is here and idle) -> `stage` (where data must be brought first, and then `join`
again) -> `run` -> `stop` (ranks are being ended) -> `join` again with a greater epoch, or `keep` (what ranks left) ->
`end`. Every input is a method; every decision is in one place each.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..protocol import EXIT_STOPPED, EXITS, KEY_EPOCH, KEY_KIND, Epoch, Order, SlowRank, goal_reached
from ..ranks.raised import raised
from ..system.journal import Journal
from ..system.links import free_port
from .attempts import Attempts
from .checkpoint import CheckpointWatch
from .lease import MAX_BACK, Leases
from .member import Member, Members, StageRound, find_hang
from .slow import SlowRanks, why_it_stays
from .workdir import Keeping

SETTLE_S = 1.0
"""How long a failure waits for the news that its real cause was a lost node."""
FAILURE_GRACE_S = 5.0
"""Ranks whose peer is gone cannot write a checkpoint together; they get less than the user's grace."""
STOP_S = 15.0
"""Beyond the grace: how long a node may take to say that its ranks are gone."""
LEAVE_S = 3.0
REPLACED = "was replaced"


class Leader:
    """The run as a whole. `monotonic` is the clock that waits are measured by; the journal's is the one people read."""

    def __init__(
        self,
        order: Order,
        restart: int,
        address: str,
        leases: Leases,
        journal: Journal,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order, self._restart, self._address = order, restart, address
        self._leases, self._say, self._now = leases, journal.say, journal.now
        self._monotonic = monotonic
        self.members = Members()
        self.phase = "join"
        self.attempts = Attempts(restart)
        self._phase_began = self._monotonic()
        self._failure: Optional[Tuple[float, int, Dict[str, Any]]] = None
        self._verdict: Tuple[str, str, Optional[int]] = ("failed", "", None)
        self._is_ready = self._goal_reached = False
        self._went = 0.0
        self._stop_by = 0.0
        self.checkpoints, self.keeping = CheckpointWatch(), Keeping("", "", None)
        self._staging: Optional[StageRound] = None
        self._slow = SlowRanks(order.replace_slow)
        self.exit_code: Optional[int] = None
        self.has_ended: Callable[[Member, Epoch], bool] = lambda member, epoch: False
        """Whether a node has written that its ranks ended well, which it may not have been able to say."""
        self._handlers: Dict[str, Callable[[Member, Dict[str, Any]], None]] = {
            "beat": Member.on_beat,
            "ready": self._on_ready,
            "failed": self._on_failed,
            "done": Member.on_done,
            "stopped": Member.on_stopped,
            "signal": self._on_signal,
            "value": self._on_value,
            "staged": Member.on_staged,
            "works": lambda member, message: self._slow.take(message["works"]),
        }

    @property
    def epoch(self) -> Optional[Epoch]:
        """Return the epoch of the attempt that was begun last."""
        return self.attempts.epoch

    # what the nodes say

    def join(self, facts: Dict[str, Any], link: Any) -> Optional[str]:
        """Let a node in; return why it may not be here, if so."""
        node, restart = int(facts.get("node", -1)), int(facts.get("restart", 0))
        if not 0 <= node < self._order.allocated:
            return f"the run has no node {node}"
        old = self.members.get(node)
        same = old is not None and old.instance == facts.get("instance")
        if old is not None and not same:
            if restart < old.restart:
                return f"node {node} was replaced by a later copy"
            if restart == old.restart and old.link.alive and self._monotonic() - old.heard < self._order.silence_s:
                return f"node {node} is already here, from {old.host}"
        self.attempts.learn(facts)
        self._enter(Member(node, facts, link, self._monotonic()), old, same)
        return None

    def _enter(self, member: Member, old: Optional[Member], same: bool) -> None:
        if old is not None:
            old.link.close()
        self.members[member.node] = member
        trained = old is not None and old.place is not None
        if same and old is not None:
            member.place, member.slow = old.place, old.slow
        # The same process with its ranks still running: a broken connection, not a broken node.
        if same and old is not None and trained and self.phase == "run" and not member.idle:
            member.ready, member.done, member.done_at = old.ready, old.done, old.done_at
            return
        self._say("joined", node=member.node, host=member.host, of=self._order.allocated)
        if self.phase == "run" and trained:
            self._lost(member.node, REPLACED)
        elif self.phase == "run":
            self._have_wait(member)
        elif self.phase == "end":
            member.link.send({KEY_KIND: "end", "state": self._verdict[0]})
        elif not member.idle:
            member.link.send({KEY_KIND: "stop", "grace_s": FAILURE_GRACE_S})

    def _have_wait(self, member: Member) -> None:
        """Have a node wait for another to be lost; ranks of an attempt that it has lost its place in end."""
        if member.idle:
            member.link.send({KEY_KIND: "wait", "epoch": self.epoch, **self.attempts.counters()})
        else:
            member.link.send({KEY_KIND: "stop", "grace_s": FAILURE_GRACE_S})

    def hear(self, node: int, message: Dict[str, Any]) -> None:
        """Take a node's message; a kind this leader does not know is a later pilot's and is passed over."""
        member = self.members[node]
        member.heard = self._monotonic()
        handler = self._handlers.get(str(message.get(KEY_KIND)))
        epoch = message.get(KEY_EPOCH)
        # What an old attempt left to say must not be held against the new one.
        stale = self.phase == "run" and epoch is not None and tuple(epoch) != self.epoch
        if handler and not stale:
            handler(member, message)

    def _on_ready(self, member: Member, message: Dict[str, Any]) -> None:
        member.ready = int(message["ranks"])
        if self.phase == "run" and not self._is_ready:
            count = sum(m.ready for m in self.members.values())
            if count == self._order.world_size:
                self._is_ready = True
                self._say("ready", world_size=count)

    def _on_failed(self, member: Member, message: Dict[str, Any]) -> None:
        if self.phase == "stage":
            self._fail(member.node, message)
        if self.phase == "run" and self._failure is None:
            self._failure = (self._monotonic(), member.node, message)

    def _on_signal(self, member: Member, message: Dict[str, Any]) -> None:
        self.terminate(f"stopped by {message.get('name')}")

    def _on_value(self, member: Member, message: Dict[str, Any]) -> None:
        goal = self._order.goal or {}
        value = message["value"]
        if self._goal_reached or not goal or not goal_reached(goal, value):
            return
        self._goal_reached = True
        took_s = round(self._now() - (self.attempts.began or self._now()), 3)
        self._say("goal", metric=goal["metric"], value=value, took_s=took_s)

    # what time brings

    def tick(self) -> None:
        """Do what the phase asks for; called at every turn of the loop."""
        waits = {"stage": self._wait_staged, "stop": self._wait_idle, "keep": self._wait_kept, "end": self._leave}
        {"join": self._gather, "run": self._judge, **waits}[self.phase]()

    def beat(self) -> None:
        """Tell every node and the lease that this leader lives, and look for a new checkpoint."""
        self.members.tell({KEY_KIND: "beat"})
        if self.epoch is not None:
            self._leases.renew(self.epoch)
        if self.phase == "run":
            self.checkpoints.tell(self._say)

    def _gather(self) -> None:
        here = self.members.here
        complete = self._are_enough(here) and all(m.idle for m in here)
        # They know each other: no clock of the user's runs meanwhile.
        if complete and not all(m.staged for m in self.members.by_place(self._order.nodes)):
            self._staging = StageRound(here)
            self._enter_phase("stage")
            return
        obstacle = self._go() if complete else ""
        if complete and not obstacle:
            return
        if self._over_time():
            self._end_over_time()
        elif self._monotonic() - self._phase_began > self._order.join_timeout_s:
            self.give_back(obstacle or self.members.incomplete(self._order))
        elif self._order.rejoin_s is not None:
            self._judge_absence(self._order.silence_s + self._order.rejoin_s)

    def _are_enough(self, here: List[Member]) -> bool:
        """Return whether an attempt may begin: spares are waited for before the first one alone, and not for ever."""
        if len(here) == self._order.allocated:
            return True
        waited = self._monotonic() - self._phase_began > self._order.join_timeout_s
        return len(here) >= self._order.nodes and (self.attempts.number > 0 or waited)

    def _wait_staged(self) -> None:
        """Gather again when the nodes have their data, or when one of them is gone or was replaced."""
        assert self._staging is not None
        if self._staging.is_over(self.members.values(), self._monotonic(), self._order.silence_s):
            self._enter_phase("join")

    def _judge_absence(self, max_s: float) -> None:
        """Give the nodes back when one that had joined does not come again: its engine replaces all of them or none."""
        reason = self.members.absent(self._monotonic(), max_s)
        if not reason:
            return
        count = self._leases.count_back(self._restart)
        if count > MAX_BACK:
            self.end("failed", f"{reason}, for the {count}th time", None)
        else:
            self.give_back(reason)

    def _go(self) -> str:
        """Begin the next attempt; return what stands in its way this time, or nothing."""
        if self._leave_ended() or self._yield_to_rival():
            return ""
        worn_out = self.members.worn_out()
        if worn_out:
            self.end("failed", worn_out, None)
            return ""
        try:
            port = free_port(self._order.bind)
        except OSError as error:
            return f"no port is to be had for the ranks: {error.strerror}"
        if not self.attempts.claim(self._leases, self._now()):
            return "the lease folder cannot be written"
        training = self.members.by_place(self._order.nodes)
        places = {member.node: place for place, member in enumerate(training)}
        for member in self.members.values():
            member.begin_attempt(places.get(member.node))
        self._slow.begin_attempt()
        self._went, self._failure, self._is_ready = self._monotonic(), None, False
        address = {"master_addr": self._address, "master_port": port}
        go = {"attempt": self.attempts.number, "world_size": self._order.world_size, **address}
        sockets = [member.socket for member in training]
        told = {"epoch": self.epoch, "sockets": sockets, **go, **self.attempts.counters()}
        for member in training:
            member.link.send({KEY_KIND: "go", "place": member.place, **told})
        waiting = [member for member in self.members.here if member.place is None]
        for member in waiting:
            self._have_wait(member)
        self._say_go(go, [member.node for member in waiting])
        self._enter_phase("run")
        return ""

    def _say_go(self, go: Dict[str, Any], waiting: List[int]) -> None:
        assert self.epoch is not None
        # The journal still has the epoch before: the node takes the new one when it reads its own message.
        at: Dict[str, Any] = {KEY_EPOCH: list(self.epoch)}
        if self._order.spares:
            at["waiting"] = waiting
        hosts = self.members.hosts(self._order.allocated)
        took_s = round(self._monotonic() - self._phase_began, 3)
        retries_left = self._order.retries - self.attempts.retries_spent
        self._say("go", **at, hosts=hosts, took_s=took_s, retries_left=retries_left, **go)

    def _leave_ended(self) -> bool:
        """End this copy of a run that another copy has ended; return whether one has."""
        state = self._leases.ended()
        if state is None:
            return False
        self._say("fenced", by=None, job=f"the run has ended: {state}")
        self._dismiss(state, "", None)
        return True

    def _yield_to_rival(self) -> bool:
        """End this copy of the run where a living one, submitted twice, came first; return whether one did."""
        rival = self._leases.rival()
        if rival is None or rival.epoch[0] < self._restart or self.epoch is not None:
            return False
        self._say("fenced", by=list(rival.epoch), job=rival.job)
        self.end("fenced", f"another job of this run is running: {rival.job}", None)
        return True

    def _judge(self) -> None:
        now = self._monotonic()
        silent = [m for m in self.members.values() if now - m.heard > self._order.silence_s]
        for member in silent:
            if member.place is None:
                member.link.close()
        quiet = [m for m in silent if m.place is not None and not self._is_done(m)]
        if quiet:
            self._lost(quiet[0].node, f"was silent for {self._order.silence_s:g} s")
        elif self._failure is not None:
            self._judge_failure(now)
        elif all(m.done for m in self.members.training):
            self.end("succeeded", "", 0)
        elif self._over_time():
            self._end_over_time()
        elif not self._judge_silence():
            self._judge_slow()

    def _is_done(self, member: Member) -> bool:
        """Return whether the ranks of a silent node are through: an attempt more would do nothing."""
        if not member.done and self.epoch is not None and self.has_ended(member, self.epoch):
            member.on_done({})
        return member.done

    def _over_time(self) -> bool:
        return self.attempts.is_over(self._order.time_limit_s, self._now())

    def _end_over_time(self) -> None:
        self.stop_for_good("failed", f"the time limit of {self._order.time_limit_s:g} s is over", None)

    @property
    def is_failing(self) -> bool:
        """Return whether a rank failed and that was not judged yet."""
        return self.phase == "run" and self._failure is not None

    def _judge_failure(self, now: float) -> None:
        """Wait for the cause, which may come late: a lost node, or a signal to all processes that took a rank first."""
        assert self._failure is not None
        at, node, failure = self._failure
        cut = [m.node for m in self.members.training if not m.link.alive and not m.done]
        other_cause_possible = self._order.nodes > 1 or failure["signal"] == "SIGTERM"
        if cut:
            self._lost(cut[0], "is gone")
        elif not other_cause_possible or now - at >= SETTLE_S:
            self._fail(node, failure)

    def _fail(self, node: int, failure: Dict[str, Any]) -> None:
        rank, name = failure["rank"], self.members.name(node)
        stopped = [other for other in range(self._order.world_size) if other != rank]
        fields = {name: failure[name] for name in ("rank", "code", "signal", "after_s", "why", "tail")}
        self._say("failed", node=node, host=self.members[node].host, stopped=stopped, **fields)
        who = f"{name}:" if rank is None else f"rank {rank} on {name}"
        reason = f"{who} {failure['why']}"
        if failure.get("fatal"):
            self.stop_for_good("failed", reason, failure["code"], FAILURE_GRACE_S)
        else:
            self._retry(reason, failure["code"], rank, self.members[node].host, raised(failure["tail"]))

    def _judge_silence(self) -> bool:
        """End an attempt that hangs; return whether it did."""
        limit = self._order.hang_after_s
        if limit is None or self._monotonic() - self._went < limit:
            return False
        hang = find_hang(self.members.training, limit, self._monotonic())
        if hang:
            self._say("hang", **hang._asdict())
            self.members.tell({KEY_KIND: "stacks", "rank": hang.rank})
            name, host = self.members.name(hang.node), self.members[hang.node].host
            self._retry(f"rank {hang.rank} on {name} hangs: {hang.why}", None, hang.rank, host)
        return hang is not None

    def _judge_slow(self) -> None:
        """Give the place of a node with a rank that is too slow to a spare, or say why it stays."""
        slow = self._slow.find()
        place = -1 if slow is None else slow.rank // self._order.ranks_per_node
        member = next((member for member in self.members.training if member.place == place), None)
        if slow is None or member is None:
            return
        at = self.attempts.slow_at
        stays = why_it_stays(member, self.members, None if at is None else self._now() - at)
        if not self._slow.is_news(slow.rank, stays):
            return
        self._say("slow", node=member.node, host=member.host, stays=stays, **slow._asdict())
        if not stays:
            self._replace_slow(member, slow)

    def _replace_slow(self, member: Member, slow: SlowRank) -> None:
        """Begin again with a spare in that node's place; the ranks have their time to write a checkpoint."""
        self.attempts.slow_at = self._now()
        self.attempts.plan_replacement()
        why = f"rank {slow.rank} on {self.members.name(member.node)} was slower by {slow.slower_by:.0%}"
        self._say("retry", attempt=self.attempts.number + 1, why=why, rank=slow.rank, host=member.host)
        member.place, member.slow = None, True
        self._stop(self._order.grace_s)

    def _retry(self, reason: str, code: Optional[int], rank: Optional[int], host: str, exception: str = "") -> None:
        if self.attempts.retries_spent >= self._order.retries:
            self.stop_for_good("failed", reason, code, FAILURE_GRACE_S)
            return
        self.attempts.plan_retry()
        why = f"{reason}: {exception}" if exception else reason
        self._say("retry", attempt=self.attempts.number + 1, why=why, rank=rank, host=host, exception=exception)
        self._stop(FAILURE_GRACE_S)

    def _lost(self, node: int, how: str) -> None:
        self.attempts.plan_replacement()
        self._say("retry", attempt=self.attempts.number + 1, why=f"{self.members.name(node)} {how}", lost=node)
        if self._order.spares and how != REPLACED:
            self.members[node].link.close()  # nobody waits for it: a spare goes on
        self._stop(FAILURE_GRACE_S)

    def _stop(self, grace_s: float) -> None:
        for member in self.members.values():
            if not member.idle:
                member.link.send({KEY_KIND: "stop", "grace_s": grace_s})
        self._stop_by = self._monotonic() + grace_s + STOP_S
        self._enter_phase("stop")

    def _wait_idle(self) -> None:
        here = self.members.here
        if all(m.idle for m in here) or self._monotonic() > self._stop_by:
            self.checkpoints.tell(self._say)  # what ranks wrote as they were stopped
            if self.attempts.planned is None:
                self.end(*self._verdict)
            else:
                self._enter_phase("join")

    def terminate(self, reason: str) -> None:
        """Stop the run from outside; one that is being ended already keeps its own reason."""
        ending = self.phase == "stop" and self.attempts.planned is None
        if self.phase == "keep":
            self.keeping.stop(reason)
        elif self.phase != "end" and not ending:
            self.stop_for_good("terminated", reason, EXIT_STOPPED)

    def give_back(self, reason: str) -> None:
        """Return the nodes to the engine: the ranks write their checkpoint, and it starts the run again later."""
        retrying = self.phase == "stop" and self.attempts.planned is not None
        if self.phase == "run" or retrying:
            self._say("given_back", why=reason)
            self.stop_for_good("given_back", reason, None)
        elif self.phase in ("join", "stage"):
            self._say("given_back", why=reason)
            self.end("given_back", reason, None)
        elif self.phase == "keep":
            self.keeping.stop(reason)

    def stop_for_good(self, state: str, reason: str, code: Optional[int], grace_s: Optional[float] = None) -> None:
        """Stop the ranks and end the run with this verdict; without `grace_s` they get the user's grace."""
        self._verdict, self.attempts.planned = (state, reason, code), None
        if grace_s is None:
            grace_s = self._order.grace_s
        self._stop(grace_s)

    def end(self, state: str, reason: str, code: Optional[int]) -> None:
        """End the run; of one that goes no further what its ranks left is kept first."""
        self._verdict = (state, reason, code)
        if state in ("succeeded", "failed"):
            self.keeping.start()
        self._enter_phase("keep")
        self._wait_kept()

    def _wait_kept(self) -> None:
        if self.keeping.is_over:
            facts = self.keeping.facts()
            if facts:
                self._say("workdir", **facts)
            self._say_end(*self._verdict)

    def _say_end(self, state: str, reason: str, code: Optional[int]) -> None:
        """Tell everyone how the run ended; the end is claimed before it is said, so that no copy begins after it."""
        if state in ("succeeded", "failed", "terminated"):
            claimed = self._leases.end(state)
            if claimed != state:
                state, reason, code = claimed, "another copy of this run ended it", None
            self._say("end", state=state, reason=reason, exit_code=code)
        self._dismiss(state, reason, code)

    def _dismiss(self, state: str, reason: str, code: Optional[int]) -> None:
        self.members.tell({KEY_KIND: "end", "state": state})
        self._verdict = (state, reason, code)
        self._enter_phase("end")

    def _leave(self) -> None:
        """Wait until the members have read the end and closed their links, not long for a dead one."""
        others = [m for m in self.members.values() if m.node != 0 and m.link.alive]
        if not others or self._monotonic() - self._phase_began > LEAVE_S:
            self.exit_code = EXITS[self._verdict[0]]

    def _enter_phase(self, phase: str) -> None:
        self.phase, self._phase_began = phase, self._monotonic()
