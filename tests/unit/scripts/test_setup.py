"""Set-up on machines unlike this one: their pip settings reach uv, their missing packages are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import setup


def test_pip_settings_become_uv_variables(tmp_path: Path) -> None:
    settings = {
        "index-url": "https://mirror.example/simple",
        "extra-index-url": "https://a.example https://b.example",
        "find-links": f"{tmp_path} {tmp_path / 'gone'}",
        "cert": "/etc/own.pem",
        "timeout": "90",
        "disable-pip-version-check": "1",
    }
    assert setup.uv_environment(settings, {}) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://a.example https://b.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": str(tmp_path),
        "SSL_CERT_FILE": "/etc/own.pem",
        "UV_HTTP_TIMEOUT": "90",
    }


def test_what_is_set_for_uv_stays() -> None:
    env = {"UV_DEFAULT_INDEX": "https://mine.example", "SSL_CERT_FILE": "/mine.pem", "HOME": "/h"}
    assert setup.uv_environment({"index-url": "https://other.example", "cert": "/other.pem"}, env) == env


def test_every_package_of_the_table_has_a_proof_and_a_reason() -> None:
    packages = setup.read_packages((setup.ROOT / "scripts" / "apt-packages.txt").read_text())
    assert [package.name for package in packages if not (package.proof and len(package.reason) > 10)] == []
    assert "git" in {package.name for package in packages}


def test_a_package_counts_as_there_by_its_proof(tmp_path: Path) -> None:
    file = tmp_path / "header.h"
    there = setup.Package("a", str(file), "")
    assert not there.is_there()
    file.touch()
    assert there.is_there()
    assert setup.Package("b", "sh", "").is_there()
    assert not setup.Package("c", "no-such-command", "").is_there()


def test_without_root_the_exact_command_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    setup.install_packages([setup.Package("tmux", "tmux", "shows windows")], prefix=None)
    assert capsys.readouterr().out == (
        "packages  tmux is missing: shows windows\npackages  apt-get install tmux   (as root; then again)\n"
    )


def test_a_changed_lock_makes_the_environment_stale(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("a==1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podwright").touch()
    assert not setup.is_current(tmp_path, lock)
    (tmp_path / setup.STAMP.name).write_text(setup.fingerprint(lock))
    assert setup.is_current(tmp_path, lock)
    lock.write_text("a==2\n")
    assert not setup.is_current(tmp_path, lock)
