"""The numbers of one text, one layer, one call."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.analysis.corpus.columns import NUMBERS, ON_SPECIAL, RECEIVED
from attlas.analysis.corpus.reader import Look
from attlas.recording.streaming.summarising import PLACED


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rows of a table are made of; its readings are let go.

    queries, slots: how many of them are tokens of this text. of_heads: a number for each head.
    of_queries: (heads, queries) of each statistic; None where nobody asked for single queries.
    tokens, argmax: of these queries.
    """

    line: int
    unread: int
    finished: bool
    layer: str
    call: int
    relation: str
    causal: bool | None
    queries: int
    slots: int
    of_heads: Mapping[str, NDArray[np.float64]]
    of_queries: Mapping[str, NDArray[np.float32]] | None = None
    tokens: tuple[str, ...] = ()
    argmax: NDArray[np.int64] | None = None


def measured(
    look: Look,
    threshold: float,
    tokens: tuple[str, ...] | None = None,
    also: Collection[str] = (),
) -> Measured:
    """The statistics of a look, from one pass over blocks of its rows; `on_special` takes another.

    Of a head the mean over the queries of each statistic, a query that sees nothing with its 0; of
    `received` its greatest share. tokens: names of the queries, where each of them is to have
    numbers too. In self-attention the `received` of a query is the share of the slot at its place;
    else it is NaN, as is what depends on places of queries that nobody knows. threshold: of
    `above`. also: further ones, of `ALSO`.
    """
    reading, text = look.reading, look.text
    _, heads, queries, slots = reading.shape
    plain = (*NUMBERS, *(name for name in also if name != ON_SPECIAL), RECEIVED)
    asked = plain if tokens is None else (*plain, "argmax")
    unplaced = PLACED if reading.position is None else ()
    known = [name for name in asked if name not in unplaced]
    summary = reading.summary(*known, threshold=threshold)
    numbers = {name: getattr(summary, name)[0].cpu() for name in known}
    numbers |= {name: torch.full((heads, queries), torch.nan) for name in unplaced}
    if ON_SPECIAL in also:
        numbers[ON_SPECIAL] = _on_special(look)
    sums = numbers.pop(RECEIVED).double()
    shares = sums / sums.sum(-1, keepdim=True).clamp(min=np.finfo(np.float64).tiny)
    names = (*NUMBERS, *also)
    of_heads = {name: numbers[name].double().mean(-1).numpy() for name in names}
    of_heads[RECEIVED] = shares.amax(-1).numpy()
    across = look.relation == "cross"
    place = (
        *(text.line, text.unread, text.finished, look.layer, look.call, look.relation),
        *(False if across else reading.causal, queries, slots),
    )
    if tokens is None:
        return Measured(*place, of_heads)
    of_queries = {name: numbers[name].float().numpy() for name in names}
    own = np.full((heads, queries), np.nan)
    first = None if across else reading.position
    if first is not None and first >= 0:
        there = shares[:, first : first + queries].numpy()
        own[:, : there.shape[1]] = there
    of_queries[RECEIVED] = own.astype(np.float32)
    return Measured(*place, of_heads, of_queries, tokens, numbers["argmax"].numpy())


def _on_special(look: Look) -> Float[Tensor, "heads queries"]:
    """Σ_{j special} w_ij."""
    _, heads, queries, slots = look.reading.shape
    if not look.special:
        return torch.zeros(heads, queries)
    groups = torch.full((slots,), -1)
    groups[list(look.special)] = 0
    return look.reading.mass(groups)[0, ..., 0].cpu()
