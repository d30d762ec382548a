"""What a client must know to reach a run on its cluster again: a small file that is written once, before it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podwright.files.untrusted import read_untrusted
from podwright.spec.problems import Problem, Refusal

SITE = "job/site.json"
Types = Mapping[str, type | tuple[type, ...]]


class SiteLost(Refusal):
    """What tells the cluster cannot be read any more: nobody can ask it about the run, or clear up there."""

    def __init__(self, path: Path, reason: str, file: str = SITE) -> None:
        hint = "`podwright rm` removes the run here, and says what may be left there"
        super().__init__([Problem(str(path / file), None, None, "", f"cannot be read: {reason}", hint)])
        self.reason = f"{file} cannot be read: {reason}"


def read_site(path: Path, types: Types) -> dict[str, Any]:
    """Return what is known of the cluster of the job in this folder, with values of these types."""
    try:
        site = json.loads(read_untrusted(path, SITE))
    except OSError as error:
        raise SiteLost(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError):
        raise SiteLost(path, "it is no JSON") from None
    if not isinstance(site, dict):
        raise SiteLost(path, "it holds no fields")
    wrong = [name for name, kind in types.items() if not isinstance(site.get(name), kind)]
    if wrong:
        raise SiteLost(path, f"it does not say {', '.join(wrong)}")
    return site
