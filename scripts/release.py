"""Makes a release here and publishes nothing: version, section of the CHANGELOG, wheel and sdist, commit and tag.

    make release VERSION=0.3.0

The wheel is installed without a network into an environment that has only what it needs, and must answer there. Only
then the release is committed and tagged; where anything fails the tree is as before. What is built lies in dist/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
VERSIONED = {
    "pyproject.toml": r'(?m)^(version = ")[^"]*',
    "src/podwright/pilot/__init__.py": r'(?m)^(__version__ = ")[^"]*',
}
"""Files that say the version, each with what stands before it."""
CHANGELOG = "CHANGELOG.md"


class NoRelease(Exception):
    """Why there is none, in words."""


def main(root: Path, version: str) -> int:
    """Make the release of this version; return the exit code."""
    try:
        check(root, version)
        release(root, version)
    except NoRelease as reason:
        print(f"no release: {reason}", file=sys.stderr)
        return 2
    print(f"v{version} is committed and tagged here, and lies in {root / 'dist'}. Nothing was published:")
    print(f"  git push --follow-tags\n  uv publish dist/podwright-{version}*")
    return 0


def check(root: Path, version: str) -> None:
    """Refuse a tree that is not ready."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise NoRelease(f'"{version}" is no version like 0.3.0: make release VERSION=0.3.0')
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        raise NoRelease(f"{len(changed)} files are not committed, the first: {changed[0][3:]}")
    if _git(root, "tag", "--list", f"v{version}"):
        raise NoRelease(f"there is a tag v{version} already")
    newest = max((Version(tag) for tag in _git(root, "tag", "--list", "v*").split()), default=Version("0"))
    if Version(version) <= newest:
        raise NoRelease(f"{version} is not newer than {newest}")
    if not _unreleased((root / CHANGELOG).read_text()).strip():
        raise NoRelease(f"{CHANGELOG} has nothing under [Unreleased]: say what changed for users")


def _unreleased(text: str) -> str:
    return text.partition("## [Unreleased]\n")[2].partition("\n## [")[0]


def release(root: Path, version: str) -> None:
    """Write the version, build, check what was built, commit and tag."""
    today = datetime.now(UTC).date().isoformat()
    before = {name: (root / name).read_text() for name in (*VERSIONED, CHANGELOG)}
    after = {name: re.sub(pattern, rf"\g<1>{version}", before[name]) for name, pattern in VERSIONED.items()}
    heading = "## [Unreleased]\n"
    after[CHANGELOG] = before[CHANGELOG].replace(heading, f"{heading}\n## [{version}] - {today}\n", 1)
    try:
        for name, text in after.items():
            (root / name).write_text(text)
        check_wheel(build(root, version), version, root / "dist" / "bare")
        _git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *after)
    except BaseException:
        for name, text in before.items():
            (root / name).write_text(text)
        raise
    _git(root, "tag", "--annotate", "--message", f"Podwright {version}", f"v{version}")


def build(root: Path, version: str) -> Path:
    """Build wheel and sdist into dist/, and return the wheel."""
    shutil.rmtree(root / "dist", ignore_errors=True)
    _run([sys.executable, "-m", "hatchling", "build", "--directory", str(root / "dist")], root)
    wheel, sdist = (
        root / "dist" / f"podwright-{version}-py3-none-any.whl",
        root / "dist" / f"podwright-{version}.tar.gz",
    )
    for path in (wheel, sdist):
        if not path.exists():
            raise NoRelease(f"{path.name} was not built")
    return wheel


def check_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Refuse a wheel that does not answer with its version in an environment of its own."""
    try:
        said = _run([str(bare_environment(wheel, folder) / "podwright"), "--version"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if said.strip() != f"podwright {version}":
        raise NoRelease(f"the wheel says that it is {said.strip()}")


def bare_environment(wheel: Path, folder: Path) -> Path:
    """Return the `bin` of an environment with the wheel and what it always needs, nothing else; nothing is fetched."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], wheel.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in needed("podwright") - {"podwright"}:
        for path in _tops(distribution(name)):
            if path.exists() and not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--offline", "--no-deps"]
    _run([*uv, "--python", str(folder / "bin" / "python"), str(wheel)], wheel.parent)
    return folder / "bin"


def _tops(installed: Distribution) -> set[Path]:
    """Return what a distribution put beside others."""
    base = Path(str(installed.locate_file("")))
    paths = [Path(str(file)) for file in installed.files or []]
    return {base / path.parts[0] for path in paths if path.parts[0] not in ("..", "__pycache__")}


def needed(*names: str) -> set[str]:
    """Return the names of distributions and of all they need without their extras."""
    known, queue = set[str](), list(names)
    while queue:
        current = queue.pop()
        if current in known:
            continue
        known.add(current)
        for text in distribution(current).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                queue.append(requirement.name)
    return known


def _git(root: Path, *words: str) -> str:
    return _run(["git", *words], root)


def _run(command: list[str], folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoRelease(f"`{' '.join(command[:4])}` failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(ROOT, *(sys.argv[1:2] or [""])))
