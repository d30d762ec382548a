"""The Python client is made of the table, and works: over a socket, behind a real nginx, with streams that go on."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from podwright.console.client import ConsoleClient
from podwright.pilot.system.links import free_port
from scripts.make_client import TARGET, client_text
from tests.unit.console.conftest import GOOD, Site, listening

SECONDS = 120
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location /pod/ {{ proxy_pass http://127.0.0.1:{console}; proxy_buffering off; proxy_read_timeout 1h; }}
  }}
}}
"""


def bearer(site: Site, *rights: str) -> str:
    return site.token(*rights)["Authorization"].removeprefix("Bearer ")


def test_it_is_as_the_table_makes_it() -> None:
    assert client_text() == TARGET.read_text(encoding="utf-8")


def test_it_asks_and_acts(site: Site) -> None:
    with listening(site) as port:
        client = ConsoleClient(f"http://127.0.0.1:{port}", bearer(site, "look", "steer"))
        assert [run["id"] for run in client.list_runs(where="state=succeeded")] == [GOOD]
        assert client.tag_runs((GOOD,), added=("paper",))["tags"] == ["paper"]
        assert client.show_run(GOOD)["tags"] == ["paper"]
        with pytest.raises(HTTPError, match="403") as refused:
            client.list_tokens()
        refused.value.close()


@contextmanager
def nginx(folder: Path, console: int) -> Iterator[int]:
    """Run Debian's nginx before a console."""
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx: apt-get install -y nginx-light")
    port = free_port("127.0.0.1")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, console=console))
    with subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL) as program:
        try:
            yield port
        finally:
            program.kill()


def answered(request: Request) -> tuple[int, str]:
    """Ask until something listens there."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            with urlopen(request, timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_behind_nginx_all_links_stay_below_its_path(site: Site, tmp_path: Path) -> None:
    with listening(site, "/pod") as console, nginx(tmp_path, console) as port:
        url = f"http://127.0.0.1:{port}/pod"
        assert answered(Request(f"{url}/runs"))[0] == 401
        headers = site.token("look")
        status, page = answered(Request(f"{url}/runs", headers=headers))
        assert status == 200
        links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', page))
        assert all(link.startswith("/pod/") for link in links)
        assert answered(Request(f"http://127.0.0.1:{port}/runs", headers=headers))[0] == 404
        with urlopen(Request(f"{url}/api/v1/events", headers=headers), timeout=SECONDS) as stream:
            lines = [stream.readline() for _ in range(4)]
        assert lines[0] == b"retry: 3000\n"
        assert lines[2].startswith(b"id: ")


def test_a_stream_goes_on_where_it_was_lost(site: Site) -> None:
    site.session.home.sync()
    with listening(site) as port:
        url, headers = f"http://127.0.0.1:{port}/api/v1/events", site.token("look", "steer")

        def first_event(last: str) -> dict[str, str]:
            with urlopen(Request(url, headers={**headers, "Last-Event-ID": last}), timeout=SECONDS) as stream:
                lines = [stream.readline().decode() for _ in range(5)]
            return dict(line.rstrip().split(": ", 1) for line in lines if ": " in line)

        here = first_event("")["id"]
        client = ConsoleClient(f"http://127.0.0.1:{port}", bearer(site, "steer"))
        client.note_run(GOOD, "while nobody listened")
        after = first_event(here)
        assert after["event"] == "change"
        assert GOOD in after["data"]
        assert first_event("unknown-7")["event"] == "reset"
