"""Samples a made machine and prints what came of it; runs on every Python the pilot runs on.

python3.8 core.py FOLDER_OF_THE_PILOT ROOT LIBRARY
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).parent))

from pilot import metrics
from pilot.ranks import topology
from pilot.sensors import sampler as sampling


def main():
    events = []
    scope = sampling.Scope(root=sys.argv[2], environ={}, cpus=frozenset({0, 1}), nvml=sys.argv[3])
    sampler = sampling.Sampler(lambda kind, **fields: events.append([kind, fields]), 1.0, scope)
    sampler.open()
    about = sampler.describe()
    sampler.watch_rank(0, 100)
    values = [sampler.sample(float(t)) for t in (1, 2, 3, 11)]
    sampler.forget_ranks()
    values.append(sampler.final())
    sampler.close()
    facts = topology.merged(topology.discover(sys.argv[2], about["gpus"]), None)
    bound = topology.binding(facts, [gpu["index"] for gpu in about["gpus"]], 2, {0, 1})
    answer = {"about": about, "values": values, "events": events, "bound": bound, "table": metrics.METRICS}
    print(json.dumps(answer, sort_keys=True))


main()
