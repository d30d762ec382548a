"""`podwright pod plan --offline` for ever larger pods, with the project of Ansible: time against hosts.

    python benchmarks/bringup_scale.py [--pairs 7] [--json OUT] [--most 2048]

Each pod has eight times the hosts of the one before, from 4 on. The measure is the time for one host, which a plan that
grows in proportion keeps; among few hosts what is made once for all of them counts, so that it falls at first. A plan
asks nobody and waits for nothing: its time is that of the processor, to which whatever else a machine does adds little.
"""

from __future__ import annotations

import itertools
import time
from functools import partial

from measure import Row, alternate, bootstrap, compare, conclude, machine, mean_of_middle, parser, start
from podwright.bringup.apply.ansible import project_files
from podwright.bringup.plan.hosts import plan
from podwright.spec import Pod

LEAST = 4
STEP = 8
GOAL = 1.5
KNOWN, GOAL_S = 2048, 10.0


def pod_of(hosts: int) -> Pod:
    """A pod of DGX A100 with all services on its first host."""
    compute = {
        "hosts": f"dgx[0001-{hosts:04d}]",
        "model": "dgx-a100",
        "addresses": [f"10.1.{number // 250}.{number % 250 + 1}" for number in range(hosts)],
    }
    manager = {"hosts": "mgmt1", "model": "cpu-server", "roles": ["management"], "addresses": ["10.0.0.1"]}
    scheduler = {"kind": "slurm", "hosts": compute["hosts"]}
    services = ["mirror", "registry", "monitoring"]
    given = {"name": "pod", "nodes": [manager, compute], "schedulers": [scheduler], "services": services}
    return Pod.model_validate(given)


def take(pod: Pod) -> float:
    """Seconds of the processor to plan every host and to make the project that applies it."""
    began = time.process_time()
    plans = plan(pod)
    texts = project_files(pod, plans, {})
    took = time.process_time() - began
    assert len(plans) == len(pod.hosts())
    assert "inventory.json" in texts
    return took


def main() -> int:
    """Plan all sizes in turn."""
    asked = parser("Time of a plan against the hosts of the pod.", pairs=7)
    asked.add_argument("--most", type=int, default=2048, help="hosts of the largest pod (default: %(default)s)")
    options = asked.parse_args()
    facts = machine()
    sizes = [size for power in range(10) if (size := LEAST * STEP**power) <= options.most]
    names = {size: f"{size:,} hosts" for size in sizes}
    taken = alternate({names[size]: partial(take, pod_of(size)) for size in sizes}, options.pairs)
    each = {names[size]: [seconds / size for seconds in taken[names[size]]] for size in sizes}
    rows = [
        compare(f"a host of {large} / of {small}", each[large], each[small], GOAL)
        for small, large in itertools.pairwise(names.values())
    ]
    if KNOWN in sizes:
        rows.append(Row(names[KNOWN], bootstrap(taken[names[KNOWN]], mean_of_middle), " s", GOAL_S))
    conclude("bringup_scale", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
