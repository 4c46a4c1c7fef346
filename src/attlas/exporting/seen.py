"""How long a text may be that a classifier sees as a whole."""

import torch

from attlas.models import Classifier, ClassifierConfig
from attlas.models.block import patterns_of
from attlas.models.classifier.reach import needed
from attlas.patterns import Pattern, everywhere
from attlas.patterns.compositions import Both, Either
from attlas.patterns.shapes import Landmarks, Strided, Window

_BEYOND = 4096  # tokens beyond what patterns name: what is all seen until there is seen for good
_MOST = 65_536  # tokens of the longest text that is asked about


def seen_whole(model: Classifier, config: ClassifierConfig) -> int | None:
    """So many tokens of a text, and fewer, all play a part in its label; None = any number does
    that the model can read.

    Only where the first token alone is pooled can it be otherwise. Beyond `_MOST` tokens nobody has
    looked: where the patterns name such numbers, no more than these are known to be seen.
    """
    patterns = patterns_of(config.patterns, config.layers)
    if config.pooling != "first" or all(pattern == everywhere for pattern in patterns):
        return None
    most = min(_MOST, _BEYOND + config.layers * max(map(_greatest, patterns)))
    if model.longest is not None:
        most = min(most, model.longest - 1)  # and END
    tokens = 1
    while tokens < most:
        tokens = min(2 * tokens, most)
        # By n: how long a text has to be, its END included, for its first n tokens to be seen.
        whole = needed(patterns, tokens + 1)[:-1].cummax(0).values
        unseen = torch.nonzero(whole > torch.arange(2, tokens + 2))
        if len(unseen):
            return int(unseen[0])
    return most if most == _MOST else None


def _greatest(pattern: Pattern) -> int:
    """The greatest place or distance that it names: far beyond, it does what it does before."""
    match pattern:
        case Both(left, right) | Either(left, right):
            return max(_greatest(left), _greatest(right))
        case Window(number) | Strided(number):
            return number
        case Landmarks(places):
            return max(places, default=0)
        case _:
            return 0
