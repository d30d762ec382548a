"""The demonstration of data: scanned, new drives taken in by a policy, trained on, chosen again by what went wrong.

    python scripts/data_demo.py [--short] [--out FILE]

It calls the same commands that a user would type, in a home of its own, with one seed; one training proves nothing, and
the page says so. The page is one HTML file with the frames that were chosen, their labels laid over them. A third of
the scenes comes later: a policy counts their labels and puts those with people into the pool to choose from.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SEED = 1
SHOWN = 6
NUMBER = ' class="n"'
OPTIONS = {"frames": "--data", "more": "--more", "validation": "--score-on", "pool": "--pool"}
"""What the program calls each input."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    frames: int
    scenes: int
    epochs: int
    again: int
    """Frames that the second training has more than the first."""
    train: str = ""
    """Further options of the program."""


POLICY = """dataset: street
on: new
where: kind=camera and ext=png
steps:
  - do: stats
  - do: tag
    tag: fresh=yes
  - if: Pedestrian>0
    do: tag
    tag: pool=yes
"""
FULL = Sizes(frames=480, scenes=12, epochs=4, again=96)
SHORT = Sizes(frames=96, scenes=8, epochs=1, again=16, train="--limit 24")
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.1rem .8rem .1rem 0;text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{padding-left:1rem}
figure{margin:.6rem 0}figure img{width:49%;margin-right:1%;image-rendering:pixelated}
figure.matrix img{width:auto;max-width:100%;image-rendering:auto}
figcaption{font-size:12px;color:#666;overflow-wrap:anywhere}
"""


class Demo:
    """One demonstration: its folder, and the commands in it."""

    def __init__(self, folder: Path, sizes: Sizes, seed: int = SEED) -> None:
        self.folder, self.sizes, self.seed = folder, sizes, seed
        self.frames = folder / "street"
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PODWRIGHT_HOME": str(folder / "home"), "PATH": path}

    def call(self, *arguments: str) -> Any:
        """Call a command of Podwright and return its document."""
        print(f"$ podwright {' '.join(arguments)}", flush=True)
        command = [str(BIN / "podwright"), *arguments, "--json"]
        done = subprocess.run(command, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.returncode)
        return json.loads(done.stdout)

    def make_frames(self) -> None:
        """Draw the scenes."""
        counts = ["--frames", str(self.sizes.frames), "--scenes", str(self.sizes.scenes), "--seed", str(self.seed)]
        command = [sys.executable, "programs/segmentation/scenes.py", str(self.frames), *counts]
        subprocess.run([*command, "--cameras", "front_center"], cwd=ROOT, env=self.env, check=True)

    def hold_back(self) -> None:
        """Move a third of the scenes aside, which are driven later."""
        (self.folder / "coming").mkdir()
        scenes = sorted(path for path in self.frames.iterdir() if path.is_dir())
        for scene in scenes[-len(scenes) // 3 :]:
            scene.rename(self.folder / "coming" / scene.name)

    def take_in(self) -> dict[str, Any]:
        """Add a policy for new frames, let the other scenes come, and return what the policy did with them."""
        policy = self.folder / "new_images.yaml"
        policy.write_text(POLICY)
        self.call("data", "policy", "add", str(policy))
        for scene in sorted((self.folder / "coming").iterdir()):
            scene.rename(self.frames / scene.name)
        self.call("data", "scan", str(self.frames), "--name", "street")
        done: dict[str, Any] = self.call("data", "policy", "run", "new_images")
        return done

    def select(self, name: str, *options: str) -> dict[str, Any]:
        """Freeze a selection and return it."""
        chosen: dict[str, Any] = self.call(
            "data", "select", "street", "--name", name, *options, "--seed", str(self.seed)
        )
        return chosen

    def train(self, **inputs: str) -> dict[str, Any]:
        """Train on selections, by the names of the inputs, and return the run."""
        words = [f"python programs/segmentation/train.py --epochs {self.sizes.epochs} --seed {self.seed}"]
        words += [self.sizes.train, *(f"{OPTIONS[name]} {{data.{name}}}" for name in inputs)]
        changes = [f"data.{name}=selection:{selection}" for name, selection in inputs.items()]
        changes += ["nodes=1", f"command={' '.join(words)}"]
        options = [word for change in changes for word in ("--set", change)]
        run: dict[str, Any] = self.call("run", "examples/segmentation.yaml", *options)
        return run

    def frame(self, path: str) -> str:
        """Return a figure of a frame: as it is, and with its label laid over it."""
        from PIL import Image

        label = path.replace("/camera/", "/label/").replace("_camera_", "_label_")
        with Image.open(self.frames / path) as frame, Image.open(self.frames / label) as colours:
            plain = frame.convert("RGB")
            blended = Image.blend(plain, colours.convert("RGB").resize(frame.size, 0), 0.5)
        images = "".join(f'<img src="{source_of(png_of(image))}">' for image in (plain, blended))
        return f"<figure>{images}<figcaption>{html.escape(path)}</figcaption></figure>"

    def result(self, run: dict[str, Any], name: str) -> bytes:
        """Return a file of a run's results."""
        folder = self.folder / "home" / "runs" / str(run["id"]) / "results"
        return (folder / name).read_bytes()


def png_of(image: Any) -> bytes:
    """Return an image as PNG."""
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def source_of(png: bytes) -> str:
    """Return a PNG as the source of an image."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; numbers stand at the right, with their heads."""
    listed = list(rows)
    lines = ["<table><tr>"]
    for place, name in enumerate(head):
        is_number = bool(listed) and isinstance(listed[0][place], int | float)
        lines.append(f"<th{NUMBER if is_number else ''}>{html.escape(name)}</th>")
    lines.append("</tr>")
    for row in listed:
        cells = []
        for value in row:
            kind = NUMBER if isinstance(value, int | float) else ""
            text = f"{value:.3f}" if isinstance(value, float) else str(value)
            cells.append(f"<td{kind}>{html.escape(text)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "".join([*lines, "</table>"])


def splits_of(selection: dict[str, Any]) -> str:
    """Return the splits of a selection as a table."""
    rows = [(name, split["count"], split["distance"] or 0.0) for name, split in selection["splits"].items()]
    return table(("split", "samples", "distance to the whole"), rows)


def reason(confusion: dict[str, Any]) -> str:
    """Return why frames were chosen, as a sentence."""
    first, second = confusion["classes"]
    return f"{confusion['run']} took {first} and {second} for each other most; ranked by {confusion['ranked_by']}."


def taken_in(facts: dict[str, Any]) -> str:
    """Return what the policy did, as a sentence."""
    policy, pool = facts["policy"], facts["pool"]["splits"]["all"]["count"]
    return f"{policy['done']} new frames, {policy['failed']} failed; {pool} of them with people, which are the pool."


def spread(paths: Sequence[str]) -> list[str]:
    """Return some of the frames, from all scenes."""
    return list(paths[:: max(1, len(paths) // SHOWN)][:SHOWN])


def classes_of_both(demo: Demo, runs: Sequence[dict[str, Any]]) -> str:
    """Return the IoU of each class after the first training and after the second."""
    first, second = (json.loads(demo.result(run, "iou.json")) for run in runs)
    both = {name: (first[name], second[name]) for name in first if first[name] is not None}
    rows = [(name, *scores) for name, scores in both.items() if scores[1] is not None]
    return table(("IoU of a class", "first", "second"), rows)


def page(demo: Demo, facts: dict[str, Any]) -> str:
    """Return the page of a demonstration."""
    counted = [row for row in facts["stats"]["classes"] if row["images"]]
    matrix = source_of(demo.result(facts["runs"][0], "confusion.png"))
    runs = [(run["id"], run["state"], run["results"].get("mean_iou", 0.0), run["duration_s"]) for run in facts["runs"]]
    parts = [
        "<h1>From data to training to data</h1>",
        f"<p>Made street scenes, seed {SEED}, one training each: an example, no proof of a gain.</p>",
        f"<h2>{facts['scan']['files']} files</h2>",
        table(("class", "images", "share"), [(row["name"], row["images"], row["share"]) for row in counted]),
        "<h2>A representative split; no scene is torn apart</h2>",
        splits_of(facts["drive"]),
        "<h2>New drives, taken in by a policy</h2>",
        f"<pre>{html.escape(POLICY)}</pre>",
        f"<p>{taken_in(facts)}</p>",
        "<h2>What the first training confused</h2>",
        f'<figure class="matrix"><img src="{matrix}"></figure>',
        "<h2>Chosen by that</h2>",
        f"<p>{html.escape(reason(facts['hard']['lineage']['confusion']))}</p>",
        splits_of(facts["hard"]),
        *map(demo.frame, spread(facts["paths"])),
        "<h2>Two trainings</h2>",
        table(("run", "state", "mean IoU", "seconds"), runs),
        classes_of_both(demo, facts["runs"]),
    ]
    return f"<!doctype html><meta charset=utf-8><title>Data</title><style>{STYLE}</style>{''.join(parts)}\n"


def show(demo: Demo) -> dict[str, Any]:
    """Go through the chain and return what every step said."""
    demo.make_frames()
    demo.hold_back()
    facts: dict[str, Any] = {"scan": demo.call("data", "scan", str(demo.frames), "--name", "street")}
    facts["stats"] = demo.call("data", "stats", "street")
    facts["policy"] = demo.take_in()
    facts["drive"] = demo.select(
        "drive",
        "--where",
        "kind=camera and ext=png and not fresh=yes",
        "--split",
        "train=0.6,validation=0.4",
        "--representative",
    )
    facts["pool"] = demo.select("pool", "--where", "pool=yes")
    first = demo.train(frames="drive/train", validation="drive/validation", pool="pool")
    facts["hard"] = demo.select("hard", "--confusion", first["id"], "--size", str(demo.sizes.again))
    facts["paths"] = [row["path"] for row in demo.call("data", "ls", "hard")["files"]]
    facts["runs"] = [first, demo.train(frames="drive/train", more="hard", validation="drive/validation")]
    return facts


def main() -> int:
    """Show it, and write the page."""
    options = argparse.ArgumentParser(description="The demonstration of data.")
    options.add_argument("--short", action="store_true", help="fewer frames, one epoch")
    options.add_argument("--out", type=Path, default=ROOT / ".cache" / "data-demo.html", help="where the page goes")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="podwright-demo-") as folder:
        demo = Demo(Path(folder), SHORT if asked.short else FULL)
        text = page(demo, show(demo))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(text)
    print(f"report    {asked.out.resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
