"""BPE with merges that are left out by chance."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush

_REMEMBERED = 1 << 17  # segmentations, of the words that come again and again
_WORD = 20  # characters; what is longer is a sentence without spaces, which comes once an epoch

# How bad it is (less is better), where its first piece begins, where its second, where that ends:
# the least of them is the one to make.
_Merge = tuple[float, int, int, int]


class Merges:
    """BPE-dropout: again and again the best merge, the leftmost among equals, is made, or is left
    out for good with the probability `strength`, until none is left.

    scores: of the pieces that a merge may give, the best first to be made. Without a merge left
    out the pieces are those of sentencepiece. A word of n characters takes O(n log n).

    Provilkov, Emelianenko & Voita, 2020.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        # A word is soon known by heart: its pieces depend on *which* of its merges are left out.
        self._known: Callable[[str, tuple[int, ...]], tuple[list[str], int]] = lru_cache(
            maxsize=_REMEMBERED
        )(lambda word, left_out: self._segmented(word, iter(left_out)))

    def drawn(self, word: str, strength: float, chance: random.Random) -> list[str]:
        """The pieces of a word; a character that is no piece stays by itself."""
        drawn = _left_out(strength, chance)
        if len(word) > _WORD:
            return self._segmented(word, drawn)[0]
        left_out: tuple[int, ...] = ()
        while True:
            pieces, turns = self._known(word, left_out)
            turn = next(drawn)
            if turn >= turns:
                return pieces
            left_out += (turn,)

    def _segmented(self, word: str, left_out: Iterator[int]) -> tuple[list[str], int]:
        """The pieces when the merges at these turns, which ascend, are left out; how many turns
        there were.
        """
        ends = [*range(1, len(word) + 1), 0]  # of the piece that begins here; 0: none does
        begins = list(range(-1, len(word)))  # of the piece that ends here
        merges = [
            merge
            for start in range(len(word) - 1)
            if (merge := self._merge(word, start, start + 1, start + 2))
        ]
        heapify(merges)
        turns, next_out = 0, next(left_out, None)
        while merges:
            _, start, middle, end = heappop(merges)
            if (ends[start], ends[middle]) != (middle, end):
                continue  # a piece of it is part of another by now
            if turns == next_out:
                next_out = next(left_out, None)
            else:
                ends[start], ends[middle], begins[end] = end, 0, start
                # A new piece has new neighbours.
                before, after = begins[start], ends[end]
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
