"""How a cluster is reached: the user's own kubeconfig, read as kubectl reads it.

Podwright speaks to the API server with the standard library alone: the official client takes a second to import, which
would be most of the time of a command that looks at a run.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from podwright.clients.reasons import last_line
from podwright.spec.problems import Refusal, refuse, short

INSIDE = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a container of the cluster itself finds its own credentials."""
AGAIN = "log in to the cluster again: that writes it again"


@dataclass(frozen=True)
class Entry:
    """One cluster with one user of it; relative paths are of the file that names them."""

    context: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    namespace: str | None
    cluster_folder: Path
    user_folder: Path

    @property
    def server(self) -> str:
        """Return the address of the API server."""
        return str(self.cluster.get("server", "")).rstrip("/")

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Return how the connection is secured: whom we trust, and by what the server knows us."""
        try:
            context = ssl.create_default_context(cadata=self._authority())
        except (ssl.SSLError, UnicodeError):
            raise _unusable(self.context, "certificate-authority", "is no certificate") from None
        if self.cluster.get("insecure-skip-tls-verify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        pair = self._pair()
        if pair:
            self._load(context, *pair)
        return context

    def _authority(self) -> str | None:
        data = _bytes(self.cluster, "certificate-authority", self.cluster_folder)
        if not data:
            return None
        return data.decode()

    def _pair(self) -> tuple[bytes, bytes] | None:
        user = {**self.user, **_renamed(self._plugin)}
        certificate = _bytes(user, "client-certificate", self.user_folder)
        key = _bytes(user, "client-key", self.user_folder)
        if not certificate or not key:
            return None
        return certificate, key

    def _load(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        """Load a pair through files that only this process can see: the key is written nowhere."""
        files = [os.memfd_create(name) for name in ("certificate", "key")]
        try:
            for file, data in zip(files, (certificate, key), strict=True):
                os.write(file, data)
            context.load_cert_chain(*(f"/proc/self/fd/{file}" for file in files))
        except ssl.SSLError:
            raise _unusable(self.context, "client-certificate", "and its key do not fit, or are none") from None
        finally:
            for file in files:
                os.close(file)

    def headers(self) -> dict[str, str]:
        """Return the headers that say who asks; none where a certificate does."""
        user = self.user
        if "token" in user or "tokenFile" in user:
            text = user.get("token") or (_bytes(user, "tokenFile", self.user_folder) or b"").decode("ascii", "replace")
            return {"Authorization": f"Bearer {str(text).strip()}"}
        if "username" in user:
            pair = f"{user['username']}:{user.get('password', '')}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        token = self._plugin.get("token") or user.get("auth-provider", {}).get("config", {}).get("id-token")
        if not token:
            return {}
        return {"Authorization": f"Bearer {token}"}

    def forget(self) -> bool:
        """Forget a token that has run out, so that it is asked for anew; False where there is nobody to ask."""
        return bool(self.__dict__.pop("_plugin", None))

    @cached_property
    def _plugin(self) -> dict[str, Any]:
        """Return what a credential plugin gives: a token, or a certificate with its key."""
        asked = self.user.get("exec")
        if not asked:
            return {}
        return _run_plugin(asked, self.user_folder)


def _unusable(context: str, name: str, why: str) -> Refusal:
    return refuse(f"{name} of the context {context} in the kubeconfig {why}", hint=AGAIN, exit_code=3)


def _renamed(status: Mapping[str, Any]) -> dict[str, Any]:
    names = {"clientCertificateData": "client-certificate-data", "clientKeyData": "client-key-data"}
    return {
        names[name]: base64.b64encode(str(text).encode()).decode() for name, text in status.items() if name in names
    }


def _bytes(row: Mapping[str, Any], name: str, folder: Path) -> bytes | None:
    if row.get(f"{name}-data"):
        try:
            return base64.b64decode("".join(str(row[f"{name}-data"]).split()), validate=True)
        except ValueError:
            raise refuse(f"{name}-data of the kubeconfig is not base64", hint=AGAIN, exit_code=3) from None
    if row.get(name):
        try:
            return (folder / str(row[name])).read_bytes()
        except OSError as error:
            raise refuse(f"{folder / row[name]} cannot be read: {error.strerror}", exit_code=3) from None
    return None


def _run_plugin(asked: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run a plugin as kubectl does: it gets what it is asked on its environment and answers with JSON."""
    version = asked.get("apiVersion", "client.authentication.k8s.io/v1")
    question = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    own = {row["name"]: str(row["value"]) for row in asked.get("env") or []}
    environ = {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(question)}
    command = str(asked["command"])
    if "/" in command and not command.startswith("/"):
        command = str(folder / command)
    try:
        done = subprocess.run(
            [command, *map(str, asked.get("args") or [])], env=environ, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = str(asked.get("installHint") or "") or None
        raise refuse(f"the credential plugin {command} cannot be run: {error}", hint=hint, exit_code=3) from None
    if done.returncode:
        reason = last_line(done.stderr.decode("utf-8", "replace"), "nothing")
        raise refuse(f"the credential plugin {command} says: {reason}", exit_code=3)
    try:
        status = json.loads(done.stdout)["status"]
    except (ValueError, KeyError, TypeError):
        status = None
    if not isinstance(status, dict):
        raise refuse(f"the credential plugin {command} gave no credentials", exit_code=3)
    return status


def read_entry(file: str | None, context: str | None, environ: Mapping[str, str] = os.environ) -> Entry:
    """Return the context that is named, else the current one, from the file named, else from where kubectl looks."""
    paths = [Path(file).expanduser()] if file else _usual(environ)
    documents = [(path, _read(path)) for path in paths if path.exists()]
    if not documents:
        if file is None and environ.get("KUBERNETES_SERVICE_HOST") and INSIDE.exists():
            return _inside(environ)
        where = ", ".join(map(str, paths))
        raise refuse(f"there is no kubeconfig at {where}", hint="log in to the cluster first", exit_code=3)
    name = context or next((str(row["current-context"]) for _, row in documents if row.get("current-context")), "")
    _, chosen = _find(documents, "contexts", name, [])
    cluster_folder, cluster = _find(documents, "clusters", str(chosen.get("cluster", "")), [name])
    user_folder, user = _find(documents, "users", str(chosen.get("user", "")), [name])
    if not str(cluster.get("server", "")).startswith(("https://", "http://")):
        raise _unusable(name, "server", "is no address that begins with https://")
    return Entry(name, cluster, user, chosen.get("namespace"), cluster_folder, user_folder)


def _usual(environ: Mapping[str, str]) -> list[Path]:
    given = [Path(text) for text in environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    return given or [Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"]


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        row = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise refuse(f"{path} cannot be read: {short(str(error))}", exit_code=3) from None
    if not isinstance(row, dict):
        return {}
    return row


def _find(
    documents: Sequence[tuple[Path, dict[str, Any]]], kind: str, name: str, of: Sequence[str]
) -> tuple[Path, dict[str, Any]]:
    """Return what an entry says and its file's folder; the first file that has it wins."""
    known = []
    for path, row in documents:
        entries = row.get(kind)
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, dict):
                continue
            inner = entry.get(kind[:-1]) or {}
            if entry.get("name") == name and isinstance(inner, dict):
                return path.parent, inner
            known.append(str(entry.get("name")))
    where = ", ".join(str(path) for path, _ in documents)
    message = f'{where} has no {kind[:-1]} "{short(name)}"'
    if of:
        message += f", which the context {of[0]} names"
    hint = f"it has {', '.join(sorted(known))}" if known else None
    raise refuse(message, hint=hint, exit_code=3)


def _inside(environ: Mapping[str, str]) -> Entry:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    at = f"[{host}]" if ":" in host else host
    cluster = {"server": f"https://{at}:{port}", "certificate-authority": "ca.crt"}
    namespace = (INSIDE / "namespace").read_text().strip()
    return Entry("in-cluster", cluster, {"tokenFile": "token"}, namespace, INSIDE, INSIDE)
