"""The lab's user: who called sudo, or one of its own; nobody's password comes into a lab."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from podwright.lab.user import FIRST_UID, LabUser, account_files, lab_user

PASSWD = "root:x:0:0:root:/root:/bin/bash\npod:x:77:77::/home/pod:/bin/sh\n"


def test_root_alone_gets_a_user_that_exists_only_in_the_lab() -> None:
    user = lab_user({})
    assert (user.name, user.gid) == ("pod", user.uid)
    assert user.uid >= FIRST_UID
    assert user.uid not in {entry.pw_uid for entry in pwd.getpwall()}


def test_who_called_sudo_is_the_user() -> None:
    someone = next(entry for entry in pwd.getpwall() if entry.pw_uid)
    user = lab_user({"SUDO_UID": str(someone.pw_uid), "SUDO_USER": someone.pw_name})
    assert (user.name, user.uid, user.gid) == (someone.pw_name, someone.pw_uid, someone.pw_gid)


def test_a_caller_that_no_file_knows_keeps_name_and_number() -> None:
    environ = {"SUDO_UID": "3999999", "SUDO_GID": "3999998", "SUDO_USER": "far"}
    assert lab_user(environ) == LabUser("far", 3999999, 3999998)


@pytest.mark.parametrize("uid", ["0", "", "x"])
def test_root_through_sudo_is_root_alone(uid: str) -> None:
    assert lab_user({"SUDO_UID": uid}).name == "pod"


def test_accounts() -> None:
    files = account_files(LabUser("pod", 20001, 20001), Path("/lab/home/pod"), PASSWD, "root:x:0:\n")
    assert files == {
        "passwd": "root:x:0:0:root:/root:/bin/bash\npod:x:20001:20001:Lab user:/lab/home/pod:/bin/bash\n",
        "group": "root:x:0:\npod:x:20001:\n",
        "shadow": "root:*:19000:0:99999:7:::\npod:*:19000:0:99999:7:::\n",
    }


def test_a_group_that_is_there_stays() -> None:
    files = account_files(LabUser("ann", 1000, 100), Path("/h"), PASSWD, "root:x:0:\nusers:x:100:ann\n")
    assert files["group"] == "root:x:0:\nusers:x:100:ann\n"
