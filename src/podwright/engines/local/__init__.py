"""The local engine."""

from podwright.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]
