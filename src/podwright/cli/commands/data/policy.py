"""`data policy` and `data watch`: what is done with files by rule, and a catalog that stays up to date."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.data.scan import DatasetName, complete_name, open_store
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data.catalog.store import Store
    from podwright.data.policies.agents import Start
    from podwright.data.policies.policies import Policy
    from podwright.data.policies.runs import PolicyReport

_VERBS = ("add", "ls", "run", "pause", "resume", "undo", "rm")
_MAX_NAMED = 20


Verb = Annotated[str, typer.Argument(metavar="VERB", help=f"One of {', '.join(_VERBS)}.")]
PolicyName = Annotated[str | None, typer.Argument(metavar="NAME", help="The policy.")]
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
Target = Annotated[str, typer.Option("--on", metavar="TARGET", help="Where the workload runs.")]
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
    target: Target = "local",
    every: Every = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="So many files at a time.")] = 1000,
    due: Annotated[bool, typer.Option("--due", help="Of run: all policies whose time has come.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Of run: say which files, and do nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Add a policy, or list, run, pause, resume, undo or forget one."""
    store = open_store()
    if _is_for_all(verb, name, due):
        return _run_due(store, as_json) if verb == "run" else _list(store, as_json)
    assert name is not None
    if verb == "add":
        values = {"dataset": dataset, "where": where, "action": do, "tag": tag, "target": target, "batch": batch}
        agent = {"program": tuple(shlex.split(program)), "workload": _absolute(workload)}
        return _added(store, {"name": name, **values, **agent, "to": _absolute(to)}, every, as_json)
    if verb == "run":
        return _run(store, name, dry_run, yes, as_json)
    return _changed(store, verb, name, as_json)


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


def _added(store: Store, values: dict[str, Any], every: str | None, as_json: bool) -> int:
    from podwright.data.policies.policies import Policy
    from podwright.data.policies.runs import add_policy
    from podwright.spec.quantity import duration_s

    policy = Policy(**values, every_s=duration_s(every) if every else None)
    return _print(add_policy(store, policy), as_json)


def _changed(store: Store, verb: str, name: str, as_json: bool) -> int:
    from podwright.data.policies import policies, runs

    if verb == "rm":
        policies.remove(store, name)
        if as_json:
            output.print_json({"name": name, "state": "removed"})
        return 0
    changes = {"pause": runs.pause, "resume": runs.resume, "undo": runs.undo}
    return _print(changes[verb](store, name), as_json)


def _list(store: Store, as_json: bool) -> int:
    from podwright.data.policies import policies, runs

    reports = [runs.report(store, name) for name in policies.names(store)]
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


def _run_due(store: Store, as_json: bool) -> int:
    from podwright.data.policies import policies

    codes = [_run(store, name, False, False, as_json, due=True) for name in policies.due(store)]
    return max(codes, default=0)


def _run(store: Store, name: str, dry: bool, yes: bool, as_json: bool, due: bool = False) -> int:
    from podwright.data.policies import policies, runs
    from podwright.data.policies.actions import ACTIONS

    if dry:
        return _print_dry(store, name, as_json)
    policy = policies.find(store, name).load()
    approved = False
    if ACTIONS[policy.action].review and policy.state == "review" and not due:
        approved = _is_approved(store, name, yes)
        if not approved:
            return 1
    return _print(runs.run_policy(store, name, _starter(policy), approved), as_json)


def _is_approved(store: Store, name: str, yes: bool) -> bool:
    from podwright.data.policies import policies
    from podwright.spec.problems import refuse

    shown = policies.find(store, name).reviewed()
    what = f"{figures.count(len(shown), 'file')}, {figures.size(sum(entry.size for entry in shown))}"
    if not yes and not sys.stdin.isatty():
        hint = "say --yes where nobody can be asked; --dry-run shows them"
        raise refuse(f"{what} would be deleted", hint=hint, field="--yes")
    return output.confirm(f"Delete {what}?", yes)


def _starter(policy: Policy) -> Start | None:
    """Return what starts the runs of an agent; `data` lies beneath `launch` and is handed it."""
    if not policy.workload:
        return None
    from podwright.launch import Session, start

    session = Session.open()
    return lambda workload, target: start(session, workload, target)


def _print_dry(store: Store, name: str, as_json: bool) -> int:
    from podwright.data.policies import runs

    files = runs.dry_run(store, name)
    if as_json:
        document: dict[str, Any] = runs.report(store, name).as_json()
        output.print_json({**document, "matched": len(files), "files": [match.as_json() for match in files]})
        return 0
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
    return int(report.policy.state == "failed")


def _page(report: PolicyReport) -> Iterator[str]:
    from podwright.data.tree.paths import shown

    policy = report.policy
    held = f"{policy.action}, {policy.where or 'all files'}"
    yield from output.aligned(policy.state, f"{policy.name}: {held}", sys.stdout)
    counts = f"{figures.count(policy.matched, 'file')} matched, {report.done} done, {len(report.failed)} failed"
    yield from output.aligned("files", counts, sys.stdout)
    for entry in report.failed[:_MAX_NAMED]:
        yield from output.aligned("failed", f"{output.one_line(shown(entry.path))}: {entry.why}", sys.stdout)
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
    """Scan what changes as it changes, until interrupted."""
    from podwright.data.catalog.watching import watch_dataset
    from podwright.spec.quantity import duration_s

    for scanned in watch_dataset(open_store(), dataset, duration_s(settle)):
        if as_json:
            output.print_json(scanned.as_json())
        else:
            news = f"{scanned.changed} changed, generation {scanned.generation}, {figures.count(scanned.files, 'file')}"
            print("\n".join(output.aligned(dataset, news, sys.stdout)))
        sys.stdout.flush()
