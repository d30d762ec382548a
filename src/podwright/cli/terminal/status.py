"""The status of a run in a line, or two where the terminal is narrow: how far, how fast, how good, on what machines."""

from __future__ import annotations

from collections.abc import Sequence

from podwright.cli.terminal import figures
from podwright.cli.terminal.machines import NodeView, fullest, mean_use, slowest, straggler
from podwright.cli.terminal.output import WORD_WIDTH, clip, plain
from podwright.cli.terminal.progress import Progress

Piece = tuple[str, str]
Line = list[Piece]

MIN_BAR, MAX_BAR = 6, 24
CLOCK_WIDTH = 7


def status(progress: Progress, elapsed_s: float | None, width: int) -> list[Line]:
    """Draw the state and progress, and beside or below it the machines."""
    machines = machine_pieces(progress)
    taken = sum(len(text) for text, _ in machines)
    beside = width - taken - 2
    if machines and beside >= len(_needed(progress)):
        return [[*progress_line(progress, elapsed_s, beside), ("  ", ""), *machines]]
    first = progress_line(progress, elapsed_s, width)
    if not machines:
        return [first]
    return [first, _clipped([(" " * WORD_WIDTH, ""), *machines], width)]


def progress_line(progress: Progress, elapsed_s: float | None, width: int) -> Line:
    """Draw the state, how far it is, the time left, the rate and the last values; a bar where there is room for one."""
    state = progress.record.state
    word = f"{state:<{WORD_WIDTH}}"
    if elapsed_s is not None:
        elapsed_s = float(int(elapsed_s))
    clock = f"{figures.duration(elapsed_s):>{CLOCK_WIDTH}}"
    far, beside, share = _far(progress), _beside(progress), progress.share()
    if state == "pending":  # what an attempt before had come to is not where it is
        far, beside, share = progress.waiting_for(), "", None
    room = width - len(word) - len(clock) - 2
    bar_width = min(MAX_BAR, room - len(far) - len(beside) - 3)
    if share is None or bar_width < MIN_BAR:
        text = plain("  ".join(filter(None, (far, beside))))
        return [(word, state), (f"{clip(text, room):<{room}}  ", ""), (clock, "dim")]
    done, rest = figures.bar(share, bar_width)
    beside = f"{beside:<{room - len(far) - bar_width - 3}}  "
    return [(word, state), (f"{far} ", ""), (done, "bar"), (rest, "dim"), (f"  {beside}", ""), (clock, "dim")]


def _far(progress: Progress) -> str:
    return progress.how_far() or progress.waiting_for()


def _beside(progress: Progress) -> str:
    return "  ".join(filter(None, (progress.eta(), progress.rate(), progress.quality())))


def _needed(progress: Progress) -> str:
    """Return as much as the line of the progress needs, with a bar of some length."""
    return " " * (WORD_WIDTH + CLOCK_WIDTH + MIN_BAR + 5) + _far(progress) + _beside(progress)


def machine_pieces(progress: Progress) -> Line:
    """Draw the mean use of all GPUs, the slowest beside it, and the fullest; without GPUs the same of the CPUs."""
    gpus = progress.gpus()
    last = slowest(gpus)
    if last is None:
        return _cpu_pieces(progress)
    pieces: Line = [(f"gpu {_percent(mean_use(gpus))}", "gpu")]
    if len(gpus) > 1:
        word, role = ("straggler", "warn") if straggler(gpus) else ("slowest", "")
        pieces.append((" mean, ", ""))
        pieces.append((f"{word} {_percent(last.use)} {_name(progress, last.node)} gpu {last.gpu}", role))
    full = fullest(gpus)
    if full is not None:
        pieces.append((f"  mem {used_of(full.memory_bytes, full.total_bytes)}", ""))
    return pieces


def _cpu_pieces(progress: Progress) -> Line:
    nodes = [node for node in progress.nodes.values() if node.cpu_percent is not None]
    if not nodes:
        return []
    uses = [node.cpu_percent or 0.0 for node in nodes]
    text = f"cpu {_percent(sum(uses) / len(uses))}"
    least = min(nodes, key=lambda node: node.cpu_percent or 0.0)
    if len(nodes) > 1:
        text += f" mean, least {_percent(least.cpu_percent)} {_name(progress, least.number)}"
    return [(text, "cpu"), (f"  mem {_memory(nodes)}", "")]


def _memory(nodes: Sequence[NodeView]) -> str:
    """Return the memory of the node that has used most of it."""
    full = max(nodes, key=lambda node: node.values.get("memory_used_bytes", 0.0))
    return used_of(full.values.get("memory_used_bytes"), full.memory_total_bytes)


def used_of(used: float | None, total: float | None) -> str:
    """Return `71.2/80 GiB`: both in the unit of the greater one."""
    if used is None or total is None or not total:
        return figures.size(used)
    whole, unit = figures.size(total).split()
    return f"{round(used / total * float(whole), 1):g}/{whole} {unit}"


def _percent(number: float | None) -> str:
    return figures.percent(number).strip()


def _name(progress: Progress, node: int) -> str:
    return clip(plain(progress.label(node)), 20)


def _clipped(line: Line, width: int) -> Line:
    """Cut a line to a width, piece by piece."""
    pieces, room = [], width
    for text, role in line:
        if room > 0:
            pieces.append((clip(text, room), role))
        room -= len(text)
    return pieces
