"""What a pod's teams may use, as its schedulers are told: Slurm's accounts and limits, quotas of Kubernetes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.host import MARKS
from podwright.spec.teams import OTHERS

if TYPE_CHECKING:
    from podwright.spec import Pod
    from podwright.spec.teams import Team

_MIB = 1024 * 1024
# Runs of a team that used little lately come first; age and quality of service move them by less and by more.
_PRIORITY = {
    "PriorityType": "priority/multifactor",
    "PriorityDecayHalfLife": "7-0",
    "PriorityWeightFairshare": "10000",
    "PriorityWeightQOS": "10000",
    "PriorityWeightAge": "1000",
}
# Without teams anybody may submit, whether accounting knows him or not.
_ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos"}


def settings(pod: Pod) -> dict[str, str]:
    """Return what slurm.conf says of who comes first, and of limits that are kept."""
    return {**_PRIORITY, **(_ENFORCED if pod.teams else {})}


def accounts_text(pod: Pod) -> str:
    """Return what accounting is to have, as `on_host/slurm_accounts.py` reads it."""
    people = {account.name: OTHERS for account in pod.bringup.users}
    for team in pod.teams:
        people |= dict.fromkeys(team.members, account_of(team))
    accounts = {account_of(team): _limits(team) for team in pod.teams}
    if OTHERS in people.values():
        accounts[OTHERS] = {"Fairshare": "1"}
    wanted = {
        "cluster": pod.name,
        "mark": f"{MARKS}-slurm-accounts.json",
        "qos": sorted({team.qos for team in pod.teams if team.qos}),
        "accounts": accounts,
        "people": people,
    }
    return json.dumps(wanted, indent=1) + "\n"


def account_of(team: Team) -> str:
    """Return the account in Slurm that a team's runs go to."""
    return team.account or team.name


def _limits(team: Team) -> dict[str, str]:
    """Return a team's limits as sacctmgr names them."""
    quota = team.quota
    given = {
        "tres.cpu": quota.cpus,
        "tres.gres/gpu": quota.gpus,
        "tres.mem": quota.memory and quota.memory // _MIB,
        "GrpJobs": quota.runs,
        "QOS": team.qos,
        "DefaultQOS": team.qos,
    }
    return {"Fairshare": str(team.shares), **{name: str(value) for name, value in given.items() if value}}


def quota_objects(pod: Pod) -> list[dict[str, Any]]:
    """Return for each team a namespace of its name, with its quota.

    A quota of cores or memory counts what containers ask for: one that asks for nothing would be refused, and is
    taken for a small one. Runs at once Kubernetes cannot count: those that have ended are objects, too.
    """
    objects: list[dict[str, Any]] = []
    for team in pod.teams:
        given = {
            "requests.nvidia.com/gpu": team.quota.gpus,
            "requests.cpu": team.quota.cpus,
            "requests.memory": team.quota.memory,
        }
        hard = {name: str(value) for name, value in given.items() if value}
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.name}})
        if hard:
            objects.append(_object(team, "ResourceQuota", {"hard": hard}))
            least = {"cpu": "100m", "memory": "128Mi"}
            objects.append(_object(team, "LimitRange", {"limits": [{"type": "Container", "defaultRequest": least}]}))
    return objects


def _object(team: Team, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "podwright-team", "namespace": team.name}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
