"""The proof that a design is right, by programs that are not ours.

The exported fabric is simulated by ibsim, discovered and routed by the real OpenSM with its fat-tree engine; links and
forwarding tables are read back from what OpenSM wrote.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from podwright.design import Design
from podwright.design.check import check_fabric
from podwright.design.exports.ibnet import ibnetdiscover
from podwright.design.growth import grow
from podwright.design.growth_steps import growth_steps
from podwright.design.wiring import Wired
from podwright.spec import Pod

pytestmark = [
    pytest.mark.opensm,
    pytest.mark.skipif(
        not (shutil.which("ibsim") and shutil.which("opensm")),
        reason="needs ibsim and OpenSM: apt-get install ibsim-utils opensm infiniband-diags",
    ),
]
PRELOAD = next(iter(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")), None)
_SWITCH = re.compile(r"^Unicast lids .* \('(?P<name>[^']+)'\):$")
_ROUTE = re.compile(r"^0x[0-9a-f]+ (?P<port>\d+) # (?:Channel Adapter|Switch) portguid \w+: '(?P<name>[^']+)'$")
_END = re.compile(r"\{ \S+ Ports:.*? \{(?P<name>[^}]+)\} LID:\w+ PN:(?P<port>\w+) \}")


@dataclass(frozen=True)
class Subnet:
    """What OpenSM found and decided: links, and for each switch the port to each destination."""

    links: dict[tuple[str, int], tuple[str, int]]
    routes: dict[str, dict[str, int]]
    log: str

    def path(self, start: str, destination: str) -> list[str]:
        """Follows the forwarding tables from a switch to a destination; fails on a loop or a dead end."""
        at, seen = start, [start]
        while at != destination:
            at, _ = self.links[(at, self.routes[at][destination])]
            seen.append(at)
            assert len(seen) <= 7, f"a loop: {seen}"
        return seen


@contextmanager
def simulated(file: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Runs ibsim on a file until the block ends; gives the environment in which programs see that fabric."""
    name = f"podwright-{os.getpid()}-{folder.name}"
    environment = {**os.environ, "IBSIM_SOCKNAME": name}
    command = ["ibsim", "-N", "3000", "-S", "600", "-P", "60000", "-L", "60000", "-s", str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True
    ) as program:
        assert program.stdout is not None
        said = []
        for line in program.stdout:
            said.append(line)
            if "ready" in line:
                break
        else:
            pytest.fail("".join(said[-20:]))
        try:
            yield {**environment, "LD_PRELOAD": str(PRELOAD), "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
        finally:
            program.kill()


def route(file: Path, folder: Path, host: str, engine: tuple[str, ...] = ("ftree",)) -> Subnet:
    """Lets OpenSM sweep the fabric once with a routing engine and its options, and reads back what it wrote."""
    folder.mkdir()
    with simulated(file, folder) as environment:
        done = subprocess.run(
            ["opensm", "-o", "-R", *engine, "-D", "0x43", "-f", str(folder / "osm.log")],
            env={**environment, "SIM_HOST": host},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    log = (folder / "osm.log").read_text()
    assert done.returncode == 0, done.stdout + log
    return Subnet(
        read_links((folder / "opensm-subnet.lst").read_text()),
        read_routes((folder / "opensm-lfts.dump").read_text()),
        log,
    )


def read_links(text: str) -> dict[tuple[str, int], tuple[str, int]]:
    """Reads both ends of each link; OpenSM writes port numbers in hexadecimal."""
    links = {}
    for line in text.splitlines():
        a, b = ((end["name"], int(end["port"], 16)) for end in _END.finditer(line))
        links[a] = b
    return links


def read_routes(text: str) -> dict[str, dict[str, int]]:
    """Reads the forwarding tables by the names of switches and destinations."""
    routes: dict[str, dict[str, int]] = {}
    table: dict[str, int] = {}
    for line in text.splitlines():
        if head := _SWITCH.match(line):
            table = routes.setdefault(head["name"], {})
        elif entry := _ROUTE.match(line):
            table[entry["name"]] = int(entry["port"])
    return routes


def pod_of(nodes: int) -> Pod:
    """A pod of DGX A100 as `podwright design --nodes` makes it."""
    return Pod.model_validate({"name": "pod", "nodes": [{"hosts": f"dgx[001-{nodes:03d}]", "model": "dgx-a100"}]})


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[Design, Subnet]]:
    """Gives the design of so many nodes and what OpenSM makes of it, each worked out once."""
    known: dict[int, tuple[Design, Subnet]] = {}

    def make(nodes: int) -> tuple[Design, Subnet]:
        if nodes not in known:
            folder = tmp_path_factory.mktemp(f"fabric{nodes}")
            design = Design.of(pod_of(nodes))
            (folder / "compute.net").write_text(ibnetdiscover(design, "compute"))
            known[nodes] = design, route(folder / "compute.net", folder / "opensm", "dgx001 mlx5_0")
        return known[nodes]

    return make


Routed = Callable[[int], tuple[Design, Subnet]]
SIZES = [20, 100, 140]
RAILS = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9")


def leaves_of(design: Design) -> list[str]:
    return [switch.name for switch in design.wired["compute"].switches if switch.tier == "leaf"]


def adapters_of(subnet: Subnet) -> list[str]:
    return sorted(name for name, _ in subnet.links if " mlx5_" in name)


@pytest.mark.parametrize("nodes", SIZES)
def test_opensm_finds_a_fat_tree_with_every_cable(routed: Routed, nodes: int) -> None:
    design, subnet = routed(nodes)
    assert "ftree tables configured on all switches" in subnet.log
    assert "ERR" not in subnet.log
    assert len(subnet.links) == 2 * len(design.wired["compute"].cables)
    assert len(adapters_of(subnet)) == 8 * nodes


@pytest.mark.parametrize("nodes", SIZES)
def test_every_adapter_is_reached_from_every_leaf(routed: Routed, nodes: int) -> None:
    design, subnet = routed(nodes)
    longest = 0
    for leaf in leaves_of(design):
        for adapter in adapters_of(subnet):
            longest = max(longest, len(subnet.path(leaf, adapter)))
    # leaf, spine, leaf, adapter; with cores leaf, spine, core, spine, leaf, adapter.
    assert longest == (4 if nodes <= 100 else 6)


@pytest.mark.parametrize("nodes", SIZES)
def test_same_rail_traffic_never_touches_the_core(routed: Routed, nodes: int) -> None:
    design, subnet = routed(nodes)
    crossed = 0
    for leaf in leaves_of(design):
        rail = int(leaf.rpartition("-r")[2])
        name = RAILS[rail - 1]
        for adapter in adapters_of(subnet):
            through_core = any(hop.startswith("core-") for hop in subnet.path(leaf, adapter))
            assert not (through_core and adapter.endswith(name)), f"{leaf} to {adapter}"
            crossed += through_core
    assert bool(crossed) is (nodes > 100)


def loads(subnet: Subnet, leaf: str, ending: str) -> Counter[int]:
    """Counts the destinations that a leaf sends into each of its up-links; all adapters, or those of one rail."""
    return Counter(
        port
        for adapter, port in subnet.routes[leaf].items()
        if " mlx5_" in adapter and adapter.endswith(ending) and subnet.links[(leaf, port)][0] != adapter
    )


@pytest.mark.parametrize("nodes", SIZES)
def test_up_links_carry_equal_numbers_of_destinations(routed: Routed, nodes: int) -> None:
    """All up-links are used, and equally where the tree allows it.

    At 140 nodes the ten spines of a plane meet four groups of cores, so that two groups have three of them and two have
    two: traffic between planes cannot be spread evenly, and its heaviest up-link is bounded instead.
    """
    design, subnet = routed(nodes)
    for leaf in leaves_of(design):
        up = loads(subnet, leaf, "")
        assert len(up) == 20
        if nodes <= 100:
            assert max(up.values()) - min(up.values()) <= 1, f"{leaf}: {sorted(up.values())}"
        else:
            assert max(up.values()) <= 1.3 * up.total() / len(up), f"{leaf}: {sorted(up.values())}"
            rail = loads(subnet, leaf, RAILS[int(leaf.rpartition("-r")[2]) - 1])
            assert max(rail.values()) - min(rail.values()) <= 1, f"{leaf}: {sorted(rail.values())}"


def test_storage_on_spines_is_routed_when_the_spines_are_named_as_roots(tmp_path: Path) -> None:
    """The fat-tree engine takes adapters on leaves only; up-and-down routing needs to be told where the top is."""
    design = Design.of(pod_of(140))
    assert design.storage is not None
    assert design.storage.on_spines
    text = ibnetdiscover(design, "storage")
    (tmp_path / "storage.net").write_text(text)
    roots = re.findall(r'^switchguid=(\S+)\nSwitch\t\d+ "[^"]+"\t\t# "st-spine-', text, re.M)
    (tmp_path / "roots.txt").write_text("\n".join(roots) + "\n")
    options = ("updn", "-a", str(tmp_path / "roots.txt"))
    subnet = route(tmp_path / "storage.net", tmp_path / "opensm", "dgx001 mlx5_4", options)
    assert len(roots) == design.storage.spine
    assert "updn tables configured on all switches" in subnet.log
    ends = sorted(name for name, _ in subnet.links if " " in name)
    assert len(ends) == 2 * 140 + 56
    leaves = [switch.name for switch in design.wired["storage"].switches if switch.tier == "leaf"]
    assert max(len(subnet.path(leaf, end)) for leaf in leaves for end in ends) == 4


def grown_by_steps(after: Callable[[int], bool], folder: Path) -> int:
    """Lets OpenSM find and route all old nodes, from 100 to 140, on a rail that nobody works on.

    The fabric is simulated after those steps of compute leaves, counted from 0, for which `after` is true;
    of each step the worst bandwidth is printed.
    """
    old, new = Design.of(pod_of(100)), Design.of(pod_of(140))
    cables = set(old.wired["compute"].cables)
    switches = {switch.name: switch for design in (old, new) for switch in design.wired["compute"].switches}
    steps = [step for step in growth_steps(grow(old, new)) if step.leaf.startswith("leaf-")]
    looked_at = 0
    for number, step in enumerate(steps):
        cables -= {*step.remove, *(before for before, _ in step.move)}
        cables |= {cable for cable in (*step.add, *(after for _, after in step.move)) if cable.fabric == "compute"}
        assert step.cut_off["compute"] == []
        print(f"{number + 1} of {len(steps)}, {step.leaf}: worst bandwidth {step.bandwidth_left['compute']:.3f}")
        if after(number):
            looked_at += 1
            wired = Wired(list(switches.values()), sorted(cables))
            design = replace(new, wired={**new.wired, "compute": wired})
            # Rail by rail is worked on: the second is whole while the first is, and the first is ready after that.
            rail = RAILS[1] if step.leaf.endswith("-r1") else RAILS[0]
            assert set(old.requirements.hosts) <= _reached(design, rail, folder / str(number)), step.leaf
    return looked_at


def test_nodes_reach_each_other_after_every_kind_of_step_of_a_growth(tmp_path: Path) -> None:
    """In the middle of the first rail, between two rails, in the middle of the last one."""
    assert grown_by_steps({2, 28, 52}.__contains__, tmp_path) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_nodes_reach_each_other_after_every_step_of_a_growth(tmp_path: Path, part: int) -> None:
    assert grown_by_steps(lambda number: number % 4 == part, tmp_path) == 14


def _reached(design: Design, rail: str, folder: Path) -> set[str]:
    """The hosts whose adapters OpenSM routes to from every leaf that it finds, beginning at one rail."""
    folder.mkdir()
    (folder / "compute.net").write_text(ibnetdiscover(design, "compute"))
    subnet = route(folder / "compute.net", folder / "opensm", f"dgx001 {rail}", ("minhop",))
    leaves = [name for name in subnet.routes if name.startswith("leaf-")]
    adapters = [name for name, _ in subnet.links if " mlx5_" in name]
    assert all(adapter in subnet.path(leaf, adapter) for leaf in leaves for adapter in adapters)
    return {name.partition(" ")[0] for name in adapters}


def discovered(file: Path, folder: Path) -> str:
    """Gives what the real ibnetdiscover prints of a simulated fabric."""
    folder.mkdir()
    with simulated(file, folder) as environment:
        return subprocess.run(
            ["ibnetdiscover"],
            env={**environment, "SIM_HOST": "dgx001 mlx5_0"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout


def cross(text: str, first: str, second: str) -> str:
    """Swaps the cables of two adapters, at both ends, as two hands do that reach past each other."""
    ids = [re.search(rf'^Ca\t1 "([^"]+)"\t\t# "{name}"$', text, re.M) for name in (first, second)]
    one, two = (found[1] for found in ids if found)
    leaf_side = re.sub(
        rf'^(\[\d+\]\t")({one}|{two})"', lambda m: f'{m[1]}{two if m[2] == one else one}"', text, flags=re.M
    )
    blocks = leaf_side.split("\n\n")
    a, b = (next(i for i, block in enumerate(blocks) if f'Ca\t1 "{each}"' in block) for each in (one, two))
    ends = [blocks[i].splitlines()[-1] for i in (a, b)]
    blocks[a], blocks[b] = blocks[a].replace(ends[0], ends[1]), blocks[b].replace(ends[1], ends[0])
    return "\n\n".join(blocks)


def test_a_fabric_as_designed_passes_the_check(tmp_path: Path) -> None:
    design = Design.of(pod_of(20))
    (tmp_path / "compute.net").write_text(ibnetdiscover(design, "compute"))
    checked = check_fabric(design, discovered(tmp_path / "compute.net", tmp_path / "work"), "fabric.txt")
    assert (checked.fabrics, checked.cables, checked.findings) == (("compute",), 320, [])


def test_a_wrong_cable_is_found_and_named(tmp_path: Path) -> None:
    design = Design.of(pod_of(20))
    wrong = cross(ibnetdiscover(design, "compute"), "dgx007 mlx5_2", "dgx012 mlx5_3")
    (tmp_path / "compute.net").write_text(wrong)
    found = check_fabric(design, discovered(tmp_path / "compute.net", tmp_path / "work"), "fabric.txt").findings
    assert [one.message for one in found] == [
        "dgx007 mlx5_2 is joined to leaf-u01-r4 port 12; dgx007 mlx5_2 belongs to leaf-u01-r3 port 7, "
        "leaf-u01-r4 port 12 belongs to dgx012 mlx5_3",
        "dgx012 mlx5_3 is joined to leaf-u01-r3 port 7; dgx012 mlx5_3 belongs to leaf-u01-r4 port 12, "
        "leaf-u01-r3 port 7 belongs to dgx007 mlx5_2",
    ]
