"""Versions of what ranks start with, by the names of files alone."""

from __future__ import annotations

from pathlib import Path

from podwright.pilot.masking import Masker
from podwright.pilot.ranks.software import software, told_of


def install(folder: Path, *names: str, cuda: str = "") -> None:
    for name in names:
        (folder / f"{name}.dist-info").mkdir(parents=True)
    if cuda:
        (folder / "torch").mkdir()
        (folder / "torch" / "version.py").write_text(
            f"__version__ = '2.3.0'\ncuda: Optional[str] = '{cuda}'\nhip = None\n"
        )


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_a_virtual_environment_is_told_by_its_own_files(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(program(tmp_path / "base" / "bin", "python3.12"))
    install(tmp_path / "base" / "lib" / "python3.12" / "site-packages", "torch-1.0")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    install(venv / "lib/python3.12/site-packages", "torch-2.3.0+cu124", "nvidia_nccl_cu12-2.20.5", cuda="12.4")
    expected = {"python": "3.12.4", "torch": "2.3.0+cu124", "nccl": "2.20.5", "cuda": "12.4"}
    assert software(["python", "train.py"], {"PATH": str(venv / "bin")}) == expected
    program(venv / "bin", "torchrun")
    assert software([str(venv / "bin" / "torchrun")], {"PATH": "/nowhere"}) == expected


def test_a_command_that_is_no_python_is_told_by_the_python_on_its_path(tmp_path: Path) -> None:
    program(tmp_path / "tools" / "bin", "train.sh")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(program(tmp_path / "opt" / "bin", "python3.9"))
    install(tmp_path / "opt" / "lib" / "python3.9" / "site-packages", "torch-1.13.1")
    path = f"{tmp_path}/tools/bin:{tmp_path}/bin"
    assert software(["train.sh"], {"PATH": path}) == {"python": "3.9", "torch": "1.13.1"}
    assert software(["nothing"], {"PATH": str(tmp_path)}) == {}


def test_the_first_node_names_all_packages_and_modules_and_others_a_digest(tmp_path: Path) -> None:
    program(tmp_path / "env" / "bin", "python3")
    install(tmp_path / "env/lib/python3.12/site-packages", "torch-2.3.0", "typing_extensions-4.12.2", "secret-pass1234")
    install(tmp_path / "own", "Torch-2.4.0", "mine-0.1")
    (tmp_path / "env" / "conda-meta").mkdir()
    for name in ("openssl-3.3.1-h4ab18f5_0.json", "torch-2.2.0-py312_0.json", "history"):
        (tmp_path / "env" / "conda-meta" / name).touch()
    environ = {
        "PATH": str(tmp_path / "env" / "bin"),
        "PYTHONPATH": str(tmp_path / "own"),
        "LOADEDMODULES": "gcc/13.2:cuda/12.4",
    }
    first = told_of(["python3"], environ, True, Masker(["pass1234"]))
    named = ["mine==0.1", "openssl==3.3.1", "secret==***", "torch==2.4.0", "typing-extensions==4.12.2"]
    assert first["packages"] == named
    assert first["modules"] == ["gcc/13.2", "cuda/12.4"]
    other = told_of(["python3"], environ, False, Masker(["pass1234"]))
    assert other == {"torch": "2.3.0", "digest": first["digest"], "prefix": str(tmp_path / "env")}
    (tmp_path / "own" / "more-1.0.dist-info").mkdir()
    assert told_of(["python3"], environ, False, Masker([]))["digest"] != first["digest"]
