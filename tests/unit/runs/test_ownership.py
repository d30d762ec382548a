"""A home is this user's alone."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from podwright.runs import Home
from podwright.runs.ownership import check_owner
from podwright.spec.problems import Refusal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_home_that_all_may_write_is_refused(home: Path, mode: int) -> None:
    home.chmod(mode)
    with pytest.raises(Refusal) as refused:
        Home.open(home)
    [problem] = refused.value.problems
    assert problem.message == f"{home} may be written by everybody: others could put programs there that run as you"
    hint = "set PODWRIGHT_HOME to a folder of your own"
    assert problem.hint in (hint, f"{hint}, or `chmod 700 {home}` if nobody has")
    assert ("chmod" in str(problem.hint)) == (mode != 0o1777), "/tmp must stay as it is"
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("mode", "done"),
    [(0o770, "written by its group"), (0o2775, "written by its group")]
    + [(mode, "entered by others") for mode in (0o755, 0o750, 0o711, 0o704)],
)
def test_a_home_that_others_may_enter_is_tightened_and_said_once(
    home: Path, mode: int, done: str, caplog: pytest.LogCaptureFixture
) -> None:
    home.chmod(mode)
    for _ in range(2):
        Home.open(home)
    assert home.stat().st_mode & 0o077 == 0
    assert caplog.messages == [f"{home} could be {done}; it is yours alone now (mode 0700)"]


def test_a_home_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root could give a folder away: this user becomes another one instead."""
    owner = home.stat().st_uid
    monkeypatch.setattr("podwright.runs.ownership.getuid", lambda: owner + 1)
    name = pwd.getpwuid(os.getuid()).pw_name
    with pytest.raises(Refusal, match=f"{home} belongs to {name}, not to you"):
        check_owner(home)
