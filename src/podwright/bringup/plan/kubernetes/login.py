"""How a cluster knows people: by an issuer of OIDC, or by Dex, which makes one of the site's LDAP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

Object = dict[str, Any]
CLIENT = "podwright"
DEX_PORT = 32000
_HTTPS_PORT = 5554
_CERTIFICATE = "dex-tls"
_FOLDER = "/etc/dex/tls"
# What each kind cannot do without, and how it is written.
_NEEDED = {
    "htpasswd": {},
    "oidc": {"issuer": "`issuer: https://login.example`", "client": "`client: podwright`"},
    "ldap": {"server": "`server: ldaps://ldap.example`", "base": '`base: "ou=people,dc=example"`'},
}


def api_arguments(site: Site) -> dict[str, str]:
    """Return what the API server is told of who may say who people are."""
    login = site.pod.bringup.login
    lacking = [(name, how) for name, how in _NEEDED[login.kind].items() if not getattr(login, name)]
    if lacking:
        rows = [
            (f"bringup.login.{name}", f"is missing: login by {login.kind} needs it", f"write {how}")
            for name, how in lacking
        ]
        raise site.pod.refusal(rows)
    issuers = {"oidc": (login.issuer, login.client), "ldap": (_dex_url(site), CLIENT)}
    if login.kind not in issuers:
        return {}
    issuer, client = issuers[login.kind]
    claims = {"oidc-username-claim": "email", "oidc-groups-claim": "groups"}
    return {"oidc-issuer-url": str(issuer), "oidc-client-id": str(client), **claims}


def with_ldap(site: Site) -> bool:
    """Return whether people are known by LDAP, so that the cluster needs Dex."""
    return site.pod.bringup.login.kind == "ldap"


def dex_values(site: Site) -> Object:
    """Return Dex' values: it asks the site's LDAP over TLS, and answers on a port of every node."""
    files = {"tlsCert": f"{_FOLDER}/tls.crt", "tlsKey": f"{_FOLDER}/tls.key"}
    return {
        "https": {"enabled": True},
        "service": {"type": "NodePort", "ports": {"https": {"port": _HTTPS_PORT, "nodePort": DEX_PORT}}},
        "volumes": [{"name": "tls", "secret": {"secretName": _CERTIFICATE}}],
        "volumeMounts": [{"name": "tls", "mountPath": _FOLDER}],
        "config": {
            "issuer": _dex_url(site),
            "storage": {"type": "kubernetes", "config": {"inCluster": True}},
            "web": {"https": f"0.0.0.0:{_HTTPS_PORT}", **files},
            "connectors": [{"type": "ldap", "id": "ldap", "name": "LDAP", "config": _connector(site)}],
            # Who logs in has no secret to keep: it is a program on a person's own machine.
            "staticClients": [
                {"id": CLIENT, "name": "kubectl", "public": True, "redirectURIs": ["http://localhost:8000"]}
            ],
        },
    }


def _connector(site: Site) -> Object:
    login = site.pod.bringup.login
    server = urlsplit(login.server or "")
    people = {"username": "uid", "idAttr": "uid", "emailAttr": "mail", "nameAttr": "cn"}
    members = {"userAttr": "DN", "groupAttr": "member"}
    groups = {"filter": "(objectClass=groupOfNames)", "nameAttr": "cn", "userMatchers": [members]}
    return {
        "host": f"{server.hostname}:{server.port or 636}",
        "insecureNoSSL": False,
        "userSearch": {"baseDN": login.base, "filter": "(objectClass=person)", **people},
        "groupSearch": {"baseDN": login.base, **groups},
    }


def _dex_url(site: Site) -> str:
    """Return where Dex is found: by the first management host, as its port is open on every node."""
    manager = next(group.hosts[0] for group in site.pod.nodes if "management" in group.roles)
    return f"https://{manager}:{DEX_PORT}"
