"""A transformer for text: a decoder foretells the next token (GPT), an encoder fills in masked ones (BERT)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from loss import token_loss

INIT_SPREAD = 0.02
HEAD = 128
"""Size of an attention head: with 128 the GPU's matrix unit is full, with 64 half of it waits."""


@dataclass(frozen=True)
class Shape:
    """The size of a network."""

    layers: int
    width: int
    context: int
    vocabulary: int
    causal: bool = True
    head: int = HEAD

    @property
    def heads(self) -> int:
        """Of attention."""
        return self.width // self.head

    @property
    def weights(self) -> int:
        """Weights that multiply every token: blocks and output layer; not the embeddings, which are looked up."""
        return 12 * self.layers * self.width**2 + self.vocabulary * self.width

    @property
    def flops_per_token(self) -> float:
        """Operations of training on one token: 6 a weight, and attention's 12 x layers x width x context.

        Attention counts as if every token looked at every other, as published figures have it, though a decoder's sees
        half of them.
        """
        return 6.0 * self.weights + 12.0 * self.layers * self.width * self.context


SHAPES = {
    "124M": Shape(12, 768, 1024, 50304),
    "1.3B": Shape(24, 2048, 1024, 50304),
    "6.7B": Shape(32, 4096, 1024, 50304),
}
"""By name. GPT-2's 50,257 tokens are filled up to a multiple of 128."""


class Block(nn.Module):
    """Look at other tokens, then think about each; both add to what is there."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads, self.causal = shape.heads, shape.causal
        self.before_look, self.before_think = nn.RMSNorm(width), nn.RMSNorm(width)
        # No biases: their gradients are sums over all tokens, which cost time and change nothing that can be measured.
        self.ask = nn.Linear(width, 3 * width, bias=False)
        self.answer = nn.Linear(width, width, bias=False)
        self.widen = nn.Linear(width, 4 * width, bias=False)
        self.narrow = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.answer(self._look(self.ask(self.before_look(x))))
        thought: Tensor = self.narrow(functional.gelu(self.widen(self.before_think(x)), approximate="tanh"))
        return x + thought

    def _look(self, asked: Tensor) -> Tensor:
        batch, length, three = asked.shape
        split = asked.view(batch, length, 3, self.heads, three // 3 // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind(0)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return seen.transpose(1, 2).reshape(batch, length, three // 3)


class Transformer(nn.Module):
    """The network with its loss: the mean over the tokens whose truth is not negative."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last = nn.RMSNorm(shape.width)
        self.out = nn.Linear(shape.width, shape.vocabulary, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                adds_up = name.endswith(("answer.weight", "narrow.weight"))
                nn.init.normal_(weight, std=INIT_SPREAD / ((2 * shape.layers) ** 0.5 if adds_up else 1.0))

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the network knows of each token."""
        x: Tensor = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.last(x)
        return out

    def forward(self, tokens: Tensor, truth: Tensor | None = None) -> Tensor:
        """The loss, or without a truth the scores of every next token."""
        known = self.hidden(tokens)
        if truth is None:
            scores: Tensor = self.out(known)
            return scores
        return token_loss(known.flatten(0, 1), self.out.weight, truth.flatten())
