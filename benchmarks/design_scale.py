"""`podwright design` for ever larger pods, every cable with its length: time against nodes.

    python benchmarks/design_scale.py [--pairs 7] [--json OUT] [--most 8192]

Each pod has four times the nodes of the one before. Switches have 64 ports and a scalable unit 32 nodes, so that the
larger pods have three tiers and more cables to a node: the measure is the time for one cable, which a design that grows
in proportion keeps. A design is one thread that waits for nothing: its time is that of the processor, which other work
on the machine does not count in.
"""

from __future__ import annotations

import itertools
import time
from functools import partial

from measure import Row, alternate, bootstrap, compare, conclude, machine, mean_of_middle, parser, start
from podwright.design import Design
from podwright.spec import Pod, node_model

LEAST = 128
STEP = 4
# A larger pod no longer fits the processor's caches, and Python looks for garbage among more objects.
GOAL = 1.3
KNOWN, GOAL_S = 2048, 5.0


def pod_of(nodes: int) -> Pod:
    """A pod of DGX B200 by its library entry."""
    return Pod.model_validate({"name": "pod", "nodes": [{"hosts": f"dgx[00001-{nodes:05d}]", "model": "dgx-b200"}]})


def take(pod: Pod) -> float:
    """Seconds of the processor to size, wire and place a pod, and to work out every cable's length."""
    began = time.process_time()
    design = Design.of(pod)
    cables = len(design.laid)
    took = time.process_time() - began
    assert cables == len(design.cables)
    return took


def main() -> int:
    """Design all sizes in turn."""
    made = parser("Time of a design against the size of the pod.", pairs=7)
    made.add_argument("--most", type=int, default=8192, help="nodes of the largest pod (default: %(default)s)")
    options = made.parse_args()
    facts = machine()
    node_model("dgx-b200")
    sizes = [size for power in range(10) if (size := LEAST * STEP**power) <= options.most]
    pods = {size: pod_of(size) for size in sizes}
    names = {size: f"{size:,} nodes" for size in sizes}
    taken = alternate({names[size]: partial(take, pod) for size, pod in pods.items()}, options.pairs)
    cables = {name: len(Design.of(pods[size]).cables) for size, name in names.items()}
    each = {name: [1000 * one / cables[name] for one in taken[name]] for name in names.values()}
    rows = [
        compare(f"1,000 cables of {large} / of {small}", each[large], each[small], GOAL)
        for small, large in itertools.pairwise(names.values())
    ]
    if KNOWN in sizes:
        rows.append(Row(names[KNOWN], bootstrap(taken[names[KNOWN]], mean_of_middle), " s", GOAL_S))
    conclude("design_scale", rows, {"seconds": taken, "cables": cables}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
