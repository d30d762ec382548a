"""What `init` makes of batch scripts and of tasks of SkyPilot: whole files, which the workload's own reader takes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import spec
from podwright.drafts import DraftRequest, write_draft
from podwright.drafts.batch_script import read_batch_script
from podwright.drafts.shell_body import read_body
from podwright.drafts.skypilot import read_skypilot_task
from tests.paths import CASES as ALL_CASES

FOLDER = ALL_CASES / "init-jobs"
CASES = sorted(path.name for path in FOLDER.iterdir())
ARGV = {
    "array": ("bash", "-c", "python sweep.py --task $SLURM_ARRAY_TASK_ID > out.$SLURM_ARRAY_TASK_ID"),
    "container": ("python", "-m", "trainer.main", "--data", "/data"),
    "mpi": ("./halo", "--size", "1024"),
    "plain": ("python", "finetune.py", "--epochs", "3"),
    "sky-one": ("python", "train.py"),
    "steps": ("bash", "job.sh"),
    "torchrun": ("python", "train.py", "--config", "conf/gpt small.yaml", "--lr", "3e-4"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    (source,) = [path for path in (FOLDER / name).iterdir() if not path.name.startswith("expected")]
    folder = tmp_path / name
    folder.mkdir()
    script = Path(shutil.copy(source, folder))
    draft = write_draft(DraftRequest(script))
    golden(FOLDER / name / "expected.yaml", draft.file.read_text())
    said = [*draft.guess.notes, f"missing {draft.guess.missing}"]
    golden(FOLDER / name / "expected.txt", "".join(f"{line}\n" for line in said))
    workload = spec.load_workload(draft.file)
    if name in ARGV:
        assert workload.argv == ARGV[name]


@pytest.mark.parametrize(
    ("head", "field", "value"),
    [
        ("--time=90", "slurm", {"time": "1h30m"}),
        ("--time 5:30", "slurm", {"time": "5m30s"}),
        ("-t 1:00:00", "slurm", {"time": "1h"}),
        ("--time=1-0", "slurm", {"time": "1d"}),
        ("--time=1-2:30", "slurm", {"time": "1d2h30m"}),
        ("--time=UNLIMITED", "slurm", {}),
        ("--nodes=2-4", "nodes", 2),
        ("-N2 --gpus=16", "gpus", 8),
        ("--gpus-per-task=2 --ntasks-per-node=4", "gpus", 8),
        ("--gres=gpu", "gpus", 0),
        ("--gres=nvme:1", "left_out", ["--gres=nvme:1"]),
        ("--mem=0", "left_out", ["--mem=0"]),
        ("--mem=4000", "memory", "4000MiB"),
        ("-n 5 -N 2", "ranks_per_node", 3),
        ("-c 4 --ntasks-per-node=8", "cpus", 32),
        ("--array=1,3,5-9:2", "matrix", {"task": [1, 3, 5, 7, 9]}),
        ("--array=0-99999999", "matrix", {}),
        ("--array=x", "matrix", {}),
        ("--job-name='open", "name", "'open"),
    ],
)
def test_head(head: str, field: str, value: object) -> None:
    job = read_batch_script(f"#!/bin/sh\n#SBATCH {head}\npython a.py\n", "job.sh", "folder")
    assert getattr(job, field) == value


@pytest.mark.parametrize(
    ("line", "launcher", "argv"),
    [
        ("python a.py 'b c'", "", ["python", "a.py", "b c"]),
        ("exec python a.py", "", ["python", "a.py"]),
        ("srun -n8 python a.py -n 3", "ranks", ["python", "a.py", "-n", "3"]),
        ("srun torchrun a.py", "torchrun", ["python", "a.py"]),
        ("torchrun --nproc-per-node=2 -m pkg.train --x", "torchrun", ["python", "-m", "pkg.train", "--x"]),
        ("torchrun --standalone --no-python ./train", "torchrun", ["./train"]),
        ("python3.11 -m torch.distributed.launch --use_env a.py", "torchrun", ["python", "a.py"]),
        ("deepspeed --num_gpus 4 a.py --deepspeed ds.json", "torchrun", ["python", "a.py", "--deepspeed", "ds.json"]),
        ("mpiexec -n 4 ./a", "mpi", ["./a"]),
        ("python a.py | tee log", "", ["bash", "-c", "python a.py | tee log"]),
        ("cd sub\npython a.py", "", ["bash", "-c", "cd sub && exec python a.py"]),
        ("python a.py &", "", []),
        ("if true; then python a.py; fi", "", []),
    ],
)
def test_step(line: str, launcher: str, argv: list[str]) -> None:
    body = read_body(f"{line}\n")
    assert (body.launcher, body.argv) == (launcher, argv)


def test_what_prepares_stands_before_the_ranks() -> None:
    body = read_body("A=1\nC=3\nexport B=$A  # why\n\n# no\nmodule load \\\n  x\necho hi\npython a.py\n")
    assert body.setup == ["export A=1", "export B=$A", "module load x"]
    assert body.argv == ["python", "a.py"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run: [a]\n", "t.yaml: is no task of SkyPilot: it has no `run:` text"),
        ("- a\n", "t.yaml: is no task of SkyPilot: it has no `run:` text"),
        ("run: 'x\n", "t.yaml:1:6: a quote is not closed"),
        ("run: &a x\n", "t.yaml:1:6: "),
    ],
)
def test_what_is_no_task(text: str, words: str) -> None:
    with pytest.raises(spec.Refusal) as caught:
        read_skypilot_task(text, "t.yaml", "folder")
    assert str(caught.value).startswith(words)
