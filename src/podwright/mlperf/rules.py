"""The rules of MLPerf's checker that decide what a log is worth, as sentences; some refuse the log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podwright.mlperf.log import LogEntry

DROPPED = {"unet3d": 4}
"""Of how many runs at each end an olympic mean does without, where it is not one."""
_NAMES = """
    bert cosmoflow deepcam deepseekv3_671b dlrm dlrm_dcnv2 dlrmv4 flux1 gnmt gnn gpt3 gpt_oss_20b
    llama2_70b_lora llama31_405b llama31_8b maskrcnn minigo ncf oc20 openfold qwen35_397b_grpo resnet
    retinanet rgat rnnt ssd stable_diffusion transformer translation unet3d
"""
BENCHMARKS = frozenset(_NAMES.split())
_PAIRS = (("run_start", "run_stop"), ("eval_start", "eval_stop"))
_NEEDS = {
    "epoch_start": ("epoch_num",),
    "epoch_stop": ("epoch_num",),
    "block_start": ("epoch_count", "samples_count"),
    "block_stop": ("first_epoch_num", "samples_count"),
    "eval_start": ("epoch_num", "samples_count"),
    "eval_stop": ("epoch_num", "samples_count"),
    "eval_accuracy": ("epoch_num", "samples_count"),
}
"""One of these stands in the metadata of a key."""
_STATUS = ("success", "aborted")


@dataclass(frozen=True)
class LogWarning:
    """A rule that a log does not keep, and where; `refuses`: its times cannot be believed."""

    file: str
    line: int | None
    rule: str
    refuses: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench score` lists it."""
        return asdict(self)


def check_log(file: str, entries: Sequence[LogEntry]) -> list[LogWarning]:
    """Return what a log does not keep, in the order of its lines."""
    by_key: dict[str, list[LogEntry]] = {}
    for entry in entries:
        by_key.setdefault(entry.key, []).append(entry)
    found = [*_counts(by_key), *_order(entries, by_key), *_twice(by_key), *_metadata(by_key)]
    rows = [LogWarning(file, line, rule, refuses) for line, rule, refuses in found]
    return sorted(rows, key=lambda row: row.line or 0)


_Found = Iterator[tuple[int | None, str, bool]]
_ByKey = dict[str, list[LogEntry]]


def _counts(by_key: _ByKey) -> _Found:
    """Yield keys that are not there once: two runs in a file, a restart, two ranks that both log."""
    for key in ("run_start", "run_stop", "init_stop", "submission_benchmark"):
        rows = by_key.get(key, [])
        if len(rows) > 1:
            rule = f"{key} is there {len(rows)} times: two runs, a restart, or two ranks in one log"
            yield rows[1].line, rule, False
        if not rows:
            yield None, f"{key} is missing", False
    if not by_key.get("init_start"):
        yield None, "init_start is missing", False
    if not any(by_key.get(key) for key in ("epoch_start", "block_start")):
        yield None, "neither epoch_start nor block_start is there", False
    for entry in by_key.get("submission_benchmark", []):
        if entry.value not in BENCHMARKS:
            yield entry.line, f"{entry.value!r} is no benchmark that MLPerf knows", False


def _order(entries: Sequence[LogEntry], by_key: _ByKey) -> _Found:
    for start, stop in _PAIRS:
        for first, last in zip(by_key.get(start, []), by_key.get(stop, []), strict=False):
            if last.time_s < first.time_s:
                yield last.line, f"{stop} is earlier than its {start}", True
    seen: set[str] = set()
    for entry in entries:
        for key, before in (("run_start", "init_stop"), ("run_stop", "run_start"), ("init_stop", "init_start")):
            if entry.key == key and before in by_key and before not in seen:
                yield entry.line, f"{key} stands before {before}", key == "run_stop"
        if entry.key.startswith("init_") and "run_start" in seen:
            yield entry.line, f"{entry.key} stands behind run_start: two runs, or a restart, in one log", True
        seen.add(entry.key)


def _twice(by_key: _ByKey) -> _Found:
    """Yield epochs and blocks that begin twice: they would be counted twice."""
    for key, number in (("epoch_start", "epoch_num"), ("block_start", "first_epoch_num")):
        seen: set[object] = set()
        for entry in by_key.get(key, []):
            value = entry.metadata.get(number)
            if value is not None and str(value) in seen:
                yield (
                    entry.line,
                    f"{key} of {number} {value} is there twice: two ranks log, or the run was restarted",
                    False,
                )
            seen.add(str(value))


def _metadata(by_key: _ByKey) -> _Found:
    for key, names in _NEEDS.items():
        for entry in by_key.get(key, []):
            if not any(name in entry.metadata for name in names):
                yield entry.line, f"{key} says no {' or '.join(names)}", False
    for entry in by_key.get("run_stop", []):
        if entry.metadata.get("status") not in _STATUS:
            yield entry.line, "run_stop says neither success nor aborted", False
