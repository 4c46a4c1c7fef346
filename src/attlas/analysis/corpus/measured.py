"""The numbers of one text, one layer, one call."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.analysis.corpus.columns import NUMBERS, RECEIVED
from attlas.analysis.corpus.reader import Look


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rows of a table are made of; its readings are let go.

    queries, slots: how many of them are tokens of this text. of_heads: a number for each head.
    of_queries: (heads, queries) of each statistic; None where nobody asked for single queries.
    tokens, argmax: of these queries.
    """

    line: int
    unread: int
    layer: str
    call: int
    relation: str
    causal: bool
    queries: int
    slots: int
    of_heads: Mapping[str, NDArray[np.float64]]
    of_queries: Mapping[str, NDArray[np.float32]] | None = None
    tokens: tuple[str, ...] = ()
    argmax: NDArray[np.int64] | None = None


def measured(look: Look, threshold: float, tokens: tuple[str, ...] | None = None) -> Measured:
    """The statistics of a look, from one pass over blocks of its rows.

    Of a head the mean over the queries of each statistic, a query that sees nothing with its 0; of
    `received` its greatest share. tokens: names of the queries, where each of them is to have
    numbers too. In self-attention the `received` of a query is the share of the slot at its place;
    else it is NaN. threshold: of `above`.
    """
    reading = look.reading
    _, heads, queries, slots = reading.shape
    asked = (*NUMBERS, RECEIVED) if tokens is None else (*NUMBERS, RECEIVED, "argmax")
    summary = reading.summary(*asked, threshold=threshold)
    numbers = {name: getattr(summary, name)[0].cpu() for name in asked}
    sums = numbers.pop(RECEIVED).double()
    shares = sums / sums.sum(-1, keepdim=True).clamp(min=np.finfo(np.float64).tiny)
    of_heads = {name: numbers[name].double().mean(-1).numpy() for name in NUMBERS}
    of_heads[RECEIVED] = shares.amax(-1).numpy()
    across = look.relation == "cross"
    place = (
        *(look.text.line, look.text.unread, look.layer, look.call, look.relation),
        *(not across and reading.causal, queries, slots),
    )
    if tokens is None:
        return Measured(*place, of_heads)
    of_queries = {name: numbers[name].float().numpy() for name in NUMBERS}
    own = np.full((heads, queries), np.nan) if across else shares.numpy()
    of_queries[RECEIVED] = own.astype(np.float32)
    return Measured(*place, of_heads, of_queries, tokens, numbers["argmax"].numpy())
