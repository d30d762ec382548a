"""Ranks compare how long their own work of a step takes: two real ranks, of which one is slower."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
RANK = """
import json, os
from kit.timing import slowest_of
from kit.world import Pulse, enter, leave

world = enter("cpu")
pulse, told = Pulse(world), []
for step in range(4):
    pulse.beat(work_s=1.0 + 0.5 * world.rank if step == 1 else None)
    told.append(slowest_of(pulse.take_works()))
pulse.flush()
print(json.dumps(told))
leave()
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_all_ranks_learn_which_of_them_is_the_slowest() -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK],
            env=os.environ | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=PROGRAMS,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [rank.communicate(timeout=300)[0] for rank in started]
    finally:
        for rank in started:
            rank.kill()
            rank.wait()
    expected = [{}, {}, {"work_s": 1.0, "work_slowest_s": 1.5, "work_slowest_rank": 1}, {}]
    assert [json.loads(output.splitlines()[-1]) for output in outputs] == [expected, expected]
