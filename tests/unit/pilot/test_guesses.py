"""Values in lines that were written for people."""

from __future__ import annotations

import pytest

from podwright.pilot.ranks.guesses import BURST_LINES, LineValues, Recogniser, guess


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("loss=0.12", {"loss": 0.12}),
        ("loss: 0.12", {"loss": 0.12}),
        ("iter 10: loss 2.33, time 12 ms", {"step": 10, "loss": 2.33}),
        ("{'loss': 0.5, 'grad_norm': 1e-3, 'epoch': 1.0}", {"loss": 0.5, "grad_norm": 0.001, "epoch": 1}),
        (" 45%|####    | 45/100 [00:05<00:06,  8.9it/s, loss=0.12]", {"step": 45, "steps": 100, "loss": 0.12}),
        (
            "Epoch 0:  50%|##| 5/10 [00:01<00:01, 4.9it/s, v_num=0, train_loss=0.5]",
            {"epoch": 0, "step": 5, "steps": 10, "train_loss": 0.5},
        ),
        (
            "{'loss': '1.831', 'learning_rate': '7e-06', 'epoch': '0.28'}",
            {"loss": 1.831, "learning_rate": 7e-6, "epoch": 0.28},
        ),
        (
            "Epoch 1/1  ━━╸       1/7 0:00:15 • -:--:-- 0.00it/s train_loss: 26.766",
            {"epoch": 1, "epochs": 2, "step": 1, "steps": 7, "train_loss": 26.766},
        ),
        ("Training:   5%|# | 1/20 [00:00<00:05, 3.2it/s]", {"step": 1, "steps": 20}),
        ("Epoch 3/10", {"epoch": 3, "epochs": 10}),
        ("step 120/1000", {"step": 120, "steps": 1000}),
        ("[2/5] val/acc: 0.91  train loss 0.3", {"val_acc": 0.91, "train_loss": 0.3}),
        ("2026-11-17 INFO epoch 3 step 40 loss 0.12 lr 3.0e-04", {"epoch": 3, "step": 40, "loss": 0.12, "lr": 0.0003}),
        ("Test Accuracy: 91.2%", {"test_accuracy": 91.2}),
        ("BLEU = 28.4", {"bleu": 28.4}),
        (
            " iteration       10/     100 | consumed samples: 80 | lm loss: 1.031852E+01 | grad norm: 3.2 |",
            {"step": 10, "steps": 100, "loss": 10.31852},
        ),
        ("\x1b[31mstep:  7  \x1b[32mloss:  8.1329  \x1b[35mmfu: 1.2%\x1b[0m", {"step": 7, "loss": 8.1329}),
        ("[Rank 0] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=9.1", {"epoch": 0, "step": 10}),
        ("30/100 ━━━━━━━━━━━━ 2s 31ms/step - loss: 0.41", {"step": 30, "steps": 100, "loss": 0.41}),
        ("Steps: 10 loss 0.5", {"step": 10, "loss": 0.5}),
    ],
)
def test_common_forms(line: str, values: dict[str, float]) -> None:
    assert guess(line) == values


@pytest.mark.parametrize(
    "line",
    [
        "loss of connection: 3",
        "port: 8080 pid=12",
        "Train Loss = nan",
        "lossless 3",
        "loss 3abc",
        "Downloading map 3",
        "loss_fn=0x7f3a",
        "colour: 12",
        "stepping 3",
        "max_iters = 20",
        "eval_iters: 200",
        "lr_decay_iters = 20",
        "  Num Epochs = 3",
        "Validation  ━━━╸  3/10 0:00:01 • 0:00:02 9.1it/s",
        "Writing model shards: 100%|##########| 1/1 [00:00<00:00, 973.83it/s]",
        "",
    ],
)
def test_what_is_no_value(line: str) -> None:
    assert guess(line) == {}


def confirmed(*names: bytes, patterns: dict[str, str] | None = None) -> Recogniser:
    """One that has seen each of these names twice, with two values."""
    recogniser = Recogniser(patterns or {}, guesses=True, monotonic=lambda: 0.0)
    for name in names:
        recogniser.read(9, name + b"=1")
        recogniser.read(9, name + b"=2")
    return recogniser


def test_a_guess_waits_for_its_name_to_come_again() -> None:
    now = [0.0]
    recogniser = Recogniser({}, guesses=True, monotonic=lambda: now[0])
    assert recogniser.read(0, b"rank 0 starts at step 4") == []
    now[0] = 3.0
    assert recogniser.read(0, b"step 5 loss=0.5") == [
        LineValues({"step": 4.0}, {"step"}, age_s=3.0),
        LineValues({"step": 5.0}, {"step"}),
    ]
    assert recogniser.read(0, b"step 6") == [LineValues({"step": 6.0}, {"step"})]
    assert recogniser.rest(0) == [LineValues({"loss": 0.5}, {"loss"})]
    assert recogniser.rest(0) == []


def test_a_configuration_that_is_printed_first_is_no_result() -> None:
    recogniser = Recogniser({}, guesses=True)
    for line in (b"Overriding: learning_rate = 0.1", b"learning_rate = 0.1", b"min_lr = 0.01"):
        assert recogniser.read(0, line) == []
    assert [row.values for row in recogniser.read(0, b"step 1 loss 0.5")] == []
    assert [row.values for row in recogniser.read(0, b"step 2 loss 0.4")] == [
        {"step": 1.0, "loss": 0.5},
        {"step": 2.0, "loss": 0.4},
    ]
    assert recogniser.rest(0) == []
    quiet = Recogniser({}, guesses=True)
    quiet.read(0, b"lr: 0.1")
    quiet.read(0, b"Test accuracy: 91.2")
    assert [row.values for row in quiet.rest(0)] == [{"test_accuracy": 91.2}]


def test_what_waits_is_dropped_when_the_name_is_told() -> None:
    recogniser = Recogniser({}, guesses=True)
    recogniser.read(0, b"rank 0 starts at step 4")
    recogniser.note_reported(0, {"step": 5})
    assert recogniser.read(0, b"rank 0 starts at step 5") == []
    assert recogniser.rest(0) == []


def test_told_names_come_first() -> None:
    recogniser = confirmed(b"loss", b"acc")
    assert recogniser.read(0, b"loss=1 acc=0.5") == [LineValues({"loss": 1.0, "acc": 0.5}, {"loss", "acc"})]
    recogniser.note_reported(0, {"loss": 0.25})
    assert recogniser.read(0, b"loss=1 acc=0.5") == [LineValues({"acc": 0.5}, {"acc"})]
    assert recogniser.read(0, b"loss=1") == []


def test_patterns_come_before_forms_and_are_no_guesses() -> None:
    recogniser = confirmed(b"acc", patterns={"loss": r"total ([0-9.]+)", "wer": r"WER ([0-9.]+)"})
    assert recogniser.read(0, b"loss=1 total 0.5") == [LineValues({"loss": 0.5}, set())]
    # A name that has a pattern is not guessed: the user said where it is.
    assert recogniser.read(0, b"loss=1") == []
    assert recogniser.read(0, b"WER 12.5 acc=0.5") == [LineValues({"wer": 12.5, "acc": 0.5}, {"acc"})]
    assert recogniser.read(0, b"WER 1.2.3") == []


def test_lines_of_rank_0_count_where_it_writes_any() -> None:
    recogniser = confirmed(b"loss")
    assert recogniser.read(3, b"loss=3")
    assert not recogniser.read(5, b"loss=5")
    assert recogniser.read(0, b"loss=0")
    assert not recogniser.read(3, b"loss=3")


def test_other_nodes_guess_nothing_and_long_lines_are_cut() -> None:
    others = Recogniser({}, guesses=False)
    assert not others.read(0, b"loss=1")
    assert not others.rest(0)
    assert not confirmed(b"loss").read(0, b"x" * 5000 + b" loss=1")
    assert Recogniser({"loss": "loss=([0-9]+)"}, guesses=True).read(0, b"\xff loss=1") == [
        LineValues({"loss": 1.0}, set())
    ]


def test_a_flood_of_lines_is_looked_at_in_part() -> None:
    now = [0.0]
    recogniser = Recogniser({}, guesses=True, monotonic=lambda: now[0])
    read = [recogniser.read(0, b"loss=%d" % number) for number in range(1000)]
    assert sum(bool(rows) for rows in read) == BURST_LINES - 1
    now[0] = 1.0
    assert recogniser.read(0, b"loss=1")


@pytest.mark.parametrize("line", ["loss" * 1024, "a b " * 1000 + "loss", "loss " + "a_" * 2000, "epoch " * 700])
def test_a_line_made_to_take_long_ends(line: str) -> None:
    """A search that tried all ways would not."""
    assert guess(line[:4096]) == {}
