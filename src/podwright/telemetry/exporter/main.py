"""The exporter of a host: puts its sensors on a panel, and makes a page of them whenever one is asked for."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from typing import Dict, Iterator, List, NamedTuple, Optional, Union

from ...pilot.sensors.nvml import NvmlError
from ...pilot.sensors.proc import Scope
from ..page import MetricSample, page
from ..server import Guard, MetricsServer, add_place, place_of
from .bridge import Bridge, fetched
from .cards import Cards
from .ethtool import pause_samples
from .expected import expected_samples
from .gpus import Board, gpus_on_bus
from .heads import kinds
from .host import HostSensor, own_cost
from .jobs import Owner, Owners, Processes, Slurm, said
from .kernel_log import KernelJournal, LogFile, XidCounts
from .mounts import mount_reader, network_mounts, nfs_samples
from .pods import KubernetesPods, pods_of_node
from .ports import port_samples
from .sensors import Panel, PanelSensor
from .telling import Holding, board_samples, foreign_samples
from .vocabulary import NAMES
from .words import RunWords
from .written import written_samples

PORT = 9835
DCGM_PAGE = "http://127.0.0.1:9400/metrics"
_VERSION, _FIRST_S = "1", 10.0


class ExporterSettings(NamedTuple):
    """What an exporter is told: where it looks, and in whose words it speaks."""

    host: str
    names: str = "both"
    scope: Scope = Scope(environ={})
    kernel_log: str = ""
    """A file with the kernel's log; left out, it is systemd's journal."""
    bridge: str = ""
    """The page of an exporter of DCGM on this machine."""
    gpus: Optional[int] = None
    """How many GPUs the pod's file says there are."""


class HostExporter:
    """One host's exporter: `start` begins to read, `text` makes a page."""

    def __init__(self, settings: ExporterSettings) -> None:
        self._settings, self._panel = settings, Panel()
        self._boards: Dict[str, Board] = {}
        self._lost: List[str] = []
        self._lib: Optional[Cards] = None
        scope = settings.scope
        self._owners = Owners(Processes(scope), Slurm(said), KubernetesPods(lambda: pods_of_node(scope)))
        self._log: Union[LogFile, KernelJournal] = (
            LogFile(settings.kernel_log) if settings.kernel_log else KernelJournal()
        )
        self._xids = XidCounts(self._log.lines, self._gpu_at, self._owner_of)
        self._words = RunWords(scope, self._owners.users_of)
        self._bridge = Bridge(lambda: fetched(settings.bridge), self._owner_of) if settings.bridge else None

    def start(self) -> None:
        """Begin to read every sensor."""
        scope = self._settings.scope
        self._words.open()
        rows = (
            PanelSensor("gpus", 30.0, self._find_gpus),
            PanelSensor("owners", 2.0, self._find_owners),
            PanelSensor("xid", 1.0, self._read_xids),
            PanelSensor("ports", 5.0, lambda now: port_samples(scope)),
            PanelSensor("pauses", 10.0, lambda now: pause_samples(scope)),
            PanelSensor("host", 5.0, HostSensor(scope).read),
            PanelSensor("runs", 5.0, self._words.read),
            PanelSensor("expected", 60.0, lambda now: expected_samples(scope)),
            PanelSensor("mounts", 30.0, self._find_mounts),
            PanelSensor("files", 300.0, lambda now: written_samples(scope)),
        )
        for sensor in rows:
            self._panel.add(sensor)
        if self._bridge is not None:
            self._panel.add(PanelSensor("bridge", 10.0, self._bridge.read))

    def close(self) -> None:
        """End the sensors."""
        self._panel.close()
        self._log.close()

    def first_page(self) -> str:
        """Begin to read, and return the page when every sensor has looked once, or hangs."""
        self.start()
        self._panel.wait(_FIRST_S)
        self._find_owners(time.monotonic())
        return self.text()

    def text(self, open_metrics: bool = False) -> str:
        """Return the page as it is now."""
        now = time.monotonic()
        known = kinds()
        if self._bridge is not None:
            known = {**known, **self._bridge.kinds}
        return page(known, self._samples(now), open_metrics)

    def _samples(self, now: float) -> Iterator[MetricSample]:
        for sample in self._own(now):
            is_ours = sample.name.startswith("podwright_")
            yield sample._replace(labels=(("host", self._settings.host), *sample.labels)) if is_ours else sample
        yield from self._foreign(now)

    def _own(self, now: float) -> Iterator[MetricSample]:
        yield from self._panel.samples(now)
        yield from own_cost()
        driver = next((board.devices[""].driver for board in self._boards.values()), "")
        source = "nvml" if self._bridge is None else "dcgm"
        labels = (("version", _VERSION), ("driver", driver), ("source", source))
        yield MetricSample("podwright_exporter_info", labels, 1.0)
        for name, board in sorted(self._boards.items()):
            yield from board_samples(board, Holding(board, self._owners), self._is_up(name, now))
        for index in self._lost:
            yield MetricSample("podwright_gpu_up", (("gpu", index),), 0.0)

    def _foreign(self, now: float) -> Iterator[MetricSample]:
        if self._bridge is not None:
            if self._panel.is_fresh("bridge", now):
                yield from self._bridge.told()
            return
        vocabularies = NAMES[self._settings.names]
        for name, board in sorted(self._boards.items()):
            if self._is_up(name, now):
                last = self._xids.last.get(board.index, 0)
                holding = Holding(board, self._owners)
                yield from foreign_samples(board, holding, self._settings.host, vocabularies, last)

    def _is_up(self, name: str, now: float) -> bool:
        return self._panel.is_fresh(name, now) and not self._boards[name].is_lost

    # -- sensors that look for others

    def _find_gpus(self, now: float) -> List[MetricSample]:
        on_bus = gpus_on_bus(self._settings.scope)
        samples = [MetricSample("podwright_gpus_on_bus", (), float(on_bus))]
        if self._settings.gpus is not None:
            samples.append(MetricSample("podwright_gpus_expected", (), float(self._settings.gpus)))
        lib = self._library(must=bool(on_bus or self._settings.gpus))
        count = 0 if lib is None else len(lib.handles())
        self._lost = [] if lib is None else [str(index) for index in range(count) if not self._has_board(lib, index)]
        return [*samples, MetricSample("podwright_gpus", (), float(count))]

    def _library(self, must: bool) -> Optional[Cards]:
        """Return NVIDIA's library; a host without GPUs has none, and that is no fault."""
        if self._lib is None:
            lib = Cards(self._settings.scope.nvml)
            try:
                lib.open()
            except OSError:
                if must:
                    raise
                return None
            self._lib = lib
        return self._lib

    def _has_board(self, lib: Cards, index: int) -> bool:
        """Begin to read a GPU that is not read yet; return whether it is read."""
        name = "gpu%d" % index
        if name not in self._boards:
            try:
                board = Board(lib, index, self._settings.scope)
            except NvmlError as error:
                print("%s: %s" % (name, error), file=sys.stderr, flush=True)
                return False
            self._boards = {**self._boards, name: board}
            self._panel.add(PanelSensor(name, 1.0, board.read))
        return True

    def _find_mounts(self, now: float) -> List[MetricSample]:
        """Begin to read every file system of the network, each by itself: one whose server is away hangs."""
        scope = self._settings.scope
        for mount, kind in network_mounts(scope):
            self._panel.add(PanelSensor("mount " + mount, 30.0, mount_reader(scope, mount, kind)))
        return list(nfs_samples(scope))

    def _find_owners(self, now: float) -> List[MetricSample]:
        pids: List[int] = []
        for board in self._boards.values():
            pids += board.pids()
        self._owners.look(pids)
        return []

    def _read_xids(self, now: float) -> List[MetricSample]:
        """Read the kernel's log; of an exporter that begins only when it knows the GPUs, or has waited for them.

        The same XID under a place on the bus and under a number would be two alerts.
        """
        if self._xids.is_first:
            self._panel.wait_for("gpus", _FIRST_S)
        return self._xids.read(now)

    def _gpu_at(self, pci: str) -> str:
        return next((board.index for board in self._boards.values() if board.devices[""].pci == pci), pci)

    def _owner_of(self, gpu: str, mig: str = "") -> Owner:
        board = self._boards.get("gpu" + gpu)
        return Owner() if board is None else Holding(board, self._owners).only(mig)


class ExporterWords(NamedTuple):
    """What people say of an exporter, on the command line or in a unit."""

    listen: str = "127.0.0.1:%d" % PORT
    host: str = ""
    names: str = "both"
    bridge: str = "auto"
    gpus: Optional[int] = None
    kernel_log: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""
    once: bool = False
    """Print the page and end."""
    root: str = "/"
    nvml: str = "libnvidia-ml.so.1"


def serve(words: ExporterWords) -> None:
    """Serve the page until the process ends; a ValueError or an OSError says what is wrong with the words."""
    scope = Scope(root=words.root, environ={}, nvml=words.nvml)
    host = words.host or socket.gethostname()
    settings = ExporterSettings(host, words.names, scope, words.kernel_log, bridged(words.bridge), words.gpus)
    exporter = HostExporter(settings)
    if words.once:
        print(exporter.first_page(), end="")
        exporter.close()
        return
    guard = Guard.of_files(words.certificate, words.key, words.token)
    with MetricsServer(place_of(words.listen), exporter.text, guard) as server:
        exporter.start()
        server.serve_forever()


def main(arguments: List[str]) -> None:
    """Take the words of `exporters.py gpu`."""
    try:
        serve(ExporterWords(**vars(parser().parse_args(arguments))))
    except (ValueError, OSError) as error:
        raise SystemExit("exporters.py gpu: %s" % error)


def parser() -> argparse.ArgumentParser:
    """Return what `exporters.py gpu` takes."""
    usual = ExporterWords()
    made = argparse.ArgumentParser(prog="exporters.py gpu", description="Tell Prometheus of this host's GPUs and runs.")
    made.add_argument("--host", default=usual.host, help="what this host is called (default: its own name)")
    made.add_argument(
        "--vocabulary",
        dest="names",
        choices=sorted(NAMES),
        default=usual.names,
        help="names beside ours (default: both)",
    )
    made.add_argument("--bridge", default=usual.bridge, help="auto, off, or the page of an exporter of DCGM")
    made.add_argument("--gpus", type=int, help="how many GPUs there should be")
    made.add_argument("--kernel-log", default=usual.kernel_log, help="a file with the kernel's log, not the journal")
    made.add_argument("--once", action="store_true", help="print the page and end")
    made.add_argument("--root", default=usual.root, help=argparse.SUPPRESS)
    made.add_argument("--nvml", default=usual.nvml, help=argparse.SUPPRESS)
    add_place(made, usual.listen)
    return made


def bridged(word: str) -> str:
    """Return the page of DCGM's exporter that is passed on: the one that is named, or one that answers here."""
    if word == "off":
        return ""
    if word != "auto":
        return word
    try:
        return DCGM_PAGE if "DCGM_FI_" in fetched(DCGM_PAGE) else ""
    except (OSError, ValueError):
        return ""
