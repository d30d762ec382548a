"""Why another program failed or cannot be reached, in a few words."""

from __future__ import annotations

import ssl

CLOSING = (
    "exiting with failure status due to previous errors",
    "error is not recoverable: exiting now",
    "kex_exchange_identification: connection closed by remote host",
    "connection closed by unknown port 65535",
)
"""What tar says after its reason, and ssh where the host before another did not let it through."""


def last_line(text: str, default: str) -> str:
    """Return the last line that a program wrote, which most often says why it failed; the default if it is silent."""
    lines = text.strip().splitlines()
    reasons = [line for line in lines if not line.lower().endswith(CLOSING)]
    return (reasons or lines or [default])[-1]


TLS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS there",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection",
    "CERTIFICATE_REQUIRED": "it wants a certificate of yours",
    "ALERT_CERTIFICATE_EXPIRED": "your certificate has expired",
    "ALERT_BAD_CERTIFICATE": "it does not take your certificate",
    "ALERT_CERTIFICATE_UNKNOWN": "it does not take your certificate",
    "ALERT_UNKNOWN_CA": "it does not know who signed your certificate",
    "ALERT_PROTOCOL_VERSION": "it speaks another release of TLS",
}
"""What ends the name of an error, and what it means."""


def connection_reason(error: object) -> str:
    """Return why a connection failed: what the operating system or TLS says of it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        name = str(error.reason or "")
        return next((text for end, text in TLS.items() if name.endswith(end)), f"TLS failed: {name or error}")
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return str(getattr(error, "strerror", None) or error or type(error).__name__).lower()
