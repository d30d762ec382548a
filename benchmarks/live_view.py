"""What the live view costs: the same training with `podwright run` on a terminal against `--detach` and `wait`.

    python benchmarks/live_view.py [--pairs 10] [--json OUT] [--epochs 1] [--frames 200]

Both record the same, so that the difference is the view alone.
"""

from __future__ import annotations

from measure import alternate, compare, conclude, machine, parser, start
from overhead import DETACHED, LIVE, asked, lengths, prepared


def main() -> int:
    """Measure the two in turn."""
    made = parser("A training with its live view against the same detached.", pairs=10)
    lengths(made, epochs=1)
    options = made.parse_args()
    facts = machine()
    with prepared(options) as training:
        taken = alternate({DETACHED: training.detached, LIVE: training.live}, options.pairs)
    rows = [compare("live view / detached + wait", taken[LIVE], taken[DETACHED])]
    conclude("live_view", rows, {"asked": asked(options), "seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
