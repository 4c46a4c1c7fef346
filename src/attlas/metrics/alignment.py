"""Alignment error rate: links against links of annotators."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from attlas.errors import DataError

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """Shares, 1 = all, of `links` guessed links.

    Args:
        precision: None where nothing was guessed.
    """

    error: float
    precision: float | None
    recall: float
    links: int

    def __str__(self) -> str:
        """ "16.4% (80.0%/90.1%/7313)": error rate, precision, recall, links."""
        precision = "–" if self.precision is None else f"{self.precision:.1%}"
        return f"{self.error:.1%} ({precision}/{self.recall:.1%}/{self.links})"


def alignment_error(
    guessed: Sequence[AbstractSet[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]] | None = None,
) -> AlignmentScore:
    """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) Och & Ney, 2003, section 5.

    Precision = |A ∩ P| / |A|, recall = |A ∩ S| / |S|, counted over all sentences together.
    guessed, A: the links (source, target) of each sentence; sure, S, and possible, P: those of the
    reference. A sure link is possible too, whether `possible` names it or not; None = those alone.
    All of them count words from the same number, and name the source first.

    Raises:
        DataError: For another number of sentences, and for a reference without a sure link, which
            nothing could be recalled from.
    """
    possible = sure if possible is None else possible
    if not len(guessed) == len(sure) == len(possible):
        raise DataError(
            "the links of the same sentences",
            f"{len(guessed):,} guessed, {len(sure):,} sure and {len(possible):,} possible",
            "give an empty set for a sentence without links",
        )
    sure_links = sum(map(len, sure))
    if not sure_links:
        raise DataError(
            "a reference with at least one sure link",
            f"none in {len(sure):,} sentences",
            "check how it marks sure and possible links",
        )
    links = in_sure = in_possible = 0
    for predicted_links, certain, possible_links in zip(guessed, sure, possible, strict=True):
        links += len(predicted_links)
        in_sure += len(predicted_links & certain)
        in_possible += len(predicted_links & (possible_links | certain))
    return AlignmentScore(
        error=1 - (in_sure + in_possible) / (links + sure_links),
        precision=in_possible / links if links else None,
        recall=in_sure / sure_links,
        links=links,
    )
