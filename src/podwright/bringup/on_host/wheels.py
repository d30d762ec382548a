#!/usr/bin/python3
"""Installs Python packages from a pod's archive into an environment of their own; hosts have it as it is.

    wheels.py check|install ENVIRONMENT KEYS ARCHIVE PACKAGE...

The archive's list of packages is taken only with a signature by the archive's key: before that no pip is started. Each
package is taken only with the digest that the list says. KEYS is the folder where a host keeps that key and the pod's
authority. `check` asks nobody: it prints `as planned`, or the first thing that is not.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from typing import Dict, List, NoReturn, Sequence

REQUIREMENTS, SIGNATURE = "requirements.txt", "requirements.txt.asc"
AUTHORITY, KEY = "podwright-ca.crt", "podwright-archive.asc"
MOST_BYTES, PATIENCE_S, INSTALL_S = 16 << 20, 60, 3600
VERSIONS = "import importlib.metadata as m; [print(d.metadata['Name'], d.version) for d in m.distributions()]"


def install(environment: str, keys: str, archive: str, names: Sequence[str]) -> None:
    """Bring the environment to what the archive has."""
    listed = {name: fetched("%s/python/%s" % (archive, name), keys) for name in (REQUIREMENTS, SIGNATURE)}
    with tempfile.TemporaryDirectory(prefix="podwright-wheels-") as folder:
        for name, content in listed.items():
            write(os.path.join(folder, name), content)
        if not is_signed(folder, keys):
            end("%s of %s is not signed by the key of the pod's archive: pip was not started" % (REQUIREMENTS, archive))
        lacking = sorted(set(map(project_of, names)) - set(pinned(listed[REQUIREMENTS])))
        if lacking:
            end("%s has no %s: make it again" % (archive, ", ".join(lacking)))
        if not os.path.exists(os.path.join(environment, "bin", "pip")):
            run([sys.executable, "-m", "venv", "--clear", environment])
        quiet = ["--isolated", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
        place = ["--index-url=%s/simple/" % archive, "--cert=%s" % os.path.join(keys, AUTHORITY), "--retries=0"]
        strict = ["--require-hashes", "--no-deps", "--only-binary=:all:"]
        run(
            [
                python_of(environment),
                "-I",
                "-m",
                "pip",
                *quiet,
                "install",
                *place,
                *strict,
                "--requirement=%s" % os.path.join(folder, REQUIREMENTS),
            ]
        )
    for name, content in listed.items():
        write(os.path.join(environment, name), content)


def difference(environment: str, keys: str, names: Sequence[str]) -> str:
    """Return what the environment has otherwise than it should; nothing where all is well."""
    kept = os.path.join(environment, REQUIREMENTS)
    if not os.path.exists(kept):
        return "%s is not there" % kept
    if not is_signed(environment, keys):
        return "%s is not signed by the key of the pod's archive" % kept
    with open(kept, "rb") as stream:
        wanted = pinned(stream.read())
    for name in map(project_of, names):
        if name not in wanted:
            return "%s is not there" % name
    said = run([python_of(environment), "-I", "-c", VERSIONS])
    there = {project_of(name): version for name, version in map(str.split, said.splitlines())}
    for name, version in wanted.items():
        if there.get(name) != version:
            return "%s %s, not %s" % (name, there.get(name, "is not there"), version)
    return ""


def is_signed(folder: str, keys: str) -> bool:
    """Return whether the list in a folder is signed by the archive's key."""
    with open(os.path.join(keys, KEY), encoding="ascii") as stream:
        lines = stream.read().partition("\n\n")[2].splitlines()
    body = [line for line in lines if line and not line.startswith(("-", "="))]
    with tempfile.NamedTemporaryFile(prefix="podwright-key-", suffix=".gpg") as ring:
        ring.write(base64.b64decode("".join(body)))
        ring.flush()
        files = [os.path.join(folder, name) for name in (SIGNATURE, REQUIREMENTS)]
        command = ["gpgv", "--keyring", ring.name, *files]
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def fetched(url: str, keys: str) -> bytes:
    """Return a file of the archive, from a server that the pod's authority knows."""
    context = ssl.create_default_context(cafile=os.path.join(keys, AUTHORITY))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=PATIENCE_S) as answer:
            content: bytes = answer.read(MOST_BYTES + 1)
    except OSError as error:
        end("%s: %s" % (url, error))
    if len(content) > MOST_BYTES:
        end("%s: is larger than any list of packages" % url)
    return content


def pinned(content: bytes) -> Dict[str, str]:
    """Return the versions of a list by their projects."""
    lines = content.decode("utf-8", "replace").splitlines()
    found = (re.match(r"([A-Za-z0-9._-]+)==(\S+)", line) for line in lines)
    return {project_of(match[1]): match[2] for match in found if match}


def project_of(name: str) -> str:
    """Return the project of a package, however it is written."""
    match = re.match(r"[A-Za-z0-9._-]+", name)
    return re.sub(r"[-_.]+", "-", match[0] if match else name).lower()


def python_of(environment: str) -> str:
    """Return the Python of the environment."""
    return os.path.join(environment, "bin", "python3")


def write(path: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    part = "%s.part" % path
    with open(part, "wb") as stream:
        stream.write(content)
    os.replace(part, path)


def run(command: List[str]) -> str:
    """Return what a program printed; one that fails ends everything with its first line that says why."""
    # What a caller's environment names, such as another authority, would count before what pip is told.
    environ = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=INSTALL_S,
        check=False,
    )
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        errors = [line for line in said.splitlines() if line.startswith("ERROR: ")] or said.splitlines()[-1:]
        end(errors[0] if errors else "%s ended with %d" % (command[0], done.returncode))
    return said


def end(why: str) -> NoReturn:
    """End with words."""
    raise SystemExit(why)


if __name__ == "__main__":
    verb, environment, keys, archive, *names = sys.argv[1:]
    if verb == "install":
        install(environment, keys, archive, names)
    print(difference(environment, keys, names) or "as planned")
