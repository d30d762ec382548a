"""A workload's `build:` as a Containerfile: the same text each time, no secret in it, and a user that is not root."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podwright.spec import Build, Workload

Problem = tuple[str, str, str | None]

USER, NUMBER = "podwright", "1000"
SSH = ("openssh-client", "openssh-server")
REQUIREMENTS = "/usr/local/share/podwright"
"""Where requirement files and wheels lie in the image; they tell later what was asked for."""

# A package may hold files that this Python cannot compile, and nobody imports those.
_BYTECODE = """\
    { PYTHONHASHSEED=0 python3 -m compileall -qq --invalidation-mode=unchecked-hash \\
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" || true; }
"""
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?([=/][A-Za-z0-9.+~:-]+)?", re.ASCII)
_NAMED, _NUMBERED = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII), re.compile(r"[1-9]\d{0,8}(:\d{1,9})?", re.ASCII)
_PASSWORD = re.compile(r"://[^/\s@]*@")
# An account that has another number in the base would make the image run as somebody else.
_ACCOUNT = """\
RUN set -e; number=$(grep '^{name}:' /etc/passwd | cut -d: -f3); \\
    if [ -z "$number" ]; then \\
        echo '{name}:x:{number}:0:{name}:/home/{name}:/bin/sh' >> /etc/passwd; \\
    elif [ "$number" != {number} ]; then \\
        echo "the base has a user {name} with the number $number: write that number as build.user" >&2; exit 1; \\
    fi; \\
    mkdir -p /home/{name}; chown {number}:0 /home/{name}; chmod 0770 /home/{name}
USER {number}
WORKDIR /home/{name}
"""


@dataclass(frozen=True)
class Recipe:
    """All that decides what an image holds, as far as it is ours to decide."""

    workload: str
    text: str
    files: Mapping[str, str]
    """Digest of every file that the build needs, by its path beside the workload."""

    @property
    def digest(self) -> str:
        """Return what names the recipe: a change of one letter of the text or of a file gives another."""
        whole = json.dumps([self.text, sorted(self.files.items())])
        return hashlib.sha256(whole.encode()).hexdigest()

    @property
    def tag(self) -> str:
        """Return the tag of its image."""
        return self.digest[:12]

    @property
    def name(self) -> str:
        """Return the image's name on the machine that builds it; nobody can take it for one of a registry."""
        return f"localhost/podwright/{self.workload}:{self.tag}"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        document = {"name": self.name, "digest": f"sha256:{self.digest}", "containerfile": self.text}
        return {**document, "files": sorted(self.files)}


def recipe_of(workload: Workload, files: Mapping[str, str]) -> Recipe:
    """Return the recipe of a workload that has a `build:`; `files` are the digests of what `sources` names."""
    build = check(workload)
    return Recipe(workload.name, containerfile(workload.name, build, sorted(files)), dict(files))


def check(workload: Workload) -> Build:
    """Return the workload's `build:`; refuse what of it cannot become an image."""
    build = workload.build
    if build is None:
        hint = "add `build: {base: ...}`; `podwright init` writes one for a script"
        raise workload.refusal([("", "this workload says nothing of how its image is built", hint)])
    problems = [*_base_problems(build), *_apt_problems(build), *_pip_problems(build), *_user_problems(build)]
    if problems:
        raise workload.refusal(problems)
    return build


def _base_problems(build: Build) -> Iterator[Problem]:
    if not re.fullmatch(r"[\w./:@-]+", build.base, re.ASCII):
        yield "build.base", f'"{build.base}" is not the name of an image', "write it like `registry.example/base:1`"


def _apt_problems(build: Build) -> Iterator[Problem]:
    for index, name in enumerate(build.apt):
        if not _PACKAGE.fullmatch(name):
            yield f"build.apt.{index}", f'"{name}" is not a Debian package', "write it like `git` or `git=1:2.39.5-0`"


def _pip_problems(build: Build) -> Iterator[Problem]:
    """Yield what is wrong with entries of `pip`; a password would stay in the image for everybody who may pull it."""
    for index, entry in enumerate(build.pip):
        field = f"build.pip.{index}"
        if _PASSWORD.search(entry):
            hint = "put the index into pip's own configuration on the machine that builds: it is lent to the build"
            yield field, "an address with a password would stay in the image", hint
        elif pip_arguments(entry) is None:
            yield field, "a quote is not closed", None
        for name in entry_files(entry):
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                yield field, f"{name} leads out of the workload's folder", "copy the file beside the workload"


def _user_problems(build: Build) -> Iterator[Problem]:
    if build.user in ("root", "0") or (build.user or "").startswith("0:"):
        hint = "leave `user` out, or name another: a run gets its user from where it runs"
        yield "build.user", "an image that runs as root is refused on most clusters", hint
    elif build.user and not (_NAMED.fullmatch(build.user) or _NUMBERED.fullmatch(build.user)):
        yield "build.user", f'"{build.user}" is neither a user nor a number', "write it like `trainer` or `1001`"


def pip_arguments(entry: str) -> list[str] | None:
    """Return an entry of `pip` as arguments of pip: an option and its value, or one requirement.

    None: a quote in it is not closed.
    """
    if not entry.startswith("-"):
        return [entry]
    try:
        return shlex.split(entry)
    except ValueError:
        return None


def entry_files(entry: str) -> list[str]:
    """Return the files beside the workload that an entry of `pip` names: requirement files and local packages."""
    text = entry.strip()
    if match := re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S.*)$", text):
        return [match[1].strip().strip("'\"").removeprefix("./")]
    return [text.removeprefix("./")] if text.startswith("./") else []


def pip_files(build: Build) -> list[str]:
    """Return the files that all entries of `pip` name, in their order."""
    names: list[str] = []
    for entry in build.pip:
        names += entry_files(entry)
    return names


def sources(build: Build) -> list[str]:
    """Return the paths beside the workload that the build needs."""
    return sorted({*pip_files(build), *(name.removeprefix("./") for name in build.files)})


def containerfile(name: str, build: Build, files: Sequence[str] = ()) -> str:
    """Return the Containerfile: what changes seldom comes first, so that a build reuses the layers of the last one.

    `files` are all that lie ready for the build: requirement files may name others.
    """
    head = f"# How the image of {name} is made; its workload file says what is in it.\nFROM {build.base}\nUSER 0\n"
    return "".join([head, _apt(build), _pip(build, files), *_files(build), _account(build)])


def _apt(build: Build) -> str:
    """Return the step that installs Debian's packages.

    Host keys that a package makes are secrets and would be the same everywhere: ranks' sshd makes its own.
    """
    packages = set(build.apt)
    if build.sshd:
        packages.update(SSH)
    if not packages:
        return ""
    listed = shlex.join(sorted(packages))
    return (
        "RUN export DEBIAN_FRONTEND=noninteractive; set -e; apt-get update; \\\n"
        f"    apt-get install -y --no-install-recommends {listed}; \\\n"
        "    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig/aux-cache \\\n"
        "        /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /etc/ssh/ssh_host_*\n"
    )


def _pip(build: Build, files: Sequence[str]) -> str:
    """Return the step that installs Python's packages; pip's configuration is lent to it and leaves nothing behind.

    Its bytecode is made here: a container cannot write it, and each rank would compile all it imports anew. It is valid
    by itself, as the times of files in the image are not those of the build, and the same at each build.
    """
    if not build.pip:
        return ""
    names = set(pip_files(build))
    # What `files` copies by itself is not copied a second time, neither a file nor what lies in a folder.
    own = {name.removeprefix("./").rstrip("/") for name in build.files}
    names |= {name for name in files if own.isdisjoint([name, *map(str, PurePosixPath(name).parents)])}
    copies = [f"COPY {json.dumps([name, f'{REQUIREMENTS}/{name}'])}\n" for name in sorted(names)]
    listed = " ".join(_requirement(entry) for entry in build.pip)
    return "".join(copies) + (
        "RUN --mount=type=secret,id=pip,target=/etc/pip.conf \\\n"
        "    PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore \\\n"
        f"    python3 -m pip install --no-cache-dir --no-compile {listed} && \\\n{_BYTECODE}"
    )


def _requirement(entry: str) -> str:
    names = entry_files(entry)
    if not names:
        return shlex.join(pip_arguments(entry) or [])
    path = shlex.quote(f"{REQUIREMENTS}/{names[0]}")
    option = re.match(r"-r|-c|--requirement|--constraint", entry.strip())
    return f"{option[0]} {path}" if option else path


def _files(build: Build) -> Iterator[str]:
    for source, target in sorted(build.files.items()):
        yield f"COPY {json.dumps([source.removeprefix('./'), target])}\n"


def _account(build: Build) -> str:
    """Return the steps that set the user, as a number: only of a number can a cluster tell that it is not root."""
    user = build.user or USER
    if _NUMBERED.fullmatch(user):
        return f"USER {user}\nWORKDIR /tmp\n"
    return _ACCOUNT.format(name=user, number=NUMBER)
