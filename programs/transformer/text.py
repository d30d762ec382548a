"""Text that is on every machine with Python: the language reference that `help()` prints, byte by byte.

File: `pydoc_data/topics.py` of Python's standard library; licence: PSF-2.0.
"""

from __future__ import annotations

import pydoc_data.topics

import torch
from torch import Tensor

VOCABULARY = 256
HELD_OUT_EVERY = 10


def read() -> tuple[Tensor, Tensor]:
    """The bytes to train on and those to score on: every tenth topic is held out."""
    topics = [text.encode() for _, text in sorted(pydoc_data.topics.topics.items())]
    held_out = b"\n".join(topics[::HELD_OUT_EVERY])
    rest = b"\n".join(text for number, text in enumerate(topics) if number % HELD_OUT_EVERY)
    return _tensor(rest), _tensor(held_out)


def _tensor(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


def windows(text: Tensor, length: int, starts: Tensor) -> Tensor:
    """Pieces of the text of this length, from these places on."""
    return text[starts[:, None] + torch.arange(length, device=text.device)]
