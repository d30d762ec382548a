"""Makes the tables of all simulated rules again, and says whether each rule keeps its word.

    python benchmarks/simulations.py [--results benchmarks/results]

Seeded: where no rule changed, no table does. `make test-nightly` runs it; short forms are in tests/unit/analysis.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = ("compare_rule", "proof_families", "gate_rule")


def main() -> int:
    """Simulate one rule after the other; the exit code is 1 where one breaks its word."""
    parser = argparse.ArgumentParser(description="Make the tables of all simulated rules again.")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="(default: %(default)s)")
    options = parser.parse_args()
    broken = []
    for name in RULES:
        command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(options.results / f"{name}.md")]
        if subprocess.run(command, check=False).returncode:
            broken.append(name)
    for name in broken:
        print(f"{name}.py: the rule does not keep its word", file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
