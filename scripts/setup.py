"""Makes `.venv` with everything Podwright needs to run, train and be tested, from a bare Python.

It needs a Python with `venv`, and changes nothing outside the checkout. With `--tests` it also installs the Debian
packages that tests start: servers, a browser, compilers. Standard library only, as nothing else is there yet. A stamp
inside `.venv` holds the hash of all that decides its content, so a second call ends at once. The machine's own pip
settings (index, wheels, certificates) are honoured.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup-stamp"
LOCK = ROOT / "requirements" / "lock.txt"
BOOTSTRAP = ROOT / "requirements" / "bootstrap.txt"
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# pip's setting -> uv's variable. uv reads neither PIP_* nor pip.conf; a machine that has them has a reason.
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


class Package(NamedTuple):
    """A Debian package, what shows that it is there, and why it is wanted."""

    name: str
    proof: str
    reason: str

    def is_there(self) -> bool:
        """Asks for the proof, not the package: a tool installed by other means serves as well."""
        return Path(self.proof).exists() if self.proof.startswith("/") else shutil.which(self.proof) is not None


def say(word: str, text: str) -> None:
    """Prints one fact, flushed, so that a log shows what is going on while it goes on."""
    print(f"{word:<9} {text}", flush=True)


def call(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
    """Runs one step and ends the set-up with the step's own exit code when it fails."""
    line = [str(part) for part in command]
    done = subprocess.run(line, cwd=ROOT, env=env, check=False)
    if done.returncode:
        say("failed", f"{shlex.join(line)}\n          exited with {done.returncode}")
        raise SystemExit(done.returncode)


def read_packages(text: str) -> list[Package]:
    """Reads the table of Debian packages."""
    rows = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [Package(*row.split(None, 2)) for row in rows]


QUIETLY = """\
policy=/usr/sbin/policy-rc.d
[ ! -e "$policy" ] || exec "$@"
trap 'rm -f "$policy"' EXIT
printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy"
"$@"
"""
"""Tests start servers themselves, in places of their own: installing one must not start it on this machine."""


def wanted_packages() -> list[Package]:
    """Names what tests need and this machine lacks."""
    packages = read_packages((ROOT / "scripts" / "apt-packages.txt").read_text())
    return [package for package in packages if not package.is_there()]


def check_venv() -> None:
    """Ends with the command where Python cannot make environments: Debian keeps `ensurepip` in a package of its own."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    say("failed", f"Python {version} has no `venv` here: apt-get install python{version}-venv   (as root; then again)")
    raise SystemExit(2)


def root_prefix() -> list[str] | None:
    """Gives what to put before a command that needs root, or None where root is out of reach."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    quiet = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    return ["sudo"] if quiet or sys.stdin.isatty() else None


def has_candidate(name: str) -> bool:
    """Asks apt whether it can install a package; Ubuntu has no Chromium as a package."""
    answer = subprocess.run(["apt-cache", "policy", name], capture_output=True, text=True, check=False).stdout
    return "Candidate:" in answer and "Candidate: (none)" not in answer


def install_packages(missing: Sequence[Package], prefix: Sequence[str] | None) -> None:
    """Installs missing Debian packages, or says the exact command and goes on: some tests need none of them.

    `prefix` is what `root_prefix` gives.
    """
    for package in missing:
        say("packages", f"{package.name} is missing: {package.reason}")
    if prefix is None or shutil.which("apt-get") is None:
        say("packages", "apt-get install " + " ".join(package.name for package in missing) + "   (as root; then again)")
        return
    env = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    call([*env, "apt-get", "update", "-qq"])
    names = [package.name for package in missing if has_candidate(package.name)]
    if names:
        call([*env, "sh", "-c", QUIETLY, "sh", "apt-get", "install", "-y", "-qq", "--no-install-recommends", *names])


def fingerprint(lock: Path = LOCK) -> str:
    """Hashes all that decides what lies in `.venv`, its own place and Python included."""
    digest = hashlib.sha256(f"{ROOT} {sys.version_info[:2]}".encode())
    for path in (lock, BOOTSTRAP, ROOT / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(venv: Path = VENV, lock: Path = LOCK) -> bool:
    """Tells whether `.venv` is what this set-up would make."""
    stamp = venv / STAMP.name
    if not stamp.is_file() or stamp.read_text() != fingerprint(lock):
        return False
    return (venv / "bin" / "podwright").is_file()


def works(python: Path) -> bool:
    """Tells whether an environment's Python starts and has pip; one copied here or left half made does not."""
    if not python.exists():
        return False
    check = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0


def pip_settings(python: Path = PYTHON) -> dict[str, str]:
    """Asks pip for the machine's settings, from its files and from PIP_*; the environment wins, as it does in pip."""
    answer = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    settings: dict[str, str] = {}
    for line in sorted(answer.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        settings[key.rpartition(".")[2]] = value.strip("'\"")
    return settings


def uv_environment(settings: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Adds to the environment what makes uv fetch as this machine's pip would; what is set for uv already stays."""
    found = dict(env)
    for name, variable in UV_VARIABLES.items():
        values = settings.get(name, "").split()
        if name == "find-links":
            values = [value for value in values if "://" in value or Path(value).is_dir()]
        if values:
            found.setdefault(variable, " ".join(values) if variable == "UV_INDEX" else ",".join(values))
    if "UV_INDEX" in found:
        # Safe as every file is pinned by hash, and it is how pip treats extra indexes.
        found.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    if SYSTEM_CERTIFICATES.is_file():
        found.setdefault("SSL_CERT_FILE", str(SYSTEM_CERTIFICATES))
    return found


def fill_environment() -> None:
    """Makes `.venv` and installs the lock into it, every file checked against its hash."""
    if not works(PYTHON):
        say("venv", f".venv with Python {sys.version.split()[0]}")
        call([sys.executable, "-m", "venv", "--clear", VENV])
    call([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", BOOTSTRAP])
    count = sum("==" in line for line in LOCK.read_text().splitlines())
    say("install", f"{count} packages pinned by hash; PyTorch with CUDA is about 3 GB the first time")
    uv: list[str | Path] = [VENV / "bin" / "uv", "pip", "install", "--python", PYTHON]
    env = uv_environment(pip_settings(), os.environ)
    # uv leaves bytecode out, as pip does not; ranks in a lab cannot write it, and each would compile PyTorch anew.
    call([*uv, "--compile-bytecode", "--require-hashes", "-r", LOCK], env)
    call([*uv, "-q", "--no-deps", "--no-build-isolation", "-e", ROOT], env)


def install_browser() -> None:
    """Takes Playwright's own Chromium where the distribution has none; `tests/browser` finds either."""
    tried = VENV / "browser-stamp"
    if shutil.which("chromium") is None and root_prefix() is not None and not tried.is_file():
        say("browser", "no chromium package here: taking Playwright's")
        subprocess.run([PYTHON, "-m", "playwright", "install", "--with-deps", "chromium"], cwd=ROOT, check=False)
        tried.touch()


def prepare_machine() -> None:
    """Installs what tests start, where it is missing."""
    missing = wanted_packages()
    if missing:
        install_packages(missing, root_prefix())


def read_command() -> argparse.Namespace:
    """The command line."""
    given = argparse.ArgumentParser(description="Makes .venv with everything in it.")
    given.add_argument("--quiet", action="store_true", help="not a word when all is there")
    given.add_argument("--tests", action="store_true", help="install the Debian packages that tests need, too")
    return given.parse_args()


def main() -> None:
    """Brings `.venv` to where every `make` verb works, and for tests the machine."""
    started, command = time.monotonic(), read_command()
    check_venv()
    if command.tests:
        prepare_machine()
    if not is_current():
        fill_environment()
        STAMP.write_text(fingerprint())
        say("ready", f".venv/bin/podwright   (set up in {time.monotonic() - started:.0f} s)")
    elif not command.quiet:
        say("ready", ".venv/bin/podwright")
    if command.tests:
        install_browser()


if __name__ == "__main__":
    main()
