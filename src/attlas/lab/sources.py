"""The texts and papers whose claims are judged."""

from attlas.lab.experiment import Source

_LESSON = "Learn AI Series 51, Attention Mechanisms"
_CHAPTER_17 = "Chapter 17, Attention & Transformers"
_SELF_ATTENTION = "Self-Attention (with an interactive visualiser)"
_CHAPTER_4 = "Chapter 4, Attention Mechanism"


def lesson(place: str) -> Source:
    """A section of the lesson on attention mechanisms."""
    return Source(_LESSON, place)


def self_attention(place: str) -> Source:
    """A section of the chapter on self-attention."""
    return Source(_SELF_ATTENTION, place)


def chapter_17(place: str) -> Source:
    """A section of the chapter on attention in NumPy."""
    return Source(_CHAPTER_17, place)


def chapter_4(place: str) -> Source:
    """A section of the chapter on attention in sequence-to-sequence models."""
    return Source(_CHAPTER_4, place)
