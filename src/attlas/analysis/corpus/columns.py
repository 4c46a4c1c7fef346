"""The columns of the tables of statistics."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Kind = Literal["whole", "number", "flag", "text"]

NUMBERS = (
    *("entropy", "evenness", "effective", "visible", "peak", "distance", "above"),
    *("on_first", "on_last", "on_itself", "on_previous", "on_next"),
)
"""The statistics of a query that have columns: formulas and units are those of `Reading`."""

RECEIVED = "received"
"""A slot's share of all attention, max_j Σ_i w_ij / Σ_ij w_ij; of a token, that of its own slot."""

ON_SPECIAL = "on_special"
"""Σ_{j special} w_ij, of the slots whose tokens stand for no text, such as [CLS] and [SEP]."""

ALSO = (ON_SPECIAL, "concentration")
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
    Column("relation", "text"),
    Column("causal", "flag"),
    Column("queries", "whole"),
    Column("slots", "whole"),
    Column("unread", "whole"),
    Column("finished", "flag"),
)
_TOKEN = (Column("position", "whole"), Column("token", "text"), Column("argmax", "whole"))


def columns_of(*, by_token: bool, also: Collection[str] = ()) -> tuple[Column, ...]:
    """Of one row for each head of each layer and text, or for each of its queries.

    also: those of `ALSO` that have a column too.
    """
    numbers = (*NUMBERS, RECEIVED, *(name for name in ALSO if name in also))
    return (*_PLACE, *(_TOKEN if by_token else ()), *(Column(name, "number") for name in numbers))


COLUMNS = columns_of(by_token=False)
"""Of one row for each head of each layer and text: means over its queries."""

TOKEN_COLUMNS = columns_of(by_token=True)
"""Of one row for each query of each head."""
