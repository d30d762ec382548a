"""Engines: the code behind a target. The table below is all the rest of Podwright knows of them."""

from __future__ import annotations

from collections.abc import Callable

from podwright.engines.base import Engine


def _local() -> Engine:
    from podwright.engines.local import LocalEngine

    return LocalEngine()


def _local_frames() -> Engine:
    from podwright.engines.local import LocalEngine

    return LocalEngine(shared=False)


ENGINES: dict[str, Callable[[], Engine]] = {"local": _local, "local-frames": _local_frames}
"""`local-frames`: the local engine without a shared folder, which tries on a laptop how a record travels in frames."""

__all__ = ["ENGINES", "Engine"]
