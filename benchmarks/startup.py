"""Start-up of the command line against a bare interpreter: what every command pays before it does anything.

python benchmarks/startup.py [--pairs 20] [--json OUT]
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, alternate, compare, conclude, environment, machine, parser, start, timed

BARE = "python -c pass"
COMMANDS = {
    "podwright --help": (["podwright", "--help"], 8.0),
    "podwright --version": (["podwright", "--version"], None),
    "podwright ps, no runs": (["podwright", "ps"], 6.0),
    "torchx --help": (["torchx", "--help"], None),
}


def main() -> int:
    """Measure all commands in turn with the bare interpreter."""
    options = parser("Start-up of the command line against `python -c pass`.", pairs=20).parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        env = environment(Path(folder, "home"))
        arms = {BARE: partial(timed, [str(BIN / "python"), "-c", "pass"], env, Path(folder))}
        for name, (words, _) in COMMANDS.items():
            arms[name] = partial(timed, [str(BIN / words[0]), *words[1:]], env, Path(folder))
        taken = alternate(arms, options.pairs)
    bare = taken[BARE]
    rows = [compare(f"{name} / {BARE}", taken[name], bare, goal) for name, (_, goal) in COMMANDS.items()]
    conclude("startup", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
