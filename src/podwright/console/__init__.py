"""Console: a home in a browser, for its owner; every page and every act is also an API, the same documents as `--json`.

Names are imported when they are first used: a command that only prints its help needs no web server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.console.client import ConsoleClient
    from podwright.console.serve import ConsoleWords, serve_console

__all__ = ["ConsoleClient", "ConsoleWords", "serve_console"]

__getattr__ = late_names(__name__, __file__)
