"""Which words an attention from a target to its source links."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.alignment.symmetrisation import Links
from attlas.decoding.alignment import Link, links_of, word_links
from attlas.errors import AttlasError
from attlas.recording import Reading

Words = Sequence[Sequence[int]]
"""Of each token the words that it is a part of, counted from 0; () = a special token, of none."""

Step = Literal["writes", "reads"]
"""The step of a decoder that stands for a token: the one that predicts it, or the one after it."""

_AT_ONCE = 1 << 20  # weights


def argmax_links(
    readings: Reading | Sequence[Reading],
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(argmax_i w_ti, t)}: each target token with the source token that it looked at most.

    w: the mean over the heads, and over the readings, of one pair of texts: (1, heads, queries,
    slots). Special tokens are left out on both sides, also of the argmax; equal weights: the first
    source token. Two words are linked where any of their tokens are. A token whose query saw no
    token of the source has no link.

    sources, targets: the words of each token, e.g. `[() if w is None else (w,) for w in word_ids]`
    of a Hugging Face tokenizer; None = every slot, or query, is a word.
    step: in a decoder that is fed its own output, query t has read token t − 1 and predicts token
    t. "writes" takes it for token t; "reads" takes query t + 1, which is given token t as input
    and, in the lower layers, looks where that came from (Chen et al., 2020, section 3.1). Then
    query 0, which reads BEGIN, stands for no token.

    Errors: `AttlasError` for readings that are not of one pair and one shape, for words that do not
    fit them, and where a token is not read by any query.
    """
    looked = _Looked.of(readings, sources, targets, step)
    links: list[Link] = []
    for tokens, weights in looked.blocks():
        places = links_of(weights, len(tokens), len(looked.slots))
        links += [(looked.slots[i], tokens[t]) for i, t in places if float(weights[t, i]) > 0]
    return looked.words_of(links)


def argmax_links_of_sources(
    readings: Reading | Sequence[Reading],
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(i, argmax_t w_ti)}: each source token with the target token that looks at it most.

    The other direction of the same map; with `argmax_links` and `intersection` it gives the links
    that are best both ways (Jalili Sabet et al., SimAlign, 2020). Otherwise as `argmax_links`.
    """
    looked = _Looked.of(readings, sources, targets, step)
    most = torch.zeros(len(looked.slots))
    best = torch.full((len(looked.slots),), -1)
    for tokens, weights in looked.blocks():
        greatest, where = weights.max(0)
        most, best = most.to(greatest), best.to(where)
        better = greatest > most
        best = torch.where(better, torch.tensor(tokens).to(where)[where], best)
        most = torch.where(better, greatest, most)
    pairs = zip(looked.slots, best.tolist(), strict=True)
    return looked.words_of([(i, t) for i, t in pairs if t >= 0])


def threshold_links(
    readings: Reading | Sequence[Reading],
    threshold: float,
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(i, t) : w_ti > threshold}: any number of links to a word. Otherwise as `argmax_links`.

    Errors: as `argmax_links`; `AttlasError` for a threshold that is no weight.
    """
    if not 0 <= threshold < 1:
        raise AttlasError("a threshold from 0 to below 1", str(threshold), "weights are at most 1")
    looked = _Looked.of(readings, sources, targets, step)
    links: list[Link] = []
    for tokens, weights in looked.blocks():
        found = (weights > threshold).nonzero().tolist()
        links += [(looked.slots[i], tokens[t]) for t, i in found]
    return looked.words_of(links)


@dataclass(frozen=True, slots=True)
class _Looked:
    """Maps from a target to a source, and which of their tokens stand for which words.

    slots: the source tokens that are of a word; asked: the query of each target token that is of a
    word, and that token.
    """

    readings: tuple[Reading, ...]
    sources: Words
    targets: Words
    slots: list[int]
    asked: list[tuple[int, int]]

    @classmethod
    def of(
        cls,
        readings: Reading | Sequence[Reading],
        sources: Words | None,
        targets: Words | None,
        step: Step,
    ) -> "_Looked":
        maps = (readings,) if isinstance(readings, Reading) else tuple(readings)
        shapes = {(reading.shape[0], *reading.shape[2:]) for reading in maps}
        if len(shapes) != 1 or next(iter(shapes))[0] != 1:
            raise AttlasError(
                "readings of one pair of texts, (1, heads, queries, slots) each",
                ", ".join(str(reading.shape) for reading in maps) or "none",
                "choose the batch row with reading.at(row), and layers that look at the source",
            )
        _, queries, slots = next(iter(shapes))
        later = 1 if step == "reads" else 0
        sources = [(i,) for i in range(slots)] if sources is None else sources
        targets = [(t,) for t in range(queries - later)] if targets is None else targets
        if len(sources) != slots:
            raise AttlasError(
                f"the words of each of {slots:,} source tokens",
                f"those of {len(sources):,}",
                "give () for a token of no word, END among them",
            )
        asked = [(t + later, t) for t, words in enumerate(targets) if words]
        if len(targets) > queries or (asked and asked[-1][0] >= queries):
            raise AttlasError(
                f"target tokens that {queries:,} queries {step.removesuffix('s')}",
                f"{len(targets):,} tokens",
                "name the tokens of this very map; one that only reads has to be finished by END",
            )
        return cls(maps, sources, targets, [i for i, words in enumerate(sources) if words], asked)

    def blocks(self) -> Iterator[tuple[list[int], Float[Tensor, "tokens sources"]]]:
        """Some target tokens, and their mean weights on the source tokens that count."""
        heads = sum(reading.shape[1] for reading in self.readings)
        queries, slots = self.readings[0].shape[2:]
        size = max(1, _AT_ONCE // max(1, heads * slots))
        place = 0
        for start in range(0, queries if self.slots else 0, size):
            stop = min(start + size, queries)
            mine = place
            while place < len(self.asked) and self.asked[place][0] < stop:
                place += 1
            chosen = self.asked[mine:place]
            if not chosen:
                continue
            # Half-precision means of different slots would be rounded to the same number.
            means = [_precise(reading.rows(start, stop)[0]).mean(0) for reading in self.readings]
            rows = torch.tensor([query - start for query, _ in chosen]).to(means[0].device)
            weights = torch.stack(means).mean(0)[rows][:, self.slots]
            yield [token for _, token in chosen], weights

    def words_of(self, links: Sequence[Link]) -> Links:
        return frozenset(word_links(links, self.sources, self.targets))


def _precise(weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return weights.to(torch.promote_types(weights.dtype, torch.float32))
