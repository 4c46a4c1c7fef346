"""Subword regularisation: sampling of unigram segmentations, and BPE-dropout."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate

# All segmentations of a word, with their probabilities.


_REMEMBERED_OF_LATTICE = 1 << 16  # words, which come again and again
_WORD = 20  # characters; what is longer is a sentence without spaces, which comes once an epoch
_UNKNOWN = 10.0  # how much less likely than the rarest piece, in nats, as in sentencepiece

# For each place of a word: where a piece that ends there may begin, and the sums of their weights.
_Segmentations = tuple[tuple[list[int], list[float]], ...]


class Lattice:
    """p(x_1 … x_n) ∝ ∏ p(x_i)^α over all segmentations of a word into pieces.

    Kudo, 2018, eq. 9 with l = ∞: forward filtering, backward sampling.

    Args:
        scores: Log p of the pieces. A character that is no piece is a piece by itself, with a low
            probability.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        self._longest = max(map(len, scores))
        self._unknown = min(scores.values()) - _UNKNOWN
        self._cached = lru_cache(maxsize=_REMEMBERED_OF_LATTICE)(self._segmentations)

    def drawn(self, word: str, alpha: float, chance: random.Random) -> list[str]:
        """The pieces of a word; a character that is no piece stays by itself."""
        end = len(word)
        segmentations = (
            self._cached(word, alpha) if end <= _WORD else self._segmentations(word, alpha)
        )
        pieces = []
        while end:
            starts, weights = segmentations[end - 1]
            (start,) = chance.choices(starts, cum_weights=weights)
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _segmentations(self, word: str, alpha: float) -> _Segmentations:
        """F(0) = 1, F(e) = Σ_s F(s) p(s … e)^α; the weight of a start s is its term of the sum."""
        logs = [0.0]  # log F
        segmentations = []
        for end in range(1, len(word) + 1):
            terms = []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end])
                if score is None and start == end - 1:
                    score = self._unknown
                if score is not None:
                    terms.append((start, logs[start] + alpha * score))
            maximum = max(term for _, term in terms)
            sums = list(accumulate(math.exp(term - maximum) for _, term in terms))
            logs.append(maximum + math.log(sums[-1]))
            segmentations.append(([start for start, _ in terms], sums))
        return tuple(segmentations)


_REMEMBERED_OF_MERGES = 1 << 17  # segmentations, of the words that come again and again

# How bad it is (less is better), where its first piece begins, where its second, where that ends:
# the least of them is the one to make.
_Merge = tuple[float, int, int, int]


class Merges:
    """BPE-dropout: repeatedly take the best merge, the leftmost among equals; make it, or drop it
    for good with probability `strength`; until none is left.

    Provilkov, Emelianenko & Voita, 2020.

    Args:
        scores: Of the pieces that a merge may give, the best first to be made. Without a merge left
            out the pieces are those of sentencepiece. A word of n characters takes O(n log n).
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        # Results are cached: the pieces depend only on *which* merges are dropped.
        self._cached: Callable[[str, tuple[int, ...]], tuple[list[str], int]] = lru_cache(
            maxsize=_REMEMBERED_OF_MERGES
        )(lambda word, left_out: self._segmented(word, iter(left_out)))

    def drawn(self, word: str, strength: float, chance: random.Random) -> list[str]:
        """The pieces of a word; a character that is no piece stays by itself."""
        dropped = _left_out(strength, chance)
        if len(word) > _WORD:
            return self._segmented(word, dropped)[0]
        dropped_before: tuple[int, ...] = ()
        while True:
            pieces, turns = self._cached(word, dropped_before)
            turn = next(dropped)
            if turn >= turns:
                return pieces
            dropped_before += (turn,)

    def _segmented(self, word: str, dropped: Iterator[int]) -> tuple[list[str], int]:
        """The pieces when the merges at these turns, which ascend, are left out; how many turns
        there were.
        """
        ends = [*range(1, len(word) + 1), 0]  # of the piece that begins here; 0: none does
        piece_starts = list(range(-1, len(word)))  # of the piece that ends here
        merges = [
            merge
            for start in range(len(word) - 1)
            if (merge := self._merge(word, start, start + 1, start + 2))
        ]
        heapify(merges)
        turns, next_out = 0, next(dropped, None)
        while merges:
            _, start, middle, end = heappop(merges)
            if (ends[start], ends[middle]) != (middle, end):
                continue  # a piece of it is part of another by now
            if turns == next_out:
                next_out = next(dropped, None)
            else:
                ends[start], ends[middle], piece_starts[end] = end, 0, start
                # A new piece has new neighbours.
                before, after = piece_starts[start], ends[end]
                if before >= 0 and (merge := self._merge(word, before, start, end)):
                    heappush(merges, merge)
                if after and (merge := self._merge(word, start, end, after)):
                    heappush(merges, merge)
            turns += 1
        return [word[start:end] for start, end in enumerate(ends) if end], turns

    def _merge(self, word: str, start: int, middle: int, end: int) -> _Merge | None:
        score = self._scores.get(word[start:end])
        return None if score is None else (-score, start, middle, end)


def _left_out(strength: float, chance: random.Random) -> Iterator[int]:
    """The turns at which a merge is left out."""
    stay, turn = math.log1p(-strength), -1
    while True:
        # How many merges are made before the next is left out: geometrically distributed.
        turn += 1 + int(math.log(1.0 - chance.random()) / stay)
        yield turn
