"""The network and what it minimises."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from classes import IGNORE
from kit.rates import warm_then_cosine
from model import UNet
from objective import loss_of


@pytest.mark.parametrize(("width", "height"), [(32, 32), (48, 30), (17, 23)])
def test_any_picture_size(width: int, height: int) -> None:
    assert UNet(5, width=4)(torch.zeros(2, 3, height, width)).shape == (2, 5, height, width)


def test_width_sets_the_size() -> None:
    small, large = (sum(p.numel() for p in UNet(5, width).parameters()) for width in (4, 8))
    assert 3 < large / small < 4.5


def test_right_answers_cost_less() -> None:
    truth = torch.randint(0, 3, (2, 6, 7), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    right = torch.nn.functional.one_hot(truth.long(), 4).permute(0, 3, 1, 2).float() * 9
    assert loss_of(right, truth) < 0.1 < loss_of(torch.zeros_like(right), truth) < loss_of(-right, truth)


def test_ignored_pixels_cost_nothing() -> None:
    truth = torch.zeros(1, 4, 4, dtype=torch.uint8)
    truth[0, :2] = IGNORE
    scores = torch.zeros(1, 3, 4, 4, requires_grad=True)
    loss_of(scores, truth).backward()
    assert scores.grad is not None
    assert (scores.grad[:, :, :2] == 0).all()
    assert (scores.grad[:, :, 2:] != 0).all()


def test_all_ignored_is_no_number_lost() -> None:
    scores = torch.zeros(1, 3, 4, 4, requires_grad=True)
    loss = loss_of(scores, torch.full((1, 4, 4), IGNORE, dtype=torch.uint8))
    loss.backward()
    assert float(loss.detach()) == 0
    assert scores.grad is not None
    assert (scores.grad == 0).all()


def test_small_classes_weigh_more_per_pixel() -> None:
    truth = torch.zeros(1, 8, 8, dtype=torch.uint8)
    truth[0, 0, 0] = 1
    scores = torch.zeros(1, 2, 8, 8, requires_grad=True)
    loss_of(scores, truth).backward()
    assert scores.grad is not None
    assert scores.grad[0, :, 0, 0].abs().max() > 5 * scores.grad[0, :, 4, 4].abs().max()


@given(st.floats(0, 1))
def test_learning_rate_stays_in_bounds(done: float) -> None:
    assert 0 <= warm_then_cosine(done, 0.5, 0.2) <= 0.5


def test_learning_rate_peaks_after_the_warm_up() -> None:
    assert warm_then_cosine(0.2, 0.5, 0.2) == 0.5
    assert warm_then_cosine(1, 0.5, 0.2) == pytest.approx(0)
