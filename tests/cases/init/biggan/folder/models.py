"""The model, and what of it is kept."""

from pathlib import Path

import numpy as np
import yaml

try:
    import sync_batchnorm
except ImportError:
    sync_batchnorm = None


class Generator:
    def __init__(self, resolution: int, chance: np.random.Generator) -> None:
        self.image = chance.normal(size=(resolution, resolution))

    def step(self) -> float:
        self.image *= 0.5
        return float(np.square(self.image).mean())

    def save(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "model.yaml").write_text(yaml.safe_dump(self.image.tolist()))
