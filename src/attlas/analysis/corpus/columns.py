"""The columns of the tables of statistics."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["whole", "number", "flag", "text"]

NUMBERS = (
    *("entropy", "evenness", "effective", "peak", "distance", "above"),
    *("on_first", "on_last", "on_itself", "on_previous", "on_next"),
)
"""The statistics of a query that have columns: formulas and units are those of `Reading`."""

RECEIVED = "received"
"""A slot's share of all attention, max_j Σ_i w_ij / Σ_ij w_ij; of a token, that of its own slot."""


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
)
_TOKEN = (Column("position", "whole"), Column("token", "text"), Column("argmax", "whole"))
_NUMBERS = tuple(Column(name, "number") for name in (*NUMBERS, RECEIVED))

COLUMNS = (*_PLACE, *_NUMBERS)
"""Of one row for each head of each layer and text: means over its queries."""

TOKEN_COLUMNS = (*_PLACE, *_TOKEN, *_NUMBERS)
"""Of one row for each query of each head."""
