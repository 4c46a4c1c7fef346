"""The numbers of one text, one layer, one call."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.corpus_statistics.readers import MapRecord
from attlas.recording.maps.statistics import PLACED

# The columns of the tables of statistics.


Kind = Literal["whole", "number", "flag", "text"]

FORMAT = 2
"""The version of the names of the columns, in the facts that come with a table."""

NUMBERS = (
    *(
        "entropy",
        "normalized_entropy",
        "effective_keys",
        "num_visible",
        "max_weight",
        "distance",
        "count_above",
    ),
    *("first_weight", "last_weight", "self_weight", "previous_weight", "next_weight"),
)
"""The statistics of a query that have columns: formulas and units are those of `AttentionMap`."""

RECEIVED = "received"
"""A key's share of all attention, max_j Σ_i w_ij / Σ_ij w_ij; of a token, that of its own key."""

ON_SPECIAL = "special_weight"
"""Σ_{j special} w_ij, of the keys whose tokens stand for no text, such as [CLS] and [SEP]."""

ALSO = (ON_SPECIAL, "gini")
"""What costs another pass over the map, or sorts its rows: has a column where it is asked for."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands below one name: whole numbers, numbers in float64, true or false, or text."""

    name: str
    kind: Kind


_PLACE = (
    Column("line", "whole"),
    Column("layer", "text"),
    Column("call", "whole"),
    Column("head", "whole"),
    Column("kind", "text"),
    Column("causal", "flag"),
    Column("queries", "whole"),
    Column("keys", "whole"),
    Column("unread", "whole"),
    Column("finished", "flag"),
)
_TOKEN = (Column("position", "whole"), Column("token", "text"), Column("argmax", "whole"))


def columns_of(*, by_token: bool, also: Collection[str] = ()) -> tuple[Column, ...]:
    """Of one row for each head of each layer and text, or for each of its queries.

    Args:
        also: Those of `ALSO` that have a column too.
    """
    numbers = (*NUMBERS, RECEIVED, *(name for name in ALSO if name in also))
    return (*_PLACE, *(_TOKEN if by_token else ()), *(Column(name, "number") for name in numbers))


COLUMNS = columns_of(by_token=False)
"""Of one row for each head of each layer and text: means over its queries."""

TOKEN_COLUMNS = columns_of(by_token=True)
"""Of one row for each query of each head."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rows of a table are made of; its attention maps are let go.

    queries, keys: how many of them are tokens of this text.

    Args:
        of_heads: A number for each head.
        of_queries: (heads, queries) of each statistic; None where nobody asked for single queries.
        tokens, argmax: Of these queries.
    """

    line: int
    unread: int
    finished: bool
    layer: str
    call: int
    kind: str
    causal: bool | None
    queries: int
    num_keys: int
    of_heads: Mapping[str, NDArray[np.float64]]
    of_queries: Mapping[str, NDArray[np.float32]] | None = None
    tokens: tuple[str, ...] = ()
    argmax: NDArray[np.int64] | None = None


def measure_map(
    record: MapRecord,
    threshold: float,
    tokens: tuple[str, ...] | None = None,
    also: Collection[str] = (),
) -> Measured:
    """The statistics of a look, from one pass over blocks of its rows; `special_weight` takes
    another.

    Of a head the mean over the queries of each statistic, a query that sees nothing with its 0; of
    `received` its greatest share.

    Args:
        tokens: Names of the queries, where each of them is to have numbers too. In self-attention
            the `received` of a query is the share of the key at its place; else it is NaN, as is
            what depends on places of queries that nobody knows.
        threshold: Of `count_above`.
        also: Further ones, of `ALSO`.
    """
    attention_map, text = record.attention_map, record.text
    _, heads, queries, num_keys = attention_map.shape
    plain = (*NUMBERS, *(name for name in also if name != ON_SPECIAL), RECEIVED)
    statistics = plain if tokens is None else (*plain, "argmax")
    without_position = PLACED if attention_map.position is None else ()
    known = [name for name in statistics if name not in without_position]
    summary = attention_map.summary(*known, threshold=threshold)
    numbers = {name: getattr(summary, name)[0].cpu() for name in known}
    numbers |= {name: torch.full((heads, queries), torch.nan) for name in without_position}
    if ON_SPECIAL in also:
        numbers[ON_SPECIAL] = _special_weight(record)
    sums = numbers.pop(RECEIVED).double()
    shares = sums / sums.sum(-1, keepdim=True).clamp(min=np.finfo(np.float64).tiny)
    names = (*NUMBERS, *also)
    of_heads = {name: numbers[name].double().mean(-1).numpy() for name in names}
    of_heads[RECEIVED] = shares.amax(-1).numpy()
    cross_attention = record.kind == "cross"
    place = (
        *(text.line, text.unread, text.finished, record.layer, record.call, record.kind),
        *(False if cross_attention else attention_map.causal, queries, num_keys),
    )
    if tokens is None:
        return Measured(*place, of_heads)
    of_queries = {name: numbers[name].float().numpy() for name in names}
    own = np.full((heads, queries), np.nan)
    query_offset = None if cross_attention else attention_map.position
    if query_offset is not None and query_offset >= 0:
        there = shares[:, query_offset : query_offset + queries].numpy()
        own[:, : there.shape[1]] = there
    of_queries[RECEIVED] = own.astype(np.float32)
    return Measured(*place, of_heads, of_queries, tokens, numbers["argmax"].numpy())


def _special_weight(record: MapRecord) -> Float[Tensor, "heads queries"]:
    """Σ_{j special} w_ij."""
    _, heads, queries, num_keys = record.attention_map.shape
    if not record.special:
        return torch.zeros(heads, queries)
    groups = torch.full((num_keys,), -1)
    groups[list(record.special)] = 0
    return record.attention_map.mass(groups)[0, ..., 0].cpu()


# Rows of a table, column by column, a bounded number of them at a time.


Frame = dict[str, list[Any]]
"""As many values below each name; None = there is no such number."""

AT_ONCE = 1 << 14
"""Rows of a frame, unless one head of one layer has more."""


def frames(
    found: Iterable[Measured],
    *,
    by_token: bool,
    also: Collection[str] = (),
    at_once: int = AT_ONCE,
) -> Iterator[Frame]:
    """One row for each head, or each of its queries, in their order; no frame is empty.

    Args:
        also: Further columns, which were measured.
    """
    names = [column.name for column in columns_of(by_token=by_token, also=also)]
    frame: Frame = {name: [] for name in names}
    for measured in found:
        for head in range(len(measured.of_heads[RECEIVED])):
            rows = _of_queries(measured, head) if by_token else _of_head(measured, head)
            count = len(rows[RECEIVED])
            place = {
                "line": measured.line,
                "layer": measured.layer,
                "call": measured.call,
                "head": head,
                "kind": measured.kind,
                "causal": measured.causal,
                "queries": measured.queries,
                "keys": measured.num_keys,
                "unread": measured.unread,
                "finished": measured.finished,
            }
            for name in names:
                frame[name] += rows[name] if name in rows else [place[name]] * count
            if len(frame[RECEIVED]) >= at_once:
                yield frame
                frame = {name: [] for name in names}
    if frame[RECEIVED]:
        yield frame


def _of_head(measured: Measured, head: int) -> Frame:
    return {name: _cells([float(numbers[head])]) for name, numbers in measured.of_heads.items()}


def _of_queries(measured: Measured, head: int) -> Frame:
    assert measured.of_queries is not None
    assert measured.argmax is not None
    rows: Frame = {
        name: _cells(numbers[head].tolist()) for name, numbers in measured.of_queries.items()
    }
    rows["position"] = list(range(measured.queries))
    rows["token"] = list(measured.tokens)
    rows["argmax"] = measured.argmax[head].tolist()
    return rows


def _cells(numbers: list[float]) -> list[float | None]:
    """NaN: there is no such key, or nobody knows which it is."""
    return [None if number != number else number for number in numbers]
