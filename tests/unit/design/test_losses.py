"""What is left when devices are lost, and a growth leaf by leaf."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.cli.main import main
from podwright.design.growth import grow
from podwright.design.growth_steps import growth_steps
from podwright.design.losses import lose
from podwright.spec import Refusal
from tests.unit.design.pods import designed

POD = 'name: adas\nnodes:\n  - {{hosts: "dgx[001-{:03d}]", model: dgx-a100}}\n'


@pytest.mark.parametrize(
    ("names", "cut_off", "compute", "storage"),
    [
        (["spine-01"], {}, 0.75, 1.0),
        (["leaf-u01-r1"], {}, 0.875, 1.0),
        (["st-leaf-u01-1"], {}, 1.0, 0.5),
        ([f"leaf-u01-r{rail}" for rail in range(1, 9)], {"compute": "dgx0001"}, 0.0, 1.0),
        (["st-leaf-u01-1", "st-leaf-u01-2"], {"storage": "dgx0001"}, 1.0, 0.0),
        (["mg-node-01"], {"bmc": "dgx0001", "management": "dgx0001"}, 1.0, 1.0),
        (["dgx0002"], {}, 1.0, 1.0),
    ],
)
def test_what_a_loss_leaves(names: list[str], cut_off: dict[str, str], compute: float, storage: float) -> None:
    """Twenty nodes of eight rails on four spines: arithmetic that a reader can follow."""
    loss = lose(designed(20), names)
    assert {name: devices[0] for name, devices in loss.cut_off.items() if devices} == cut_off
    assert (loss.bandwidth_left["compute"], loss.bandwidth_left["storage"]) == (compute, storage)


def test_a_core_is_felt_by_all_that_crosses_it() -> None:
    left = lose(designed(140), ["core-1-01"]).bandwidth_left["compute"]
    assert 0.95 < left < 1


def test_a_name_that_the_plan_does_not_have_is_refused() -> None:
    for name in ("spine-1", "site-network"):
        with pytest.raises(Refusal, match=f"--lost: {name} is no device of the plan"):
            lose(designed(20), [name])


def test_a_loss_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "pod.yaml").write_text(POD.format(20))
    assert main(["predict", str(tmp_path / "pod.yaml"), "--lost", "mg-node-01,spine-01", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["lost", "cut_off", "bandwidth_left", "runs"]
    assert (document["lost"], document["runs"]) == (["mg-node-01", "spine-01"], [])
    assert main(["predict", str(tmp_path / "pod.yaml"), "--lost", "leaf-u01-r1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["lost      leaf-u01-r1", "cut off   nothing", lines[2]]
    assert lines[2].endswith("compute: 87.5 % on the node that has least")
    assert main(["predict", str(tmp_path / "pod.yaml"), "--lost", "leaf-u1-r1"]) == 2
    assert "did you mean `leaf-u01-r1`?" in capsys.readouterr().err


@settings(max_examples=12)
@given(st.integers(1, 120), st.integers(1, 120), st.sampled_from(["rail", "classic"]))
def test_the_steps_of_a_growth_end_in_the_new_pod(one: int, other: int, layout: str) -> None:
    """Laid one after the other they make the new plan, and no step uses a port twice."""
    fabrics = {"compute": {"layout": layout}}
    old, new = (designed(count, fabrics=fabrics) for count in sorted((one, other)))
    cables = set(old.cables)
    for step in growth_steps(grow(old, new)):
        gone = {*step.remove, *(before for before, _ in step.move)}
        assert gone <= cables
        cables = (cables - gone) | {*step.add, *(after for _, after in step.move)}
        ports = [(c.fabric, *end) for c in cables for end in ((c.a, c.a_port), (c.b, c.b_port))]
        assert len(ports) == len(set(ports))
        assert set(step.cut_off.get("compute", ())) <= set(old.requirements.hosts)
    assert cables == set(new.cables)


def test_a_new_tier_comes_rail_by_rail_and_drains_nobody() -> None:
    """From 100 to 140 nodes every up-link moves; all pairs of nodes keep seven of eight rails."""
    steps = growth_steps(grow(designed(100), designed(140)))
    assert sum(len(step.move) for step in steps) > 900
    assert not any(any(step.cut_off.values()) for step in steps)
    assert min(step.bandwidth_left["compute"] for step in steps) == 0.875
    assert min(step.bandwidth_left["storage"] for step in steps) == 0.5
    assert steps[-1].bandwidth_left == {"compute": 1.0, "storage": 1.0}


def test_a_lone_rail_must_be_drained() -> None:
    one_rail = {"compute": {"rails": 1, "scalable_unit": 2}}
    steps = growth_steps(grow(designed(60, fabrics=one_rail), designed(110, fabrics=one_rail)))
    assert any(step.cut_off["compute"] for step in steps)


def test_steps_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for nodes in (20, 40):
        (tmp_path / f"{nodes}.yaml").write_text(POD.format(nodes))
    words = ["design", str(tmp_path / "40.yaml"), "--grow-from", str(tmp_path / "20.yaml"), "--steps"]
    assert main([*words, "--json"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["steps"]
    assert list(first) == ["leaf", "add", "move", "remove", "cut_off", "bandwidth_left"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", lines[0]) == ["LEAF", "ADD", "MOVE", "REMOVE", "COMPUTE LEFT", "STORAGE LEFT", "DRAIN"]
    assert max(map(len, lines)) <= 80
    assert main(["design", str(tmp_path / "40.yaml"), "--steps"]) == 2
    assert "steps of which growth?" in capsys.readouterr().err
