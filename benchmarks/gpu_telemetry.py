"""What `podwright exporter` tells of a real GPU beside nvidia-smi, idle and under steady load, and what it costs.

    python3 benchmarks/gpu_telemetry.py [--seconds 60] [--json OUT]     where the GPU is: nothing of ours is installed

Both look once a second. Medians of what both call the same may differ by 2 % (or by one whole unit, where that is
more); counters are held against each other by their difference; limits and identities must be the same. Load is a
matrix product in PyTorch, where it is there.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from podwright.telemetry.exporter.bridge import parse  # noqa: E402
from podwright.telemetry.exporter.main import ExporterSettings, HostExporter  # noqa: E402

TOLERANCE = 0.02
LOAD = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while True:
    for _ in range(100):
        a = (a @ a).clamp(-1, 1)
    torch.cuda.synchronize()
"""


class Pair(NamedTuple):
    """A quantity of both: nvidia-smi's word, our series, and what ours is multiplied by for its unit."""

    query: str
    name: str
    factor: float = 1.0
    label: str = ""
    unit: float = 1.0
    """The smallest step that nvidia-smi prints."""


READINGS = (
    Pair("temperature.gpu", "podwright_gpu_temperature_celsius"),
    Pair("temperature.memory", "podwright_gpu_memory_temperature_celsius"),
    Pair("power.draw.average", "podwright_gpu_power_watts", unit=0.01),
    Pair("power.draw.instant", "podwright_gpu_power_instant_watts", unit=0.01),
    Pair("utilization.gpu", "podwright_gpu_utilization_ratio", 100),
    Pair("memory.used", "podwright_gpu_memory_used_bytes", 1 / (1 << 20)),
    Pair("clocks.sm", "podwright_gpu_sm_clock_hertz", 1e-6),
    Pair("clocks.mem", "podwright_gpu_memory_clock_hertz", 1e-6),
)
COUNTERS = (
    Pair("clocks_event_reasons_counters.sw_power_cap", "podwright_gpu_throttle_seconds_total", 1e6, 'reason="power"'),
    Pair("ecc.errors.corrected.volatile.total", "podwright_gpu_ecc_errors_total", 1, 'error="corrected"'),
    Pair("ecc.errors.uncorrected.volatile.total", "podwright_gpu_ecc_errors_total", 1, 'error="uncorrected"'),
    Pair("remapped_rows.uncorrectable", "podwright_gpu_remapped_rows_total", 1, 'error="uncorrected"'),
)
SAME = (
    Pair("power.limit", "podwright_gpu_power_limit_watts", label='limit="requested"', unit=0.01),
    Pair("enforced.power.limit", "podwright_gpu_power_limit_watts", label='limit="enforced"', unit=0.01),
    Pair("power.min_limit", "podwright_gpu_power_limit_watts", label='limit="min"', unit=0.01),
    Pair("power.max_limit", "podwright_gpu_power_limit_watts", label='limit="max"', unit=0.01),
    Pair("power.default_limit", "podwright_gpu_power_limit_watts", label='limit="default"', unit=0.01),
    Pair("clocks.max.sm", "podwright_gpu_sm_clock_max_hertz", 1e-6),
    Pair("pcie.link.gen.max", "podwright_gpu_pcie_link_generation_max"),
    Pair("pcie.link.width.max", "podwright_gpu_pcie_link_width_max"),
    Pair("memory.total", "podwright_gpu_memory_bytes", 1 / (1 << 20)),
)
IDENTITIES = {"uuid": "uuid", "name": "model", "driver_version": "driver"}


def asked(words: Sequence[str]) -> list[str]:
    """What nvidia-smi says of the first GPU, by the words it was asked for."""
    command = ["nvidia-smi", f"--query-gpu={','.join(words)}", "--format=csv,noheader,nounits", "--id=0"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [cell.strip() for cell in said.split(",")]


def known(pairs: Sequence[Pair]) -> list[Pair]:
    """Those of them that this nvidia-smi has a word for."""
    found = []
    for pair in pairs:
        try:
            asked([pair.query])
        except subprocess.CalledProcessError:
            print(f"nvidia-smi does not know {pair.query}", file=sys.stderr)
        else:
            found.append(pair)
    return found


def number(text: str) -> float | None:
    """A cell as a number; none where the card has nothing to say."""
    try:
        return float(text)
    except ValueError:
        return None


def told(exporter: HostExporter) -> dict[str, float]:
    """Our series of the first GPU, by name and, where there are several, their own label."""
    values = {}
    for sample in parse(exporter.text())[0]:
        labels = dict(sample.labels)
        if labels.get("gpu") == "0" and not labels.get("mig"):
            values[sample.name] = sample.value
            values.update({f'{sample.name}{key}="{value}"': sample.value for key, value in labels.items()})
    return values


@contextmanager
def loaded(is_loaded: bool) -> Iterator[None]:
    """A GPU at work, and warm."""
    if not is_loaded:
        yield
        return
    work = subprocess.Popen([sys.executable, "-c", LOAD])
    try:
        time.sleep(20)
        if work.poll() is not None:
            raise SystemExit("the load did not start: is PyTorch there?")
        yield
    finally:
        work.kill()
        work.wait()


def cpu_s(who: int) -> float:
    """CPU time so far, of this process or of the children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def phase(exporter: HostExporter, seconds: int) -> dict[str, object]:
    """Look once a second with both, and hold what they said against each other."""
    ours: list[dict[str, float]] = []
    theirs: list[list[str]] = []
    readings, counters = known(READINGS), known(COUNTERS)
    words = [pair.query for pair in (*readings, *counters)]
    began, own, children = time.monotonic(), cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_CHILDREN)
    for tick in range(seconds):
        time.sleep(max(0.0, began + tick - time.monotonic()))
        theirs.append(asked(words))
        ours.append(told(exporter))
    took = time.monotonic() - began
    rows = [row_of(pair, [line[i] for line in theirs], ours) for i, pair in enumerate(readings)]
    rows += [grown(pair, [line[len(readings) + i] for line in theirs], ours) for i, pair in enumerate(counters)]
    return {
        "rows": rows,
        "exporter_core_percent": round(100 * (cpu_s(resource.RUSAGE_SELF) - own) / took, 3),
        "nvidia_smi_core_percent": round(100 * (cpu_s(resource.RUSAGE_CHILDREN) - children) / took, 3),
    }


def ours_of(pair: Pair, values: dict[str, float]) -> float | None:
    """Our value in nvidia-smi's unit."""
    value = values.get(pair.name + pair.label)
    return None if value is None else value * pair.factor


def row_of(pair: Pair, cells: Sequence[str], ours: Sequence[dict[str, float]]) -> dict[str, object]:
    """Medians of both."""
    return judged(pair, cells, [ours_of(pair, values) for values in ours], median)


def grown(pair: Pair, cells: Sequence[str], ours: Sequence[dict[str, float]]) -> dict[str, object]:
    """How far a counter went in both."""
    return judged(pair, cells, [ours_of(pair, values) for values in ours], lambda values: values[-1] - values[0])


def judged(
    pair: Pair, cells: Sequence[str], mine: Sequence[float | None], of: Callable[[list[float]], float]
) -> dict[str, object]:
    """One row: both values, how far they are apart, and whether that is little enough."""
    left = [value for value in mine if value is not None]
    right = [value for value in map(number, cells) if value is not None]
    if not left or not right:
        return {"what": pair.query, "ours": len(left), "nvidia_smi": cells[0], "verdict": "not told by both"}
    a, b = of(left), of(right)
    verdict = "met" if abs(a - b) <= max(pair.unit, TOLERANCE * abs(b)) else "missed"
    apart = abs(a - b) / abs(b) if b else abs(a - b)
    return {"what": pair.query, "ours": a, "nvidia_smi": b, "apart": round(apart, 5), "verdict": verdict}


def identities(exporter: HostExporter) -> list[dict[str, object]]:
    """What must be the same to the letter, and limits to the last digit that nvidia-smi prints."""
    info = next(dict(sample.labels) for sample in parse(exporter.text())[0] if sample.name == "podwright_gpu_info")
    rows: list[dict[str, object]] = []
    for (word, label), said in zip(IDENTITIES.items(), asked(list(IDENTITIES)), strict=True):
        rows.append({"what": word, "ours": info[label], "verdict": "met" if info[label] == said else "missed"})
    values = told(exporter)
    same_pairs = known(SAME)
    for pair, said in zip(same_pairs, asked([pair.query for pair in same_pairs]), strict=True):
        mine, theirs = ours_of(pair, values), number(said)
        same = mine is not None and theirs is not None and abs(mine - theirs) <= pair.unit / 2
        rows.append({"what": pair.query, "ours": mine, "nvidia_smi": said, "verdict": "met" if same else "missed"})
    return rows


def main() -> int:
    """Look, print and write down; 1 where anything was missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--idle-only", action="store_true", help="without PyTorch")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    exporter = HostExporter(ExporterSettings("here"))
    exporter.first_page()
    found: dict[str, object] = {"identities": identities(exporter)}
    for name in ("idle",) if given.idle_only else ("idle", "load"):
        with loaded(name == "load"):
            found[name] = phase(exporter, given.seconds)
    found["memory_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    text = json.dumps(found, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text + "\n")
    return int('"missed"' in text)


if __name__ == "__main__":
    raise SystemExit(main())
