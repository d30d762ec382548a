"""Which terms stand in which blocks of paths, whole columns at a time.

A term is three letters in a row, or one letter so many times in a row: of `00000007` trigrams know `000` and `007`
alone, which stand in the path of every frame from 7000 to 7999, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

BLOCK_ROWS = 32
_ROWS = BLOCK_ROWS * 256
"""How many names are laid side by side at once: as a table of letters, a name in each row."""
_RUN = 1 << 24
"""Above all trigrams: a letter that is repeated, and how often."""
_MIN_RUN, _MAX_RUN = 4, 12
Letters = np.ndarray[Any, np.dtype[Any]]


def terms_of(text: str) -> list[int]:
    """Return the terms of a text as numbers, each once; none of a text that is shorter than three letters."""
    raw = text.encode()
    terms = {int.from_bytes(raw[at : at + 3], "big") for at in range(len(raw) - 2)}
    for letter, same in groupby(raw):
        length = len(list(same))
        terms |= {_run(letter, times) for times in range(_MIN_RUN, min(length, _MAX_RUN) + 1)}
    return sorted(terms)


def _run(letter: Any, times: int) -> Any:
    return letter << 8 | _RUN | times


def _matrix(texts: pa.Array) -> Letters:
    """Return texts as rows of bytes, with zeros behind the shorter ones."""
    binary = texts.cast(pa.large_binary())
    _, offset_buffer, data = binary.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[binary.offset : binary.offset + len(binary) + 1]
    if data is None or offsets[-1] == offsets[0]:
        return np.zeros((len(texts), 1), np.uint8)
    letters = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    matrix: Letters = np.zeros((len(texts), int(lengths.max())), np.uint8)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = letters
    return matrix


def _terms(matrix: Letters, other: Letters) -> tuple[Letters, Letters]:
    """Return rows and terms in them that have a letter where `other` is true.

    As one long text: the zero behind each row is in no term, so none reaches from a row into the next.
    """
    width = matrix.shape[1] + 1
    letters = np.pad(matrix, ((0, 0), (0, 1))).ravel()
    changed = np.pad(other, ((0, 0), (0, 1))).ravel()
    changed = changed[:-1] | changed[1:]
    places, terms = _trigrams(letters, changed[:-1] | changed[1:])
    of_runs, runs = _runs(letters, changed)
    return np.concatenate([places, of_runs]) // width, np.concatenate([terms, runs])


def _trigrams(letters: Letters, changed: Letters) -> tuple[Letters, Letters]:
    places = np.flatnonzero(changed)
    three = [letters[places + offset] for offset in range(3)]
    letters_only = (three[0] != 0) & (three[1] != 0) & (three[2] != 0)
    high, middle, low = (column[letters_only].astype(np.uint32) for column in three)
    return places[letters_only], high << 16 | middle << 8 | low


def _runs(letters: Letters, changed: Letters) -> tuple[Letters, Letters]:
    """Return where a letter is repeated, and how often; `changed` are pairs of letters."""
    places, terms = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
    same = (letters[1:] == letters[:-1]) & (letters[1:] != 0)
    repeated, pairs = same, changed
    for times in range(3, _MAX_RUN + 1):
        repeated = repeated[:-1] & same[times - 2 :]
        changed = changed[:-1] | pairs[times - 2 :]
        if not repeated.any():
            break
        if times >= _MIN_RUN:
            places.append(np.flatnonzero(repeated & changed))
            terms.append(_run(letters[places[-1]].astype(np.uint32), times))
    return np.concatenate(places), np.concatenate(terms)


class PathBlocks:
    """Takes the names of files in their order and gives what is new in each block.

    What a name has in common with the one before it, at the same place, was seen: names that count up cost little.
    """

    def __init__(self, ids: Letters, paths: pa.ChunkedArray) -> None:
        self._first = int(ids[0]) if len(ids) else 0
        self._rows = 0
        texts = paths.combine_chunks()
        matrix = _matrix(texts)
        self._tails = np.zeros((len(texts), 2), np.uint8)
        self._numbers: list[Letters] = []
        raw = texts.cast(pa.binary()).to_pylist()
        for row, path in enumerate(raw):
            tail = path[-2:]
            self._tails[row, 2 - len(tail) :] = np.frombuffer(tail, np.uint8)
        self._by_folder(matrix)

    def _by_folder(self, matrix: Letters) -> None:
        for start in range(0, len(matrix), _ROWS):
            chunk = matrix[start : start + _ROWS]
            rows, terms = _terms(chunk, np.ones(chunk.shape, bool))
            order = np.argsort(rows, kind="stable")
            of_row = np.split(terms[order], np.searchsorted(rows[order], np.arange(1, len(chunk))))
            self._numbers += [np.unique(row) for row in of_row]

    def take(self, folders: Letters, names: pa.Array) -> Iterator[tuple[int, Letters]]:
        """Yield each term with its blocks in their order, for names that follow those taken before."""
        folders = folders - self._first
        # NumPy lets go of the interpreter while it works on a column.
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            pairs = list(pool.map(partial(self._of_part, folders, names), range(0, len(folders), _ROWS)))
        self._rows += len(folders)
        every = np.concatenate([np.zeros(0, np.uint64), *pairs])
        every.sort()
        terms = (every >> np.uint64(32)).astype(np.uint32)
        blocks = (every & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        begins = np.flatnonzero(np.diff(terms, prepend=terms[:1] + np.uint32(1)))
        for begin, end in pairwise([*begins.tolist(), len(terms)]):
            yield int(terms[begin]), blocks[begin:end]

    def _of_part(self, folders: Letters, names: pa.Array, start: int) -> Letters:
        chunk = folders[start : start + _ROWS]
        of_names = self._of_names(chunk, names.slice(start, len(chunk)), self._rows + start)
        return np.concatenate([of_names, self._of_folders(chunk, self._rows + start)])

    def _of_names(self, folders: Letters, names: pa.Array, first: int) -> Letters:
        # With the last two letters of the folder before it: a part of a path may reach from one into the other.
        matrix = np.hstack([self._tails[folders], _matrix(names)])
        places = first + np.arange(len(matrix))
        # Which letters are others than in the row before; numbers are reckoned only where one of three is.
        other = np.ones(matrix.shape, bool)
        np.not_equal(matrix[1:], matrix[:-1], out=other[1:])
        other[places % BLOCK_ROWS == 0] = True
        rows, terms = _terms(matrix, other)
        return _pairs(terms, places[rows] // BLOCK_ROWS)

    def _of_folders(self, folders: Letters, first: int) -> Letters:
        blocks = (first + np.arange(len(folders))) // BLOCK_ROWS
        both = np.unique((blocks.astype(np.uint64) << np.uint64(32)) | folders.astype(np.uint64))
        places = (both & np.uint64(0xFFFFFFFF)).astype(np.int64)
        numbers = [self._numbers[folder] for folder in places]
        if not numbers:
            return np.zeros(0, np.uint64)
        every = np.concatenate(numbers)
        return _pairs(every, np.repeat(both >> np.uint64(32), [len(terms) for terms in numbers]))


def _pairs(numbers: Letters, blocks: Letters) -> Letters:
    # Sorted and each once: much faster than `np.unique`, which puts them into a hash table first.
    both = (numbers.astype(np.uint64) << np.uint64(32)) | blocks.astype(np.uint64)
    both.sort()
    return both[np.flatnonzero(np.diff(both, prepend=both[:1] + np.uint64(1)))]
