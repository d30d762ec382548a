"""Slurm on a pod's hosts: its database, its accounting, its controller, then the nodes that run jobs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from podwright.bringup.plan import accounts, job_hooks
from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.job_hooks import Hooks
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm import SlurmSite, own_partitions, render
from podwright.bringup.plan.template import text_of
from podwright.spec.problems import refuse

FOLDER = "/etc/slurm"
_OWNER = "slurm"
# Slurm opens the PMIx library by the plain name that only the development package gives it.
_CLIENT = ("slurm-client", "libpmix-dev")
_DATABASE = "slurm_acct_db"
_LOGS = HostFolder("/var/log/slurm", owner=_OWNER, group=_OWNER)
_PIDS = HostFolder("/run/slurm", owner=_OWNER, group=_OWNER)
# /run is empty after a boot.
_PIDS_KEPT = HostFile("/etc/tmpfiles.d/podwright-slurm.conf", "d /run/slurm 0755 slurm slurm -\n")
_ACCOUNTS, _TEAMS = "/usr/lib/podwright/slurm_accounts.py", f"{FOLDER}/podwright-teams.json"
_EXECUTABLE = frozenset({"prolog.sh", "epilog.sh", "health.sh"})
# RDMA pins memory, and a job has the limits of the daemon that starts it.


def database(site: Site, host: str) -> Step | None:
    """Return MariaDB with Slurm's database, which knows the daemon by its user, over its socket: without a password."""
    if not _is_controller(site, host):
        return None
    grant = (
        f"CREATE DATABASE IF NOT EXISTS {_DATABASE};"
        f" CREATE USER IF NOT EXISTS '{_OWNER}'@'localhost' IDENTIFIED VIA unix_socket;"
        f" GRANT ALL ON {_DATABASE}.* TO '{_OWNER}'@'localhost';"
    )
    grants = HostCommand(
        "Slurm's database",
        check=("mariadb", "--batch", "--skip-column-names", f"--execute=SHOW GRANTS FOR '{_OWNER}'@'localhost'"),
        sees=f"GRANT ALL PRIVILEGES ON `{_DATABASE}`.*",
        run=("mariadb", f"--execute={grant}"),
    )
    return Step(
        packages=("mariadb-server",),
        files=(HostFile("/etc/mysql/mariadb.conf.d/90-podwright.cnf", text_of("mariadb.cnf"), restarts=("mariadb",)),),
        services=("mariadb",),
        commands=(grants,),
    )


def accounting(site: Site, host: str) -> Step | None:
    """Return slurmdbd, and the cluster's entry in it."""
    if not _is_controller(site, host):
        return None
    text = _files(site)["slurmdbd.conf"]
    cluster = HostCommand(
        "the cluster's account",
        check=("sacctmgr", "--noheader", "--parsable2", "list", "cluster", "format=cluster"),
        sees=site.name,
        run=("sacctmgr", "--immediate", "add", "cluster", site.name),
    )
    teams = HostCommand(
        "accounts and limits of teams",
        check=("/usr/bin/python3", _ACCOUNTS, "check", _TEAMS),
        sees="same",
        run=("/usr/bin/python3", _ACCOUNTS, "apply", _TEAMS),
    )
    program = (files("podwright.bringup.on_host") / "slurm_accounts.py").read_text()
    return Step(
        packages=("munge", "slurmdbd", *_CLIENT),
        folders=(HostFolder(FOLDER), HostFolder("/usr/lib/podwright"), _LOGS, _PIDS),
        files=(
            _munge_key(),
            _PIDS_KEPT,
            HostFile(_ACCOUNTS, program, "0755"),
            HostFile(_TEAMS, accounts.accounts_text(site.pod)),
            _conf("slurm.conf", _files(site)["slurm.conf"], ()),
            HostFile(f"{FOLDER}/slurmdbd.conf", text, "0600", _OWNER, _OWNER, restarts=("slurmdbd",)),
        ),
        services=("munge", "slurmdbd"),
        commands=(cluster, teams),
        releases=_releases(site, "slurmdbd", *_CLIENT),
    )


def controller(site: Site, host: str) -> Step | None:
    """Return slurmctld."""
    if not _is_controller(site, host):
        return None
    return Step(
        packages=("slurmctld",),
        folders=(HostFolder(state_folder(site), "0700", _OWNER, _OWNER),),
        files=_confs(site, "slurmctld"),
        services=("slurmctld",),
        releases=_releases(site, "slurmctld"),
    )


def backup(site: Site, host: str) -> Step | None:
    """Return the slurmctld that takes over when the first one does not answer."""
    if site.scheduler is None or site.pod.bringup.roles.backup != host:
        return None
    return Step(
        packages=("munge", "slurmctld", *_CLIENT),
        folders=(HostFolder(FOLDER), _LOGS, _PIDS),
        files=(_munge_key(), _PIDS_KEPT, *_confs(site, "slurmctld")),
        services=("munge", "slurmctld"),
        releases=_releases(site, "slurmctld", *_CLIENT),
    )


def state_folder(site: Site) -> str:
    """Return where slurmctld keeps its state: where a backup takes over, both must see it."""
    if site.pod.bringup.roles.backup is None:
        return "/var/spool/slurmctld"
    shared = site.shared_mounts
    if not shared:
        hint = "let a storage of the pod have `mount:`, or leave `backup` out"
        raise refuse("a backup controller needs a file system that both see", hint=hint, field="bringup.roles.backup")
    return f"{shared[0]}/.slurm-{site.name}"


def _enroot(site: Site) -> tuple[tuple[HostFolder, ...], tuple[HostFile, ...]]:
    """Return Enroot's files where the scheduler starts containers with Pyxis, which must be built for its Slurm."""
    if site.scheduler is None or site.scheduler.container != "pyxis":
        return (), ()
    folders = tuple(HostFolder(f"/var/{place}/enroot", "1777") for place in ("cache", "lib"))
    kept = HostFile("/etc/tmpfiles.d/podwright-enroot.conf", "d /run/enroot 1777 root root -\n")
    return folders, (HostFile("/etc/enroot/enroot.conf", text_of("enroot.conf")), kept)


def nodes(site: Site, host: str) -> Step | None:
    """Return what a host has that starts jobs, or from which people submit them."""
    if host not in site.slurm_hosts or (_is_controller(site, host) and host not in site.compute):
        return None
    if host not in site.compute:
        files = (_munge_key(), *_confs(site, ""))
        return Step(
            packages=("munge", *_CLIENT),
            folders=(HostFolder(FOLDER),),
            files=files,
            services=("munge",),
            releases=_releases(site, *_CLIENT),
        )
    hooks = _hooks(site)[host]
    scripts = [
        HostFile(f"{hooks.folder}/{name}", text, "0755" if name in _EXECUTABLE else "0644")
        for name, text in job_hooks.render(hooks).items()
    ]
    enroot_folders, enroot_files = _enroot(site)
    packages = ("munge", "slurmd", *_CLIENT, *(("enroot",) if enroot_files else ()))
    limits = HostFile(
        "/etc/systemd/system/slurmd.service.d/podwright.conf", text_of("slurmd.conf"), restarts=("slurmd",)
    )
    return Step(
        packages=packages,
        folders=(
            HostFolder(FOLDER),
            HostFolder(hooks.folder),
            HostFolder("/var/spool/slurmd"),
            HostFolder("/etc/systemd/system/slurmd.service.d"),
            _LOGS,
            _PIDS,
            *enroot_folders,
        ),
        files=(_munge_key(), _PIDS_KEPT, limits, *scripts, *enroot_files, *_confs(site, "slurmd")),
        services=("munge", "slurmd"),
        releases=_releases(site, "slurmd", *_CLIENT),
    )


def _releases(site: Site, *packages: str) -> dict[str, str]:
    """Return the release that Slurm's packages are to have; left out of the pod's file, what is there will do.

    An upgrade comes in the order of the steps, which is Slurm's own: accounting, controller, backup, then nodes.
    """
    release = site.pod.bringup.versions.slurm
    return {name: release for name in packages if release and name.startswith("slurm")}


def _is_controller(site: Site, host: str) -> bool:
    return site.scheduler is not None and site.is_on("controller", host)


def _munge_key() -> HostFile:
    return HostFile("/etc/munge/munge.key", "", "0400", "munge", "munge", "munge_key", restarts=("munge",))


def _confs(site: Site, service: str) -> tuple[HostFile, ...]:
    """Return the files that all of Slurm's hosts have; `service` reads them when it starts."""

    def make(site: Site) -> tuple[HostFile, ...]:
        restarts = (service,) if service else ()
        return tuple(_conf(name, text, restarts) for name, text in _files(site).items() if name != "slurmdbd.conf")

    return site.remember(f"files of {service}", make)


def _conf(name: str, text: str, restarts: tuple[str, ...]) -> HostFile:
    return HostFile(f"{FOLDER}/{name}", text, restarts=restarts)


def slurm_site(site: Site) -> SlurmSite:
    """Return the facts of the site that Slurm's files are made of; what the pod's file sets comes last."""
    settings = site.pod.bringup.settings
    ours = {**accounts.settings(site.pod), **job_hooks.settings(Hooks())}
    return SlurmSite(
        controller=site.roles["controller"],
        controller_address=site.addresses[site.roles["controller"]],
        version=site.slurm_version,
        backup=_backup_name(site),
        state=state_folder(site),
        settings={**ours, "PrologFlags": "Alloc,Contain", **settings.conf},
        cgroup=settings.cgroup,
        partitions=own_partitions(
            settings.partitions, {team.name: accounts.account_of(team) for team in site.pod.teams}
        ),
        lines=settings.lines,
    )


def _backup_name(site: Site) -> str:
    host = site.pod.bringup.roles.backup
    return f"{host}({site.addresses[host]})" if host else ""


def _files(site: Site) -> Mapping[str, str]:
    return site.remember("slurm files", _render)


def _render(site: Site) -> Mapping[str, str]:
    assert site.scheduler is not None
    return render(site.pod, site.scheduler, slurm_site(site))


def _hooks(site: Site) -> Mapping[str, Hooks]:
    return site.remember("slurm hooks", _hooks_by_host)


def _hooks_by_host(site: Site) -> Mapping[str, Hooks]:
    assert site.scheduler is not None
    by_host: dict[str, Hooks] = {}
    for hosts, hooks in job_hooks.hooks_of(site.pod, site.scheduler):
        by_host |= dict.fromkeys(hosts, hooks)
    return by_host
