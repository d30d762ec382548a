"""What Ansible's events mean for stages and hosts."""

from __future__ import annotations

import getpass
import io
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.ansible import INVENTORY
from podwright.bringup.apply.faults import Fault, reason_of
from podwright.bringup.apply.playbook import ApplyProgress, HostCount, PlaybookRun, StageRun, alone, run
from podwright.bringup.progress import BringupProgress
from podwright.cli.terminal.stages import BringupView
from podwright.clients.reasons import last_line
from tests.fixtures.sshd import ssh_config
from tests.real.clients import until

__all__ = ["ssh_config"]


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def test_stages_hosts_and_faults_are_told() -> None:
    progress = ApplyProgress({"n1": HostCount(), "n2": HostCount()})
    events = [
        event("playbook_on_play_start", play="base.base"),
        event("playbook_on_task_start", play="base.base", task="Files"),
        event("runner_on_ok", host="n1", task="Files", res={"changed": True}),
        event("runner_on_ok", host="n2", task="Files", res={"changed": False}),
        event("playbook_on_play_start", play="slurm.database"),
        event("playbook_on_play_start", play="slurm.nodes"),
        event("runner_on_failed", host="n2", task="Packages", res={"msg": "Could not get lock\nheld by 77"}),
        event("runner_on_unreachable", host="n1", task="Look", res={"msg": "No route to host"}),
    ]
    for at, each in enumerate(events):
        progress.take(each, float(at))
    progress.close(10.0)
    assert [(run.name, run.state, run.changed) for run in progress.stages] == [
        ("base", "done", 1),
        ("slurm", "failed", 0),
    ]
    assert [run.took_s for run in progress.stages] == [4.0, 6.0]
    assert progress.hosts == {"n1": HostCount(1, 1, 0, 1), "n2": HostCount(0, 1, 1, 0)}
    assert progress.faults == [
        Fault("n2", "slurm", "packages", "held by 77"),
        Fault("n1", "slurm", "look", "No route to host"),
    ]


_KEPT = {"none": "-o ControlPath=none", "open": "-o ControlMaster=auto -o ControlPersist=10s"}


def play(folder: Path, ssh: Path, task: str = "true", config: str = "", kept: str = "none") -> ApplyProgress:
    """Runs a playbook of one task on the host `loop`, as a bring-up is run."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    reached = {"ansible_ssh_common_args": f"-F '{ssh}'", "ansible_user": getpass.getuser()}
    (project / INVENTORY).write_text(json.dumps({"all": {"hosts": {"loop": reached}}}))
    text = f"- name: base.base\n  hosts: all\n  gather_facts: false\n  tasks: [{{ansible.builtin.raw: '{task}'}}]\n"
    (project / "nothing.yml").write_text(text)
    # A connection that is kept open is not looked at again.
    (project / "ansible.cfg").write_text(f"[ssh_connection]\nssh_args = {_KEPT[kept]}\n{config}")
    key = folder / "key"
    key.write_text("none\n")
    with alone(folder, lambda: None) as lock:
        return run(PlaybookRun(folder, ["loop"], key, lock, "nothing.yml"), lambda progress: None)


def test_a_host_that_has_another_key_is_left_alone(tmp_path: Path, ssh_config: Path) -> None:
    """A real sshd; ansible-runner by itself would take any host for the one that is meant."""
    assert play(tmp_path / "right", ssh_config).hosts == {"loop": HostCount(changed=1, ok=1)}
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    known = tmp_path / "known"
    known.write_text(f"* {other.with_suffix('.pub').read_text()}")
    changed = tmp_path / "config"
    strict = f"UserKnownHostsFile {known}\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n"
    changed.write_text(strict + ssh_config.read_text())
    progress = play(tmp_path / "wrong", changed)
    assert progress.hosts == {"loop": HostCount(unreachable=1)}
    assert "Host key verification failed" in progress.faults[0].reason


def test_a_host_of_the_same_name_in_another_pod_is_another_host(tmp_path: Path, ssh_config: Path) -> None:
    """Two bring-ups at once: a connection that one keeps open is nobody else's. The other pod's host is away here."""
    begun, over = tmp_path / "begun", tmp_path / "over"
    task = f"touch {begun}; while [ ! -e {over} ]; do sleep 0.1; done"
    away = tmp_path / "config"
    away.write_text(f"Host loop\n  Port 1\n{ssh_config.read_text()}")
    with ThreadPoolExecutor(1) as threads:
        one = threads.submit(play, tmp_path / "one", ssh_config, task, kept="open")
        try:
            until(begun.exists, "the first one is at work")
            other = play(tmp_path / "other", away, kept="open")
        finally:
            over.touch()
    assert other.hosts == {"loop": HostCount(unreachable=1)}
    assert one.result().hosts == {"loop": HostCount(changed=1, ok=1)}


def test_the_reason_is_that_of_the_item_that_failed() -> None:
    items = [{"failed": False, "msg": "fine"}, {"failed": True, "stderr": "slurmd does not run: no such node\n"}]
    assert reason_of({"msg": "One or more items failed", "results": items}) == "slurmd does not run: no such node"
    late = {"unreachable": True, "msg": "Task failed: Timeout (62s) waiting for privilege escalation prompt:"}
    assert reason_of({"msg": "All items completed", "results": [late]}) == late["msg"]
    assert reason_of({}) == "no reason was given"


def test_a_last_line_that_says_nothing_is_not_the_reason() -> None:
    said = "E: Failed to fetch http://10.0.0.1/a.deb  403  Forbidden\nE: Some files failed to download\n"
    reason = reason_of({"rc": 100, "stderr": said})
    assert reason == "E: Failed to fetch http://10.0.0.1/a.deb  403  Forbidden"
    assert Fault("g1", "base", "package downloads", reason).next_step == "does its source of packages answer?"


def test_a_host_behind_another_that_is_off_is_named_by_what_ssh_knows() -> None:
    """As Ansible tells it when the host that leads there answers and the one behind it does not."""
    known = 'Data could not be sent to remote host "n2": Connection timed out during banner exchange'
    reason = reason_of({"unreachable": True, "msg": f"{known}\r\nConnection to UNKNOWN port 65535 timed out"})
    assert reason == known
    assert Fault("n2", "base", "look", reason).next_step == "is it on, and does ssh get there?"


def test_what_took_too_long_is_named_with_its_bound() -> None:
    fetched = {"rc": 124, "cmd": ["timeout", "--kill-after=10", "180", "apt-get", "update", "--quiet"], "stderr": ""}
    assert reason_of(fetched) == "apt-get update did not end within 180 s"
    task = {"msg": "Timed out after 600 second(s).", "timedout": {"period": 600, "frame": "x"}}
    assert reason_of(task) == "it did not end within 600 s"
    assert reason_of({**fetched, "rc": 100, "stderr": "E: Failed to fetch x"}) == "E: Failed to fetch x"


@pytest.mark.parametrize(
    ("reason", "step"),
    [
        ("/var/lib/dpkg/lock-frontend is held by process 77 (apt-get upgrade)", "wait until it has ended"),
        ("OSError: [Errno 28] No space left on device", "free space"),
        ("apt-get update did not end within 180 s", "look what it waits for"),
        ("Task failed: Timeout (62s) waiting for privilege escalation prompt:", "look what it waits for"),
        ("Failed to connect to the host via ssh: ssh: connect to host g1 port 22: No route to host", "is it on"),
        ("slurmd does not run: no such node", "journalctl"),
        ("never seen before", "mend it"),
    ],
)
def test_the_next_step_follows_from_the_reason(reason: str, step: str) -> None:
    assert Fault("g1", "slurm", "packages", reason).next_step.startswith((step, f"`{step}"))


def test_a_task_that_takes_too_long_is_ended(tmp_path: Path, ssh_config: Path) -> None:
    """Ansible itself ends it, by the bound that the project's configuration gives every task."""
    progress = play(tmp_path, ssh_config, task="sleep 600", config="[defaults]\ntask_timeout = 2\n")
    assert progress.faults == [Fault("loop", "base", "ansible.builtin.raw", "it did not end within 2 s")]


def test_a_host_that_says_nothing_and_one_behind_another_are_told_in_words() -> None:
    silent = 'Data could not be sent to remote host "n2". Make sure this host can be reached over ssh: '
    assert reason_of({"unreachable": True, "msg": silent}) == 'Data could not be sent to remote host "n2": no answer'
    refused = "admin@10.0.0.9: Permission denied (publickey)."
    behind = f"{refused}\r\nkex_exchange_identification: Connection closed by remote host"
    assert reason_of({"unreachable": True, "msg": behind}) == refused
    assert last_line(f"{behind}\nConnection closed by UNKNOWN port 65535", "") == reason_of({"msg": behind})


def test_who_is_slow_at_a_task_is_known_once_others_have_ended_it() -> None:
    progress = ApplyProgress({}, wanted=["base", "slurm"])
    progress.take(event("playbook_on_play_start", play="slurm.nodes"), 0.0)
    progress.take(event("playbook_on_task_start", play="slurm.nodes", task="Packages"), 0.0)
    for host in ("n1", "n2", "n3"):
        progress.take(event("runner_on_start", host=host), 1.0)
    assert (progress.doing, progress.slow()) == ("packages", [])
    progress.take(event("runner_on_ok", host="n1", task="Packages", res={"changed": True}), 2.0)
    progress.take(event("runner_on_skipped", host="n3"), 2.0)
    assert progress.slow() == ["n2"]
    progress.take(event("playbook_on_task_start", play="slurm.nodes", task="Files"), 3.0)
    assert progress.slow() == []


def test_the_screen_says_which_stage_how_many_hosts_and_who_is_slow(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = {"n1": HostCount(changed=3), "n2": HostCount()}
    stages = [StageRun("base", "done", 4.0, 3), StageRun("slurm")]
    running = ApplyProgress(hosts, stages, ["base", "slurm"], doing="packages", at_task={"n1": True, "n2": False})
    screen = Screen()
    view = BringupView(screen, "lab")
    view(BringupProgress("up", "lab", ["n1", "n2"]))
    view(BringupProgress("applying", hosts=["n1", "n2"], applied=running))
    line = screen.getvalue().rpartition("\x1b[K")[2]
    assert line.startswith("slurm     2 of 2 packages, 1 of 2 hosts, waits for n2, 3 changes")
    assert "base      1 of 2 done, 3 changes" in capsys.readouterr().err


class Screen(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True
