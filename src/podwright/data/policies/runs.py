"""Runs policies: batch by batch, so that one can be paused between two and goes on where it was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data.catalog.dataset import Match, open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.store import Store
from podwright.data.policies import transfer
from podwright.data.policies.actions import ACTIONS, Work
from podwright.data.policies.policies import JournalEntry, Policy, PolicyFolder, add, entry_of, find
from podwright.data.policies.tags import parse_tag
from podwright.files.locks import only
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.data.policies.agents import Start


@dataclass(frozen=True)
class PolicyReport:
    """Where a policy stands."""

    policy: Policy
    done: int
    failed: tuple[JournalEntry, ...]
    review: Path | None = None
    """The list of what a deletion would take."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data policy`."""
        policy = self.policy
        return {
            "name": policy.name,
            "dataset": policy.dataset,
            "where": policy.where,
            "action": policy.action,
            "matched": policy.matched,
            "done": self.done,
            "failed": len(self.failed),
            "failures": [{"path": os.fsdecode(entry.path), "why": entry.why} for entry in self.failed[:100]],
            "state": policy.state,
            "review": str(self.review) if self.review else None,
        }


def add_policy(store: Store, policy: Policy) -> PolicyReport:
    """Keep a new policy, after all of it was checked."""
    action = ACTIONS.get(policy.action)
    if action is None:
        message = f'"{policy.action}" is nothing that a policy does'
        raise refuse(message, hint=f"actions are {', '.join(ACTIONS)}", field="--do")
    for name in action.needs:
        if not any(getattr(policy, part) for part in name.split(" or ")):
            options = " or ".join(f"--{part}" for part in name.split(" or "))
            raise refuse(f"{policy.action} needs {options}", field="--do")
    if policy.tag:
        parse_tag(policy.tag)
    with open_dataset(store, policy.dataset) as opened:
        opened.condition(policy.where)
        _check_apart(policy, opened.root_bytes)
    add(store, policy)
    return report(store, policy.name)


def _check_apart(policy: Policy, root: bytes) -> None:
    """Refuse copies that would lie within the dataset: the next run would take them for files of it."""
    if policy.to and Path(policy.to).resolve().is_relative_to(Path(os.fsdecode(root)).resolve()):
        raise refuse("lies within the dataset", hint="give a folder outside of it", field="--to")


def report(store: Store, name: str) -> PolicyReport:
    """Return where a policy stands."""
    folder = find(store, name)
    entries = _last(folder)
    failed = tuple(entry for entry in entries.values() if entry.why)
    review = folder.path / "review.jsonl"
    return PolicyReport(folder.load(), len(entries) - len(failed), failed, review if review.exists() else None)


def _last(folder: PolicyFolder) -> dict[bytes, JournalEntry]:
    return {entry.path: entry for entry in folder.entries()}


def dry_run(store: Store, name: str) -> list[Match]:
    """Return the files that a policy would be run over now."""
    folder = find(store, name)
    return _waiting(store, folder, folder.load())


def _waiting(store: Store, folder: PolicyFolder, policy: Policy) -> list[Match]:
    """Return the files that fit and were not dealt with as they are now; one that failed is tried again."""
    done = {entry.same_file for entry in folder.entries() if not entry.why}
    with open_dataset(store, policy.dataset) as opened:
        matches = opened.find(opened.condition(policy.where))
        return [match for match in matches if entry_of(match).same_file not in done]


def run_policy(store: Store, name: str, start: Start | None = None, approved: bool = False) -> PolicyReport:
    """Do what a policy says with all files that it was not done with; return where it stands.

    A deletion first writes down what it would take. `approved`: somebody has seen that list, and exactly that goes.
    """
    folder = find(store, name)
    with _alone(folder, name):
        policy = folder.load()
        if policy.state == "paused":
            raise refuse(f"{name} is paused", hint=f"podwright data policy resume {name}", exit_code=1)
        waiting = _waiting(store, folder, policy)
        folder.change(matched=len(waiting) + sum(not entry.why for entry in _last(folder).values()))
        if ACTIONS[policy.action].review:
            if not approved:
                return _show_first(store, folder, waiting)
            shown = {entry.same_file for entry in folder.reviewed()}
            waiting = [match for match in waiting if entry_of(match).same_file in shown]
        _work_off(store, folder, waiting, start)
        return report(store, name)


def _show_first(store: Store, folder: PolicyFolder, waiting: Sequence[Match]) -> PolicyReport:
    if not waiting:
        folder.end_review()
        folder.change(state="done", last_at=time.time())
    else:
        folder.write_review(entry_of(match) for match in waiting)
        folder.change(state="review")
    return report(store, folder.path.name)


def _alone(folder: PolicyFolder, name: str) -> AbstractContextManager[None]:
    refusal = refuse(f"{name} is run by another command", hint="wait for it, or pause it", exit_code=1)
    return only(folder.lock, refusal)


def _work_off(store: Store, folder: PolicyFolder, waiting: Sequence[Match], start: Start | None) -> None:
    policy = folder.change(state="running")
    action = ACTIONS[policy.action]
    with open_dataset(store, policy.dataset) as opened:
        work = Work(store, policy, folder, opened.root_bytes, start)
    touched: set[bytes] = set()
    for at in range(0, len(waiting), policy.batch):
        if folder.load().state == "paused":
            break
        entries = list(action.act(work, waiting[at : at + policy.batch]))
        folder.note(entries)
        touched |= {_folder_of(entry) for entry in entries}
    if action.moves and touched:
        rescan(store, policy.dataset, touched)
    if folder.load().state == "paused":
        return
    folder.end_review()
    failed = any(entry.why for entry in _last(folder).values())
    folder.change(state="failed" if failed else "done", last_at=time.time())


def _folder_of(entry: JournalEntry) -> bytes:
    return entry.path[: entry.path.rfind(b"/") + 1]


def pause(store: Store, name: str) -> PolicyReport:
    """Keep a policy from being run; one that runs ends behind its batch."""
    find(store, name).change(state="paused")
    return report(store, name)


def resume(store: Store, name: str) -> PolicyReport:
    """Let a policy be run again."""
    folder = find(store, name)
    if folder.load().state == "paused":
        folder.change(state="ready")
    return report(store, name)


def undo(store: Store, name: str) -> PolicyReport:
    """Take back what a policy did, the last first, and forget that it did."""
    folder = find(store, name)
    with _alone(folder, name):
        policy = folder.load()
        action = ACTIONS[policy.action]
        if action.undo is None:
            raise refuse(f"a {policy.action} cannot be undone", exit_code=1)
        with open_dataset(store, policy.dataset) as opened:
            work = Work(store, policy, folder, opened.root_bytes)
        entries = [entry for entry in reversed(_last(folder).values()) if not entry.why]
        try:
            action.undo(work, entries)
        except OSError as error:
            message = f"{name} could not be undone: {transfer.reason(error)}"
            raise refuse(message, file=os.fsdecode(error.filename or ""), exit_code=1) from None
        if action.moves and entries:
            rescan(store, policy.dataset, set(map(_folder_of, entries)))
        folder.clear()
        folder.change(state="undone", matched=0)
        return report(store, name)
