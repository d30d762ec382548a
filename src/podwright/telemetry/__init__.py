"""What a pod tells of itself beside its runs: exporters that Prometheus reads. Names are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.telemetry.exporter.main import ExporterWords
    from podwright.telemetry.exporter.vocabulary import NAMES
    from podwright.telemetry.front_door import serve_exporter
    from podwright.telemetry.host_files import host_program

__all__ = ["NAMES", "ExporterWords", "host_program", "serve_exporter"]
__getattr__ = late_names(__name__, __file__)
