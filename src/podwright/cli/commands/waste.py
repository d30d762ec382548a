"""`waste`: GPU hours that were held and idle, whose they were, and the money it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.queue import NAME_WIDTH, UNREACHABLE, TargetOrAll
from podwright.cli.options import AsJson
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.usage.gather import TargetWaste
    from podwright.usage.waste import JobUse, Price, Use

MOST_ROWS = 10


def waste_command(
    target: TargetOrAll = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far to look back.")] = "7d",
    as_json: AsJson = False,
) -> int:
    """Adds up what became of the GPU hours; one line of verdict, then the evidence."""
    from podwright.launch import Session
    from podwright.spec.quantity import duration_s
    from podwright.usage.documents import waste_document
    from podwright.usage.gather import wasted

    found = wasted(Session.open(), target, duration_s(since))
    if as_json:
        output.print_json([waste_document(row) for row in found])
    else:
        width = output.width_of(sys.stdout)
        print("\n\n".join("\n".join(page(one, since, width)) for one in found))
    return UNREACHABLE if any(one.away for one in found) else 0


def page(one: TargetWaste, since: str, width: int | None) -> Iterator[str]:
    """Lays the sums out, the verdict first."""
    if one.waste is None:
        yield f"{one.target}: {one.away}"
        return
    yield f"{one.target}: {verdict(one, since)}"
    for word, text in notes(one):
        yield from output.aligned(word, text, sys.stdout)
    if one.waste.total.held:
        yield from ["", *_users(one)]
        yield from ["", *_jobs(one, width)]
    if one.waste.whole_nodes:
        yield from ["", *_whole_nodes(one, width)]


def verdict(one: TargetWaste, since: str) -> str:
    """Says how much was idle and what it cost, in one sentence."""
    assert one.waste is not None
    total = one.waste.total
    if not total.held:
        return f"no job held GPUs in the last {since}"
    if total.unmeasured and not total.idle:
        return f"{hours(total.held)} GPU hours were held, none of which is known to be idle"
    cost = money(total.idle, one.price)
    least, share = ("at least ", "") if total.unmeasured else ("", f" ({total.idle / total.held:.0%})")
    words = f"{least}{hours(total.idle)} of {hours(total.held)} GPU hours were idle{share}"
    return f"{words}, {cost}" if cost else words


def notes(one: TargetWaste) -> Iterator[tuple[str, str]]:
    """Gives what must be known to believe the numbers, and what else could have been used."""
    assert one.waste is not None
    waste = one.waste
    if one.price:
        yield "price", f"{one.price.per_gpu_hour:.2f} {one.price.currency} a GPU hour; {one.price.origin}"
    if not one.accounting and one.target != "local":
        yield "seen", "own runs only: there is no accounting to ask"
    if one.accounting and waste.gpus and not waste.total.held:
        yield "hint", "GPUs are on account only with AccountingStorageTRES=gres/gpu in slurm.conf"
    if waste.total.unmeasured:
        known = waste.total.held - waste.total.unmeasured
        words = f"{hours(known)} of {hours(waste.total.held)} GPU hours: own runs with GPU sensors, and of other"
        yield "measured", f"{words}\njobs the GPUs that they were given and had not asked for"
    if waste.backfill_gpu_h:
        text = f"at most {hours(waste.backfill_gpu_h)} GPU hours were free while jobs waited that would\nhave fitted"
        yield "backfill", f"{text} (modelled: GPUs counted, not placed)"
    if waste.limit_share is not None:
        yield "limits", f"jobs used {waste.limit_share:.0%} of the time they asked for"


def _users(one: TargetWaste) -> list[str]:
    assert one.waste is not None
    rows = [(user, *_numbers(use, one.price)) for user, use in one.waste.users.items()]
    return output.table(("user", *_HEADS, _cost_head(one.price)), rows)


_HEADS = ("gpu hours", "idle", "not measured")


def _jobs(one: TargetWaste, width: int | None) -> list[str]:
    assert one.waste is not None
    shown = one.waste.jobs[:MOST_ROWS]
    rows = [(_name(job), job.user, *_numbers(job.use, one.price)) for job in shown]
    lines = output.table(("run or job", "user", *_HEADS, _cost_head(one.price)), rows, width)
    more = len(one.waste.jobs) - len(shown)
    return [*lines, f"and {more} more"] if more else lines


def _whole_nodes(one: TargetWaste, width: int | None) -> list[str]:
    assert one.waste is not None
    shown = one.waste.whole_nodes[:MOST_ROWS]
    rows = [(_name(job), job.user, str(job.nodes), str(job.gpus), str(job.gpus_asked)) for job in shown]
    return output.table(("whole nodes for a part", "user", "nodes", "gpus held", "gpus asked"), rows, width)


def _name(job: JobUse) -> str:
    return output.clip(job.run or f"{job.name} ({job.job})", NAME_WIDTH)


def _cost_head(price: Price | None) -> str:
    return f"idle in {price.currency}" if price else ""


def _numbers(use: Use, price: Price | None) -> tuple[str, ...]:
    cost = "" if price is None else f"{use.idle * price.per_gpu_hour:.2f}"
    return hours(use.held), hours(use.idle), hours(use.unmeasured), cost


def hours(number: float) -> str:
    """Gives hours with a digit behind the point; many without, and few with more."""
    if number >= 1000:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 0.1 or number < 0.0005 else f"{number:.3f}"


def money(gpu_hours: float, price: Price | None) -> str:
    """Gives what some GPU hours cost, or nothing where no price is known."""
    return "" if price is None else f"{gpu_hours * price.per_gpu_hour:.2f} {price.currency}"
