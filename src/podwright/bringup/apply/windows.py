"""A time that belongs to a change: nodes are reserved in Slurm before, so that no job stands in its way."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from podwright.clients.reasons import last_line
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import Refusal, refuse

_EVERY_S = 60.0


@dataclass(frozen=True)
class ChangeWindow:
    """When a change is made, and how long it may take."""

    start_s: float
    lasts_s: float


@dataclass(frozen=True)
class WaitClock:
    """What time it is, and how one waits; another one in tests."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def start_of(text: str, now: datetime) -> float:
    """Return the moment that `22:00` or `2026-11-20T22:00` names: the next one, by this machine's own clock."""
    daily = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text)
    if daily:
        today = now.replace(hour=int(daily[1]), minute=int(daily[2]), second=0, microsecond=0)
        return (today if today > now else today + timedelta(days=1)).timestamp()
    try:
        start = datetime.fromisoformat(text).astimezone()
    except ValueError:
        hint = "write it like `22:00` or `2026-11-20T22:00`"
        raise refuse(f'"{text}" is not a time', hint=hint, field="--at") from None
    if start <= now:
        raise refuse(f"{text} is over", hint="name a time to come", field="--at")
    return start.timestamp()


@contextmanager
def reserved(
    shell: Callable[[str], str], name: str, nodes: Sequence[str], window: ChangeWindow, clock: WaitClock
) -> Iterator[None]:
    """Keep nodes free of jobs in a window of time: no job starts there that might not have ended by then.

    The reservation goes when the change is over, or when whoever waits gives up.
    """
    minutes = max(round(window.lasts_s / 60), 1)
    start = f"StartTime=now+{max(window.start_s - clock.now(), 0):.0f}seconds Duration={minutes}"
    wanted = f"ReservationName={name} {start} Users=root Flags=MAINT Nodes={shlex.quote(fold_hosts(nodes))}"
    try:
        shell(f"scontrol create reservation {wanted}")
    except Refusal as refusal:
        said = last_line(refusal.problems[0].message, "no reason was given")
        hint = "jobs that may run until then hold the nodes: name a later time, or see `squeue`"
        raise refuse(f"Slurm reserves no nodes: {said}", hint=hint, exit_code=3) from None
    try:
        yield
    finally:
        shell(f"scontrol delete ReservationName={name}")


def wait_until(start_s: float, clock: WaitClock, tell: Callable[[float], None]) -> None:
    """Return at this moment; `tell` hears how long it is still, now and then."""
    while (left_s := start_s - clock.now()) > 0:
        tell(left_s)
        clock.sleep(min(left_s, _EVERY_S))
