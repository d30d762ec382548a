"""Drafts: the workload of a script that is there already, written from what the script says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.drafts.draft import Guess
    from podwright.drafts.writing import Draft, DraftRequest, write_draft

__all__ = [
    "Draft",
    "DraftRequest",
    "Guess",
    "write_draft",
]

__getattr__ = late_names(__name__, __file__)
