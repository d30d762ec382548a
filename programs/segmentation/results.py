"""What a training leaves behind: the model, its scores as numbers and pictures, and example frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from classes import Classes
from data import Frame, Frames
from metrics import confusion, iou_per_class, mean_iou, pixel_accuracy
from picture import confusion_picture, paint, save_png, side_by_side

EXAMPLES = 6
Predict = Callable[[Tensor], Tensor]  # pictures (N, 3, H, W) as bytes to class ids (N, H, W)


@dataclass(frozen=True)
class Results:
    """Writes into one folder; every file appears whole."""

    folder: Path
    classes: Classes

    def write_scores(self, matrix: Tensor) -> None:
        """confusion.json, confusion.png (classes that occur, true or said) and iou.json (all classes)."""
        there = torch.nonzero(matrix.sum(0) + matrix.sum(1)).flatten().tolist()
        names, colours = [self.classes.names[i] for i in there], [self.classes.colours[i] for i in there]
        part = matrix[there][:, there]
        self._write_json(
            "confusion.json",
            {"classes": names, "colors": dict(zip(names, colours, strict=True)), "matrix": part.tolist()},
        )
        self._write_json("iou.json", dict(zip(self.classes.names, iou_per_class(matrix), strict=True)))
        save_png(confusion_picture(part.numpy(), names, colours), self.folder / "confusion.png")

    def write_examples(self, frames: Frames, predict: Predict) -> None:
        """A few frames from all over the held-out ones, each with truth and prediction."""
        count = min(EXAMPLES, len(frames))
        chosen = [(2 * i + 1) * len(frames) // (2 * count) for i in range(count)]
        self._write_json(
            "examples.json", [self._write_example(frames, index, f"{n:02d}", predict) for n, index in enumerate(chosen)]
        )

    def _write_example(self, frames: Frames, index: int, name: str, predict: Predict) -> dict[str, Any]:
        picture, truth = frames[index]
        said = predict(picture[None])[0]
        matrix = confusion(said, truth, len(self.classes.names))
        views = {
            "image": Image.fromarray(np.ascontiguousarray(picture.permute(1, 2, 0).numpy())),
            "truth": paint(truth.numpy(), self.classes.colours),
            "prediction": paint(said.numpy().astype(np.uint8), self.classes.colours),
        }
        files = {view: f"examples/{name}-{view}.png" for view in views}
        for view, path in files.items():
            save_png(views[view], self.folder / path)
        save_png(side_by_side(list(views.values())), self.folder / f"examples/{name}.png")
        scores = {"mean_iou": round(mean_iou(matrix), 4), "pixel_accuracy": round(pixel_accuracy(matrix), 4)}
        return {"name": name, **_origin(frames.frames[index]), "file": f"examples/{name}.png", **files, **scores}

    def write_samples(self, rows: Sequence[dict[str, Any]]) -> None:
        """samples.jsonl: what the model made of single frames, a line each; no file where there are none."""
        if rows:
            with self._whole("samples.jsonl") as fresh:
                fresh.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def write_model(self, weights: dict[str, Tensor], about: dict[str, Any]) -> None:
        """model.pt: the weights and what is needed to build the network for them."""
        with self._whole("model.pt") as fresh:
            torch.save({"model": weights, "classes": self.classes.names, **about}, fresh)

    def _write_json(self, name: str, content: dict[str, Any] | Sequence[dict[str, Any]]) -> None:
        with self._whole(name) as fresh:
            fresh.write_text(json.dumps(content, indent=1) + "\n")

    @contextmanager
    def _whole(self, name: str) -> Iterator[Path]:
        """Give the path of a file that takes its place when all of it was written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / f".{name}"
        yield fresh
        fresh.replace(self.folder / name)


def _origin(frame: Frame) -> dict[str, str]:
    return {"scene": frame.scene, "camera": frame.camera, "frame": frame.image.name}
