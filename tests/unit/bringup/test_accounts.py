"""Teams in Slurm's accounting: what is missing is said in sacctmgr's words, what others made stays, twice is once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.bringup.on_host import slurm_accounts
from podwright.bringup.plan.accounts import accounts_text, quota_objects
from podwright.bringup.plan.hosts import plan
from podwright.spec import Pod, Refusal, load_pod
from tests.paths import CASES

SMALL = CASES / "bringup" / "hosts" / "small" / "pod.yaml"
TEAMS = """
teams:
  - {name: vision, members: [ada, bob], qos: high, shares: 3, quota: {gpus: 16, memory: 1TiB, runs: 4}}
  - {name: maps, members: [eve], account: cartography}
"""
NOTHING = "root||||1|normal|\nroot|root|||1|normal|\n"


def pod(folder: Path, teams: str = TEAMS) -> Pod:
    path = folder / "pod.yaml"
    path.write_text(SMALL.read_text() + teams)
    return load_pod(path)


def wanted(folder: Path, teams: str = TEAMS) -> slurm_accounts.State:
    state: slurm_accounts.State = json.loads(accounts_text(pod(folder, teams)))
    return state


def found(associations: str, users: str = "root|root\n", qos: str = "normal\n") -> slurm_accounts.AccountsFound:
    said = {"associations": associations, "qos": qos, "users": users}
    return slurm_accounts.look("small", lambda words: said[words[1]])


def lines(rows: list[list[str]]) -> list[str]:
    return [" ".join(row) for row in rows]


THERE = NOTHING + (
    "vision||gres/gpu=16,mem=1T|4|3|normal,high|high\nvision|ada|||1|high|high\nvision|bob|||1|high|high\n"
    "cartography||||1|normal|\ncartography|eve|||1|normal|\n"
)
USERS = "root|root\nada|vision\nbob|vision\neve|cartography\n"


def test_a_fresh_accounting_gets_accounts_before_people(tmp_path: Path) -> None:
    assert lines(slurm_accounts.changes(wanted(tmp_path), {}, found(NOTHING))) == [
        "add qos high",
        "add account vision cluster=small Fairshare=3 GrpJobs=4 QOS=high DefaultQOS=high"
        " GrpTRES=gres/gpu=16,mem=1048576",
        "add account cartography cluster=small Fairshare=1",
        "add user ada cluster=small account=vision",
        "add user bob cluster=small account=vision",
        "add user eve cluster=small account=cartography",
    ]


def test_what_is_there_needs_nothing(tmp_path: Path) -> None:
    assert slurm_accounts.changes(wanted(tmp_path), {}, found(THERE, USERS, "normal\nhigh\n")) == []


def test_a_limit_that_was_changed_by_hand_is_mended_alone(tmp_path: Path) -> None:
    there = found(THERE.replace("gpu=16", "gpu=99"), USERS, "normal\nhigh\n")
    assert lines(slurm_accounts.changes(wanted(tmp_path), {}, there)) == [
        "modify account where name=vision cluster=small set GrpTRES=gres/gpu=16"
    ]


def test_what_the_file_gave_up_is_taken_back_and_what_others_made_stays(tmp_path: Path) -> None:
    """One account has a person of somebody else's in it, another a limit that we never set."""
    before = wanted(tmp_path)
    others = "cartography|zoe|||1|normal|\nguests||cpu=4||7|normal|\n"
    there = found(THERE + others, USERS + "zoe|cartography\n", "normal\nhigh\n")
    now = wanted(tmp_path, "teams: [{name: vision, members: [ada], quota: {gpus: 16}}]\n")
    assert lines(slurm_accounts.changes(now, before, there)) == [
        "modify account where name=vision cluster=small set GrpJobs=-1 DefaultQOS=-1 Fairshare=1 QOS-=high"
        " GrpTRES=mem=-1",
        "delete user where name=bob cluster=small account=vision",
        "delete user where name=eve cluster=small account=cartography",
    ]
    alone = found(THERE, USERS, "normal\nhigh\n")
    assert (
        lines(slurm_accounts.changes(now, before, alone))[-1] == "delete account where name=cartography cluster=small"
    )


def test_a_person_who_changes_teams_has_the_new_default_before_the_old_account_goes(tmp_path: Path) -> None:
    before = wanted(tmp_path)
    now = wanted(tmp_path, TEAMS.replace("[ada, bob]", "[ada]").replace("[eve]", "[eve, bob]"))
    assert lines(slurm_accounts.changes(now, before, found(THERE, USERS, "normal\nhigh\n"))) == [
        "add user bob cluster=small account=cartography",
        "modify user where name=bob cluster=small set defaultaccount=cartography",
        "delete user where name=bob cluster=small account=vision",
    ]


def test_people_in_no_team_have_an_account_and_without_teams_nobody_is_held_back(tmp_path: Path) -> None:
    assert wanted(tmp_path, "")["people"] == {"ada": "others"}
    assert wanted(tmp_path, "")["accounts"] == {"others": {"Fairshare": "1"}}
    texts = [
        next(file.text for file in plan(pod(tmp_path, teams))["m1"].files() if file.path == "/etc/slurm/slurm.conf")
        for teams in ("", TEAMS)
    ]
    enforced = "AccountingStorageEnforce=associations,limits,qos\n"
    assert [enforced in text for text in texts] == [False, True]
    assert all("PriorityType=priority/multifactor\n" in text for text in texts)


@pytest.mark.parametrize(("printed", "mib"), [("mem=100G", "102400"), ("mem=1.50T", "1572864"), ("mem=77M", "77")])
def test_memory_is_read_in_mib(printed: str, mib: str) -> None:
    assert slurm_accounts.counted(f"cpu=4,{printed}") == {"tres.cpu": "4", "tres.mem": mib}


def test_a_kubernetes_namespace_has_the_teams_quota(tmp_path: Path) -> None:
    objects = quota_objects(pod(tmp_path))
    assert [(each["kind"], each["metadata"].get("namespace", each["metadata"]["name"])) for each in objects] == [
        ("Namespace", "vision"),
        ("ResourceQuota", "vision"),
        ("LimitRange", "vision"),
        ("Namespace", "maps"),
    ]
    assert objects[1]["spec"]["hard"] == {"requests.nvidia.com/gpu": "16", "requests.memory": "1099511627776"}


def test_what_was_given_is_kept_whole_and_a_part_of_it_is_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark.json"
    slurm_accounts.keep(str(mark), {"people": {"ada": "vision"}})
    assert slurm_accounts.read(str(mark)) == {"people": {"ada": "vision"}}
    mark.write_text('{"people": {"ad')
    assert slurm_accounts.read(str(mark)) == {}


OWN = """
    partitions:
      - {name: batch, hosts: "g[1-2]", conf: {MaxTime: 2-00:00:00, PriorityTier: 1}}
      - {name: fast, hosts: g2, default: true, teams: [maps], conf: {PriorityTier: 10}}
    lines: ["NodeSet=all Nodes=ALL"]
"""


def own(folder: Path, settings: str = OWN) -> Path:
    path = folder / "own.yaml"
    path.write_text(SMALL.read_text().rstrip("\n") + settings + TEAMS)
    return path


def test_partitions_and_lines_of_a_site_stand_instead_of_ours(tmp_path: Path) -> None:
    text = next(
        file.text for file in plan(load_pod(own(tmp_path)))["g1"].files() if file.path == "/etc/slurm/slurm.conf"
    )
    assert text[text.index("PartitionName") :] == (
        "PartitionName=batch Nodes=g[1-2] Default=NO MaxTime=2-00:00:00 PriorityTier=1\n"
        "PartitionName=fast Nodes=g2 Default=YES AllowAccounts=cartography PriorityTier=10\n"
        "NodeSet=all Nodes=ALL\n"
    )


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"g[1-2]"', "m1", "settings.partitions[0].hosts: m1: not among Slurm's hosts"),
        ("[maps]", "[mapps]", 'settings.partitions[1].teams[0]: "mapps" is not a team'),
        ("name: fast", "name: batch", 'settings.partitions[1].name: "batch" is there twice'),
        ("PriorityTier: 10", "Nodes: g1", "partitions[1].conf.Nodes: is written from the partition's own fields"),
        ("2-00:00:00", '"1 State=DOWN"', "partitions[0].conf.MaxTime: must be one word"),
        ("conf: {MaxTime", "default: true, conf: {MaxTime", "settings.partitions[1].default: is there twice"),
    ],
)
def test_partitions_that_do_not_hold_are_refused_at_their_place(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    with pytest.raises(Refusal) as refused:
        load_pod(own(tmp_path, OWN.replace(right, wrong)))
    assert said in str(refused.value)
