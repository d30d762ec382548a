"""A network of its own with the netboot server as bring-up sets it up, and machines that QEMU emulates in software."""

from __future__ import annotations

import os
import shutil
import ssl
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.bringup.apply import authority
from podwright.bringup.apply.boot_progress import NodeState, node_states
from podwright.bringup.plan.boot_scripts import boot_files
from podwright.bringup.plan.netboot import NetbootPlaces, dnsmasq_text, machines, nginx_text, token_command
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.template import text_of
from podwright.lab import processes

UEFI = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
UEFI_SETTINGS = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
EMULATED_S = 1800.0
"""For what an emulated machine does, however busy the real one is."""


@dataclass
class BootNetwork:
    """A bridge with the server's address, the server's programs, and a port for every machine."""

    site: Site
    name: str
    folder: Path
    places: NetbootPlaces
    stack: ExitStack
    ca: str
    """The certificate of the authority that signed who the server is."""

    def inside(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]

    def as_host(self, host: str, *command: str) -> list[str]:
        """Gives a command in a network of its own that has the host's address, as its installer has; once a test."""
        name = f"{self.name}h"
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.stack.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
        for where, words in (
            (self.name, f"link add host0 type veth peer name eth0 netns {name}"),
            (self.name, "link set host0 master pxe0 up"),
            (name, f"addr add {self.site.addresses[host]}/24 dev eth0"),
            (name, "link set eth0 up"),
        ):
            subprocess.run(["ip", "-n", where, *words.split()], check=True)
        return ["ip", "netns", "exec", name, *command]

    def start(self, *command: str, name: str = "") -> subprocess.Popen[bytes]:
        """Starts a program in the network; it ends with the test."""
        log = (self.folder / f"{name or Path(command[0]).name}.out").open("wb")
        process = subprocess.Popen(self.inside(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stack.callback(log.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.terminate)
        return process

    def machine(
        self, host: str, memory_mib: int = 256, disk: Path | None = None, firmware: str = "bios", knows: str = ""
    ) -> list[str]:
        """Gives the command of a host's machine: its card first, then its disk where it has one.

        `knows`: the certificate of the authority that its firmware believes.
        """
        macs = list(machines(self.site).items())
        (number, mac) = next((number, mac) for number, (mac, name) in enumerate(macs) if name == host)
        parts = [
            *("-accel", "tcg,thread=multi", "-cpu", "max,la57=off,pku=off", "-smp", "2", "-m", str(memory_mib)),
            # GRUB waits for ever on a machine that has no graphics card at all.
            *("-nodefaults", "-display", "none", "-vga", "std", "-serial", f"file:{self.folder}/{host}.serial"),
            *("-netdev", f"tap,id=n0,ifname=tap{number},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=n0,mac={mac},bootindex=1"),
            *("-object", "rng-random,filename=/dev/urandom,id=r0", "-device", "virtio-rng-pci,rng=r0"),
        ]
        if disk is not None:
            parts += ["-drive", f"file={disk},if=none,id=d0,format=raw,cache=unsafe"]
            parts += ["-device", "virtio-blk-pci,drive=d0,bootindex=2"]
        if firmware == "uefi":
            parts += self._uefi(host)
        if knows:
            (self.folder / f"{host}.ca").write_bytes(signature_list(knows))
            parts += ["-fw_cfg", f"name=etc/edk2/https/cacerts,file={self.folder}/{host}.ca"]
            # It would ask for a boot by PXE first, and wait minutes for an answer.
            for version in (4, 6):
                parts += ["-fw_cfg", f"name=opt/org.tianocore/IPv{version}PXESupport,string=n"]
        return ["qemu-system-x86_64", *parts]

    def _uefi(self, host: str) -> list[str]:
        """Gives what makes a machine one with UEFI; its settings last as long as the test does."""
        settings = self.folder / f"{host}.settings"
        shutil.copy(UEFI_SETTINGS, settings)
        drives = (f"readonly=on,file={UEFI}", f"file={settings}")
        # Without the card's own iPXE it is the firmware that asks for something to boot.
        parts = ["-global", "virtio-net-pci.romfile="]
        for drive in drives:
            parts += ["-drive", f"if=pflash,format=raw,{drive}"]
        return parts

    def states(self) -> dict[str, NodeState]:
        leases, log = Path(self.places.leases), Path(self.places.log)
        texts = [path.read_text() if path.exists() else "" for path in (leases, log)]
        done = [path.name for path in Path(f"{self.places.root}/done").iterdir()]
        return node_states(self.site, texts[0], texts[1], done)

    def requests(self) -> list[list[str]]:
        """Gives what the server was asked: time, address, method, path, status and bytes of each."""
        path = Path(self.places.log)
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def reaches(self, host: str, *states: str) -> None:
        """Waits until a host is in one of these states."""

        def there() -> bool:
            return self.states()[host].state in states

        came = emulated(there)
        serial = (self.folder / f"{host}.serial").read_text(errors="replace")
        assert came, f"{host} is {self.states()[host].state}, not {' or '.join(states)}:\n{serial[-3000:]}"

    def ssh(self, host: str, line: str, give: bytes = b"") -> str:
        """Runs a line on a host as the one who brings it up; gives what it printed."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
        words = [word for option in options for word in ("-o", option)]
        login = f"{self.site.pod.bringup.user}@{self.site.addresses[host]}"
        command = self.inside("ssh", "-i", str(self.folder / "key"), *words, login, line)
        done = subprocess.run(command, input=give, capture_output=True, check=False)
        assert done.returncode == 0, f"{host}: {line}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return done.stdout.decode()


def signature_list(certificate: str) -> bytes:
    """Gives a certificate as UEFI keeps those that it believes: EFI_SIGNATURE_LIST, its kind and its owner by GUID."""
    content = ssl.PEM_cert_to_DER_cert(certificate)
    kind, owner = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072"), uuid.UUID(int=0)
    size = 16 + len(content)
    return kind.bytes_le + struct.pack("<III", 28 + size, 0, size) + owner.bytes_le + content


def emulated(what: Callable[[], Any]) -> bool:
    """Waits for something that an emulated machine does."""
    return processes.until(what, EMULATED_S, every_s=1.0)


@contextmanager
def boot_network(site: Site, folder: Path) -> Iterator[BootNetwork]:
    """Starts the server with what is rendered for it, in a network of its own; all ends with the block."""
    # The server's own user passes through here.
    folder.chmod(0o755)
    places = NetbootPlaces(
        root=f"{folder}/http",
        installer=f"{folder}/installer",
        leases=f"{folder}/leases",
        log=f"{folder}/requests",
        run=str(folder),
        keys=f"{folder}/keys",
        user="root",
        tokens=f"{folder}/tokens",
    )
    for path, text in boot_files(site).items():
        file = Path(places.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("done", "waiting"):
        (Path(places.root) / name).mkdir()
    Path(places.tokens).write_text(text_of("netboot-tokens.sh", root=places.root, user=places.user))
    subprocess.run(token_command(site, places).run, check=True, capture_output=True)
    Path(places.installer).mkdir()
    keys = authority.new("podwright boot", kind=authority.RSA)
    pair = authority.sign(keys, "netboot", [site.addresses["m1"]], kind=authority.RSA)
    Path(places.keys).mkdir(mode=0o700)
    for end, part in (("crt", "certificate"), ("key", "key")):
        Path(places.keys, f"netboot.{end}").write_text(pair[f"netboot_{part}"])
    with ExitStack() as stack:
        network = BootNetwork(site, f"pxe{os.getpid()}", folder, places, stack, keys["ca_certificate"])
        wire(network)
        conf, web = folder / "dnsmasq.conf", folder / "nginx.conf"
        conf.write_text(dnsmasq_text(site, places))
        web.write_text(nginx_text(site, places))
        network.start("dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", f"--conf-file={conf}")
        network.start("nginx", "-c", str(web), "-g", "daemon off;")
        yield network


def wire(network: BootNetwork) -> None:
    """Makes a network with a bridge that the server listens on, and a port for each machine."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    name = network.name
    ip("netns", "add", name)
    network.stack.callback(ip, "netns", "del", name)
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "add", "pxe0", "type", "bridge", "forward_delay", "0")
    ip("-n", name, "addr", "add", "10.88.0.1/24", "dev", "pxe0")
    ip("-n", name, "link", "set", "pxe0", "up")
    for number in range(len(machines(network.site))):
        ip("-n", name, "tuntap", "add", f"tap{number}", "mode", "tap")
        ip("-n", name, "link", "set", f"tap{number}", "master", "pxe0", "up")
