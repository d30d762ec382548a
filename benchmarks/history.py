"""The gate over the project itself: every ratio that was ever measured, and whether one became worse.

    python benchmarks/history.py [--results benchmarks/results]

`run_all.py` appends to history.jsonl, a line for each ratio of each benchmark: seconds of different machines say
nothing. Rounds with a load above 1 are left out and counted. The rule is that of the gate, a sample a round.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import RESULTS, start
from podwright.analysis.gate_rule import SLOWER, CellJudged, GateRule, judge_rounds

NAME = "history.jsonl"
MOST_LOAD = 1.0
Line = Mapping[str, Any]


def lines_of(document: Mapping[str, Any]) -> Iterator[Line]:
    """What one benchmark's document adds: its ratios, or one line that it was measured beside other work."""
    facts = document["machine"]
    place = {"at": facts["date"], "commit": facts.get("commit"), "benchmark": document["benchmark"]}
    load = max(facts["load_at_start"][0], facts.get("load_at_end", [0.0])[0])
    if load > MOST_LOAD:
        yield {**place, "left_out": f"load {load:.1f}"}
        return
    for row in document["rows"]:
        if row["unit"] == "x":
            estimate = row["estimate"]
            yield {**place, "what": row["what"], "ratio": estimate["value"], "count": estimate["count"]}


def append(path: Path, documents: Iterable[Mapping[str, Any]]) -> None:
    """Add what is new; a document that was added before is not added again."""
    known = {(row["at"], row["benchmark"]) for row in read(path)}
    with path.open("a", encoding="utf-8") as file:
        for document in documents:
            if (document["machine"]["date"], document["benchmark"]) not in known:
                file.writelines(f"{json.dumps(line)}\n" for line in lines_of(document))


def read(path: Path) -> list[Line]:
    """All lines, oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(rows: Sequence[Line]) -> dict[str, CellJudged]:
    """What the rule of the gate says of each ratio; less is better for all of them."""
    ratios: dict[str, list[list[float]]] = {}
    for row in rows:
        if "ratio" in row:
            ratios.setdefault(f"{row['benchmark']}: {row['what']}", []).append([row["ratio"]])
    rule = GateRule(cells=max(1, len(ratios)))
    return {name: judge_rounds(rounds, rule) for name, rounds in ratios.items()}


def page(rows: Sequence[Line]) -> Iterator[str]:
    """What became worse first, then how much there is to judge by."""
    judged = judge(rows)
    for name, row in judged.items():
        if row.verdict == SLOWER:
            yield f"worse     {name}: {row.ratio:.3f} since its round {(row.since or 0) + 1}, p {row.p:.2g}"
    left_out = sum("left_out" in row for row in rows)
    rounds = max((sum(row.n) for row in judged.values()), default=0)
    yield f"history   {len(judged)} ratios, {rounds} rounds at most; {left_out} left out for load above {MOST_LOAD:g}"


def main() -> int:
    """Judge the history that is there; 1 where a ratio became worse."""
    parser = argparse.ArgumentParser(description="Say which of our own ratios became worse.")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of history.jsonl (default: %(default)s)")
    options = parser.parse_args()
    rows = read(options.results / NAME)
    print("\n".join(page(rows)))
    return int(any(row.verdict == SLOWER for row in judge(rows).values()))


if __name__ == "__main__":
    start(main)
