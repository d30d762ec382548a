"""The same training bare and in a container: what a container costs.

    python benchmarks/container.py [--pairs 10] [--json OUT] [--epochs 3] [--frames 200]

Two arms in turn, each `podwright run --detach` and `podwright wait` of the same program on 2 nodes x 1 rank of this
machine. The container is a small Debian in a store of its own; Python and PyTorch are those of this environment in both
arms, mounted at the same paths, so that nothing differs but the container. Needs podman, mmdebstrap and root.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measure import BIN, ROOT, Row, alternate, compare, conclude, environment, machine, parser, start
from overhead import NODES, PROGRAM, Training, make_frames

IMAGE = "localhost/podwright-bench:1"
BARE, CONTAINER = "bare", "container"
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
WORKLOAD = """\
name: container
code: {code}
command: {command}
nodes: {nodes}
launcher: torchrun
env: {{OMP_NUM_THREADS: 1}}
image: {image}
runtime: {runtime}
data: {data}
"""
# The root that tests/real/test_images.py uses, too: it has the C++ library that PyTorch needs.
ROOT_FOLDER = "from scripts import debian_root as d; print(d.made(d.codename(), 'apt', 'openmpi-bin', 'python3'))"


@dataclass
class Pair(Training):
    """One training, with and without a container around it."""

    def prepare(self) -> None:
        """The environment travels as data: what a container shall see must be named."""
        shutil.copytree(PROGRAM, self.folder / "code", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
        frames = self.arguments[self.arguments.index("--data") + 1]
        data = {"environment": str(BIN.parent), "python": sys.base_prefix, "frames": frames}
        command = [str(BIN / "python"), "train.py", *self.arguments, "--checkpoint", "{checkpoint}"]
        fields = {"code": self.folder / "code", "command": json.dumps(command), "data": json.dumps(data)}
        for runtime in (BARE, CONTAINER):
            text = WORKLOAD.format(**fields, nodes=NODES, image=IMAGE, runtime=runtime)
            (self.folder / f"{runtime}.yaml").write_text(text)

    def arm(self, runtime: str) -> float:
        """Seconds of one run, from the command to its known end."""
        began = time.perf_counter()
        run_id = self.podwright("run", f"{runtime}.yaml", "--detach")
        self.podwright("wait", run_id)
        took = time.perf_counter() - began
        self.close(runtime, run_id)
        return took


@contextmanager
def image(folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A small Debian in a store that goes with the measurement."""
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    env["CONTAINERS_STORAGE_CONF"] = str(folder / "storage.conf")
    root = subprocess.check_output([sys.executable, "-c", ROOT_FOLDER], cwd=ROOT, text=True).strip()
    with subprocess.Popen(["tar", "-C", root, "--exclude=./dev/*", "-c", "."], stdout=subprocess.PIPE) as tar:
        command = ["podman", "import", "--quiet", "-", IMAGE]
        subprocess.run(command, stdin=tar.stdout, stdout=subprocess.DEVNULL, env=env, check=True)
    try:
        yield
    finally:
        for words in (["rm", "--all", "--force"], ["rmi", "--all", "--force"]):
            subprocess.run(["podman", *words], env=env, capture_output=True, check=False)
        subprocess.run(["umount", str(folder / "graph" / "overlay")], capture_output=True, check=False)


def find(taken: dict[str, list[float]], loops: dict[str, list[float]]) -> list[Row]:
    """The training itself must not notice; starting a container takes its own time, once for each run."""
    rounds = len(taken[BARE])
    return [
        compare("training loop, container / bare", loops[CONTAINER][-rounds:], loops[BARE][-rounds:], goal=1.01),
        compare("whole run, container / bare", taken[CONTAINER], taken[BARE]),
    ]


def main() -> int:
    """Measure both in turn."""
    made = parser("The same training bare and in a container.", pairs=10)
    made.add_argument("--epochs", type=int, default=3, help="length of the training (default: %(default)s)")
    made.add_argument("--frames", type=int, default=200, help="frames to draw (default: %(default)s)")
    options = made.parse_args()
    frames = make_frames(options.frames)
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        folder, env = Path(name), environment(Path(name, "home"))
        with image(folder, env):
            pair = Pair(folder, ["--data", str(frames), "--epochs", str(options.epochs)], env)
            pair.prepare()
            try:
                taken = alternate({runtime: partial(pair.arm, runtime) for runtime in (BARE, CONTAINER)}, options.pairs)
            finally:
                pair.stop()
    raw = {"asked": {"epochs": options.epochs, "frames": options.frames, "nodes": NODES}, "seconds": taken}
    conclude("container", find(taken, pair.loops), {**raw, "loop_seconds": pair.loops}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
