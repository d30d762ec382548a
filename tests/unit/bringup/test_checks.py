"""What works on a host against what was written: each row of the table with answers as hosts give them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.checks import NOT_JUDGED, AskedWhen, checks_of, judged
from podwright.bringup.apply.drift import HostStatus, compared, status_of
from podwright.bringup.apply.findings import Drift, Foreign
from podwright.bringup.apply.observe import Question, question
from podwright.bringup.apply.sent import sent
from podwright.bringup.on_host import workings
from podwright.bringup.plan.host import HostAccount, HostCommand, HostFile, HostPlan, Step
from tests.paths import ROOT

NOW_S = 1_795_000_000.0
SSHD = HostFile(
    "/etc/ssh/sshd_config.d/00-podwright.conf", "PasswordAuthentication no\nMaxSessions 100\nMatch all\nX y\n"
)
UNIT = "[Mount]\nWhat=10.0.0.9:/data\nWhere=/data\nType=nfs\nOptions=vers=4.2,hard\n"
GRANT = HostCommand("Slurm's database", ("mariadb", "--execute=SHOW GRANTS"), "GRANT ALL", ("mariadb",))
PASSWORD = HostCommand(
    "the registry's password", ("htpasswd", "-vi"), "correct", ("htpasswd",), secret="registry_password"
)
STEPS = {
    "base.base": Step(packages=("sudo",), accounts=(HostAccount("ada", 20001),), files=(SSHD,), services=("ssh",)),
    "storage.mounts": Step(files=(HostFile("/etc/systemd/system/data.mount", UNIT),)),
    "registry.registry": Step(
        files=(HostFile("/etc/registry.crt", secret="registry_certificate", restarts=("docker-registry",)),),
        commands=(PASSWORD,),
    ),
    "slurm.database": Step(files=(HostFile("/etc/slurm/slurm.conf"),), services=("mariadb",), commands=(GRANT,)),
}
PLAN = HostPlan("n1", "10.0.0.1", STEPS)
GOOD: dict[str, Any] = {
    "Slurm's database": {"code": 0, "out": "GRANT ALL PRIVILEGES ON x\n", "err": ""},
    "the registry's password": {"code": 0, "out": "Password for user podwright correct.\n", "err": ""},
    "sshd": {"code": 0, "out": "passwordauthentication no\nmaxsessions 100\n", "err": ""},
    "scontrol": {"code": 0, "out": "ClusterName = x\nHASH_VAL                = Match\n", "err": ""},
    "visudo": {"code": 0, "out": "", "err": ""},
    "people": {
        "ada": {"uid": 20001, "gid": 20001, "home": "/home/ada", "shell": "/bin/bash", "groups": [], "last_day": ""}
    },
    "mounts": {"/data": ["10.0.0.9:/data", "nfs4", "rw,vers=4.2"]},
    "certificates": {"/etc/registry.crt": NOW_S + 400 * 86400},
    "clock": NOW_S,
    "listeners": [{"address": "0.0.0.0", "port": 22, "unit": "ssh.service"}],
    "strangers": {"unit": ["/etc/systemd/system/data.mount"], "user": ["ada"]},
    "marks": {"/var/lib/podwright-registry.registry.json": STEPS["registry.registry"].started_with({})},
}


def name_of(kind: str, arguments: dict[str, Any]) -> str:
    """The answer in GOOD that a question gets."""
    if kind != "run":
        return kind
    names = {"mariadb": GRANT.name, "htpasswd": PASSWORD.name}
    program = Path(arguments["argv"][0]).name
    return names.get(program, program)


def found(**changed: Any) -> list[Drift | Foreign]:
    """What is told of a host that answers as it should but for this."""
    answers = {**GOOD, **{key.replace("_", " "): value for key, value in changed.items()}}
    checks = checks_of(PLAN, {})
    asked = [answers[name_of(*check.question({}))] for check in checks]
    return list(judged(checks, asked, AskedWhen(NOW_S - 1, NOW_S + 1)))


def test_of_a_host_on_which_all_works_nothing_is_told() -> None:
    assert found() == []


def said(out: str = "", err: str = "", code: int = 0) -> dict[str, Any]:
    return {"code": code, "out": out, "err": err}


SILENT = said(err="slurm_load_ctl_conf error: Unable to contact slurm controller\n", code=1)
PERSON = GOOD["people"]["ada"]
NETWORK = {"address": "0.0.0.0", "port": 3306}


@pytest.mark.parametrize(
    ("key", "answer", "words"),
    [
        ("sshd", said("passwordauthentication yes\nmaxsessions 100\n"), "sshd passwordauthentication: yes, not no"),
        ("sshd", said("passwordauthentication no\n"), "sshd maxsessions: nothing, not 100"),
        (
            "sshd",
            said(err="x: Bad configuration option\n", code=255),
            "sshd: x: Bad configuration option, not its settings",
        ),
        ("Slurm's database", said("GRANT USAGE ON x\n"), "Slurm's database: GRANT USAGE ON x, not as planned"),
        ("the registry's password", said("", "wrong: pass-1\n", 3), "the registry's password: missing, not as planned"),
        (
            "scontrol",
            said("HASH_VAL = Different Ours=0x1 Slurmctld=0x2\n"),
            "Slurm's controller: started with another one, not started with /etc/slurm/slurm.conf",
        ),
        (
            "scontrol",
            SILENT,
            "Slurm's controller: slurm_load_ctl_conf error: Unable to contact slurm controller, not answers",
        ),
        (
            "visudo",
            said("", "/etc/sudoers.d/x:1: syntax error\n", 1),
            "rules of sudo: /etc/sudoers.d/x:1: syntax error, not in order",
        ),
        ("people", {}, "account ada: missing, not number 20001"),
        (
            "people",
            {"ada": {**PERSON, "shell": "/usr/sbin/nologin"}},
            "account ada: shell: /usr/sbin/nologin, not /bin/bash",
        ),
        ("people", {"ada": {**PERSON, "gid": 100}}, "account ada: group: 100, not 20001"),
        ("mounts", {}, "mount /data: nothing, not 10.0.0.9:/data"),
        ("mounts", {"/data": ["10.0.0.8:/data", "nfs4", "rw"]}, "mount /data: 10.0.0.8:/data, not 10.0.0.9:/data"),
        ("mounts", {"/data": ["10.0.0.9:/data", "nfs4", "ro"]}, "mount /data: ro, not rw"),
        (
            "certificates",
            {"/etc/registry.crt": NOW_S - 5},
            "certificate /etc/registry.crt: ended on 2026-11-18, not good for 30 days more",
        ),
        (
            "certificates",
            {"/etc/registry.crt": None},
            "certificate /etc/registry.crt: none that can be read, not a certificate",
        ),
        ("clock", NOW_S + 61, "clock: 60 s ahead, not within 5 s of this machine's"),
        ("clock", NOW_S - 61, "clock: 60 s behind, not within 5 s of this machine's"),
        (
            "listeners",
            [{**NETWORK, "unit": "mariadb.service"}],
            "service mariadb listens: on 0.0.0.0:3306, not on the host's loopback alone",
        ),
        ("marks", {}, "service docker-registry: not started again since, not started with its files"),
        ("clock", {"error": "OSError: away"}, "clock: OSError: away, not an answer"),
    ],
)
def test_what_works_otherwise_than_planned_is_drift(key: str, answer: Any, words: str) -> None:
    (drift,) = found(**{key: answer})
    assert (drift.words, type(drift)) == (words, Drift)


@pytest.mark.parametrize(
    ("key", "answer", "words"),
    [
        ("people", {"ada": {**PERSON, "groups": ["sudo"]}}, "group sudo of ada"),
        ("people", {"ada": {**PERSON, "last_day": "20000"}}, "account that ends ada, after 2024-10-04"),
        ("listeners", [{**NETWORK, "unit": "other.service"}], "port 0.0.0.0:3306 of other.service"),
        ("strangers", {"user": ["ada", "eve"]}, "user eve"),
        ("strangers", {"held package": ["slurmd"]}, "held package slurmd"),
        (
            "strangers",
            {"drop-in": ["/etc/systemd/system/slurmd.service.d/x.conf"]},
            "drop-in /etc/systemd/system/slurmd.service.d/x.conf",
        ),
    ],
)
def test_what_somebody_made_beside_the_plan_is_foreign(key: str, answer: Any, words: str) -> None:
    (foreign,) = found(**{key: answer})
    assert (foreign.words, type(foreign)) == (words, Foreign)


def test_what_runs_in_a_users_session_is_nobodys_to_judge() -> None:
    assert found(listeners=[{**NETWORK, "unit": ""}, {**NETWORK, "unit": "session-3.scope"}]) == []


def test_a_secret_goes_to_a_program_on_standard_input_and_comes_back_nowhere() -> None:
    asked = question(PLAN, asked=Question(secrets={"registry_password": "pass-1"}))["questions"]
    (row,) = [arguments for kind, arguments in asked if kind == "run" and arguments["argv"][0] == "htpasswd"]
    assert row == {"argv": ["htpasswd", "-vi"], "stdin": "pass-1"}
    (drift,) = found(**{PASSWORD.name: said("pass-1\n", "pass-1\n", 3)})
    assert "pass-1" not in drift.words


def test_a_host_is_only_asked_what_works_when_somebody_wants_to_know() -> None:
    assert question(PLAN)["questions"] == []


def test_a_host_answers_all_questions_in_one_go(tmp_path: Path) -> None:
    """This machine as a host, with the program as it is sent."""
    wanted = HostCommand("echo", ("/bin/cat",), "word", ("true",), secret="key")
    plan = HostPlan("n1", "127.0.0.1", {"a.b": Step(accounts=(HostAccount("root", 0),), commands=(wanted,))})
    asked = json.dumps(question(plan, asked=Question(secrets={"key": "a word"})))
    program = [sys.executable, "-c", sent("inspect_host.py")]
    seen = json.loads(subprocess.run(program, input=asked, capture_output=True, text=True, check=True).stdout)
    status = status_of(plan, {**seen, "asked_s": (0.0, seen["answers"][2] + 1)}, {}, None)
    assert [drift.what for drift in status.drift] == []
    missing = workings.answer_to(["run", {"argv": ["/no/such/program"]}])
    assert missing == {"code": 127, "out": "", "err": "/no/such/program: No such file or directory"}
    assert workings.answer_to(["mounts", {"table": str(tmp_path / "none")}])["error"].startswith("FileNotFoundError")


def test_a_mount_whose_place_has_a_blank_is_known_by_its_name(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text("srv:/a\\040b /data\\040x nfs4 rw 0 0\n")
    assert workings.mounts(str(table)) == {"/data x": ["srv:/a b", "nfs4", "rw"]}


def test_firmware_that_most_others_have_another_version_of_is_told() -> None:
    hosts = {name: HostStatus("ok", firmware={"BIOS": "3.1"}) for name in ("g1", "g2", "g3")}
    hosts["g2"] = HostStatus("ok", firmware={"BIOS": "3.0"})
    told = compared(hosts, [["g1", "g2", "g3", "g4"]])
    assert {name: host.state for name, host in told.items()} == {"g1": "ok", "g2": "drift", "g3": "ok"}
    assert told["g2"].drift[0].words == "firmware BIOS: 3.0, not 3.1, as 2 of 3 hosts of its kind have"
    two = {name: hosts[name] for name in ("g1", "g2")}
    assert compared(two, [["g1", "g2"]]) == two, "of two nobody knows which is right"


def test_what_is_not_judged_stands_in_the_documentation_word_by_word() -> None:
    page = " ".join((ROOT / "docs" / "bring-up.md").read_text().split())
    assert [line for line in NOT_JUDGED if line not in page] == []
