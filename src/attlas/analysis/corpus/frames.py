"""Rows of a table, column by column, a bounded number of them at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

from attlas.analysis.corpus.columns import COLUMNS, NUMBERS, RECEIVED, TOKEN_COLUMNS
from attlas.analysis.corpus.measured import Measured

Frame = dict[str, list[Any]]
"""As many values below each name; None = there is no such number."""

AT_ONCE = 1 << 14
"""Rows of a frame, unless one head of one layer has more."""


def frames(found: Iterable[Measured], *, by_token: bool, at_once: int = AT_ONCE) -> Iterator[Frame]:
    """One row for each head, or each of its queries, in their order; no frame is empty."""
    names = [column.name for column in (TOKEN_COLUMNS if by_token else COLUMNS)]
    frame: Frame = {name: [] for name in names}
    for one in found:
        for head in range(len(one.of_heads[RECEIVED])):
            rows = _of_queries(one, head) if by_token else _of_head(one, head)
            count = len(rows[RECEIVED])
            place = {
                "line": one.line,
                "layer": one.layer,
                "call": one.call,
                "head": head,
                "relation": one.relation,
                "causal": one.causal,
                "queries": one.queries,
                "slots": one.slots,
                "unread": one.unread,
            }
            for name in names:
                frame[name] += rows[name] if name in rows else [place[name]] * count
            if len(frame[RECEIVED]) >= at_once:
                yield frame
                frame = {name: [] for name in names}
    if frame[RECEIVED]:
        yield frame


def _of_head(one: Measured, head: int) -> Frame:
    return {name: [float(numbers[head])] for name, numbers in one.of_heads.items()}


def _of_queries(one: Measured, head: int) -> Frame:
    assert one.of_queries is not None
    assert one.argmax is not None
    rows: Frame = {name: one.of_queries[name][head].tolist() for name in NUMBERS}
    shares = one.of_queries[RECEIVED][head].tolist()
    rows[RECEIVED] = [None if share != share else share for share in shares]  # NaN: no such slot
    rows["position"] = list(range(one.queries))
    rows["token"] = list(one.tokens)
    rows["argmax"] = one.argmax[head].tolist()
    return rows
