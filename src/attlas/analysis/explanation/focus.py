"""A focus: which of a model's attention is meant."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from attlas.analysis.explanation.experiment import check_heads
from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class Focus:
    """Rows of one layer's map: those of these heads and queries.

    layer: its path; None = the only one that the model has. heads, queries: by number, None = all;
    a query may be counted from the end, −1 = the last. call: which of the layer's calls, from 0,
    where it is called more than once; None = the only one. across: whether the map relates two
    texts; None = it does unless it is square. Where it does not, queries of padding do not count.

    A model that pools by attention has one row per example. One that classifies by its first token
    looks there with the query 0, one that goes on writing with the query −1.
    """

    layer: str | None = None
    heads: int | Sequence[int] | None = None
    queries: int | Sequence[int] | None = None
    call: int | None = None
    across: bool | None = None

    def rows(self, heads: int, queries: int, layer: str) -> Bool[Tensor, "heads queries"]:
        """Which rows are meant of a map with so many heads and queries.

        Errors: `AttlasError` for heads or queries that it has not, and for none at all.
        """
        own, asked = _numbers(self.heads, heads), _numbers(self.queries, queries)
        if not own or not asked:
            raise AttlasError("at least one head and one query", "none", "leave it out for all")
        check_heads(own, heads, layer)
        wrong = [query for query in asked if not -queries <= query < queries]
        if wrong:
            raise AttlasError(
                f"queries from 0 to {queries - 1} in layer {layer!r}, or from −1 back",
                str(wrong),
                "name queries that the layer has",
            )
        chosen = torch.zeros(heads, queries, dtype=torch.bool)
        chosen[torch.tensor(own)[:, None], torch.tensor(asked)] = True
        return chosen


def _numbers(given: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    if given is None:
        return tuple(range(count))
    given = given.tolist() if hasattr(given, "tolist") else given  # NumPy's and torch's numbers
    return (given,) if isinstance(given, int) else tuple(given)
