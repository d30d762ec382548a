"""The exporters as programs: `python -m podwright.telemetry gpu`, and on hosts `exporters.py gpu`."""

from __future__ import annotations

import sys
from typing import List


def main(arguments: List[str]) -> None:
    """Run the exporter that the first word names."""
    verb, *rest = arguments or [""]
    if verb == "gpu":
        from .exporter import main as gpu

        gpu.main(rest)
    elif verb == "slurm":
        from . import slurm_exporter

        slurm_exporter.main(rest)
    else:
        raise SystemExit("%s gpu|slurm ..." % sys.argv[0])


if __name__ == "__main__":
    main(sys.argv[1:])
