"""Columns and rows of the tables of statistics."""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from attlas.corpus_statistics.readers import MapRecord
from attlas.recording import AttentionMap
from attlas.recording.maps.joining import causal_by_weights, join_heads, join_key
from attlas.recording.maps.statistics import PLACED

# The columns of the tables of statistics.


Kind = Literal["whole", "number", "flag", "text"]

FORMAT = 2
"""The version of the names of the columns, in the facts that come with a table."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: whole numbers, numbers in float64, true or false, or text.

    Args:
        meaning: What a value is, in Markdown. In formulas, w are the weights of one query, n the
            keys that it may see, i its position and j that of a key.
    """

    name: str
    kind: Kind
    meaning: str


_NUMBERS = (
    Column("entropy", "number", "−Σ w log w, in nats"),
    Column("normalized_entropy", "number", "entropy / log n, from 0 to 1; 0 if n < 2"),
    Column("effective_keys", "number", "exp(entropy): so many equal weights have this entropy"),
    Column("num_visible", "number", "n"),
    Column("max_weight", "number", "max w"),
    Column(
        "distance",
        "number",
        "Σ_j w_j \\|i − j\\|, in tokens ([Vig & Belinkov, 2019]"
        "(https://aclanthology.org/W19-4808/), section 4.3)",
    ),
    Column("count_above", "number", "how many w > `--threshold`, by default 0.01"),
    Column("first_weight", "number", "the weight of the first key"),
    Column("last_weight", "number", "the weight of the last key"),
    Column("self_weight", "number", "w_i,i"),
    Column("previous_weight", "number", "w_i,i−1"),
    Column("next_weight", "number", "w_i,i+1"),
)

NUMBERS = tuple(column.name for column in _NUMBERS)
"""The statistics of a query that have columns: formulas and units are those of `AttentionMap`."""

RECEIVED = "received"
"""A key's share of all attention, max_j Σ_i w_ij / Σ_ij w_ij; of a token, that of its own key."""

ON_SPECIAL = "special_weight"
"""Σ_{j special} w_ij, of the keys whose tokens stand for no text, such as [CLS] and [SEP]."""

ALSO = (ON_SPECIAL, "gini")
"""Columns on request: they need another pass over the map, or sort its rows."""

_RECEIVED = Column(
    RECEIVED, "number", "max_j Σ_i w_ij / Σ_ij w_ij: the largest share of all attention of one key"
)
_ALSO = (
    Column(
        ON_SPECIAL,
        "number",
        "Σ w_ij over the special tokens j: `[CLS]`, `[SEP]`, begin, end. "
        "An unknown word is no special token.",
    ),
    Column(
        "gini",
        "number",
        "Σ_k (2k − n − 1) w_(k) / (n Σ w), weights in ascending order: 0 if all are equal, "
        "(n − 1) / n if one key has everything",
    ),
)
_POSITION = (
    Column("line", "whole", "the line of the corpus, from 1"),
    Column("layer", "text", "the path of the module in its model"),
    Column("call", "whole", "the call of that module, from 0; above 0 if layers share it"),
    Column("head", "whole", "the head, from 0"),
    Column("kind", "text", "`self`: queries and keys are of one text; `cross`: of two texts"),
    Column(
        "causal", "flag", "true if no query sees a later key; false for `cross`; empty: unknown"
    ),
    Column("queries", "whole", "how many queries, special tokens included"),
    Column("keys", "whole", "how many keys, special tokens included"),
    Column("unread", "whole", "tokens of the text that were left out"),
    Column("finished", "flag", "false if the model's own text did not end"),
)
_TOKEN = (
    Column("position", "whole", "the position of the query, from 0"),
    Column("token", "text", "the token of the query; in a decoder, the token that it predicts"),
    Column("argmax", "whole", "the key with the largest weight; −1 if the query sees none"),
)


def columns_of(*, by_token: bool, also: Collection[str] = ()) -> tuple[Column, ...]:
    """Return the columns of one row for each head, or for each query of each head.

    Args:
        also: The names of `ALSO` that have a column too.
    """
    extra = (column for column in _ALSO if column.name in also)
    return (*_POSITION, *(_TOKEN if by_token else ()), *_NUMBERS, _RECEIVED, *extra)


COLUMNS = columns_of(by_token=False)
"""Of one row for each head of each layer and text: means over its queries."""

TOKEN_COLUMNS = columns_of(by_token=True)
"""Of one row for each query of each head."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The statistics of one map, without the map.

    Args:
        queries, num_keys: How many of them are tokens of this text.
        of_heads: A number for each head.
        of_queries: (heads, queries) of each statistic; None unless rows by token were requested.
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
    """The statistics of a map, in one pass over blocks of its rows; `special_weight` needs another.

    For each head, each statistic is the mean over the queries, where a query that sees nothing
    counts as 0; `received` is the greatest share.

    Args:
        tokens: Names of the queries, if each query has a row, too. In self-attention the `received`
            of a query is the share of the key at its position. Otherwise it is NaN, and so is
            everything that depends on unknown positions.
        threshold: Of `count_above`.
        also: Further ones, of `ALSO`.
    """
    return measure_joined_maps([record], threshold, None if tokens is None else [tokens], also)[0]


def measure_joined_maps(
    records: Sequence[MapRecord],
    threshold: float,
    tokens: Sequence[tuple[str, ...]] | None = None,
    also: Collection[str] = (),
) -> list[Measured]:
    """`measure_map` of each of them. Small maps of the same shape are read together.

    Args:
        tokens: Those of each record; None = no rows by token.
    """
    measured: dict[int, Measured] = {}
    for indices in _groups(records):
        group = [records[index] for index in indices]
        names = None if tokens is None else [tokens[index] for index in indices]
        measured.update(zip(indices, _measure_group(group, threshold, names, also), strict=True))
    return [measured[index] for index in range(len(records))]


TOGETHER = 1 << 20
"""Weights of maps that are read together."""


def _groups(records: Sequence[MapRecord]) -> Iterator[list[int]]:
    """The indices of records whose maps are joined: at most `TOGETHER` weights at a time."""
    open_groups: dict[Hashable, list[int]] = {}
    for index, record in enumerate(records):
        size = math.prod(record.attention_map.shape)
        key = join_key(record.attention_map) if 0 < size <= TOGETHER // 2 else None
        if key is None:
            yield [index]
            continue
        group = open_groups.setdefault((key, record.special, record.kind), [])
        group.append(index)
        if (len(group) + 1) * size > TOGETHER:
            yield open_groups.pop((key, record.special, record.kind))
    yield from open_groups.values()


def _measure_group(
    records: Sequence[MapRecord],
    threshold: float,
    tokens: Sequence[tuple[str, ...]] | None,
    also: Collection[str],
) -> Iterator[Measured]:
    """The statistics of maps that can be joined."""
    joined = join_heads([record.attention_map for record in records])
    count, (_, heads, queries, num_keys) = len(records), records[0].attention_map.shape
    statistic_names = (*NUMBERS, *(name for name in also if name != ON_SPECIAL), RECEIVED)
    statistics = statistic_names if tokens is None else (*statistic_names, "argmax")
    without_position = PLACED if joined.position is None else ()
    selected = [name for name in statistics if name not in without_position]
    summary = joined.summary(*selected, threshold=threshold)
    numbers = {name: getattr(summary, name)[0].cpu() for name in selected}
    shape = count * heads, queries
    numbers |= {name: torch.full(shape, torch.nan) for name in without_position}
    if ON_SPECIAL in also:
        numbers[ON_SPECIAL] = _special_weight(joined, records[0].special)
    sums = numbers.pop(RECEIVED).double()
    shares = sums / sums.sum(-1, keepdim=True).clamp(min=np.finfo(np.float64).tiny)
    names = (*NUMBERS, *also)
    of_heads = {name: numbers[name].double().mean(-1).numpy() for name in names}
    of_heads[RECEIVED] = shares.amax(-1).numpy()
    cross_attention = records[0].kind == "cross"
    causal = False if cross_attention else joined.causal
    each = count > 1 and causal is False and not cross_attention and causal_by_weights(joined)
    query_columns: dict[str, NDArray[np.float32]] = {}
    if tokens is not None:
        query_columns = {name: numbers[name].float().numpy() for name in names}
        by_query = np.full(shape, np.nan)
        query_offset = None if cross_attention else joined.position
        if query_offset is not None and query_offset >= 0:
            received = shares[:, query_offset : query_offset + queries].numpy()
            by_query[:, : received.shape[1]] = received
        query_columns[RECEIVED] = by_query.astype(np.float32)
    for index, record in enumerate(records):
        own = slice(index * heads, (index + 1) * heads)
        text = record.text
        yield Measured(
            *(text.line, text.unread, text.finished, record.layer, record.call, record.kind),
            *(record.attention_map.causal if each else causal, queries, num_keys),
            {name: values[own] for name, values in of_heads.items()},
            None if tokens is None else {name: v[own] for name, v in query_columns.items()},
            () if tokens is None else tokens[index],
            None if tokens is None else numbers["argmax"][own].numpy(),
        )


def _special_weight(
    attention_map: AttentionMap, special: Sequence[int]
) -> Float[Tensor, "heads queries"]:
    """Σ_{j special} w_ij."""
    _, heads, queries, num_keys = attention_map.shape
    if not special:
        return torch.zeros(heads, queries)
    groups = torch.full((num_keys,), -1)
    groups[list(special)] = 0
    return attention_map.mass(groups)[0, ..., 0].cpu()


# Rows of a table, column by column, a bounded number of them at a time.


Frame = dict[str, list[Any]]
"""As many values below each name; None = there is no such number."""

AT_ONCE = 1 << 14
"""Rows of a frame, unless one head of one layer has more."""


def frames(
    maps_measured: Iterable[Measured],
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
    for measured in maps_measured:
        rows_of_head = measured.queries if by_token else 1
        heads = len(measured.of_heads[RECEIVED])
        # Several heads at a time, as many as a frame may hold; at least one.
        step = max(1, at_once // max(1, rows_of_head))
        for first in range(0, heads, step):
            own = slice(first, min(first + step, heads))
            rows = _of_queries(measured, own) if by_token else _of_heads(measured, own)
            rows["head"] = [h for h in range(own.start, own.stop) for _ in range(rows_of_head)]
            count = len(rows["head"])
            location = {
                "line": measured.line,
                "layer": measured.layer,
                "call": measured.call,
                "kind": measured.kind,
                "causal": measured.causal,
                "queries": measured.queries,
                "keys": measured.num_keys,
                "unread": measured.unread,
                "finished": measured.finished,
            }
            for name in names:
                frame[name] += rows[name] if name in rows else [location[name]] * count
            if len(frame[RECEIVED]) >= at_once:
                yield frame
                frame = {name: [] for name in names}
    if frame[RECEIVED]:
        yield frame


def _of_heads(measured: Measured, own: slice) -> Frame:
    return {name: _cells(numbers[own].tolist()) for name, numbers in measured.of_heads.items()}


def _of_queries(measured: Measured, own: slice) -> Frame:
    assert measured.of_queries is not None
    assert measured.argmax is not None
    heads = own.stop - own.start
    rows: Frame = {
        name: _cells(numbers[own].ravel().tolist()) for name, numbers in measured.of_queries.items()
    }
    rows["position"] = list(range(measured.queries)) * heads
    rows["token"] = list(measured.tokens) * heads
    rows["argmax"] = measured.argmax[own].ravel().tolist()
    return rows


def _cells(numbers: list[float]) -> list[float | None]:
    """NaN: there is no such key, or its position is unknown. −0 is written as 0."""
    return [None if number != number else number + 0.0 for number in numbers]
