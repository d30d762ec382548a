"""A run of nothing: what starting, following and recording costs, against TorchX and submitit on one machine.

    python benchmarks/trivial.py [--pairs 10] [--json OUT]

Each arm is one command that returns when `python -c pass` has ended somewhere else and its end is known: a blocking
`podwright run`, `torchx run` on its local scheduler (which follows by itself), and a script that submits an empty
function to submitit's LocalExecutor and takes its result. Only Podwright also samples and writes a report.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, alternate, compare, conclude, environment, machine, parser, start, timed

WORKLOAD = """\
name: trivial
command: python -c pass
"""
SUBMITIT = """\
import submitit

executor = submitit.LocalExecutor(folder="submitit")
executor.update_parameters(timeout_min=1)
executor.submit(lambda: None).result()
"""
SCRIPT = 'podwright wait "$(podwright run trivial.yaml --detach)"'
OURS, DETACHED = "podwright run", "podwright run --detach, wait"
OTHERS = ("torchx run", "submitit")


def main() -> int:
    """Measure all four in turn."""
    options = parser("A trivial run against TorchX and submitit.", pairs=10).parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        folder = Path(name)
        (folder / "trivial.yaml").write_text(WORKLOAD)
        (folder / "submit.py").write_text(SUBMITIT)
        env = environment(folder / "home")
        torchx = [str(BIN / "torchx"), "run", "-s", "local_cwd", "utils.python", "-c", "pass"]
        arms = {
            OURS: partial(timed, [str(BIN / "podwright"), "run", "trivial.yaml", "--json"], env, folder),
            "torchx run": partial(timed, torchx, env, folder),
            "submitit": partial(timed, [str(BIN / "python"), "submit.py"], env, folder),
            DETACHED: partial(timed, ["sh", "-c", SCRIPT], env, folder),
        }
        taken = alternate(arms, options.pairs)
    pairs = [(mine, other) for mine in (OURS, DETACHED) for other in OTHERS]
    rows = [compare(f"{mine} / {other}", taken[mine], taken[other], goal=0.5) for mine, other in pairs]
    conclude("trivial", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
