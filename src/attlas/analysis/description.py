"""Describe a map in words: where its queries look, how widely, and in which direction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from attlas.analysis._padding import checked_values, device_of, query_mask, token_mask_of
from attlas.analysis.roles.scores import SlopeReduction
from attlas.analysis.roles.table import THRESHOLDS
from attlas.errors import AttlasError
from attlas.recording import AttentionMap
from attlas.recording.generation import with_cross_position
from attlas.recording.maps.reductions import (
    MassReduction,
    Reduction,
    RowReduction,
    WeightAtOffset,
    reduce_map,
)

# Features of a single map.


@dataclass(frozen=True, slots=True)
class MapFeatures:
    """Means over the queries that have a choice: those of tokens that see several keys.

    Args:
        queries: How many have a choice, out of `num_queries` that are no padding.
        num_keys: How many keys there are.
        num_visible: How many of them a query sees.
        effective_keys: exp(entropy).
        normalized_entropy: Entropy / log(visible).
        max_weight: The greatest weight.
        key: Where most queries have their greatest weight, `key_share` of them, and its weight.
        offset: The same, counted from the query's own place, if that is known.
        forward, still, backward: Of the steps from one query to the next, how many move the
            greatest weight to a later key, leave it, or move it to an earlier one.
        slope: The correlation of query and key.
    """

    num_queries: int
    queries: int
    num_keys: int
    num_visible: float = 0.0
    effective_keys: float = 0.0
    normalized_entropy: float = 0.0
    max_weight: float = 0.0
    key: int = -1
    key_share: float = 0.0
    key_weight: float = 0.0
    offset: int = 0
    offset_share: float = 0.0
    offset_weight: float = 0.0
    steps: int = 0
    forward: float = 0.0
    still: float = 0.0
    backward: float = 0.0
    slope: float = 0.0


def map_features(
    attention_map: AttentionMap,
    token_mask: Bool[Tensor, "one keys"],
    query_mask: Bool[Tensor, "one queries"],
) -> MapFeatures:
    """The numbers of an attention map with one text and one head, in two passes over its blocks.

    Args:
        token_mask: Which keys are tokens.
        query_mask: Which queries are.

    Raises:
        AttlasError: For a map with several texts or heads.
    """
    batch, heads, *axes = attention_map.shape
    if (batch, heads) != (1, 1):
        raise AttlasError(
            "one map",
            f"{batch} × {heads} of them",
            "choose a batch row and a head of the attention map",
        )
    if not all(axes):
        return MapFeatures(int(query_mask.sum()), 0, int(token_mask.sum()))
    summary = attention_map.summary(
        "argmax", "effective_keys", "normalized_entropy", "num_visible", "max_weight"
    )
    assert summary.argmax is not None  # as it was asked for
    best, device = summary.argmax[0, 0], summary.argmax.device
    numbers = [
        summary.num_visible,
        summary.effective_keys,
        summary.normalized_entropy,
        summary.max_weight,
    ]
    rows = torch.stack([part[0, 0] for part in numbers if part is not None])
    query_mask = query_mask.to(device)
    choice = query_mask[0] & (rows[0] > 1) & (best >= 0)
    num_queries, queries, num_keys = int(query_mask.sum()), int(choice.sum()), int(token_mask.sum())
    if not queries:
        return MapFeatures(num_queries, queries, num_keys)
    num_visible, effective_keys, normalized_entropy, max_weight = (
        rows[:, choice].to(torch.float64).mean(-1).tolist()
    )
    key, key_share = _commonest(best[choice])
    offset, offset_share_ = 0, 0
    query_offset = attention_map.position
    if query_offset is not None:
        positions = query_offset + torch.arange(len(best), device=device)
        offset, offset_share_ = _commonest((best - positions)[choice])
    marks = torch.full((1, attention_map.shape[3]), -1, device=device)
    marks[0, key] = 0
    reductions: dict[str, Reduction] = {
        "key": MassReduction(attention_map, marks, 1),
        "slope": SlopeReduction(attention_map, query_mask),
    }
    if query_offset is not None:
        reductions["offset"] = RowReduction(attention_map, WeightAtOffset(offset))
    statistics = reduce_map(attention_map, reductions)
    at_choice = (
        float(statistics["offset"][0, 0, choice].double().mean()) if "offset" in statistics else 0.0
    )
    moves = best[choice].diff()
    steps = len(moves)
    forward, backward = int((moves > 0).sum()), int((moves < 0).sum())
    max_count = max(1, steps)
    return MapFeatures(
        num_queries=num_queries,
        queries=queries,
        num_keys=num_keys,
        num_visible=num_visible,
        effective_keys=effective_keys,
        normalized_entropy=normalized_entropy,
        max_weight=max_weight,
        key=key,
        key_share=key_share / queries,
        key_weight=float(statistics["key"][0, 0, choice.cpu(), 0].double().mean()),
        offset=offset,
        offset_share=offset_share_ / queries,
        offset_weight=at_choice,
        steps=steps,
        forward=forward / max_count,
        still=(steps - forward - backward) / max_count,
        backward=backward / max_count,
        slope=float(statistics["slope"][0][0, 0]),
    )


def _commonest(values: Int[Tensor, " some"]) -> tuple[int, int]:
    """The value that occurs most often, the least of equals, and how often."""
    different, counts = torch.unique(values, return_counts=True)
    largest = int(counts.argmax())
    return int(different[largest]), int(counts[largest])


CAUTION = (
    "Weights show where the model looks, not why it answers as it does: other weights may give the "
    "same answer (Jain & Wallace, 2019; how often they can is disputed: Wiegreffe & Pinter, 2019)."
)
"""What every text ends with."""

MOST = 0.5
EVEN = 0.95
STEADY = 0.9
"""Shares: more than MOST are most; from EVEN and STEADY on the text says evenly and steadily."""

_ENDS = ("[SEP]", "[EOS]", "</s>", "<sep>", "<eos>", "<|endoftext|>", "<|im_end|>", "<|eot_id|>")
_MARKS = (".", ",", "。", "、", "，", "،", "۔", "।")
_BEHIND_A_SPACE = ("", "▁", "Ġ")

SEPARATORS = frozenset(_ENDS) | {space + mark for space in _BEHIND_A_SPACE for mark in _MARKS}
"""Tokens that may be a sink wherever they stand    Clark et al., 2019, section 3.2."""


def describe(
    attention_map: AttentionMap,
    row: int,
    head: int,
    *,
    tokens: Sequence[str] = (),
    cross_attention: bool | None = None,
    token_mask: Shaped[Tensor, " keys"] | None = None,
    queries: Shaped[Tensor, " queries"] | None = None,
) -> str:
    """A few sentences about the map of one head for one text, each from a number of it.

    The sentences say: where most queries have their greatest weight (a common key, or an offset
    from their own position; in cross-attention first a diagonal); whether that key is a sink,
    as the first key and `SEPARATORS` can be; how widely they look (exp of the entropy); in
    which direction the greatest weight moves from query to query; and that this is no
    explanation.
    Queries of padding are left out. So are queries that see a single key, because they have no
    choice.

    Args:
        tokens: Of the keys, padding included or not.
        cross_attention: Whether the map relates two texts (`trace.relation(layer) == "cross"`);
            None = it does unless it is square.
        token_mask: Which keys are tokens, None = as the attention map says.
        queries: Which queries are; None = those that stand at a token, and where two texts are
            related all of them, padding too.

    Raises:
        AttlasError: For a row or head that is not there, and for tokens, keys and queries that do
            not fit.
    """
    batch, heads, num_queries, num_keys = attention_map.shape
    if not (0 <= row < batch and 0 <= head < heads):
        raise AttlasError(
            f"a text of {batch} and a head of {heads}", f"row {row}, head {head}", "count from 0"
        )
    map_ = attention_map.at(row).select_heads(torch.tensor([head]))
    device = device_of(map_)
    token_mask = (
        token_mask_of(map_)
        if token_mask is None
        else _check_mask("tokens", token_mask, num_keys, device)
    )
    asked_queries = (
        None if queries is None else _check_mask("real queries", queries, num_queries, device)
    )
    positions = token_mask[0].nonzero().flatten().tolist()
    if len(tokens) not in (0, num_keys, len(positions)):
        raise AttlasError(
            f"a token for each of {num_keys:,} keys, or of the {len(positions):,} that are not "
            f"padding",
            f"{len(tokens):,}",
            "give the tokens of this very text, special ones included",
        )
    key_names = positions if len(tokens) == len(positions) else range(num_keys)
    names = dict(zip(key_names, tokens, strict=True)) if tokens else {}
    cross_attention = num_queries != num_keys if cross_attention is None else cross_attention
    map_ = with_cross_position(map_) if cross_attention else map_
    asked_queries = (
        query_mask(map_, token_mask, cross_attention=cross_attention)
        if asked_queries is None
        else asked_queries
    )
    features = map_features(map_, token_mask, asked_queries)
    return " ".join(
        _sentences(
            features, names, sink=_sink(features, positions, names), cross_attention=cross_attention
        )
    )


def _check_mask(
    name: str, values: object, count: int, device: torch.device
) -> Bool[Tensor, "one count"]:
    return checked_values(name, torch.as_tensor(values)[None], (1, count), device).bool()


def _sink(features: MapFeatures, positions: list[int], names: dict[int, str]) -> bool:
    """Return True if most look at the first key or a separator, with the weight of a sink."""
    first = features.key == (positions[0] if positions else -1)
    if not first and names.get(features.key) not in SEPARATORS:
        return False
    threshold = THRESHOLDS["first" if first else "separator"]
    return features.key_weight >= threshold and features.key_weight > 2 / features.num_visible


def _sentences(
    features: MapFeatures, names: dict[int, str], *, sink: bool, cross_attention: bool
) -> list[str]:
    text = (
        _amount(features.num_queries, "query", "queries"),
        _amount(features.num_keys, "key", "keys"),
    )
    sentences = [f"{text[0]} {'looks' if features.num_queries == 1 else 'look'} at {text[1]}."]
    if not features.queries:
        return [*sentences, "None of them sees more than one key, so there is no choice.", CAUTION]
    if features.queries < features.num_queries:
        sentences.append(f"{features.queries:,} of them see more than one key; of these:")
    sentences += [
        _where(features, names, sink=sink, cross_attention=cross_attention),
        _spread(features),
    ]
    if (
        features.steps > 1 and features.normalized_entropy < EVEN
    ):  # else the greatest weight is one of many alike
        sentences.append(_direction(features))
    return [*sentences, CAUTION]


def _where(
    features: MapFeatures, names: dict[int, str], *, sink: bool, cross_attention: bool
) -> str:
    if features.normalized_entropy >= EVEN:
        return "They spread almost evenly over all visible keys: no place stands out."
    if cross_attention and abs(features.slope) >= THRESHOLDS["diagonal"]:
        way = "diagonal" if features.slope > 0 else "anti-diagonal"
        return f"They look along the {way}: query and key correlate with {features.slope:.2f}."
    key = _key_text(features.key, names)
    share_text = (
        f"{_percent(features.key_share)} have their greatest weight there, and it gets "
        + (f"{_percent(features.key_weight)} of all weight")
    )
    everywhere = features.queries > 1 and features.key_share > MOST
    if everywhere and (cross_attention or features.key_share >= features.offset_share):
        return f"Most look at {key}: {share_text}{', as a sink does' if sink else ''}."
    if not cross_attention and features.offset_share > MOST:
        return (
            f"Most look {_offset_text(features.offset)}: "
            f"{_percent(features.offset_share)} have their greatest weight there, and give it "
            f"{_percent(features.offset_weight)} on average."
        )
    if features.queries == 1:
        return f"It looks most at {key}, with {_percent(features.key_weight)} of its weight."
    commonest = f"the commonest place is {key}: {share_text}"
    return f"They look at no one place; {commonest}."


def _spread(features: MapFeatures) -> str:
    """Say how widely queries look: exp(entropy) relative to the number of visible keys."""
    share = features.effective_keys / features.num_visible
    description = (
        "narrow"
        if share <= 0.25 or features.max_weight >= 0.75
        else "wide"
        if share >= 0.75
        else "neither"
    )
    kind = "neither narrow nor wide" if description == "neither" else description
    return (
        f"The gaze is {kind}: on average as if spread evenly over {features.effective_keys:.1f} of "
        f"{features.num_visible:.1f} keys in sight, with a greatest weight of "
        f"{features.max_weight:.2f}."
    )


def _direction(features: MapFeatures) -> str:
    direction = (
        f"from query to query the greatest weight moves forward in {_percent(features.forward)} of "
        f"the steps, stays in {_percent(features.still)} and moves backward in "
        f"{_percent(features.backward)}"
    )
    if features.still >= STEADY:
        return f"It stays where it is: {direction}."
    for way, going, against in (
        ("forward", features.forward, features.backward),
        ("backward", features.backward, features.forward),
    ):
        if against <= 1 - STEADY and going >= MOST:
            return f"It runs steadily {way}: {direction}."
    return f"It has no steady direction: {direction}."


def _offset_text(offset: int) -> str:
    if offset == 0:
        return "at their own place"
    count = "one key" if abs(offset) == 1 else f"{abs(offset):,} keys"
    return f"{count} {'ahead' if offset > 0 else 'back'}"


def _key_text(key: int, names: dict[int, str]) -> str:
    return f"key {key:,} ({_quoted(names[key])})" if key in names else f"key {key:,}"


def _quoted(name: str) -> str:
    """As JSON, so that no token can break the line, or be invisible in it."""
    json_text = json.dumps(name, ensure_ascii=False)
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in json_text
    )


def _amount(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
