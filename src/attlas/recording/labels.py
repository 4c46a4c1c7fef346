"""The tokens that name the axes of a trace."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attlas.errors import AttlasError, quoted
from attlas.recording.maps.base import AttentionMap

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


def check_slots(what: str, rows: Tokens, attention_maps: Sequence[AttentionMap]) -> None:
    """That these tokens name the slots of one of the attention maps; see `check_either`."""
    _check(what, rows, attention_maps, {attention_map.shape[3] for attention_map in attention_maps})


def check_queries(what: str, rows: Tokens, attention_maps: Sequence[AttentionMap]) -> None:
    """That these tokens name the queries of a layer with these attention maps; see
    `check_either`."""
    lengths = {attention_map.shape[2] for attention_map in attention_maps} | {
        _together(attention_maps)
    }
    _check(what, rows, attention_maps, lengths, _steps(attention_maps))


def check_either(what: str, rows: Tokens, layers: Sequence[Sequence[AttentionMap]]) -> None:
    """That these tokens name the slots or the queries of one of the layers.

    The longest row is as long as that axis, since shorter ones were padded to it, or as all calls
    of a layer together have queries. A model that asks one query at a time may go on after its last
    token: the calls of its layer have at least so many queries together.
    Errors: `AttlasError` for tokens of another length, and for another number of rows.
    """
    attention_maps = [attention_map for calls in layers for attention_map in calls]
    lengths = {length for attention_map in attention_maps for length in attention_map.shape[2:]}
    lengths |= set(map(_together, layers))
    _check(what, rows, attention_maps, lengths, max(map(_steps, layers), default=0))


def _steps(attention_maps: Sequence[AttentionMap]) -> int:
    """How many calls of one query each there are, where there are no others."""
    return (
        len(attention_maps)
        if all(attention_map.shape[2] == 1 for attention_map in attention_maps)
        else 0
    )


def _together(attention_maps: Sequence[AttentionMap]) -> int:
    """The queries of all calls."""
    return sum(attention_map.shape[2] for attention_map in attention_maps)


def _check(
    what: str,
    rows: Tokens,
    attention_maps: Sequence[AttentionMap],
    lengths: set[int],
    most: int = 0,
) -> None:
    longest = max(map(len, rows), default=0)
    batches = {attention_map.shape[0] for attention_map in attention_maps}
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
