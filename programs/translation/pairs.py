"""Made pairs of sentences: numbers in English and in German words; no file is read.

    four hundred twenty one thousand seven       vier hundert ein und zwanzig tausend sieben

German says the ones before the tens and joins them by "und", so words must be moved, dropped and added. Compound words
are written apart: "einundzwanzig" is "ein und zwanzig".
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

ENGLISH_TO_19 = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
ENGLISH_FROM_20 = "twenty thirty forty fifty sixty seventy eighty ninety"
GERMAN_TO_19 = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
GERMAN_FROM_20 = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
ENGLISH_ONES, ENGLISH_TENS = ENGLISH_TO_19.split(), ENGLISH_FROM_20.split()
GERMAN_ONES, GERMAN_TENS = GERMAN_TO_19.split(), GERMAN_FROM_20.split()
LARGEST = 999_999
PAD, BEGIN, END = range(3)
MARKS = ("<pad>", "<begin>", "<end>")


@dataclass(frozen=True)
class Language:
    """The words of a language, numbered; the first three stand for no word, the begin and the end of a sentence."""

    words: tuple[str, ...]

    def numbers(self, sentence: list[str]) -> list[int]:
        """The words of a sentence by their numbers, and its end."""
        return [*map(self.words.index, sentence), END]


ENGLISH = Language((*MARKS, *ENGLISH_ONES, *ENGLISH_TENS, "hundred", "thousand"))
GERMAN = Language((*MARKS, *GERMAN_ONES, *GERMAN_TENS, "hundert", "tausend", "und"))


def english(number: int) -> list[str]:
    """The words of a number below a million."""
    if number >= 1000:
        return [*english(number // 1000), "thousand", *rest(english, number % 1000)]
    if number >= 100:
        return [*english(number // 100), "hundred", *rest(english, number % 100)]
    if number >= 20:
        return [ENGLISH_TENS[number // 10 - 2], *rest(english, number % 10)]
    return [ENGLISH_ONES[number]]


def german(number: int) -> list[str]:
    """The words of a number below a million."""
    if number >= 1000:
        return [*german(number // 1000), "tausend", *rest(german, number % 1000)]
    if number >= 100:
        return [*german(number // 100), "hundert", *rest(german, number % 100)]
    if number >= 20 and number % 10:
        return [GERMAN_ONES[number % 10], "und", GERMAN_TENS[number // 10 - 2]]
    if number >= 20:
        return [GERMAN_TENS[number // 10 - 2]]
    return [GERMAN_ONES[number]]


def rest(say: Callable[[int], list[str]], number: int) -> list[str]:
    """What follows a larger part of a number: nothing, where that is all."""
    return say(number) if number else []


def make(count: int, held_out: int, seed: int) -> tuple[list[int], list[int]]:
    """Numbers to train on and others to score on, most of them long."""
    chosen = random.Random(seed).sample(range(LARGEST + 1), count + held_out)
    return chosen[:count], chosen[count:]
