"""The texts and papers whose claims are judged."""

from attlas.lab.experiment import Source

_LESSON = "Learn AI Series 51, Attention Mechanisms"
_CHAPTER_17 = "Chapter 17, Attention & Transformers"
_SELF_ATTENTION = "Self-Attention (with an interactive visualiser)"
_CHAPTER_4 = "Chapter 4, Attention Mechanism"


def is_teaching_text(source: Source) -> bool:
    """Return True for the texts that teach attention, whose figures are of no study."""
    return source.title in (_LESSON, _CHAPTER_17, _SELF_ATTENTION, _CHAPTER_4)


def _source(title: str, place: str) -> Source:
    return Source(title, f"section {place}" if place[0].isdigit() else f"“{place}”", read=True)


def lesson(place: str) -> Source:
    """A section of the lesson on attention mechanisms."""
    return _source(_LESSON, place)


def self_attention(place: str) -> Source:
    """A section of the chapter on self-attention."""
    return _source(_SELF_ATTENTION, place)


def chapter_17(place: str) -> Source:
    """A section of the chapter on attention in NumPy."""
    return _source(_CHAPTER_17, place)


def chapter_4(place: str) -> Source:
    """A section of the chapter on attention in sequence-to-sequence models."""
    return _source(_CHAPTER_4, place)
