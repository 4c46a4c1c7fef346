"""The tokens that name the axes of a trace."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attlas.errors import AttlasError, quoted
from attlas.recording.maps.base import Reading

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
                quoted(row),
                'label with such as [["my", "own", "words"]]',
            )
    return rows


def check_slots(what: str, rows: Tokens, readings: Sequence[Reading]) -> None:
    """That these tokens name the slots of one of the readings; see `check_either`."""
    _check(what, rows, readings, {reading.shape[3] for reading in readings})


def check_queries(what: str, rows: Tokens, readings: Sequence[Reading]) -> None:
    """That these tokens name the queries of a layer with these readings; see `check_either`."""
    lengths = {reading.shape[2] for reading in readings} | {_together(readings)}
    _check(what, rows, readings, lengths, _steps(readings))


def check_either(what: str, rows: Tokens, layers: Sequence[Sequence[Reading]]) -> None:
    """That these tokens name the slots or the queries of one of the layers.

    The longest row is as long as that axis, since shorter ones were padded to it, or as all calls
    of a layer together have queries. A model that asks one query at a time may go on after its last
    token: the calls of its layer have at least so many queries together.
    Errors: `AttlasError` for tokens of another length, and for another number of rows.
    """
    readings = [reading for calls in layers for reading in calls]
    lengths = {length for reading in readings for length in reading.shape[2:]}
    lengths |= set(map(_together, layers))
    _check(what, rows, readings, lengths, max(map(_steps, layers), default=0))


def _steps(readings: Sequence[Reading]) -> int:
    """How many calls of one query each there are, where there are no others."""
    return len(readings) if all(reading.shape[2] == 1 for reading in readings) else 0


def _together(readings: Sequence[Reading]) -> int:
    """The queries of all calls."""
    return sum(reading.shape[2] for reading in readings)


def _check(
    what: str, rows: Tokens, readings: Sequence[Reading], lengths: set[int], most: int = 0
) -> None:
    longest = max(map(len, rows), default=0)
    batches = {reading.shape[0] for reading in readings}
    advice = "label with the tokens of this very trace, special ones included"
    if longest and longest not in lengths and longest > most:
        axes = [f"{length:,}" for length in sorted(lengths)]
        told = " or ".join(axes if len(axes) < 6 else [*axes[:2], "…", axes[-1]])
        raise AttlasError(
            f"labels of the {what}, one to each place of an axis, which has {told or 'none'}",
            f"{longest:,} of them",
            advice,
        )
    if longest and len(rows) not in batches:
        told = " or ".join(f"{batch:,}" for batch in sorted(batches))
        raise AttlasError(
            f"labels of the {what}, a list for each of {told} batch rows",
            f"{len(rows):,} list{'s' if len(rows) > 1 else ''}",
            "give each batch row a list of its own, an empty one for a row without labels",
        )


def _is_list(row: object) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | Mapping)
