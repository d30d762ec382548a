"""Our own files are the user's alone, whatever the umask is; ranks keep the umask that the user has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = "import sys; from podwright.cli.main import main; sys.exit(main())"


@pytest.mark.parametrize("umask", ["000", "027"])
def test_files_of_a_run_are_the_users_alone_and_ranks_keep_the_umask(tmp_path: Path, umask: str) -> None:
    home = tmp_path / "home"
    command = ["sh", "-c", 'umask; mkdir -p "$PODWRIGHT_FOLDER/results" && echo 1 > "$PODWRIGHT_FOLDER/results/a"']
    (tmp_path / "w.yaml").write_text(json.dumps({"name": "w", "command": command}))
    podwright = [sys.executable, "-c", MAIN, "run", str(tmp_path / "w.yaml"), "--json"]
    done = subprocess.run(
        ["sh", "-c", f'umask {umask} && exec "$@"', "sh", *podwright],
        env={**os.environ, "PODWRIGHT_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = Path(json.loads(done.stdout)["folder"])
    assert (run / "record" / "n0.r0" / "rank0.log").read_text() == f"0{umask}\n"
    assert (run / "results" / "a").stat().st_mode & 0o777 == 0o666 & ~int(umask, 8)
    theirs = [path for path in home.rglob("*") if not path.is_relative_to(run / "results")]
    assert {"index.db", "report.html", "record", "scratch"} <= {path.name for path in theirs}
    opened = {str(path.relative_to(home)): oct(path.lstat().st_mode) for path in theirs if path.lstat().st_mode & 0o077}
    assert opened == {}
