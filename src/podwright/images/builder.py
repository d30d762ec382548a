"""Building an image: read what the recipe needs, let podman or buildah make it, and put it where it is wanted."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.images.recipe import Recipe, check, entry_files, recipe_of, sources
from podwright.images.storage import Found, find_image, image_name, limit_options, own_limits, program, runtime_options
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Workload

MOMENT = 315_619_200
"""The time that built files get: equal recipes give equal layers, and it is late enough for zip files (1980)."""
RECIPE, MADE_FOR = "podwright.recipe", "podwright.workload"
_PIP_CONF = ("PIP_CONFIG_FILE", "~/.config/pip/pip.conf", "/etc/pip.conf")
_NESTED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)[\s=]+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Pushed:
    """An image in a registry, by its name there and its digest."""

    name: str
    digest: str

    @property
    def pinned(self) -> str:
        """The name under which it is always the same image."""
        return f"{self.name.rpartition(':')[0] if _has_tag(self.name) else self.name}@{self.digest}"


def read_recipe(workload: Workload) -> Recipe:
    """Gives the recipe of a workload, with the digests of the files it needs as they are now."""
    files = context_files(workload)
    return recipe_of(workload, {name: _digest(path) for name, path in files.items()})


def context_files(workload: Workload) -> dict[str, Path]:
    """Every file that the build needs, by its path beside the workload; folders are taken whole."""
    build = check(workload)
    found = {name: path for source in sources(build) for name, path in _within(workload, source)}
    wanted = [name for entry in build.pip for name in entry_files(entry) if name.endswith(".txt")]
    while wanted:
        for name in _nested(workload, wanted.pop()):
            if name not in found:
                found |= dict(_within(workload, name))
                wanted.append(name)
    return dict(sorted(found.items()))


def _nested(workload: Workload, name: str) -> Iterator[str]:
    """The requirement files that one names; their paths are relative to its own."""
    text = (workload.folder / name).read_text(encoding="utf-8", errors="replace")
    for other in _NESTED.findall(text):
        if "://" not in other:
            yield os.path.normpath(Path(name).parent / other)


def _within(workload: Workload, name: str) -> Iterator[tuple[str, Path]]:
    """The files at a path beside the workload; a link is followed only where it stays there."""
    root = workload.folder.resolve()
    path = workload.folder / name
    if not path.exists():
        raise workload.refusal([("build", f"{name} is not beside the workload", "paths are relative to its folder")])
    for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not one.resolve().is_relative_to(root):
            raise workload.refusal([("build", f"{one.name} leads out of the workload's folder", "copy it beside it")])
        if one.is_file():
            yield one.relative_to(workload.folder).as_posix(), one


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{'x' if os.access(path, os.X_OK) else '-'} {content}"


def build_command(kept_by: str, recipe: Recipe, folder: str, pip_conf: str | None = None) -> list[str]:
    """The command that makes the image from the folder of its files: the twin of what `build` does."""
    options = [*runtime_options(), "build"] if kept_by == "podman" else ["build", *runtime_options()]
    return [
        kept_by,
        *options,
        "--format=oci",
        "--network=host",
        f"--timestamp={MOMENT}",
        "--layers",
        *limit_options(own_limits()),
        f"--label={RECIPE}={recipe.digest}",
        f"--label={MADE_FOR}={recipe.workload}",
        *([f"--secret=id=pip,src={pip_conf}"] if pip_conf else []),
        f"--tag={recipe.name}",
        f"--file={folder}/Containerfile",
        folder,
    ]


def build(workload: Workload, again: bool = False) -> Found:
    """Makes the image, or finds it made: its name says what is in it."""
    recipe = read_recipe(workload)
    kept_by = program()
    found = None if again else find_image(recipe.name)
    if found is None:
        with tempfile.TemporaryDirectory(prefix="podwright-image-") as folder:
            _lay_out(workload, recipe, Path(folder))
            command = build_command(kept_by, recipe, folder, _pip_conf())
            _run(command, "the image could not be built", "the lines above are those of the build")
        found = find_image(recipe.name)
    if found is None:
        raise refuse(f"{kept_by} built {recipe.name} and does not find it again", exit_code=3)
    return found


def _lay_out(workload: Workload, recipe: Recipe, folder: Path) -> None:
    """The build sees the files of the recipe and nothing else, readable for whoever the image runs as."""
    (folder / "Containerfile").write_text(recipe.text)
    for name, source in context_files(workload).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def _pip_conf() -> str | None:
    """The pip configuration of this machine, which says where packages come from."""
    places = [os.environ.get(_PIP_CONF[0], ""), *map(os.path.expanduser, _PIP_CONF[1:])]
    return next((place for place in places if place and Path(place).is_file()), None)


def push(workload: Workload, to: str, plain_http: bool = False) -> Pushed:
    """Puts the built image into a registry; the tag is the recipe's where none is given."""
    found, kept_by = _built(workload), program()
    name = to if _has_tag(to) else f"{to}:{found.name.rpartition(':')[2]}"
    with tempfile.NamedTemporaryFile(prefix="podwright-digest-") as file:
        command = push_command(kept_by, found.name, name, file.name, plain_http)
        _run(
            command, f"{name} does not take the image", f"are you logged in? `{kept_by} login {name.split('/')[0]}`", 3
        )
        return Pushed(name, Path(file.name).read_text().strip())


def push_command(kept_by: str, source: str, target: str, digest_file: str, plain_http: bool) -> list[str]:
    """A registry on this machine's own loopback needs no certificate; any other must show one unless told so."""
    host = target.split("/")[0].rpartition(":")[0] or target.split("/")[0]
    plain = plain_http or host in ("localhost", "127.0.0.1", "[::1]")
    verify = ["--tls-verify=false"] if plain else []
    return [kept_by, "push", *verify, f"--digestfile={digest_file}", source, f"docker://{target}"]


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2]


def inspect(workload: Workload) -> Found:
    """What this machine knows of the workload's image; refuses where it is not here."""
    program()
    return _built(workload)


def _built(workload: Workload) -> Found:
    name = image_name(workload)
    found = find_image(name)
    if found is None:
        hint = f"podwright image build {workload.path.name}" if workload.build else f"podman pull {name}"
        raise refuse(f"{name} is not on this machine", hint=hint)
    return found


def _run(command: Sequence[str], words: str, hint: str, exit_code: int = 2) -> None:
    """What the program says goes to stderr as it comes: a build takes minutes and shows its own progress."""
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode:
        raise refuse(words, hint=hint, exit_code=exit_code)
