"""Label statistics as a run over nodes: each counts its share, and the table is published once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.labels.runs import LabelRun
from podwright.data.tree.roots import Roots
from podwright.launch import Run, Session
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.contract.sites import SlurmSite
from tests.fixtures.a2d2 import write_scenes
from tests.real.labs import open_folder, slurm_lab


class Starter:
    """Starts runs like the command line does, and remembers them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.runs: list[Run] = []

    def __call__(self, workload: spec.Workload, target: str) -> Run:
        self.runs.append(launch.start(self._session, workload, target))
        return self.runs[-1]


def count_on_two_nodes(session: Session, folder: Path, target: str) -> None:
    """Count on two nodes, and here in another store: the answers must be the same, broken files too."""
    root, further = write_scenes(folder / "a2d2"), folder / "further"
    further.mkdir()
    scene = max(path for path in root.iterdir() if path.is_dir())
    scene.rename(further / scene.name)
    roots = Roots(os.fsencode(root), (("more", os.fsencode(further)),))
    labels = sorted([*root.rglob("label/**/*.png"), *further.rglob("label/**/*.png")])
    labels[0].write_bytes(b"no image")
    there, here = Store(session.home.path), Store(folder / "here")
    for store in (there, here):
        scan(store, roots, "a2d2")
    start = Starter(session)
    python = f'setup=["export PATH={Path(sys.executable).parent}:$PATH"]'
    counted = count_labels(there, "a2d2", elsewhere=LabelRun(start, target, nodes=2, sets=[python]))
    assert counted == count_labels(here, "a2d2")
    assert (counted.broken, counted.counted) == (1, len(labels))
    (run,) = start.runs
    shares = sorted(len(path.read_text().splitlines()) for path in (run.folder.path / "results/labels").iterdir())
    assert (len(shares), sum(shares), shares[1] - shares[0] < 2) == (2, len(labels), True)
    again = count_labels(there, "a2d2", elsewhere=LabelRun(start, target, nodes=2))
    assert (again.counted, len(start.runs)) == (0, 1), "what is counted needs no run"


def test_two_nodes_count_the_labels_of_a_dataset(tmp_path: Path) -> None:
    # A name of this process's own: the engine finds processes by their run wherever they were started.
    home = Home.open(tmp_path / f"home-{os.getpid()}")
    count_on_two_nodes(Session(home), tmp_path, "local")


def test_a_run_that_cannot_see_the_labels_publishes_nothing(tmp_path: Path) -> None:
    """On a node without the dataset every label would look broken; the run fails instead."""
    session = Session(Home.open(tmp_path / f"home-{os.getpid()}"))
    store, start = Store(session.home.path), Starter(session)
    root = write_scenes(tmp_path / "a2d2")
    scan(store, root, "a2d2")
    generation = store.generation("a2d2")
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(Refusal, match="that counts labels failed"):
        count_labels(store, "a2d2", elsewhere=LabelRun(start, "local", nodes=2))
    assert store.generation("a2d2") == generation
    said = " ".join(line.text for line in start.runs[0].folder.log_lines())
    assert f"{root}, the root of the dataset, is no folder on this node" in said


@pytest.mark.slow
@pytest.mark.slurm
@pytest.mark.xdist_group("slurm-agents")
def test_two_nodes_of_a_cluster_count_the_labels_of_a_dataset(tmp_path: Path) -> None:
    with slurm_lab(nodes=2) as lab, open_folder() as folder:
        site = SlurmSite(lab, tmp_path / "site")
        try:
            count_on_two_nodes(site.session, folder, site.target)
        finally:
            site.close()
