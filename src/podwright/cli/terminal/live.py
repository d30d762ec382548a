"""The live view of a run as lines of (text, role) pieces; pure, so that it can be looked at without a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from podwright.cli.terminal import figures
from podwright.cli.terminal.output import WORD_WIDTH, clip, plain
from podwright.cli.terminal.progress import NodeView, Progress

Piece = tuple[str, str]
Line = list[Piece]
MOST_NODES = 8


def picture(progress: Progress, elapsed_s: float | None, width: int) -> list[Line]:
    """Draws the progress line and a line per node; many nodes are folded into a summary."""
    nodes = [progress.nodes[number] for number in sorted(progress.nodes)]
    known = [node for node in nodes if node.cpu or node.gpu]
    rows = _summary(progress, known, width) if len(known) > MOST_NODES else _node_lines(progress, known, width)
    return [_progress_line(progress, elapsed_s, width), *rows]


def _progress_line(progress: Progress, elapsed_s: float | None, width: int) -> Line:
    state = str(progress.record.get("state", ""))
    word = f"{state:<{WORD_WIDTH}}"
    clock = f"{figures.duration(elapsed_s if elapsed_s is None else float(int(elapsed_s))):>7}"
    far, quality = progress.how_far() or progress.waiting_for(), progress.quality()
    room = width - len(word) - len(clock) - 2
    share = progress.share()
    beside = "  ".join(part for part in (far, quality) if part)
    bar_width = min(24, room - len(beside) - 3)
    if share is None or bar_width < 6:
        return [(word, state), (f"{clip(plain(beside), room):<{room}}  ", ""), (clock, "dim")]
    done, rest = figures.bar(share, bar_width)
    quality = f"{quality:<{room - len(far) - bar_width - 3}}  "
    return [(word, state), (f"{far} ", ""), (done, "bar"), (rest, "dim"), (f"  {quality}", ""), (clock, "dim")]


def _node_lines(progress: Progress, nodes: list[NodeView], width: int) -> list[Line]:
    labels = {node.number: plain(progress.label(node.number)) for node in nodes}
    label_width = max([WORD_WIDTH, *(min(len(label), 20) + 1 for label in labels.values())])
    has_gpu = any(node.gpu for node in nodes)
    fixed = label_width + (53 if has_gpu else 24)
    curve_width = max(4, min(30, (width - fixed) // (2 if has_gpu else 1)))
    return [_node_line(node, clip(labels[node.number], 20).ljust(label_width), curve_width, has_gpu) for node in nodes]


def _node_line(node: NodeView, label: str, curve_width: int, has_gpu: bool) -> Line:
    memory = figures.size(node.values.get("memory_used_bytes"))
    line: Line = [
        (label, "dim"),
        ("cpu ", ""),
        (figures.curve(node.cpu, curve_width), "cpu"),
        (f" {figures.percent(node.cpu_percent)}  mem {memory:<9}", ""),
    ]
    return line + _gpu_pieces(node, curve_width) if has_gpu else line


def _gpu_pieces(node: NodeView, curve_width: int) -> Line:
    count = len(node.gpus("utilization_percent"))
    power = "" if node.gpu_power_w is None else f"{node.gpu_power_w:.0f} W"
    return [
        (f"  {f'{count} gpu' if count > 1 else 'gpu':<5} ", ""),
        (figures.curve(node.gpu, curve_width), "gpu"),
        (f" {figures.percent(node.gpu_percent)} {figures.size(node.gpu_memory_bytes):>8} {power:>6}", ""),
    ]


def _summary(progress: Progress, nodes: list[NodeView], width: int) -> list[Line]:
    """Folds many nodes: the median of each figure, and the node that is furthest behind."""
    rows = [
        _folded(progress, "cpu", [(node.cpu_percent, node) for node in nodes]),
        _folded(progress, "gpu", [(node.gpu_percent, node) for node in nodes]),
    ]
    power = [node.gpu_power_w for node in nodes if node.gpu_power_w is not None]
    head = f"{len(nodes)} nodes" + (f", GPUs draw {sum(power) / 1000:.1f} kW" if power else "")
    lines = [head, *(row for row in rows if row)]
    words = ["nodes", *[""] * (len(lines) - 1)]
    pairs = zip(words, lines, strict=True)
    return [[(f"{word:<{WORD_WIDTH}}", "dim"), (clip(text, width - WORD_WIDTH), "")] for word, text in pairs]


def _folded(progress: Progress, name: str, readings: Iterable[tuple[float | None, NodeView]]) -> str:
    known = [(value, node) for value, node in readings if value is not None]
    if not known:
        return ""
    least, node = min(known, key=lambda pair: pair[0])
    middle = figures.median([value for value, _ in known])
    row = figures.curve(figures.spread([value for value, _ in known], 24), 24)
    lowest = f"{figures.percent(least)} {progress.label(node.number)}"
    return f"{name} {row} median {figures.percent(middle)}  least {lowest}"
