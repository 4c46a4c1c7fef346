"""Head roles: scores of every layer and head."""

from collections.abc import Mapping, Sequence

from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from attlas.analysis._padding import checked_values, device_of, query_mask, token_mask_of
from attlas.analysis.roles.scores import (
    InductionTarget,
    MarkedTarget,
    NearTarget,
    OffsetTarget,
    RoleTarget,
    count_roles,
    first_tokens,
    rarest_tokens,
)
from attlas.analysis.roles.table import Role, RoleTable, Tally, zero_tally
from attlas.errors import AttlasError
from attlas.recording import AttentionMap, Trace
from attlas.recording.generation import with_cross_position

RADIUS = 2
"""How far `local` looks, in keys, by default."""


def roles(
    trace: Trace,
    *,
    layers: str | Sequence[str] | None = None,
    token_mask: Shaped[Tensor, "batch keys"] | None = None,
    queries: Shaped[Tensor, "batch queries"] | None = None,
    target_mask: Shaped[Tensor, "batch target"] | None = None,
    separators: Bool[Tensor, "batch keys"] | None = None,
    counts: Shaped[Tensor, "batch keys"] | None = None,
    tokens: Int[Tensor, "batch keys"] | None = None,
    radius: int = RADIUS,
) -> RoleTable:
    """The score of every head in every role, the mean over all queries i that could show it:

    previous, next, itself   w_i,i−1, w_i,i+1, w_i,i            (Clark et al., 2019, section 3.1)
    first        the weight of the first token, a sink      (Xiao et al., 2024; Gu et al., 2025)
    separator    Σ w_ij over the `separators`                   (Clark et al., 2019, section 3.2)
    local        Σ w_ij over |i − j| ≤ `radius`: ours; of windows see Luong et al., 2015
    positional   max_o of the share of queries with argmax_j w_ij = i + o    (Voita et al., 2019,
                 section 5.1; the offset is reported), of two queries at least
    rare         the share with argmax_j w_ij at the token with the least of the `counts` of its
                 text                                           (Voita et al., 2019, section 5.3)
    induction    Σ w_ij over t_(j−1) = t_i, j ≤ i, of the `tokens` t: prefix matching (Olsson et
                 al., 2022), on what `repeated` makes
    diagonal, antidiagonal   ±ρ, the correlation of i and j under the weights, where a layer does
                 not look at itself: ours; a monotonic alignment (Raffel et al., 2017) of even pace
                 has 1. 0 where all look at one place: where the standard deviation of the keys
                 is below a thousandth of the axis

    A query counts if it is a token, if it sees more than one key, and if the role has a target for
    it. A role without any such query has the score NaN: roles of the query's own position in
    cross-attention, and diagonals in self-attention. If the positions of queries are unknown,
    as for a class token that looks at a text, roles of the own position and `positional` are
    NaN, and every query counts; pass `queries` to choose them. The table of a corpus is a sum:
    `roles(first) + roles(second)`. The map is never held.

    Args:
        layers: Paths, or patterns such as "encoder.*"; None = all. A layer called several times has
            a row for each call, `layer[0]`, `layer[1]` and so on.
        token_mask: Which keys are tokens, None = as the trace says.
        queries: Which queries are tokens, for every layer; None = those at the position of a token.
            In cross-attention keys don't say it: there, those of `target_mask`, the tokens of the
            target; None = all, also padding.
        counts: How often each token occurs in a corpus; infinity for tokens that never count as
            rare.

    Raises:
        AttlasError: For a layer that does not exist, for a wrong shape, and for a `target_mask`
            beside `queries` or without any cross-attention.
    """
    if radius < 0:
        raise AttlasError("a radius from 0", str(radius), "count keys to either side")
    maps = trace.matching_layers(layers)
    if queries is not None and target_mask is not None:
        raise AttlasError("queries or target_mask", "both", "queries are those of every layer")
    inputs = {
        "token_mask": token_mask,
        "separators": separators,
        "counts": counts,
        "tokens": tokens,
    }
    tallies: dict[str, Tally] = {}
    found_cross_attention = False
    for layer in maps:
        calls, relation = trace.calls(layer), trace.kind(layer)
        cross_attention = None if relation is None else relation == "cross"
        for call, attention_map in enumerate(calls):
            name = layer if len(calls) == 1 else f"{layer}[{call}]"
            beyond = _is_cross_attention(attention_map, cross_attention)
            query_mask = target_mask if beyond else None
            query_mask = queries if query_mask is None else query_mask
            found_cross_attention = found_cross_attention or query_mask is target_mask
            map_ = with_cross_position(attention_map) if cross_attention else attention_map
            tallies[name] = _of_map(map_, beyond, inputs, query_mask, radius, name)
    if target_mask is not None and not found_cross_attention:
        raise AttlasError(
            "cross-attention, which target_mask is for",
            f"none of it among {list(maps)}",
            "leave target_mask out",
        )
    return RoleTable(tallies)


def role_of(table: RoleTable, layer: str, head: int) -> tuple[Role, ...]:
    """The roles that a head holds, those above their thresholds, the greatest score first.

    Raises:
        AttlasError: For a layer or head that is not in the table.
    """
    held_roles = [role for role in table.of_head(layer, head) if role.held]
    return tuple(sorted(held_roles, key=lambda role: -role.score))


def _is_cross_attention(attention_map: AttentionMap, cross_attention: bool | None) -> bool:
    return (
        attention_map.shape[2] != attention_map.shape[3]
        if cross_attention is None
        else cross_attention
    )


def _of_map(
    attention_map: AttentionMap,
    cross_attention: bool,
    inputs: Mapping[str, Tensor | None],
    queries: Tensor | None,
    radius: int,
    name: str,
) -> Tally:
    batch, heads, num_queries, num_keys = attention_map.shape
    if not num_keys or not num_queries:
        return zero_tally(heads)
    device = device_of(attention_map)
    tensors = {
        input_name: checked_values(
            f"{input_name} for layer {name!r}", values, (batch, num_keys), device
        )
        for input_name, values in inputs.items()
        if values is not None
    }
    token_mask = (
        tensors["token_mask"].bool()
        if "token_mask" in tensors
        else token_mask_of(attention_map).to(device)
    )
    asked_queries = (
        query_mask(attention_map, token_mask, cross_attention=cross_attention)
        if queries is None
        else checked_values(
            f"queries for layer {name!r}", queries, (batch, num_queries), device
        ).bool()
    )
    targets: dict[str, RoleTarget] = {"first": MarkedTarget(first_tokens(token_mask))}
    if not cross_attention and attention_map.position is not None:
        offsets = {"previous": -1, "next": 1, "self": 0}
        targets |= {role: OffsetTarget(by, token_mask) for role, by in offsets.items()}
        targets["local"] = NearTarget(radius)
        if "tokens" in tensors:
            targets["induction"] = InductionTarget(tensors["tokens"], token_mask)
    if "separators" in tensors:
        targets["separator"] = MarkedTarget(tensors["separators"].bool() & token_mask)
    if "counts" in tensors:
        targets["rare"] = MarkedTarget(
            rarest_tokens(tensors["counts"], token_mask), by_max_weight=True
        )
    return count_roles(attention_map, targets, asked_queries, diagonals=cross_attention)
