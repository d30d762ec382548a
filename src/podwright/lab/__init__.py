"""Lab: a pod on one machine, of real engines; for users to try, and the fixture of our own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.lab.base import Lab
    from podwright.lab.front import LabRequest, LabStarted, find, take_down, up
    from podwright.lab.home import TAKEN_DOWN
    from podwright.lab.kubernetes.binaries import BuildOutput

__all__ = [
    "TAKEN_DOWN",
    "BuildOutput",
    "Lab",
    "LabRequest",
    "LabStarted",
    "find",
    "take_down",
    "up",
]

__getattr__ = late_names(__name__, __file__)
