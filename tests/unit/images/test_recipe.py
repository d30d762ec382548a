"""What `build:` becomes: whole Containerfiles, and refusals to the letter."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import spec
from podwright.images.builder import BuildProgram, Pushed, build_command, context_files, push_command, read_recipe
from tests.paths import CASES

FOLDER = CASES / "images" / "recipes"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def load(folder: Path, text: str) -> spec.Workload:
    """A workload with this `build:`."""
    file = folder / "workload.yaml"
    file.write_text(f"name: toy\ncommand: train\n{text}\n")
    return spec.load_workload(file)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None]) -> None:
    workload = spec.load_workload(FOLDER / name / "workload.yaml")
    golden(FOLDER / name / "expected" / "Containerfile", read_recipe(workload).text)
    golden(FOLDER / name / "expected" / "context.txt", "".join(f"{path}\n" for path in context_files(workload)))


@pytest.mark.parametrize("name", CASES)
def test_every_image_runs_as_a_number_that_is_not_root(name: str) -> None:
    text = read_recipe(spec.load_workload(FOLDER / name / "workload.yaml")).text
    last = re.findall(r"^USER (\S+)$", text, re.MULTILINE)[-1]
    assert int(last.split(":")[0]) > 0


REFUSALS = {
    "no build": (
        "image: registry.example/train:1",
        "this workload says nothing of how its image is built\n\n"
        "hint: add `build: {base: ...}`; `podwright init` writes one for a script",
    ),
    "root": (
        "build: {base: b, user: root}",
        "build.user: an image that runs as root is refused on most clusters\n\n"
        "hint: leave `user` out, or name another: a run gets its user from where it runs",
    ),
    "user": (
        'build: {base: b, user: "a b"}',
        'build.user: "a b" is neither a user nor a number\n\nhint: write it like `trainer` or `1001`',
    ),
    "apt": (
        'build: {base: b, apt: ["git; rm -rf /"]}',
        'build.apt.0: "git; rm -rf /" is not a Debian package\n\nhint: write it like `git` or `git=1:2.39.5-0`',
    ),
    "password": (
        'build: {base: b, pip: ["--index-url https://me:secret@index.example/simple"]}',
        "build.pip.0: an address with a password would stay in the image\n\n"
        "hint: put the index into pip's own configuration on the machine that builds: it is lent to the build",
    ),
    "base": (
        'build: {base: "b$(id)"}',
        'build.base: "b$(id)" is not the name of an image\n\nhint: write it like `registry.example/base:1`',
    ),
    "file elsewhere": (
        "build: {base: b, pip: [-r ../requirements.txt]}",
        "build.pip.0: ../requirements.txt leads out of the workload's folder\n\n"
        "hint: copy the file beside the workload",
    ),
    "file that is not there": (
        "build: {base: b, pip: [-r requirements.txt]}",
        "build: requirements.txt is not beside the workload\n\nhint: paths are relative to its folder",
    ),
}


@pytest.mark.parametrize(("text", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(spec.Refusal) as caught:
        read_recipe(load(tmp_path, text))
    assert re.sub(r"^\S+workload.yaml(:\d+:\d+)?: ", "", str(caught.value)) == words


def test_what_a_shell_would_read_otherwise_is_quoted(tmp_path: Path) -> None:
    text = read_recipe(load(tmp_path, 'build: {base: b, pip: ["a; touch /x", "b>1"]}')).text
    assert "--no-compile 'a; touch /x' 'b>1' && \\\n" in text


def test_the_name_follows_the_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1")
    names = []
    for content, mode, user in (
        ("1", 0o644, "x"),
        ("1", 0o600, "x"),
        ("2", 0o644, "x"),
        ("1", 0o755, "x"),
        ("1", 0o644, "y"),
    ):
        (tmp_path / "a.txt").write_text(content)
        (tmp_path / "a.txt").chmod(mode)
        names.append(read_recipe(load(tmp_path, f"build: {{base: b, files: {{a.txt: /a}}, user: {user}}}")).name)
    assert names[0] == names[1], "who may read the file here is nothing to the image"
    assert len(set(names)) == 4
    assert re.fullmatch(r"localhost/podwright/toy:[0-9a-f]{12}", names[0])


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_text("x")
    (inner / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(spec.Refusal, match="link leads out of the workload's folder"):
        read_recipe(load(inner, "build: {base: b, files: {link: /a}}"))


def test_the_command_that_builds(tmp_path: Path) -> None:
    podman, buildah = (
        BuildProgram(name, ["--runtime=runc"], {"nofile": (1024, 4096)}) for name in ("podman", "buildah")
    )
    recipe = read_recipe(load(tmp_path, "build: {base: b}"))
    rest = [
        "--format=oci", "--network=host", "--timestamp=315619200", "--layers", "--ulimit=nofile=1024:4096",
        f"--label=podwright.recipe={recipe.digest}", "--label=podwright.workload=toy", "--secret=id=pip,src=/pip.conf",
        f"--tag={recipe.name}", "--file=/context/Containerfile", "/context",
    ]  # fmt: skip
    assert build_command(podman, recipe, "/context", "/pip.conf") == ["podman", "--runtime=runc", "build", *rest]
    assert build_command(buildah, recipe, "/context", "/pip.conf") == ["buildah", "build", "--runtime=runc", *rest]


@pytest.mark.parametrize(
    ("target", "plain", "verified"),
    [
        ("127.0.0.1:5000/toy:1", False, False),
        ("localhost/toy", False, False),
        ("registry.example/toy", False, True),
        ("registry.example:5000/toy", True, False),
    ],
)
def test_only_loopback_goes_without_a_certificate(target: str, plain: bool, verified: bool) -> None:
    command = push_command("podman", "localhost/toy:1", target, "/digest", plain)
    assert ("--tls-verify=false" not in command) == verified
    assert command[-1] == f"docker://{target}"


def test_a_pushed_image_is_pinned_by_its_digest() -> None:
    assert Pushed("127.0.0.1:5000/a/toy:1", "sha256:00").pinned == "127.0.0.1:5000/a/toy@sha256:00"
    assert Pushed("127.0.0.1:5000/a/toy", "sha256:00").pinned == "127.0.0.1:5000/a/toy@sha256:00"
