"""Staging on real Slurm nodes, each with its cache in a mount of its own; the source is a server that counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.site import CONTROLLER
from podwright.launch import Run, pods
from podwright.pilot.data.cache import RESERVE_BYTES
from podwright.spec.problems import Refusal
from tests.contract.sites import END_S, SlurmSite, until
from tests.real.labs import slurm_lab
from tests.real.serving import LabServer, serving
from tests.real.test_staging import FILES, PROGRAM, SIZE, expected, make_files, seen, select, staged

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm-staging")]
TOTAL = FILES * (SIZE // 32 * 32)
OWN = "own"
"""A folder of the lab over which each node has a file system of its own."""


class StagingSite(SlurmSite):
    """A lab whose nodes have a disk of their own each, and a server of files on its controller."""

    server: LabServer

    def __init__(self, lab: Any, folder: Path) -> None:
        super().__init__(lab, folder)
        self.files = make_files(folder / "frames")
        (lab.folder / OWN).mkdir()
        for node in lab.shape.hosts():
            self.mount(node)
        self.cache("10GB")

    def mount(self, node: str) -> None:
        """Give a node its own disk, which has room for twice the data."""
        owner = f"uid={self.lab.user.uid},gid={self.lab.user.gid},mode=700"
        size = f"size={RESERVE_BYTES + 2 * TOTAL}"
        done = self.lab.machines.run(
            node, ["mount", "-n", "-t", "tmpfs", "-o", f"{owner},{size}", "own", f"{INSIDE}/{OWN}"]
        )
        assert done.returncode == 0, done.stderr

    def held(self, node: str) -> list[str]:
        """The files of a node's cache, by their paths inside it; its seals are named by the node's own inodes."""
        look = ["find", f"{INSIDE}/{OWN}/cache", "-type", "f", "-not", "-path", "*/seals/*", "-printf", "%P\\n"]
        return sorted(self.lab.machines.run(node, look).stdout.split())

    def cache(self, size: str, path: str = f"{INSIDE}/{OWN}/cache") -> None:
        """Let each node's cache hold so much, in a place of its own or in one that all share."""
        shared = f"storage: [{{name: shared, kind: bind, mount: '{self.lab.folder}/shared'}}]\n"
        text = f"{self.lab.pod_file.read_text()}{shared}cache: {{path: '{path}', size: {size}}}\n"
        (self.folder / "pod.yaml").write_text(text)
        pods.add(self.home, self.folder / "pod.yaml")

    def look(self, selection: str = "far", nodes: str = "n[1-2]", after: str | None = None, count: int = 2) -> Run:
        fields = {
            "command": f"{sys.executable} look.py {{data.frames}}",
            "code": str(self.code()),
            "data": f"{{frames: 'selection:{selection}'}}",
            "nodes": count,
            "slurm": f"{{options: ['--nodelist={nodes}']}}" if nodes else None,
        }
        return self.start(after=after, **fields)

    def code(self) -> Path:
        folder = self.folder / "code"
        folder.mkdir(exist_ok=True)
        (folder / "look.py").write_text(PROGRAM)
        return folder

    def gate(self) -> tuple[Run, Path]:
        """A run that ends when a file is there."""
        path = self.lab.shared / "gate"
        path.unlink(missing_ok=True)
        wait = f"until [ -e {path} ]; do sleep 0.1; done"
        return self.start(command=f'["sh", "-c", "{wait}"]'), path

    def prefetching(self) -> list[str]:
        """The states of the jobs that fill caches."""
        rows = self.slurm("squeue", "--noheader", "--format=%j %T").splitlines()
        return [state for name, state in map(str.split, rows) if name.endswith(".prefetch")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StagingSite]:
    with staging_site(tmp_path_factory, nodes=3) as site:
        yield site


@contextmanager
def staging_site(tmp_path_factory: pytest.TempPathFactory, nodes: int) -> Iterator[StagingSite]:
    folder = tmp_path_factory.mktemp("staging")
    folder.chmod(0o755)
    with slurm_lab(nodes=nodes) as lab:
        site = StagingSite(lab, folder)
        host = lab.machines.addresses[CONTROLLER].partition("/")[0]
        with serving(lab.machines, CONTROLLER, host, folder / "frames", folder / "counts") as site.server:
            select(site.session, site.server.address, site.files)
            yield site
        site.close()


def others(site: StagingSite, name: str) -> list[Path]:
    """Freeze a selection of as much data that no cache has yet."""
    paths = []
    for number, path in enumerate(site.files):
        other = path.with_name(f"{name} {path.name}")
        other.write_bytes(f"{name} {number} ".encode().ljust(32) * (SIZE // 32))
        paths.append(other)
    select(site.session, site.server.address, paths, name)
    return paths


def succeeded(run: Run) -> None:
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("succeeded", "")


def test_two_nodes_read_the_source_once_and_a_second_run_is_warm(site: StagingSite) -> None:
    run = site.look()
    succeeded(run)
    assert seen(run) == {expected(site.files)}
    assert site.server.sent() == TOTAL
    events = staged(run)
    assert sum(event.from_source or 0 for event in events) == TOTAL
    assert sum(event.from_peers or 0 for event in events) == TOTAL
    assert site.held("n1") == site.held("n2") != []
    assert site.held("n3") == []
    again = site.look()
    succeeded(again)
    assert site.server.sent() == TOTAL
    assert [event.reused for event in staged(again)] == [TOTAL, TOTAL]
    assert "the cache /run/lab/own/cache is each node's own" in " ".join(run.folder.gaps())


@pytest.mark.parametrize(("bound", "turns"), [("by-size", 1), ("by-disk", 2)])
def test_a_full_cache_gives_way(site: StagingSite, bound: str, turns: int) -> None:
    """Of the disks twice the data is all that there is room for."""
    site.cache({"by-size": f"{TOTAL + SIZE}B", "by-disk": "10GB"}[bound])
    for turn in range(turns):
        before, paths = site.server.sent(), others(site, f"{bound}-{turn}")
        run = site.look(f"{bound}-{turn}")
        succeeded(run)
        assert seen(run) == {expected(paths)}
        assert site.server.sent() == before + TOTAL
        objects = [name for name in site.held("n1") if name.startswith("objects/")]
        assert len(objects) <= 2 * FILES


def test_data_that_is_more_than_a_cache_is_refused(site: StagingSite) -> None:
    site.cache(f"{TOTAL - 1}B")
    with pytest.raises(Refusal, match=r"are more than the .* of a node's cache"):
        site.look()


def test_a_shared_cache_is_filled_while_the_job_waits(site: StagingSite) -> None:
    site.cache("10GB", f"{site.lab.folder}/shared/$USER/cache")
    before, paths = site.server.sent(), others(site, "early")
    first, gate = site.gate()
    run = site.look("early", after=first.id)
    log = site.lab.shared / "runs" / run.id / "prefetch.log"
    until(lambda: log.exists() and f"{TOTAL} of {TOTAL} bytes are in the cache" in log.read_text(), "data came early")
    assert site.server.sent() == before + TOTAL
    assert run.record().state == "pending"
    gate.touch()
    succeeded(run)
    assert seen(run) == {expected(paths)}
    assert [event.reused for event in staged(run)] == [TOTAL, TOTAL]
    assert site.server.sent() == before + TOTAL
    assert run.folder.gaps() == []


def test_what_fills_a_cache_ends_with_its_run(site: StagingSite) -> None:
    site.cache("10GB", f"{site.lab.folder}/shared/$USER/cache")
    others(site, "never")
    first, gate = site.gate()
    with site.server.held():
        run = site.look("never", after=first.id)
        until(lambda: site.prefetching() == ["RUNNING"], "data comes")
        parts = site.lab.shared / "cache" / "part"
        until(lambda: parts.exists() and any(parts.iterdir()), "a file is on its way")
        run.cancel()
        assert run.wait(END_S).state == "cancelled"
        until(lambda: not site.prefetching(), "nothing fills the cache any more")
    until(lambda: not any(parts.iterdir()), "nothing half is left")
    gate.touch()
    succeeded(first)


@pytest.mark.nightly
def test_a_node_that_is_lost_while_it_brings_data_is_replaced(site: StagingSite) -> None:
    site.cache("10GB")
    paths = others(site, "lost")
    with site.server.held():
        run = site.look("lost", nodes="")
        row = until(lambda: [row for row in site.events(run, "pilot") if row["n"] == 1], "node 1 is at work")[0]
        victim = row["host"]
        until(lambda: any(name.startswith("part/") for name in site.held(victim)), "it brings data")
        site.lab.machines.kill([victim])
    succeeded(run)
    assert seen(run) == {expected(paths)}
    assert victim not in run.record().hosts


@pytest.mark.nightly
def test_four_nodes_read_the_source_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    with staging_site(tmp_path_factory, nodes=4) as site:
        run = site.look(nodes="n[1-4]", count=4)
        succeeded(run)
        assert seen(run) == {expected(site.files)}
        assert site.server.sent() == TOTAL
        events = staged(run)
        assert {event.node for event in events} == {0, 1, 2, 3}
        assert sum(event.from_source or 0 for event in events) == TOTAL
        assert sum(event.from_peers or 0 for event in events) == 3 * TOTAL
        held = site.held("n1")
        assert [site.held(node) for node in ("n2", "n3", "n4")] == [held] * 3
        assert held != []
