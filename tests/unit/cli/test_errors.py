"""Every way a command can end without doing its work: what is said, where, and the exit code."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli import crash, errors
from podwright.cli.app import make_command
from podwright.cli.main import main
from podwright.cli.table import COMMANDS, EVERY
from podwright.spec.problems import refuse

Ends = Callable[[BaseException, list[str]], int]


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ends:
    """Ends a command with an exception, in a home of its own, and gives the exit code."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    monkeypatch.delenv("PODWRIGHT_DEBUG", raising=False)

    def ended(error: BaseException, args: list[str]) -> int:
        def raise_it(args: list[str]) -> int:
            raise error

        return main(args, raise_it)

    return ended


def test_refusal_is_talk(ends_with: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = refuse("cannot be reached", hint="is the VPN up?", field="adas", exit_code=3)
    assert ends_with(refusal, ["ps"]) == 3
    assert capsys.readouterr() == ("", "adas: cannot be reached\n\nhint: is the VPN up?\n")


def test_refusal_is_one_json_document_with_json(ends_with: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends_with(refuse("cannot be reached", field="adas", exit_code=3), ["ps", "--json"]) == 3
    captured = capsys.readouterr()
    problem = {"file": "", "line": None, "column": None, "field": "adas", "message": "cannot be reached", "hint": None}
    assert json.loads(captured.out) == {"errors": [problem]}
    assert captured.err == ""


def test_json_after_two_dashes_is_an_argument() -> None:
    assert not errors.wants_json(["logs", "--", "--json"])


def test_fault_is_two_lines_and_a_file(ends_with: Ends, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert ends_with(RuntimeError("no such luck\nat all"), ["run", "--set", "env.A=hush"]) == 70
    what, where = capsys.readouterr().err.splitlines()
    (saved,) = (tmp_path / "faults").iterdir()
    assert what == "podwright met a fault of its own: RuntimeError: no such luck"
    assert where == f"Please send {saved} to the maintainers of Podwright."
    text = saved.read_text()
    assert text.splitlines()[1] == "podwright run --set env.A=..."
    assert "RuntimeError: no such luck" in text
    assert "hush" not in text
    assert saved.stat().st_mode & 0o777 == 0o600


def test_fault_with_json_is_a_document_too(ends_with: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends_with(RuntimeError("no such luck"), ["ps", "--json"]) == 70
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["message"] == "podwright met a fault of its own: RuntimeError: no such luck"


def test_traceback_is_shown_only_when_asked_for(
    ends_with: Ends, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODWRIGHT_DEBUG", "1")
    ends_with(RuntimeError("no such luck"), ["ps"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_secrets_are_kept_out_of_a_saved_fault(
    ends_with: Ends, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "wandb-0123456789")
    monkeypatch.setenv("LICENCE", "licence-0123456789")
    crash.keep_out(["LICENCE"])
    ends_with(RuntimeError("told wandb-0123456789 and licence-0123456789"), ["ps"])
    (saved,) = (tmp_path / "faults").iterdir()
    assert "told <WANDB_API_KEY> and <LICENCE>" in saved.read_text()
    assert "0123456789" not in saved.read_text() + capsys.readouterr().err


def test_fault_without_a_home_is_saved_elsewhere(tmp_path: Path) -> None:
    """A process of its own: Python looks for the folder of temporary files only once."""
    (tmp_path / "file").touch()
    environment = {**os.environ, "PODWRIGHT_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    code = "from podwright.cli.main import main; raise SystemExit(main(['ps'], lambda args: 1 // 0))"
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 70
    (saved,) = tmp_path.glob("podwright-fault-*.txt")
    assert str(saved) in ended.stderr


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "/home/x: there is no space left"),
        (errno.EROFS, "/home/x: it is on a read-only file system"),
        (errno.EACCES, "/home/x: you may not use it"),
    ],
)
def test_what_a_user_can_mend_about_a_disk_is_no_fault(
    number: int, text: str, ends_with: Ends, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends_with(OSError(number, os.strerror(number), "/home/x"), ["ps"]) == 2
    assert capsys.readouterr().err.splitlines()[0] == text


def test_interrupt(ends_with: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends_with(KeyboardInterrupt(), ["ps"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    """The pipe is closed before the command writes, as `| true` may do."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from podwright.cli.main import main; sys.exit(main(['run', '--help']))"
    ended = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_refusal_that_nobody_reads_keeps_its_code() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from podwright.cli.main import main; sys.exit(main(['rn']))"
    ended = subprocess.run([sys.executable, "-c", code], stderr=writing, check=False)
    os.close(writing)
    assert ended.returncode == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(closed: str) -> None:
    code = "import sys; from podwright.cli.main import main; sys.exit(main(['rn']))"
    assert subprocess.run(["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, code], check=False).returncode == 2


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["rn"], "rn: unknown command\n\nhint: did you mean `podwright run`?\n"),
        (
            ["frobnicate"],
            f"frobnicate: unknown command\n\nhint: the commands are {', '.join(COMMANDS)}\n",
        ),
        (["lab", "upp"], "upp: unknown command\n\nhint: did you mean `podwright lab up`?\n"),
        (
            ["lab", "up", "x"],
            'slurm|kubernetes|hosts: "x" is not one of slurm, kubernetes, hosts\n\n'
            "hint: `podwright lab up --help` shows what it takes\n",
        ),
        (["lab"], "missing command\n\nhint: `podwright lab --help` shows what it takes\n"),
        (["render"], "WORKLOAD: is missing\n\nhint: `podwright render --help` shows what it takes\n"),
        (["run", "w", "--detahc"], "--detahc: unknown option\n\nhint: did you mean `--detach`?\n"),
        (["ps", "x"], "x: is one argument too many\n\nhint: `podwright ps --help` shows what it takes\n"),
        (
            ["run", "w", "--repeat", "x"],
            '--repeat: "x" is not a whole number\n\nhint: `podwright run --help` shows what it takes\n',
        ),
        (
            ["run", "w", "--repeat", "0"],
            "--repeat: must be at least 1\n\nhint: `podwright run --help` shows what it takes\n",
        ),
        (
            ["schema", "port"],
            'pod|workload: "port" is not one of pod, workload\n\nhint: `podwright schema --help` shows what it takes\n',
        ),
        (["logs", "x", "--rank"], "--rank: needs a value\n\nhint: `podwright logs --help` shows what it takes\n"),
        (["--verison"], "--verison: unknown option\n\nhint: did you mean `--version`?\n"),
        (["-x"], "-x: unknown option\n\nhint: `podwright --help` shows what it takes\n"),
        (["--all", "ps"], "--all: stands before the command\n\nhint: put it behind: `podwright ps --all`\n"),
        (
            ["lab", "--force", "up"],
            "--force: stands before the command\n\nhint: put it behind: `podwright lab up --force`\n",
        ),
        (["ps", "--all=1"], "--all: takes no value\n\nhint: `podwright ps --help` shows what it takes\n"),
    ],
)
def test_wrong_command_lines(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert capsys.readouterr() == ("", text)


def test_every_option_before_its_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    fine = {"--help", "-h", "--version"}
    for words, row in EVERY.items():
        options = {option for param in make_command(row).params for option in param.opts if option.startswith("-")}
        first, *rest = words.split()
        for option in sorted(options - fine):
            for args in ([option], [option, *words.split()], [first, option, *rest] if rest else [option]):
                assert main(args) == 2, args
    assert "Traceback" not in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from podwright import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"podwright {__version__}\n"
