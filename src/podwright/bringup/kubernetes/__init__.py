"""What an administrator gives a cluster: rights, storage, and what OpenShift alone needs.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.bringup.kubernetes.grant import GrantRequest, GrantResult, apply_grant
    from podwright.bringup.kubernetes.trial import ImageTrial, try_image
    from podwright.clients.kubernetes.manifest import yaml_text

__all__ = ["GrantRequest", "GrantResult", "ImageTrial", "apply_grant", "try_image", "yaml_text"]

__getattr__ = late_names(__name__, __file__)
