"""The user's kubeconfig, read as kubectl reads it."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
import yaml

from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.spec.problems import Refusal

ASKED = {"command": "./plugin", "args": ["a"], "env": [{"name": "B", "value": "c"}]}
CONFIG = {
    "current-context": "lab",
    "contexts": [
        {"name": "lab", "context": {"cluster": "one", "user": "ann", "namespace": "vision"}},
        {"name": "plugin", "context": {"cluster": "one", "user": "plugged"}},
        {"name": "broken", "context": {"cluster": "none", "user": "ann"}},
        {"name": "basic", "context": {"cluster": "one", "user": "old"}},
        {"name": "file", "context": {"cluster": "one", "user": "filed"}},
    ],
    "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:6443/"}}],
    "users": [
        {"name": "ann", "user": {"token": "abc"}},
        {"name": "old", "user": {"username": "ann", "password": "xyz"}},
        {"name": "filed", "user": {"tokenFile": "token.txt"}},
        {
            "name": "plugged",
            "user": {"exec": {"command": "./plugin", "args": ["a"], "env": [{"name": "B", "value": "c"}]}},
        },
    ],
}
PLUGIN = """\
#!/bin/sh
test -n "$KUBERNETES_EXEC_INFO" || exit 1
echo "{\\"status\\": {\\"token\\": \\"$1-$B\\"}}"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "token.txt").write_text("from-a-file\n")
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    return tmp_path / "config"


def test_the_current_context(config: Path) -> None:
    entry = read_entry(str(config), None)
    assert (entry.context, entry.server, entry.namespace) == ("lab", "https://127.0.0.1:6443", "vision")
    assert entry.headers() == {"Authorization": "Bearer abc"}


@pytest.mark.parametrize(
    ("context", "header"),
    [
        ("plugin", "Bearer a-c"),
        ("basic", "Basic " + base64.b64encode(b"ann:xyz").decode()),
        ("file", "Bearer from-a-file"),
    ],
)
def test_who_the_user_is(config: Path, context: str, header: str) -> None:
    assert read_entry(str(config), context).headers() == {"Authorization": header}


def test_several_files_are_one(config: Path, tmp_path: Path) -> None:
    (tmp_path / "first").write_text(yaml.safe_dump({"current-context": "basic"}))
    both = os.pathsep.join([str(tmp_path / "first"), str(config)])
    assert read_entry(None, None, {"KUBECONFIG": both}).context == "basic"


def test_a_token_that_ran_out_is_asked_for_anew(config: Path) -> None:
    entry = read_entry(str(config), "plugin")
    entry.headers()
    (config.parent / "plugin").write_text(PLUGIN.replace("$1-$B", "fresh"))
    assert entry.forget()
    assert entry.headers() == {"Authorization": "Bearer fresh"}
    assert not read_entry(str(config), "lab").forget()


def refused(file: Path, context: str | None) -> str:
    with pytest.raises(Refusal) as caught:
        read_entry(str(file), context).headers()
    assert caught.value.exit_code == 3
    return str(caught.value).replace(str(file.parent), "DIR")


def test_what_is_missing_is_named(config: Path) -> None:
    hint = "hint: it has basic, broken, file, lab, plugin"
    assert refused(config, "none") == f'DIR/config has no context "none"\n\n{hint}'
    words = 'DIR/config has no cluster "none", which the context broken names'
    assert refused(config, "broken") == f"{words}\n\nhint: it has one"
    assert refused(config.parent / "other", None).startswith("there is no kubeconfig at DIR/other\n")


def test_a_plugin_that_fails_is_quoted(config: Path) -> None:
    (config.parent / "plugin").write_text("#!/bin/sh\necho log in first >&2\nexit 1\n")
    assert refused(config, "plugin") == "the credential plugin DIR/plugin says: log in first"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"certificate-authority-data": "!!!"}, "certificate-authority-data of the kubeconfig is not base64"),
        (
            {"certificate-authority-data": base64.b64encode(b"-----BEGIN CERTIFICATE-----\nx\n").decode()},
            "certificate-authority of the context lab in the kubeconfig is no certificate",
        ),
        ({"certificate-authority": "/nowhere"}, "/nowhere cannot be read: No such file or directory"),
        ({"server": "cluster:6443"}, "server of the context lab in the kubeconfig is no address"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_said_in_words(tmp_path: Path, change: dict[str, str], message: str) -> None:
    cluster = {"server": "https://127.0.0.1:6443", **change}
    row = {**CONFIG, "clusters": [{"name": "one", "cluster": cluster}]}
    (tmp_path / "config").write_text(yaml.safe_dump(row))
    with pytest.raises(Refusal) as caught:
        _ = read_entry(str(tmp_path / "config"), None).tls
    assert message in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"tokenFile": "gone.txt"}, "gone.txt cannot be read"),
        ({"exec": {"command": "echo"}}, "the credential plugin echo gave no credentials"),
        ({"client-certificate-data": "YQ==", "client-key-data": "Yg=="}, "and its key do not fit, or are none"),
    ],
)
def test_a_user_that_cannot_be_used_is_said_in_words(tmp_path: Path, user: dict[str, object], message: str) -> None:
    row = {**CONFIG, "users": [{"name": "ann", "user": user}]}
    (tmp_path / "config").write_text(yaml.safe_dump(row))
    entry = read_entry(str(tmp_path / "config"), None)
    with pytest.raises(Refusal) as caught:
        _ = entry.headers(), entry.tls
    assert message in str(caught.value)


@pytest.mark.parametrize("broken", [{"contexts": "lab"}, {"contexts": ["lab"]}, {"contexts": [{"name": "lab"}]}])
def test_a_file_of_another_shape_is_said_in_words(tmp_path: Path, broken: dict[str, object]) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump({**CONFIG, **broken}))
    with pytest.raises(Refusal, match="has no"):
        read_entry(str(tmp_path / "config"), None)
