"""An exporter of DCGM that runs on this host already: its page is passed on, with whose each GPU is."""

from __future__ import annotations

import re
import urllib.request
from typing import Callable, Dict, Iterator, List, Tuple

from ..page import Labels, MetricSample
from .jobs import Owner

_MAX_BYTES, _TIMEOUT_S = 16 << 20, 5.0
_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?\Z")
_PAIR = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)",?\s*')
_MEANT = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def fetched(where: str) -> str:
    """Return a page of metrics of this machine; no proxy is asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(where, timeout=_TIMEOUT_S) as answer:
        return str(answer.read(_MAX_BYTES).decode("utf-8", "replace"))


class Bridge:
    """Reads the other exporter; `owner_of(gpu, mig)` says whose a GPU or a slice is."""

    def __init__(self, fetch: Callable[[], str], owner_of: Callable[[str, str], Owner]) -> None:
        self._fetch, self._owner_of = fetch, owner_of
        self._samples: List[MetricSample] = []
        self.kinds: Dict[str, Tuple[str, str]] = {}

    def read(self, now: float) -> List[MetricSample]:
        """Read its page; what is in it is told by `told`, with whose a GPU is at that time."""
        self._samples, self.kinds = parse(self._fetch())
        return []

    def told(self) -> Iterator[MetricSample]:
        """Yield its samples with our labels behind its own."""
        return map(self._owned, self._samples)

    def _owned(self, sample: MetricSample) -> MetricSample:
        labels = dict(sample.labels)
        if "gpu" not in labels:
            return sample
        owner = self._owner_of(labels["gpu"], labels.get("GPU_I_ID", ""))
        more = tuple((name, value) for name, value in owner.labels() if name not in labels)
        return sample._replace(labels=(*sample.labels, *more))


def parse(text: str) -> Tuple[List[MetricSample], Dict[str, Tuple[str, str]]]:
    """Return the samples of a page with the kind and meaning of each name; a line that is none is passed over."""
    kinds: Dict[str, Tuple[str, str]] = {}
    helps: Dict[str, str] = {}
    samples = []
    for line in text.splitlines():
        words = line.split(" ", 3)
        if line.startswith("# HELP ") and len(words) == 4:
            helps[words[2]] = words[3]
        elif line.startswith("# TYPE ") and len(words) == 4:
            kinds[words[2]] = (words[3].strip(), helps.get(words[2], ""))
        else:
            found = _LINE.match(line)
            if found is not None:
                samples += _sample(found)
    return samples, {**{sample.name: ("untyped", "") for sample in samples}, **kinds}


def _sample(found: "re.Match[str]") -> List[MetricSample]:
    try:
        value = float(found[3])
    except ValueError:
        return []
    pairs: Labels = tuple((name, _meant(label)) for name, label in _PAIR.findall(found[2] or ""))
    return [MetricSample(found[1], pairs, value)]


def _meant(label: str) -> str:
    return re.sub(r"\\.", lambda pair: _MEANT.get(pair[0], pair[0]), label)
