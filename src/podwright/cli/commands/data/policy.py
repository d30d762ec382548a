"""`data policy` and `data watch`: what is done with files by rule, and a catalog that stays up to date."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podwright.cli.commands.data.options import DatasetName, complete_name, open_catalog
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data import Policies, Policy, PolicyReport

_VERBS = ("add", "ls", "run", "pause", "resume", "undo", "rm")
_NEW = "new"
"""The event that `--on` names beside targets."""
_MAX_NAMED = 20


Verb = Annotated[str, typer.Argument(metavar="VERB", help=f"One of {', '.join(_VERBS)}.")]
PolicyName = Annotated[str | None, typer.Argument(metavar="NAME", help="The policy; of add FILE.yaml too.")]
Of = Annotated[str, typer.Option("--dataset", metavar="DATASET", help="Whose files.", autocompletion=complete_name)]
Do = Annotated[
    str, typer.Option("--do", metavar="ACTION", help="tag, checksum, copy, move, archive, delete, agent or curate.")
]
To = Annotated[Path | None, typer.Option("--to", metavar="DIR", help="Where copies and archives go.")]
Tag = Annotated[str, typer.Option("--tag", metavar="NAME=VALUE", help="Of the action tag.")]
Program = Annotated[str, typer.Option("--program", metavar="COMMAND", help="Of an agent: runs here.")]
WorkloadFile = Annotated[
    Path | None, typer.Option("--workload", metavar="FILE", help="Of an agent: runs as this workload.")
]
On = Annotated[
    list[str],
    typer.Option("--on", metavar="new|TARGET", help="new: as files come, `data watch`. Else where the workload runs."),
]
Every = Annotated[str | None, typer.Option("--every", metavar="TIME", help="How often `run --due` runs it.")]


def data_policy_command(
    verb: Verb,
    name: PolicyName = None,
    dataset: Of = "",
    where: Annotated[str, typer.Option("--where", metavar="FILTER", help="Which files.")] = "",
    do: Do = "",
    to: To = None,
    tag: Tag = "",
    program: Program = "",
    workload: WorkloadFile = None,
    on: On = [],  # noqa: B006 - the library makes a new list for each call
    every: Every = None,
    retries: Annotated[
        int | None,
        typer.Option("--retries", metavar="N", min=0, help="Of a batch that fails; --on new: 3, else 0."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="So many files at a time.")] = 1000,
    due: Annotated[bool, typer.Option("--due", help="Of run: all policies whose time has come.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Of run: say which files, and do nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Add a policy, or list, run, pause, resume, undo or forget one."""
    policies = open_catalog().policies
    if _is_for_all(verb, name, due):
        return _run_due(policies, as_json) if verb == "run" else _print_all(policies.reports(), as_json)
    assert name is not None
    if verb == "add" and name.endswith((".yaml", ".yml")):
        return _print(policies.add_file(Path(name)), as_json)
    if verb == "add":
        from podwright.data import Policy
        from podwright.spec.quantity import duration_s

        policy = Policy(name, dataset, where, do, _absolute(to), tag, tuple(shlex.split(program)), _absolute(workload))
        policy = _timed(policy, on, duration_s(every) if every else None)
        tries = retries if retries is not None else 3 if policy.event else 0
        return _print(policies.add(replace(policy, batch=batch, retries=tries)), as_json)
    if verb == "run":
        return _print_dry(policies, name, as_json) if dry_run else _run(policies, name, yes, as_json)
    return _changed(policies, verb, name, as_json)


def _timed(policy: Policy, on: Sequence[str], every_s: float | None) -> Policy:
    """Return a policy with what it waits for, and where its workload runs."""
    from podwright.spec.problems import refuse

    targets = [word for word in on if word != _NEW]
    if len(targets) > 1:
        raise refuse(f"is given {len(targets)} targets", hint="a workload runs on one", field="--on")
    if _NEW in on and every_s is not None:
        raise refuse("cannot be together with --on new", hint="give one of them", field="--every")
    event: Literal["", "new"] = "new" if _NEW in on else ""
    return replace(policy, target=targets[0] if targets else "local", event=event, every_s=every_s)


def _changed(policies: Policies, verb: str, name: str, as_json: bool) -> int:
    if verb == "rm":
        removed = policies.remove(name)
        if as_json:
            output.print_json(removed.as_json())
        return 0
    changes = {"pause": policies.pause, "resume": policies.resume, "undo": policies.undo}
    return _print(changes[verb](name), as_json)


def _run_due(policies: Policies, as_json: bool) -> int:
    return max((_print(report, as_json) for report in policies.run_due()), default=0)


def _is_for_all(verb: str, name: str | None, due: bool) -> bool:
    """Say whether a command is about all policies; refuse one that names none and should."""
    from podwright.spec.problems import refuse

    if verb not in _VERBS:
        raise refuse(f'"{verb}" is nothing that can be done with a policy', hint=f"verbs are {', '.join(_VERBS)}")
    if verb == "ls" or (verb == "run" and due):
        return True
    if name is None:
        raise refuse("which policy?", hint=f"podwright data policy {verb} NAME", field="NAME")
    return False


def _absolute(path: Path | None) -> str:
    return str(path.absolute()) if path else ""


def _print_all(reports: Sequence[PolicyReport], as_json: bool) -> int:
    if as_json:
        output.print_json([report.as_json() for report in reports])
        return 0
    rows = []
    for report in reports:
        policy = report.policy
        counts = (f"{report.done:>7}", f"{len(report.failed):>6}")
        rows.append((policy.name, policy.dataset, policy.action, *counts, policy.state, policy.where))
    head = ("policy", "dataset", "action", "   done", "failed", "state", "where")
    print("\n".join(output.table(head, rows, output.width_of(sys.stdout))))
    return 0


def _run(policies: Policies, name: str, yes: bool, as_json: bool) -> int:
    review = policies.review(name)
    if review:
        doomed = f"{figures.count(len(review), 'file')}, {figures.size(sum(entry.size for entry in review))}"
        if not _is_approved(doomed, yes):
            return 1
    return _print(policies.run(name, approved=bool(review)), as_json)


def _is_approved(doomed: str, yes: bool) -> bool:
    from podwright.spec.problems import refuse

    if not yes and not sys.stdin.isatty():
        hint = "say --yes where nobody can be asked; --dry-run shows them"
        raise refuse(f"{doomed} would be deleted", hint=hint, field="--yes")
    return output.confirm(f"Delete {doomed}?", yes)


def _print_dry(policies: Policies, name: str, as_json: bool) -> int:
    dry_run = policies.dry_run(name)
    if as_json:
        output.print_json(dry_run.as_json())
        return 0
    files = dry_run.files
    for match in files[:_MAX_NAMED]:
        print(output.one_line(match.path))
    if len(files) > _MAX_NAMED:
        print(f"and {len(files) - _MAX_NAMED} more")
    print(f"{figures.count(len(files), 'file')}, {figures.size(sum(match.size for match in files))}")
    return 0


def _print(report: PolicyReport, as_json: bool) -> int:
    if as_json:
        output.print_json(report.as_json())
    else:
        print("\n".join(_page(report)))
    return int(report.policy.state == "failed" or bool(report.policy.why))


def _page(report: PolicyReport) -> Iterator[str]:
    policy = report.policy
    action = " then ".join(step["do"] for step in policy.steps) or policy.action
    rule = f"{action}, {policy.where or 'all files'}"
    yield from output.aligned(policy.state, f"{policy.name}: {rule}", sys.stdout)
    counts = f"{figures.count(policy.matched, 'file')} matched, {report.done} done, {len(report.failed)} failed"
    yield from output.aligned("files", counts, sys.stdout)
    if policy.why:
        yield from output.aligned("why", "\n".join([policy.why, *map(output.one_line, policy.tail)]), sys.stdout)
        yield from output.aligned("next", f"podwright data policy resume {policy.name}", sys.stdout)
    for entry in report.failed[:_MAX_NAMED]:
        yield from output.aligned("failed", f"{output.one_line(entry.shown)}: {entry.why}", sys.stdout)
    if report.review:
        yield from output.aligned("review", str(report.review), sys.stdout)
        yield from output.aligned("next", f"podwright data policy run {policy.name} --yes", sys.stdout)


def data_watch_command(
    dataset: DatasetName,
    settle: Annotated[
        str, typer.Option("--settle", metavar="TIME", help="Scan when nothing has changed for so long.")
    ] = "2s",
    as_json: AsJson = False,
) -> None:
    """Scan what changes as it changes, and run policies that wait for new files, until interrupted."""
    from podwright.spec.quantity import duration_s

    catalog = open_catalog()
    for scanned in catalog.watch(dataset, duration_s(settle)):
        if as_json:
            output.print_json(scanned.as_json())
        else:
            news = f"{scanned.changed} changed, generation {scanned.generation}, {figures.count(scanned.files, 'file')}"
            print("\n".join(output.aligned(dataset, news, sys.stdout)))
        sys.stdout.flush()
        for report in catalog.policies.run_new(dataset):
            _print(report, as_json)
            sys.stdout.flush()
