"""Why another program failed or cannot be reached, in a few words."""

from __future__ import annotations

import ssl


def last_line(text: str, default: str) -> str:
    """Return the last line that a program wrote, which most often says why it failed; the default if it is silent."""
    lines = text.strip().splitlines()
    if not lines:
        return default
    return lines[-1]


def connection_reason(error: object) -> str:
    """Return why a connection failed: what the operating system or TLS says of it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return str(getattr(error, "strerror", None) or error or type(error).__name__).lower()
