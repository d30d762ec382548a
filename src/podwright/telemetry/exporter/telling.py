"""Readings become samples: each quantity by our own name and by those of dcgm-exporter, with whose the GPU is."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

from ..page import Labels, MetricSample
from .gpus import Board, GpuIdentity, Values
from .jobs import Owner, Owners
from .vocabulary import DRIVER_LABEL, HOST_LABEL, LAST_XID, TERMS, Term


class Holding:
    """Who holds each device of a board: runs, and the memory that each has."""

    def __init__(self, board: Board, owners: Owners) -> None:
        self._memory: Dict[str, Dict[Owner, float]] = {}
        for mig, holders in board.holders.items():
            ranks: Dict[Owner, List[str]] = {}
            memory: Dict[Owner, float] = {}
            for pid, memory_bytes in holders:
                owner = owners.owner(pid)
                if owner != Owner():
                    whole = owner._replace(rank="")
                    ranks.setdefault(whole, []).append(owner.rank)
                    memory[whole] = memory.get(whole, 0.0) + memory_bytes
            self._memory[mig] = {with_ranks(whole, ranks[whole]): value for whole, value in memory.items()}

    def only(self, mig: str) -> Owner:
        """Return the one that holds a device; nobody where several share it in time."""
        found = self._memory.get(mig, {})
        return next(iter(found)) if len(found) == 1 else Owner()

    def samples(self, device: GpuIdentity) -> Iterator[MetricSample]:
        """Yield who holds a device."""
        place: Labels = (("gpu", device.gpu), ("mig", device.mig))
        found = self._memory.get(device.mig, {})
        yield MetricSample("podwright_gpu_owners", place, float(len(found)))
        for owner, memory_bytes in found.items():
            labels = (*place, *owner.labels())
            yield MetricSample("podwright_gpu_run_memory_bytes", labels, memory_bytes)
            if owner.run or owner.job:
                yield MetricSample("podwright_run_info", labels, 1.0)


def with_ranks(owner: Owner, ranks: Iterable[str]) -> Owner:
    """Return an owner with all of its ranks on a GPU: 3, or 3,7."""
    numbers = sorted({int(rank) for rank in ranks if rank})
    return owner._replace(rank=",".join(map(str, numbers)))


def board_samples(board: Board, holding: Holding, is_up: bool) -> Iterator[MetricSample]:
    """Yield what is told of a board under our own names; of one that does not answer, that alone."""
    up: Labels = (("gpu", board.index), *holding.only("").labels())
    yield MetricSample("podwright_gpu_up", up, float(is_up))
    if not is_up:
        return
    yield from board.states()
    for device, values in board.told():
        yield device.info()
        yield from holding.samples(device)
        labels: Labels = (("gpu", device.gpu), ("mig", device.mig), *holding.only(device.mig).labels())
        for term in TERMS:
            if term.key in values:
                yield MetricSample(term.name, (*labels, *term.fixed), values[term.key])


def foreign_samples(
    board: Board, holding: Holding, host: str, vocabularies: Sequence[str], last_xid: int
) -> Iterator[MetricSample]:
    """Yield what is told of a board under the names of dcgm-exporter, with its labels and units."""
    whole = board.devices[""]
    for device, values in board.told():
        own = {**values, LAST_XID.key: float(last_xid)} if not device.mig else values
        for vocabulary in vocabularies:
            labels = (*dcgm_labels(whole, device, host, vocabulary), *holding.only(device.mig).labels())
            yield from _said((*TERMS, LAST_XID), own, labels, vocabulary)


def _said(terms: Tuple[Term, ...], values: Values, labels: Labels, vocabulary: str) -> Iterator[MetricSample]:
    for term in terms:
        name = term.foreign(vocabulary)
        if name is not None and term.key in values:
            yield MetricSample(name.name, labels, values[term.key] * name.factor)


def dcgm_labels(board: GpuIdentity, device: GpuIdentity, host: str, vocabulary: str) -> Labels:
    """Return the labels that dcgm-exporter writes: a slice has its board's UUID, and numbers of its own."""
    domain, _, rest = board.pci.partition(":")
    return (
        ("gpu", board.gpu),
        ("UUID", board.uuid),
        ("pci_bus_id", "%08X:%s" % (int(domain, 16), rest.upper())),
        ("device", "nvidia" + board.gpu),
        ("modelName", board.model),
        ("GPU_I_PROFILE", device.profile),
        ("GPU_I_ID", device.mig),
        (HOST_LABEL[vocabulary], host),
        (DRIVER_LABEL[vocabulary], board.driver),
    )
