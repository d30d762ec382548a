"""A new machine: a root with Python, its venv and make alone, where an ordinary user types `make demo`. By night.

Every Debian has apt, whose C++ library PyTorch and NumPy need too: here its commands and sudo only note that they were
called, and there is no git. Packages come from where this machine's pip takes them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scripts import debian_root
from tests.fixtures.checkouts import copy_checkout, note_calls

USER = 1000
# In namespaces of its own: the cached root stays as it is, and what is mounted goes with the process.
INSIDE = """\
set -e
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
mount -t proc proc "$WORK/root/proc"
mount --rbind /dev "$WORK/root/dev"
for path in /etc/ssl/certs /usr/share/ca-certificates /etc/resolv.conf /etc/hosts /etc/pip.conf $WHEELS; do
  [ -e "$path" ] || continue
  if [ -d "$path" ]; then mkdir -p "$WORK/root$path"; else touch "$WORK/root$path"; fi
  mount --bind "$path" "$WORK/root$path"
done
set -- HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin "$@"
exec chroot --userspec="$USER_ID:$USER_ID" "$WORK/root" /usr/bin/env -i "$@"
"""
CALLED = "called"


@pytest.mark.nightly
@pytest.mark.netns
@pytest.mark.timeout(3600)
def test_make_demo_needs_python_with_venv_and_make_alone(tmp_path: Path) -> None:
    root = debian_root.made(debian_root.codename(), "apt", "make", "python3", "python3-venv")
    home = tmp_path / "upper" / "home" / "user"
    copy_checkout(home / "podwright")
    note_calls(tmp_path / "upper" / "usr" / "local" / "bin", ("apt", "apt-get", "sudo"), f"/home/user/{CALLED}")
    for folder in ("root", "work"):
        (tmp_path / folder).mkdir()
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(home)], check=True)
    tmp_path.chmod(0o755)
    pip = [
        f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_") or name == "SSL_CERT_FILE"
    ]
    env = {
        **os.environ,
        "LOWER": str(root),
        "WORK": str(tmp_path),
        "USER_ID": str(USER),
        "WHEELS": os.environ.get("PIP_FIND_LINKS", ""),
    }
    make = ["sh", "-c", "cd /home/user/podwright && exec make demo"]
    words = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", INSIDE, "sh", *pip, *make]
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "succeeded mean_iou" in done.stdout + done.stderr
    assert not (home / CALLED).exists(), (home / CALLED).read_text()
