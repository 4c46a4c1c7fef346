"""Rows of a table, column by column, a bounded number of them at a time."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from attlas.analysis.corpus.columns import RECEIVED, columns_of
from attlas.analysis.corpus.measured import Measured

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

    also: further columns, which were measured.
    """
    names = [column.name for column in columns_of(by_token=by_token, also=also)]
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
                "finished": one.finished,
            }
            for name in names:
                frame[name] += rows[name] if name in rows else [place[name]] * count
            if len(frame[RECEIVED]) >= at_once:
                yield frame
                frame = {name: [] for name in names}
    if frame[RECEIVED]:
        yield frame


def _of_head(one: Measured, head: int) -> Frame:
    return {name: _cells([float(numbers[head])]) for name, numbers in one.of_heads.items()}


def _of_queries(one: Measured, head: int) -> Frame:
    assert one.of_queries is not None
    assert one.argmax is not None
    rows: Frame = {name: _cells(numbers[head].tolist()) for name, numbers in one.of_queries.items()}
    rows["position"] = list(range(one.queries))
    rows["token"] = list(one.tokens)
    rows["argmax"] = one.argmax[head].tolist()
    return rows


def _cells(numbers: list[float]) -> list[float | None]:
    """NaN: there is no such slot, or nobody knows which it is."""
    return [None if number != number else number for number in numbers]
