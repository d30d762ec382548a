"""Labs for tests: real clusters on this machine, each in a short folder of its own, gone when the test is.

A test run that is killed leaves none behind either: each lab ends with the process that asked for it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from podwright.lab import kubernetes
from podwright.lab.base import Lab, Say, quiet
from podwright.lab.hosts import image as hosts_image
from podwright.lab.hosts import lab as hosts
from podwright.lab.hosts.lab import HostsLab
from podwright.lab.kubernetes import binaries, image
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.lab import SlurmLab

ON_KUBERNETES = [
    pytest.mark.kubernetes,
    pytest.mark.xdist_group("kubernetes"),
    # The time of a test alone: the first one's fixture may build Kubernetes from source.
    pytest.mark.timeout(600, func_only=True),
]
"""Marks of what uses the one Kubernetes of a session: one process runs it all, so that the lab is started once."""


@contextmanager
def open_folder() -> Iterator[Path]:
    """Gives a folder that a lab's ordinary user may read too."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def slurm_lab(nodes: int = 4, accounting: bool = False, **wanted: Any) -> Iterator[SlurmLab]:
    """Gives a Slurm cluster; takes the fields of `podwright.lab.slurm.shape.SlurmLabShape` by name."""
    with lab_folder() as folder:
        try:
            yield slurm.up(folder, ends_with=os.getpid(), nodes=nodes, accounting=accounting, **wanted)
        finally:
            _end(slurm.find(folder))


@contextmanager
def kubernetes_lab(
    nodes: int = 2, virtual_nodes: int = 0, say: Say = quiet, **wanted: Any
) -> Iterator[kubernetes.KubernetesLab]:
    """Gives a Kubernetes cluster; takes the fields of `podwright.lab.kubernetes.KubernetesLabShape` by name.

    `say` is told how far the build of its programs is, which a machine without them needs minutes for.
    """
    binaries.get(say, binaries.BuildOutput(say))
    image.base_layer(say)
    with lab_folder() as folder:
        try:
            yield kubernetes.up(folder, ends_with=os.getpid(), nodes=nodes, virtual_nodes=virtual_nodes, **wanted)
        finally:
            _end(kubernetes.find(folder))


@contextmanager
def hosts_lab(say: Say = quiet, **wanted: Any) -> Iterator[HostsLab]:
    """Gives bare hosts; takes the fields of `podwright.lab.hosts.shape.HostsLabShape` by name."""
    hosts_image.get(say)
    with lab_folder() as folder:
        try:
            yield hosts.up(folder, ends_with=os.getpid(), **wanted)
        finally:
            _end(hosts.find(folder))


def aloud(config: pytest.Config) -> Say:
    """Gives what prints a line while a fixture is at work, past pytest's capture and out of a worker of xdist."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")

    def say(word: str, text: str) -> None:
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"{word:<9} {text}", file=sys.stderr, flush=True)

    return say


@contextmanager
def lab_folder() -> Iterator[Path]:
    """Gives a folder that is the lab itself: where a lab ends with a test run that was killed, nothing is left."""
    folder = Path(tempfile.mkdtemp(prefix="pwlab-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end(lab: Lab | None) -> None:
    """Ends what is left: all of the lab, or the half of one that did not come up."""
    if lab is not None:
        lab.down()
