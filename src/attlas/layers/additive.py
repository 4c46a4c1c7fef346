"""Additive attention."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.layers.base import ScoredAttention, check_dims, to_token_mask, zero_padding
from attlas.ops.additive import recomputed_scores, sigmoid_is_faster
from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_reads import deferred_gradient, reads_are_long
from attlas.ops.linear import Linear, is_plain_cpu_float32, is_traced_or_transformed
from attlas.patterns import Pattern, everywhere
from attlas.recording.hooks import has_hooks

_PAIRS_AT_ONCE = 2**26  # numbers in (batch, queries, keys, hidden_dim): 256 MiB of float32


class AdditiveAttention(ScoredAttention):
    """v · tanh(W q + U k)    Bahdanau, Cho & Bengio, 2015, section 3.1 and appendix A.1.2.

    Query, source and hidden widths are independent. The values are the source itself.

    Example:
        >>> import torch, attlas
        >>> attention = attlas.layers.AdditiveAttention(query_dim=6, key_dim=8, hidden_dim=16)
        >>> context, weights = attention(torch.randn(2, 6), torch.randn(2, 5, 8))
        >>> tuple(context.shape), tuple(weights.shape)
        ((2, 8), (2, 5))
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        check_dims(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.q_proj = Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
    ) -> KeyValueCache:
        """U k once per source: it does not depend on the query."""
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        source = zero_padding(source, token_mask)
        return KeyValueCache(self.k_proj(source), source, token_mask)

    def score(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys hidden_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """The energy of every pair."""
        return additive_scores(self._projected(query, keys), keys, self.score_proj)

    def _projected(
        self, query: Float[Tensor, "batch queries query_dim"], keys: Float[Tensor, "batch keys _"]
    ) -> Float[Tensor, "batch queries hidden_dim"]:
        """W q; in a loop over a long source, the gradient of W waits for the last step."""
        deferred = deferred_gradient(keys) if query.shape[1] == 1 else None
        proj = self.q_proj
        if (
            deferred is None
            or not (type(proj) is Linear and proj.bias is None)
            or has_hooks([proj])
        ):
            projected: Tensor = proj(query)
            return projected
        return deferred.step_linear(proj.weight)(query.squeeze(1)).unsqueeze(1)


def additive_scores(
    query: Float[Tensor, "batch queries hidden_dim"],
    keys: Float[Tensor, "batch keys hidden_dim"],
    energy: nn.Linear,
) -> Float[Tensor, "batch queries keys"]:
    """v · tanh(q + k) of every pair.

    Without gradients, memory stays bounded: queries go in groups of at most 2²⁶ numbers. With
    gradients, every tanh is kept: O(batch · queries · keys · hidden_dim). Sources of 128 keys or
    more on a CPU, in float32, keep none: see `recomputed_scores`.
    """
    if _is_recomputed(query, keys, energy):
        return recomputed_scores(query, keys, energy.weight)
    of_one_query = max(1, keys.numel())
    groups = torch.split(query, max(1, _PAIRS_AT_ONCE // of_one_query), dim=1)
    scores = [energy(_tanh(group.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1) for group in groups]
    return torch.cat(scores, dim=1)


def _is_recomputed(query: Tensor, keys: Tensor, energy: nn.Linear) -> bool:
    """Return True if there is a gradient to come, and no tanh should be kept for it."""
    return (
        torch.is_grad_enabled()
        and reads_are_long(keys, query, energy.weight)
        and any(tensor.requires_grad for tensor in (query, keys, energy.weight))
        and type(energy) is nn.Linear
        and energy.bias is None
        and not has_hooks([energy])
    )


def _tanh(sums: Float[Tensor, "*sizes"]) -> Float[Tensor, "*sizes"]:
    """tanh x, in place; where no gradient can be asked for, as 2 σ(2x) − 1 if that is faster.

    It is off by up to 2·10⁻⁷ wherever x is, torch's tanh by 3·10⁻⁸: nothing beside a sum of many,
    but much to half precision.
    """
    if _without_gradient(sums) and sigmoid_is_faster():
        return sums.mul_(2).sigmoid_().mul_(2).sub_(1)
    return sums.tanh_()


def _without_gradient(tensor: Tensor) -> bool:
    """Return True if these are float32 in memory, and what they came of will not be needed."""
    return (
        not torch.compiler.is_compiling()
        and is_plain_cpu_float32(tensor)
        and not is_traced_or_transformed()
        and not (torch.is_grad_enabled() and tensor.requires_grad)
    )
