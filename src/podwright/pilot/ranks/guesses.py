"""Values in lines that were written for people: by the patterns of `results:`, and by forms that many programs share.

What a program reports itself comes first: of a name that a rank has reported nothing is read from its other lines.
Then the patterns; then the forms. A value of a form is a guess: it meets no goal. Lines of one rank count: rank 0's, or
those of the first that writes any where rank 0 writes none. Long lines are cut, so that none holds the pilot up.
A program that prints its configuration before its first step says nothing of how well it does: what is the same each
time it is said is not believed until steps or epochs are counted.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Pattern, Set, Tuple

from ..protocol import is_number

LINE_BYTES = 4096
NUMBER = r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,3})?"
SURE = ("loss", "accuracy", "acc", "lr", "learning_rate", "perplexity", "ppl", "bleu", "miou", "iou", "grad_norm")
"""Words that are taken for the name of a value also where only a space stands between the two."""
OTHERS = ("auc", "f1", "mae", "mse", "rmse", "reward", "score", "error", "top1", "top5", "map")
_BEFORE = r"(?:(?:train|training|val|valid|validation|test|eval|mean|avg|average|total|running|best) )?"
_NAME = _BEFORE + r"(?:[a-z0-9]{{1,24}}[_/.@-]){{0,3}}(?:{})(?:[_/.@-][a-z0-9]{{1,24}}){{0,2}}"
_VALUE = rf"({NUMBER})(?![0-9a-z_.]*[a-z_])"
_IN_EPOCH = (
    r"epoch(?:\(train\))?:? {0,4}\[?([0-9]{1,9})(?:\]:? {0,8}\[|:? {1,8}\[?) {0,8}"
    r"([0-9]{1,12}) ?/ ?([0-9]{1,12})(?![0-9]| \()"
)
"""How many steps of how many an epoch has behind it: `Epoch(train) [1][50/200]`, `epoch 001: 50 / 200`.

Of `Train Epoch: 1 [640/60000 (1%)]` they are samples.
"""
_COUNT = rf"(s?)['\"]?[ =:#\[(]{{0,10}}['\"]?({NUMBER})(?![0-9.]*%)(?: {{0,8}}/ {{0,8}}({NUMBER}))?"
_WHOSE = r"(?<![a-z0-9_])(?:(?:global|train|training|current)[_ ])?"
_SETTING = frozenset({"lr", "learning_rate", "rate"})
_NO_RESULT = frozenset({"iters", "iter", "steps", "step", "epochs", "decay", "interval", "warmup"})
"""What a name ends with that is a setting: `lr_decay_iters`."""
_TRAINING = ("epoch", "train", "step", "iter", "fit")
_HINTS = (
    b"loss",
    b"acc",
    b"lr",
    b"epoch",
    b"step",
    b"iter",
    b"it/s",
    b"s/it",
    b"%|",
    b"iou",
    b"bleu",
    b"score",
    b"reward",
    b"ppl",
)
TOTALS = {"step": "steps", "epoch": "epochs"}
COUNTS = frozenset(TOTALS)
_COUNTERS = {"epoch": ("epoch", "epochs")}
LINES_PER_S = 10.0
BURST_LINES = 200.0
"""How many lines are looked at for guesses: a program that writes thousands a second must not cost its node a core."""


class LineValues(NamedTuple):
    """Values of a line, which of them are guesses, and how long ago the line was."""

    values: Dict[str, float]
    guessed: Set[str]
    age_s: float = 0.0


class HeldValue(NamedTuple):
    """A guess that waits for its name to come again; `at` is when it came."""

    value: float
    at: float


class _Forms(NamedTuple):
    """The forms of lines. They are compiled when the first line of this kind comes: many a rank writes none."""

    pairs: List[Pattern[str]]
    counted: Pattern[str]
    in_epoch: Pattern[str]
    bar: Pattern[str]
    """The counters of tqdm, of Rich, which Lightning has, and of Keras: how many of how many, then a time or a bar."""
    label_end: Pattern[str]
    colours: Pattern[str]


@lru_cache(maxsize=None)
def _forms() -> _Forms:
    pairs = [
        re.compile(rf"(?<![a-z0-9_/.@-])({_NAME.format('|'.join(names))})['\"]?{between}['\"]?{_VALUE}", re.IGNORECASE)
        for names, between in ((SURE, "(?: ?[=:] {0,8}| {1,3})"), (OTHERS, " ?[=:] {0,8}"))
    ]
    return _Forms(
        pairs=pairs,
        counted=re.compile(rf"{_WHOSE}(epoch|step|iter|iteration)(?:\(train\))?{_COUNT}", re.IGNORECASE),
        in_epoch=re.compile(_IN_EPOCH, re.IGNORECASE),
        bar=re.compile(r"([0-9]{1,12})/([0-9]{1,12}) (?:\[[0-9:?]{1,12}<|[0-9:]{1,12} (•) |[━\[=>])"),
        label_end=re.compile(r"[0-9]{1,3}%\||[━╸╺]"),
        colours=re.compile(r"\x1b\[[0-9;?]{0,16}[a-zA-Z]"),
    )


def guess(text: str) -> Dict[str, float]:
    """Return the values that a line has in one of the common forms."""
    values: Dict[str, float] = {}
    forms = _forms()
    text = forms.colours.sub("", text)
    for pairs in forms.pairs:
        for name, number in pairs.findall(text):
            if _tidy(name).rpartition("_")[2] not in _NO_RESULT:
                _put(values, _tidy(name), number)
    _put_counts(values, text, bool(values))
    if "step" not in values:
        _put_steps_of_epoch(values, text)
    if "step" not in values:
        _put_bar(values, text)
    return values


def _put_steps_of_epoch(values: Dict[str, float], text: str) -> None:
    found = _forms().in_epoch.search(text)
    if found:
        for name, number in zip(("epoch", "step", "steps"), found.groups()):
            _put(values, name, number)


def _put_counts(values: Dict[str, float], text: str, has_results: bool) -> None:
    for word, plural, done, of in _forms().counted.findall(text):
        # `epochs: 10` of a configuration says how many there will be, not where the training is.
        if plural and not (of or has_results):
            continue
        name, total = _COUNTERS.get(word.lower(), ("step", "steps"))
        if name in values:
            continue
        _put(values, name, done)
        if of:
            _put(values, total, of)


def _put_bar(values: Dict[str, float], text: str) -> None:
    for bar in list(_forms().bar.finditer(text))[-1:]:
        if not _counts_steps(text[: bar.start()]):
            continue
        _put(values, "step", bar.group(1))
        _put(values, "steps", bar.group(2))
        if bar.group(3) and "epochs" in values:
            values["epochs"] += 1  # Lightning's bar of Rich counts epochs from 0 up to the last one's number


def _counts_steps(head: str) -> bool:
    """Return whether a bar is that of the training: programs show others too, such as `Tokenizing:` and `Saving:`."""
    end = _forms().label_end.search(head)
    label = head[: end.start()].strip(" :0123456789/").lower() if end else ""
    return not label or any(word in label for word in _TRAINING)


def _held_values(held: Mapping[str, HeldValue], now: float) -> LineValues:
    """Return what waited as a row of when the last of it came."""
    values = {name: one.value for name, one in held.items()}
    age_s = min((now - one.at for one in held.values()), default=0.0)
    return LineValues(values, set(values), age_s)


def _may_hold(line: bytes) -> bool:
    lower = line.lower()
    return any(hint in lower for hint in _HINTS)


def _tidy(name: str) -> str:
    return re.sub(r"[ /.@-]+", "_", name.strip().lower())


def _put(values: Dict[str, float], name: str, text: str) -> None:
    number = float(text)
    if is_number(number):
        values[name] = number


class Recogniser:
    """Reads the lines of one node's ranks.

    A guess waits until its name comes a second time, or its rank ends: many programs say a word of this kind in a
    sentence before they report the same name by themselves. A count that says of how many needs no second time.
    """

    def __init__(
        self, patterns: Mapping[str, str], guesses: bool, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._patterns: List[Tuple[str, Any]] = [(name, re.compile(text)) for name, text in patterns.items()]
        self._guesses, self._monotonic = guesses, monotonic
        self._left, self._looked = BURST_LINES, monotonic()
        self._reported: Set[Tuple[int, str]] = set()
        self._unconfirmed: Dict[int, Dict[str, HeldValue]] = {}
        self._sure: Set[str] = set()
        self._counting: Set[int] = set()
        """The ranks that have counted a step or an epoch."""
        self._speaker: Optional[int] = None

    def note_reported(self, rank: int, values: Mapping[str, Any]) -> None:
        """Note what a rank reported by itself."""
        self._reported.update((rank, name) for name in values)
        unconfirmed = self._unconfirmed.get(rank)
        if unconfirmed:
            self._unconfirmed[rank] = {name: value for name, value in unconfirmed.items() if name not in values}

    def read(self, rank: int, line: bytes) -> List[LineValues]:
        """Return what a line says beside what its rank reports, after what waited for it."""
        line = line[:LINE_BYTES]
        may_guess = self._guesses and _may_hold(line) and self._has_time()
        if not (may_guess or self._patterns):
            return []
        text = line.decode("utf-8", "replace")
        named = self._by_patterns(text)
        guessed: Dict[str, float] = {}
        if may_guess:
            guessed = self._without_named(guess(text))
        named, guessed = self._untold(rank, named), self._untold(rank, guessed)
        if not (named or guessed) or not self._speaks(rank):
            return []
        now = self._monotonic()
        before, guessed = self._confirm(rank, guessed, now)
        rows = [_held_values(before, now), LineValues({**guessed, **named}, set(guessed))]
        return [row for row in rows if row.values]

    def rest(self, rank: int) -> List[LineValues]:
        """Return what a rank that has ended said once only."""
        unconfirmed = self._unconfirmed.pop(rank, {})
        said = {name: held for name, held in unconfirmed.items() if _SETTING.isdisjoint(name.split("_"))}
        row = _held_values(said, self._monotonic())
        return [row] if row.values else []

    def _confirm(
        self, rank: int, guessed: Dict[str, float], now: float
    ) -> Tuple[Dict[str, HeldValue], Dict[str, float]]:
        """Return the values that waited for these names, and those of them that need not wait; the others wait."""
        unconfirmed = self._unconfirmed.setdefault(rank, {})
        if rank not in self._counting and not COUNTS.isdisjoint(guessed):
            self._counting.add(rank)
            for name in [name for name in unconfirmed if name not in COUNTS]:
                del unconfirmed[name]
        if any(total in guessed for total in TOTALS.values()):
            self._sure.update(name for name in (*TOTALS, *TOTALS.values()) if name in guessed)
        before = {name: unconfirmed.pop(name) for name in guessed if self._is_again(rank, name, guessed[name])}
        self._sure.update(before)
        unsure = {name: value for name, value in guessed.items() if name not in self._sure}
        unconfirmed.update((name, HeldValue(value, now)) for name, value in unsure.items())
        return before, {name: value for name, value in guessed.items() if name in self._sure}

    def _is_again(self, rank: int, name: str, value: float) -> bool:
        held = self._unconfirmed[rank].get(name)
        return held is not None and (rank in self._counting or held.value != value)

    def _untold(self, rank: int, values: Dict[str, float]) -> Dict[str, float]:
        return {name: value for name, value in values.items() if (rank, name) not in self._reported}

    def _without_named(self, values: Dict[str, float]) -> Dict[str, float]:
        """Leave out names that have a pattern: the user said where their values are."""
        names = {name for name, _ in self._patterns}
        return {name: value for name, value in values.items() if name not in names}

    def _by_patterns(self, text: str) -> Dict[str, float]:
        values: Dict[str, float] = {}
        for name, pattern in self._patterns:
            match = pattern.search(text)
            if match:
                try:
                    _put(values, name, match.group(1))
                except (ValueError, TypeError):
                    continue
        return values

    def _has_time(self) -> bool:
        now = self._monotonic()
        self._left = min(BURST_LINES, self._left + (now - self._looked) * LINES_PER_S)
        self._looked = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _speaks(self, rank: int) -> bool:
        """Return whether this rank's lines count: those of the lowest that writes any."""
        if self._speaker is None or rank < self._speaker:
            self._speaker = rank
        return rank == self._speaker
