"""The proof that login and compute nodes see the same folder: a file made here is looked for there."""

from __future__ import annotations

import os

from podwright.clients.ssh import Reach
from podwright.spec.problems import refuse

SRUN = ("srun", "--immediate=3", "--quiet", "--nodes=1", "--ntasks=1", "--time=1", "--mpi=none", "--chdir=/")
PROVE = 'if test -e "$1"; then echo seen; else echo unseen; fi'


def prove_shared(reach: Reach, folder: str) -> None:
    """Refuse a folder that the compute nodes do not see; one that they see is marked as proved.

    Where no node is free at once the job proves it itself: it ends with words when it does not find its files.
    """
    mark = f"{folder}/proof.{os.getpid()}"
    if reach.call(["touch", "--", mark]).code:
        return
    answer = reach.call([*SRUN, "sh", "-c", PROVE, "podwright", mark]).text.strip()
    reach.call(["rm", "-f", "--", mark])
    if answer == "unseen":
        message = f"the compute nodes do not see {folder}, where the run would lie"
        hint = "name a folder on a shared file system, with `folder:` of the scheduler in the pod file"
        raise refuse(message, hint=hint)
    if answer == "seen":
        reach.call(["touch", "--", f"{folder}/proved"])
