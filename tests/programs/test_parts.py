"""Parts of the programs that could be wrong without anybody noticing."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import nn

Load = Callable[[str, str], ModuleType]


def test_the_network_is_resnet_50(load: Load) -> None:
    """25,557,032 parameters and a picture 32 times smaller at the end is what every description of it says."""
    network = load("resnet", "model").resnet50()
    assert sum(weight.numel() for weight in network.parameters()) == 25_557_032
    shapes: list[torch.Size] = []
    network.blocks.register_forward_hook(lambda module, given, out: shapes.append(out.shape))
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
    assert shapes == [(1, 2048, 2, 2)]


def test_the_stem_is_a_plain_convolution(load: Load) -> None:
    """Squares of pixels as channels change the speed, not the function: 7x7 with stride 2 and padding 3."""
    torch.manual_seed(0)
    stem = load("resnet", "model").Stem(8).eval()
    plain = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
    plain.weight = stem.weight
    pictures = torch.randn(2, 3, 32, 48)
    with torch.no_grad():
        torch.testing.assert_close(stem(pictures), stem.normal(plain(pictures)))


def test_weights_kept_exact_learn_as_exact_ones(load: Load) -> None:
    """Steps too small for bf16 add up in the optimizer's fp32 values."""
    kind = load("transformer", "kit.optimizers").MasterAdamW
    torch.manual_seed(0)
    exact = nn.Parameter(torch.randn(64, 64).bfloat16().float())
    short = nn.Parameter(exact.detach().bfloat16())
    both = (
        torch.optim.AdamW([exact], lr=1e-4, betas=(0.9, 0.95), weight_decay=0.0),
        kind([{"params": [short], "weight_decay": 0.0}], 1e-4, (0.9, 0.95)),
    )
    for _ in range(40):
        exact.grad, short.grad = torch.ones(64, 64), torch.ones(64, 64, dtype=torch.bfloat16)
        for optimizer in both:
            optimizer.step()
    torch.testing.assert_close(short.detach(), exact.detach().bfloat16())


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (0, "zero", "null"),
        (16, "sixteen", "sechzehn"),
        (30, "thirty", "dreißig"),
        (421_007, "four hundred twenty one thousand seven", "vier hundert ein und zwanzig tausend sieben"),
        (1_000, "one thousand", "ein tausend"),
        (
            999_999,
            " thousand ".join(["nine hundred ninety nine"] * 2),
            " tausend ".join(["neun hundert neun und neunzig"] * 2),
        ),
    ],
)
def test_numbers_in_words(load: Load, number: int, english: str, german: str) -> None:
    pairs = load("translation", "pairs")
    assert " ".join(pairs.english(number)) == english
    assert " ".join(pairs.german(number)) == german


def test_no_sentence_is_too_long(load: Load) -> None:
    train = load("translation", "train")
    longest = max(range(1000), key=lambda number: len(train.german(number)))
    assert len(train.GERMAN.numbers(train.german(longest * 1000 + longest))) < train.LONGEST


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ([1, 2, 3, 4, 5], 1.0),
        ([1, 2, 3, 4], 0.778801),  # all of it right, a word too short: exp(1 - 5/4)
        ([1, 2, 3, 4, 6], 0.668740),  # (4/5 x 3/4 x 2/3 x 1/2) to the power of 1/4
        ([5, 4, 3, 2, 1], 0.0),
        ([], 0.0),
    ],
)
def test_bleu(load: Load, said: list[int], score: float) -> None:
    module = load("translation", "bleu")
    assert module.bleu(module.counts(said, [1, 2, 3, 4, 5])) == pytest.approx(score, abs=1e-6)


def test_masked_words_are_asked_for_and_no_others(load: Load) -> None:
    stories = load("transformer", "stories")
    train, _ = stories.read()
    pieces = train[: 64 * stories.LENGTH].view(64, stories.LENGTH)
    seen, truth = stories.masked(pieces, 0.15, torch.Generator().manual_seed(0))
    hidden = seen == stories.MASK
    assert 0.12 < hidden.float().mean() < 0.18
    assert torch.equal(truth[hidden], pieces[hidden])
    assert (truth[~hidden] == -1).all()
    assert torch.equal(seen[~hidden], pieces[~hidden])


def test_a_decoder_sees_nothing_of_what_follows(load: Load) -> None:
    model = load("transformer", "model")
    torch.manual_seed(0)
    network = model.Transformer(model.Shape(2, 32, 8, 10, head=16))
    tokens = torch.randint(10, (1, 8))
    other = tokens.clone()
    other[0, 5:] = (other[0, 5:] + 1) % 10
    with torch.no_grad():
        before, after = network.hidden(tokens), network.hidden(other)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])
