"""The door for people: an exporter that they start themselves, whose faults are said in words."""

from __future__ import annotations

from podwright.spec.problems import refuse
from podwright.telemetry.exporter import main
from podwright.telemetry.exporter.main import ExporterWords


def serve_exporter(words: ExporterWords) -> None:
    """Serve what this host tells Prometheus, until the process ends."""
    try:
        main.serve(words)
    except (ValueError, OSError) as error:
        raise refuse(str(error), hint="only 127.0.0.1 is served without --certificate, --key and --token") from None
