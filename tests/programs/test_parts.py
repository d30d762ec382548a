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


def test_boxes_overlap(load: Load) -> None:
    """Half of one, and a corner: 2 of 6, and 1 of 7."""
    boxes = load("detection", "boxes")
    block = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
    others = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0], [1.0, 1.0, 3.0, 3.0], [5.0, 5.0, 6.0, 6.0]])
    torch.testing.assert_close(boxes.overlap(block, others), torch.tensor([[1.0, 1 / 3, 1 / 7, 0.0]]))


def test_offsets_lead_back_to_the_box(load: Load) -> None:
    boxes, model = load("detection", "boxes"), load("detection", "model")
    defaults = model.default_boxes(64)
    corner = torch.rand(len(defaults), 2, generator=torch.Generator().manual_seed(0)) / 2
    wanted = torch.cat([corner, corner + 0.3], 1)
    torch.testing.assert_close(boxes.moved(defaults, boxes.offsets_of(wanted, defaults)), wanted)


def test_every_shape_has_a_box_that_answers_for_it(load: Load) -> None:
    """Also one that no default box fits; rows without a shape have none."""
    model = load("detection", "model")
    truth = torch.tensor([[0.1, 0.1, 0.4, 0.4], [0.0, 0.9, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    answers, _ = model.match(truth, torch.tensor([2, 0, -1]), model.default_boxes(64))
    assert set(answers.tolist()) == {0, 1, 3}
    assert (answers == 1).sum() == 1


def test_of_two_guesses_at_one_shape_the_surer_counts(load: Load) -> None:
    """By hand: right at recall 1/2 with precision 1, wrong, then right at recall 1 with precision 2/3."""
    boxes = load("detection", "boxes")
    truth = torch.tensor([[0.0, 0.0, 0.4, 0.4], [0.6, 0.6, 1.0, 1.0]])
    guesses = torch.tensor([[0.0, 0.0, 0.4, 0.4], [0.0, 0.0, 0.38, 0.4], [0.6, 0.6, 1.0, 0.9]])
    counts = boxes.count_right(guesses, torch.tensor([0.9, 0.8, 0.7]), truth)
    assert counts.sum(1).tolist() == [2, 3]
    assert boxes.average_precision(counts, 2) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert boxes.keep_best(guesses, torch.tensor([0.8, 0.9, 0.7])).tolist() == [1, 2]


def test_rivals_do_not_teach_each_other(load: Load) -> None:
    """The judge's gradients are those of its own loss alone, and so are the maker's."""
    model = load("gan", "model")
    torch.manual_seed(0)
    rivals = model.Rivals(4, 8, 4, 1).eval()  # as it stands: no norm learns from what it sees
    pictures, kinds = torch.rand(6, 1, 8, 8), torch.arange(6) % 4
    torch.manual_seed(1)
    rivals(pictures, kinds).backward()
    torch.manual_seed(1)
    drawn = rivals.maker(torch.randn(6, model.NOISE), kinds)
    real, false = rivals.judge(pictures, kinds), rivals.judge(drawn.detach(), kinds)
    judging = model.functional.relu(1 - real).mean() + model.functional.relu(1 + false).mean()
    wanted = torch.autograd.grad(judging, list(rivals.judge.parameters()), retain_graph=True)
    wanted += torch.autograd.grad(-rivals.judge(drawn, kinds).mean(), list(rivals.maker.parameters()))
    seen = [weight.grad for part in (rivals.judge, rivals.maker) for weight in part.parameters()]
    for ours, theirs in zip(seen, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)  # sums of another order


def test_features_of_a_shower(load: Load) -> None:
    """Two cells of the third layer, three apart: energy 0.5, depth 2.5, 1.5 wide; its pictures give it back."""
    showers = load("gan", "showers")
    cells = torch.zeros(1, showers.SIDE, showers.SIDE)
    cells[0, 2, 5], cells[0, 2, 8] = 0.25, 0.25
    seen = showers.features(showers.as_pictures(cells))
    torch.testing.assert_close(seen, torch.tensor([[0.5, 2.5, 1.5, 2.0]]))


def test_likeness(load: Load) -> None:
    likeness = load("gan", "showers").likeness
    cloud = torch.randn(1000, 4, generator=torch.Generator().manual_seed(0))
    assert likeness(cloud, cloud) == pytest.approx(1.0)
    assert likeness(cloud, cloud + 100) == pytest.approx(0.1)  # all in the last of ten bins
    assert likeness(cloud, torch.randn(1000, 4, generator=torch.Generator().manual_seed(1))) > 0.85
