"""`podwright console`: it says where it is, serves what it says, and refuses what it cannot be."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from podwright.console.serve import ConsoleWords, serve_console
from podwright.spec import Refusal

SECONDS = 120


def test_the_link_it_prints_leads_in_below_its_path(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("podwright"), "console", "--listen", "127.0.0.1:0", "--json"]
    environment = {**os.environ, "PODWRIGHT_HOME": str(tmp_path / "home")}
    with subprocess.Popen([*command, "--base-path", "/a/b"], stdout=subprocess.PIPE, env=environment) as program:
        assert program.stdout is not None
        document = b""
        while not document.rstrip().endswith(b"}"):
            line = program.stdout.readline()
            assert line, f"it ended after {document!r}"
            document += line
        url = json.loads(document)["url"]
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        with browser.open(url, timeout=SECONDS) as answer:
            assert answer.geturl() == url.partition("enter")[0]
            assert "Nothing has run this week." in answer.read().decode()
        program.send_signal(signal.SIGINT)
        program.wait(SECONDS)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (ConsoleWords("8080"), "--listen"),
        (ConsoleWords("127.0.0.1:eighty"), "--listen"),
        (ConsoleWords("127.0.0.1:99999"), "--listen"),
        (ConsoleWords("192.0.2.1:0"), "--listen"),
        (ConsoleWords(base_path="podwright"), "--base-path"),
        (ConsoleWords(base_path="/a//b"), "--base-path"),
        (ConsoleWords(base_path='/"><script>'), "--base-path"),
    ],
)
def test_where_it_cannot_be(words: ConsoleWords, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        serve_console(words, print)
    assert refused.value.problems[0].field == field


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Refusal, match="cannot listen"):
            serve_console(ConsoleWords(place), print)
