"""A transformer that translates: an encoder reads the sentence, a decoder says it in the other language."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pairs import BEGIN, END, PAD


class Translator(nn.Module):
    """The network with its loss."""

    def __init__(self, read_words: int, said_words: int, longest: int, width: int, layers: int) -> None:
        super().__init__()
        self.longest = longest
        self.read, self.said = nn.Embedding(read_words, width), nn.Embedding(said_words, width)
        self.places = nn.Embedding(longest, width)
        for embedding in (self.read, self.said, self.places):
            nn.init.normal_(embedding.weight, std=0.1)
        size = {"nhead": 4, "dim_feedforward": 4 * width, "dropout": 0.0, "batch_first": True, "norm_first": True}
        reader, sayer = nn.TransformerEncoderLayer(width, **size), nn.TransformerDecoderLayer(width, **size)  # type: ignore[arg-type]
        self.encoder = nn.TransformerEncoder(reader, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(sayer, layers, nn.LayerNorm(width))
        self.out = nn.Linear(width, said_words)

    def forward(self, sentences: Tensor, right: Tensor) -> Tensor:
        before = functional.pad(right[:, :-1], (1, 0), value=BEGIN)
        scores = self.decode(before, self.encode(sentences), sentences == PAD)
        return functional.cross_entropy(scores.flatten(0, 1).float(), right.flatten(), ignore_index=PAD)

    def encode(self, sentences: Tensor) -> Tensor:
        """What is known of each word that was read."""
        known: Tensor = self.encoder(self._placed(self.read, sentences), src_key_padding_mask=sentences == PAD)
        return known

    def decode(self, before: Tensor, known: Tensor, hidden: Tensor) -> Tensor:
        """Scores of the next word after each of those said before; what is `hidden` of the sentence was never there."""
        length = before.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=before.device).triu(1)
        placed = self._placed(self.said, before)
        scores: Tensor = self.out(self.decoder(placed, known, later, memory_key_padding_mask=hidden))
        return scores

    def _placed(self, embedding: nn.Embedding, words: Tensor) -> Tensor:
        placed: Tensor = embedding(words) + self.places(torch.arange(words.shape[1], device=words.device))
        return placed

    @torch.no_grad()
    def translate(self, sentences: Tensor) -> Tensor:
        """The best next word, again and again; after the end of a sentence it is the end forever."""
        known, hidden = self.encode(sentences), sentences == PAD
        said = torch.full((len(sentences), 1), BEGIN, device=sentences.device)
        for _ in range(self.longest):
            ended = said[:, -1] == END
            following = self.decode(said, known, hidden)[:, -1].argmax(-1).masked_fill(ended, END)
            said = torch.cat((said, following[:, None]), 1)
            if bool((following == END).all()) or said.shape[1] == self.longest:
                break
        return said[:, 1:]
