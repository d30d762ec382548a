"""The vault, with the real ansible-vault: random secrets, encrypted, for their owner alone."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from podwright.bringup.apply import authority
from podwright.bringup.apply.vault import RENEWED_S, Secrets, Vault, names_for
from podwright.bringup.plan.site import Site, site_of
from podwright.spec import Refusal, load_pod
from tests.paths import CASES


@pytest.fixture
def site() -> Site:
    return site_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_kept_encrypted_and_rotated_one_by_one(tmp_path: Path, site: Site) -> None:
    vault = Vault(tmp_path / "pods" / "vault.yml", tmp_path / "keys" / "vault.key")
    first = vault.fill(site)
    assert set(names_for(site)) <= set(first.values)
    assert len(first.values["munge_key"]) == 1024
    assert vault.read() == first
    assert vault.file.read_text().startswith("$ANSIBLE_VAULT;")
    assert [mode_of(path) for path in (vault.file, vault.key_file)] == [0o600, 0o600]
    assert mode_of(vault.file.parent) == 0o700
    assert "munge_key" not in repr(Vault.read(vault)).replace("revisions={'munge_key'", "")
    again = vault.fill(site)
    assert again == first
    rotated = vault.fill(site, rotate=["munge_key"])
    assert rotated.values["munge_key"] != first.values["munge_key"]
    assert rotated.values["registry_password"] == first.values["registry_password"]
    assert rotated.revisions["munge_key"] == 2


def test_the_registrys_certificate_is_of_the_pods_own_authority(tmp_path: Path, site: Site) -> None:
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    values = vault.fill(site).values
    for name in ("registry_key", "registry_certificate"):
        (tmp_path / name).write_text(values[name])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "registry_certificate", tmp_path / "registry_key")
    client = ssl.create_default_context(cadata=values["ca_certificate"])
    ends = [ssl.MemoryBIO() for _ in range(2)]
    near = client.wrap_bio(ends[0], ends[1], server_hostname="m1")
    far = server.wrap_bio(ends[1], ends[0], server_side=True)
    done = set[int]()
    for _ in range(10):
        for side, number in ((near, 0), (far, 1)):
            try:
                side.do_handshake()
                done.add(number)
            except ssl.SSLWantReadError:
                continue
    assert done == {0, 1}
    anew = vault.fill(site, rotate=["ca_key"])
    assert anew.values["registry_certificate"] != values["registry_certificate"]


def test_what_an_authority_signed_is_signed_anew_when_it_or_a_name_is_another(tmp_path: Path) -> None:
    text = (CASES / "bringup" / "hosts" / "whole" / "pod.yaml").read_text()
    pods = {name: tmp_path / f"{name}.yaml" for name in ("first", "moved", "quiet")}
    pods["first"].write_text(text)
    pods["moved"].write_text(text.replace("controller: m1,", "controller: m1, monitoring: m2,"))
    pods["quiet"].write_text(text.replace("services: [logging]\n", ""))
    sites = {name: site_of(load_pod(path)) for name, path in pods.items()}
    assert "logs_key" not in names_for(sites["quiet"])
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    first = vault.fill(sites["first"]).values
    moved = vault.fill(sites["moved"]).values
    signed = ("logs_certificate", "logs_client_certificate", "registry_certificate")
    assert [moved[name] == first[name] for name in signed] == [False, True, True]
    # Those that are not needed just now are not forgotten: the old ones would be trusted by nobody.
    vault.fill(sites["quiet"], rotate=["ca_key"])
    again = vault.fill(sites["moved"]).values
    assert [again[name] == moved[name] for name in signed] == [False, False, False]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path, site: Site) -> None:
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    vault.fill(site)
    vault.key_file.chmod(0o640)
    with pytest.raises(Refusal, match="others may read the vault's key"):
        vault.read()


def test_another_key_opens_nothing(tmp_path: Path, site: Site) -> None:
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    vault.fill(site)
    vault.key_file.write_text("another\n")
    with pytest.raises(Refusal, match=r"vault\.yml") as caught:
        vault.read()
    assert "is the key that it was written with" not in str(caught.value).split("\n")[0]


def test_a_secret_that_is_none_is_refused(tmp_path: Path, site: Site) -> None:
    with pytest.raises(Refusal, match='"munge" is not a secret'):
        Vault(tmp_path / "vault.yml", tmp_path / "vault.key").fill(site, rotate=["munge"])


def test_secrets_of_receivers_are_given_once_through_variables(tmp_path: Path) -> None:
    pod = site_of(load_pod(CASES / "watch" / "pod.yaml"))
    where = (tmp_path / "vault.yml", tmp_path / "vault.key")
    with pytest.raises(Refusal, match="SLACK_URL is not set, which alerts are sent with"):
        Vault(*where, environ={}).fill(pod)
    given = {"SLACK_URL": "https://hooks.example/1", "PAGERDUTY_KEY": "k", "MAIL_PASSWORD": "p"}
    first = Vault(*where, environ=given).fill(pod)
    assert (first.values["given_SLACK_URL"], first.revisions["given_SLACK_URL"]) == ("https://hooks.example/1", 1)
    assert Vault(*where, environ={}).fill(pod) == first
    changed = Vault(*where, environ={"SLACK_URL": "https://hooks.example/2"}).fill(pod)
    assert (changed.values["given_SLACK_URL"], changed.revisions["given_SLACK_URL"]) == ("https://hooks.example/2", 2)
    assert "hooks.example" not in (tmp_path / "vault.yml").read_text()


def test_certificates_are_made_again_before_they_end_and_all_others_with_their_authority(
    tmp_path: Path, site: Site
) -> None:
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    first = vault.fill(site)
    end_s = authority.end_of(first.values["registry_certificate"])
    assert vault.fill(site, clock=lambda: end_s - RENEWED_S - 86400).revisions == first.revisions
    authority_alone = {**first.values, **authority.sign(first.values, "registry", ["m1", "10.0.0.1"], days=30)}
    vault.write(Secrets(authority_alone, first.revisions))
    renewed = vault.fill(site)
    assert renewed.values["ca_certificate"] == first.values["ca_certificate"]
    assert authority.end_of(renewed.values["registry_certificate"]) > end_s - 86400
    assert renewed.revisions["registry_certificate"] == 2
    later = vault.fill(site, clock=lambda: end_s - RENEWED_S + 86400)
    assert later.values["ca_certificate"] != first.values["ca_certificate"]
    assert later.values["registry_certificate"] != renewed.values["registry_certificate"]
