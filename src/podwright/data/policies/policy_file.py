"""A policy as a file: which files it waits for, and what is done with them, step by step.

dataset: street
on: new
where: kind=camera and camera=front_center
steps:
  - do: stats
  - do: tag
    tag: seen=yes
  - if: Pedestrian>0 and light=night
    do: tag
    tag: pool=yes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podwright.data.policies.folder import Policy
from podwright.spec.filters import parse_filter
from podwright.spec.findings import Finding
from podwright.spec.forms import read_text
from podwright.spec.problems import Refusal
from podwright.spec.source import decode, read_source
from podwright.spec.types import Count, Duration, Line, Strict, Whole

EXAMPLE = "docs/data.md"
_TRIES = 3


class PolicyStep(Strict):
    """One thing that is done with files, or with those of whose sample a file fits a filter."""

    do: Literal["stats", "checksum", "tag"] = Field(description="stats, checksum or tag")
    tag: Line | None = Field(default=None, description="of `do: tag`: NAME=VALUE")
    if_: Line | None = Field(default=None, alias="if", description="a filter: only samples with such a file")


class PolicyFile(Strict):
    """A policy in one file."""

    name: Line | None = Field(default=None, description="left out: that of the file")
    dataset: Line = Field(description="whose files")
    where: Line = Field(description="a filter: which files")
    on: Literal["new"] | None = Field(default=None, description="new: as files come")
    every: Duration | None = Field(default=None, description="how often `run --due` runs it")
    steps: tuple[PolicyStep, ...] = Field(min_length=1, description="what is done with them, in this order")
    retries: Whole | None = Field(default=None, description="of a batch that fails; with `on: new` 3, else 0")
    batch: Count = Field(default=1000, description="so many files at a time")


def read_policy(path: Path) -> Policy:
    """Return the policy of a file, or refuse it with every problem at once."""
    text = decode(read_source(path), str(path))
    written = read_text(PolicyFile, text, str(path), (_check,), example=EXAMPLE)
    stem = re.sub(r"[^a-z0-9._-]", "-", path.stem.lower())
    steps = []
    for step in written.steps:
        values = {"do": step.do, "tag": step.tag, "if": step.if_}
        steps.append({name: value for name, value in values.items() if value is not None})
    tries = written.retries if written.retries is not None else _TRIES * (written.on is not None)
    return Policy(
        written.name or stem,
        written.dataset,
        written.where,
        "steps",
        every_s=written.every,
        batch=written.batch,
        event=written.on or "",
        retries=tries,
        steps=tuple(steps),
    )


def _check(tree: dict[str, Any]) -> Iterator[Finding]:
    """Find what no model of fields can."""
    if tree.get("on") is not None and tree.get("every") is not None:
        yield Finding(("every",), "cannot be together with `on: new`", "give one of them")
    steps = tree.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, dict):
            continue
        try:
            parse_filter(str(step.get("if", "path~a")))
        except Refusal as refusal:
            yield Finding(("steps", index, "if"), refusal.problems[0].message, refusal.problems[0].hint)
        if step.get("do") == "tag" and not step.get("tag"):
            yield Finding(("steps", index), "has no tag", "write `tag: NAME=VALUE`")
        if step.get("do") in ("stats", "checksum") and step.get("tag"):
            yield Finding(("steps", index, "tag"), f"means nothing to `do: {step['do']}`", "make it a step of its own")
