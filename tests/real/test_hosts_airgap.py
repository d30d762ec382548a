"""A site without a network: hosts whose only route is the archive that `mirror make` wrote become a pod, with logs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podwright.bringup.apply import signing
from podwright.lab import processes
from podwright.lab.hosts.lab import HostsLab
from podwright.lab.machines import HUB
from podwright.lab.scripts import BRIDGE_ADDRESS
from tests.paths import ROOT
from tests.real.clients import BIN, Client, until
from tests.real.hosts_bench import (
    EXAMPLE,
    ON_HOSTS,
    Bench,
    changed,
    secret_lines,
    watched_arguments,
    where_secrets_are_seen,
)
from tests.real.labs import aloud, hosts_lab

# The first mark of a kind counts.
pytestmark = [pytest.mark.timeout(3600, func_only=True), *ON_HOSTS, pytest.mark.nightly]
PLACE = f"https://{BRIDGE_ADDRESS}:3142"


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("airgap")
    with hosts_lab(say=aloud(pytestconfig), nodes=2) as lab:
        # The lab's own mirror fetches from outside: without it hosts reach nobody but each other.
        for program, pids in lab.machines.running(HUB).items():
            if "python" in program:
                for pid in pids:
                    processes.kill(pid)
        file = folder / "pod.yaml"
        text = EXAMPLE.read_text().replace("n[2-4]", "n2").replace("monitoring]", "monitoring, logging]")
        file.write_text(text.replace("bringup:\n", f"bringup:\n  archive: {PLACE}\n  wheels: [packaging]\n"))
        yield Bench(lab, Client(folder, lab.pod_file), folder, file)


@contextmanager
def served(lab: HostsLab, client: Client, archive: Path) -> Iterator[None]:
    """Serves an archive in the lab's network, as a machine of the site does."""
    inside = ["nsenter", f"--target={lab.machines.pid(HUB)}", "--net", "--"]
    command = [*inside, str(BIN / "podwright"), "mirror", "serve", str(archive), "--address", BRIDGE_ADDRESS]
    with subprocess.Popen(command, env=client.environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == PLACE
            yield
        finally:
            process.terminate()


def test_hosts_that_reach_nothing_but_the_archive_become_a_pod(bench: Bench) -> None:
    archive = bench.folder / "site.tar"
    written = json.loads(bench.client.ask("mirror", "make", str(bench.file), "--out", str(archive), "--json"))
    assert written["files"] > 100
    assert bench.lab.run("n1", "apt-get update --error-on=any").returncode != 0, "nobody serves packages yet"
    with served(bench.lab, bench.client, archive):
        with watched_arguments(bench.arguments):
            document = bench.up()
        assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
        assert {host: entry["state"] for host, entry in bench.status().items()} == {"n1": "ok", "n2": "ok"}
        until(lambda: bench.on("n1", "sinfo -h -N -o '%N %t'").split() == ["n2", "idle"], "the node is there")
        assert bench.on("n1", "srun -N1 hostname").strip() == "n2"
        # Each package came by TLS of the pod's authority, from a list that its key signed.
        sources = bench.on("n2", "apt-get update --error-on=any --print-uris; cat /etc/apt/sources.list.d/*.sources")
        assert f"'{PLACE}/packages/./InRelease'" in sources
        assert "trusted" not in sources
        bench.on("n2", "echo >>/etc/apt/keyrings/podwright-ca.crt; : >/etc/apt/keyrings/podwright-archive.asc")
        refused = bench.lab.run("n2", "rm -rf /var/lib/apt/lists/*; apt-get update --error-on=any")
        assert (refused.returncode != 0, "is not signed" in refused.stderr) == (True, True), refused.stderr
        bench.up("--only", "base")
        assert bench.lab.run("n2", "apt-get update --error-on=any").returncode == 0
        # Python's packages too; a host that trusts another key starts no pip.
        python = "/opt/podwright/python/bin/python3"
        assert bench.on("n2", f"{python} -c 'import packaging; print(packaging.__file__)'").startswith(
            "/opt/podwright/"
        )
        install = "/usr/lib/podwright/wheels.py install /opt/other /root/keys"
        other = signing.new_key("another")["archive_public"]
        bench.on("n2", f"cp -r /etc/apt/keyrings /root/keys; echo '{other}' >/root/keys/podwright-archive.asc")
        refused = bench.lab.run("n2", f"{install} {PLACE} packaging; ls /opt/other")
        assert "is not signed by the key of the pod's archive: pip was not started" in refused.stderr
        assert "cannot access '/opt/other'" in refused.stderr
    assert bench.on("n2", "dpkg --audit") == ""


STRANGER = """\
import ssl, urllib.request
context = ssl.create_default_context(cafile="/etc/systemd/podwright-logs/ca.crt")
header = {"Content-Type": "application/vnd.fdo.journal"}
try:
    urllib.request.urlopen(urllib.request.Request("https://n1:19532/upload", b"", header), context=context)
    print("taken")
except OSError:
    print("sent away")
"""


def test_a_line_of_one_hosts_journal_is_read_on_another_and_a_stranger_is_sent_away(bench: Bench) -> None:
    bench.on("n2", "logger --tag pod-test a line of n2")
    read = "journalctl --directory=/var/log/journal/remote --identifier=pod-test _HOSTNAME=n2 --output=cat --no-pager"
    until(lambda: bench.lab.run("n1", read).stdout == "a line of n2\n", "the line on n1")
    assert bench.on("n2", f"python3 -c '{STRANGER}'").strip() == "sent away"
    assert changed(bench.up("--only", "logging")) == {"n1": 0, "n2": 0}
    assert {"logs_key", "logs_client_key"} <= set(secret_lines(bench))
    assert where_secrets_are_seen(bench, ["n1", "n2"]) == []
