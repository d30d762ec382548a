"""Who reaches hosts from outside: rules from the plan's addresses and ports, and a way back where they lock out."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.bringup.plan.host import Step
from podwright.bringup.plan.hosts import plan
from podwright.spec import Refusal, load_pod

POD = """\
name: adas
nodes:
  - {hosts: m1, model: cpu-server, roles: [management], addresses: [10.0.0.1]}
  - {hosts: "g[1-3]", model: dgx-a100, addresses: [10.0.0.2, 10.0.0.3, "fd00::3"]}
schedulers: [SCHEDULER]
services: [registry]
bringup:
  roles: {registry: m1, netboot: m1}
MORE
"""
SLURM = '{kind: slurm, hosts: "g[1-3]"}'


def steps(folder: Path, firewall: str, more: str = "", scheduler: str = SLURM) -> dict[str, Step | None]:
    path = folder / "pod.yaml"
    wanted = f"  firewall: {firewall}\n{more}" if firewall else more
    path.write_text(POD.replace("SCHEDULER", scheduler).replace("MORE", wanted))
    return {name: host.steps.get("base.firewall") for name, host in plan(load_pod(path)).items()}


def let_in(step: Step | None) -> list[str]:
    """Returns who is let in beside answers, the host itself and ICMP."""
    assert step is not None
    lines = [line.strip() for line in step.files[1].text.splitlines()]
    return [
        line for line in lines[lines.index("iif lo accept") + 1 :] if line.endswith("accept") and "meta" not in line
    ]


def test_without_a_word_in_the_file_there_is_no_firewall(tmp_path: Path) -> None:
    assert set(steps(tmp_path, "").values()) == {None}


def test_hosts_of_the_pod_reach_each_other_and_others_what_people_use(tmp_path: Path) -> None:
    found = steps(tmp_path, "{}")
    answers, pod = "udp sport . udp dport { 67 . 68, 547 . 546 } accept", "ip saddr { 10.0.0.1, 10.0.0.2/31 } accept"
    assert let_in(found["g1"]) == [answers, pod, "ip6 saddr { fd00::3 } accept", "tcp dport { 22 } accept"]
    assert let_in(found["m1"])[-1] == "tcp dport { 22, 5000 } accept"


def test_networks_and_ports_of_a_site(tmp_path: Path) -> None:
    wanted = '{reached_from: [192.0.2.0/24, "2001:db8::/32"], trusted: [10.0.0.0/16], ports: [443]}'
    assert let_in(steps(tmp_path, wanted)["g2"])[1:] == [
        "ip saddr { 10.0.0.0/16 } accept",
        "ip6 saddr { fd00::3 } accept",
        "ip saddr { 192.0.2.0/24 } tcp dport { 22, 443 } accept",
        "ip6 saddr { 2001:db8::/32 } tcp dport { 22, 443 } accept",
    ]


def test_who_boots_by_the_network_reaches_its_server(tmp_path: Path) -> None:
    more = "  netboot: {first: 10.0.0.100, last: 10.0.0.200}\n"
    found = steps(tmp_path, "{reached_from: [192.0.2.0/24]}", more)
    rules = ["udp dport { 67, 69 } accept", "tcp dport { 8080, 8443 } accept"]
    assert let_in(found["m1"])[-2:] == rules
    assert not set(rules) & set(let_in(found["g1"]))


def test_containers_reach_the_hosts_of_their_cluster_and_people_its_api(tmp_path: Path) -> None:
    source = '{name: k, uri: "https://site.example/", key: "of the site"}'
    sources = f"  versions: {{kubernetes: 1.35.4}}\n  sources: [{source}]\n"
    found = steps(tmp_path, "{}", sources, '{kind: kubernetes, hosts: "g[1-3]"}')
    assert "10.244.0.0/16" in let_in(found["g1"])[1]
    assert let_in(found["m1"])[-1] == "tcp dport { 22, 5000, 6443 } accept"


def test_a_change_that_locks_out_goes_back_and_rules_that_were_flushed_are_found(tmp_path: Path) -> None:
    step = steps(tmp_path, "{}")["g1"]
    assert step is not None
    unit, rules = step.files
    assert (rules.guards, rules.restarts, rules.check) == (
        True,
        ("podwright-firewall",),
        "/usr/sbin/nft --check --file %s",
    )
    assert f"ExecStart=/usr/sbin/nft --file {rules.path}\n" in unit.text
    assert "flush ruleset" not in unit.text + rules.text, "what others have in the kernel stays"
    (loaded,) = step.commands
    assert ("nft list table inet podwright" in loaded.check[-1], loaded.sees) == (True, "policy drop")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [("{ports: [0]}", "must be 1 or more"), ("{trusted: [10.0.0.1/8]}", '"10.0.0.1/8" is not a network')],
)
def test_what_is_no_network_and_no_port_is_refused(tmp_path: Path, wanted: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        steps(tmp_path, wanted)
