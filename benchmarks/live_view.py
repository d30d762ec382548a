"""What the live view costs: the same training with `podwright run` on a terminal against `--detach` and `wait`.

    python benchmarks/live_view.py [--pairs 10] [--json OUT] [--epochs 1] [--frames 200]

Both record the same, so that the difference is the view alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import alternate, compare, conclude, environment, machine, parser, start
from overhead import DETACHED, LIVE, NODES, Training, make_frames


def main() -> int:
    """Measure the two in turn."""
    made = parser("A training with its live view against the same detached.", pairs=10)
    made.add_argument("--epochs", type=int, default=1, help="length of the training (default: %(default)s)")
    made.add_argument("--frames", type=int, default=200, help="frames to draw (default: %(default)s)")
    options = made.parse_args()
    frames = make_frames(options.frames)
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        arguments = ["--data", str(frames), "--epochs", str(options.epochs)]
        training = Training(Path(folder), arguments, environment(Path(folder, "home")))
        training.prepare()
        try:
            taken = alternate({DETACHED: training.detached, LIVE: training.live}, options.pairs)
        finally:
            training.stop()
    rows = [compare("live view / detached + wait", taken[LIVE], taken[DETACHED])]
    asked = {"epochs": options.epochs, "frames": options.frames, "nodes": NODES}
    conclude("live_view", rows, {"asked": asked, "seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
