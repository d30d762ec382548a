"""The policies of a home; run batch by batch, so that one can be paused between two and goes on where it was killed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data.catalog.carry import Accept, follow_renames
from podwright.data.catalog.dataset import Match, open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.store import Store, check_name
from podwright.data.policies import agents, transfer
from podwright.data.policies.actions import ACTIONS, Work
from podwright.data.policies.folder import RULES, JournalEntry, Policy, PolicyFolder, entry_of
from podwright.data.policies.tags import parse_tag
from podwright.data.tree.roots import Roots
from podwright.files.locks import locked_text, only
from podwright.files.whole import make_private
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.data.launcher import Start


_WAIT_S = 1.0
"""Before a batch that failed is tried again; four times as long before each further try."""


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
            "on": policy.event or None,
            "why": policy.why or None,
            "tail": list(policy.tail),
            "review": str(self.review) if self.review else None,
        }


@dataclass(frozen=True)
class DryRun:
    """The files that a policy would be run over now."""

    report: PolicyReport
    files: Sequence[Match]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data policy run --dry-run`."""
        rows = [match.as_json() for match in self.files]
        return {**self.report.as_json(), "matched": len(rows), "files": rows}


@dataclass(frozen=True)
class PolicyRemoved:
    """A policy that is there no more."""

    name: str
    state: str = "removed"

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data policy rm`."""
        return asdict(self)


class Policies:
    """All policies of a home; `start` starts the runs of agents that are workloads."""

    def __init__(self, store: Store, start: Start | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._store, self._start, self._sleep = store, start, sleep

    def names(self) -> list[str]:
        """Return the policies there are."""
        folder = self._store.home / "policies"
        if not folder.is_dir():
            return []
        return sorted(path.name for path in folder.iterdir() if (path / "policy.json").exists())

    def find(self, name: str) -> PolicyFolder:
        """Return the folder of a policy, or refuse a name that there is not."""
        if name not in self.names():
            raise self._store.unknown(name, self.names(), "policy", "`podwright data policy ls` lists them")
        return PolicyFolder(self._store, name)

    def due(self) -> list[str]:
        """Return the policies whose time has come."""
        now = time.time()
        return [name for name in self.names() if self.find(name).load().is_due(now)]

    def add(self, policy: Policy) -> PolicyReport:
        """Keep a new policy, after all of it was checked."""
        _check_action(policy)
        with open_dataset(self._store, policy.dataset) as opened:
            condition = opened.condition(policy.where)
            _check_apart(policy, opened.roots)
            there = [entry_of(match) for match in opened.find(condition)] if policy.event else []
        check_name(policy.name, "NAME")
        if policy.name in self.names():
            hint = f"podwright data policy rm {policy.name}"
            raise refuse(f"there is a policy {policy.name} already", hint=hint, field="NAME")
        folder = PolicyFolder(self._store, policy.name)
        make_private(folder.path)
        # First: a policy that is there must not take what was there for news.
        folder.know(there)
        folder.save(replace(policy, rules=RULES))
        return self.report(policy.name)

    def add_file(self, path: Path) -> PolicyReport:
        """Keep the policy that a file describes."""
        from podwright.data.policies.policy_file import read_policy

        return self.add(read_policy(path))

    def remove(self, name: str) -> PolicyRemoved:
        """Forget a policy; what it did stays done."""
        shutil.rmtree(self.find(name).path)
        return PolicyRemoved(name)

    def report(self, name: str) -> PolicyReport:
        """Return where a policy stands."""
        folder = self.find(name)
        entries = _last(folder)
        failed = tuple(entry for entry in entries.values() if entry.why)
        review = folder.review if folder.review.exists() else None
        policy = folder.load()
        if policy.state == "running" and locked_text(folder.lock) is None:
            policy = replace(policy, state="ready")  # whoever ran it was killed; the next run goes on
        return PolicyReport(policy, len(entries) - len(failed), failed, review)

    def reports(self) -> list[PolicyReport]:
        """Return where all of them stand."""
        return [self.report(name) for name in self.names()]

    def dry_run(self, name: str) -> DryRun:
        """Return the files that a policy would be run over now."""
        folder = self.find(name)
        return DryRun(self.report(name), self._waiting(folder, folder.load()))

    def review(self, name: str) -> list[JournalEntry]:
        """Return the files that a policy deletes once somebody has seen them; none where nothing waits for that."""
        folder = self.find(name)
        return folder.reviewed() if folder.load().state == "review" else []

    def run(self, name: str, approved: bool = False) -> PolicyReport:
        """Do what a policy says with all files that it was not done with; return where it stands.

        A deletion first writes down what it would take. `approved`: somebody has seen that list, and exactly that goes.
        """
        folder = self.find(name)
        with _alone(folder, name):
            policy = folder.load()
            if policy.state == "paused":
                raise refuse(f"{name} is paused", hint=f"podwright data policy resume {name}", exit_code=1)
            if policy.rules < RULES and not self._means_the_same(folder, policy):
                return self.report(name)
            waiting = self._waiting(folder, policy)
            folder.change(matched=len(waiting) + sum(not entry.why for entry in _last(folder).values()))
            if ACTIONS[policy.action].review:
                if not approved:
                    _show_first(folder, waiting)
                    return self.report(name)
                shown = {entry.same_file for entry in folder.reviewed()}
                waiting = [match for match in waiting if entry_of(match).same_file in shown]
            self._work_off(folder, waiting)
            return self.report(name)

    def run_due(self) -> Iterator[PolicyReport]:
        """Run those whose time has come, one by one; nothing that somebody has to see first is deleted."""
        yield from self._each(self.due())

    def run_new(self, dataset: str) -> Iterator[PolicyReport]:
        """Run those that wait for new files of a dataset and have some; what came while nobody ran them counts too."""
        names = []
        for name in self.due():
            folder = self.find(name)
            policy = folder.load()
            if policy.event and policy.dataset == dataset and self._waiting(folder, policy):
                names.append(name)
        yield from self._each(names)

    def _each(self, names: Sequence[str]) -> Iterator[PolicyReport]:
        """Run policies one by one; one that fails keeps no other from being run."""
        for name in names:
            try:
                yield self.run(name)
            except Refusal as refusal:
                folder = self.find(name)
                if folder.load().state != "failed":
                    folder.change(state="failed", why=refusal.problems[0].message)
                yield self.report(name)

    def pause(self, name: str) -> PolicyReport:
        """Keep a policy from being run; one that runs ends behind its batch."""
        self.find(name).change(state="paused")
        return self.report(name)

    def resume(self, name: str) -> PolicyReport:
        """Let a policy be run again."""
        folder = self.find(name)
        if folder.load().state in ("paused", "failed"):
            folder.change(state="ready", rules=RULES, why="", tail=())
        return self.report(name)

    def undo(self, name: str) -> PolicyReport:
        """Take back what a policy did, the last first, and forget that it did."""
        folder = self.find(name)
        with _alone(folder, name):
            work = self._work(folder)
            action = ACTIONS[work.policy.action]
            if action.undo is None:
                raise refuse(f"a {work.policy.action} cannot be undone", exit_code=1)
            entries = [entry for entry in reversed(_last(folder).values()) if not entry.why]
            if "to" not in action.needs:  # copies lie where the file was
                entries = self._followed(work.policy, entries)
            try:
                action.undo(work, entries)
            except OSError as error:
                message = f"{name} could not be undone: {transfer.reason(error)}"
                raise refuse(message, file=os.fsdecode(error.filename or ""), exit_code=1) from None
            if action.moves and entries:
                rescan(self._store, work.policy.dataset, set(map(_folder_of, entries)))
            folder.clear()
            folder.change(state="undone", matched=0)
            return self.report(name)

    def _means_the_same(self, folder: PolicyFolder, policy: Policy) -> bool:
        """Say whether a filter of earlier rules chooses what it chose; else pause its policy and say both counts."""
        with open_dataset(self._store, policy.dataset) as opened:
            before = opened.count_as_in_0_2(policy.where)
            now = opened.count_files(opened.condition(policy.where))
        if before == now:
            folder.change(rules=RULES)
            return True
        reason = f"its filter chose {before} files and chooses {now} since `not` and `!=` fit files without a value"
        folder.change(state="paused", why=reason)
        return False

    def _waiting(self, folder: PolicyFolder, policy: Policy) -> list[Match]:
        """Return the files that fit and were not dealt with as they are now; one that failed is tried again."""
        entries = [entry for entry in folder.entries() if not entry.why]
        done = {entry.same_file for entry in [*entries, *self._followed(policy, entries)]}
        with open_dataset(self._store, policy.dataset) as opened:
            matches = opened.find(opened.condition(policy.where))
            waiting = [match for match in matches if entry_of(match).same_file not in done]
        if not policy.event:
            return waiting
        is_news = folder.is_news()
        return [match for match in waiting if is_news(entry_of(match))]

    def _followed(self, policy: Policy, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Return entries under the paths that their files have now."""
        now = follow_renames(self._store.path / policy.dataset, [entry.same_file for entry in entries])
        followed = []
        for entry in entries:
            path, size, mtime_ns = now[entry.same_file]
            followed.append(replace(entry, path=path, size=size, mtime_ns=mtime_ns))
        return followed

    def _work(self, folder: PolicyFolder) -> Work:
        policy = folder.load()
        with open_dataset(self._store, policy.dataset) as opened:
            return Work(self._store, policy, folder, opened.roots, self._start)

    def _work_off(self, folder: PolicyFolder, waiting: Sequence[Match]) -> None:
        folder.change(state="running", why="", tail=())
        work = self._work(folder)
        work.saved = sum(entry.kept is not None for entry in folder.entries())
        action = ACTIONS[work.policy.action]
        touched: set[bytes] = set()
        for start in range(0, len(waiting), work.policy.batch):
            if folder.load().state == "paused":
                break
            entries = self._acted(work, waiting[start : start + work.policy.batch])
            folder.note(entries)
            work.saved += sum(entry.kept is not None for entry in entries)
            touched |= {_folder_of(entry) for entry in entries if not entry.why}
        if action.moves and touched:
            # Files that were moved from here prove that the root is there, also where they were all.
            rescan(self._store, work.policy.dataset, touched, accept=Accept(emptied=True))
        if folder.load().state == "paused":
            return
        folder.end_review()
        failed = any(entry.why for entry in _last(folder).values())
        folder.change(state="failed" if failed else "done", last_at=time.time())

    def _acted(self, work: Work, batch: Sequence[Match]) -> list[JournalEntry]:
        """Do it with a batch, again where it fails; after the last try the policy has failed, with its last lines."""
        tries = 0
        while True:
            try:
                return list(ACTIONS[work.policy.action].act(work, batch))
            except (Refusal, OSError) as error:
                why = error.problems[0].message if isinstance(error, Refusal) else transfer.reason(error)
                if tries == work.policy.retries:
                    tail = agents.last_lines(work.folder.log) if work.policy.program else ()
                    work.folder.change(state="failed", why=why, tail=tail, last_at=time.time())
                    raise
                self._sleep(_WAIT_S * 4**tries)
                tries += 1


def _check_action(policy: Policy) -> None:
    action = ACTIONS.get(policy.action)
    if action is None:
        message = f'"{policy.action}" is nothing that a policy does'
        raise refuse(message, hint=f"actions are {', '.join(ACTIONS)}", field="--do")
    for name in action.needs:
        if not any(getattr(policy, field) for field in name.split(" or ")):
            options = " or ".join(f"--{field}" for field in name.split(" or "))
            raise refuse(f"{policy.action} needs {options}", field="--do")
    for tag in (policy.tag, *(step.get("tag", "") for step in policy.steps)):
        if tag:
            parse_tag(tag)


def _check_apart(policy: Policy, roots: Roots) -> None:
    """Refuse copies that would lie within the dataset: the next run would take them for files of it."""
    to = Path(policy.to).resolve()
    if policy.to and any(to.is_relative_to(Path(os.fsdecode(root)).resolve()) for root in roots.folders):
        raise refuse("lies within the dataset", hint="give a folder outside of it", field="--to")


def _last(folder: PolicyFolder) -> dict[bytes, JournalEntry]:
    return {entry.path: entry for entry in folder.entries()}


def _show_first(folder: PolicyFolder, waiting: Sequence[Match]) -> None:
    if not waiting:
        folder.end_review()
        folder.change(state="done", last_at=time.time())
    else:
        folder.write_review(entry_of(match) for match in waiting)
        folder.change(state="review")


def _alone(folder: PolicyFolder, name: str) -> AbstractContextManager[None]:
    refusal = refuse(f"{name} is run by another command", hint="wait for it, or pause it", exit_code=1)
    return only(folder.lock, refusal)


def _folder_of(entry: JournalEntry) -> bytes:
    return entry.path[: entry.path.rfind(b"/") + 1]
