"""Who gets into a node by ssh: where the file says `jobs`, those with a job there, whose processes join the job's."""

from __future__ import annotations

from podwright.bringup.plan.host import HostFile, Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm import lines_text
from podwright.bringup.plan.stages.slurm import slurm_site
from podwright.bringup.plan.template import text_of
from podwright.spec.problems import refuse

_HEAD = "# Written by `podwright pod up`: what is changed here by hand is put back."
_EXEMPT = "/etc/security/podwright-access.conf"


def way_in(site: Site, host: str) -> Step | None:
    """Return PAM's rules of sshd on a node; the host that people log in to has none of them."""
    settings = site.pod.bringup
    if settings.ssh_to_nodes == "anybody" or host not in site.compute or site.is_on("login", host):
        return None
    flags = slurm_site(site).settings["PrologFlags"] or ""
    if "contain" not in flags.lower().split(","):
        hint = "add Contain to PrologFlags of `bringup.settings.slurm.conf`, or leave `ssh_to_nodes` out"
        raise refuse(f"Slurm with PrologFlags={flags} knows no jobs to join", hint=hint, field="bringup.ssh_to_nodes")
    exempt = [f"+:{who}:ALL" for who in dict.fromkeys(("root", "(sudo)", settings.user))]
    return Step(
        packages=("libpam-slurm-adopt",),
        files=(
            # First: without it the rules would let nobody in who has no job.
            HostFile(_EXEMPT, lines_text([_HEAD, *exempt, "-:ALL:ALL"])),
            HostFile("/etc/pam.d/sshd", f"{_HEAD}\n{text_of('pam-sshd', exempt=_EXEMPT)}", guards=True),
        ),
    )
