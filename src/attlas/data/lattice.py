"""All segmentations of a word, with their probabilities."""

import math
import random
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate

_REMEMBERED = 1 << 16  # words, which come again and again
_WORD = 20  # characters; what is longer is a sentence without spaces, which comes once an epoch
_UNKNOWN = 10.0  # how much less likely than the rarest piece, in nats, as in sentencepiece

# For each place of a word: where a piece that ends there may begin, and the sums of their weights.
_Ways = tuple[tuple[list[int], list[float]], ...]


class Lattice:
    """p(x_1 … x_n) ∝ ∏ p(x_i)^α over all segmentations of a word into pieces.

    scores: log p of the pieces. A character that is no piece stands by itself, unlikely.

    Kudo, 2018, eq. 9 with l = ∞: forward filtering, backward sampling.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        self._longest = max(map(len, scores))
        self._unknown = min(scores.values()) - _UNKNOWN
        self._known = lru_cache(maxsize=_REMEMBERED)(self._ways)

    def drawn(self, word: str, alpha: float, chance: random.Random) -> list[str]:
        """The pieces of a word; a character that is no piece stays by itself."""
        end = len(word)
        ways = self._known(word, alpha) if end <= _WORD else self._ways(word, alpha)
        pieces = []
        while end:
            starts, weights = ways[end - 1]
            (start,) = chance.choices(starts, cum_weights=weights)
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _ways(self, word: str, alpha: float) -> _Ways:
        """F(0) = 1, F(e) = Σ_s F(s) p(s … e)^α; the weight of a start s is its term of the sum."""
        logs = [0.0]  # log F
        ways = []
        for end in range(1, len(word) + 1):
            terms = []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end])
                if score is None and start == end - 1:
                    score = self._unknown
                if score is not None:
                    terms.append((start, logs[start] + alpha * score))
            most = max(term for _, term in terms)
            sums = list(accumulate(math.exp(term - most) for _, term in terms))
            logs.append(most + math.log(sums[-1]))
            ways.append(([start for start, _ in terms], sums))
        return tuple(ways)
