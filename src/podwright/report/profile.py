"""The profile of a few steps: operations by their time, how long the device idled, what was waited for. Pure."""

import re
from typing import Any

from podwright.analysis.profile import Operation, StepsProfile
from podwright.theme import words

_PARTS = {
    "input_s": "waiting for input",
    "compute_s": "computing",
    "communication_s": "waiting for other ranks",
    "checkpoint_s": "writing checkpoints",
    "compile_s": "compiling",
}

_IS_CPP = re.compile(r"::|^\w+\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TELLING = re.compile(r"functor$|_cuda$|^cutlass_", re.IGNORECASE)
"""What an argument of a kernel's template is called when it says what the kernel does."""


def profile_view(profile: StepsProfile) -> dict[str, Any]:
    """Return what the template fills in; shares are of the time that the steps took."""
    shares = [(text, profile.parts[name] / profile.wall_s) for name, text in _PARTS.items() if name in profile.parts]
    top = max((row.seconds for row in profile.operations), default=0.0) or 1.0
    return {
        "sentence": _sentence(profile),
        "device": profile.device,
        "parts": [(text, words.percent(min(1.0, share)), round(100 * min(1.0, share), 1)) for text, share in shares],
        "operations": [_operation(row, profile.steps, top) for row in profile.operations],
        "gaps": [(_ms(gap.seconds), short_name(gap.after), short_name(gap.before)) for gap in profile.gaps],
    }


def _operation(row: Operation, steps: int, top: float) -> tuple[str, str, str, int, float]:
    width = round(100 * row.seconds / top, 1)
    return short_name(row.name), row.name, _ms(row.seconds / steps), row.calls // steps, width


def short_name(kernel: str) -> str:
    """Return a C++ kernel's own name with the argument of its template that says what it does; others as they are."""
    if not _IS_CPP.search(kernel):
        return kernel
    plain = kernel.replace("(anonymous namespace)::", "")
    head, _, arguments = plain.removeprefix("void ").partition("<")
    name = head.partition("(")[0].rpartition("::")[2]
    telling = next(filter(_TELLING.search, _NAME.findall(arguments)), None)
    return f"{name}<{telling}>" if telling else name


def _sentence(profile: StepsProfile) -> str:
    step = f"{words.count(profile.steps, 'step')} of {_ms(profile.wall_s / profile.steps)} each"
    worked = f"{profile.device} worked {words.percent(profile.busy)} of the time"
    if profile.waited is None:
        return f"{step}; {worked}."
    return f"{step}; {worked}, and {words.percent(profile.waited)} went into waiting for input."


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
