"""The keep role: runs of one machine, side by side as far as there are slots, else one after the other.

It is detached from the client that started it and holds a lock of each run as long as it lives: that is how anyone can
tell whether a local run still has somebody who cares for it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..system.journal import Clock
from ..system.loop import STOPPING, Loop
from ..system.prctl import adopt_orphans
from ..system.sealed import Program
from .kept_run import STOPPED, KeptRun, wait_for
from .process import Keeper, KeeperContext
from .slots import MachineShare, first_free, shares_of

LOOK_S = 0.5


class KeepOptions(NamedTuple):
    """What the command line says before the orders."""

    orders: List[str]
    after: str = ""
    at_once: int = 1
    gpus: Sequence[str] = ()


def parse(argv: List[str]) -> KeepOptions:
    """Read the options, each with a value, and the orders behind them."""
    options = KeepOptions([])
    while argv and argv[0].startswith("--"):
        name, value, argv = argv[0], (argv[1:2] or [""])[0], argv[2:]
        if name == "--after":
            options = options._replace(after=value)
        elif name == "--at-once":
            options = options._replace(at_once=max(1, int(value)))
        elif name == "--gpus":
            options = options._replace(gpus=value.split(","))
    return options._replace(orders=argv)


class RunQueue:
    """Runs that wait, and those that are kept now, each in a slot of its own."""

    def __init__(self, runs: List[KeptRun], shares: List[MachineShare], context: KeeperContext) -> None:
        self._waiting, self._shares, self._context = list(runs), shares, context
        self._keepers: Dict[int, Keeper] = {}
        self._verdict: Optional[Dict[str, Any]] = None

    @property
    def is_over(self) -> bool:
        return not self._waiting and not self._keepers

    def stop(self, verdict: Dict[str, Any], number: int = 0) -> None:
        """Start nothing more, and end what runs by this signal."""
        self._verdict = verdict
        for keeper in self._keepers.values():
            keeper.stop(number)

    def turn(self) -> None:
        """Put waiting runs into free slots, wait for what comes next, and look after those that run."""
        self._end_unwanted()
        self._fill()
        patience_s = min([LOOK_S, *(keeper.patience() for keeper in self._keepers.values())])
        if not self.is_over:
            for number in self._context.loop.turn(patience_s) & STOPPING:
                self.stop(STOPPED, number)
        for slot, keeper in list(self._keepers.items()):
            if keeper.look():
                del self._keepers[slot]

    def _end_unwanted(self) -> None:
        """End runs that never start: cancelled while they waited, or stopped with all others."""
        for run in list(self._waiting):
            if self._verdict is not None or run.is_cancelled:
                self._waiting.remove(run)
                run.end(self._context.clock.now(), self._verdict or STOPPED)

    def _fill(self) -> None:
        """Start runs in their order. Pilots that outlived another keeper keep their slot, and their run waits."""
        orphans = {run: slot for run in self._waiting if (slot := run.orphan_slot()) is not None}
        for run in [run for run in self._waiting if run not in orphans]:
            share = first_free(self._shares, {*self._keepers, *orphans.values()})
            if share is None:
                return
            self._waiting.remove(run)
            self._keepers[share.number] = Keeper(run, share, self._context)


def main(argv: List[str]) -> int:
    """Keep the runs of the orders, after the run in the folder that `--after` names."""
    options = parse(argv)
    runs = [KeptRun(path) for path in options.orders]
    runs = [run for run in runs if run.take() and not run.is_over()]
    # Read before anything of these runs can write there.
    program = Program(os.path.dirname(os.path.abspath(sys.argv[0])))
    context = KeeperContext(program, Loop(), Clock(), set())
    context.loop.catch_signals()
    adopt_orphans()
    # The client that started us waits for this line and no longer.
    print("kept", flush=True)
    _detach_output()
    if not runs:
        return 0
    gpus_each = runs[0].order.gpus * runs[0].order.allocated
    cpus = sorted(os.sched_getaffinity(0))
    queue = RunQueue(runs, shares_of(options.at_once, cpus, options.gpus, gpus_each), context)
    verdict = wait_for(options.after, runs, context.loop) if options.after else None
    if verdict is not None:
        queue.stop(verdict)
    while not queue.is_over:
        queue.turn()
    return 0


def _detach_output() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
