"""Bring-up: from hosts with an operating system to a pod that runs workloads, and whether they still are as planned.

`Bringup` is the door: `podwright.bringup_of(pod)` makes one with the parts of the user's home. Names are imported when
they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.bringup.apply.backups import BackupResult
    from podwright.bringup.apply.boot_progress import NodesResult
    from podwright.bringup.apply.controllers import MachinesResult, PodMachines, PowerChange
    from podwright.bringup.apply.drift import HostChanges, HostStatus, PlanResult, StatusResult
    from podwright.bringup.apply.known_pods import kept_text
    from podwright.bringup.apply.playbook import ApplyProgress
    from podwright.bringup.apply.restoring import RestoreResult
    from podwright.bringup.apply.validate import ValidationResult
    from podwright.bringup.apply.vault import vault_of
    from podwright.bringup.apply.windows import ChangeWindow, start_of
    from podwright.bringup.bringup import Bringup, DownResult, RemoveResult, UpResult
    from podwright.bringup.parts import BringupParts, PodRegistry
    from podwright.bringup.progress import BringupProgress, OnProgress

__all__ = [
    "ApplyProgress",
    "BackupResult",
    "Bringup",
    "BringupParts",
    "BringupProgress",
    "ChangeWindow",
    "DownResult",
    "HostChanges",
    "HostStatus",
    "MachinesResult",
    "NodesResult",
    "OnProgress",
    "PlanResult",
    "PodMachines",
    "PodRegistry",
    "PowerChange",
    "RemoveResult",
    "RestoreResult",
    "StatusResult",
    "UpResult",
    "ValidationResult",
    "kept_text",
    "start_of",
    "vault_of",
]

__getattr__ = late_names(__name__, __file__)
