"""Building an image: read what the recipe needs, let podman or buildah make it, and put it where it is wanted."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.images.recipe import Recipe, check, pip_files, recipe_of, sources
from podwright.images.storage import StoredImage, find_image, limit_options, own_limits, program, runtime_options
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
        """Return the name under which it is always the same image."""
        name = self.name
        if _has_tag(name):
            name = name.rpartition(":")[0]
        return f"{name}@{self.digest}"

    def as_json(self) -> dict[str, str]:
        """Return it as `--json` has it."""
        return {"name": self.name, "digest": self.digest, "pinned": self.pinned}


@dataclass(frozen=True)
class BuildProgram:
    """The program that builds images on this machine, and what it must be told about the machine."""

    name: str
    options: Sequence[str] = ()
    limits: Mapping[str, Sequence[int]] = field(default_factory=dict)


def read_recipe(workload: Workload) -> Recipe:
    """Return the recipe of a workload, with the digests of the files it needs as they are now."""
    files = context_files(workload)
    return recipe_of(workload, {name: _digest(path) for name, path in files.items()})


def image_name(workload: Workload) -> str:
    """Return the image a workload runs in: the one it names, else the one its `build:` makes."""
    if workload.image:
        return workload.image.removeprefix("docker://")
    return read_recipe(workload).name


def context_files(workload: Workload) -> dict[str, Path]:
    """Return every file that the build needs, by its path beside the workload; folders are taken whole."""
    build = check(workload)
    files: dict[str, Path] = {}
    for source in sources(build):
        files |= _within(workload, source)
    # A requirement file may name others, and those others again: each is read once.
    unread = [name for name in pip_files(build) if name.endswith(".txt")]
    while unread:
        for name in _nested(workload, unread.pop()):
            if name not in files:
                files |= _within(workload, name)
                unread.append(name)
    return dict(sorted(files.items()))


def _nested(workload: Workload, name: str) -> Iterator[str]:
    """Yield the requirement files that a requirement file names; their paths are relative to its own."""
    text = (workload.folder / name).read_text(encoding="utf-8", errors="replace")
    for other in _NESTED.findall(text):
        if "://" not in other:
            yield os.path.normpath(Path(name).parent / other)


def _within(workload: Workload, name: str) -> dict[str, Path]:
    """Return the files at a path beside the workload; a link is followed only where it stays there."""
    root = workload.folder.resolve()
    start = workload.folder / name
    if not start.exists():
        raise workload.refusal([("build", f"{name} is not beside the workload", "paths are relative to its folder")])
    paths = sorted(start.rglob("*")) if start.is_dir() else [start]
    for path in paths:
        if not path.resolve().is_relative_to(root):
            raise workload.refusal([("build", f"{path.name} leads out of the workload's folder", "copy it beside it")])
    return {path.relative_to(workload.folder).as_posix(): path for path in paths if path.is_file()}


def _is_executable(path: Path) -> bool:
    return os.access(path, os.X_OK)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    mark = "x" if _is_executable(path) else "-"
    return f"{mark} {content}"


def build_command(builder: BuildProgram, recipe: Recipe, folder: str, pip_conf: str | None = None) -> list[str]:
    """Return the command that makes the image from the folder of its files: the twin of what `build` does."""
    options = ["build", *builder.options]
    if builder.name == "podman":
        options = [*builder.options, "build"]
    secrets = [f"--secret=id=pip,src={pip_conf}"] if pip_conf else []
    return [
        builder.name,
        *options,
        "--format=oci",
        "--network=host",
        f"--timestamp={MOMENT}",
        "--layers",
        *limit_options(builder.limits),
        f"--label={RECIPE}={recipe.digest}",
        f"--label={MADE_FOR}={recipe.workload}",
        *secrets,
        f"--tag={recipe.name}",
        f"--file={folder}/Containerfile",
        folder,
    ]


def build(workload: Workload, again: bool = False) -> StoredImage:
    """Build the image, or find it built: its name says what is in it."""
    recipe = read_recipe(workload)
    builder = BuildProgram(program(), runtime_options(), own_limits())
    image = None if again else find_image(recipe.name)
    if image is None:
        with tempfile.TemporaryDirectory(prefix="podwright-image-") as folder:
            _lay_out(workload, recipe, Path(folder))
            command = build_command(builder, recipe, folder, _pip_conf())
            _run(command, "the image could not be built", "the lines above are those of the build")
        image = find_image(recipe.name)
    if image is None:
        raise refuse(f"{builder.name} built {recipe.name} and does not find it again", exit_code=3)
    return image


def _lay_out(workload: Workload, recipe: Recipe, folder: Path) -> None:
    """Copy the files of the recipe to where the build sees only them, readable for any user of the image."""
    (folder / "Containerfile").write_text(recipe.text)
    for name, source in context_files(workload).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if _is_executable(source) else 0o644)
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def _pip_conf() -> str | None:
    """Return the pip configuration of this machine, which says where packages come from."""
    places = [os.environ.get(_PIP_CONF[0], ""), *map(os.path.expanduser, _PIP_CONF[1:])]
    return next((place for place in places if place and Path(place).is_file()), None)


def push(workload: Workload, to: str, plain_http: bool = False) -> Pushed:
    """Push the built image to a registry; the tag is the recipe's where none is given."""
    image, kept_by = _built(workload), program()
    name = to if _has_tag(to) else f"{to}:{image.name.rpartition(':')[2]}"
    with tempfile.NamedTemporaryFile(prefix="podwright-digest-") as file:
        command = push_command(kept_by, image.name, name, file.name, plain_http)
        hint = f"are you logged in? `{kept_by} login {name.split('/')[0]}`"
        _run(command, f"{name} does not take the image", hint, exit_code=3)
        return Pushed(name, Path(file.name).read_text().strip())


def push_command(kept_by: str, source: str, target: str, digest_file: str, plain_http: bool) -> list[str]:
    """Return the command that pushes an image.

    A registry on this machine's own loopback needs no certificate; any other must show one, unless the user says that
    it has none.
    """
    place = target.split("/")[0]
    host = place.rpartition(":")[0] or place
    is_plain = plain_http or host in ("localhost", "127.0.0.1", "[::1]")
    verify = ["--tls-verify=false"] if is_plain else []
    return [kept_by, "push", *verify, f"--digestfile={digest_file}", source, f"docker://{target}"]


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2]


def inspect(workload: Workload) -> StoredImage:
    """Return what this machine knows of the workload's image; refuse where it is not here."""
    program()
    return _built(workload)


def _built(workload: Workload) -> StoredImage:
    name = image_name(workload)
    image = find_image(name)
    if image is None:
        hint = f"podwright image build {workload.path.name}" if workload.build else f"podman pull {name}"
        raise refuse(f"{name} is not on this machine", hint=hint)
    return image


def _run(command: Sequence[str], message: str, hint: str, exit_code: int = 2) -> None:
    """Run a program and refuse where it fails.

    Its output goes to stderr as it comes: a build takes minutes and shows its own progress.
    """
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode:
        raise refuse(message, hint=hint, exit_code=exit_code)
