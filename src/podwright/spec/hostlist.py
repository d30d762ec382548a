"""Host lists as Slurm and people write them: `dgx[001-140],mgmt[1-3]`; parsed here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from podwright.pilot.protocol import whole_number
from podwright.spec.problems import refuse, short

# No pod is larger, and a slip such as `n[1-999999999]` must not fill the memory.
MAX_HOSTS = 100_000

_LONGEST_NAME = 253
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_ITEM = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,18})(\D*)", re.ASCII | re.DOTALL)
_EXAMPLE = "write them like `dgx[001-140],mgmt1`"


def expand_hosts(text: str) -> list[str]:
    """Return the hosts in the order written; padding is kept, and a host named twice is refused."""
    hosts: list[str] = []
    for item in _items(text):
        parts = [_choices(part) for part in re.split(r"(\[[^\[\]]*\])", item) if part]
        _bound(len(hosts), parts)
        hosts += ["".join(combination) for combination in product(*parts)]
    _check(hosts)
    return hosts


def fold_hosts(hosts: Iterable[str]) -> str:
    """Return the short form of a list of hosts, in their order: `expand_hosts` gives the list back.

    Neighbours are folded over their last number only, which is how racks and Slurm count.
    """
    return ",".join(_write(run) for run in _runs(hosts))


def natural_key(host: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts hosts as people count: `n9` before `n10`, and `n1` before `n01`."""
    parts = re.split(r"(\d+)", host, flags=re.ASCII)
    return [_part_key(part) for part in parts]


def _part_key(part: str) -> tuple[int, int, str]:
    number = whole_number(part)
    if number is None:
        return 0, 0, part
    # The zeros of `01` come last when it is read backwards, which puts `1` before it.
    return 1, number, part[::-1]


def _items(text: str) -> Iterator[str]:
    if not text.strip():
        raise refuse("no hosts are named", hint=_EXAMPLE)
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            at = position
            if match:
                at = match.end()
            raise refuse(f'"{short(text)}" is not a host list: unexpected `{text[at]}`', hint=_EXAMPLE)
        yield match[0].strip()
        position = match.end() + 1
    if text.endswith(","):
        raise refuse(f'"{short(text)}" is not a host list: it ends with a comma', hint=_EXAMPLE)


def _choices(part: str) -> list[str]:
    """Return what a part of a name may be: a bracket's numbers, or the plain text itself."""
    if not part.startswith("["):
        return [part]
    numbers: list[str] = []
    for piece in part[1:-1].split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            raise refuse(f'"{short(part)}" is not a range of hosts', hint="write it like `[001-140]` or `[1,3,5-7]`")
        numbers += _numbers(match[1], match[2] or match[1])
    return numbers


def _numbers(first: str, last: str) -> list[str]:
    low, high = int(first), int(last)
    if low > high:
        raise refuse(f'"[{first}-{last}]" runs backwards', hint=f"did you mean `[{last}-{first}]`?")
    if high - low >= MAX_HOSTS:
        raise _too_many()
    return [str(number).zfill(len(first)) for number in range(low, high + 1)]


def _bound(already: int, parts: list[list[str]]) -> None:
    count = 1
    for part in parts:
        count *= len(part)
        if already + count > MAX_HOSTS:
            raise _too_many()


def _too_many() -> Exception:
    return refuse(f"more than {MAX_HOSTS:,} hosts", hint="check the range in the brackets")


def _check(hosts: list[str]) -> None:
    seen: set[str] = set()
    for host in hosts:
        if len(host) > _LONGEST_NAME or not _NAME.fullmatch(host):
            raise refuse(f'"{short(host)}" is not a host name', hint=_EXAMPLE)
        if host in seen:
            raise refuse(f'"{host}" is named twice', hint="name each host once")
        seen.add(host)


class _Run:
    """Hosts that follow each other by one, alike but for their last number."""

    def __init__(self, host: str) -> None:
        self.before, self.first, self.after = host, "", ""
        self.count = 1
        match = _LAST_NUMBER.fullmatch(host)
        if match:
            self.before, self.first, self.after = match[1], match[2], match[3]

    def takes(self, host: str) -> bool:
        """Return whether this host is the next one of the run, and count it if so."""
        if not self.first or host != self.before + self._number(self.count) + self.after:
            return False
        self.count += 1
        return True

    def shares_bracket(self, other: _Run) -> bool:
        """Return whether both runs have a number, and differ in nothing else."""
        return bool(self.first and other.first) and (self.before, self.after) == (other.before, other.after)

    def _number(self, offset: int) -> str:
        return str(int(self.first) + offset).zfill(len(self.first))

    def text(self) -> str:
        if self.count == 1:
            return self.first
        return f"{self.first}-{self._number(self.count - 1)}"


def _runs(hosts: Iterable[str]) -> Iterator[list[_Run]]:
    """Group runs that differ in their number only, so that `n1,n3` becomes one bracket."""
    group: list[_Run] = []
    for host in hosts:
        if group and group[-1].takes(host):
            continue
        run = _Run(host)
        if group and not run.shares_bracket(group[-1]):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _write(group: list[_Run]) -> str:
    head = group[0]
    if len(group) == 1 and head.count == 1:
        return head.before + head.first + head.after
    return f"{head.before}[{','.join(run.text() for run in group)}]{head.after}"
