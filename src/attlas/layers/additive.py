"""Additive attention."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers.base import ScoredAttention, check_widths, without_junk
from attlas.ops.cache import Memory
from attlas.ops.linear import Linear, overseen, plain
from attlas.patterns import Pattern, everywhere

_PAIRS_AT_ONCE = 2**26  # numbers in (batch, queries, slots, hidden): 256 MiB of float32


class Additive(ScoredAttention):
    """v · tanh(W q + U k)    Bahdanau, Cho & Bengio, 2015, section 3.1 and appendix A.1.2.

    Query, source and hidden widths are independent; the values read are the source itself.
    """

    def __init__(
        self,
        query_width: int,
        source_width: int,
        hidden: int,
        *,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
    ) -> None:
        check_widths(query_width=query_width, source_width=source_width, hidden=hidden)
        super().__init__(pattern=pattern, dropout=dropout)
        self.query_width, self.source_width = query_width, source_width
        self.of_query = Linear(query_width, hidden, bias=False)
        self.of_key = Linear(source_width, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Memory:
        """U k once per source: it does not depend on the query."""
        self.check_source(source)
        source = without_junk(source, real)
        return Memory(self.of_key(source), source, real)

    def score(
        self,
        query: Float[Tensor, "batch queries query_width"],
        keys: Float[Tensor, "batch slots hidden"],
    ) -> Float[Tensor, "batch queries slots"]:
        """The energy of every pair."""
        return tanh_energies(self.of_query(query), keys, self.energy)


def tanh_energies(
    query: Float[Tensor, "batch queries hidden"],
    keys: Float[Tensor, "batch slots hidden"],
    energy: nn.Linear,
) -> Float[Tensor, "batch queries slots"]:
    """v · tanh(q + k) of every pair.

    Without gradients, memory stays bounded: queries go in groups of at most 2²⁶ numbers. With
    gradients, every tanh is kept: O(batch · queries · slots · hidden).
    """
    of_one_query = max(1, keys.numel())
    groups = torch.split(query, max(1, _PAIRS_AT_ONCE // of_one_query), dim=1)
    scores = [energy(_tanh(group.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1) for group in groups]
    return torch.cat(scores, dim=1)


def _tanh(sums: Float[Tensor, "*sizes"]) -> Float[Tensor, "*sizes"]:
    """tanh x, in place; where no gradient can be asked for, on x86 in float32, as 2 σ(2x) − 1.

    Four passes that take a third of the time of torch's one tanh, or less. They are off by up to
    2·10⁻⁷ wherever x is, tanh by 3·10⁻⁸: nothing beside a sum of many, but much to half precision.
    """
    if _without_gradient(sums) and torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return sums.mul_(2).sigmoid_().mul_(2).sub_(1)
    return sums.tanh_()


def _without_gradient(tensor: Tensor) -> bool:
    """Whether these are float32 in memory, and nobody will ask what they came of."""
    return (
        not torch.compiler.is_compiling()
        and plain(tensor)
        and not overseen()
        and not (torch.is_grad_enabled() and tensor.requires_grad)
    )
