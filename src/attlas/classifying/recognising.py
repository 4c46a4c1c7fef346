"""Whether a vocabulary has anything of a text."""

import re
from collections.abc import Sequence

from attlas.data import Subwords, Vocabulary
from attlas.data.vocabulary import UNKNOWN

_SPELT = re.compile("▁|<0x[0-9A-F]{2}>")  # sentencepiece's space, and a byte of what it lacks


def recognised(vocabulary: Vocabulary, ids: Sequence[int]) -> bool:
    """Whether one of these tokens at least is more than unknown, a byte of a character, or a space.

    Bytes stand for characters that the training data hardly had: a text that is spelt in them alone
    is in another script.
    """
    if not isinstance(vocabulary, Subwords):
        return any(id_ != UNKNOWN and vocabulary.decode([id_]) != " " for id_ in ids)
    return any(_SPELT.fullmatch(vocabulary.pieces([id_])[0]) is None for id_ in ids)
