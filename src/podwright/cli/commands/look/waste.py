"""`waste`: GPU hours that were held and idle, whose they were, and the money it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch, usage
from podwright.cli.commands.look.queue import NAME_WIDTH, TargetOrAll
from podwright.cli.options import AsJson
from podwright.cli.terminal import output
from podwright.cli.terminal.verdict import UNREACHABLE, worst
from podwright.spec.quantity import duration_s

if TYPE_CHECKING:
    from podwright.costs import Price
    from podwright.usage import JobUse, TargetWaste, Use, Waste

MAX_ROWS = 10
_HEADS = ("gpu hours", "idle", "not measured")


def waste_command(
    target: TargetOrAll = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far to look back.")] = "7d",
    as_json: AsJson = False,
) -> int:
    """Add up what became of the GPU hours; one line of verdict, then the evidence."""
    with launch.Session.open() as session:
        targets = usage.wasted(session, target, duration_s(since))
    if as_json:
        output.print_json([row.as_json() for row in targets])
    else:
        width = output.width_of(sys.stdout)
        print("\n\n".join("\n".join(page(row, since, width)) for row in targets))
    return worst(UNREACHABLE for row in targets if row.away)


def page(target: TargetWaste, since: str, width: int | None) -> Iterator[str]:
    """Lay the sums out, the verdict first."""
    waste = target.waste
    if waste is None:
        yield f"{target.target}: {target.away}"
        return
    yield f"{target.target}: {verdict(waste, target.price, since)}"
    for word, text in notes(target, waste):
        yield from output.aligned(word, text, sys.stdout)
    if waste.total.held:
        yield from ["", *_users(waste, target.price)]
        yield from ["", *_jobs(waste, target.price, width)]
    if waste.whole_nodes:
        yield from ["", *_whole_nodes(waste, width)]


def verdict(waste: Waste, price: Price | None, since: str) -> str:
    """Say how much was idle and what it cost, in one sentence."""
    total = waste.total
    if not total.held:
        return f"no job held GPUs in the last {since}"
    if total.unmeasured and not total.idle:
        return f"{hours(total.held)} GPU hours were held, none of which is known to be idle"
    sentence = f"{hours(total.idle)} of {hours(total.held)} GPU hours were idle"
    if total.unmeasured:
        sentence = f"at least {sentence}"
    else:
        sentence += f" ({total.idle / total.held:.0%})"
    if price is not None:
        sentence += f", {total.idle * price.per_gpu_hour:.2f} {price.currency}"
    return sentence


def notes(target: TargetWaste, waste: Waste) -> Iterator[tuple[str, str]]:
    """Yield what must be known to believe the numbers, and what else could have been used."""
    price = target.price
    if price:
        yield "price", f"{price.per_gpu_hour:.2f} {price.currency} a GPU hour; {price.origin}"
    if not target.accounting and target.target != "local":
        yield "seen", "own runs only: there is no accounting to ask"
    if target.accounting and waste.gpus and not waste.total.held:
        yield "hint", "GPUs are on account only with AccountingStorageTRES=gres/gpu in slurm.conf"
    if waste.total.unmeasured:
        known = waste.total.held - waste.total.unmeasured
        share = f"{hours(known)} of {hours(waste.total.held)} GPU hours"
        whose = "own runs with GPU sensors, and of other\njobs the GPUs that they were given and had not asked for"
        yield "measured", f"{share}: {whose}"
    if waste.backfill_gpu_h:
        text = f"at most {hours(waste.backfill_gpu_h)} GPU hours were free while jobs waited that would\nhave fitted"
        yield "backfill", f"{text} (modelled: GPUs counted, not placed)"
    if target.goodput_lines:
        yield "goodput", "\n".join([*target.goodput_lines, f"of {len(target.goodputs)} own runs, each as a whole"])
    if waste.limit_share is not None:
        yield "limits", f"jobs used {waste.limit_share:.0%} of the time they asked for"


def _users(waste: Waste, price: Price | None) -> list[str]:
    rows = [(user, *_numbers(use, price)) for user, use in waste.users.items()]
    return output.table(("user", *_HEADS, _cost_head(price)), rows)


def _jobs(waste: Waste, price: Price | None, width: int | None) -> list[str]:
    rows = [(_name(job), job.user, *_numbers(job.use, price)) for job in waste.jobs[:MAX_ROWS]]
    lines = output.table(("run or job", "user", *_HEADS, _cost_head(price)), rows, width)
    more = len(waste.jobs) - len(rows)
    if more:
        lines.append(f"and {more} more")
    return lines


def _whole_nodes(waste: Waste, width: int | None) -> list[str]:
    rows = []
    for job in waste.whole_nodes[:MAX_ROWS]:
        rows.append((_name(job), job.user, str(job.nodes), str(job.gpus), str(job.gpus_asked)))
    return output.table(("whole nodes for a part", "user", "nodes", "gpus held", "gpus asked"), rows, width)


def _name(job: JobUse) -> str:
    return output.clip(job.run or f"{job.name} ({job.job})", NAME_WIDTH)


def _cost_head(price: Price | None) -> str:
    return f"idle in {price.currency}" if price else ""


def _numbers(use: Use, price: Price | None) -> tuple[str, ...]:
    cost = "" if price is None else f"{use.idle * price.per_gpu_hour:.2f}"
    return hours(use.held), hours(use.idle), hours(use.unmeasured), cost


def hours(number: float) -> str:
    """Return hours with a digit behind the point; many without, and few with more."""
    if number >= 1000:
        return f"{number:.0f}"
    if 0.0005 <= number < 0.1:
        return f"{number:.3f}"
    return f"{number:.1f}"
