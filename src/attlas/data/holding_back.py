"""A part of the training data held back, to choose the best checkpoint by."""

import hashlib
from collections import defaultdict
from dataclasses import replace

from attlas.data.amount import amount
from attlas.data.filters import FilterReport
from attlas.data.labelled_corpus import LabelledCorpus
from attlas.errors import AttlasError


def held_back(
    corpus: LabelledCorpus, size: int | float, seed: int
) -> tuple[LabelledCorpus, LabelledCorpus]:
    """What is left, and the part held back: `size` texts, or that share of them.

    Texts come in the order of the SHA-256 of (seed, text), so that the choice is the same whatever
    their order in the file. All copies of a text are on one side; a text whose copies are too many
    for what is still missing is passed over.
    Errors: `AttlasError` where nothing would be left to train on, or nothing to hold back.
    """
    wanted = size if isinstance(size, int) else max(1, round(size * len(corpus)))
    if wanted >= len(corpus):
        raise AttlasError(
            f"fewer than the {amount(len(corpus), 'text')} of {corpus.name} to hold back",
            f"data.held_back = {size}",
            "lower it",
        )
    groups: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(corpus.texts):
        groups[text].append(place)
    chosen: set[int] = set()
    for text in sorted(groups, key=lambda text: _lot(seed, text)):
        if len(chosen) + len(groups[text]) <= wanted:
            chosen.update(groups[text])
    rest = [place for place in range(len(corpus)) if place not in chosen]
    if not chosen:
        raise AttlasError(
            f"different texts in {corpus.name}, of which some can be held back",
            f"copies of {amount(len(groups), 'text')} alone",
            "check the data, or name a file in data.valid",
        )
    told = f"{amount(len(chosen), 'text')} held back", *_copies(corpus, groups)
    remaining = replace(corpus.report, remarks=(*corpus.report.remarks, *told))
    taken = FilterReport(corpus.name, len(corpus), len(chosen), example="text")
    return (
        corpus.part(rest, f"{corpus.name} without the part held back", remaining),
        corpus.part(sorted(chosen), f"{corpus.name}, held back (seed {seed})", taken),
    )


def _copies(corpus: LabelledCorpus, groups: dict[str, list[int]]) -> list[str]:
    """What there is to say of texts that occur again."""
    copies = len(corpus) - len(groups)
    if not copies:
        return []
    split = sum(len({corpus.labels[place] for place in places}) > 1 for places in groups.values())
    told = [f"{amount(copies, 'copy', 'copies')} of a text on the side of that text"]
    return told + ([f"{amount(split, 'text')} with several labels"] if split else [])


def _lot(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed} {text}".encode()).digest()
