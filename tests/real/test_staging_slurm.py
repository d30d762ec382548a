"""Staging on real Slurm nodes, each with a cache of its own; the source is a server on the controller that counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.site import CONTROLLER
from podwright.launch import Run, pods
from podwright.spec.problems import Refusal
from tests.contract.sites import END_S, SlurmSite
from tests.real.labs import slurm_lab
from tests.real.serving import LabServer, serving
from tests.real.test_staging import FILES, PROGRAM, SIZE, expected, make_files, seen, select, staged

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm-staging")]
TOTAL = FILES * (SIZE // 32 * 32)


class StagingSite(SlurmSite):
    """A lab whose pod names a cache on each node's own disk, and a server of files on its controller."""

    server: LabServer

    def __init__(self, lab: Any, folder: Path) -> None:
        super().__init__(lab, folder)
        self.files = make_files(folder / "frames")
        self.limit("10GB")

    def limit(self, size: str) -> None:
        """Let each node's cache hold so much."""
        path = self.folder / "pod.yaml"
        cache = f"cache: {{path: '{INSIDE}/tmp/$SLURMD_NODENAME/cache', size: {size}}}\n"
        path.write_text(self.lab.pod_file.read_text() + cache)
        pods.add(self.home, path)

    def look(self, selection: str = "far") -> Run:
        command = f"{sys.executable} look.py {{data.frames}}"
        data, slurm = f"{{frames: 'selection:{selection}'}}", "{options: ['--nodelist=n[1-2]']}"
        return self.start(command=command, code=str(self.code()), data=data, nodes=2, slurm=slurm)

    def code(self) -> Path:
        folder = self.folder / "code"
        folder.mkdir(exist_ok=True)
        (folder / "look.py").write_text(PROGRAM)
        return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StagingSite]:
    folder = tmp_path_factory.mktemp("staging")
    folder.chmod(0o755)
    with slurm_lab(nodes=3) as lab:
        site = StagingSite(lab, folder)
        host = lab.machines.addresses[CONTROLLER].partition("/")[0]
        with serving(lab.machines, CONTROLLER, host, folder / "frames", folder / "counts") as site.server:
            select(site.session, site.server.address, site.files)
            yield site
        site.close()


def test_two_nodes_read_the_source_once_and_a_second_run_is_warm(site: StagingSite) -> None:
    run = site.look()
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("succeeded", "")
    assert seen(run) == {expected(site.files)}
    assert site.server.sent() == TOTAL
    events = staged(run)
    assert sum(event.from_source or 0 for event in events) == TOTAL
    assert sum(event.from_peers or 0 for event in events) == TOTAL
    again = site.look()
    assert again.wait(END_S).state == "succeeded"
    assert site.server.sent() == TOTAL
    assert [event.reused for event in staged(again)] == [TOTAL, TOTAL]


def test_a_full_cache_gives_way_and_one_that_is_too_small_is_refused(site: StagingSite) -> None:
    others = []
    for path in site.files:
        other = path.with_name(f"other {path.name}")
        other.write_bytes(path.read_bytes()[::-1])
        others.append(other)
    select(site.session, site.server.address, others, "others")
    before = site.server.sent()
    site.limit(f"{TOTAL + SIZE}B")
    run = site.look("others")
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("succeeded", "")
    assert seen(run) == {expected(others)}
    assert site.server.sent() == before + TOTAL
    site.limit(f"{TOTAL - 1}B")
    with pytest.raises(Refusal, match=r"are more than the .* of a node's cache"):
        site.look()
