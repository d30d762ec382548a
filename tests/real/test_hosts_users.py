"""A user of a real host lays a link in his home, and the next `podwright pod up` is not led by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.real.clients import Client
from tests.real.hosts_bench import ON_HOSTS, Bench, changed
from tests.real.labs import aloud, hosts_lab

pytestmark = ON_HOSTS
USERS = [{"name": name, "uid": uid, "keys": ["ssh-ed25519 AAAA"]} for name, uid in (("bob", 2101), ("eve", 2102))]


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with hosts_lab(say=aloud(pytestconfig), nodes=1) as lab:
        folder = tmp_path_factory.mktemp("users")
        node = {"hosts": "n1", "model": {"sockets": 1, "cores": 4, "threads": 4, "memory": "4GiB"}}
        file = folder / "pod.yaml"
        file.write_text(yaml.safe_dump({"name": lab.shape.name, "nodes": [node], "bringup": {"users": USERS}}))
        bench = Bench(lab, Client(folder, lab.pod_file), folder, file)
        bench.first = bench.up("--only", "base")
        yield bench


def test_a_link_of_a_user_is_named_and_left_and_all_else_goes_on(bench: Bench) -> None:
    bench.on("n1", "mkdir -m 755 /srv/victim && echo root alone >/srv/victim/shadow && chmod 600 /srv/victim/shadow")
    rights = bench.on("n1", "stat --format='%U %a %n' /srv/victim /srv/victim/*")
    bench.on("n1", "runuser -l bob -c 'rm -r .ssh && ln -s /srv/victim .ssh'")
    bench.on("n1", "rm -r ~eve/.ssh; echo edited >/etc/hosts")
    said = bench.failing("up", "--only", "base")
    assert "failed    n1: base, folders of users: /home/bob/.ssh is left alone:" in said
    assert "next      n1: have its user move it out of the way" in said
    assert bench.on("n1", "stat --format='%U %a %n' /srv/victim /srv/victim/*") == rights
    assert bench.on("n1", "stat --format='%U %a' ~eve/.ssh ~eve/.ssh/authorized_keys") == "eve 700\neve 600\n"
    assert "edited" not in bench.on("n1", "cat /etc/hosts")
    drift = {each["what"]: each for each in bench.status(code=1)["n1"]["drift"] if each.get("user") == "bob"}
    assert drift["/home/bob/.ssh"]["found"] == "is a link in a folder of bob's"
    # Nothing changes a second time, and once the link is gone he gets what is his.
    assert changed(bench.up("--only", "base", code=1)) == {"n1": 0}
    bench.on("n1", "runuser -l bob -c 'rm .ssh'")
    bench.up("--only", "base")
    assert bench.on("n1", "stat --format='%U %a' ~bob/.ssh/authorized_keys") == "bob 600\n"
