"""BPE with merges that are left out by chance."""

import math
import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise

_REMEMBERED = 1 << 17  # segmentations, of the words that come again and again


class Merges:
    """BPE-dropout: again and again the best merge, the leftmost among equals, is made, or is left
    out for good with the probability `strength`, until none is left.

    scores: of the pieces that a merge may give, the best first to be made. Without a merge left
    out the pieces are those of sentencepiece.

    Provilkov, Emelianenko & Voita, 2020.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        # A word is soon known by heart: its pieces depend on *which* of its merges are left out.
        self._known: Callable[[str, tuple[int, ...]], tuple[list[str], int]] = lru_cache(
            maxsize=_REMEMBERED
        )(self._segmented)

    def drawn(self, word: str, strength: float, chance: random.Random) -> list[str]:
        """The pieces of a word; a character that is no piece stays by itself."""
        dropped: tuple[int, ...] = ()
        stay = math.log1p(-strength)
        turn = -1
        while True:
            pieces, turns = self._known(word, dropped)
            # How many merges are made before the next is left out: geometrically distributed.
            turn += 1 + int(math.log(1.0 - chance.random()) / stay)
            if turn >= turns:
                return pieces
            dropped += (turn,)

    def _segmented(self, word: str, dropped: tuple[int, ...]) -> tuple[list[str], int]:
        """The pieces when the merges at these turns are left out; how many turns there were."""
        pieces, turns = list(word), 0
        left_out = [False] * len(pieces)  # of a piece: with the one after it
        while True:
            found = [
                (-self._scores[pair], place)
                for place, pair in enumerate(map("".join, pairwise(pieces)))
                if pair in self._scores and not left_out[place]
            ]
            if not found:
                return pieces, turns
            place = min(found)[1]
            if turns in dropped:
                left_out[place] = True
            else:
                pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
                del left_out[place + 1]
                left_out[place] = False  # a new piece has new neighbours
                if place:
                    left_out[place - 1] = False
            turns += 1
