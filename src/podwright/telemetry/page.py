"""A page of metrics: what Prometheus reads, in its plain form or as OpenMetrics 1.0."""

from __future__ import annotations

import math
from typing import Dict, Iterable, List, Mapping, NamedTuple, Tuple

Labels = Tuple[Tuple[str, str], ...]
Kinds = Mapping[str, Tuple[str, str]]
"""Kind and meaning of each name, in the order in which a page has them."""

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_BLANKS = ((2.0**31 - 16, 2.0**31 - 1), (2.0**47, 2.0**47 + 15), (2.0**63 - 1024, 2.0**64))
"""What NVML and DCGM write where they have no value, from and to; the last are no longer apart as floats."""
_TOTAL = "_total"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class MetricSample(NamedTuple):
    """One value of a series."""

    name: str
    labels: Labels
    value: float


def page(kinds: Kinds, samples: Iterable[MetricSample], open_metrics: bool = False) -> str:
    """Return the samples, those of a name together; a value that is none, or a label that is empty, is left out."""
    rows: Dict[str, List[str]] = {}
    for sample in samples:
        if not is_blank(sample.value):
            rows.setdefault(sample.name, []).append(_line(sample))
    lines: List[str] = []
    for name, (kind, text) in kinds.items():
        if name in rows:
            lines += _head(name, kind, text, open_metrics)
            lines += sorted(rows[name])
    if open_metrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def is_blank(value: float) -> bool:
    """Return whether a value stands for "none": not a number, or one of those that NVML and DCGM write for it."""
    if math.isnan(value) or math.isinf(value):
        return True
    return any(lowest <= value <= highest for lowest, highest in _BLANKS)


def _head(name: str, kind: str, text: str, open_metrics: bool) -> List[str]:
    if open_metrics and kind == "counter":
        # OpenMetrics knows a counter by its ending alone; one of dcgm-exporter's without it is of no known kind there.
        name, kind = (name[: -len(_TOTAL)], kind) if name.endswith(_TOTAL) else (name, "unknown")
    return ["# HELP %s %s" % (name, text.replace("\\", "\\\\").replace("\n", "\\n")), "# TYPE %s %s" % (name, kind)]


def _line(sample: MetricSample) -> str:
    pairs = ",".join('%s="%s"' % (key, label.translate(_ESCAPED)) for key, label in sample.labels if label)
    value = float(sample.value)
    shown = "%d" % value if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "%s%s %s" % (sample.name, "{%s}" % pairs if pairs else "", shown)
