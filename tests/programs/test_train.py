"""The training itself: learns, tells, resumes to the same curve, stops when asked, alone and with others."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from classes import a2d2_classes
from config import read_config
from kit.checkpoint import saved
from kit.rates import warm_then_cosine
from kit.world import World
from model import UNet
from scenes import YAWS_DEGREES, Plan, make
from tests.programs.conftest import TINY, TORCHRUN, told
from train import Scenes

Train = Callable[..., int]
Start = Callable[..., "subprocess.Popen[str]"]


def test_results(train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--data", frames, "--out", tmp_path) == 0
    text = capsys.readouterr().out
    matrix = json.loads((tmp_path / "confusion.json").read_text())
    count = len(matrix["classes"])
    assert np.array(matrix["matrix"]).shape == (count, count)
    assert np.sum(matrix["matrix"]) == 6 * 48 * 32
    assert list(matrix["colors"]) == matrix["classes"]
    iou = json.loads((tmp_path / "iou.json").read_text())
    assert list(iou) == a2d2_classes().names
    scores = [value for value in iou.values() if value is not None]
    assert told(text, "mean_iou")[12] == pytest.approx(sum(scores) / len(scores), abs=1e-5)
    examples = json.loads((tmp_path / "examples.json").read_text())
    assert [example["name"] for example in examples] == ["00", "01", "02", "03", "04", "05"]
    for example in examples:
        for view in ("image", "truth", "prediction"):
            assert size_of(tmp_path / example[view]) == (48, 32)
        assert size_of(tmp_path / example["file"]) == (3 * 8 * 48 + 2 * 4, 8 * 32)
        assert 0 <= example["mean_iou"] <= 1
        assert 0 <= example["pixel_accuracy"] <= 1
    assert min(size_of(tmp_path / "confusion.png")) > 100
    kept = torch.load(tmp_path / "model.pt", weights_only=True)
    UNet(len(kept["classes"]), kept["width"]).load_state_dict(kept["model"])
    assert not list(tmp_path.glob("**/.*"))


def test_lines(train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train("--data", frames, "--out", tmp_path)
    text = capsys.readouterr().out
    assert list(told(text, "loss")) == list(range(1, 13))
    assert list(told(text, "mean_iou")) == [6, 12]
    assert told(text, "epoch") == {step: 1 if step <= 6 else 2 for step in range(1, 13)}
    assert set(told(text, "steps").values()) == {12}
    last = json.loads(text.splitlines()[-2])["podwright"]
    assert {"iou.sky", "iou.rd-normal-street"} <= set(last)
    logged = [json.loads(line.removeprefix(":::MLLOG ")) for line in text.splitlines() if line.startswith(":::MLLOG ")]
    run = logged[next(place for place, entry in enumerate(logged) if entry["key"] == "run_start") :]
    epoch = ["epoch_start", "epoch_stop", "eval_start", "eval_accuracy", "eval_stop"]
    assert [entry["key"] for entry in run] == ["run_start", *epoch, *epoch, "run_stop"]
    assert [run[0]["event_type"], run[-1]["event_type"]] == ["INTERVAL_START", "INTERVAL_END"]
    assert [entry["metadata"].get("epoch_num") for entry in run] == [None, *[1] * 5, *[2] * 5, None]
    assert logged[-1]["metadata"]["status"] == "success"


def test_the_losses_are_those_of_a_loop_without_a_kit(
    train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written out here step by step: what the loop does besides must not change one bit of them."""
    assert train("--data", frames, "--out", tmp_path) == 0
    seen = told(capsys.readouterr().out, "loss")
    torch.manual_seed(0)
    task = Scenes(read_config([*TINY, "--data", str(frames)], {}), World(0, 1, 1, torch.device("cpu")))
    losses: dict[int, float] = {}
    for epoch in range(2):
        task.net.train()
        for batch in task.batches(epoch, 0):
            torch.manual_seed(len(losses))
            task.optimizer.param_groups[0]["lr"] = warm_then_cosine((len(losses) + 1) / 12, 6e-3 * (2 / 8) ** 0.5, 0.2)
            loss = task.net(*batch)
            task.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(task.net.parameters(), 1.0)
            task.optimizer.step()
            losses[len(losses) + 1] = round(float(loss.detach()), 6)
    assert seen == losses


def test_it_learns(train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--data", frames, "--out", tmp_path, "--epochs", 12, "--width", 8, "--lr", 0.02) == 0
    text = capsys.readouterr().out
    losses = list(told(text, "loss").values())
    assert sum(losses[-6:]) < 0.7 * sum(losses[:6])
    qualities = list(told(text, "mean_iou").values())
    assert qualities[-1] > 3 * qualities[0]


def test_killed_and_resumed_is_as_never_killed(
    train: Train, start: Start, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the middle of the second epoch, the curve goes on as that of a run that was left alone."""
    assert train("--data", frames, "--out", tmp_path / "whole") == 0
    whole = capsys.readouterr().out
    kept = ("--data", frames, "--out", tmp_path / "parts", "--checkpoint", tmp_path / "kept", "--checkpoint-steps", 2)
    first = start(*kept)
    assert first.stdout is not None
    before = ""
    for line in first.stdout:
        before += line
        if told(line, "loss").keys() >= {9}:
            os.killpg(first.pid, signal.SIGKILL)
            break
    first.wait()
    # What was told just before the kill may still lie in the pipe; the checkpoint says where it goes on.
    assert train(*kept) == 0
    after = capsys.readouterr().out
    place = re.search(r"resumed from step-(\d+)\.pt: epoch 2, step (\d) of 6", after)
    assert place is not None, after
    assert int(place[1]) == 6 + int(place[2]) >= 8
    curve = told(before, "loss") | told(after, "loss")
    assert min(told(after, "loss")) == int(place[1]) + 1
    assert curve == pytest.approx(told(whole, "loss"), rel=1e-4)
    assert told(after, "mean_iou")[12] == pytest.approx(told(whole, "mean_iou")[12], abs=1e-3)


def test_a_finished_run_only_scores_again(
    train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("--data", frames, "--checkpoint", tmp_path / "kept")
    train(*kept, "--out", tmp_path / "one")
    before = capsys.readouterr().out
    train(*kept, "--out", tmp_path / "two")
    after = capsys.readouterr().out
    assert told(after, "loss") == {}
    assert told(after, "mean_iou")[12] == told(before, "mean_iou")[12]
    assert (tmp_path / "one/iou.json").read_bytes() == (tmp_path / "two/iou.json").read_bytes()


def test_a_checkpoint_beyond_the_last_epoch_is_scored(
    train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept")
    train(*kept)
    before = capsys.readouterr().out
    assert train(*kept, "--epochs", 1) == 0
    assert told(capsys.readouterr().out, "mean_iou") == {6: told(before, "mean_iou")[12]}


def test_a_damaged_checkpoint_falls_back(
    train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept")
    train(*kept)
    capsys.readouterr()
    newest = saved(tmp_path / "kept")[-1]
    newest.write_bytes(newest.read_bytes()[:1000])
    assert train(*kept) == 0
    text = capsys.readouterr().out
    assert "checkpoint step-00000012.pt is damaged" in text
    assert "resumed from step-00000006.pt: epoch 1, step 6 of 6" in text


def test_a_checkpoint_of_another_network_is_refused(train: Train, frames: Path, tmp_path: Path) -> None:
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept", "--epochs", 1)
    train(*kept)
    with pytest.raises(SystemExit, match="is of another network, by its width"):
        train(*kept, "--width", 8)


def test_sigterm_ends_with_a_checkpoint(start: Start, frames: Path, tmp_path: Path) -> None:
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept", "--epochs", 500)
    process = start(*kept)
    assert process.stdout is not None
    next(line for line in process.stdout if told(line, "loss").keys() >= {3})
    process.terminate()
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 143
    step = re.search(r"stopped at step (\d+) of 3000", text)
    assert step is not None
    assert saved(tmp_path / "kept")[-1].name == f"step-{int(step[1]):08d}.pt"
    assert '"status": "aborted"' in text


def test_two_ranks(
    start: Start, train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under torchrun one rank speaks and writes; a lone rank goes on from where the two were."""
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept")
    text, _ = start(*kept, launcher=TORCHRUN).communicate(timeout=200)
    assert list(told(text, "loss")) == [1, 2, 3, 4, 5, 6], text
    assert text.count("results in ") == 1
    matrix = json.loads((tmp_path / "out" / "confusion.json").read_text())["matrix"]
    assert np.sum(matrix) == 6 * 48 * 32
    shutil.rmtree(tmp_path / "out")
    saved(tmp_path / "kept")[-1].unlink()
    assert train(*kept) == 0
    after = capsys.readouterr().out
    assert "resumed from step-00000003.pt: epoch 1, step 6 of 6" in after
    assert list(told(after, "loss")) == [7, 8, 9, 10, 11, 12]


def test_one_rank_asked_stops_all(start: Start, frames: Path, tmp_path: Path) -> None:
    """The ranks are plain processes here: only the second is asked, both leave after the same step."""
    with_port = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    kept = ("--data", frames, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept", "--epochs", 500)
    one = start(*kept, RANK="0", LOCAL_RANK="0", **with_port)
    two = start(*kept, RANK="1", LOCAL_RANK="1", **with_port)
    assert one.stdout is not None
    next(line for line in one.stdout if told(line, "loss").keys() >= {3})
    two.terminate()
    texts = [process.communicate(timeout=100)[0] for process in (one, two)]
    assert [one.returncode, two.returncode] == [143, 143], texts
    assert "stopped at step" in texts[0]
    assert "podwright" not in texts[1]


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_real_frames(train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Full-size frames, six cameras, no lidar; one without a label, one with a colour nobody knows."""
    root = tmp_path / "a2d2" / "camera_lidar_semantic"
    make(Plan(frames=6, scenes=1, cameras=tuple(YAWS_DEGREES), size=(1920, 1208)), root)
    shutil.copytree(next(root.glob("2026*")), root / "20180807_145028")
    labels = sorted(root.glob("*/label/*/*.png"))
    labels[0].unlink()
    with Image.open(labels[1]) as label:
        label.paste((7, 7, 7), (0, 0, 1920, 100))
        label.save(labels[1])
    assert train("--data", tmp_path / "a2d2", "--out", tmp_path / "out", "--epochs", 1, "--held-out", 0.5) == 0
    text, warned = capsys.readouterr()
    assert text.count("1 frame has no label and is left out: ") == 1
    assert warned == f"colours that class_list.json does not name are ignored, the first: #070707 in {labels[1]}\n"
    assert list(told(text, "mean_iou")) == [3]


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_it_makes_of_a_pool(train: Train, start: Start, frames: Path, tmp_path: Path, ranks: int) -> None:
    """Of every frame of the pool once: how unsure the model is, and which pixels it takes for what."""
    scenes = sorted(path.name for path in frames.glob("2026*"))
    for name, scene in zip(("train", "more", "pool"), scenes, strict=True):
        (tmp_path / name).mkdir()
        shutil.copytree(frames / scene, tmp_path / name / scene)
    folders = {"data": "train", "more": "more", "score-on": "pool", "pool": "pool"}
    words = [f"--{option}={tmp_path / name}" for option, name in folders.items()]
    if ranks == 1:
        assert train(*words, "--out", tmp_path / "out") == 0
    else:
        process = start(*words, "--out", tmp_path / "out", launcher=TORCHRUN)
        text, _ = process.communicate(timeout=200)
        assert process.returncode == 0, text
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    images = sorted(path.relative_to(tmp_path / "pool") for path in (tmp_path / "pool").glob("*/camera/*/*.png"))
    assert [row["image"] for row in rows] == list(map(str, images))
    assert all(0 < row["uncertainty"] < 1 for row in rows)
    scored = json.loads((tmp_path / "out" / "confusion.json").read_text())
    wrong = np.sum(scored["matrix"]) - np.trace(np.array(scored["matrix"]))
    assert sum(sum(taken.values()) for row in rows for taken in row["confused"].values()) == wrong


def test_no_frames(train: Train, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"0 labelled frames at .*/SCENE/camera/cam_.* two are the least") as caught:
        train("--data", tmp_path)
    assert "hint: python programs/segmentation/scenes.py" in str(caught.value)


def test_settings_from_podwright() -> None:
    config = read_config(["--data", "d"], {"PODWRIGHT_FOLDER": "/run", "PODWRIGHT_CHECKPOINT": "/run/kept"})
    assert (config.out, config.checkpoint) == (Path("/run/results"), Path("/run/kept"))
    given = read_config(["--data", "d", "--out", "o", "--checkpoint", "c"], {"PODWRIGHT_FOLDER": "/run"})
    assert (given.out, given.checkpoint) == (Path("o"), Path("c"))
    alone = read_config(["--data", "d"], {})
    assert (alone.out, alone.checkpoint) == (Path("results"), None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--held-out", "1.5"], '"1.5" is not a share between 0 and 1'),
        (["--epochs", "0"], '"0" is not a whole number of at least 1'),
        (["--seed=-1"], '"-1" is not a whole number'),
        (["--size", "big"], '"big" is not a size like 176x112, at least 16 pixels each way'),
        (["--precision", "int8"], "invalid choice: 'int8'"),
    ],
)
def test_wrong_settings(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        read_config(["--data", "d", *arguments], {})
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_bf16_on_request(train: Train, frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--data", frames, "--out", tmp_path, "--epochs", 1, "--precision", "bf16") == 0
    assert all(0 < loss < 20 for loss in told(capsys.readouterr().out, "loss").values())
