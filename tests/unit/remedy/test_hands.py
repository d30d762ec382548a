"""Hands: what they run and what not, and what the unit does by them; a scheduler answers as its commands do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.changes import ChangeId
from podwright.bringup.apply.rolling import KubernetesDrain, SlurmDrain
from podwright.bringup.remedy.desk import MessageDesk
from podwright.bringup.remedy.hand import RemedyHand, allowed
from podwright.bringup.remedy.hands import HandAddress, RemedyChange, RemedyHands, SchedulerPlace, ask
from podwright.bringup.remedy.policy import RemedyNode
from podwright.bringup.remedy.program import remedy_program
from podwright.bringup.remedy.unit import Outcome
from podwright.spec import Refusal
from podwright.telemetry.server import Guard
from tests.unit.bringup.test_rolling import FakeSlurm

NODE = RemedyNode("n2", "draining", cure="reset", why="XID 119 on GPU 0 of n2")


class Lines:
    """Keeps the lines that a drain would run."""

    def __init__(self, *said: str) -> None:
        self.lines, self._said = list[str](), list(said)

    def __call__(self, line: str) -> str:
        self.lines.append(line)
        return self._said.pop(0) if self._said else ""


def test_every_line_of_the_drains_is_allowed() -> None:
    change = RemedyChange("a1b2c3d4", why="XID 79 on GPU 3 of dgx-01: the host must be started anew")
    slurm = Lines("dgx[01]|idle|none\n", "", "dgx-01 draining\n", "7|ada|1:00\n", "dgx-01 drained\n")
    drain = SlurmDrain(slurm, change, every_s=0)
    drain.drain(["dgx-01"])
    drain.resume(["dgx-01"])
    kubernetes = Lines("n2 false <none>\n", "", "", "n2 Never\n", "n2 ns pod Never\n", "", "", "n2 true a1b2c3d4\n")
    cordon = KubernetesDrain(kubernetes, change, every_s=0)
    cordon.drain(["n2"])
    cordon.resume(["n2"])
    assert len(slurm.lines) >= 6
    assert len(kubernetes.lines) >= 8
    assert all(allowed(line, ["slurm"]) for line in slurm.lines)
    assert [line for line in kubernetes.lines if not allowed(line, ["kubernetes"])] == []
    assert not any(allowed(line, ["kubernetes"]) for line in slurm.lines)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "reboot",
        "sinfo; reboot",
        "scontrol update NodeName=n2 State=DRAIN",
        "scontrol update NodeName=n2 State=DRAIN Reason='maintenance'",
        "scontrol update NodeName=n2 State=RESUME; reboot",
        "scontrol update NodeName=n2 State=RESUME Reason='podwright: x' Extra=1",
        "scontrol shutdown",
        "kubectl delete pods --all",
        "kubectl get pods --all-namespaces --no-headers --field-selector=a --output=b --kubeconfig=/tmp/x",
        "kubectl cordon --kubeconfig=/tmp/x",
        "kubectl annotate node n2 other/key=1",
        "sinfo 'unclosed",
    ],
)
def test_no_other_line_is(line: str) -> None:
    assert allowed(line, ["slurm", "kubernetes"]) is None


class Commands:
    """Runs nothing: says what was asked to run, and answers with what a test gave."""

    def __init__(self, **codes: int) -> None:
        self.run_ones, self._codes = list[str](), codes

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        line = " ".join(command)
        self.run_ones.append(line)
        code = next((code for word, code in self._codes.items() if word in line.replace("-", "_").replace(" ", "_")), 0)
        return subprocess.CompletedProcess(command, code, "said\n", "it is in use\n")


def _nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nvidia-smi").write_text("#!/bin/sh\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_what_holds_gpus_lets_go_before_a_reset_and_comes_back_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nvidia_smi(tmp_path, monkeypatch)
    commands = Commands(quiet_dcgm_exporter=3, quiet_nvidia_dcgm_exporter=3)
    assert RemedyHand(run=commands)({"verb": "reset"}) == {"said": "said"}
    held = "podwright-exporter nvidia-dcgm nvidia-persistenced"
    back = "nvidia-persistenced nvidia-dcgm podwright-exporter"
    assert commands.run_ones[-3:] == [f"systemctl stop {held}", "nvidia-smi --gpu-reset", f"systemctl start {back}"]


def test_they_come_back_after_a_reset_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _nvidia_smi(tmp_path, monkeypatch)
    commands = Commands(gpu_reset=1)
    with pytest.raises(Refusal, match="nvidia-smi: it is in use"):
        RemedyHand(run=commands)({"verb": "reset"})
    assert commands.run_ones[-1].startswith("systemctl start ")


def test_a_host_without_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match="there is no nvidia-smi"):
        RemedyHand(run=Commands())({"verb": "reset"})


def test_the_health_check_says_why_a_host_may_take_no_jobs(tmp_path: Path) -> None:
    health = tmp_path / "health.sh"
    hand = RemedyHand(health=str(health))
    assert hand({"verb": "check"}) == {"reason": ""}
    health.write_text('#!/bin/sh\necho "GPU 1 is gone, $1"\nexit 1\n')
    health.chmod(0o755)
    assert hand({"verb": "check"}) == {"reason": "GPU 1 is gone, look"}
    health.write_text("#!/bin/sh\nexit 0\n")
    assert hand({"verb": "check"}) == {"reason": ""}


@pytest.mark.parametrize("message", [None, {}, {"verb": "rm"}, {"verb": ["line"]}, [], {"verb": "line", "line": "ls"}])
def test_nothing_else_is_done(message: object) -> None:
    with pytest.raises(Refusal, match="that is no"):
        RemedyHand(("slurm",), run=Commands())(message)


@contextmanager
def desk(answer: Callable[[Any], Mapping[str, Any]], token: str = "t") -> Iterator[HandAddress]:
    with MessageDesk(("127.0.0.1", 0), answer, Guard(token=token)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield HandAddress(f"127.0.0.1:{server.server_address[1]}", token=token)
        finally:
            server.shutdown()


def _post(address: HandAddress, body: bytes, token: str = "t", length: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    if length is not None:
        headers["Content-Length"] = length
    request = urllib.request.Request(f"http://{address.place}/act", body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_who_shows_no_token_is_not_heard() -> None:
    heard: list[object] = []

    def answer(message: object) -> Mapping[str, Any]:
        heard.append(message)
        return {"said": "x"}

    with desk(answer) as address:
        assert _post(address, b"{}", token="") == 401
        assert _post(address, b"{}", token="other") == 401
        assert _post(address, b"{") == 400
        assert _post(address, b"{}", length="99999999") == 413
        assert heard == []
        assert ask(address, {"verb": "check"}) == {"said": "x"}
    assert heard == [{"verb": "check"}]


def test_a_hand_on_a_network_wants_a_certificate() -> None:
    with pytest.raises(ValueError, match="serving there needs a certificate, its key and a token"):
        MessageDesk(("10.0.0.7", 9837), lambda message: {}, Guard(token="t"))


def test_what_a_hand_refuses_is_told() -> None:
    with desk(RemedyHand()) as address, pytest.raises(Refusal, match="that is nothing a hand does"):
        ask(address, {"verb": "rm"})
    with pytest.raises(Refusal, match="Connection refused"):
        ask(address, {"verb": "check"})


def hands_on(slurm: FakeSlurm, folder: Path, **more: Any) -> RemedyHands:
    """The unit's hands on a Slurm whose commands a hand would run."""
    told: list[Mapping[str, Any]] = []

    def answer(address: HandAddress, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        told.append(message)
        if message["verb"] == "line":
            assert allowed(message["line"], ["slurm"]), message
            return {"said": slurm(message["line"])}
        found = more.get(message["verb"], {})
        return dict(found.pop(0) if isinstance(found, list) else found)

    places = (SchedulerPlace("slurm", "m1", frozenset({"n2", "n3"})),)
    address = HandAddress("127.0.0.1:1")
    return RemedyHands({"m1": address, "n2": address}, places, folder, boot_s=60.0, every_s=0, ask=answer)


def test_a_node_is_drained_with_our_reason_and_given_back(tmp_path: Path) -> None:
    slurm = FakeSlurm(n2="allocated|none")
    hands = hands_on(slurm, tmp_path, reset={"said": "done"})
    assert hands("drain", NODE) == Outcome("done")
    state, reason = slurm.nodes["n2"]
    assert state == "drained"
    assert reason.startswith("podwright: remedy ")
    assert reason.endswith(": XID 119 on GPU 0 of n2")
    assert hands("mend", NODE) == Outcome("done", "done")
    assert hands("check", NODE) == Outcome("done")
    assert hands("look", NODE) == Outcome(None)
    assert hands("resume", NODE) == Outcome("done")
    assert slurm.nodes["n2"] == ("idle", "none")
    assert hands("look", NODE) == Outcome("opened")


@pytest.mark.parametrize("act", ["drain", "mend", "resume", "serve"])
def test_what_a_person_drained_stays(tmp_path: Path, act: Any) -> None:
    for reason in ("bad DIMM, do not use", "podwright: rolling change a1", "podwright: remedy ffff: XID 7"):
        slurm = FakeSlurm(n2=f"drained|{reason}")
        assert hands_on(slurm, tmp_path)(act, NODE) == Outcome("foreign", reason)
        assert slurm.updates() == []


def test_what_the_health_check_drained_for_a_gpu_is_taken_over(tmp_path: Path) -> None:
    slurm = FakeSlurm(n2="drained|podwright: GPU 1 is gone: there is no /dev/nvidia1")
    hands = hands_on(slurm, tmp_path)
    assert hands("drain", NODE) == Outcome("done")
    assert slurm.nodes["n2"][1].startswith("podwright: remedy ")
    full = FakeSlurm(n2="drained|podwright: /tmp has 3 MiB free, less than 1024")
    assert hands_on(full, tmp_path)("drain", NODE).event == "foreign"


def test_a_node_that_needs_service_says_so_and_is_ours_alone(tmp_path: Path) -> None:
    slurm = FakeSlurm(n2="idle|none")
    hands = hands_on(slurm, tmp_path)
    hands("drain", NODE)
    assert hands("serve", NODE) == Outcome("done")
    state, reason = slurm.nodes["n2"]
    assert (state, reason.startswith("podwright: needs service ")) == ("drained", True)
    assert not ChangeId("x").is_ours(reason)


def test_a_reboot_is_over_when_the_host_has_started_again(tmp_path: Path) -> None:
    slurm = FakeSlurm(n2="drained|podwright: GPU 1 is gone")
    hands = hands_on(slurm, tmp_path, boot=[{"boot": "a"}, {"boot": "a"}, {"boot": "b"}], reboot={})
    node = RemedyNode("n2", "mending", cure="reboot")
    assert hands("mend", node) == Outcome("done")


def test_the_file_for_hosts_needs_nothing_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "remedy.py"
    program.write_text(remedy_program())

    for verb in ("watch", "hand"):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(program), verb, "--help"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"token": str(tmp_path / "none")}))
    words = ["watch", "--settings", str(settings), "--folder", str(tmp_path / "journal")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(program), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "remedy.py: " in done.stderr
    assert "Traceback" not in done.stderr
