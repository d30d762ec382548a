"""Numbers in text from outside. A module of its own since a rank's shim needs it and must start quickly.

Others take it from the protocol.
"""

from __future__ import annotations

WHOLE_NUMBER_DIGITS = 20
"""The length of 2^64: nothing that a kernel counts or an engine numbers is longer."""


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits alone spell, or None for any other text.

    `str.isdigit` takes superscripts and the digits of other scripts too, `int` takes signs, blanks and underscores,
    and raises for thousands of digits: text from outside must neither raise nor be read as a number it does not say.
    """
    if len(text) > WHOLE_NUMBER_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
