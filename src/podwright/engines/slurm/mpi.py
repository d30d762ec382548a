"""How the ranks of an MPI program are started on a Slurm cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.engines.slurm.resources import unbound

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.engines.slurm.facts import SlurmFacts


def mpi_command(request: Request, facts: SlurmFacts) -> list[str]:
    """Return what starts all ranks of an MPI program from node 0's pilot; empty where plain mpirun does.

    The ranks are a second step beside that of the pilots, which holds all there is. Cores are the pilots' to bind.
    """
    workload = request.workload
    if workload.launcher != "mpi" or workload.runtime == "container":
        return []
    each, world = workload.ranks_per_node, workload.nodes * workload.ranks_per_node
    if facts.mpi_plugin is None:
        spread = ["--map-by", f"ppr:{each}:node:oversubscribe", "--bind-to", "none", "-np", str(world)]
        return ["env", "SLURM_OVERLAP=1", "mpirun", *spread]
    cpus = workload.resources.cpus or each
    size = [f"--nodes={workload.nodes}", f"--ntasks={world}", f"--ntasks-per-node={each}", "--distribution=block"]
    share = [f"--cpus-per-task={max(cpus // each, 1)}", "--mem=0"]  # else what the pilots' step asked for counts here
    command = ["srun", f"--mpi={facts.mpi_plugin}", "--overlap", "--export=ALL", *size, *share, *unbound(facts)]
    if cpus < each:
        command.append("--overcommit")
    return [*command, "--kill-on-bad-exit=1"]
