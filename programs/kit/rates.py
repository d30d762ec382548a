"""Learning rates over a training."""

from __future__ import annotations

import math


def warm_then_cosine(progress: float, highest: float, warm: float, lowest: float = 0.0) -> float:
    """Up in a line over the first share `warm`, then down along a cosine to the share `lowest` of the highest."""
    if progress < warm:
        return highest * progress / warm
    down = (1 + math.cos(math.pi * (progress - warm) / (1 - warm))) / 2
    return highest * (lowest + (1 - lowest) * down)
