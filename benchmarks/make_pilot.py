"""Writes the pilot as one file, to try it on a machine where nothing of Podwright is installed.

python benchmarks/make_pilot.py [OUT]          default: dist/pilot.pyz
python3 pilot.pyz sample --seconds 5           on that machine
"""

from __future__ import annotations

import sys
from pathlib import Path

from podwright.engines.payload import pilot_zip

DEFAULT = Path(__file__).resolve().parent.parent / "dist" / "pilot.pyz"


def main() -> int:
    """Write it and say where."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(pilot_zip())
    print(f"{out}  {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
