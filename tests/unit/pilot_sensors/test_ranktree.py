"""What each rank's processes use."""

import os
import subprocess
import sys
import time

from podwright.pilot.sensors.proc import Scope

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def process(pid, parent, ticks=(0, 0, 0, 0), threads=1, pages=0, name="train"):
    fields = ["S", parent, *[0] * 9, *ticks, 20, 0, threads, 0, 0, 0, pages]
    return {f"/proc/{pid}/stat": f"{pid} ({name}) {' '.join(map(str, fields))}\n"}


def rank_values(values):
    return {name: value for name, value in values.items() if name.startswith("rank.")}


def test_a_rank_is_its_whole_tree(plain, sampler):
    plain.write(process(100, 1, threads=9, pages=10)).write(process(101, 100, threads=2, pages=5, name="a) b"))
    plain.write(process(102, 101, pages=1)).write(process(200, 1, threads=4, pages=100)).write(process(7, 1))
    taken = sampler(plain.scope())
    taken.watch_rank(3, 100)
    taken.watch_rank(4, 200)
    assert rank_values(taken.sample(1.0)) == {
        "rank.3.memory_bytes": 16 * PAGE,
        "rank.3.threads": 12,
        "rank.4.memory_bytes": 100 * PAGE,
        "rank.4.threads": 4,
    }


def test_cpu_time_does_not_fall_when_a_child_ends(plain, sampler):
    plain.write(process(100, 1, (10, 0, 0, 0))).write(process(101, 100, (40, 0, 0, 0)))
    taken = sampler(plain.scope())
    taken.watch_rank(0, 100)
    taken.sample(1.0)
    plain.write(process(100, 1, (10 + TICKS // 2, 0, 40, 0))).write({"/proc/101/stat": ""})
    (plain.root / "proc/101/stat").unlink()
    (plain.root / "proc/101").rmdir()
    values = taken.sample(2.0)
    assert values["rank.0.cpu_percent"] == 50.0
    assert values["rank.0.threads"] == 1


def test_a_rank_inside_another_counts_for_itself(plain, sampler):
    plain.write(process(100, 1, pages=1)).write(process(101, 100, pages=2)).write(process(102, 101, pages=4))
    taken = sampler(plain.scope())
    taken.watch_rank(0, 100)
    taken.watch_rank(1, 101)
    values = taken.sample(1.0)
    assert values["rank.0.memory_bytes"] == PAGE
    assert values["rank.1.memory_bytes"] == 6 * PAGE


def test_new_children_are_found_and_orphans_stay(plain, sampler):
    plain.write(process(100, 1, pages=1))
    taken = sampler(plain.scope())
    taken.watch_rank(0, 100)
    taken.sample(1.0)
    plain.write(process(101, 100, pages=2))
    assert taken.sample(2.0)["rank.0.memory_bytes"] == PAGE
    assert taken.sample(6.0)["rank.0.memory_bytes"] == 3 * PAGE
    plain.write(process(101, 1, pages=2))
    assert taken.sample(11.0)["rank.0.memory_bytes"] == 3 * PAGE


def test_forgotten_ranks_are_not_read(plain, sampler, events):
    plain.write(process(100, 1))
    taken = sampler(plain.scope())
    taken.watch_rank(0, 100)
    taken.forget_ranks()
    assert rank_values(taken.sample(1.0)) == {}
    assert events == []


def test_a_rank_that_never_was(plain, sampler, events):
    taken = sampler(plain.scope())
    taken.watch_rank(0, 4242)
    assert rank_values(taken.sample(1.0)) == {}
    assert events == []


def test_a_real_rank(sampler):
    """A real process with a real child, on this machine."""
    code = "import os\nos.fork()\nos.write(1, b'.')\nwhile True: pass"
    rank = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert rank.stdout.read(2) == b".."
        taken = sampler(Scope(nvml="libnothing.so"))
        taken.watch_rank(5, rank.pid)
        values = {}
        deadline = time.monotonic() + 30
        while not values.get("rank.5.cpu_percent") and time.monotonic() < deadline:
            values = taken.sample(time.monotonic())
            time.sleep(0.05)
        assert values["rank.5.cpu_percent"] > 0
        assert values["rank.5.threads"] == 2
        assert values["rank.5.memory_bytes"] > 1e6
    finally:
        os.killpg(rank.pid, 9)
        rank.wait()
        rank.stdout.close()
