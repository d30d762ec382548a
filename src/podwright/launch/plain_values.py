"""Values of runs that are not trusted: plain types and arrays of numpy are read from a pickle, and no code is run.

Python's way to restrict a pickle is to say which names it may find. What may be found here builds bounded things only,
and has no attribute that a pickle could change; numpy's own way to read its types back trusts what it is given, so that
arrays and numbers of numpy are made anew from their bytes.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import re
from collections.abc import Mapping
from typing import Any

PICKLE = b"\x80"
"""What a pickle begins with, and JSON never does."""
PLAIN = frozenset(
    [
        *(("builtins", name) for name in ("complex", "range", "slice")),
        *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
        ("decimal", "Decimal"),
        ("collections", "OrderedDict"),
    ]
)
NUMBERED = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])
"""Opcodes of old protocols that name a place in memory: one of them can ask for gigabytes."""
DTYPE = re.compile(r"[biufcSU][0-9]{1,9}")


class NotPlain(Exception):
    """A value that is not read without trust; `named` is the type in it that is refused, where one is."""

    def __init__(self, why: str, named: str | None = None) -> None:
        super().__init__(why)
        self.named = named


def plain_value(data: bytes) -> Any:
    """Return what a rank left, JSON or a pickle of plain types; NotPlain says why it is not read."""
    try:
        if not data.startswith(PICKLE):
            return json.loads(data)
        _check_opcodes(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except NotPlain:
        raise
    except Exception as error:  # a forged pickle may raise anything
        raise NotPlain(f"it is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def _check_opcodes(data: bytes) -> None:
    """Go through a pickle without making anything: it is whole, and asks for no memory beyond its own size."""
    for opcode, _, _ in pickletools.genops(data):
        if opcode.name in NUMBERED:
            raise NotPlain("it is a pickle of an old protocol")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PLAIN:
            return super().find_class(module, name)
        made = _NUMPY.get((module.replace("numpy._core.", "numpy.core."), name))
        if name == "_reconstruct" and module.startswith("numpy."):
            raise NotPlain("it holds an array of numpy that is not one block of numbers", "numpy.ndarray")
        if made is None:
            raise NotPlain(f"it holds {module}.{name}", f"{module}.{name}")
        return made


class _Dtype:
    """A type of numpy as its pickle names it; one with fields, objects or units is refused."""

    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        if DTYPE.fullmatch(code) is None:
            raise NotPlain(f"it holds numpy's type {code[:40]}", f"numpy.dtype {code[:40]}")
        self.code = code

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *further = state
        if order not in ("<", ">", "|", "=") or any(part is not None for part in further[:3]):
            raise NotPlain("it holds a type of numpy with fields", "numpy.dtype with fields")
        self.code = order + self.code.lstrip("<>|=")


class _NumpyDtype:
    __slots__ = ()

    def __call__(self, code: str, align: bool = False, copy: bool = True) -> _Dtype:
        return _Dtype(code)


class _NumpyArray:
    __slots__ = ()

    def __call__(self, data: bytes, dtype: _Dtype, shape: tuple[int, ...], order: str) -> Any:
        import numpy as np

        return np.frombuffer(bytearray(data), np.dtype(dtype.code)).reshape(shape, order="F" if order == "F" else "C")


class _NumpyScalar:
    __slots__ = ()

    def __call__(self, dtype: _Dtype, data: bytes) -> Any:
        import numpy as np

        return np.frombuffer(data, np.dtype(dtype.code), count=1)[0]


_NUMPY: Mapping[tuple[str, str], Any] = {
    ("numpy", "dtype"): _NumpyDtype(),
    ("numpy.core.numeric", "_frombuffer"): _NumpyArray(),
    ("numpy.core.multiarray", "scalar"): _NumpyScalar(),
}
