"""Which Python the ranks start with and what it has installed, by the names of files: nothing is imported.

Importing torch takes seconds and memory; a listing of a folder takes a millisecond.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import sys
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ..masking import Masker
from ..system.plain_files import names_in, read_text

PACKAGES = {"torch": "torch", "nccl": r"nvidia_nccl_cu\d+", "cudnn": r"nvidia_cudnn_cu\d+"}
"""What is reported, and the distribution that has it."""
_CUDA = re.compile(r"^cuda\b[^=]*= *['\"]([0-9.]+)['\"]", re.MULTILINE)
_VERSION = re.compile(r"^version(?:_info)? *= *([0-9]+\.[0-9]+(?:\.[0-9]+)?)", re.MULTILINE)
_DISTRIBUTION = re.compile(r"^([^-]+)-([^-]+)(?:-py3[0-9.]*)?\.(?:dist|egg)-info$")
MAX_LETTERS = 65536
MAX_PACKAGES, MAX_FOLDERS = 2000, 20


def software(command: List[str], environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the versions of what a command of this environment would import; what cannot be found is left out."""
    prefix, program, folders = _found(command, environ)
    if not folders:
        return {}
    versions = _python(prefix, program)
    for folder in reversed(folders):
        versions.update(_installed(folder))
    return versions


def packages(command: List[str], environ: Mapping[str, str]) -> List[str]:
    """Return all packages of that Python and of its conda environment, each as `name==version`, in order."""
    prefix, _, folders = _found(command, environ)
    versions: Dict[str, str] = {}
    also = [folder for folder in environ.get("PYTHONPATH", "").split(":") if folder]
    for folder in [*also[:MAX_FOLDERS], *folders]:
        for match in map(_DISTRIBUTION.match, names_in(folder)):
            if match:
                versions.setdefault(match[1].lower().replace("_", "-"), match[2])
    for name in names_in(os.path.join(prefix, "conda-meta")) if prefix else []:
        parts = name[: -len(".json")].rsplit("-", 2)
        if name.endswith(".json") and len(parts) == 3:
            versions.setdefault(parts[0].lower().replace("_", "-"), parts[1])
    return [f"{name}=={version}" for name, version in sorted(versions.items())][:MAX_PACKAGES]


def modules(environ: Mapping[str, str]) -> List[str]:
    """Return the environment modules that are loaded, in their order."""
    return [name for name in environ.get("LOADEDMODULES", "").split(":") if name][:MAX_PACKAGES]


def told_of(command: List[str], environ: Mapping[str, str], is_first: bool, mask: Masker) -> Dict[str, Any]:
    """Return what a node says of its software: the first all of it, others a digest by which a difference is seen."""
    installed = [mask.text(line) for line in packages(command, environ)]
    told: Dict[str, Any] = {**software(command, environ), "digest": _digest(installed)}
    prefix = _found(command, environ)[0]
    if prefix:
        told["prefix"] = mask.text(prefix)
    if is_first:
        told.update(packages=installed, modules=[mask.text(name) for name in modules(environ)])
    return told


def _digest(lines: List[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


def _found(command: List[str], environ: Mapping[str, str]) -> Tuple[str, str, List[str]]:
    for prefix, program in _prefixes([*command[:1], "python", "python3"], environ.get("PATH")):
        folders = _packages_folders(prefix)
        if folders:
            return prefix, program, folders
    return "", "", []


def _prefixes(names: List[str], path: object) -> Iterator[Tuple[str, str]]:
    """Yield where a Python may be installed: above the folder of a program, the link's own before what it leads to."""
    for name in names:
        program = shutil.which(name, path=str(path) if path else None)
        if program is None:
            continue
        for resolved in (os.path.abspath(program), os.path.realpath(program)):
            yield os.path.dirname(os.path.dirname(resolved)), resolved


def _packages_folders(prefix: str) -> List[str]:
    patterns = ("lib/python3*/site-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages")
    folders: List[str] = []
    for pattern in patterns:
        folders += sorted(glob.glob(os.path.join(glob.escape(prefix), pattern)), reverse=True)
    return folders


def _python(prefix: str, program: str) -> Dict[str, str]:
    match = _VERSION.search(read_text(os.path.join(prefix, "pyvenv.cfg"), MAX_LETTERS))
    if match:
        return {"python": match[1]}
    if os.path.realpath(program) == os.path.realpath(sys.executable):
        return {"python": ".".join(map(str, sys.version_info[:3]))}
    named = re.search(r"python(3\.[0-9]+)$", os.path.realpath(program))
    return {"python": named[1]} if named else {}


def _installed(folder: str) -> Dict[str, str]:
    versions = {}
    for name in names_in(folder):
        for title, distribution in PACKAGES.items():
            match = re.match(rf"{distribution}-([^-]+)\.(?:dist|egg)-info$", name)
            if match:
                versions[title] = match[1]
    cuda = _CUDA.search(read_text(os.path.join(folder, "torch", "version.py"), MAX_LETTERS))
    if cuda:
        versions["cuda"] = cuda[1]
    return versions
