"""`cost`: what a pod costs, what a result costs, and whether to own or to rent."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.pod.pods import read_pod
from podwright.cli.options import AsJson, RunRef, complete_file
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.costs import CostSheet, OwnOrRent, PodBill, PodCosts, RunBill, Spending, TeamSpending

PodRef = Annotated[
    str, typer.Argument(metavar="POD", help="A pod's file, or a known pod's name.", autocompletion=complete_file)
]
_BAR = 20
_MAX_LEVERS = 6


def cost_pod_command(pod: PodRef, as_json: AsJson = False) -> None:
    """Print what owning the pod costs, line by line, and what a GPU hour costs."""
    from podwright.costs import pod_bill
    from podwright.launch import Session
    from podwright.usage import spent

    bill = pod_bill(read_pod(pod))
    if bill.pod.teams:
        with Session.open() as session:
            bill = replace(bill, spending=spent(session, bill.pod, time.time()))
    if as_json:
        return output.print_json(bill.as_json())
    return print("\n".join(pod_page(bill)))


def cost_run_command(
    run: RunRef,
    pod: Annotated[
        str | None, typer.Option("--pod", metavar="POD", help="Take the prices of this pod instead of the run's own.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a result cost: waiting, failed tries, energy and storage included.

    A cell of a suite, SUITE/PART/..., is costed like a run.
    """
    from podwright.costs import run_bill
    from podwright.launch import Session, find
    from podwright.prove import cell_bill

    priced = read_pod(pod) if pod else None
    with Session.open() as session:
        bill = cell_bill(session, run, priced) if "/" in run else run_bill(find(session, run), priced)
    if as_json:
        return output.print_json(bill.as_json())
    return print("\n".join(run_page(bill)))


def cost_compare_command(
    pod: PodRef,
    prices: Annotated[
        list[Path],
        typer.Option("--prices", metavar="FILE", help="Price tables; left out: those that ship, of low trust."),
    ] = [],  # noqa: B006 - the library makes a new list for each call
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N", help="What one unit of their currency is in the pod's.")
    ] = None,
    work: Annotated[
        str | None,
        typer.Option("--work", metavar="N", help="Samples or results that a GPU hour of the pod does, measured."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Price rent by what this run makes of an hour, interruptions included."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what renting costs beside owning, and from which utilisation on owning is cheaper."""
    from podwright.costs import own_or_rent, price_tables, use_of
    from podwright.launch import Session, find

    terms = _positive(rate, "--rate", "0.92"), _positive(work, "--work", "2500")
    use = None
    if run is not None:
        with Session.open() as session:
            use = use_of(find(session, run))
    compared = own_or_rent(read_pod(pod), price_tables(prices), *terms, use)
    if as_json:
        return output.print_json(compared.as_json())
    return print("\n".join(rent_page(compared)))


def _positive(text: str | None, option: str, example: str) -> float | None:
    from podwright.spec.problems import refuse

    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e12:
        raise refuse(f"{text!r} is no {option.strip('-')}", hint=f"write it like `{example}`", field=option)
    return rate


def money(amount: float | None, currency: str = "") -> str:
    """Return an amount, with cents where it is small, and the first digits that count of one below a cent."""
    if amount is None:
        return figures.NONE
    text = f"{amount:,.2f}" if abs(amount) < 10_000 else f"{amount:,.0f}"
    if 0 < abs(amount) < 0.01:
        text = f"{amount:.6f}".rstrip("0") if abs(amount) >= 1e-6 else "< 0.000001"
    return f"{text} {currency}".rstrip()


def between(ends: tuple[float, float] | None) -> str:
    """Return a range of amounts behind the one it belongs to; nothing where there is none."""
    if ends is None:
        return ""
    return f" ({money(ends[0])} to {money(ends[1])})"


def _at_least(sheet: CostSheet) -> str:
    return "at least " if sheet.at_least else ""


def _items(sheet: CostSheet) -> Iterator[str]:
    top = max((item.amount or 0.0 for item in sheet.items), default=0.0) or 1.0
    width = max(len(money(item.amount)) for item in sheet.items)
    rows = []
    for item in sheet.items:
        filled, _ = figures.bar((item.amount or 0.0) / top, _BAR - 8)
        origin = item.origin
        if item.range is not None:
            origin = f"{between(item.range).strip(' ()')}; {origin}"
        rows.append([item.name, money(item.amount).rjust(width), filled, origin])
    yield from output.table(["what", sheet.currency.rjust(width), "", "origin"], rows, output.width_of(sys.stdout))
    if sheet.missing:
        yield ""
        yield from output.aligned("missing", f"{', '.join(sheet.missing)}: what these cost comes on top", sys.stdout)


def _computed(costs: PodCosts) -> str:
    price = money(costs.computed_per_gpu_hour, costs.sheet.currency)
    return f"{_at_least(costs.sheet)}{price}{between(costs.computed_range)}"


def _given(costs: PodCosts) -> str:
    price = f"{money(costs.rent, costs.sheet.currency)}{between(costs.per_gpu_hour_range)}"
    return f"{price} a GPU hour: gpu_hour_price, which runs are billed by"


def pod_page(bill: PodBill) -> Iterator[str]:
    """Lay a pod's costs out: the sentence first, then each line, then what the price hangs on."""
    costs, sheet = bill.costs, bill.costs.sheet
    least = _at_least(sheet)
    years = f"{costs.years:g} years{'' if bill.pod.costs.years else ' (assumed)'}"
    text = f"{least}{money(sheet.total, sheet.currency)}{between(sheet.total_range)} over {years}"
    if costs.computed_per_gpu_hour is not None:
        text += f"; {_computed(costs)} a GPU hour"
    yield from output.aligned("costs", text, sys.stdout)
    if costs.rent is not None:
        yield from output.aligned("given", _given(costs), sys.stdout)
    used = f"{costs.utilization:.0%} of hours used"
    if not bill.pod.costs.utilization:
        used = "every hour counted as used, the least an hour can cost"
    yield from output.aligned("for", f"{figures.count(costs.gpus, 'GPU')}, {used}", sys.stdout)
    yield from _energy(bill)
    yield ""
    yield from _items(sheet)
    yield from _levers(bill)
    if bill.spending is not None:
        yield ""
        yield from _teams(bill.spending)


def _energy(bill: PodBill) -> Iterator[str]:
    energy, co2 = bill.costs.energy_kwh_year, bill.pod.costs.grid_co2_kg_kwh
    if energy is None:
        return
    text = f"{energy / 1000:,.0f} MWh a year at full draw"
    if co2 is not None:
        text += f", {energy * co2 / 1000:,.0f} t CO2"
    yield from output.aligned("energy", text, sys.stdout)


def _levers(bill: PodBill) -> Iterator[str]:
    if not bill.levers:
        return
    top, currency = bill.levers[0].reach, bill.costs.sheet.currency
    rows = []
    for lever in bill.levers[:_MAX_LEVERS]:
        filled, _ = figures.bar(lever.reach / top, _BAR)
        rows.append([lever.name, f"{lever.value:g}", money(lever.low), money(lever.high), filled])
    yield ""
    yield from output.table(["hangs on", "given", "-20%", "+20%", f"{currency} a GPU hour"], rows)


def _teams(spending: Spending) -> Iterator[str]:
    """Lay out what teams spent of their budgets, by the runs that this home can see."""
    currency, rows = spending.currency, [_team_row(row) for row in spending.teams]
    head = [spending.month.name, f"budget {currency}", "spent", "at month's end", "runs", ""]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    yield ""
    text = f"day {spending.month.days:.1f} of the month; runs of this home and what colleagues share"
    without = sum(row.without_price for row in spending.teams)
    if without:
        text += f"; {figures.count(without, 'run')} without a price in {currency}"
    yield from output.aligned("counted", text, sys.stdout)


def _team_row(row: TeamSpending) -> list[str]:
    least = "at least " if row.without_price else ""
    spent = f"{least}{money(row.spent)}{between(row.spent_range)}"
    forecast = f"{money(row.forecast)}{between(row.forecast_range)}"
    return [row.team, money(row.budget), spent, forecast, str(row.runs), row.state]


def run_page(bill: RunBill) -> Iterator[str]:
    """Lay out what a result cost."""
    sheet, least = bill.sheet, _at_least(bill.sheet)
    text = f"{bill.run} cost {least}{money(sheet.total, sheet.currency)}{between(sheet.total_range)}"
    if bill.per_result is None:
        text += ", and there is no result"
    elif len(bill.runs) > 1:
        text += f", {least}{money(bill.per_result, sheet.currency)}{between(bill.per_result_range)} a result"
    yield from output.aligned("costs", text, sys.stdout)
    energy = "not measured"
    if bill.energy_kwh is not None:
        energy = f"{bill.energy_kwh:.3g} kWh"
        if bill.co2_kg is not None:
            energy += f", {bill.co2_kg:.3g} kg CO2"
    yield from output.aligned("energy", energy, sys.stdout)
    yield ""
    yield from _items(sheet)


def _share(break_even: float) -> str:
    return f"{break_even:.0%}" if break_even <= 1 else "never"


def _per_work(price: float | None) -> str:
    return "" if price is None else f"({price:.3g} a unit of work)"


def rent_page(compared: OwnOrRent) -> Iterator[str]:
    """Lay owning out beside renting."""
    bill = compared.bill
    costs, currency = bill.costs, bill.costs.sheet.currency
    if costs.rent is None or costs.computed_per_gpu_hour is not None:
        text = f"{_computed(costs)} a GPU hour at {costs.utilization:.0%} of hours used"
        yield from output.aligned("own", text, sys.stdout)
    if costs.rent is not None:
        word = "own" if costs.computed_per_gpu_hour is None else "given"
        yield from output.aligned(word, _given(costs), sys.stdout)
    yield ""
    rows = []
    for row in compared.rows:
        share = figures.NONE if row.is_alike else "another GPU"
        if row.break_even_range is not None:
            share = " to ".join(_share(end) for end in row.break_even_range)
        elif row.break_even is not None:
            share = _share(row.break_even)
        table = f"{row.table.trust} trust, {row.table.seen}: {row.table.source}"
        price = f"{money(row.per_gpu_hour)}{between(row.per_gpu_hour_range)}"
        if compared.work is not None:
            price += f" {_per_work(row.per_work)}"
        if compared.use is not None:
            price += f" ({money(row.per_productive_hour)} productive)"
        rows.append([row.offer.name, row.offer.accelerator, price, share, table])
    head = ["rent", "accelerator", f"{currency}/GPU h", "own from", "source"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    yield ""
    curve = "  ".join(f"{share:.0%} {money(price)}" for share, price in compared.curve[1::2])
    yield from output.aligned("used", f"{curve}: an owned GPU hour by use", sys.stdout)
    text = "own from: the share of hours in use from which on owning is cheaper"
    if not all(row.is_alike for row in compared.rows):
        text += ";\nan hour of another GPU is another thing: --work, and work_per_gpu_hour of"
        text += "\nan offer, compare by what an hour does"
    if compared.use is not None:
        text += f";\nproductive: an hour in which a GPU makes steps that count, as {compared.use.run} does between"
        text += f"\ninterruptions ({compared.use.steady:.0%}); each of them costs it {60 * compared.use.lost_h:.3g} min"
    if costs.sheet.at_least:
        text += ";\nat least that much, since not all costs of owning are given"
    yield from output.aligned("read", text, sys.stdout)
