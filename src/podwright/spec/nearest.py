"""What was probably meant by a word that is none of those allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def near(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that was probably meant."""
    from difflib import get_close_matches  # where something is wrong, not in commands that go well

    lowered = {name.lower(): name for name in allowed}
    close = get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.65)
    if not close:
        return None
    return lowered[close[0]]


def did_you_mean(word: str, allowed: Iterable[str], otherwise: str, shown: Callable[[str], str] = str) -> str:
    """Return the hint that names the word that was probably meant, as it is to be shown, or what to do otherwise."""
    close = near(word, allowed)
    if close is None:
        return otherwise
    return f"did you mean `{shown(close)}`?"


def one_of(word: str, noun: str, allowed: Iterable[str]) -> str:
    """Return what is allowed, and the nearest of it."""
    names = list(allowed)
    # Letters or digits that changed places are the likeliest slip in a name from a short list.
    swapped = [name for name in names if sorted(name.lower()) == sorted(word.lower())]
    close = swapped[0] if swapped else near(word, names)
    allowed_names = f"{noun} is one of {', '.join(names)}"
    if close is None:
        return allowed_names
    return f"{allowed_names}; did you mean `{close}`?"
