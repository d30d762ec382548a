"""Fits a line to points, with nothing but Python."""

import argparse
import json
import os
import random
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("-o", "--save-dir", type=Path, default=Path("out"))
parser.add_argument("--data_dir", default="points")
parser.add_argument("--loud", action="store_true")
options = parser.parse_args()

points = [tuple(map(float, line.split())) for line in Path(options.data_dir, "points.txt").read_text().splitlines()]
random.seed(0)
slope = 0.0
for step in range(1, options.steps + 1):
    loss = sum((slope * x - y) ** 2 for x, y in points) / len(points)
    slope -= 0.01 * sum(2 * x * (slope * x - y) for x, y in points) / len(points)
    print(json.dumps({"podwright": {"step": step, "loss": loss}}), flush=True)
options.save_dir.mkdir(exist_ok=True)
(options.save_dir / "slope.txt").write_text(f"{slope} {os.getpid()}\n")
