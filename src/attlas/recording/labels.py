"""The tokens that name the axes of a trace."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attlas.errors import AttlasError
from attlas.recording.reading import Reading

Tokens = tuple[tuple[str, ...], ...]
"""One list of tokens per batch row; () where nobody named them."""


def rows_of(tokens: Any) -> Tokens:
    """These tokens, where they are a list of strings to a batch row.

    Errors: `AttlasError` for anything else.
    """
    rows = tuple(tuple(row) if _is_list(row) else row for row in tokens)
    for row in rows:
        if not isinstance(row, tuple) or not all(isinstance(token, str) for token in row):
            raise AttlasError(
                "labels as lists of strings, one list to a batch row",
                repr(row)[:80],
                'label with such as [["my", "own", "words"]]',
            )
    return rows


def check_slots(what: str, rows: Tokens, readings: Sequence[Reading]) -> None:
    """That these tokens name the slots of one of the readings; see `check_either`."""
    _check(what, rows, readings, {reading.shape[3] for reading in readings})


def check_queries(what: str, rows: Tokens, readings: Sequence[Reading]) -> None:
    """That these tokens name the queries of a layer with these readings; see `check_either`."""
    _check(what, rows, readings, {reading.shape[2] for reading in readings}, _steps(readings))


def check_either(what: str, rows: Tokens, layers: Sequence[Sequence[Reading]]) -> None:
    """That these tokens name the slots or the queries of one of the layers.

    The longest row is as long as that axis, since shorter ones were padded to it. A model that asks
    step by step may go on after its last token: the calls of its layer have at least so many
    queries together.
    Errors: `AttlasError` for tokens of another length, and for more rows than there are.
    """
    readings = [reading for calls in layers for reading in calls]
    lengths = {length for reading in readings for length in reading.shape[2:]}
    _check(what, rows, readings, lengths, max(map(_steps, layers), default=0))


def _steps(readings: Sequence[Reading]) -> int:
    """The queries of all calls together, where there are several."""
    return sum(reading.shape[2] for reading in readings) if len(readings) > 1 else 0


def _check(
    what: str, rows: Tokens, readings: Sequence[Reading], lengths: set[int], most: int = 0
) -> None:
    longest = max(map(len, rows), default=0)
    batch = max((reading.shape[0] for reading in readings), default=0)
    advice = "label with the tokens of this very trace, special ones included"
    if longest and longest not in lengths and longest > most:
        axes = [f"{length:,}" for length in sorted(lengths)]
        told = " or ".join(axes if len(axes) < 6 else [*axes[:2], "…", axes[-1]])
        raise AttlasError(
            f"labels of the {what}, one to each place of an axis, which has {told or 'none'}",
            f"{longest:,} of them",
            advice,
        )
    if longest and len(rows) > batch:
        raise AttlasError(
            f"labels of the {what}, a list for each of at most {batch:,} batch rows",
            f"{len(rows):,} lists",
            advice,
        )


def _is_list(row: object) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | Mapping)
