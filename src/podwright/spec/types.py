"""The kinds of value that a field may hold: what is taken, and our words for what is not."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from podwright.pilot.protocol import MIN_SLOWER
from podwright.spec.catalogs import parse_catalog
from podwright.spec.hostlist import expand_hosts, fold_hosts
from podwright.spec.patterns import backtracks
from podwright.spec.placeholders import Scalar, written
from podwright.spec.problems import Refusal, short
from podwright.spec.quantity import (
    bandwidth_bytes_s,
    duration_s,
    exact_duration,
    exact_percentage,
    exact_size,
    percentage,
    power_w,
    size_bytes,
    speed_gbps,
)

MAX_COUNTED = 1_000_000
RESULT_HINT = "write it like `loss[ =:]+([0-9.eE+-]+)`"


class Strict(BaseModel):
    """What all models of the two files share: nothing unknown is taken, nothing changes afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False, defer_build=True
    )


def wrong(message: str, hint: str | None = None) -> PydanticCustomError:
    """Return the error of a value, in our words."""
    return PydanticCustomError("podwright", "{message}", {"message": message, "hint": hint})


def _parsed(parse: Callable[[str], Any], what: str, example: str) -> BeforeValidator:
    """Let a text through one of the parsers; a bare number gets its words about the missing unit."""

    def validate(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise wrong(f"must be {what}", f"write it like `{example}`")
        try:
            return parse(str(value))
        except Refusal as refusal:
            problem = refusal.problems[0]
            raise wrong(problem.message, problem.hint) from None

    return BeforeValidator(validate)


def _positive(value: float) -> float:
    if value <= 0:
        raise wrong("must be more than zero")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise wrong("must be a number", _unquote(value))
    return value


def _price(value: Any) -> float:
    if _number(value) < 0:
        raise wrong("must be 0 or more", "leave a price out where it is not known")
    return float(value)


class PriceRange(float):
    """A price of which only its ends are known; as a number it is the middle, for whoever asks for one figure."""

    ends: tuple[float, float]

    def __new__(cls, low: float, high: float) -> PriceRange:
        """Make it of its ends."""
        price = super().__new__(cls, (low + high) / 2)
        price.ends = (low, high)
        return price

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        """Return what a copy is made of."""
        return self.ends


def _ranged_price(value: Any) -> float:
    """Take a price, or `A..B` where nobody knows it closer."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)", value, re.ASCII) if isinstance(value, str) else None
    if found is None:
        return _price(value)
    low, high = map(float, found.groups())
    if low > high or not math.isfinite(high):
        raise wrong(f"{short(value)} ends below its start", f"write it like `{high:g}..{low:g}`")
    return PriceRange(low, high)


def _share_used(value: Any) -> float:
    if not 0 < _number(value) <= 1:
        raise wrong("must be more than 0 and at most 1", "0.7 says that 70 of 100 hours are used")
    return float(value)


def _slower(value: float) -> float:
    if value < MIN_SLOWER:
        raise wrong(f"must be at least {exact_percentage(MIN_SLOWER)}", "ranks differ by less without being slow")
    return value


def _whole(least: int) -> BeforeValidator:
    message = "must be a whole number, zero or more"
    if least:
        message = "must be a whole positive number"

    def validate(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise wrong(message, _unquote(value))
        if value > MAX_COUNTED:
            raise wrong(f"must be at most {MAX_COUNTED:,}")
        return value

    return BeforeValidator(validate)


def _unquote(value: Any) -> str | None:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d{0,9})(\.\d+)?", value, re.ASCII):
        return f"take the quotes off: `{value}`"
    return None


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong("must be true or false")
    return value


def _text(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        raise wrong("must be text", f'put it in quotes: "{written(value)}"')
    if not isinstance(value, str):
        raise wrong("must be text")
    if not value.strip():
        raise wrong("must not be empty")
    return _no_nul(value)


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise wrong("must not hold a NUL character")
    return value


def _inner_pattern(value: str) -> str:
    """Take a pattern of paths inside a folder."""
    if value.startswith(("/", "~")) or ".." in value.split("/") or not value.strip("/."):
        raise wrong(f'"{short(value)}" leads out of the folder', "write it like `data/*.bin` or `out/**`")
    return value


def _line_pattern(value: str) -> str:
    """Take a regular expression with one group that no line can hold up for long."""
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise wrong(f"is no regular expression: {error}", RESULT_HINT) from None
    if groups != 1:
        raise wrong(f"must have one group, and has {groups}", RESULT_HINT)
    if backtracks(value):
        raise wrong(
            "may take for ever on some lines",
            "at most two of * and + may be in it, none inside a group that is repeated",
        )
    return value


def _one_line(value: str) -> str:
    if "\n" in value or "\r" in value:
        raise wrong("must be one line")
    return value


def pattern(allowed: str, message: str, hint: str) -> AfterValidator:
    """Take only text that is like a pattern as a whole; `{}` in the message is what was written."""
    compiled = re.compile(allowed, re.ASCII)

    def validate(value: str) -> str:
        if not compiled.fullmatch(value):
            raise wrong(message.format(short(value)), hint)
        return value

    return AfterValidator(validate)


def _as_written(value: Any) -> str:
    """Take numbers and truths as text: in `env` and in a command they are meant as they are written."""
    if isinstance(value, (bool, int, float)):
        return written(value)
    if not isinstance(value, str):
        raise wrong("must be text")
    return _no_nul(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong("must be a finite number")
    if not isinstance(value, (str, int, float)):
        raise wrong("must be text, a number, true or false")
    if isinstance(value, str):
        return _no_nul(value)
    return value


def _argv(value: Any) -> Any:
    if isinstance(value, list):
        arguments = [_as_written(item) for item in value]
    elif isinstance(value, str):
        arguments = _split(_no_nul(value))
    else:
        raise wrong("must be text or a list", "write `command: python train.py`")
    if not arguments or not arguments[0]:
        raise wrong("must not be empty", "name the program that each rank runs")
    return arguments


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        if "escaped" in str(error):
            raise wrong("ends with a backslash", "write `\\\\` for a backslash") from None
        raise wrong("a quote is not closed", "the command is split like a shell would; close the quote") from None


def _login(value: str) -> str:
    """Take no name that ssh would read as an option, before or behind the user's name."""
    if any(part.startswith("-") for part in value.split("@")):
        raise wrong(f'"{short(value)}" is not a host: it begins like an option of ssh', "write it like `user@login1`")
    return value


def _catalog(value: str) -> str:
    try:
        parse_catalog(value)
    except Refusal as refusal:
        raise wrong(refusal.problems[0].message, refusal.problems[0].hint) from None
    return value


def _lines(value: Any) -> Any:
    if isinstance(value, str):
        return [value]
    return value


def _hosts(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise wrong("must be a host list", "write it like `dgx[001-140],mgmt1`")
    try:
        return expand_hosts(value)
    except Refusal as refusal:
        raise wrong(refusal.problems[0].message, refusal.problems[0].hint) from None


def _json(kind: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, "examples": [example]})


Size = Annotated[
    int,
    _parsed(size_bytes, "a size with a unit", "80GiB"),
    AfterValidator(_positive),
    PlainSerializer(exact_size),
    _json("string", "80GiB"),
]
Bandwidth = Annotated[
    int,
    _parsed(bandwidth_bytes_s, "a bandwidth with a unit", "400GB/s"),
    AfterValidator(_positive),
    _json("string", "400GB/s"),
]
Speed = Annotated[
    float, _parsed(speed_gbps, "a speed with a unit", "200Gb/s"), AfterValidator(_positive), _json("string", "200Gb/s")
]
Power = Annotated[
    float, _parsed(power_w, "a power with a unit", "6.5kW"), AfterValidator(_positive), _json("string", "6.5kW")
]
Span = Annotated[
    float, _parsed(duration_s, "a time with a unit", "1h30m"), PlainSerializer(exact_duration), _json("string", "1h30m")
]
Duration = Annotated[Span, AfterValidator(_positive)]
Slower = Annotated[
    float,
    _parsed(percentage, "a percentage", "30%"),
    AfterValidator(_slower),
    PlainSerializer(exact_percentage),
    _json("string", "30%"),
]
Count = Annotated[int, Field(ge=1), _whole(1)]
Whole = Annotated[int, Field(ge=0), _whole(0)]
Number = Annotated[float, BeforeValidator(_number)]
Price = Annotated[float, Field(ge=0), BeforeValidator(_price)]
_EITHER = WithJsonSchema(
    {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "examples": ["180000..210000"]}]}
)
RangedPrice = Annotated[float, PlainValidator(_ranged_price), _EITHER]
ShareUsed = Annotated[float, Field(gt=0, le=1), BeforeValidator(_share_used)]
Ratio = Annotated[float, Field(ge=1), BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Text = Annotated[str, BeforeValidator(_text)]
Line = Annotated[Text, AfterValidator(_one_line)]
LinePattern = Annotated[Line, AfterValidator(_line_pattern)]
PathPattern = Annotated[Line, AfterValidator(_inner_pattern)]
Login = Annotated[Line, AfterValidator(_login)]
CatalogUrl = Annotated[Line, AfterValidator(_catalog), _json("string", "clickhouses://db1:8443/podwright")]
Lines = Annotated[
    tuple[Text, ...],
    BeforeValidator(_lines),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
AsWritten = Annotated[str, BeforeValidator(_as_written), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Point = Annotated[Scalar, BeforeValidator(_scalar)]
Argv = Annotated[
    tuple[str, ...],
    BeforeValidator(_argv),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Hosts = Annotated[
    tuple[str, ...], BeforeValidator(_hosts), PlainSerializer(fold_hosts), _json("string", "dgx[001-140],mgmt1")
]
Name = Annotated[
    Text,
    pattern(
        r"[a-z][a-z0-9-]{0,39}",
        '"{}" is not a name',
        "a name is lower-case letters, digits and dashes, starts with a letter, and has at most 40 of them",
    ),
]
FieldName = Annotated[
    Text,
    pattern(
        r"[A-Za-z_][A-Za-z0-9_-]{0,63}",
        '"{}" is not a name',
        "such a name has letters, digits, dashes and underscores, and starts with a letter",
    ),
]
EnvName = Annotated[
    Text,
    pattern(
        r"[A-Za-z_][A-Za-z0-9_]{0,127}",
        '"{}" is not the name of a variable',
        "letters, digits and underscores, not starting with a digit",
    ),
]
Image = Annotated[
    Line, pattern(r"[^\s]+", '"{}" is not the name of an image', "write it like `registry.example/train:1`")
]
