"""Other weights of one head: what one output of one text becomes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import AttentionTarget, Intervention, distribution
from attlas.errors import AttlasError
from attlas.recording import intervene, permuted, uniform
from attlas.recording.hooks import Allowed, WeightPatch, Weights
from attlas.recording.trace import Selection

HeadChange = Callable[[Weights, Allowed, int], Weights]
"""change(weights, allowed, first) → weights of one text; `first` is the number of their first query
in the map, of which one call of the layer may compute a part."""


@dataclass(frozen=True, slots=True)
class HeadTarget:
    """The map of a head of a layer, of one text.

    Args:
        layer: Its path.
        head: Counted from 0; None = all heads of the layer.
        before: How many queries the calls have that compute other maps of the layer before it.
        queries: How many queries the map has.
        cross_attention: As of `AttentionTarget`.
    """

    layer: str
    head: int | None
    before: int
    queries: int
    cross_attention: bool | None = None

    def target(
        self, model: nn.Module, call: Callable[[], object], query: int | None
    ) -> AttentionTarget:
        """A row of the map as a target; None = all of its rows.

        The call runs once. A layer that is called for each query by itself has no target of all
        rows.

        Raises:
            AttlasError: If it is called so, and no query is named; or if there is no such query.
        """
        sizes: list[int] = []

        def count(weights: Weights, allowed: Allowed, layer: str) -> Weights:
            if layer == self.layer:
                sizes.append(weights.shape[2])
            return weights

        with torch.no_grad(), intervene(model, count):
            call()
        first = 0
        for number, size in enumerate(sizes):
            place = self.before + (query or 0) - first
            if 0 <= place < size and (query is not None or size == self.queries):
                rows = place if query is not None else range(place, place + self.queries)
                return AttentionTarget(self.layer, self.head, rows, number, self.cross_attention)
            first += size
        raise AttlasError(
            f"a query from 0 to {self.queries - 1} of layer {self.layer!r}",
            "all of them at once" if query is None else str(query),
            "name a query that the layer has",
        )


def outputs_with(
    model: nn.Module,
    call: Callable[[int], Tensor],
    target: HeadTarget,
    changes: Sequence[HeadChange],
    *,
    most_copies: int,
    before_call: Callable[[], None] = lambda: None,
) -> Float[Tensor, "changes labels"]:
    """p(y | change of α), row by row for these changes of the weights of a head.

    The text is run once for each of them, as one batch.

    Args:
        call: Runs the model on so many copies of the text, and returns the logits of each.
        most_copies: Of one batch at the most.
        before_call: Called before each batch; what it raises ends the work.

    Raises:
        AttlasError: As of `Intervention` and `distribution`.
    """
    chosen = Selection.of(target.layer, target.head)
    found: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(changes), most_copies):
            some = changes[start : start + most_copies]
            before_call()
            intervention = Intervention(model, partial(call, len(some)), chosen)
            output = distribution(intervention.with_change(_batched(target, some)))
            found.append(output)
    return torch.cat(found)


def _batched(target: HeadTarget, changes: Sequence[HeadChange]) -> WeightPatch:
    """Change i of the weights of copy i, in those calls that compute this map."""
    seen = 0

    def change(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        nonlocal seen
        first, seen = seen - target.before, seen + weights.shape[2]
        if not 0 <= first < target.queries:
            return weights
        if len(weights) != len(changes):
            raise AttlasError(
                f"weights of {len(changes)} texts in layer {layer!r}",
                str(len(weights)),
                "use a model that reads each text of a batch by itself",
            )
        allowed = allowed.expand_as(weights)
        rows = [
            one(weights[place : place + 1], allowed[place : place + 1], first)
            for place, one in enumerate(changes)
        ]
        return torch.cat(rows)

    return change


# What can be done with the weights of a head.


def unchanged(weights: Weights, allowed: Allowed, first: int) -> Weights:
    """The weights of the model."""
    return weights


def made_uniform(weights: Weights, allowed: Allowed, first: int) -> Weights:
    """1 / n on each of the n keys that a query sees."""
    return uniform(weights, allowed)


def switched_off(weights: Weights, allowed: Allowed, first: int) -> Weights:
    """0: the head reads zeros."""
    return torch.zeros_like(weights)


def shuffled(seed: int) -> HeadChange:
    """Each query's weights shuffled among the keys that it sees, as `permuted` does.

    A call of later queries draws from seed + their first number.
    """

    def change(weights: Weights, allowed: Allowed, first: int) -> Weights:
        return permuted(seed + first)(weights, allowed, "")

    return change


def weight_set(query: int, key: int, share: float, head: int | None = None) -> HeadChange:
    """α_k ← v S,  α_j ← α_j (1 − v) S / (S − α_k) for j ≠ k;  S = Σ_j α_j, v = share.

    The rest of the row keeps its proportions, and the row its sum. Where the rest has no weight,
    each of its keys gets an equal part.

    Args:
        head: The head that matters; None = all. The others may be left as they are.

    Raises:
        AttlasError: For a share outside of 0 … 1; in the block, for a key that the query does not
            see, and where the query sees no other.
    """
    if not 0.0 <= share <= 1.0:
        raise AttlasError("a share of the row from 0 to 1", str(share), "use e.g. 0.5")

    def change(weights: Weights, allowed: Allowed, first: int) -> Weights:
        place = query - first
        if not 0 <= place < weights.shape[2]:
            return weights
        row, seen = weights[:, :, place], allowed[:, :, place]
        own = slice(None) if head is None else slice(head, head + 1)
        if key >= row.shape[-1] or not bool(seen[:, own, key].all()):
            raise AttlasError(
                f"a key that query {query} sees", f"key {key}", "choose one that has a weight"
            )
        others = seen.clone()
        others[..., key] = False
        if not bool(others[:, own].any(-1).all()):
            raise AttlasError(
                "a query that sees several keys, so that the others can get the rest",
                f"query {query}, which sees one",
                "choose another query",
            )
        total, rest = row.sum(-1, keepdim=True), row.masked_fill(~others, 0.0)
        left = rest.sum(-1, keepdim=True)
        even = others.to(row.dtype) / others.sum(-1, keepdim=True)
        changed = torch.where(left > 0, rest / left, even) * (1.0 - share) * total
        changed[..., key] = share * total[..., 0]
        changed = torch.where(seen, changed, row)
        edited = weights.clone()
        edited[:, :, place] = changed
        return edited

    return change
