"""A Slurm cluster on this machine: what it shows a user, what may be done to it, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.bringup.plan.slurm import SlurmSite, render
from podwright.lab import processes, watch
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.lab import SlurmLab
from podwright.spec import SlurmScheduler, load_pod
from tests.paths import CASES
from tests.real.clients import PATIENCE_S
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("lab")]


@pytest.fixture(scope="module")
def lab() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=4, min_job_age_s=300) as made:
        yield made


def over_ssh(lab: SlurmLab, *command: str, give: str = "") -> str:
    """Runs a command the way a user would, and gives what it printed."""
    line = ["ssh", "-F", str(lab.ssh_config), lab.name, *command]
    done = subprocess.run(line, input=give, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_job(lab: SlurmLab, script: str, *options: str) -> list[str]:
    """Submits a script, waits for its end, and gives the lines it wrote."""
    output = "out-%j.txt"
    words = over_ssh(lab, "sbatch", "--parsable", f"--output={output}", *options, give=script)
    job = words.strip()
    assert processes.until(lambda: state_of(lab, job) in ("COMPLETED", "FAILED"), PATIENCE_S), state_of(lab, job)
    return over_ssh(lab, "cat", output.replace("%j", job)).splitlines()


def state_of(lab: SlurmLab, job: str) -> str:
    words = dict(word.partition("=")[::2] for word in over_ssh(lab, "scontrol", "show", "job", job).split())
    return words["JobState"]


def slurm_says(lab: SlurmLab, node: str, wanted: Callable[[str], bool]) -> bool:
    return processes.until(lambda: wanted(lab.node_states().get(node, "")), PATIENCE_S, every_s=0.5)


def test_every_node_is_idle(lab: SlurmLab) -> None:
    assert lab.node_states() == dict.fromkeys(["n1", "n2", "n3", "n4"], "idle")


def test_the_lab_is_a_pod(lab: SlurmLab) -> None:
    pod = load_pod(lab.pod_file)
    assert (pod.name, pod.compute_hosts()) == ("lab-slurm", ["n1", "n2", "n3", "n4"])
    assert "SwitchName=su2 Level=0 LinkSpeed=1 Nodes=n[3-4]" in over_ssh(lab, "scontrol", "show", "topology")


def test_the_login_node_is_a_machine_of_its_own(lab: SlurmLab) -> None:
    said = over_ssh(lab, "hostname; id -un; cat /proc/1/comm; ip -brief address show eth0").split()
    assert said[:3] == ["login", lab.user.name, "sh"]
    assert "10.77.0.3/16" in said


def test_a_job_without_the_callers_environment_finds_the_same_python(lab: SlurmLab) -> None:
    script = "#!/bin/sh\npython -c 'import os, sys, podwright; print(sys.prefix, os.getuid())'\nhostname\n"
    assert run_job(lab, script, "--export=NONE") == [f"{sys.prefix} {lab.user.uid}", "n1"]


def test_each_task_sees_its_own_gpus(lab: SlurmLab) -> None:
    step = "srun --export=ALL sh -c 'echo $SLURM_PROCID $(hostname) $CUDA_VISIBLE_DEVICES' | sort"
    options = ("--export=NONE", "--nodes=2", "--ntasks-per-node=2", "--gpus-per-task=4")
    assert run_job(lab, f"#!/bin/sh\n{step}\n", *options) == [
        "0 n1 0,1,2,3",
        "1 n1 4,5,6,7",
        "2 n2 0,1,2,3",
        "3 n2 4,5,6,7",
    ]


def test_ranks_find_each_other_by_pmix(lab: SlurmLab) -> None:
    step = "srun --export=ALL --mpi=pmix sh -c 'echo $PMIX_RANK of $SLURM_NTASKS' | sort"
    lines = run_job(lab, f"#!/bin/sh\n{step}\n", "--export=NONE", "--nodes=4", "--ntasks-per-node=1")
    assert lines == ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]


def test_an_account_that_is_made_on_the_machine_takes_nothing_from_the_lab(lab: SlurmLab) -> None:
    """It replaces /etc/passwd, and with that would go what the lab has mounted over it."""
    name = f"pw{os.getpid():x}"
    subprocess.run(["useradd", "--no-create-home", name], check=True)
    subprocess.run(["userdel", name], check=True)
    assert over_ssh(lab, "id", "-un").strip() == lab.user.name


def test_a_second_up_changes_nothing(lab: SlurmLab) -> None:
    before = {path: path.read_bytes() for path in (lab.folder / "pids").iterdir()}
    config = lab.ssh_config.read_bytes()
    again = slurm.up(lab.folder, name=lab.name, nodes=4, accounting=False)
    assert again.shape == lab.shape
    assert {path: path.read_bytes() for path in (lab.folder / "pids").iterdir()} == before
    assert lab.ssh_config.read_bytes() == config


def test_nodes_that_are_killed_or_cut_off_come_back(lab: SlurmLab) -> None:
    """Both at once, as Slurm takes its time to find out. One that is cut off lives on."""
    pid = lab.machines.pid("n3")
    lab.kill_node("n2")
    lab.cut_node("n3")
    states = {row["machine"]: row["state"] for row in lab.status()}
    assert (states["n2"], states["n3"]) == ("off", "cut")
    assert slurm_says(lab, "n2", lambda state: state.startswith("down"))
    assert slurm_says(lab, "n3", lambda state: state.endswith("*"))
    assert lab.heal("n3") == ["n3"]
    assert lab.heal() == ["n2"]
    assert lab.machines.pid("n3") == pid
    assert (lab.node_states()["n2"], lab.node_states()["n3"]) == ("idle", "idle")


def test_a_controller_that_has_died_is_named_and_healed(lab: SlurmLab) -> None:
    lab.kill_controller()
    rows = {row["machine"]: row["slurm"] for row in lab.status()}
    assert rows.pop("ctl") == "without slurmctld"
    assert not any(rows.values())
    assert lab.heal() == ["ctl"]
    assert lab.heal() == []


def test_jobs_survive_the_controller(lab: SlurmLab) -> None:
    job = over_ssh(lab, "sbatch", "--parsable", "--output=/dev/null", "--wrap='sleep 600'").strip()
    assert processes.until(lambda: state_of(lab, job) == "RUNNING", PATIENCE_S)
    seen = time.time()
    # A controller that is killed knows what it wrote down last, which it does soon after something changed.
    over_ssh(lab, "scontrol", "update", f"JobId={job}", "Comment=seen")
    assert processes.until(lambda: (lab.folder / "state" / "job_state").stat().st_mtime > seen, PATIENCE_S)
    lab.restart_controller()
    assert state_of(lab, job) == "RUNNING"
    over_ssh(lab, "scancel", job)


def test_slurm_knows_every_key_that_is_written_for_a_real_site(lab: SlurmLab) -> None:
    case = CASES / "bringup" / "slurm" / "dgx-a100-140"
    pod = load_pod(case / "pod.yaml")
    scheduler = pod.scheduler("slurm")
    assert isinstance(scheduler, SlurmScheduler)
    folder = lab.shared / "site"
    folder.mkdir()
    for name, text in render(pod, scheduler, SlurmSite("ctl", installed_version(lab))).items():
        (folder / name).write_text(text)
    # The lab's own controller answers: what is asked here is whether the commands can read the file.
    said = lab.run(["env", f"SLURM_CONF={folder}/slurm.conf", "sinfo", "--version"])
    asked = lab.run(["env", f"SLURM_CONF={folder}/slurm.conf", "scontrol", "show", "hostnames", "dgx[001-002]"])
    read = lab.run(["env", f"SLURM_CONF={folder}/slurm.conf", "sinfo", "--noheader", "--partition=gpu"])
    assert (said.stderr, asked.stdout.split(), read.stderr) == ("", ["dgx001", "dgx002"], "")


def installed_version(lab: SlurmLab) -> tuple[int, int]:
    major, minor = lab.run(["sinfo", "--version"]).stdout.split()[1].split(".")[:2]
    return int(major), int(minor)


def podwright(home: Path, *words: str) -> str:
    """Runs a command of ours and gives what it printed."""
    environ = {**os.environ, "PODWRIGHT_HOME": str(home)}
    code = "import sys; from podwright.cli.main import main; sys.exit(main(sys.argv[1:]))"
    line = [sys.executable, "-c", code, *words]
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pwlab-", dir="/tmp") as folder:
        yield Path(folder)


def test_with_accounting_from_the_command_line_and_nothing_is_left_behind(home: Path) -> None:
    folder = home / "labs" / "lab-slurm"
    folder.mkdir(parents=True)
    watch.start(folder, os.getpid())
    try:
        podwright(home, "lab", "up", "slurm", "--nodes", "1", "--gpus", "2")
        made = places_lab(home)
        assert load_pod(home / "pods" / "lab-slurm.yaml").name == "lab-slurm"
        assert [one["slurm"] for one in json.loads(podwright(home, "lab", "status", "--json"))] == ["", "", "idle"]
        job = over_ssh(made, "sbatch", "--parsable", "--output=/dev/null", "--wrap=hostname").strip()
        asked = ("sacct", "--noheader", "--parsable2", "-X", "-o", "JobID,User,Account,State", "-j", job)
        wanted = f"{job}|{made.user.name}|lab|COMPLETED"
        assert processes.until(lambda: over_ssh(made, *asked).strip() == wanted, PATIENCE_S, every_s=0.5)
        secret = [made.folder / name for name in ("etc/slurmdbd.conf", "munge/key", "ssh/host_key")]
        assert [path.stat().st_mode & 0o777 for path in secret] == [0o600, 0o400, 0o600]
        assert len(traces(home)) > 3
    finally:
        podwright(home, "lab", "down", "--yes")
    assert [path for folder in ("labs", "pods", "runs") for path in (home / folder).iterdir()] == []
    assert processes.until(lambda: traces(home) == [], PATIENCE_S)


ASKER = """
import os, sys
from pathlib import Path
from podwright.lab.slurm import lab
lab.up(Path(sys.argv[1]), ends_with=os.getpid(), nodes=1, accounting=False)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("moment", ["while it starts", "when it is up"])
def test_a_lab_ends_with_the_process_that_asked_for_it(home: Path, moment: str) -> None:
    folder = home / "lab"
    command = [sys.executable, "-c", ASKER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asker:
        if moment == "when it is up":
            assert asker.stdout is not None
            assert asker.stdout.readline() == "up\n"
        else:
            assert processes.until((folder / "pids" / "hub").exists, PATIENCE_S, every_s=0.01)
        assert len(traces(folder)) > 1
        asker.kill()
        asker.wait()
        assert processes.until(lambda: traces(folder) == [], PATIENCE_S), traces(folder)
    assert list(home.iterdir()) == []


def places_lab(home: Path) -> SlurmLab:
    found = slurm.find(home / "labs" / "lab-slurm")
    assert found is not None
    return found


def traces(folder: Path) -> list[int]:
    """Gives the processes that see a mount of this folder, or were called with its name: machines, and their guard."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return [pid for pid in pids if processes.born(pid) is not None and str(folder) in told_by(pid)]


def told_by(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/mountinfo").read_text() + Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""
