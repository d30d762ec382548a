"""Gives Slurm's accounting the accounts, the people and the limits of a pod's teams; says what differs, or mends it.

It is sent to the accounting host as it is, as `slurm_accounts.py check FILE` or `slurm_accounts.py apply FILE`:
standard library only, Python 3.8. What it gave is kept in the file that FILE calls `mark`: what FILE no longer names is
taken away again, and what anybody else made there stays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

Words = List[str]
State = Dict[str, Any]
# As sacctmgr spells them; Slurm takes -1 for a limit that is none.
NONE = "-1"
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024, "P": 1024 * 1024 * 1024}


class AccountsFound(NamedTuple):
    """What accounting has of a cluster."""

    qos: List[str]
    accounts: Dict[str, Dict[str, str]]
    """Of each account the limits that it has by itself, by their names; `tres.NAME` of what is counted."""
    members: Dict[str, List[str]]
    """Of each person the accounts that runs may go to."""
    defaults: Dict[str, str]
    """Of each person the account that runs go to by themselves."""


def changes(wanted: State, before: State, found: AccountsFound) -> List[Words]:
    """Return the words of sacctmgr that make accounting as it is wanted, in their order; none where it is."""
    rows: List[Words] = []
    for name in wanted["qos"]:
        if name not in found.qos:
            rows.append(["add", "qos", name])
    rows += _account_changes(wanted, before, found)
    rows += _people_changes(wanted, before, found)
    return rows


def _account_changes(wanted: State, before: State, found: AccountsFound) -> Iterator[Words]:
    where = "cluster=" + wanted["cluster"]
    for name, limits in wanted["accounts"].items():
        if name not in found.accounts:
            yield ["add", "account", name, where, *limit_words(limits)]
            continue
        differing = _differing(limits, before.get("accounts", {}).get(name, {}), found.accounts[name])
        if differing:
            yield ["modify", "account", "where", "name=" + name, where, "set", *limit_words(differing)]


def _differing(limits: Dict[str, str], before: Dict[str, str], there: Dict[str, str]) -> Dict[str, str]:
    """Return the limits to set: a limit that the file has given up is none again, one that somebody set is theirs."""
    wanted = {**{key: NONE for key in before if key not in limits}, **limits}
    differing = {key: value for key, value in wanted.items() if key != "QOS" and there.get(key, NONE) != value}
    # An account may have several qualities of service, and others than ours.
    ours, old, has = limits.get("QOS", ""), before.get("QOS", ""), there.get("QOS", "").split(",")
    if ours and ours not in has:
        differing["QOS+"] = ours
    if old and old != ours and old in has:
        differing["QOS-"] = old
    return differing


def _people_changes(wanted: State, before: State, found: AccountsFound) -> Iterator[Words]:
    where, wanted_people = "cluster=" + wanted["cluster"], wanted["people"]
    for person, account in wanted_people.items():
        if account not in found.members.get(person, []):
            yield ["add", "user", person, where, "account=" + account]
        # Who is new has it at once; who is not must be told.
        if person in found.members and found.defaults.get(person) != account:
            yield ["modify", "user", "where", "name=" + person, where, "set", "defaultaccount=" + account]
    for person, account in before.get("people", {}).items():
        if wanted_people.get(person) != account and account in found.members.get(person, []):
            yield ["delete", "user", "where", "name=" + person, where, "account=" + account]
    for account in before.get("accounts", {}):
        if account not in wanted["accounts"] and account in found.accounts and not _others(account, before, found):
            yield ["delete", "account", "where", "name=" + account, where]


def _others(account: str, before: State, found: AccountsFound) -> List[str]:
    """Return who is in an account without our doing: it is theirs then."""
    ours = before.get("people", {})
    return [person for person, accounts in found.members.items() if account in accounts and ours.get(person) != account]


def limit_words(limits: Dict[str, str]) -> Words:
    """Return limits as sacctmgr is told them: what is counted stands in one word, all else in its own."""
    counted = [key[len("tres.") :] + "=" + value for key, value in limits.items() if key.startswith("tres.")]
    words = [key + "=" + value for key, value in limits.items() if not key.startswith("tres.")]
    return words + (["GrpTRES=" + ",".join(counted)] if counted else [])


def counted(text: str) -> Dict[str, str]:
    """Return what sacctmgr prints of counted limits, memory in MiB as it is given."""
    limits = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key == "mem" and value[-1:] in _MIB:
            value = str(int(float(value[:-1]) * _MIB[value[-1]]))
        limits["tres." + key] = value
    return limits


def look(cluster: str, ask: Callable[[Words], str]) -> AccountsFound:
    """Return what accounting has; `ask` gives what sacctmgr prints."""
    where = "cluster=" + cluster
    rows = ask(["list", "associations", where, "format=account,user,grptres,grpjobs,fairshare,qos,defaultqos"])
    found = AccountsFound(ask(["list", "qos", "format=name"]).split(), {}, {}, {})
    for row in rows.splitlines():
        account, person, tres, jobs, share, qos, default = row.split("|")
        if person:
            found.members.setdefault(person, []).append(account)
            continue
        limits = {"GrpJobs": jobs, "Fairshare": share, "QOS": qos, "DefaultQOS": default}
        found.accounts[account] = {**counted(tres), **{key: value for key, value in limits.items() if value}}
    for row in ask(["list", "users", "format=user,defaultaccount"]).splitlines():
        person, default = row.split("|")[:2]
        found.defaults[person] = default
    return found


def sacctmgr(words: Words) -> str:
    """Return what sacctmgr prints; where it fails, end with its last line."""
    command = ["sacctmgr", "--immediate", "--noheader", "--parsable2", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        lines = text.strip().splitlines() or ["it ended with %d" % done.returncode]
        raise SystemExit("sacctmgr %s: %s" % (" ".join(words), lines[-1].strip()))
    return text


def read(path: str) -> State:
    """Return a state that is kept; empty where there is none, or only a part of one."""
    try:
        with open(path, encoding="utf-8") as stream:
            state = json.load(stream)
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def keep(path: str, state: State) -> None:
    """Write what was given, whole or not at all."""
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as stream:
        json.dump(state, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)


def main(verb: str, path: str) -> None:
    """Print `same`, or the words of sacctmgr that are missing; `apply` has them done."""
    with open(path, encoding="utf-8") as stream:
        wanted = json.load(stream)
    before = read(wanted["mark"])
    missing = changes(wanted, before, look(wanted["cluster"], sacctmgr))
    for words in missing:
        print("sacctmgr " + " ".join(words))
        if verb == "apply":
            sacctmgr(words)
    if verb == "apply":
        keep(wanted["mark"], wanted)
    elif not missing and before == wanted:
        print("same")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
