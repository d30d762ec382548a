"""Teams of a pod: each name once, each person in one team."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.spec import load_pod
from podwright.spec.problems import Refusal

POD = 'name: adas\nnodes: [{hosts: "n[1-2]", model: dgx-a100}]\n'


def pod(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(POD + text)
    return path


def test_a_team_says_who_is_in_it_and_what_it_may_use(tmp_path: Path) -> None:
    text = (
        "shared_runs: /shared/runs\n"
        "teams: [{name: a, members: [alice, bob], account: adas, qos: high, quota: {gpus: 16, memory: 1TiB},"
        " alerts: ['https://alerts.example.org'], budget: 5000}, {name: b, members: [carol]}]\n"
    )
    loaded = load_pod(pod(tmp_path, text))
    team = loaded.team_of("bob")
    assert team is not None
    assert (team.name, team.quota.gpus, team.budget, loaded.shared_runs) == ("a", 16, 5000.0, "/shared/runs")
    assert loaded.team_of("dave") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("teams: [{name: a, members: [x]}, {name: a, members: [y]}]", 'teams[1].name: "a" is there twice'),
        ("teams: [{name: a, members: [x]}, {name: b, members: [y, x]}]", 'members[1]: "x" is in a team already'),
        ("teams: [{name: a, members: ['../x']}]", '"../x" is not the name of an account'),
        ("teams: [{name: a}]", "teams[0].members: is missing"),
        ("teams: 3", "teams: must be a list"),
        ("teams: [3, {name: [], members: 7}]", "teams[0]: must be"),
        ("shared_runs: runs", '"runs" is not a whole path'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        load_pod(pod(tmp_path, text))
    assert said in str(refused.value)
    assert f"{tmp_path}/pod.yaml:3:" in str(refused.value)
