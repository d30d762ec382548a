"""Everything that each host of a pod will have, from the pod's file alone: the same for one host or for thousands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from podwright.bringup.plan.host import GIVEN, HostPlan, Step
from podwright.bringup.plan.site import Site, site_of
from podwright.bringup.plan.stages import STAGES, nvidia
from podwright.bringup.plan.systems import check_origins
from podwright.spec.hostlist import expand_hosts, fold_hosts
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from podwright.spec import Pod

STEPS: list[str] = []
"""All steps in the order in which they are done."""
for _stage, _functions in STAGES.items():
    STEPS += [f"{_stage}.{_step}" for _step in _functions]


def plan(pod: Pod, only: str | None = None) -> dict[str, HostPlan]:
    """Return every host's plan, or of one stage alone."""
    if only is not None and only not in STAGES:
        raise refuse(f'"{short(only)}" is not a stage', hint=one_of(only, "stage", STAGES), field="--only")
    site = site_of(pod)
    record = GIVEN if site.has("monitoring") else ""
    plans = {
        host: HostPlan(host, address, _steps(site, host, only), _skipped(site, host), record)
        for host, address in site.addresses.items()
    }
    check_origins(pod, plans.values())
    return plans


def _skipped(site: Site, host: str) -> dict[str, str]:
    if site.pod.bringup.nvidia is None:
        return {}
    reason = nvidia.why_not(site, host)
    return {"nvidia": reason} if reason else {}


def _steps(site: Site, host: str, only: str | None) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for stage, functions in STAGES.items():
        if only not in (None, stage):
            continue
        for name, step_of in functions.items():
            step = step_of(site, host)
            if step is not None:
                steps[f"{stage}.{name}"] = step
    return steps


def stages_of(plans: Iterable[HostPlan]) -> list[str]:
    """Return the stages that give any of these hosts something, in their order."""
    there: set[str] = set()
    for each in plans:
        there |= {step.partition(".")[0] for step in each.steps}
    return [stage for stage in STAGES if stage in there]


def limited(hosts: Collection[str], limit: str | None) -> list[str]:
    """Return the hosts that `--limit` names, in the pod's order; a host that the pod does not have is refused."""
    if limit is None:
        return list(hosts)
    wanted = expand_hosts(limit)
    strange = [host for host in wanted if host not in hosts]
    if strange:
        hint = f"the pod has {short(fold_hosts(hosts))}"
        raise refuse(f"{short(fold_hosts(strange))}: not in the pod", hint=hint, field="--limit")
    return [host for host in hosts if host in set(wanted)]
