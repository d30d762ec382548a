"""Runs the contract suite on a second generation of Slurm, which is that of another Debian suite.

`python -m scripts.second_slurm [SUITE] [-- WORDS FOR PYTEST]` needs root, as it makes namespaces. Checkout, environment
and Python are this machine's, all else is the other suite's; what is written there is gone afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from podwright.lab import mask
from scripts import debian_root

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".cache" / "second_slurm"
PAGE = ROOT / "benchmarks" / "results" / "slurm_generations.md"
SUITE = "trixie"

PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurmdbd", "munge", "mariadb-server"),
    *("openssh-server", "openssh-client", "iproute2", "procps", "mount", "git"),
    *("openmpi-bin", "charliecloud-runtime", "runc"),
    *("gcc", "libc6-dev", "libslurm-dev"),  # a plugin must be compiled for the Slurm that loads it
    "python3",  # brings the shared libraries that this machine's own Python needs
)
# What every engine passes, and the topologies of designs: only newer generations know blocks of NVLink domains.
CHOSEN = ("tests/contract", "tests/real/test_design_slurm.py")
SHOWN = ("slurmctld", "mariadb-server", "munge", "openmpi-bin", "charliecloud-runtime", "runc", "openssh-server")

# A lab steps into mount namespaces, which would lead out of a chroot: the root itself is changed. Process 1 stays a
# shell, which reaps what labs leave behind.
INSIDE = """\
set -eu
root=$1 work=$2 checkout=$3 folders=$4
shift 4
mount --make-rprivate /
mount -t tmpfs -o mode=755 work "$work"
mkdir "$work/upper" "$work/work" "$work/root"
cd "${root%/*}"
mount -t overlay -o "lowerdir=${root##*/},upperdir=$work/upper,workdir=$work/work" root "$work/root"
cd "$work/root"
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmp tmp
printf '%s\\n' "$folders" | while read -r folder; do
    mkdir -p ".$folder"
    mount --bind "$folder" ".$folder"
done
echo '127.0.0.1 localhost' >etc/hosts
mkdir old
pivot_root . old
umount -l /old
cd "$checkout"
code=0
"$@" || code=$?
exit "$code"
"""
PAGE_TEXT = """\
# The contract suite on a second Slurm

Slurm {slurm}: {passed} of {total} tests passed. `make test` runs the same tests on the Slurm of its machine.

| tests | site | passed | failed |
| --- | --- | --- | --- |
{rows}

Versions, from Debian {suite}:

| package | version |
| --- | --- |
{versions}

{day}, `python -m scripts.second_slurm`, which `make test-nightly` calls.
"""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "CI": "true",  # a test that is skipped would go unseen
}


class Told(NamedTuple):
    """What became of one test."""

    file: str
    site: str
    outcome: str


def command(root: Path, report: Path, words: Sequence[str]) -> list[str]:
    """Gives the command line that runs the suite in a root and writes its report."""
    folders = sorted({str(folder) for folder in mask.needed_folders()})
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    inside = ["/bin/sh", "-c", INSIDE, "second_slurm", str(root), str(WORK), str(ROOT), "\n".join(folders)]
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.plugins.no_skips", "-p", "no:cacheprovider"]
    chosen = words or ["-n", "2", "--dist", "loadgroup", "-m", "slurm and not nightly", *CHOSEN]
    return [*spaces, *inside, *pytest, f"--junitxml={report}", "-o", "junit_family=xunit1", *chosen]


def read_report(text: str) -> list[Told]:
    """Reads pytest's report: per test its file, the site it ran on, and how it ended."""
    return [_told(case) for case in ElementTree.fromstring(text).iter("testcase")]


def _told(case: ElementTree.Element) -> Told:
    site = re.search(r"\[(slurm-accounting|slurm|.+?)(-.*)?\]", case.get("name", ""))
    bad = {child.tag for child in case} & {"failure", "error", "skipped"}
    return Told(Path(case.get("file", "")).stem, site[1] if site else "", "failed" if bad else "passed")


def versions(status: str, packages: Iterable[str]) -> dict[str, str]:
    """Reads the versions of packages from dpkg's own list, without what Debian adds to them."""
    found = dict(re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (?:\d+:)?(\d[\d.]*)", status, re.MULTILINE))
    return {name: found[name].rstrip(".") for name in packages if name in found}


def page(told: Sequence[Told], found: Mapping[str, str], suite: str, day: str) -> str:
    """Gives the summary: the verdict, then the evidence."""
    counts = Counter((one.file, one.site, one.outcome) for one in told)
    rows = [
        f"| {file} | {site} | {counts[file, site, 'passed']} | {counts[file, site, 'failed']} |"
        for file, site in sorted({(one.file, one.site) for one in told})
    ]
    return PAGE_TEXT.format(
        slurm=found["slurmctld"],
        passed=sum(one.outcome == "passed" for one in told),
        total=len(told),
        rows="\n".join(rows),
        suite=suite,
        versions="\n".join(f"| {name} | {version} |" for name, version in found.items()),
        day=day,
    )


def main(words: Sequence[str]) -> int:
    """Makes the roots where they are missing, runs the suite, writes the page; gives pytest's exit code."""
    if os.geteuid():
        raise SystemExit("this makes namespaces, which needs root")
    split = words.index("--") if "--" in words else len(words)
    suite, more = (*words[:split], SUITE)[0], words[split + 1 :]
    root = debian_root.made(suite, *PACKAGES)
    debian_root.image(suite)  # inside there is nothing to make one with
    WORK.mkdir(parents=True, exist_ok=True)
    report = WORK.parent / "second_slurm.xml"
    report.unlink(missing_ok=True)
    done = subprocess.run(command(root, report, more), env=ENVIRONMENT, cwd=ROOT, check=False)
    if report.exists() and not more:
        found = versions((root / "var/lib/dpkg/status").read_text(), SHOWN)
        told = read_report(report.read_text())
        PAGE.write_text(page(told, found, suite, datetime.now(UTC).date().isoformat()))
        print(f"{PAGE.relative_to(ROOT)}: Slurm {found['slurmctld']}, {len(told)} tests")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
