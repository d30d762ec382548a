"""Programs from packages that nobody here wrote, started as they are: progress, values, curves and what they leave.

Neither Hydra nor tqdm nor Lightning ships a training in its package: of Hydra it is its example application, of tqdm
its command, of Lightning a demo model behind its own command line. Of the Transformers' Trainer it is TRL's `sft`,
which Accelerate starts. Models come from a configuration, data is made here, and nothing is fetched but the packages.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.lab.slurm.lab import SlurmLab
from podwright.launch import Run
from podwright.report import write_run_report
from tests.contract.sites import END_S, LocalSite, Site, SlurmSite
from tests.fixtures.strangers import environment

OFFLINE = '{OMP_NUM_THREADS: 1, HF_HUB_OFFLINE: 1, TOKENIZERS_PARALLELISM: "false"}'
TINY_MODEL = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
letters = {word: number for number, word in enumerate(["<unk>", "<eos>", "<pad>", "a", "b", "c", "d"])}
tokenizer = Tokenizer(models.WordLevel(letters, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
names = {"unk_token": "<unk>", "eos_token": "<eos>", "pad_token": "<pad>"}
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(sys.argv[1])
size = {"vocab_size": len(letters), "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
GPT2LMHeadModel(GPT2Config(**size, bos_token_id=1, eos_token_id=1)).save_pretrained(sys.argv[1])
"""


def run(site: Site, folder: Path, command: list[str], **fields: Any) -> Run:
    """Start a program in a folder and wait for its end."""
    started = site.start(code=str(folder), command=json.dumps(command), launcher=None, env=OFFLINE, **fields)
    assert started.wait(10 * END_S).state == "succeeded", started.explain()
    return started


def curves(run: Run) -> set[str]:
    """The curves of a run's report."""
    page = write_run_report(run.folder.path).read_text()
    data = page.partition('id="data">')[2].partition("</script>")[0]
    return {curve["key"] for curve in json.loads(data)["curves"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program").mkdir()
    return tmp_path / "program"


def test_tqdm_counts_what_goes_through_it(local: LocalSite, folder: Path) -> None:
    (folder / "lines.txt").write_text("".join(f"line {number}\n" for number in range(5000)))
    command = [str(environment("strangers")), "-m", "tqdm", "--total", "5000"]
    counted = run(local, folder, command, stdin="program/lines.txt")
    assert counted.record().results == {"step": 5000, "steps": 5000}
    bars = [line.text for line in counted.logs() if "it/s" in line.text]
    assert len(bars) == 1, "a bar that is written over is one line"
    assert bars[0].startswith("100%")


def test_a_program_of_hydra_takes_its_overrides_and_its_output_folder_is_kept(local: LocalSite, folder: Path) -> None:
    command = [str(environment("strangers")), "-m", "hydra.test_utils.example_app", "+loss=0.5", "db=postgresql"]
    ended = run(local, folder, command)
    assert "loss: 0.5" in [line.text for line in ended.logs()]
    assert ended.record().results == {"loss": 0.5}
    (overrides,) = (ended.folder.path / "results" / "workdir" / "outputs").rglob("overrides.yaml")
    assert overrides.read_text() == "- +loss=0.5\n- db=postgresql\n"


@pytest.mark.nightly
def test_a_model_of_lightning_shows_its_progress_and_its_loss(local: LocalSite, folder: Path) -> None:
    (folder / "data").mkdir()
    letters = random.Random(1)
    lines = [" ".join(letters.choice("abcdefgh") for _ in range(12)) for _ in range(300)]
    (folder / "data" / "wikitext-2.txt").write_text("\n".join(lines))
    program = "from lightning.pytorch.cli import LightningCLI; LightningCLI()"
    options = {
        "model": "lightning.pytorch.demos.lstm.LightningLSTM",
        "model.vocab_size": "20",
        "trainer.max_epochs": "2",
        "trainer.limit_train_batches": "4",
        "trainer.log_every_n_steps": "1",
        "trainer.accelerator": "cpu",
        # Without a terminal Rich, which it takes where it is there, writes no bar before an epoch is over.
        "trainer.callbacks": "lightning.pytorch.callbacks.TQDMProgressBar",
        "trainer.callbacks.refresh_rate": "1",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    ended = run(local, folder, [str(environment("strangers-nightly")), "-c", program, "fit", *words])
    results = ended.record().results
    assert (results["epoch"], results["step"], results["steps"]) == (1, 4, 4), "Lightning counts epochs from 0"
    assert len(local.told(ended, "train_loss")) > 4
    assert "train_loss" in curves(ended)


def train(site: Site, folder: Path) -> None:
    """Fine-tune a model that a configuration describes, by TRL, Accelerate and the Trainer."""
    python = environment("strangers-nightly")
    subprocess.run([str(python), "-c", TINY_MODEL, str(folder / "model")], check=True, capture_output=True)
    letters = random.Random(1)
    lines = [" ".join(letters.choice("abcd") for _ in range(20)) for _ in range(100)]
    (folder / "data").mkdir()
    (folder / "data" / "train.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    options = {
        "model_name_or_path": "model",
        "dataset_name": "data",
        "output_dir": "out",
        "max_steps": "20",
        "logging_steps": "1",
        "use_cpu": "true",
        "bf16": "false",
        "gradient_checkpointing": "false",
        "report_to": "none",
        "save_strategy": "no",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    ended = run(site, folder, [str(python.parent / "trl"), "sft", *words])
    results = ended.record().results
    assert (results["step"], results["steps"]) == (20, 20)
    assert len(site.told(ended, "loss")) == 20
    assert {"loss", "grad_norm", "learning_rate"} <= curves(ended)


@pytest.mark.nightly
def test_the_trainer_of_transformers_shows_its_progress_and_its_loss(local: LocalSite, folder: Path) -> None:
    train(local, folder)


@pytest.fixture
def healthy(slurm_with_accounting: SlurmLab, tmp_path: Path) -> Iterator[SlurmSite]:
    site = SlurmSite(slurm_with_accounting, tmp_path)
    yield site
    site.close()


@pytest.mark.nightly
@pytest.mark.slurm
@pytest.mark.xdist_group("slurm-accounting")
def test_the_trainer_of_transformers_does_so_on_slurm(healthy: SlurmSite, folder: Path) -> None:
    train(healthy, folder)
