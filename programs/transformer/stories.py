"""Made stories for BERT: short ones from a small grammar, word by word; no file is read.

A story is about two people, a town and what one of them sells; all are named again and again. A word that is masked can
be told from the sentence around it, or from the rest of the story: filling it in takes attention.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

NAMES = (
    "ada alan anna barbara bjarne claude dana dennis donald edgar edith emmy ernst frances george grace guido hedy "
    "ida ivan james jean john karen katherine ken kurt leslie linus lise marie mary niklaus paul peter radia richard "
    "rosa shafi sofia stephen tim tony vera"
)
TOWNS = (
    "aachen athens bergen bern bonn bremen cork delft dresden evora galway genoa ghent graz krakow leiden linz lisbon "
    "lyon malmo mainz nantes oslo padua porto prague riga siena split toledo trento turin ulm utrecht vienna york"
)
TRADES = {
    **{"baker": "bread", "brewer": "beer", "cobbler": "shoes", "dairymaid": "cheese", "fisher": "herrings"},
    **{"florist": "roses", "gardener": "apples", "glazier": "windows", "hatter": "hats", "joiner": "chairs"},
    **{"lutemaker": "lutes", "miller": "flour", "potter": "jugs", "printer": "books", "saddler": "saddles"},
    **{"smith": "nails", "tailor": "coats", "vintner": "wine", "watchmaker": "clocks", "weaver": "linen"},
}
"""Who sells what."""
SENTENCES = (
    "WHO is a TRADE who lives in the old town of TOWN",
    "all people of TOWN buy their THING from WHO the TRADE",
    "in the morning WHO takes the THING to the market and meets FRIEND",
    "there is no better THING in TOWN than that of our TRADE",
    "FRIEND says to WHO that the THING is good but costs too much",
    "then WHO and FRIEND walk along the river to the bridge of TOWN",
    "when it rains FRIEND and WHO stay at home and look after the THING",
    "once a year the TRADE shows new THING at the fair of TOWN",
    "if FRIEND leaves TOWN then WHO will be sad for a week",
    "so the TRADE gives some THING to FRIEND and asks for nothing",
)
SENTENCES_OF_STORY = 6
LENGTH = 64
"""Words of a story: it breaks off there."""
STORIES = 2561
HELD_OUT = 257
PLAIN = [word for word in " . ".join(SENTENCES).split() if not word.isupper()]
WORDS = tuple(sorted({*PLAIN, *NAMES.split(), *TOWNS.split(), *TRADES, *TRADES.values()}))
MASK = len(WORDS)
"""The token that stands for a word to be filled in."""
VOCABULARY = len(WORDS) + 1


@dataclass(frozen=True)
class Cast:
    """Who and what a story is about; the fields are the words in capitals of a sentence."""

    who: str
    friend: str
    town: str
    trade: str

    @property
    def thing(self) -> str:
        """What is sold."""
        return TRADES[self.trade]

    def word(self, place: str) -> str:
        """The word for a place in a sentence."""
        return str(getattr(self, place.lower())) if place.isupper() else place


def tell(chance: random.Random) -> list[str]:
    """The words of one story."""
    who, friend = chance.sample(NAMES.split(), 2)
    cast = Cast(who, friend, chance.choice(TOWNS.split()), chance.choice(sorted(TRADES)))
    sentences = chance.sample(SENTENCES, SENTENCES_OF_STORY)
    return [cast.word(place) for place in " . ".join(sentences).split()][:LENGTH]


def read() -> tuple[Tensor, Tensor]:
    """The words to train on and those to score on, as their numbers in `WORDS`."""
    return _numbers(STORIES, seed=1), _numbers(HELD_OUT, seed=2)


def _numbers(stories: int, seed: int) -> Tensor:
    chance = random.Random(seed)
    number_of = {word: number for number, word in enumerate(WORDS)}
    numbers: list[int] = []
    for _ in range(stories):
        numbers += [number_of[word] for word in tell(chance)]
    return torch.tensor(numbers)


def masked(pieces: Tensor, share: float, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pieces with a share of their words masked, and what was there: -1 where nothing was masked."""
    hidden = torch.rand(pieces.shape, generator=chance, device=pieces.device) < share
    return pieces.masked_fill(hidden, MASK), pieces.masked_fill(~hidden, -1)
