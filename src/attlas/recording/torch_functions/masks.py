"""What the queries of a call may see: a model's mask, and the pattern that it spells out."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from attlas.patterns import Pattern, both, causal, everywhere, window
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import NOTHING
from attlas.recording.torch_functions.tensors import Versions

_AT_ONCE = 1 << 22  # pairs that are compared at a time
_ABSORBING = 16.0  # added to a whole row, a larger number takes digits from its scores
_BEYOND = 1e30  # more than scores differ by, but where their sums overflow

Reached = Callable[[float], bool]
"""Whether a key which a mask puts this far below another may be looked at all the same, because
the scores at hand may differ by so much."""


@dataclass(frozen=True, slots=True)
class MaskSpec:
    """Which keys each query may see, in the words of a `FactoredAttentionMap`.

    Args:
        query_offset: Where the first query stands, where that is spelt out; None = by its mask
            it is unknown.
    """

    pattern: Pattern = everywhere
    query_offset: int | None = None
    token_mask: Bool[Tensor, "batch keys"] | None = None
    bias: Shaped[Tensor, "#batch #heads #queries #keys"] | None = None


def by_any_scores(gap: float) -> bool:
    """Return True if the scores may differ by so much, where they are unknown."""
    return not gap > _BEYOND


def mask_spec_of(
    mask: Shaped[Tensor, "#batch #heads #queries #keys"] | None,
    batch: int,
    queries: int,
    num_keys: int,
    reached: Reached = by_any_scores,
) -> MaskSpec:
    """The spec that a mask spells out, exactly: as a pattern and padding, or else as it is.

    A finite number hides a key as −∞ does where no scores make up for it, as `reached` says. Where
    they may, the mask is kept as a bias.

    Args:
        mask: bool (True = may see) or float (added to the scores). Without one the queries see all
            keys, wherever they stand. A pattern costs no memory, where a mask has queries × keys
            numbers; it is looked for among everywhere, causal, windows and causal windows.
    """
    if mask is None:
        return MaskSpec()
    mask_spec, gap = parse_mask_with_gap(mask, batch, queries, num_keys)
    return mask_spec if gap == torch.inf or not reached(gap) else as_bias(mask)


def with_causal_pattern(
    parse_mask: Callable[..., MaskSpec], query_offset: int
) -> Callable[..., MaskSpec]:
    """The specs of calls that also hide what comes after a query; the first stands at `first`."""

    def of_call(mask: Any, batch: int, queries: int, num_keys: int, reached: Reached) -> MaskSpec:
        if mask is None:
            return MaskSpec(causal, query_offset)
        mask_spec = parse_mask(mask, batch, queries, num_keys, reached)
        if mask_spec.pattern != everywhere:
            mask_spec = as_bias(mask.detach().clone())
        return replace(mask_spec, pattern=causal, query_offset=query_offset)

    return of_call


def as_bias(mask: Shaped[Tensor, "#batch #heads #queries #keys"]) -> MaskSpec:
    """The spec of a mask that is kept, once where it is the same for all heads."""
    return MaskSpec(bias=mask[:, :1] if mask.shape[1] > 1 and _same_for_heads(mask) else mask)


def parse_mask_with_gap(
    mask: Shaped[Tensor, "#batch #heads #queries #keys"], batch: int, queries: int, num_keys: int
) -> tuple[MaskSpec, float]:
    """The spec of a mask, and how far below the others it puts whatever it hides.

    The spec is right for scores that do not differ by so much.
    """
    as_added = as_bias(mask), torch.inf
    if (
        not batch
        or not queries
        or not num_keys
        or (mask.shape[1] > 1 and not _same_for_heads(mask))
    ):
        return as_added
    mask = mask[:, :1]
    allowed, gap = _allowed(mask)
    if allowed is None:
        return as_added
    allowed = allowed[:, 0].expand(-1, queries, num_keys)
    token_mask = allowed.any(1)
    found = _pattern_of(allowed, token_mask)
    if found is None:
        return as_added
    pattern, query_offset = found
    padded = None if bool(token_mask.all()) else token_mask.expand(batch, num_keys).clone()
    if pattern == everywhere:
        return MaskSpec(token_mask=padded), gap
    newest = query_offset + queries
    if pattern.bound.ahead == 0 and 0 < newest < num_keys:
        # Keys beyond the newest query are room that a cache has not filled yet; a pattern that
        # looks back alone hides them, so they need not count as padding.
        token_part = token_mask[:, :newest]
        padded = None if bool(token_part.all()) else padded
    return MaskSpec(pattern, query_offset, padded), gap


def _same_for_heads(mask: Shaped[Tensor, "#batch heads #queries #keys"]) -> bool:
    return not mask.stride(1) or torch.equal(mask, mask[:, :1].expand_as(mask))


def _above_the_least(
    mask: Shaped[Tensor, "#batch #heads #queries #keys"],
) -> Bool[Tensor, "#batch #heads #queries #keys"]:
    """The pairs that a mask does not hide by −∞ or the least number of its type.

    A row that has nothing else, of padding, is meant to see nothing. A row of which all is hidden
    by another number sees everything.
    """
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min


def _allowed(
    mask: Shaped[Tensor, "#batch #heads #queries #keys"],
) -> tuple[Bool[Tensor, "#batch #heads #queries #keys"] | None, float]:
    """A mask as truth values, and how far the false ones are below the others at the least; None
    where it says something else than that, whatever the scores are."""
    if mask.dtype == torch.bool:
        return mask, torch.inf
    numbers = mask.to(torch.promote_types(mask.dtype, torch.float32))
    maximum = numbers.amax(-1, keepdim=True)
    allowed = (numbers == maximum) & _above_the_least(mask)
    sees = allowed.any(-1, keepdim=True)
    gap = float(torch.where(allowed | ~sees, torch.inf, maximum - numbers).min())
    hides = gap > NOTHING and not bool((sees & (maximum.abs() > _ABSORBING)).any())
    return (allowed, gap) if hides else (None, 0.0)


def _pattern_of(
    allowed: Bool[Tensor, "batch queries keys"], token_mask: Bool[Tensor, "batch keys"]
) -> tuple[Pattern, int] | None:
    """The pattern that allows these pairs among the tokens, and where its queries begin."""
    queries, num_keys = allowed.shape[1:]
    newest = max(num_keys - queries, 0)
    if _fits(everywhere, newest, allowed, token_mask):
        return everywhere, newest
    positions = torch.arange(num_keys, device=allowed.device)
    last = int(torch.where(token_mask, positions, -1).max())
    earliest = min(0, num_keys - queries)  # padding on the right would have queries begin before it
    for query_offset in dict.fromkeys((last - queries + 1, newest, 0)):
        if query_offset < earliest:
            continue
        for pattern in _candidates(allowed, query_offset, positions):
            if _fits(pattern, query_offset, allowed, token_mask):
                return pattern, query_offset
    return None


def _candidates(
    allowed: Bool[Tensor, "batch queries keys"], query_offset: int, positions: Int[Tensor, " keys"]
) -> list[Pattern]:
    """Patterns with queries from `first` on that reach as far back and ahead as these pairs do."""
    queries, num_keys = allowed.shape[1:]
    query_positions = query_offset + torch.arange(queries, device=allowed.device)
    has_query = allowed.any(-1)
    earliest = torch.where(has_query, allowed.view(torch.uint8).argmax(-1), query_positions)
    latest = torch.where(
        has_query, num_keys - 1 - allowed.flip(-1).view(torch.uint8).argmax(-1), query_positions
    )
    behind, ahead = int((query_positions - earliest).max()), int((latest - query_positions).max())
    if ahead <= 0:
        return [causal, both(causal, window(max(behind, 0)))]
    return [window(max(behind, ahead))]


def _fits(
    pattern: Pattern,
    query_offset: int,
    allowed: Bool[Tensor, "batch queries keys"],
    token_mask: Bool[Tensor, "batch keys"],
) -> bool:
    batch, queries, num_keys = allowed.shape
    rows = max(1, _AT_ONCE // (batch * num_keys))
    for start in range(0, queries, rows):
        stop = min(start + rows, queries)
        expected = pattern.mask(stop - start, num_keys, query_offset + start, allowed.device)
        if not torch.equal(expected & token_mask[:, None], allowed[:, start:stop]):
            return False
    return True


# The specs of a model's masks, each looked at once.


_KEPT = 8
_FEWEST, _LARGE = 2, 1 << 26  # of larger masks, in bytes all together, no more than these are kept


class MaskSpecCache:
    """`mask_spec_of`, which remembers the last few masks: a model gives the same one to many
    layers."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._known: OrderedDict[Any, tuple[Tensor, MaskSpec, float]] = OrderedDict()

    def __call__(
        self,
        mask: Shaped[Tensor, "#batch #heads #queries #keys"] | None,
        batch: int,
        queries: int,
        num_keys: int,
        reached: Reached = by_any_scores,
    ) -> MaskSpec:
        """As `mask_spec_of`; what it keeps of a mask is a copy, one for all layers."""
        if mask is None:
            return mask_spec_of(None, batch, queries, num_keys)
        for axis in (0, 1):
            if mask.stride(axis) == 0:  # the same again and again; a copy would spell it out
                mask = mask.narrow(axis, 0, 1)
        is_uncountable = mask.is_inference() or torch._C._functorch.is_functorch_wrapped_tensor(
            mask
        )
        # Such a tensor does not show that it was changed, or where it is; nor does an array, whose
        # memory torch may not resize.
        if is_uncountable or not mask.untyped_storage().resizable():
            return mask_spec_of(mask.detach().clone(), batch, queries, num_keys, reached)
        # A tensor that is kept here keeps its memory, so that no other tensor can have its address.
        identity = mask.data_ptr(), self._versions(mask), mask.shape, mask.stride(), mask.dtype
        key: Any = (*identity, batch, queries, num_keys)
        if key not in self._known:
            self._remember(key, mask, *parse_mask_with_gap(_copy(mask), batch, queries, num_keys))
        self._known.move_to_end(key)
        _, mask_spec, gap = self._known[key]
        if gap == torch.inf or not reached(gap):
            return mask_spec
        key = (*key, "as it is")
        if key not in self._known:
            self._remember(key, mask, as_bias(_copy(mask)), gap)
        self._known.move_to_end(key)
        return self._known[key][1]

    def _remember(self, key: Any, mask: Tensor, spec: MaskSpec, gap: float) -> None:
        self._known[key] = mask, spec, gap
        while len(self._known) > (_FEWEST if self._bytes() > _LARGE else _KEPT):
            self._known.popitem(last=False)

    def _bytes(self) -> int:
        storages = (mask.untyped_storage() for mask, *_ in self._known.values())
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _copy(mask: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    return mask.detach().clone()


# Keys that are no keys of a text: what `nn.MultiheadAttention` learns, or zeros.


_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def count_extra_keys(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """How many keys a call of `F.multi_head_attention_forward` puts behind those of its text."""
    arguments = _SIGNATURE.bind(*args, **kwargs).arguments
    return (arguments.get("bias_k") is not None) + bool(arguments.get("add_zero_attn"))


def drop_last_keys(attention_map: AttentionMap, count: int) -> DenseAttentionMap:
    """The weights of all keys but the last, which take their share of a softmax all the same."""
    queries, num_keys = attention_map.shape[2:]
    allowed = attention_map.allowed_rows(0, queries)[..., : num_keys - count]
    weights = attention_map.rows(0, queries)[..., : num_keys - count]
    return DenseAttentionMap(
        weights, None if bool(allowed.all()) else allowed, attention_map.position
    )
